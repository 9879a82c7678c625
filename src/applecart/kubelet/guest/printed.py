"""What a VM or its guest printed, made fit to be shown: in logs, events, statuses and files that people read (I9).

What leaves the agent in one of these goes through here, however it was read. A secret is recognised only whole, so a text is
cleaned before it is cut; and one that was read from the middle of a file begins with its first whole line (`guest_files.py`).
"""

from applecart.secrets import redact
from applecart.tart.screen_password import without_screen_password


def fit_to_show(text: str) -> str:
    return redact(without_screen_password(text))
