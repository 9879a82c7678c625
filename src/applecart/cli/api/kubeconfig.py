"""`applecart api kubeconfig`: issue a client certificate and print a kubeconfig for it.

It needs the data folder and nothing that runs: the certificate authority lies there. A certificate cannot be taken back, so it
is short-lived unless somebody asks for more.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import click

from applecart.cli.api.reach import data_option
from applecart.clock import SystemClock
from applecart.embedded.auth.user import MASTERS
from applecart.embedded.server.data_folder import DataFolder, existing_data_folder
from applecart.embedded.trust.pki import kubeconfig_text
from applecart.errors import BadInput

UNITS: dict[str, Callable[[int], timedelta]] = {
    "m": lambda count: timedelta(minutes=count),
    "h": lambda count: timedelta(hours=count),
    "d": lambda count: timedelta(days=count),
}
MASTERS_WARNING = (
    f"warning: members of {MASTERS} may do everything and no role can limit them; this certificate cannot be taken back before "
    "it ends"
)


@click.command("kubeconfig")
@data_option()
@click.option("--user", metavar="NAME", required=True, help="Who the API shall take its bearer for.")
@click.option("--group", "groups", metavar="NAME", multiple=True, help="A group that the user is in. Repeatable.")
@click.option("--server", metavar="URL", help="Where the API is reached. Default: where it runs.")
@click.option("--valid", metavar="TIME", default="24h", show_default=True, help="How long: 90m, 24h, 30d; at most 365d.")
def command(data: Path, user: str, groups: tuple[str, ...], server: str | None, valid: str) -> None:
    """Issue a client certificate and print a kubeconfig for it.

    \b
    Example:
      umask 077
      applecart api kubeconfig --data build/api --user alice --group ops > ~/.kube/alice
    """
    lifetime = read_duration(valid)
    if MASTERS in groups:
        click.echo(MASTERS_WARNING, err=True)
    click.echo(issued(existing_data_folder(data), user, groups, server, lifetime, SystemClock().now()), nl=False)


def issued(folder: DataFolder, user: str, groups: tuple[str, ...], server: str | None, valid: timedelta, now: datetime) -> str:
    """The kubeconfig as text."""
    url = checked_url(server) if server else address_of(folder)
    if not folder.authority_files.certificate.is_file():
        raise BadInput(f"{folder.authority_files.certificate} is missing; restore it: a new authority would lock everybody out")
    authority = folder.authority(now)
    pair = authority.issue_client(user, groups, now, valid)
    return kubeconfig_text(url, authority.certificate_pem, pair).reveal()


def address_of(folder: DataFolder) -> str:
    """The URL of the running server."""
    with suppress(OSError, UnicodeDecodeError):
        if folder.holder() is not None:  # one that was killed leaves its address behind
            return checked_url(folder.address.read_text().strip())
    raise BadInput(f"no server runs on {folder.folder}, so its address is not known; give it with --server URL")


def checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme == "https" and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_good = False
    if not is_good:
        raise BadInput(f"{url!r} is no address of an API server; write it as https://HOST:PORT")
    return url


def read_duration(text: str) -> timedelta:
    found = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    if found is None:
        raise BadInput(f"--valid {text!r} is no time; write a number and a unit, such as 90m, 24h or 30d")
    return UNITS[found[2]](int(found[1]))
