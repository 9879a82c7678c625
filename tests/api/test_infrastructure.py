"""A machine knows whether it holds a host, and old objects can always be read."""

import re

import msgspec
import pytest

from applecart.api.infrastructure import (
    ScalewayAppleSiliconMachine,
    ScalewayAppleSiliconMachineTemplate,
    TuistCluster,
)
from applecart.api.machine_rules import IDENTIFYING_FIELDS, IDENTITY_IS_FIXED, OS_IS_A_FAMILY, PROVIDER_ID_FORM
from applecart.api.names import ProviderId
from tests.api.examples import MACHINE_SPEC, PROVIDER_ID, SERVER_ID


@pytest.mark.parametrize(
    ("spec", "status", "is_claimed"),
    [
        ({}, {}, False),
        ({}, {"serverID": ""}, False),
        ({}, {"serverID": SERVER_ID}, True),
        ({"providerID": PROVIDER_ID}, {}, True),
        ({"providerID": ""}, {"serverID": ""}, False),
    ],
)
def test_a_machine_is_claimed_by_server_id_or_provider_id(
    spec: dict[str, str], status: dict[str, str], is_claimed: bool
) -> None:
    machine = msgspec.convert({"spec": spec, "status": status}, ScalewayAppleSiliconMachine)
    assert machine.is_claimed == is_claimed


@pytest.mark.parametrize("kind", [ScalewayAppleSiliconMachine, ScalewayAppleSiliconMachineTemplate, TuistCluster])
def test_an_object_without_spec_and_status_can_be_read(kind: type[msgspec.Struct]) -> None:
    assert msgspec.json.decode(b'{"metadata": {"name": "a"}}', type=kind)


def test_a_machine_from_before_a_rule_can_still_be_read() -> None:
    """The decoder knows shapes only; a versioned OS pin and a runner without a version were stored before the rules."""
    machine = msgspec.convert(
        {"spec": {"os": "macos-tahoe-26.3", "providerID": "x", "ghActionsRunner": {}}}, ScalewayAppleSiliconMachine
    )
    assert machine.spec.os == "macos-tahoe-26.3"
    assert machine.spec.gh_actions_runner is not None
    assert machine.spec.gh_actions_runner.gh_runner_version == ""


def test_a_template_hands_its_whole_spec_to_its_clones() -> None:
    template = msgspec.convert({"spec": {"template": {"spec": MACHINE_SPEC}}}, ScalewayAppleSiliconMachineTemplate)
    assert msgspec.to_builtins(template.spec.template.spec) == MACHINE_SPEC


def test_what_identifies_a_host_is_fixed_field_by_field() -> None:
    assert IDENTIFYING_FIELDS == ("type", "zone", "os", "adoptPoolPrefix", "fleetName")
    assert [rule.field_path for rule in IDENTITY_IS_FIXED] == [f".spec.{name}" for name in IDENTIFYING_FIELDS]


@pytest.mark.parametrize(
    "text",
    [PROVIDER_ID, f"scw-applesilicon://nl-ams-2/{SERVER_ID}", "", "x", PROVIDER_ID.upper(), PROVIDER_ID + "/", SERVER_ID],
)
def test_the_rule_for_provider_ids_accepts_what_our_parser_accepts(text: str) -> None:
    pattern = PROVIDER_ID_FORM.rule.removeprefix("self.matches('").removesuffix("')")
    assert bool(re.search(pattern, text)) == _parses(text)


def _parses(text: str) -> bool:
    try:
        ProviderId.parse(text)
    except Exception:
        return False
    return True


def test_the_rule_for_the_os_says_what_to_write_instead() -> None:
    assert "Tahoe instead of macos-tahoe-26.3" in OS_IS_A_FAMILY.message
