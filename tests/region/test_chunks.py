"""What a region lends of a leased quota: parts of what is left, charged at once, taken back once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.commands.explain import as_text
from apportion.core.limit import EPOCH_NS, PeriodLimit
from apportion.core.messages import (
    Acquire,
    AcquireAnswer,
    Group,
    Hello,
    Lent,
    Member,
    Outcome,
    QuotaName,
    Report,
    Rules,
)
from apportion.core.rules_file import parse_rules
from apportion.proto.v1 import region_pb2
from apportion.region.authority import Authority
from apportion.region.chunks import LASTS_NS, TOLD_NS
from apportion.region.events import EdgeSpoke, Event, Note, RollUp, RulesChanged
from apportion.region.explain import explain
from apportion.region.memory_store import MemoryStore
from apportion.region.region import Region
from tests.region.by_hand import EPOCH, REGISTER, REPLICA, TEXT, ByHand, quota, store_key

DAILY = "  - {name: daily, match: {d: '*'}, key: [d], limit: {quota: 100/day, anchor: calendar}, enforce: lease,\n"
TEXTS = (("rules.yaml", TEXT + DAILY + "     when_unavailable: [deny]}\n"),)
NAMES = (QuotaName(0, quota("daily")),)
DAY = "1970-01-01T00Z/day"
"""T0 is 100 s after 1970."""


@dataclass
class Leasing(ByHand):
    """A region with a leased quota, whose store takes back what a report gives back."""

    added: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.authority = Authority(Rules(1, TEXTS), parse_rules(TEXTS), REGISTER, REPLICA)

    def _store(self, command: Any) -> Event | None:
        if isinstance(command, RollUp) and not self.failing:
            if (command.source, command.number) not in self.added:
                for row in command.given_back:
                    self.buckets.periods.give_back(row)
            self.added.add((command.source, command.number))
        return super()._store(command)

    @property
    def used(self) -> int:
        """What the store has charged of the day."""
        known = self.authority.table.find(quota("daily"), EPOCH)
        assert known is not None and isinstance(known.limit, PeriodLimit)
        record = self.buckets.periods.get(self.buckets.periods.key(known.store_key, known.limit, self.now_ns))
        return record.counter.used if record is not None else 0

    def cross(self, cost: int = 1, ahead: int = 0, edge: int = 1) -> AcquireAnswer:
        """A request of that cost, 0 = none, and so many units asked for ahead."""
        groups = (Group(1, (Member(0, cost),)),) if cost else ()
        self.edge(edge, Acquire(1, NAMES, groups, ((0, ahead),) if ahead else ()))
        return self.answers(edge)[-1]

    def lend(self, ahead: int, edge: int = 1) -> int:
        """Units of the chunk that was lent."""
        return sum(lent.units for lent in self.cross(0, ahead, edge).lent)

    def tell(self, number: int, spent: int = 0, back: int = 0, edge: int = 1, period: str = DAY) -> None:
        """A report of that number."""
        ids, units = np.array([0], np.uint32), np.array([spent], np.uint64)
        row = (ids, np.array([EPOCH], np.uint64), units) if spent else ()
        given = {"given_ids": ids, "given": np.array([back], np.uint64), "given_period": (period,)} if back else {}
        columns = dict(zip(("spent_ids", "spent_epoch", "spent"), row, strict=False))
        self.edge(edge, Report(number, EPOCH, NAMES, **columns, **given))  # type: ignore[arg-type]

    def open(self) -> dict[int, int]:
        """Units that are open, by incarnation."""
        known = self.authority.table.find(quota("daily"), self.authority.epoch)
        assert known is not None
        return self.authority.desk.chunks.open(known.id, self.now_ns)


def leasing(edges: int = 1) -> Leasing:
    """With so many edges, sessions and incarnations 1 and 101 on."""
    region = Leasing()
    for edge in range(1, edges + 1):
        region.attach(edge, 100 + edge)
    return region


def test_a_chunk_is_half_of_an_edges_part_of_what_is_left() -> None:
    """Of 100 for one edge 50, of 50 then 25; it is charged, and rolled up only when its spending is told."""
    region = leasing()
    answer = region.cross(0, 80)
    assert answer.lent == (Lent(0, EPOCH, 50, LASTS_NS, DAY),)
    assert (region.used, region.rolled) == (50, {})
    assert region.lend(80) == 25
    region.tell(1, spent=30)
    assert region.rolled == {(store_key("daily"), EPOCH): 30}
    assert (region.used, region.open()) == (75, {101: 45})


def test_no_more_than_asked_and_what_waits_comes_first() -> None:
    """A request of 90 is admitted; of the ten that are left one edge is lent five, and then asks for two."""
    region = leasing()
    answer = region.cross(90, 20)
    assert (answer.groups[0].admitted, answer.groups[0].members[0].remaining) == (1, 10)
    assert [lent.units for lent in answer.lent] == [5]
    assert region.lend(2) == 2


def test_parts_are_of_edges_that_asked_within_the_life_of_a_chunk_and_are_attached() -> None:
    """Three edges: 17 of 100; when one has not asked for ten seconds and one has gone, an edge has its part alone."""
    region = leasing(3)
    for edge in (1, 2, 3):
        region.edge(edge, Acquire(1, NAMES, (Group(1, (Member(0, 0),)),)))
    assert region.lend(80, 1) == 17
    region.pass_ms(6000)
    region.edge(2, Acquire(1, NAMES, (Group(1, (Member(0, 0),)),)))
    region.pass_ms(4001)
    region.close(2)
    assert region.lend(80, 1) == 42


def test_a_chunk_ends_with_the_day() -> None:
    """Three seconds before midnight it lasts three seconds; after it the next day's has the whole allowance again."""
    region = leasing()
    region.pass_ms((86_400 - 100 - 3) * 1000)
    answer = region.cross(0, 80)
    assert [(lent.units, lent.lasts_ns, lent.period) for lent in answer.lent] == [(50, 3 * EPOCH_NS, DAY)]
    region.pass_ms(3000)
    answer = region.cross(0, 80)
    assert [(lent.units, lent.period) for lent in answer.lent] == [(50, "1970-01-02T00Z/day")]
    region.tell(1, back=50)
    assert region.used == 50, "what comes back late is of the day before"


def test_what_is_given_back_is_lent_again_and_a_copy_of_the_report_changes_nothing() -> None:
    """Fifty come back once, by one report."""
    region = leasing()
    region.lend(80)
    region.tell(1, back=50)
    region.tell(1, back=50)
    assert (region.used, region.open()) == (0, {})
    region.lend(80)
    region.tell(1, back=50)
    assert region.used == 50
    totals = region.authority.desk.totals["api", "daily"]
    assert (totals.lent, totals.given_back) == (100, 50)


def test_a_report_whose_store_failed_is_counted_when_it_comes_again() -> None:
    """Neither taken back nor settled before."""
    region = leasing()
    region.lend(80)
    region.failing = True
    region.tell(1, spent=10, back=40)
    assert (region.used, region.open()) == (50, {101: 50})
    region.failing = False
    region.tell(1, spent=10, back=40)
    assert (region.used, region.open()) == (10, {})


def test_a_chunk_under_a_name_that_nobody_counts_gives_nothing_back() -> None:
    """The rule's period is another by now: its own counter is not touched."""
    region = leasing()
    region.lend(80)
    for number, period in enumerate(("1970-01-01T00Z/hour", "1970-01-02T00Z/day", "first_use/day", "")):
        region.tell(number, back=10, period=period)
    assert region.used == 50


def test_spending_a_chunk_is_no_more_than_was_issued() -> None:
    """It is charged under no label, so no label's book says that it may be spent."""
    region = leasing()
    region.lend(80)
    region.tell(1, spent=50)
    assert region.notes() == ["edge_attached"]


def test_a_chunk_of_former_rules_may_still_be_spent_and_given_back() -> None:
    """What an edge tells of it after the rule has become `enforce: region` is nobody's fault."""
    region = leasing()
    region.lend(80)
    texts = tuple((name, text.replace("enforce: lease,", "enforce: region,")) for name, text in TEXTS)
    region.step(RulesChanged(Rules(2, texts), parse_rules(texts)))
    region.tell(1, spent=20, back=30)
    assert region.used == 20
    assert "report_above_issued" not in region.notes()


def test_nothing_is_lent_where_the_store_fails_or_nothing_is_left() -> None:
    """And a quota that is used up says so to who waits."""
    region = leasing()
    region.failing = True
    assert region.cross(1, 80).lent == ()
    region.failing = False
    answer = region.cross(100, 80)
    assert (answer.groups[0].admitted, answer.lent) == (1, ())
    assert region.cross(1, 80).groups[0].members[0].outcome is Outcome.OVER_LIMIT


def test_a_chunk_is_open_until_its_last_report_is_due() -> None:
    """An edge that was killed keeps it: charged for ever, told of for 13 seconds."""
    region = leasing()
    region.lend(80)
    region.close(1)
    region.pass_ms(LASTS_NS / 1e6 + TOLD_NS / 1e6 - 1)
    assert region.open() == {101: 50}
    region.pass_ms(1)
    assert (region.open(), region.used) == ({}, 50)


steps = st.tuples(
    st.integers(1, 3), st.integers(1, 60), st.integers(0, 60), st.integers(0, 60), st.booleans(), st.integers(0, 4000)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=25))
def test_spent_and_open_and_remaining_are_the_allowance(run: list[tuple[int, int, int, int, bool, int]]) -> None:
    """Whatever edges borrow, spend, give back and forget; every report comes twice."""
    region = leasing(3)
    admitted = 0
    held = dict.fromkeys((1, 2, 3), 0)
    for number, (edge, wanted, use, back, loses, wait_ms) in enumerate(run, start=1):
        answer = region.cross(1 + wanted % 3, wanted, edge)
        admitted += answer.groups[0].admitted * (1 + wanted % 3)
        held[edge] += sum(lent.units for lent in answer.lent)
        spent, given = min(use, held[edge]), min(back, max(0, held[edge] - use))
        admitted += spent
        held[edge] -= spent + (0 if loses else given)
        for _ in range(2):
            region.tell(number, spent, 0 if loses else given, edge)
        region.now_ns += wait_ms * 1000
        remaining = 100 - region.used
        assert admitted + sum(held.values()) + remaining == 100
        assert admitted <= 100
    known = region.authority.table.find(quota("daily"), EPOCH)
    assert known is not None
    assert not [each for each in region.commands if isinstance(each, Note) and each.level == "error"]


@pytest.mark.asyncio
async def test_explain_tells_what_edges_hold_beside_what_is_used() -> None:
    """Half of a hundred is lent to one edge: used, until it comes back."""
    texts = (("rules.yaml", TEXTS[0][1].replace("[deny]}\n", "[deny], wrong_costs: noise}\n")),)
    region = Region(MemoryStore(lambda: 1, lambda: 10**18), parse_rules(texts), texts)
    await region.start()
    session, outbox = region.open_session()
    region.feed(EdgeSpoke(session, Hello("edge-1", "here", 101, 0, 0)))
    region.feed(EdgeSpoke(session, Acquire(1, NAMES, (), ((0, 80),))))
    while not isinstance(await outbox.get(), AcquireAnswer):
        pass
    said = await explain(region, region_pb2.ExplainRequest(rule="daily", dimensions={"d": "k"}))
    await region.stop()
    (state,) = said.quotas
    assert (state.used, state.lent, [holder.chunk for holder in state.holders]) == (50, 50, [50])
    text = as_text(said, state)
    assert "used        50 units, 50 of them lent to edges and not spent, as far as they told; whole again in" in text
    assert "edge edge-1 (here): chunk 50, demand 0" in text
