"""`pods/log`: what may be asked, and what the agent is asked and answers."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock
from applecart.embedded.refusals import Refusal
from applecart.embedded.relay.logs import read_log_options
from applecart.sim.node_agent import NodeAgent
from tests.embedded.relay.stage import HOST, OurStage, Trust, our_stage

NAMES = (
    "container",
    "follow",
    "previous",
    "timestamps",
    "sinceSeconds",
    "sinceTime",
    "tailLines",
    "limitBytes",
    "insecureSkipTLSVerifyBackend",
    "stream",
    "bogus",
)


@pytest.mark.parametrize(
    ("query", "agent_query"),
    [
        ({}, []),
        ({"follow": "true", "container": "a"}, [("follow", "true")]),
        ({"follow": ""}, [("follow", "true")]),
        ({"follow": "x", "previous": "False", "timestamps": "0"}, [("follow", "true")]),
        ({"tailLines": "0", "limitBytes": "1"}, [("limitBytes", "1"), ("tailLines", "0")]),
        ({"sinceSeconds": "+5"}, [("sinceSeconds", "5")]),
        ({"sinceTime": "2020-01-01T02:00:00+02:00"}, [("sinceTime", "2020-01-01T00:00:00Z")]),
        ({"sinceTime": ""}, [("sinceTime", "0001-01-01T00:00:00Z")]),
        ({"bogus": "1"}, []),
    ],
)
def test_the_agent_is_asked_for_what_the_client_asked(query: dict[str, str], agent_query: list[tuple[str, str]]) -> None:
    assert read_log_options("job", query).agent_query() == agent_query


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"tailLines": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"tailLines": ""}, 'strconv.ParseInt: parsing "": invalid syntax'),
        ({"limitBytes": "9" * 20}, f'strconv.ParseInt: parsing "{"9" * 20}": value out of range'),
        ({"tailLines": "1.5", "sinceSeconds": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"sinceTime": "x"}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ({"sinceTime": "2020-01-01"}, 'parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
    ],
)
def test_a_parameter_that_cannot_be_read_is_a_bad_request(query: dict[str, str], message: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_log_options("job", query)
    assert (refused.value.code, refused.value.message) == (400, message)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"tailLines": "-1"}, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limitBytes": "0"}, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": "0"}, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"sinceSeconds": "1", "sinceTime": "2020-01-01T00:00:00Z"},
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ({"stream": "Stdout"}, "stream: Forbidden: may not be specified"),
        (
            {"tailLines": "-1", "limitBytes": "0", "sinceSeconds": "0"},
            "[tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: 0: must be greater "
            "than 0, sinceSeconds: Invalid value: 0: must be greater than 0]",
        ),
    ],
)
def test_options_that_make_no_sense_are_invalid(query: dict[str, str], message: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_log_options("job", query)
    assert (refused.value.code, refused.value.message) == (422, f'PodLogOptions "job" is invalid: {message}')


@given(st.dictionaries(st.sampled_from(NAMES), st.text() | st.integers().map(str) | st.datetimes().map(str)))
def test_any_query_is_read_or_refused(query: dict[str, str]) -> None:
    code = 200
    try:
        read_log_options("job", query)
    except Refusal as refusal:
        code = refusal.code
    assert code in (200, 400, 422)


@pytest.fixture
async def stage(tmp_path: Path, clock: Clock) -> AsyncIterator[OurStage]:
    async with our_stage(tmp_path, clock) as stage:
        yield stage


@pytest.mark.real_time
async def test_a_log_is_text_as_the_guest_wrote_it(stage: OurStage) -> None:
    await stage.make_pod("job")
    stage.agent.add("default", "job", "vm").say("one", "two")
    async with stage.session.get(stage.pod_path("job/log")) as answer:
        assert (answer.status, answer.content_type, await answer.text()) == (200, "text/plain", "one\ntwo\n")
    assert stage.agent.asked[-1] == "/containerLogs/default/job/vm"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tailLines=1", "three\n"),
        ("tailLines=0", ""),
        ("limitBytes=5", "one\nt"),
        ("sinceSeconds=60", "two\nthree\n"),
        ("previous=true", "before\n"),
        ("container=vm", "one\ntwo\nthree\n"),
        ("follow=false&tailLines=2", "two\nthree\n"),
    ],
)
@pytest.mark.real_time
async def test_what_is_asked_of_a_log_reaches_the_agent(stage: OurStage, query: str, expected: str) -> None:
    await stage.make_pod("job")
    guest = stage.agent.add("default", "job", "vm")
    guest.say("before")
    guest.restart()
    guest.say("one", ago=timedelta(hours=1))
    guest.say("two", "three")
    assert await stage.get(stage.pod_path(f"job/log?{query}")) == (200, expected)


@pytest.mark.real_time
async def test_timestamps_stand_before_the_lines(stage: OurStage) -> None:
    await stage.make_pod("job")
    stage.agent.add("default", "job", "vm").say("one")
    _, text = await stage.get(stage.pod_path("job/log?timestamps=true"))
    stamp, _, line = text.partition(" ")
    assert line == "one\n"
    assert stamp.endswith("Z")


@pytest.mark.real_time
async def test_a_followed_log_comes_line_by_line_and_ends_with_the_guest(stage: OurStage) -> None:
    await stage.make_pod("job")
    guest = stage.agent.add("default", "job", "vm")
    guest.say("first")
    async with stage.session.get(stage.pod_path("job/log?follow=true")) as answer:
        assert await answer.content.readline() == b"first\n"
        guest.say("second")
        assert await answer.content.readline() == b"second\n"
        guest.end()
        assert await answer.content.read() == b""


@pytest.mark.real_time
async def test_a_reader_that_goes_frees_the_agent_although_the_log_is_silent(stage: OurStage) -> None:
    await stage.make_pod("job")
    stage.agent.add("default", "job", "vm").say("first")
    answer = await stage.session.get(stage.pod_path("job/log?follow=true"))
    assert await answer.content.readline() == b"first\n"
    assert stage.agent.running == 1
    answer.close()
    async with asyncio.timeout(60):
        await stage.agent.until_idle()


@pytest.mark.real_time
async def test_an_agent_that_vanishes_leaves_no_log_that_looks_complete(stage: OurStage) -> None:
    await stage.make_pod("job")
    stage.agent.add("default", "job", "vm").say("first")
    async with stage.session.get(stage.pod_path("job/log?follow=true")) as answer:
        assert await answer.content.readline() == b"first\n"
        stage.agent.cut()
        with pytest.raises(aiohttp.ClientError):
            await answer.content.read()


@pytest.mark.real_time
async def test_a_pod_without_a_node_has_no_log_yet(stage: OurStage) -> None:
    await stage.make_pod("job", node="")
    assert await stage.get(stage.pod_path("job/log")) == (204, "")


@pytest.mark.parametrize(
    ("pod", "below", "code", "message"),
    [
        ("job", "other/log", 404, 'pods "other" not found'),
        ("job", "job/log?container=no", 400, "container no is not valid for pod job"),
        ("job", "job/log?tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("job", "job/log/more", 404, "the server could not find the requested resource"),
        ("job", "job/log", 404, "the server could not find the requested resource ( pods/log job)"),
    ],
)
@pytest.mark.real_time
async def test_a_log_that_cannot_be_read_is_refused_as_the_real_server_refuses(
    stage: OurStage, pod: str, below: str, code: int, message: str
) -> None:
    await stage.make_pod(pod)
    refusal = await stage.refusal(stage.pod_path(below))
    assert (refusal["code"], refusal["message"]) == (code, message)


@pytest.mark.real_time
async def test_a_pod_of_two_containers_needs_the_name_of_one(stage: OurStage) -> None:
    await stage.make_pod("job", "a", "b")
    refusal = await stage.refusal(stage.pod_path("job/log"))
    assert refusal["message"] == "a container name must be specified for pod job, choose one of: [a b]"


@pytest.mark.real_time
async def test_a_guest_that_waits_says_for_what(stage: OurStage) -> None:
    await stage.make_pod("job")
    stage.agent.add("default", "job", "vm").waiting = "ContainerCreating"
    refusal = await stage.refusal(stage.pod_path("job/log"))
    assert refusal["message"] == 'container "vm" in pod "job" is waiting to start: ContainerCreating'
    assert (refusal["code"], refusal["reason"]) == (400, "BadRequest")


@pytest.mark.real_time
async def test_an_agent_that_is_not_there_is_named(stage: OurStage) -> None:
    await stage.make_pod("job")
    await stage.patch_node({"daemonEndpoints": {"kubeletEndpoint": {"Port": 9}}})
    refusal = await stage.refusal(stage.pod_path("job/log?tailLines=1"))
    url = "https://127.0.0.1:9/containerLogs/default/job/vm?tailLines=1"
    assert refusal["message"] == f'Get "{url}": dial tcp 127.0.0.1:9: connect: connection refused'
    assert (refusal["code"], "reason" in refusal) == (500, False)


@pytest.mark.real_time
async def test_a_node_that_is_gone_is_told_under_its_name(stage: OurStage) -> None:
    await stage.make_pod("job", node="mac-9")
    assert (await stage.refusal(stage.pod_path("job/log")))["message"] == 'pods "mac-9" not found'


@pytest.mark.real_time
async def test_an_agent_with_a_strange_certificate_is_not_believed(stage: OurStage, tmp_path: Path, clock: Clock) -> None:
    stranger = Trust(tmp_path / "stranger", clock)
    async with NodeAgent("mac-1", stranger.agent_context(), clock, HOST) as impostor:
        await stage.make_pod("job")
        await stage.patch_node({"daemonEndpoints": {"kubeletEndpoint": {"Port": impostor.port}}})
        refusal = await stage.refusal(stage.pod_path("job/log"))
        assert refusal["code"] == 500
        assert "tls: failed to verify certificate: x509: " in refusal["message"]
        assert impostor.asked == []
