import errno
import os
import shutil
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applecart.clock import EPOCH
from applecart.kubelet.entry import Exit, JournalEntry, Stage, Trouble
from applecart.kubelet.journal import Journal, JournalFull
from applecart.tart.files import Files

UID = "0b4e3f7e-90a5-4f0a-8a3e-1c8f0b1f2d3c"


def entry(uid: str = UID, stage: Stage = Stage.RUNNING) -> JournalEntry:
    return JournalEntry(uid=uid, namespace="ci", name="job-1", vm="ci-job-1", stage=stage, accepted_at=EPOCH, run=2)


def reopened(state: Path) -> list[JournalEntry]:
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
    before = files.writes
    journal.write(entry())
    journal.write(entry())
    assert files.writes == before + 1


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
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ballast", "pods"]


class SmallDisk(Files):
    """Has room for a number of bytes; what is written over is free again only afterwards."""

    def __init__(self, folder: Path, room_bytes: int) -> None:
        self._folder = folder
        self.room_bytes = room_bytes

    def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        used_bytes = sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file())
        if used_bytes + len(data) > self.room_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(path, data, mode)

    def fill(self) -> None:
        """Something else takes all that is left."""
        self.room_bytes = sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file())


def ended(uid: str = UID) -> JournalEntry:
    return msgspec.structs.replace(entry(uid, Stage.ENDED), exit=Exit("Succeeded", "", "", "Completed", 0, 0, EPOCH))


def test_the_end_of_a_pod_can_be_written_down_on_a_full_disk(tmp_path: Path) -> None:
    """The VM that fills a disk may go only once its end is written, so neither happened until a person came."""
    disk = SmallDisk(tmp_path, 4 << 20)
    journal = Journal(tmp_path, disk)
    journal.write(entry())
    disk.fill()
    assert journal.write(ended()).exit is not None
    assert reopened(tmp_path) == [ended()]


def test_what_leads_to_no_room_waits_with_a_sentence_and_leaves_the_ballast(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path, 4 << 20)
    journal = Journal(tmp_path, disk)
    journal.write(entry())
    disk.fill()
    for other in (entry("other-uid"), msgspec.structs.replace(entry(), address="192.168.64.2")):
        said = f"the disk with {tmp_path}/pods is full.*Pod ci/job-1.*free some space"
        with pytest.raises(JournalFull, match=said) as refused:
            journal.write(other)
        assert isinstance(refused.value, OSError)
        assert refused.value.errno == errno.ENOSPC
    assert (tmp_path / "ballast").exists()
    assert reopened(tmp_path) == [entry()]


def test_a_disk_without_room_and_ballast_is_told_as_full(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path, 4 << 20)
    journal = Journal(tmp_path, disk)
    journal.write(entry())
    disk.fill()
    disk.room_bytes -= 2 << 20  # more than the ballast is worth
    for _ in range(2):
        with pytest.raises(JournalFull):
            journal.write(ended())
    assert journal.get(UID) == entry()


def test_the_ballast_is_taken_again_once_there_is_room(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path, 4096)
    journal = Journal(tmp_path, disk)  # too full for a ballast from the beginning, and works all the same
    journal.write(entry())
    assert not (tmp_path / "ballast").exists()
    disk.room_bytes = 4 << 20
    journal.write(ended())
    assert (tmp_path / "ballast").stat().st_size > 1_000_000


def test_a_folder_that_somebody_removed_is_made_again(tmp_path: Path) -> None:
    """No end could be written down any more until the agent was started anew: its Pod ran for ever."""
    journal = Journal(tmp_path, Files())
    journal.write(entry())
    shutil.rmtree(tmp_path / "pods")
    journal.write(ended())
    assert reopened(tmp_path) == [ended()]


def test_another_failure_of_the_disk_is_not_called_full(tmp_path: Path) -> None:
    journal = Journal(tmp_path, Files())
    journal.write(entry())
    shutil.rmtree(tmp_path / "pods" / UID)
    (tmp_path / "pods" / UID).write_text("no folder")
    with pytest.raises(FileExistsError):
        journal.write(ended())
    assert (tmp_path / "ballast").exists()
