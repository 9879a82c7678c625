"""Secrets are encrypted where they lie on disk, with a key that lies elsewhere.

AES-256-GCM; the resource, key and revision are authenticated with the value, so a row cannot be moved to another object or
time. A copy of the database without the key file holds no secret.
"""

import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from applecart.api.meta import Key
from applecart.embedded.trust.private_file import write_private
from applecart.errors import BadInput

KEY_BYTES = 32
NONCE_BYTES = 12  # what GCM is defined for
SEALED = b"\x01"  # JSON never begins so
SEALED_LABELS = frozenset({"secrets"})


class Sealer:
    """Seals the values of the resources that are secret; everything else passes as it is."""

    def __init__(self, key: bytes, source: str) -> None:
        self._cipher = AESGCM(key)
        self._source = source

    def seal(self, label: str, key: Key, revision: int, value: bytes) -> bytes:
        if label not in SEALED_LABELS:
            return value
        nonce = os.urandom(NONCE_BYTES)
        return SEALED + nonce + self._cipher.encrypt(nonce, value, _bound_to(label, key, revision))

    def unseal(self, label: str, key: Key, revision: int, stored: bytes) -> bytes:
        if not stored.startswith(SEALED):
            return stored
        nonce, sealed = stored[1 : 1 + NONCE_BYTES], stored[1 + NONCE_BYTES :]
        try:
            return self._cipher.decrypt(nonce, sealed, _bound_to(label, key, revision))
        except InvalidTag:
            raise BadInput(
                f"{label} {key} was sealed with another key than the one in {self._source}, or its row was altered; "
                "put the key file back that belongs to this database"
            ) from None


def load_or_make_key(file: Path) -> Sealer:
    """The sealer of a key file, which is made when there is none."""
    if not file.exists():
        write_private(file, secrets.token_hex(KEY_BYTES).encode())
    try:
        key = bytes.fromhex(file.read_text().strip())
    except (OSError, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise BadInput(f"{file} holds no key of {KEY_BYTES} bytes in hexadecimal; put the right key file back")
    return Sealer(key, str(file))


def _bound_to(label: str, key: Key, revision: int) -> bytes:
    return f"{label}/{key.namespace}/{key.name}/{revision}".encode()
