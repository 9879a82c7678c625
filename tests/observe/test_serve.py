"""The three pages of a component, over a real socket on loopback."""

import aiohttp
import pytest

from applecart.errors import BadInput
from applecart.observe.metrics import Metrics
from applecart.observe.serve import ObserveServer, judge
from applecart.secrets import Secret
from tests.secret_guard import SecretGuard


async def get(server: ObserveServer, path: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{server.port}{path}") as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


def failing() -> str | None:
    raise RuntimeError("no such table")


def test_all_is_well_when_there_is_nothing_to_check() -> None:
    assert judge({}) == (True, "ok\n")


def test_every_check_has_a_line_and_one_fault_decides() -> None:
    is_well, text = judge({"informers": lambda: None, "lease": lambda: "the Lease is held by another"})
    assert not is_well
    assert text.splitlines() == ["ok: informers", "not ok: lease: the Lease is held by another", "not ok"]


def test_a_check_that_fails_to_run_is_a_fault_and_hides_no_other() -> None:
    is_well, text = judge({"store": failing, "queue": lambda: None})
    assert not is_well
    assert text.splitlines()[:2] == ["not ok: store: the check itself failed: RuntimeError: no such table", "ok: queue"]


def test_a_secret_in_the_sentence_of_a_check_is_masked() -> None:
    secret = Secret("check-" + "secret-value")
    assert judge({"login": lambda: f"refused {secret.reveal()}"})[1].startswith("not ok: login: refused ***\n")


@pytest.mark.real_time
async def test_metrics_are_served_as_prometheus_reads_them() -> None:
    metrics = Metrics()
    metrics.counter("syncs_total", "Syncs.").of().inc()
    async with ObserveServer(metrics) as server:
        status, content_type, text = await get(server, "/metrics")
    assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "syncs_total 1.0" in text


@pytest.mark.real_time
async def test_readiness_follows_its_checks_and_liveness_does_not() -> None:
    faults = ["informers are not synced"]
    async with ObserveServer(Metrics(), ready={"sync": lambda: next(iter(faults), None)}) as server:
        assert (await get(server, "/readyz"))[0] == 503
        assert (await get(server, "/healthz"))[0] == 200
        faults.clear()
        assert await get(server, "/readyz") == (200, "text/plain; charset=utf-8", "ok: sync\nok\n")


@pytest.mark.real_time
async def test_liveness_has_checks_of_its_own() -> None:
    async with ObserveServer(Metrics(), live={"loop": lambda: "stuck"}) as server:
        assert await get(server, "/healthz") == (503, "text/plain; charset=utf-8", "not ok: loop: stuck\nnot ok\n")


@pytest.mark.real_time
async def test_other_pages_and_methods_do_not_exist() -> None:
    async with ObserveServer(Metrics()) as server:
        assert (await get(server, "/"))[0] == 404
        async with aiohttp.ClientSession() as session:
            answer = await session.post(f"http://127.0.0.1:{server.port}/metrics")
            assert answer.status == 405


@pytest.mark.real_time
async def test_it_listens_on_loopback_only() -> None:
    async with ObserveServer(Metrics()) as server:
        assert [address[0] for address in server.addresses] == ["127.0.0.1"]


@pytest.mark.real_time
async def test_a_port_that_is_taken_gets_a_sentence_that_names_it() -> None:
    async with ObserveServer(Metrics()) as server:
        with pytest.raises(BadInput, match=rf"cannot serve metrics on 127.0.0.1:{server.port} .*another address or port"):
            await ObserveServer(Metrics(), port=server.port).start()


@pytest.mark.real_time
async def test_a_port_that_cannot_exist_gets_a_sentence() -> None:
    with pytest.raises(BadInput, match=r"127.0.0.1:70000"):
        await ObserveServer(Metrics(), port=70000).start()


@pytest.mark.real_time
async def test_after_the_stop_the_port_is_free_again_and_a_second_stop_is_harmless() -> None:
    server = ObserveServer(Metrics())
    await server.start()
    await server.stop()
    await server.stop()
    async with ObserveServer(Metrics(), port=server.port) as again:
        assert (await get(again, "/healthz"))[0] == 200


@pytest.mark.real_time
async def test_what_a_page_says_is_published_to_the_guard(secret_guard: SecretGuard) -> None:
    secret, metrics = Secret("served-" + "secret-value"), Metrics()
    metrics.gauge("odd", "Odd.", ["token"]).of(secret.reveal()).set(1)
    async with ObserveServer(metrics) as server:
        await get(server, "/metrics")
    assert len(secret_guard.take_leaks()) == 1
