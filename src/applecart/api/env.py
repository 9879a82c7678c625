"""Every environment variable of the contract: what a guest is given, and what flags fall back to.

The string under a constant says who reads the variable, who sets it and what it means. A flag always wins over its variable.
A variable marked as a secret is read once into a `Secret` and never logged or passed on an argv (I9).
"""

from typing import Final

DISPATCH_URL: Final = "TUIST_RUNNER_DISPATCH_URL"
"""Guest and runners, by runners or the chart: where a runner asks for work; the controller refuses to start without
it."""

POOL: Final = "TUIST_RUNNER_POOL"
"""Guest, by runners: the pool the runner belongs to."""

POD_NAME: Final = "TUIST_RUNNER_POD_NAME"
"""Guest, by runners: the runner's Pod."""

POD_UID: Final = "TUIST_RUNNER_POD_UID"
"""Guest, by runners: tells this Pod from an earlier one of the same name."""

IDLE_TIMEOUT_SECONDS: Final = "TUIST_RUNNER_IDLE_TIMEOUT_SECONDS"
"""Guest, by runners: how long a registered runner may wait for its job before it gives up; absent switches the watchdog
off."""

METRICS_INTERVAL: Final = "TUIST_RUNNER_METRICS_INTERVAL"
"""Guest, by the image: seconds between two samples of the guest's load."""

GUEST_CLUSTER_DNS_IP: Final = "TUIST_CLUSTER_DNS_IP"
"""Guest, by runners: resolver for names of the cluster."""

GUEST_CLUSTER_DOMAIN: Final = "TUIST_CLUSTER_DOMAIN"
"""Guest, by runners: domain those names end in."""

CACHE_ENDPOINT: Final = "TUIST_CACHE_ENDPOINT"
"""Job, by the guest: cache the job may use, as dispatch told."""

CACHE_SIGNING_GRANT: Final = "TUIST_CACHE_SIGNING_GRANT"
"""Job, by the guest: grant to sign cache entries; a secret."""

TOKEN_PATH: Final = "TUIST_RUNNER_TOKEN_PATH"
"""Linux guest sidecars, by runners: file with the runner's token."""

JIT_PATH: Final = "TUIST_RUNNER_JIT_PATH"
"""Linux guest, by runners: file with the runner's one-job configuration."""

JIT_OUTPUT_PATH: Final = "TUIST_RUNNER_JIT_OUTPUT_PATH"
"""Linux guest poller, by runners: where the poller leaves that file."""

SHELL_SOCKET: Final = "TUIST_RUNNER_SHELL_SOCKET"
"""Linux guest, by runners: socket between the interactive shell and the job."""

SHELL_WORKDIR: Final = "TUIST_RUNNER_SHELL_WORKDIR"
"""Linux guest, by runners: folder an interactive shell starts in."""

RUNNER_LOG_TO_STDOUT: Final = "ACTIONS_RUNNER_PRINT_LOG_TO_STDOUT"
"""Guest, by runners: makes GitHub's runner log where we can read it."""

RUNNER_JOB_STARTED_HOOK: Final = "ACTIONS_RUNNER_HOOK_JOB_STARTED"
"""Guest, by the image: script GitHub's runner starts with its job; it ends the idle watchdog."""

DOCKER_HOST: Final = "DOCKER_HOST"
"""Linux guest, by runners: socket of the job's own container engine."""

RUNNERS_DISPATCH_INTERNAL_URL: Final = "TUIST_RUNNER_DISPATCH_INTERNAL_URL"
"""runners, by the chart: fallback of `--dispatch-internal-url`, for Linux Pods."""

RUNNERS_SCALING_SIGNALS_URL: Final = "TUIST_SCALING_SIGNALS_URL"
"""runners, by the chart: fallback of `--scaling-signals-url`; empty switches the autoscaler off."""

RUNNERS_SESSIONS_URL: Final = "TUIST_RUNNER_SESSIONS_URL"
"""runners, by the chart: fallback of `--sessions-url`; empty switches stop reports off."""

RUNNERS_NAMESPACE: Final = "TUIST_RUNNERS_NAMESPACE"
"""runners, by the chart: fallback of `--namespace`."""

RUNNERS_DIND_IMAGE: Final = "TUIST_RUNNER_DIND_IMAGE"
"""runners, by the chart: fallback of `--dind-image`."""

RUNNERS_REGISTRY_MIRROR_URL: Final = "TUIST_RUNNER_REGISTRY_MIRROR_URL"
"""runners, by the chart: fallback of `--registry-mirror-url`."""

RUNNERS_CLUSTER_DNS_IP: Final = "TUIST_RUNNER_CLUSTER_DNS_IP"
"""runners, by the chart: fallback of `--cluster-dns-ip`."""

RUNNERS_CLUSTER_DOMAIN: Final = "TUIST_RUNNER_CLUSTER_DOMAIN"
"""runners, by the chart: fallback of `--cluster-domain`."""

CONTROLLER_NAMESPACE: Final = "TUIST_RUNNERS_CONTROLLER_NAMESPACE"
"""dispatch, by the chart: namespace of the only ServiceAccount that may report stopped Pods."""

CONTROLLER_SERVICE_ACCOUNT: Final = "TUIST_RUNNERS_CONTROLLER_SA_NAME"
"""dispatch, by the chart: name of that ServiceAccount."""

GITHUB_WEBHOOK_SECRET: Final = "TUIST_GITHUB_APP_WEBHOOK_SECRET"
"""dispatch, by a person: secret that proves a webhook comes from GitHub."""

MACOS_SHAPES: Final = "TUIST_RUNNER_MACOS_SHAPES"
"""dispatch, by the chart: sizes of Mac runners on offer."""

MACOS_XCODE_VERSIONS: Final = "TUIST_RUNNER_MACOS_XCODE_VERSIONS"
"""dispatch, by the chart: Xcode versions on offer."""

KUBELET_NODE_NAME: Final = "TART_KUBELET_NODE_NAME"
"""kubelet, by provider or a person: fallback of `--node-name`."""

KUBELET_PROVIDER_ID: Final = "TART_KUBELET_PROVIDER_ID"
"""kubelet, by provider or a person: fallback of `--provider-id`."""

KUBELET_NODE_IP: Final = "TART_KUBELET_NODE_IP"
"""kubelet, by provider or a person: fallback of `--node-ip`."""

KUBELET_NODE_IP_SOURCE: Final = "TART_KUBELET_NODE_IP_SOURCE"
"""kubelet, by provider or a person: fallback of `--node-ip-source`."""

KUBELET_NODE_LABELS: Final = "TART_KUBELET_NODE_LABELS"
"""kubelet, by provider or a person: fallback of `--node-labels`."""

KUBELET_VNC_CONTROL_DIR: Final = "TART_KUBELET_VNC_CONTROL_DIR"
"""kubelet, by provider or a person: fallback of `--vnc-control-dir`; empty switches screen access off."""

KUBELET_VNC_RELAY_HOST: Final = "TART_KUBELET_VNC_RELAY_HOST"
"""kubelet, by provider or a person: fallback of `--vnc-relay-host`."""

KUBELET_VNC_RELAY_PORT: Final = "TART_KUBELET_VNC_RELAY_PORT"
"""kubelet, by provider or a person: fallback of `--vnc-relay-port`."""

KUBELET_RUNNER_CACHE_ROOT: Final = "TART_KUBELET_RUNNER_CACHE_ROOT"
"""kubelet, by provider or a person: fallback of `--runner-cache-root`; empty switches cache volumes off."""

KUBELET_CACHE_VOLUME_CAP_GIB: Final = "TART_KUBELET_CACHE_VOLUME_CAP_GIB"
"""kubelet, by provider or a person: fallback of `--cache-volume-cap-gib`."""

KUBELET_CACHE_VOLUME_CAS_GIB: Final = "TART_KUBELET_CACHE_VOLUME_CAS_GIB"
"""kubelet, by provider or a person: fallback of `--cache-volume-cas-gib`."""

PROVIDER_TARTKUBELET_API_SERVER_URL: Final = "CAPI_TARTKUBELET_API_SERVER_URL"
"""provider, by the chart or a person: fallback of `--api-server-url`; empty asks the cluster's own cluster-info."""

PROVIDER_NODE_IDENTITY_CLUSTER_ROLE: Final = "CAPI_NODE_IDENTITY_CLUSTER_ROLE"
"""provider, by the chart or a person: fallback of `--node-identity-cluster-role`."""

PROVIDER_TARTKUBELET_BINARY_PATH: Final = "CAPI_TARTKUBELET_BINARY_PATH"
"""provider, by the chart or a person: fallback of `--tartkubelet-binary-path`."""

PROVIDER_TART_TARBALL_PATH: Final = "CAPI_TART_TARBALL_PATH"
"""provider, by the chart or a person: fallback of `--tart-tarball-path`."""

PROVIDER_TAILSCALE_BINARIES_PATH: Final = "CAPI_TAILSCALE_BINARIES_PATH"
"""provider, by the chart or a person: fallback of `--tailscale-binaries-path`."""

PROVIDER_NODE_EXPORTER_BINARY_PATH: Final = "CAPI_NODE_EXPORTER_BINARY_PATH"
"""provider, by the chart or a person: fallback of `--node-exporter-binary-path`."""

PROVIDER_LOG_SHIPPER_BINARY_PATH: Final = "CAPI_LOG_SHIPPER_BINARY_PATH"
"""provider, by the chart or a person: fallback of `--log-shipper-binary-path`."""

PROVIDER_LOG_SHIP_URL: Final = "CAPI_LOG_SHIP_URL"
"""provider, by the chart or a person: fallback of `--log-ship-url`."""

PROVIDER_LOG_SHIP_ENV: Final = "CAPI_LOG_SHIP_ENV"
"""provider, by the chart or a person: fallback of `--log-ship-env`."""

PROVIDER_TAILSCALE_AUTH_KEY_SECRET_NAME: Final = "CAPI_TAILSCALE_AUTH_KEY_SECRET_NAME"
"""provider, by the chart or a person: fallback of `--tailscale-auth-key-secret-name`."""

PROVIDER_TAILSCALE_TAGS: Final = "CAPI_TAILSCALE_TAGS"
"""provider, by the chart or a person: fallback of `--tailscale-tags`, a comma list."""

PROVIDER_TAILSCALE_ACCEPT_ROUTES: Final = "CAPI_TAILSCALE_ACCEPT_ROUTES"
"""provider, by the chart or a person: fallback of `--tailscale-accept-routes`."""

PROVIDER_VM_KURA_EGRESS_CIDR: Final = "CAPI_VM_KURA_EGRESS_CIDR"
"""provider, by the chart or a person: fallback of `--vm-kura-egress-cidr`."""

PROVIDER_VM_CLUSTER_DNS_IP: Final = "CAPI_VM_CLUSTER_DNS_IP"
"""provider, by the chart or a person: fallback of `--vm-cluster-dns-ip`."""

PROVIDER_VM_CACHE_PN_NAME: Final = "CAPI_VM_CACHE_PN_NAME"
"""provider, by the chart or a person: fallback of `--vm-cache-pn-name`."""

PROVIDER_VM_CACHE_PN_CIDR: Final = "CAPI_VM_CACHE_PN_CIDR"
"""provider, by the chart or a person: fallback of `--vm-cache-pn-cidr`."""

PROVIDER_SSH_INGRESS_ALLOW_CIDRS: Final = "CAPI_SSH_INGRESS_ALLOW_CIDRS"
"""provider, by the chart or a person: fallback of `--ssh-ingress-allow-cidrs`, a comma list."""

PROVIDER_FLEET_SPREAD_DEPLOYMENT: Final = "CAPI_FLEET_SPREAD_DEPLOYMENT"
"""provider, by the chart or a person: fallback of `--fleet-spread-deployment`."""

PROVIDER_FLEET_SPREAD_NAMESPACE: Final = "CAPI_FLEET_SPREAD_NAMESPACE"
"""provider, by the chart or a person: fallback of `--fleet-spread-namespace`."""

PROVIDER_TAILSCALE_EGRESS_PROXY_GROUP: Final = "CAPI_TAILSCALE_EGRESS_PROXY_GROUP"
"""provider, by the chart or a person: fallback of `--tailscale-egress-proxy-group`; empty switches egress Services
off."""

PROVIDER_TAILSCALE_EGRESS_NAMESPACE: Final = "CAPI_TAILSCALE_EGRESS_NAMESPACE"
"""provider, by the chart or a person: fallback of `--tailscale-egress-namespace`."""

PROVIDER_TAILSCALE_EGRESS_MAGICDNS_SUFFIX: Final = "CAPI_TAILSCALE_EGRESS_MAGICDNS_SUFFIX"
"""provider, by the chart or a person: fallback of `--tailscale-egress-magicdns-suffix`."""

PROVIDER_DEFAULT_ADOPT_POOL_PREFIX: Final = "CAPI_DEFAULT_ADOPT_POOL_PREFIX"
"""provider, by the chart or a person: fallback of `--default-adopt-pool-prefix`."""

PROVIDER_ORPHAN_RECLAIM_CLAIM_NAME_PREFIX: Final = "CAPI_ORPHAN_RECLAIM_CLAIM_NAME_PREFIX"
"""provider, by the chart or a person: fallback of `--orphan-reclaim-claim-name-prefix`; empty only reports strays."""

PROVIDER_ORPHAN_RECLAIM_ZONES: Final = "CAPI_ORPHAN_RECLAIM_ZONES"
"""provider, by the chart or a person: fallback of `--orphan-reclaim-zones`, a comma list."""

SCALEWAY_ACCESS_KEY: Final = "SCW_ACCESS_KEY"
"""provider, by the chart: access key of the Scaleway project."""

SCALEWAY_SECRET_KEY: Final = "SCW_SECRET_KEY"
"""provider, by the chart: secret key of the Scaleway project; a secret."""

SCALEWAY_PROJECT_ID: Final = "SCW_DEFAULT_PROJECT_ID"
"""provider, by the chart: the Scaleway project all calls name."""

SCALEWAY_API_URL: Final = "SCW_API_URL"
"""provider, by a person: another address of the Scaleway API, for tests and simulation."""

TART_HOME: Final = "TART_HOME"
"""kubelet and tart, by a person: folder with Tart's VMs and cache."""

TART_NO_AUTO_PRUNE: Final = "TART_NO_AUTO_PRUNE"
"""tart, by kubelet or an image build: keeps Tart from deleting cached images by itself."""

TART_REGISTRY_HOSTNAME: Final = "TART_REGISTRY_HOSTNAME"
"""tart, by an image build: registry the next two belong to."""

TART_REGISTRY_USERNAME: Final = "TART_REGISTRY_USERNAME"
"""tart, by an image build: registry user, because a keychain cannot be opened without a screen."""

TART_REGISTRY_PASSWORD: Final = "TART_REGISTRY_PASSWORD"
"""tart, by an image build: registry password; a secret."""

TART_CI: Final = "CI"
"""tart, by kubelet: makes Tart print plain lines and the address of a guest's screen."""

MIX_BUILD_ROOT: Final = "TUIST_MIX_BUILD_ROOT"
"""Builder host, by provider: folder in which image builds keep compiled code."""

KUBECONFIG: Final = "KUBECONFIG"
"""Every component and command, by a person: files that say how to reach the Kubernetes API."""
