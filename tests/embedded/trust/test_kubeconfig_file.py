"""The kubeconfig that an operator gets."""

from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import yaml

from applecart.embedded.trust.kubeconfig_file import write_kubeconfig
from applecart.embedded.trust.pki import Authority

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_current_context_leads_to_the_address_the_authority_and_the_client(tmp_path: Path) -> None:
    authority = Authority.create("ca", NOW)
    client = authority.issue_client("admin", [], NOW)
    write_kubeconfig(tmp_path / "config", "https://127.0.0.1:6443", authority.certificate_pem, client)
    content = yaml.safe_load((tmp_path / "config").read_text())
    context = {entry["name"]: entry["context"] for entry in content["contexts"]}[content["current-context"]]
    cluster = {entry["name"]: entry["cluster"] for entry in content["clusters"]}[context["cluster"]]
    user = {entry["name"]: entry["user"] for entry in content["users"]}[context["user"]]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert b64decode(cluster["certificate-authority-data"]) == authority.certificate_pem
    assert b64decode(user["client-certificate-data"]) == client.certificate_pem
    assert b64decode(user["client-key-data"]).decode() == client.key_pem.reveal()


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    authority = Authority.create("ca", NOW)
    write_kubeconfig(tmp_path / "config", "https://a", authority.certificate_pem, authority.issue_client("a", [], NOW))
    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o600
