"""`applecart api status`: it tells whether the API runs and what its folder holds, and changes nothing."""

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from applecart.cli.api.database import DatabaseFacts, read_facts
from applecart.cli.api.status import Status, text
from applecart.errors import BadInput
from tests.cli.commands import WAIT_S, done, refused, running_api

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
FACTS = DatabaseFacts(revision=2064, compacted=1000, objects={"namespaces": 4, "pods": 2})
STATUS = Status(
    data="/data",
    pid=None,
    server=None,
    version=None,
    problem=None,
    database=FACTS,
    database_bytes=3 << 20,
    wal_bytes=0,
    last_backup=None,
    server_certificate_ends=None,
    authority_ends=datetime(2036, 11, 16, 12, tzinfo=UTC),
)


def lines(status: Status) -> dict[str, str]:
    split = (line.strip().partition("  ") for line in text(status, NOW).splitlines())
    return {name: value.strip() for name, _, value in split}


def test_it_tells_a_running_server_from_a_stopped_one_and_from_none(tmp_path: Path) -> None:
    assert "holds no data of an API server" in refused("api", "status", "--data", str(tmp_path / "misspelled"))
    assert not (tmp_path / "misspelled").exists()
    with running_api(tmp_path / "data") as process:
        found = done("api", "status", "--data", str(tmp_path / "data"), "-o", "json")
        assert found.returncode == 0, found.stderr
        told = json.loads(found.stdout)
        assert told["pid"] == process.pid
        assert told["version"].endswith("+embedded")
        assert told["server"].startswith("https://127.0.0.1:")
        assert told["database"]["objects"]["namespaces"] == 4
        assert told["database"]["revision"] > 1000
        assert told["databaseBytes"] > 0
        process.terminate()
        process.wait(WAIT_S)
    stopped = done("api", "status", "--data", str(tmp_path / "data"))
    assert stopped.returncode == 1
    assert "not running" in stopped.stdout
    assert "namespaces" in stopped.stdout


def test_an_empty_database_is_not_taken_for_another_programs(tmp_path: Path) -> None:
    (tmp_path / "store.db").touch()
    with pytest.raises(BadInput, match=r"store\.db is empty; restore a backup"):
        read_facts(tmp_path / "store.db")


def test_a_stopped_one_is_told_with_its_objects() -> None:
    told = lines(STATUS)
    assert told["state"] == "not running"
    assert told["objects"] == "6"
    assert told["pods"] == "2"
    assert told["backup"] == "none from this folder"
    assert told["authority"] == "2036-11-16T12:00:00Z (in 3653 d)"
    assert "server" not in told


def test_one_that_holds_the_folder_and_does_not_answer_is_not_running() -> None:
    stuck = msgspec.structs.replace(STATUS, pid=7, problem="no answer within 5 s")
    assert not stuck.is_running
    assert lines(stuck)["state"] == "held by process 7, which does not answer: no answer within 5 s"


def test_the_age_of_the_last_backup_is_told() -> None:
    known = msgspec.structs.replace(STATUS, last_backup=datetime(2026, 11, 13, 12, tzinfo=UTC))
    assert lines(known)["backup"] == "2026-11-13T12:00:00Z (3 d ago)"
