"""Pages about the server itself: what a definition makes of them is everybody's to wait for, so it is made beside the loop."""

import msgspec
import pytest

from applecart.clock import Clock
from applecart.embedded.auth.user import ANONYMOUS, UNAUTHENTICATED, User
from applecart.embedded.schema import budget
from applecart.embedded.server import representation
from applecart.embedded.server.server import ADMIN, running_api
from applecart.kube.transport import Request, Response
from applecart.observe.metrics import CONTENT_TYPE, Metrics
from tests.embedded.memory_log import MemoryLog
from tests.embedded.schema.definition_documents import GROUP, definition
from tests.embedded.server.test_trial import DEFINITIONS, Callers
from tests.kube.embedded_api import serving, token_keys

AUTHENTICATED, STRANGER = "system:authenticated", User(ANONYMOUS.name, (UNAUTHENTICATED,))
MONITORING = User("prometheus", ("system:monitoring", AUTHENTICATED))
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


@pytest.mark.parametrize(
    ("user", "status"), [(ADMIN, 200), (MONITORING, 200), (User("alice", (AUTHENTICATED,)), 403), (STRANGER, 403)]
)
async def test_metrics_are_shown_to_whom_a_role_lets_see_them(clock: Clock, user: User, status: int) -> None:
    metrics = Metrics()
    async with running_api(MemoryLog(), clock, token_keys(), metrics=metrics) as running:
        answer = await running.transport(user).send(Request("GET", "/metrics"))
        assert answer.status == status
        if status == 200:
            assert answer.headers["content-type"] == CONTENT_TYPE
            assert answer.body == metrics.render()
            assert b'applecart_task_restarts_total{task="definitions"} 0.0' in answer.body


async def test_many_metrics_are_collected_on_the_loop_and_rendered_beside_it(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics()
    async with running_api(MemoryLog(), clock, token_keys(), metrics=metrics) as running:
        callers = Callers(running)
        seen_by: list[int] = []
        metrics.gauge("seen", "How many runs the thread had when it was looked at.").of().set_function(
            lambda: seen_by.append(callers.worker.runs) or 1.0  # type: ignore[func-returns-value]
        )
        monkeypatch.setattr(budget, "OF_THE_LOOP", 1)
        seen_by.clear()
        answer = await callers.transport().send(Request("GET", "/metrics"))
        assert (answer.status, b"seen 1.0" in answer.body, seen_by, callers.worker.runs) == (200, True, [0], 1)


async def test_an_api_that_measures_nothing_has_no_page_for_it(clock: Clock) -> None:
    async with serving(clock, ()) as running:
        assert (await running.transport().send(Request("GET", "/metrics"))).status == 404


async def test_readiness_tells_everybody_which_check_fails_and_why_only_to_whom_a_role_lets_ask(clock: Clock) -> None:
    async with serving(clock, ()) as running:
        faults: dict[str, str | None] = {"controllers": None}
        running.api.also_ready("controllers", lambda: faults["controllers"])

        async def ask(path: str, user: User = STRANGER, *query: tuple[str, str]) -> tuple[int, str]:
            answer: Response = await running.transport(user).send(Request("GET", path, query))
            return answer.status, answer.body.decode()

        every = "[+]ping ok\n[+]store ok\n[+]tasks ok\n[+]controllers ok\nreadyz check passed\n"
        assert await ask("/readyz") == await ask("/readyz/controllers", MONITORING) == (200, "ok")
        assert await ask("/readyz", STRANGER, ("verbose", "")) == (200, every)
        faults["controllers"] = "scheduler is down and will be started again: KeyError: 'alice'"
        told = every.replace("[+]controllers ok", "[-]controllers failed: reason withheld").replace("passed", "failed")
        assert await ask("/readyz") == await ask("/readyz", STRANGER, ("verbose", "")) == (500, told)
        assert await ask("/readyz/controllers", MONITORING) == (500, f"internal server error: {faults['controllers']}\n")
        assert (await ask("/readyz/controllers"))[0] == 403
        assert await ask("/readyz/ping", MONITORING) == await ask("/livez") == await ask("/healthz") == (200, "ok")
        assert [(await ask(path, MONITORING))[0] for path in ("/readyz/etcd", "/livez/controllers")] == [404, 404]
