"""Reading Tart's store from files: what is a VM, whose it is, which images are there, and nothing a hostile store can do."""

import fcntl
import os
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applecart.clock import EPOCH
from applecart.tart.failures import VmMissing
from applecart.tart.files import Files
from applecart.tart.home import Home, bytes_in, is_vm_name
from applecart.tart.images import parse
from applecart.tart.marks import LONGEST_MARK_BYTES, MARK_FILE, GoldenMark, Mark, PodMark, ScratchMark
from tests.tart.stores import DIGEST_A, DIGEST_B, make_image, make_vm

POD = PodMark("uid-1", "ci", "job", "ghcr.io/acme/macos:15", f"ghcr.io/acme/macos@{DIGEST_A}", EPOCH)
GOLDEN = GoldenMark(POD.digest, (POD.image,), EPOCH, EPOCH + timedelta(hours=1))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_store_that_does_not_exist_yet_is_empty(home: Home) -> None:
    assert [*home.vms(), *home.half_made(), *home.images()] == []
    assert not home.has_pull_under_way()
    assert home.vm("x") is None
    assert home.mark("x") is None


def test_a_folder_is_a_vm_when_all_three_files_are_there(home: Home) -> None:
    make_vm(home.path, "whole")
    for missing in ("config.json", "disk.img", "nvram.bin"):
        files = tuple(file for file in ("config.json", "disk.img", "nvram.bin") if file != missing)
        make_vm(home.path, f"no-{missing}", files)
    assert [vm.name for vm in home.vms()] == ["whole"]
    assert [vm.name for vm in home.half_made()] == ["no-config.json", "no-disk.img", "no-nvram.bin"]
    half = home.vm("no-disk.img")
    assert half is not None
    assert not half.is_whole


def test_the_size_of_a_vm_is_what_it_occupies_not_what_its_disk_could_hold(home: Home) -> None:
    folder = make_vm(home.path, "sparse")
    os.truncate(folder / "disk.img", 50 << 30)
    vm = home.vm("sparse")
    assert vm is not None
    assert 0 < vm.size_bytes < 1 << 20


@pytest.mark.parametrize("mark", [POD, GOLDEN, ScratchMark(EPOCH)])
def test_a_mark_is_read_back_as_it_was_written(home: Home, mark: Mark) -> None:
    make_vm(home.path, "vm")
    home.write_mark("vm", mark, Files())
    assert home.mark("vm") == mark
    assert [vm.mark for vm in home.vms()] == [mark]


def test_a_half_made_folder_keeps_its_mark(home: Home) -> None:
    make_vm(home.path, "vm", ("config.json",))
    home.write_mark("vm", POD, Files())
    assert [vm.mark for vm in home.half_made()] == [POD]


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"\xff", b'{"type":"pod"}', b'{"type":"other"}', b"[" * 50_000])
def test_a_mark_that_cannot_be_read_is_no_mark(home: Home, content: bytes) -> None:
    (make_vm(home.path, "vm") / MARK_FILE).write_bytes(content)
    assert home.mark("vm") is None


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_in_a_mark_are_a_mark_or_none(home: Home, content: bytes) -> None:
    folder = home.path / "vms" / "vm"
    if not folder.exists():
        make_vm(home.path, "vm")
    (folder / MARK_FILE).write_bytes(content)
    assert home.mark("vm") is None


def test_a_mark_longer_than_any_of_ours_is_no_mark(home: Home, tmp_path: Path) -> None:
    folder = make_vm(home.path, "vm")
    home.write_mark("vm", POD, Files())
    with open(folder / MARK_FILE, "ab") as file:
        file.write(b" " * LONGEST_MARK_BYTES)
    assert home.mark("vm") is None


def test_a_mark_that_is_a_link_a_pipe_or_a_folder_is_no_mark(home: Home, tmp_path: Path) -> None:
    make_vm(home.path, "other")
    home.write_mark("other", POD, Files())
    (make_vm(home.path, "link") / MARK_FILE).symlink_to(tmp_path / "vms" / "other" / MARK_FILE)
    os.mkfifo(make_vm(home.path, "pipe") / MARK_FILE)
    (make_vm(home.path, "folder") / MARK_FILE).mkdir()
    assert [home.mark(name) for name in ("link", "pipe", "folder")] == [None, None, None]


def test_a_vm_that_is_a_link_out_of_the_store_is_listed_but_never_ours(home: Home, tmp_path: Path) -> None:
    """An operator keeps a VM on another disk; a mark behind that link must not make it ours to delete."""
    outside = Home(tmp_path / "elsewhere")
    make_vm(outside.path, "big")
    outside.write_mark("big", POD, Files())
    make_vm(home.path, "local")
    (home.path / "vms" / "big").symlink_to(outside.path / "vms" / "big")
    assert {vm.name: vm.mark for vm in home.vms()} == {"big": None, "local": None}
    with pytest.raises(VmMissing):
        home.write_mark("big", POD, Files())


@pytest.mark.parametrize("name", ["", ".", "..", "../vms/vm", "a/b", "/etc", ".hidden", "a\0b", "a\nb"])
def test_a_name_that_could_leave_the_store_finds_nothing_and_marks_nothing(home: Home, name: str) -> None:
    make_vm(home.path, "vm")
    assert not is_vm_name(name)
    assert home.vm(name) is None
    assert home.mark(name) is None
    with pytest.raises(VmMissing):
        home.write_mark(name, POD, Files())


def test_marking_a_vm_that_is_gone_says_so(home: Home) -> None:
    with pytest.raises(VmMissing, match="vm is gone"):
        home.write_mark("vm", POD, Files())


def test_files_beside_the_vms_are_not_vms(home: Home) -> None:
    make_vm(home.path, "vm")
    (home.path / "vms" / "note.txt").write_text("x")
    (home.path / "vms" / "dangling").symlink_to("nowhere")
    assert [vm.name for vm in [*home.vms(), *home.half_made()]] == ["vm"]


def test_an_image_with_two_tags_is_one_image(home: Home) -> None:
    """Weakness 25: listings show an image once per name; here a digest is one row, so it is deleted once."""
    make_image(home.path, "ghcr.io/acme/macos", DIGEST_A, "15", "latest")
    make_image(home.path, "ghcr.io/acme/macos", DIGEST_B, is_explicit=True)
    make_image(home.path, "localhost:5000/a/b/c", DIGEST_A, "x")
    assert [(image.name, image.tags, image.is_explicit) for image in home.images()] == [
        (f"ghcr.io/acme/macos@{DIGEST_A}", ("15", "latest"), False),
        (f"ghcr.io/acme/macos@{DIGEST_B}", (), True),
        (f"localhost:5000/a/b/c@{DIGEST_A}", ("x",), False),
    ]
    assert all(image.size_bytes > 0 for image in home.images())
    assert home.images()[2].repository == "localhost:5000/a/b/c"


def test_the_digest_of_a_reference_follows_its_tag(home: Home) -> None:
    make_image(home.path, "ghcr.io/acme/macos", DIGEST_A, "latest")
    make_image(home.path, "ghcr.io/acme/macos", DIGEST_B, "15")
    for text, digest in [
        ("ghcr.io/acme/macos", DIGEST_A),
        ("ghcr.io/acme/macos:15", DIGEST_B),
        (f"ghcr.io/acme/macos@{DIGEST_A}", DIGEST_A),
        (f"ghcr.io/acme/macos:15@{DIGEST_A}", DIGEST_A),
    ]:
        assert home.digest_of(parse(text)) == f"ghcr.io/acme/macos@{digest}"
    make_image(home.path, "ghcr.io/acme/macos", DIGEST_B, "latest")
    assert home.digest_of(parse("ghcr.io/acme/macos")) == f"ghcr.io/acme/macos@{DIGEST_B}"


def test_what_is_not_in_the_store_has_no_digest(home: Home) -> None:
    make_image(home.path, "ghcr.io/acme/macos", DIGEST_A, "15")
    for text in ("ghcr.io/acme/macos:16", "ghcr.io/acme/linux:15", f"ghcr.io/acme/macos@{DIGEST_B}"):
        assert home.digest_of(parse(text)) is None


def test_a_tag_that_leads_out_of_its_repository_is_no_tag(home: Home, tmp_path: Path) -> None:
    folder = make_image(home.path, "ghcr.io/acme/macos", DIGEST_A).parent
    elsewhere = tmp_path / "outside" / DIGEST_B
    elsewhere.mkdir(parents=True)
    (folder / "evil").symlink_to(elsewhere)
    (folder / "dangling").symlink_to(folder / DIGEST_B)
    (folder / "relative").symlink_to(DIGEST_A)
    (folder / DIGEST_B.replace("b", "c")).symlink_to(elsewhere)
    assert home.digest_of(parse("ghcr.io/acme/macos:evil")) is None
    assert home.digest_of(parse("ghcr.io/acme/macos:dangling")) is None
    assert home.digest_of(parse("ghcr.io/acme/macos:relative")) == f"ghcr.io/acme/macos@{DIGEST_A}"
    assert [(image.name, image.tags) for image in home.images()] == [(f"ghcr.io/acme/macos@{DIGEST_A}", ("relative",))]


def test_a_cache_folder_that_is_a_link_is_not_followed(home: Home, tmp_path: Path) -> None:
    make_image(tmp_path / "outside", "x.io/y", DIGEST_A)
    (home.path / "cache" / "OCIs").mkdir(parents=True)
    (home.path / "cache" / "OCIs" / "x.io").symlink_to(tmp_path / "outside" / "cache" / "OCIs" / "x.io")
    (home.path / "cache" / "OCIs" / "loop").symlink_to(home.path / "cache" / "OCIs")
    assert home.images() == []


def test_a_pull_is_under_way_while_its_folder_is_locked(home: Home) -> None:
    partial = home.tmp / "0123456789abcdef"
    partial.mkdir(parents=True)
    (home.tmp / "note").write_text("x")
    os.mkfifo(home.tmp / "pipe")
    assert not home.has_pull_under_way()
    handle = os.open(partial, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert home.has_pull_under_way()
    os.close(handle)
    assert not home.has_pull_under_way()


def test_looking_for_a_pull_does_not_keep_a_lock(home: Home) -> None:
    partial = home.tmp / "0123456789abcdef"
    partial.mkdir(parents=True)
    home.has_pull_under_way()
    handle = os.open(partial, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)


def test_bytes_in_a_folder_do_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "data").write_bytes(b"x" * 100_000)
    inside = bytes_in(tmp_path / "a")
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "file").symlink_to(tmp_path / "a" / "b" / "data")
    assert bytes_in(tmp_path / "a") == inside >= 100_000
    assert bytes_in(tmp_path / "gone") == 0
