"""Response times of requests by group, and what became of requests."""

from typing import TYPE_CHECKING

import polars as pl

from ..data.requests import by_retransmissions, without_receipt
from ..figures import deliveries
from ..figures.analysis import Analysis
from . import boxes, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = (
    "Box: lower to upper quartile, with the median. Whiskers: 5th to 95th percentile. Dots: least and greatest response time. "
    "Quantiles by linear interpolation. Response time: receipt minus sent, of all requests with a receipt."
)


def times(analysis: Analysis) -> "Figure | None":
    """Draw a box of response times for each group with receipts."""
    answered = analysis.requests.filter(pl.col("receipt").is_not_null()).with_columns(delay=(pl.col("receipt") - pl.col("sent")) / 1e9)
    if answered.is_empty():
        return None
    groups = {"all": answered} | {kind: answered.filter(kind) for kind in deliveries.KINDS}
    for name, numbers in deliveries.publishers_by_group(analysis.run, set(answered["publisher"].unique())).items():
        groups[name] = answered.filter(pl.col("publisher").is_in(numbers))
    groups = {name: some for name, some in groups.items() if some.height}
    drawn = pl.concat([some.select(boxes.quantiles()).with_columns(row=pl.lit(row, pl.Int64)) for row, some in enumerate(groups.values())])
    return boxes.figure(analysis, "response time by group", "group", list(groups), drawn, CAPTION, "response time (s)")


def outcomes(analysis: Analysis) -> "Figure | None":
    """Draw a bar for each outcome of requests: with a receipt, by number of retransmissions; without one, by reason."""
    requests = analysis.requests
    if requests.is_empty():
        return None
    receipts = [(_again(times), count) for times, count in by_retransmissions(requests.filter(pl.col("reason").is_null()))]
    without = without_receipt(requests)
    rows = receipts + without
    caption = (
        f"Shares of all {requests.height} requests. Receipts by how often the protocol sent the request, or a block of it, again; others by reason."
    )
    pitch = style.pitch(len(rows))
    made, (axes,) = style.figure(analysis, "what became of requests", 1.2 + pitch * len(rows), caption)
    colors = [style.BLUE] * len(receipts) + [style.ORANGE] * len(without)
    axes.barh(range(len(rows)), [100 * number / requests.height for _, number in rows], height=0.64, color=colors)
    style.names(axes, [name for name, _ in rows], pitch)
    axes.set_xlabel("requests (%)")
    axes.grid(axis="x")
    return made


def _again(times: str) -> str:
    return {"0": "receipt", "1": "receipt, 1 retransmission"}.get(times, f"receipt, {times} retransmissions")
