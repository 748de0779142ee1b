"""Reading `when_unavailable` of a rule: stages in order, each but the last for a duration, and what they need. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from apportion.core.document import Node, Problem, Scalar, kind_of
from apportion.core.limit import PeriodLimit
from apportion.core.quantities import DURATIONS_NS, duration_text, parse_duration, shown
from apportion.core.rule import Enforce, Fallback, Rule, Stage
from apportion.core.rule_fields import Section
from apportion.core.rules_vocabulary import HOW_TO_CHOOSE_WHEN_UNAVAILABLE, unknown

STAGES_MAX = 16
"""Of one `when_unavailable`."""

STAGE_NS_MAX = 30 * DURATIONS_NS["d"]
"""An outage that lasts longer is not answered by stages."""

WORDS = tuple(fallback.value for fallback in Fallback)


def read_stages(rule: Section, enforce: Enforce | None) -> tuple[Stage, ...] | None:
    """The stages as they are written, or None when anything in them was reported."""
    items = rule.items("when_unavailable", "a list of stages such as [deny]", STAGES_MAX)
    if items is None:
        return None
    if not items:
        rule.refuse("when_unavailable", HOW_TO_CHOOSE_WHEN_UNAVAILABLE)
        return None
    stages: list[Stage] = []
    before = len(rule.problems)
    for index, item in enumerate(items):
        try:
            stages.append(_read_stage(item, stages[-1] if stages else None, index == len(items) - 1, enforce))
        except ValueError as error:
            rule.refuse_item("when_unavailable", item, str(error))
    return tuple(stages) if len(rule.problems) == before else None


def _read_stage(item: Node, former: Stage | None, last: bool, enforce: Enforce | None) -> Stage:
    """One stage; ValueError says what is wrong with it."""
    if not isinstance(item, Scalar) or item.nothing:
        raise ValueError(f"found {kind_of(item)}, a stage is meant, such as deny")
    word, limited, duration = item.text.partition(" for ")
    if word not in WORDS:
        raise ValueError(unknown(word, WORDS))
    fallback = Fallback(word)
    if former is not None and former.fallback is fallback:
        raise ValueError(f"found `{word}` twice in a row; add the durations up")
    if fallback is Fallback.KEEP_SHARE and enforce is Enforce.REGION:
        raise ValueError(
            "found `keep_share`, which needs slices: only `lease` and `edge+region` have them; write `allow` or "
            "`deny`, or for a rate `fair_share`"
        )
    if fallback is Fallback.DENY and (limited or not last):
        raise ValueError(
            f"found {shown(item.text)}; `deny` is the last stage and holds until the region answers, without a duration"
        )
    if last:
        if limited:
            raise ValueError(
                f"found {shown(item.text)} as the last stage, which holds until the region answers: write `{word}`, or "
                "add a stage for what comes after it"
            )
        return Stage(fallback)
    if not limited:
        raise ValueError(f"found `{word}` without a duration, and it is not the last stage; write `{word} for 30s`")
    duration_ns = parse_duration(duration)
    if duration_ns > STAGE_NS_MAX:
        raise ValueError(f"found {duration_text(duration_ns)}, the longest stage is {duration_text(STAGE_NS_MAX)}")
    return Stage(fallback, duration_ns)


def share_of_quota(rules: Iterable[Rule]) -> list[Problem]:
    """The rules with a quota whose stages spend a share: an allowance of a period has none a second."""
    shares = (Fallback.KEEP_SHARE, Fallback.FAIR_SHARE)
    return [
        Problem(
            rule.place,
            f"`{found.value}` is for rates: an allowance of a period has no share a second; write `allow` or `deny`",
        )
        for rule in rules
        if isinstance(rule.limit, PeriodLimit)
        and (found := next((stage.fallback for stage in rule.when_unavailable if stage.fallback in shares), None))
    ]


def missing_edges_max(rules: Iterable[Rule], edges_max: int | None) -> list[Problem]:
    """The rules of a domain whose stages need `edges_max`, where nobody says it."""
    if edges_max is not None:
        return []
    shares = (Fallback.KEEP_SHARE, Fallback.FAIR_SHARE)
    return [
        Problem(
            rule.place,
            f"`{found.value}` needs `edges_max` at the top of the file: how many edges there may be is part of the "
            "bound, and the region refuses one more",
        )
        for rule in rules
        if (found := next((stage.fallback for stage in rule.when_unavailable if stage.fallback in shares), None))
        and rule.enforce is not Enforce.EDGE_REGION
        and not isinstance(rule.limit, PeriodLimit)
    ]
