"""The password of a VM's screen, which `tart run --vnc` prints into its log as part of an address.

Nobody holds it as a Secret before the log was read for the first time, so it is hidden by its place in the text (I9).
"""

import re

# Bounded: a guest that prints `vnc://` a thousand times on one line must not stop us.
_ADDRESS = re.compile(r"vnc://\S{0,256}@")
_SHOWN = "vnc://:REDACTED@"


def without_screen_password(text: str) -> str:
    return _ADDRESS.sub(_SHOWN, text)
