"""What a cache holds, as the guest's shell pipeline would say it."""

import os
from hashlib import sha1
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applecart.kubelet.cache import walk
from applecart.kubelet.cache.digest import inventory
from applecart.kubelet.cache.walk import TooMuchToMeasure

EMPTY_DIGEST = "da39a3ee5e6b4b0d3255bfef95601890afd80709"


def fill(folder: Path, *names: str, size_bytes: int = 3) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * size_bytes)


def of_lines(*lines: bytes) -> str:
    return sha1(b"".join(line + b"\n" for line in lines)).hexdigest()


def test_an_empty_cache_has_the_digest_of_nothing(tmp_path: Path) -> None:
    assert inventory(tmp_path).digest == EMPTY_DIGEST
    (tmp_path / "tuist" / "Binaries").mkdir(parents=True)
    (tmp_path / "CompilationCache.noindex").mkdir()
    assert inventory(tmp_path).digest == EMPTY_DIGEST
    assert not inventory(tmp_path / "nothing").has_cas


def test_every_kind_of_entry_is_one_line_and_lines_are_sorted_as_bytes(tmp_path: Path) -> None:
    """Incident 49: names were sorted by a language's rules, hidden files counted on one side, a tab was two characters."""
    fill(tmp_path, "tuist/Binaries/b/deep/file", "tuist/Binaries/Z", "tuist/Binaries/.hidden", "tuist/Binaries/é")
    fill(tmp_path, "tuist/Manifests/m", "tuist/ProjectDescriptionHelpers/p", "tuist/Plugins/q", "tuist/Other/o", "elsewhere")
    fill(tmp_path, "CompilationCache.noindex/v1/leaf", "CompilationCache.noindex/top", size_bytes=12)
    fill(tmp_path, "CompilationCache.noindex/v1/.lock")
    lines = [b"Binaries/Z", b"Binaries/b", "Binaries/é".encode(), b"Manifests/m", b"Plugins/q", b"ProjectDescriptionHelpers/p"]
    found = inventory(tmp_path)
    assert found.digest == of_lines(*lines, b"~cas/top\t12", b"~cas/v1/leaf\t12")
    assert found.has_cas


def test_the_size_of_a_compiler_result_counts_and_that_of_a_binary_does_not(tmp_path: Path) -> None:
    fill(tmp_path, "tuist/Binaries/b", "CompilationCache.noindex/c")
    first = inventory(tmp_path).digest
    fill(tmp_path, "tuist/Binaries/b", size_bytes=99)
    assert inventory(tmp_path).digest == first
    fill(tmp_path, "CompilationCache.noindex/c", size_bytes=99)
    assert inventory(tmp_path).digest != first


def test_two_results_that_swap_their_sizes_are_another_cache(tmp_path: Path) -> None:
    """Incident 49: a sum of sizes stood for all of them, and different caches had the same one."""
    for folder, sizes in (("one", (1, 2)), ("two", (2, 1))):
        for name, size_bytes in zip("ab", sizes, strict=True):
            fill(tmp_path / folder, f"CompilationCache.noindex/{name}", size_bytes=size_bytes)
    assert inventory(tmp_path / "one").digest != inventory(tmp_path / "two").digest


@pytest.mark.parametrize("link", ["tuist", "tuist/Binaries", "CompilationCache.noindex"])
def test_links_in_an_image_lead_nowhere(tmp_path: Path, link: str) -> None:
    fill(tmp_path / "host", "Binaries/secret", "secret")
    image = tmp_path / "image"
    (image / link).parent.mkdir(parents=True)
    (image / link).symlink_to(tmp_path / "host")
    assert inventory(image).digest == EMPTY_DIGEST


def test_pipes_and_links_are_no_compiler_results(tmp_path: Path) -> None:
    top = tmp_path / "CompilationCache.noindex"
    top.mkdir()
    os.mkfifo(top / "pipe")
    (top / "link").symlink_to("/etc/hosts")
    (top / "folder").symlink_to("/")
    assert inventory(tmp_path).digest == EMPTY_DIGEST


def test_an_image_with_more_files_than_any_cache_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MOST_ENTRIES", 3)
    fill(tmp_path, *(f"tuist/Binaries/{number}" for number in range(4)))
    with pytest.raises(TooMuchToMeasure):
        inventory(tmp_path)


NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: not set(name) & {0, 47} and name not in (b".", b".."))


@given(names=st.sets(NAMES, max_size=8))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_names_are_bytes_whatever_they_say(tmp_path_factory: pytest.TempPathFactory, names: set[bytes]) -> None:
    folder = tmp_path_factory.mktemp("image") / "tuist" / "Plugins"
    folder.mkdir(parents=True)
    for name in names:
        (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).touch()
    lines = sorted(b"Plugins/" + name for name in names if not name.startswith(b"."))
    assert inventory(folder.parents[1]).digest == of_lines(*lines)
