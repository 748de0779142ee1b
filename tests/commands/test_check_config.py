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
