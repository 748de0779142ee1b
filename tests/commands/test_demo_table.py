"""The demo's tables and lines at the widths that terminals have: figures are whole, and the important ones stay."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from apportion.commands.demonstration.table import SUMMARY, fitted
from apportion.commands.tables import console_for, table_of

FIGURES = ["payments", "region", "200/s", "50", "1,149,987", "1,460,520", "100.0%", "1,166,613", "0", "0", "0"]


def shown(width: int, rule: str = "payments") -> str:
    """The summary's table on a console of that width."""
    console = Console(file=io.StringIO(), width=width)
    console.print(table_of(console, "title", SUMMARY, [[Text(rule), *FIGURES[1:]]]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_at_120_columns_everything_is_shown() -> None:
    """Every heading on one line, every figure whole."""
    text = shown(120)
    for heading in ("enforce", "burst", "crossings", "over by label", "by the region"):
        assert heading in text
    assert all(figure in text for figure in FIGURES)


def test_at_80_columns_what_matters_is_whole() -> None:
    """Crossings go first; nothing is cut, and no line is longer than the terminal."""
    text = shown(80)
    for word in ("rule", "limit", "offered", "admitted", "utilisation", "bound", "over by", "1,149,987", "100.0%"):
        assert word in text
    assert "crossings" not in text
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_long_name_is_folded_and_the_figures_are_not() -> None:
    """60 characters of a name leave room for every figure that matters."""
    text = shown(80, rule="x" * 60)
    assert text.count("x") == 60
    assert all(figure in text for figure in ("200/s", "1,149,987", "1,460,520", "100.0%"))


def test_lines_break_between_parts() -> None:
    """A part is never cut; what follows is indented."""
    assert fitted("   3 s", ["search", "offered 500/s", "over 0"], 29) == [
        "   3 s  search  offered 500/s",
        "          over 0",
    ]


@pytest.mark.parametrize("columns, width", [("80", 80), ("", 118)])
def test_a_pipe_is_as_wide_as_columns_says(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    """Without COLUMNS, a width that most windows have."""
    monkeypatch.setenv("COLUMNS", columns)
    assert console_for(as_json=False).width == width
