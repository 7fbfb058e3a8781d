"""Age of information at each subscriber."""

from typing import TYPE_CHECKING

import polars as pl

from ..figures.analysis import Analysis
from . import boxes, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_QUANTITY = "age of information (s)"


def draw(analysis: Analysis) -> "Figure | None":
    """Draw a box for each subscriber: its publishers' mean ages, and the greatest age."""
    frame = analysis.age.with_columns(pl.col("subscriber").cast(pl.String))
    known = frame.filter(pl.col("meanSeconds").is_not_null())
    if known.is_empty():
        return None
    there = set(known["subscriber"])
    names = [i.name for i in analysis.run.instances if i.name in there]
    rows = pl.DataFrame({"subscriber": names, "row": range(len(names))}, {"subscriber": pl.String, "row": pl.Int64})
    quantiles = [pl.col("meanSeconds").quantile(q, interpolation="linear").alias(name) for name, q in boxes.QUANTILES.items()]
    values = known.group_by("subscriber").agg(*quantiles, greatest=pl.col("maxSeconds").max()).join(rows, on="subscriber").sort("row")
    pitch, every = style.pitch(len(names)), style.name_every(names)
    made, (axes,) = style.figure(analysis, "age of information by subscriber", 1.6 + pitch * len(names), _caption(frame, every))
    boxes.draw(axes, values)
    axes.plot(
        values["greatest"], values["row"], linestyle="none", marker="D", markersize=3.5, color=style.GREEN, label="greatest age of any publisher"
    )
    style.names(axes, names, pitch)
    axes.set_ylabel("subscriber")
    style.scale(axes.xaxis, values["min"].min(), values["greatest"].max(), _QUANTITY)
    axes.grid(axis="x")
    style.legend_above(axes, 1)
    return made


def _caption(frame: pl.DataFrame, every: int) -> str:
    unheard = frame["meanSeconds"].null_count()
    caption = (
        "Age: time since the freshest message that the subscriber has of a publisher was sent. Box: lower to upper quartile, with the median, of the "
        "mean ages of all publishers; whiskers: 5th to 95th percentile; dots: least and greatest mean."
    )
    caption += f" {unheard} of {frame.height} pairs of publisher and subscriber have none, as nothing was received." if unheard else ""
    return caption + (f" One of {every} subscribers is named." if every > 1 else "")
