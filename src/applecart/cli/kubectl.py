"""Which kubectl a person on this machine would run, for the lines that commands print to try."""

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

KUBECTL = "kubectl"
FOLDERS = ("APPLECART_BINARIES", "KUBEBUILDER_ASSETS")  # where `make kube-binaries` and others put one


def kubectl_command(environ: Mapping[str, str] | None = None) -> str:
    """The one on PATH, else one that was built, else its name: the person may have it elsewhere."""
    environ = os.environ if environ is None else environ
    if shutil.which(KUBECTL, path=environ.get("PATH", "")):
        return KUBECTL
    for name in FOLDERS:
        folder = environ.get(name)
        if folder and os.access(Path(folder) / KUBECTL, os.X_OK):
            return shlex.quote(str(Path(folder) / KUBECTL))
    return KUBECTL
