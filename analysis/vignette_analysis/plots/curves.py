"""Curves over time: values averaged over intervals, on a grid that shows intervals without values."""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..figures.analysis import Analysis
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Shares of the curves within a panel's bands: the middle 90 % and the middle half.
BANDS = ((0.05, 0.95, "#c6dbef"), (0.25, 0.75, "#6baed6"))
_QUANTILES = sorted({0.5, *(q for low, high, _ in BANDS for q in (low, high))})
# A curve without news counts with its last value for so long. Quantiles would else be of other curves in each interval.
HOLD_SECONDS = 60


def averaged(analysis: Analysis, frame: pl.DataFrame, keys: list[str], values: list[str]) -> tuple[pl.DataFrame, float]:
    """Means over intervals of one second or more, so that they fit: `at` (the middle, seconds after T0), keys, values.

    Also returns the intervals' width. Values that are not finite are left out.
    """
    timed = style.after_t0(analysis, frame).select("at", *keys, *(pl.col(v).cast(pl.Float64) for v in values))
    timed = timed.with_columns(pl.when(pl.col(v).is_finite()).then(pl.col(v)).alias(v) for v in values)
    least, greatest = timed.select(least=pl.col("at").min(), greatest=pl.col("at").max()).collect().row(0)
    width = style.bin_seconds(least, greatest)
    middle = ((pl.col("at") / width).floor() + 0.5) * width
    means = timed.group_by(middle.alias("at"), *keys).agg(pl.col(v).mean() for v in values)
    return means.sort("at", *keys).collect(), width


def grid(curve: pl.DataFrame, width: float) -> pl.DataFrame:
    """A curve with a row for each interval from its first to its last, so that a line breaks where a value is missing."""
    if curve.is_empty():
        return curve
    first, last = curve["at"].min(), curve["at"].max()
    every = pl.DataFrame({"row": pl.int_range(0, round((last - first) / width) + 1, eager=True)})
    numbered = curve.with_columns(row=((pl.col("at") - first) / width).round().cast(pl.Int64)).drop("at")
    return every.join(numbered, on="row", how="left", maintain_order="left").with_columns(at=first + pl.col("row") * width)


def lines(axes: "Axes", curves: dict[str, pl.DataFrame], value: str, width: float) -> None:
    """Draw a line for each curve; lines differ in colour and dashes."""
    dashes = ("-", "--", ":", "-.")
    for i, (name, curve) in enumerate(curves.items()):
        whole = grid(curve.drop_nulls(value), width)
        axes.plot(
            whole["at"].to_numpy() if whole.height else [], whole[value].to_numpy() if whole.height else [],
            color=style.COLORS[i % len(style.COLORS)], linestyle=dashes[i % len(dashes)], linewidth=1.1,
            marker=marker(whole), markersize=1.5, label=name,
        )  # fmt: skip


def _held(values: pl.DataFrame, keys: list[str], value: str, width: float) -> pl.DataFrame:
    """Quantiles of the curves in each interval from the first value to the last, `q0.5` and so on; curves hold their values."""
    numbered = values.drop_nulls(value).with_columns(curve=pl.struct(keys).rank("dense") - 1, row=(pl.col("at") / width).floor().cast(pl.Int64))
    news = {row: part for (row,), part in numbered.partition_by("row", as_dict=True).items()}
    newest, seen = np.zeros(numbered["curve"].n_unique()), np.full(numbered["curve"].n_unique(), -np.inf)
    found = []
    for row in range(min(news, default=0), max(news, default=-1) + 1):
        if row in news:
            curves = news[row]["curve"].to_numpy()
            newest[curves], seen[curves] = news[row][value].to_numpy(), row
        if (fresh := (row - seen) * width <= HOLD_SECONDS).any():
            found.append(((row + 0.5) * width, *np.quantile(newest[fresh], _QUANTILES)))
    return pl.DataFrame(found, ["at", *(f"q{q:g}" for q in _QUANTILES)], orient="row")


def bands(axes: "Axes", values: pl.DataFrame, keys: list[str], value: str, width: float) -> None:
    """Draw the median of many curves, which keys tell apart, and bands that hold most of them."""
    whole = grid(_held(values, keys, value, width), width)
    at = whole["at"].to_numpy()
    for low, high, color in BANDS:
        label = f"{low * 100:g}th to {high * 100:g}th percentile"
        axes.fill_between(at, whole[f"q{low:g}"].to_numpy(), whole[f"q{high:g}"].to_numpy(), color=color, linewidth=0.4, label=label)
    axes.plot(at, whole["q0.5"].to_numpy(), color=style.VERMILION, linewidth=1.2, marker=marker(whole), markersize=1.5, label="median")


def marker(curve: pl.DataFrame) -> str:
    """The marker of a curve: single points need one, long curves do not."""
    return "o" if curve.height < 100 else ""
