"""`apportion explain`: one quota read back: limit, used, who holds what, by how much it can be exceeded and was."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated

import typer

from apportion.commands.decide import parse_dimensions
from apportion.commands.reading import ENFORCES, STATES, ask_region, limit_of, warnings
from apportion.core.errors import InputError
from apportion.core.periods import zone_named
from apportion.listening import check_address
from apportion.process import told_plainly
from apportion.proto.v1 import region_pb2


@told_plainly
def explain(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="Name of a rule.")],
    region: Annotated[str, typer.Option(envvar="APPORTION_REGION", metavar="ADDR", help="A region replica.")],
    dimensions: Annotated[
        list[str] | None, typer.Argument(metavar="DIMENSION=VALUE...", help="The rule's key; others are passed over.")
    ] = None,
    domain: Annotated[str | None, typer.Option(help="Domain of the rule; where several have one of this name.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say of one quota how it is decided: limit, used, slices and demand of each edge, bound, and the worst seen.

    Exit codes: 0 told; 2 there is no such rule, or its key needs other dimensions; 3 the region could not be reached.

    \b
    Examples:
        apportion explain --region 127.0.0.1:7000 tenant-requests tenant=contoso api=search
    """  # noqa: D301  (the mark has the lines stay as they are)
    asked = parse_dimensions(dimensions or [])
    request = region_pb2.ExplainRequest(rule=rule, domain=domain, dimensions=asked, epochs=10)
    said = ask_region(check_address(region), request)
    quotas = list(said.quotas)
    if not asked:  # a rule without a key, or one that nobody narrowed
        quotas = [quota for quota in quotas if not quota.key_dimensions]
    if not quotas:
        raise InputError(_why_none(said, rule, domain, asked))
    if as_json:
        print(
            json.dumps([as_object(said, quota) for quota in quotas] if len(quotas) > 1 else as_object(said, quotas[0]))
        )
        return
    for line in warnings(said):
        print(f"! {line}")
    print("\n\n".join(as_text(said, quota) for quota in quotas))


def _why_none(said: region_pb2.ExplainResponse, rule: str, domain: str | None, asked: dict[str, str]) -> str:
    names = sorted({each.rule for each in said.rules if domain is None or each.domain == domain})
    told = next((each for each in said.rules if each.rule == rule and rule in names), None)
    if told is None:
        near = get_close_matches(rule, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"there is no rule {rule!r} in force{hint or '.'} Rules: {', '.join(names) or 'none'}"
    if not told.limit_period_ns:
        return f"rule {rule!r} has no limit: nothing is counted, so there is nothing to explain"
    given = ", ".join(sorted(asked)) or "none"
    return f"rule {rule!r}: give every dimension of its key as DIMENSION=VALUE (given: {given})"


def as_object(said: region_pb2.ExplainResponse, quota: region_pb2.QuotaState) -> dict[str, object]:
    """One quota as `--json` prints it."""
    versions = {edge.edge: edge.rules_version for edge in said.edges}
    present = quota.epochs[-1] if quota.epochs else region_pb2.EpochState()
    return {
        "domain": quota.domain,
        "rule": quota.rule,
        "key": quota.key_text,
        "key_dimensions": list(quota.key_dimensions),
        "enforce": ENFORCES.get(quota.enforce, "unknown"),
        "divided": quota.divided,
        "limit": limit_of(quota.limit_units, quota.limit_period_ns, quota.period.length),
        "burst": quota.burst,
        "state": STATES.get(quota.state, "unknown"),
        "state_reason": quota.state_reason,
        "epoch": said.epoch,
        "used": quota.used if quota.HasField("used") else None,
        "lent": quota.lent,
        "resets_after": quota.resets_after_ns / 1e9 if quota.HasField("resets_after_ns") else None,
        "reset_reason": quota.reset_reason,
        "period": period_object(quota.period) if quota.HasField("period") else None,
        "pool": present.pool,
        "unreported": present.unreported,
        "lowered_by": list(quota.lowered_by),
        "bound": quota.bound if quota.HasField("bound") else None,
        "bound_reason": quota.bound_reason,
        "worst_overshoot": quota.worst_overshoot,
        "losses": list(quota.losses),
        "offered": quota.offered,
        "refused": quota.refused,
        "rules_version": quota.rules_version,
        "rules_version_newest": said.rules_version,
        "rejected_files": list(said.rejected_files),
        "edges": [
            {
                "edge": each.edge,
                "location": each.location,
                "slice": each.slice,
                "chunk": each.chunk,
                "demand": each.demand if each.HasField("demand") else None,
                "last_report_epoch": each.last_report_epoch if each.HasField("last_report_epoch") else None,
                "rules_version": versions.get(each.edge),
            }
            for each in quota.holders
        ],
        "epochs": [
            {
                "epoch": each.epoch,
                "quota": each.quota_units,
                "admitted": each.admitted,
                "unreported": each.unreported,
                "overshoot": each.overshoot,
            }
            for each in quota.epochs
        ],
    }


def period_object(period: region_pb2.PeriodState) -> dict[str, object]:
    """The period that a quota is in, in UTC and by the clock of its zone, its end rounded up to a second; null where
    none has begun.
    """
    known = period.HasField("start_ns")
    start, end = (_instant(each) if known else None for each in (period.start_ns, period.end_ns + 10**9 - 1))
    zone = zone_named(period.zone) if period.zone else None
    return {
        "anchor": period.anchor,
        "length": period.length,
        "zone": period.zone or None,
        "start": _written(start),
        "end": _written(end),
        "start_local": _written(start.astimezone(zone)) if start and zone else None,
        "end_local": _written(end.astimezone(zone)) if end and zone else None,
    }


def _instant(at_ns: int) -> datetime:
    return datetime.fromtimestamp(at_ns // 10**9, UTC)


def _written(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z") if at else None


def period_text(period: region_pb2.PeriodState) -> str:
    """The period for a person."""
    told = period_object(period)
    if told["start"] is None:
        return f"{period.anchor}, {period.length}; nothing is used, so none has begun"
    utc = f"{told['start']} to {told['end']}"
    local = f", in {period.zone} {told['start_local']} to {told['end_local']}" if period.zone not in ("", "UTC") else ""
    return f"{period.anchor}, {period.length}: {utc}{local}"


def as_text(said: region_pb2.ExplainResponse, quota: region_pb2.QuotaState) -> str:
    """One quota for a person."""
    told = as_object(said, quota)
    divided = "divided over the edges each second" if quota.divided else "not divided"
    bound = "no number bounds it" if told["bound"] is None else f"{told['bound']}"
    used = "not known, the store did not answer" if told["used"] is None else f"{told['used']} units"
    if quota.lent:
        used += f", {quota.lent} of them lent to edges and not spent, as far as they told"
    resets = f"; whole again in {told['resets_after']:.6g} s" if told["resets_after"] is not None else ""
    burst = "" if quota.HasField("period") else f", burst {quota.burst}"
    lines = [
        f"{quota.rule}  {quota.key_text or '(no key)'}  (domain {quota.domain})",
        f"  enforced    {told['enforce']}, {divided}; {told['state']}"
        + (f": {quota.state_reason}" if quota.state_reason else ""),
        f"  limit       {told['limit']}{burst}; rules version {quota.rules_version}"
        + (f", {said.rules_version} waits for its plan" if quota.rules_version < said.rules_version else ""),
        f"  used        {used}{resets}: {quota.reset_reason}" if quota.reset_reason else f"  used        {used}",
        f"  offered     {quota.offered} in the latest second, {quota.refused} of it refused",
        f"  pool        {told['pool']} units left here" if quota.divided else "  pool        none, it is not divided",
        f"  lowered by  {'; '.join(quota.lowered_by) or 'nothing'}",
        f"  bound       {bound}. {quota.bound_reason}",
        f"  overshoot   {quota.worst_overshoot} units over in one label, the most seen",
        f"  losses      {'; '.join(quota.losses) or 'none in this period'}",
    ]
    if quota.HasField("period"):
        lines.insert(4, f"  period      {period_text(quota.period)}")
    for each in quota.holders:
        demand = each.demand if each.HasField("demand") else "not reported"
        leased = quota.HasField("period") and quota.enforce == region_pb2.ENFORCE_LEASE
        held = f"chunk {each.chunk}" if leased else f"slice {each.slice}"
        lines.append(f"  edge {each.edge} ({each.location or 'not said'}): {held}, demand {demand}")
    return "\n".join(lines)
