"""A Mac with a disk for caches, and the part of an agent that looks after it, which can die and come again.

`guest` does what a runner image does at the end of a job; masters, heads and faults are put on the disk as they would come
about.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from applecart.api import labels
from applecart.api.meta import ObjectMeta
from applecart.api.pods import FAILED, SUCCEEDED, Pod
from applecart.clock import Clock
from applecart.kubelet.cache.digest import inventory
from applecart.kubelet.cache.volumes import CacheVolumes
from applecart.kubelet.entry import Exit, JournalEntry, Stage
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.metrics import CacheMetrics
from applecart.observe.metrics import Metrics
from applecart.sim.cache_tools import Image, Remote, read_image, write_image
from applecart.sim.mac import SimulatedMac
from applecart.sim.tart.faults import Fault, Faults
from applecart.sim.tart.json_file import save
from applecart.tart.files import Files
from applecart.tart.mac import Mac
from tests.virtual_time import elapse

GIB = 1 << 30
CAP_GIB = 20
CLEAN = Exit(SUCCEEDED, "", "", "Completed", 0)
FAILED_JOB = Exit(FAILED, "", "the guest reported exit code 1", "Error", 1)
ACCOUNT = "42"
URL = "https://objects.example.com/head?signature=not-for-anybodys-eyes"


def binaries(*names: str) -> dict[str, int]:
    return {f"tuist/Binaries/{name}": 10 for name in names}


def cas(*names: str) -> dict[str, int]:
    return {f"CompilationCache.noindex/v1/{name}": 5 for name in names}


@dataclass
class Host:
    folder: Path
    clock: Clock
    mac: SimulatedMac
    cap_gib: int = CAP_GIB
    cas_gib: int = 0
    entries: dict[str, JournalEntry] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    skipped: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.folder / "cache-disk"

    def agent(self, mac: Mac | None = None, files: Files | None = None) -> CacheVolumes:
        """A new one on the same disk."""
        self.metrics = Metrics()
        return CacheVolumes(
            self.root, mac or self.mac, files or Files(), self.clock, CacheMetrics(self.metrics), cap_gib=self.cap_gib,
            cas_gib=self.cas_gib, entries=lambda: self.entries.values(),
        )  # fmt: skip

    def entry(self, name: str = "job-1") -> JournalEntry:
        """A Pod in the journal, with its share staged."""
        entry = JournalEntry(f"uid-{name}", "ci", name, f"ci-{name}", Stage.BOOTING, self.clock.now())
        self.entries[entry.uid] = entry
        if not (self.share(entry).status_folder).exists():
            self.share(entry).stage({}, "mac-1")
        return entry

    def share(self, entry: JournalEntry) -> GuestShare:
        return GuestShare(self.folder / "userdata", entry.vm, Files())

    def status(self, entry: JournalEntry) -> Path:
        return self.share(entry).status_folder

    def told(self, entry: JournalEntry, name: str) -> str | None:
        path = self.status(entry) / name
        return path.read_text() if path.exists() else None

    def branch_image(self, entry: JournalEntry) -> Path:
        return self.root / "branches" / entry.uid / "cache.sparseimage"

    def image(self, path: Path) -> dict[str, int] | None:
        found = read_image(path) if path.exists() else None
        return None if found is None else found.files

    def master(self, account: str = ACCOUNT) -> Path:
        return self.root / account / "tuist-cache" / "master.sparseimage"

    def generation(self, account: str = ACCOUNT) -> str:
        path = self.master(account).with_name("master.generation")
        return path.read_text() if path.exists() else ""

    def put_master(self, files: dict[str, int], generation: int, account: str = ACCOUNT, size_bytes: int = GIB) -> None:
        self.master(account).parent.mkdir(parents=True, exist_ok=True)
        write_image(self.master(account), Image(files, size_bytes))
        self.master(account).with_name("master.generation").write_text(str(generation))

    def put_head(
        self, entry: JournalEntry, files: dict[str, int], generation: int, digest: str = "", **remote: object
    ) -> Remote:
        """What dispatch tells the guest, and the object behind it."""
        size_bytes = remote.pop("size_bytes", GIB)
        found = Remote(Image(files, size_bytes), **remote)  # type: ignore[arg-type]
        self.mac.cache.remotes[URL] = found
        head = {"generation": generation, "digest": digest or self.digest(files), "download_url": URL}
        (self.status(entry) / "volume-head.json").write_text(json.dumps(head))
        return found

    def digest(self, files: dict[str, int]) -> str:
        folder = self.folder / "measured"
        shutil.rmtree(folder, ignore_errors=True)
        for name, size_bytes in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"x" * size_bytes)
        return inventory(folder).digest

    def fault(self, *faults: Fault) -> None:
        save(self.mac.home / "faults.json", Faults(list(faults)))

    def guest_ends(
        self, entry: JournalEntry, files: dict[str, int] | None = None, result: str = "accepted 7", dirty: str = "1"
    ) -> None:
        """The job is over: the cache was used, measured and published."""
        if files is not None:
            write_image(self.branch_image(entry), Image(files, GIB))
        for name, text in (("cache-dirty", dirty), ("cache-promote-result", result)):
            if text:
                (self.status(entry) / name).write_text(text)

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"tart_kubelet_cache_volume_{name}", labels) or 0.0

    async def a_job(self, volumes: CacheVolumes, name: str = "job-1", account: str = ACCOUNT, **more: str) -> JournalEntry:
        """A VM that was started and whose job is committed and has its cache."""
        entry = self.entry(name)
        await volumes.attach(entry, self.share(entry), self.skipped.append)
        volumes.see(pod(name, account, **more), entry, self.share(entry))
        await elapse(5)
        return entry


def pod(name: str = "job-1", account: str = ACCOUNT, untrusted: str = "") -> Pod:
    found = {labels.RUNNER_ACCOUNT: account} if account else {}
    if untrusted:
        found[labels.RUNNER_CACHE_UNTRUSTED] = untrusted
    return Pod(metadata=ObjectMeta(name=name, namespace="ci", uid=f"uid-{name}", labels=found))


@asynccontextmanager
async def host(folder: Path, clock: Clock, *, cas_gib: int = 0) -> AsyncIterator[Host]:
    mac = SimulatedMac(folder / "tart", clock)
    found = Host(folder, clock, mac, cas_gib=cas_gib)
    mac.cache.mount(found.root)
    try:
        yield found
    finally:
        with suppress(Exception):
            await mac.reboot()
        await asyncio.sleep(0)
