"""Every name on the wire is spelled once, is valid where it is used, and is spelled nowhere else in the product."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from types import ModuleType

import pytest

import applecart
from applecart.api import annotations, conditions, env, finalizers, labels, names, taints, well_known_names
from applecart.api.metric_names import Kind, Metric, dispatch, kubelet, label_values, provider, runners, upstream
from applecart.api.reasons import ConditionReason, EventReason, StatusReason, provider_events
from applecart.api.reasons import kubelet as kubelet_reasons
from applecart.api.reasons import provider as provider_reasons
from applecart.api.reasons import runners as runners_reasons
from applecart.api.reasons import upstream as upstream_reasons
from applecart.api.wire_names import constants

KEYS = (labels, annotations, finalizers)
METRICS = (provider, kubelet, runners, dispatch, upstream)
REASONS = (provider_reasons, provider_events, kubelet_reasons, runners_reasons, upstream_reasons)
MODULES = (*KEYS, taints, conditions, well_known_names, names, env, *METRICS, *REASONS)

CONDITION_AND_EVENT = "the Event announces the condition or status of the same name"
DELIBERATE = {
    "Provisioned": "a condition type, and the Event when it becomes true",
    "Bootstrapped": "a condition type, and the Event when it becomes true",
    "runner": "the container of a runner, and the component its Pod says it is",
    "NoGuiSession": "why a Node is not ready, and why a Pod waits on it",
    "tart-kubelet": "the component a ServiceAccount says it is, and the source of the agent's Events",
    **dict.fromkeys(
        (
            "NoAdoptPoolPrefix",
            "InvalidOSPin",
            "NoAvailableHost",
            "CredentialsRefreshFailed",
            "MissingSudoPassword",
            "NodeMissing",
            "GHRunnerRegistrationTokenUnavailable",
            "BootstrapFailed",
            "TartKubeletUpdateExceededRetries",
        ),
        CONDITION_AND_EVENT,
    ),
}

QUALIFIED_NAME = re.compile(
    r"((?=.{1,253}/)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
CAMEL_CASE = re.compile(r"([A-Z][a-z0-9]*)+")
METRIC_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
METRIC_LABEL = re.compile(r"[a-z]+(_[a-z]+)*")
ENVIRONMENT_NAME = re.compile(r"[A-Z]+(_[A-Z0-9]+)*")


def name_of(value: object) -> str | None:
    """The wire name a constant stands for, or None for numbers, patterns and buckets."""
    match value:
        case str():
            return value
        case ConditionReason() | EventReason() | StatusReason() | Metric():
            return value.name
        case taints.TaintName():
            return value.key
        case _:
            return None


def wire_names(*modules: ModuleType) -> Iterator[tuple[str, str]]:
    for module in modules:
        for constant, value in constants(module).items():
            if (name := name_of(value)) is not None:
                yield f"{module.__name__.removeprefix('applecart.api.')}.{constant}", name


def metrics(*modules: ModuleType) -> list[Metric]:
    return [value for module in modules for value in constants(module).values() if isinstance(value, Metric)]


def reasons() -> list[ConditionReason | EventReason | StatusReason]:
    return [
        value
        for module in REASONS
        for value in constants(module).values()
        if isinstance(value, ConditionReason | EventReason | StatusReason)
    ]


def literals(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_two_constants_have_the_same_value_unless_on_purpose() -> None:
    places = defaultdict(list)
    for place, name in wire_names(*MODULES):
        places[name].append(place)
    assert {name: where for name, where in places.items() if len(where) > 1 and name not in DELIBERATE} == {}


def test_every_deliberate_repetition_still_exists() -> None:
    spelled = [name for _, name in wire_names(*MODULES)]
    assert [name for name in DELIBERATE if spelled.count(name) < 2] == []


def test_no_two_environment_names_labels_or_metrics_share_a_constant_name() -> None:
    for group in (KEYS, METRICS):
        found = [constant for module in group for constant in constants(module)]
        repeated = {constant for constant in found if found.count(constant) > 1}
        assert repeated <= {"PAUSED", "MACHINE"}, "a label and a finalizer are told apart by their module only"


def test_no_other_module_spells_a_name_of_ours_again() -> None:
    """Kubernetes and Cluster API own the rest; what is ours changes in one place."""
    ours = {name for _, name in wire_names(*KEYS) if "tuist.dev/" in name}
    ours |= {metric.name for metric in metrics(provider, kubelet, runners, dispatch)}
    package = Path(applecart.__file__).parent
    homes = {Path(str(module.__file__)) for module in MODULES}
    again = [
        f"{source.relative_to(package)} spells {literal}"
        for source in sorted(package.rglob("*.py"))
        if source not in homes
        for literal in literals(source)
        if literal in ours
    ]
    assert again == []


@pytest.mark.parametrize("module", KEYS, ids=lambda module: module.__name__)
def test_keys_are_qualified_names_and_values_are_label_values(module: ModuleType) -> None:
    for place, name in wire_names(module):
        if place.endswith("NODE_OWNED_PREFIX"):
            assert name.endswith("/"), place
        elif place.endswith("_PREFIX"):
            assert QUALIFIED_NAME.fullmatch(name + "0"), place
        elif place.endswith("_VALUE") and module is labels:
            assert LABEL_VALUE.fullmatch(name), place
        elif not place.endswith("_VALUE"):
            assert QUALIFIED_NAME.fullmatch(name), place


def test_taints_have_a_qualified_key_and_a_label_value() -> None:
    for taint in (taints.MACOS, taints.RUNNER_TIER):
        assert QUALIFIED_NAME.fullmatch(taint.key)
        assert LABEL_VALUE.fullmatch(taint.value)
        assert taint.effect == "NoSchedule"


def test_condition_types_and_reasons_are_camel_case() -> None:
    words = [name for _, name in wire_names(conditions)] + [reason.name for reason in reasons()]
    assert [word for word in words if not CAMEL_CASE.fullmatch(word)] == []


def test_an_event_reason_fits_the_event_api() -> None:
    assert all(len(reason.name) <= 128 for reason in reasons())


def test_every_condition_reason_belongs_to_a_known_condition() -> None:
    known = set(constants(conditions).values())
    assert {reason.condition for reason in reasons() if isinstance(reason, ConditionReason)} <= known


def test_an_event_taken_from_a_condition_keeps_its_name_and_is_a_warning() -> None:
    for constant in constants(provider_reasons).keys() & constants(provider_events).keys():
        event = getattr(provider_events, constant)
        assert event.name == getattr(provider_reasons, constant).name
        assert event.type == "Warning"


def test_metric_and_label_names_are_valid() -> None:
    for metric in metrics(*METRICS):
        assert METRIC_NAME.fullmatch(metric.name), metric.name
        assert all(METRIC_LABEL.fullmatch(label) for label in metric.labels), metric.name
        assert len(set(metric.labels)) == len(metric.labels), metric.name
        assert "le" not in metric.labels, metric.name


def test_metrics_end_as_the_dashboards_read_them() -> None:
    for metric in metrics(provider, kubelet, runners, dispatch):
        if metric.kind is Kind.COUNTER:
            assert metric.name.endswith("_count" if metric in metrics(dispatch) else "_total"), metric.name
        else:
            assert not metric.name.endswith(("_total", "_bucket", "_sum")), metric.name
        if metric.kind is Kind.HISTOGRAM:
            assert metric.name.endswith(("_seconds", "_milliseconds", "_percent")), metric.name


def test_metrics_carry_the_prefix_of_their_exporter() -> None:
    prefixes = {
        provider: ("capt_scaleway_applesilicon_", "scaleway_orphan_"),
        kubelet: ("tart_kubelet_",),
        runners: ("tuist_runners_",),
        dispatch: ("tuist_runners_",),
    }
    for module, allowed in prefixes.items():
        assert [metric.name for metric in metrics(module) if not metric.name.startswith(allowed)] == []


def test_histograms_we_export_have_rising_buckets_and_nothing_else_has_any() -> None:
    for metric in metrics(provider, kubelet, runners, dispatch):
        assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM), metric.name
        assert list(metric.buckets) == sorted(set(metric.buckets)), metric.name


def test_help_is_one_sentence() -> None:
    for metric in metrics(*METRICS):
        assert metric.help.endswith("."), metric.name
        assert "\n" not in metric.help, metric.name


def test_a_set_of_label_values_names_a_metric_that_has_the_label() -> None:
    known = {metric.name: metric.labels for metric in metrics(*METRICS)}
    sets = [value for value in vars(label_values).values() if isinstance(value, type) and value.__doc__]
    for values in sets:
        if values is not StrEnum:
            label, metric_name = re.findall(r"`(\w+)`", str(values.__doc__))[:2]
            assert label in known[metric_name], values.__name__


def test_environment_names_are_upper_case() -> None:
    for place, name in wire_names(env):
        assert ENVIRONMENT_NAME.fullmatch(name), place


def test_leader_election_ids_are_object_names() -> None:
    for name in (well_known_names.PROVIDER_LEADER, well_known_names.RUNNERS_LEADER):
        assert re.fullmatch(r"[a-z0-9.-]{1,253}", name)
