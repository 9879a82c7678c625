"""What a Pod has when its author says nothing about it.

Runs on every Pod that is decoded, so it must be cheap and must change nothing in a Pod that already went through it.
"""

import re
from typing import Any

from applecart.embedded.kinds.strategy import Document
from applecart.embedded.remembered import remembered

CACHED_REFERENCES = 1024  # a fleet runs a handful of images

_WORD = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"(?:{_HOST}(?:\.{_HOST})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_TAG = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_reference = re.compile(rf"(?:{_DOMAIN}/)?{_WORD}(?:/{_WORD})*(?::({_TAG}))?(?:@({_DIGEST}))?").fullmatch
GRACE_PERIOD_S = 30
FILE_MODE = 0o644
TOKEN_EXPIRATION_S = 3600
TERMINATION_LOG = "/dev/termination-log"
_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")


@remembered(CACHED_REFERENCES)
def pull_policy_of(image: str) -> str:
    """`Always` for the tag `latest`, said or meant."""
    found = _reference(image)
    if found is None:
        return "IfNotPresent"
    tag, digest = found[1], found[2]
    return "Always" if tag == "latest" or (not tag and not digest) else "IfNotPresent"


def default_pod(pod: Document) -> None:
    spec = pod.setdefault("spec", {})
    is_on_host_network = spec.get("hostNetwork") is True
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            _default_container(container, is_on_host_network)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    # `serviceAccount` is the old name of `serviceAccountName`: both are always there, or none.
    if name := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = name
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    grace_s = spec.get("terminationGracePeriodSeconds")
    if grace_s is None:
        spec["terminationGracePeriodSeconds"] = GRACE_PERIOD_S
    elif grace_s < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    # `podIP` is the first of `podIPs`; a reporter that knows only one of them is believed.
    status = pod.setdefault("status", {})
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]


def _default_container(container: dict[str, Any], is_on_host_network: bool) -> None:
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = TERMINATION_LOG
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy_of(container.get("image") or "")
    resources = container.get("resources") or {}
    for resource, amount in (resources.get("limits") or {}).items():  # who asks for no amount asks for the limit
        resources.setdefault("requests", {}).setdefault(resource, amount)
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source is not None and source.get("fieldRef") is not None:
            source["fieldRef"].setdefault("apiVersion", "v1")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if is_on_host_network and not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            _default_probe(container[probe])
    lifecycle = container.get("lifecycle") or {}
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            _default_handler(lifecycle[hook])


def _default_probe(probe: dict[str, Any]) -> None:
    _default_handler(probe)
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(name):
            probe[name] = value


def _default_handler(handler: dict[str, Any]) -> None:
    if (http := handler.get("httpGet")) is not None:
        if not http.get("path"):
            http["path"] = "/"
        if not http.get("scheme"):
            http["scheme"] = "HTTP"
    grpc = handler.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_volume(volume: dict[str, Any]) -> None:
    if len(volume) == 1 and "name" in volume:
        volume["emptyDir"] = {}
        return
    for source_name in _WITH_MODE:
        source = volume.get(source_name)
        if source is None:
            continue
        if source.get("defaultMode") is None:
            source["defaultMode"] = FILE_MODE
        _default_items(source if source_name == "downwardAPI" else None)
        for projection in source.get("sources") or () if source_name == "projected" else ():
            _default_items(projection.get("downwardAPI"))
            token = projection.get("serviceAccountToken")
            if token is not None and token.get("expirationSeconds") is None:
                token["expirationSeconds"] = TOKEN_EXPIRATION_S
    path = volume.get("hostPath")
    if path is not None and path.get("type") is None:
        path["type"] = ""
    ephemeral = volume.get("ephemeral")
    if ephemeral is not None and ephemeral.get("volumeClaimTemplate") is not None:
        template = ephemeral["volumeClaimTemplate"]
        template.setdefault("metadata", {})
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _default_items(downward: dict[str, Any] | None) -> None:
    for item in (downward or {}).get("items") or ():
        if item.get("fieldRef") is not None:
            item["fieldRef"].setdefault("apiVersion", "v1")
