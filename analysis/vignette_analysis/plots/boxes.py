"""Box plots of delays, one row for each publisher or group."""

from typing import TYPE_CHECKING

import polars as pl

from ..figures.analysis import Analysis
from ..figures.deliveries import KINDS
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WHISKERS = (0.05, 0.95)
QUANTILES = {"min": 0.0, "low": WHISKERS[0], "p25": 0.25, "median": 0.5, "p75": 0.75, "high": WHISKERS[1], "max": 1.0}
CAPTION = (
    "Box: lower to upper quartile, with the median. Whiskers: 5th to 95th percentile. Dots: least and greatest delay. "
    "Quantiles by linear interpolation. Delay: received minus sent, of all deliveries that arrived."
)


def delays(analysis: Analysis) -> pl.LazyFrame:
    """Each delivery that arrived: publisher (number), subscriber (number), radio, local, cross, delay in seconds."""
    delay = (pl.col("received") - pl.col("sent")) / 1e9
    arrived = analysis.deliveries.lazy().filter(pl.col("received").is_not_null())
    return arrived.select("publisher", "subscriber", *KINDS, delay=delay)


def quantiles() -> list[pl.Expr]:
    """The quantiles of a column `delay` that a box shows."""
    return [pl.col("delay").quantile(q, interpolation="linear").alias(name) for name, q in QUANTILES.items()]


def figure(
    analysis: Analysis, title: str, label: str, rows: list[str], boxes: pl.DataFrame, about: str = CAPTION, quantity: str = "delay (s)"
) -> "Figure":
    """Draw a box for each row of `boxes` (row, and QUANTILES in seconds), one below another."""
    pitch, every = style.pitch(len(rows)), style.name_every(rows)
    caption = [about, style.counted(analysis.results)]
    if every > 1:
        caption.append(f"One of {every} {label}s is named; there are {len(rows)}.")
    made, (axes,) = style.figure(analysis, title, 1.6 + pitch * max(len(rows), 1), " ".join(caption))
    if boxes.is_empty():
        return style.nothing(made, axes)
    draw(axes, boxes)
    style.names(axes, rows, pitch)
    axes.set_ylabel(label)
    style.scale(axes.xaxis, boxes["min"].min(), boxes["max"].max(), quantity)
    axes.grid(axis="x")
    return made


def draw(axes: "Axes", boxes: pl.DataFrame) -> None:
    """Draw all boxes as a few collections: an artist for each box would take minutes for thousands."""
    from matplotlib.collections import PolyCollection

    column = {name: boxes[name].to_numpy() for name in boxes.columns}
    row = column["row"]
    axes.hlines(row, column["low"], column["p25"], color=style.DARK, linewidth=0.8)
    axes.hlines(row, column["p75"], column["high"], color=style.DARK, linewidth=0.8)
    for end in ("low", "high"):
        axes.vlines(column[end], row - 0.2, row + 0.2, color=style.DARK, linewidth=0.8)
    corners = [
        [(left, y - 0.32), (right, y - 0.32), (right, y + 0.32), (left, y + 0.32)]
        for left, right, y in zip(column["p25"], column["p75"], row, strict=True)
    ]
    axes.add_collection(PolyCollection(corners, facecolor="#9ecae1", edgecolor="#08519c", linewidth=0.7))
    axes.vlines(column["median"], row - 0.32, row + 0.32, color=style.VERMILION, linewidth=1.4)
    for end in ("min", "max"):
        axes.plot(column[end], row, linestyle="none", marker=".", markersize=3, color=style.DARK)
