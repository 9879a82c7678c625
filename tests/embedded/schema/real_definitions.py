"""A real API server as the judge of schemas: definitions installed on it, documents sent to it, its answers compared."""

import json
import re
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.embedded.schema.definition_documents import GROUP

TIMEOUT_S = 30
LOOK_EVERY_S = 0.1
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

Answer = tuple[int, dict[str, Any]]


class RealDefinitions:
    """Plain requests: the comparison must not go through a client that could hide something."""

    def __init__(self, url: str, certificate: Path, key: Path) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(certificate, key)
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)
        self._url = url

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data=data, method=method, headers={"Content-Type": content_type})
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text.startswith(b"{") else {"message": text.decode()}

    def install(self, crd: dict[str, Any]) -> dict[str, Any]:
        """Creates or replaces a definition and waits until objects can be written."""
        name = crd["metadata"]["name"]
        code, stored = self.send("POST", DEFINITIONS, crd)
        if code == 409:
            _, stored = self.send("GET", f"{DEFINITIONS}/{name}")
            metadata = {**crd["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
            code, stored = self.send("PUT", f"{DEFINITIONS}/{name}", {**crd, "metadata": metadata})
        assert code in (200, 201), stored
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            _, stored = self.send("GET", f"{DEFINITIONS}/{name}")
            conditions = {one["type"]: one["status"] for one in (stored.get("status", {}).get("conditions") or [])}
            served, _ = self.send("GET", f"/apis/{GROUP}/v1/{crd['spec']['names']['plural']}")
            if conditions.get("Established") == "True" and served == 200:
                return stored
            time.sleep(LOOK_EVERY_S)
        raise AssertionError(f"{name} was not established: {stored.get('status')}")

    def remove(self, name: str) -> None:
        self.send("DELETE", f"{DEFINITIONS}/{name}")

    def create(self, plural: str, obj: dict[str, Any], options: str = "", *, is_dry: bool = True) -> Answer:
        return self.send("POST", f"/apis/{GROUP}/v1/{plural}{f'?dryRun=All{options}' if is_dry else ''}", obj)

    def replace(self, plural: str, obj: dict[str, Any], suffix: str = "") -> Answer:
        path = f"/apis/{GROUP}/v1/{plural}/{obj['metadata']['name']}"
        _, stored = self.send("GET", path)
        metadata = {**obj["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
        return self.send("PUT", f"{path}{suffix}?dryRun=All", {**obj, "metadata": metadata})


def answer_of(code: int, answer: dict[str, Any]) -> dict[str, Any]:
    """What was stored, or what was wrong: sorted, because the order is not fixed."""
    if code in (200, 201):
        return {"spec": answer["spec"]}
    if code != 422:
        return {"code": code, "message": answer.get("message")}
    causes = answer.get("details", {}).get("causes", [])
    return {"causes": sorted([one.get("reason", ""), _plain(one.get("message", "")), one.get("field", "")] for one in causes)}


def _plain(text: str) -> str:
    """A real server escapes some signs inside JSON, for the sake of browsers, and prints whole schemas, which we do not."""
    text = re.sub(r'value: \{"ID":.*\}: only', "value: only", text)
    return text.replace("\\u003e", ">").replace("\\u003c", "<").replace("\\u0026", "&")
