"""The files by which a control plane is known and knows itself: the same list for our own server and for a real one.

Authority and token keys are kept from an earlier start in the same folder, because kubeconfigs and tokens were handed out;
everything they sign is made anew. Only its owner may read any of it (I9).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from applecart.embedded.auth.user import MASTERS
from applecart.embedded.trust.pki import (
    Authority,
    PairFiles,
    load_or_create_authority,
    load_or_create_token_keys,
    pair_files,
    write_kubeconfig,
    write_pair,
)
from applecart.observe.logs import logger

LOOPBACK = "127.0.0.1"
SERVER_NAMES = ("localhost", LOOPBACK, "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADMIN_USER = "kubernetes-admin"
KUBELET_CLIENT = "kube-apiserver-kubelet-client"  # as whom the API server comes to node agents
KEPT = ("pki/ca.crt", "pki/ca.key", "pki/service-accounts.pub", "pki/service-accounts.key")

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class ControlPlaneFiles:
    folder: Path

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def admin_kubeconfig(self) -> Path:
        return self.folder / "admin.kubeconfig"

    @property
    def authority_files(self) -> PairFiles:
        return pair_files(self.pki, "ca")

    @property
    def server_files(self) -> PairFiles:
        return pair_files(self.pki, "server")

    def authority(self, now: datetime, *, is_in_use: bool = False) -> Authority:
        """`is_in_use`: something was stored here, so an authority was there as well."""
        if is_in_use and not self.authority_files.key.exists() and not self.authority_files.certificate.exists():
            log.warning(
                "the authority beside the database is missing, a new one is made: kubeconfigs handed out before fail; "
                "to have them work again, stop the server and put pki/ back",
                folder=str(self.folder),
            )
        return load_or_create_authority(self.pki, "ca", now)

    def token_keys(self, *, is_in_use: bool = False) -> PairFiles:
        if is_in_use and not (self.pki / "service-accounts.key").exists():
            log.warning(
                "the key of tokens is missing, a new one is made: tokens handed out before fail", folder=str(self.folder)
            )
        return load_or_create_token_keys(self.pki, "service-accounts")

    def issue_server(self, authority: Authority, names: Iterable[str], now: datetime) -> PairFiles:
        return write_pair(self.pki, "server", authority.issue_server(names, now))

    def issue_kubelet_client(self, authority: Authority, now: datetime) -> PairFiles:
        """What the server shows to node agents."""
        return write_pair(self.pki, "kubelet-client", authority.issue_client(KUBELET_CLIENT, (MASTERS,), now))

    def write_admin(self, authority: Authority, url: str, now: datetime) -> None:
        client = authority.issue_client(ADMIN_USER, (MASTERS,), now)
        write_kubeconfig(self.admin_kubeconfig, url, authority.certificate_pem, client)
