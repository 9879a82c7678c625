"""What `ps` prints, summed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.serve.usage import LARGEST, LONGEST_LINE_BYTES, MOST_PROCESSES, Usage, read_usage


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (b"  0.0   1024\n 99.5 2048\n", Usage(995_000_000, 3072 * 1024)),
        (b"100,5 10\n", Usage(1_005_000_000, 10240)),
        (b"%CPU RSS\n1.0 1\n", Usage(10_000_000, 1024)),
        (b"1.0 1\nnonsense\n2.0\n-1.0 5\nnan 5\ninf 5\n1 x\n", Usage(10_000_000, 1024)),
        (b"0.0 0\n", Usage(0, 0)),
        (b"", None),
        (b"command not found\n", None),
        (b"2e301 1\n1e308 1\n1.0 9999999999999999\n", None),
    ],
)
def test_the_lines_of_all_processes_are_summed(printed: bytes, expected: Usage | None) -> None:
    assert read_usage(printed) == expected


@given(
    st.binary()
    | st.lists(st.tuples(st.floats(), st.integers())).map(lambda rows: "\n".join(f"{a} {b}" for a, b in rows).encode())
)
def test_whatever_a_guest_prints_is_a_usage_or_none(printed: bytes) -> None:
    usage = read_usage(printed)
    assert usage is None or (0 <= usage.cpu_nanocores <= LARGEST and 0 <= usage.memory_bytes <= LARGEST)


def test_a_guest_that_prints_more_processes_than_a_machine_can_have_is_not_read_to_the_end() -> None:
    """A guest that printed a mebibyte of lines stopped everything else on its host for a fifth of a second, each time."""
    assert read_usage(b"0.1 1\n" * (2 * MOST_PROCESSES)) == Usage(MOST_PROCESSES * 1_000_000, MOST_PROCESSES * 1024)
    assert read_usage(b"nonsense\n" * MOST_PROCESSES + b"1.0 1\n") is None


@pytest.mark.parametrize(
    "line", [b"1" * LONGEST_LINE_BYTES + b" 1", b"1 " * LONGEST_LINE_BYTES, b" " * LONGEST_LINE_BYTES + b"1 1"]
)
def test_a_line_that_is_too_long_is_none(line: bytes) -> None:
    assert read_usage(line + b"\n1.0 1\n") == Usage(10_000_000, 1024)
