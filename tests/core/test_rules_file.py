"""A rules file is read strictly: what is good, what is bad and how it is said (design 4)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apportion.core.document import Problem
from apportion.core.errors import RulesError
from apportion.core.limit import RateLimit, Unlimited
from apportion.core.rule import Enforce, Fallback, Pattern, PatternKind, Rule, RuleSet, Stage
from apportion.core.rules_file import PROBLEMS_MAX, digest_of, parse_rules
from tests.checkout import ROOT

CONFIG = ROOT / "tests" / "config"
BAD = sorted((CONFIG / "bad").glob("*.yaml"))
GOOD = sorted((CONFIG / "good").glob("*.yaml"))

HEAD = "version: 1\ndomain: api\nrules:\n"
LINE = (
    '  - {name: NAME, match: {tenant: "*"}, key: [tenant], limit: {rate: 10/s}, enforce: region, '
    "when_unavailable: [deny]}\n"
)


def one(name: str = "r", **changed: str) -> str:
    """A rule on one line, with some fields changed."""
    fields = {
        "name": name,
        "match": '{tenant: "*"}',
        "key": "[tenant]",
        "limit": "{rate: 10/s}",
        "enforce": "region",
        "when_unavailable": "[deny]",
        **changed,
    }
    return "  - {" + ", ".join(f"{field}: {value}" for field, value in fields.items()) + "}\n"


def problems_of(*texts: tuple[str, str]) -> list[str]:
    """The report on texts that are refused, line by line."""
    with pytest.raises(RulesError) as refused:
        parse_rules(texts)
    assert all(isinstance(problem, Problem) for problem in refused.value.problems)
    return [str(problem) for problem in refused.value.problems]


def rule_of(text: str, name: str = "r") -> Rule:
    """The rule of that name in a good file of the domain api."""
    rule = parse_rules([("rules.yaml", text)]).rule("api", name)
    assert rule is not None
    return rule


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_each_kind_of_bad_file_is_refused_with_a_sentence_that_names_it(path: Path) -> None:
    """The first line of each file says what the report must say; every problem names file and line."""
    text = path.read_text(encoding="utf-8")
    expected = text.splitlines()[0].removeprefix("# expect: ")
    report = problems_of((path.name, text))
    assert expected in "\n".join(report)
    assert all(line.startswith(f"{path.name}:") for line in report)


def test_a_bad_file_has_no_problem_but_its_own() -> None:
    """One mistake gives one problem, so that a report is not longer than the work it asks for."""
    reports = {path.stem: problems_of((path.name, path.read_text(encoding="utf-8"))) for path in BAD}
    assert {name: len(report) for name, report in reports.items() if len(report) > 1} == {
        "cut_between_fields": 2,  # all that would follow is missing
        "rule_field_of_limit": 2,  # a field under a wrong name is missing under its right one
        "rule_misspelt_field": 2,
        "top_unknown_field": 2,
        "yaml_alias": 2,  # and what it stands for is missing
        "yaml_billion_laughs": 34,
    }


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_each_good_file_is_read(path: Path) -> None:
    """What is right is not refused."""
    assert parse_rules([(path.name, path.read_text(encoding="utf-8"))]).domains


def test_a_rule_is_read_with_every_field() -> None:
    """Each field of a rule arrives as it is written, and the defaults of the file where it is not."""
    text = (CONFIG / "good" / "lease_and_region.yaml").read_text()
    rules = parse_rules([("rules.yaml", text)])
    tenant = rules.rule("api", "tenant-requests")
    assert tenant is not None
    assert tenant.match == (
        (
            "api",
            (
                Pattern(PatternKind.ANY),
                Pattern(PatternKind.PREFIX, "/v1/"),
                Pattern(PatternKind.EXACT, "search"),
            ),
        ),
        ("tenant", (Pattern(PatternKind.ANY),)),
    )
    assert tenant.key == ("tenant", "api")
    assert tenant.limit == RateLimit(10_000, 1_000_000_000, 2_500)
    assert tenant.enforce is Enforce.REGION
    assert tenant.when_unavailable == (Stage(Fallback.DENY),)
    assert (tenant.deadline_ns, tenant.cost_default, tenant.cost_max, tenant.exact) == (50_000_000, 2, 100, False)
    assert str(tenant.place) == "rules.yaml:13: rules[tenant-requests]"
    assert rules.domains["api"].edges_max == rules.edges_max == 40


def test_what_the_file_leaves_out_has_its_default() -> None:
    """Without a line of its own a rule has 100ms, cost 1, the burst as largest cost, and exact descriptors."""
    rule = rule_of(HEAD + one())
    assert rule.limit == RateLimit(10, 1_000_000_000, 10)
    assert (rule.deadline_ns, rule.cost_default, rule.cost_max, rule.exact) == (100_000_000, 1, 10, True)
    assert parse_rules([("rules.yaml", HEAD + one())]).edges_max is None


def test_a_largest_cost_in_defaults_is_capped_to_the_burst() -> None:
    """One on the rule is an error there, one in `defaults` is not."""
    head = "version: 1\ndomain: api\ndefaults: {cost: {max: 50}}\nrules:\n"
    assert rule_of(head + one()).cost_max == 10
    assert rule_of(head + one(limit="{rate: 1000/s}")).cost_max == 50
    assert rule_of(head + one(limit="{rate: 1000/s}", cost="{max: 60}")).cost_max == 60


def test_none_zero_and_unlimited_are_three_different_things() -> None:
    """A missing limit is an error, a rate of 0 refuses everything, unlimited counts nothing and needs no decision."""
    assert rule_of(HEAD + one(limit="{rate: 0/s}")).limit == RateLimit(0, 1_000_000_000, 0)
    unlimited = rule_of(HEAD + "  - {name: r, match: {tenant: a}, key: [], limit: {unlimited: true}}\n")
    assert unlimited.limit == Unlimited()
    assert (unlimited.cost_max, unlimited.divided) == (None, False)
    assert "limit: missing" in problems_of(("r.yaml", HEAD + one().replace(", limit: {rate: 10/s}", "")))[0]


def test_scalars_stay_the_text_that_was_written() -> None:
    """`NO` is no falsehood, 1.0 no number, a date no date (design 4)."""
    text = (CONFIG / "good" / "texts_stay_texts.yaml").read_text()
    values = {name: patterns[0].text for name, patterns in rule_of(text).match}
    assert values == {
        "country": "NO",
        "release": "1.0",
        "day": "2020-01-01",
        "code": "010",
        "flag": "yes",
        "none": "null",
        "empty": "",
        "tilde": "~",
        "hex": "0x1F",
    }


def test_one_report_has_every_problem_of_every_file_in_their_order() -> None:
    """Nobody mends a file one run at a time."""
    first = HEAD + one(enforce="regoin", limit="{rate: 10/m}") + one("s", key="[api]")
    assert [line.partition(": ")[0] for line in problems_of(("b.yaml", "version: 2\n"), ("a.yaml", first))] == [
        "a.yaml:4",
        "a.yaml:4",
        "a.yaml:5",
        "b.yaml:1",
        "b.yaml:1",
        "b.yaml:1",
    ]


def test_a_report_is_bounded() -> None:
    """After so many problems the file is something else; the report says how many are left out."""
    report = problems_of(("r.yaml", "rules: [" + "a, " * 1000 + "]"))
    assert len(report) == PROBLEMS_MAX + 1
    assert report[-1].endswith("from here on more problems are left out; mend the first ones first")


def test_files_of_one_domain_are_one_set() -> None:
    """Several files may share a domain; each keeps its own defaults, and one edges_max is enough."""
    head = "version: 1\ndomain: api\nedges_max: 7\ndefaults: {deadline: 5ms}\nrules:\n"
    rules = parse_rules([("b.yaml", HEAD + one("b", limit="{rate: 10/min}")), ("a.yaml", head + one("a"))])
    assert sorted(rule.name for rule in rules.domains["api"].rules) == ["a", "b"]
    assert rules.domains["api"].edges_max == 7
    assert [(r.name, r.deadline_ns) for r in rules.domains["api"].rules] == [("a", 5_000_000), ("b", 100_000_000)]


def test_two_numbers_of_edges_for_one_domain_are_an_error_that_names_both() -> None:
    """Each bound counts on one of them."""
    texts = [(name, HEAD.replace("rules", f"edges_max: {most}\nrules")) for name, most in (("a", 3), ("b", 4))]
    texts = [(name, text + one(name)) for name, text in texts]
    assert (
        "b:3: edges_max: found 4, but a:3: edges_max says 3 for the same domain; write it once, or alike"
        in problems_of(*texts)
    )


def test_a_name_may_be_taken_in_another_domain() -> None:
    """Names are unique within a domain only."""
    other = HEAD.replace("api", "mail")
    rules = parse_rules([("a", HEAD + one()), ("b", other + one())])
    assert sorted(rules.domains) == ["api", "mail"]


def test_equally_specific_rules_with_another_period_both_stand() -> None:
    """Ten a second and a hundred a minute of the same key are two limits, no duplicate."""
    text = HEAD + one("a") + one("b", limit="{rate: 100/min}") + one("c", key="[]")
    assert len(parse_rules([("r", text)]).domains["api"].rules) == 3


@pytest.mark.parametrize(
    "text",
    [
        *("", "\ufeff", "# nothing\n", "---\n", "\x00", "rules: \x07", "\ud800", "'", "%FOO", "!!", "\ta: 1"),
        *("[" * 100_000, "{" * 100_000, "- " * 100_000, "? ? ? a", "a: &a [*a]", "a: !<x> 1", "%YAML 9.9\n--- a"),
        *(
            '"\\ud800": 1',
            '"\\UFFFFFFFF"',
            "a" * (4 * 2**20 + 1),
            "x: |\n  " + "y\n  " * 10_000,
            "version: " + "9" * 5_000,
        ),
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_no_text_gets_more_than_a_report(text: str) -> None:
    """Neither a crash nor an endless run: a clear problem, with a line."""
    assert problems_of(("r.yaml", text))[0].startswith("r.yaml:1: ") or "r.yaml:2: " in problems_of(("r.yaml", text))[0]


def test_a_byte_order_mark_is_no_character_of_the_file() -> None:
    """Editors on some systems write one."""
    assert rule_of("\ufeff" + HEAD + one()).name == "r"


def test_no_file_at_all_is_an_error() -> None:
    """Nothing would be limited, and nobody would notice."""
    assert problems_of() == ["rules:1: there is no rules file"]


def test_two_files_of_one_name_are_an_error() -> None:
    """A place must name one line."""
    assert "a:1: two rules files have this name" in problems_of(("a", HEAD + one()), ("a", HEAD + one("b")))


def test_the_digest_depends_on_names_and_texts_and_not_on_their_order() -> None:
    """Replicas that hold the same files agree on the digest; a length before each part keeps parts apart."""
    one_way = digest_of([("a", "1"), ("b", "2")])
    assert one_way == digest_of([("b", "2"), ("a", "1")])
    assert len({one_way, digest_of([("a", "1b"), ("", "2")]), digest_of([("a", "1")]), digest_of([("a1", "")])}) == 4
    assert digest_of([]) == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"


def places(rules: RuleSet) -> set[tuple[str, object]]:
    """Rules without their places, for comparison."""
    return {(domain.name, rule) for domain in rules.domains.values() for rule in domain.rules}


@given(st.permutations([one("a"), one("b", limit="{rate: 9/min}"), one("c", match="{tenant: x}"), one("d", key="[]")]))
def test_the_order_of_lines_changes_nothing(lines: list[str]) -> None:
    """Rules are a set (design 4)."""
    ordered = [one("a"), one("b", limit="{rate: 9/min}"), one("c", match="{tenant: x}"), one("d", key="[]")]
    assert places(parse_rules([("r", HEAD + "".join(lines))])) == places(parse_rules([("r", HEAD + "".join(ordered))]))


def is_read_or_refused(text: str) -> bool:
    """Whether a text gives rules or a report that says something; any other error is raised."""
    try:
        return bool(parse_rules([("r", text)]).domains)
    except RulesError as refused:
        return str(refused).startswith("r:")


@given(st.text(max_size=300))
@settings(max_examples=300)
def test_arbitrary_text_is_read_or_refused(text: str) -> None:
    """The parser raises nothing but RulesError."""
    assert is_read_or_refused(text)


MARKS = ["", "\t", "*", "{", "[", "]", "}", ": ", "&a ", "*a", "- ", "\n", "~", "'", "!!"]
PUT = st.one_of(st.sampled_from(MARKS), st.text(max_size=5))
CUTS = st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 40), PUT), min_size=1, max_size=3)
FILES = [path.read_text(encoding="utf-8") for path in GOOD + BAD if path.stat().st_size < 5_000]


@given(st.sampled_from(FILES), CUTS)
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_damaged_file_is_read_or_refused(text: str, cuts: list[tuple[int, int, str]]) -> None:
    """Whatever is cut out of a file or put in: RulesError or rules."""
    for start, length, put in cuts:
        start = min(start, len(text))
        text = text[:start] + put + text[start + length :]
    assert is_read_or_refused(text)
