"""The demo's traffic and its questions: uneven, moving, as much as was said, and meeting one rule alone."""

from collections import Counter
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise

import pytest

from apportion.commands.demonstration.accounts import Order, ask_of
from apportion.commands.demonstration.questions import questions_for
from apportion.commands.demonstration.traffic import DWELL_NS, arrivals, hotspot, shares
from apportion.core.errors import InputError
from apportion.core.rule import RuleSet
from apportion.core.rules_file import parse_rules

SECOND = 1_000_000_000


def rules(*entries: str, domain: str = "api") -> RuleSet:
    """Rules of one file; each entry is what follows the dash."""
    listed = "\n".join(f"  - {{{entry}, when_unavailable: [deny]}}" for entry in entries)
    return parse_rules([("rules.yaml", f"version: 1\ndomain: {domain}\nrules:\n{listed}\n")])


def test_the_same_seed_gives_the_same_traffic() -> None:
    """A run can be repeated."""
    first = list(arrivals([50.0, 50.0], 3, 42, 2 * SECOND))
    assert list(arrivals([50.0, 50.0], 3, 42, 2 * SECOND)) == first
    assert list(arrivals([50.0, 50.0], 3, 43, 2 * SECOND)) != first


def test_as_much_is_offered_as_was_said() -> None:
    """500/s and 250/s for 60 s, within four standard deviations of a Poisson count."""
    counts = Counter(each.question for each in arrivals([500.0, 250.0], 3, 1, 60 * SECOND))
    assert abs(counts[0] - 30_000) < 4 * 30_000**0.5
    assert abs(counts[1] - 15_000) < 4 * 15_000**0.5


def test_arrivals_are_in_order_and_within_the_time() -> None:
    """The generator never goes back."""
    times = [each.at_ns for each in arrivals([100.0], 3, 5, 3 * SECOND)]
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] < 3 * SECOND


def test_shares_are_uneven_and_complete() -> None:
    """60 % at the hotspot, then 27 and 13."""
    assert shares(3, hot=1) == pytest.approx([0.4 / 3, 0.6, 0.8 / 3])
    assert shares(1, hot=0) == [1.0]
    assert all(sum(shares(edges, 0)) == pytest.approx(1.0) for edges in range(1, 9))


def test_the_hotspot_moves_to_the_next_edge_every_five_seconds() -> None:
    """In each stretch of 5 s another edge gets most, and it is the one that the table marks."""
    by_stretch: dict[int, Counter[int]] = {}
    for each in arrivals([500.0], 3, 9, 20 * SECOND):
        by_stretch.setdefault(each.at_ns // DWELL_NS, Counter())[each.edge] += 1
    most = [by_stretch[stretch].most_common(1)[0][0] for stretch in range(4)]
    assert [(after - before) % 3 for before, after in pairwise(most)] == [1, 1, 1]
    assert most == [hotspot(3, 9, stretch * DWELL_NS) for stretch in range(4)]


def test_it_stays_for_as_long_as_is_said() -> None:
    """9 s at each edge: within the first there is one hotspot."""
    early, late = Counter[int](), Counter[int]()
    for each in arrivals([200.0], 3, 9, 10 * SECOND, dwell_ns=9 * SECOND):
        (early if each.at_ns < 9 * SECOND else late)[each.edge] += 1
    first = hotspot(3, 9, 9 * SECOND - 1, 9 * SECOND)
    assert early.most_common(1)[0][0] == first == hotspot(3, 9, 0, 9 * SECOND)
    assert late.most_common(1)[0][0] == (first + 1) % 3


def test_the_built_in_rules_are_one_of_each_mode_at_100_a_second() -> None:
    """Each with one key, offered 250 requests a second."""
    text = files("apportion.commands.demonstration").joinpath("demo.yaml").read_text()
    asked = questions_for(parse_rules([("demo.yaml", text)]))
    assert [(each.rule.name, each.rule.enforce.value) for each in asked] == [
        ("orders", "edge+region"),
        ("scraping", "edge"),
        ("search", "lease"),
        ("payments", "region"),
    ]
    assert [(each.limit.per_second, each.limit.burst) for each in asked] == [(100.0, 25)] * 4
    assert [each.requests_per_second for each in asked] == [250.0, 250.0, 250.0, 250.0]
    assert [each.key for each in asked] == [("orders",), ("scraping",), ("search",), ("payments",)]


def test_a_question_fits_every_kind_of_pattern() -> None:
    """An exact value as it is, a prefix continued, any value made up."""
    (asked,) = questions_for(
        rules(
            'name: r, match: {api: export, path: "/search*", tenant: "*"}, key: [tenant], limit: {rate: 10/s}, '
            "enforce: region"
        )
    )
    assert dict(asked.dimensions) == {"api": "export", "path": "/searchdemo", "tenant": "demo"}
    assert asked.key == ("demo",)


def test_a_question_meets_its_rule_alone() -> None:
    """The general rule is asked with a value that the specific one does not take."""
    general, specific = questions_for(
        rules(
            'name: general, match: {api: "*"}, key: [api], limit: {rate: 10/s}, enforce: region',
            "name: specific, match: {api: demo}, key: [api], limit: {rate: 10/s}, enforce: region",
        )
    )
    assert dict(general.dimensions) == {"api": "demo-2"}
    assert dict(specific.dimensions) == {"api": "demo"}


def test_rules_that_only_meet_together_are_refused_by_name() -> None:
    """Two rules over the same requests, with different keys, cannot be told apart from outside."""
    with pytest.raises(InputError, match=r"rules.yaml:4: .* meets 'one' also meets other"):
        questions_for(
            rules(
                'name: one, match: {api: x, tenant: "*"}, key: [api], limit: {rate: 10/s}, enforce: region',
                'name: other, match: {api: x, tenant: "*"}, key: [tenant], limit: {rate: 10/s}, enforce: region',
            )
        )


def test_a_low_limit_is_asked_often_enough_to_be_seen() -> None:
    """1/min is asked five times a second."""
    (asked,) = questions_for(rules("name: r, match: {api: x}, key: [api], limit: {rate: 1/min}, enforce: region"))
    assert asked.requests_per_second == 5.0


def test_costs_make_requests_fewer() -> None:
    """200/s at a cost of 10 is 50 requests a second at 2.5 times the limit."""
    (asked,) = questions_for(
        rules("name: r, match: {api: x}, key: [api], limit: {rate: 200/s}, enforce: region, cost: {default: 10}")
    )
    assert (asked.cost, asked.requests_per_second) == (10, 50.0)


def test_a_limit_too_high_for_the_demo_is_refused_with_the_highest() -> None:
    """The text names rule, limit, what it would take, and what would do."""
    with pytest.raises(InputError) as refused:
        questions_for(
            rules(
                "name: low, match: {api: x}, key: [api], limit: {rate: 200/s}, enforce: region",
                "name: high, match: {api: y}, key: [api], limit: {rate: 10000/s}, enforce: region",
            )
        )
    assert str(refused.value) == (
        "rules.yaml:5: rule 'high' allows 10000/s, and 2.5 times that is 25,000 requests a second; the demo offers "
        "at most 1,500 to all rules together, which is what its processes answer on two cores: for the demo, set its "
        "limit to at most 400/s, or leave other rules out"
    )


def test_unlimited_rules_leave_nothing_to_watch() -> None:
    """A demo that could not fail is refused."""
    unlimited = (
        "version: 1\ndomain: api\nrules:\n  - {name: r, match: {api: x}, key: [api], limit: {unlimited: true}}\n"
    )
    with pytest.raises(InputError, match="every rule is unlimited"):
        questions_for(parse_rules([("rules.yaml", unlimited)]))


def test_an_order_is_read_as_it_was_written() -> None:
    """Demo and load process mean the same."""
    (question,) = questions_for(rules('name: r, match: {api: "é"}, key: [api], limit: {rate: 10/s}, enforce: lease'))
    order = Order(("127.0.0.1:1",), (ask_of(question),), 5.0, 3)
    assert Order.read(order.line()) == order
    assert replace(order, seed=4) != order
    assert order.asks[0].limit == question.limit
