"""The key pair that signs service-account tokens, and what the world may know of it.

Only ES256: one algorithm that is fixed here and never taken from a token, so neither `none` nor a symmetric algorithm keyed
with the public half can pass. The private half stays inside; nothing here shows a token or a key.
"""

import base64
from hashlib import sha256
from typing import Any

import jwt
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from applecart.embedded.trust.pki import PairFiles
from applecart.errors import BadInput
from applecart.secrets import Secret

ALGORITHM = "ES256"
MOST_TOKEN_CHARS = 16_384  # a token has about 1,000; parsing stops here before anybody is known
JWKS_PATH = "/openid/v1/jwks"
CONFIGURATION_PATH = "/.well-known/openid-configuration"


class BadToken(Exception):
    """A token that authenticates nobody. The text is for the one who reviews it and holds no part of the token."""


class NotOurs(BadToken):
    """No token of a service account: it may be one of another kind."""


class TokenKeys:
    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        if not isinstance(key.curve, ec.SECP256R1):
            raise BadInput("service-account tokens are signed with an EC P-256 key; this one is on another curve")
        self._key = key
        self._public = key.public_key()
        self.key_id = _base64url(sha256(self._public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest())
        self._jws = jwt.PyJWS(algorithms=[ALGORITHM])

    @classmethod
    def load(cls, files: PairFiles) -> "TokenKeys":
        """The pair that `load_or_create_token_keys` keeps."""
        try:
            return cls.from_pem(Secret(files.key.read_text("ascii")))
        except (OSError, UnicodeDecodeError):
            raise BadInput(f"{files.key} cannot be read: restore it, or remove it and {files.certificate}") from None

    @classmethod
    def from_pem(cls, key_pem: Secret) -> "TokenKeys":
        try:
            key = load_pem_private_key(key_pem.reveal().encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise BadInput("the key that signs service-account tokens is not a private key in PEM") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise BadInput("service-account tokens are signed with an EC P-256 key; this one is of another kind")
        return cls(key)

    def sign(self, claims: dict[str, Any]) -> str:
        payload = msgspec.json.encode(claims)
        return self._jws.encode(payload, self._key, algorithm=ALGORITHM, headers={"kid": self.key_id, "typ": None})

    def verified(self, token: str) -> bytes:
        """The payload of a token that this key signed; raises BadToken for every other text."""
        if len(token) > MOST_TOKEN_CHARS or not token.isascii():
            raise NotOurs("token is malformed")
        try:
            decoded = self._jws.decode_complete(token, self._public, algorithms=[ALGORITHM])
        except jwt.InvalidSignatureError:
            raise BadToken("the token is not signed by this server") from None
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise NotOurs("token is malformed") from None
        if decoded["header"].get("kid", self.key_id) != self.key_id:
            raise BadToken("invalid signature, no keys found")
        payload: bytes = decoded["payload"]
        return payload

    def jwks(self) -> dict[str, Any]:
        """The public half, for those who check tokens themselves."""
        numbers = self._public.public_numbers()
        x, y = (_base64url(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"keys": [{"use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": ALGORITHM, "x": x, "y": y}]}


def openid_configuration(issuer: str, server_url: str) -> dict[str, Any]:
    return {
        "issuer": issuer,
        "jwks_uri": f"{server_url}{JWKS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")
