"""The status door of region and allocator: what cannot be read is answered, and logged by nobody."""

from __future__ import annotations

import asyncio

import pytest

from apportion.status_door import status_door


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "sent",
    [b"\0\1\2", b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 9_000 + b"\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00" * 20],
    ids=["no text", "a long header", "TLS"],
)
async def test_damaged_requests_leave_no_traceback(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Anybody who reaches the port can send them, as often as they like."""
    async with status_door("127.0.0.1:0", lambda: True, lambda: ()) as door:
        assert door is not None
        host, _, port = door.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(), 10.0)
        writer.close()
    assert answer.startswith(b"HTTP/1.0 400 ")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
