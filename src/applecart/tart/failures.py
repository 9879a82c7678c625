"""What Tart's exit code and text mean, as classes that say what to do next.

Tart 2.32 tells its three cases of code 2 apart by text only, and none of its messages says "not found". Whatever is not
recognised is a `TartFailed`: it may pass. Texts are Tart's own and hold no secret; they are cut and redacted before they
become part of an error.
"""

from applecart.errors import DeadlineExceeded, Permanent, Transient


class TartFailed(Transient):
    """Tart ended with an error that nobody knows by name."""

    def __init__(self, sentence: str, code: int = 1) -> None:
        super().__init__(sentence)
        self.code = code


class TartHung(DeadlineExceeded):
    """A Tart command did not end within its deadline and was killed."""


class PullStalled(TartHung):
    """A pull made no progress for too long and was killed; what it had fetched is kept for the next one."""


class VmMissing(TartFailed):
    """There is no VM of that name."""


class VmNotRunning(TartFailed):
    """The VM is there but does not run."""


class VmAlreadyRunning(TartFailed):
    """The VM runs already, or is in use."""


class TooManyVms(TartFailed):
    """Apple allows two macOS guests per host, and they run."""


class NoSpace(TartFailed):
    """The host's disk is full."""


class NoGuiSession(TartFailed):
    """Nobody is logged in on the screen, so Virtualization.framework has no key to work with."""


class RegistryBusy(TartFailed):
    """The registry limits our rate, or is out of order."""


class RegistryRefused(TartFailed):
    """The registry does not let us in: a wrong, missing or locked credential."""


class ImageMissing(TartFailed):
    """The registry has no such image."""


class NoAddress(TartFailed):
    """The guest has no address yet, or none is left to give."""


class TartRefused(Permanent):
    """Tart refuses the arguments; the same ones never work."""


class BadImage(Permanent):
    """The text in the Pod is no image reference."""


class AlreadyStarted(Permanent):
    """Something was started in this run folder before; a run folder is used once."""
