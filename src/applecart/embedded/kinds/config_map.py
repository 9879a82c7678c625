"""How ConfigMaps behave."""

from applecart.embedded.field_errors import FieldError, forbidden, invalid
from applecart.embedded.kinds.names import config_key_problems
from applecart.embedded.kinds.rules import Document, Rules
from applecart.embedded.kinds.secret import DATA_MAX_BYTES, FROZEN_SAID, decoded_size_bytes, text_size_bytes


class ConfigMapRules(Rules):
    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        total_bytes = 0
        for key, value in data.items():
            errors += [invalid(f"data[{key}]", key, problem) for problem in config_key_problems(key)]
            if key in binary:
                errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
            total_bytes += text_size_bytes(value)
        for key, value in binary.items():
            errors += [invalid(f"binaryData[{key}]", key, problem) for problem in config_key_problems(key)]
            total_bytes += decoded_size_bytes(value)
        if total_bytes > DATA_MAX_BYTES:
            errors.append(FieldError("TooLong", "[]", f"may not be more than {DATA_MAX_BYTES} bytes"))
        return errors

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        if not old.get("immutable"):
            return []
        errors = [] if obj.get("immutable") else [forbidden("immutable", FROZEN_SAID)]
        for member in ("data", "binaryData"):
            if (obj.get(member) or {}) != (old.get(member) or {}):
                errors.append(forbidden(member, FROZEN_SAID))
        return errors
