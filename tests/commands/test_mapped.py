"""A mapping of headers that no rule can meet is said: by check-config, and by an edge that has such rules."""

from __future__ import annotations

import pytest

from apportion.commands.mapped import unmet
from apportion.core.rules_file import parse_rules
from apportion.edge.check_request import CheckMapping
from tests.commands.test_check_config import GOOD, run

TEXT = (
    'version: 1\ndomain: api\nrules:\n  - {name: x, match: {tenant: "*", api: "*"}, key: [], limit: {rate: 1/s}, '
    "enforce: region, when_unavailable: [deny]}\n"
)
RULES = parse_rules((("api.yaml", TEXT),))


@pytest.mark.parametrize("names", [(), ("tenant", "api"), ("tenant", "api", "more")])
def test_a_mapping_that_a_rule_can_meet(names: tuple[str, ...]) -> None:
    """Nothing is said; nor of no mapping at all."""
    assert unmet(RULES, CheckMapping(tuple((name, f"X-{name}") for name in names))) is None


def test_a_mapping_that_no_rule_can_meet_names_what_is_missing() -> None:
    """And what follows from it."""
    assert unmet(RULES, CheckMapping((("tenant", "X-Tenant"),))) == (
        "no rule can match what --check-headers maps (tenant), so /check lets every request pass; it lacks api at least"
    )


def test_check_config_warns_of_it() -> None:
    """The rules are good all the same."""
    result = run(GOOD, "--check-headers", "tennant=X-Tenant")
    assert result.exit_code == 0
    assert "warning: no rule can match what --check-headers maps (tennant)" in result.stderr
