"""The kinds of our Cluster API provider: a Mac mini at Scaleway, the template it is cloned from, and the cluster it joins.

The wire contract is older than this code: names, types and defaults stay. They keep the v1beta1 and the v1beta2 provider
contract at once: `status.ready` beside `status.initialization.provisioned`, conditions with a severity in `status.conditions`
and metav1 conditions in `status.v1beta2.conditions`, which is where Cluster API looks first.

No field is required that an installed template may lack: Cluster API could not clone it, and a fleet ran at half its size
that way. What a machine cannot work without is asked for only inside the optional block that needs it.
"""

from datetime import datetime
from typing import Annotated, ClassVar

from msgspec import field

from applecart.api import machine_rules
from applecart.api.capi.shared import CapiCondition, MachineAddress
from applecart.api.meta import Condition, Object, Part, Resource
from applecart.api.schema import Rule, described, list_map

GROUP = "infrastructure.cluster.x-k8s.io"
VERSION = "v1alpha1"

DEFAULT_TYPE = "M2-L"
DEFAULT_ZONE = "fr-par-1"
DEFAULT_OS = "Tahoe"
DEFAULT_GH_ORG = "tuist"
DEFAULT_GH_RUNNER_LABELS = "self-hosted,macos,bare-metal,vm-image-builder"

PHASE_PENDING = "Pending"
PHASE_ADOPTING = "Adopting"
PHASE_BOOTSTRAPPING = "Bootstrapping"
PHASE_READY = "Ready"
PHASE_DELETING = "Deleting"
PHASE_FAILED = "Failed"


class GhActionsRunner(Part):
    """The GitHub Actions runner of a builder host."""

    cel_rules: ClassVar[tuple[Rule, ...]] = (machine_rules.RUNNER_VERSION_GIVEN, machine_rules.APP_SECRET_NAMED)

    gh_org: Annotated[
        str | None, described("Organisation the runner registers with.", default=DEFAULT_GH_ORG, maxLength=255)
    ] = None
    gh_runner_labels: Annotated[
        str | None,
        described("Labels the runner registers with, separated by commas.", default=DEFAULT_GH_RUNNER_LABELS, maxLength=4096),
    ] = None
    gh_runner_version: Annotated[
        str,
        described(
            "Version of the runner agent that is installed first; it updates itself from then on.",
            required=True,
            minLength=1,
            maxLength=64,
        ),
    ] = ""
    gh_app_secret_name: Annotated[
        str,
        described("Secret in this namespace with the GitHub App's app-id, installation-id and private-key.", maxLength=253),
    ] = ""


class ScalewayAppleSiliconMachineSpec(Part):
    """Which host to claim and what it becomes."""

    provider_id: Annotated[
        str | None,
        described(
            "The claimed host as scw-applesilicon://ZONE/SERVER-UUID. Written by the provider.",
            maxLength=512,
            rules=(machine_rules.PROVIDER_ID_FORM,),
        ),
    ] = field(default=None, name="providerID")
    type: Annotated[str | None, described("Scaleway server type.", default=DEFAULT_TYPE, maxLength=64)] = None
    zone: Annotated[str | None, described("Scaleway zone.", default=DEFAULT_ZONE, maxLength=64)] = None
    os: Annotated[
        str | None,
        described(
            "macOS family such as Tahoe or Sequoia, never a version.",
            default=DEFAULT_OS,
            maxLength=64,
            rules=(machine_rules.OS_IS_A_FAMILY,),
        ),
    ] = None
    fleet_name: Annotated[
        str,
        described("Fleet the host belongs to: it shares an SSH key and becomes a Node label.", maxLength=63),
    ] = ""
    kubelet_version: Annotated[str, described("Not used on macOS.", maxLength=64)] = ""
    host_cpu: Annotated[int, described("Cores the Node advertises; 0 takes the provider's default.")] = field(
        default=0, name="hostCPU"
    )
    host_memory_mb: Annotated[int, described("Memory in MB the Node advertises; 0 takes the provider's default.")] = field(
        default=0, name="hostMemoryMB"
    )
    adopt_pool_prefix: Annotated[
        str,
        described(
            "Names of free servers begin with this. Empty takes the provider's default; with neither, nothing is claimed.",
            maxLength=253,
        ),
    ] = ""
    gh_actions_runner: Annotated[
        GhActionsRunner | None, described("Makes the host a builder that runs GitHub Actions jobs itself.")
    ] = None


class Initialization(Part):
    """What Cluster API waits for before it goes on."""

    provisioned: Annotated[bool | None, described("The infrastructure was provisioned once. It stays true from then on.")] = (
        None
    )


class NewerStatus(Part):
    """The part of the status in the form of the v1beta2 contract."""

    conditions: Annotated[
        tuple[Condition, ...], described("What is true of the object, as metav1 conditions.", **list_map("type"))
    ] = ()


class ScalewayAppleSiliconMachineStatus(Part):
    """What the provider found and did."""

    ready: Annotated[bool, described("The infrastructure is provisioned (v1beta1 contract).")] = False
    initialization: Annotated[Initialization | None, described("First provisioning (v1beta2 contract).")] = None
    server_id: Annotated[str, described("Scaleway id of the claimed server; empty means no host is held.")] = field(
        default="", name="serverID"
    )
    addresses: Annotated[tuple[MachineAddress, ...], described("How the host is reached.")] = ()
    phase: Annotated[str, described("Where the machine is: Pending, Adopting, Bootstrapping, Ready, Deleting, Failed.")] = ""
    failure_reason: Annotated[str | None, described("Why the provider gave up, in one word.")] = None
    failure_message: Annotated[str | None, described("Why the provider gave up, in a sentence.")] = None
    conditions: Annotated[
        tuple[CapiCondition, ...], described("What is true of the machine (v1beta1 contract).", **list_map("type"))
    ] = ()
    tart_kubelet_binary_sha: Annotated[str, described("sha256 of the agent that was pushed last.")] = field(
        default="", name="tartKubeletBinarySHA"
    )
    host_config_hash: Annotated[str, described("sha256 of the host configuration that was pushed and accepted last.")] = ""
    failed_host_config_hash: Annotated[
        str, described("sha256 of the host configuration whose updates used up all attempts.")
    ] = ""
    tart_kubelet_update_attempts: Annotated[
        int, described("Updates that failed in a row; 0 after a success.", format="int32")
    ] = 0
    last_update_failure_time: Annotated[datetime | None, described("When an update failed last.")] = None
    bootstrap_attempts: Annotated[int, described("Bootstraps that failed in a row on this host.", format="int32")] = 0
    bootstrap_reboot_issued: Annotated[bool, described("The one recovery reboot of this host was used.")] = False
    v1beta2: Annotated[NewerStatus | None, described("The status in the form of the v1beta2 contract.")] = None


class ScalewayAppleSiliconMachine(Object):
    """A Mac mini at Scaleway that is claimed from a pool and becomes a Node."""

    resource = Resource(GROUP, VERSION, "ScalewayAppleSiliconMachine", "scalewayapplesiliconmachines")
    cel_rules: ClassVar[tuple[Rule, ...]] = machine_rules.IDENTITY_IS_FIXED

    spec: Annotated[ScalewayAppleSiliconMachineSpec, described("Which host to claim and what it becomes.", default={})] = (
        ScalewayAppleSiliconMachineSpec()
    )
    status: ScalewayAppleSiliconMachineStatus = ScalewayAppleSiliconMachineStatus()

    @property
    def is_claimed(self) -> bool:
        """A host is held, or was until it is proven released; the CEL rules fix the identity by the same test."""
        return bool(self.status.server_id or self.spec.provider_id)


class TemplateMetadata(Part):
    """Labels and annotations of the machines that are cloned."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class MachineTemplateResource(Part):
    """The machine that is cloned."""

    metadata: TemplateMetadata | None = None
    spec: Annotated[ScalewayAppleSiliconMachineSpec, described("The spec every clone starts with.", required=True)] = (
        ScalewayAppleSiliconMachineSpec()
    )


class MachineTemplateSpec(Part):
    """What Cluster API clones."""

    template: Annotated[MachineTemplateResource, described("The machine that is cloned.", required=True)] = (
        MachineTemplateResource()
    )


class ScalewayAppleSiliconMachineTemplate(Object):
    """What Cluster API clones the machines of a MachineDeployment from."""

    resource = Resource(GROUP, VERSION, "ScalewayAppleSiliconMachineTemplate", "scalewayapplesiliconmachinetemplates")

    spec: MachineTemplateSpec = MachineTemplateSpec()


class ControlPlaneEndpoint(Part):
    """Where the API server is reached."""

    host: Annotated[str, described("Name or address.")]
    port: Annotated[int, described("TCP port.", format="int32")]


class TuistClusterSpec(Part):
    """The cluster the machines join."""

    control_plane_endpoint: Annotated[
        ControlPlaneEndpoint | None, described("Where the API server of the existing cluster is reached.")
    ] = None


class TuistClusterStatus(Part):
    """What Cluster API waits for."""

    ready: Annotated[bool, described("The infrastructure is provisioned (v1beta1 contract).")] = False
    initialization: Annotated[Initialization | None, described("First provisioning (v1beta2 contract).")] = None
    conditions: Annotated[
        tuple[CapiCondition, ...], described("What is true of the cluster (v1beta1 contract).", **list_map("type"))
    ] = ()
    v1beta2: Annotated[NewerStatus | None, described("The status in the form of the v1beta2 contract.")] = None


class TuistCluster(Object):
    """The infrastructure of a cluster whose control plane is run by others."""

    resource = Resource(GROUP, VERSION, "TuistCluster", "tuistclusters")

    spec: TuistClusterSpec = TuistClusterSpec()
    status: TuistClusterStatus = TuistClusterStatus()
