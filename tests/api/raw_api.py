"""An API server as it is on the wire: JSON in, status and JSON out, no structs and no client of ours between."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from applecart.api.meta import Resource
from tests.kubernetes.cluster import FullCluster

TIMEOUT_S = 30
MERGE = "application/merge-patch+json"


class RawApi:
    """Calls as the administrator of a cluster."""

    def __init__(self, cluster: FullCluster) -> None:
        context = ssl.create_default_context(cadata=cluster.ca_pem.decode("ascii"))
        context.load_cert_chain(cluster.admin.certificate, cluster.admin.key)
        # No proxy of the environment stands between two processes of one machine.
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        self._open = urllib.request.build_opener(*handlers).open
        self._url = cluster.url

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": content_type}, method=method)
        try:
            with self._open(request, timeout=TIMEOUT_S) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def create(self, resource: Resource, namespace: str, document: Any) -> tuple[int, dict[str, Any]]:
        return self.call("POST", collection(resource, namespace), document)

    def merge(self, resource: Resource, namespace: str, name: str, patch: Any, subresource: str = "") -> tuple[int, Any]:
        path = f"{collection(resource, namespace)}/{name}" + (f"/{subresource}" if subresource else "")
        return self.call("PATCH", path, patch, MERGE)


def collection(resource: Resource, namespace: str) -> str:
    prefix = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    return f"{prefix}/namespaces/{namespace}/{resource.plural}" if namespace else f"{prefix}/{resource.plural}"


def causes(status: dict[str, Any]) -> dict[str, str]:
    """The sentences of a refusal, by the field they are about."""
    found: dict[str, str] = {}
    for cause in status.get("details", {}).get("causes", []):
        found[cause["field"]] = f"{found.get(cause['field'], '')} {cause['message']}".strip()
    return found
