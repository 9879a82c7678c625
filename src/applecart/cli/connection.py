"""`applecart connection`: which Kubernetes API is reached, as whom and until when.

The first thing to run when anything else says that the API is out of reach. It makes two calls and changes nothing; whatever
is wrong with the kubeconfig, the network, TLS or the credential ends in one sentence.
"""

import asyncio
from datetime import datetime
from typing import TypeVar

import click
import msgspec

from applecart.clock import Clock, SystemClock
from applecart.errors import BadInput
from applecart.kube.auth.expiry import expires_at, spoken_age
from applecart.kube.connect import connect
from applecart.kube.errors import Forbidden, MethodNotAllowed, NotFound, error_from_answer
from applecart.kube.http import HttpTransport
from applecart.kube.transport import Request

T = TypeVar("T")

DEADLINE_S = 10.0  # a person waits
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'


class Connection(msgspec.Struct, frozen=True, rename="camel"):
    """What we found out. The JSON output has these fields."""

    server: str
    server_from: str
    version: str
    user: str | None  # None: the server does not tell
    groups: tuple[str, ...]
    credential: str
    expires_at: datetime | None  # None: never, or nobody knows
    namespace: str
    took_s: float


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = "unknown"


class _UserInfo(msgspec.Struct):
    username: str = ""
    groups: tuple[str, ...] = ()


class _ReviewStatus(msgspec.Struct, rename="camel"):
    user_info: _UserInfo = msgspec.field(default_factory=_UserInfo)


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


@click.command("connection")
@click.option("--kubeconfig", metavar="FILE", help="Use this file instead of KUBECONFIG, the Pod or ~/.kube/config.")
@click.option("--context", metavar="NAME", help="Use this context instead of the current one.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(kubeconfig: str | None, context: str | None, output: str) -> None:
    """Say which Kubernetes API is reached, as whom and until when.

    \b
    Example:
      applecart connection --kubeconfig ~/.kube/staging --context ci
    """
    clock = SystemClock()
    found = asyncio.run(look(kubeconfig, context, clock))
    click.echo(msgspec.json.encode(found).decode() if output == "json" else text(found, clock.now()))


async def look(kubeconfig: str | None, context: str | None, clock: Clock) -> Connection:
    started_s = clock.monotonic()
    transport = connect(kubeconfig, context, clock)
    try:
        version = await _call(transport, Request("GET", "/version", deadline_s=DEADLINE_S), _Version)
        who = await _who(transport)
        credential = await transport.credentials.get()
        return Connection(
            server=transport.endpoint.server,
            server_from=transport.endpoint.server_from,
            version=version.git_version,
            user=who.username or None,
            groups=who.groups,
            credential=credential.source,
            expires_at=expires_at(credential),
            namespace=transport.endpoint.namespace,
            took_s=round(clock.monotonic() - started_s, 3),
        )
    finally:
        await transport.aclose()


def text(found: Connection, now: datetime) -> str:
    """The findings for a terminal."""
    groups = f" (groups: {', '.join(found.groups)})" if found.groups else ""
    ends = f"{found.expires_at:%Y-%m-%dT%H:%M:%SZ} ({spoken_age(found.expires_at, now)})" if found.expires_at else "not known"
    lines = {
        "server": f"{found.server} ({found.server_from})",
        "version": found.version,
        "user": f"{found.user}{groups}" if found.user else "not known: the server does not tell",
        "credential": found.credential,
        "expires": ends,
        "namespace": found.namespace,
        "took": f"{found.took_s:.2f} s",
    }
    return "\n".join(f"{name:<11} {value}" for name, value in lines.items())


async def _who(transport: HttpTransport) -> _UserInfo:
    """Who the server takes us for. Servers before 1.28 do not know the question, and some do not allow it."""
    try:
        review = await _call(transport, Request("POST", _REVIEWS, body=_REVIEW, deadline_s=DEADLINE_S), _Review)
    except (NotFound, Forbidden, MethodNotAllowed):
        return _UserInfo()
    return review.status.user_info


async def _call(transport: HttpTransport, request: Request, kind: type[T]) -> T:
    response = await transport.send(request)
    if response.status >= 300:
        raise error_from_answer(response.status, response.body, str(request))
    try:
        return msgspec.json.decode(response.body, type=kind)
    except msgspec.MsgspecError:
        endpoint = transport.endpoint
        raise BadInput(f"{endpoint.server} answers, but is no Kubernetes API; correct {endpoint.server_from}") from None
