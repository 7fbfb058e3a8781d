"""The picture of platforms: true tracks with the reported positions, and error and age over time."""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..figures.analysis import Analysis
from ..figures.picture import EARTH_METRES
from . import curves, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Most reported positions that are drawn.
MAX_POINTS = 20_000


def tracks(analysis: Analysis) -> "Figure | None":
    """Draw where the nodes that report positions were, and the reports: received by a subscriber, or by none."""
    reports = analysis.reports
    publishers = set(reports["publisher"].unique().cast(pl.String))
    names = {i.reported for i in analysis.run.instances if i.name in publishers}
    true = analysis.positions.filter(pl.col("node").cast(pl.String).is_in(names)).sort("ts")
    if reports.is_empty() or true.is_empty():
        return None
    every = -(-reports.height // MAX_POINTS)
    shown = reports.gather_every(every)
    caption = (
        "Lines: true positions. Dots: positions in messages that at least one subscriber on another node received; crosses: in those that none did."
    )
    caption += f" One of {every} messages is drawn." if every > 1 else ""
    made, (axes,) = style.figure(analysis, "true and reported positions", 6.0, caption)
    origin = float(true["latitudeDegrees"].mean()), float(true["longitudeDegrees"][0])
    for i, part in enumerate(true.partition_by("node", maintain_order=True)):
        axes.plot(*_plane(part, origin), color=style.GREY, linewidth=0.9, label="true" if i == 0 else None)
    for received, marker, color, label in ((True, ".", style.BLUE, "reported and received"), (False, "x", style.VERMILION, "received by none")):
        some = shown.filter((pl.col("receivers") > 0) == received)
        if some.height:
            axes.plot(*_plane(some, origin), linestyle="none", marker=marker, markersize=3, markeredgewidth=0.7, color=color, label=label)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel="east (km)", ylabel="north (km)")
    axes.grid()
    style.legend_above(axes, 3)
    return made


def _plane(frame: pl.DataFrame, origin: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Kilometres east and north of a place."""
    across = (frame["longitudeDegrees"].to_numpy() - origin[1] + 180) % 360 - 180
    kilometres = np.radians(1) * EARTH_METRES / 1000
    return across * kilometres * np.cos(np.radians(origin[0])), (frame["latitudeDegrees"].to_numpy() - origin[0]) * kilometres


def over_time(analysis: Analysis) -> "Figure | None":
    """Draw error and age of the picture over time: median and 95th percentile of all pairs."""
    frame = analysis.picture_times.filter(pl.col("known") > 0)
    if frame.is_empty():
        return None
    width = style.bin_seconds(frame["second"].min(), frame["second"].max())
    values = ("errorMedianMetres", "errorP95Metres", "ageMedianSeconds", "ageP95Seconds")
    curve = frame.group_by(at=(pl.col("second") // width) * width).agg(pl.col(values).mean()).sort("at")
    caption = (
        "Over all pairs of a subscriber and a node on which it has a position. Error: horizontal distance from the freshest position received to the "
    )
    caption += "true one. Age: time since that position was made." + (f" Averages over {width:g} s." if width > 1 else "")
    made, axes = style.figure(analysis, "error and age of the picture", 4.6, caption, panels=2)
    points = {"marker": curves.marker(curve), "markersize": 1.5}
    for panel, (median, high), label in zip(axes, (values[:2], values[2:]), ("error (m)", "age (s)"), strict=True):
        panel.plot(curve["at"], curve[median], color=style.BLUE, linewidth=1.2, label="median", **points)
        panel.plot(curve["at"], curve[high], color=style.VERMILION, linewidth=0.9, linestyle="--", label="95th percentile", **points)
        panel.set_ylim(bottom=0)
        panel.set_ylabel(label)
        panel.grid()
    style.legend_above(axes[0], 2)
    style.time_axis(analysis, axes)
    return made
