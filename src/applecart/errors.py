"""What can go wrong, by what it means for the one who must act.

Every error of applecart is one of two kinds: `Transient` (the same attempt may succeed later, so it is retried with backoff)
or `Permanent` (retrying cannot help until an input changes). Below them stand the classes that controllers and people treat
differently. The text of an error is a sentence for a person: what happened, to which object, what to do. It never holds a
secret (I9).
"""


class ApplecartError(Exception):
    """The root of everything applecart raises on purpose."""

    exit_code = 1  # of a command that ends with this error


class Transient(ApplecartError):
    """The same attempt may succeed later."""


class Permanent(ApplecartError):
    """Retrying cannot help until somebody changes an input."""


class BadInput(Permanent):
    """A file, flag, field or object that a person wrote is wrong; the text names it and the fix (I14)."""

    exit_code = 2


class DeadlineExceeded(Transient):
    """A call did not end within its deadline and was given up (I13)."""


class Unreachable(Transient):
    """No connection to the peer: refused, reset, no route, name unknown."""


class NeverSent(Unreachable):
    """No connection could be made, so the request surely did nothing."""


class ControlPlaneFault(Transient):
    """Something on our side is missing or broken; it must never count against a host (I12)."""


def only_one(error: BaseException) -> BaseException:
    """What a task group wrapped: of several what has no sentence for people, because it is a bug; the first if all have one."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    inner = [only_one(one) for one in error.exceptions]
    untold = [one for one in inner if not isinstance(one, ApplecartError)]
    return error if len(untold) > 1 else (untold or inner)[0]
