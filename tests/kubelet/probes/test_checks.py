"""What a probe asks: the API's defaults, named ports, and a sentence for everything that cannot be asked of a VM."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.containers import (
    Container,
    ContainerPort,
    ExecAction,
    HttpGetAction,
    HttpHeader,
    Probe,
    TcpSocketAction,
)
from applecart.kubelet.probes.checks import (
    ExecCheck,
    HttpCheck,
    Kind,
    TcpCheck,
    UnsupportedProbe,
    plans,
    unsupported_probes,
)
from applecart.kubelet.serve.guest_http import request_bytes

PORTS = (ContainerPort(container_port=9091, name="metrics"),)


def container(probe: Probe) -> Container:
    return Container(name="runner", ports=PORTS, readiness_probe=probe)


def test_a_container_without_probes_has_none() -> None:
    assert plans(Container(name="runner")) == ()


def test_what_a_probe_leaves_out_gets_the_defaults_of_the_api() -> None:
    (plan,) = plans(container(Probe(tcp_socket=TcpSocketAction(port=22))))
    assert (plan.initial_delay_s, plan.period_s, plan.timeout_s, plan.successes, plan.failures) == (0, 10, 1, 1, 3)


def test_every_kind_of_probe_is_found_and_startup_comes_first() -> None:
    probe = Probe(exec=ExecAction(command=("/usr/bin/true",)))
    found = plans(Container(name="runner", liveness_probe=probe, readiness_probe=probe, startup_probe=probe))
    assert [plan.kind for plan in found] == [Kind.STARTUP, Kind.READINESS, Kind.LIVENESS]


def test_only_a_readiness_probe_may_ask_for_more_than_one_success() -> None:
    probe = Probe(exec=ExecAction(command=("true",)), success_threshold=4)
    found = plans(Container(name="runner", liveness_probe=probe, readiness_probe=probe))
    assert [plan.successes for plan in found] == [4, 1]


@pytest.mark.parametrize(
    ("probe", "check"),
    [
        (Probe(exec=ExecAction(command=("cat", "/tmp/ready"))), ExecCheck(("cat", "/tmp/ready"))),
        (Probe(tcp_socket=TcpSocketAction(port=22)), TcpCheck(22)),
        (Probe(tcp_socket=TcpSocketAction(port="metrics")), TcpCheck(9091)),
        (Probe(tcp_socket=TcpSocketAction(port="8080")), TcpCheck(8080)),
    ],
)
def test_a_probe_becomes_what_is_asked(probe: Probe, check: ExecCheck | TcpCheck) -> None:
    assert plans(container(probe))[0].check == check


@pytest.mark.parametrize(("path", "asked"), [(None, "/"), ("", "/"), ("/healthz?full=1", "/healthz?full=1"), ("ok", "/ok")])
def test_a_page_is_asked_for_by_its_path(path: str | None, asked: str) -> None:
    check = plans(container(Probe(http_get=HttpGetAction(port="metrics", path=path))))[0].check
    assert isinstance(check, HttpCheck)
    assert (check.port, check.path) == (9091, asked)


def test_a_header_of_the_pod_comes_after_ours_so_that_it_wins() -> None:
    headers = (HttpHeader(name="User-Agent", value="mine"), HttpHeader(name="Host", value="ci.local"))
    check = plans(container(Probe(http_get=HttpGetAction(port=80, http_headers=headers))))[0].check
    assert isinstance(check, HttpCheck)
    assert dict(check.headers) == {"User-Agent": "mine", "Host": "ci.local"}


@pytest.mark.parametrize(
    ("probe", "said"),
    [
        (Probe(), "grpc is not supported"),
        (Probe(exec=ExecAction()), "empty exec command"),
        (Probe(http_get=HttpGetAction(port=443, scheme="HTTPS")), "use scheme HTTP, or an exec probe"),
        (Probe(http_get=HttpGetAction(port=80, host="example.com")), "remove httpGet.host"),
        (Probe(tcp_socket=TcpSocketAction(port=80, host="127.0.0.1")), "remove tcpSocket.host"),
        (Probe(tcp_socket=TcpSocketAction(port="http")), "no port of that name"),
        (Probe(tcp_socket=TcpSocketAction(port="99999999999999999999999")), "no port of that name"),
        (Probe(tcp_socket=TcpSocketAction(port=0)), "between 1 and 65535"),
        (Probe(tcp_socket=TcpSocketAction(port=65536)), "between 1 and 65535"),
        (Probe(http_get=HttpGetAction(port=80, path="/a b")), "percent-encode"),
        (Probe(http_get=HttpGetAction(port=80, path="/\r\nGET /other")), "percent-encode"),
        (Probe(http_get=HttpGetAction(port=80, http_headers=(HttpHeader(name="X", value="a\r\nb"),))), "HTTP does not allow"),
        (Probe(http_get=HttpGetAction(port=80, http_headers=(HttpHeader(name="a b", value="c"),))), "HTTP does not allow"),
        (Probe(http_get=HttpGetAction(port=80, http_headers=(HttpHeader(name="X", value="ä"),))), "HTTP does not allow"),
    ],
)
def test_what_cannot_be_asked_of_a_vm_is_refused_with_a_sentence(probe: Probe, said: str) -> None:
    with pytest.raises(UnsupportedProbe, match=said):
        plans(container(probe))
    sentence = unsupported_probes(container(probe))
    assert sentence is not None
    assert sentence.startswith("the readiness probe of container runner ")


def test_a_container_whose_probes_can_be_asked_is_not_refused() -> None:
    assert unsupported_probes(container(Probe(tcp_socket=TcpSocketAction(port=22)))) is None


actions = st.one_of(
    st.builds(ExecAction, command=st.lists(st.text(), max_size=3).map(tuple)).map(lambda it: Probe(exec=it)),
    st.builds(TcpSocketAction, port=st.integers() | st.text(), host=st.just("") | st.text()).map(
        lambda it: Probe(tcp_socket=it)
    ),
    st.builds(
        HttpGetAction,
        port=st.integers() | st.text(),
        path=st.none() | st.text(),
        scheme=st.none() | st.sampled_from(["HTTP", "HTTPS", "gopher"]),
        http_headers=st.lists(st.builds(HttpHeader, name=st.text(), value=st.text()), max_size=2).map(tuple),
    ).map(lambda it: Probe(http_get=it)),
)


@given(actions)
def test_whatever_a_pod_asks_for_is_planned_safely_or_refused(probe: Probe) -> None:
    try:
        (plan,) = plans(container(probe))
    except UnsupportedProbe:
        return
    if isinstance(plan.check, HttpCheck):
        # One request, and no other inside it.
        assert b"\r\n\r\n" not in request_bytes("192.168.64.2", 80, plan.check.path, dict(plan.check.headers))[:-4]
    if not isinstance(plan.check, ExecCheck):
        assert 1 <= plan.check.port <= 65535


@given(*[st.none() | st.integers(-5, 100)] * 4)
def test_no_plan_asks_without_a_pause_or_without_a_timeout(
    period: int | None, timeout: int | None, successes: int | None, failures: int | None
) -> None:
    probe = Probe(
        tcp_socket=TcpSocketAction(port=1),
        period_seconds=period,
        timeout_seconds=timeout,
        success_threshold=successes,
        failure_threshold=failures,
    )
    (plan,) = plans(container(probe))
    assert min(plan.period_s, plan.timeout_s, plan.successes, plan.failures) >= 1
