"""`published` tells everybody who listens, and nobody when nobody does."""

import pytest

from applecart import observe


def test_without_listeners_publishing_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "sinks", [])
    observe.published("event", "host claimed")


def test_every_listener_hears_the_channel_and_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, str]] = []
    monkeypatch.setattr(observe, "sinks", [lambda *said: heard.append(said)] * 2)
    observe.published("condition", "image not found")
    assert heard == [("condition", "image not found")] * 2
