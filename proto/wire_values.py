"""What both links carry: names, register, tick, rules, refusals; plain values to protobuf and back, checked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from apportion.core.errors import ProtocolError
from apportion.core.messages import EpochKind, EpochMark, Quota, QuotaName, Refused, Register, Rules, Tick
from apportion.core.space_saving import Counted
from apportion.proto.v1 import region_pb2
from apportion.proto.wire_columns import check_count, check_number, check_text
from apportion.proto.wire_limits import (
    DEGRADED_RULES_MAX,
    EPOCH_LEFT_NS_MAX,
    HEAVY_MAX,
    ID_MAX,
    KEY_BYTES_MAX,
    MARKS_MAX,
    NAME_BYTES_MAX,
    NAMES_MAX,
    NUMBER_MAX,
    PERIOD_BYTES_MAX,
    REASON_BYTES_MAX,
    ROWS_MAX,
    RULES_TEXTS_MAX,
    UNITS_MAX,
)

_KIND_TO_WIRE = {
    EpochKind.VOID: region_pb2.EPOCH_KIND_VOID,
    EpochKind.PLANNED: region_pb2.EPOCH_KIND_PLANNED,
    EpochKind.DIRECT: region_pb2.EPOCH_KIND_DIRECT,
}
_KIND_FROM_WIRE: dict[int, EpochKind] = {wire: kind for kind, wire in _KIND_TO_WIRE.items()}
_KEY_TAG_MAX = 1  # core.key writes each value as a tag of 0 or 1, its length in one byte, and that many bytes


def names_to_wire(names: Sequence[QuotaName]) -> Iterable[region_pb2.QuotaName]:
    """Declarations of ids."""
    assert len(names) <= NAMES_MAX, "whoever keeps names keeps no more"
    for name in names:
        assert 0 <= name.id <= ID_MAX, "ids are used again, not counted up for ever"
        quota = name.quota
        yield region_pb2.QuotaName(id=name.id, domain=quota.domain, rule=quota.rule, key=quota.key)


def names_from_wire(names: Sequence[region_pb2.QuotaName], field: str) -> tuple[QuotaName, ...]:
    """Declarations of ids, each id once."""
    check_count(len(names), field, NAMES_MAX)
    found = tuple(_name_from_wire(name, field) for name in names)
    if len({name.id for name in found}) < len(found):
        raise ProtocolError(f"{field}: an id is declared twice")
    return found


def _name_from_wire(name: region_pb2.QuotaName, field: str) -> QuotaName:
    check_number(name.id, f"{field}.id", ID_MAX)
    check_text(name.domain, f"{field}.domain", NAME_BYTES_MAX)
    check_text(name.rule, f"{field}.rule", NAME_BYTES_MAX)
    _check_key(name.key, f"{field}.key")
    return QuotaName(name.id, Quota(name.domain, name.rule, name.key))


def periods_from_wire(names: Sequence[str], field: str) -> tuple[str, ...]:
    """Names of periods, which only a region gives; empty where there is none."""
    check_count(len(names), field, ROWS_MAX)
    for name in set(names):
        check_text(name, field, PERIOD_BYTES_MAX)
    return tuple(names)


def heavy_to_wire(heavy: Sequence[Counted[Quota]]) -> Iterable[region_pb2.HeavyQuota]:
    """Quotas of which much was refused."""
    assert len(heavy) <= HEAVY_MAX, "whoever counts them says no more"
    for each in heavy:
        quota, units, error = each.key, min(each.units, UNITS_MAX), min(each.error, UNITS_MAX)
        yield region_pb2.HeavyQuota(domain=quota.domain, rule=quota.rule, key=quota.key, units=units, error=error)


def heavy_from_wire(heavy: Sequence[region_pb2.HeavyQuota], field: str) -> tuple[Counted[Quota], ...]:
    """Quotas of which much was refused."""
    check_count(len(heavy), field, HEAVY_MAX)
    return tuple(_heavy_from_wire(each, field) for each in heavy)


def _heavy_from_wire(heavy: region_pb2.HeavyQuota, field: str) -> Counted[Quota]:
    check_text(heavy.domain, f"{field}.domain", NAME_BYTES_MAX)
    check_text(heavy.rule, f"{field}.rule", NAME_BYTES_MAX)
    _check_key(heavy.key, f"{field}.key")
    units = check_number(heavy.units, f"{field}.units", UNITS_MAX)
    return Counted(
        Quota(heavy.domain, heavy.rule, heavy.key), units, check_number(heavy.error, f"{field}.error", units)
    )


def degraded_to_wire(rules: Sequence[tuple[str, str, int]]) -> Iterable[region_pb2.DegradedRule]:
    """Rules that were answered without the authority: domain, name, requests."""
    assert len(rules) <= DEGRADED_RULES_MAX, "whoever counts them says no more"
    for domain, rule, requests in rules:
        yield region_pb2.DegradedRule(domain=domain, rule=rule, requests=requests)


def degraded_from_wire(rules: Sequence[region_pb2.DegradedRule], field: str) -> tuple[tuple[str, str, int], ...]:
    """Rules that were answered without the authority."""
    check_count(len(rules), field, DEGRADED_RULES_MAX)
    for each in rules:
        check_text(each.domain, f"{field}.domain", NAME_BYTES_MAX)
        check_text(each.rule, f"{field}.rule", NAME_BYTES_MAX)
        check_number(each.requests, f"{field}.requests", NUMBER_MAX)
    return tuple((each.domain, each.rule, each.requests) for each in rules)


def _check_key(key: bytes, field: str) -> None:
    """Whoever prints a key walks its lengths, so they must end where the key does."""
    if len(key) > KEY_BYTES_MAX:
        raise ProtocolError(f"{field}: {len(key)} bytes, at most {KEY_BYTES_MAX} are allowed")
    at, size = 0, len(key)
    while at + 1 < size and key[at] <= _KEY_TAG_MAX:
        at += 2 + key[at + 1]
    if at != size:
        raise ProtocolError(f"{field}: not an encoded key")


def tick_to_wire(tick: Tick) -> region_pb2.Tick:
    """The epoch now. A store time before the register's anchor counts as the anchor: at most a second is left."""
    assert tick.left_ns >= 0, "an epoch that is over is not the present one"
    return region_pb2.Tick(epoch=tick.epoch, left_ns=min(tick.left_ns, EPOCH_LEFT_NS_MAX))


def tick_from_wire(tick: region_pb2.Tick, field: str) -> Tick:
    """The epoch now."""
    return Tick(
        check_number(tick.epoch, f"{field}.epoch", UNITS_MAX),
        check_number(tick.left_ns, f"{field}.left_ns", EPOCH_LEFT_NS_MAX),
    )


def rules_to_wire(rules: Rules) -> region_pb2.Rules:
    """The rules in force."""
    texts = (region_pb2.RulesText(name=name, text=text) for name, text in rules.texts)
    return region_pb2.Rules(version=rules.version, texts=texts)


def rules_from_wire(rules: region_pb2.Rules, field: str) -> Rules:
    """The rules in force; the texts are not parsed here."""
    check_number(rules.version, f"{field}.version", UNITS_MAX)
    check_count(len(rules.texts), f"{field}.texts", RULES_TEXTS_MAX)
    texts = tuple((check_text(t.name, f"{field}.texts.name", NAME_BYTES_MAX), t.text) for t in rules.texts)
    return Rules(rules.version, texts)


def refused_to_wire(refused: Refused) -> region_pb2.Refused:
    """A refusal; a reason that is too long is cut, and what UTF-8 cannot hold becomes a question mark."""
    reason = refused.reason.encode("utf-8", "replace")[:REASON_BYTES_MAX].decode("utf-8", "ignore")
    return region_pb2.Refused(reason=reason, retry=refused.retry)


def refused_from_wire(refused: region_pb2.Refused) -> Refused:
    """A refusal."""
    return Refused(check_text(refused.reason, "refused.reason", REASON_BYTES_MAX), refused.retry)


def register_to_wire(register: Register) -> region_pb2.Register:
    """The register."""
    assert len(register.marks) <= MARKS_MAX, "the register keeps the last epochs only"
    marks = (
        region_pb2.EpochMark(epoch=mark.epoch, kind=_KIND_TO_WIRE[mark.kind], generation=mark.generation)
        for mark in register.marks
    )
    return region_pb2.Register(
        generation=register.generation,
        highest=register.highest,
        marks=marks,
        anchor_epoch=register.anchor_epoch,
        anchor_ns=register.anchor_ns,
        last_ns=register.last_ns,
        run_id=register.run_id,
    )


def register_from_wire(register: region_pb2.Register, field: str) -> Register:
    """The register; its marks must ascend."""
    check_count(len(register.marks), f"{field}.marks", MARKS_MAX)
    marks = tuple(_mark_from_wire(mark, f"{field}.marks") for mark in register.marks)
    if any(later.epoch <= earlier.epoch for earlier, later in pairwise(marks)):
        raise ProtocolError(f"{field}.marks: not ascending")
    return Register(
        check_number(register.generation, f"{field}.generation", UNITS_MAX),
        check_number(register.highest, f"{field}.highest", UNITS_MAX),
        marks,
        check_number(register.anchor_epoch, f"{field}.anchor_epoch", UNITS_MAX),
        check_number(register.anchor_ns, f"{field}.anchor_ns", NUMBER_MAX),
        check_number(register.last_ns, f"{field}.last_ns", NUMBER_MAX),
        check_text(register.run_id, f"{field}.run_id", NAME_BYTES_MAX),
    )


def _mark_from_wire(mark: region_pb2.EpochMark, field: str) -> EpochMark:
    kind = _KIND_FROM_WIRE.get(mark.kind)
    if kind is None:
        raise ProtocolError(f"{field}.kind: {mark.kind} is no kind of epoch")
    return EpochMark(
        check_number(mark.epoch, f"{field}.epoch", UNITS_MAX),
        kind,
        check_number(mark.generation, f"{field}.generation", UNITS_MAX),
    )


def check_present(present: bool, field: str) -> None:
    """A field that every message of its kind must have."""
    if not present:
        raise ProtocolError(f"{field}: missing")
