"""The words of the rules file: what each section knows, what is not built yet, how to choose where nothing is default.

A word of the design that this version does not act on is listed as LATER, so that the file is refused with the truth:
it is neither ignored nor called unknown. When it is built, its name moves from LATER to the known ones of its section.
"""

from __future__ import annotations

from difflib import SequenceMatcher, get_close_matches

from apportion.core.quantities import shown

TOP = ("version", "domain", "edges_max", "time_zone", "defaults", "plans", "tenants", "unlisted_tenants", "rules")
TOP_LATER = ("contracts", "envoys_max")

DEFAULTS = ("deadline", "cost")

RULE = (
    "name",
    "match",
    "key",
    "limit",
    "enforce",
    "when_unavailable",
    "deadline",
    "cost",
    "exact",
    "shadow",
    "candidate_for",
    "slack",
    "at_each_edge",
    "wrong_costs",
    "counts",
)
CANDIDATE_INHERITS = ("match", "key", "enforce", "exact", "counts")
"""Fields of a rule that its candidates take from it and may not have themselves."""

RULE_LATER = (
    "colocate",
    "durability",
    "fair_by",
    "on_counter_loss",
    "priority",
)

LIMIT = (
    "rate",
    "burst",
    "quota",
    "anchor",
    "time_zone",
    "week_starts_on",
    "month_starts_on",
    "audit_periods",
    "unlimited",
    "from_plan",
)
LIMIT_LATER = ("allowance",)

COST = ("default", "max")

ENFORCE_LATER = ()

HOW_TO_CHOOSE_ENFORCE = (
    "missing, and there is no default because choosing it is the design: what does it cost to be wrong for a few "
    "seconds at every location at once? a noisy graph: `edge`; a bill, a broken promise or an overwhelmed service: "
    "`edge+region` or `region`; never over, but no crossing per request: `lease`"
)
HOW_TO_CHOOSE_AT_THE_EDGE = (
    "missing, and there is no default because choosing it is the design: how much may each edge admit by itself? "
    "`at_each_edge: 50/s` needs nobody and lets as many times that pass as there are edges; `slack: 10%` follows "
    "demand and lets all edges together pass so much more than the limit"
)
HOW_TO_CHOOSE_WRONG_COSTS = (
    "missing, and there is no default because choosing it is the design: what does it cost when an `edge` rule is "
    "exceeded for a few seconds? a noisy graph: `noise`; a service that may be overwhelmed: `overload`; money or a "
    "broken promise: `money`, and then `edge` is the wrong way to enforce it"
)
HOW_TO_CHOOSE_EDGES_MAX = (
    "needs `edges_max` at the top of the file: how many edges there may be is part of what each may admit, and of the "
    "bound; the region refuses one more"
)
HOW_TO_CHOOSE_WHEN_UNAVAILABLE = (
    "missing, and there is no default because choosing it is the design: what happens while the region cannot be "
    "reached? protecting something fragile usually ends in deny, a courtesy usually in allow; before that, stages "
    "may spend a share, such as [keep_share for 30s, fair_share for 5m, deny]"
)
HOW_TO_CHOOSE_ANCHOR = (
    "missing, and there is no default because choosing it is the design: when does the period begin? what the pricing "
    'page says decides: `calendar` is "per day" (for everybody at midnight), `first_use` "per 24 hours" '
    '(24 hours from the subject\'s first call), `rolling` "in any 24 hours" (never more in any window)'
)
NONE_ZERO_UNLIMITED = (
    "none, zero and unlimited are three different things: {rate: 100/s} allows so much, {rate: 0/s} refuses "
    "everything, {unlimited: true} counts nothing"
)

LISTED_MAX = 20
"""Names that a message lists; the time zones are more than anybody reads."""

_SECTIONS = {
    "the top of the file": TOP + TOP_LATER,
    "a rule": RULE + RULE_LATER,
    "`limit`": LIMIT + LIMIT_LATER,
    "`cost`": COST,
}


def not_built(what: str) -> str:
    """The sentence for a word of the design that this version refuses."""
    return f"{what} is not built yet in this version; a rules file that needs it is refused rather than half kept"


def unknown(found: str, known: tuple[str, ...], later: tuple[str, ...] = ()) -> str:
    """The sentence for a word that nobody knows: found, and nearest known one (`later`: known but not built)."""
    close = get_close_matches(found[:100], known + later, n=1)
    if close:
        return f"unknown: {shown(found)}; did you mean `{close[0]}`?"
    elsewhere = next((section for section, names in _SECTIONS.items() if found in names), None)
    if elsewhere:
        return f"{shown(found)} does not belong here but in {elsewhere}; known here: {', '.join(known)}"
    nearest = max(known, key=lambda name: SequenceMatcher(None, found[:100], name).ratio())
    listed = f", known here: {', '.join(known)}" if len(known) <= LISTED_MAX else ""
    return f"unknown: {shown(found)}; the nearest known name is `{nearest}`{listed}"


def nearest(found: str, names: tuple[str, ...]) -> str:
    """The sentence for a name that the file itself should have given, such as that of a rule."""
    close = get_close_matches(found[:100], names, n=1)
    if close:
        return f"which there is none of; did you mean {shown(close[0])}?"
    listed = ", ".join(map(shown, names[:LISTED_MAX])) + (" and others" if len(names) > LISTED_MAX else "")
    return f"which there is none of; there is {listed}" if names else "which there is none of"
