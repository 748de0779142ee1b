"""Header blocks: reading a peer's, which refer to what it sent before, and writing ours, which never do.

Peers send the same headers with each request, and then a block of references only, a byte each. Such a block changes
nothing in the peer's table, so that what it says is remembered until another kind of block comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hpack import Decoder, HPACKError, OversizedHeaderListError

from apportion.edge.http2.frames import Code, ConnectionFault, StreamFault

LIST_BYTES_MAX = 16_384
"""Announced bytes of a request's headers, with 32 for each; twice as many end the connection."""

BLOCK_BYTES_MAX = 2 * LIST_BYTES_MAX
"""Bytes of a header block as it comes."""

KNOWN_MAX = 256
"""Blocks that are remembered."""

UPDATES_MAX = 2
"""Changes of the table's size at the beginning of a block (RFC 7541, 4.2)."""

_REFERENCES = bytes(range(0x81, 0xFF))
"""Bytes that are each a whole header: a reference to the tables. 0xff is the first of several."""

_REQUIRED = frozenset((":method", ":scheme", ":path"))
_PSEUDO = _REQUIRED | {":authority"}
_OF_CONNECTIONS = frozenset(("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"))


class Head:
    """What a request begins with. `memo` is for whoever reads it: the same head comes again and again."""

    __slots__ = ("fields", "memo", "method", "path")

    def __init__(self, method: str, path: str, fields: dict[str, str]) -> None:
        self.method = method
        self.path = path
        self.fields = fields
        self.memo: Any = None


class HeaderReader:
    """Reads the header blocks of one connection, which must be all of them, in order."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=2 * LIST_BYTES_MAX)
        self._known: dict[bytes, Head] = {}

    def read(self, block: bytes) -> Head:
        """A request's head. StreamFault: it is malformed (RFC 9113, 8.1.1). ConnectionFault: it cannot be decoded."""
        found = self._known.get(block)
        if found is not None:
            return found
        if block.translate(None, _REFERENCES):
            return _head(self.decode(block))
        head = _head(self._decode(block))
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[block] = head
        return head

    def decode(self, block: bytes) -> list[tuple[str, str]]:
        """Names and values, such as a request's trailers. They may change the table."""
        self._known.clear()
        return self._decode(block)

    def _decode(self, block: bytes) -> list[tuple[str, str]]:
        _check_updates(block)
        try:
            fields: Iterable[tuple[Any, Any]] = self._decoder.decode(block, raw=True)
        except OversizedHeaderListError:
            text = f"a request's headers have over {2 * LIST_BYTES_MAX} bytes"
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, text) from None
        except (HPACKError, IndexError):
            raise ConnectionFault(Code.COMPRESSION_ERROR, "a header block cannot be decoded") from None
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]


def _check_updates(block: bytes) -> None:
    """Refuse more changes of the table's size than a peer can need, which the library would all carry out."""
    at = count = 0
    while at < len(block) and block[at] & 0xE0 == 0x20:
        count += 1
        if count > UPDATES_MAX:
            raise ConnectionFault(Code.COMPRESSION_ERROR, f"a header block has over {UPDATES_MAX} changes of its table")
        more = block[at] & 0x1F == 0x1F  # the size goes on in bytes whose first bit says whether another follows
        at += 1
        while more and at < len(block):
            more = block[at] > 127
            at += 1


def _head(fields: list[tuple[str, str]]) -> Head:
    pseudo: dict[str, str] = {}
    regular: dict[str, str] = {}
    for name, value in fields:
        if name.startswith(":"):
            if regular or name in pseudo or name not in _PSEUDO:
                raise StreamFault(Code.PROTOCOL_ERROR)
            pseudo[name] = value
        elif not name or name in _OF_CONNECTIONS or name != name.lower() or (name == "te" and value != "trailers"):
            raise StreamFault(Code.PROTOCOL_ERROR)
        else:
            regular[name] = value
    if not pseudo.keys() >= _REQUIRED or not pseudo[":path"]:
        raise StreamFault(Code.PROTOCOL_ERROR)
    return Head(pseudo[":method"], pseudo[":path"], regular)


def header_block(fields: Iterable[tuple[str, str]]) -> bytes:
    """A block that any peer can read whatever came before: literals, no Huffman codes, nothing for its table."""
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in fields)


def _text(text: str) -> bytes:
    raw = text.encode("latin-1")
    return _length(len(raw)) + raw


def _length(number: int) -> bytes:
    """An integer with a prefix of seven bits (RFC 7541, 5.1)."""
    if number < 127:
        return bytes((number,))
    number -= 127
    written = bytearray((127,))
    while number >= 128:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)
