"""Pictures of runs: for each run and rule what was offered and admitted beside limit and bound, and under it who had
which slice. Draws what `series` read from the log; judges nothing.

matplotlib is the extra `apportion[pictures]`: it is imported when something is drawn, and not before.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apportion.core.errors import InputError
from apportion.core.limit import EPOCH_NS
from apportion.simulations.rule_log import Series
from apportion.simulations.scenario import Fault, FaultKind
from apportion.simulations.series import RuleSeries, RunSeries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

FORMATS = (".png", ".svg")

PANELS_MAX = 64
"""Runs x rules of one picture: more cannot be looked at."""

STEPS_MAX = 1_200
"""Steps of a series that are drawn; a longer run is drawn by means of several seconds."""

# The colours of Okabe and Ito, which most eyes tell apart; where two lines meet their strokes differ too.
OFFERED, ADMITTED, LIMIT, BOUND, OVER, FAULT = "#b8bec6", "#0072b2", "#000000", "#d55e00", "#c0006f", "#007a5a"
SLICES = "cividis"

OFFERED_ROOM = 3.0
"""How many times more than is admitted or allowed may be offered and still be drawn whole; else it is said in words."""

BOUND_ROOM = 2.0
"""The same of the line of the bound, beside all else."""

FLATTENED = 4.0
"""How many times higher than it needs an axis may be because another run needs it so."""

NAMES_ROOM = 1.45
"""Part of the axis that is drawn where there are faults, so that their names stand above what they happened to."""

_LASTING = (FaultKind.KILL, FaultKind.PARTITION, FaultKind.PAUSE, FaultKind.LEAVE)


def checked_format(path: Path) -> str:
    """The format that a file's name asks for. InputError: there is none for it."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"--plot {path}: pictures are written as {' or '.join(FORMATS)}; name such a file")
    return path.suffix.lower()[1:]


def require_drawable(panels: int) -> None:
    """InputError where matplotlib is not installed, or so many runs and rules are too many."""
    if panels > PANELS_MAX:
        raise InputError(f"{panels} runs and rules are too many for a picture, {PANELS_MAX} are the most: name some")
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise InputError("pictures need matplotlib: pip install 'apportion[pictures]'") from error


def picture(runs: Sequence[RunSeries], kind: str) -> bytes:
    """The runs as one picture, `kind` "png" or "svg". The same runs give the same bytes."""
    import matplotlib as mpl

    # Names of fonts, not outlines: a page's text stays text. No date and no random ids, so that runs can be compared.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "apportion", "font.size": 9}):
        found = io.BytesIO()
        nothing: dict[str, Any] = {"Software": None}
        if kind == "svg":
            nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        _figure(runs).savefig(found, format=kind, dpi=110, metadata=nothing)
    return found.getvalue()


def _figure(runs: Sequence[RunSeries]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    panels = [(run, rule) for run in runs for rule in run.rules]
    columns = 1 if len(panels) == 1 else 2
    rows = max(1, -(-len(panels) // columns))
    size = (9.5 if columns == 1 else 15.0, 5.2 * rows + 0.6)
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(wspace=0.04))
    cells = figure.subfigures(rows, columns, squeeze=False).flatten()
    tops = _tops(panels)
    above = NAMES_ROOM if any(run.faults for run in runs) else 1.0
    for cell, (run, rule) in zip(cells, panels, strict=False):
        _panel(cell, run, rule, above * tops[run.world, rule.figures.rule])
    _legend(figure, 3 * columns)
    return figure


def _tops(panels: Sequence[tuple[RunSeries, RuleSeries]]) -> dict[tuple[str, str], float]:
    """The top of the axis of rates by world and rule: one for all runs, and none so flat that it cannot be read."""
    found = defaultdict(list)
    for run, rule in panels:
        found[run.world, rule.figures.rule].append(_top(rule))
    return {which: min(max(tops), FLATTENED * min(tops)) for which, tops in found.items()}


def _panel(cell: SubFigure, run: RunSeries, rule: RuleSeries, top: float) -> None:
    """One rule of one run: rates above, edges below, on one axis of time."""
    rates, edges = cell.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    figures = rule.figures
    keys = f" for each of {rule.keys:,} keys; drawn: the sum of min(offered, limit)" if rule.keys > 1 else ""
    limit = f"{figures.limit_per_second:g}/s"
    if figures.period is not None:
        limit = f"{figures.period.allowance:,} in a period, {figures.period.anchor}"
        keys = f", for each of {rule.keys:,} keys" if rule.keys > 1 else ""
    name = run.name if len(run.rules) == 1 else f"{run.name}: {figures.rule}"
    cell.suptitle(f"{name}  ({figures.enforce}, {limit}{keys})", fontweight="bold", fontsize=10)
    _rates(rates, run, rule, top)
    _edges(cell, edges, run, rule)
    _faults(rates, edges, run)
    edges.set_xlim(0, run.seconds)
    edges.set_xlabel("time, s")


def step_s(seconds: int) -> int:
    """Seconds of one step of what is drawn."""
    return max(1, -(-seconds // STEPS_MAX))


def stepped(series: Series, step: int) -> Series:
    """Means of `step` seconds each, along the first axis."""
    starts = np.arange(0, len(series), step)
    counts = np.diff([*starts, len(series)]).reshape(-1, *(1,) * (series.ndim - 1))
    means: Series = np.add.reduceat(series, starts, axis=0) / counts
    return means


def _top(rule: RuleSeries) -> float:
    """The highest rate that is worth its room."""
    step = step_s(len(rule.offered))
    admitted, limit = stepped(rule.admitted, step), stepped(rule.limit, step)
    limited = limit[np.isfinite(limit)]
    needed = max(float(admitted.max()), float(limited.max()) + rule.figures.burst if len(limited) else 0.0, 1.0)
    needed = max(needed, min(float(stepped(rule.offered, step).max()), OFFERED_ROOM * needed))
    bound = float(_bound(rule).max())
    return 1.06 * (bound if needed < bound < BOUND_ROOM * needed else needed)


def _bound(rule: RuleSeries) -> Series:
    """What no label of a key may pass: a second's worth, the burst, and the bound. inf: none, or several keys."""
    figures = rule.figures
    if figures.bound is None or rule.keys > 1:
        return np.full_like(rule.limit, np.inf)
    beyond: Series = rule.limit + (figures.burst + figures.bound)
    return beyond


def _rates(axes: Axes, run: RunSeries, rule: RuleSeries, top: float) -> None:
    step = step_s(run.seconds)
    offered, admitted = stepped(rule.offered, step), stepped(rule.admitted, step)
    limit, bound = stepped(rule.limit, step), stepped(_bound(rule), step)
    ticks = np.minimum(np.arange(len(offered) + 1) * step, run.seconds)
    axes.stairs(offered, ticks, fill=True, color=OFFERED)
    if np.isfinite(limit).all():
        axes.stairs(limit, ticks, color=LIMIT, linewidth=1.1, baseline=None)
    axes.stairs(admitted, ticks, color=ADMITTED, linewidth=1.6, baseline=None)
    if np.isfinite(bound).all():
        axes.stairs(bound, ticks, color=BOUND, linewidth=1.3, linestyle=(0, (4, 2)), baseline=None)
    if rule.over:
        at = np.array([each.at_s for each in rule.over])
        heights = admitted[np.clip((at // step).astype(int), 0, len(admitted) - 1)]
        axes.plot(at, np.minimum(heights, 0.97 * top), "v", color=OVER, markersize=6, clip_on=False)
    axes.set_ylim(0, top)
    axes.set_ylabel("units a second" if step == 1 else f"units a second,\nmeans of {step} s")
    axes.set_title(_remarks(rule, offered, admitted, bound, top), loc="left", fontsize=8, color="#333333")
    axes.spines[["top", "right"]].set_visible(False)


def _remarks(rule: RuleSeries, offered: Series, admitted: Series, bound: Series, top: float) -> str:
    """What the lines do not show by themselves."""
    figures = rule.figures
    seen = figures.overshoot_label if figures.period is None else figures.period.overshoot_period
    text = f"bound {'none' if figures.bound is None else f'{figures.bound:,}'}, seen {seen:,}"
    if rule.over:
        worst = max(rule.over, key=lambda each: each.units)
        text += f" at {worst.at_s:.0f} s ({len(rule.over)} labels over)"
    text += f", utilisation {figures.utilisation:.1%}"
    lines = (("offered", offered), ("admitted", admitted), ("limit + burst + bound", bound))
    beyond = [f"{name} (to {series.max():,.0f}/s)" for name, series in lines if top < series.max() < np.inf]
    return text + (f"; above the axis: {', '.join(beyond)}" if beyond else "")


def _edges(cell: SubFigure, axes: Axes, run: RunSeries, rule: RuleSeries) -> None:
    """Second by second which edge had how much: its slice, or where nothing is divided what it was admitted."""
    from matplotlib.colors import PowerNorm  # by roots: beside one large slice the small ones are still seen

    step = step_s(run.seconds)
    issued = bool(rule.issued.any())
    shown = stepped(rule.issued if issued else rule.admitted_by_edge, step).T
    count = shown.shape[0]
    image = axes.imshow(
        shown,
        aspect="auto",
        interpolation="nearest",
        origin="upper",
        cmap=SLICES,
        norm=PowerNorm(0.5, vmin=0, vmax=max(float(shown.max()), 1.0)),
        extent=(0, run.seconds, count - 0.5, -0.5),
    )
    axes.set_yticks(np.arange(0, count, max(1, -(-count // 10))))
    axes.set_ylabel("edge")
    label = "slice and loans, units an epoch" if issued else "admitted, units a second"
    cell.colorbar(image, ax=axes, orientation="horizontal", label=label, aspect=60, fraction=0.08, pad=0.02)


def _faults(rates: Axes, edges: Axes, run: RunSeries) -> None:
    """Each fault a line in both panels, with its name above; those close together share one name."""
    groups: list[list[Fault]] = []
    for fault in sorted(run.faults, key=lambda each: each.at_ns):
        if groups and (fault.at_ns - groups[-1][0].at_ns) / EPOCH_NS < 0.03 * run.seconds:
            groups[-1].append(fault)
        else:
            groups.append([fault])
        at = fault.at_ns / EPOCH_NS
        rates.axvline(at, color=FAULT, linewidth=1.0, linestyle=":")
        edges.axvline(at, color="black", linewidth=1.6)  # seen on dark colours by its dots, on bright ones by the rest
        edges.axvline(at, color="white", linewidth=1.6, linestyle=":")
        if fault.kind in _LASTING and fault.for_ns > EPOCH_NS:
            until = min(at + fault.for_ns / EPOCH_NS, run.seconds)
            rates.axvspan(at, until, color=FAULT, alpha=0.10, linewidth=0)
    for group in groups:
        at = group[0].at_ns / EPOCH_NS
        rates.annotate(
            named(group),
            (at, 1),
            (3, -3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            rotation=90,
            va="top",
            ha="left",
            fontsize=7.5,
            color=FAULT,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
        )


def named(faults: Sequence[Fault]) -> str:
    """`kill edge-1, edge-2` for faults at about one time; the first few of many."""
    words: list[str] = []
    for kind in dict.fromkeys(fault.kind for fault in faults):
        targets = [fault.target for fault in faults if fault.kind is kind]
        more = f" +{len(targets) - 2}" if len(targets) > 2 else ""
        words.append(f"{kind.value.replace('_', ' ')} {', '.join(targets[:2])}{more}")
    return "\n".join(words)


def _legend(figure: Figure, columns: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure.legend(
        handles=[
            Patch(color=OFFERED, label="offered"),
            Line2D([], [], color=ADMITTED, label="admitted"),
            Line2D([], [], color=LIMIT, label="limit"),
            Line2D([], [], color=BOUND, linestyle=(0, (4, 2)), label="limit + burst + bound"),
            Line2D([], [], color=OVER, marker="v", linestyle="", label="a label over what its limit entitles to"),
            Line2D([], [], color=FAULT, linestyle=":", label="fault (shaded while it lasts)"),
        ],
        loc="outside lower center",
        ncols=columns,
        frameon=False,
    )
