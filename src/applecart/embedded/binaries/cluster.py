"""A real Kubernetes from programs on disk: `--api binaries`, and the cluster that tests run on.

Starts etcd and kube-apiserver from a folder of programs, on free loopback ports, with everything they write in one run
folder. Ends exactly the processes it started, the last one first, and leaves none behind when a start fails half-way. Keeps
no data of its own: a start in the same run folder finds the same cluster.

Everything lies in one run folder that only its owner may enter (I9) and that can be removed.
"""

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from applecart.clock import Clock, SystemClock
from applecart.embedded.auth.user import MASTERS
from applecart.embedded.binaries import flags
from applecart.embedded.binaries.child import Child, client_context, refuse_ended, wait_ready
from applecart.embedded.binaries.flags import Trust
from applecart.embedded.trust.control_plane_files import ADMIN_USER, LOOPBACK, SERVER_NAMES, ControlPlaneFiles
from applecart.embedded.trust.pki import (
    Authority,
    PairFiles,
    load_or_create_authority,
    pair_files,
    write_kubeconfig,
    write_pair,
)
from applecart.embedded.trust.private_file import make_private_folder

ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class ClusterFiles:
    """What the programs of one cluster read, and where they write."""

    folder: Path
    authority: Authority
    trust: Trust

    def log(self, program: str) -> Path:
        return self.folder / "logs" / f"{program}.log"

    def write_client(self, name: str, user: str, groups: tuple[str, ...], url: str, now: datetime) -> "ClientFiles":
        """Issue a client certificate and write it both as a pair of files and as a kubeconfig."""
        pair = self.authority.issue_client(user, groups, now)
        kubeconfig = self.folder / f"{name}.kubeconfig"
        write_kubeconfig(kubeconfig, url, self.authority.certificate_pem, pair)
        return ClientFiles(write_pair(self.folder / "pki", name, pair), kubeconfig)


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """The credentials of one user of the cluster."""

    files: PairFiles
    kubeconfig: Path


def prepare_files(folder: Path, now: datetime) -> ClusterFiles:
    """Make or complete the run folder."""
    files = ControlPlaneFiles(folder)
    pki = files.pki
    for needed in (folder, pki, folder / "logs"):
        make_private_folder(needed)
    is_in_use = (folder / "etcd").exists()
    authority = files.authority(now, is_in_use=is_in_use)
    # An authority of its own: a certificate that opens the API must not open the database beneath it.
    etcd_authority = load_or_create_authority(pki, "etcd-ca", now)
    trust = Trust(
        authority=files.authority_files,
        server=files.issue_server(authority, SERVER_NAMES, now),
        token_keys=files.token_keys(is_in_use=is_in_use),
        kubelet_client=files.issue_kubelet_client(authority, now),
        etcd_authority=pair_files(pki, "etcd-ca"),
        etcd_server=write_pair(pki, "etcd-server", etcd_authority.issue_server([LOOPBACK], now)),
        etcd_client=write_pair(pki, "etcd-client", etcd_authority.issue_client("kube-apiserver", [], now)),
    )
    return ClusterFiles(folder, authority, trust)


ETCD = "etcd"
API_SERVER = "kube-apiserver"

# The API server would wait a minute for open watches. Only etcd keeps data, closes it in well under a second, and takes
# a kill as it takes a power cut.
STOP_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose."""

    durable: bool = True  # False only where the data may be lost: etcd then does not wait for the disk
    with_controller_manager: bool = False  # one will be started, so Pods may rely on their ServiceAccount
    ready_timeout_s: float = 60.0  # a start takes 4 s; ten times that on a machine that compiles something


class RealCluster:
    """A cluster of processes; use as an async context manager."""

    def __init__(self, programs: Path, run_folder: Path, options: Options | None = None, clock: Clock | None = None) -> None:
        self.programs = programs
        self.run_folder = run_folder.absolute()
        self._options = options or Options()
        self.clock = clock or SystemClock()
        self._children: dict[str, Child] = {}
        self._ports = flags.Ports(*free_ports(len(fields(flags.Ports))))
        self.url = flags.loopback_url(self._ports.api)
        self.etcd_url = flags.loopback_url(self._ports.etcd_client)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start etcd and the API server and return when the API answers."""
        self._files = prepare_files(self.run_folder, self.clock.now())
        self._admin = self.issue_client(ADMIN, ADMIN_USER, MASTERS)
        try:
            await self._start_etcd()
            await self.start_api_server()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        for name in reversed(list(self._children)):
            await self.stop_program(name)

    @property
    def kubeconfig(self) -> Path:
        """Of an administrator."""
        return self._admin.kubeconfig

    @property
    def admin(self) -> PairFiles:
        return self._admin.files

    @property
    def ca_pem(self) -> bytes:
        return self._files.authority.certificate_pem

    @property
    def files(self) -> ClusterFiles:
        """Certificates and folders, such as the certificate that the API server shows to kubelets."""
        return self._files

    @property
    def pids(self) -> dict[str, int]:
        """The processes that run, by program."""
        return {name: child.pid for name, child in self._children.items() if child.exit_code is None}

    def issue_client(self, name: str, user: str, *groups: str) -> ClientFiles:
        """Credentials for a user of these groups, as files under this name in the run folder."""
        return self._files.write_client(name, user, groups, self.url, self.clock.now())

    def check(self) -> None:
        """Raise when a program ended by itself; the sentence names it."""
        for child in self._children.values():
            refuse_ended(child)

    async def start_program(
        self, program: str, arguments: list[str], probes: tuple[str, ...], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start a program that does not run yet and wait until it answers; one that does not answer is stopped again."""
        if program in self.pids:
            return
        child = Child.start(self.programs / program, arguments, self._files.log(program), environment)
        self._children[program] = child
        trust = self._files.trust
        authority, client = (trust.etcd_authority, trust.etcd_client) if program == ETCD else (trust.authority, self.admin)
        context = client_context(authority.certificate.read_bytes(), client)
        try:
            await wait_ready(child, probes, context, self._options.ready_timeout_s)
        except BaseException:
            await self.stop_program(program)
            raise

    async def stop_program(self, name: str, grace_s: float = STOP_GRACE_S) -> None:
        """End one program, as in an outage; `start_api_server` and its like bring it back at the same address."""
        if child := self._children.pop(name, None):
            await child.stop(grace_s)

    async def start_api_server(self) -> None:
        of_api = flags.api_server_flags(
            self.run_folder,
            self._files.trust,
            self._ports,
            with_controller_manager=self._options.with_controller_manager,
        )
        # The default namespace is made after the server calls itself ready.
        probes = (f"{self.url}/readyz", f"{self.url}/api/v1/namespaces/default")
        await self.start_program(API_SERVER, of_api, probes)

    async def _start_etcd(self) -> None:
        of_etcd = flags.etcd_flags(self._files.folder / "etcd", self._files.trust, self._ports, durable=self._options.durable)
        await self.start_program(ETCD, of_etcd, (f"{self.etcd_url}/health",))


def free_ports(count: int) -> list[int]:
    """Free loopback ports; all are held until all are known, so no two are the same."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]
