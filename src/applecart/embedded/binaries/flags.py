"""The command lines of etcd and the API server.

Plain values in, lists of flags out; `cluster.py` starts the programs with them. Everything listens on loopback and asks for
a certificate: on a shared machine another user must not be able to read or write the cluster's data. Secrets are named by
their files, never by value, because every user of a machine can read a command line.
"""

from dataclasses import dataclass
from pathlib import Path

from applecart.embedded.trust.control_plane_files import LOOPBACK
from applecart.embedded.trust.pki import PairFiles

SERVICE_ADDRESSES = "10.96.0.0/16"  # the range kubeadm uses; nothing routes it, Services only need addresses
TOKEN_ISSUER = "https://kubernetes.default.svc"  # the issuer kubeadm uses, so tokens look alike everywhere


@dataclass(frozen=True, slots=True)
class Trust:
    """Where the certificates and keys of a cluster lie."""

    authority: PairFiles
    server: PairFiles
    token_keys: PairFiles
    kubelet_client: PairFiles
    etcd_authority: PairFiles
    etcd_server: PairFiles
    etcd_client: PairFiles


@dataclass(frozen=True, slots=True)
class Ports:
    """Where each program listens on loopback."""

    api: int
    etcd_client: int
    etcd_peer: int


def loopback_url(port: int) -> str:
    return f"https://{LOOPBACK}:{port}"


def etcd_flags(data: Path, trust: Trust, ports: Ports, *, durable: bool) -> list[str]:
    client, peer = loopback_url(ports.etcd_client), loopback_url(ports.etcd_peer)
    secured = [
        f"--{prefix}{flag}"
        for prefix in ("", "peer-")
        for flag in (
            f"cert-file={trust.etcd_server.certificate}",
            f"key-file={trust.etcd_server.key}",
            f"trusted-ca-file={trust.etcd_authority.certificate}",
            "client-cert-auth",
        )
    ]
    return [
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        *secured,
        *([] if durable else ["--unsafe-no-fsync"]),
    ]


def api_server_flags(run_folder: Path, trust: Trust, ports: Ports, *, with_controller_manager: bool) -> list[str]:
    return [
        f"--etcd-servers={loopback_url(ports.etcd_client)}",
        f"--etcd-cafile={trust.etcd_authority.certificate}",
        f"--etcd-certfile={trust.etcd_client.certificate}",
        f"--etcd-keyfile={trust.etcd_client.key}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={ports.api}",
        f"--cert-dir={run_folder}",
        f"--tls-cert-file={trust.server.certificate}",
        f"--tls-private-key-file={trust.server.key}",
        f"--client-ca-file={trust.authority.certificate}",
        f"--service-account-issuer={TOKEN_ISSUER}",
        f"--service-account-key-file={trust.token_keys.certificate}",
        f"--service-account-signing-key-file={trust.token_keys.key}",
        f"--service-cluster-ip-range={SERVICE_ADDRESSES}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        # The plugin refuses Pods until a controller-manager has made their ServiceAccount.
        *([] if with_controller_manager else ["--disable-admission-plugins=ServiceAccount"]),
        f"--kubelet-client-certificate={trust.kubelet_client.certificate}",
        f"--kubelet-client-key={trust.kubelet_client.key}",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        # A loopback address is refused in Endpoints, so the reconciler of the kubernetes Service could only complain.
        "--endpoint-reconciler-type=none",
    ]
