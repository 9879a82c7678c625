"""Certificates, judged by the TLS library that will use them, and the kubeconfig that an operator gets."""

import socket
import ssl
from base64 import b64decode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.trust.pki import (
    AUTHORITY_LIFETIME,
    LEAF_LIFETIME,
    NAME_LIMIT_BYTES,
    Authority,
    Pair,
    load_or_create_authority,
    load_or_create_token_keys,
    write_kubeconfig,
    write_pair,
)
from applecart.errors import BadInput

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = Authority.create("ca", datetime.now(UTC))  # the real date: TLS libraries judge by it


def certificate(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate_pem)


def shake_hands(folder: Path, server: Pair, client: Pair | None, server_name: str, trusted: Authority = AUTHORITY) -> Any:
    """Connect both ends in one process; what the server then knows of the client. Both check strictly."""
    server_files = write_pair(folder, "server", server)
    of_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    of_server.load_cert_chain(server_files.certificate, server_files.key)
    of_server.load_verify_locations(cadata=trusted.certificate_pem.decode())
    of_server.verify_mode = ssl.CERT_REQUIRED if client else ssl.CERT_NONE
    of_client = ssl.create_default_context(cadata=trusted.certificate_pem.decode())
    of_client.minimum_version = of_server.minimum_version = ssl.TLSVersion.TLSv1_2
    of_client.maximum_version = ssl.TLSVersion.TLSv1_2  # a client of 1.3 learns of its rejection only on its first read
    for context in (of_server, of_client):
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    if client:
        client_files = write_pair(folder, "client", client)
        of_client.load_cert_chain(client_files.certificate, client_files.key)
    ours, theirs = socket.socketpair()

    def serve() -> Any:
        with theirs, of_server.wrap_socket(theirs, server_side=True) as connection:
            return connection.getpeercert()

    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve)
        with ours, of_client.wrap_socket(ours, server_hostname=server_name):
            pass
        return served.result()


@pytest.mark.parametrize("name", ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"])
def test_a_server_is_trusted_under_each_of_its_names(tmp_path: Path, name: str) -> None:
    server = AUTHORITY.issue_server(["localhost", "127.0.0.1", "::1", "kubernetes.default.svc"], datetime.now(UTC))
    shake_hands(tmp_path, server, None, name)


def test_a_server_is_refused_under_another_name(tmp_path: Path) -> None:
    server = AUTHORITY.issue_server(["localhost"], datetime.now(UTC))
    with pytest.raises(ssl.SSLCertVerificationError, match=r"Hostname mismatch|not valid for"):
        shake_hands(tmp_path, server, None, "elsewhere.example")


def test_a_server_of_another_authority_of_the_same_name_is_refused(tmp_path: Path) -> None:
    impostor = Authority.create("ca", datetime.now(UTC)).issue_server(["localhost"], datetime.now(UTC))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tmp_path, impostor, None, "localhost")


def test_a_client_is_known_by_its_user_and_groups(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    server = AUTHORITY.issue_server(["localhost"], now)
    client = AUTHORITY.issue_client("system:node:mac-1", ["system:nodes", "fleet"], now)
    seen = shake_hands(tmp_path, server, client, "localhost")
    assert [pair for part in seen["subject"] for pair in part] == [
        ("organizationName", "system:nodes"),
        ("organizationName", "fleet"),
        ("commonName", "system:node:mac-1"),
    ]


def test_a_client_certificate_cannot_serve(tmp_path: Path) -> None:
    """Else any user of the API could pose as the API."""
    client = AUTHORITY.issue_client("localhost", [], datetime.now(UTC))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tmp_path, client, None, "localhost")


@pytest.mark.parametrize(
    "issue",
    [lambda authority: authority.issue_server(["a"], NOW), lambda authority: authority.issue_client("a", [], NOW)],
    ids=["server", "client"],
)
def test_what_an_authority_issues_cannot_issue(issue: Callable[[Authority], Pair]) -> None:
    leaf = certificate(issue(AUTHORITY))
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not leaf.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_lifetimes_start_a_little_in_the_past_and_are_as_named() -> None:
    authority = Authority.create("ca", NOW)
    leaf = certificate(authority.issue_client("a", [], NOW))
    assert NOW - timedelta(minutes=10) < leaf.not_valid_before_utc < NOW
    assert leaf.not_valid_after_utc == NOW + LEAF_LIFETIME
    assert certificate(authority.pair).not_valid_after_utc == NOW + AUTHORITY_LIFETIME


printable = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1).filter(
    lambda name: len(name.encode()) <= NAME_LIMIT_BYTES
)


@given(user=printable, groups=st.lists(printable, max_size=4))
def test_any_user_and_groups_survive_in_the_certificate(user: str, groups: list[str]) -> None:
    subject = certificate(AUTHORITY.issue_client(user, groups, NOW)).subject
    assert [name.value for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [user]
    assert [name.value for name in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == groups


@pytest.mark.parametrize(("user", "group"), [("", "a"), ("u" * 65, "a"), ("u", "\u00e9" * 33), ("u", "")])
def test_a_name_that_no_certificate_can_hold_is_refused_in_a_sentence(user: str, group: str) -> None:
    with pytest.raises(BadInput, match=r"the user or group '.*' cannot be in a certificate: use 1 to 64 bytes"):
        AUTHORITY.issue_client(user, [group], NOW)


def test_a_server_may_have_a_name_longer_than_a_subject_can_hold(tmp_path: Path) -> None:
    name = ".".join(["a" * 40] * 3)
    shake_hands(tmp_path, AUTHORITY.issue_server([name], datetime.now(UTC)), None, name)


def test_keys_are_on_the_p256_curve_and_belong_to_their_certificate() -> None:
    pair = AUTHORITY.issue_client("a", [], NOW)
    key = load_pem_private_key(pair.key_pem.reveal().encode(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert certificate(pair).public_key() == key.public_key()


def test_a_pair_does_not_show_its_key() -> None:
    pair = AUTHORITY.issue_client("a", [], NOW)
    assert "PRIVATE KEY" not in f"{pair!r} {pair}"


def test_an_authority_outlives_a_restart(tmp_path: Path) -> None:
    first = load_or_create_authority(tmp_path / "pki", "ca", NOW)
    second = load_or_create_authority(tmp_path / "pki", "ca", NOW + timedelta(days=30))
    assert first.pair == second.pair


@pytest.mark.parametrize("off", [timedelta(days=-1), AUTHORITY_LIFETIME + timedelta(days=1)])
def test_an_authority_that_is_not_valid_now_is_refused_with_both_ways_out(off: timedelta, tmp_path: Path) -> None:
    """After a clock went back by a day a server said that it serves, and every client refused it without a word in its log."""
    load_or_create_authority(tmp_path, "ca", NOW)
    with pytest.raises(
        BadInput, match=r"ca\.crt is valid from 2025-12-31T23:55Z to .*: correct the clock, or remove .*ca\.key"
    ):
        load_or_create_authority(tmp_path, "ca", NOW + off)


def test_authorities_of_other_names_are_others(tmp_path: Path) -> None:
    first = load_or_create_authority(tmp_path, "ca", NOW)
    assert load_or_create_authority(tmp_path, "etcd-ca", NOW).pair != first.pair


def test_a_lost_certificate_is_made_again_from_its_key(tmp_path: Path) -> None:
    """Another key was made in its place: no kubeconfig worked, and what would have made the old ones work was gone.

    A crash before the certificate was written leaves the same.
    """
    now = datetime.now(UTC)
    before = load_or_create_authority(tmp_path, "ca", now)
    (tmp_path / "ca.crt").unlink()
    made = load_or_create_authority(tmp_path, "ca", now)
    assert load_or_create_authority(tmp_path, "ca", now).pair == made.pair
    shake_hands(tmp_path, made.issue_server(["localhost"], now), None, "localhost", trusted=before)


def test_a_lost_public_key_of_tokens_is_made_again_from_the_private_one(tmp_path: Path) -> None:
    files = load_or_create_token_keys(tmp_path, "service-accounts")
    before = files.key.read_bytes(), files.certificate.read_bytes()
    files.certificate.unlink()
    load_or_create_token_keys(tmp_path, "service-accounts")
    assert (files.key.read_bytes(), files.certificate.read_bytes()) == before
    files.certificate.unlink()
    files.key.write_text("garbage")
    with pytest.raises(BadInput, match=r"service-accounts\.key is no private key .*: restore it, or remove it"):
        load_or_create_token_keys(tmp_path, "service-accounts")
    assert files.key.read_text() == "garbage"


@pytest.mark.parametrize("damage", ["lost key", "lost half of the key", "key of another", "certificate is garbage"])
def test_a_damaged_authority_is_never_replaced_silently(tmp_path: Path, damage: str) -> None:
    """A new one in its place would lock out every kubeconfig without a word."""
    load_or_create_authority(tmp_path, "ca", NOW)
    key, crt = tmp_path / "ca.key", tmp_path / "ca.crt"
    match damage:
        case "lost key":
            key.unlink()
        case "lost half of the key":
            key.write_bytes(key.read_bytes()[:100])
        case "key of another":
            key.write_text(Authority.create("ca", NOW).pair.key_pem.reveal())
        case _:
            crt.write_bytes(b"garbage")
    before = crt.read_bytes()
    with pytest.raises(BadInput, match=r"ca\.crt and .*ca\.key are not a certificate authority .* restore both") as caught:
        load_or_create_authority(tmp_path, "ca", NOW)
    assert "\n" not in str(caught.value)
    assert crt.read_bytes() == before


def test_every_file_is_private(tmp_path: Path) -> None:
    pki = tmp_path / "pki"
    load_or_create_authority(pki, "ca", NOW)
    load_or_create_token_keys(pki, "service-account")
    assert {path.stat().st_mode & 0o777 for path in pki.iterdir()} == {0o600}
    assert pki.stat().st_mode & 0o777 == 0o700


def test_token_keys_outlive_a_restart_and_match(tmp_path: Path) -> None:
    files = load_or_create_token_keys(tmp_path, "service-account")
    private = load_pem_private_key(files.key.read_bytes(), password=None)
    public = load_pem_public_key(files.certificate.read_bytes())
    assert private.public_key() == public
    before = files.key.read_bytes()
    assert load_or_create_token_keys(tmp_path, "service-account") == files
    assert files.key.read_bytes() == before


def test_the_current_context_leads_to_the_address_the_authority_and_the_client(tmp_path: Path) -> None:
    authority = Authority.create("ca", NOW)
    client = authority.issue_client("admin", [], NOW)
    write_kubeconfig(tmp_path / "config", "https://127.0.0.1:6443", authority.certificate_pem, client)
    content = yaml.safe_load((tmp_path / "config").read_text())
    context = {entry["name"]: entry["context"] for entry in content["contexts"]}[content["current-context"]]
    cluster = {entry["name"]: entry["cluster"] for entry in content["clusters"]}[context["cluster"]]
    user = {entry["name"]: entry["user"] for entry in content["users"]}[context["user"]]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert b64decode(cluster["certificate-authority-data"]) == authority.certificate_pem
    assert b64decode(user["client-certificate-data"]) == client.certificate_pem
    assert b64decode(user["client-key-data"]).decode() == client.key_pem.reveal()


def test_only_the_owner_can_read_a_kubeconfig(tmp_path: Path) -> None:
    authority = Authority.create("ca", NOW)
    write_kubeconfig(tmp_path / "config", "https://a", authority.certificate_pem, authority.issue_client("a", [], NOW))
    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o600
