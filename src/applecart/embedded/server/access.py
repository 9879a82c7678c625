"""What the handlers ask about who may do what.

Authorization comes before anything of the body is read; admission looks at the object that would be stored. Both refuse by
raising; neither changes anything.
"""

from typing import Protocol

from applecart.embedded.attributes import Attributes
from applecart.embedded.auth.user import User
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document


class Access(Protocol):
    def authorize(self, user: User, attributes: Attributes) -> None:
        """Raise a Refusal unless the user may send such a request."""

    def admit(
        self, user: User, verb: str, kind: Kind, subresource: str, document: Document | None, old: Document | None
    ) -> None:
        """Raise a Refusal unless the user may write this object so."""
