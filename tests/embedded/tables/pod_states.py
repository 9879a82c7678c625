"""Pods in every state that a table has a word for: a spec, a status, and whether it is being deleted."""

from typing import Any

RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
EARLIER = "2026-01-02T03:04:05Z"
LATER = "2026-01-02T03:05:05Z"


def waiting(reason: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason} if reason else {}}


def ended(code: int, reason: str = "", signal: int = 0, finished_at: str = EARLIER) -> dict[str, Any]:
    return {
        "terminated": {
            "exitCode": code,
            "finishedAt": finished_at,
            **({"reason": reason} if reason else {}),
            **({"signal": signal} if signal else {}),
        }
    }


def container(name: str, state: dict[str, Any], *, ready: bool = False, restarts: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "imageID": "", "ready": ready, "restartCount": restarts, "state": state, **more}


def status(phase: str, *containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **more: Any) -> dict[str, Any]:
    return {
        "phase": phase,
        **({"containerStatuses": list(containers)} if containers else {}),
        **({"initContainerStatuses": list(init)} if init else {}),
        **more,
    }


def conditions(**values: str) -> list[dict[str, str]]:
    return [{"type": name, "status": value} for name, value in values.items()]


def spec(containers: int = 1, init: tuple[bool, ...] = (), **more: Any) -> dict[str, Any]:
    """`init` says of each init container whether it keeps running."""
    return {
        "containers": [{"name": f"c{number}", "image": "i"} for number in range(containers)],
        **(
            {
                "initContainers": [
                    {"name": f"i{number}", "image": "i", **({"restartPolicy": "Always"} if keeps_running else {})}
                    for number, keeps_running in enumerate(init)
                ]
            }
            if init
            else {}
        ),
        **more,
    }


# name -> spec, status, the word, ready, restarts without the age
STATES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str, str]] = {
    "no-status": (spec(), status("Pending"), "Pending", "0/1", "0"),
    "creating": (spec(), status("Pending", container("c0", waiting("ContainerCreating"))), "ContainerCreating", "0/1", "0"),
    "waiting-without-reason": (spec(), status("Pending", container("c0", waiting())), "Pending", "0/1", "0"),
    "running": (
        spec(2),
        status("Running", container("c0", RUNNING, ready=True), container("c1", RUNNING)),
        "Running",
        "1/2",
        "0",
    ),
    "crash-loop": (
        spec(),
        status("Running", container("c0", waiting("CrashLoopBackOff"), restarts=3, lastState=ended(1, "Error"))),
        "CrashLoopBackOff",
        "0/1",
        "3",
    ),
    "two-restarted": (
        spec(2),
        status(
            "Running",
            container("c0", RUNNING, ready=True, restarts=1, lastState=ended(1, finished_at=LATER)),
            container("c1", RUNNING, ready=True, restarts=2, lastState=ended(1, finished_at=EARLIER)),
        ),
        "Running",
        "2/2",
        "3",
    ),
    "restarts-without-date": (
        spec(),
        status("Running", container("c0", RUNNING, ready=True, restarts=4)),
        "Running",
        "1/1",
        "4",
    ),
    "succeeded": (spec(), status("Succeeded", container("c0", ended(0, "Completed"))), "Completed", "0/1", "0"),
    "failed": (spec(), status("Failed", container("c0", ended(1, "Error"))), "Error", "0/1", "0"),
    "failed-by-code": (spec(), status("Failed", container("c0", ended(7))), "ExitCode:7", "0/1", "0"),
    "failed-by-signal": (spec(), status("Failed", container("c0", ended(137, signal=9))), "Signal:9", "0/1", "0"),
    "evicted": (spec(), status("Failed", reason="Evicted", message="low on memory"), "Evicted", "0/1", "0"),
    "half-done-ready": (
        spec(2),
        status(
            "Running",
            container("c0", ended(0, "Completed")),
            container("c1", RUNNING, ready=True),
            conditions=conditions(Ready="True"),
        ),
        "Running",
        "1/2",
        "0",
    ),
    "half-done-not-ready": (
        spec(2),
        status(
            "Running",
            container("c0", ended(0, "Completed")),
            container("c1", RUNNING, ready=True),
            conditions=conditions(Ready="False"),
        ),
        "NotReady",
        "1/2",
        "0",
    ),
    "one-failed-one-completed": (
        spec(2),
        status("Running", container("c0", ended(0, "Completed")), container("c1", ended(2, "Error"))),
        "Error",
        "0/2",
        "0",
    ),
    "init-waiting": (
        spec(init=(False, False)),
        status("Pending", container("c0", waiting("PodInitializing")), init=(container("i0", waiting("PodInitializing")),)),
        "Init:0/2",
        "0/1",
        "0",
    ),
    "init-second": (
        spec(init=(False, False)),
        status("Pending", init=(container("i0", ended(0, "Completed")), container("i1", RUNNING))),
        "Init:1/2",
        "0/1",
        "0",
    ),
    "init-crash-loop": (
        spec(init=(False,)),
        status("Pending", init=(container("i0", waiting("CrashLoopBackOff"), restarts=2, lastState=ended(1)),)),
        "Init:CrashLoopBackOff",
        "0/1",
        "2",
    ),
    "init-error": (
        spec(init=(False,)),
        status("Pending", init=(container("i0", ended(1, "Error")),)),
        "Init:Error",
        "0/1",
        "0",
    ),
    "init-code": (spec(init=(False,)), status("Pending", init=(container("i0", ended(3)),)), "Init:ExitCode:3", "0/1", "0"),
    "init-signal": (
        spec(init=(False,)),
        status("Pending", init=(container("i0", ended(3, signal=15)),)),
        "Init:Signal:15",
        "0/1",
        "0",
    ),
    "init-done": (
        spec(init=(False,)),
        status(
            "Running",
            container("c0", RUNNING, ready=True, restarts=1),
            init=(container("i0", ended(0, "Completed"), restarts=5),),
        ),
        "Running",
        "1/1",
        "1",
    ),
    "sidecar-ready": (
        spec(init=(True,)),
        status(
            "Running",
            container("c0", RUNNING, ready=True),
            init=(container("i0", RUNNING, ready=True, restarts=2, started=True, lastState=ended(1)),),
        ),
        "Running",
        "2/2",
        "2",
    ),
    "sidecar-starting": (
        spec(init=(True, False)),
        status("Pending", init=(container("i0", RUNNING, started=False), container("i1", waiting("PodInitializing")))),
        "Init:0/2",
        "0/2",
        "0",
    ),
    "sidecar-fails-after-start": (
        spec(init=(True,)),
        status(
            "Running",
            container("c0", RUNNING, ready=True),
            init=(container("i0", waiting("CrashLoopBackOff"), restarts=1, started=False),),
            conditions=conditions(Initialized="True"),
        ),
        "Init:CrashLoopBackOff",
        "1/2",
        "1",
    ),
    "gated": (
        spec(),
        status("Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
        "SchedulingGated",
        "0/1",
        "0",
    ),
    "with-addresses": (
        spec(nodeName="mac-1"),
        status("Running", podIP="10.0.0.1", podIPs=[{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]),
        "Running",
        "0/1",
        "0",
    ),
    "nominated": (spec(), status("Pending", nominatedNodeName="mac-2"), "Pending", "0/1", "0"),
    "with-readiness-gates": (
        spec(readinessGates=[{"conditionType": "example.com/a"}, {"conditionType": "example.com/b"}]),
        status(
            "Running", conditions=[{"type": "example.com/a", "status": "True"}, {"type": "example.com/c", "status": "True"}]
        ),
        "Running",
        "0/1",
        "0",
    ),
}
# On a node, with a deletion under way: name -> status, the word
DELETED: dict[str, tuple[dict[str, Any], str]] = {
    "deleted-running": (status("Running", container("c0", RUNNING, ready=True)), "Terminating"),
    "deleted-crashing": (status("Running", container("c0", waiting("CrashLoopBackOff"))), "Terminating"),
    "deleted-node-lost": (status("Running", reason="NodeLost"), "Unknown"),
    "deleted-succeeded": (status("Succeeded", container("c0", ended(0, "Completed"))), "Completed"),
    "deleted-failed": (status("Failed", container("c0", ended(1, "Error"))), "Error"),
}
