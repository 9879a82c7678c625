"""Generated files: written from the types, and missed when they are not what the types say."""

from pathlib import Path

import pytest

from applecart.cli import generate


def test_what_was_written_is_up_to_date(tmp_path: Path) -> None:
    generate.write(tmp_path)
    assert generate.stale(tmp_path) == []


def test_the_files_of_this_repository_are_up_to_date() -> None:
    assert generate.stale(Path(__file__).parents[2]) == []


def test_an_edited_a_missing_and_an_abandoned_file_are_named(tmp_path: Path) -> None:
    generate.write(tmp_path)
    crds = sorted((tmp_path / "deploy/crds").iterdir())
    crds[0].write_text("edited by hand")
    crds[1].unlink()
    (tmp_path / "deploy/crds/old.yaml").touch()
    stale = [crds[0], crds[1], tmp_path / "deploy/crds/old.yaml"]
    assert generate.stale(tmp_path) == [str(path.relative_to(tmp_path)) for path in stale]


def test_the_check_fails_with_a_sentence_per_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert generate.main(["--check"]) == 1
    assert "deploy/crds/tuist.dev_runnerpools.yaml is not what the types say; run make generate" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
