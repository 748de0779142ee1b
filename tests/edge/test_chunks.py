"""Chunks of a leased quota at one edge: spent at once, kept no longer than they last, given back once."""

import pytest

from apportion.core.limit import EPOCH_NS
from apportion.core.match import apply_rules
from apportion.core.messages import Acquire, GroupAnswer, Lent, Outcome, Report, ReportAck, Rules, Slices
from apportion.core.request import Application, Descriptor
from apportion.edge.chunks import Leased, Unspent
from apportion.edge.events import Send
from apportion.edge.ids import Ids
from tests.edge.by_hand import EPOCH, RULES, T0, TEXT, ByHand, attached, member, needs, over, quota, rule

DAY = "2026-12-01T00Z/day"
RESET_NS = 3600 * EPOCH_NS
LASTS_NS = 10 * EPOCH_NS


def asked(edge: ByHand) -> list[int]:
    """Units asked for ahead by each crossing so far."""
    return [sum(units for _, units in acquire.ahead) for acquire in edge.said(Acquire)]


def granted(edge: ByHand, units: int, left: int = 999, lasts_ns: int = LASTS_NS, period: str = DAY) -> None:
    """The region admits what crossed and lends a chunk."""
    acquire = edge.last(Acquire)
    (identity, _), *_ = acquire.ahead
    answers = [GroupAnswer(group.count, (member(remaining=left, reset_ns=RESET_NS),)) for group in acquire.groups]
    edge.answer(*answers, lent=(Lent(identity, EPOCH, units, lasts_ns, period),))


def holding(units: int = 5, lasts_ns: int = LASTS_NS) -> ByHand:
    """An edge that was just lent so many units."""
    edge = attached()
    edge.waits(needs("leased"))
    granted(edge, units, lasts_ns=lasts_ns)
    return edge


def spend(edge: ByHand, count: int = 1, cost: int = 1) -> list[int | None]:
    """Requests decided at once: what each is told to remain."""
    decisions = [edge.ask(needs("leased", cost)) for _ in range(count)]
    assert all(decision.allowed for decision in decisions)
    return [decision.remaining for decision in decisions]


def passes(edge: ByHand, seconds: float) -> None:
    """Time passes, with the region's ticks; reports are acknowledged."""
    for _ in range(round(seconds * 10)):
        edge.now_ns += EPOCH_NS // 10
        edge.hear(edge.tick())
        for report in edge.said(Report):
            edge.hear(ReportAck(report.number))


def given(edge: ByHand) -> dict[str, int]:
    """What went back, by period: each report counts once."""
    back: dict[str, int] = {}
    for report in {report.number: report for report in edge.said(Report)}.values():
        for units, period in zip(report.given.tolist(), report.given_period, strict=True):
            back[period] = back.get(period, 0) + units
    return back


def spent(edge: ByHand) -> dict[int, int]:
    """What was spent, by label: each report counts once."""
    labels: dict[int, int] = {}
    for report in {report.number: report for report in edge.said(Report)}.values():
        for label, units in zip(report.spent_epoch.tolist(), report.spent.tolist(), strict=True):
            labels[label] = labels.get(label, 0) + units
    return labels


def test_what_fits_the_chunk_is_decided_at_once_and_reported() -> None:
    """One crossing for six requests: the first asks for what five seconds of its pace are."""
    edge = holding(5)
    assert asked(edge) == [5]
    assert spend(edge, 5) == [998, 997, 996, 995, 994]
    edge.waits(needs("leased"))
    assert len(asked(edge)) == 2
    passes(edge, 1.1)
    assert spent(edge) == {EPOCH: 5}
    assert given(edge) == {}


def test_what_is_left_goes_back_once_when_its_time_has_passed() -> None:
    """Ten seconds after it was asked for, less what two clocks may differ by in them: 2 ms."""
    edge = holding(5)
    spend(edge, 2)
    passes(edge, 9.9)
    edge.now_ns += 97_999_999
    spend(edge)
    assert given(edge) == {}
    edge.now_ns += 1
    edge.waits(needs("leased"))
    passes(edge, 5)
    assert given(edge) == {DAY: 2}


def test_a_chunk_ends_with_its_period() -> None:
    """The day has three seconds left: what comes then is of the next one."""
    edge = holding(5, lasts_ns=3 * EPOCH_NS)
    passes(edge, 2.9)
    spend(edge)
    passes(edge, 0.1)
    edge.waits(needs("leased"))
    granted(edge, 4, period="2026-12-02T00Z/day")
    spend(edge)
    passes(edge, 12)
    assert given(edge) == {DAY: 4, "2026-12-02T00Z/day": 3}


def test_an_edge_that_leaves_gives_all_back() -> None:
    """With its last report, before it says goodbye."""
    edge = holding(5)
    spend(edge, 2)
    said = [each.message for each in edge.agent.leave(edge.now_ns) if isinstance(each, Send)]
    (report,) = (each for each in said if isinstance(each, Report))
    assert (report.spent.tolist(), report.given.tolist(), report.given_period) == ([2], [3], (DAY,))


def test_what_does_not_fit_crosses_and_the_next_chunk_takes_the_place_of_the_first() -> None:
    """One chunk at a time: no edge gathers more than its part."""
    edge = holding(5)
    edge.waits(needs("leased", 7))
    assert asked(edge) == [5, 40]
    granted(edge, 12)
    assert spend(edge, cost=12) == [987]
    passes(edge, 1.1)
    assert given(edge) == {DAY: 5}


def test_a_chunk_that_is_half_there_is_not_asked_for_anew() -> None:
    """Costs that never fit would have it lent, and given back, over and over."""
    edge = holding(40)
    edge.waits(needs("leased", 41))
    assert asked(edge) == [5, 210]
    granted(edge, 205)
    spend(edge, cost=100)
    edge.waits(needs("leased", 106))
    assert asked(edge) == [5, 210, 1000], "two costs of 41 and 106 in a second are more than there is"


def test_a_refused_request_puts_back_what_it_took() -> None:
    """Another rule refused; where the chunk was given up meanwhile, its units follow it."""
    edge = holding(5)
    ticket = edge.waits(needs("leased", 3), needs("exact"))
    assert not edge.decisions().get(ticket)
    edge.answer(GroupAnswer(0, (over(100),)))
    assert edge.decisions()[ticket].allowed is False
    assert spend(edge, cost=5) == [994]
    edge = holding(5)
    edge.waits(needs("leased", 3), needs("exact"), depart=False)
    edge.waits(needs("leased", 4))
    acquire = edge.last(Acquire)
    (identity, _), *_ = acquire.ahead
    answers = GroupAnswer(0, (over(100),)), GroupAnswer(1, (member(remaining=990, reset_ns=RESET_NS),))
    edge.answer(*answers, lent=(Lent(identity, EPOCH, 6, LASTS_NS, DAY),))
    passes(edge, 1.1)
    assert given(edge) == {DAY: 5}


def test_who_is_refused_is_told_the_reset_and_asks_again_after_two_seconds() -> None:
    """Others' chunks may have come back; a quota of `region` is not asked about before it resets."""
    edge = attached()
    edge.waits(needs("leased"))
    edge.answer(GroupAnswer(0, (member(Outcome.OVER_LIMIT, 0, RESET_NS, reset_ns=RESET_NS),)))
    passes(edge, 1.9)
    refused = edge.ask(needs("leased"))
    assert (refused.allowed, refused.retry_after) == (False, 3598.1)
    passes(edge, 0.1)
    edge.waits(needs("leased"))
    assert len(asked(edge)) == 2


def test_a_peek_and_a_request_without_cost_have_nothing_lent() -> None:
    """Either would charge what it only looks at."""
    edge = attached()
    edge.waits(needs("leased"), peek=True)
    edge.answer(GroupAnswer(1, (member(remaining=1000, reset_ns=RESET_NS),)))
    edge.waits(needs("leased", 0))
    assert asked(edge) == [0, 0]
    edge = holding(5)
    assert edge.ask(needs("leased", 5), peek=True).remaining == 999
    assert spend(edge, cost=5) == [994]


def test_a_crossing_that_was_lost_lends_nothing() -> None:
    """Whatever the region charged stays charged: nobody spends it, and nobody gives it back."""
    edge = attached()
    edge.waits(needs("leased"))
    acquire = edge.last(Acquire)
    edge.lose()
    edge.attach()
    edge.answer(number=acquire.number, lent=(Lent(0, EPOCH, 5, LASTS_NS, DAY),))
    edge.waits(needs("leased"))
    passes(edge, 12)
    assert given(edge) == {}


@pytest.mark.parametrize("limit", ["2000/day, anchor: calendar", "1000/hour, anchor: calendar"])
def test_a_chunk_of_another_limit_goes_back(limit: str) -> None:
    """It may be of a period that nobody counts any more; its name says which."""
    edge = holding(5)
    changed = Rules(2, (("rules.yaml", TEXT.replace("1000/day, anchor: calendar", limit)),))
    edge.hear(changed)
    matcher = edge.agent.matchers["api"]
    edge.waits(*apply_rules(matcher, [Descriptor({"c": "k"})], whole=False))
    passes(edge, 1.1)
    assert given(edge) == {DAY: 5}


def test_a_chunk_of_the_same_limit_is_spent_further_under_other_rules() -> None:
    """With the same reset and the same count of what is left: nothing of the quota has changed."""
    edge = holding(5)
    before = edge.ask(needs("leased"))
    edge.hear(Rules(2, (("rules.yaml", TEXT + "# a word\n"),)))
    after = edge.ask(*apply_rules(edge.agent.matchers["api"], [Descriptor({"c": "k"})], whole=False))
    assert [each.remaining for each in (before, after)] == [998, 997]
    assert [each.verdicts[0].reset_after_ns for each in (before, after)] == [RESET_NS, RESET_NS]


@pytest.mark.parametrize("limit", ["2000/day, anchor: calendar", "1000/hour, anchor: calendar"])
def test_a_chunk_that_comes_when_the_limit_is_another_goes_back(limit: str) -> None:
    """It was asked for under the former one, and the region may have lent it under that."""
    edge = attached()
    edge.waits(needs("leased"))
    edge.hear(Rules(2, (("rules.yaml", TEXT.replace("1000/day, anchor: calendar", limit)),)))
    edge.waits(*apply_rules(edge.agent.matchers["api"], [Descriptor({"c": "k"})], whole=False))
    granted(edge, 5)
    passes(edge, 1.1)
    assert given(edge) == {DAY: 5}


def test_a_rule_that_is_not_leased_any_more_keeps_no_chunk() -> None:
    """It is given back when its time has passed, under the quota's name."""
    edge = holding(5)
    text = TEXT.replace("enforce: lease,\n     when", "enforce: region,\n     when")
    edge.hear(Rules(2, (("rules.yaml", text),)))
    edge.hear(Slices(EPOCH, 1, 2))  # where a rule is enforced changes with the first plan by the new version
    edge.waits(*apply_rules(edge.agent.matchers["api"], [Descriptor({"c": "k"})], whole=False))
    assert asked(edge) == [5, 0]
    passes(edge, 12)
    assert given(edge) == {DAY: 5}


def leased() -> Leased:
    """A quota that was never asked for."""
    each = rule("leased")
    return Leased(Ids(), each, each.limit, quota("leased"), Unspent())  # type: ignore[arg-type]


@pytest.mark.parametrize("every_ms, wanted", [(100, 50), (1000, 5), (4000, 1), (20_000, 1)])
def test_demand_is_what_five_seconds_offer(every_ms: int, wanted: int) -> None:
    """Steady demand of one unit so often; at least what waits."""
    held = leased()
    for number in range(200):
        held.offer(1, T0 + number * every_ms * 1_000_000)
    latest = T0 + 199 * every_ms * 1_000_000
    assert abs(held.wants(1, 0, latest) - wanted) <= 1


def test_demand_that_begins_is_taken_to_go_on_as_in_its_first_second() -> None:
    """A burst of 30 is 150 in five seconds by what is known; two seconds without more make it 75."""
    held = leased()
    for _ in range(30):
        held.offer(1, T0)
    assert held.demand(T0) == 150
    assert held.demand(T0 + 2 * EPOCH_NS) == 75
    assert held.wants(0, 0, T0) == 0


def test_no_more_is_asked_than_the_allowance() -> None:
    """Whatever is offered: the wire carries no larger number."""
    held = leased()
    for _ in range(40):
        held.offer(1000, T0)
    assert held.wants(40_000, 0, T0) == 1000


def test_each_request_and_each_key_has_its_own() -> None:
    """A chunk of one subject serves no other."""
    edge = holding(5)
    edge.waits(Application(rule("leased"), ("other",), 1))
    assert asked(edge) == [5, 5]
    assert RULES.version == 1
