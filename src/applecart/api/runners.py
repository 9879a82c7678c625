"""RunnerPool: so many runners of one image, kept warm and rolled in waves.

The wire contract is older than this code: names, types and defaults stay. Where the API has a default the field is None until
the server fills it in, and an explicit 0 stays a 0; a floor of zero once came back as one. The properties answer with the
default for a block that is left out.
"""

from datetime import datetime
from typing import Annotated

from msgspec import field

from applecart.api.labels import DARWIN_VALUE, LINUX_VALUE
from applecart.api.meta import Object, Part, Resource
from applecart.api.schema import Rule, described

GROUP = "tuist.dev"
VERSION = "v1alpha1"

DEFAULT_POD_CPU_MILLI = 8000
DEFAULT_POD_MEMORY_MB = 14336
DEFAULT_MAX_CONCURRENT_PER_FLEET = 4
DEFAULT_START_TIMEOUT_S = 300
DEFAULT_WARM_FLOOR = 1
DEFAULT_SCALE_DOWN_COOLDOWN_S = 300
DEFAULT_ROLL_PERCENT = 5

_LABELS_LIMIT = 100  # GitHub takes no more on one runner; a bound also keeps the rule over them cheap
_LABEL_LENGTH = 256  # GitHub's limit


def _not_empty(name: str, fix: str) -> Rule:
    return Rule(rule="self != ''", message=f"{name} must not be empty; {fix}")


class Provisioning(Part):
    """How Linux runners are started. Has no effect on macOS pools."""

    max_concurrent_per_fleet_selector: Annotated[
        int | None,
        described(
            "Runners of one fleet that may be starting at once; the lowest value among its pools counts.",
            default=DEFAULT_MAX_CONCURRENT_PER_FLEET,
            minimum=1,
            format="int32",
        ),
    ] = None
    start_timeout_seconds: Annotated[
        int | None,
        described(
            "A runner that does not start within this time is replaced; 0 waits for ever.",
            default=DEFAULT_START_TIMEOUT_S,
            minimum=0,
            format="int32",
        ),
    ] = None


class Autoscaling(Part):
    """How replicas follow demand."""

    enabled: Annotated[bool, described("Let demand decide the number of replicas.", default=False)] = False
    min_warm_pool_floor: Annotated[
        int | None,
        described("Idle runners to keep above demand.", default=DEFAULT_WARM_FLOOR, minimum=0, format="int32"),
    ] = None
    max_replicas: Annotated[
        int, described("Never more than this; 0 leaves replicas alone.", default=0, minimum=0, format="int32")
    ] = 0
    scale_down_cooldown_seconds: Annotated[
        int | None,
        described("Time between two reductions.", default=DEFAULT_SCALE_DOWN_COOLDOWN_S, minimum=0, format="int32"),
    ] = None


class Rollout(Part):
    """How a new image reaches the runners."""

    max_concurrent_percent: Annotated[
        int | None,
        described(
            "Share of the pool that may be replaced at once.",
            default=DEFAULT_ROLL_PERCENT,
            minimum=1,
            maximum=100,
            format="int32",
            rules=(
                Rule(
                    rule="self >= 1 && self <= 100",
                    message="maxConcurrentPercent must be a percentage from 1 to 100; to stop a roll put the old image back",
                ),
            ),
        ),
    ] = None


class RunnerPoolSpec(Part):
    """What runners the pool has and how many."""

    image: Annotated[
        str,
        described(
            "Image of the runners.",
            minLength=1,
            maxLength=1024,
            rules=(_not_empty("image", "write the reference of the runner image"),),
        ),
    ]
    fleet_selector: Annotated[
        str,
        described(
            "Hosts the runners may use: the fleet label of a Mac, or the pool label of a Linux node.",
            minLength=1,
            maxLength=63,
            rules=(_not_empty("fleetSelector", "write the name of the fleet whose hosts run this pool"),),
        ),
    ]
    dispatch_label: Annotated[
        str,
        described(
            "GitHub label that sends a job straight to this pool.",
            minLength=1,
            maxLength=_LABEL_LENGTH,
            rules=(_not_empty("dispatchLabel", "write the label that jobs of this pool ask for"),),
        ),
    ]
    runner_labels: Annotated[
        tuple[Annotated[str, described("A label.", minLength=1, maxLength=_LABEL_LENGTH)], ...],
        described(
            "Labels every runner registers with at GitHub, such as self-hosted, macOS and ARM64.",
            minItems=1,
            maxItems=_LABELS_LIMIT,
            rules=(
                Rule(
                    rule="self.size() > 0 && self.all(label, label != '')",
                    message="runnerLabels must hold at least one label and no empty one; "
                    "write for example self-hosted, macOS, ARM64",
                ),
            ),
        ),
    ]
    labels: Annotated[
        tuple[str, ...], described("Kept for manifests that set it; nothing reads it.", maxItems=_LABELS_LIMIT)
    ] = ()
    replicas: Annotated[
        int,
        described("Runners to keep alive, idle and busy ones together.", default=0, minimum=0, format="int32"),
    ] = 0
    os: Annotated[
        str | None,
        described(
            "Operating system of the runners; decides where and how they run.",
            default=DARWIN_VALUE,
            enum=[DARWIN_VALUE, LINUX_VALUE],
        ),
    ] = None
    pod_cpu_milli: Annotated[
        int | None,
        described("Processor share of a runner in thousandths of a core.", default=DEFAULT_POD_CPU_MILLI, format="int32"),
    ] = field(default=None, name="podCPUMilli")
    pod_memory_mb: Annotated[
        int | None, described("Memory of a runner in MiB.", default=DEFAULT_POD_MEMORY_MB, format="int32")
    ] = field(default=None, name="podMemoryMB")
    idle_timeout_seconds: Annotated[
        int | None,
        described("A runner without a job ends itself after this time; 0 or nothing lets it wait.", format="int32"),
    ] = None
    runtime_class: Annotated[str, described("RuntimeClass of Linux runners.", maxLength=253)] = ""
    provisioning: Annotated[Provisioning | None, described("How Linux runners are started.")] = None
    autoscaling: Annotated[Autoscaling | None, described("How replicas follow demand.")] = None
    rollout: Annotated[Rollout | None, described("How a new image reaches the runners.")] = None

    @property
    def operating_system(self) -> str:
        return self.os or DARWIN_VALUE

    @property
    def cpu_milli(self) -> int:
        return _or(self.pod_cpu_milli, DEFAULT_POD_CPU_MILLI)

    @property
    def memory_mb(self) -> int:
        return _or(self.pod_memory_mb, DEFAULT_POD_MEMORY_MB)

    @property
    def max_starting(self) -> int:
        value = self.provisioning and self.provisioning.max_concurrent_per_fleet_selector
        return value if value and value > 0 else DEFAULT_MAX_CONCURRENT_PER_FLEET

    @property
    def start_timeout_s(self) -> int:
        """0 means no limit."""
        return _or(self.provisioning and self.provisioning.start_timeout_seconds, DEFAULT_START_TIMEOUT_S)

    @property
    def is_autoscaled(self) -> bool:
        return self.autoscaling is not None and self.autoscaling.enabled

    @property
    def warm_floor(self) -> int:
        return _or(self.autoscaling and self.autoscaling.min_warm_pool_floor, DEFAULT_WARM_FLOOR)

    @property
    def scale_down_cooldown_s(self) -> int:
        return _or(self.autoscaling and self.autoscaling.scale_down_cooldown_seconds, DEFAULT_SCALE_DOWN_COOLDOWN_S)

    @property
    def roll_percent(self) -> int:
        return _or(self.rollout and self.rollout.max_concurrent_percent, DEFAULT_ROLL_PERCENT)


def _or(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


class RunnerPoolStatus(Part):
    """What the pool has."""

    observed_replicas: Annotated[int, described("Runners alive after the last pass.")] = 0
    last_reconcile: Annotated[datetime | None, described("When the last pass ended.")] = None
    last_scale_down_at: Annotated[datetime | None, described("When demand reduced the replicas last.")] = None
    observed_image: Annotated[str, described("The image of the last pass.")] = ""
    image_rolled_at: Annotated[datetime | None, described("When the image changed last.")] = None


class RunnerPool(Object, kw_only=True):
    """So many runners of one image."""

    resource = Resource(GROUP, VERSION, "RunnerPool", "runnerpools")

    spec: RunnerPoolSpec
    status: RunnerPoolStatus = RunnerPoolStatus()
