"""A real cluster with what tests need beside etcd and the API server: kubectl, Kubernetes' own controllers, Cluster API.

Each program is started by the test that needs it and ends with the cluster.
"""

import asyncio
import subprocess
from pathlib import Path

from applecart.embedded.auth.user import MASTERS
from applecart.embedded.binaries.cluster import RealCluster, free_ports
from applecart.embedded.binaries.flags import loopback_url
from applecart.embedded.trust.control_plane_files import LOOPBACK, SERVER_NAMES
from applecart.embedded.trust.pki import write_pair
from applecart.errors import BadInput, ControlPlaneFault

CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
CLUSTER_API = "cluster-api-core"
KUBECTL = "kubectl"
CRDS = "cluster-api-crds"
KUBECTL_TIMEOUT_S = 60  # to apply 13 large CRDs on a loaded machine
# Cluster API rewrites stored objects of old versions at start; a fresh cluster has none, and it waits for webhooks.
NO_MIGRATION = "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields"


class FullCluster(RealCluster):
    """Use as an async context manager."""

    async def start_controller_manager(self, *more: str) -> None:
        """`more`: flags that a test adds."""
        (port,) = free_ports(1)  # not earlier: those of etcd and the API server are taken now
        kubeconfig = self.issue_client("controller-manager", "system:kube-controller-manager").kubeconfig
        trust = self.files.trust
        given = [
            *self._controller_flags(kubeconfig, port),
            f"--service-account-private-key-file={trust.token_keys.key}",
            f"--root-ca-file={trust.authority.certificate}",
            f"--cluster-signing-cert-file={trust.authority.certificate}",
            f"--cluster-signing-key-file={trust.authority.key}",
            "--use-service-account-credentials=true",
            *more,
        ]
        # It calls itself healthy before its controllers run; the first ServiceAccount is the work of one.
        first_work = f"{self.url}/api/v1/namespaces/default/serviceaccounts/default"
        probes = (f"{loopback_url(port)}/healthz", first_work)
        await self.start_program(CONTROLLER_MANAGER, given, probes)

    async def start_scheduler(self) -> None:
        kubeconfig = self.issue_client("scheduler", "system:kube-scheduler").kubeconfig
        (port,) = free_ports(1)
        given = self._controller_flags(kubeconfig, port)
        await self.start_program(SCHEDULER, given, (f"{loopback_url(port)}/healthz",))

    async def start_cluster_api(self) -> None:
        """Install Cluster API's CRDs and start its core manager."""
        if not (self.programs / CRDS).is_dir():
            raise BadInput(f"{self.programs / CRDS} is missing; it holds the CRDs that {CLUSTER_API} needs")
        await asyncio.to_thread(self.kubectl, "apply", "--server-side", "--filename", str(self.programs / CRDS))
        await asyncio.to_thread(self.kubectl, "wait", "--for=condition=Established", "--filename", str(self.programs / CRDS))
        health_port, webhook_port, diagnostics_port = free_ports(3)
        webhook = self.run_folder / "webhook"
        write_pair(webhook, "tls", self.files.authority.issue_server(SERVER_NAMES, self.clock.now()))
        given = [
            f"--kubeconfig={self.issue_client('cluster-api', 'cluster-api-core', MASTERS).kubeconfig}",
            f"--webhook-cert-dir={webhook}",
            f"--webhook-port={webhook_port}",
            f"--health-addr={LOOPBACK}:{health_port}",
            f"--diagnostics-address={LOOPBACK}:{diagnostics_port}",
            "--insecure-diagnostics",
            NO_MIGRATION,
        ]
        # It reads who it is from the variables that a Deployment would set.
        pod = {"POD_NAMESPACE": "default", "POD_NAME": CLUSTER_API, "POD_UID": CLUSTER_API}
        await self.start_program(CLUSTER_API, given, (f"http://{LOOPBACK}:{health_port}/readyz",), pod)

    def kubectl(self, *arguments: str) -> str:
        """What kubectl of the same version prints when an administrator runs it on this cluster."""
        # A cache in the run folder: the person's own kubectl must not learn of this cluster's kinds.
        ours = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.run_folder / 'kubectl-cache'}"]
        command = [str(self.programs / KUBECTL), *ours, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=KUBECTL_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ControlPlaneFault(f"kubectl {arguments[0]} cannot be run: {error}") from None
        if done.returncode != 0:
            raise ControlPlaneFault(f"kubectl {arguments[0]} failed: {' '.join(done.stderr.split())}")
        return done.stdout

    def _controller_flags(self, kubeconfig: Path, port: int) -> list[str]:
        server = self.files.trust.server
        return [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--tls-cert-file={server.certificate}",
            f"--tls-private-key-file={server.key}",
            "--leader-elect=false",  # there is only this one
        ]
