"""What makes the demo's answer a no, and how its result is said."""

import json
from dataclasses import replace

from apportion.commands.demonstration.accounts import RuleAccount
from apportion.commands.demonstration.questions import Question, questions_for
from apportion.commands.demonstration.region_view import QuotaView
from apportion.commands.demonstration.results import Result, is_too_busy, problems_of, rule_result, sentences
from apportion.core.rules_file import parse_rules

ACCOUNT = RuleAccount(
    offered=12_500,
    admitted=4_900,
    refused=7_600,
    unanswered=0,
    unlabelled=0,
    degraded=0,
    overshoot=0,
    above_quota=0,
    overshoot_true_second=12,
    overshoot_true_second_certain=3,
    last_label=24,
    last_offered=500,
    last_admitted=200,
    utilisation=0.97654,
    labels={7: 200},
    offered_labels={7: 500},
)


def question(enforce: str = "lease") -> Question:
    """One rule of 200/s."""
    rule = f"{{name: search, match: {{api: x}}, key: [api], limit: {{rate: 200/s}}, enforce: {enforce}"
    text = f"version: 1\ndomain: api\nrules:\n  - {rule}, when_unavailable: [deny]}}\n"
    (found,) = questions_for(parse_rules([("rules.yaml", text)]))
    return found


def problems(enforce: str, account: RuleAccount, view: QuotaView | None = None, *differences: str) -> list[str]:
    """What is wrong with these figures."""
    asked = question(enforce)
    row = rule_result(asked, account, view or QuotaView(), not differences, edges_max=None)
    return problems_of(asked, row, account, differences)


def test_within_its_bound_nothing_is_wrong() -> None:
    """In a true second more may pass: that is no overshoot by label, and not judged."""
    assert problems("lease", ACCOUNT) == []


def test_an_overshoot_by_answers_is_a_no() -> None:
    """One unit over a bound of 0."""
    assert problems("region", replace(ACCOUNT, overshoot=1)) == ["search: over by 1 by answers, the bound is 0"]


def test_an_overshoot_by_the_regions_sum_is_a_no() -> None:
    """Even if no answer told of it."""
    view = QuotaView(overshoot=2)
    assert problems("region", ACCOUNT, view) == ["search: over by 2 by the region's sum, the bound is 0"]


def test_a_lease_may_not_exceed_a_labels_quota() -> None:
    """Its burst smooths inside an epoch and adds nothing to the label."""
    above = replace(ACCOUNT, above_quota=1)
    assert problems("lease", above) == ["search: a label admitted 1 more than its epoch's quota"]


def test_a_region_rule_may_spend_its_burst() -> None:
    """A label that admits the burst beside its quota is within the entitlement."""
    assert problems("region", replace(ACCOUNT, above_quota=50)) == []


def test_answers_without_a_label_are_a_no() -> None:
    """A sum that misses them proves nothing."""
    assert len(problems("lease", replace(ACCOUNT, unlabelled=3))) == 1


def test_a_run_that_admits_nothing_shows_nothing() -> None:
    """Zero over zero is no success."""
    nothing = replace(ACCOUNT, admitted=0, labels={})
    assert problems("lease", nothing) == ["search: nothing was admitted, so nothing was shown"]


def test_sums_that_disagree_are_a_no() -> None:
    """The referee and the region cannot both be right."""
    assert problems("lease", ACCOUNT, None, "label 7: ...") == [
        "search: the region and the answers disagree: label 7: ..."
    ]


def result(*wrong: str) -> Result:
    """A run's result."""
    row = rule_result(question(), ACCOUNT, QuotaView(crossings=830), True, edges_max=None)
    cpu = {"region": 0.2, "load": 0.4}
    return Result((row,), wrong, ("note",), 25.0, 7, 5.0, ("frankfurt",), 10, 14, 25_000, 0, cpu, 400)


def test_the_result_in_words() -> None:
    """Limit, admitted, bound and overshoot in one sentence; then what else there is to say."""
    said = (
        "search (lease, 200/s, burst 50): of 12,500 offered it admitted 4,900, utilisation 97.7%; it may be over "
        "by at most 0, and was over by 0; the region's own sum agrees."
    )
    utilisation = (
        "Utilisation is admitted / min(offered, limit), at most 100%, over 14 whole seconds; 10 before them were left "
        "out as warm-up."
    )
    straddling = (
        "Labels are the region's seconds. In any other second, part of two labels, requests sent and answered within "
        "it were over by: search 3."
    )
    assert sentences(result("search: over")) == [
        *(said, utilisation, straddling, "Note: note.", "NOT AS PROMISED: search: over.")
    ]


def test_a_busy_machine_is_one_that_loses_more_than_a_hundredth() -> None:
    """Unanswered and unsent count together: 10 of 1,000 are usual, 11 are not."""
    assert not is_too_busy(unanswered=5, requests=995, not_sent=5)
    assert is_too_busy(unanswered=6, requests=995, not_sent=5)


def test_the_result_as_json() -> None:
    """The names that programs read."""
    told = json.loads(json.dumps(result().as_json()))
    assert told["passed"] is True
    (row,) = told["rules"]
    promised = (
        "rule enforce limit_per_second burst offered admitted utilisation crossings bound overshoot_observed "
        "overshoot_region overshoot_true_second degraded"
    )
    assert set(promised.split()) <= set(row)
    assert (row["utilisation"], row["crossings"], row["overshoot_true_second"]) == (0.9765, 830, 12)
    assert json.loads(json.dumps(result("wrong").as_json()))["passed"] is False
