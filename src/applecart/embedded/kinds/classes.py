"""Classes that Pods refer to: how important they are (PriorityClass), what runs them (RuntimeClass)."""

from applecart.embedded.field_errors import FieldError, duplicate, forbidden, invalid
from applecart.embedded.kinds.metadata import IMMUTABLE
from applecart.embedded.kinds.names import label_problems, validate_choice, validate_labels, validate_name
from applecart.embedded.kinds.pod_admission import SYSTEM_CLASSES
from applecart.embedded.kinds.pod_spec import PREEMPTION_POLICIES, validate_tolerations
from applecart.embedded.kinds.resources import validate_requirements
from applecart.embedded.kinds.strategy import Document, Strategy

PRIORITY_MAX = 1_000_000_000
SYSTEM_PREFIX = "system-"


class PriorityClassStrategy(Strategy):
    validates_updates_alone = True

    def default(self, obj: Document) -> None:
        obj.setdefault("value", 0)
        if obj.get("preemptionPolicy") is None:
            obj["preemptionPolicy"] = "PreemptLowerPriority"

    def prepare_create(self, obj: Document) -> None:
        obj["metadata"]["generation"] = 1

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        name, value = obj["metadata"].get("name") or "", obj["value"]
        if name.startswith(SYSTEM_PREFIX):
            if problem := _system_problem(name, value, bool(obj.get("globalDefault"))):
                text = f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
                errors.append(forbidden("metadata.name", text))
        elif value > PRIORITY_MAX:
            text = f"maximum allowed value of a user defined priority is {PRIORITY_MAX}"
            errors.append(forbidden("value", text))
        validate_choice(obj["preemptionPolicy"], "preemptionPolicy", PREEMPTION_POLICIES, errors)
        return errors

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        if obj["value"] != (old.get("value") or 0):
            errors.append(forbidden("value", "may not be changed in an update."))
        if obj["preemptionPolicy"] != old.get("preemptionPolicy"):
            errors.append(invalid("preemptionPolicy", obj["preemptionPolicy"], IMMUTABLE))
        return errors


def _system_problem(name: str, value: int, is_default: bool) -> str:
    known = SYSTEM_CLASSES.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if known != value:
        return f"value of {name} PriorityClass must be {known}"
    if is_default:
        return f"globalDefault of {name} PriorityClass must be false"
    return ""


class RuntimeClassStrategy(Strategy):
    creates_on_update = True
    updates_unconditionally = False
    names_finalizers_freely = True

    def default(self, obj: Document) -> None:
        obj.setdefault("handler", "")

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        validate_name(obj["handler"], "handler", label_problems, errors)
        if obj.get("overhead") is not None:
            validate_requirements({"limits": obj["overhead"].get("podFixed")}, "overhead", errors)
        if (scheduling := obj.get("scheduling")) is not None:
            validate_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector", errors)
            path, tolerations = "scheduling.tolerations", scheduling.get("tolerations") or []
            validate_tolerations(tolerations, errors, path)
            seen = []
            for index, toleration in enumerate(tolerations):
                key = [toleration.get(name) or "" for name in ("key", "operator", "value", "effect")]
                if key in seen:
                    errors.append(duplicate(f"{path}[{index}]", toleration))
                seen.append(key)
        return errors

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        return [] if obj["handler"] == old.get("handler") else [invalid("handler", obj["handler"], IMMUTABLE)]
