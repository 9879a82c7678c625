"""CustomResourceDefinitions: what is filled in, what is refused, which names are accepted, and what their status says.

The texts and paths are the real server's, which reports what all versions share as if it stood above them. Conversion by
webhook is refused: this server calls nobody. Names belong to whoever had them first in a group. A definition is established in
the write that creates it, when all its names are accepted, and stays so when it later asks for a name that is taken.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from applecart.api.finalizers import CUSTOM_RESOURCE_CLEANUP
from applecart.api.meta import stamp
from applecart.embedded.field_errors import FieldError, forbidden, invalid, not_supported, required
from applecart.embedded.kinds.conditions import is_true, with_condition
from applecart.embedded.kinds.names import label_1035_problems, subdomain_problems
from applecart.embedded.kinds.strategy import Document, Strategy, keep
from applecart.embedded.refusals import bad_request
from applecart.embedded.schema.budget import OF_A_DEFINITION, OverBudget, budget
from applecart.embedded.schema.compiled import TOO_DEEP
from applecart.embedded.schema.custom_kind import compiled_schemas
from applecart.embedded.schema.extensions import MIXED_CASE
from applecart.embedded.schema.versions import shared_parts, version_errors
from applecart.embedded.tables.json_path import MAX_LENGTH


class TakenNames(msgspec.Struct, frozen=True):
    """What other kinds of a group are called."""

    resources: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    is_builtin: bool = False  # the server has the group for itself: none of its names are to be had


BUILT_IN = TakenNames(is_builtin=True)


def names_of(crd: Document) -> Document:
    """What is kept of each definition for the others: a whole one may be large, and all are asked."""
    status = crd.get("status") or {}
    told = [one for one in status.get("conditions") or () if one.get("type") == "NamesAccepted"]
    status = {"acceptedNames": status.get("acceptedNames"), "conditions": told}
    return {"metadata": {"name": crd["metadata"].get("name")}, "spec": {"group": crd["spec"].get("group")}, "status": status}


def taken_names(others: Iterable[Document], group: str, but: str) -> TakenNames:
    """The accepted names of all definitions of a group except one."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for crd in others:
        if crd["spec"].get("group") == group and crd["metadata"].get("name") != but:
            names = (crd.get("status") or {}).get("acceptedNames") or {}
            resources.update((names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ())))
            kinds.update((names.get("kind") or "", names.get("listKind") or ""))
    return TakenNames(frozenset(resources - {""}), frozenset(kinds - {""}))


def status_with_names(crd: Document, taken: TakenNames, now: datetime) -> Document:
    """The status after asking for the names of the spec."""
    status = dict(crd.get("status") or {})
    wanted, accepted = crd["spec"].get("names") or {}, dict(status.get("acceptedNames") or {})
    reason, message = "NoConflicts", "no conflicts found"
    is_accepted = True
    for name, used, conflict in (
        ("plural", taken.resources, "PluralConflict"),
        ("singular", taken.resources, "SingularConflict"),
        ("shortNames", taken.resources, "ShortNamesConflict"),
        ("kind", taken.kinds, "KindConflict"),
        ("listKind", taken.kinds, "ListKindConflict"),
    ):
        asked = wanted.get(name)
        if refused := _refused(asked, accepted.get(name), used):
            is_accepted, reason, message = False, conflict, refused
        elif asked:
            accepted[name] = asked
        else:
            accepted.pop(name, None)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    else:
        accepted.pop("categories", None)
    if taken.is_builtin:
        is_accepted, reason, accepted = False, "BuiltInGroup", {}
        message = f'the group "{crd["spec"].get("group")}" is built into this server, which serves nothing else in it'
    conditions = list(status.get("conditions") or [])
    conditions = _with(conditions, "NamesAccepted", is_accepted, reason, message, now)
    if is_accepted:
        conditions = _with(conditions, "Established", True, "InitialNamesAccepted", "the initial names have been accepted", now)
    elif taken.is_builtin or not is_established({"status": {"conditions": conditions}}):
        conditions = _with(conditions, "Established", False, "NotAccepted", "not all names are accepted", now)
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    named = {name: accepted[name] for name in order if name in accepted}
    return {**status, "conditions": conditions, "acceptedNames": {"plural": "", "kind": "", **named}}


def is_established(crd: Document) -> bool:
    """Whether objects of the kind may be written."""
    return is_true(crd, "Established")


def stored_versions(crd: Document) -> list[str]:
    """Every version in which objects may be stored: the ones there were, and the one that is written now."""
    stored = list((crd.get("status") or {}).get("storedVersions") or ())
    for version in crd["spec"].get("versions") or ():
        if version.get("storage"):
            if version.get("name") not in stored:
                stored.append(version.get("name") or "")
            break
    return stored


def _refused(asked: Any, accepted: Any, used: frozenset[str]) -> str:
    """Why a name is not given; "" when it is."""
    if asked == accepted or not asked:
        return ""
    if isinstance(asked, str):
        return f'"{asked}" is already in use' if asked in used else ""
    conflicts = [f'"{name}" is already in use' for name in asked if name in used and name not in (accepted or ())]
    return conflicts[0] if len(conflicts) == 1 else f"[{', '.join(conflicts)}]" if conflicts else ""


def _with(conditions: list[Document], kind: str, is_true: bool, reason: str, message: str, now: datetime) -> list[Document]:
    status = "True" if is_true else "False"
    return with_condition(conditions, {"type": kind, "status": status, "reason": reason, "message": message}, now)


def begin_leaving(definition: Document, now: datetime) -> None:
    """What the first DELETE adds: a hold until the objects are gone, and a word on what happens."""
    metadata = definition["metadata"]
    metadata["deletionTimestamp"] = stamp(now)
    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, FINALIZER]
    say_leaving(definition, *PENDING, now)


def say_leaving(definition: Document, reason: str, message: str, now: datetime) -> None:
    """How far the removal of a definition's objects has come."""
    status = definition.setdefault("status", {})
    status["conditions"] = _with(status.get("conditions") or [], "Terminating", True, reason, message, now)


MOST_OF_A_DEFINITION = 100  # versions, columns of one, short names, categories; real definitions have up to ten
APPROVAL = "api-approved.kubernetes.io"
PENDING = (
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)
IN_PROGRESS = ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
FINALIZER = CUSTOM_RESOURCE_CLEANUP  # holds a deleted definition until its objects are gone
TOO_COSTLY = "the patterns and rules of all schemas together take too many steps to compile: make them fewer or simpler"
_NO_WEBHOOK = "conversion webhooks are not supported by this server; use None, which serves all versions with the same fields"


class CrdStrategy(Strategy):
    """How definitions behave. `taken` gives the names of other kinds of a group, `now` the time of the write.

    The groups of the server itself are no place for definitions: one that took a built-in kind's place would decide what its
    objects say. The real server stores such a definition and never serves it."""

    has_status = True
    status_takes_metadata = True
    names_finalizers_freely = True
    counts_generations = True
    updates_unconditionally = False

    def __init__(
        self,
        taken: Callable[[Document], TakenNames],
        now: Callable[[], datetime],
        is_builtin_group: Callable[[str], bool] = lambda group: False,
    ) -> None:
        self._taken = taken
        self._is_builtin_group = is_builtin_group
        self._now = now

    def default(self, obj: Document) -> None:
        default_definition(obj)

    def prepare_create(self, obj: Document) -> None:
        obj.pop("status", None)
        self._establish(obj)

    def prepare_update(self, obj: Document, old: Document) -> None:
        keep(obj, old, "status")
        self._establish(obj)

    def prepare_status(self, obj: Document, old: Document) -> None:
        super().prepare_status(obj, old)
        if not (obj.get("status") or {}).get("conditions"):  # whoever clears it is told again
            self._establish(obj)

    def validate_with(self, found: list[FieldError], obj: Document, old: Document | None) -> list[FieldError]:
        found = super().validate_with(found, obj, old)
        group = obj["spec"].get("group") or ""
        if old is None and self._is_builtin_group(group):  # an old one may still lose its finalizers
            found.append(invalid("spec.group", group, "is built into this server; its kinds cannot be replaced or added to"))
        return found

    def validate(self, obj: Document) -> list[FieldError]:
        try:
            with budget(OF_A_DEFINITION):
                found = definition_errors(obj)
            if not found:
                compiled_schemas(obj)
            return found
        except OverBudget:
            return [invalid("spec.versions", None, TOO_COSTLY)]
        except RecursionError:
            raise bad_request(TOO_DEEP) from None

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        new, before = obj["spec"], old["spec"]
        fixed: list[tuple[str, Any, Any]] = []
        if is_established(old):
            fixed.append(("spec.scope", new.get("scope"), before.get("scope")))
            fixed.append(("spec.names.kind", new["names"].get("kind"), before["names"].get("kind")))
        fixed.append(("spec.group", new.get("group"), before.get("group")))
        fixed.append(("spec.names.plural", new["names"].get("plural"), before["names"].get("plural")))
        return [invalid(path, value, "field is immutable") for path, value, was in fixed if value != was]

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        names = (obj.get("status") or {}).get("acceptedNames") or {}
        return list(_too_many_names(names, "status.acceptedNames")) or list(name_errors(names, "status.acceptedNames"))

    def _establish(self, obj: Document) -> None:
        obj["status"] = {**(obj.get("status") or {}), "storedVersions": stored_versions(obj)}
        obj["status"] = status_with_names(obj, self._taken(obj), self._now())


def default_definition(crd: Document) -> None:
    """What the real server stores when the author left it out."""
    spec: Document = crd.get("spec") or {}
    names: Document = spec.get("names") or {}
    crd["spec"], spec["names"] = spec, names
    kind = names.get("kind") or ""
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if kind and not names.get("listKind"):
        names["listKind"] = f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}


def definition_errors(crd: Document) -> list[FieldError]:
    """What is wrong with a definition whose types were checked and defaults filled in."""
    spec: Document = crd["spec"]
    if found := list(_limit_errors(spec)):
        return found
    name, names = (crd.get("metadata") or {}).get("name") or "", spec["names"]
    if name != f"{names.get('plural') or ''}.{spec.get('group') or ''}":
        found.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    found += _spec_errors(spec)
    found += _stored_version_errors(crd)
    found += _approval_errors(crd)
    if spec.get("preserveUnknownFields"):
        reason = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(invalid("spec.preserveUnknownFields", True, reason))
    return found


def _limit_errors(spec: Document) -> Iterator[FieldError]:
    """The real server has no such limit; but each is one more of everything that is served, for everybody."""
    names, versions = spec["names"], spec.get("versions") or ()
    yield from _too_many("spec.versions", versions)
    for index, version in enumerate(versions[:MOST_OF_A_DEFINITION]):
        yield from _too_many(f"spec.versions[{index}].additionalPrinterColumns", version.get("additionalPrinterColumns") or ())
    columns = (column for version in versions for column in version.get("additionalPrinterColumns") or ())
    if sum(len(column.get("jsonPath") or "") for column in columns) > MAX_LENGTH:
        reason = f"the paths of all columns together may have {MAX_LENGTH} characters"
        yield FieldError("Invalid", "spec.versions", reason, shows_value=False)
    yield from _too_many_names(names, "spec.names")


def _too_many_names(names: Document, path: str) -> Iterator[FieldError]:
    for member in ("shortNames", "categories"):
        yield from _too_many(f"{path}.{member}", names.get(member) or ())


def _too_many(path: str, items: Sequence[Any]) -> Iterator[FieldError]:
    if len(items) > MOST_OF_A_DEFINITION:
        yield FieldError("TooMany", path, f"must have at most {MOST_OF_A_DEFINITION} items", len(items))


def _spec_errors(spec: Document) -> Iterator[FieldError]:
    group, scope = spec.get("group") or "", spec.get("scope") or ""
    if not group:
        yield required("spec.group")
    elif problems := subdomain_problems(group):
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    versions: list[Document] = spec.get("versions") or []
    for index, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    yield from _version_list_errors(versions)
    names = spec["names"]
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(f"spec.names.{name}")
    yield from name_errors(names, "spec.names")
    shared = shared_parts(versions)
    if versions:
        yield from version_errors(versions[0], "spec", shared, is_shared=True)
    yield from _conversion_errors(spec.get("conversion") or {})


def _version_list_errors(versions: list[Document]) -> Iterator[FieldError]:
    shared = shared_parts(versions)
    for index, version in enumerate(versions):
        path, name = f"spec.versions[{index}]", version.get("name") or ""
        if problems := label_1035_problems(name):
            yield invalid(f"{path}.name", name, ",".join(problems))
        yield from version_errors(version, path, shared, is_shared=False)
    all_names = [version.get("name") for version in versions]
    if len(set(all_names)) < len(all_names):
        yield invalid("spec.versions", _as_shown(versions, shared), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid("spec.versions", _as_shown(versions, shared), "must have exactly one version marked as storage version")
    first = versions[0].get("name") or "" if versions else ""
    if first and (problems := label_1035_problems(first)):
        yield invalid("spec.version", first, ",".join(problems))


def _as_shown(versions: list[Document], shared: frozenset[str]) -> list[Document]:
    """Versions as the real server prints them: by the names of its own struct, without what they share."""

    def own(version: Document, part: str) -> Any:
        return None if part in shared else version.get(part)

    return [
        {
            "Name": version.get("name") or "",
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            "Schema": own(version, "schema"),
            "Subresources": own(version, "subresources"),
            "AdditionalPrinterColumns": own(version, "additionalPrinterColumns"),
            "SelectableFields": own(version, "selectableFields"),
        }
        for version in versions
    ]


def name_errors(names: Document, path: str) -> Iterator[FieldError]:
    for member in ("plural", "singular"):
        if (name := names.get(member)) and (problems := label_1035_problems(name)):
            yield invalid(f"{path}.{member}", name, ",".join(problems))
    for member in ("kind", "listKind"):
        if (name := names.get(member)) and (problems := label_1035_problems(name.lower())):
            yield invalid(f"{path}.{member}", name, MIXED_CASE + ",".join(problems))
    for index, name in enumerate(names.get("shortNames") or ()):
        if problems := label_1035_problems(name):
            yield invalid(f"{path}.shortNames[{index}]", name, ",".join(problems))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    for index, name in enumerate(names.get("categories") or ()):
        if problems := label_1035_problems(name):
            yield invalid(f"{path}.categories[{index}]", name, ",".join(problems))


def _conversion_errors(conversion: Document) -> Iterator[FieldError]:
    strategy = conversion.get("strategy") or ""
    if not strategy:
        yield required("spec.conversion.strategy")
    elif strategy == "Webhook":
        yield invalid("spec.conversion.strategy", strategy, _NO_WEBHOOK)
    elif strategy != "None":
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    if strategy != "Webhook":
        for member, name in (("clientConfig", "webhookClientConfig"), ("conversionReviewVersions", "conversionReviewVersions")):
            if webhook.get(member):
                yield forbidden(f"spec.conversion.{name}", "should not be set when strategy is not set to Webhook")


def _stored_version_errors(crd: Document) -> Iterator[FieldError]:
    stored = (crd.get("status") or {}).get("storedVersions") or []
    names = [version.get("name") for version in crd["spec"].get("versions") or ()]
    if not stored:
        yield invalid("status.storedVersions", None, "must have at least one stored version")
        return
    for version in crd["spec"].get("versions") or ():
        if version.get("storage") and version.get("name") not in stored:
            yield invalid("status.storedVersions", stored, f"must have the storage version {version.get('name')}")
    for index, name in enumerate(stored):
        if name not in names:
            reason = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until "
                f"a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            )
            yield invalid(f"status.storedVersions[{index}]", name, reason)


def _approval_errors(crd: Document) -> Iterator[FieldError]:
    group = crd["spec"].get("group") or ""
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return
    approved = ((crd.get("metadata") or {}).get("annotations") or {}).get(APPROVAL) or ""
    path = f"metadata.annotations[{APPROVAL}]"
    if not approved:
        reason = f'protected groups must have approval annotation "{APPROVAL}", see https://github.com/kubernetes/enhancements/pull/1111'
        yield required(path, reason)
    elif not approved.startswith("unapproved") and "://" not in approved:
        reason = (
            f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason starting with '
            '"unapproved", see https://github.com/kubernetes/enhancements/pull/1111'
        )
        yield invalid(path, approved, reason)
