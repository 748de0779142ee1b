"""C50 of cases.md at each mode: an edge that hears nothing any more spends what its rule's stages give, label by label.

The edge has slices of 30 units for the labels 50 and 51, and is cut off in label 51 with more demand than it may meet.
Its clock is monotonic: there is no wall clock that could jump.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from apportion.core.decision import Decision
from apportion.core.key import encode_key
from apportion.core.messages import Quota, QuotaName, Rules, Slices, Tick, Welcome
from apportion.core.request import Application
from apportion.edge.agent import Agent
from apportion.edge.events import Connected, Lost, Received
from apportion.edge.kept import Kept
from tests.edge.test_stages import T0, S, load

FIRST, LAST = 50, 62

LEASE = "enforce: lease, when_unavailable: "
PASSING = "enforce: edge+region, when_unavailable: "


def rules_of(fields: str) -> Rules:
    """One rule of 100/s over four edges."""
    text = (
        "version: 1\ndomain: api\nedges_max: 4\nrules:\n"
        f"  - {{name: r, match: {{a: x}}, key: [a], limit: {{rate: 100/s}}, {fields}}}\n"
    )
    return Rules(1, (("r", text),))


def cut_off(fields: str) -> Counter[int]:
    """Units admitted by label. The region is heard for the last time at the start of 51; 500/s are asked for."""
    rules = rules_of(fields)
    asked = Application(load(rules).domains["api"].rules[0], ("x",), 1)
    agent = Agent("e1", "here", 7, load)
    agent.step(Connected(), T0)
    agent.step(Received(Welcome(rules, Tick(FIRST, S), 1)), T0)
    quota = Quota("api", "r", encode_key(("x",)))
    for epoch in (FIRST, FIRST + 1):
        column = np.array([0], np.uint32), np.array([30], np.uint64)
        agent.step(Received(Slices(epoch, 1, 1, (QuotaName(0, quota),), *column)), T0)
    agent.step(Received(Tick(FIRST + 1, S)), T0 + S)
    agent.step(Lost(), T0 + S + 1)
    admitted: Counter[int] = Counter()
    for at in range(500 * (LAST - FIRST - 1)):
        answer = agent.ask((asked,), T0 + S + 1 + at * S // 500)
        if isinstance(answer, Decision) and answer.allowed:
            (verdict,) = answer.verdicts
            assert verdict.epoch is not None
            admitted[verdict.epoch] += verdict.cost
    return admitted


def by_label(*stretches: tuple[int, int]) -> list[int]:
    """So many labels of so many units, one after the other, then nothing."""
    units = [each for labels, each in stretches for _ in range(labels)]
    return units + [0] * (LAST - FIRST - 1 - len(units))


@pytest.mark.parametrize(
    "fields, expected",
    [
        (LEASE + "[deny]", by_label((1, 29))),
        (LEASE + "[keep_share for 3s, deny]", by_label((3, 30))),
        (LEASE + "[fair_share for 5s, deny]", by_label((1, 30), (4, 25))),
        (LEASE + "[keep_share for 3s, fair_share for 4s, deny]", by_label((3, 30), (4, 25))),
        (PASSING + "[deny]", by_label()),
        (PASSING + "[keep_share for 3s, deny]", by_label((3, 30))),
        (PASSING + "[fair_share for 5s, deny]", by_label((5, 25))),
        (PASSING + "[keep_share for 3s, fair_share for 4s, deny]", by_label((3, 30), (4, 25))),
        ("enforce: region, when_unavailable: [deny]", by_label()),
        ("enforce: region, when_unavailable: [fair_share for 5s, deny]", by_label((5, 25))),
    ],
)
def test_no_label_has_more_than_its_slice_or_the_share_of_its_stage(fields: str, expected: list[int]) -> None:
    """30 is the last slice, 25 = floor(100 / 4); the slice of 51 counts against 51's share; then the rule denies.

    A slice that fills evenly has 29 whole units at the label's last request, and a share needs no filling.
    """
    admitted = cut_off(fields)
    assert [admitted[label] for label in range(FIRST + 1, LAST)] == expected


def test_slack_falls_back_to_the_share_as_soon_as_there_is_no_slice() -> None:
    """The slice of 51, then ceil(110 / 4) = 28 for each label, for as long as it lasts: it needs nobody."""
    admitted = cut_off("enforce: edge, slack: 10%, wrong_costs: noise")
    assert [admitted[label] for label in range(FIRST + 1, LAST)] == by_label((1, 30), (LAST - FIRST - 2, 28))


def test_at_each_edge_gives_the_same_whoever_is_away() -> None:
    """40/s, and the limit's burst of 25 once, whatever a plan says."""
    admitted = cut_off("enforce: edge, at_each_edge: 40/s, wrong_costs: noise")
    first, *others = (admitted[label] for label in range(FIRST + 1, LAST))
    assert first == 40 + 25 - 1  # the last request comes 2 ms before the label's end
    assert others == [40] * len(others)


@pytest.mark.parametrize(
    "fields, share",
    [
        ("enforce: region, when_unavailable: [fair_share]", 25),
        ("enforce: lease, when_unavailable: [fair_share]", 25),
        ("enforce: edge+region, when_unavailable: [fair_share]", 25),
        ("enforce: edge, slack: 10%, wrong_costs: noise", 28),
    ],
)
def test_a_label_that_gets_its_name_late_has_one_share(fields: str, share: int) -> None:
    """An edge that booted alone spends its share of a label, hears which label it was, and is cut off again in it."""
    rules = rules_of(fields)
    asked = Application(load(rules).domains["api"].rules[0], ("x",), 1)
    agent = Agent("e1", "here", 8, load)
    agent.boot(Kept("e1", rules, (), 1 * S), load(rules), T0)

    def admitted(at_ns: int) -> int:
        answers = [agent.ask((asked,), at_ns) for _ in range(100)]
        return sum(isinstance(answer, Decision) and answer.allowed for answer in answers)

    before = sum(admitted(T0 + 5 * S + at * S // 100) for at in range(0, 40, 4))
    agent.step(Connected(), T0 + 5 * S + S // 2)
    agent.step(Received(Welcome(rules, Tick(900, S // 2), 1)), T0 + 5 * S + S // 2)
    agent.step(Lost(), T0 + 5 * S + S // 2 + 1)
    after = sum(admitted(T0 + 5 * S + at * S // 100) for at in range(52, 100, 4))
    assert before > 0
    assert before + after == share
