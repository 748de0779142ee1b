"""By how much a quota of a period can be exceeded, and who resets when, as sentences for a design review. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from apportion.core.bounds_stages import stages_text
from apportion.core.counter import GRACE_MAX_NS
from apportion.core.document import Problem
from apportion.core.errors import RulesError
from apportion.core.limit import EPOCH_NS, PeriodAnchor, PeriodLimit
from apportion.core.periods import HOUR_S, MONTHS_A_YEAR, Unit
from apportion.core.quantities import duration_text
from apportion.core.rule import Enforce, Fallback, Rule, WrongCosts
from apportion.core.rule_quota import WEEKDAYS

LONG_NS = HOUR_S * EPOCH_NS
"""A quota of at least this length is worth a store that keeps it."""

SHORTEST_MONTH = 28
"""Days that every month has."""


def needs_keeping(rule: Rule) -> bool:
    """Whether the rule may not be counted in a store that keeps nothing: a restart would be worth a whole allowance."""
    limit = rule.limit
    return (
        isinstance(limit, PeriodLimit)
        and limit.units > 0
        and limit.length_ns >= LONG_NS
        and rule.wrong_costs is not WrongCosts.NOISE
        and not rule.shadow
    )


def refuse_unkept(rules: Iterable[Rule], counted: str) -> None:
    """RulesError where a rule may not be counted in what keeps nothing; `counted` says where that would be."""
    problems = [
        Problem(
            rule.place,
            f"the quota {rule.limit.units}/{rule.limit.period_text} would be counted {counted}, where each restart is "
            "worth a whole allowance; count it in a region on sqlite, or write `wrong_costs: noise` if that is no harm",
        )
        for each in rules
        for rule in each.on_plans
        if isinstance(rule.limit, PeriodLimit) and needs_keeping(rule)
    ]
    if problems:
        raise RulesError(tuple(dict.fromkeys(problems)))


def period_units(rule: Rule, limit: PeriodLimit, forgets: bool) -> int | None:
    """The most that one period can be over; None: no bound. `forgets`: the store keeps nothing over a restart."""
    if any(stage.fallback is Fallback.ALLOW for stage in rule.when_unavailable):
        return None
    return limit.units if forgets else 0


def period_sentences(rule: Rule, limit: PeriodLimit, forgets: bool | None) -> list[str]:
    """The bound of one period, what a reset admits, who resets when, how it crosses, what fails. `forgets` None: the
    store is not known.
    """
    return [
        _by_period(rule, limit),
        _around_reset(limit),
        resets_sentence(limit, rule.key),
        _crossing(rule),
        _unavailable(rule),
        _store(limit, forgets),
    ]


def _by_period(rule: Rule, limit: PeriodLimit) -> str:
    what = "In any window" if limit.anchor is PeriodAnchor.ROLLING else "In a period"
    if period_units(rule, limit, forgets=False) is None:
        return (
            f"{what}: no bound while the region is unavailable, since `when_unavailable` has `allow`; else over by 0."
        )
    clock = ""
    if limit.anchor is PeriodAnchor.CALENDAR:
        kept = duration_text(min(limit.length_ns, GRACE_MAX_NS) // 2)
        clock = f", as long as the clock of the region's host is not set back by more than {kept} over a reset"
    return f"{what}: over by at most 0, whatever fails{clock}."


def _around_reset(limit: PeriodLimit) -> str:
    if limit.anchor is PeriodAnchor.ROLLING:
        return "There is no reset: what was used leaves the window as it ages."
    rolling = f"with `anchor: rolling` it is {limit.units} in any {period_words(limit)}"
    if limit.unit.fixed_s is None:
        rolling = "a quota with `anchor: rolling`, of days, has no such moment"
    return (
        f"Around a reset: up to {most_around_reset(limit)}, two allowances, one just before it and one just after, "
        f"which no period counts twice; {rolling}."
    )


def most_around_reset(limit: PeriodLimit) -> int:
    """The most that is admitted within any time as long as a period: two allowances where there is a reset."""
    return limit.units if limit.anchor is PeriodAnchor.ROLLING else 2 * limit.units


def period_words(limit: PeriodLimit) -> str:
    """A period in words, as after "in any": `day`, `6 hours`."""
    word = limit.unit.word
    return word if limit.multiple == 1 else f"{limit.multiple} {word}s"


def resets_sentence(limit: PeriodLimit, key: tuple[str, ...]) -> str:
    """Which subjects reset together, and when."""
    match limit.anchor:
        case PeriodAnchor.FIRST_USE:
            return f"{_subjects(key)} resets by itself, {_after(limit)} its first call."
        case PeriodAnchor.ROLLING:
            return f"{_subjects(key)} has a window of its own."
    of_tenant = limit.zone_from_tenant or limit.month_from_tenant
    together = (
        "The subjects of one tenant, and of all tenants with the same calendar, reset together"
        if of_tenant
        else "All subjects reset together"
    )
    return f"{together}, {_when(limit)}."


def subject_resets(limit: PeriodLimit) -> str:
    """When one subject resets, `limit` being by its own calendar."""
    match limit.anchor:
        case PeriodAnchor.FIRST_USE:
            return f"resets {_after(limit)} its first call"
        case PeriodAnchor.ROLLING:
            return "never resets: what was used leaves the window as it ages"
    return f"resets {_when(replace(limit, zone_from_tenant=False, month_from_tenant=False))}"


def _subjects(key: tuple[str, ...]) -> str:
    return f"Each {' and '.join(key)}" if key else "The one count for all"


def _after(limit: PeriodLimit) -> str:
    article = "" if limit.multiple > 1 else "an " if limit.unit is Unit.HOUR else "a "
    return f"{article}{period_words(limit)} after"


def _when(limit: PeriodLimit) -> str:
    """When calendar periods begin."""
    where = f"in the tenant's time zone (else {limit.zone})" if limit.zone_from_tenant else f"in {limit.zone}"
    match limit.unit:
        case Unit.DAY:
            return f"each day at 00:00 {where}"
        case Unit.WEEK:
            return f"each {WEEKDAYS[limit.week_starts_on].capitalize()} at 00:00 {where}"
        case Unit.MONTH | Unit.YEAR:
            return f"{_day(limit)} of {_months(limit)} at 00:00 {where}"
        case Unit.HOUR if limit.multiple > 1:
            return f"at 00:00 and each {period_words(limit)} from there {where}"
    return f"each {period_words(limit)} by the clock {where}"


def _day(limit: PeriodLimit) -> str:
    if limit.month_from_tenant:
        return f"on the tenant's day (else day {limit.month_starts_on})"
    return f"on day {limit.month_starts_on}" + (" (else the last)" if limit.month_starts_on > SHORTEST_MONTH else "")


def _months(limit: PeriodLimit) -> str:
    months = limit.multiple * (MONTHS_A_YEAR if limit.unit is Unit.YEAR else 1)
    if months == 1:
        return "each month"
    return "January" if months == MONTHS_A_YEAR else f"January and of each {months} months from there"


def _crossing(rule: Rule) -> str:
    if rule.enforce is Enforce.LEASE:
        return (
            "Lent in chunks of at most five seconds of an edge's demand, never more than its part of half of what is "
            "left: most requests do not cross. An edge that is killed keeps its open chunk, which stays charged."
        )
    return "Crosses on every request, batched, but those of which the region has said that they must wait for a reset."


def _unavailable(rule: Rule) -> str:
    waits = duration_text(rule.deadline_ns)
    allow = "`allow` has no bound: each edge that is cut off lets everything pass."
    adds = allow if any(stage.fallback is Fallback.ALLOW for stage in rule.when_unavailable) else "It adds 0."
    return (
        f"While the region is unavailable, or has not answered within {waits}: {stages_text(rule.when_unavailable)}. "
        f"{adds}"
    )


def _store(limit: PeriodLimit, forgets: bool | None) -> str:
    memory = f"on memory: {limit.units} (one allowance) for each restart of the region"
    sqlite = "on sqlite: 0, an acknowledged decision is on disk"
    chosen = {True: (memory,), False: (sqlite,), None: (sqlite, memory)}[forgets]
    return f"The store adds, {'; '.join(chosen)}."
