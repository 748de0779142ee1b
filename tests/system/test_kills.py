"""Processes are killed in the middle of load: no limit is exceeded, who lives answers, and soon all is as before.

All by the referee's own sums of what answers said. *Normal* is counted, not timed: over the first NORMAL_EPOCHS whole
epochs that begin at least 3 s after the process was ready again, at least 80 % of min(offered, limit) is admitted,
summed over these epochs. An edge or an allocator is not waited for: there the 3 s count from the kill. The machine may
be busy elsewhere: an epoch in which the load process, which nothing here can hold up, was late is passed over.
"""

import asyncio
import logging
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import pytest

from apportion.commands.demonstration.accounts import Account, RuleAccount
from apportion.commands.demonstration.referee import RegionLabel, compare
from apportion.core.meter import Meter
from tests.system.whole import DEADLINE_MS, EDGES, RATE, Whole, events, killed, logged, signalled, whole_system

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]  # 30 s each, three times as much on a machine that is busy

log = logging.getLogger(__name__)

Units = TypeVar("Units", int, RegionLabel)

WARM_LABELS = 9
"""Labels before a kill after which edges hold slices: an edge's share is the least of its last 8 ticks."""

NORMAL_EPOCHS = 5

NORMAL_PERCENT = 80

LATE_MS = 100
"""How late the load process is at most on a machine that lets every process run."""

LABELS_MAX = 30
"""A machine on which so many labels do not hold NORMAL_EPOCHS to judge by is too busy."""

EPOCHS_TO_NORMAL = 4
"""Epochs from the one of an instant to the first that begins 3 s after it at the earliest."""

MEMORY_EPOCHS = 2
"""Labels before the one of a region's kill whose sums may lack what it had not written: it writes twice a second."""

AGREE_S = 10.0


@dataclass(frozen=True, slots=True)
class Ride:
    """What a run came to: the last account, and the labels in which all must be normal."""

    account: Account
    normal: tuple[int, ...]

    def rule(self, whole: Whole, name: str) -> RuleAccount:
        """The account of a rule."""
        names = [question.rule.name for question in whole.questions]
        return self.account.rules[names.index(name)]


async def ridden(whole: Whole, normal_from: int) -> Ride:
    """Wait until the labels that must be normal are over; end the load."""
    late: dict[int, int] = {}
    for label in range(normal_from, normal_from + LABELS_MAX):
        await whole.traffic.through(label)
        late[label] = whole.traffic.late_ms(label)
        normal = tuple(each for each in late if late[each] <= LATE_MS)
        if len(normal) == NORMAL_EPOCHS:
            break
    else:
        raise AssertionError(f"the load process was late most of the time, in ms: {late}")
    ride = Ride(await whole.traffic.end(), normal)
    log.info("the load process was late by, in ms: %s", late)
    for edge, each in zip(EDGES, ride.account.edges, strict=True):
        log.info(
            "%s: sent %d, answered %d, failures %s, slowest %d ms (deadline %d ms)",
            *(edge, each.sent, each.answered, each.failures, each.slowest_ms, DEADLINE_MS),
        )
    for question, rule in zip(whole.questions, ride.account.rules, strict=True):
        log.info(
            "%s: offered %d, admitted %d, degraded %d, %.1f %% in %s, by label %s",
            *(question.rule.name, rule.offered, rule.admitted, rule.degraded, 100 * admitted_part(ride, rule)),
            *(normal, dict(sorted(rule.labels.items()))),
        )
    return ride


def admitted_part(ride: Ride, rule: RuleAccount) -> float:
    """Admitted / min(offered, limit), both summed over the labels that must be normal."""
    possible = sum(min(rule.offered_labels.get(label, 0), RATE) for label in ride.normal)
    return sum(rule.labels.get(label, 0) for label in ride.normal) / possible


def assert_held(whole: Whole, ride: Ride) -> None:
    """By the sum of the answers, no label of any rule is over its entitlement, and none of `lease` above Q_k.

    And no process wrote anything but events.
    """
    for question, rule in zip(whole.questions, ride.account.rules, strict=True):
        meter = Meter(question.limit, question.rule.divided)
        over = {label: meter.record(label, units) for label, units in sorted(rule.labels.items())}
        assert [label for label, units in over.items() if units] == [], (question.rule.name, rule.labels)
        assert rule.unlabelled == 0
        assert sum(rule.labels.values()) == rule.admitted > 0
    assert whole.noise() == {}
    above = {label: units for label, units in ride.rule(whole, "search").labels.items() if units > RATE}
    assert above == {}


def assert_normal(whole: Whole, ride: Ride) -> None:
    """From `normal_from` on, what is possible is admitted again."""
    for question, rule in zip(whole.questions, ride.account.rules, strict=True):
        part = admitted_part(ride, rule)
        assert part >= NORMAL_PERCENT / 100, (question.rule.name, ride.normal, rule.labels)


def assert_all_answered(ride: Ride, *edges: str) -> None:
    """Every request to these edges had an answer, degraded or not."""
    for edge, each in zip(EDGES, ride.account.edges, strict=True):
        if edge in edges:
            assert (each.failures, each.answered) == ({}, each.sent), edge


async def assert_sums_agree(whole: Whole, ride: Ride, untold: range = range(0)) -> None:
    """The region's own sums come to agree with the answers', but for the labels of `untold`.

    A request without an answer, or one that was answered without waiting for the region's, may have been charged.
    """
    differences: list[str] = []
    for _ in range(round(AGREE_S / 0.1)):
        quotas = await whole.sums()
        differences = [
            difference
            for rule, quota in zip(ride.account.rules, quotas, strict=True)
            for difference in compare(
                told(rule.labels, untold), told(quota.labels, untold), rule.unanswered + rule.degraded
            )
        ]
        if not differences:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(differences)


def told(labels: Mapping[int, Units], untold: range) -> dict[int, Units]:
    """Without the labels of `untold`."""
    return {label: units for label, units in labels.items() if label not in untold}


async def test_an_edge_is_killed_and_comes_back() -> None:
    """Its share lies idle, the others go on at once, and under its old id it gets its part again."""
    async with whole_system() as whole:
        await whole.traffic.begin(whole)
        await whole.traffic.labels(WARM_LABELS)
        edge = whole.traffic.hot()
        others = [name for name in EDGES if name != edge]
        at = await whole.epoch()
        await killed(whole.edges[edge])
        await whole.traffic.labels(2)
        await whole.start_edge(edge)
        await whole.edge_serves(edge)
        back = await whole.epoch()
        await whole.traffic.through(back + 2)
        failures = whole.traffic.accounts[-1].edges[EDGES.index(edge)].failures
        ride = await ridden(whole, at + EPOCHS_TO_NORMAL)
        assert_held(whole, ride)
        assert_all_answered(ride, *others)
        assert ride.account.edges[EDGES.index(edge)].failures == failures, "it answers all since it is back"
        assert_normal(whole, ride)
        await assert_sums_agree(whole, ride)


async def test_the_leader_is_killed_and_the_standby_takes_over() -> None:
    """The standby leads under the next generation; a new standby joins it."""
    async with whole_system() as whole:
        await whole.traffic.begin(whole)
        await whole.traffic.labels(WARM_LABELS)
        leader, generation = await whole.leader()
        at = await whole.epoch()
        await killed(leader)
        heir, now = await whole.leader(above=generation)
        assert heir is not leader
        assert now == generation + 1
        standby = await whole.start_allocator()
        await logged(standby, "rules_adopted")
        ride = await ridden(whole, at + EPOCHS_TO_NORMAL)
        assert_held(whole, ride)
        assert_all_answered(ride, *EDGES)
        assert_normal(whole, ride)
        await assert_sums_agree(whole, ride)
        assert (await whole.leader())[1] == now, "a standby that joins takes nothing"


async def test_the_region_is_killed_and_comes_back_on_its_file() -> None:
    """Edges spend the slices they hold and then deny; all is answered meanwhile."""
    async with whole_system() as whole:
        await whole.traffic.begin(whole)
        await whole.traffic.labels(WARM_LABELS)
        at = await whole.epoch()
        await killed(whole.region)
        await whole.start_region()
        await whole.region_serves()
        back = await whole.epoch()
        ride = await ridden(whole, back + EPOCHS_TO_NORMAL)
        assert_held(whole, ride)
        assert_all_answered(ride, *EDGES)
        assert_normal(whole, ride)
        await assert_sums_agree(whole, ride, untold=range(at - MEMORY_EPOCHS, back + 2))


async def test_region_and_leader_are_killed_together_and_the_region_is_back_at_once() -> None:
    """Nobody knows the plans any more, edges hold slices of them: the region lends nothing of labels that were claimed.

    It was warmed up, so that it is back within such a label; the standby takes the lead there.
    """
    async with whole_system() as whole:
        await whole.traffic.begin(whole)
        warmed = await whole.warm_region()
        await whole.traffic.labels(WARM_LABELS)
        leader, generation = await whole.leader()
        at = await whole.epoch()
        await killed(whole.region, leader)
        whole.begin_region(warmed)
        await whole.region_serves()
        back = await whole.epoch()
        heir, now = await whole.leader(above=generation)
        assert heir is not leader
        assert now == generation + 1
        await whole.start_allocator()
        ride = await ridden(whole, back + EPOCHS_TO_NORMAL)
        assert_held(whole, ride)
        assert_all_answered(ride, *EDGES)
        assert_normal(whole, ride)
        await assert_sums_agree(whole, ride, untold=range(at - MEMORY_EPOCHS, back + 2))


async def test_a_leader_that_wakes_up_leads_no_more() -> None:
    """A leader that stood still for longer than the standby waits finds another in its place, and stands by."""
    async with whole_system() as whole:
        await whole.traffic.begin(whole)
        await whole.traffic.labels(WARM_LABELS)
        zombie, generation = await whole.leader()
        at = await whole.epoch()
        signalled(zombie, signal.SIGSTOP)
        heir, now = await whole.leader(above=generation)
        assert heir is not zombie
        await whole.traffic.through(at + 2)
        signalled(zombie, signal.SIGCONT)
        lost = await logged(zombie, "lead_lost")
        assert (lost["generation"], lost["register_generation"]) == (generation, now)
        ride = await ridden(whole, at + EPOCHS_TO_NORMAL)
        assert_held(whole, ride)
        assert_all_answered(ride, *EDGES)
        assert_normal(whole, ride)
        await assert_sums_agree(whole, ride)
        # On a machine that starves the heir for 1.5 s it may lead again one day, then under a generation newly taken.
        first, *later = [event["generation"] for event in events(zombie, "lead_taken")]
        assert first == generation
        assert all(taken > now for taken in later)
