"""The Secrets and ConfigMaps that one Pod's environment refers to.

Each is read once per resolution, so that all variables of a Pod come from one revision of it. What must be there and is not is
a `MissingConfig`, which names the object and the key and never shows a value (I9). It may pass: somebody may be about to
create the object (I12).
"""

from dataclasses import dataclass, field

from applecart.api.containers import EnvReference, KeySelector
from applecart.api.core import ConfigMap, Secret
from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.errors import BadInput, ControlPlaneFault
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kubelet.guest.expansion import Value


class MissingConfig(ControlPlaneFault):
    """Something the Pod refers to is not there (yet), or not usable as it is."""


@dataclass(frozen=True, slots=True)
class Source:
    """One Secret or ConfigMap as texts by key."""

    title: str  # `Secret ci/tokens`
    texts: dict[str, Value]
    not_text: frozenset[str] = frozenset()  # keys whose content no variable can hold


@dataclass(slots=True)
class ConfigSources:
    client: Client
    pod: Pod
    _read: dict[tuple[type[Secret] | type[ConfigMap], str], Source | None] = field(default_factory=dict)

    async def whole(self, kind: type[Secret] | type[ConfigMap], ref: EnvReference) -> Source | None:
        """None when it is not there and does not have to be."""
        return await self._source(kind, ref.name, is_optional=bool(ref.optional))

    async def one(self, kind: type[Secret] | type[ConfigMap], ref: KeySelector) -> Value | None:
        """The value of one key; None when it is not there and does not have to be."""
        source = await self._source(kind, ref.name, is_optional=bool(ref.optional))
        if source is None or ref.key in source.texts:
            return source.texts[ref.key] if source else None
        if ref.key in source.not_text:
            raise MissingConfig(
                f"Pod {self.pod.key} needs key {ref.key!r} of {source.title} as text, and it holds none; "
                "write it again as base64 of UTF-8 text"
            )
        if ref.optional:
            return None
        raise MissingConfig(f"Pod {self.pod.key} needs key {ref.key!r} of {source.title}, which has no such key; add it")

    async def _source(self, kind: type[Secret] | type[ConfigMap], name: str, *, is_optional: bool) -> Source | None:
        if (kind, name) not in self._read:
            self._read[kind, name] = await self._fetch(kind, Key(self.pod.namespace, name))
        source = self._read[kind, name]
        if source is None and not is_optional:
            raise MissingConfig(
                f"Pod {self.pod.key} needs {kind.resource.kind} {self.pod.namespace}/{name}, which does not exist; create it"
            )
        return source

    async def _fetch(self, kind: type[Secret] | type[ConfigMap], key: Key) -> Source | None:
        try:
            found = await self.client.get(kind, key)
        except NotFound:
            return None
        return _of_secret(found) if isinstance(found, Secret) else _of_config_map(found)


def _of_secret(secret: Secret) -> Source:
    texts: dict[str, Value] = {}
    not_text = set()
    for key in secret.data:
        try:
            value = secret.value(key)
        except BadInput:
            not_text.add(key)
        else:
            if value is not None:
                texts[key] = value
    return Source(f"Secret {secret.key}", texts, frozenset(not_text))


def _of_config_map(config_map: ConfigMap) -> Source:
    return Source(f"ConfigMap {config_map.key}", dict(config_map.data), frozenset(config_map.binary_data))
