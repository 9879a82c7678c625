"""Plain calls to a real API server: a status code, what it said, and its warnings."""

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from tests.kubernetes.cluster import FullCluster

TIMEOUT_S = 30
JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@dataclass(frozen=True)
class Answer:
    code: int
    raw: bytes
    warnings: tuple[str, ...] = ()

    @property
    def document(self) -> Any:
        return json.loads(self.raw)


class RealApi:
    def __init__(self, cluster: FullCluster) -> None:
        context = ssl.create_default_context(cadata=cluster.ca_pem.decode("ascii"))
        context.load_cert_chain(cluster.admin.certificate, cluster.admin.key)
        self._url = cluster.url
        # No proxy of the environment stands between two processes of one machine.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

    def call(self, method: str, path: str, body: bytes | None = None, *, sends: str = JSON, accepts: str = JSON) -> Answer:
        headers = {"Content-Type": sends, "Accept": accepts}
        request = urllib.request.Request(f"{self._url}{path}", data=body, method=method, headers=headers)
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                return Answer(answer.status, answer.read(), tuple(answer.headers.get_all("Warning") or ()))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read())

    def post(self, path: str, document: Any, **options: str) -> Answer:
        return self.call("POST", path, json.dumps(document).encode(), **options)
