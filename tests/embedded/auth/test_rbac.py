"""Who may do what by roles and bindings."""

import gc
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.auth.rbac import LONGEST_KEPT, LONGEST_USER, MOST_KEPT, MOST_OF_A_USER, MOST_PROBLEMS, Rbac
from applecart.embedded.auth.roles import Rule, read_rule
from applecart.embedded.auth.user import User
from tests.embedded.auth.objects_in_memory import (
    ObjectsInMemory,
    asks,
    asks_path,
    binding,
    plain,
    role,
    rule,
    user,
)
from tests.embedded.auth.test_roles import JSON

READER = role("reader", rule("get list", "core", "pods"), rule("get", paths="/metrics"))
ALICE = user("alice", "devs")


def test_what_no_rule_allows_is_denied() -> None:
    assert not Rbac(ObjectsInMemory()).decide(ALICE, asks("get", "pods")).allowed


@pytest.mark.parametrize("subject", ["user:alice", "group:devs", "group:system:authenticated"])
def test_a_cluster_binding_holds_everywhere_and_for_paths(subject: str) -> None:
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", subject)))
    for question in (asks("get", "pods", "a", "p"), asks("list", "pods"), asks_path("get", "/metrics")):
        decision = rbac.decide(ALICE, question)
        assert decision.allowed
        kind, _, name = subject.partition(":")
        expected = f'ClusterRoleBinding "b" of ClusterRole "reader" to {kind.capitalize()} "{name}"'
        assert decision.reason == f"RBAC: allowed by {expected}"


def test_a_namespaced_binding_holds_in_its_namespace_only() -> None:
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", "user:alice", namespace="a")))
    assert rbac.decide(ALICE, asks("get", "pods", "a", "p")).reason == (
        'RBAC: allowed by RoleBinding "b/a" of ClusterRole "reader" to User "alice"'
    )
    assert not rbac.decide(ALICE, asks("get", "pods", "b", "p")).allowed
    assert not rbac.decide(ALICE, asks("list", "pods")).allowed
    assert not rbac.decide(ALICE, asks_path("get", "/metrics")).allowed


def test_a_role_of_another_namespace_cannot_be_bound() -> None:
    objects = ObjectsInMemory(
        role("local", rule("*", "*", "*"), namespace="a"),
        binding("b", "local", "user:alice", namespace="b", to_cluster_role=False),
    )
    decision = Rbac(objects).decide(ALICE, asks("get", "pods", "b"))
    assert not decision.allowed
    assert decision.reason == 'RBAC: role.rbac.authorization.k8s.io "local" not found'


def test_a_service_account_subject_without_namespace_is_of_the_bindings_own() -> None:
    account = user("system:serviceaccount:a:robot")
    local = Rbac(ObjectsInMemory(READER, binding("b", "reader", "account:robot", namespace="a")))
    assert local.decide(account, asks("get", "pods", "a")).reason.endswith('to ServiceAccount "robot/a"')
    cluster_wide = Rbac(ObjectsInMemory(READER, binding("b", "reader", "account:robot")))
    assert not cluster_wide.decide(account, asks("get", "pods", "a")).allowed
    named = Rbac(ObjectsInMemory(READER, binding("b", "reader", "account:a/robot")))
    assert named.decide(account, asks("get", "pods", "zzz")).allowed


def test_a_namespaced_binding_that_lost_its_namespace_grants_nothing() -> None:
    """Otherwise a damaged object would hold for the whole cluster."""
    lost = {**binding("b", "reader", "user:alice"), "kind": "RoleBinding"}
    rbac = Rbac(ObjectsInMemory(READER, lost))
    for question in (asks("get", "pods"), asks("get", "pods", "a"), asks_path("get", "/metrics")):
        assert not rbac.decide(ALICE, question).allowed


def test_a_group_is_not_a_user_of_that_name() -> None:
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", "user:devs", "group:alice")))
    assert not rbac.decide(ALICE, asks("get", "pods")).allowed


def test_names_narrow_a_rule_to_requests_that_name_the_object() -> None:
    objects = ObjectsInMemory(role("r", rule("get list", "core", "pods", names="one two")), binding("b", "r", "user:alice"))
    rbac = Rbac(objects)
    answers = {name: rbac.decide(ALICE, asks("get", "pods", "a", name)).allowed for name in ("one", "two", "three", "")}
    assert answers == {"one": True, "two": True, "three": False, "": False}


def test_missing_roles_are_named_in_the_denial() -> None:
    objects = ObjectsInMemory(
        binding("b1", "none1", "user:alice"),
        binding("b2", "none2", "user:alice"),
        binding("b3", "r", "user:alice", namespace="a", to_cluster_role=False),
    )
    rbac = Rbac(objects)
    assert rbac.decide(ALICE, asks("get", "pods", "a")).reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "none1" not found, '
        'clusterrole.rbac.authorization.k8s.io "none2" not found, role.rbac.authorization.k8s.io "r" not found]'
    )
    assert "[" in rbac.decide(ALICE, asks("get", "pods")).reason
    assert rbac.decide(user("bob"), asks("get", "pods")).reason == ""


def test_a_missing_role_does_not_take_away_what_another_gives() -> None:
    objects = ObjectsInMemory(READER, binding("a", "none", "user:alice"), binding("b", "reader", "user:alice"))
    assert Rbac(objects).decide(ALICE, asks("get", "pods")).allowed


def test_every_change_of_roles_and_bindings_counts_at_once() -> None:
    objects = ObjectsInMemory()
    rbac = Rbac(objects)
    question = asks("get", "pods", "a")
    assert not rbac.decide(ALICE, question).allowed
    objects.put(binding("b", "reader", "user:alice", namespace="a"))
    assert not rbac.decide(ALICE, question).allowed
    objects.put(READER)
    assert rbac.decide(ALICE, question).allowed
    objects.put(role("reader", rule("list", "core", "pods")))
    assert not rbac.decide(ALICE, question).allowed
    objects.put(READER)
    objects.remove("RoleBinding", "a", "b")
    assert not rbac.decide(ALICE, question).allowed


def test_changes_of_other_kinds_forget_nothing() -> None:
    objects = ObjectsInMemory(READER, binding("b", "reader", "user:alice"))
    rbac = Rbac(objects)
    rbac.decide(ALICE, asks("get", "pods"))
    read = objects.reads
    objects.put(plain("ConfigMap", "a", "c"))
    assert rbac.decide(ALICE, asks("get", "pods")).allowed
    assert objects.reads == read


def test_only_what_changed_is_read_again() -> None:
    """Whoever may bind in a namespace kept the loop for half a second at each change, with eight bindings of 14,000 users."""
    many = [binding(f"b{number}", "reader", "user:alice", "user:bob", namespace="a") for number in range(50)]
    objects = ObjectsInMemory(READER, *many)
    rbac = Rbac(objects)
    assert rbac.decide(ALICE, asks("get", "pods", "a")).allowed
    read = objects.reads
    objects.put(binding("b0", "reader", "user:carol", namespace="a"))
    for number in range(1, 50):
        objects.remove("RoleBinding", "a", f"b{number}")
    assert not rbac.decide(ALICE, asks("get", "pods", "a")).allowed
    assert rbac.decide(user("carol"), asks("get", "pods", "a")).allowed
    assert objects.reads == read + 50
    assert [*rbac._bindings["a"]] == ["b0"]
    objects.remove("RoleBinding", "a", "b0")
    assert not rbac.decide(user("carol"), asks("get", "pods", "a")).allowed
    assert not rbac._bindings


def test_a_hundred_bindings_of_one_role_are_looked_at_as_one() -> None:
    """150 bindings of one Role of 12,000 rules kept the loop for 635 ms at the first request of each user."""
    bindings = [binding(f"b{number:03}", "reader", "group:devs", namespace="a") for number in range(150)]
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", "user:alice"), *bindings))
    rules, _ = rbac.rules_for(ALICE, "a")
    assert rules == [read_rule(one) for one in READER["rules"]]
    reason = rbac.decide(user("bob", "devs"), asks("get", "pods", "a")).reason
    assert reason == 'RBAC: allowed by RoleBinding "b000/a" of ClusterRole "reader" to Group "devs"'


def test_a_decision_looks_at_no_single_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace with 150 roles of thousands of rules made each new question a walk through all of them."""
    looked_at = []
    monkeypatch.setattr(Rule, "is_about", lambda rule, *_: looked_at.append(rule))
    rules = [rule("get list", "core", f"r{number} pods", names=f"n{number}") for number in range(500)]
    rbac = Rbac(ObjectsInMemory(role("large", *rules), binding("b", "large", "user:alice")))
    assert rbac.decide(ALICE, asks("get", "pods", "a", "n499")).allowed
    assert rbac.decide(ALICE, asks("list", "r7", "a", "n7")).allowed
    assert not rbac.decide(ALICE, asks("list", "r7", "a", "n8")).allowed
    assert looked_at == []


def test_a_denial_names_some_of_many_missing_roles() -> None:
    bindings = [binding(f"b{number}", f"none{number}", "user:alice") for number in range(MOST_PROBLEMS + 10)]
    assert Rbac(ObjectsInMemory(*bindings)).decide(ALICE, asks("get", "pods")).reason.count("not found") == MOST_PROBLEMS


def test_users_with_the_same_name_and_other_groups_are_told_apart() -> None:
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", "group:devs")))
    assert rbac.decide(ALICE, asks("get", "pods")).allowed
    assert not rbac.decide(user("alice"), asks("get", "pods")).allowed


def kept(rbac: Rbac) -> int:
    """How many users and answers, and how many namespaces of users."""
    everybody = [*rbac._known.values(), *rbac._known_before.values()]
    return sum(1 + len(known.answers) + len(known.grants) for known in everybody)


def test_a_flood_of_users_and_questions_stays_within_its_memory() -> None:
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", "group:devs")))
    for number in range(MOST_OF_A_USER + 10):
        rbac.decide(ALICE, asks_path("get", f"/{number}"))
    (known,) = rbac._known.values()
    assert len(known.answers) <= MOST_OF_A_USER
    for number in range(MOST_KEPT):
        rbac.decide(User(f"u{number}", ("devs",)), asks("get", "pods"))
        assert kept(rbac) <= MOST_KEPT
    assert rbac.decide(ALICE, asks("get", "pods")).allowed


def test_who_comes_again_is_remembered_through_a_flood_of_others() -> None:
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", "group:devs")))
    first = rbac.decide(ALICE, asks("get", "pods"))
    for number in range(MOST_KEPT):
        rbac.decide(User(f"u{number}", ("devs",)), asks("get", "pods"))
        if number % 1000 == 0:
            assert rbac.decide(ALICE, asks("get", "pods")) is first
    assert ("u0", ("devs",)) not in {**rbac._known, **rbac._known_before}


def test_long_questions_and_users_with_long_names_are_answered_and_not_kept() -> None:
    """1,500 pages of 32 kB that somebody asked for stayed in memory with 60 MB, and as many for each account of theirs."""
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", "group:devs")))
    long = "a" * (LONGEST_KEPT + 1)
    assert rbac.decide(ALICE, asks("get", "pods", long)).allowed
    assert not rbac.decide(ALICE, asks_path("get", f"/{long}")).allowed
    assert rbac.decide(user("alice", "devs", "a" * LONGEST_USER), asks("get", "pods")).allowed
    (known,) = rbac._known.values()
    assert (list(known.answers), list(known.grants)) == ([], [""])


def test_a_user_with_forty_groups_is_remembered() -> None:
    """Each string takes some 50 bytes beside its letters: with 15 groups of an OIDC provider each decision took 157 µs."""
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", "user:alice")))
    someone = user("alice", *(f"oidc:team-platform-ios-{number:02}" for number in range(40)))
    question = asks("get", "pods", "a")
    assert rbac.decide(someone, question) is rbac.decide(someone, question)
    (known,) = rbac._known.values()
    assert len(known.answers) == 1


def test_users_of_whom_nothing_else_is_kept_stay_within_the_memory_as_well() -> None:
    """Nobody looked at the limit when a user came, only when something was kept of one."""
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", "group:devs", namespace="a")))
    long = asks_path("get", f"/{'a' * (LONGEST_KEPT + 1)}")
    for number in range(2 * MOST_KEPT):
        rbac.decide(User(f"u{number}"), long)
    assert kept(rbac) <= MOST_KEPT


def test_a_user_with_many_groups_counts_as_many() -> None:
    rbac = Rbac(ObjectsInMemory(READER, binding("b", "reader", "group:devs", namespace="a")))
    many = tuple(f"{number:03}-{'g' * 30}" for number in range(40))
    for number in range(MOST_KEPT // 2):
        rbac.decide(User(f"u{number}", many), asks("get", "pods"))
    assert kept(rbac) < MOST_KEPT // 2


def test_nothing_is_kept_of_namespaces_without_bindings_or_in_wide_letters() -> None:
    """Questions about namespaces in letters of four bytes took 20 MB of each identity, and identities are invented too."""
    rbac = Rbac(
        ObjectsInMemory(READER, binding("b", "reader", "group:devs"), binding("b", "reader", "group:devs", namespace="a"))
    )
    rbac.decide(ALICE, asks("get", "pods", "a"))
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(100):
            rbac.decide(ALICE, asks("get", "pods", "\N{GRINNING FACE}" * 900 + str(number)))
            rbac.decide(ALICE, asks("get", "pods", f"invented-{number}"))
        gc.collect()
        used_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    (known,) = rbac._known.values()
    assert list(known.grants) == ["", "a"]
    assert used_bytes < 100 * LONGEST_KEPT


def test_rules_for_a_user_are_listed_with_what_could_not_be_resolved() -> None:
    objects = ObjectsInMemory(
        READER, binding("b", "reader", "user:alice", "group:devs"), binding("c", "none", "user:alice", namespace="a")
    )
    rbac = Rbac(objects)
    rules, problems = rbac.rules_for(ALICE, "a")
    assert rules == [read_rule(one) for one in READER["rules"]]
    assert problems == ['clusterrole.rbac.authorization.k8s.io "none" not found']
    assert rbac.rules_for(ALICE, "")[1] == []


def test_a_known_question_is_answered_without_reading_anything_again() -> None:
    """Every request passes here; a look at all bindings each time would be the slowest part of most of them."""
    objects = ObjectsInMemory(READER, *(binding(f"b{number}", "reader", f"user:u{number}") for number in range(500)))
    rbac = Rbac(objects)
    someone, question = user("u400", "devs"), asks("get", "pods", "a", "p")
    first = rbac.decide(someone, question)
    read = objects.reads
    assert rbac.decide(someone, asks("get", "pods", "a", "another")) is first
    assert objects.reads == read


@given(JSON, JSON, st.sampled_from(["ClusterRole", "Role", "RoleBinding", "ClusterRoleBinding"]))
def test_objects_of_any_shape_never_break_a_decision(content: object, subjects: object, kind: str) -> None:
    objects = ObjectsInMemory(READER, binding("good", "reader", "user:alice"))
    namespaced = {"namespace": "a"} if kind in ("Role", "RoleBinding") else {}
    odd = {"kind": kind, "metadata": {"name": "odd", **namespaced}}
    objects.put({**odd, "rules": content, "subjects": subjects, "roleRef": content})
    rbac = Rbac(objects)
    assert rbac.decide(ALICE, asks("get", "pods", "a")).allowed
    assert not rbac.decide(user("bob"), asks("get", "pods", "a")).allowed
