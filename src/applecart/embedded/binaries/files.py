"""The run folder of a supervised cluster: certificates, kubeconfigs, data and logs in one place that can be removed.

Authorities and token keys are kept from an earlier start in the same folder; everything they sign is made anew. Only the
owner may enter the folder (I9).
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from applecart.embedded.binaries.flags import LOOPBACK, Trust
from applecart.embedded.trust.kubeconfig_file import write_kubeconfig
from applecart.embedded.trust.pki import (
    Authority,
    PairFiles,
    load_or_create_authority,
    load_or_create_token_keys,
    pair_files,
    write_pair,
)
from applecart.embedded.trust.private_file import make_private_folder

ADMIN = "admin"
MASTERS = "system:masters"  # the group that Kubernetes lets do everything
SERVER_NAMES = (LOOPBACK, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class ClusterFiles:
    """What the programs of one cluster read, and where they write."""

    folder: Path
    authority: Authority
    trust: Trust

    @property
    def etcd_data(self) -> Path:
        return self.folder / "etcd"

    @property
    def webhook_certificates(self) -> Path:
        return self.folder / "webhook"

    def log(self, program: str) -> Path:
        return self.folder / "logs" / f"{program}.log"

    def write_client(self, name: str, user: str, groups: tuple[str, ...], url: str, now: datetime) -> "Client":
        """Issue a client certificate and write it both as a pair of files and as a kubeconfig."""
        pair = self.authority.issue_client(user, groups, now)
        kubeconfig = self.folder / f"{name}.kubeconfig"
        write_kubeconfig(kubeconfig, url, self.authority.certificate_pem, pair)
        return Client(write_pair(self.folder / "pki", name, pair), kubeconfig)


@dataclass(frozen=True, slots=True)
class Client:
    """The credentials of one user of the cluster."""

    files: PairFiles
    kubeconfig: Path


def prepare_files(folder: Path, now: datetime) -> ClusterFiles:
    """Make or complete the run folder."""
    pki = folder / "pki"
    for needed in (folder, pki, folder / "logs"):
        make_private_folder(needed)
    authority = load_or_create_authority(pki, "ca", now)
    # An authority of its own: a certificate that opens the API must not open the database beneath it.
    etcd_authority = load_or_create_authority(pki, "etcd-ca", now)
    trust = Trust(
        authority=pair_files(pki, "ca"),
        server=write_pair(pki, "server", authority.issue_server(SERVER_NAMES, now)),
        token_keys=load_or_create_token_keys(pki, "service-account"),
        kubelet_client=write_pair(
            pki, "kubelet-client", authority.issue_client("kube-apiserver-kubelet-client", [MASTERS], now)
        ),
        etcd_authority=pair_files(pki, "etcd-ca"),
        etcd_server=write_pair(pki, "etcd-server", etcd_authority.issue_server([LOOPBACK], now)),
        etcd_client=write_pair(pki, "etcd-client", etcd_authority.issue_client("kube-apiserver", [], now)),
    )
    # Cluster API's manager wants the certificate of its webhook server under these names.
    write_pair(folder / "webhook", "tls", authority.issue_server(SERVER_NAMES, now))
    return ClusterFiles(folder, authority, trust)
