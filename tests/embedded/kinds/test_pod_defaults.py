"""When an image is pulled again, by what its reference says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.kinds.pod_defaults import pull_policy_of

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("acme", "Always"),
        ("acme:latest", "Always"),
        ("acme:14", "IfNotPresent"),
        ("registry:5000/acme", "Always"),
        ("registry:5000/acme/macos:14", "IfNotPresent"),
        ("[::1]:5000/acme", "Always"),
        (f"acme@{DIGEST}", "IfNotPresent"),
        (f"acme:latest@{DIGEST}", "Always"),
        ("acme@sha256:abc", "IfNotPresent"),
        ("ACME", "IfNotPresent"),
        ("Host/acme", "Always"),
        ("", "IfNotPresent"),
        (" acme", "IfNotPresent"),
        ("acme:", "IfNotPresent"),
    ],
)
def test_a_tag_that_moves_is_pulled_every_time(image: str, policy: str) -> None:
    assert pull_policy_of(image) == policy


@given(st.text(max_size=60))
def test_any_text_has_a_policy(image: str) -> None:
    assert pull_policy_of(image) in ("Always", "IfNotPresent")


def test_a_hostile_reference_is_judged_quickly() -> None:
    assert pull_policy_of("a-" * 20_000 + "!") == "IfNotPresent"
