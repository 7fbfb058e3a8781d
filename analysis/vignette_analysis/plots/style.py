"""Style of all plots: sizes, fonts, colours, captions and axes."""

import textwrap
from typing import TYPE_CHECKING

import polars as pl

from ..figures import summary
from ..figures.analysis import Analysis
from ..figures.summary import shorten as short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH_INCHES = 7.0
DPI = 200
# Ratio of the largest to the smallest value from which an axis is logarithmic.
LOGARITHMIC_FROM = 50.0
# Most times of a curve: more coincide on paper, and make the SVG large.
MAX_TIMES = 600
# Most panels of a figure on one page.
MAX_PANELS = 6
# Most names one below another; of more, every k-th is written.
MAX_NAMES = 150

_CAPTION_POINTS = 7.5
RC = {
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
    "hatch.linewidth": 0.6,
    # Names are plain text: no character starts a formula.
    "text.parse_math": False,
    # A fixed salt makes the ids in an SVG the same every time.
    "svg.hashsalt": "vignette",
}
# The colours of Okabe and Ito (2008), which people with any colour vision can distinguish; black is for text.
BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, YELLOW = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#56b4e9", "#cc79a7", "#f0e442"
GREY, DARK = "#999999", "#444444"
# Ordered so that neighbours differ in lightness too, for print in grey.
COLORS = (BLUE, ORANGE, GREEN, SKY, VERMILION, YELLOW, PURPLE)


def figure(analysis: Analysis, title: str, height: float, caption: str, panels: int = 1) -> tuple["Figure", list["Axes"]]:
    """A figure with title, caption, and panels one below another, of this total height in inches."""
    from matplotlib.figure import Figure

    lines = textwrap.wrap(caption, 112)
    below = _CAPTION_POINTS / 72 * 1.35 * len(lines) + 0.12
    made = Figure(figsize=(WIDTH_INCHES, height + below), layout="constrained")
    made.get_layout_engine().set(rect=(0, below / (height + below), 1, 1 - below / (height + below)))
    corner = 0.1 / WIDTH_INCHES, 0.08 / (height + below)
    made.text(*corner, "\n".join(lines), fontsize=_CAPTION_POINTS, color="#333333", va="bottom", linespacing=1.3)
    # At the figure's edge: beside long names of rows the axes have no room for it.
    heading = f"{short(analysis.results['experiment'], 72 - len(title))}: {title}"
    made.suptitle(heading, x=corner[0], ha="left", fontsize=RC["axes.titlesize"], fontweight="bold")
    return made, list(made.subplots(panels, 1, squeeze=False, sharex=True)[:, 0])


def settle(made: "Figure") -> None:
    """Lay out a figure and round the positions of its axes, as the solver's last digits vary."""
    made.get_layout_engine().execute(made)
    made.set_layout_engine("none")
    for axes in made.axes:
        axes.set_position([round(edge, 5) for edge in axes.get_position().bounds])


def legend_above(axes: "Axes", columns: int, **more) -> None:
    """Put the legend between the title and the axes, where it covers no data."""
    found = axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, borderaxespad=0, columnspacing=1.2, handlelength=1.6, **more
    )
    for handle in found.legend_handles:
        handle.set_alpha(1)


def counted(results: dict) -> str:
    """Counts of the headline's deliveries, for a caption."""
    entry = summary.group(results)
    return f"Group {entry['name']}: {summary.sentence(entry)}."


def scale(axis: "Axis", least: float, greatest: float, quantity: str = "delay (s)") -> None:
    """Label an axis, logarithmic where the values span orders of magnitude."""
    wide = least > 0 and greatest / least > LOGARITHMIC_FROM
    if wide:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    plain(axis)
    axis.set_label_text(f"{quantity}, logarithmic" if wide else quantity)


def plain(axis: "Axis") -> None:
    """Write the values of an axis as plain numbers, and those of major ticks alone."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def names(axes: "Axes", rows: list[str], pitch: float) -> None:
    """Name rows with this pitch in inches; of too many, every k-th."""
    every = name_every(rows)
    size = max(min(8.0, 72 * pitch * every * 0.8), 5)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(0, len(rows), every), summary.apart(rows, 40)[::every], fontsize=size)


def name_every(rows: list[str]) -> int:
    """Every how many rows one is named."""
    return -(-max(len(rows), 1) // MAX_NAMES)


def pitch(rows: int) -> float:
    """Inches between rows, so that hundreds fit on a page."""
    return max(min(0.19, 24 / max(rows, 1)), 0.012)


def nothing(made: "Figure", axes: "Axes") -> "Figure":
    """Write into the plot that there is nothing to draw, so that it does not look broken."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, "no deliveries: nothing was received", ha="center", va="center", transform=axes.transAxes, fontsize=12)
    return made


def bin_seconds(least: float, greatest: float, step: float = 1.0) -> float:
    """The width of intervals for averaging, so that at most MAX_TIMES cover the run; at least a step."""
    return step * max(1, -(-int((greatest - least) // step + 1) // MAX_TIMES))


def after_t0(analysis: Analysis, frame: pl.LazyFrame | pl.DataFrame) -> pl.LazyFrame:
    """A frame with `at`, the seconds after T0 (without one, after the first row) of its ts."""
    begin = pl.lit(analysis.run.t0) if analysis.run.t0 is not None else pl.col("ts").min()
    return frame.lazy().with_columns(at=(pl.col("ts") - begin) / 1e9)


def time_axis(analysis: Analysis, panels: list["Axes"], what: str = "time") -> None:
    """Label the axis of time that panels share. It has the whole run, so that plots of a run can be read beside each other."""
    first = min(0.0, *(panel.dataLim.x0 for panel in panels))
    last = max(analysis.run.duration_seconds, *(panel.dataLim.x1 for panel in panels))
    panels[-1].set_xlim(first, last)
    panels[-1].set_xlabel(f"{what} after T0 (s)" if analysis.run.t0 is not None else f"{what.rstrip(',')} (s)")
