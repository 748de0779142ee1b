"""The figures of small logs where each key has the limit of its tenant's plan, worked out by hand."""

from __future__ import annotations

import pytest

from apportion.simulations.in_force import InForce
from apportion.simulations.nodes import parsed
from apportion.simulations.rows import Row
from apportion.simulations.world import SECOND
from tests.simulations.written import PLANS, admitted, figures, offered, on_plans, ruled

RULES = parsed(on_plans())
LARGE, SMALL, NONE = "contoso", "fabrikam", "nobody"


def test_utilisation_is_of_what_each_plan_allows() -> None:
    """Of 150, 50 and 30 asked, 100 + 20 + 0 might be admitted; 90 + 12 were. The limit told is the largest."""
    rows: list[Row] = [
        *(offered(0.5, cost, key=key) for key, cost in ((LARGE, 150), (SMALL, 50), (NONE, 30))),
        *(admitted(0.6, cost, key=key) for key, cost in ((LARGE, 90), (SMALL, 12))),
    ]
    found = figures(rows, 1, of=RULES)
    assert (found.utilisation, found.utilisation_p5) == (102 / 120, 102 / 120)
    assert (found.limit_per_second, found.burst, found.bound) == (100, 25, 0)


def test_shares_are_of_what_plans_allow_together() -> None:
    """100 asked at one edge and 100 at the other, of 100 + 20: 60 each are fair; 90 and 30 have an index of 0.8."""
    asked: list[Row] = [offered(0.5, 100, key=LARGE), offered(0.5, 100, 1, SMALL)]
    fair: list[Row] = [admitted(0.6, 60, key=LARGE), admitted(0.6, 40, 1, LARGE), admitted(0.6, 20, 1, SMALL)]
    assert figures([*asked, *fair], 1, of=RULES).jain == pytest.approx(1.0)
    unfair: list[Row] = [admitted(0.6, 90, key=LARGE), admitted(0.6, 10, 1, LARGE), admitted(0.6, 20, 1, SMALL)]
    assert figures([*asked, *unfair], 1, of=RULES).jain == pytest.approx(120**2 / (2 * (90**2 + 30**2)))


@pytest.mark.parametrize("key, within, over", [(LARGE, 125, 128), (SMALL, 25, 28), (NONE, 0, 3)])
def test_overshoot_is_beyond_the_plan(key: str, within: int, over: int) -> None:
    """By label and by true second, with others' room beside it."""
    others: list[Row] = [admitted(0.5, 40, key=LARGE), admitted(0.5, 10, key=SMALL)] if key == NONE else []
    found = figures([*others, admitted(0.5, within, key=key)], 1, of=RULES)
    assert (found.overshoot_label, found.overshoot_true_second) == (0, 0)
    found = figures([*others, admitted(0.5, over, key=key)], 1, of=RULES)
    assert (found.overshoot_label, found.overshoot_true_second) == (3, 3)


def test_a_tenant_comes_to_another_plan() -> None:
    """From epoch 2 on, which is when the run begins: 100 might be admitted at once, and may be, with 25 more."""
    changed = ruled(2, on_plans(PLANS.replace("fabrikam: small", "fabrikam: large")))
    rows: list[Row] = [changed, offered(0.5, 150, key=SMALL), admitted(0.6, 125, key=SMALL, epoch=2)]
    found = figures(rows, 1, of=RULES)
    assert (found.utilisation, found.overshoot_label, found.overshoot_true_second) == (1.25, 0, 0)
    limits = InForce(RULES, [changed])
    assert [limits.per_second("search", at * SECOND, (SMALL,)) for at in (1, 2)] == [20, 100]
    assert limits.largest_within("search", SECOND, 2 * SECOND, (SMALL,)) == 125
