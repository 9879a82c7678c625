"""Builds a real Kubernetes for tests, once, into a cache outside the checkout.

`python tests/kubernetes/build.py --kube 1.36` builds what the set lacks from the Go module proxy, and the checks that are
written in Go, tells its progress on stderr, and prints the set's folder as the last line on stdout. A program appears in its
folder complete or not at all, and two runs at once build once. Programs found in KUBEBUILDER_ASSETS are linked instead of
built. A link with the minor's name leads to the set.
"""

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if not __package__:  # run as a file: Python would look beside this file only, not in the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.kubernetes.recipe import (
    CLIENT_GO_CHECKS,
    CLUSTER_API,
    CRDS,
    DEFAULT_KUBE,
    HERE,
    BuildFailed,
    Program,
    assets_folder,
    build_arguments,
    checks_folder,
    folder,
    go_needed,
    missing,
    pinned_version,
    programs,
)
from tests.kubernetes.toolchain import find_go, go_environment

PROGRESS_EVERY_S = 15  # a person who sees nothing for longer believes that it hangs


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def build_set(kube: str) -> Path:
    """Make the set complete and return its folder."""
    place = folder(kube)
    with held(place):
        take_assets(place, programs(kube))
        if lacking := missing(kube):
            build_missing(place, kube, lacking)
    link(place.parent / kube, place)  # where `applecart up --api binaries` looks
    return place


def link(name: Path, target: Path) -> None:
    """At no moment is there none, or half of one."""
    unfinished = name.with_name(f".{name.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    unfinished.symlink_to(target)
    unfinished.rename(name)


def build_checks() -> Path:
    """Make sure of the checks that are written in Go and return their folder."""
    place = checks_folder()
    with held(place):
        if not (place / CLIENT_GO_CHECKS.name).exists():
            go, origin = find_go(go_needed([CLIENT_GO_CHECKS]))
            say(f"building {CLIENT_GO_CHECKS.name} with {origin} into {place}")
            build_program(go, CLIENT_GO_CHECKS, place)
    return place


@contextmanager
def held(place: Path) -> Iterator[None]:
    """The folder exists, and no other run builds in it meanwhile."""
    place.mkdir(parents=True, exist_ok=True)
    with Path(f"{place}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run builds this set; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def take_assets(place: Path, wanted: list[Program]) -> None:
    """Link what the person already has; the folder's name depends on theirs, so it never mixes with built sets."""
    assets = assets_folder()
    if assets is None:
        return
    for program in wanted:
        if (assets / program.name).is_file():
            link(place / program.name, assets / program.name)
            say(f"{program.name}: taken from KUBEBUILDER_ASSETS ({assets / program.name})")


def build_missing(place: Path, kube: str, lacking: list[str]) -> None:
    go, origin = find_go(go_needed(programs(kube)))
    say(f"building {', '.join(lacking)} with {origin} into {place}")
    for program in programs(kube):
        if program.name in lacking:
            build_program(go, program, place)
    if CRDS in lacking:
        copy_crds(go, place)


def build_program(go: str, program: Program, place: Path) -> None:
    """Build one program; its name exists only once it is complete."""
    unfinished = place / f".{program.name}.unfinished"
    log = place / f"{program.name}.log"
    version = pinned_version(program.module, program.pinned_by)
    say(f"{program.name} {version}: building from {program.package if program.package != '.' else program.pinned_by}")
    started_s = time.monotonic()
    command = [go, *build_arguments(program)]
    command[-1:-1] = ["-o", str(unfinished)]
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, cwd=HERE / program.module, env=go_environment(), stdout=output, stderr=subprocess.STDOUT
        )
        try:
            while (code := wait_a_while(child)) is None:
                say(f"{program.name} {version}: still building, {time.monotonic() - started_s:.0f} s")
        except BaseException:
            child.kill()
            child.wait()
            raise
    if code != 0:
        lines = log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
        raise BuildFailed(f"{program.name} {version} cannot be built: {lines[-1].strip()} (all of it: {log})")
    unfinished.rename(place / program.name)
    log.unlink()
    size_mb = (place / program.name).stat().st_size / 1e6
    say(f"{program.name} {version}: built in {time.monotonic() - started_s:.0f} s, {size_mb:.0f} MB")


def wait_a_while(child: subprocess.Popen[bytes]) -> int | None:
    try:
        return child.wait(PROGRESS_EVERY_S)
    except subprocess.TimeoutExpired:
        return None


def copy_crds(go: str, place: Path) -> None:
    """Cluster API's CRDs are files of its module, which go.sum checks like the code."""
    asked = subprocess.run(
        [go, "mod", "download", "-json", CLUSTER_API],
        cwd=HERE / "cluster-api",
        env=go_environment(),
        capture_output=True,
        text=True,
    )
    if asked.returncode != 0:
        raise BuildFailed(f"the CRDs of {CLUSTER_API} cannot be had: {' '.join((asked.stderr or asked.stdout).split())}")
    bases = Path(json.loads(asked.stdout)["Dir"]) / "core" / "config" / "crd" / "bases"
    unfinished = place / f".{CRDS}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for file in sorted(bases.glob("*.yaml")):
        shutil.copyfile(file, unfinished / file.name)  # not copy(): the module cache is read-only, the cache is not
    unfinished.rename(place / CRDS)
    say(f"{CRDS}: {len(list((place / CRDS).iterdir()))} copied from {CLUSTER_API}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build a real Kubernetes for tests into a cache; prints its folder.")
    parser.add_argument("--kube", default=os.environ.get("KUBE") or DEFAULT_KUBE, help="the minor: 1.36 (default) or 1.33")
    kube = parser.parse_args(arguments).kube
    try:
        place = build_set(kube)
        build_checks()
    except BuildFailed as error:
        say(f"make kube-binaries: {error}")
        return 1
    except OSError as error:
        say(f"make kube-binaries: {error.strerror or error}: {error.filename or 'the cache folder'}")
        return 1
    except KeyboardInterrupt:
        say("make kube-binaries: stopped; what was built stays, run it again to go on")
        return 130
    print(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
