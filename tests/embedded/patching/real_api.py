"""Plain requests to a real API server, one after the other on one connection."""

import http.client
import json
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from tests.kubernetes.cluster import FullCluster

TIMEOUT_S = 30


class RealApi:
    def __init__(self, cluster: FullCluster) -> None:
        context = ssl.create_default_context(cadata=cluster.ca_pem.decode("ascii"))
        context.load_cert_chain(cluster.admin.certificate, cluster.admin.key)
        address = urlsplit(cluster.url)
        assert address.hostname
        self._connection = http.client.HTTPSConnection(address.hostname, address.port, context=context, timeout=TIMEOUT_S)

    def call(self, method: str, path: str, body: Any = None, media_type: str = "application/json") -> tuple[int, Any]:
        payload = None if body is None else json.dumps(body)
        self._connection.request(method, path, payload, {"Content-Type": media_type})
        response = self._connection.getresponse()
        content = response.read()
        # A path that is not served yet is answered in plain text.
        is_json = response.getheader("Content-Type") == "application/json"
        return response.status, json.loads(content) if is_json else {"message": content.decode()}

    def ensure(self, collection: str, body: dict[str, Any]) -> None:
        """Create an object unless it is there."""
        code, answer = self.call("POST", collection, body)
        assert code in (201, 409), answer

    def wait_until_served(self, path: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while self.call("GET", path)[0] == 404:
            assert time.monotonic() < deadline, f"{path} is not served"

    def close(self) -> None:
        self._connection.close()
