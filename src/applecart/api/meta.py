"""What every Kubernetes object has: identity, metadata, and where the API serves it.

Structs are frozen: an object in a cache is shared by everybody who reads it. A change is a new struct
(`msgspec.structs.replace`), and it reaches the API as a patch of the difference (`applecart.kube.patch`), never as the whole
decoded object: fields we do not know must survive.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple, dataclass_transform

import msgspec
from msgspec import StructMeta


class Key(NamedTuple):
    """Which object of a kind: namespace ("" for cluster-scoped) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Resource(msgspec.Struct, frozen=True):
    """Where the API serves a kind."""

    group: str  # "" for the core group
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def label(self) -> str:
        """As kubectl names it: `pods`, `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class _PartMeta(StructMeta):
    """Makes every subclass frozen and keyword-only, which msgspec alone does not pass on to type checkers."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True, **options})


class Part(msgspec.Struct, metaclass=_PartMeta, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A struct inside an object. Fields are the API's in snake case; acronyms (`podIP`) say their name explicitly."""


class OwnerReference(Part):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Part):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generate_name: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Object(Part):
    """A Kubernetes object. Subclasses set `resource` and add their `spec`, `status` or data."""

    # The class knows apiVersion and kind; a field would hold them again in every object, and only where the API sends them.
    resource: ClassVar[Resource]

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def revision(self) -> str:
        """The resourceVersion: opaque, compared for equality only."""
        return self.metadata.resource_version

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations

    @property
    def is_being_deleted(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object; there is at most one."""
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)


def document(obj: Object) -> dict[str, Any]:
    """The object as plain JSON values, with the apiVersion and kind that a manifest needs."""
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(obj))
    return {"apiVersion": obj.resource.api_version, "kind": obj.resource.kind, **values}


class Condition(Part):
    """Whether something is true of the object, and why."""

    # No defaults for what the API requires: an empty message that equals its default would not be sent.
    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


class LabelSelectorRequirement(Part):
    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
        return False


class LabelSelector(Part):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether all of it holds; an empty selector selects everything, one with an unknown operator nothing."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            one.holds(labels) for one in self.match_expressions
        )


def micro_time(at: datetime) -> str:
    """An instant for a MicroTime field. The API refuses one without exactly six digits after the second, which is how a
    datetime at a whole second would be encoded; so these fields are strings."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def instant(text: str) -> datetime | None:
    """The instant a MicroTime field holds; None when it is unset."""
    return datetime.fromisoformat(text) if text else None


def stamp(at: datetime) -> str:
    """An instant as most fields have it: UTC, whole seconds."""
    return at.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def read_stamp(text: str) -> datetime:
    """The instant of a timestamp; raises ValueError for text that is none."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return at.astimezone(UTC)
