"""Plots of a run's delays for print: a box plot per publisher and a scatter over time, as PNG and SVG.

matplotlib is imported where it is used only: it takes as long as a small analysis.
"""

import os
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import polars as pl

from .analysis import Analysis
from .gaps import Gaps

FOLDER = "plots"
# Of more deliveries the scatter shows a sample: more points cover each other, and cost memory.
MAX_POINTS = 100_000
# The slowest deliveries that are drawn in any case, so that a sample does not hide the maximum.
SLOWEST = 1_000
# From so many points on the SVG holds them as an image: editors and printers choke on more shapes.
VECTOR_POINTS = 5_000
# Names of publishers that fit one below another; of more, every k-th is written.
MAX_NAMES = 150
# A logarithmic axis where the largest delay is so many times the smallest.
LOGARITHMIC_FROM = 50.0
WHISKERS = (0.05, 0.95)

_WIDTH_INCHES = 7.0
_DPI = 200
_CAPTION_POINTS = 7.5
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    # With a fixed salt the ids in an SVG are the same every time.
    "svg.hashsalt": "vignette",
}
# Colours of Okabe and Ito, which people with any colour vision tell apart; markers differ as well.
_KINDS = (
    ("cross", "cross: between groups", "#d55e00", "^"),
    ("local", "local: within a node", "#0072b2", "o"),
    ("other", "within a group, by radio", "#009e73", "s"),
)


def write(analysis: Analysis, directory: Path) -> list[Path]:
    """Write every plot and return the paths of those that could be drawn; of the others there are gaps in the results."""
    gaps, paths = Gaps(), []
    for name, draw in (("delays-by-publisher", by_publisher), ("delays-over-time", over_time)):
        try:
            paths += _save(draw, analysis, directory / FOLDER / name)
        except Exception as error:
            # Whatever goes wrong in drawing, the figures are computed and must not be lost with it.
            gaps.add(f"plot {name}", f"it could not be drawn: {type(error).__name__}: {error}")
    analysis.results["gaps"] = (analysis.results["gaps"] or []) + gaps.found or None
    return paths


def _save(draw: Callable, analysis: Analysis, stem: Path) -> list[Path]:
    # Without a home that can be written to, matplotlib complains and makes such a folder anyhow.
    os.environ.setdefault("MPLCONFIGDIR", str(Path(tempfile.gettempdir()) / "vignette-matplotlib"))
    import matplotlib

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    with matplotlib.rc_context(_STYLE):
        figure = draw(analysis)
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
            paths.append(stem.with_suffix(suffix))
            figure.savefig(paths[-1], dpi=_DPI, metadata=metadata)
    return paths


def by_publisher(analysis: Analysis):
    """Draw a box of delays for each publisher, one below another in the plan's order."""
    names = [entry["name"] for entry in analysis.results["publishers"] or []]
    boxes = _boxes(analysis, names)
    rows = max(len(names), 1)
    pitch = max(min(0.19, 24 / rows), 0.012)
    caption = [
        "Box: lower to upper quartile, with the median. Whiskers: 5th to 95th percentile. Dots: least and greatest delay. "
        "Quantiles by linear interpolation. Delay: received minus sent, of all deliveries that arrived.",
        _counted(analysis.results["messages"]),
    ]
    every = -(-rows // MAX_NAMES)
    if every > 1:
        caption.append(f"One of {every} publishers is named; there are {rows}.")
    figure, axes = _axes(analysis, "delay by publisher", 1.6 + pitch * rows, " ".join(caption))
    if boxes.is_empty():
        return _nothing(figure, axes)
    _draw_boxes(axes, boxes)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_yticks(range(0, rows, every), [names[i] for i in range(0, rows, every)], fontsize=max(min(8.0, 72 * pitch * every * 0.8), 5))
    axes.set_ylabel("publisher")
    _scale(axes.xaxis, boxes["min"].min(), boxes["max"].max())
    axes.grid(axis="x")
    return figure


def _boxes(analysis: Analysis, names: list[str]) -> pl.DataFrame:
    """Quantiles in seconds of each publisher that was heard, with its row."""
    rows = {name: row for row, name in enumerate(names)}
    order = pl.DataFrame(
        [(i.number, rows[i.name]) for i in analysis.run.instances if i.name in rows],
        schema={"publisher": pl.UInt32, "row": pl.Int64},
        orient="row",
    )
    delay = (pl.col("received") - pl.col("sent")) / 1e9
    wanted = {"min": 0.0, "low": WHISKERS[0], "p25": 0.25, "median": 0.5, "p75": 0.75, "high": WHISKERS[1], "max": 1.0}
    return (
        analysis.deliveries.lazy()
        .filter(pl.col("received").is_not_null())
        .select("publisher", delay=delay)
        .group_by("publisher")
        .agg(pl.col("delay").quantile(q, interpolation="linear").alias(name) for name, q in wanted.items())
        .collect()
        .join(order, on="publisher")
        .sort("row")
    )


def _draw_boxes(axes, boxes: pl.DataFrame) -> None:
    """Draw all boxes as a few collections: one artist a box would take minutes for thousands."""
    from matplotlib.collections import PolyCollection

    column = {name: boxes[name].to_numpy() for name in boxes.columns}
    row = column["row"]
    axes.hlines(row, column["low"], column["p25"], color="#444444", linewidth=0.8)
    axes.hlines(row, column["p75"], column["high"], color="#444444", linewidth=0.8)
    for end in ("low", "high"):
        axes.vlines(column[end], row - 0.2, row + 0.2, color="#444444", linewidth=0.8)
    corners = [
        [(left, y - 0.32), (right, y - 0.32), (right, y + 0.32), (left, y + 0.32)]
        for left, right, y in zip(column["p25"], column["p75"], row, strict=True)
    ]
    axes.add_collection(PolyCollection(corners, facecolor="#9ecae1", edgecolor="#08519c", linewidth=0.7))
    axes.vlines(column["median"], row - 0.32, row + 0.32, color="#d55e00", linewidth=1.4)
    for end in ("min", "max"):
        axes.plot(column[end], row, linestyle="none", marker=".", markersize=3, color="#444444")


def over_time(analysis: Analysis):
    """Draw every delivery's delay by the time at which its message was sent."""
    points, arrived = _points(analysis)
    caption = ["Each point is a delivery that arrived. Delay: received minus sent.", _counted(analysis.results["messages"])]
    if points.height < arrived:
        caption.append(f"{points.height} of {arrived} points are drawn: a random sample, and the {SLOWEST} slowest deliveries.")
    figure, axes = _axes(analysis, "delay of every delivery over time", 4.4, " ".join(caption))
    if points.is_empty():
        return _nothing(figure, axes)
    size = 9.0 if points.height < 500 else 3.0
    for kind, label, color, marker in _KINDS:
        some = points.filter(pl.col("kind") == kind)
        if some.height:
            axes.scatter(
                some["at"].to_numpy(), some["delay"].to_numpy(), s=size, c=color, marker=marker, linewidths=0, alpha=0.6,
                label=label, rasterized=points.height > VECTOR_POINTS,
            )  # fmt: skip
    axes.set_xlabel("time at which the message was sent, after T0 (s)" if analysis.run.t0 else "time at which the message was sent (s)")
    _scale(axes.yaxis, points["delay"].min(), points["delay"].max())
    axes.grid()
    legend = axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, markerscale=3 if size < 9 else 1, borderaxespad=0)
    for handle in legend.legend_handles:
        handle.set_alpha(1)
    return figure


def _points(analysis: Analysis) -> tuple[pl.DataFrame, int]:
    """The points to draw (at, delay, kind; in order of time), and of how many deliveries."""
    arrived = analysis.deliveries.lazy().filter(pl.col("received").is_not_null()).select("sent", "received", "local", "cross").collect()
    delay = pl.col("received") - pl.col("sent")
    some = arrived
    if arrived.height > MAX_POINTS:
        indexed = arrived.with_row_index()
        slowest = indexed.lazy().select("index", delay=delay).top_k(SLOWEST, by=["delay", "index"]).select("index").collect()
        rest = indexed.join(slowest, on="index", how="anti").sample(MAX_POINTS - SLOWEST, seed=1)
        some = pl.concat([rest, indexed.join(slowest, on="index", how="semi")]).drop("index")
    begin = analysis.run.t0 or arrived["sent"].min() or 0
    kind = pl.when("cross").then(pl.lit("cross")).when("local").then(pl.lit("local")).otherwise(pl.lit("other"))
    points = some.select(at=(pl.col("sent") - begin) / 1e9, delay=delay / 1e9, kind=kind)
    return points.sort("at", "delay", "kind"), arrived.height


def _axes(analysis: Analysis, title: str, height: float, caption: str):
    """A figure with its title and caption, and room for axes between them."""
    from matplotlib.figure import Figure

    lines = textwrap.wrap(caption, 112)
    below = _CAPTION_POINTS / 72 * 1.35 * len(lines) + 0.12
    figure = Figure(figsize=(_WIDTH_INCHES, height + below), layout="constrained")
    figure.get_layout_engine().set(rect=(0, below / (height + below), 1, 1 - below / (height + below)))
    corner = 0.1 / _WIDTH_INCHES, 0.08 / (height + below)
    figure.text(*corner, "\n".join(lines), fontsize=_CAPTION_POINTS, color="#333333", va="bottom", linespacing=1.3)
    axes = figure.add_subplot()
    axes.set_title(f"{analysis.results['experiment']}: {title}", loc="left", pad=20 if "time" in title else 8, fontweight="bold")
    return figure, axes


def _counted(messages: dict) -> str:
    lost = f"{messages['lost']} ({messages['lostPercent']:.3g}\u00a0%) were lost"
    return f"{messages['received']} of {messages['expected']} expected deliveries arrived; {lost}."


def _scale(axis, least: float, greatest: float) -> None:
    """Label an axis of delays, logarithmic where they span orders of magnitude."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    wide = least > 0 and greatest / least > LOGARITHMIC_FROM
    if wide:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_label_text("delay (s), logarithmic" if wide else "delay (s)")


def _nothing(figure, axes):
    """Say that there is nothing to draw, so that an empty plot is not taken for a broken one."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, "no deliveries: nothing was received", ha="center", va="center", transform=axes.transAxes, fontsize=12)
    return figure
