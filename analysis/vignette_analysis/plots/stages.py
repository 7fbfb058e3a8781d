"""Durations between the measuring points of messages."""

from typing import TYPE_CHECKING

import polars as pl

from ..figures.analysis import Analysis
from ..figures.deliveries import RESERVED
from ..figures.stages import STAGES
from . import boxes, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Most groups beside all, radio, local and cross; stages.csv has all.
MAX_GROUPS = 8
# The range around zero in which the axis is linear.
_LINEAR_BELOW_SECONDS = 1e-6


def draw(analysis: Analysis) -> "Figure | None":
    """Draw a box for every stage of every group: all, radio, local and cross, and a few of the node groups."""
    frame = analysis.stages.with_columns(pl.col(c).cast(pl.String) for c in ("scope", "name", "stage"))
    measured = frame.filter(pl.col("scope").is_in([*RESERVED, "group"]) & (pl.col("count") > 0))
    if measured.is_empty():
        return None
    measured = measured.with_columns(group=pl.coalesce("name", "scope"))
    groups = measured["group"].unique(maintain_order=True).to_list()
    common = measured.filter(pl.col("scope") != "group")["group"].unique().len()
    shown = groups if len(groups) - common <= MAX_GROUPS else [g for g in groups if g in RESERVED]
    stages = [stage for stage in STAGES if stage in set(measured["stage"])]
    rows = [(group, stage) for group in shown for stage in stages]
    at = pl.DataFrame([(*row, i) for i, row in enumerate(rows)], {"group": pl.String, "stage": pl.String, "row": pl.Int64}, orient="row")
    values = measured.join(at, on=["group", "stage"]).rename({f"{q}Seconds": q for q in ("min", "p25", "median", "p75", "max")})
    caption = (
        "Box: lower to upper quartile, with the median. Lines and dots: least to greatest. Stages are those of the message log's measuring points."
    )
    if len(shown) < len(groups):
        caption += f" The {len(groups) - common} node groups are in stages.csv."
    pitch = style.pitch(len(rows))
    made, (axes,) = style.figure(analysis, "stages of the delay", 1.2 + pitch * len(rows), caption)
    boxes.draw(axes, values.with_columns(low="min", high="max"))
    style.names(axes, [f"{style.short(group, 18)}: {' to '.join(STAGES[stage])}" for group, stage in rows], pitch)
    for i in range(len(stages), len(rows), len(stages)):
        axes.axhline(i - 0.5, color=style.GREY, linewidth=0.5)
    _scale(axes.xaxis, values["min"].min(), values["max"].max())
    axes.grid(axis="x")
    return made


def _scale(axis, least: float, greatest: float) -> None:
    """A logarithmic axis that also shows zero and negative durations: stages take microseconds to minutes."""
    style.scale(axis, least, greatest, "time (s)")
    if least <= 0 < greatest and greatest > style.LOGARITHMIC_FROM * _LINEAR_BELOW_SECONDS:
        axis.axes.set_xscale("symlog", linthresh=_LINEAR_BELOW_SECONDS)
        style.plain(axis)
        axis.set_label_text("time (s), logarithmic on both sides of 0")
