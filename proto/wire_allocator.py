"""The link between region and allocator: what an allocator says, and is told, to protobuf and back, checked. Pure."""

from __future__ import annotations

from typing import assert_never

from apportion.core.allocator_messages import (
    AllocatorHello,
    Claim,
    Column,
    Demand,
    FromAllocator,
    Governance,
    Holder,
    Lead,
    Plan,
    RegisterAnswer,
    Remembered,
    ToAllocator,
)
from apportion.core.errors import ProtocolError
from apportion.core.messages import Refused, Rules
from apportion.proto.v1 import region_pb2
from apportion.proto.wire_columns import (
    check_count,
    check_number,
    check_rows,
    check_text,
    demand_to_wire,
    ids_once_from_wire,
    ids_to_wire,
    kept_from_wire,
    units_from_wire,
    units_to_wire,
)
from apportion.proto.wire_limits import HOLDERS_MAX, NAME_BYTES_MAX, UNITS_MAX
from apportion.proto.wire_values import (
    check_present,
    names_from_wire,
    names_to_wire,
    refused_from_wire,
    refused_to_wire,
    register_from_wire,
    register_to_wire,
    rules_from_wire,
    rules_to_wire,
    tick_from_wire,
    tick_to_wire,
)


def allocator_to_wire(message: FromAllocator) -> region_pb2.FromAllocator:
    """What an allocator says."""
    match message:
        case AllocatorHello():
            hello = region_pb2.AllocatorHello(allocator=message.allocator, incarnation=message.incarnation)
            return region_pb2.FromAllocator(hello=hello)
        case Lead():
            return region_pb2.FromAllocator(lead=region_pb2.Lead(generation=message.generation))
        case Claim():
            claim = region_pb2.Claim(generation=message.generation, epoch=message.epoch)
            return region_pb2.FromAllocator(claim=claim)
        case Plan():
            return region_pb2.FromAllocator(plan=_plan_to_wire(message))
        case _:
            assert_never(message)


def allocator_from_wire(message: region_pb2.FromAllocator) -> FromAllocator:
    """What an allocator says. ProtocolError names the field that is wrong."""
    match message.WhichOneof("message"):
        case "hello":
            name = check_text(message.hello.allocator, "hello.allocator", NAME_BYTES_MAX, 1)
            return AllocatorHello(name, message.hello.incarnation)
        case "lead":
            return Lead(check_number(message.lead.generation, "lead.generation", UNITS_MAX, 1))
        case "claim":
            return Claim(
                check_number(message.claim.generation, "claim.generation", UNITS_MAX, 1),
                check_number(message.claim.epoch, "claim.epoch", UNITS_MAX),
            )
        case "plan":
            return _plan_from_wire(message.plan)
        case None:
            raise ProtocolError("message: none is set, or one that this version does not know")


def allocator_reply_to_wire(message: ToAllocator) -> region_pb2.ToAllocator:
    """What an allocator is told."""
    match message:
        case Rules():
            return region_pb2.ToAllocator(rules=rules_to_wire(message))
        case Governance():
            return region_pb2.ToAllocator(governance=_governance_to_wire(message))
        case RegisterAnswer():
            answer = region_pb2.RegisterAnswer(done=message.done, register=register_to_wire(message.register))
            return region_pb2.ToAllocator(register_answer=answer)
        case Demand():
            return region_pb2.ToAllocator(demand=_demand_to_wire(message))
        case Remembered():
            return region_pb2.ToAllocator(remembered=_remembered_to_wire(message))
        case Refused():
            return region_pb2.ToAllocator(refused=refused_to_wire(message))
        case _:
            assert_never(message)


def allocator_reply_from_wire(message: region_pb2.ToAllocator) -> ToAllocator:
    """What an allocator is told. ProtocolError names the field that is wrong."""
    match message.WhichOneof("message"):
        case "rules":
            return rules_from_wire(message.rules, "rules")
        case "governance":
            return _governance_from_wire(message.governance)
        case "register_answer":
            check_present(message.register_answer.HasField("register"), "register_answer.register")
            register = register_from_wire(message.register_answer.register, "register_answer.register")
            return RegisterAnswer(message.register_answer.done, register)
        case "demand":
            return _demand_from_wire(message.demand)
        case "remembered":
            return _remembered_from_wire(message.remembered)
        case "refused":
            return refused_from_wire(message.refused)
        case None:
            raise ProtocolError("message: none is set, or one that this version does not know")


def _plan_to_wire(plan: Plan) -> region_pb2.Plan:
    assert len(plan.columns) <= HOLDERS_MAX, "a region has fewer holders"
    columns = (
        region_pb2.Column(
            holder=column.holder,
            ids=ids_to_wire(column.ids),
            units=units_to_wire(column.units),
            kept=ids_to_wire(column.kept),
        )
        for column in plan.columns
    )
    return region_pb2.Plan(
        generation=plan.generation,
        epoch=plan.epoch,
        rules_version=plan.rules_version,
        names=names_to_wire(plan.names),
        columns=columns,
        held_ids=ids_to_wire(plan.held_ids),
        held=units_to_wire(plan.held),
        slowed_ids=ids_to_wire(plan.slowed_ids),
        slowed=units_to_wire(plan.slowed),
    )


def _plan_from_wire(plan: region_pb2.Plan) -> Plan:
    check_count(len(plan.columns), "plan.columns", HOLDERS_MAX)
    columns = tuple(_column_from_wire(column) for column in plan.columns)
    if len({column.holder for column in columns}) < len(columns):
        raise ProtocolError("plan.columns.holder: a holder has two columns")
    held_ids = ids_once_from_wire(plan.held_ids, "plan.held_ids")
    held = units_from_wire(plan.held, "plan.held")
    check_rows(len(held_ids), (("plan.held", held),))
    slowed_ids = ids_once_from_wire(plan.slowed_ids, "plan.slowed_ids")
    slowed = units_from_wire(plan.slowed, "plan.slowed")
    check_rows(len(slowed_ids), (("plan.slowed", slowed),))
    return Plan(
        check_number(plan.generation, "plan.generation", UNITS_MAX, 1),
        check_number(plan.epoch, "plan.epoch", UNITS_MAX),
        check_number(plan.rules_version, "plan.rules_version", UNITS_MAX),
        names_from_wire(plan.names, "plan.names"),
        columns,
        held_ids,
        held,
        slowed_ids,
        slowed,
    )


def _column_from_wire(column: region_pb2.Column) -> Column:
    ids = ids_once_from_wire(column.ids, "plan.columns.ids")
    units = units_from_wire(column.units, "plan.columns.units")
    check_rows(len(ids), (("plan.columns.units", units),))
    return Column(column.holder, ids, units, kept_from_wire(column.kept, "plan.columns.kept", ids))


def _governance_to_wire(governance: Governance) -> region_pb2.Governance:
    assert len(governance.holders) <= HOLDERS_MAX, "a region has fewer holders"
    holders = (
        region_pb2.Holder(
            incarnation=holder.incarnation, name=holder.name, location=holder.location, replica=holder.replica
        )
        for holder in governance.holders
    )
    return region_pb2.Governance(
        tick=tick_to_wire(governance.tick),
        register=register_to_wire(governance.register),
        replica=governance.replica,
        holders=holders,
        rules_version=governance.rules_version,
    )


def _governance_from_wire(governance: region_pb2.Governance) -> Governance:
    check_present(governance.HasField("tick"), "governance.tick")
    check_present(governance.HasField("register"), "governance.register")
    check_count(len(governance.holders), "governance.holders", HOLDERS_MAX)
    holders = tuple(_holder_from_wire(holder) for holder in governance.holders)
    if len({holder.incarnation for holder in holders}) < len(holders):
        raise ProtocolError("governance.holders.incarnation: two holders have the same")
    return Governance(
        tick_from_wire(governance.tick, "governance.tick"),
        register_from_wire(governance.register, "governance.register"),
        governance.replica,
        holders,
        check_number(governance.rules_version, "governance.rules_version", UNITS_MAX),
    )


def _holder_from_wire(holder: region_pb2.Holder) -> Holder:
    return Holder(
        holder.incarnation,
        check_text(holder.name, "governance.holders.name", NAME_BYTES_MAX),
        check_text(holder.location, "governance.holders.location", NAME_BYTES_MAX),
        holder.replica,
    )


def _demand_to_wire(demand: Demand) -> region_pb2.Demand:
    return region_pb2.Demand(
        holder=demand.holder,
        epoch=demand.epoch,
        names=names_to_wire(demand.names),
        ids=ids_to_wire(demand.ids),
        demand=demand_to_wire(demand.demand),
        early=demand.early,
    )


def _demand_from_wire(demand: region_pb2.Demand) -> Demand:
    ids = ids_once_from_wire(demand.ids, "demand.ids")
    units = units_from_wire(demand.demand, "demand.demand")
    check_rows(len(ids), (("demand.demand", units),))
    return Demand(
        demand.holder,
        check_number(demand.epoch, "demand.epoch", UNITS_MAX),
        names_from_wire(demand.names, "demand.names"),
        ids,
        units,
        demand.early,
    )


def _remembered_to_wire(remembered: Remembered) -> region_pb2.Remembered:
    return region_pb2.Remembered(
        edge=remembered.edge,
        incarnation=remembered.incarnation,
        reported_epoch=remembered.reported_epoch,
        gone_epoch=remembered.gone_epoch,
        left=remembered.left,
        names=names_to_wire(remembered.names),
        ids=ids_to_wire(remembered.ids),
        units=units_to_wire(remembered.units),
    )


def _remembered_from_wire(remembered: region_pb2.Remembered) -> Remembered:
    ids = ids_once_from_wire(remembered.ids, "remembered.ids")
    units = units_from_wire(remembered.units, "remembered.units")
    check_rows(len(ids), (("remembered.units", units),))
    gone = remembered.gone_epoch if remembered.HasField("gone_epoch") else None
    return Remembered(
        check_text(remembered.edge, "remembered.edge", NAME_BYTES_MAX, 1),
        remembered.incarnation,
        check_number(remembered.reported_epoch, "remembered.reported_epoch", UNITS_MAX),
        None if gone is None else check_number(gone, "remembered.gone_epoch", UNITS_MAX),
        remembered.left,
        names_from_wire(remembered.names, "remembered.names"),
        ids,
        units,
    )
