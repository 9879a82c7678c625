"""A simulated disk reads back what was written, however many blocks it has."""

from pathlib import Path

import pytest

from applecart.sim.tart.disk_image import HEADER_BYTES, DiskImage, read, used_bytes, write


@pytest.mark.parametrize("count", [0, 1, 60, 100, 5000])
def test_every_block_is_read_back(count: int, tmp_path: Path) -> None:
    """A real image of 80 GB has 160 layers; their names alone are longer than the first lines of the file."""
    image = DiskImage(id="x", blocks={f"sha256:{number:064x}": 1 + number for number in range(count)})
    write(tmp_path / "disk.img", image)
    write(tmp_path / "disk.img", image, grow=True)
    assert read(tmp_path / "disk.img") == image
    assert used_bytes([tmp_path / "disk.img"]) == image.allocated_bytes


def test_a_list_of_blocks_that_becomes_shorter_leaves_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path / "disk.img", DiskImage(blocks={f"{number:064x}": 1 for number in range(500)}))
    write(tmp_path / "disk.img", DiskImage(blocks={"a": 1}))
    assert read(tmp_path / "disk.img").blocks == {"a": 1}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * HEADER_BYTES, b"[]\n", b"{}"])
def test_a_torn_or_foreign_file_is_an_empty_disk(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "disk.img").write_bytes(content)
    assert read(tmp_path / "disk.img") == DiskImage()
