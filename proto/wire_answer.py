"""The answer to a crossing, to protobuf and back, checked. Pure; used by `wire_edge` alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from apportion.core.errors import ProtocolError
from apportion.core.messages import AcquireAnswer, GroupAnswer, Lent, MemberAnswer, Outcome
from apportion.proto.v1 import region_pb2
from apportion.proto.wire_columns import (
    check_number,
    check_rows,
    flags_from_wire,
    ids_from_wire,
    member_counts_from_wire,
    numbers_from_wire,
    pack_ids,
    pack_units,
    units_from_wire,
)
from apportion.proto.wire_limits import (
    CHUNK_NS_MAX,
    COST_MAX,
    GROUP_REQUESTS_MAX,
    GROUPS_MAX,
    NEVER,
    NO_BACKLOG,
    NO_RESET,
    NUMBER_MAX,
    UNITS_MAX,
)
from apportion.proto.wire_values import check_present, periods_from_wire, tick_from_wire, tick_to_wire

# The wire's numbers are one above ours: there 0 says that the sender forgot the outcome.
_OUTCOME_SHIFT = 1
_OUTCOMES = tuple(Outcome)


def answer_to_wire(answer: AcquireAnswer) -> region_pb2.AcquireAnswer:
    """The answer to an Acquire."""
    groups, lent = answer.groups, answer.lent
    assert len(groups) <= GROUPS_MAX, "as many groups as the Acquire had"
    members = [member for group in groups for member in group.members]
    return region_pb2.AcquireAnswer(
        number=answer.number,
        tick=tick_to_wire(answer.tick),
        group_admitted=pack_ids([group.admitted for group in groups]),
        group_member_count=pack_ids([len(group.members) for group in groups]),
        member_outcome=pack_ids([member.outcome + _OUTCOME_SHIFT for member in members]),
        member_epoch=pack_units([member.epoch for member in members]),
        member_remaining=pack_units([min(member.remaining, COST_MAX) for member in members]),
        member_wait_ns=_pack_optional([member.wait_ns for member in members], NEVER),
        member_backlog=_pack_optional([member.backlog for member in members], NO_BACKLOG),
        member_store=bytes(member.store for member in members),
        lent_quota=pack_ids([loan.quota for loan in lent]),
        lent_epoch=pack_units([loan.epoch for loan in lent]),
        lent_units=pack_units([loan.units for loan in lent]),
        member_reset_ns=_pack_resets([member.reset_ns for member in members]),
        lent_lasts_ns=pack_units([loan.lasts_ns for loan in lent] if _has_chunks(lent) else []),
        lent_period=[loan.period for loan in lent] if _has_chunks(lent) else (),
    )


def answer_from_wire(answer: region_pb2.AcquireAnswer) -> AcquireAnswer:
    """The answer to an Acquire. That it fits the question, only who asked can check."""
    check_present(answer.HasField("tick"), "acquire_answer.tick")
    return AcquireAnswer(
        check_number(answer.number, "acquire_answer.number", NUMBER_MAX),
        tick_from_wire(answer.tick, "acquire_answer.tick"),
        _groups_from_wire(answer),
        _lent_from_wire(answer),
    )


def _groups_from_wire(answer: region_pb2.AcquireAnswer) -> tuple[GroupAnswer, ...]:
    """The groups, each with its own run of the members."""
    admitted = numbers_from_wire(answer.group_admitted, "acquire_answer.group_admitted", GROUP_REQUESTS_MAX, GROUPS_MAX)
    members = _members_from_wire(answer)
    sizes = member_counts_from_wire(
        answer.group_member_count, "acquire_answer.group_member_count", len(admitted), len(members)
    )
    groups, start = [], 0
    for count, size in zip(admitted.tolist(), sizes, strict=True):
        groups.append(GroupAnswer(count, tuple(members[start : start + size])))
        start += size
    return tuple(groups)


def _members_from_wire(answer: region_pb2.AcquireAnswer) -> list[MemberAnswer]:
    outcomes = numbers_from_wire(answer.member_outcome, "acquire_answer.member_outcome", len(_OUTCOMES))
    if outcomes.size and not int(outcomes.min()):
        raise ProtocolError("acquire_answer.member_outcome: an outcome is unspecified")
    epochs = units_from_wire(answer.member_epoch, "acquire_answer.member_epoch")
    remaining = units_from_wire(answer.member_remaining, "acquire_answer.member_remaining", COST_MAX)
    waits = units_from_wire(answer.member_wait_ns, "acquire_answer.member_wait_ns", COST_MAX)
    backlogs = units_from_wire(answer.member_backlog, "acquire_answer.member_backlog", COST_MAX)
    stores = flags_from_wire(answer.member_store, "acquire_answer.member_store")
    resets = units_from_wire(answer.member_reset_ns, "acquire_answer.member_reset_ns", COST_MAX)
    if not len(resets):  # none of the quotas has a period
        resets = np.full(len(outcomes), NO_RESET, np.uint64)
    check_rows(
        len(outcomes),
        (
            ("acquire_answer.member_epoch", epochs),
            ("acquire_answer.member_remaining", remaining),
            ("acquire_answer.member_wait_ns", waits),
            ("acquire_answer.member_backlog", backlogs),
            ("acquire_answer.member_store", stores),
            ("acquire_answer.member_reset_ns", resets),
        ),
    )
    rows = zip(
        (outcomes - np.uint32(_OUTCOME_SHIFT)).tolist(),
        epochs.tolist(),
        remaining.tolist(),
        waits.tolist(),
        backlogs.tolist(),
        stores.tolist(),
        resets.tolist(),
        strict=True,
    )
    return [
        MemberAnswer(
            _OUTCOMES[outcome],
            epoch,
            left,
            None if wait == NEVER else wait,
            None if backlog == NO_BACKLOG else backlog,
            bool(store),
            None if reset == NO_RESET else reset,
        )
        for outcome, epoch, left, wait, backlog, store, reset in rows
    ]


def _lent_from_wire(answer: region_pb2.AcquireAnswer) -> tuple[Lent, ...]:
    quotas = ids_from_wire(answer.lent_quota, "acquire_answer.lent_quota")
    epochs = units_from_wire(answer.lent_epoch, "acquire_answer.lent_epoch")
    units = units_from_wire(answer.lent_units, "acquire_answer.lent_units", UNITS_MAX)
    check_rows(len(quotas), (("acquire_answer.lent_epoch", epochs), ("acquire_answer.lent_units", units)))
    lasts_ns = units_from_wire(answer.lent_lasts_ns, "acquire_answer.lent_lasts_ns", CHUNK_NS_MAX)
    periods = periods_from_wire(answer.lent_period, "acquire_answer.lent_period")
    if not len(lasts_ns) and not periods:  # none of them is a chunk
        return tuple(map(Lent, quotas.tolist(), epochs.tolist(), units.tolist()))
    check_rows(len(quotas), (("acquire_answer.lent_lasts_ns", lasts_ns), ("acquire_answer.lent_period", periods)))
    return tuple(map(Lent, quotas.tolist(), epochs.tolist(), units.tolist(), lasts_ns.tolist(), periods))


def _has_chunks(lent: Sequence[Lent]) -> bool:
    return any(loan.lasts_ns for loan in lent)


def _pack_resets(resets: Sequence[int | None]) -> bytes:
    """The column of resets; empty where no quota has a period."""
    return _pack_optional(resets, NO_RESET) if any(reset is not None for reset in resets) else b""


def _pack_optional(values: Sequence[int | None], absent: int) -> bytes:
    """A column in which `absent`, its largest number, stands for None; what is larger or equal becomes one less."""
    return pack_units([absent if value is None else min(value, absent - 1) for value in values])
