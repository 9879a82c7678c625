"""What `applecart up` was told, and which API follows from it. Starts nothing."""

import tempfile
from pathlib import Path

import msgspec

from applecart.cli.binaries import PROGRAMS
from applecart.embedded.server.data_folder import DataFolder
from applecart.errors import BadInput

EMBEDDED, BINARIES, EXTERNAL = "embedded", "binaries", "external"
MACS = 3  # enough to see Pods spread over hosts and wait for one
MOST_MACS = 50  # each is a whole agent in this process; a fleet that large is for a kube-apiserver and real hosts


class Options(msgspec.Struct, frozen=True):
    data: Path
    api: str | None = None  # None: nobody said
    binaries: Path | None = None
    kubeconfig: str | None = None
    context: str | None = None
    port: int = 0
    api_port: int | None = None  # None: that of the last start
    controllers: bool | None = None  # None: where the API has none of its own
    macs: int | None = None  # None: as many as make sense


def chosen_api(options: Options) -> str:
    """Embedded unless something else is named. A named thing that is not there is an error, not a reason to do another."""
    names_a_cluster = bool(options.kubeconfig or options.context)
    chosen = options.api or (EXTERNAL if names_a_cluster else EMBEDDED)
    if names_a_cluster and chosen != EXTERNAL:
        raise BadInput(f"--kubeconfig and --context name a cluster, which --api {chosen} does not use; leave one of them out")
    if chosen == BINARIES:
        refuse_incomplete(options.binaries)
    return chosen


def mac_count(chosen: str, options: Options) -> int:
    """How many simulated Macs. None by default where nobody would place a Pod on them; never in somebody's cluster."""
    if chosen == EXTERNAL:
        if options.macs:
            raise BadInput("--macs simulates Macs in an API that is started here, never in a cluster you name; leave it out")
        return 0
    count = options.macs
    if count is None:
        count = 0 if options.controllers is False else MACS
    if count and set(":,") & set(str(options.data.absolute())):
        raise BadInput(
            f"--data {options.data}: Tart cannot share a folder with guests whose path holds ':' or ','; "
            "name another one, or give --macs 0"
        )
    return count


def frees_stuck_pods(chosen: str, options: Options) -> bool:
    """Wherever our controllers may run, also beside Kubernetes' own, which know nothing of our finalizer."""
    return options.controllers is not False and (chosen != EXTERNAL or bool(options.controllers))


def refuse_incomplete(binaries: Path | None) -> None:
    if binaries is None:
        raise BadInput("--api binaries needs a folder with kube-apiserver and etcd: give --binaries, or run make kube-binaries")
    missing = [name for name in PROGRAMS if not (binaries / name).is_file()]
    if missing:
        raise BadInput(f"{binaries} has no {' and no '.join(missing)}; name another folder or run make kube-binaries")


def refuse_running(data: Path) -> None:
    """Before any port of the one that runs is in the way: another port would not help."""
    process = DataFolder(data / "api").holder()
    if process is not None:
        raise BadInput(
            f"applecart already runs on {data} (process {process}); use that one, end it with: kill {process}, or name another "
            "folder with --data"
        )


def refuse_unwritable(data: Path) -> None:
    """A folder that cannot be written is told before anything is started in it."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data):
            pass
    except OSError as error:
        raise BadInput(f"--data {data} cannot be written ({error.strerror}); name another folder") from None
