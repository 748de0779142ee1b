"""The answer to "may this request pass?", as values. A refusal is a value, never an exception."""

from __future__ import annotations

from enum import Enum

from apportion.core.limit import RateLimit
from apportion.core.rule import Rule
from apportion.core.value import value


class Reason(Enum):
    """Why a request, or one rule of it, was refused."""

    OVER_LIMIT = "over_limit"
    IMPOSSIBLE = "impossible"  # the cost can never be admitted, however long one waits
    UNAVAILABLE = "unavailable"  # nobody who may decide answered in time, and the rule says deny (design D3)
    KEYS_FULL = "keys_full"  # no room to count a further key; letting it pass would be a fresh allowance
    PENDING = "pending"  # of a shadow rule only, which refuses nobody: the region was asked, and nobody waits for it
    UNLISTED = "unlisted"  # the tenant is on no plan, and the rules refuse such tenants: waiting cannot help


class Scope(Enum):
    """Whose number `remaining` is."""

    EDGE = "edge"
    REGION = "region"


@value
class Verdict:
    """What one rule said of a request.

    `key` holds the values of the rule's key; `cost` the units asked; `charged` whether they were charged (a peek and a
    refused request charge nothing). `remaining` whole units, None where nobody knows; `retry_after_ns` 0 when allowed,
    None when waiting cannot help; `reset_after_ns` until the allowance is whole again; `epoch` the label charged.
    """

    rule: Rule
    key: tuple[str, ...]
    cost: int
    allowed: bool
    charged: bool = False
    remaining: int | None = None
    scope: Scope = Scope.EDGE
    retry_after_ns: int | None = 0
    reset_after_ns: int = 0
    reason: Reason | None = None
    epoch: int | None = None
    degraded: bool = False

    @property
    def shadow(self) -> bool:
        """Whether the rule refuses nobody: `allowed` is then what it would have said, were it enforced."""
        return self.rule.shadow


class Decision:
    """The answer to one request: `allowed`, and the verdicts of the limited rules that applied, in rule-name order.

    `rule`, `limit`, `remaining`, `retry_after` ... are those of the deciding rule: on refusal the one with the longest
    retry-after (impossible before all), on admission the one with the least remaining / limit; never a shadow rule. A
    request that no rule limits is allowed and has none of them. A plain slotted class: it is made on the hot path.
    """

    __slots__ = ("_verdicts", "allowed")

    def __init__(self, allowed: bool, verdicts: tuple[Verdict, ...]) -> None:
        self.allowed = allowed
        self._verdicts = verdicts

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What each limited rule that applied said."""
        return self._verdicts

    @property
    def deciding(self) -> Verdict | None:
        """The verdict that decided; None when no rule limits the request."""
        verdicts = [verdict for verdict in self.verdicts if not verdict.shadow]
        if not verdicts:
            return None
        if self.allowed:
            return min(verdicts, key=_fraction_left)
        return max((v for v in verdicts if not v.allowed), key=_wait)

    @property
    def rule(self) -> str | None:
        """Name of the deciding rule."""
        verdict = self.deciding
        return verdict.rule.name if verdict else None

    @property
    def limit(self) -> RateLimit | None:
        """Limit of the deciding rule."""
        verdict = self.deciding
        return verdict.rule.limit if verdict and isinstance(verdict.rule.limit, RateLimit) else None

    @property
    def remaining(self) -> int | None:
        """Whole units left for the deciding rule's key, of `remaining_scope`."""
        verdict = self.deciding
        return verdict.remaining if verdict else None

    @property
    def remaining_scope(self) -> str | None:
        """Whose number `remaining` is: "edge" or "region"."""
        verdict = self.deciding
        return verdict.scope.value if verdict else None

    @property
    def retry_after(self) -> float | None:
        """Seconds after which a lone caller is admitted; 0.0 when allowed, None when waiting cannot help."""
        verdict = self.deciding
        if verdict is None:
            return 0.0
        return None if verdict.retry_after_ns is None else verdict.retry_after_ns / 1e9

    @property
    def reset_after(self) -> float | None:
        """Seconds until the deciding rule's allowance is whole again; None when no rule limits the request."""
        verdict = self.deciding
        return verdict.reset_after_ns / 1e9 if verdict else None

    @property
    def reason(self) -> str | None:
        """Why it was refused: "over_limit", "impossible", "unlisted", "unavailable", "keys_full"; None when allowed."""
        verdict = self.deciding
        return verdict.reason.value if verdict and verdict.reason else None

    @property
    def degraded(self) -> bool:
        """Whether any rule was answered without the authority that should have decided."""
        return any(verdict.degraded and not verdict.shadow for verdict in self.verdicts)

    @property
    def would_deny(self) -> tuple[str, ...]:
        """Names of the shadow rules that would have refused the request, were they enforced."""
        return tuple(verdict.rule.name for verdict in self.verdicts if verdict.shadow and not verdict.allowed)

    def __bool__(self) -> bool:
        return self.allowed

    def __repr__(self) -> str:
        return (
            f"Decision(allowed={self.allowed}, rule={self.rule!r}, remaining={self.remaining}, "
            f"retry_after={self.retry_after}, reason={self.reason!r}, degraded={self.degraded})"
        )


def never(rule: Rule) -> Reason:
    """Why a cost that is above the rule's maximum is refused."""
    return Reason.UNLISTED if rule.unlisted else Reason.IMPOSSIBLE


def _fraction_left(verdict: Verdict) -> float:
    """remaining / limit of an admitting verdict; a rule that does not know its remaining never decides before one
    that does.
    """
    limit = verdict.rule.limit
    if verdict.remaining is None or not isinstance(limit, RateLimit):
        return float("inf")
    return verdict.remaining / max(limit.burst, 1)


def _wait(verdict: Verdict) -> float:
    """Retry-after for ordering: a wait that cannot help is longer than every other."""
    return float("inf") if verdict.retry_after_ns is None else verdict.retry_after_ns
