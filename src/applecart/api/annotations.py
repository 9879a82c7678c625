"""Every annotation key that crosses a component boundary, and the fixed values some of them take.

Annotations carry requests and facts that nobody selects by. The string under a constant says on which objects it stands, who
writes it and what it means; docs/reference/wire-names.md is generated from those strings. Names ending in `_VALUE` are
values. An annotation never holds a secret: of a token only the hash is written (I9).
"""

from typing import Final

PAUSED: Final = "cluster.x-k8s.io/paused"
"""ScalewayAppleSiliconMachine, by a person: present with any value, nothing but deletion is reconciled; the first step of
taking a machine off its host by hand."""

DELETE_MACHINE: Final = "cluster.x-k8s.io/delete-machine"
"""Machine, by a person: this Machine goes first when its set shrinks."""

CLONED_FROM_NAME: Final = "cluster.x-k8s.io/cloned-from-name"
"""Infrastructure objects, by Cluster API: the template they were copied from."""

CLONED_FROM_GROUP_KIND: Final = "cluster.x-k8s.io/cloned-from-groupkind"
"""Infrastructure objects, by Cluster API: kind and group of that template."""

RELEASE_POLICY: Final = "tuist.dev/release-policy"
"""ScalewayAppleSiliconMachine, by nobody any more: once chose between pool and termination; found on old objects, and
ignored because a host always returns to its pool."""

SSH_KEY_ID: Final = "scaleway.tuist.dev/ssh-key-id"
"""Secret of a fleet SSH key, by provider: id under which Scaleway knows the public key."""

SERVICE_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
"""Secret of a ServiceAccount token, by provider: the account the token is issued for."""

FLEET_HASH: Final = "tuist.dev/fleet-hash"
"""Pod template of the spread Deployment, by provider: hash of the names of the fleet's Ready nodes; a new hash rolls the
Deployment so that its Pods spread again."""

TAILNET_FQDN: Final = "tailscale.com/tailnet-fqdn"
"""Service, by provider: the tailnet name of the host behind the Service."""

TAILSCALE_PROXY_GROUP: Final = "tailscale.com/proxy-group"
"""Service, by provider: the group of tailnet proxies that carries the traffic."""

RUNTIME_CLASS_REVISION: Final = "tuist.dev/runtime-class-revision"
"""RunnerPool and Pod, by the chart and then runners: hash of the sandbox's overhead; a Linux Pod whose value differs from
its pool's is stale."""

KATA_KERNEL_PARAMS: Final = "io.katacontainers.config.hypervisor.kernel_params"
"""Pod, by runners: extra kernel arguments of a Linux microVM."""

VNC_SESSION_ID: Final = "tuist.dev/vnc-session-id"
"""Pod, by dispatch: a person asked for the screen of this guest."""

VNC_REQUESTED_AT: Final = "tuist.dev/vnc-requested-at"
"""Pod, by dispatch: when they asked."""

VNC_RELAY_TOKEN_HASH: Final = "tuist.dev/vnc-relay-token-hash"
"""Pod, by dispatch: hash of the token the viewer will present; the host opens no relay without it."""

VNC_STATE: Final = "tuist.dev/vnc-state"
"""Pod, by kubelet: how far the relay is."""

VNC_RELAY_HOST: Final = "tuist.dev/vnc-relay-host"
"""Pod, by kubelet: where the relay listens."""

VNC_RELAY_PORT: Final = "tuist.dev/vnc-relay-port"
"""Pod, by kubelet: on which port the relay listens."""

VNC_RELAY_READY_AT: Final = "tuist.dev/vnc-relay-ready-at"
"""Pod, by kubelet: since when the relay listens; written once per session, or the write would wake its own writer."""

PROMETHEUS_SCRAPE: Final = "prometheus.io/scrape"
"""Pod, by a person: `true` asks the host to forward the guest's metrics."""

PROMETHEUS_PORT: Final = "prometheus.io/port"
"""Pod, by a person: the guest port those metrics are on."""

ADVERTISED_LABELS: Final = "applecart.dev/advertised-labels"
"""Node, by kubelet: the labels of our domain that it put there, separated by commas; what it no longer offers it takes off, and
labels of other writers it leaves alone."""

HELM_RESOURCE_POLICY: Final = "helm.sh/resource-policy"
"""Namespace and ScalewayAppleSiliconMachineTemplate, by the chart: what an uninstall or upgrade leaves in place."""

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""Bookmark of a watch, by the API server: `true` once the watch has sent everything that existed at its start."""

INITIAL_EVENTS_LIST_BLUEPRINT: Final = "kubernetes.io/initial-events-list-blueprint"
"""Bookmark of a watch, by the API server: the empty list that Go clients expect beside that mark."""

VNC_READY_VALUE: Final = "ready"
"""`tuist.dev/vnc-state` of a Pod, by kubelet: the relay accepts the viewer."""

KATA_PSI_VALUE: Final = "psi=1"
"""The kernel arguments of a microVM, by runners: turns pressure figures on inside the guest."""

HELM_KEEP_VALUE: Final = "keep"
"""`helm.sh/resource-policy`, by the chart: the object survives an uninstall."""
