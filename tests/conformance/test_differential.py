"""Every check gives the same answer on a real kube-apiserver and on each server that must behave like it.

The real server itself is one of them, with a sample of checks: an answer that is not the same twice proves nothing about
anybody else.
"""

import pytest

from tests.conformance.caller import open_session
from tests.conformance.checks import all_checks, answer_of
from tests.conformance.conftest import Servers
from tests.conformance.servers import CONTROLLERS, Server
from tests.conformance.verdict import difference, is_equal, recorded_answers

CHECKS = {one.number: one for one in all_checks()}
# One of each sort: discovery, names, selectors, pages, patches, ownership, deletion, schemas, watches, identities.
SAMPLE = ("3", "12", "33", "39", "63", "74", "86", "98", "117", "136")
BACKENDS: dict[str, tuple[str, ...]] = {
    "real": SAMPLE,
    "embedded": tuple(CHECKS),
}  # under test, and the numbers of their checks

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def servers(request: pytest.FixtureRequest, backend: str, number: str) -> tuple[Server, Server]:
    """The real one and the one under test. Not async: servers are started outside the test's loop."""
    has_controllers = CONTROLLERS in CHECKS[number].needs
    real: Servers = request.getfixturevalue("real_servers")
    tested: Servers = request.getfixturevalue(f"{backend}_servers")
    return real(has_controllers), tested(has_controllers)


@pytest.mark.parametrize(("backend", "number"), [(name, number) for name, numbers in BACKENDS.items() for number in numbers])
async def test_a_server_answers_as_a_real_one_does(servers: tuple[Server, Server], number: str) -> None:
    one = CHECKS[number]
    async with open_session() as session:
        wanted = await answer_of(one, servers[0], session)
    async with open_session() as session:
        got = await answer_of(one, servers[1], session)
    shown = difference(wanted, got, ("real", "tested"))
    assert is_equal(number, wanted, got, recorded_answers()), f"{number} {one.title}\n{shown}"
