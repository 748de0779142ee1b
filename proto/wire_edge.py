"""The link between edge and region: what an edge says, and what it is told, to protobuf and back, checked. Pure."""

from __future__ import annotations

from typing import assert_never

from apportion.core.errors import ProtocolError
from apportion.core.messages import (
    Acquire,
    AcquireAnswer,
    FromEdge,
    Group,
    Hello,
    Leave,
    Member,
    Refused,
    Report,
    ReportAck,
    Return,
    Rules,
    RulesAck,
    Slices,
    Tick,
    ToEdge,
    Welcome,
)
from apportion.proto.v1 import region_pb2
from apportion.proto.wire_answer import answer_from_wire, answer_to_wire
from apportion.proto.wire_columns import (
    check_number,
    check_rows,
    check_text,
    demand_to_wire,
    flags_from_wire,
    ids_from_wire,
    ids_once_from_wire,
    ids_to_wire,
    kept_from_wire,
    member_counts_from_wire,
    numbers_from_wire,
    pack_ids,
    pack_units,
    units_from_wire,
    units_to_wire,
)
from apportion.proto.wire_limits import (
    COST_MAX,
    GROUP_REQUESTS_MAX,
    GROUPS_MAX,
    NAME_BYTES_MAX,
    NUMBER_MAX,
    UNITS_MAX,
)
from apportion.proto.wire_values import (
    check_present,
    degraded_from_wire,
    degraded_to_wire,
    heavy_from_wire,
    heavy_to_wire,
    names_from_wire,
    names_to_wire,
    periods_from_wire,
    refused_from_wire,
    refused_to_wire,
    rules_from_wire,
    rules_to_wire,
    tick_from_wire,
    tick_to_wire,
)


def edge_to_wire(message: FromEdge) -> region_pb2.FromEdge:
    """What an edge says."""
    match message:
        case Hello():
            return region_pb2.FromEdge(hello=_hello_to_wire(message))
        case Acquire():
            return region_pb2.FromEdge(acquire=_acquire_to_wire(message))
        case Report():
            return region_pb2.FromEdge(report=_report_to_wire(message))
        case Return():
            return region_pb2.FromEdge(returned=_return_to_wire(message))
        case Leave():
            return region_pb2.FromEdge(leave=region_pb2.Leave())
        case RulesAck():
            return region_pb2.FromEdge(rules_ack=region_pb2.RulesAck(version=message.version))
        case _:
            assert_never(message)


def edge_from_wire(message: region_pb2.FromEdge) -> FromEdge:
    """What an edge says. ProtocolError names the field that is wrong."""
    match message.WhichOneof("message"):
        case "hello":
            return _hello_from_wire(message.hello)
        case "acquire":
            return _acquire_from_wire(message.acquire)
        case "report":
            return _report_from_wire(message.report)
        case "returned":
            return _return_from_wire(message.returned)
        case "leave":
            return Leave()
        case "rules_ack":
            return RulesAck(check_number(message.rules_ack.version, "rules_ack.version", UNITS_MAX))
        case None:
            raise ProtocolError("message: none is set, or one that this version does not know")


def reply_to_wire(message: ToEdge) -> region_pb2.ToEdge:
    """What an edge is told."""
    match message:
        case Welcome():
            welcome = region_pb2.Welcome(
                rules=rules_to_wire(message.rules), tick=tick_to_wire(message.tick), replica=message.replica
            )
            return region_pb2.ToEdge(welcome=welcome)
        case Tick():
            return region_pb2.ToEdge(tick=tick_to_wire(message))
        case Rules():
            return region_pb2.ToEdge(rules=rules_to_wire(message))
        case Slices():
            return region_pb2.ToEdge(slices=_slices_to_wire(message))
        case AcquireAnswer():
            return region_pb2.ToEdge(acquire_answer=answer_to_wire(message))
        case ReportAck():
            return region_pb2.ToEdge(report_ack=region_pb2.ReportAck(number=message.number))
        case Refused():
            return region_pb2.ToEdge(refused=refused_to_wire(message))
        case _:
            assert_never(message)


def reply_from_wire(message: region_pb2.ToEdge) -> ToEdge:
    """What an edge is told. ProtocolError names the field that is wrong."""
    match message.WhichOneof("message"):
        case "welcome":
            return _welcome_from_wire(message.welcome)
        case "tick":
            return tick_from_wire(message.tick, "tick")
        case "rules":
            return rules_from_wire(message.rules, "rules")
        case "slices":
            return _slices_from_wire(message.slices)
        case "acquire_answer":
            return answer_from_wire(message.acquire_answer)
        case "report_ack":
            return ReportAck(check_number(message.report_ack.number, "report_ack.number", NUMBER_MAX))
        case "refused":
            return refused_from_wire(message.refused)
        case None:
            raise ProtocolError("message: none is set, or one that this version does not know")


def _hello_to_wire(hello: Hello) -> region_pb2.Hello:
    return region_pb2.Hello(
        edge=hello.edge,
        location=hello.location,
        incarnation=hello.incarnation,
        epoch=hello.epoch,
        rules_version=hello.rules_version,
    )


def _hello_from_wire(hello: region_pb2.Hello) -> Hello:
    return Hello(
        check_text(hello.edge, "hello.edge", NAME_BYTES_MAX, 1),
        check_text(hello.location, "hello.location", NAME_BYTES_MAX),
        hello.incarnation,
        check_number(hello.epoch, "hello.epoch", UNITS_MAX),
        check_number(hello.rules_version, "hello.rules_version", UNITS_MAX),
    )


def _acquire_to_wire(acquire: Acquire) -> region_pb2.Acquire:
    groups = acquire.groups
    assert len(groups) <= GROUPS_MAX, "more groups go into a further Acquire"
    members = [member for group in groups for member in group.members]
    return region_pb2.Acquire(
        number=acquire.number,
        names=names_to_wire(acquire.names),
        group_count=pack_ids([group.count for group in groups]),
        group_member_count=pack_ids([len(group.members) for group in groups]),
        group_peek=bytes(group.peek for group in groups),
        member_quota=pack_ids([member.quota for member in members]),
        member_cost=pack_units([member.cost for member in members]),
        ahead_quota=pack_ids([quota for quota, _ in acquire.ahead]),
        ahead_units=pack_units([units for _, units in acquire.ahead]),
    )


def _acquire_from_wire(acquire: region_pb2.Acquire) -> Acquire:
    ahead_quota = ids_from_wire(acquire.ahead_quota, "acquire.ahead_quota")
    ahead_units = units_from_wire(acquire.ahead_units, "acquire.ahead_units")
    check_rows(len(ahead_quota), (("acquire.ahead_units", ahead_units),))
    return Acquire(
        check_number(acquire.number, "acquire.number", NUMBER_MAX),
        names_from_wire(acquire.names, "acquire.names"),
        _groups_from_wire(acquire),
        tuple(zip(ahead_quota.tolist(), ahead_units.tolist(), strict=True)),
    )


def _groups_from_wire(acquire: region_pb2.Acquire) -> tuple[Group, ...]:
    """The groups, each with its own run of the members."""
    counts = numbers_from_wire(acquire.group_count, "acquire.group_count", GROUP_REQUESTS_MAX, GROUPS_MAX)
    if counts.size and not int(counts.min()):
        raise ProtocolError("acquire.group_count: a group without requests")
    peeks = flags_from_wire(acquire.group_peek, "acquire.group_peek")
    quotas = ids_from_wire(acquire.member_quota, "acquire.member_quota")
    costs = units_from_wire(acquire.member_cost, "acquire.member_cost", COST_MAX)
    check_rows(len(counts), (("acquire.group_peek", peeks),))
    check_rows(len(quotas), (("acquire.member_cost", costs),))
    sizes = member_counts_from_wire(acquire.group_member_count, "acquire.group_member_count", len(counts), len(quotas))
    members = [Member(quota, cost) for quota, cost in zip(quotas.tolist(), costs.tolist(), strict=True)]
    groups, start = [], 0
    for count, size, peek in zip(counts.tolist(), sizes, peeks.tolist(), strict=True):
        groups.append(Group(count, tuple(members[start : start + size]), bool(peek)))
        start += size
    return tuple(groups)


def _report_to_wire(report: Report) -> region_pb2.Report:
    return region_pb2.Report(
        number=report.number,
        epoch=report.epoch,
        names=names_to_wire(report.names),
        demand_ids=ids_to_wire(report.demand_ids),
        demand=demand_to_wire(report.demand),
        spent_ids=ids_to_wire(report.spent_ids),
        spent_epoch=units_to_wire(report.spent_epoch),
        spent=units_to_wire(report.spent),
        crossings=report.crossings,
        degraded=report.degraded,
        spent_degraded=units_to_wire(report.spent_degraded),
        over_threshold=units_to_wire(report.over_threshold),
        most_refused=heavy_to_wire(report.most_refused),
        degraded_rules=degraded_to_wire(report.degraded_rules),
        given_ids=ids_to_wire(report.given_ids),
        given=units_to_wire(report.given),
        given_period=report.given_period,
    )


def _report_from_wire(report: region_pb2.Report) -> Report:
    epoch = check_number(report.epoch, "report.epoch", UNITS_MAX)
    demand_ids = ids_once_from_wire(report.demand_ids, "report.demand_ids")
    demand = units_from_wire(report.demand, "report.demand")
    spent_ids = ids_from_wire(report.spent_ids, "report.spent_ids")
    spent_epoch = units_from_wire(report.spent_epoch, "report.spent_epoch")
    spent = units_from_wire(report.spent, "report.spent")
    check_rows(len(demand_ids), (("report.demand", demand),))
    check_rows(len(spent_ids), (("report.spent_epoch", spent_epoch), ("report.spent", spent)))
    spent_degraded = units_from_wire(report.spent_degraded, "report.spent_degraded")
    if len(spent_degraded):
        check_rows(len(spent_ids), (("report.spent_degraded", spent_degraded),))
    over_threshold = units_from_wire(report.over_threshold, "report.over_threshold")
    if len(over_threshold):
        check_rows(len(demand_ids), (("report.over_threshold", over_threshold),))
    given_ids = ids_from_wire(report.given_ids, "report.given_ids")
    given = units_from_wire(report.given, "report.given")
    given_period = periods_from_wire(report.given_period, "report.given_period")
    check_rows(len(given_ids), (("report.given", given), ("report.given_period", given_period)))
    return Report(
        number=check_number(report.number, "report.number", NUMBER_MAX),
        epoch=epoch,
        names=names_from_wire(report.names, "report.names"),
        demand_ids=demand_ids,
        demand=demand,
        spent_ids=spent_ids,
        spent_epoch=spent_epoch,
        spent=spent,
        crossings=check_number(report.crossings, "report.crossings", NUMBER_MAX),
        degraded=check_number(report.degraded, "report.degraded", NUMBER_MAX),
        spent_degraded=spent_degraded,
        over_threshold=over_threshold,
        most_refused=heavy_from_wire(report.most_refused, "report.most_refused"),
        degraded_rules=degraded_from_wire(report.degraded_rules, "report.degraded_rules"),
        given_ids=given_ids,
        given=given,
        given_period=given_period,
    )


def _return_to_wire(returned: Return) -> region_pb2.Return:
    return region_pb2.Return(
        epoch=returned.epoch,
        ids=ids_to_wire(returned.ids),
        units=units_to_wire(returned.units),
        number=returned.number,
        ready=units_to_wire(returned.ready),
    )


def _return_from_wire(returned: region_pb2.Return) -> Return:
    epoch = check_number(returned.epoch, "returned.epoch", UNITS_MAX)
    ids = ids_once_from_wire(returned.ids, "returned.ids")
    units = units_from_wire(returned.units, "returned.units")
    check_rows(len(ids), (("returned.units", units),))
    ready = units_from_wire(returned.ready, "returned.ready")
    if len(ready):
        check_rows(len(ids), (("returned.ready", ready),))
        if (ready > units).any():
            raise ProtocolError("returned.ready: more of a quota than its units")
    return Return(epoch, ids, units, check_number(returned.number, "returned.number", NUMBER_MAX, 1), ready)


def _welcome_from_wire(welcome: region_pb2.Welcome) -> Welcome:
    check_present(welcome.HasField("rules"), "welcome.rules")
    check_present(welcome.HasField("tick"), "welcome.tick")
    rules = rules_from_wire(welcome.rules, "welcome.rules")
    return Welcome(rules, tick_from_wire(welcome.tick, "welcome.tick"), welcome.replica)


def _slices_to_wire(slices: Slices) -> region_pb2.Slices:
    return region_pb2.Slices(
        epoch=slices.epoch,
        generation=slices.generation,
        rules_version=slices.rules_version,
        names=names_to_wire(slices.names),
        ids=ids_to_wire(slices.ids),
        units=units_to_wire(slices.units),
        kept=ids_to_wire(slices.kept),
    )


def _slices_from_wire(slices: region_pb2.Slices) -> Slices:
    ids = ids_once_from_wire(slices.ids, "slices.ids")
    units = units_from_wire(slices.units, "slices.units")
    check_rows(len(ids), (("slices.units", units),))
    return Slices(
        check_number(slices.epoch, "slices.epoch", UNITS_MAX),
        check_number(slices.generation, "slices.generation", UNITS_MAX),
        check_number(slices.rules_version, "slices.rules_version", UNITS_MAX),
        names_from_wire(slices.names, "slices.names"),
        ids,
        units,
        kept_from_wire(slices.kept, "slices.kept", ids),
    )
