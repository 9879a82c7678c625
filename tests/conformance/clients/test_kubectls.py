"""Which kubectls are taken."""

import json
from pathlib import Path

import pytest

from tests.conformance.clients.kubectls import Kubectl, chosen, minor_of


def version(text: str) -> str:
    return json.dumps({"clientVersion": {"gitVersion": text}})


@pytest.mark.parametrize(
    ("answer", "minor"),
    [
        (version("v1.36.3"), 36),
        (version("v1.29.14-gke.1"), 29),
        (version("v1.32.4-dispatcher"), None),
        (version("v2.1.0"), None),
        ("Client Version: v1.36.3", None),
        ("", None),
        ("[]", None),
        ("{}", None),
        ('{"clientVersion": 1}', None),
    ],
)
def test_a_minor_is_read_from_the_answer_and_a_dispatcher_has_none(answer: str, minor: int | None) -> None:
    assert minor_of(answer) == minor


def test_the_first_of_each_minor_is_taken_and_none_that_is_too_old() -> None:
    built = Kubectl(Path("/built/kubectl"), 36, built=True)
    same = Kubectl(Path("/usr/bin/kubectl"), 36, built=False)
    older = Kubectl(Path("/usr/bin/kubectl.1.29"), 29, built=False)
    oldest = Kubectl(Path("/usr/bin/kubectl.1.28"), 28, built=False)
    assert chosen([built, same, older, oldest]) == (built, older)


def test_a_label_says_whether_a_kubectl_is_pinned() -> None:
    assert Kubectl(Path("k"), 36, built=True).label == "1.36"
    assert Kubectl(Path("k"), 31, built=False).label == "1.31-found"
