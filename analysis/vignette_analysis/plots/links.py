"""SINR and pathloss of the links over time: a line for each of a few links, bands of quantiles for many."""

from typing import TYPE_CHECKING

import polars as pl

from ..figures.analysis import Analysis
from . import curves, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Most lines that a reader can distinguish.
MAX_LINES = 7
_QUANTITIES = {"sinrDB": "SINR (dB)", "pathlossDB": "pathloss (dB)"}


def draw(analysis: Analysis) -> "Figure | None":
    """Draw a panel for each network and quantity of which there are samples."""
    frame = analysis.links.with_columns(pl.col(c).cast(pl.String) for c in ("network", "source", "receiver"))
    panels = [
        (network, quantity)
        for network in frame["network"].unique().sort()
        for quantity in _QUANTITIES
        if frame.filter((pl.col("network") == network) & pl.col(quantity).is_finite()).height
    ]
    if not panels:
        return None
    means, width = curves.averaged(analysis, frame, ["network", "source", "receiver"], list(_QUANTITIES))
    shown = panels[: style.MAX_PANELS]
    made, axes = style.figure(analysis, "links over time", 0.9 + 1.75 * len(shown), _caption(panels, width), panels=len(shown))
    for panel, (network, quantity) in zip(axes, shown, strict=True):
        of_network = means.filter(pl.col("network") == network)
        parts = of_network.partition_by(["source", "receiver"], as_dict=True, maintain_order=True)
        links = {f"{style.short(a, 14)} \u2192 {style.short(b, 14)}": parts[a, b] for a, b in sorted(parts)}
        if len(links) <= MAX_LINES:
            curves.lines(panel, links, quantity, width)
        else:
            curves.bands(panel, of_network, ["source", "receiver"], quantity, width)
        panel.set_ylabel(f"{style.short(network, 20)}\n{_QUANTITIES[quantity]}")
        panel.grid()
        _legend(panel, len(links))
    style.time_axis(analysis, axes)
    return made


def _legend(panel: "Axes", links: int) -> None:
    title = f"{links} links" if links > 1 else "1 link"
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=7, borderaxespad=0.2, title=title, title_fontsize=7)


def _caption(panels: list[tuple[str, str]], width: float) -> str:
    caption = (
        f"Directed links, from a transmitter to a receiver. Means over {width:g} s of what radiod saw. Where a link had no news, its own line "
        f"has no point; for medians and bands it keeps its last value for up to {curves.HOLD_SECONDS} s."
    )
    hidden = panels[style.MAX_PANELS :]
    return caption + (f" Not drawn: {', '.join(f'{_QUANTITIES[q]} of {style.short(n, 20)}' for n, q in hidden[:6])}." if hidden else "")
