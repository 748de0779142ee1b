"""C31: a bad policy that arrives anyway skips its own file, nothing stops, and a mass restart is no herd."""

from random import Random

import pytest

from apportion.core.errors import RulesError
from apportion.core.messages import Rules
from apportion.core.rules_file import parse_rules
from apportion.edge.edge import SPREAD_S, pause_s
from apportion.edge.ruling import Ruling

HEAD = "version: 1\ndomain: api\nrules:\n"


def rule(name: str, limit: str = "{rate: 10/s}", key: str = "") -> str:
    """A file of one rule."""
    return HEAD + (
        f"  - {{name: {name}, match: {{{name}: '*'}}, key: [{key or name}], limit: {limit}, enforce: region, "
        "when_unavailable: [deny]}\n"
    )


BAD = [rule("b", ""), rule("b", key="nobody"), rule("b").replace("'*'", "[]"), ""]


@pytest.mark.parametrize("bad", BAD, ids=["null limit", "no such dimension", "empty match", "blank"])
def test_an_edge_survives_what_an_old_writer_sends(bad: str) -> None:
    """The file keeps its last good text, the other file's change holds, and the version is not acknowledged."""
    ruling = Ruling(lambda rules: parse_rules(rules.texts))
    ruling.take(Rules(1, (("a.yaml", rule("a")), ("b.yaml", rule("b")))))
    (note,) = ruling.take(Rules(2, (("a.yaml", rule("a", "{rate: 20/s}")), ("b.yaml", bad))))
    assert (note.level, note.event) == ("error", "rules_refused")
    limits = {each.name: getattr(each.limit, "units", None) for each in ruling.domains["api"].rules}
    assert limits == {"a": 20, "b": 10}
    assert ruling.acknowledgement() is None


def test_an_edge_without_any_rules_says_so_and_waits() -> None:
    """There is nothing to go by: it is not ready, and asks again."""
    ruling = Ruling(lambda rules: parse_rules(rules.texts))
    with pytest.raises(RulesError):
        ruling.take(Rules(1, (("b.yaml", BAD[0]),)))
    assert (ruling.rules, ruling.matchers) == (None, {})


def test_fifty_edges_that_restart_together_come_one_by_one() -> None:
    """A tenth of them in each tenth of a second, and what chance adds with so few; over a whole second."""
    for seed in range(20):
        source = Random(seed)
        at = sorted(pause_s(source, worked=True) for _ in range(50))
        assert at[-1] - at[0] > 0.8 * SPREAD_S
        assert max(sum(start <= each < start + 0.1 for each in at) for start in at) <= 13


def test_a_thousand_edges_that_restart_together_come_evenly() -> None:
    """With many the share of any tenth of a second is a tenth, and what chance adds."""
    source = Random(1)
    at = sorted(pause_s(source, worked=True) for _ in range(1000))
    assert max(sum(start <= each < start + 0.1 for each in at) for start in at) <= 200
