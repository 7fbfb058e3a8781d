"""Hop count over time: how far routes went."""

from typing import TYPE_CHECKING

import polars as pl

from ..analysis import Analysis
from . import curves, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(analysis: Analysis) -> "Figure | None":
    """Draw the mean and the range of hop counts for each network that has routes."""
    frame = analysis.hops.with_columns(pl.col(c).cast(pl.String) for c in ("network", "source", "destination")).drop_nulls("hops")
    if frame.is_empty():
        return None
    means, width = curves.averaged(analysis, frame, ["network", "source", "destination"], ["hops"])
    networks = means["network"].unique().sort().to_list()
    shown = networks[: style.MAX_PANELS]
    caption = (
        f"Over all pairs of source and destination between which there was a route, averaged over {width:g} s. Pairs without a route do not count."
    )
    if len(networks) > len(shown):
        caption += f" Not drawn: {', '.join(style.short(n, 20) for n in networks[len(shown) :][:6])}."
    made, axes = style.figure(analysis, "hop count over time", 0.9 + max(1.9, 2.6 / len(shown)) * len(shown), caption, len(shown), legend=True)
    for panel, network in zip(axes, shown, strict=True):
        over_pairs = means.filter(pl.col("network") == network).group_by("at")
        curve = over_pairs.agg(mean=pl.col("hops").mean(), least=pl.col("hops").min(), greatest=pl.col("hops").max()).sort("at")
        whole = curves.grid(curve, width)
        at = whole["at"].to_numpy()
        panel.fill_between(
            at, whole["least"].to_numpy(), whole["greatest"].to_numpy(), color="#c6dbef", step="mid", linewidth=0.4, label="least to greatest"
        )
        panel.plot(at, whole["mean"].to_numpy(), color=style.VERMILION, linewidth=1.2, marker=curves.marker(whole), markersize=1.5, label="mean")
        panel.set_ylim(0, max(whole["greatest"].max() * 1.1, 1.5))
        panel.yaxis.get_major_locator().set_params(integer=True)
        panel.set_ylabel(f"{style.short(network, 20)}\nhops")
        panel.grid()
    axes[-1].set_xlabel(style.time_label(analysis))
    style.legend_above(axes[0], 2)
    return made
