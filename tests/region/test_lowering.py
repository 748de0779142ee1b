"""What lowered a quota is said: the operator where it is that number that counts, what is held back, a rate of 0."""

from __future__ import annotations

from dataclasses import replace

from apportion.core.key import encode_key
from apportion.core.messages import Quota, Rules
from apportion.core.overrides import TEXT as OVERRIDES
from apportion.core.overrides import Override, Rate, encode
from apportion.core.rules_file import parse_rules
from apportion.region.events import RulesChanged
from apportion.region.lowering import lowered_by
from apportion.region.quotas import KnownQuota
from tests.region.by_hand import EPOCH, TEXT, ByHand, attached, quota

HOUR = Rate(3, 3600 * 10**9)
UNTIL_NS = 1_700_049_600 * 10**9

OVER = Override("api", "exact", (("e", "k"),), HOUR, False, UNTIL_NS, "abuse", "ops")


def known(region: ByHand, of: Quota) -> KnownQuota:
    """The quota as the region has it."""
    found = region.authority.table.find(of, EPOCH)
    assert found is not None
    return found


def lay(region: ByHand, *laid: Override) -> None:
    """Go by these overrides."""
    texts = (("rules.yaml", TEXT), (OVERRIDES, encode(laid)))
    region.step(RulesChanged(Rules(2, texts), parse_rules(texts)))


def test_an_override_is_said_where_it_is_the_one_that_counts() -> None:
    """Of two the lesser; other keys are not touched; shadow is said wherever it is laid."""
    region = attached()
    laid = (replace(OVER, key=(), rate=Rate(5, 10**9)), OVER)
    lay(region, *laid)
    said = "the operator, until 2023-11-15T12:00:00Z: exact e=k: at most 3/hour (abuse; ops)"
    assert lowered_by(region.authority, laid, known(region, quota("exact"))) == [said]
    other = lowered_by(region.authority, laid, known(region, quota("exact", "other")))
    assert other == ["the operator, until 2023-11-15T12:00:00Z: exact: at most 5/s (abuse; ops)"]
    assert lowered_by(region.authority, laid, known(region, quota("small"))) == []
    shadow = (replace(OVER, rate=None, shadow=True, rule="*", key=(), domain=""),)
    region = attached()
    lay(region, *shadow)
    assert lowered_by(region.authority, shadow, known(region, quota("small"))) == [
        "the operator, until 2023-11-15T12:00:00Z: *: shadow (abuse; ops)"
    ]


def test_a_number_that_is_no_lower_is_not_said() -> None:
    """10/s is what the rule has."""
    region = attached()
    laid = (replace(OVER, rate=Rate(10, 10**9)),)
    lay(region, *laid)
    assert lowered_by(region.authority, laid, known(region, quota("exact"))) == []


def test_what_is_held_back_for_edges_that_are_not_heard_is_said() -> None:
    """Units of the present epoch's plan that nobody gets."""
    region = attached()
    region.lead()
    region.claim(EPOCH + 1)
    region.plan(held=30, e1=50, pool=20)
    assert lowered_by(region.authority, (), known(region, quota("lease"))) == []
    region.pass_ms(1000)
    assert lowered_by(region.authority, (), known(region, quota("lease"))) == [
        "held back: 30 units of this epoch, which edges that are not heard may still spend"
    ]


def test_a_rate_of_0_is_said_as_whose_it_is() -> None:
    """The operator's, or the rule's own."""
    region = attached()
    laid = (replace(OVER, rate=Rate(0, 10**9)),)
    lay(region, *laid)
    (said,) = lowered_by(region.authority, laid, known(region, quota("exact")))
    assert said.endswith("exact e=k: at most 0/s (abuse; ops)")
    texts = (("rules.yaml", TEXT.replace("{rate: 10/s}", "{rate: 0/s}")),)
    region.step(RulesChanged(Rules(3, texts), parse_rules(texts)))
    own = Quota("api", "exact", encode_key(("k",)))
    assert lowered_by(region.authority, (), known(region, own)) == ["the rule's own rate of 0: nothing is admitted"]
