"""What runs in a Pod: containers with their environment, resources, probes, ports, mounts and security settings.

Only fields that a component of ours reads or writes. A field whose default in the API is not the zero value is None here, so
that "unset" and an explicit 0 or false stay different on the way out.
"""

from datetime import datetime

from msgspec import field

from applecart.api.meta import Part

IntOrString = int | str  # a port number or its name, a count or a percentage


class KeySelector(Part):
    """One key of a Secret or ConfigMap."""

    key: str
    name: str = ""
    optional: bool | None = None


class FieldSelector(Part):
    field_path: str
    api_version: str = ""


class ResourceFieldSelector(Part):
    resource: str
    container_name: str = ""
    divisor: str = ""


class EnvSource(Part):
    secret_key_ref: KeySelector | None = None
    config_map_key_ref: KeySelector | None = None
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None


class EnvVar(Part):
    name: str
    value: str = ""
    value_from: EnvSource | None = None


class EnvReference(Part):
    """A whole Secret or ConfigMap as environment."""

    name: str = ""
    optional: bool | None = None


class EnvFrom(Part):
    prefix: str = ""
    secret_ref: EnvReference | None = None
    config_map_ref: EnvReference | None = None


class Resources(Part):
    """Quantities as the API writes them: `500m`, `14Gi`."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class ContainerPort(Part):
    container_port: int
    name: str = ""
    protocol: str | None = None  # the API's default is TCP
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")


class VolumeMount(Part):
    name: str
    mount_path: str
    read_only: bool = False
    sub_path: str = ""


class ExecAction(Part):
    command: tuple[str, ...] = ()


class HttpHeader(Part):
    name: str
    value: str


class HttpGetAction(Part):
    port: IntOrString
    path: str | None = None  # the API's default is /
    host: str = ""
    scheme: str | None = None  # the API's default is HTTP
    http_headers: tuple[HttpHeader, ...] = ()


class TcpSocketAction(Part):
    port: IntOrString
    host: str = ""


class SleepAction(Part):
    seconds: int


class Probe(Part):
    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int | None = None
    period_seconds: int | None = None
    success_threshold: int | None = None
    failure_threshold: int | None = None
    termination_grace_period_seconds: int | None = None


class LifecycleHandler(Part):
    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Part):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None


class Capabilities(Part):
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SecurityContext(Part):
    """Of one container. Unset falls back to the Pod's, so every field can say "unset"."""

    privileged: bool | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    capabilities: Capabilities | None = None


class Container(Part):
    name: str
    image: str = ""
    image_pull_policy: str | None = None
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFrom, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: Resources | None = None
    volume_mounts: tuple[VolumeMount, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    security_context: SecurityContext | None = None
    restart_policy: str | None = None  # Always on an init container makes it a sidecar
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    stdin: bool = False
    tty: bool = False


class ContainerWaiting(Part):
    reason: str = ""
    message: str = ""


class ContainerRunning(Part):
    started_at: datetime | None = None


class ContainerTerminated(Part):
    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    container_id: str = field(default="", name="containerID")


class ContainerState(Part):
    """At most one of the three is set; none means waiting."""

    waiting: ContainerWaiting | None = None
    running: ContainerRunning | None = None
    terminated: ContainerTerminated | None = None


class ContainerStatus(Part):
    name: str
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    image: str = ""
    image_id: str = field(default="", name="imageID")
    container_id: str = field(default="", name="containerID")
