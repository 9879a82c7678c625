import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applecart.clock import EPOCH
from applecart.kubelet.entry import Entry, Exit, Stage, Trouble
from applecart.kubelet.journal import Journal
from applecart.tart.files import Files

UID = "0b4e3f7e-90a5-4f0a-8a3e-1c8f0b1f2d3c"


def entry(uid: str = UID, stage: Stage = Stage.RUNNING) -> Entry:
    return Entry(uid=uid, namespace="ci", name="job-1", vm="ci-job-1", stage=stage, accepted_at=EPOCH, run=2)


def reopened(state: Path) -> list[Entry]:
    return list(Journal(state, Files()))


def test_what_was_written_is_there_for_the_next_agent(tmp_path: Path) -> None:
    full = msgspec.structs.replace(
        entry(),
        trouble=Trouble("no-space", "NoSpace", "the disk is full", 3, EPOCH, EPOCH),
        exit=Exit("Failed", "TartRunFailed", "it broke", "TartRunFailed", 137, 9, EPOCH),
    )
    Journal(tmp_path, Files()).write(full)
    assert reopened(tmp_path) == [full]


def test_a_forgotten_entry_leaves_nothing_behind_not_even_its_run_folders(tmp_path: Path) -> None:
    journal = Journal(tmp_path, Files())
    kept = journal.write(entry())
    journal.run_folder(kept).mkdir()
    journal.forget(UID)
    assert journal.get(UID) is None
    assert list((tmp_path / "pods").iterdir()) == []


def test_writing_what_is_already_there_writes_nothing(tmp_path: Path) -> None:
    class Counting(Files):
        writes = 0

        def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
            self.writes += 1
            super().write(path, data, mode)

    files = Counting()
    journal = Journal(tmp_path, files)
    journal.write(entry())
    journal.write(entry())
    assert files.writes == 1


def test_an_agent_that_died_before_its_first_entry_leaves_nothing_to_remember(tmp_path: Path) -> None:
    (tmp_path / "pods" / UID).mkdir(parents=True)
    assert reopened(tmp_path) == []
    assert not (tmp_path / "pods" / UID).exists()


def test_an_entry_in_the_folder_of_another_uid_is_not_believed(tmp_path: Path) -> None:
    Journal(tmp_path, Files()).write(entry())
    (tmp_path / "pods" / UID).rename(tmp_path / "pods" / "another-uid")
    assert reopened(tmp_path) == []
    assert (tmp_path / "pods" / "unreadable-another-uid").is_dir()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(content=st.one_of(st.binary(max_size=200), st.integers(0, 200)))
def test_an_entry_that_cannot_be_read_is_set_aside_and_the_others_stay(tmp_path: Path, content: bytes | int) -> None:
    journal = Journal(tmp_path, Files())
    journal.write(entry())
    other = journal.write(entry("other-uid"))
    file = tmp_path / "pods" / UID / "entry.json"
    whole = file.read_bytes()
    file.write_bytes(whole[: min(content, len(whole) - 1)] if isinstance(content, int) else content)
    assert reopened(tmp_path) == [other]
    assert reopened(tmp_path) == [other]  # and once more: what was set aside stays aside


def test_a_uid_that_is_a_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not the uid"):
        Journal(tmp_path, Files()).write(entry(f"..{os.sep}outside"))
    assert [each.name for each in tmp_path.iterdir()] == ["pods"]
