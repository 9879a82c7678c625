"""Who somebody is: TokenReview (is this token good?) and TokenRequest (give me one).

Both carry a token in clear text on the wire, so neither shows it in repr (I9); `TokenRequest.token` hands it out as a type
that cannot be printed.
"""

from datetime import datetime
from typing import Any

from applecart import secrets
from applecart.api.meta import Object, Part, Resource

GROUP = "authentication.k8s.io"


class Concealed(Part):
    """A part with a token in it: repr says nothing."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(***)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class TokenReviewSpec(Concealed):
    token: str = ""
    audiences: tuple[str, ...] = ()


class UserInfo(Part):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class TokenReviewStatus(Part):
    authenticated: bool = False
    user: UserInfo | None = None
    audiences: tuple[str, ...] = ()
    error: str = ""


class TokenReview(Object):
    resource = Resource(GROUP, "v1", "TokenReview", "tokenreviews", namespaced=False)

    spec: TokenReviewSpec = TokenReviewSpec()
    status: TokenReviewStatus = TokenReviewStatus()


class BoundObject(Part):
    """The object whose end ends the token."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(Part):
    audiences: tuple[str, ...] = ()
    expiration_seconds: int | None = None
    bound_object_ref: BoundObject | None = None


class TokenRequestStatus(Concealed):
    token: str = ""
    expiration_timestamp: datetime | None = None


class TokenRequest(Object):
    """Posted to a ServiceAccount's `token`."""

    resource = Resource(GROUP, "v1", "TokenRequest", "tokenrequests")

    spec: TokenRequestSpec = TokenRequestSpec()
    status: TokenRequestStatus = TokenRequestStatus()

    @property
    def token(self) -> secrets.Secret:
        return secrets.Secret(self.status.token)
