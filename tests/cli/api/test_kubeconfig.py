"""`applecart api kubeconfig`: certificates for others, from the folder's own authority."""

from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID

from applecart.cli.api.kubeconfig import MASTERS_WARNING, address_of, checked_url, issued, read_duration
from applecart.cli.main import run
from applecart.embedded.server.data_folder import DataFolder, make_data_folder
from applecart.errors import BadInput
from tests.cli.commands import done

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = timedelta(days=1)
URL = "https://127.0.0.1:6443"


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """As a server leaves it."""
    folder = make_data_folder(tmp_path / "data")
    folder.authority(NOW)
    folder.database.touch()
    return folder


def certificate(kubeconfig: str) -> x509.Certificate:
    user = yaml.safe_load(kubeconfig)["users"][0]["user"]
    return x509.load_pem_x509_certificate(b64decode(user["client-certificate-data"]))


def test_the_certificate_names_the_user_and_every_group_and_is_signed_by_the_folders_authority(folder: DataFolder) -> None:
    text = issued(folder, "alice", ("ops", "readers"), URL, DAY, NOW)
    found = certificate(text)
    authority = x509.load_pem_x509_certificate(folder.authority_files.certificate.read_bytes())
    found.verify_directly_issued_by(authority)
    assert [name.value for name in found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["alice"]
    assert [name.value for name in found.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["ops", "readers"]
    assert yaml.safe_load(text)["clusters"][0]["cluster"]["server"] == URL


@pytest.mark.parametrize("valid", [timedelta(minutes=1), DAY, timedelta(days=365)])
def test_it_ends_when_it_was_asked_to_and_is_good_now(valid: timedelta, folder: DataFolder) -> None:
    found = certificate(issued(folder, "alice", (), URL, valid, NOW))
    assert found.not_valid_after_utc == NOW + valid
    assert found.not_valid_before_utc <= NOW


@pytest.mark.parametrize("valid", [timedelta(0), timedelta(days=366)])
def test_no_time_and_more_than_a_year_are_refused(valid: timedelta, folder: DataFolder) -> None:
    with pytest.raises(BadInput, match="can be valid for up to 365 days"):
        issued(folder, "alice", (), URL, valid, NOW)


def test_nothing_of_it_stays_in_the_folder(folder: DataFolder) -> None:
    before = sorted(folder.folder.rglob("*"))
    issued(folder, "alice", (), URL, DAY, NOW)
    assert sorted(folder.folder.rglob("*")) == before


def test_without_the_authority_none_is_made_up(folder: DataFolder) -> None:
    folder.authority_files.certificate.unlink()
    with pytest.raises(BadInput, match="a new authority would lock everybody out"):
        issued(folder, "alice", (), URL, DAY, NOW)


def test_the_address_is_the_running_servers_and_not_that_of_one_that_was_killed(folder: DataFolder) -> None:
    folder.address.write_text(f"{URL}\n")
    with pytest.raises(BadInput, match="give it with --server URL"):
        address_of(folder)
    hold = folder.hold()
    assert address_of(folder) == URL
    folder.address.unlink()
    with pytest.raises(BadInput, match="give it with --server URL"):
        address_of(folder)
    hold.release()


@pytest.mark.parametrize("url", ["", "http://a:1", "a:1", "https://", "https://[::1", "https://a:99999", "ftp://a"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="is no address of an API server"):
        checked_url(url)


@pytest.mark.parametrize(
    ("text", "means"), [("90m", timedelta(minutes=90)), ("24h", DAY), ("30d", timedelta(days=30)), ("0h", timedelta(0))]
)
def test_a_time_is_a_number_and_a_unit(text: str, means: timedelta) -> None:
    assert read_duration(text) == means


@pytest.mark.parametrize("text", ["", "24", "h", "-1h", "1.5h", "1w", "99999999999d", "24h ", "\u0661h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="write a number and a unit"):
        read_duration(text)


def test_a_member_of_masters_is_warned_of(folder: DataFolder) -> None:
    asked = ("api", "kubeconfig", "--data", str(folder.folder), "--user", "root", "--server", URL)
    mighty = done(*asked, "--group", "system:masters")
    assert mighty.returncode == 0
    assert MASTERS_WARNING in mighty.stderr
    assert yaml.safe_load(mighty.stdout)["kind"] == "Config"
    assert done(*asked).stderr == ""


def test_a_name_that_no_certificate_can_hold_is_a_sentence(folder: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["api", "kubeconfig", "--data", str(folder.folder), "--user", "a" * 65, "--server", URL]) == 2
    assert "use 1 to 64 bytes" in capsys.readouterr().err
