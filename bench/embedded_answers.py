"""When an answer of HTTP/1.1 is complete: as much of the protocol as a load generator needs."""

HEAD_END = b"\r\n\r\n"
CHUNKS_END = b"\r\n0\r\n\r\n"


def answer_size(received: bytes | bytearray) -> int:
    """How many bytes the first answer has, or 0 while it is not complete."""
    head_end = received.find(HEAD_END)
    if head_end < 0:
        return 0
    head = bytes(received[:head_end]).lower()
    body_start = head_end + len(HEAD_END)
    place = head.find(b"content-length:")
    if place >= 0:
        end = head.find(b"\r\n", place)
        size = body_start + int(head[place + 15 : end if end >= 0 else len(head)])
        return size if len(received) >= size else 0
    # One request at a time on a connection, so the end of the chunks is the end of what was received.
    return len(received) if received.endswith(CHUNKS_END) else 0


def status_of(received: bytes | bytearray) -> int:
    return int(received[9:12])
