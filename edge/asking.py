"""What the front doors share: from a domain and descriptors to a decision, and what is wrong with a request.

Knows no wire. Which rules a descriptor meets is `core.match`'s business, deciding is the `Decider`'s.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from difflib import get_close_matches
from itertools import count

import structlog

from apportion.core.decision import Decision, Verdict
from apportion.core.errors import InputError, UnavailableError
from apportion.core.limit import Unlimited
from apportion.core.match import Matcher, apply_rules
from apportion.core.request import Application, Descriptor
from apportion.edge import verdicts
from apportion.edge.decider import Decider
from apportion.guarding import NotFoundError

log = structlog.get_logger("apportion.edge")

MESSAGE_BYTES_MAX = 4 * 2**20
"""Bytes of a request over gRPC; a larger one is refused with RESOURCE_EXHAUSTED before it is read. Values of 2 MiB are
asked for, and reading more than this would hold up every other request."""

DESCRIPTORS_MAX = 256
"""Of one request; a proxy sends a handful. Each is matched by itself, while every other request waits."""

DIMENSIONS_MAX = 256
"""Of one descriptor; rules name far fewer."""

SHOWN_MAX = 10
"""Domains that an error lists."""

NOTHING = Decision(True, ())
"""The decision on a request that no limited rule applies to."""


class Answer:
    """A decision with the verdicts of limited rules only, and for each the indexes of the descriptors that hit it."""

    __slots__ = ("decision", "hits")

    def __init__(self, decision: Decision, hits: Sequence[tuple[int, ...]]) -> None:
        assert len(decision.verdicts) == len(hits)
        self.decision = decision
        self.hits = hits

    def of_descriptor(self, index: int) -> Decision:
        """What the rules that descriptor `index` hit say of it, whatever others say."""
        own = tuple(verdict for verdict, hit in zip(self.decision.verdicts, self.hits, strict=True) if index in hit)
        return Decision(all(verdict.allowed or verdict.shadow for verdict in own), own)


def find_matcher(decider: Decider, domain: str) -> Matcher:
    """The rules of `domain`. UnavailableError: there are no rules yet. NotFoundError: there is no such domain.

    A wrong domain is an error, not a request without limits: a misspelt one would switch limiting off, unseen. A proxy
    counts the error, and lets pass or not as its own failure mode says.
    """
    matcher = decider.matcher(domain)
    if matcher is not None:
        return matcher
    known = decider.domains
    if not known:
        raise UnavailableError("there are no rules yet: this edge has not reached its region since it was started")
    listed = ", ".join(map(repr, known[:SHOWN_MAX])) + (" ..." if len(known) > SHOWN_MAX else "")
    if not domain:
        raise InputError(f"domain is empty and there are several; name one of {listed}")
    raise NotFoundError(f"there is no domain {domain[:100]!r}; the rules have {listed}")


def unknown_measure(matcher: Matcher, descriptors: Sequence[Descriptor]) -> str | None:
    """What is wrong with the measures that a request names costs of: that no rule counts one. None: nothing.

    A misspelt measure would cost its rule's default instead, unseen.
    """
    for descriptor in descriptors:
        for measure in descriptor.cost if isinstance(descriptor.cost, Mapping) else ():
            if measure not in matcher.measures:
                known = sorted(matcher.measures)
                near = get_close_matches(measure, known, n=1)
                listed = ", ".join(map(repr, known[:SHOWN_MAX])) + (" ..." if len(known) > SHOWN_MAX else "")
                hint = f"did you mean {near[0]!r}?" if near else f"the rules count {listed}"
                return f"names the measure {measure!r}, which no rule of the domain counts; {hint}"
    return None


def start(
    decider: Decider, matcher: Matcher, descriptors: Sequence[Descriptor], whole: bool, peek: bool = False
) -> Answer | Coroutine[None, None, Answer]:
    """Have a request decided; what cannot be answered at once must be awaited. Charges are in the order of these calls.

    `whole`: the descriptors are those of Envoy's RLS, see `Matcher.match`.
    """
    applications = apply_rules(matcher, descriptors, whole)
    if not applications:
        return Answer(NOTHING, ())
    decided = _decide(decider, applications, peek)
    if isinstance(decided, Decision):
        return _limited(applications, decided)
    return _wait(applications, decided)


async def ask(decider: Decider, matcher: Matcher, descriptors: Sequence[Descriptor], whole: bool) -> Answer:
    """Have a request decided, and charged if it passes; `whole` as for `start`."""
    started = start(decider, matcher, descriptors, whole)
    return started if isinstance(started, Answer) else await started


def decision_ids() -> Callable[[], str]:
    """Makes ids that no other call, of this process or another, gives: a random prefix and a count."""
    prefix = secrets.token_hex(6)
    counter = count(1)
    return lambda: f"{prefix}-{next(counter)}"


def _decide(decider: Decider, applications: tuple[Application, ...], peek: bool) -> Decision | Awaitable[Decision]:
    try:
        return decider.decide(applications, peek)
    except Exception:  # our own fault is answered like an outage, by when_unavailable (design 4.1)
        log.exception("decision_failed")
        return verdicts.unavailable(applications)


async def _wait(applications: tuple[Application, ...], decided: Awaitable[Decision]) -> Answer:
    try:
        decision = await decided
    except Exception:  # as in _decide
        log.exception("decision_failed")
        decision = verdicts.unavailable(applications)
    return _limited(applications, decision)


def _limited(applications: tuple[Application, ...], decision: Decision) -> Answer:
    """Leave out rules without a limit: they say nothing."""
    spoken = decision.verdicts
    assert len(spoken) == len(applications), "a decider gives one verdict for each application, in order"
    hits = [application.descriptors for application in applications]
    if all(verdict.rule.limit.__class__ is not Unlimited for verdict in spoken):
        return Answer(decision, hits)
    kept = [(verdict, hit) for verdict, hit in zip(spoken, hits, strict=True) if _has_limit(verdict)]
    return Answer(Decision(decision.allowed, tuple(verdict for verdict, _ in kept)), [hit for _, hit in kept])


def _has_limit(verdict: Verdict) -> bool:
    return not isinstance(verdict.rule.limit, Unlimited)
