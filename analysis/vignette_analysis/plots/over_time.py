"""Every delivery's delay by the time at which its message was sent."""

from typing import TYPE_CHECKING

import polars as pl

from ..figures.analysis import Analysis
from . import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Most points; of more deliveries a sample is drawn, as points cover each other and cost memory.
MAX_POINTS = 100_000
# Number of slowest deliveries that are always drawn, so that a sample does not hide the maximum.
SLOWEST = 1_000
# From this number of points the SVG holds them as an image: more shapes are too many for editors and printers.
VECTOR_POINTS = 5_000
# Markers differ as well as colours.
_KINDS = (
    ("cross", "cross: between groups", style.VERMILION, "^"),
    ("local", "local: within a node", style.BLUE, "o"),
    ("other", "within a group, by radio", style.GREEN, "s"),
)


def draw(analysis: Analysis) -> "Figure":
    """Draw every delivery's delay by the time at which its message was sent."""
    points, arrived = points_of(analysis)
    caption = ["Each point is a delivery that arrived. Delay: received minus sent.", style.counted(analysis.results)]
    if points.height < arrived:
        caption.append(f"{points.height} of {arrived} points are drawn: a random sample, and the {SLOWEST} slowest deliveries.")
    figure, (axes,) = style.figure(analysis, "delay of every delivery over time", 4.4, " ".join(caption))
    if points.is_empty():
        return style.nothing(figure, axes)
    size = 20.0 if points.height < 100 else 9.0 if points.height < 500 else 3.0
    for kind, label, color, marker in _KINDS:
        some = points.filter(pl.col("kind") == kind)
        if some.height:
            axes.scatter(
                some["at"].to_numpy(), some["delay"].to_numpy(), s=size, c=color, marker=marker, linewidths=0, alpha=0.6,
                label=label, rasterized=points.height > VECTOR_POINTS,
            )  # fmt: skip
    style.time_axis(analysis, [axes], "time at which the message was sent,")
    style.scale(axes.yaxis, points["delay"].min(), points["delay"].max())
    axes.grid()
    style.legend_above(axes, 3, markerscale=3 if size < 9 else 1)
    return figure


def points_of(analysis: Analysis) -> tuple[pl.DataFrame, int]:
    """The points to draw (at, delay, kind; in order of time), and the number of deliveries."""
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
