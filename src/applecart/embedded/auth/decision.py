"""What an authorizer answers: yes or no, and why."""

import msgspec

from applecart.api.meta import Resource
from applecart.embedded.attributes import Attributes
from applecart.embedded.auth.untyped import go_quoted
from applecart.embedded.auth.user import User
from applecart.embedded.refusals import Refusal, details_of


class Decision(msgspec.Struct, frozen=True):
    """Whether a request may go on. The reason of a denial is shown to the caller after the sentence of `denial`."""

    allowed: bool
    reason: str = ""


ALLOWED = Decision(True)
NO_OPINION = Decision(False)


def denial(user: User, attributes: Attributes, reason: str) -> Refusal:
    """The 403 of a request that nobody allowed."""
    sentence = _sentence(user, attributes)
    for sign, harmless in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):  # a browser must not read a name as markup
        sentence = sentence.replace(sign, harmless)
    if reason:
        sentence = f"{sentence}: {reason}"
    if not attributes.is_resource:
        return Refusal(403, "Forbidden", f"forbidden: {sentence}", {})
    resource = Resource(attributes.group, attributes.version, "", attributes.resource)
    about = f"{resource.label} {go_quoted(attributes.name)}" if attributes.name else resource.label
    return Refusal(403, "Forbidden", f"{about} is forbidden: {sentence}", details_of(resource, attributes.name))


def _sentence(user: User, attributes: Attributes) -> str:
    start = f"User {go_quoted(user.name)} cannot {attributes.verb}"
    if not attributes.is_resource:
        return f"{start} path {go_quoted(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    scope = f"in the namespace {go_quoted(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"{start} resource {go_quoted(resource)} in API group {go_quoted(attributes.group)} {scope}"
