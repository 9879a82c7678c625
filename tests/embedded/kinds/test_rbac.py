"""How large a role or a binding may be."""

from typing import Any

import pytest

from applecart.embedded.field_errors import FieldError
from applecart.embedded.kinds.rbac import GROUP, MOST_RULES, MOST_SUBJECTS, MOST_WORDS, BindingStrategy, RoleStrategy

ROLE, BINDING = RoleStrategy(namespaced=True), BindingStrategy(namespaced=True)
CLUSTER_ROLE = RoleStrategy(namespaced=False)


def role(rules: int, verbs: int = 1) -> dict[str, Any]:
    return {"rules": [{"verbs": ["get"] * verbs, "apiGroups": [""], "resources": ["pods"]}] * rules}


def binding(subjects: int) -> dict[str, Any]:
    reference = {"apiGroup": GROUP, "kind": "Role", "name": "r"}
    return {"roleRef": reference, "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "alice"}] * subjects}


def sentences(errors: list[FieldError]) -> list[str]:
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("strategy", "obj", "expected"),
    [
        (ROLE, role(MOST_RULES), []),
        (ROLE, role(MOST_RULES + 1), ["rules: Too many: 1001: must have at most 1000 rules in all"]),
        (ROLE, role(1, MOST_WORDS - 2), []),
        (CLUSTER_ROLE, role(1, MOST_WORDS - 1), ["rules: Too many: 10001: must have at most 10000 words in all"]),
        (BINDING, binding(MOST_SUBJECTS), []),
        (BINDING, binding(MOST_SUBJECTS + 1), ["subjects: Too many: 5001: must have at most 5000 subjects in all"]),
    ],
)
def test_roles_and_bindings_have_a_size(strategy: RoleStrategy | BindingStrategy, obj: Any, expected: list[str]) -> None:
    """One binding of 18,000 users, or one role of 12,000 rules, kept the loop for 100 ms when it was read."""
    assert sentences(strategy.validate_with([], obj, None)) == expected
    assert sentences(strategy.validate_with([], obj, {**obj, "rules": [], "subjects": []})) == expected


@pytest.mark.parametrize(("strategy", "obj"), [(ROLE, role(MOST_RULES + 1)), (BINDING, binding(MOST_SUBJECTS + 1))])
def test_what_was_stored_above_the_limit_can_be_labelled(strategy: RoleStrategy | BindingStrategy, obj: Any) -> None:
    assert strategy.validate_with([], {**obj, "metadata": {"labels": {"a": "b"}}}, obj) == []


def test_a_role_that_gathers_the_rules_of_others_has_as_many_as_they_have() -> None:
    gathering = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    assert CLUSTER_ROLE.validate_with([], {**role(MOST_RULES + 1), **gathering}, None) == []
    assert ROLE.validate_with([], {**role(MOST_RULES + 1), **gathering}, None) != []


@pytest.mark.parametrize("strategy", [ROLE, CLUSTER_ROLE, BINDING])
def test_a_name_is_no_longer_than_other_names(strategy: RoleStrategy | BindingStrategy) -> None:
    """Each decision repeats it: a role with a name of 1 MB was quoted, and kept, for every user it was bound to."""
    assert strategy.name_problems("system:a" + "b" * 245, is_prefix=False) == []
    assert strategy.name_problems("system:a" + "b" * 246, is_prefix=False) == ["must be no more than 253 characters"]
