"""What an image reference says about pulling: a tag that moves must be pulled every time.

Follows the grammar of image references, because a real server treats a text it cannot read as one without a moving tag.
"""

import re
from functools import lru_cache

CACHED_REFERENCES = 1024  # a fleet runs a handful of images

_WORD = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"(?:{_HOST}(?:\.{_HOST})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_TAG = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_reference = re.compile(rf"(?:{_DOMAIN}/)?{_WORD}(?:/{_WORD})*(?::({_TAG}))?(?:@({_DIGEST}))?").fullmatch


@lru_cache(CACHED_REFERENCES)
def pull_policy_of(image: str) -> str:
    """`Always` for the tag `latest`, said or meant."""
    found = _reference(image)
    if found is None:
        return "IfNotPresent"
    tag, digest = found[1], found[2]
    return "Always" if tag == "latest" or (not tag and not digest) else "IfNotPresent"
