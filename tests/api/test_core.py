"""Secrets keep their values to themselves; Pods, Nodes and other small kinds answer simple questions."""

import base64
import logging
import traceback

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.pretty import pretty_repr

from applecart import secrets
from applecart.api.authentication import TokenRequest, TokenReview, TokenReviewSpec
from applecart.api.containers import ContainerState, ContainerStatus, ContainerTerminated
from applecart.api.core import Secret, secret_data
from applecart.api.meta import ObjectMeta
from applecart.api.nodes import Node, NodeCondition, NodeStatus
from applecart.api.pods import FAILED, RUNNING, SUCCEEDED, Pod, PodCondition, PodSpec, PodStatus
from applecart.api.rbac import ClusterRole
from applecart.errors import BadInput

PASSWORD = "correct-horse-battery"
ENCODED = base64.b64encode(PASSWORD.encode()).decode()


@pytest.fixture
def secret() -> Secret:
    applied = f'{{"data":{{"sudo-password":"{ENCODED}"}}}}'
    metadata = ObjectMeta(
        name="mac-1-bootstrap",
        namespace="fleet",
        annotations={"kubectl.kubernetes.io/last-applied-configuration": applied},
    )
    return Secret(metadata=metadata, type="Opaque", data={"sudo-password": ENCODED, "ssh-username": "bTE="})


def test_a_secret_shows_its_keys_and_never_its_values(secret: Secret) -> None:
    """The annotation of kubectl apply holds a copy of the data, so metadata is not shown either."""
    text = " ".join([repr(secret), str(secret), f"{secret}", "%s" % secret, pretty_repr(secret)])  # noqa: UP031
    assert "sudo-password" in text
    assert ENCODED not in text
    assert PASSWORD not in text


def test_a_secret_is_hidden_inside_another_value_and_on_a_rich_console(secret: Secret) -> None:
    console = Console(width=200, file=None, record=True, quiet=True)
    console.print({"found": [secret]})
    assert ENCODED not in console.export_text() + repr({"found": [secret]})


def test_a_secret_does_not_reach_a_log_or_a_traceback(secret: Secret, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("test").warning("read %s", secret)
    try:
        raise ValueError(secret)
    except ValueError:
        shown = traceback.format_exc()
    assert ENCODED not in caplog.text + shown


def test_a_value_of_a_secret_is_decoded_into_a_type_that_cannot_be_printed(secret: Secret) -> None:
    value = secret.value("sudo-password")
    assert value is not None
    assert value.reveal() == PASSWORD
    assert PASSWORD not in repr(value)
    assert secret.value("absent") is None


@pytest.mark.parametrize("bad", ["not base64!", "/w==", "Zg"])
def test_a_value_that_is_no_text_is_a_sentence_with_the_secret_and_the_key(bad: str) -> None:
    secret = Secret(metadata=ObjectMeta(name="s", namespace="n"), data={"k": bad})
    with pytest.raises(BadInput, match="key 'k' of Secret n/s holds no text") as raised:
        secret.value("k")
    assert bad not in str(raised.value).replace("'k'", "")


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3))
def test_values_written_as_secret_data_are_read_back(values: dict[str, str]) -> None:
    secret = Secret(data=secret_data({key: secrets.Secret(value) for key, value in values.items()}))
    read = {key: value.reveal() for key in values if (value := secret.value(key)) is not None}
    assert read == values


def test_a_secret_is_sent_whole_although_it_shows_nothing(secret: Secret) -> None:
    assert msgspec.json.decode(msgspec.json.encode(secret), type=Secret) == secret


def test_reviews_and_requests_of_tokens_do_not_show_the_token() -> None:
    review = TokenReview(spec=TokenReviewSpec(token=PASSWORD))
    request = msgspec.convert({"status": {"token": PASSWORD, "expirationTimestamp": None}}, TokenRequest)
    shown = " ".join([repr(review), repr(request), pretty_repr(review), pretty_repr(request)])
    assert PASSWORD not in shown
    assert request.token.reveal() == PASSWORD


@pytest.mark.parametrize(("phase", "is_terminal"), [(RUNNING, False), ("", False), (SUCCEEDED, True), (FAILED, True)])
def test_a_pod_is_terminal_by_its_phase_alone(phase: str, is_terminal: bool) -> None:
    pod = Pod(status=PodStatus(phase=phase))
    assert pod.is_terminal == is_terminal
    assert pod.is_alive != is_terminal


def test_a_pod_being_deleted_is_not_alive() -> None:
    pod = msgspec.convert({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, Pod)
    assert not pod.is_alive


def test_conditions_are_found_by_type() -> None:
    scheduled = PodCondition(type="PodScheduled", status="True")
    ready = NodeCondition(type="Ready", status="False")
    assert Pod(status=PodStatus(conditions=(scheduled,))).condition("PodScheduled") == scheduled
    assert Node(status=NodeStatus(conditions=(ready,))).condition("Ready") == ready
    assert Pod().condition("Ready") is None
    assert Node().condition("Ready") is None


def test_an_explicit_zero_or_false_is_sent_where_the_api_has_another_default() -> None:
    """A grace period of 0 and automount off mean something else than leaving them out."""
    spec = PodSpec(termination_grace_period_seconds=0, automount_service_account_token=False, enable_service_links=False)
    assert msgspec.to_builtins(spec) == {
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }


def test_an_exit_code_of_zero_is_sent() -> None:
    status = ContainerStatus(name="runner", state=ContainerState(terminated=ContainerTerminated(exit_code=0)))
    assert msgspec.to_builtins(status)["state"] == {"terminated": {"exitCode": 0}}


def test_a_role_without_rules_decodes_although_they_are_null() -> None:
    """An aggregated ClusterRole that has matched nothing yet is served with `rules: null`."""
    assert msgspec.json.decode(b'{"metadata": {"name": "a"}, "rules": null}', type=ClusterRole).rules is None
