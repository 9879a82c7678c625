"""Comparing with a real server of another minor than the recorded one.

How a value is shown in a cause changed between the minors (quotes around null, the type instead of the value), and a few checks
are younger than the oldest minor. Ours are the newest's; on an older server the rest of a cause must still be the same.
"""

from typing import Any

from tests.embedded.schema.schema_cases import Case

RECORDED_MINOR = "1.36"
TAIL = 11  # characters at the end of a cause, behind the value that is shown
# Checks that 1.33 does not make, or answers in another number of causes.
CHANGED_SINCE: dict[str, frozenset[str]] = {
    "1.33": frozenset(
        {
            *("embedded-no-identity", "format-k8s-long-name-1", "format-k8s-short-name-1", "format-k8s-short-name-2"),
            *("int32", "int32-limits", "type-int-float"),  # ranges of numbers are checked since 1.36
            *("max-items", "max-length-one", "max-properties"),  # "1 items"
            *("rule-duplicate", "rule-empty-message-expression"),  # nothing but the value that is shown
            "no-schema",
        }
    )
}
NOT_INSTALLABLE: dict[str, frozenset[str]] = {"1.33": frozenset({"rule-semver"})}  # rules that need a younger CEL library


def known_cases(kube: str, cases: tuple[Case, ...]) -> tuple[Case, ...]:
    return tuple(case for case in cases if case.name not in NOT_INSTALLABLE.get(kube, frozenset()))


def agree(kube: str, name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    if kube == RECORDED_MINOR:
        return ours == theirs
    return name in CHANGED_SINCE.get(kube, frozenset()) or _essence(ours) == _essence(theirs)


def _essence(answer: dict[str, Any]) -> Any:
    if "causes" not in answer:
        return answer
    return sorted((reason, text[-TAIL:], field) for reason, text, field in answer["causes"])
