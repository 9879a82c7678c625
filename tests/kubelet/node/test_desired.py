"""The Node we want and the change that leads there, as plain values."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api import annotations, labels, taints
from applecart.api.meta import ObjectMeta
from applecart.api.nodes import Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, Taint
from applecart.clock import EPOCH
from applecart.embedded.patching.merge import merge
from applecart.kubelet.node.desired import Offer, all_labels, identity_trouble, metadata_change, new_node, status_change
from applecart.kubelet.node.facts import Facts
from applecart.kubelet.options import parse

OFFER = Offer("mac-1", provider_id="vendor://mac-1", labels={labels.FLEET: "ci"})
GOLDEN = labels.GOLDEN_PREFIX + "9c8af651fdf30b10"
LATER = EPOCH + timedelta(minutes=5)
READY = NodeCondition(type="Ready", status="True", reason="TartKubeletReady")


def node(offer: Offer = OFFER, dynamic: Mapping[str, str] = {}) -> Node:
    return new_node(offer, all_labels(offer, dynamic))


def with_labels(known: Node, **more: str) -> Node:
    metadata = msgspec.structs.replace(known.metadata, labels={**known.labels, **more})
    return msgspec.structs.replace(known, metadata=metadata)


def change(known: Node, offer: Offer = OFFER, dynamic: Mapping[str, str] = {}) -> dict[str, Any]:
    return metadata_change(known, offer, all_labels(offer, dynamic))


def applied(known: Node, patch: dict[str, Any]) -> Node:
    return msgspec.convert(merge(msgspec.to_builtins(known), patch), Node)


def test_a_new_node_has_the_labels_the_taint_and_the_identity_of_its_host() -> None:
    """Incident 35: without a providerID no Machine was ever tied to its Node."""
    made = node(dynamic={GOLDEN: "true"})
    assert made.labels == {
        "kubernetes.io/os": "darwin",
        "kubernetes.io/arch": "arm64",
        "kubernetes.io/hostname": "mac-1",
        "tuist.dev/runtime": "tart",
        "tuist.dev/fleet": "ci",
        GOLDEN: "true",
    }
    assert made.spec.provider_id == "vendor://mac-1"
    assert made.spec.taints == (Taint(key="tuist.dev/macos", value="true", effect="NoSchedule"),)
    assert made.annotations == {annotations.ADVERTISED_LABELS: "tuist.dev/fleet,tuist.dev/runtime"}
    assert change(made, dynamic={GOLDEN: "true"}) == {}


def test_the_offer_is_what_the_flags_say() -> None:
    argv = ["--node-name=mac-7", "--provider-id=vendor://7", "--node-labels=a=b", "--host-cpu=10", "--host-memory-mb=8192"]
    served = ["--tls-cert-file=/a", "--tls-private-key-file=/b", "--client-ca-file=/c", "--kubelet-bind-address=:10251"]
    assert Offer.of(parse([*argv, "--max-pods=3"], {"HOME": "/Users/m1"})) == Offer(
        "mac-7", "vendor://7", {"a": "b"}, 10, 8192, 3
    )
    assert Offer.of(parse([*argv, *served], {"HOME": "/Users/m1"})).endpoint_port == 10251


def test_labels_of_other_writers_in_our_domain_are_left_alone() -> None:
    """Weakness 23: every unknown label of the domain was removed at each heartbeat, and other writers put it back."""
    theirs = with_labels(node(), **{"tuist.dev/rack": "7", "example.com/x": "y"})
    assert change(theirs) == {}


def test_a_label_that_we_no_longer_advertise_is_taken_off_once() -> None:
    known = node(msgspec.structs.replace(OFFER, labels={labels.FLEET: "ci", labels.SHAPE: "m"}))
    patch = change(known)
    assert patch["metadata"]["labels"] == {labels.SHAPE: None}
    after = applied(known, patch)
    assert labels.SHAPE not in after.labels
    theirs = with_labels(after, **{labels.SHAPE: "theirs now"})
    assert change(theirs) == {}


@pytest.mark.parametrize("key", [GOLDEN, labels.CACHE_MASTER_PREFIX + "42"])
def test_goldens_and_caches_are_ours_by_their_prefix_whoever_wrote_them(key: str) -> None:
    assert change(with_labels(node(), **{key: "true"})) == {"metadata": {"labels": {key: None}}}


def test_labels_and_the_taint_that_others_removed_come_back_and_theirs_stay() -> None:
    unready = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
    bare = Node(metadata=ObjectMeta(name="mac-1"), spec=NodeSpec(provider_id="vendor://mac-1", taints=(unready,)))
    restored = applied(bare, change(bare))
    assert restored.labels == node().labels
    assert [taint.key for taint in restored.spec.taints] == [unready.key, taints.MACOS.key]
    assert change(restored) == {}


def test_our_taint_is_known_by_its_key_alone() -> None:
    """A person may make it stricter."""
    stricter = Taint(key=taints.MACOS.key, value="true", effect="NoExecute")
    known = msgspec.structs.replace(node(), spec=NodeSpec(provider_id="vendor://mac-1", taints=(stricter,)))
    assert change(known) == {}


def test_an_empty_provider_id_is_filled_and_another_is_never_overwritten() -> None:
    """Incident 35, and the identity that must not move once a Machine relies on it."""
    empty = msgspec.structs.replace(node(), spec=NodeSpec(taints=node().spec.taints))
    assert change(empty) == {"spec": {"providerID": "vendor://mac-1"}}
    assert identity_trouble(empty, OFFER) == ""
    other = msgspec.structs.replace(node(), spec=NodeSpec(provider_id="vendor://other", taints=node().spec.taints))
    assert change(other) == {}
    assert "vendor://other" in identity_trouble(other, OFFER)
    assert identity_trouble(other, Offer("mac-1")) == ""


KEYS = st.sampled_from(
    [labels.FLEET, labels.SHAPE, labels.RUNTIME, GOLDEN, labels.CACHE_MASTER_PREFIX + "1", "tuist.dev/rack", "example.com/x"]
)
LABELS = st.dictionaries(KEYS, st.sampled_from(["a", "b"]))


@given(stand=LABELS, before=LABELS, given_now=LABELS, dynamic=LABELS)
def test_one_change_is_enough_and_never_takes_what_others_wrote(
    stand: dict[str, str], before: dict[str, str], given_now: dict[str, str], dynamic: dict[str, str]
) -> None:
    earlier = msgspec.structs.replace(OFFER, labels=before)
    offer = msgspec.structs.replace(OFFER, labels=given_now)
    known = with_labels(node(earlier), **stand)
    after = applied(known, change(known, offer, dynamic))
    assert change(after, offer, dynamic) == {}
    wanted = all_labels(offer, dynamic)
    assert wanted.items() <= after.labels.items()
    assert {key for key in known.labels if key not in after.labels} <= {*before, GOLDEN, labels.CACHE_MASTER_PREFIX + "1"}


def status(known: Node, facts: Facts, *conditions: NodeCondition, offer: Offer = OFFER, is_due: bool = False) -> dict[str, Any]:
    body: dict[str, Any] = status_change(known, offer, facts, conditions, LATER, is_due=is_due).get("status", {})
    return body


def stored(known: Node, body: dict[str, Any]) -> Node:
    """As an API server would keep it, for the parts that are compared."""
    kept = {name: value for name, value in body.items() if name not in ("addresses", "declaredFeatures")}
    if "addresses" in body:
        kept["addresses"] = [address for address in body["addresses"] if "$patch" not in address]
    return msgspec.structs.replace(known, status=msgspec.convert({**msgspec.to_builtins(known.status), **kept}, NodeStatus))


def test_the_status_offers_the_host_and_says_what_it_is() -> None:
    body = status(node(), Facts("10.0.0.7", 494384795648, "macOS 15.1", "24.1.0"), READY, is_due=True)
    offered = {"cpu": "8", "memory": "16Gi", "pods": "2", "ephemeral-storage": "494384795648"}
    assert body["capacity"] == body["allocatable"] == offered
    assert body["addresses"] == [
        {"type": "InternalIP", "address": "10.0.0.7"},
        {"type": "Hostname", "address": "mac-1"},
        {"$patch": "replace"},
    ]
    assert body["nodeInfo"] == {
        "operatingSystem": "darwin",
        "architecture": "arm64",
        "kubeletVersion": "tart-kubelet-v0",
        "containerRuntimeVersion": "tart",
        "osImage": "macOS 15.1",
        "kernelVersion": "24.1.0",
    }
    assert "daemonEndpoints" not in body
    assert body["declaredFeatures"] is None


def test_a_host_that_serves_logs_says_where_and_how() -> None:
    body = status(node(), Facts(), READY, offer=msgspec.structs.replace(OFFER, endpoint_port=10250), is_due=True)
    assert body["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert body["declaredFeatures"] == ["ExtendWebSocketsToKubelet"]


@given(
    cpu=st.integers(1, 5000),
    memory_mb=st.integers(1, 10**7),
    disk_bytes=st.integers(0, 10**14),
    address=st.sampled_from(["", "10.0.0.7"]),
)
def test_a_status_that_stands_is_not_written_again(cpu: int, memory_mb: int, disk_bytes: int, address: str) -> None:
    offer, facts = Offer("mac-1", cpu=cpu, memory_mb=memory_mb), Facts(address, disk_bytes)
    known = stored(node(offer), status(node(offer), facts, READY, offer=offer, is_due=True))
    assert status(known, facts, READY, offer=offer) == {}


def test_an_address_that_is_not_known_leaves_those_that_stand() -> None:
    known = stored(node(), status(node(), Facts("10.0.0.7"), READY, is_due=True))
    assert status(known, Facts(), READY) == {}
    assert known.status.addresses[0] == NodeAddress(type="InternalIP", address="10.0.0.7")


def test_a_disk_that_is_not_known_leaves_the_size_that_stands() -> None:
    known = stored(node(), status(node(), Facts(disk_bytes=1000), READY, is_due=True))
    assert status(known, Facts(), READY) == {}


def test_a_condition_keeps_its_transition_while_its_status_stays() -> None:
    known = stored(node(), {"conditions": [{**msgspec.to_builtins(READY), "lastTransitionTime": EPOCH}]})
    said = status(known, Facts(), msgspec.structs.replace(READY, message="still"))["conditions"][0]
    assert said["lastTransitionTime"] == msgspec.to_builtins(EPOCH)
    assert said["lastHeartbeatTime"] == msgspec.to_builtins(LATER)
    flipped = status(known, Facts(), msgspec.structs.replace(READY, status="False"))["conditions"][0]
    assert flipped["lastTransitionTime"] == msgspec.to_builtins(LATER)


def test_an_old_message_does_not_stay_under_a_new_status() -> None:
    """The API merges conditions field by field: what is not sent is kept."""
    sick = msgspec.structs.replace(READY, status="False", message="Tart is gone")
    known = stored(node(), {"conditions": [{**msgspec.to_builtins(sick), "lastTransitionTime": EPOCH}]})
    assert status(known, Facts(), READY)["conditions"][0]["message"] == ""


def test_a_heartbeat_moves_only_when_it_is_due_or_something_else_is_written() -> None:
    known = stored(node(), status(node(), Facts(), READY, is_due=True))
    assert status(known, Facts(), READY) == {}
    assert set(status(known, Facts(), READY, is_due=True)) == {"conditions", "declaredFeatures"}
