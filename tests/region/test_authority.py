"""The authority and who is attached: edges, allocators, time, reports, what is returned, plans."""

import numpy as np
import pytest

from apportion.core.allocator_messages import AllocatorHello, Column, Governance, Plan, RegisterAnswer
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import (
    Acquire,
    EpochKind,
    EpochMark,
    Hello,
    Leave,
    Quota,
    QuotaName,
    Report,
    Rules,
    Slices,
    Tick,
    Welcome,
)
from apportion.region.events import AllocatorSpoke, Close
from tests.region.by_hand import (
    ALLOCATOR,
    E1,
    E2,
    EPOCH,
    REPLICA,
    RULES,
    ByHand,
    attached,
    declared,
    group,
    refusals,
)

# --- attaching


def test_an_edge_is_welcomed_with_rules_and_time() -> None:
    """And with the replica's incarnation."""
    region = ByHand()
    region.now_ns += EPOCH_NS // 4
    region.attach()
    assert region.sent(Welcome, 1) == [Welcome(RULES, Tick(EPOCH, EPOCH_NS * 3 // 4), REPLICA)]


def test_no_more_edges_attach_than_edges_max() -> None:
    """The fourth of three is told so and may try again; there is room once another has left."""
    region = ByHand()
    for session in (1, 2, 3, 4):
        region.attach(session, incarnation=session)
    assert refusals(region, 4) == [("edges_max is 3 and as many are attached", True)]
    region.edge(2, Leave())
    region.attach(5, incarnation=4)
    assert len(region.sent(Welcome, 5)) == 1


def test_the_newer_process_of_the_same_id_wins_and_the_older_one_stays_out() -> None:
    """It takes no further place, and the older one is told to use another --id, and taken in again only when the newer
    one has gone.
    """
    region = ByHand()
    region.attach(1, E1, "edge")
    region.attach(2, E2, "edge")
    assert refusals(region, 1) == [("edge 'edge' attached anew", False)]
    assert Close(1) in region.commands
    region.attach(3, E1, "edge")
    assert refusals(region, 3) == [("another process attached as edge 'edge': give each its own --id", True)]
    assert set(region.authority.edges) == {2}
    region.edge(2, Leave())
    region.attach(4, E1, "edge")
    assert set(region.authority.edges) == {4}


def test_no_incarnation_is_attached_under_two_names() -> None:
    """A copied machine, or one that poses as the replica, would spend the units of one holder twice."""
    region = ByHand()
    region.attach(1, E1, "edge")
    region.attach(2, E1, "copy")
    region.attach(3, REPLICA, "replica")
    refused = [("this incarnation is attached already; start the process anew", False)]
    assert refusals(region, 2) == refused
    assert refusals(region, 3) == refused
    assert set(region.authority.edges) == {1}


def test_the_same_process_on_a_new_stream_replaces_its_old_one() -> None:
    """Which the region had not noticed to be gone yet."""
    region = ByHand()
    region.attach(1, E1)
    region.attach(2, E1)
    assert refusals(region, 1) == [("edge 'edge-11' attached anew", True)]
    assert set(region.authority.edges) == {2}


@pytest.mark.parametrize("message", [Acquire(1, (), ()), Report(1, EPOCH), Leave()])
def test_a_stream_begins_with_hello(message: object) -> None:
    """Anything else is refused, and the region lives."""
    region = ByHand()
    region.edge(1, message)
    assert refusals(region) == [("the first message of a stream is Hello, and only the first", False)]


def test_a_second_hello_is_refused() -> None:
    """On one stream there is one edge."""
    region = attached()
    region.edge(1, Hello("other", "here", 99, 0, 0))
    assert refusals(region) == [("the first message of a stream is Hello, and only the first", False)]


def test_each_epoch_every_stream_is_told_the_time() -> None:
    """Once, when it begins."""
    region = attached()
    region.lead()
    before = len(region.sent(Governance, ALLOCATOR))
    region.pass_ms(999)
    assert region.sent(Tick, 1) == []
    region.pass_ms(1)
    assert region.sent(Tick, 1) == [Tick(EPOCH + 1, EPOCH_NS)]
    assert len(region.sent(Governance, ALLOCATOR)) > before


# --- allocators


def test_an_allocator_learns_rules_register_and_holders() -> None:
    """Edges and the replica itself."""
    region = attached()
    region.step(AllocatorSpoke(ALLOCATOR, AllocatorHello("allocator", 77)))
    assert region.sent(Rules, ALLOCATOR) == [RULES]
    (governance,) = region.sent(Governance, ALLOCATOR)
    assert [(each.incarnation, each.replica) for each in governance.holders] == [(E1, False), (REPLICA, True)]
    assert governance.register.mark(EPOCH) == EpochMark(EPOCH, EpochKind.DIRECT)


def test_leads_and_claims_are_answered_with_the_register() -> None:
    """Done, and what it says now; a claim of another generation is not done."""
    region = attached()
    region.lead()
    region.claim(EPOCH + 1)
    region.claim(EPOCH + 1, generation=2)
    answers = region.sent(RegisterAnswer, ALLOCATOR)
    assert [(each.done, each.register.generation, each.register.highest) for each in answers] == [
        (True, 1, EPOCH),
        (True, 1, EPOCH + 1),
        (False, 1, EPOCH + 1),
    ]


def test_a_store_that_fails_claims_nothing() -> None:
    """The answer is no, and the region goes on."""
    region = attached()
    region.lead()
    region.failing = True
    region.claim(EPOCH + 1)
    assert region.sent(RegisterAnswer, ALLOCATOR)[-1].done is False


def test_a_plan_reaches_every_edge_with_its_own_column() -> None:
    """40 for the first, 50 for the second; the pool's 10 stay here."""
    region = attached()
    region.attach(2, E2)
    region.lead()
    region.claim(EPOCH + 1)
    region.plan(e1=40, e2=50, pool=10)
    assert [each.units.tolist() for session in (1, 2) for each in region.planned_slices(session)] == [[40], [50]]
    assert region.authority.lending.plans[EPOCH + 1].parts == {1: 10}


def test_an_edge_that_attaches_later_gets_the_slices_of_now_and_next() -> None:
    """With names, as on any new stream."""
    region = attached()
    region.planned(e1=40, pool=60)
    region.close(1)
    region.attach(5, E1)
    (slices,) = region.sent(Slices, 5)
    assert (slices.epoch, slices.units.tolist(), len(slices.names)) == (EPOCH + 1, [40], 1)


def test_a_restarted_edge_gets_nothing_of_its_old_slice() -> None:
    """The plan named another incarnation (S4)."""
    region = attached()
    region.planned(e1=40, pool=60)
    region.attach(5, 33, f"edge-{E1}")
    (slices,) = region.sent(Slices, 5)
    assert slices.ids.tolist() == []


@pytest.mark.parametrize(
    "claimed, generation, version, units",
    [(False, 1, 1, 100), (True, 2, 1, 100), (True, 1, 2, 100), (True, 1, 1, 99), (True, 1, 1, 101)],
    ids=["unclaimed", "other generation", "other rules", "too little", "too much"],
)
def test_a_plan_that_may_not_be_is_refused(claimed: bool, generation: int, version: int, units: int) -> None:
    """Nobody hears of it, and the epoch's divided quotas have no answer."""
    region = attached()
    region.lead()
    if claimed:
        region.claim(EPOCH + 1)
    region.plan(generation=generation, version=version, e1=40, pool=units - 40)
    assert region.notes()[-1] == "plan_refused"
    assert region.planned_slices(1) == []
    assert region.authority.lending.plans == {}


def test_a_plan_is_taken_once() -> None:
    """A copy, or another plan of the same epoch, changes nothing (S3)."""
    region = attached()
    region.lead()
    region.claim(EPOCH + 1)
    region.plan(e1=40, pool=60)
    region.plan(e1=90, pool=10)
    assert [each.units.tolist() for each in region.planned_slices(1)] == [[40]]
    assert region.authority.lending.plans[EPOCH + 1].parts == {1: 60}


def test_a_plan_that_names_what_was_never_declared_is_refused() -> None:
    """An id without a name is no quota, and not the first one either."""
    region = attached()
    region.lead()
    region.claim(EPOCH + 1)
    column = Column(REPLICA, np.array([40], np.uint32), np.array([100], np.uint64))
    region.step(AllocatorSpoke(ALLOCATOR, Plan(1, EPOCH + 1, 1, (), (column,))))
    assert region.notes()[-1] == "plan_refused"


def test_names_of_rules_no_longer_in_force_do_not_spoil_the_others() -> None:
    """A plan of the former rules is refused; the names that it declared besides are known, the next is taken."""
    region = attached()
    region.lead()
    region.claim(EPOCH + 1)
    names = (QuotaName(0, Quota("api", "gone", b"")), *declared()[1:])
    region.step(AllocatorSpoke(ALLOCATOR, Plan(1, EPOCH + 1, 0, names, ())))
    column = Column(REPLICA, np.array([1], np.uint32), np.array([100], np.uint64))
    region.step(AllocatorSpoke(ALLOCATOR, Plan(1, EPOCH + 1, 1, (), (column,))))
    assert EPOCH + 1 in region.authority.lending.plans


def test_a_plan_names_quotas_whatever_was_forgotten_since_they_were_declared() -> None:
    """40 idle epochs after its names were declared, the ids of this region may mean others: looked up by name again."""
    region = attached()
    region.lead()
    region.claim(EPOCH + 1)
    column = Column(REPLICA, np.array([1], np.uint32), np.array([100], np.uint64))
    region.step(AllocatorSpoke(ALLOCATOR, Plan(1, EPOCH + 1, 1, declared(), (column,))))
    region.pass_ms(40_000)
    assert len(region.authority.table) == 0
    region.ask(group(("exact", 1)))
    region.claim(EPOCH + 41)
    region.step(AllocatorSpoke(ALLOCATOR, Plan(1, EPOCH + 41, 1, (), (column,))))
    (named,) = region.authority.lending.plans[EPOCH + 41].named
    known = region.authority.table.by_id(named)
    assert known is not None
    assert known.quota.rule == "lease"
