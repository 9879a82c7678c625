"""An HTTP/1.x answer, read piece by piece from a peer that is not trusted. Pure.

Bodies may be counted, chunked, or ended by the connection. The body is cut at a limit, and reading is over there. What takes
long to read is bounded by what it brings: a guest that sends crumbs would keep its host busy.
"""

import re

LONGEST_HEAD_BYTES = 64 << 10
LONGEST_CHUNK_LINE_BYTES = 4 << 10
MOST_HEADERS = 256
MOST_INTERIM = 8  # heads before the real one; a server sends one at most
MOST_CHUNK_LINES = 4096  # of an answer whose chunks are small; a chunk takes two
BYTES_PER_CHUNK_LINE = 8  # a chunk of sixteen bytes and more is not small
_STATUS = re.compile(rb"HTTP/1\.[0-9] ([1-9][0-9]{2})(?: .*)?", re.DOTALL)
_NAME = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")  # a bare newline in it would begin another header for whoever gets it
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_BODILESS = (204, 304)


class BadAnswer(Exception):
    """The bytes are no answer; the text says why and repeats nothing of them."""


class AnswerReader:
    def __init__(self, limit_bytes: int) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_done = False
        self._limit = limit_bytes
        self._buffer = bytearray()
        self._body = bytearray()
        self._has_head = False
        self._interim = 0
        self._chunk_lines = 0
        self._left: int | None = None  # of a counted body or of a chunk
        self._is_chunked = False
        self._is_after_chunk = False
        self._is_after_last_chunk = False

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    def feed(self, data: bytes) -> None:
        """Raises BadAnswer."""
        if self.is_done:
            return
        self._buffer += data
        while not self._has_head and self._read_head():
            pass
        if self._has_head and not self.is_done:
            self._read_body()

    def end(self) -> None:
        """The peer closed the connection. Raises BadAnswer when it should not have."""
        if not self._has_head:
            raise BadAnswer("the guest closed the connection before it had answered")
        if not self.is_done and (self._is_chunked or self._left is not None):
            raise BadAnswer("the guest closed the connection in the middle of its answer")
        self.is_done = True

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if (len(self._buffer) if end < 0 else end) > LONGEST_HEAD_BYTES:
            raise BadAnswer("the head of the answer is too long")
        if end < 0:
            return False
        first, *fields = bytes(self._buffer[:end]).split(b"\r\n", MOST_HEADERS + 1)
        del self._buffer[: end + 4]
        found = _STATUS.fullmatch(first)
        if found is None:
            raise BadAnswer("the answer is not HTTP")
        self.status = int(found[1])
        if 100 <= self.status < 200:
            self._interim += 1
            if self.status == 101:
                raise BadAnswer("the guest wants another protocol")
            if self._interim > MOST_INTERIM:
                raise BadAnswer("the guest never comes to its answer")
            return True  # the real head follows
        self.headers = _headers(fields)
        self._has_head = True
        self._frame()
        return True

    def _frame(self) -> None:
        coding = self.headers.get("transfer-encoding", "").strip().lower()
        length = self.headers.get("content-length", "").strip()
        if self.status in _BODILESS:
            self.is_done = True
        elif coding == "chunked":
            self._is_chunked = True
        elif coding:
            raise BadAnswer("the answer has a transfer coding that nobody asked for")
        elif length:
            if not length.isascii() or not length.isdigit() or len(length) > 18:
                raise BadAnswer("the length of the answer is not a number")
            self._left = int(length)
            self.is_done = self._left == 0

    def _read_body(self) -> None:
        while self._buffer and not self.is_done:
            if self._is_chunked and self._left is None:
                if not self._read_chunk_line():
                    return
                continue
            count = len(self._buffer) if self._left is None else min(self._left, len(self._buffer))
            self._keep(bytes(self._buffer[:count]))
            del self._buffer[:count]
            if self._left is not None:
                self._left -= count
                if self._left == 0:
                    self._is_after_chunk = self._is_chunked
                    self.is_done = self.is_done or not self._is_chunked
                    self._left = None if self._is_chunked else 0

    def _read_chunk_line(self) -> bool:
        end = self._buffer.find(b"\r\n", 0, LONGEST_CHUNK_LINE_BYTES)
        if end < 0:
            if len(self._buffer) >= LONGEST_CHUNK_LINE_BYTES:
                raise BadAnswer("a chunk of the answer has no length")
            return False
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        self._chunk_lines += 1
        if self._chunk_lines > MOST_CHUNK_LINES + len(self._body) // BYTES_PER_CHUNK_LINE:
            raise BadAnswer("the answer comes in crumbs")
        if self._is_after_last_chunk:
            self.is_done = not line  # the lines before are trailers
            return True
        if self._is_after_chunk:
            if line:
                raise BadAnswer("a chunk of the answer is longer than it said")
            self._is_after_chunk = False
            return True
        size = _SIZE.fullmatch(line)
        if size is None:
            raise BadAnswer("a chunk of the answer has no length")
        self._left = int(size[1], 16) or None
        self._is_after_last_chunk = self._left is None
        return True

    def _keep(self, data: bytes) -> None:
        self._body += data[: self._limit - len(self._body)]
        if len(self._body) >= self._limit:
            self.is_done = True


def _headers(fields: list[bytes]) -> dict[str, str]:
    if len(fields) > MOST_HEADERS:
        raise BadAnswer("the answer has too many headers")
    found = {}
    for field in fields:
        name, colon, value = field.partition(b":")
        value = value.strip(b" \t")
        if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise BadAnswer("the head of the answer has a line that is no header")
        found[name.decode("latin-1").lower()] = value.decode("latin-1")
    return found
