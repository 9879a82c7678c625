"""The limit of open files, in a process of its own: it cannot be taken back."""

import subprocess
import sys

import pytest

PRINTS = """
import resource, sys
from applecart.observe.open_files import raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
raise_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [((256, 10240), "4096 10240"), ((256, 1024), "1024 1024"), ((8000, 10240), "8000 10240"), ((256, 256), "256 256")],
)
def test_it_is_raised_as_far_as_allowed_and_never_lowered(before: tuple[int, int], after: str) -> None:
    argv = [sys.executable, "-c", PRINTS, *map(str, before)]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == after
