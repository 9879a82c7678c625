"""The walk that docs/designs/0002 draws is the one that an apply takes."""

import re
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest

import applecart.embedded
from applecart.clock import SystemClock
from applecart.embedded.server.server import EmbeddedServer
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.transport import Request

PAGE = Path(__file__).parents[2] / "docs" / "designs" / "0002-embedded-api.md"
PACKAGE = Path(applecart.embedded.__file__).parent
MOST_FILES = 40  # they were 54; one fewer is one fewer here and on the page
APPLIED = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {content: %b}\n"


def walk() -> tuple[list[list[str]], list[str]]:
    """The files and folders of each station, and those of the sentence about what else runs."""
    text = PAGE.read_text().partition("### The walk of a")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \d+ \| (.*?) \|", text, flags=re.MULTILINE)
    beside = text.partition("Beside them run")[2]
    return [re.findall(r"`([a-z0-9_/.]+)`", row) for row in rows], re.findall(r"`([a-z0-9_/.]+)`", beside)


async def apply(client: Client, content: bytes) -> None:
    path = "/api/v1/namespaces/default/configmaps/a"
    request = Request("PATCH", path, (("fieldManager", "kubectl"),), APPLIED % content, "application/apply-patch+yaml")
    await client.call(request)


@pytest.mark.real_time
async def test_an_apply_passes_the_stations_of_the_page_in_their_order_and_nothing_that_it_does_not_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("applecart.embedded.server.server.Maintenance", lambda core, log: None)  # it has a rhythm of its own
    stations, beside = walk()
    assert len(stations) == 15
    calls: list[str] = []
    is_noting = False

    def note(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if is_noting and event == "call" and file.is_relative_to(PACKAGE):
            calls.append(str(file.relative_to(PACKAGE)))

    threading.setprofile(note)  # the thread that writes the log starts with the server
    try:
        async with EmbeddedServer(tmp_path, SystemClock()) as server:
            client = Client(connect(str(server.folder.admin_kubeconfig), None, SystemClock(), environ={}), SystemClock())
            await apply(client, b"one")
            is_noting = True
            sys.setprofile(note)
            await apply(client, b"two")
            is_noting = False
            await client.aclose()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    later = iter(calls)
    assert [names for names in stations if not any(name.startswith(tuple(names)) for name in later)] == []  # in this order
    way_in = [name for [name] in stations[:9]]  # some of the later ones have answered small questions before their turn
    assert [name for name in dict.fromkeys(calls) if name in way_in] == way_in
    named = tuple(name for names in (*stations, beside) for name in names)
    assert sorted(name for name in set(calls) if not name.startswith(named)) == []
    assert len(set(calls)) <= MOST_FILES, sorted(set(calls))
    assert f"files that run are {MOST_FILES}" in PAGE.read_text().replace("\n", " ")
