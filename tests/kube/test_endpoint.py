"""Which URLs a client can use."""

import pytest

from applecart.errors import BadInput
from applecart.kube.endpoint import Endpoint, checked_url, proxy_for

PROXY = {"HTTPS_PROXY": "http://proxy:3128"}


def at(server: str, **fields: str) -> Endpoint:
    return Endpoint(server=server, server_from="a test", **fields)  # type: ignore[arg-type]


def test_without_variables_there_is_no_proxy() -> None:
    assert proxy_for(at("https://api.test"), {}) is None


def test_the_kubeconfig_decides_before_any_variable() -> None:
    assert proxy_for(at("https://api.test", proxy_url="http://own:1"), {**PROXY, "NO_PROXY": "*"}) == "http://own:1"


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://api.test", PROXY, "http://proxy:3128"),
        ("https://api.test", {"https_proxy": "proxy:3128"}, "http://proxy:3128"),
        ("http://api.test", PROXY, None),
        ("http://api.test", {"HTTP_PROXY": "http://plain:1"}, "http://plain:1"),
    ],
)
def test_the_variable_of_the_scheme_is_used(server: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(at(server), environ) == proxy


@pytest.mark.parametrize("server", ["https://localhost:6443", "https://127.0.0.1:6443", "https://[::1]:6443"])
def test_this_machine_is_never_reached_through_a_proxy(server: str) -> None:
    assert proxy_for(at(server), PROXY) is None


@pytest.mark.parametrize(
    ("server", "no_proxy", "is_exempt"),
    [
        ("https://api.fleet.test", "*", True),
        ("https://api.fleet.test", "fleet.test", True),
        ("https://api.fleet.test", ".fleet.test", True),
        ("https://api.fleet.test", "*.fleet.test", True),
        ("https://fleet.test", ".fleet.test", False),
        ("https://notfleet.test", "fleet.test", False),
        ("https://api.fleet.test", " , other.test, API.fleet.test", True),
        ("https://api.fleet.test:6443", "api.fleet.test:6443", True),
        ("https://api.fleet.test:6443", "api.fleet.test:443", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://11.1.2.3:6443", "10.0.0.0/8,example.test", False),
        ("https://[fd00::7]:6443", "fd00::/8", True),
    ],
)
def test_no_proxy_is_read_as_go_reads_it(server: str, no_proxy: str, is_exempt: bool) -> None:
    assert (proxy_for(at(server), {**PROXY, "NO_PROXY": no_proxy}) is None) is is_exempt


@pytest.mark.parametrize(
    "url",
    [
        "https://10.0.0.1:6443",
        "http://localhost:8080",
        "https://api.fleet.test",
        "https://[fd00::1]:6443",
        "https://rancher.test/k8s/clusters/c-1",
    ],
)
def test_an_ordinary_address_is_taken(url: str) -> None:
    assert checked_url(url, "field server", "https://a") == url


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("10.0.0.1:6443", "does not start with https:// or http://"),
        ("ftp://a", "does not start with"),
        ("https://", "names no usable host"),
        ("https://a b", "names no usable host"),
        ("https://a:0", "names no usable host"),
        ("https://a:99999", "is no URL"),
        ("https://[::1", "is no URL"),
        ("https://-a", "names no usable host"),
        ("https://a?x=1", "holds more than"),
        ("https://a/b c", "holds more than"),
        ("https://a/\ud800", "holds more than"),
        ("https://admin:hunter2hunter2@a", "holds a user name or password"),
    ],
)
def test_an_address_that_cannot_work_is_told_with_its_field(url: str, problem: str) -> None:
    with pytest.raises(BadInput, match=f"^field server {problem}") as caught:
        checked_url(url, "field server", "https://a")
    assert "hunter2" not in str(caught.value)
