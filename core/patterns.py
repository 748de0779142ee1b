"""The patterns of `match`: how they are read, and how specific they are. Fitting many at once is `match`'s business.

A pattern is a value, a prefix with one `*` at its end, or `*` alone for any value that is present, "" included.
"""

from __future__ import annotations

from apportion.core.rule import Pattern, PatternKind

PATTERN_MAX = 1024
"""Characters of one pattern."""

RANK_EXACT = 1 << 30
"""Above every prefix length."""

RANK_ANY = 0
"""Below every prefix length: a prefix has at least one character."""


def parse_pattern(text: str) -> Pattern:
    """A pattern as it is written. ValueError: a `*` stands where it cannot."""
    if len(text) > PATTERN_MAX:
        raise ValueError(f"a pattern has {len(text)} characters, the most is {PATTERN_MAX}")
    if text == "*":
        return Pattern(PatternKind.ANY)
    if text.endswith("\\*"):
        raise ValueError("a value that ends in a literal `*` cannot be written in this version; nothing escapes it")
    prefix = text.removesuffix("*")
    if "*" in prefix:
        raise ValueError('a `*` fits only at the end of a prefix, such as "/api/*", or alone, for any value')
    return Pattern(PatternKind.PREFIX, prefix) if len(prefix) < len(text) else Pattern(PatternKind.EXACT, text)


def fits(pattern: Pattern, value: str) -> bool:
    """Whether the pattern fits the value."""
    if pattern.kind is PatternKind.EXACT:
        return value == pattern.text
    return value.startswith(pattern.text)


def rank(pattern: Pattern) -> int:
    """How specific a pattern is: any value < shorter prefix < longer prefix < exact."""
    if pattern.kind is PatternKind.ANY:
        return RANK_ANY
    return len(pattern.text) if pattern.kind is PatternKind.PREFIX else RANK_EXACT


def pattern_text(pattern: Pattern) -> str:
    """A pattern as it is written."""
    return pattern.text if pattern.kind is PatternKind.EXACT else pattern.text + "*"


def common_value(one: Pattern, other: Pattern) -> str | None:
    """A value that fits both, None when there is none."""
    longer, shorter = sorted((one, other), key=rank, reverse=True)
    if not fits(shorter, longer.text):
        return None
    return "any" if longer.kind is PatternKind.ANY else longer.text
