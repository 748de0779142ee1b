"""How a quota is named on the wire and in a store: injective, bounded, printable again where it is short.

Values come from outsiders, so joining them with a separator would let one caller spend another's budget (case C25).
Each value is written with its length in front; one longer than VALUE_LITERAL_MAX is replaced by a
collision-resistant digest under a different tag, so a short value can never pose as a long one.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

VALUE_LITERAL_MAX = 64
"""Bytes of a value that are kept as they are; longer ones are digested, which bounds a key of 16 dimensions to 1
KiB.
"""

DIGEST_BYTES = 32
_LITERAL = 0x00
_DIGEST = 0x01
_PERIOD = 0x02


def encode_key(values: Sequence[str]) -> bytes:
    """The values of a rule's key, in the key's order, as bytes; different values never give the same bytes."""
    return b"".join(_encode_value(value.encode("utf-8", "surrogatepass")) for value in values)


def encode_quota(domain: str, rule: str, key: bytes) -> bytes:
    """The store key of a quota: domain, rule and encoded key, injective like `encode_key`."""
    return encode_key((domain, rule)) + key


def split_quota(store_key: bytes) -> tuple[bytes, bytes]:
    """The two parts of a store key: what `encode_key` makes of domain and rule, and the quota's key."""
    at = 0
    for _ in ("domain", "rule"):
        at += 2 + store_key[at + 1]
    return store_key[:at], store_key[at:]


def encode_period(store_key: bytes, period: str) -> bytes:
    """The store key of one period of a quota. No quota has such a key, and no two periods have the same."""
    raw = period.encode()
    assert len(raw) < 256
    return store_key + bytes((_PERIOD, len(raw))) + raw


def is_period_of(key: bytes, at: int) -> bool:
    """Whether the key is what `encode_period` makes of its first `at` bytes."""
    return 0 <= at < len(key) - 1 and key[at] == _PERIOD and at + 2 + key[at + 1] == len(key)


def decode_key(key: bytes) -> tuple[str | None, ...] | None:
    """The values of an encoded key, None in the place of a digest; None when it is no key at all."""
    values: list[str | None] = []
    at = 0
    while at + 2 <= len(key):
        tag, length = key[at], key[at + 1]
        raw = key[at + 2 : at + 2 + length]
        if len(raw) < length or tag not in (_LITERAL, _DIGEST):
            return None
        try:
            values.append(raw.decode("utf-8", "surrogatepass") if tag == _LITERAL else None)
        except UnicodeDecodeError:
            return None
        at += 2 + length
    return tuple(values) if at == len(key) else None


def key_text(key: bytes) -> str:
    """An encoded key for people: values joined by commas, quoted where they need it, digests as `blake2b:` and 12
    digits.
    """
    return ", ".join(_decode(key))


def _encode_value(raw: bytes) -> bytes:
    if len(raw) <= VALUE_LITERAL_MAX:
        return bytes((_LITERAL, len(raw))) + raw
    return bytes((_DIGEST, DIGEST_BYTES)) + blake2b(raw, digest_size=DIGEST_BYTES).digest()


def _decode(key: bytes) -> list[str]:
    texts, at = [], 0
    while at < len(key):
        tag, length = key[at], key[at + 1]
        raw = key[at + 2 : at + 2 + length]
        if tag == _DIGEST:
            texts.append("blake2b:" + raw.hex()[:12])
        else:
            text = raw.decode("utf-8", "replace")
            texts.append(text if text.isprintable() and text and "," not in text else repr(text))
        at += 2 + length
    return texts
