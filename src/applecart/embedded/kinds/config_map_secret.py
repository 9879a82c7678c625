"""ConfigMaps and Secrets. Values of a Secret never appear in an error: only keys do, which are names."""

import base64
import binascii
from collections.abc import Container, Mapping

import msgspec

from applecart.api.core import SERVICE_ACCOUNT_TOKEN
from applecart.embedded.field_errors import FieldError, forbidden, invalid, required
from applecart.embedded.kinds.metadata import IMMUTABLE
from applecart.embedded.kinds.names import config_key_problems, size_bytes
from applecart.embedded.kinds.strategy import Document, Strategy

DATA_MAX_BYTES = 1024 * 1024
ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
FROZEN_SAID = "field is immutable when `immutable` is set"
# Secret types whose value must be a JSON object, by the key that holds it.
_JSON_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


class SecretStrategy(Strategy):
    def default(self, obj: Document) -> None:
        if texts := obj.pop("stringData", None):
            data = obj["data"] = dict(obj.get("data") or {})
            for key, text in texts.items():
                data[key] = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
        if not obj.get("type"):
            obj["type"] = "Opaque"

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        data: dict[str, str | None] = obj.get("data") or {}
        _check_keys(data, "data", errors)
        if sum(map(decoded_size_bytes, data.values())) > DATA_MAX_BYTES:
            errors.append(FieldError("TooLong", "data", f"may not be more than {DATA_MAX_BYTES} bytes"))
        return errors + _type_errors(obj, data)

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        if obj.get("type") != old.get("type"):
            errors.append(invalid("type", obj.get("type"), IMMUTABLE))
        return errors + _frozen_errors(obj, old, "data")

    def fields(self, obj: Document) -> dict[str, str]:
        return {"type": obj.get("type") or ""}


def _check_keys(data: Mapping[str, str | None], member: str, errors: list[FieldError], taken: Container[str] = ()) -> None:
    for key in data:
        errors += [invalid(f"{member}[{key}]", key, problem) for problem in config_key_problems(key)]
        if key in taken:
            errors.append(invalid(f"{member}[{key}]", key, "duplicate of key present in binaryData"))


def _frozen_errors(obj: Document, old: Document, *members: str) -> list[FieldError]:
    """What may not change once an object is immutable."""
    if not old.get("immutable"):
        return []
    errors = [] if obj.get("immutable") else [forbidden("immutable", FROZEN_SAID)]
    changed = [member for member in members if (obj.get(member) or {}) != (old.get(member) or {})]
    return errors + [forbidden(member, FROZEN_SAID) for member in changed]


def decoded_size_bytes(value: str | None) -> int:
    """What base64 text becomes."""
    if not value:
        return 0
    return len(value) * 3 // 4 - value.endswith("=") - value.endswith("==")


def _type_errors(obj: Document, data: dict[str, str | None]) -> list[FieldError]:
    """What a Secret of its type must hold."""
    kind = obj["type"]
    if kind == SERVICE_ACCOUNT_TOKEN and not (obj["metadata"].get("annotations") or {}).get(ACCOUNT_ANNOTATION):
        return [required(f"metadata.annotations[{ACCOUNT_ANNOTATION}]")]
    if kind == "kubernetes.io/basic-auth" and "username" not in data and "password" not in data:
        return [required("data[username]"), required("data[password]")]
    if kind == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
        return [required("data[ssh-privatekey]")]
    if kind == "kubernetes.io/tls":
        return [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    if (key := _JSON_KEYS.get(kind)) is None:
        return []
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        msgspec.json.decode(base64.b64decode(data[key] or ""), type=dict)
    except (msgspec.DecodeError, msgspec.ValidationError, binascii.Error, UnicodeDecodeError, RecursionError):
        # A real server adds the parser's words; ours would be others, and could quote the value.
        return [invalid(f"data[{key}]", "<secret contents redacted>", "not a JSON object")]
    return []


class ConfigMapStrategy(Strategy):
    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        _check_keys(data, "data", errors, taken=binary)
        _check_keys(binary, "binaryData", errors)
        total_bytes = sum(size_bytes(text or "") for text in data.values()) + sum(map(decoded_size_bytes, binary.values()))
        if total_bytes > DATA_MAX_BYTES:
            errors.append(FieldError("TooLong", "[]", f"may not be more than {DATA_MAX_BYTES} bytes"))
        return errors

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        return _frozen_errors(obj, old, "data", "binaryData")
