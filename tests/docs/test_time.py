"""The night of the page on time passes as it stands there."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "time.md"


def test_the_night_of_the_page_is_over_at_once() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    exec(compile(block, str(PAGE), "exec"), {})
