"""A simulated image registry: which digest a tag leads to, how large an image is, and whom it turns away.

One JSON file, `sim/registry.json` or wherever APPLECART_SIM_REGISTRY points, so that several hosts share one registry. A
reference that nobody wrote down leads to a digest made from its name, so that any image works.
"""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

import msgspec

from applecart.sim.tart import refusals
from applecart.sim.tart.json_file import load, save
from applecart.sim.tart.locks import Lock
from applecart.sim.tart.remote_names import RemoteName, remote_name

PATH_VARIABLE = "APPLECART_SIM_REGISTRY"
IMAGE_BYTES = 40 * 10**9  # a macOS image with Xcode
LAYERS = 16  # real ones have one per 512 MB; fewer show the same


class Content(msgspec.Struct):
    """What is in the registry."""

    tags: dict[str, str] = {}  # `repository:tag` to digest
    sizes: dict[str, int] = {}  # digest to bytes
    layers: dict[str, dict[str, int]] = {}  # digest to layers and their bytes, when images share some
    missing: list[str] = []  # globs of references that are not there
    denied: list[str] = []  # globs of references that nobody gets
    private: list[str] = []  # globs of references that need a login, any
    busy: list[str] = []  # globs of references that answer 429
    image_bytes: int = IMAGE_BYTES  # of whatever is not in `sizes`


class Registry:
    def __init__(self, sim: Path, env: Mapping[str, str]) -> None:
        self._has_login = bool(env.get("TART_REGISTRY_USERNAME") and env.get("TART_REGISTRY_PASSWORD"))
        self._login_host = env.get("TART_REGISTRY_HOSTNAME", "")
        self._path = Path(env[PATH_VARIABLE]) if env.get(PATH_VARIABLE) else sim / "registry.json"

    def content(self) -> Content:
        return load(self._path, Content) or Content()

    def resolve(self, name: RemoteName, doing: str = "pulling manifest") -> str:
        """The digest, or what the registry answers instead."""
        content = self.content()
        is_let_in = self._has_login and self._login_host in ("", name.host)
        answers = (
            (content.missing, 404, "MANIFEST_UNKNOWN"),
            (content.denied, 401, "UNAUTHORIZED"),
            ([] if is_let_in else content.private, 401, "UNAUTHORIZED"),
            (content.busy, 429, "TOOMANYREQUESTS"),
        )
        for globs, status, word in answers:
            if any(fnmatchcase(str(name), glob) or fnmatchcase(name.repository, glob) for glob in globs):
                raise refusals.registry_answered(doing, status, word)
        return name.reference if name.is_digest else content.tags.get(str(name)) or made_up_digest(str(name))

    def layers(self, digest: str) -> dict[str, int]:
        content = self.content()
        if digest in content.layers:
            return content.layers[digest]
        size = content.sizes.get(digest, content.image_bytes)
        return {f"{digest[7:23]}-{n}": size * (n + 1) // LAYERS - size * n // LAYERS for n in range(LAYERS)}

    def move(self, name: str, digest: str = "", size_bytes: int | None = None) -> str:
        """Let a tag lead elsewhere; without a digest to one that was never seen."""
        remote = remote_name(name)
        if remote is None or remote.is_digest:
            raise refusals.bad_remote_name(name)
        digest = digest or made_up_digest(f"{remote} after {self.resolve(remote)}")

        def moved(content: Content) -> None:
            content.tags[str(remote)] = digest
            if size_bytes is not None:
                content.sizes[digest] = size_bytes

        self.edit(moved)
        return digest

    def edit(self, change: Callable[[Content], None]) -> None:
        """One at a time, over all hosts that share the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with Lock(self._path.parent) as lock:
            lock.wait()
            content = self.content()
            change(content)
            save(self._path, content)


def made_up_digest(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()
