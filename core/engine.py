"""The Python engine: every limited rule is one exact bucket or count per key, in this process and nowhere else.

It is the readable specification of a local decision, for one location without a region; the native engine must do the
same to the bit. Time is an argument; for a bucket it never goes back. For period quotas the wall clock is one
too (`wall_ns`, since 1970 UTC), by which calendars go; it may be set at any time. What is remembered of matching
is `plans`', what a plan is made of is `part`'s, where buckets are kept and forgotten is `table`'s, what the numbers of
an answer mean is `verdicts`', and what the fast path leaves out is `settling`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apportion.core.decision import Decision, Verdict
from apportion.core.limit import BACKLOG_MAX
from apportion.core.part import Part, Plan, chain
from apportion.core.plans import MEMO_MAX, Plans
from apportion.core.request import Application, Cost, units_asked
from apportion.core.rule import Domain
from apportion.core.settling import Settling
from apportion.core.verdicts import LocalDecision, Seen

KEYS_MAX = 1_000_000
"""Buckets and counts kept: about 400 bytes each with a short key, 1 KiB of a rolling quota."""

PAUSE_TICKS = 200
"""A bucket not touched for longer lets a sweep be thought of."""


class Engine:
    """Decides by the rules of one domain. Not safe for threads: who shares it brings a lock.

    `keys_max` bounds the buckets of all enforced rules together, and those of all shadow rules, which have a table of
    their own: what they count takes no room from others.
    """

    __slots__ = ("_enforced", "_plans", "_shadows")

    def __init__(self, domain: Domain, keys_max: int = KEYS_MAX, *, memo_max: int = MEMO_MAX) -> None:
        assert keys_max > 0
        self._plans = Plans(domain, memo_max)
        self._enforced = Settling(keys_max)
        self._shadows = Settling(keys_max)

    @property
    def keys(self) -> int:
        """How many buckets there are: quotas that are not full."""
        return len(self._enforced.table) + len(self._shadows.table)

    @property
    def keys_full(self) -> int:
        """Requests refused because there was no room for a further key."""
        return self._enforced.keys_full

    def decide(
        self, dimensions: Mapping[str, str], cost: int | None, now_ns: int, peek: bool = False, wall_ns: int = 0
    ) -> Decision:
        """Whether a request with `dimensions` passes at `now_ns`, and charge it if it does and is no peek.

        `cost` in requests, None = each rule's default, 0 = a peek. Raises InputError for dimensions that are not text.
        """
        plans = self._plans
        try:
            # As many dimensions as rules know, all of them known: there are no others to look at. (Only of a real dict:
            # reading what is absent may add it to other mappings.)
            if len(dimensions) == plans.width and dimensions.__class__ is dict:
                plan = plans.young[plans.values(dimensions)]
            else:
                plan = plans.resolve(dimensions)
        except (KeyError, TypeError):
            plan = plans.resolve(dimensions)
        if plan is None:
            return Decision(True, ())
        if peek:
            return self._settle(chain(plan), _costs(plan, cost), now_ns, peek, wall_ns)
        # This is Bucket.drain, admits and charge written out, for calling them would double the cost of a decision. It
        # charges as it goes, and takes all back where a part refuses: most requests pass.
        allowed = True
        part = plan
        seen: Seen = None
        while True:
            bucket = part.bucket
            backlog = bucket.backlog
            tick = now_ns // part.tick_ns
            elapsed = tick - bucket.last
            if elapsed > 0:
                backlog -= part.units * elapsed
                if backlog < 0:
                    backlog = 0
            elif elapsed:
                return self._start_over(plan, cost, now_ns, seen, wall_ns)
            if cost is None:
                after = backlog + part.charge_default
            elif cost <= part.cost_max:
                after = backlog + cost * part.period
            else:
                after = BACKLOG_MAX
            if after > bucket.capacity:
                if bucket.capacity < 0:
                    return self._start_over(plan, cost, now_ns, seen, wall_ns)
                allowed = False
            bucket.backlog = after
            bucket.last = tick
            following = part.following
            if following is None:
                break
            seen = (part, backlog, seen)
            part = following
        if not allowed:
            bucket.backlog = backlog
            _take_back(seen)
        # Only where the last bucket had a pause: its few ticks are quicker to compare than an instant, and a table that
        # is hit without a pause can wait.
        if elapsed > PAUSE_TICKS and now_ns >= self._enforced.sweep_at_ns:
            self._enforced.sweep(now_ns)
        decision: LocalDecision = LocalDecision()
        decision.allowed = allowed
        decision.part = part
        decision.backlog = backlog
        decision.seen = seen
        decision.cost = cost
        return decision

    def decide_measures(
        self,
        dimensions: Mapping[str, str],
        costs: Mapping[str, int],
        now_ns: int,
        peek: bool = False,
        wall_ns: int = 0,
    ) -> Decision:
        """As `decide`, for a request that names costs of several measures, or of another one than requests."""
        plan = self._plans.resolve(dimensions)
        return self._settle(chain(plan), _costs(plan, costs), now_ns, peek, wall_ns)

    def decide_applications(
        self, applications: Sequence[Application], now_ns: int, peek: bool = False, wall_ns: int = 0
    ) -> Decision:
        """Decide several rules and keys as one request: all are checked, then all charged, or none.

        The verdicts are in the order given, one for each application, unlimited ones too. No quota may be named twice.
        """
        parts = [self._plans.part(application.rule, application.key) for application in applications]
        limited = [
            (part, application.cost) for part, application in zip(parts, applications, strict=True) if part is not None
        ]
        assert len({(part.rule.name, part.name) for part, _ in limited}) == len(limited), "a quota is named once"
        settled = self._settle([part for part, _ in limited], [cost for _, cost in limited], now_ns, peek, wall_ns)
        answers = iter(settled.verdicts)
        verdicts = tuple(
            _unlimited(application) if part is None else next(answers)
            for part, application in zip(parts, applications, strict=True)
        )
        return Decision(settled.allowed, verdicts)

    def sweep(self, now_ns: int, steps: int) -> None:
        """Look at up to `steps` buckets and drop the drained ones; a shell may call it while nobody decides."""
        self._enforced.sweep(now_ns, steps)
        self._shadows.sweep(now_ns, steps)

    def _start_over(self, plan: Part, cost: int | None, now_ns: int, seen: Seen, wall_ns: int) -> Decision:
        """Leave to `_settle` what the fast path has no answer to: a bucket that is closed, as in a `Detour`, or is
        ahead of `now_ns`.
        """
        _take_back(seen)
        return self._settle(chain(plan), _costs(plan, cost), now_ns, False, wall_ns)

    def _settle(self, parts: Sequence[Part], costs: Sequence[int], now_ns: int, peek: bool, wall_ns: int) -> Decision:
        """The whole of a decision. Shadow rules come last, each by itself, so that none changes anything for another:
        one is charged where the others let the request pass, and it does too.
        """
        enforced = [index for index, part in enumerate(parts) if not part.rule.shadow]
        decision = self._enforced.settle(
            [parts[at] for at in enforced], [costs[at] for at in enforced], now_ns, peek, wall_ns
        )
        if len(enforced) == len(parts):
            return decision
        look = peek or not decision.allowed
        said = iter(decision.verdicts)
        verdicts = tuple(
            self._shadows.settle([part], [cost], now_ns, look, wall_ns).verdicts[0] if part.rule.shadow else next(said)
            for part, cost in zip(parts, costs, strict=True)
        )
        return Decision(decision.allowed, verdicts)


def _take_back(seen: Seen) -> None:
    """Give each bucket the backlog that it was seen with."""
    while seen is not None:
        part, backlog, seen = seen
        part.bucket.backlog = backlog


def _costs(plan: Plan, cost: Cost) -> list[int]:
    """Units asked of each part of a plan."""
    return [units_asked(part.rule, cost) for part in chain(plan)]


def _unlimited(application: Application) -> Verdict:
    """What a rule without a limit says: it passes, and nothing is counted."""
    return Verdict(rule=application.rule, key=application.key, cost=application.cost, allowed=True)
