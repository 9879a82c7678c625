from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.tart.pulls import LONGEST_LINE_BYTES, ProgressReader, PullProgress, StallWatch, progress_of, store_bytes


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        (b"42%", PullProgress("42%", 42)),
        (b"\x1b[1A\r\x1b[J7%"[5:], PullProgress("7%", 7)),
        (b"999%", PullProgress("999%", 100)),
        (b"pulling manifest...", PullProgress("pulling manifest...", None)),
        (b"pulling disk (14.9 GB compressed)...", PullProgress("pulling disk (14.9 GB compressed)...", None)),
        (b"waiting for lock...", PullProgress("waiting for lock...", None)),
        (b" \t ", None),
        (b"\xff", PullProgress("�", None)),
    ],
)
def test_a_line_of_tart_is_progress(line: bytes, progress: PullProgress | None) -> None:
    assert progress_of(line) == progress


@given(st.lists(st.integers(1, 9)))
def test_progress_is_the_same_however_the_output_is_cut(cuts: list[int]) -> None:
    text = b"pulling manifest...\n0%\n\x1b[1A\r\x1b[J50%\n100%\npulling NVRAM...\n"
    seen: list[PullProgress] = []
    reader = ProgressReader(seen.append)
    at = 0
    for cut in [*cuts, len(text)]:
        reader.feed(text[at : at + cut])
        at += cut
    assert [it.percent for it in seen] == [None, 0, 50, 100, None]
    assert reader.output_bytes == len(text)


def test_a_line_without_end_is_bounded() -> None:
    seen: list[PullProgress] = []
    reader = ProgressReader(seen.append)
    for _ in range(100):
        reader.feed(b"x" * 10_000)
    reader.feed(b"\n")
    assert reader.output_bytes == 1_000_001
    assert seen == [PullProgress("x" * LONGEST_LINE_BYTES, None)]


def test_stalled_means_nothing_moved_for_the_whole_time() -> None:
    watch = StallWatch(300, now_s=0)
    assert not watch.is_stalled(10, 0, now_s=5)
    assert not watch.is_stalled(10, 0, now_s=304)
    assert not watch.is_stalled(11, 0, now_s=304)  # said something
    assert not watch.is_stalled(11, 4096, now_s=600)  # fetched something
    assert not watch.is_stalled(11, 10, now_s=700)  # somebody cleaned up; that is no progress, nor a new start
    assert not watch.is_stalled(11, 20, now_s=899)
    assert watch.is_stalled(11, 20, now_s=1199)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 400)), min_size=1))
def test_whatever_grows_is_never_stalled(steps: list[tuple[int, int, int]]) -> None:
    watch, said, size, now = StallWatch(300, 0), 0, 0, 0
    for more_said, more_bytes, seconds in steps:
        said, size, now = said + more_said, size + more_bytes, now + seconds
        assert not watch.is_stalled(said, size, now) or (more_said, more_bytes) == (0, 0)


def test_what_a_download_occupies_is_counted_on_disk(tmp_path: Path) -> None:
    assert store_bytes(tmp_path) == 0
    (tmp_path / "tmp" / "x").mkdir(parents=True)
    (tmp_path / "cache").mkdir()
    (tmp_path / "tmp" / "x" / "disk.img").write_bytes(b"x" * 9000)
    (tmp_path / "cache" / "away").symlink_to("/")
    with (tmp_path / "tmp" / "x" / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert 9000 <= store_bytes(tmp_path) < 1 << 20
