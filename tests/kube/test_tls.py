"""What each way of not agreeing on TLS is called, on real handshakes."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.embedded.trust.pki import Pair
from applecart.errors import BadInput, Unreachable
from applecart.kube.auth.credentials import ClientCertificate, Credential, FixedCredentials
from applecart.kube.endpoint import Endpoint
from applecart.kube.http import HttpTransport
from applecart.kube.tls import TlsFailure, tls_context, tls_failure
from applecart.kube.transport import Request, Response
from applecart.secrets import Secret
from tests.kube.api_stand_in import ApiStandIn, Certificates

VERSION = Request("GET", "/version")


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path / "pki")


def endpoint(server: str, ca_pem: str = "", tls_server_name: str = "", insecure: bool = False) -> Endpoint:
    return Endpoint(
        server=server,
        server_from="field server",
        ca_pem=ca_pem,
        ca_from="field certificate-authority-data",
        tls_server_name=tls_server_name,
        tls_server_name_from="field tls-server-name",
        insecure_skip_tls_verify=insecure,
    )


def shown(pair: Pair) -> ClientCertificate:
    return ClientCertificate(
        pair.certificate_pem.decode(), pair.key_pem, "field client-certificate-data", "field client-key-data"
    )


async def call(to: Endpoint, clock: Clock, certificate: ClientCertificate | None = None) -> Response:
    credentials = FixedCredentials(Credential("a test", certificate=certificate))
    transport = HttpTransport(to, credentials, clock, {})
    try:
        return await transport.send(VERSION)
    finally:
        await transport.aclose()


@contextlib.asynccontextmanager
async def serving(tls: ssl.SSLContext | None) -> AsyncIterator[ApiStandIn]:
    async with ApiStandIn().serving(tls) as api:
        yield api


@pytest.mark.real_time
async def test_a_server_whose_ca_we_were_given_is_trusted(certificates: Certificates, clock: Clock) -> None:
    async with serving(certificates.server_context()) as api:
        assert (await call(endpoint(api.url, certificates.ca_pem), clock)).status == 200


@pytest.mark.real_time
async def test_the_servers_own_certificate_may_stand_in_place_of_its_ca(
    certificates: Certificates, clock: Clock, tmp_path: Path
) -> None:
    """Go clients accept it, so kubeconfigs with a pinned leaf or an intermediate CA are in use."""
    async with serving(certificates.server_context()) as api:
        leaf = (tmp_path / "pki" / "server.crt").read_text()
        assert (await call(endpoint(api.url, leaf), clock)).status == 200


@pytest.mark.real_time
async def test_a_server_of_another_ca_is_told_with_the_field_of_the_ca(
    certificates: Certificates, clock: Clock, tmp_path: Path
) -> None:
    async with serving(Certificates(tmp_path / "other", "other-ca").server_context()) as api:
        with pytest.raises(TlsFailure) as caught:
            await call(endpoint(api.url, certificates.ca_pem), clock)
    assert str(caught.value) == (
        f"{api.url} shows a certificate that the CA in field certificate-authority-data did not sign; "
        "put the CA of that server there"
    )


@pytest.mark.real_time
async def test_a_server_that_the_machine_does_not_know_is_told_where_its_ca_belongs(
    certificates: Certificates, clock: Clock
) -> None:
    async with serving(certificates.server_context()) as api:
        with pytest.raises(TlsFailure) as caught:
            await call(endpoint(api.url), clock)
    assert str(caught.value) == (
        f"{api.url} shows a certificate that no CA known to this machine signed; "
        "put the server's CA in field certificate-authority-data"
    )


@pytest.mark.real_time
async def test_a_certificate_for_another_host_is_told_with_both_fields(certificates: Certificates, clock: Clock) -> None:
    async with serving(certificates.server_context("api.fleet.test")) as api:
        with pytest.raises(TlsFailure) as caught:
            await call(endpoint(api.url, certificates.ca_pem), clock)
    assert str(caught.value) == (
        f"{api.url} shows a certificate that is not for that host; correct field server, "
        "or write a name that it holds in field tls-server-name"
    )


@pytest.mark.real_time
async def test_the_tls_server_name_is_the_name_that_is_checked(certificates: Certificates, clock: Clock) -> None:
    async with serving(certificates.server_context("api.fleet.test")) as api:
        assert (await call(endpoint(api.url, certificates.ca_pem, "api.fleet.test"), clock)).status == 200
        with pytest.raises(TlsFailure, match=r"is not for other.test; write a name that it holds in field tls-server-name"):
            await call(endpoint(api.url, certificates.ca_pem, "other.test"), clock)


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("issued", "problem"), [(timedelta(days=-400), "has expired"), (timedelta(days=1), "is not valid yet")]
)
async def test_a_certificate_out_of_its_time_is_told(
    certificates: Certificates, clock: Clock, issued: timedelta, problem: str
) -> None:
    async with serving(certificates.server_context(at=certificates.now + issued)) as api:
        with pytest.raises(TlsFailure) as caught:
            await call(endpoint(api.url, certificates.ca_pem), clock)
    assert str(caught.value) == (
        f"{api.url} shows a certificate that {problem}; renew it on the server that field server names, "
        "or correct this machine's clock"
    )


@pytest.mark.real_time
async def test_skipping_verification_reaches_any_server(certificates: Certificates, clock: Clock) -> None:
    async with serving(certificates.server_context("elsewhere.test")) as api:
        assert (await call(endpoint(api.url, insecure=True), clock)).status == 200


@pytest.mark.real_time
async def test_tls_spoken_to_a_plain_http_port_is_told(clock: Clock) -> None:
    async with serving(None) as api:
        url = api.url.replace("http://", "https://")
        with pytest.raises(TlsFailure, match=r"does not speak TLS, probably plain HTTP; write http:// .* in field server"):
            await call(endpoint(url), clock)


@pytest.mark.real_time
async def test_plain_http_spoken_to_a_tls_port_is_told(certificates: Certificates, clock: Clock) -> None:
    async with serving(certificates.server_context()) as api:
        url = api.url.replace("https://", "http://")
        with pytest.raises(Unreachable, match=r"went away .*; if it speaks TLS, write https:// in field server"):
            await call(endpoint(url), clock)


@pytest.mark.real_time
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",  # a server written in Go
        b"\x15\x03\x01\x00\x02\x02\x0a",  # a TLS alert, as OpenSSL sends it
    ],
    ids=["go", "alert"],
)
async def test_the_answer_of_a_tls_port_to_plain_http_is_recognised(clock: Clock, answer: bytes) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(reply, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TlsFailure, match=r"does not speak plain HTTP, probably TLS; write https:// in field server"):
            await call(endpoint(f"http://127.0.0.1:{port}"), clock)


@pytest.mark.real_time
async def test_a_client_certificate_says_who_we_are(certificates: Certificates, clock: Clock) -> None:
    async with serving(certificates.server_context()) as api:
        await call(endpoint(api.url, certificates.ca_pem), clock, shown(certificates.client("robot")))
        assert [call.client for call in api.seen] == ["robot"]


class Alerting:
    """A TLS server that tells a client why it refuses it. asyncio's own servers hang up without a word."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._socket.getsockname()[1]}"

    def refuse_one(self) -> None:
        raw, _ = self._socket.accept()
        with raw, contextlib.suppress(OSError):
            with contextlib.suppress(ssl.SSLError):
                self._context.wrap_socket(raw.dup(), server_side=True).close()
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(1 << 16):  # closing with unread bytes would reset the connection and lose the alert
                pass
        self._socket.close()


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("presents", "sentence"),
    [
        (True, "refuses the client certificate of field client-certificate-data; replace it"),
        (False, "wants a client certificate; add client-certificate-data"),
    ],
    ids=["stranger", "nobody"],
)
async def test_a_server_that_does_not_accept_our_client_certificate_is_told(
    certificates: Certificates, clock: Clock, tmp_path: Path, presents: bool, sentence: str
) -> None:
    server = Alerting(certificates.server_context(asks_client=ssl.CERT_REQUIRED))
    refusing = asyncio.create_task(asyncio.to_thread(server.refuse_one))
    certificate = shown(Certificates(tmp_path / "other", "other-ca").client("stranger")) if presents else None
    with pytest.raises(TlsFailure, match=sentence):
        await call(endpoint(server.url, certificates.ca_pem), clock, certificate)
    await refusing


def test_a_ca_that_is_no_certificate_is_told_with_its_field() -> None:
    with pytest.raises(BadInput, match=r"^field certificate-authority-data holds no readable certificate"):
        tls_context(endpoint("https://a", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"), None)


def test_a_key_of_another_certificate_is_told_with_both_fields(certificates: Certificates) -> None:
    one, other = certificates.client("one"), certificates.client("other")
    mixed = shown(Pair(one.certificate_pem, other.key_pem))
    with pytest.raises(
        BadInput, match=r"^field client-key-data does not belong to the certificate of field client-certificate-data"
    ):
        tls_context(endpoint("https://a"), mixed)


def test_an_unreadable_certificate_is_told_with_its_field(certificates: Certificates) -> None:
    broken = ClientCertificate("-----BEGIN nonsense", certificates.client("a").key_pem, "field c", "field k")
    with pytest.raises(BadInput, match=r"^field c or its key is not a readable PEM"):
        tls_context(endpoint("https://a"), broken)


def test_an_encrypted_key_is_told_instead_of_asking_for_its_passphrase(certificates: Certificates) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    pair = certificates.client("robot")
    key = load_pem_private_key(pair.key_pem.reveal().encode(), None)
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open sesame"))
    certificate = ClientCertificate(pair.certificate_pem.decode(), Secret(sealed.decode()), "field c", "field k")
    with pytest.raises(BadInput, match=r"^field k is encrypted; write the key without a passphrase"):
        tls_context(endpoint("https://a"), certificate)


def test_a_plain_http_server_needs_no_tls() -> None:
    assert tls_context(endpoint("http://127.0.0.1:8080"), None) is None


def test_a_connection_that_merely_broke_is_no_matter_of_trust() -> None:
    assert tls_failure(ssl.SSLEOFError(8, "EOF occurred"), endpoint("https://a"), None) is None
