"""A driver on a simulated Mac, for tests on virtual time."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from applecart.clock import Clock
from applecart.sim.mac import SimulatedMac
from applecart.tart.deadlines import Deadlines
from applecart.tart.driver import Tart
from applecart.tart.partials import partial_name

BINARY = "/usr/local/bin/tart"
IMAGE = "ghcr.io/acme/runner:15.5"
DIGEST = "sha256:" + "a" * 64
OTHER = "ghcr.io/acme/other:1"
OTHER_DIGEST = "sha256:" + "b" * 64
GB = 10**9


class Scene:
    def __init__(self, root: Path, clock: Clock) -> None:
        self.home = root / "tart"
        self.clock = clock
        self.root = root
        self.mac = SimulatedMac(self.home, clock, disk_bytes=10**16)
        self.tart = self.agent()

    def agent(self, deadlines: Deadlines | None = None) -> Tart:
        """Another driver on the same host, as after a restart."""
        return Tart(self.mac, BINARY, self.home, self.clock, deadlines)

    def go_wrong(self, on: str, kind: str, **more: Any) -> None:
        (self.home / "faults.json").write_text(json.dumps({"faults": [{"on": on, "kind": kind, **more}]}))

    def argvs(self, verb: str) -> list[list[str]]:
        return [list(call.argv[1:]) for call in self.mac.calls if call.tart == verb]

    def set_layers(self, **sizes: int) -> None:
        """What the image is made of. A pull takes 10 s per GB."""
        self.offer(IMAGE, DIGEST, **sizes)

    def offer(self, image: str, digest: str, **layers: int) -> None:
        def change(content: Any) -> None:
            content.tags[image] = digest
            content.layers[digest] = layers

        self.mac.registry.edit(change)

    @property
    def partial(self) -> Path:
        return self.home / "tmp" / partial_name(IMAGE)

    def is_pulled(self) -> bool:
        return (self.home / "cache" / "OCIs" / "ghcr.io" / "acme" / "runner" / DIGEST / "disk.img").exists()

    async def golden(self, name: str = "golden") -> str:
        self.set_layers(a=GB)
        await self.tart.pull(IMAGE)
        await self.tart.clone(IMAGE, name)
        return name

    async def vm(self, name: str = "vm-1") -> str:
        if "golden" not in self.mac.vms():
            await self.golden()
        await self.tart.clone("golden", name)
        return name

    def place(self, name: str) -> dict[str, Path]:
        (self.root / "logs").mkdir(exist_ok=True)
        return {"folder": self.root / f"{name}.run", "log": self.root / "logs" / f"{name}.log"}

    @contextmanager
    def timed(self) -> Iterator[list[float]]:
        """Puts the seconds that the body took into the list."""
        began = self.clock.monotonic()
        took: list[float] = []
        yield took
        took.append(self.clock.monotonic() - began)
