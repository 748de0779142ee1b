"""C30: unknown, misspelt and missing fields are refused with file, line, path and the nearest name (first start)."""

from __future__ import annotations

import pytest

from apportion.core.errors import RulesError
from apportion.core.last_good import merge
from apportion.core.rules_file import parse_rules

GOOD = """\
version: 1
domain: api
rules:
  - name: tenants
    match: {tenant: "*"}
    key: [tenant]
    limit: {rate: 10/min}
    enforce: region
    when_unavailable: [deny]
"""

LIMIT = "rules.yaml:7: rules[tenants].limit"

CASES = [
    ("rate: 10/min", "max_valeu: 10", f"{LIMIT}.max_valeu: unknown: `max_valeu`; the nearest"),
    ("10/min", "10/minuet", f"{LIMIT}.rate: found the unit `minuet`, did you mean `min`?"),
    ("{rate: 10/min}", '"10"', f"{LIMIT}: found `10`, a mapping is meant, such as {{rate: 10/s}}"),
    ("10/min", "-10/min", f"{LIMIT}.rate: found `-10`, which is negative"),
    ("10/min", "10.5/min", f"{LIMIT}.rate: found `10.5`, which is not whole"),
    ("10/min", "10", f"{LIMIT}.rate: found `10` without a unit"),
    ("enforce:", "burst_mode: on\n    enforce:", "rules.yaml:8: rules[tenants].burst_mode: unknown: `burst_mode`"),
    ("    enforce", "    limit: {rate: 9/s}\n    enforce", "rules.yaml:8: rules[0].limit: the key `limit` is here"),
    ("    limit: {rate: 10/min}\n", "", "rules.yaml:4: rules[tenants].limit: missing; none, zero and unlimited"),
    (GOOD, "", "rules.yaml:1: the file is empty"),
    (GOOD[GOOD.index("10/min}") :], "", "rules.yaml:7: "),
]  # fmt: skip


def test_the_file_without_a_mistake_is_read() -> None:
    """So that each refusal below is for its mistake."""
    assert parse_rules([("rules.yaml", GOOD)]).domains["api"].rules[0].name == "tenants"


@pytest.mark.parametrize("right,wrong,said", CASES)
def test_each_mistake_is_named_with_its_place(right: str, wrong: str, said: str) -> None:
    """No default of 0, and nothing is read past the mistake."""
    assert GOOD.count(right) == 1
    with pytest.raises(RulesError) as refused:
        parse_rules([("rules.yaml", GOOD.replace(right, wrong))])
    assert str(refused.value.problems[0]).startswith(said)


def test_no_cut_of_the_file_limits_less_than_the_file() -> None:
    """Cut anywhere, it is refused, or it means the same: never another limit."""
    whole = parse_rules([("rules.yaml", GOOD)]).domains["api"].rules
    for end in range(len(GOOD)):
        try:
            rules = parse_rules([("rules.yaml", GOOD[:end])]).domains["api"].rules
        except RulesError:
            continue
        assert rules == whole


@pytest.mark.parametrize("right,wrong,said", CASES)
def test_at_a_reload_the_last_good_text_stays(right: str, wrong: str, said: str) -> None:
    """The mistake is told of, its file is as it was, and the other file's change is taken."""
    other = GOOD.replace("tenants", "users").replace("tenant", "user")
    good = (("other.yaml", other), ("rules.yaml", GOOD))
    changed = other.replace("10/min", "20/min")
    found = merge(good, (("other.yaml", changed), ("rules.yaml", GOOD.replace(right, wrong))), parse_rules)
    assert found.texts == (("other.yaml", changed), ("rules.yaml", GOOD))
    assert found.rejected == ("rules.yaml",)
    assert said in found.reason
