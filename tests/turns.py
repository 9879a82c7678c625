"""How much is done before others get a turn, counted and not measured."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest


class Turns:
    """Counts the calls of a function, and the most of them in one turn of the loop."""

    def __init__(self) -> None:
        self.calls = self.most = self._now = 0

    def count(self, monkeypatch: pytest.MonkeyPatch, of: Any, name: str) -> None:
        """From now on all calls of this function count."""
        original: Callable[..., Any] = getattr(of, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            self._called()
            return original(*arguments, **options)

        monkeypatch.setattr(of, name, counted)

    def _called(self) -> None:
        if not self._now:
            asyncio.get_running_loop().call_soon(self._turned)
        self.calls += 1
        self._now += 1
        self.most = max(self.most, self._now)

    def _turned(self) -> None:
        self._now = 0
