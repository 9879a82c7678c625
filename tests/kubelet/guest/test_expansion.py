"""`$(NAME)` is replaced exactly as Kubernetes does it, and what took in a secret is one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.guest.expansion import expanded, plain
from applecart.secrets import Secret

KNOWN = {"A": "1", "B": "$(A)", "EMPTY": "", "a b": "spaced"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("$(A)", "1"),
        ("x-$(A)-$(A)", "x-1-1"),
        ("$(B)", "$(A)"),  # a value is not looked at again
        ("$(EMPTY)", ""),
        ("$(MISSING)", "$(MISSING)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$$", "$"),
        ("$", "$"),
        ("$A", "$A"),
        ("$(A", "$(A"),
        ("$((A))", "$((A))"),
        ("$()", "$()"),
        ("$(a b)", "spaced"),
        ("$x$(A)", "$x1"),
        ("$\n$(A)", "$\n1"),
        ("costs 5$", "costs 5$"),
        ("$(A)$($$(", "1$($("),
        ("$(A)$x$$", "1$x$"),
    ],
)
def test_a_reference_is_replaced_as_kubernetes_does(text: str, expected: str) -> None:
    assert expanded(text, KNOWN) == expected


def test_a_value_that_took_in_a_secret_is_a_secret() -> None:
    found = expanded("token=$(TOKEN)", {"TOKEN": Secret("hunter2-hunter2"), "A": "1"})
    assert found == Secret("token=hunter2-hunter2")
    assert expanded("$$(TOKEN) $(A)", {"TOKEN": Secret("hunter2-hunter2"), "A": "1"}) == "$(TOKEN) 1"


@pytest.mark.parametrize("piece", ["$(", "$($", "$$(", "$(A"])
def test_a_text_full_of_beginnings_takes_no_longer_than_any_other(piece: str) -> None:
    """It is the Pod's author who writes it, and the whole agent would wait: a megabyte of them took half an hour."""
    text = piece * (1_000_000 // len(piece))
    assert len(plain(expanded(text, KNOWN))) >= len(text) / 2


@given(st.text("$()AB x", max_size=30))
def test_a_text_without_known_names_only_loses_doubled_dollars(text: str) -> None:
    found = plain(expanded(text, {}))
    assert found.replace("$", "") == text.replace("$", "")
    assert text.count("$") / 2 <= found.count("$") <= text.count("$")
