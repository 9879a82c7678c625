import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import ApplecartError
from applecart.secrets import Secret
from applecart.tart import failures
from applecart.tart.classify import LOOKED_AT_CHARS, QUOTED_CHARS, exec_failure, failure, guest_error, quoted, start_failure
from applecart.tart.mac import Ended
from tests.secret_guard import SecretGuard

HTTP = 'Error: UnexpectedHTTPStatusCode(when: "pulling manifest", code: {}, details: "{}")'
HOST_KEY = 'Error Domain=VZErrorDomain Code=-9 "..." UserInfo={NSLocalizedFailureReason=Failed to create new HostKey.}'
TOO_MANY = "The number of VMs exceeds the system limit (other running VMs: a, b)"
TOO_SMALL = "Error: LessThanMinimalResourcesError: VM should have 4 CPU cores at minimum (requested 1)"

KNOWN: list[tuple[str, str, int, str, type[ApplecartError]]] = [
    ("get", "vm-1", 2, 'the specified VM "vm-1" does not exist', failures.VmMissing),
    ("clone", "golden", 2, 'the specified VM "golden" does not exist', failures.VmMissing),
    ("stop", "vm-1", 2, 'VM "vm-1" is not running', failures.VmNotRunning),
    ("run", "vm-1", 2, 'VM "vm-1" is already running!', failures.VmAlreadyRunning),
    ("delete", "vm-1", 1, 'VM "vm-1" is running', failures.VmAlreadyRunning),
    ("run", "vm-1", 1, TOO_MANY, failures.TooManyVms),
    ("run", "vm-1", 1, HOST_KEY, failures.NoGuiSession),
    ("run", "vm-1", 1, "Failed to create new HostKey", failures.NoGuiSession),
    ("ip", "vm-1", 1, "no IP address found, is your VM running?", failures.NoAddress),
    ("set", "vm-1", 64, "Error: Unknown option '--cpus'", failures.TartRefused),
    ("set", "vm-1", 1, TOO_SMALL, failures.TartRefused),
    ("run", "vm-1", 1, TOO_SMALL, failures.TartFailed),  # whatever a guest prints
    ("clone", "golden", 1, "there isn’t enough space", failures.NoSpace),  # noqa: RUF001 (Foundation's apostrophe)
    ("clone", "golden", 1, "There ISN'T ENOUGH space", failures.NoSpace),
    ("pull", "r.io/a:b", 1, "database or disk is full", failures.NoSpace),
    ("pull", "r.io/a:b", 1, 'NSPOSIXErrorDomain Code=28 "No space left on device"', failures.NoSpace),
    ("pull", "r.io/a:b", 1, HTTP.format(401, "UNAUTHORIZED"), failures.RegistryRefused),
    ("pull", "r.io/a:b", 1, HTTP.format(403, "DENIED"), failures.RegistryRefused),
    ("pull", "r.io/a:b", 1, 'AuthFailed(why: "received unexpected HTTP status code 401")', failures.RegistryRefused),
    ("pull", "r.io/a:b", 1, "Keychain returned unsuccessful status -25308", failures.RegistryRefused),
    ("pull", "r.io/a:b", 1, HTTP.format(404, "MANIFEST_UNKNOWN"), failures.ImageMissing),
    ("pull", "r.io/a:b", 1, "manifest unknown", failures.ImageMissing),
    ("clone", "r.io/a:b", 1, "not found", failures.ImageMissing),
    ("pull", "r.io/a:b", 1, HTTP.format(429, "TOOMANYREQUESTS"), failures.RegistryBusy),
    ("pull", "r.io/a:b", 1, HTTP.format(503, ""), failures.RegistryBusy),
    ("push", "vm-1", 1, HTTP.format(502, "denied by proxy"), failures.RegistryBusy),
    ("pull", "r.io/a:b", 1, "The Internet connection appears to be offline.", failures.TartFailed),
    ("clone", "golden", 1, "Permission denied", failures.TartFailed),
    ("pull", "r.io/a:b", 1, "Permission denied", failures.TartFailed),
    ("list", "VMs", 133, "Fatal error", failures.TartFailed),
]


@pytest.mark.parametrize(("op", "target", "code", "text", "kind"), KNOWN)
@pytest.mark.parametrize("stream", ["out", "err"])  # older versions print their errors on stdout
def test_a_known_failure_is_of_its_class(
    op: str, target: str, code: int, text: str, kind: type[ApplecartError], stream: str
) -> None:
    ended = Ended(code, out=text.encode()) if stream == "out" else Ended(code, err=text.encode())
    error = failure(op, target, ended)
    assert type(error) is kind
    assert target in str(error) or target == "VMs"
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (1, 'the specified VM "vm-1" does not exist'),  # not with Tart's code for it
        (2, 'the specified VM "vm-10" does not exist'),  # another one
        (2, 'VM "vm-1" is not running'),
        (1, "The file “config.json” doesn’t exist."),  # noqa: RUF001
        (1, 'Error Domain=NSCocoaErrorDomain Code=260 "no such file"'),
        (1, "vm-1 not found"),
        (2, ""),
        (137, ""),
    ],
)
def test_nothing_but_tarts_own_words_for_the_asked_vm_reads_as_absence(code: int, text: str) -> None:
    """Weakness 4: any error of a look counted as "no such VM", and the clone that followed replaced one that ran."""
    assert not isinstance(failure("get", "vm-1", Ended(code, err=text.encode())), failures.VmMissing)


@given(st.integers(1, 255), st.text(max_size=400))
def test_any_other_text_never_reads_as_absence_and_never_ends_in_a_traceback(code: int, text: str) -> None:
    error = failure("get", "vm-1", Ended(code, err=text.encode(errors="replace")))
    assert isinstance(error, ApplecartError)
    assert not isinstance(error, failures.VmMissing) or 'the specified VM "vm-1" does not exist' in text
    assert len(str(error)) < QUOTED_CHARS + 200


def test_the_end_of_a_long_text_is_what_is_quoted() -> None:
    assert quoted("x" * 5000 + "\n the reason") == "..." + "x" * (QUOTED_CHARS - 14) + " the reason"


def test_no_secret_is_quoted(secret_guard: SecretGuard) -> None:
    """The password of its screen stands in the log of a VM."""
    password = Secret("correct-horse-battery")
    with secret_guard.looking_away():
        shown = quoted(f"login failed with correct-horse-battery, see vnc://:four-words-or-so@127.0.0.1:5901 {password}")
    assert "horse" not in shown
    assert "four-words" not in shown
    assert "vnc://:REDACTED@127.0.0.1:5901" in shown


def test_half_a_secret_is_not_quoted_either(secret_guard: SecretGuard) -> None:
    password = Secret("correct-horse-battery")
    with secret_guard.looking_away():
        for blanks in range(LOOKED_AT_CHARS - 30, LOOKED_AT_CHARS):
            shown = quoted(f"it says {password.reveal()} vnc://:four-words@{' ' * blanks}end")
            assert "battery" not in shown
            assert "words" not in shown


@pytest.mark.parametrize("text", [b"vnc://", b"vnc:// ", b"HTTP/1", b'the specified VM "', b"manifest "])
@pytest.mark.timeout(20)
def test_a_guest_cannot_stop_the_agent_by_what_it_prints(text: bytes) -> None:
    """I13: 128 KiB of `vnc://` held every Pod of the host for 13 seconds, a megabyte for minutes."""
    said = b"using its control socket " + text * ((1 << 20) // len(text))
    assert type(exec_failure("vm-1", Ended(1, out=said))) is failures.TartFailed
    assert type(failure("pull", "r.io/a:b", Ended(1, out=said))) is failures.TartFailed
    assert guest_error(said.decode()) is None


def test_the_reason_of_a_guest_that_died_is_found_although_tart_ended_with_0() -> None:
    """Weakness 10: Tart's code is 0 when the guest crashes too; only its text tells."""
    log = "starting\nguest has stopped the virtual machine due to error: Error Domain=VZErrorDomain Code=1\n"
    assert guest_error(log) == "Error Domain=VZErrorDomain Code=1"
    assert guest_error("guest has stopped the virtual machine\n") is None
    assert guest_error("guest has stopped the virtual machine due to error: \n") == "no reason given"
    assert "Code=1" in str(start_failure(log, 0, "vm-1"))


@pytest.mark.parametrize(
    ("tail", "code", "kind"),
    [
        (f"x\n{HOST_KEY}\n", 1, failures.NoGuiSession),
        (TOO_MANY, 1, failures.TooManyVms),
        ('VM "vm-1" is already running!', 2, failures.VmAlreadyRunning),
        ("Error: The value 'x:/y:rw' is invalid for '--dir <dir>'", 64, failures.TartRefused),
        ("", None, failures.TartFailed),
        ("", 0, failures.TartFailed),
    ],
)
def test_a_vm_that_ended_at_its_start_is_told_by_the_end_of_its_log(
    tail: str, code: int | None, kind: type[ApplecartError]
) -> None:
    """Incident 43: every VM exited at once over a wrong word, and only its log said which."""
    error = start_failure(tail, code, "vm-1")
    assert type(error) is kind
    assert "vm-1" in str(error)


def test_a_guest_cannot_make_its_vm_absent_by_printing_tarts_words() -> None:
    text = b'the specified VM "vm-1" does not exist\n'
    assert type(exec_failure("vm-1", Ended(2, err=text))) is failures.VmNotRunning
    assert exec_failure("vm-1", Ended(2, out=text, err=b"more")) is None
    assert exec_failure("vm-1", Ended(0, out=text)) is None


def test_a_guest_without_an_agent_is_told_from_a_command_that_failed() -> None:
    text = b"Failed to connect to the VM using its control socket: x, is the Tart Guest Agent running?"
    assert type(exec_failure("vm-1", Ended(1, err=text))) is failures.TartFailed
    assert exec_failure("vm-1", Ended(1, err=b"grep: no match")) is None
