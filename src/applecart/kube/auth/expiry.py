"""When a credential ends, read from the credential itself.

A service-account token is a JWT and says when it expires; so does a certificate. This only helps people ("it expired 2 h
ago"): nothing is verified here and nothing is decided by it. The API server has the last word.
"""

import base64
import binascii
from datetime import UTC, datetime

import msgspec

from applecart.kube.auth.credentials import ClientCertificate, Credential
from applecart.secrets import Secret


class _Claims(msgspec.Struct):
    exp: float | None = None


def expires_at(credential: Credential) -> datetime | None:
    """The earliest end of any part, as far as the parts tell."""
    ends = [credential.expires_at]
    if credential.token is not None:
        ends.append(token_expires_at(credential.token))
    if credential.certificate is not None:
        ends.append(certificate_expires_at(credential.certificate))
    return min((end for end in ends if end is not None), default=None)


def token_expires_at(token: Secret) -> datetime | None:
    """The `exp` claim of a JWT; None for tokens that say nothing."""
    parts = token.reveal().split(".")
    if len(parts) != 3:
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims)
        return None if claims.exp is None else datetime.fromtimestamp(claims.exp, UTC)
    except (msgspec.MsgspecError, binascii.Error, ValueError, OverflowError, OSError):
        return None


def certificate_expires_at(certificate: ClientCertificate) -> datetime | None:
    """The end of the first certificate of the chain, the one that names us."""
    from cryptography import x509  # 40 ms to import, and only people who ask need it

    try:
        return x509.load_pem_x509_certificate(certificate.chain_pem.encode()).not_valid_after_utc
    except ValueError:
        return None


def spoken_age(at: datetime, now: datetime) -> str:
    """`in 3 h` or `2 d ago`."""
    seconds = abs((at - now).total_seconds())
    for unit, unit_s in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * unit_s:
            amount = f"{int(seconds // unit_s)} {unit}"
            break
    else:
        amount = f"{int(seconds)} s"
    return f"in {amount}" if at >= now else f"{amount} ago"
