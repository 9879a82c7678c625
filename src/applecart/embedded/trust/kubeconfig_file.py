"""Writes kubeconfigs for a control plane that applecart started.

The file holds everything inline (address, authority, client certificate and key), so it can be copied to another machine as
one file. It is as good as the key in it, therefore mode 0600.
"""

from base64 import b64encode
from pathlib import Path

import yaml

from applecart.embedded.trust.pki import Pair
from applecart.embedded.trust.private_file import write_private
from applecart.secrets import Secret

NAME = "applecart"  # of the cluster, user and context in the file; kubectl shows it in its prompts


def write_kubeconfig(path: Path, url: str, authority_pem: bytes, client: Pair) -> None:
    """A kubeconfig with one context, which is the current one."""
    write_private(path, kubeconfig_text(url, authority_pem, client).reveal().encode())


def kubeconfig_text(url: str, authority_pem: bytes, client: Pair) -> Secret:
    """Its text, which holds the client's key."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": url, "certificate-authority-data": _base64(authority_pem)}}],
        "users": [
            {
                "name": NAME,
                "user": {
                    "client-certificate-data": _base64(client.certificate_pem),
                    "client-key-data": _base64(client.key_pem.reveal().encode()),
                },
            }
        ],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }
    return Secret(yaml.safe_dump(content, sort_keys=False))


def _base64(content: bytes) -> str:
    return b64encode(content).decode("ascii")
