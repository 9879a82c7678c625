"""The run folder: private, complete, and kept over a restart as far as it must be."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from applecart.embedded.binaries.files import prepare_files

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://127.0.0.1:6443"


def test_everything_the_flags_name_exists_and_only_the_owner_may_enter(tmp_path: Path) -> None:
    files = prepare_files(tmp_path / "run", NOW)
    for name in files.trust.__slots__:
        pair = getattr(files.trust, name)
        assert pair.certificate.is_file(), name
        assert pair.key.is_file(), name
    assert {path.name for path in files.webhook_certificates.iterdir()} == {"tls.crt", "tls.key"}
    assert files.folder.stat().st_mode & 0o777 == 0o700
    assert files.log("etcd").parent.is_dir()


def test_a_restart_keeps_what_others_hold_and_renews_the_rest(tmp_path: Path) -> None:
    first = prepare_files(tmp_path, NOW)
    trust = first.trust
    kept = [trust.authority.certificate, trust.authority.key, trust.token_keys.key, trust.etcd_authority.key]
    before = [path.read_bytes() for path in kept]
    second = prepare_files(tmp_path, NOW + timedelta(days=300))
    assert [path.read_bytes() for path in kept] == before
    server = x509.load_pem_x509_certificate(second.trust.server.certificate.read_bytes())
    assert server.not_valid_after_utc > NOW + timedelta(days=600)


def test_a_certificate_of_the_api_does_not_open_etcd(tmp_path: Path) -> None:
    files = prepare_files(tmp_path, NOW)
    etcd = x509.load_pem_x509_certificate(files.trust.etcd_authority.certificate.read_bytes())
    api = x509.load_pem_x509_certificate(files.trust.authority.certificate.read_bytes())
    assert etcd.public_key() != api.public_key()


def test_a_client_gets_a_pair_of_files_and_a_kubeconfig_that_agree(tmp_path: Path) -> None:
    files = prepare_files(tmp_path, NOW)
    client = files.write_client("ci", "ci-user", ("readers",), URL, NOW)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(client.files.certificate, client.files.key)  # raises when they are not a pair
    assert client.kubeconfig == tmp_path / "ci.kubeconfig"
    assert URL in client.kubeconfig.read_text()
