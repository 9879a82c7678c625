"""Whatever a guest made of a folder, it can be removed, and nothing else goes with it."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.tart import tree_removal
from applecart.tart.tree_removal import remove_tree
from tests.tart.hostile_folders import DEEP, as_ordinary_user, few_handles_and_frames, nest


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    with as_ordinary_user(tmp_path) as folder:
        yield folder


def test_folders_nested_deeper_than_python_recurses_or_a_process_may_hold_open_go(place: Path) -> None:
    """I5: a guest nested 1500 folders; its Pod's files, the token among them, stayed on the host for ever."""
    nest(place / "status", DEEP)
    with few_handles_and_frames():
        remove_tree(place / "status")
    assert list(place.iterdir()) == []


def test_folders_whose_path_is_longer_than_any_call_takes_go(place: Path) -> None:
    nest(place / "status", 40, "d" * 200)
    remove_tree(place / "status")
    assert list(place.iterdir()) == []


def test_names_that_were_chosen_to_be_in_the_way_are_in_nobodys_way(place: Path) -> None:
    """A folder is moved to a new name; a guest may have guessed it, for a file or for a folder that is not empty."""
    nest(place / "status", 5, "0")
    for number in range(1, 4):
        (place / "status" / f"{number}").write_text("x")
    nest(place / "status" / "4", 3, "5")
    remove_tree(place / "status")
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("mode", [0o000, 0o100, 0o400, 0o500])
def test_folders_that_a_guest_closed_go_all_the_same(place: Path, mode: int) -> None:
    """I5: such a folder would hold its Pod for ever."""
    folders = [place / "status", place / "status" / "a", place / "status" / "a" / "b", place / "status" / "a" / "b" / "c"]
    folders[-1].mkdir(parents=True)
    for folder in folders:
        (folder / "file").write_text("x")
    for folder in reversed(folders):
        folder.chmod(mode)
    remove_tree(place / "status")
    assert list(place.iterdir()) == []


def test_what_links_lead_to_stays(place: Path) -> None:
    (place / "kept").mkdir(mode=0o500)
    deep = place / "status" / "a" / "b"
    deep.mkdir(parents=True)
    for folder in (place / "status", deep):
        (folder / "to-a-folder").symlink_to((place / "kept").absolute())
        (folder / "to-nothing").symlink_to("nothing")
    remove_tree(place / "status")
    assert [path.name for path in place.iterdir()] == ["kept"]
    assert (place / "kept").stat().st_mode & 0o777 == 0o500


def test_a_link_itself_is_refused(place: Path) -> None:
    (place / "kept").mkdir()
    (place / "link").symlink_to("kept")
    with pytest.raises(OSError, match="link"):
        remove_tree(place / "link")
    assert (place / "kept").exists()


def test_what_vanishes_meanwhile_is_gone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nest(place / "status", 3)
    for number in range(3):
        (place / "status" / f"file-{number}").write_text("x")

    def first_somebody_else(act: Any) -> Any:
        def acts(name: str, *, dir_fd: int | None = None) -> None:
            act(name, dir_fd=dir_fd)
            act(name, dir_fd=dir_fd)

        return acts

    for verb in ("unlink", "rmdir"):
        monkeypatch.setattr(os, verb, first_somebody_else(getattr(os, verb)))
    remove_tree(place / "status")
    assert list(place.iterdir()) == []


def test_more_names_than_are_read_at_once_go(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_removal, "NAMES_AT_ONCE", 3)
    for number in range(10):
        (place / "status" / f"{number}").mkdir(parents=True)
        for inner in range(10):
            (place / "status" / f"{number}" / f"{inner}").write_text("x")
    remove_tree(place / "status")
    assert list(place.iterdir()) == []


def test_a_folder_that_cannot_be_removed_is_an_error_and_no_endless_loop(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system may list names that it then does not find."""
    nest(place / "status", 1)

    def not_found(name: str, *, dir_fd: int | None = None) -> None:
        raise FileNotFoundError(2, "No such file or directory", name)

    monkeypatch.setattr(os, "unlink", not_found)
    with pytest.raises(OSError, match="not empty"):
        remove_tree(place / "status")


_names = st.sampled_from(["0", "1", "2", "a", "b", "\udcff"])
_trees = st.recursive(
    st.sampled_from(["file", "link"]), lambda inside: st.dictionaries(_names, inside, max_size=4), max_leaves=20
)


@given(st.dictionaries(_names, _trees, max_size=4))
@settings(max_examples=30, deadline=None)
def test_any_tree_goes(tree: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _make(Path(folder) / "tree", tree)
        remove_tree(Path(folder) / "tree")
        assert os.listdir(folder) == []


def _make(path: Path, tree: Any) -> None:
    if tree == "file":
        path.write_text("x")
    elif tree == "link":
        path.symlink_to("..")
    else:
        path.mkdir()
        for name, inside in tree.items():
            _make(path / name, inside)
