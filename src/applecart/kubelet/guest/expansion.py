"""`$(NAME)` in the value of a variable, replaced as Kubernetes does it.

`$(NAME)` becomes the value of a variable that was set before; of an unknown one it stays as it is. `$$` is a plain `$`, so
`$$(NAME)` is never replaced. What begins with `$` and is neither stays as it is, the character after it included. A value
that took in a secret is a secret itself.
"""

import re
from collections.abc import Mapping

from applecart.secrets import Secret

Value = str | Secret

_REFERENCE = re.compile(r"\$(?:\((?P<name>[^)]*)\)|(?P<escaped>\$)|.)", re.DOTALL)
_NO_REFERENCE = re.compile(r"\$(?P<plain>\$)")


def plain(value: Value) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def expanded(text: str, known: Mapping[str, Value]) -> Value:
    """The text with its references replaced; those to unknown names stay."""
    took_in_secret = False

    def replaced(found: re.Match[str]) -> str:
        nonlocal took_in_secret
        if found["escaped"]:
            return "$"
        name = found["name"]
        if name is None or name not in known:
            return found[0]
        value = known[name]
        took_in_secret = took_in_secret or isinstance(value, Secret)
        return plain(value)

    # After the last `)` nothing is a reference. Looking for its end from every `$(` again would take a long text minutes.
    end = text.rfind(")") + 1
    result = _REFERENCE.sub(replaced, text[:end]) + _NO_REFERENCE.sub(lambda found: found["plain"], text[end:])
    return Secret(result) if took_in_secret else result
