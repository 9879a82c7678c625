"""Acting as somebody else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.impersonation import impersonated
from applecart.embedded.auth.user import MASTERS, User
from applecart.embedded.refusals import Refusal
from tests.embedded.auth.objects_in_memory import ObjectsInMemory, binding, refused_code, role, rule, user

ADMIN = user("admin", MASTERS)
ALICE = user("alice")


def act(someone: User, *headers: tuple[str, str], objects: ObjectsInMemory | None = None) -> User | None:
    return impersonated(someone, headers, Authorizer(objects or ObjectsInMemory()).decide)


def may(*rules: dict[str, object]) -> ObjectsInMemory:
    return ObjectsInMemory(role("r", *rules), binding("b", "r", "user:alice"))


def test_a_request_without_such_headers_acts_as_itself() -> None:
    assert act(ADMIN, ("Accept", "x")) is None
    assert act(ADMIN, ("Impersonate-User", "")) is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("Impersonate-User", "bob")], User("bob", ("system:authenticated",))),
        (
            [("impersonate-user", "bob"), ("IMPERSONATE-GROUP", "a"), ("Impersonate-Group", "b")],
            User("bob", ("a", "b", "system:authenticated")),
        ),
        ([("Impersonate-User", "system:anonymous")], User("system:anonymous", ("system:unauthenticated",))),
        (
            [("Impersonate-User", "bob"), ("Impersonate-Group", "system:unauthenticated")],
            User("bob", ("system:unauthenticated",)),
        ),
        (
            [("Impersonate-User", "system:serviceaccount:ns:robot")],
            User(
                "system:serviceaccount:ns:robot",
                ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            ),
        ),
        (
            [("Impersonate-User", "system:serviceaccount:ns:robot"), ("Impersonate-Group", "g")],
            User("system:serviceaccount:ns:robot", ("g", "system:authenticated")),
        ),
        (
            [
                ("Impersonate-User", "bob"),
                ("Impersonate-Uid", "u"),
                ("Impersonate-Extra-Acme.com%2fProject", "x"),
                ("Impersonate-Extra-acme.com%2Fproject", "y"),
            ],
            User("bob", ("system:authenticated",), "u", {"acme.com/project": ("x", "y")}),
        ),
    ],
)
def test_the_user_taken_on_is_the_one_the_headers_say(headers: list[tuple[str, str]], expected: User) -> None:
    assert act(ADMIN, *headers) == expected


@pytest.mark.parametrize(
    ("headers", "rules", "message"),
    [
        (
            [("Impersonate-User", "bob")],
            [],
            'users "bob" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope',
        ),
        (
            [("Impersonate-User", "bob"), ("Impersonate-Group", "system:masters")],
            [rule("impersonate", "core", "users")],
            'groups "system:masters" is forbidden: User "alice" cannot impersonate resource "groups" in API group "" '
            "at the cluster scope",
        ),
        (
            [("Impersonate-User", "system:serviceaccount:ns:robot")],
            [rule("impersonate", "core", "users")],
            'serviceaccounts "robot" is forbidden: User "alice" cannot impersonate resource "serviceaccounts" in API group "" '
            'in the namespace "ns"',
        ),
        (
            [("Impersonate-User", "bob"), ("Impersonate-Extra-scopes", "all")],
            [rule("impersonate", "core", "users")],
            'userextras.authentication.k8s.io "all" is forbidden: User "alice" cannot impersonate resource '
            '"userextras/scopes" in API group "authentication.k8s.io" at the cluster scope',
        ),
        (
            [("Impersonate-User", "bob"), ("Impersonate-Uid", "u")],
            [rule("impersonate", "core", "users")],
            'uids.authentication.k8s.io "u" is forbidden: User "alice" cannot impersonate resource "uids" in API group '
            '"authentication.k8s.io" at the cluster scope',
        ),
    ],
)
def test_each_part_needs_its_own_right(headers: list[tuple[str, str]], rules: list[dict[str, object]], message: str) -> None:
    with pytest.raises(Refusal) as caught:
        act(ALICE, *headers, objects=may(*rules))
    assert (caught.value.code, caught.value.message) == (403, message)


def test_rights_may_name_who_can_be_taken_on() -> None:
    objects = may(
        rule("impersonate", "core", "users", names="bob"),
        rule("impersonate", "core", "groups", names="devs"),
        rule("impersonate", "authentication.k8s.io", "userextras/scopes uids"),
    )
    headers = [
        ("Impersonate-User", "bob"),
        ("Impersonate-Group", "devs"),
        ("Impersonate-Uid", "u"),
        ("Impersonate-Extra-Scopes", "x"),
    ]
    assert act(ALICE, *headers, objects=objects) == User("bob", ("devs", "system:authenticated"), "u", {"scopes": ("x",)})
    with pytest.raises(Refusal):
        act(ALICE, ("Impersonate-User", "carol"), objects=objects)


@pytest.mark.parametrize("header", ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-x"])
def test_groups_uid_and_extras_need_a_user(header: str) -> None:
    with pytest.raises(Refusal) as caught:
        act(ADMIN, (header, "v"))
    assert caught.value.code == 400
    assert caught.value.message.endswith("without impersonating a user")


HEADERS = st.sampled_from(
    ["Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-%ZZ", "Impersonate-Extra-", "Impersonate-"]
)


@given(st.lists(st.tuples(HEADERS, st.text(max_size=20))))
def test_any_headers_end_in_a_user_or_a_refusal(headers: list[tuple[str, str]]) -> None:
    assert refused_code(lambda: act(ADMIN, *headers)) in (None, 400)
    assert refused_code(lambda: act(ALICE, *headers)) in (None, 400, 403)
