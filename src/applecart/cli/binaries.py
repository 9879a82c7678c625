"""Where the programs of a real Kubernetes are on this machine: etcd, kube-apiserver and kubectl.

A folder that the environment names wins. Else it is the newest whole set of `make kube-binaries`, which leaves a link for each
minor, such as `kubernetes/1.36`, in the cache. Nothing is built here.
"""

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

KUBECTL = "kubectl"
PROGRAMS = ("etcd", "kube-apiserver", KUBECTL)
FOLDERS = ("APPLECART_BINARIES", "KUBEBUILDER_ASSETS")
_MINOR = re.compile(r"(\d+)\.(\d+)")


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    if own := environ.get("APPLECART_CACHE"):
        return Path(own).expanduser().absolute()
    return Path(environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")).absolute() / "applecart"


def binaries_folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """None when nothing is named and nothing was built."""
    for name in FOLDERS:
        if named := environ.get(name):
            return Path(named)
    return _newest_built(cache_root(environ) / "kubernetes")


def kubectl_command(environ: Mapping[str, str] = os.environ) -> str:
    """The one on PATH, else the one beside the programs, else its name: the person may have it elsewhere."""
    folder = binaries_folder(environ)
    if shutil.which(KUBECTL, path=environ.get("PATH", "")) or folder is None or not os.access(folder / KUBECTL, os.X_OK):
        return KUBECTL
    return shlex.quote(str(folder / KUBECTL))


def _newest_built(sets: Path) -> Path | None:
    try:
        minors = {link: _MINOR.fullmatch(link.name) for link in sets.iterdir()}
    except OSError:
        return None  # there is none, or it is another user's
    whole = {
        link: (int(minor[1]), int(minor[2]))
        for link, minor in minors.items()
        if minor and all(os.path.isfile(link / name) for name in PROGRAMS)
    }
    return max(whole, key=lambda link: whole[link], default=None)
