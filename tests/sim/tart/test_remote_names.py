"""Names of images, as Tart reads them, and the store that lists them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.sim.tart.disk_image import HEADER_BYTES, DiskImage, read, used_bytes, write
from applecart.sim.tart.refusals import Refused
from applecart.sim.tart.remote_names import RemoteName, remote_name
from applecart.sim.tart.store import Store

DIGEST = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ghcr.io/a/b:1", RemoteName("ghcr.io", "a/b", "1")),
        ("ghcr.io/a/b", RemoteName("ghcr.io", "a/b", "latest")),
        ("localhost:5000/a:x", RemoteName("localhost:5000", "a", "x")),
        (f"ghcr.io/a/b@{DIGEST}", RemoteName("ghcr.io", "a/b", DIGEST)),
        (f"ghcr.io/a/b:1@{DIGEST}", RemoteName("ghcr.io", "a/b", DIGEST)),
        ("golden", None),
        ("ghcr.io/A/b", None),
        ("ghcr.io/../../etc", None),
        ("ghcr.io/a//b", None),
        ("ghcr.io/a/b@sha256:short", None),
        ("/etc/passwd", None),
        ("", None),
    ],
)
def test_a_name_is_an_image_or_a_local_vm(text: str, expected: RemoteName | None) -> None:
    assert remote_name(text) == expected


@given(st.text(max_size=30) | st.from_regex(r"[a-z.:]{1,5}/[a-z./@:-]{1,20}", fullmatch=True))
def test_no_name_leads_out_of_the_store(text: str) -> None:
    name = remote_name(text)
    if name is not None:
        assert ".." not in Path(name.host, name.namespace, name.reference).parts
        assert remote_name(str(name)) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "x" * 256])
def test_a_local_name_is_the_name_of_one_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="does not exist"):
        Store(tmp_path).local(name)


@given(blocks=st.dictionaries(st.text("ab", min_size=1, max_size=3), st.integers(0, 9), max_size=5), grows=st.integers(0, 3))
def test_a_disk_reads_as_it_was_written(blocks: dict[str, int], grows: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("disk") / "disk.img"
    disk = DiskImage(id="d", blocks=blocks)
    write(path, disk)
    for _ in range(grows):
        write(path, disk, grow=True)
    assert read(path) == disk
    assert path.stat().st_size == HEADER_BYTES + 4096 * grows


def test_shared_blocks_count_once_and_what_is_no_disk_is_empty(tmp_path: Path) -> None:
    write(tmp_path / "a", DiskImage(id="a", blocks={"shared": 40, "a": 2}))
    write(tmp_path / "b", DiskImage(id="b", blocks={"shared": 40, "b": 3}))
    (tmp_path / "torn").write_bytes(b'{"id": "x", "blo')
    paths = [tmp_path / name for name in ("a", "b", "torn", "gone")]
    assert used_bytes(paths) == 45
