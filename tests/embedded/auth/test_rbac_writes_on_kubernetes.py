"""Granting rights and acting as others, on a real server and by our rules."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from applecart.embedded.auth.authenticate import impersonated
from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.escalation import refuse
from applecart.embedded.auth.untyped import Document
from applecart.embedded.auth.user import User
from tests.embedded.auth.objects_in_memory import GROUP, LABELS, asks, binding, refused_code, role, rule, user
from tests.embedded.auth.real_server import PATHS, RBAC, Caller, is_allowed, needs_newest, plural_of, seen_objects, until
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes

PODS, SECRETS = rule("get list", "core", "pods"), rule("get", "core", "secrets")
GATHERS = {"clusterRoleSelectors": [{"matchLabels": {"no": "such"}}]}


class Stage(NamedTuple):
    admin: Caller
    grantor: Caller
    user: User
    n: str


@pytest.fixture
def stage(real_cluster: FullCluster, namespace: str) -> Iterator[Stage]:
    """A user who may write roles and holds rights to Pods, and to Secrets in one namespace."""
    n = namespace
    admin = Caller(real_cluster, "kubernetes-admin", "system:masters")
    everything = "roles rolebindings clusterroles clusterrolebindings"
    may_bind = rule("bind", GROUP, "clusterroles", names=f"{n}-bindable")
    documents = [
        role(f"{n}-writes", rule("create update get", GROUP, everything), PODS),
        role(f"{n}-secrets", SECRETS),
        role(f"{n}-bindable", SECRETS, rule("*", "*", "*")),
        role(f"{n}-may-bind", may_bind, rule("impersonate", "core", "users", names="bob")),
        role(f"{n}-writable", SECRETS),
        binding(f"{n}-1", f"{n}-writes", f"user:{n}"),
        binding(f"{n}-2", f"{n}-may-bind", f"user:{n}"),
        binding("secrets", f"{n}-secrets", f"user:{n}", namespace=n),
    ]
    for document in documents:
        admin.create(document)
    someone = user(n, "devs")
    until(lambda: is_allowed(admin, n, (), asks("get", "secrets", n)), "the bindings")
    until(lambda: is_allowed(admin, n, (), asks("bind", f"clusterroles.{GROUP}", "", f"{n}-bindable")), "the roles")
    grantor = Caller(real_cluster, n, "devs")
    yield Stage(admin, grantor, someone, n)
    for document in documents:
        if "namespace" not in document["metadata"]:
            admin("DELETE", f"{PATHS[document['kind']]}/{document['metadata']['name']}")
    admin.close()
    grantor.close()


def documents(n: str) -> dict[str, Document]:
    return {
        "held rights": role(f"{n}-new-1", rule("get", "core", "pods")),
        "rights beyond": role(f"{n}-new-2", PODS, SECRETS, rule("get delete", "apps", "deployments deployments/scale")),
        "a path": role(f"{n}-new-3", rule("get", paths="/metrics")),
        "one name of what is held": role(f"{n}-new-4", rule("get", "core", "pods", names="x")),
        "one name of what is not": role(f"{n}-new-5", rule("get list", "core", "secrets", names="x y")),
        "a gathering role": role(f"{n}-new-6", aggregationRule=GATHERS),
        "local rights in their namespace": role("new-7", SECRETS, namespace=n),
        "local rights beyond": role("new-8", rule("delete", "core", "secrets"), namespace=n),
        "a binding to held rights": binding("new-9", f"{n}-secrets", "user:bob", namespace=n),
        "a binding of local rights everywhere": binding(f"{n}-new-10", f"{n}-secrets", "user:bob"),
        "a binding to a bindable role": binding(f"{n}-new-11", f"{n}-bindable", "user:bob"),
        "a binding to more": binding(f"{n}-new-12", "cluster-admin", "user:bob"),
        "a binding to nothing": binding(f"{n}-new-13", f"{n}-nowhere", "user:bob"),
        "a local binding to nothing": binding("new-14", "nowhere", "user:bob", namespace=n, to_cluster_role=False),
    }


@pytest.mark.parametrize("case", list(documents("")))
def test_creating_roles_and_bindings_is_judged_the_same(stage: Stage, case: str) -> None:
    document = documents(stage.n)[case]
    authorizer = Authorizer(seen_objects(stage.admin))
    namespace = document["metadata"].get("namespace", "")
    ours = refuse(
        stage.user,
        LABELS[document["kind"]],
        document,
        None,
        authorizer.rbac,
        namespace=namespace,
        name="",
        is_allowed=authorizer.is_allowed,
    )
    scope = f"/namespaces/{namespace}" if namespace else ""
    path = f"{RBAC}{scope}/{plural_of(document['kind'])}"
    code, answer = stage.grantor("POST", path, document)
    if code == 201:
        stage.admin("DELETE", f"{path}/{document['metadata']['name']}")
        assert ours is None, ours.message
    else:
        assert ours is not None, answer
        assert ours.document() == answer


@pytest.mark.parametrize(
    "change",
    [
        {"rules": [SECRETS, rule("delete", "core", "secrets")]},
        {"rules": [PODS]},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"finalizers": ["example.com/x"]}},
        {"aggregationRule": GATHERS},
    ],
    ids=str,
)
def test_changing_a_role_is_judged_the_same(stage: Stage, change: Document) -> None:
    path = f"{RBAC}/clusterroles/{stage.n}-writable"
    _, old = stage.admin("GET", path)
    new = {**old, **change, "metadata": {**old["metadata"], **change.get("metadata", {})}}
    authorizer = Authorizer(seen_objects(stage.admin))
    label, name = LABELS["ClusterRole"], f"{stage.n}-writable"
    is_allowed = authorizer.is_allowed
    ours = refuse(stage.user, label, new, old, authorizer.rbac, namespace="", name=name, is_allowed=is_allowed)
    code, answer = stage.grantor("PUT", path, new)
    if code == 200:
        assert ours is None, ours.message
        stage.admin("PUT", path, {**answer, "metadata": {**answer["metadata"], "finalizers": []}})
    else:
        assert ours is not None, answer
        assert ours.document() == answer


@pytest.mark.parametrize(
    "headers",
    [
        [("Impersonate-User", "bob")],
        [("Impersonate-User", "carol")],
        [("Impersonate-User", "bob"), ("Impersonate-Group", "system:masters")],
        [("Impersonate-User", "bob"), ("Impersonate-Uid", "u")],
        [("Impersonate-User", "bob"), ("Impersonate-Extra-Scopes", "x")],
        [("Impersonate-User", "system:serviceaccount:default:default")],
        [("Impersonate-Group", "system:masters")],
        [("Impersonate-Uid", "x")],
    ],
    ids=str,
)
@pytest.mark.parametrize("who", ["grantor", "admin"])
def test_acting_as_others_ends_the_same(stage: Stage, headers: list[tuple[str, str]], who: str, kube: str) -> None:
    if headers[0][0] != "Impersonate-User":
        needs_newest(kube)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    caller = stage.grantor if who == "grantor" else stage.admin
    someone = stage.user if who == "grantor" else user("kubernetes-admin", "system:masters")
    code, answer = caller("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body, headers)
    decide = Authorizer(seen_objects(stage.admin)).decide
    # The texts differ between minors: newer ones speak of kinds of impersonation that this server does not know.
    assert refused_code(lambda: impersonated(someone, headers, decide)) == (None if code == 201 else code)
    if code == 201:
        taken = impersonated(someone, headers, decide)
        assert taken is not None
        real = answer["status"]["userInfo"]
        assert (taken.name, sorted(taken.groups)) == (real["username"], sorted(real["groups"]))
        assert (taken.uid, {key: list(values) for key, values in taken.extra.items()}) == (
            real.get("uid", ""),
            real.get("extra", {}),
        )
