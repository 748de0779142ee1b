"""`apportion check-config` as a person and as a program sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from apportion.commands.check_config import check_config, parse_request
from apportion.core.errors import InputError
from tests.checkout import ROOT

CONFIG = ROOT / "tests" / "config"
GOOD = str(CONFIG / "good" / "lease_and_region.yaml")


def run(*arguments: str) -> Result:
    """What the command prints, and its exit code."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(check_config)
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_good_rules_are_printed_with_their_bounds() -> None:
    """Name, enforce, limit, burst and the sentence of each rule; exit code 0."""
    result = run(GOOD)
    assert result.exit_code == 0
    for text in ("search-backend", "20000/s", "5000", "lease", "unlimited", "By label: over by at most 0"):
        assert text in result.stdout
    assert "Set the timeout of the proxy in front above the deadline, 100ms" in result.stdout


def test_bad_rules_are_all_named_and_the_exit_code_is_2() -> None:
    """On standard error, one line each."""
    result = run(str(CONFIG / "bad" / "duplicate_rule.yaml"))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "duplicate_rule.yaml:11: rules[two]: duplicate of the rule `one` at duplicate_rule.yaml:5" in result.stderr
    assert "1 problem; nothing of it would be loaded" in result.stderr


@pytest.mark.parametrize(
    "arguments,said",
    [
        (["nowhere.yaml"], "nowhere.yaml: there is no such file or folder"),
        ([GOOD, "--store", "redis://localhost"], "not built yet in this version"),
        ([GOOD, "--store", "sqlit:///x"], "did you mean sqlite:?"),
        ([GOOD, "--request", "tenant"], "write DIMENSION=VALUE, joined by commas"),
        ([GOOD, "--request", "a=1,a=2"], "the dimension 'a' is there twice"),
    ],
)
def test_wrong_flags_are_said_with_the_fix(arguments: list[str], said: str) -> None:
    """Exit code 2, and no traceback."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_request_shows_what_applied_what_was_set_aside_and_why(tmp_path: Path) -> None:
    """Set aside for which rule, and what is different over RLS."""
    file = tmp_path / "rules.yaml"
    rest = "key: [], limit: {rate: 5/s}, enforce: region, when_unavailable: [deny]}\n"
    file.write_text(
        'version: 1\ndomain: api\nrules:\n  - {name: any, match: {a: "*"}, '
        + rest
        + '  - {name: some, match: {a: "x*"}, '
        + rest
        + "  - {name: far, match: {b: y}, "
        + rest
    )
    result = run(str(file), "--request", "a=xy,c=1")
    assert "applies    some (key: one count for all): `a` fits `x*`; not over RLS" in result.stdout
    assert "set aside  any: fits, but `some` with the same dimensions is more specific" in result.stdout
    assert "not        far: the dimension `b` is absent" in result.stdout
    assert "no rule applies" in run(str(file), "--request", "z=1").stdout
    report = json.loads(run(str(file), "--request", "a=xy", "--json").stdout)
    assert report["requests"] == [
        {
            "request": {"a": "xy"},
            "domain": "api",
            "applied": [{"rule": "some", "why": "`a` fits `x*`"}],
            "set_aside": [
                {
                    "rule": "any",
                    "why": "fits, but `some` with the same dimensions is more specific",
                    "set_aside_for": "some",
                }
            ],
        }
    ]


def test_json_has_the_numbers() -> None:
    """For programs: what design 13 names the same way in simulate's JSON."""
    report = json.loads(run(GOOD, "--store", "memory:", "--json").stdout)
    rules = {rule["rule"]: rule for rule in report["rules"]}
    assert {
        name: (rule["enforce"], rule["limit_per_second"], rule["burst"], rule["bound"]) for name, rule in rules.items()
    } == {
        "blocked": ("region", 0.0, 0, 0),
        "health": (None, None, None, None),
        "search-backend": ("lease", 20_000.0, 5_000, 5_000),
        "tenant-requests": ("region", 10_000.0, 2_500, 2_500),
    }
    assert len(report["digest"]) == 64


def test_json_has_the_problems() -> None:
    """On standard output, with the same exit code."""
    result = run(str(CONFIG / "bad" / "rate_m.yaml"), "--json")
    assert result.exit_code == 2
    (problem,) = json.loads(result.stdout)["problems"]
    assert (problem["file"], problem["line"], problem["path"]) == ("rate_m.yaml", 8, "rules[r].limit.rate")
    assert json.loads(run("nowhere.yaml", "--json").stdout)["problems"][0]["file"] == "nowhere.yaml"


def test_a_request_is_dimensions_joined_by_commas() -> None:
    """A value may be empty, hold an equals sign, or a comma after a backslash."""
    assert parse_request("a=1,b=,c=x=y,d=p\\,q") == {"a": "1", "b": "", "c": "x=y", "d": "p,q"}
    with pytest.raises(InputError):
        parse_request("")


QUOTAS = str(CONFIG / "good" / "quotas.yaml")
RESETS = {
    "anchor-by-default": "All subjects reset together, each 30 minutes by the clock in Europe/Berlin.",
    "zone-of-the-file": "All subjects reset together, each day at 00:00 in Europe/Berlin.",
    "zone-of-the-rule": "All subjects reset together, each hour by the clock in Asia/Kolkata.",
    "zone-of-the-tenant": "The subjects of one tenant, and of all tenants with the same calendar, reset together, on "
    "the tenant's day (else day 1) of January and of each 3 months from there at 00:00 in the tenant's time zone (else "
    "Europe/Berlin).",
    "week-from-sunday": "All subjects reset together, each Sunday at 00:00 in Europe/Berlin.",
    "month-from-the-last-day": "All subjects reset together, on day 31 (else the last) of each month at 00:00 in "
    "Europe/Berlin.",
    "largest-cost": "Each tenant resets by itself, a day after its first call.",
}


def test_a_quota_says_who_resets_when_and_what_a_reset_admits() -> None:
    """As fields and within the sentence; two allowances around a reset."""
    rules = {each["rule"]: each for each in json.loads(run(QUOTAS, "--json").stdout)["rules"] if not each["plan"]}
    assert {name: rules[name]["quota"]["resets"] for name in RESETS} == RESETS
    daily = rules["zone-of-the-file"]
    assert (daily["limit"], daily["burst"], daily["bound"], daily["enforce"]) == (
        "1000/day, calendar",
        None,
        0,
        "lease",
    )
    assert daily["quota"] == {
        "allowance": 1000,
        "period": "day",
        "anchor": "calendar",
        "time_zone": "Europe/Berlin",
        "time_zone_from_tenant": False,
        "month_from_tenant": False,
        "resets": RESETS["zone-of-the-file"],
        "around_reset": 2000,
        "audit_periods": False,
    }
    assert daily["bound_sentence"].startswith(
        "In a period: over by at most 0, whatever fails, as long as the clock of the region's host is not set back by "
        "more than 30s over a reset. Around a reset: up to 2000, two allowances, one just before "
        "it and one just after, which no period counts twice; with `anchor: rolling` it is 1000 in any day. "
        + RESETS["zone-of-the-file"]
    )
    assert rules["nothing"]["bound_sentence"] == (
        "An allowance of 0: every cost is refused at once, everywhere. In a period: over by at most 0."
    )


def test_the_bound_of_a_quota_is_of_a_period() -> None:
    """In the table too, and for each anchor."""
    text = " ".join(run(QUOTAS).stdout.split())
    assert "0 a day" in text
    assert "0 each 30 minutes" in text
    rolling = " ".join(run(str(CONFIG / "good" / "quotas_of_each_period.yaml")).stdout.split())
    assert "0 in any 7 seconds" in rolling
    assert "In any window: over by at most 0, whatever fails. There is no reset" in rolling
    assert "at 00:00 and each 6 hours from there in UTC" in rolling
    assert "on day 1 of January at 00:00 in UTC" in rolling
    assert "Each tenant resets by itself, an hour after its first call." in rolling


def test_a_request_says_its_quota_by_the_calendar_of_its_tenant() -> None:
    """On its plan, in its zone, on its day of the month."""
    text = " ".join(run(QUOTAS, "--request", "tenant=contoso").stdout.split())
    assert "100000/month, calendar; resets on day 17 of each month at 00:00 in America/New_York" in text
    assert "10/day, first_use; resets a day after its first call" in text
    report = json.loads(run(QUOTAS, "--request", "tenant=someone", "--json").stdout)
    applied = {each["rule"]: each for each in report["requests"][0]["applied"]}
    assert applied["of-each-plan"]["limit"] == "5000/month, calendar"
    assert applied["of-each-plan"]["resets"] == "resets on day 1 of each month at 00:00 in Europe/Berlin"


def test_long_quotas_on_a_store_that_keeps_nothing_are_refused() -> None:
    """Each by name, with the fix; short ones and those of `wrong_costs: noise` are not among them."""
    result = run(QUOTAS, "--store", "memory:")
    assert result.exit_code == 2
    assert (
        "quotas.yaml:22: rules[zone-of-the-file]: the quota 1000/day would be counted in the store `memory:`, where "
        "each restart is worth a whole allowance; count it in a region on sqlite, or write `wrong_costs: noise` if "
        "that is no harm"
    ) in result.stderr
    assert "8 problems" in result.stderr
    assert "largest-cost" not in result.stderr
    assert run(QUOTAS, "--store", "sqlite:///region.db").exit_code == 0
