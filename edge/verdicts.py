"""Verdicts of the edge's agent: what each rule said of a request, from what is held here and what the region
answered. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from apportion.core.decision import Decision, Reason, Scope, Verdict
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import MemberAnswer, Outcome
from apportion.core.request import Application
from apportion.edge.holding import HOLD_NS
from apportion.edge.part import Part

# By name here, and verdicts by position below, where each request has one: reading a member of an enum takes as long as
# a call does, and naming a verdict's fields longer than making it.
EDGE, REGION = Scope.EDGE, Scope.REGION
OVER_LIMIT, UNAVAILABLE = Reason.OVER_LIMIT, Reason.UNAVAILABLE
ADMITTED = Outcome.ADMITTED

UNAVAILABLE_RETRY_NS = EPOCH_NS
"""What a caller is told to wait when nobody who may decide answered: edges try to reconnect at least twice
meanwhile.
"""


def passed(application: Application, charged: bool = False) -> Verdict:
    """A rule that does not stand in the way, of which nothing more is known."""
    return Verdict(application.rule, application.key, application.cost, allowed=True, charged=charged)


def pending(application: Application) -> Verdict:
    """A shadow rule that the region was asked about."""
    return Verdict(application.rule, application.key, application.cost, allowed=True, reason=Reason.PENDING)


def refused(application: Application, reason: Reason, wait_ns: int | None, remaining: int | None = None) -> Verdict:
    """A rule that refuses by what the edge knows itself."""
    rule, key, cost, degraded = application.rule, application.key, application.cost, reason is UNAVAILABLE
    return Verdict(rule, key, cost, False, False, remaining, EDGE, wait_ns, wait_ns or 0, reason, None, degraded)


def known(part: Part, epoch: int, left_ns: int, now_ns: int) -> Verdict:
    """A rule that would let the request pass, as far as the edge knows, of a request that another rule refused."""
    application, holding = part.application, part.holding
    if holding is None:
        return passed(application)
    divided = holding.rule.divided or holding.rule.local
    return Verdict(
        application.rule,
        application.key,
        application.cost,
        allowed=True,
        remaining=holding.in_hand(epoch, now_ns) if divided else holding.region_remaining(now_ns),
        scope=EDGE if divided else REGION,
        reset_after_ns=holding.reset_ns(left_ns, now_ns),
    )


def from_slice(part: Part, epoch: int, left_ns: int, now_ns: int) -> Verdict:
    """A rule that was decided from units in hand; nothing was taken for a peek."""
    application, taken = part.application, part.taken
    return Verdict(
        application.rule,
        application.key,
        application.cost,
        allowed=True,
        charged=taken is not None,
        remaining=part.held.in_hand(epoch, now_ns),
        scope=EDGE,
        reset_after_ns=part.held.reset_ns(left_ns, now_ns),
        epoch=taken.epoch if taken else None,
    )


def from_region(part: Part, member: MemberAnswer, after: int | None, charged: bool, left_ns: int) -> Verdict:
    """A rule that the region decided. `after`: how many like requests it admitted after this one, None: this one was
    not. `charged`: whether the request was, of which a part without cost has nothing. `left_ns` of the epoch are left.
    """
    application, limit = part.application, part.held.limit
    rule, key, cost = application.rule, application.key, application.cost
    backlog = member.backlog
    reset = 0 if backlog is None or not limit.units else -(-backlog // limit.units) * limit.tick_ns
    remaining, charged = member.remaining + (after or 0) * cost, charged and cost > 0
    if after is not None or member.outcome is ADMITTED:
        epoch = member.epoch if charged else None
        return Verdict(rule, key, cost, True, charged, remaining, REGION, 0, reset, None, epoch)
    if member.wait_ns is None:
        return Verdict(rule, key, cost, False, charged, remaining, REGION, None, reset, Reason.IMPOSSIBLE)
    # A refusal is held here for a while (Holding.learn), so obeying a shorter advice would meet that.
    wait = part.held.told_ns(max(member.wait_ns, HOLD_NS), cost, left_ns)
    return Verdict(rule, key, cost, False, charged, remaining, REGION, wait, max(reset, wait), OVER_LIMIT)


def unavailable(applications: Sequence[Application]) -> Decision:
    """A request that nobody can decide, because no region has ever been heard. A shadow rule refuses nobody."""
    shadows = all(each.rule.shadow for each in applications)
    return Decision(shadows, tuple(unanswered(each) for each in applications))


def degraded(application: Application, charged: bool, remaining: int | None, left_ns: int, epoch: int) -> Verdict:
    """A rule whose decision nobody gave in time, and whose `when_unavailable` lets the request pass; `remaining` of the
    edge's share of the epoch, None where there is no bound.
    """
    return Verdict(
        application.rule,
        application.key,
        application.cost,
        allowed=True,
        charged=charged,
        remaining=remaining,
        scope=EDGE,
        reset_after_ns=left_ns,
        epoch=epoch if charged else None,
        degraded=True,
    )


def unanswered(application: Application) -> Verdict:
    """A rule whose decision nobody gave in time, and whose `when_unavailable` denies."""
    return refused(application, Reason.UNAVAILABLE, UNAVAILABLE_RETRY_NS)
