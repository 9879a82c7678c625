"""The port of an embedded API whose person named none: that of its last start, which kubeconfigs and agents have been told."""

import errno
import re
import socket
from pathlib import Path

import click

from applecart.embedded.server.data_folder import DataFolder
from applecart.embedded.trust.control_plane_files import LOOPBACK

ANY = 0


def port_again(data: Path, first: int, host: str = LOOPBACK) -> int:
    """`first` in a folder where no server ran; any, and a line that says so, when somebody else has the port by now."""
    folder = DataFolder(data)
    try:
        found = re.search(r"^ *server: https://\S+:(\d+)$", folder.admin_kubeconfig.read_text(), flags=re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        found = None
    port = int(found[1]) if found else first
    if found and _is_taken(host, port) and folder.holder() is None:
        told = f"port {port} of the last start is taken, so the API takes another; kubeconfigs that were handed out name {port}"
        click.echo(f"notice: {told}", err=True)
        return ANY
    return port


def _is_taken(host: str, port: int) -> bool:
    """Another reason why it cannot be had is for the server to tell."""
    try:
        with socket.create_server((host, port)):
            return False
    except OSError as error:
        return error.errno == errno.EADDRINUSE
