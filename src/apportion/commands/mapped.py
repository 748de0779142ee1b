"""Whether a mapping of headers to dimensions can meet any rule: one that cannot lets every request pass."""

from __future__ import annotations

from apportion.core.rule import RuleSet
from apportion.edge.check_request import CheckMapping


def unmet(rules: RuleSet, mapping: CheckMapping) -> str | None:
    """A sentence that names what is missing, where no rule of the domains asked can ever match; else None."""
    mapped = {dimension for dimension, _ in mapping.headers}
    domains = [domain for domain in rules.domains.values() if mapping.domain in (None, domain.name)]
    asked = [rule for domain in domains for rule in domain.rules]
    if not mapped or not asked or any(rule.dimensions <= mapped for rule in asked):
        return None
    fewest = min((sorted(rule.dimensions - mapped) for rule in asked), key=lambda names: (len(names), names))
    return (
        f"no rule can match what --check-headers maps ({', '.join(sorted(mapped))}), so /check lets every request "
        f"pass; it lacks {', '.join(fewest)} at least"
    )
