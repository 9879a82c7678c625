"""Somebody who connects and says whatever they like."""

import asyncio

HOST = "127.0.0.1"


async def heard(port: int, asked: bytes) -> bytes:
    """The beginning of the answer; empty when the connection was closed without one."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(asked)
    try:
        return await reader.read(1000)
    except ConnectionError:
        return b""
    finally:
        writer.close()
