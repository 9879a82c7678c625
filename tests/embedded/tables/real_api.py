"""The least that a test needs of a real API server: documents in and out, over one verified connection."""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from tests.kubernetes.cluster import FullCluster

TIMEOUT_S = 30
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class RealApi:
    def __init__(self, cluster: FullCluster) -> None:
        self._url = cluster.url
        context = ssl.create_default_context(cadata=cluster.ca_pem.decode("ascii"))
        context.load_cert_chain(cluster.admin.certificate, cluster.admin.key)
        # No proxy of the environment stands between two processes of one machine.
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        """Code, headers in lower case, and the document."""
        request = urllib.request.Request(
            f"{self._url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}},
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                return answer.status, _lower(answer.headers), _document(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _lower(error.headers), _document(error.read())

    def get(self, path: str, accept: str = "application/json") -> Any:
        code, _, document = self.call("GET", path, Accept=accept)
        assert code == 200, document
        return document

    def create(self, path: str, document: dict[str, Any]) -> Any:
        code, _, created = self.call("POST", path, document)
        assert code == 201, created
        return created

    def patch(self, path: str, patch: dict[str, Any]) -> Any:
        code, _, patched = self.call("PATCH", path, patch, Content_Type="application/merge-patch+json")
        assert code == 200, patched
        return patched


def settle(check: Callable[[], bool]) -> None:
    """Ask until it is so: what a CRD brings appears some moments after it, and not all at once."""
    deadline = time.monotonic() + TIMEOUT_S
    while not check():
        assert time.monotonic() < deadline, "the server did not settle"


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): text for name, text in headers.items()}


def _document(body: bytes) -> Any:
    return json.loads(body) if body[:1] in (b"{", b"[") else body
