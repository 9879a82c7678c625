"""What a new Pod gets from other objects: priority, runtime class, ServiceAccount."""

from applecart.embedded.kinds.pod_admission import PODS, admit_priority, admit_runtime_class, tolerate_lost_node
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import forbidden
from applecart.embedded.server.core import Core

SERVICE_ACCOUNTS = "serviceaccounts"
DEFAULT_ACCOUNT = "default"


def admit_pod(core: Core, pod: Document) -> None:
    """Fill in what follows from other objects; refuse what names one that is not there."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    if core.settings.needs_service_accounts:
        _admit_service_account(core, pod)
    admit_priority(pod, core.reader)
    admit_runtime_class(pod, core.reader)
    tolerate_lost_node(spec)


def _admit_service_account(core: Core, pod: Document) -> None:
    spec, metadata = pod["spec"], pod["metadata"]
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT_ACCOUNT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = metadata["namespace"]
    if core.reader.get(SERVICE_ACCOUNTS, namespace, name) is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(PODS, metadata.get("name") or "", why)
