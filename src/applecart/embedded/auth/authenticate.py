"""Who sends a request: client certificate, then bearer token, then nobody.

A token that is not good is 401 everywhere, also where nobody in particular would be let in: a client with a broken credential
must learn it. The token itself never appears in an answer, an error or a log.
"""

from applecart.embedded.auth.bootstrap_tokens import BootstrapTokens
from applecart.embedded.auth.certificates import ClientCertificates
from applecart.embedded.auth.service_account_tokens import ServiceAccountTokens, Verified
from applecart.embedded.auth.token_keys import BadToken, NotOurs
from applecart.embedded.auth.user import ANONYMOUS, User
from applecart.embedded.refusals import unauthorized

INVALID = "invalid bearer token"


class BearerTokens:
    """All kinds of bearer tokens."""

    def __init__(self, accounts: ServiceAccountTokens, bootstrap: BootstrapTokens) -> None:
        self._accounts = accounts
        self._bootstrap = bootstrap

    def verify(self, token: str, audiences: tuple[str, ...] | None = None) -> Verified:
        """Whose token it is; raises BadToken with what a TokenReview shows."""
        try:
            return self._accounts.verify(token, audiences)
        except NotOurs:
            user = self._bootstrap.user(token)
        except BadToken as error:
            raise BadToken(f"[{INVALID}, {error}]") from None
        # A bootstrap token is for this server alone.
        granted = tuple(one for one in audiences or self._accounts.audiences if one in self._accounts.audiences)
        if user is None or not granted:
            raise BadToken(INVALID)
        return Verified(user, granted)


class Authenticator:
    def __init__(self, certificates: ClientCertificates, tokens: BearerTokens) -> None:
        self._certificates = certificates
        self._tokens = tokens

    def user(self, certificate_der: bytes | None, authorization: str | None) -> User:
        """Who sends a request with this verified certificate and Authorization header; raises 401."""
        if certificate_der:
            user = self._certificates.user(certificate_der)
            if user is not None:
                return user
        token = bearer_token(authorization)
        if token:
            try:
                return self._tokens.verify(token).user
            except BadToken:
                raise unauthorized() from None
        if certificate_der:
            raise unauthorized()  # it showed an identity, and that one is no good
        return ANONYMOUS


def bearer_token(authorization: str | None) -> str:
    """The token of an Authorization header; "" when the header is of another kind."""
    scheme, _, rest = (authorization or "").strip().partition(" ")
    return rest.split(" ", 1)[0] if scheme.lower() == "bearer" else ""
