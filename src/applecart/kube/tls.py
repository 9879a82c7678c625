"""TLS to an API server: what we trust, what we show, and what a failure means.

The trust rules are those of Go clients, which kubeconfigs are written for: any certificate of the CA file may anchor a chain,
also an intermediate one or the server's own. A failure becomes one sentence with the server and the field to change (I14). A
key never touches a disk where the system can avoid it.
"""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from typing import NoReturn

from applecart.errors import BadInput
from applecart.kube.auth.credentials import ClientCertificate
from applecart.kube.endpoint import Endpoint

# Codes of OpenSSL's X509_V_ERR_*; Python's ssl module hands them out without names.
_NAME_MISMATCH = {62, 64}  # host name, IP address
_OUT_OF_DATE = {9: "is not valid yet", 10: "has expired"}
_PLAIN_HTTP_REASONS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"}
_OUR_CERTIFICATE_REASONS = (
    "ALERT_UNKNOWN_CA",
    "ALERT_BAD_CERTIFICATE",
    "ALERT_CERTIFICATE",  # expired, revoked, unknown, required
    "ALERT_UNSUPPORTED_CERTIFICATE",
    "ALERT_ACCESS_DENIED",
    "ALERT_DECRYPT_ERROR",
)
_OTHER_REFUSALS = ("ALERT_HANDSHAKE_FAILURE", "ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "UNRECOGNIZED_NAME")


class TlsFailure(BadInput):
    """The two sides cannot agree who they are; somebody must change a certificate or a field."""


def tls_context(endpoint: Endpoint, certificate: ClientCertificate | None) -> ssl.SSLContext | None:
    """What to speak TLS with; None for a server that is reached over plain HTTP."""
    if not endpoint.is_https:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if endpoint.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif endpoint.ca_pem:
        try:
            context.load_verify_locations(cadata=endpoint.ca_pem)
        except (ssl.SSLError, ValueError):
            raise BadInput(f"{endpoint.ca_from} holds no readable certificate; put the server's CA there as PEM") from None
    else:
        context.load_default_certs()
    if certificate is not None:
        _load_certificate(context, certificate)
    return context


def tls_failure(error: ssl.SSLError, endpoint: Endpoint, certificate: ClientCertificate | None) -> TlsFailure | None:
    """What a person must change; None when the connection merely broke."""
    server = endpoint.server
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailure(_verification_sentence(error.verify_code, endpoint))
    reason = getattr(error, "reason", None) or ""  # absent when Python and not OpenSSL noticed
    if reason in _PLAIN_HTTP_REASONS:
        return TlsFailure(
            f"{server} does not speak TLS, probably plain HTTP; write http:// or the TLS port in {endpoint.server_from}"
        )
    if any(known in reason for known in _OUR_CERTIFICATE_REASONS):
        if certificate is None:
            return TlsFailure(f"{server} wants a client certificate; add client-certificate-data to the user of its context")
        return TlsFailure(f"{server} refuses the client certificate of {certificate.chain_from}; replace it")
    if any(known in reason for known in _OTHER_REFUSALS):
        spoken = reason.lower().replace("_", " ")
        return TlsFailure(f"{server} refuses our TLS handshake ({spoken}); check {endpoint.server_from}")
    return None


def speaks_tls(endpoint: Endpoint) -> TlsFailure:
    """The reverse mistake: plain HTTP sent to a TLS port."""
    return TlsFailure(f"{endpoint.server} does not speak plain HTTP, probably TLS; write https:// in {endpoint.server_from}")


def _verification_sentence(code: int, endpoint: Endpoint) -> str:
    shown = f"{endpoint.server} shows a certificate that"
    if code in _NAME_MISMATCH:
        if endpoint.tls_server_name:
            name_from = endpoint.tls_server_name_from
            return f"{shown} is not for {endpoint.tls_server_name}; write a name that it holds in {name_from}"
        return (
            f"{shown} is not for that host; correct {endpoint.server_from}, "
            f"or write a name that it holds in {endpoint.tls_server_name_from}"
        )
    if code in _OUT_OF_DATE:
        return (
            f"{shown} {_OUT_OF_DATE[code]}; renew it on the server that {endpoint.server_from} names, "
            "or correct this machine's clock"
        )
    if endpoint.ca_pem:
        return f"{shown} the CA in {endpoint.ca_from} did not sign; put the CA of that server there"
    return f"{shown} no CA known to this machine signed; put the server's CA in {endpoint.ca_from}"


def _load_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    def refuse_password() -> NoReturn:
        raise BadInput(f"{certificate.key_from} is encrypted; write the key without a passphrase")

    # One file holds both: OpenSSL reads the parts that it looks for.
    with _readable_file(f"{certificate.chain_pem}\n{certificate.key_pem.reveal()}\n") as path:
        try:
            context.load_cert_chain(path, password=refuse_password)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                problem = f"{certificate.key_from} does not belong to the certificate of {certificate.chain_from}; replace one"
            else:
                problem = f"{certificate.chain_from} or its key is not a readable PEM; replace them"
            raise BadInput(problem) from None


@contextlib.contextmanager
def _readable_file(text: str) -> Iterator[str]:
    """A path that OpenSSL can read, in memory on Linux, else a private file that is gone right after."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        with os.fdopen(os.memfd_create("client-certificate"), "w") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile("w", prefix="applecart-") as named:
        named.write(text)
        named.flush()
        yield named.name
