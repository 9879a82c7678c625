"""Which source names the API server when several could."""

from pathlib import Path

import pytest

from applecart.clock import SystemClock
from applecart.errors import BadInput
from applecart.kube.connect import connect
from tests.kube.kubeconfigs import kubeconfig, write

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A machine on which every source exists, each with a server of its own."""
    for name in ("named", "listed", "home/.kube/config"):
        write(tmp_path / name, kubeconfig(cluster={"server": f"https://{name.split('/')[0]}.test"}))
    write(tmp_path / "account" / "token", "token-of-the-pod")
    write(tmp_path / "account" / "ca.crt", "-----BEGIN CERTIFICATE-----")
    return tmp_path


@pytest.mark.parametrize(
    ("named", "context", "sources", "server"),
    [
        (True, None, ("KUBECONFIG", "POD"), "https://named.test"),
        (False, None, ("KUBECONFIG", "POD"), "https://listed.test"),
        (False, None, ("POD",), "https://10.96.0.1:443"),
        (False, "ci", ("POD",), "https://home.test"),
        (False, None, (), "https://home.test"),
    ],
)
def test_the_first_source_that_exists_decides(
    home: Path, named: bool, context: str | None, sources: tuple[str, ...], server: str
) -> None:
    environ = {"HOME": f"{home}/home"}
    if "KUBECONFIG" in sources:
        environ["KUBECONFIG"] = f"{home}/gone:{home}/listed"
    if "POD" in sources:
        environ |= POD
    named_file = f"{home}/named" if named else None
    found = connect(named_file, context, SystemClock(), environ=environ, service_account=home / "account")
    assert found.endpoint.server == server


def test_when_no_source_exists_the_sentence_says_what_was_tried(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        connect(None, None, SystemClock(), environ={"HOME": str(tmp_path)})
    for tried in (
        "--kubeconfig",
        "KUBECONFIG",
        "KUBERNETES_SERVICE_HOST",
        "KUBERNETES_SERVICE_PORT",
        f"{tmp_path}/.kube/config",
    ):
        assert tried in str(caught.value)


def test_a_user_without_a_home_is_no_hindrance(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container with a user id of its own: no HOME, no line in passwd."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 54321)
    found = connect(None, None, SystemClock(), environ=POD, service_account=home / "account")
    assert found.endpoint.server == "https://10.96.0.1:443"
    with pytest.raises(BadInput, match=r"and ~/\.kube/config does not exist"):
        connect(None, None, SystemClock(), environ={})


def test_a_named_file_that_does_not_exist_is_not_replaced_by_another_source(home: Path) -> None:
    with pytest.raises(BadInput, match="gone does not exist"):
        connect(f"{home}/gone", None, SystemClock(), environ={"HOME": f"{home}/home"})
