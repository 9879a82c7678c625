"""A Secret's value has one way out, and `redact` finds it in whatever spelling it travels."""

import base64
import copy
import gc
import io
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.pretty import pretty_repr
from rich.traceback import Traceback

from applecart.errors import BadInput
from applecart.secrets import (
    MASK,
    MIN_REDACTED_CHARS,
    Registry,
    Secret,
    current_registry,
    redact,
    registering_in,
    spellings,
)
from tests.secret_guard import holds_secret

VALUE = "ghs_16C7e42F292c/6912E7+710c838347Ae178B4a"
SHOWN = "Secret(***)"
values = st.text(st.characters(codec="utf-8", exclude_characters="*"), min_size=MIN_REDACTED_CHARS).filter(
    lambda value: len(value.strip()) >= MIN_REDACTED_CHARS
)

RENDERINGS: dict[str, Callable[[Secret], str]] = {
    "str": str,
    "repr": repr,
    "ascii": ascii,
    "f-string": lambda secret: f"{secret}",
    "f-string with !r": lambda secret: f"{secret!r}",
    "f-string with =": lambda secret: f"{secret=}".removeprefix("secret="),
    "f-string with a width": lambda secret: f"{secret:>60}",
    "percent s": lambda secret: "%s" % secret,  # noqa: UP031
    "percent r": lambda secret: "%r" % secret,  # noqa: UP031
    "str.format": lambda secret: "{:}".format(secret),  # noqa: UP032
    "join": lambda secret: "".join(map(str, [secret])),
    "an exception": lambda secret: str(ValueError(secret)),
    "a log record": lambda secret: logging.LogRecord("x", 20, "x.py", 1, "%s", (secret,), None).getMessage(),
    "rich": lambda secret: pretty_repr(secret),
    "json with default=str": lambda secret: json.loads(json.dumps(secret, default=str)),
}


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_a_secret_shows_nothing_to(rendering: str) -> None:
    assert RENDERINGS[rendering](Secret(VALUE)) == SHOWN


def test_a_secret_inside_a_container_or_struct_shows_nothing() -> None:
    class Login(msgspec.Struct):
        user: str
        password: Secret

    secret = Secret(VALUE)
    for holder in ([secret], {"a": secret}, {secret}, Login("ci", secret), ValueError("login", secret)):
        assert VALUE not in repr(holder)
        assert SHOWN in repr(holder)


ESCAPES: dict[str, Callable[[Secret], Any]] = {
    "json": json.dumps,
    "msgspec json": msgspec.json.encode,
    "msgspec msgpack": msgspec.msgpack.encode,
    "msgspec to builtins": msgspec.to_builtins,
    "pickle": pickle.dumps,
    "getstate": lambda secret: secret.__getstate__(),
    "reduce": lambda secret: secret.__reduce_ex__(2),
    "vars": vars,
    "bytes": lambda secret: bytes(secret),  # type: ignore[call-overload]
    "concatenation": lambda secret: "Bearer " + secret,  # type: ignore[operator]
    "iteration": lambda secret: list(secret),  # type: ignore[call-overload]
    "join": lambda secret: "".join([secret]),  # type: ignore[list-item]
    "percent d": lambda secret: "%d" % secret,  # type: ignore[str-format]  # noqa: UP031
}


@pytest.mark.parametrize("escape", ESCAPES)
def test_a_secret_is_refused_by(escape: str) -> None:
    with pytest.raises(TypeError) as caught:
        ESCAPES[escape](Secret(VALUE))
    assert VALUE not in str(caught.value)


def test_reveal_gives_the_value_back_unchanged() -> None:
    assert Secret(f" {VALUE}\n").reveal() == f" {VALUE}\n"


def test_a_copy_is_the_same_secret() -> None:
    secret = Secret(VALUE)
    assert copy.copy(secret) is secret
    assert copy.deepcopy({"a": [secret]})["a"][0] is secret


def test_what_is_not_text_is_refused_without_showing_it() -> None:
    with pytest.raises(TypeError, match="holds text, not bytes") as caught:
        Secret(VALUE.encode())  # type: ignore[arg-type]
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "value = " not in "".join(shown.format())


def login_that_fails(password: Secret) -> None:
    attempts = [{"password": password}]
    raise ConnectionError("login refused", password, len(attempts))


def test_a_traceback_with_locals_shows_nothing() -> None:
    try:
        login_that_fails(Secret(VALUE))
    except ConnectionError as error:
        standard = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        console = Console(file=io.StringIO(), width=200)
        console.print(Traceback.from_exception(type(error), error, error.__traceback__, show_locals=True))
        fancy = console.file.getvalue()  # type: ignore[attr-defined]
    for shown in (standard, fancy):
        assert VALUE not in shown
        assert SHOWN in shown


@given(st.text(), st.text())
def test_secrets_are_equal_and_hash_alike_exactly_when_their_values_do(one: str, other: str) -> None:
    assert (Secret(one) == Secret(other)) == (one == other)
    assert len({Secret(one), Secret(other)}) == len({one, other})


def test_a_secret_never_equals_plain_text() -> None:
    assert Secret(VALUE) != VALUE
    assert VALUE not in {Secret(VALUE): 1}


def test_a_secret_is_true_when_it_holds_something() -> None:
    assert Secret("x")
    assert not Secret("")


def test_a_token_file_is_read_without_the_newline_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{VALUE}\n")
    assert Secret.from_file(tmp_path / "token") == Secret(VALUE)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(None, "No such file"), (b"", "is empty"), (b" \n", "is empty"), (b"\xff\xfe\x00", "is not UTF-8")],
)
def test_a_bad_token_file_gets_a_sentence_that_names_it(content: bytes | None, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "github.token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=complaint) as caught:
        Secret.from_file(path, "GitHub token")
    assert str(caught.value).startswith(f"the GitHub token file {path} ")
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_folder_in_place_of_a_token_file_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        Secret.from_file(tmp_path)


@given(values, st.text(), st.text())
def test_redact_masks_every_spelling_wherever_it_stands(value: str, before: str, after: str) -> None:
    secret = Secret(value)
    raw = value.encode()
    for form in (
        value.strip(),
        quote(value.strip(), safe=""),
        quote_plus(value.strip()),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        json.dumps(value.strip())[1:-1],
        repr(value.strip())[1:-1],
    ):
        assert holds_secret(f"{before}{form}{after}")
        redacted = redact(f"{before}{form}{after}")
        assert form not in redacted or form in f"{before}{MASK}{after}"
    assert secret


@given(values, st.binary(max_size=7), st.binary(max_size=7))
def test_redact_finds_a_value_inside_something_longer_that_was_encoded(value: str, before: bytes, after: bytes) -> None:
    """Basic auth is base64 of `user:token`; a Secret holds whole kubeconfigs."""
    secret = Secret(value)
    assert MASK in redact(base64.b64encode(before + value.strip().encode() + after).decode())
    assert secret


@given(st.lists(st.text("ab", min_size=8, max_size=12), min_size=1, max_size=4), st.text("ab", max_size=60))
def test_nothing_of_a_value_is_left_when_values_overlap(chosen: list[str], text: str) -> None:
    """Masking one value after the other leaves the tail of a second that began inside the first."""
    registry = Registry()
    for value in chosen:
        registry.add(value)
    covered = {
        at
        for value in chosen
        for start in range(len(text))
        if text.startswith(value, start)
        for at in range(start, start + len(value))
    }
    left = "".join(letter for at, letter in enumerate(text) if at not in covered)
    assert registry.redact(text).replace(MASK, "") == left


def test_a_token_in_a_log_line_is_masked_and_the_rest_stays() -> None:
    secret = Secret(VALUE)
    assert redact(f"GET https://x/?token={quote(VALUE, safe='')}&a=1 failed") == "GET https://x/?token=***&a=1 failed"
    assert redact(f"Authorization: Bearer {secret.reveal()}") == "Authorization: Bearer ***"


def test_a_text_without_secrets_is_returned_as_it_is() -> None:
    secret = Secret(VALUE)
    text = "pod default/web-1 bound to mac-7"
    assert redact(text) is text
    assert secret


def test_a_value_too_short_to_be_told_from_words_is_not_masked() -> None:
    secret = Secret("admin")
    assert redact("the admin user of admin-1") == "the admin user of admin-1"
    assert spellings("admin\n" + " " * 20) == set()
    assert secret


def test_one_line_of_a_private_key_is_masked() -> None:
    body = base64.b64encode(bytes(range(96))).decode()
    key = Secret(f"-----BEGIN PRIVATE KEY-----\n{body[:64]}\n{body[64:]}\n-----END PRIVATE KEY-----\n")
    assert redact(f"line 2: cannot parse {body[:64]}") == "line 2: cannot parse ***"
    assert redact("expected -----BEGIN PRIVATE KEY-----") == "expected -----BEGIN PRIVATE KEY-----"
    assert key


SERVICE_ACCOUNT = """{
  "type": "service_account",
  "client_secret": "GOCSPX-hunter2hunter2",
  "private_key_id": "0123456789abcdef"
}
"""


def test_each_line_of_a_value_is_masked_where_it_stands_alone() -> None:
    """I9: a file of several lines that a job printed with `cat` stood in its log whole, for logs are cleaned line by line."""
    account = Secret(SERVICE_ACCOUNT)
    shown = [redact(line) for line in SERVICE_ACCOUNT.splitlines()]
    assert shown == ["{", "  ***,", "  ***,", "  ***", "}"]
    assert redact('{"a": 1, "private_key_id": "0123456789abcdef", "b": 2}') == '{"a": 1, ***, "b": 2}'
    assert account


def test_the_words_that_every_document_of_its_kind_has_are_not_secret() -> None:
    """`--context: expected one argument` read `--***` while a kubeconfig was held."""
    document = (
        'apiVersion: v1\nkind: Config\ncontexts:\n- context:\n    user: ci\n{\n  "items": [\nA=1\n----------\n'
        "token: hunter2-hunter2\n"
    )
    held = Secret(document)
    for line in document.splitlines()[:-1]:
        assert redact(f"--{line.strip()} is fine") == f"--{line.strip()} is fine"
    assert redact("token: hunter2-hunter2") == MASK
    assert redact(held.reveal().strip()) == MASK


def jwt(signature: str = "c2lnbmF0dXJlLW9mLWEtdG9rZW4") -> str:
    """A token that no Secret ever held."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "RS256"}, {"a": 1}))
    return ".".join((*parts, signature))


@pytest.mark.parametrize(
    "around", ["{}", "Authorization: Bearer {}", '{{"token":"{}"}}', "a\\n{}\n", "x?token={}&y=1", "'{}'."]
)
def test_a_token_that_nobody_holds_any_more_is_masked_by_its_shape(around: str) -> None:
    """I9: a guest copies its first token when it boots, and prints it hours after the agent has forgotten it."""
    shown = redact(around.format(jwt()))
    assert MASK in shown
    assert not any(part in shown for part in jwt().split("."))


@pytest.mark.parametrize("text", ["a.eyJ.b", "1.2.3", "see example.com/eyJ.html", f"cut {jwt()[:40]}", "registry.eyJabcdefgh"])
def test_what_is_no_whole_token_is_left_as_it_is(text: str) -> None:
    assert redact(text) == text


@pytest.mark.timeout(10)
def test_what_a_guest_prints_costs_one_look_per_word() -> None:
    """A text full of the beginnings of tokens; a pattern that tries each of them against the rest takes minutes."""
    for text in ("eyJ" * 300_000, "a.eyJ" * 200_000, "eyJaaaaaaaaaaaa.eyJ" * 50_000, ".eyJ" + "a" * 1_000_000):
        assert redact(text + " .eyJ") is not None


@pytest.mark.timeout(10)
def test_a_value_of_many_lines_that_begin_alike_costs_one_look_per_line() -> None:
    """A list of accounts took minutes to be known, and as long to be forgotten, at every `kubectl logs`."""
    lines = [f"password-{number:06}" for number in range(20_000)]
    registry = Registry()
    registry.add("\n".join(lines))
    assert registry.redact(f"first {lines[0]}, last {lines[-1]}, {'password-' * 100}") == (
        f"first {MASK}, last {MASK}, {'password-' * 100}"
    )
    registry.dead.append("\n".join(lines))
    assert registry.redact(lines[0]) == lines[0]
    assert not registry._uses
    assert not registry._by_head


def test_a_value_is_forgotten_with_the_last_secret_that_holds_it() -> None:
    registry = Registry()
    registry.add(VALUE)
    registry.add(VALUE)
    registry.dead.append(VALUE)
    assert registry.redact(VALUE) == MASK
    registry.dead.append(VALUE)
    assert registry.redact(VALUE) == VALUE
    assert not registry._uses
    assert not registry._by_head


def test_a_registry_that_never_forgets_keeps_the_values_of_the_dead() -> None:
    registry = Registry(forgets=False)
    registry.add(VALUE)
    registry.dead.append(VALUE)
    assert registry.redact(VALUE) == MASK


def test_secrets_made_apart_are_known_only_there() -> None:
    apart, value = Registry(), "apart-" + VALUE[:9]
    with registering_in(apart):
        secret = Secret(value)
        assert redact(value) == MASK
    assert not holds_secret(value)
    current_registry().include(apart)
    assert holds_secret(secret.reveal())


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["alpha-alpha", "alpha-alpine", "beta-beta-beta"]))))
def test_the_registry_knows_exactly_the_values_that_live(steps: list[tuple[bool, str]]) -> None:
    registry, living = Registry(), list[str]()
    for born, value in steps:
        if born:
            registry.add(value)
            living.append(value)
        elif value in living:
            registry.dead.append(value)
            living.remove(value)
        for candidate in ("alpha-alpha", "alpha-alpine", "beta-beta-beta"):
            assert bool(registry.spans(candidate)) == (candidate in living)


def test_a_secret_that_is_collected_reaches_the_registry() -> None:
    value = "collected-" + VALUE
    known = len(current_registry().dead)
    Secret(value)
    gc.collect()
    assert value in list(current_registry().dead)[known:]


def test_the_cost_of_redaction_does_not_grow_with_the_number_of_secrets() -> None:
    """Five hundred hosts have some thousand secrets, and every log line passes here."""

    class CountingText(str):
        compared = 0

        def startswith(self, *args: Any) -> bool:
            CountingText.compared += 1
            return super().startswith(*args)

    registry = Registry()
    for number in range(2000):
        registry.add(f"{number:05}-secret-of-a-host")
    text = CountingText("pod default/web-1 bound to mac-7 after 00042-secret-of-a-host " * 3)
    assert registry.redact(text).count(MASK) == 3
    assert CountingText.compared < 50
