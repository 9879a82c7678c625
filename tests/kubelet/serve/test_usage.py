"""What `ps` prints, summed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.serve.usage import LARGEST, Usage, read_usage


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
