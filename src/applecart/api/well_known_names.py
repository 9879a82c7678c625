"""Names that are fixed: leader election ids, Secret data keys, containers, audiences, event sources.

They are part of the contract with manifests, guests and people's Secrets. The string under a constant says where the name
stands, who writes it and what it is; docs/reference/wire-names.md is generated from those strings. A name that is built from
another one belongs to `names.py`.
"""

from typing import Final

PROVIDER_LEADER: Final = "scaleway-applesilicon.infrastructure.cluster.x-k8s.io"
"""Lease, by provider: held by the provider that acts."""

RUNNERS_LEADER: Final = "runners-controller.tuist.dev"
"""Lease, by runners: held by the runners controller that acts."""

PROVIDER_EVENT_SOURCE: Final = "scalewayapplesiliconmachine-controller"
"""Source of Events, by provider: who recorded an Event on a machine."""

KUBELET_EVENT_SOURCE: Final = "tart-kubelet"
"""Source of Events, by kubelet: who recorded an Event on a Pod."""

RUNNERS_NAMESPACE: Final = "tuist-runners"
"""Namespace, by the chart: where RunnerPools and their Pods live unless told otherwise."""

DISPATCH_AUDIENCE: Final = "tuist-runners-dispatch"
"""Audience of a ServiceAccount token, by kubelet: a token good for dispatch and for nothing else."""

POOL_SERVER_PREFIX: Final = "tuist-pool-"
"""Scaleway server, by a person who orders it: the chart's pool prefix; a host with it is free."""

KATA_RUNTIME_CLASS: Final = "kata-qemu"
"""RuntimeClass, by the chart: runs a Linux Pod as a microVM."""

DRAIN_RULE: Final = "runner-jobs-wait-completed"
"""MachineDrainRule, by the chart: a drain waits for running jobs (I7)."""

RUNNER_CONTAINER: Final = "runner"
"""Container of a runner Pod, by runners: runs the job; the only one of a Mac runner."""

POLLER_CONTAINER: Final = "poller"
"""Init container of a Linux runner Pod, by runners: asks for work; once ended, the Pod counts as busy."""

DIND_CONTAINER: Final = "dind"
"""Sidecar of a Linux runner Pod, by runners: the job's own container engine."""

METRICS_CONTAINER: Final = "metrics"
"""Sidecar of a Linux runner Pod, by runners: samples the guest's load."""

SHELL_CONTAINER: Final = "shell"
"""Sidecar of a Linux runner Pod, by runners: interactive access."""

NODE_KUBELET_VERSION: Final = "tart-kubelet-v0"
"""`nodeInfo.kubeletVersion` of a Node, by kubelet: a host of ours in every node listing."""

SSH_PRIVATE_KEY: Final = "id_ed25519"
"""Data key of the fleet SSH Secret, by provider or a person: the private key; a secret."""

SSH_PUBLIC_KEY: Final = "id_ed25519.pub"
"""Data key of the fleet SSH Secret, by provider or a person: the public key, as Scaleway stores it."""

SUDO_PASSWORD: Final = "sudo-password"
"""Data key of the bootstrap Secret, by provider: password of the host's user; a secret."""

SSH_USERNAME: Final = "ssh-username"
"""Data key of the bootstrap Secret, by provider: the host's user."""

HOST_FINGERPRINT: Final = "host-fingerprint"
"""Data key of the bootstrap Secret, by provider: the host key seen first; another one is refused."""

TAILSCALE_AUTH_KEY: Final = "auth-key"
"""Data key of the Tailscale Secret, by a person: what a host joins the tailnet with; a secret."""

GITHUB_APP_ID: Final = "app-id"
"""Data key of the GitHub App Secret, by a person: the App."""

GITHUB_INSTALLATION_ID: Final = "installation-id"
"""Data key of the GitHub App Secret, by a person: its installation in the organisation."""

GITHUB_PRIVATE_KEY: Final = "private-key"
"""Data key of the GitHub App Secret, by a person: signs for the App; a secret."""

SCALEWAY_ACCESS_KEY: Final = "access-key"
"""Data key of the Scaleway Secret, by a person: access key."""

SCALEWAY_SECRET_KEY: Final = "secret-key"
"""Data key of the Scaleway Secret, by a person: secret key; a secret."""

SCALEWAY_PROJECT_ID: Final = "project-id"
"""Data key of the Scaleway Secret, by a person: the project."""

CLUSTER_API_VALUE: Final = "value"
"""Data key of a bootstrap or kubeconfig Secret of Cluster API, by the chart: its whole content."""

TOKEN: Final = "token"
"""Data key of a ServiceAccount token Secret, by the API server's controller: the token; a secret."""

TOKEN_CA: Final = "ca.crt"
"""Data key of a ServiceAccount token Secret, by the API server's controller: the CA of the API server."""

SERVICE_ACCOUNT_TOKEN_TYPE: Final = "kubernetes.io/service-account-token"
"""`type` of a Secret, by provider: asks for it to be filled with a token."""

SEALED_PASSWORD: Final = "<sealed>"
"""Password in an answer of Scaleway or in a host's login file, by Scaleway or macOS: there is none to be had; treated as
missing and never tried."""
