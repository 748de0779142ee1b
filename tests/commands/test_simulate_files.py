"""`apportion simulate` with files: pictures, a page, and an access log in place of the demand."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from apportion.commands.simulate import simulate

SHORT = """
about: A short one.
edges: 3
seconds: 8
warm_up: 4
limit: 100/s
enforce: lease
demand: [{shape: uniform, load: 60%}]
"""
LOG = "time,location,key\n" + "".join(
    f"{1798761600 + at // 50}.{at % 50 * 2:02},{'paris' if at % 3 else 'oslo'},contoso\n" for at in range(400)
)


def run(*arguments: str) -> Result:
    """What the command prints, and its exit code."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(simulate)
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture
def short(tmp_path: Path) -> str:
    """A scenario's file."""
    (tmp_path / "short.yaml").write_text(SHORT)
    return str(tmp_path / "short.yaml")


@pytest.fixture
def log(tmp_path: Path) -> str:
    """An access log of eight seconds, with one bad line."""
    (tmp_path / "access.csv").write_text(LOG + "rubbish\n")
    return str(tmp_path / "access.csv")


def test_picture_and_page_are_written(short: str, tmp_path: Path) -> None:
    """Beside the table; the page has the command that makes the run again, and the scenario's text."""
    plot, html = tmp_path / "a.png", tmp_path / "a.html"
    result = run("--scenario", short, "--seed", "3", "--limit", "80/s", "--plot", str(plot), "--html", str(html))
    assert result.exit_code == 0, result.output
    assert plot.read_bytes().startswith(b"\x89PNG")
    text = html.read_text()
    assert f"apportion simulate --scenario {short} --seed 3 --limit 80/s" in text
    assert "demand: [{shape: uniform, load: 60%}]" in text


def test_a_comparison_is_drawn_under_each_mode(short: str, tmp_path: Path) -> None:
    """Four modes and three baselines, each in the pictures and in the table of the page."""
    html = tmp_path / "a.html"
    result = run("--scenario", short, "--seed", "3", "--compare", "enforce", "--html", str(html))
    assert result.exit_code == 0, result.output
    text = html.read_text()
    for words in ("(edge+region, 100/s)", "(region, 100/s)", "(lease, 100/s)", "(edge, 100/s)"):
        assert words in text, words
    for baseline in ("Q/N each", "local, reconciled", "central bucket"):
        assert f"({baseline}, 100/s)" in text
        assert f">{baseline}</td>" in text


def test_a_log_is_replayed_in_the_world_of_the_flags(log: str) -> None:
    """Every good line is a request; the bad one is named, and the exit code is 0."""
    result = run("--replay", log, "--limit", "30/s", "--enforce", "region", "--edges", "2", "--seed", "1", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    (replayed,) = report["runs"]
    assert (replayed["scenario"], replayed["seed"]) == ("access.csv", 1)
    (rule,) = replayed["rules"]
    assert (rule["offered"], rule["limit_per_second"], rule["enforce"]) == (400, 30.0, "region")
    assert 30 * 8 <= rule["admitted"] <= 30 * 8 + 20
    assert report["notes"] == [
        "access.csv: 400 lines replayed, 1 skipped.",
        "line 402: has 1 columns, the header has 3",
        "locations: edge-0 oslo, edge-1 paris",
    ]


def test_a_log_is_compared_under_each_mode(log: str, tmp_path: Path) -> None:
    """The same requests in four modes and under three baselines, which are beside them in table and pictures."""
    html = tmp_path / "a.html"
    given = ["--replay", log, "--limit", "30/s", "--compare", "enforce", "--seed", "1", "--json", "--html", str(html)]
    result = run(*given)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    rules = [rule for each in report["runs"] for rule in each["rules"]]
    others = ["Q/N each", "local, reconciled", "central bucket"]
    assert [rule["enforce"] for rule in rules] == ["edge+region", "region", "lease", "edge", *others]
    assert {rule["offered"] for rule in rules} == {400}
    assert report["notes"][-1].startswith("What others do: `Q/N each`, ")
    assert [f"({name}, 30/s)" in html.read_text() for name in others] == [True] * 3


@pytest.mark.parametrize(
    "arguments,said",
    [
        (["--plot", "a.gif"], "--plot a.gif: pictures are written as .png or .svg"),
        (["uniform", "--plot", "nowhere/a.png"], "--plot nowhere/a.png: name a file in a folder that is there"),
        (["uniform", "--html", "."], "--html .: name a file in a folder that is there"),
        (["uniform", "--seeds", "100", "--html", "a.html"], "100 runs and rules are too many for a picture, 64 are"),
        (["--replay", "a.log"], "--replay needs the limit that is tried on the log: add --limit 1000/s"),
        (["--replay", "a.log", "--limit", "1/s"], "--replay needs a way to enforce: add --enforce lease"),
        (["--replay", "a.log", "--limit", "1/s", "--enforce", "edge"], "--replay a.log: No such file or directory"),
        (["--replay", "a.log", "uniform", "zipf"], "--replay runs one log in one world"),
        (["--replay", "a.log", "uniform", "--seeds", "2"], "--replay runs one log in one world"),
        (["uniform", "--compare", "enforce", "--seeds", "2"], "--compare runs one seed in all modes"),
        (["uniform", "--compare", "enforce", "--in-turn"], "--compare runs one seed in all modes"),
        (["uniform", "--jobs", "0"], "--jobs is from 1 to 256, got 0"),
        (
            ["uniform", "--jobs", "2", "--html", "a.html"],
            "--plot and --html draw runs of one process: leave --jobs out",
        ),
        (["--key-from", "tenant"], "--key-from says how a log is read: name one with --replay LOG"),
    ],
)
def test_wrong_flags_are_said_with_the_fix(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is run. Exit code 2, and no traceback."""
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
