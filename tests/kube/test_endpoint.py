"""Which URLs a client can use."""

import pytest

from applecart.errors import BadInput
from applecart.kube.endpoint import checked_url


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
