"""How Leases behave: a holder that finds none creates it by updating, and must name the revision it saw."""

from applecart.embedded.field_errors import FieldError, invalid
from applecart.embedded.kinds.rules import Document, Rules

_CANDIDACY = ("strategy", "preferredHolder")  # of an election by the server, which is off everywhere by default


class LeaseRules(Rules):
    creates_on_update = True
    updates_unconditionally = False

    def default(self, obj: Document) -> None:
        if obj.get("spec") is None:
            obj["spec"] = {}

    def prepare_create(self, obj: Document) -> None:
        _drop_candidacy(obj)

    def prepare_update(self, obj: Document, old: Document) -> None:
        _drop_candidacy(obj)

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        spec = obj["spec"]
        duration_s, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration_s is not None and duration_s <= 0:
            errors.append(invalid("spec.leaseDurationSeconds", duration_s, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            errors.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        return errors


def _drop_candidacy(obj: Document) -> None:
    for name in _CANDIDACY:
        obj["spec"].pop(name, None)
