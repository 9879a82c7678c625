"""The agent's TLS: its certificate, and the authority of those who call it, as they lie on disk now.

The files are rotated under a running agent, so they are looked at again and again; a connection made after a change gets the
new ones. Files that cannot be read, or a key that is not the certificate's, change nothing: the last good ones stay.
"""

import asyncio
import ssl
from pathlib import Path

import msgspec

from applecart.errors import BadInput
from applecart.observe.logs import logger

LOOK_S = 10.0  # certificates are rotated days before they end

log = logger(__name__)
Stamp = tuple[tuple[int, int, int], ...]


class TlsFiles(msgspec.Struct, frozen=True):
    certificate: Path
    key: Path
    client_authority: Path

    def context(self) -> ssl.SSLContext:
        """Raises BadInput."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ValueError) as error:
            raise BadInput(
                f"--tls-cert-file {self.certificate} and --tls-private-key-file {self.key} are no certificate and its key "
                f"({_why(error)}); name PEM files that belong together"
            ) from None
        try:
            context.load_verify_locations(self.client_authority)
        except (OSError, ValueError) as error:
            raise BadInput(
                f"--client-ca-file {self.client_authority} holds no certificate of an authority ({_why(error)}); "
                "name the PEM file of the cluster's"
            ) from None
        context.verify_mode = ssl.CERT_OPTIONAL  # a caller may show a token instead
        return context

    def stamp(self) -> Stamp:
        found = []
        for path in (self.certificate, self.key, self.client_authority):
            try:
                status = path.stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((status.st_ino, status.st_mtime_ns, status.st_size))
        return tuple(found)


class RotatedTls:
    """Serve with `context`; every handshake is moved to what the files held last."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._stamp = files.stamp()
        self._complaint = ""
        self._current = files.context()
        self.context = self._current
        self.context.sni_callback = self._use_current

    async def run(self) -> None:
        """Looks for changes; ends when it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        stamp = self._files.stamp()
        if stamp == self._stamp:
            return
        try:
            self._current = self._files.context()
        except Exception as error:  # any, and it is tried again: the one before it ends one day
            if self._complaint != (complaint := f"{stamp} {error}"):  # once, not at every look
                self._complaint = complaint
                log.error("a changed certificate is not usable; the one before it stays in use", exc_info=error)
        else:
            self._stamp = stamp
            log.info("a changed certificate is in use", certificate=str(self._files.certificate))

    def _use_current(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "it cannot be read").lower().replace("_", " ")
    return getattr(error, "strerror", None) or "it cannot be read"
