"""The volumes a Pod can ask for that our components know: secrets, config, scratch space, tokens, host paths.

Other kinds of volume decode to a `Volume` with a name and no source; whoever mounts volumes refuses that one by name.
"""

from msgspec import field

from applecart.api.containers import FieldSelector, ResourceFieldSelector
from applecart.api.meta import Part


class KeyToPath(Part):
    key: str
    path: str
    mode: int | None = None


class SecretVolume(Part):
    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: int | None = None
    optional: bool | None = None


class ConfigMapVolume(Part):
    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: int | None = None
    optional: bool | None = None


class EmptyDirVolume(Part):
    medium: str = ""
    size_limit: str | None = None


class HostPathVolume(Part):
    path: str
    type: str | None = None


class TokenProjection(Part):
    """A bound ServiceAccount token, renewed before it expires."""

    path: str
    audience: str = ""
    expiration_seconds: int | None = None


class ProjectedItems(Part):
    """A Secret or ConfigMap inside a projected volume."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class DownwardFile(Part):
    path: str
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: int | None = None


class DownwardProjection(Part):
    items: tuple[DownwardFile, ...] = ()


class Projection(Part):
    service_account_token: TokenProjection | None = None
    secret: ProjectedItems | None = None
    config_map: ProjectedItems | None = None
    downward_api: DownwardProjection | None = field(default=None, name="downwardAPI")


class ProjectedVolume(Part):
    sources: tuple[Projection, ...] = ()
    default_mode: int | None = None


class DownwardVolume(Part):
    items: tuple[DownwardFile, ...] = ()
    default_mode: int | None = None


class Volume(Part):
    name: str
    secret: SecretVolume | None = None
    config_map: ConfigMapVolume | None = None
    empty_dir: EmptyDirVolume | None = None
    projected: ProjectedVolume | None = None
    host_path: HostPathVolume | None = None
    downward_api: DownwardVolume | None = field(default=None, name="downwardAPI")
