import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.tart.mac import Process
from applecart.tart.ps import is_same_start, parse_processes

TEXT = """\
    1 Mon Nov 16 07:58:37 2026 /sbin/launchd
  612 Sun Nov  1 00:00:09 2026     /usr/local/lib/tart.app/Contents/MacOS/tart run vm-1 --dir env:/var/My Files:ro
  613 Sun Nov  1 00:00:09 2026 sh -c one
two Sun Nov  1 00:00:09 2026 three
  614 (zombie)
"""


def test_every_line_that_is_a_process_is_one() -> None:
    began = "Sun Nov 1 00:00:09 2026"
    assert parse_processes(TEXT) == [
        Process(1, "Mon Nov 16 07:58:37 2026", "/sbin/launchd"),
        Process(612, began, "/usr/local/lib/tart.app/Contents/MacOS/tart run vm-1 --dir env:/var/My Files:ro"),
        Process(613, began, "sh -c one"),
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Sun Nov 1 00:00:09 2026", "Sun Nov 1 00:00:09 2026", True),
        ("Sun Nov 1 00:00:09 2026", "Sun Nov 1 00:00:10 2026", True),
        ("Sat Oct 31 23:59:59 2026", "Sun Nov 1 00:00:00 2026", True),
        ("Sun Nov 1 00:00:09 2026", "Sun Nov 1 00:00:14 2026", False),
        ("Sun Nov 1 00:00:09 2026", "", False),
        ("soon", "soon", True),
        ("soon", "later", False),
    ],
)
def test_about_the_same_start_is_the_same_process(one: str, other: str, same: bool) -> None:
    assert is_same_start(one, other) is same


@given(st.text())
def test_any_text_is_a_list(text: str) -> None:
    assert isinstance(parse_processes(text), list)
