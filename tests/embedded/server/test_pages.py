"""Pages about the server itself: what a definition makes of them is everybody's to wait for, so it is made beside the loop."""

import msgspec
import pytest

from applecart.clock import Clock
from applecart.embedded.schema import budget
from applecart.embedded.server import representation
from applecart.embedded.server.server import ADMIN
from applecart.kube.transport import Request
from tests.embedded.schema.definition_documents import GROUP, definition
from tests.embedded.server.test_trial import DEFINITIONS, Callers
from tests.kube.embedded_api import serving

JSON, YAML = "application/json", "application/yaml"
AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KEPT = [("/apis", f"{JSON};{AGGREGATED}"), ("/openapi/v2", JSON), ("/openapi/v3", JSON), (f"/openapi/v3/apis/{GROUP}/v1", JSON)]
SHOWN = [("/apis", f"{YAML};{AGGREGATED}"), ("/apis", YAML), (f"/apis/{GROUP}/v1", YAML), ("/version", YAML)]


@pytest.mark.parametrize(("path", "accept"), KEPT + SHOWN)
async def test_a_page_that_is_much_work_is_made_beside_the_loop(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, path: str, accept: str
) -> None:
    """Twenty definitions made any guest's request for all of them in YAML keep the loop for 1.6 s."""
    async with serving(clock, ()) as running:
        callers = Callers(running)
        assert (await callers.asks("POST", DEFINITIONS, definition("drafts", {"type": "object"}))).status == 201
        monkeypatch.setattr(budget, "OF_THE_LOOP", 10)
        asked = Request("GET", path, accept=accept)
        before = callers.worker.runs
        first, again = [await callers.transport().send(asked) for _ in range(2)]
        assert callers.worker.runs == before + (2 if (path, accept) in SHOWN else 1)
        assert first == again == await running.transport(ADMIN).send(asked)
        assert first.status == 200


@pytest.mark.parametrize("accept", [YAML, f"{YAML};{AGGREGATED}"])
async def test_discovery_is_only_so_long_in_yaml(clock: Clock, monkeypatch: pytest.MonkeyPatch, accept: str) -> None:
    monkeypatch.setattr(representation, "MOST_YAML_BYTES", 1000)
    async with serving(clock, ()) as running:
        refused = await running.transport().send(Request("GET", "/apis", accept=accept))
        assert refused.status == 406
        assert "too long for YAML: limit is 1000; ask for JSON" in msgspec.json.decode(refused.body)["message"]
        assert (await running.transport().send(Request("GET", "/apis"))).status == 200
