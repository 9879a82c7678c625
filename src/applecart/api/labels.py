"""Every label key that crosses a component boundary, and the fixed values some of them take.

A label is a contract between processes that never import each other, so its key is spelled here and nowhere else. The string
under a constant says on which objects it stands, who writes it and what a reader may conclude; docs/reference/wire-names.md
is generated from those strings. Names ending in `_PREFIX` are completed by `names.py`; names ending in `_VALUE` are values.
This file never decides anything: who may act on a label is the business of the component that reads it.
"""

from typing import Final

RUNNER: Final = "tuist.dev/runner"
"""Pod, by runners: `true` on every runner Pod; what watches, network policies and drain rules select."""

RUNNER_POOL: Final = "tuist.dev/runner-pool"
"""Pod, ServiceAccount and RunnerPool, by runners or the chart: the pool it belongs to; on the ServiceAccount it is the
right to poll for work of that pool."""

RUNNER_POOL_OWNER: Final = "tuist.dev/runner-pool-owner"
"""Pod, by dispatch: name of the account a job was claimed for, written before the runner is minted; the Pod is busy."""

RUNNER_ACCOUNT: Final = "tuist.dev/runner-account"
"""Pod, by dispatch: id of the account, written once the hand-over is committed; the host may then attach that account's
cache, and the Pod never serves a second job."""

RUNNER_CACHE_UNTRUSTED: Final = "tuist.dev/runner-cache-untrusted"
"""Pod, by dispatch: `true` when the job is not proven to come from the repository itself; it gets an empty cache and may
publish nothing."""

DRAIN_ELIGIBLE: Final = "tuist.dev/drain-eligible"
"""Pod, by runners: `true` on a stale Pod chosen for the current wave of a roll; only then may dispatch answer its poll
with 410."""

RUNNER_OPERATOR_DRAIN: Final = "tuist.dev/runner-operator-drain"
"""Pod, by a person: `true` retires the Pod at its next idle poll; taking the label off before that poll cancels it."""

FLEET: Final = "tuist.dev/fleet"
"""Node, Secret, Service and Machine, by provider, kubelet or the chart: the group of hosts it belongs to; Pods are placed
by it."""

RUNTIME: Final = "tuist.dev/runtime"
"""Node, by kubelet: which runtime turns Pods into guests; the one label of our domain that the kubelet never prunes."""

MACHINE: Final = "tuist.dev/machine"
"""Secret, ServiceAccount and ClusterRoleBinding, by provider: the machine whose credentials these are."""

MANAGED_BY: Final = "tuist.dev/managed-by"
"""Secret, ServiceAccount, ClusterRoleBinding and RunnerPool, by provider or the chart: who created the object and may
delete it."""

MACMINI_EGRESS: Final = "tuist.dev/macmini-egress"
"""Service, by provider: `true` on the Service through which the cluster reaches one host over the tailnet; scrape jobs
select it."""

MACMINI_MACHINE: Final = "tuist.dev/macmini-machine"
"""Service, by provider: the machine behind that Service."""

XCODE_VERSION: Final = "tuist.dev/xcode-version"
"""RunnerPool, by the chart: the Xcode inside the pool's image."""

XCODE_DEFAULT: Final = "tuist.dev/xcode-default"
"""RunnerPool, by the chart: `true` on the pool that serves jobs which name no Xcode."""

SHAPE: Final = "tuist.dev/shape"
"""RunnerPool, by the chart: name of the CPU and memory size of the pool's runners."""

SHAPE_VCPUS: Final = "tuist.dev/shape-vcpus"
"""RunnerPool, by the chart: cores of one runner."""

SHAPE_MEMORY_GB: Final = "tuist.dev/shape-memory-gb"
"""RunnerPool, by the chart: memory of one runner in GB."""

SHAPE_DEFAULT: Final = "tuist.dev/shape-default"
"""RunnerPool, by the chart: `true` on the size that serves jobs which name none."""

NODE_OWNED_PREFIX: Final = "tuist.dev/"
"""Node, by kubelet: the kubelet removes labels below this prefix that it no longer advertises, and leaves every other
label alone."""

GOLDEN_PREFIX: Final = "tuist.dev/golden-"
"""Node, by kubelet: followed by the hash of an image; the host holds that image's golden, so Pods of it prefer the host."""

CACHE_MASTER_PREFIX: Final = "tuist.dev/cache-master-"
"""Node, by kubelet: followed by an account id; the host holds that account's cache, so its jobs prefer the host."""

APP_NAME: Final = "app.kubernetes.io/name"
"""Pod and ServiceAccount, by runners: the application, as Kubernetes recommends to name it."""

APP_COMPONENT: Final = "app.kubernetes.io/component"
"""Pod, ServiceAccount, Service and Secret, by runners or provider: the part the object plays."""

APP_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
"""Service, by provider: the tool that keeps the object."""

NODE_OS: Final = "kubernetes.io/os"
"""Node, by kubelet: operating system of the host."""

NODE_ARCH: Final = "kubernetes.io/arch"
"""Node, by kubelet: processor architecture of the host."""

NODE_HOSTNAME: Final = "kubernetes.io/hostname"
"""Node, by kubelet: the node's own name, for spreading over hosts."""

NODE_POOL: Final = "node.cluster.x-k8s.io/pool"
"""Node, by the cluster: the worker pool of a Linux node; Linux RunnerPools are placed by it."""

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""Namespace, by the API server: the namespace's own name, so that policies can select it."""

CLUSTER_NAME: Final = "cluster.x-k8s.io/cluster-name"
"""Machine, MachineSet, MachineDeployment and infrastructure objects, by Cluster API: the Cluster they belong to."""

MACHINE_DEPLOYMENT_NAME: Final = "cluster.x-k8s.io/deployment-name"
"""Machine, MachineSet and infrastructure objects, by Cluster API: the MachineDeployment they came from."""

MACHINE_SET_NAME: Final = "cluster.x-k8s.io/set-name"
"""Machine and infrastructure objects, by Cluster API: the MachineSet they came from."""

MACHINE_TEMPLATE_HASH: Final = "machine-template-hash"
"""Machine and MachineSet, by Cluster API: tells the MachineSets of one MachineDeployment apart."""

CAPI_CONTRACT_V1BETA1: Final = "cluster.x-k8s.io/v1beta1"
"""CustomResourceDefinition, by generated manifests: our versions that keep the v1beta1 provider contract."""

CAPI_CONTRACT_V1BETA2: Final = "cluster.x-k8s.io/v1beta2"
"""CustomResourceDefinition, by generated manifests: our versions that keep the v1beta2 provider contract."""

TRUE_VALUE: Final = "true"
"""Every label that is a flag, by its writer: set; a flag that is not set is absent, never `false`."""

TART_RUNTIME_VALUE: Final = "tart"
"""`tuist.dev/runtime` of a Node, by kubelet: Pods become Tart VMs."""

DARWIN_VALUE: Final = "darwin"
"""`kubernetes.io/os` of a Node and `spec.os` of a RunnerPool, by kubelet or a person: macOS."""

LINUX_VALUE: Final = "linux"
"""`kubernetes.io/os` of a Node and `spec.os` of a RunnerPool, by its kubelet or a person: Linux."""

ARM64_VALUE: Final = "arm64"
"""`kubernetes.io/arch` of a Node, by kubelet: Apple silicon."""

AMD64_VALUE: Final = "amd64"
"""`kubernetes.io/arch` of a Node, by its kubelet: what Linux runners are placed on."""

PROVIDER_MANAGED_VALUE: Final = "capi-scaleway-applesilicon"
"""Both managed-by labels, by provider: the Scaleway Apple silicon provider keeps the object."""

HELM_MANAGED_VALUE: Final = "helm"
"""`tuist.dev/managed-by` of a RunnerPool, by the chart: the chart renders the pool."""

RUNNER_APP_VALUE: Final = "tuist-runner"
"""`app.kubernetes.io/name` of a Pod or ServiceAccount, by runners: it belongs to a runner."""

RUNNER_COMPONENT_VALUE: Final = "runner"
"""`app.kubernetes.io/component` of a Pod, by runners: the runner itself."""

RUNNER_SERVICE_ACCOUNT_COMPONENT_VALUE: Final = "runner-sa"
"""`app.kubernetes.io/component` of a ServiceAccount, by runners: the identity of one runner."""

KUBELET_COMPONENT_VALUE: Final = "tart-kubelet"
"""`app.kubernetes.io/component` of a ServiceAccount, by provider: the identity of one host's agent."""

EGRESS_COMPONENT_VALUE: Final = "macmini-egress"
"""`app.kubernetes.io/component` of a Service, by provider: the way from the cluster to one host."""

FLEET_KEY_COMPONENT_VALUE: Final = "capi-provider-scaleway-applesilicon"
"""`app.kubernetes.io/component` of a Secret, by `prepare-fleet-ssh-key`: a fleet SSH key staged by a person."""
