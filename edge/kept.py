"""What an edge keeps for its next process: the last good rules, its last slices, how long it had heard nothing. Pure.

One record, as bytes: a line with the format's name, version and checksum of what follows, then JSON. What is damaged,
or of another edge or version, is refused in words and never half used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from apportion.core.errors import InputError
from apportion.core.messages import Quota, Rules

FORMAT = "apportion-edge-state"
VERSION = 1

SLICES_MAX = 200_000
"""Slices kept, the largest first: about 100 bytes each on disk."""


@dataclass(frozen=True, slots=True)
class Kept:
    """`slices` by quota, units; `silent_ns`: how long nothing had been heard from the region when this was written."""

    edge: str
    rules: Rules
    slices: tuple[tuple[Quota, int], ...] = ()
    silent_ns: int = 0


def encode(kept: Kept, written: dict[str, Any]) -> bytes:
    """The record as bytes; `written` says when, in the words of whoever reads it again."""
    slices = sorted(kept.slices, key=lambda row: -row[1])[:SLICES_MAX]
    body = json.dumps(
        {
            "edge": kept.edge,
            "written": written,
            "silent_ns": kept.silent_ns,
            "rules_version": kept.rules.version,
            "rules": [list(text) for text in kept.rules.texts],
            "slices": [[quota.domain, quota.rule, quota.key.hex(), units] for quota, units in slices],
        }
    ).encode()
    return f"{FORMAT} {VERSION} {_checksum(body)}\n".encode() + body


def decode(record: bytes, edge: str) -> tuple[Kept, dict[str, Any]]:
    """The record, and what `encode` was told of its writing. InputError says why it is of no use."""
    head, _, body = record.partition(b"\n")
    words = head.split(b" ")
    if words[0] != FORMAT.encode() or len(words) != 3:
        raise InputError("is not the state of an edge")
    if words[1] != str(VERSION).encode():
        raise InputError(f"has version {words[1].decode(errors='replace')[:20]}, this program reads version {VERSION}")
    if words[2] != _checksum(body).encode():
        raise InputError("is damaged: its checksum is another")
    try:
        fields = json.loads(body)
        version = int(fields["rules_version"])
        if not 0 <= version < 2**64:  # as the region is told it
            raise ValueError
        rules = Rules(version, tuple((str(name), str(text)) for name, text in fields["rules"]))
        slices = tuple(
            (Quota(str(domain), str(rule), bytes.fromhex(key)), max(int(units), 0))
            for domain, rule, key, units in fields["slices"]
        )
        kept = Kept(str(fields["edge"]), rules, slices, max(int(fields["silent_ns"]), 0))
        written = dict(fields["written"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"has a right checksum but no right content ({type(error).__name__})") from None
    if kept.edge != edge:
        raise InputError(f"is of the edge {kept.edge!r}, this one is {edge!r}: give each edge a folder of its own")
    return kept, written


def _checksum(body: bytes) -> str:
    return blake2b(body, digest_size=16).hexdigest()
