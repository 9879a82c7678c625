"""The list of checks, and running one of them on one server.

A check is an async function that asks a server and returns JSON values which say everything its line demands. It decides
nothing: whether an answer is right is decided by comparing it with the answer of another server. Numbers are those of the
list of 146 that the embedded server is measured by; 54b is one of them.
"""

import importlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.conformance.context import Context
from tests.conformance.normal import normalise
from tests.conformance.servers import Server

MODULES = (
    "discovery",
    "create",
    "read",
    "paging",
    "update_patch",
    "apply",
    "delete",
    "garbage",
    "crd",
    "crd_versions",
    "validation",
    "openapi",
    "watch",
    "streams",
    "subresources",
    "auth",
)
COUNT = 147  # 1 to 146, and 54b

Run = Callable[[Context], Awaitable[Any]]


@dataclass(frozen=True)
class Check:
    """One line of the list."""

    number: str
    title: str
    run: Run
    managed_fields: bool  # the answer is about them, so they are compared
    needs: frozenset[str]  # powers over the server
    alone: bool  # disturbs other checks that run at the same time

    @property
    def order(self) -> tuple[int, str]:
        digits = self.number.rstrip("b")
        return int(digits), self.number


_registered: dict[str, Check] = {}


def check(
    number: int | str, title: str, *, managed_fields: bool = False, needs: Iterable[str] = (), alone: bool = False
) -> Callable[[Run], Run]:
    """Put a function on the list."""

    def register(run: Run) -> Run:
        key = str(number)
        assert key not in _registered, f"two checks have the number {key}"
        _registered[key] = Check(key, title, run, managed_fields, frozenset(needs), alone)
        return run

    return register


def all_checks() -> list[Check]:
    for module in MODULES:
        importlib.import_module(f"tests.conformance.checks_{module}")
    return sorted(_registered.values(), key=lambda one: one.order)


async def answer_of(one: Check, server: Server, session: aiohttp.ClientSession) -> Any:
    """The normalised answer of a server; what a check made cluster-wide is removed."""
    context = await Context.prepared(server, session, one.number)
    try:
        answer = await one.run(context)
    finally:
        await context.clean_up()
    return normalise(answer, context.aliases, managed_fields=one.managed_fields)
