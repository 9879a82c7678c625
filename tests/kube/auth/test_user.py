"""What a user entry presents to the server."""

from pathlib import Path
from typing import Any

import pytest

from applecart.clock import Clock, SystemClock
from applecart.errors import BadInput
from applecart.kube.auth.context import credentials_of
from applecart.kube.auth.credentials import REREAD_AFTER_S, Credential, Credentials
from applecart.kube.auth.exec_plugin import ExecCredentials
from applecart.kube.auth.kubeconfig import KubeconfigEntry
from tests.kube.kubeconfigs import b64
from tests.virtual_time import elapse

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n"
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin"}


def credentials(folder: Path, fields: Any, clock: Clock) -> Credentials:
    return credentials_of(KubeconfigEntry("user", "robot", folder / "config", fields), {}, clock, {})


async def credential(folder: Path, fields: Any, clock: Clock) -> Credential:
    return await credentials(folder, fields, clock).get()


async def test_a_token_is_presented_as_bearer(tmp_path: Path, clock: Clock) -> None:
    found = await credential(tmp_path, {"token": "opaque-robot-token"}, clock)
    assert found.authorization() == "Bearer opaque-robot-token"
    assert found.source == f'bearer token (field token of user "robot" in {tmp_path}/config)'


async def test_a_user_name_and_password_are_presented_as_basic(tmp_path: Path, clock: Clock) -> None:
    found = await credential(tmp_path, {"username": "robot", "password": "pass:wörd-of-robot"}, clock)
    assert found.authorization() == f"Basic {b64('robot:pass:wörd-of-robot')}"


async def test_a_token_file_is_relative_to_the_kubeconfig(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "token").write_text("token-from-a-file\n")
    found = await credential(tmp_path, {"tokenFile": "token"}, clock)
    assert found.authorization() == "Bearer token-from-a-file"


async def test_a_token_file_wins_over_a_token(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "token").write_text("token-from-a-file")
    found = await credential(tmp_path, {"tokenFile": "token", "token": "token-in-the-entry"}, clock)
    assert found.authorization() == "Bearer token-from-a-file"


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "token").write_text("first-token-of-robot")
    source = credentials(tmp_path, {"tokenFile": "token"}, clock)
    before = await source.get()
    (tmp_path / "token").write_text("second-token-of-robot")
    await elapse(REREAD_AFTER_S - 1)
    assert await source.get() is before
    await elapse(1)
    assert (await source.get()).authorization() == "Bearer second-token-of-robot"


async def test_certificate_data_wins_over_files(tmp_path: Path, clock: Clock) -> None:
    fields = {
        "client-certificate": "gone",
        "client-key": "gone",
        "client-certificate-data": b64(CERTIFICATE),
        "client-key-data": b64(KEY),
    }
    found = (await credential(tmp_path, fields, clock)).certificate
    assert found is not None
    assert found.chain_pem == CERTIFICATE
    assert found.key_pem.reveal() == KEY


async def test_certificate_files_that_changed_are_a_new_credential_and_unchanged_ones_the_same(
    tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "crt").write_text(CERTIFICATE)
    (tmp_path / "key").write_text(KEY)
    source = credentials(tmp_path, {"client-certificate": "crt", "client-key": "key"}, clock)
    first = await source.get()
    await elapse(REREAD_AFTER_S)
    assert await source.get() is first
    (tmp_path / "crt").write_text(CERTIFICATE.replace("MIIB", "MIIC"))
    await elapse(REREAD_AFTER_S)
    renewed = (await source.get()).certificate
    assert renewed is not None
    assert "MIIC" in renewed.chain_pem


async def test_a_certificate_and_a_token_go_together(tmp_path: Path, clock: Clock) -> None:
    fields = {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(KEY), "token": "opaque-robot-token"}
    found = await credential(tmp_path, fields, clock)
    assert found.token is not None
    assert found.certificate is not None
    assert " and client certificate (" in found.source


def test_a_token_written_in_the_entry_wins_over_an_exec_plugin(tmp_path: Path) -> None:
    assert not isinstance(credentials(tmp_path, {"token": "opaque", "exec": EXEC}, SystemClock()), ExecCredentials)
    assert isinstance(credentials(tmp_path, {"token": None, "exec": EXEC}, SystemClock()), ExecCredentials)


async def test_impersonation_becomes_headers(tmp_path: Path, clock: Clock) -> None:
    fields = {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"acme.test/scope": ["x", "y"]}}
    assert (await credential(tmp_path, fields, clock)).impersonation == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-acme.test%2Fscope", "x"),
        ("Impersonate-Extra-acme.test%2Fscope", "y"),
    )


BAD: list[tuple[dict[str, Any], str]] = [
    ({"token": 12345}, "field token of {user} must be text; put it in quotes"),
    ({"token": "two words"}, "field token of {user} is no bearer token"),
    ({"token": "line\nbreak"}, "field token of {user} is no bearer token"),
    ({"token": "a", "username": "b"}, "{user} sets both token and username; keep one of them"),
    ({"username": "a:b", "password": "c"}, "field username of {user} or password holds a colon"),
    ({"tokenFile": "gone"}, "the token file {folder}/gone cannot be read"),
    ({"tokenFile": "empty"}, "the token file {folder}/empty is empty"),
    ({"tokenFile": "\0"}, "field tokenFile of {user} is no path"),
    ({"client-certificate-data": b64(CERTIFICATE)}, "field client-key-data of {user} is missing"),
    ({"client-key-data": b64(KEY)}, "field client-certificate-data of {user} is missing"),
    ({"client-certificate-data": "%", "client-key-data": "%"}, "field client-certificate-data of {user} is not base64"),
    (
        {"client-certificate": "gone", "client-key": "gone"},
        "field client-certificate of {user} (file {folder}/gone) cannot be read (No such file or directory)",
    ),
    ({"auth-provider": {"name": "gcp"}}, "field auth-provider of {user} is not supported; use an exec plugin"),
    ({"as-groups": ["a"]}, "field as of {user} is missing"),
    ({"as": "a\r\nX-Evil: 1"}, "field as of {user} or its groups hold a character"),
    ({"as": "a", "as-groups": "g"}, "field as-groups of {user} must be a list"),
    ({"exec": "plugin"}, "field exec of {user} must be a map of fields"),
]


@pytest.mark.parametrize(("fields", "sentence"), BAD, ids=range(len(BAD)))
async def test_a_wrong_field_is_one_sentence_with_file_entry_and_field(
    tmp_path: Path, clock: Clock, fields: dict[str, Any], sentence: str
) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(BadInput) as caught:
        await credential(tmp_path, fields, clock)
    user = f'user "robot" in {tmp_path}/config'
    assert str(caught.value).startswith(sentence.replace("{user}", user).replace("{folder}", str(tmp_path)))
