"""Runs as one page: figures, bounds in words, pictures, the scenarios' texts, and the command that replays it.

The page needs nothing beside itself: no network, no script, no font. All text in it is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from apportion.core.bounds import StoreKind, bound_of
from apportion.simulations.measures import RuleFigures
from apportion.simulations.nodes import parsed
from apportion.simulations.run import Outcome

NONE = "-"
"""A figure that limits of that kind do not have."""

COLUMNS: tuple[tuple[str, Callable[[RuleFigures], str]], ...] = (
    ("rule", lambda row: row.rule),
    ("enforce", lambda row: row.enforce),
    ("limit, units/s", lambda row: f"{row.limit_per_second:,.6g}"),
    ("burst", lambda row: f"{row.burst:,}" if row.period is None else NONE),
    ("bound", lambda row: "none" if row.bound is None else f"{row.bound:,}"),
    ("over by label", lambda row: f"{row.overshoot_label:,}" if row.period is None else NONE),
    ("over in a second", lambda row: f"{row.overshoot_true_second:,}" if row.period is None else NONE),
    ("offered", lambda row: f"{row.offered:,}"),
    ("admitted", lambda row: f"{row.admitted:,}"),
    ("utilisation", lambda row: f"{row.utilisation:.1%}"),
    ("5th percentile", lambda row: f"{row.utilisation_p5:.1%}" if row.period is None else NONE),
    ("ticks to 95 %", lambda row: str(row.ticks_to_95_percent) if row.period is None else NONE),
    ("Jain", lambda row: f"{row.jain:.3f}" if row.period is None else NONE),
    ("crossings/s", lambda row: f"{row.crossings_per_second:,.1f}"),
    ("crossing share", lambda row: f"{row.crossing_share:.1%}"),
    ("degraded", lambda row: f"{row.degraded:,}"),
    ("over by period", lambda row: NONE if row.period is None else f"{row.period.overshoot_period:,}"),
    ("resets", lambda row: NONE if row.period is None else f"{row.period.resets:,}"),
    ("stranded", lambda row: NONE if row.period is None else f"{row.period.stranded:,}"),
    ("denied", lambda row: ", ".join(f"{reason} {cost:,}" for reason, cost in row.denied.items())),
)

READING = (
    "<p><b>bound</b> is the most that one label can be over what rate and burst entitle to; utilisation is admitted / "
    "min(offered, limit) after the warm-up.</p>"
)

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 2rem auto; padding: 0 1.5rem;
  max-width: 96rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 12px; }
th, td { padding: .3rem .35rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th { border-bottom: 2px solid #888; vertical-align: bottom; white-space: normal; }
td.words { text-align: left; white-space: normal; } th.words { text-align: left; }
.held { color: #00603f; } .exceeded { color: #b00020; font-weight: bold; }
pre { background: #f4f5f7; padding: .8rem 1rem; overflow-x: auto; font-size: 13px; }
svg { width: 100%; height: auto; } .one svg { max-width: 62rem; }
"""


def page(
    outcomes: Sequence[Outcome],
    svg: str,
    texts: Mapping[str, str],
    command: str,
    others: Sequence[tuple[str, int, RuleFigures]] = (),
    notes: Sequence[str] = (),
) -> str:
    """The page. `svg`: the pictures; `texts`: each scenario's text by its name; `command`: what makes these runs again;
    `others`: figures of baselines, with scenario and seed; `notes`: sentences that a reader must know.
    """
    names = list(dict.fromkeys(outcome.scenario.name for outcome in outcomes))
    title = f"apportion simulate: {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}"
    rows = [(each.scenario.name, each.seed, row) for each in outcomes for row in each.rules]
    parts = [
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(about)}</p>" for about in _abouts(outcomes)),
        _verdict(outcomes),
        f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>" if notes else "",
        "<h2>Figures</h2>",
        _table([*rows, *others]),
        READING,
        "<h2>What bounds each rule</h2>",
        _bounds(outcomes),
        "<h2>Pictures</h2>",
        f'<div class="{"one" if len(rows) == 1 else "wide"}">{_inline(svg)}</div>',
        "<h2>The same again</h2>",
        f"<pre>{escape(command)}</pre>",
        *(f"<h2>Scenario {escape(name)}</h2><pre>{escape(text)}</pre>" for name, text in texts.items()),
    ]
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _abouts(outcomes: Sequence[Outcome]) -> list[str]:
    """What each scenario says of itself, once."""
    found = {each.scenario.name: each.scenario.about for each in outcomes if each.scenario.about}
    return list(found.values()) if len(found) == 1 else [f"{name}: {about}" for name, about in found.items()]


def _verdict(outcomes: Sequence[Outcome]) -> str:
    problems = [f"{each.scenario.name}, seed {each.seed}: {problem}" for each in outcomes for problem in each.broken]
    if not problems:
        return '<p class="held">Every bound and expectation held.</p>'
    return "".join(f'<p class="exceeded">Not as promised: {escape(problem)}</p>' for problem in problems)


def _table(rows: Sequence[tuple[str, int, RuleFigures]]) -> str:
    words = ("scenario", "rule", "enforce", "denied")
    heads = ["scenario", "seed", *(name for name, _ in COLUMNS)]
    cells = [[scenario, str(seed), *(cell(row) for _, cell in COLUMNS)] for scenario, seed, row in rows]
    classes = [' class="words"' if name in words else "" for name in heads]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in zip(heads, classes, strict=True))
    lines = [
        "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(line, classes, strict=True)) for line in cells
    ]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table>\n<tr>{head}</tr>\n{body}\n</table></div>'


def _bounds(outcomes: Sequence[Outcome]) -> str:
    """Each rule's bound in the words of `check-config`, said once for all scenarios where it is the same."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for outcome in outcomes:
        rules = parsed(outcome.scenario.rules)
        for domain in rules.domains.values():
            for rule in domain.rules:
                sentence = bound_of(rule, StoreKind.SQLITE, rules.edges_max).sentence
                found.setdefault((f"{rule.name} ({rule.enforce.value})", sentence), {})[outcome.scenario.name] = None
    lines = [
        f"<li><b>{escape(which)}</b> in {escape(', '.join(names))}: {escape(sentence)}</li>"
        for (which, sentence), names in found.items()
    ]
    return "<ul>\n" + "\n".join(lines) + "\n</ul>"


def _inline(svg: str) -> str:
    """The picture without what only a file of its own has: the XML declaration and the document type."""
    return svg[svg.index("<svg") :]
