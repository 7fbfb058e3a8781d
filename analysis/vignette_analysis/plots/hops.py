"""Hop counts of routes over time, and the share of pairs of nodes without a route."""

from typing import TYPE_CHECKING

import polars as pl

from ..figures.analysis import Analysis
from . import curves, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(analysis: Analysis) -> "Figure | None":
    """Draw the mean and the range of hop counts for each network that has routes, and below them the share of pairs without a route."""
    frame = analysis.hop_histogram.with_columns(pl.col("network").cast(pl.String))
    if frame["hops"].null_count() == frame.height:
        return None
    curve, width = _curves(frame)
    networks = curve["network"].unique().sort().to_list()
    shown = networks[: style.MAX_PANELS - 1]
    caption = f"Over all ordered pairs of nodes between which there was a route; averages over {width:g} s."
    if len(networks) > len(shown):
        caption += f" Not drawn: {', '.join(style.short(n, 20) for n in networks[len(shown) :][:6])}."
    made, axes = style.figure(analysis, "hop count over time", 2.6 + 1.9 * len(shown), caption, len(shown) + 1)
    parts = {network: curve.filter(pl.col("network") == network) for network in shown}
    for panel, (network, part) in zip(axes, parts.items(), strict=False):
        _panel(panel, network, curves.grid(part, width))
    style.legend_above(axes[0], 2)
    _unrouted(axes[-1], parts, width)
    style.time_axis(analysis, axes)
    return made


def _curves(frame: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    """Mean, least and greatest hop count and the share of pairs without a route in percent, by network and interval; the intervals' width."""
    width = style.bin_seconds(frame["second"].min(), frame["second"].max())
    routed = pl.col("hops").is_not_null()
    pairs = pl.col("pairs").sum()
    sums = frame.group_by("network", at=((pl.col("second") / width).floor() + 0.5) * width).agg(
        mean=(pl.col("hops") * pl.col("pairs")).sum() / pl.col("pairs").filter(routed).sum(),
        least=pl.col("hops").filter(pl.col("pairs") > 0).min(),
        greatest=pl.col("hops").filter(pl.col("pairs") > 0).max(),
        unrouted=100 * (1 - pl.col("pairs").filter(routed).sum() / pairs),
    )
    return sums.sort("at", "network"), width


def _panel(panel: "Axes", network: str, whole: pl.DataFrame) -> None:
    at = whole["at"].to_numpy()
    least, greatest = (whole[c].cast(pl.Float64).to_numpy() for c in ("least", "greatest"))
    panel.fill_between(at, least, greatest, color="#c6dbef", step="mid", linewidth=0.4, label="least to greatest")
    panel.plot(at, whole["mean"].to_numpy(), color=style.VERMILION, linewidth=1.2, marker=curves.marker(whole), markersize=1.5, label="mean")
    panel.set_ylim(0, max((whole["greatest"].max() or 0) * 1.1, 1.5))
    panel.yaxis.get_major_locator().set_params(integer=True)
    panel.set_ylabel(f"{style.short(network, 20)}\nhops")
    panel.grid()


def _unrouted(panel: "Axes", parts: dict[str, pl.DataFrame], width: float) -> None:
    curves.lines(panel, {style.short(network, 20): part for network, part in parts.items()}, "unrouted", width)
    panel.set_ylim(bottom=0)
    panel.set_ylabel("pairs without\na route (%)")
    panel.grid()
    if len(parts) > 1:
        panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=7, borderaxespad=0.2)
