"""What the tests of Python clients start from: a namespace, and a kind that is served.

Asks the server with nothing but the standard library, so that no client under test prepares the test of another.
"""

import base64
import json
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.clients.manifests import GROUP, widgets

WIDGETS = "clients.example.test"  # the group of the kind that all tests of Python clients share
VERSIONED = f"{WIDGETS}/v1"
TIMEOUT_S = 30
LOOK_EVERY_S = 0.05


def shared_widgets() -> Any:
    return json.loads(json.dumps(widgets()).replace(GROUP, WIDGETS))


class Connection:
    """An administrator's."""

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:  # Python loads a certificate from files only
            pair.write(b"".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
            pair.flush()
            context.load_cert_chain(pair.name)
        self._url = cluster["server"]
        # No proxy of the environment stands between two processes of one machine.
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def post(self, path: str, body: Any) -> None:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(), headers)
        with self._opener.open(request, timeout=TIMEOUT_S):
            pass

    def serves_widgets(self) -> bool:
        try:
            with self._opener.open(f"{self._url}/apis/{VERSIONED}/widgets?resourceVersion=0", timeout=TIMEOUT_S):
                return True
        except urllib.error.HTTPError as error:
            error.close()
            return False

    def until_widgets_are_served(self) -> None:
        deadline_s = time.monotonic() + TIMEOUT_S
        while not self.serves_widgets():
            assert time.monotonic() < deadline_s, "a new kind is not served"
            time.sleep(LOOK_EVERY_S)
