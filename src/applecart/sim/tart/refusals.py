"""How the simulated Tart says no: an exit code and Tart's own words.

A `Refused` is the expected end of a command; it is printed and becomes the exit code. Texts follow Tart 2.32.1, because the
agent can tell its cases apart by text only.
"""

import signal

OTHER = 1
VM_STATE = 2  # missing, not running and already running share this code
USAGE = 64
BROKEN_PIPE = 128 + signal.SIGPIPE


class Refused(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def missing(vm: str) -> Refused:
    return Refused(VM_STATE, f'the specified VM "{vm}" does not exist')


def missing_files(config: str, disk: str, nvram: str) -> Refused:
    return Refused(OTHER, f"VM is missing some of its files ({config}, {disk} or {nvram})")


def while_parsing(refused: Refused) -> Refused:
    """What `run` finds while it reads its arguments: the parser puts a word before it and has one code for all of it."""
    return Refused(OTHER, f"Error: {refused.text}")


def not_running(vm: str) -> Refused:
    return Refused(VM_STATE, f'VM "{vm}" is not running')


def already_running(vm: str) -> Refused:
    return Refused(VM_STATE, f'VM "{vm}" is already running!')


def is_running(vm: str) -> Refused:
    return Refused(OTHER, f'VM "{vm}" is running')


def too_many(others: list[str]) -> Refused:
    return Refused(OTHER, f"The number of VMs exceeds the system limit (other running VMs: {', '.join(others)})")


def no_address() -> Refused:
    return Refused(OTHER, "no IP address found, is your VM running?")


def no_host_key() -> Refused:
    return Refused(
        OTHER,
        'Error Domain=VZErrorDomain Code=-9 "The virtual machine encountered a security error." '
        "UserInfo={NSLocalizedFailure=The virtual machine encountered a security error., "
        "NSLocalizedFailureReason=Failed to create new HostKey.}",
    )


def no_space_to_pull() -> Refused:
    return Refused(OTHER, 'Error Domain=NSPOSIXErrorDomain Code=28 "No space left on device"')


def no_space_to_clone() -> Refused:
    return Refused(OTHER, "You can’t save the file “disk.img” because there isn’t enough space.")  # noqa: RUF001 (Foundation's)


def no_guest_agent() -> Refused:
    return Refused(
        OTHER,
        "Failed to connect to the VM using its control socket: connection refused, is the Tart Guest Agent running?",
    )


def vanished(file: str) -> Refused:
    return Refused(OTHER, f"The file “{file}” doesn’t exist.")  # noqa: RUF001 (Foundation's)


def unreadable(file: str, why: str) -> Refused:
    return Refused(OTHER, f"The data of {file} couldn’t be read because it isn’t in the correct format: {why}")  # noqa: RUF001


def too_small(least: str) -> Refused:
    return Refused(OTHER, f"LessThanMinimalResourcesError: VM should have {least} at minimum")


def bad_remote_name(text: str) -> Refused:
    return Refused(OTHER, f'failed to parse remote name: "{text}"')


def registry_answered(doing: str, status: int, word: str) -> Refused:
    details = f'{{\\"errors\\":[{{\\"code\\":\\"{word}\\"}}]}}'
    return Refused(OTHER, f'Error: UnexpectedHTTPStatusCode(when: "{doing}", code: {status}, details: "{details}")')


def usage(verb: str, sentence: str) -> Refused:
    return Refused(USAGE, f"Error: {sentence}\nUsage: tart {verb} <options>\n  See 'tart {verb} --help' for more information.")
