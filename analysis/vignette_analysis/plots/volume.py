"""Data volume per second over time, by protocol layer and by protocol, with the routing protocols apart."""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..data.captures.coverage import covered
from ..figures.analysis import Analysis
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the bottom of the stack: the application's bytes, then what each layer adds.
_LAYERS = {
    "application": ("application", style.BLUE),
    "transport": ("transport", style.SKY),
    "ip": ("IP", style.ORANGE),
    "ethernet": ("Ethernet", style.YELLOW),
}
_ROUTING = "routing"
# Most protocols that a reader can distinguish; the others are summed.
MAX_PROTOCOLS = 6
_LEGEND_COLUMNS = 5


def by_layer(analysis: Analysis) -> "Figure | None":
    """Draw the volume sent on each network as a stack of layers, with routing protocols as one of them."""
    part = pl.when("routing").then(pl.lit(_ROUTING)).otherwise(pl.col("layer").cast(pl.String))
    series = {layer: series for layer, series in _LAYERS.items()} | {_ROUTING: ("routing, all layers", style.GREY)}
    return _draw(analysis, "data volume by layer", part, series, "Each layer: the bytes of its own headers; application: what they carry.")


def by_protocol(analysis: Analysis) -> "Figure | None":
    """Draw the volume sent on each network as a stack of protocols, with routing protocols hatched on top."""
    name = pl.col("protocol").cast(pl.String)
    totals = (
        analysis.volume.lazy().group_by("routing", protocol=name).agg(pl.col("bytes").sum()).sort("routing", -pl.col("bytes"), "protocol").collect()
    )
    ordinary, routing = (totals.filter(pl.col("routing") == kind)["protocol"].to_list() for kind in (False, True))
    ordinary = [p for p in ordinary if p != "other"]
    series = {p: (p, color) for p, color in zip(ordinary[:MAX_PROTOCOLS], style.COLORS, strict=False)}
    series |= {"other": ("other", "#dddddd"), _ROUTING: (f"routing: {', '.join(routing)}", style.GREY)}
    part = pl.when("routing").then(pl.lit(_ROUTING)).when(name.is_in(list(series))).then(name).otherwise(pl.lit("other"))
    return _draw(analysis, "data volume by protocol", part, series)


def _draw(analysis: Analysis, title: str, part: pl.Expr, series: dict[str, tuple[str, str]], more: str = "") -> "Figure | None":
    """Draw a panel for each network: a stack of the non-empty series (name of the part: label, colour)."""
    if analysis.volume.is_empty():
        return None
    seconds = analysis.volume.lazy().group_by("second", network=pl.col("network").cast(pl.String), part=part).agg(pl.col("bytes").sum()).collect()
    first, last = seconds["second"].min(), seconds["second"].max()
    width = round(style.bin_seconds(first, last))
    networks = seconds.group_by("network").agg(pl.col("bytes").sum()).sort(-pl.col("bytes"), "network")["network"].to_list()
    shown = sorted(networks[: style.MAX_PANELS])
    caption = f"Bytes of Ethernet frames (without FCS) at their sender, each transmission once; means over {width} s. {more}".rstrip()
    if len(networks) > len(shown):
        caption += f" Not drawn, as they sent less: {', '.join(style.short(n, 20) for n in networks[len(shown) :][:6])}."
    known = {network: covered(analysis.results, network, last + 1.0, min(first, 0)) for network in shown}
    caption += "".join(
        f" {style.short(network, 20)}: only what was {part}; blank where nothing was captured." for network, part in known.items() if part.partial
    )
    there = {name: series[name] for name in series if name in set(seconds["part"])}
    lines = -(-len(there) // _LEGEND_COLUMNS)
    height = 0.7 + 0.2 * lines + max(1.9, 3.0 / len(shown)) * len(shown)
    made, panels = style.figure(analysis, title, height, caption, len(shown))
    bins = (last - first) // width + 1
    edges = first + width * np.arange(bins + 1)
    for panel, network in zip(panels, shown, strict=True):
        share = known[network].share(first, width, bins)
        _stack(panel, _rates(seconds.filter(pl.col("network") == network), there, first, width, share), edges, there)
        panel.set_ylabel(f"{style.short(network, 20)}\ndata volume")
    style.time_axis(analysis, panels)
    handles, labels = panels[0].get_legend_handles_labels()
    style.legend_above(panels[0], _LEGEND_COLUMNS, handles=handles, labels=[style.short(label, 30) for label in labels])
    return made


def _rates(seconds: pl.DataFrame, parts: dict[str, tuple[str, str]], first: int, width: int, share: np.ndarray) -> dict[str, np.ndarray]:
    """Bytes per second of each part in each interval, over its covered seconds; NaN without any."""
    rates = {}
    for name in parts:
        some = seconds.filter(pl.col("part") == name)
        at = (some["second"].to_numpy() - first) // width
        rates[name] = np.bincount(at, weights=some["bytes"].to_numpy(), minlength=len(share)) / share
    return rates


def _stack(panel: "Axes", rates: dict[str, np.ndarray], edges: np.ndarray, series: dict[str, tuple[str, str]]) -> None:
    from matplotlib.ticker import EngFormatter

    below = np.zeros(len(edges) - 1)
    for name, values in rates.items():
        label, color = series[name]
        hatch = {"hatch": "////", "edgecolor": style.DARK, "linewidth": 0.0} if name == _ROUTING else {"linewidth": 0.0}
        panel.stairs(below + values, edges, baseline=below, fill=True, facecolor=color, label=label, **hatch)
        below = below + values
    panel.stairs(below, edges, color=style.DARK, linewidth=0.5)
    panel.set_ylim(0, max(np.nanmax(below, initial=0) * 1.05, 1))
    panel.yaxis.set_major_formatter(EngFormatter(unit="B/s"))
    panel.grid()
