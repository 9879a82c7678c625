"""How Namespaces behave: they carry their name as a label and go only when their finalizers are gone."""

from collections.abc import Sequence

from applecart.embedded.field_errors import FieldError, invalid
from applecart.embedded.kinds.metadata import STANDARD_FINALIZERS, UNQUALIFIED
from applecart.embedded.kinds.names import label_problems, qualified_name_problems
from applecart.embedded.kinds.strategy import Document, Strategy, keep

FINALIZER = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    has_status = True
    status_takes_metadata = True
    name_problems = staticmethod(label_problems)

    def default(self, obj: Document) -> None:
        meta = obj["metadata"]
        if meta.get("name"):
            if meta.get("labels") is None:
                meta["labels"] = {}
            meta["labels"][NAME_LABEL] = meta["name"]
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Active"

    def prepare_create(self, obj: Document) -> None:
        # A generated name is known only now, and the label repeats it.
        self.default(obj)
        finalizers = obj["spec"].get("finalizers") or []
        if FINALIZER not in finalizers:
            obj["spec"]["finalizers"] = [*finalizers, FINALIZER]
        obj["status"] = {"phase": "Active"}

    def prepare_update(self, obj: Document, old: Document) -> None:
        keep(obj, old, "status")
        keep(obj["spec"], old.get("spec") or {}, "finalizers")

    def prepare_finalize(self, obj: Document, old: Document) -> None:
        """`/finalize`: the finalizers of the spec, and no status."""
        keep(obj, old, "status")

    def validate(self, obj: Document) -> list[FieldError]:
        return _finalizer_errors((obj.get("spec") or {}).get("finalizers") or (), "spec.finalizers")

    def validate_finalize(self, obj: Document, old: Document) -> list[FieldError]:
        errors = []
        for index, finalizer in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
            errors += _finalizer_errors([finalizer], f"spec.finalizers[{index}]")
        return errors

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        phase = (obj.get("status") or {}).get("phase") or ""
        if obj["metadata"].get("deletionTimestamp"):
            wanted, text = "Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"
        else:
            wanted, text = "Active", "may only be 'Active' if `deletionTimestamp` is empty"
        return [] if phase == wanted else [invalid("status.Phase", phase, text)]

    def fields(self, obj: Document) -> dict[str, str]:
        return {"status.phase": (obj.get("status") or {}).get("phase") or ""}


def _finalizer_errors(finalizers: Sequence[str], at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for finalizer in finalizers:
        errors += [invalid(at, finalizer, problem) for problem in qualified_name_problems(finalizer)]
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            errors.append(invalid(at, finalizer, UNQUALIFIED))
    return errors
