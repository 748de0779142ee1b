"""C25: separator characters in names and values never collapse two callers into one count (core part)."""

from __future__ import annotations

import pytest

from apportion.core.engine import Engine
from apportion.core.key import encode_key, encode_quota, key_text
from apportion.core.rules_file import parse_rules
from tests.checkout import ROOT

SEPARATORS = ["_", ":", "|", "/", "{}", "*", "\n", "\0", ",", "\\"]


def rule(name: str, match: str, key: str) -> str:
    """A rule of one request a minute."""
    return (
        f"  - {{name: {name}, match: {match}, key: {key}, limit: {{rate: 1/min}}, enforce: region, "
        "when_unavailable: [deny]}\n"
    )


def engine_of(*rules: str, domain: str = "api") -> Engine:
    """An engine with these rules."""
    parsed = parse_rules([("rules.yaml", f"version: 1\ndomain: {domain}\nrules:\n" + "".join(rules))])
    return Engine(next(iter(parsed.domains.values())))


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_value_with_the_separator_is_not_two_values(separator: str) -> None:
    """[user=a_ip_b] and [user=a, ip=b] are two callers, each with one request a minute."""
    engine = engine_of(
        rule("user", '{user: "*"}', "[user]"), rule("both", '{user: "*", ip: "*"}', "[user, ip]"), domain='"api_"'
    )
    one = {"user": separator.join(["a", "ip", "b"])}
    other = {"user": "a", "ip": "b"}
    assert [engine.decide(request, 1, 0).allowed for request in (one, other, one, other)] == [True, True, False, False]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_moving_the_border_between_two_values_is_another_count(separator: str) -> None:
    """Values are joined by no separator that a value could hold."""
    engine = engine_of(rule("both", '{user: "*", ip: "*"}', "[user, ip]"))
    requests = [{"user": f"a{separator}", "ip": "b"}, {"user": "a", "ip": f"{separator}b"}]
    assert [engine.decide(request, 1, 0).allowed for request in requests] == [True, True]


def test_a_dimension_with_the_separator_is_not_a_dimension_and_a_value() -> None:
    """The file loads with its three rules: key a_b without a value is not key a with value b."""
    text = (ROOT / "tests" / "config" / "good" / "separators.yaml").read_text()
    domain = parse_rules([("separators.yaml", text)]).domains["api_:|/{}"]
    assert sorted(rule.name for rule in domain.rules) == ["apart", "joined", "odd"]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_domain_that_ends_in_the_separator_is_not_part_of_the_rule(separator: str) -> None:
    """Store keys of quotas are injective in domain, rule and key."""
    key = encode_key(["a"])
    assert encode_quota(f"api{separator}", "r", key) != encode_quota("api", f"{separator}r", key)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_key_is_shown_on_one_line(separator: str) -> None:
    """Logs and metrics stay well-formed."""
    assert key_text(encode_key([f"a{separator}b"])).isprintable()
