"""The certificates of a control plane that applecart starts itself.

One authority signs what the API server serves with and what its clients show; a key pair signs service-account tokens. Both
outlive a restart, because tokens and kubeconfigs handed out before must go on working; what an authority issues is cheap and
is issued anew at each start, so it never expires under a running fleet. Keys are EC P-256 and never leave through text.

A kubeconfig holds everything inline, so that it can be copied to another machine as one file, and is as private as a key.
"""

import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from applecart.embedded.trust.private_file import make_private_folder, write_private
from applecart.errors import BadInput
from applecart.secrets import Secret

AUTHORITY_LIFETIME = timedelta(days=3650)  # longer than any fleet keeps one control-plane folder
LEAF_LIFETIME = timedelta(days=365)  # re-issued at each start; no process runs for a year
NAME_LIMIT_BYTES = 64  # of a user or a group, set by X.509 (ub-common-name, ub-organization-name)
CLOCK_SKEW = timedelta(minutes=5)  # a client whose clock is behind must not refuse a fresh certificate
LONGEST_NAME_CHARS = 253  # of DNS
_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"  # underscores as Go's TLS takes them: some networks have them
_HOST_NAME = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
IN_KUBECONFIG = "applecart"  # of the cluster, user and context in the file; kubectl shows it in its prompts


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key."""

    certificate_pem: bytes
    key_pem: Secret


@dataclass(frozen=True, slots=True)
class PairFiles:
    """Where a certificate and its key lie."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def create(cls, name: str, now: datetime, key: ec.EllipticCurvePrivateKey | None = None) -> "Authority":
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            _unsigned(subject, subject, key.public_key(), now, AUTHORITY_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(identifier, critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @property
    def pair(self) -> Pair:
        return Pair(self.certificate_pem, _key_pem(self._key))

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(Encoding.PEM)

    def issue_server(self, names: Iterable[str], now: datetime) -> Pair:
        """For a server reached under these DNS names and IP addresses. It may show it as a client too, as etcd does."""
        alternatives = x509.SubjectAlternativeName([alternative(name) for name in names])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        # Clients look at the alternatives only; a subject must merely not be empty.
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        return self._issue(subject, [alternatives, usage], now)

    def issue_client(self, user: str, groups: Iterable[str], now: datetime, valid: timedelta | None = None) -> Pair:
        """For a client that Kubernetes shall know as this user in these groups; for a year unless `valid` says otherwise."""
        if valid is not None and not timedelta() < valid <= LEAF_LIFETIME:
            raise BadInput(f"a client certificate can be valid for up to {LEAF_LIFETIME.days} days, and for more than nothing")
        groups = list(groups)
        for name in (user, *groups):
            if not 0 < len(name.encode()) <= NAME_LIMIT_BYTES:
                raise BadInput(f"the user or group {name!r} cannot be in a certificate: use 1 to {NAME_LIMIT_BYTES} bytes")
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
                x509.NameAttribute(NameOID.COMMON_NAME, user),
            ]
        )
        return self._issue(subject, [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])], now, valid or LEAF_LIFETIME)

    def _issue(
        self, subject: x509.Name, extensions: list[x509.ExtensionType], now: datetime, valid: timedelta = LEAF_LIFETIME
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = _unsigned(subject, self._certificate.subject, key.public_key(), now, valid)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        for extension in [*extensions, identifier, issuer_key]:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Pair(certificate.public_bytes(Encoding.PEM), _key_pem(key))


def load_or_create_authority(folder: Path, name: str, now: datetime) -> Authority:
    """The authority kept in this folder under this name; the first call makes it. Nobody trusts one that is not valid now.

    A certificate that was lost is made again from its key: whoever trusts the old one trusts what the new one signs.
    """
    files = pair_files(folder, name)
    if not files.certificate.exists():
        authority = Authority.create(name, now, _key_in(files.key, _unreadable(files)) if files.key.exists() else None)
        write_pair(folder, name, authority.pair)
        return authority
    try:
        certificate = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    except (OSError, ValueError) as error:
        raise _unreadable(files) from error
    key = _key_in(files.key, _unreadable(files))
    if certificate.public_key() != key.public_key():
        raise _unreadable(files)
    valid_from, valid_until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not valid_from <= now <= valid_until:
        raise BadInput(
            f"{files.certificate} is valid from {valid_from:%Y-%m-%dT%H:%MZ} to {valid_until:%Y-%m-%dT%H:%MZ}, and it is "
            f"{now:%Y-%m-%dT%H:%MZ} by this machine's clock: correct the clock, or remove {files.certificate} and {files.key} "
            "to get a new authority, after which every kubeconfig must be handed out anew"
        )
    return Authority(certificate, key)


def load_or_create_token_keys(folder: Path, name: str) -> PairFiles:
    """The key pair that signs service-account tokens: public half as `.pub`, private half as `.key`."""
    files = PairFiles(folder / f"{name}.pub", folder / f"{name}.key")
    if not files.certificate.exists():
        make_private_folder(folder)
        if not files.key.exists():
            write_private(files.key, _key_pem(ec.generate_private_key(ec.SECP256R1())).reveal().encode())
        text = f"{files.key} is no private key that applecart made: restore it, or remove it to get a new one"
        key = _key_in(files.key, BadInput(f"{text}, after which tokens that were handed out fail"))
        write_private(files.certificate, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return files


def pair_files(folder: Path, name: str) -> PairFiles:
    return PairFiles(folder / f"{name}.crt", folder / f"{name}.key")


def write_pair(folder: Path, name: str, pair: Pair) -> PairFiles:
    """Both as files of mode 0600. The key comes first: a certificate that is there always has its key."""
    files = pair_files(folder, name)
    make_private_folder(folder)
    write_private(files.key, pair.key_pem.reveal().encode())
    write_private(files.certificate, pair.certificate_pem)
    return files


def _key_in(file: Path, refusal: BadInput) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise refusal from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise refusal
    return key


def _unreadable(files: PairFiles) -> BadInput:
    return BadInput(
        f"{files.certificate} and {files.key} are not a certificate authority that applecart made: restore both from a "
        "backup, or remove both to get a new one, after which every kubeconfig must be handed out anew"
    )


def alternative(name: str) -> x509.GeneralName:
    """A name or address as a certificate has it; raises BadInput for what no client could reach a server by."""
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        is_number = name.rpartition(".")[2].isdecimal()  # clients take it for an address that is none
        if len(name) > LONGEST_NAME_CHARS or is_number or not _HOST_NAME.fullmatch(name):
            raise BadInput(
                f"{name!r} is no name for a certificate; give a host name, such as api.example.org, or an address"
            ) from None
        return x509.DNSName(name)


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> Secret:
    return Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii"))


def write_kubeconfig(path: Path, url: str, authority_pem: bytes, client: Pair) -> None:
    """A kubeconfig with one context, which is the current one."""
    write_private(path, kubeconfig_text(url, authority_pem, client).reveal().encode())


def kubeconfig_text(url: str, authority_pem: bytes, client: Pair) -> Secret:
    """Its text, which holds the client's key."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": IN_KUBECONFIG, "cluster": {"server": url, "certificate-authority-data": _base64(authority_pem)}}],
        "users": [
            {
                "name": IN_KUBECONFIG,
                "user": {
                    "client-certificate-data": _base64(client.certificate_pem),
                    "client-key-data": _base64(client.key_pem.reveal().encode()),
                },
            }
        ],
        "contexts": [{"name": IN_KUBECONFIG, "context": {"cluster": IN_KUBECONFIG, "user": IN_KUBECONFIG}}],
        "current-context": IN_KUBECONFIG,
    }
    return Secret(yaml.safe_dump(content, sort_keys=False))


def _base64(content: bytes) -> str:
    return b64encode(content).decode("ascii")
