"""The agent and its stream: attaching, silence, loss, rules that cannot be read, reports, leaving."""

import numpy as np

from apportion.core.errors import RulesError
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import (
    Acquire,
    GroupAnswer,
    Hello,
    Leave,
    Refused,
    Report,
    ReportAck,
    Return,
    Rules,
    Slices,
    Tick,
    Welcome,
)
from apportion.core.rule import RuleSet
from apportion.edge.agent import Agent
from apportion.edge.events import Send
from tests.edge.by_hand import EPOCH, TEXT, ByHand, attached, load, member, needs, quota


def test_hello_says_who_speaks_and_what_was_seen() -> None:
    """The first knows nothing; one on a later stream names the epoch and the rules it has."""
    edge = attached()
    edge.poll(1500 - 1)
    edge.lose()
    edge.attach(epoch=EPOCH + 1, left_ms=500)
    assert edge.said(Hello) == [Hello("edge-1", "here", 11, 0, 0), Hello("edge-1", "here", 11, EPOCH + 1, 1)]


def test_a_silent_stream_is_given_up_after_a_second_and_a_half() -> None:
    """Nothing heard for 1.5 s: another stream is asked for, and requests that crossed are answered."""
    edge = attached()
    edge.poll(1450)
    ticket = edge.waits(needs("exact"))
    edge.poll(49)
    assert edge.reconnects() == 0
    edge.poll(1)
    assert edge.reconnects() == 1
    assert edge.decisions()[ticket].degraded
    assert not edge.agent.attached
    assert edge.agent.ready, "the rules are in force and say what happens"


def test_each_message_breaks_the_silence() -> None:
    """The region's tick each second is enough."""
    edge = attached()
    for _ in range(5):
        edge.now_ns += EPOCH_NS
        edge.hear(edge.tick())
    assert edge.reconnects() == 0
    assert edge.agent.attached


def test_a_lost_crossing_is_answered_and_never_asked_again() -> None:
    """Nobody knows whether it was charged: denied as unavailable, not sent on the next stream."""
    edge = attached()
    ticket = edge.waits(needs("exact"))
    edge.lose()
    assert edge.decisions()[ticket].reason == "unavailable"
    edge.attach()
    assert len(edge.said(Acquire)) == 1


def test_without_a_region_what_must_cross_is_denied_at_once_and_slices_go_on() -> None:
    """Cut off: a slice is spent to its end, everything else is degraded."""
    edge = attached()
    edge.slices(lease=20)
    edge.lose()
    edge.poll(900)
    assert edge.ask(needs("lease", 5)).allowed
    decision = edge.ask(needs("exact"))
    assert (decision.reason, decision.degraded, decision.retry_after) == ("unavailable", True, 1.0)


def test_rules_that_cannot_be_read_leave_the_edge_alive() -> None:
    """A region of another version: logged, given up, tried again; the edge is not ready and answers."""

    def refuse(rules: Rules) -> RuleSet:
        raise RulesError(("rules.yaml:1: unknown",))

    edge = ByHand(Agent("edge-1", "here", 11, refuse))
    edge.attach()
    assert edge.notes() == ["rules_refused"]
    assert (edge.reconnects(), edge.agent.ready) == (1, False)
    assert edge.ask(needs("exact")).reason == "unavailable"


def test_rules_that_cannot_be_read_later_leave_the_former_in_force() -> None:
    """What was understood before stays, although the region's latest version is another."""
    broken = Rules(2, (("rules.yaml", "version: 9"),))
    edge = ByHand(Agent("edge-1", "here", 11, load))
    edge.attach()
    edge.hear(Welcome(broken, edge.tick(), replica=901))
    assert edge.agent.rules == broken
    assert "rules_refused" in edge.notes()
    assert set(edge.agent.matchers) == {"api"}


def test_rules_that_say_the_same_keep_what_was_held() -> None:
    """Slices of a rule that did not change are spent on."""
    edge = attached()
    edge.slices(lease=20)
    edge.poll(500)
    edge.hear(Welcome(Rules(2, (("rules.yaml", TEXT + "\n"),)), edge.tick(), replica=901))
    assert edge.ask(needs("lease")).allowed


def test_a_refused_edge_says_why_and_tries_again() -> None:
    """`edges_max` reached, or the same --id elsewhere: logged, and another stream asked for."""
    edge = attached()
    edge.hear(Refused("edges_max is 3", retry=True))
    assert edge.notes() == ["rules_adopted", "region_attached", "region_refused", "region_lost"]
    assert edge.reconnects() == 1


def test_a_report_is_sent_when_its_epoch_is_over() -> None:
    """Once, with what was offered, and nothing of the running epoch."""
    edge = attached()
    edge.slices(lease=20)
    edge.poll(900)
    edge.ask(needs("lease", 5))
    edge.poll(99)
    assert edge.said(Report) == []
    edge.poll(1)
    (report,) = edge.said(Report)
    assert (report.number, report.epoch, report.names[0].quota) == (1, 7, quota("lease"))
    assert (report.demand.tolist(), report.spent.tolist(), report.spent_epoch.tolist()) == ([5], [5], [7])


def test_a_report_waits_for_what_waits_but_no_longer_than_300_ms() -> None:
    """A request of epoch 7 is still under way: its report leaves when it is answered, or 0.3 s into epoch 8."""
    edge = attached()
    edge.poll(950)
    edge.waits(needs("exact"))
    edge.poll(60)
    assert edge.said(Report) == []
    edge.answer(GroupAnswer(1, (member(),)))
    assert [report.demand.tolist() for report in edge.said(Report)] == [[1]]


def test_a_report_is_resent_until_it_is_acknowledged() -> None:
    """Each second on the same stream, at once on the next; never after the acknowledgement; always the same."""
    edge = attached()
    edge.slices(lease=20)
    edge.poll(900)
    edge.ask(needs("lease", 5))
    edge.poll(100)
    edge.lose()
    edge.attach(epoch=8)
    first, again = (report for report in edge.said(Report) if report.number == 1)
    assert (first.spent.tolist(), again.spent.tolist()) == ([5], [5])
    assert again.names[0].quota == quota("lease")
    for _ in range(2):
        edge.poll(500)
        edge.hear(edge.tick())
    assert len([report for report in edge.said(Report) if report.number == 1]) == 3
    edge.hear(ReportAck(1))
    for _ in range(4):
        edge.poll(500)
        edge.hear(edge.tick())
    assert len([report for report in edge.said(Report) if report.number == 1]) == 3


def test_leaving_returns_units_reports_and_says_goodbye() -> None:
    """In this order: the request that waits is answered, slices of now and later come back, the report, Leave."""
    edge = attached()
    edge.slices(lease=20)
    edge.slices(epoch=EPOCH + 1, lease=30)
    edge.poll(900)
    edge.ask(needs("lease", 5))
    edge.poll(101)
    edge.ask(needs("lease", 2))
    ticket = edge.waits(needs("exact"))
    before = len(edge.commands)
    edge.commands += edge.agent.leave(edge.now_ns)
    assert edge.decisions()[ticket].degraded
    said = [each.message for each in edge.commands[before:] if isinstance(each, Send)]
    assert [type(each) for each in said] == [Return, Report, Leave]
    returned, report = said[0], said[1]
    assert isinstance(returned, Return) and isinstance(report, Report)
    assert (returned.epoch, returned.units.tolist()) == (EPOCH + 1, [28])
    assert (report.epoch, report.spent.tolist(), report.spent_epoch.tolist()) == (8, [2], [8])


def test_after_leaving_nothing_is_in_hand() -> None:
    """The edge's own right is lowered first."""
    edge = attached()
    edge.slices(lease=20)
    edge.poll(900)
    edge.ask(needs("lease", 5))
    edge.poll()
    edge.lose()
    edge.attach(left_ms=100)
    edge.slices(lease=20)
    edge.agent.leave(edge.now_ns)
    assert [holding.in_hand(EPOCH, edge.now_ns) for holding in edge.agent._holdings] == [0]


def test_leaving_without_a_region_says_nothing() -> None:
    """There is nobody to say it to."""
    edge = attached()
    edge.lose()
    assert edge.agent.leave(edge.now_ns) == []


def test_the_epoch_never_goes_back() -> None:
    """A late or wrong tick of an earlier epoch changes nothing; a later one is followed at once."""
    edge = attached()
    edge.hear(Tick(20, EPOCH_NS))
    edge.hear(Tick(3, EPOCH_NS))
    assert edge.agent.clock.now(edge.now_ns) == 20


def test_slices_of_a_quota_never_declared_are_void() -> None:
    """Ids without a name give nothing."""
    edge = attached()
    edge.hear(Slices(EPOCH, 1, 1, (), np.array([5], np.uint32), np.array([20], np.uint64)))
    edge.poll(900)
    edge.waits(needs("lease"))
