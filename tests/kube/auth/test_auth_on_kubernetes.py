"""Each way to authenticate, on a real kube-apiserver, as `applecart connection` sees it."""

import base64
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from applecart.api.authentication import TokenRequest, TokenRequestSpec
from applecart.api.core import ServiceAccount
from applecart.api.meta import Key, ObjectMeta
from applecart.cli.connection import Connection, look
from applecart.clock import Clock
from applecart.embedded.binaries.flags import TOKEN_ISSUER
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.errors import Unauthorized
from applecart.kube.tls import TlsFailure
from applecart.kube.transport import Request
from tests.kube.kubeconfigs import b64, kubeconfig, write
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes

VERSION = Request("GET", "/version")
ROBOT = "robot"


class Fleet:
    """A real cluster, and kubeconfigs of this test for it."""

    def __init__(self, cluster: FullCluster, namespace: str, folder: Path, clock: Clock) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.folder = folder
        self.clock = clock

    @property
    def robot(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{ROBOT}"

    def kubeconfig(self, user: dict[str, Any], **cluster: Any) -> str:
        fields = {"server": self.cluster.url, "certificate-authority-data": b64(self.cluster.ca_pem), **cluster}
        return str(write(self.folder / "config", kubeconfig(fields, user)))

    async def look(self, user: dict[str, Any], **cluster: Any) -> Connection:
        return await look(self.kubeconfig(user, **cluster), None, self.clock)

    async def robot_token(self) -> str:
        """A token of the robot's service account, which exists afterwards."""
        client = Client(connect(str(self.cluster.kubeconfig), None, self.clock, environ={}), self.clock)
        try:
            await client.create(ServiceAccount(metadata=ObjectMeta(name=ROBOT, namespace=self.namespace)))
            wanted = TokenRequest(spec=TokenRequestSpec(expiration_seconds=600))
            asked = await client.create_subresource(ServiceAccount, Key(self.namespace, ROBOT), "token", wanted)
        finally:
            await client.aclose()
        return asked.status.token

    def signed_token(self, expires_at: datetime) -> str:
        """What the cluster itself would have signed, with an end of our choice."""
        claims = {
            "iss": TOKEN_ISSUER,
            "aud": [TOKEN_ISSUER],
            "sub": self.robot,
            "iat": int((expires_at - timedelta(hours=1)).timestamp()),
            "exp": int(expires_at.timestamp()),
            "kubernetes.io": {"namespace": self.namespace, "serviceaccount": {"name": ROBOT, "uid": "none"}},
        }
        signed = b".".join(url_safe(msgspec.json.encode(part)) for part in ({"alg": "ES256", "typ": "JWT"}, claims))
        key = load_pem_private_key(self.cluster.files.trust.token_keys.key.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())))
        return b".".join([signed, url_safe(r.to_bytes(32, "big") + s.to_bytes(32, "big"))]).decode()

    def plugin(self, status: dict[str, str], version: str = "v1") -> dict[str, Any]:
        """A user whose exec plugin answers this status."""
        api_version = f"client.authentication.k8s.io/{version}"
        write(self.folder / "answer", json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "status": status}))
        write(self.folder / "plugin", f'#!/bin/sh\ncat "{self.folder}/answer"\n').chmod(0o755)
        return {"exec": {"apiVersion": api_version, "command": "./plugin", "interactiveMode": "Never"}}


def url_safe(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


@pytest.fixture
def fleet(real_cluster: FullCluster, namespace: str, tmp_path: Path, clock: Clock) -> Fleet:
    return Fleet(real_cluster, namespace, tmp_path, clock)


async def test_a_client_certificate_is_who_it_says(fleet: Fleet, kube: str) -> None:
    found = await look(str(fleet.cluster.kubeconfig), None, fleet.clock)
    assert found.user == "kubernetes-admin"
    assert "system:masters" in found.groups
    assert found.version.startswith(f"v{kube}.")
    assert found.expires_at is not None


async def test_client_certificate_files_work_like_data(fleet: Fleet) -> None:
    files = fleet.cluster.admin
    found = await fleet.look({"client-certificate": str(files.certificate), "client-key": str(files.key)})
    assert found.user == "kubernetes-admin"


async def test_a_service_account_token_is_who_it_says_and_tells_its_end(fleet: Fleet) -> None:
    found = await fleet.look({"token": await fleet.robot_token()})
    assert found.user == fleet.robot
    assert found.expires_at is not None
    assert timedelta(minutes=8) < found.expires_at - fleet.clock.now() < timedelta(minutes=11)


async def test_an_administrator_can_act_as_somebody_else(fleet: Fleet) -> None:
    files = fleet.cluster.admin
    user = {"client-certificate": str(files.certificate), "client-key": str(files.key), "as": "jane", "as-groups": ["ops"]}
    found = await fleet.look(user)
    assert found.user == "jane"
    assert "ops" in found.groups


async def test_an_expired_token_is_refused_and_told_as_expired(fleet: Fleet) -> None:
    token = fleet.signed_token(fleet.clock.now() - timedelta(hours=2, minutes=1))
    with pytest.raises(Unauthorized) as caught:
        await fleet.look({"token": token})
    place = f'field token of user "robot" in {fleet.folder}/config'
    assert str(caught.value) == (
        f"GET /version: {fleet.cluster.url} refuses the bearer token ({place}): it expired 2 h ago; replace it (401)"
    )
    assert caught.value.exit_code == 1


async def test_a_made_up_token_is_refused_and_told_with_its_field(fleet: Fleet) -> None:
    with pytest.raises(Unauthorized, match=r"refuses the bearer token \(field token of user .*\); replace it"):
        await fleet.look({"token": "made-up-by-nobody"})


async def test_a_token_file_that_is_replaced_after_a_refusal_is_taken_at_once(fleet: Fleet) -> None:
    token_file = write(fleet.folder / "token", "made-up-by-nobody")
    transport = connect(fleet.kubeconfig({"tokenFile": "token"}), None, fleet.clock, environ={})
    assert (await transport.send(VERSION)).status == 401
    token_file.write_text(await fleet.robot_token())
    assert (await transport.send(VERSION)).status == 200
    await transport.aclose()


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_the_token_of_an_exec_plugin_is_used(fleet: Fleet, version: str) -> None:
    assert (await fleet.look(fleet.plugin({"token": await fleet.robot_token()}, version))).user == fleet.robot


async def test_the_client_certificate_of_an_exec_plugin_is_used(fleet: Fleet) -> None:
    files = fleet.cluster.issue_client(f"exec-{fleet.namespace}", "plugin-user", "ops").files
    status = {"clientCertificateData": files.certificate.read_text(), "clientKeyData": files.key.read_text()}
    assert (await fleet.look(fleet.plugin(status))).user == "plugin-user"


async def test_a_plugin_whose_token_is_refused_is_run_again_and_the_call_replayed(fleet: Fleet) -> None:
    transport = connect(fleet.kubeconfig(fleet.plugin({"token": "made-up-by-nobody"})), None, fleet.clock, environ={})
    await transport.credentials.get()
    fleet.plugin({"token": await fleet.robot_token()})
    assert (await transport.send(VERSION)).status == 200
    await transport.aclose()


async def test_a_pod_reaches_the_server_with_its_mounted_account(fleet: Fleet) -> None:
    account = fleet.folder / "account"
    write(account / "token", await fleet.robot_token())
    write(account / "ca.crt", fleet.cluster.ca_pem.decode())
    host, port = fleet.cluster.url.removeprefix("https://").split(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    transport = connect(None, None, fleet.clock, environ=environ, service_account=account)
    assert (await transport.send(VERSION)).status == 200
    await transport.aclose()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"tls-server-name": "elsewhere.test"}, "is not for elsewhere.test; write a name that it holds in field tls-server"),
        ({"certificate-authority-data": ""}, "no CA known to this machine signed; put the server's CA in field certificate-"),
    ],
    ids=["name", "ca"],
)
async def test_a_server_that_cannot_be_trusted_is_told_with_the_field(
    fleet: Fleet, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TlsFailure, match=sentence):
        await fleet.look({}, **fields)


async def test_plain_http_to_the_tls_port_is_told(fleet: Fleet) -> None:
    server = fleet.cluster.url.replace("https://", "http://")
    with pytest.raises(TlsFailure, match="does not speak plain HTTP, probably TLS; write https:// in field server"):
        await fleet.look({}, server=server)
