"""A scenario's text: everything that a person can write, and each mistake told with its line and what is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apportion.core.errors import InputError, RulesError
from apportion.core.rule import Enforce
from apportion.simulations import library
from apportion.simulations.run import changes_of
from apportion.simulations.scenario import Expectation, Fault, FaultKind, Network
from apportion.simulations.scenario_file import parse_scenario
from apportion.simulations.shapes import Hotspot, Uniform

S = 1_000_000_000

SHORT = """about: one rule
edges: 8
seconds: 60
limit: 1000/s
enforce: lease
demand: [{shape: uniform, load: 150%}]
"""


def problems(text: str) -> list[str]:
    """What is told of a text that is wrong."""
    with pytest.raises(RulesError) as caught:
        parse_scenario("mine.yaml", text)
    return [str(problem) for problem in caught.value.problems]


def test_the_text_in_the_documentation_is_a_scenario() -> None:
    """Each field means what docs/simulation.md says."""
    document = Path(__file__).parents[2].joinpath("docs", "simulation.md").read_text()
    found = re.search(r"```yaml\n(about: .*?)```", document, flags=re.DOTALL)
    assert found is not None
    read = parse_scenario("mine.yaml", found[1])
    assert (read.name, read.edges, read.allocators, read.seconds, read.warm_up) == ("mine", 8, 2, 60, 10)
    first, second = read.flows
    assert (first.shape, first.load, first.cost) == (Hotspot(9 * S, 0.6), 1.2, 1)
    assert (second.shape, second.load, second.cost, second.from_ns) == (Uniform(), 0.1, 5, 20 * S)
    assert read.network == Network(latency_ns=40_000_000, jitter=0.25, spikes=0.01)
    assert read.faults == (
        Fault(30 * S, FaultKind.PARTITION, "edge-3", 10 * S),
        Fault(45 * S, FaultKind.KILL, "leader", 2 * S),
    )
    assert read.expectations == (Expectation("utilisation", ">=", 0.85),)
    assert changes_of(read) == [9, 18, 27, 30, 36, 45, 54]


def test_one_rule_is_written_out_as_a_rules_file() -> None:
    """A mode gets what it needs and nobody wrote; in another mode the rest of the world is the same."""
    read = parse_scenario("mine.yaml", SHORT)
    assert read.one is not None
    assert "limit: {rate: 1000/s}, enforce: lease, when_unavailable: [deny]" in read.rules.texts[0][1]
    other = read.under(read.one.under(Enforce.EDGE.value), edges=3)
    assert other.edges == 3
    assert "edges_max: 3" in other.rules.texts[0][1]
    assert "enforce: edge, wrong_costs: noise, at_each_edge: 1000/s" in other.rules.texts[0][1]
    assert other.flows == read.flows


@pytest.mark.parametrize(
    "before, after, told",
    [
        ("edges: 8", "edgs: 8", "mine.yaml:2: edgs: unknown: `edgs`; did you mean `edges`?"),
        ("edges: 8", "edges: 0", "mine.yaml:2: edges: found 0, a number from 1 to 500 is meant"),
        ("enforce: lease", "enforce: least", "mine.yaml:5: enforce: found `least`"),
        ("limit: 1000/s\n", "", "`limit` is missing; write `limit: 1000/s`, or whole `rules: |`"),
        ("limit: 1000/s", "limit: 1000", "mine.yaml:4: limit: found `1000` without a unit"),
        ("shape: uniform", "shape: zipff", "demand[0].shape: found `zipff`"),
        ("shape: uniform", "shape: uniform, dwell: 5s", "demand[0].dwell: unknown"),
        (", load: 150%", "", "`load` is missing: what is asked, as a part of the limit; write `load: 150%`"),
        ("load: 150%", "load: 1.5", "demand[0].load: found `1.5`, a percentage"),
        ("load: 150%", "load: 150%, rule: serch", "demand[0].rule: found `serch`"),
        ("demand:", "faults: [{at: 5s}]\ndemand:", "faults[0]: a fault is `at` an instant and one of kill, partition"),
        ("demand:", "faults: [{at: 5s, kill: edge}]\ndemand:", "faults[0].kill: found `edge`; region, leader, standby"),
        (
            "demand:",
            "expect: {utilization: '>= 9%'}\ndemand:",
            "unknown: `utilization`; did you mean `utilisation`?",
        ),
        ("demand:", "expect: {jain: 0.9}\ndemand:", "expect.jain: found `0.9`; one of >=, <=, = and a number is meant"),
        ("demand:", "rules: |\n  version: 1\ndemand:", "limit: belongs to a scenario without `rules`"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_is_right(before: str, after: str, told: str) -> None:
    """The first problem names the field; nothing is guessed."""
    assert before in SHORT
    assert any(told in problem for problem in problems(SHORT.replace(before, after))), problems(
        SHORT.replace(before, after)
    )


@pytest.mark.parametrize("text", ["", "[]", "a", "{", "edges: &x 3"])
def test_what_is_no_scenario_at_all(text: str) -> None:
    """Never a traceback."""
    assert problems(text)


def test_every_scenario_that_comes_along_can_be_read() -> None:
    """The 19 of the issue, each in a sentence."""
    assert set(library.names()) >= {
        *("uniform", "zipf", "overload", "hotspot", "step", "flapping", "on-off", "newcomer", "edge-death"),
        *("edge-restart", "edge-partition", "allocator-death", "allocator-zombie", "region-restart", "clock-skew"),
        *("everyone-under", "retry-storm", "heavy-edge", "limit-change"),
    }
    assert all(library.load(name).about.endswith(".") for name in library.names())


def test_a_scenario_that_is_not_there_names_the_nearest() -> None:
    """And how to list them."""
    with pytest.raises(InputError, match=r"did you mean 'hotspot'.*--list"):
        library.load("hotspt")
