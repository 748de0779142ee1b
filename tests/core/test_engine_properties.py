"""The engine against what a limit entitles to, against a model of fractions, and against itself without a memory."""

from collections import defaultdict
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from apportion.core.engine import Engine
from apportion.core.key import encode_key
from apportion.core.limit import RateLimit
from apportion.core.request import Application
from apportion.core.rule import Domain
from apportion.core.table import LocalBucket
from tests.core.engine_model import Model
from tests.in_process import HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND, T0, domain_of, rule_text

RULES = domain_of(
    rule_text("per-tenant", "rate: 3/s, burst: 7"),
    rule_text("per-pair", "rate: 700/min, burst: 8", match="tenant api", more=", cost: {default: 2, max: 3}"),
    rule_text("per-api", "rate: 5/7min, burst: 6", match="api tenant", key="api"),
    rule_text("per-user", "rate: 1000/hour, burst: 5", match="user"),
)
STEPS = (0, 1, 999, MICROSECOND, 7 * MILLISECOND, 90 * MILLISECOND, SECOND, MINUTE, HOUR)

values = st.sampled_from(["a", "b", "c", "d"])
requests = st.dictionaries(st.sampled_from(["tenant", "api", "user", "other"]), values, max_size=4)
costs = st.one_of(st.none(), st.integers(0, 8))
forward = st.sampled_from(STEPS)
to_and_fro = st.one_of(forward, forward.map(lambda step: -step))
Op = tuple[dict[str, str], int | None, int, bool, int]


def operations(steps: st.SearchStrategy[int]) -> st.SearchStrategy[list[Op]]:
    """Requests with a cost, the time since the one before, whether it is a peek, and buckets to sweep before it."""
    peeks = st.sampled_from([False, False, False, True])
    return st.lists(st.tuples(requests, costs, steps, peeks, st.sampled_from([0, 0, 1, 50])), max_size=35)


def entitled(limit: RateLimit, log: Iterable[tuple[int, int]]) -> bool:
    """Whether no interval between two admissions holds more than rate x w + burst, with a tick for its edges."""
    admissions = list(log)
    for start, (first_ns, _) in enumerate(admissions):
        total = 0
        for last_ns, cost in admissions[start:]:
            total += cost
            width = last_ns // limit.tick_ns - first_ns // limit.tick_ns
            if total * limit.period_ticks > limit.units * width + limit.burst * limit.period_ticks:
                return False
    return True


def table(engine: Engine) -> dict[tuple[str, bytes], LocalBucket]:
    """The buckets there are, by rule and encoded key."""
    return {
        (rule, name): bucket
        for (rule, _), quotas in engine._plans._quotas.items()
        for name, bucket in quotas.buckets.items()
    }


def run(domain: Domain, ops: list[Op], keys_max: int = 1000, memo_max: int = 3) -> list[tuple[object, ...]]:
    """Every number of every decision; and, for any rule and key, that no more was admitted than its limit entitles to.

    Time that a clock shows twice passes once: an admission counts at the latest instant that its bucket was shown, by a
    decision or when one was dropped as drained.
    """
    engine = Engine(domain, keys_max, memo_max=memo_max)
    now_ns = T0 + 2 * HOUR
    shown: dict[tuple[str, bytes], int] = defaultdict(int)
    log: dict[tuple[str, bytes], list[tuple[int, int]]] = defaultdict(list)
    seen: list[tuple[object, ...]] = []
    for request, cost, step, peek, sweep in ops:
        now_ns = max(now_ns + step, T0)
        before = table(engine)
        if sweep:
            engine.sweep(now_ns, sweep)
        decision = engine.decide(request, cost, now_ns, peek)
        after = table(engine)
        for quota, bucket in before.items():
            if after.get(quota) is not bucket:
                shown[quota] = max(shown[quota], now_ns)
        assert decision.allowed == all(verdict.allowed for verdict in decision.verdicts)
        for verdict in decision.verdicts:
            assert verdict.charged == (decision.allowed and not peek and verdict.cost > 0)
            quota = verdict.rule.name, encode_key(verdict.key)
            if quota in after:
                shown[quota] = max(shown[quota], now_ns)
            if verdict.charged:
                log[quota].append((shown[quota], verdict.cost))
        seen.append((decision.allowed, *decision.verdicts))
        assert engine.keys == len(after) <= keys_max
    limits = {rule.name: rule.limit for rule in domain.rules}
    for (name, _), admissions in log.items():
        limit = limits[name]
        assert isinstance(limit, RateLimit)
        assert entitled(limit, admissions)
    return seen


@given(operations(to_and_fro), st.sampled_from([1, 2, 5, 1000]))
def test_no_interval_holds_more_than_the_limit_entitles_to(ops: list[Op], keys_max: int) -> None:
    """For any times, costs, keys, sweeps and sizes of the table, clocks that step back included."""
    run(RULES, ops, keys_max)


@given(operations(to_and_fro), st.sampled_from([3, 1000]))
def test_remembering_plans_changes_nothing(ops: list[Op], keys_max: int) -> None:
    """Every number of every decision is the same without a memory, and with one that holds a single plan."""
    plain = run(RULES, ops, keys_max, memo_max=0)
    assert run(RULES, ops, keys_max, memo_max=1) == plain
    assert run(RULES, ops, keys_max, memo_max=1000) == plain


@given(operations(forward))
def test_the_engine_equals_a_model_of_fractions_that_forgets_nothing(ops: list[Op]) -> None:
    """So sweeping changes no decision, nor any remaining or retry-after."""
    engine, model, now_ns = Engine(RULES, memo_max=2), Model(list(RULES.rules)), T0
    for request, cost, step, peek, sweep in ops:
        now_ns += step
        engine.sweep(now_ns, sweep)
        decision = engine.decide(request, cost, now_ns, peek)
        allowed, answers = model.decide(request, cost, now_ns, peek)
        assert (
            decision.allowed,
            [(v.rule.name, v.allowed, v.remaining, v.retry_after_ns) for v in decision.verdicts],
        ) == (
            allowed,
            [(a.rule, a.allowed, a.remaining, a.retry_after_ns) for a in answers],
        )


@given(operations(forward))
def test_applications_are_decided_as_the_request_they_come_from(ops: list[Op]) -> None:
    """The path with nothing remembered and nothing written out says the same, number for number."""
    one, other, now_ns = Engine(RULES), Engine(RULES), T0
    for request, cost, step, peek, _ in ops:
        now_ns += step
        decision = one.decide(request, cost, now_ns, peek)
        applications = [Application(v.rule, v.key, v.cost) for v in decision.verdicts]
        assert other.decide_applications(applications, now_ns, peek).verdicts == decision.verdicts
