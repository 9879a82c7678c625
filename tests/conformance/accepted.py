"""Differences from a real server that applecart accepts, each with its reason.

The list is short on purpose: a difference belongs here only when matching the real server would harm users or cost more than
anybody gains. A test holds its length. Each is left out where it would show, by the check that meets it or of all answers
(`normal.py`), so that everything around it is still compared: no check is excused.
"""

from dataclasses import dataclass

MOST = 7


@dataclass(frozen=True)
class Accepted:
    """One difference."""

    what: str
    why: str


ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        "OpenAPI describes built-in kinds without their fields (v3) or texts (v2), and v3 offers no strategic merge for them",
        "kubectl needs the paths and parameters only; the fields would be 1.4 MB of another project's texts, and with half of "
        "them kubectl would compute wrong patches on the client. Custom kinds have their full schemas.",
    ),
    Accepted(
        "what a caller did wrong is 400 where the real server answers 500",
        "a 500 means that the server is in trouble: it wakes people and makes clients retry. The texts are the same.",
    ),
    Accepted(
        "methods that HTTP does not know are refused by the parser, and POST to a custom object is 405",
        "the hardened HTTP parser in front answers 400 before anything of ours runs; 405 is what the request deserves.",
    ),
    Accepted(
        "a CustomResourceDefinition in a group of the server is refused",
        "the real server stores it, says that it is established and never serves it; a refusal says so.",
    ),
    Accepted("columns of Tables are described in other words", "the descriptions are another project's documentation."),
    Accepted(
        "the refusal of a change to a Pod's spec shows the change in the API's field names",
        "the real server prints its own Go structs, which nobody writes in a manifest.",
    ),
    Accepted(
        "a cause is listed once",
        "two layers of the real server find the same thing and repeat it word for word, two or three times.",
    ),
)
