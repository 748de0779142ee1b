"""The demo's result: one row for each rule, what is wrong with it, and the words and the JSON that say so. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from apportion.commands.demonstration.accounts import Account, RuleAccount
from apportion.commands.demonstration.questions import Question, is_lease
from apportion.commands.demonstration.region_view import QuotaView
from apportion.core.bounds import StoreKind, bound_of, limit_text
from apportion.core.rule import Enforce

BUSY_SHARE = 0.01
"""With more than this part of the requests unanswered or not sent, the machine and not the limiter is seen."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule's figures, units of cost; the names are those of the JSON. `limit` is the limit in words."""

    rule: str
    domain: str
    enforce: str
    limit: str
    limit_per_second: float
    burst: int
    offered: int
    admitted: int
    refused: int
    unanswered: int
    utilisation: float | None
    crossings: int
    bound: int | None
    overshoot_observed: int
    overshoot_region: int
    overshoot_true_second: int
    overshoot_true_second_certain: int
    above_quota: int | None
    degraded: int
    sums_agree: bool
    refused_at_edges: int = 0
    refused_with_room: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """Everything the demo found out. `problems`: why the answer is no, in words; empty when everything held.

    `dwell`: seconds that the hotspot stayed at an edge. `cpu`: part of one core by process, over the time in which
    traffic was offered.
    """

    rules: tuple[RuleResult, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
    seed: int
    dwell: float
    edges: tuple[str, ...]
    warm_up_epochs: int
    measured_epochs: int
    requests: int
    not_sent: int
    cpu: dict[str, float]
    cpu_microseconds_per_request: float

    def as_json(self) -> dict[str, Any]:
        """The object that --json prints."""
        return {"passed": not self.problems, **asdict(self)}


def rule_result(
    question: Question, account: RuleAccount, view: QuotaView, sums_agree: bool, edges_max: int | None
) -> RuleResult:
    """One rule's row."""
    rule, limit = question.rule, question.limit
    return RuleResult(
        rule=rule.name,
        domain=rule.domain,
        enforce=rule.enforce.value,
        limit=limit_text(rule),
        limit_per_second=limit.per_second,
        burst=limit.burst,
        offered=account.offered,
        admitted=account.admitted,
        refused=account.refused,
        unanswered=account.unanswered,
        utilisation=None if account.utilisation is None else round(account.utilisation, 4),
        crossings=view.crossings,
        bound=bound_of(rule, StoreKind.SQLITE, edges_max).units,
        overshoot_observed=account.overshoot,
        overshoot_region=view.overshoot,
        overshoot_true_second=account.overshoot_true_second,
        overshoot_true_second_certain=account.overshoot_true_second_certain,
        above_quota=account.above_quota,
        degraded=account.degraded,
        sums_agree=sums_agree,
        refused_at_edges=view.refused_at_edges,
        refused_with_room=view.refused_with_room,
    )


def problems_of(question: Question, row: RuleResult, account: RuleAccount, differences: Sequence[str]) -> list[str]:
    """Why this rule's answer is no."""
    problems = []
    bound = row.bound if row.bound is not None else 0
    for whose, overshoot in (("answers", row.overshoot_observed), ("the region's sum", row.overshoot_region)):
        if overshoot > bound:
            problems.append(f"{row.rule}: over by {overshoot} by {whose}, the bound is {bound}")
    if is_lease(question) and (account.above_quota or 0) > 0:
        problems.append(f"{row.rule}: a label admitted {account.above_quota} more than its epoch's quota")
    if account.offered and not account.admitted and question.limit.units:
        problems.append(f"{row.rule}: nothing was admitted, so nothing was shown")
    if account.unlabelled:
        problems.append(f"{row.rule}: answers admitted {account.unlabelled} without naming an epoch")
    problems += [f"{row.rule}: the region and the answers disagree: {difference}" for difference in differences]
    return problems


def sentences(result: Result) -> list[str]:
    """The result in words, one sentence for each rule, and one for each problem or note."""
    said = [_sentence(row) for row in result.rules]
    measured = f"{result.measured_epochs} whole second{'' if result.measured_epochs == 1 else 's'}"
    said.append(
        f"Utilisation is admitted / min(offered, limit), at most 100%, over {measured}; "
        f"{result.warm_up_epochs} before them were left out as warm-up."
    )
    straddling = ", ".join(f"{row.rule} {row.overshoot_true_second_certain}" for row in result.rules)
    said.append(
        "Labels are the region's seconds. In any other second, part of two labels, requests sent and answered within "
        f"it were over by: {straddling}."
    )
    said += [f"Note: {note}." for note in result.notes]
    said += [f"NOT AS PROMISED: {problem}." for problem in result.problems]
    return said


def is_too_busy(unanswered: int, requests: int, not_sent: int) -> bool:
    """Whether so many requests were unanswered, or not sent, that the run's figures are not typical."""
    return unanswered + not_sent > BUSY_SHARE * (requests + not_sent)


def cpu_shares(before: dict[str, float], after: dict[str, float], account: Account, seconds: float) -> dict[str, float]:
    """Part of one core that each process took between two readings of its processor time, the load process too."""
    shares = {name: round((after[name] - before[name]) / seconds, 3) for name in before if name in after}
    shares["load"] = round(account.cpu_seconds / account.seconds, 3)
    return shares


def _sentence(row: RuleResult) -> str:
    used = "" if row.utilisation is None else f", utilisation {row.utilisation:.1%}"
    bound = "no bound" if row.bound is None else f"by at most {row.bound}"
    agree = "the region's own sum agrees" if row.sums_agree else "the region's own sum does NOT agree"
    return (
        f"{row.rule} ({row.enforce}, {row.limit}, burst {row.burst}): of {row.offered:,} offered it admitted "
        f"{row.admitted:,}{used}; it may be over {bound}, and was over by {row.overshoot_observed}; {agree}."
        + _threshold_text(row)
    )


def _threshold_text(row: RuleResult) -> str:
    """What was refused at the edge although the region had room, where there is a region to have any."""
    if row.enforce != Enforce.EDGE_REGION.value:
        return ""
    part = row.refused_with_room / max(row.offered, 1)
    return (
        f" Of the {row.offered:,}, {row.refused_at_edges:,} were refused at the edge without asking, "
        f"{row.refused_with_room:,} of them ({part:.1%} of what was offered) although the region had room."
    )
