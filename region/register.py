"""Transitions of the register (design 5.1-5.3): pure functions from one record to the next, or None when refused.

The register decides who may lend a divided quota under which label, so each transition asserts what makes double
division impossible: an epoch is marked once, marks only move forward, only the present generation claims.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from apportion.core.limit import EPOCH_NS
from apportion.core.messages import EpochKind, EpochMark, Register

MARKS_KEPT = 8
"""Epochs whose kind is kept: far more than one epoch of lookahead and any delay a message may have."""

AHEAD_MAX = 1
"""Only the next epoch may be claimed ahead: a plan made earlier would be made from older demand."""


def epoch_at(register: Register, now_ns: int) -> int:
    """The epoch of store time `now_ns`; a time before the anchor counts as the anchor."""
    passed_ns = now_ns - register.anchor_ns
    return register.anchor_epoch + passed_ns // EPOCH_NS if passed_ns > 0 else register.anchor_epoch


def start_ns(register: Register, epoch: int) -> int:
    """Store time at which `epoch` starts."""
    return register.anchor_ns + (epoch - register.anchor_epoch) * EPOCH_NS


def created(now_ns: int, run_id: str) -> Register:
    """The register of a new store. Its first epoch is the store's time in seconds: a store that lost everything then
    goes on above the labels that edges and allocators have seen, instead of waiting for years to reach them again.
    """
    return Register(anchor_epoch=max(1, now_ns // EPOCH_NS), anchor_ns=now_ns, last_ns=now_ns, run_id=run_id)


def touched(register: Register, now_ns: int) -> Register:
    """The register as written at `now_ns`: re-anchored above every epoch used when the store's clock has gone back."""
    if now_ns < register.last_ns:
        return replace(register, anchor_epoch=register.highest + 1, anchor_ns=now_ns, last_ns=now_ns)
    return replace(register, last_ns=now_ns)


def lead(register: Register, now_ns: int, *, generation: int) -> Register | None:
    """Take the lead as `generation`; refused unless it is the next one."""
    if generation != register.generation + 1:
        return None
    return replace(touched(register, now_ns), generation=generation)


def claim(register: Register, now_ns: int, *, generation: int, epoch: int) -> Register | None:
    """Claim `epoch` for `generation`; refused for a former generation, an epoch already marked, and one too far
    ahead.
    """
    moved = touched(register, now_ns)
    if generation != register.generation or epoch > epoch_at(moved, now_ns) + AHEAD_MAX:
        return None
    return _marked(moved, EpochMark(epoch, EpochKind.PLANNED, generation))


def mark_direct(register: Register, now_ns: int, *, epoch: int) -> Register | None:
    """Mark an epoch that began unclaimed as direct; refused when it has not begun or is marked already."""
    moved = touched(register, now_ns)
    if epoch > epoch_at(moved, now_ns):
        return None
    return _marked(moved, EpochMark(epoch, EpochKind.DIRECT))


def _marked(register: Register, mark: EpochMark) -> Register | None:
    if mark.epoch <= register.highest:
        return None
    oldest_void = max(register.highest + 1, mark.epoch - MARKS_KEPT + 1)
    passed = tuple(EpochMark(epoch, EpochKind.VOID) for epoch in range(oldest_void, mark.epoch))
    marks = (*register.marks, *passed, mark)[-MARKS_KEPT:]
    assert all(a.epoch < b.epoch for a, b in pairwise(marks)), "each epoch is marked once"
    return replace(register, highest=mark.epoch, marks=marks)
