"""Which programs make a real Kubernetes, and where a built set of them belongs.

The pins live in the go.mod files beside this one and nowhere else: versions are read from there. A set of programs has one
folder in a cache outside the checkout, whose name changes with every pin, checksum and build flag, so an old set is never
taken for a new one. Computes names and command lines only; `build.py` carries them out.
"""

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from applecart.cli.binaries import cache_root

HERE = Path(__file__).resolve().parent
DEFAULT_KUBE = "1.36"  # the newest stable minor; 1.33 is the oldest that applecart supports
KUBES = ("1.36", "1.33")
CRDS = "cluster-api-crds"  # folder of Cluster API's CustomResourceDefinitions, beside the programs
CLUSTER_API = "sigs.k8s.io/cluster-api"
KEY_DIGITS = 12  # of the hash in a folder's name: no two sets of pins will ever share 48 bits


class BuildFailed(Exception):
    """The set cannot be had; the text is one sentence for a person."""


@dataclass(frozen=True)
class Program:
    """One program: the Go module folder that pins it, its package, and the packages that hold its version."""

    name: str
    module: str
    package: str
    pinned_by: str
    version_packages: tuple[str, ...] = ()


def programs(kube: str) -> list[Program]:
    """Everything of one set, in the order in which a person waits least for something useful."""
    if kube not in KUBES:
        raise BuildFailed(f"Kubernetes {kube} is not one of the pinned minors; KUBE can be {' or '.join(KUBES)}")
    # Without a version a server calls itself v0.0.0, and clients that look at it misbehave.
    version_packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")

    def of_kubernetes(name: str) -> Program:
        return Program(name, f"v{kube}", f"k8s.io/kubernetes/cmd/{name}", "k8s.io/kubernetes", version_packages)

    return [
        Program("etcd", "etcd", ".", "go.etcd.io/etcd/server/v3"),
        *map(of_kubernetes, ("kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler")),
        Program("cluster-api-core", "cluster-api", f"{CLUSTER_API}/core", CLUSTER_API, (f"{CLUSTER_API}/version",)),
    ]


# Has a folder of its own: a change of the checks must not mean ten minutes of building servers again.
CLIENT_GO_CHECKS = Program("client-go-checks", "clientgo", ".", "k8s.io/client-go")


def pinned_version(module: str, pinned_by: str) -> str:
    """The version that a module folder's go.mod requires of `pinned_by`, such as v1.36.3."""
    text = (HERE / module / "go.mod").read_text()
    found = re.search(rf"^(?:require)?\s*{re.escape(pinned_by)} (v\S+)", text, re.MULTILINE)
    if found is None:
        raise BuildFailed(f"{HERE / module / 'go.mod'} does not require {pinned_by}; add the pin")
    return found[1]


def kube_version(kube: str) -> str:
    return pinned_version(f"v{kube}", "k8s.io/kubernetes")


def go_needed(wanted: Iterable[Program]) -> tuple[int, ...]:
    """The newest Go that any go.mod of the programs asks for."""
    modules = {program.module for program in wanted}
    found = [re.search(r"^go ([\d.]+)$", (HERE / module / "go.mod").read_text(), re.MULTILINE) for module in modules]
    return max(tuple(map(int, match[1].split("."))) for match in found if match)


def build_arguments(program: Program) -> list[str]:
    """What follows `go` to build a program, but for where the result goes."""
    version = pinned_version(program.module, program.pinned_by)
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = [f"-X {package}.{key}={value}" for package in program.version_packages for key, value in values.items()]
    return ["build", "-mod=readonly", "-trimpath", "-ldflags", " ".join(["-s", "-w", *stamps]), program.package]


def target() -> tuple[str, str]:
    """This machine as Go names it: operating system and architecture."""
    machine = platform.machine().lower()
    return sys.platform, {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def assets_folder(env: Mapping[str, str] = os.environ) -> Path | None:
    """Where the person keeps programs that need not be built."""
    named = env.get("KUBEBUILDER_ASSETS")
    if not named:
        return None
    if not Path(named).is_dir():
        raise BuildFailed(f"KUBEBUILDER_ASSETS names {named}, which is not a folder; correct it or unset it")
    return Path(named).absolute()


def folder(kube: str = DEFAULT_KUBE, env: Mapping[str, str] = os.environ) -> Path:
    """Where the set for a minor is, or will be once it is built."""
    assets = assets_folder(env)
    key = _key(programs(kube), os.fsencode(assets) if assets else b"")
    return cache_root(env) / "kubernetes" / f"{kube_version(kube)}-{key}"


def checks_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Where client-go-checks is, or will be once it is built."""
    version = pinned_version(CLIENT_GO_CHECKS.module, CLIENT_GO_CHECKS.pinned_by)
    return cache_root(env) / "kubernetes" / f"{CLIENT_GO_CHECKS.name}-{version}-{_key([CLIENT_GO_CHECKS])}"


def _key(wanted: Iterable[Program], assets: bytes = b"") -> str:
    """This machine, and a hash of everything that decides what is built."""
    digest = hashlib.sha256()
    for program in wanted:
        digest.update(" ".join([program.name, *build_arguments(program)]).encode())
        for file in sorted((HERE / program.module).iterdir()):
            digest.update(b"\0" + file.name.encode() + b"\0" + file.read_bytes())
    if assets:
        digest.update(b"\0" + assets)
    return "-".join([*target(), digest.hexdigest()[:KEY_DIGITS]])


def missing(kube: str = DEFAULT_KUBE, env: Mapping[str, str] = os.environ) -> list[str]:
    """What the set still lacks."""
    place = folder(kube, env)
    names = [*(program.name for program in programs(kube)), CRDS]
    return [name for name in names if not (place / name).exists()]
