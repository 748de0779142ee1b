"""C29: duplicate rules are refused, naming both places, in one file and over two (first start)."""

from __future__ import annotations

import pytest

from apportion.core.errors import RulesError
from apportion.core.last_good import merge
from apportion.core.rules_file import parse_rules

HEAD = "version: 1\ndomain: api\nrules:\n"


def rule(name: str, rate: str) -> str:
    """Rules that differ in name and limit only."""
    return (
        f'  - {{name: {name}, match: {{user: "*", api: search}}, key: [user], limit: {{rate: {rate}}}, '
        "enforce: region, when_unavailable: [deny]}\n"
    )


def report(*texts: tuple[str, str]) -> list[str]:
    """The problems, line by line."""
    with pytest.raises(RulesError) as refused:
        parse_rules(texts)
    return [str(problem) for problem in refused.value.problems]


def test_in_one_file_both_places_are_named() -> None:
    """Neither the first nor the last wins silently."""
    (problem,) = report(("api.yaml", HEAD + rule("fifteen", "15/s") + rule("three-hundred", "300/s")))
    assert problem.startswith(
        "api.yaml:5: rules[three-hundred]: duplicate of the rule `fifteen` at api.yaml:4: rules[fifteen]: "
    )


@pytest.mark.parametrize("order", [1, -1])
def test_in_two_files_both_places_are_named_in_whatever_order_they_are_read(order: int) -> None:
    """The files are one domain."""
    texts = [("a.yaml", HEAD + rule("fifteen", "15/s")), ("b.yaml", HEAD + rule("three-hundred", "300/s"))]
    (problem,) = report(*texts[::order])
    assert problem.startswith(
        "b.yaml:4: rules[three-hundred]: duplicate of the rule `fifteen` at a.yaml:4: rules[fifteen]: "
    )


def test_the_same_name_twice_is_an_error_of_its_own() -> None:
    """A name is a store key: two rules under one would count together."""
    problems = report(("a.yaml", HEAD + rule("same", "15/s")), ("b.yaml", HEAD + rule("same", "15/min")))
    (problem,) = problems
    assert problem.startswith(
        "b.yaml:4: rules[same].name: the name `same` is taken by the rule at a.yaml:4: rules[same]"
    )


def test_another_domain_is_another_set() -> None:
    """Two tenants of one program do not see each other's rules."""
    other = HEAD.replace("api", "mail")
    rules = parse_rules([("a.yaml", HEAD + rule("fifteen", "15/s")), ("b.yaml", other + rule("fifteen", "300/s"))])
    assert sorted(rules.domains) == ["api", "mail"]


def test_another_period_is_another_limit() -> None:
    """15 a second and 300 a minute both apply."""
    rules = parse_rules([("a.yaml", HEAD + rule("second", "15/s") + rule("minute", "300/min"))])
    assert len(rules.domains["api"].rules) == 2


def test_at_a_reload_the_rule_that_was_there_stays() -> None:
    """In its own file or in one more; both places are named, and another domain's change is taken."""
    mail = HEAD.replace("api", "mail")
    good = (("a.yaml", HEAD + rule("fifteen", "15/s")), ("mail.yaml", mail + rule("box", "1/s")))
    changed = ("mail.yaml", mail + rule("box", "2/s"))
    for file, more in (("a.yaml", rule("fifteen", "15/s")), ("b.yaml", "")):
        twin = (file, HEAD + more + rule("three-hundred", "300/s"))
        found = merge(good, tuple(dict([good[0], twin, changed]).items()), parse_rules)
        assert found.texts == (good[0], changed)
        assert found.rejected == (file,)
        assert "duplicate of the rule `fifteen` at a.yaml:4" in found.reason
