"""Shadow rules at the edge: after all others, on a lane of their own, and counted when their answer comes."""

from apportion.core.decision import Decision, Reason
from apportion.core.messages import Acquire
from apportion.core.request import Application
from apportion.edge import verdicts
from apportion.edge.agent import Agent
from apportion.edge.asking import Answer
from apportion.edge.counted import Counted
from apportion.edge.counts import Counts
from apportion.edge.edge import Edge
from apportion.edge.events import Send
from apportion.edge.limiter_answer import from_response, to_response
from apportion.simulations.network import MS
from tests.faults.rules import application, load, quota_key
from tests.faults.world import Options, World


def settled(name: str) -> World:
    """A world that has been up for two seconds, and was asked then for one rule and its shadow."""
    world = World(1, Options(edges=1, allocators=1, delay_ns=20 * MS))
    world.start()
    world.run(2)
    world.edges[0].ask((application(name), application("shade")))
    return world


def test_the_region_is_asked_for_a_shadow_once_the_others_have_let_the_request_pass() -> None:
    """Until then it is nowhere; its verdict comes after the decision."""
    world = settled("exact")
    assert world.answers == []
    world.run(0.3)
    decided, verdict = world.answers
    assert (decided.rule, decided.decided, decided.shadow) == ("exact", True, False)
    assert (verdict.rule, verdict.allowed, verdict.charged) == ("shade", True, True)


def test_a_decision_that_needs_no_crossing_does_not_wait_for_a_shadow() -> None:
    """An unlimited rule is answered at once, the shadow beside it is pending."""
    world = World(1, Options(edges=1, allocators=1))
    world.start()
    world.run(2)
    answer = world.edges[0].agent.ask((application("free"), application("shade")), world.edges[0].now_ns)
    assert isinstance(answer, Decision)
    assert [verdict.reason for verdict in answer.verdicts] == [None, Reason.PENDING]
    assert (answer.allowed, answer.rule, answer.would_deny) == (True, "free", ())


def test_a_shadow_crosses_beside_what_callers_wait_for() -> None:
    """Its crossing is under way, and a request behind it leaves at once, with a crossing of its own."""
    world = World(1, Options(edges=1, allocators=1))
    world.start()
    world.run(2)
    node = world.edges[0]
    sent: list[Acquire] = []
    for name in ("shade", "exact", "exact"):
        node.agent.ask((application(name),), node.now_ns)
        commands = node.agent.step(node.poll(), node.now_ns)
        messages = [command.message for command in commands if isinstance(command, Send)]
        sent += [message for message in messages if isinstance(message, Acquire)]
    assert [message.number % 2 for message in sent] == [1, 0]


def test_a_shadow_that_nobody_can_decide_refuses_nobody() -> None:
    """Before any region was heard, and for a fault of our own."""
    only = verdicts.unavailable((application("shade"),))
    both = verdicts.unavailable((application("exact"), application("shade")))
    assert (only.allowed, only.degraded, only.would_deny) == (True, False, ("shade",))
    assert (both.allowed, both.rule, both.would_deny) == (False, "exact", ("shade",))


def test_pending_units_are_counted_once_when_the_verdict_comes() -> None:
    """Offered is admitted, denied and would-deny, whatever came when."""
    counts = Counts()
    pending = verdicts.pending(application("shade", 3))
    counts.decided(Decision(True, (pending,)), peek=False, took_ns=1)
    assert ("api", "shade") not in counts.rules
    counts.shadowed(verdicts.refused(application("shade", 3), Reason.OVER_LIMIT, 1))
    counts.shadowed(verdicts.passed(application("shade", 2), charged=True))
    shade = counts.rules["api", "shade"]
    assert (shade.offered, shade.admitted, sum(shade.would_deny.values()), shade.denied) == (5, 2, 3, {})


def test_a_shadow_that_passes_is_denied_with_a_request_that_another_rule_refused() -> None:
    """As if it were enforced."""
    counts = Counts()
    refused = verdicts.refused(application("exact", 2), Reason.OVER_LIMIT, 1)
    counts.decided(Decision(False, (refused, verdicts.passed(application("shade", 2)))), peek=False, took_ns=1)
    shade = counts.rules["api", "shade"]
    assert (shade.offered, shade.admitted, sum(shade.denied.values()), shade.would_deny) == (2, 0, 2, {})


def test_over_the_wire_a_shadow_is_told_as_one() -> None:
    """`apportion.v1.Limiter` tells a shadow, what it would deny, and what is pending."""
    asked: tuple[Application, ...] = (application("exact"), application("shade"), application("veil"))
    decision = Decision(
        True,
        (verdicts.passed(asked[0]), verdicts.refused(asked[1], Reason.OVER_LIMIT, 5), verdicts.pending(asked[2])),
    )
    told = from_response(to_response(Answer(decision, [(0,)] * 3), "id"), "api")
    assert (told.allowed, told.rule, told.would_deny) == (True, "exact", ("shade",))
    assert [(v.shadow, v.reason) for v in told.verdicts] == [
        (False, None), (True, Reason.OVER_LIMIT), (True, Reason.PENDING),
    ]  # fmt: skip


def test_nothing_is_asked_for_a_shadow_of_a_request_that_is_refused_or_peeked() -> None:
    """As if it were enforced: such a request charges nothing anywhere."""
    world = World(1, Options(edges=1, allocators=1))
    world.start()
    world.run(2)
    node = world.edges[0]
    refused = (application("exact", 2**40), application("shade"), application("veil"))
    assert isinstance(node.agent.ask(refused, node.now_ns), Decision)
    peeked = (application("shade"), application("veil"))
    assert isinstance(node.agent.ask(peeked, node.now_ns, peek=True), Decision)
    assert not any(
        isinstance(getattr(each, "message", None), Acquire) for each in node.agent.step(node.poll(), node.now_ns)
    )
    world.run(3)
    assert not any(key.startswith(quota_key(name, ())) for name in ("shade", "veil") for key, _ in world.rollup())


def test_late_verdicts_of_an_edge_are_counted_where_its_decisions_are() -> None:
    """Whoever counts its decisions is told."""
    edge = Edge(Agent("e", "here", 1, load), ["127.0.0.1:1"])
    counted = Counted(edge)
    edge.shadowed(verdicts.passed(application("shade", 2), charged=True))
    assert counted.counts.rules["api", "shade"].admitted == 2
