"""What a front door needs to answer: the rules of a domain, and somebody who decides. The doors know nothing else."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from apportion.core.decision import Decision
from apportion.core.match import Matcher
from apportion.core.request import Application


class Decider(Protocol):
    """An edge as its doors see it: attached to a region, or alone."""

    @property
    def ready(self) -> bool:
        """Whether rules are in force and requests can be decided; health says SERVING exactly then."""

    @property
    def domains(self) -> tuple[str, ...]:
        """Names of the domains that there are rules for, sorted; none before the first rules came."""

    def matcher(self, domain: str) -> Matcher | None:
        """The compiled rules of `domain`; None when there is no such domain. "" names the only one, if there is one."""

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision | Awaitable[Decision]:
        """Decide a request; at once where no crossing is needed. Never raises for an outage.

        The decision has one verdict for each application, in the same order, those of unlimited rules included.
        """


@dataclass(frozen=True, slots=True)
class Gauges:
    """What an edge shows of itself at one instant. None: an edge without a region has no such thing."""

    holdings: int
    crossings: int | None = None
    tickets_waiting: int | None = None
    epoch_error_ns: int | None = None
    reports_given_up: int | None = None
    rules_version: int | None = None
    stages: dict[tuple[str, str, str, bool], int] | None = None
    """Answers that stages of `when_unavailable` gave: domain, rule, stage, whether the request passed the rule."""


class Gauged(Protocol):
    """An edge that shows its gauges."""

    def gauges(self) -> Gauges:
        """How things are now."""
