"""A box of delays for each publisher, in the plan's order."""

from typing import TYPE_CHECKING

import polars as pl

from ..figures.analysis import Analysis
from . import boxes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(analysis: Analysis) -> "Figure":
    """Draw a box of delays for each publisher of the results."""
    names = [entry["name"] for entry in analysis.results["publishers"] or []]
    return boxes.figure(analysis, "delay by publisher", "publisher", names, quantiles(analysis, names))


def quantiles(analysis: Analysis, names: list[str]) -> pl.DataFrame:
    """Quantiles in seconds of each publisher with a received delivery, with its row."""
    rows = {name: row for row, name in enumerate(names)}
    order = pl.DataFrame(
        [(i.number, rows[i.name]) for i in analysis.run.instances if i.name in rows],
        schema={"publisher": pl.UInt32, "row": pl.Int64},
        orient="row",
    )
    heard = boxes.delays(analysis).select("publisher", "delay").group_by("publisher").agg(boxes.quantiles()).collect()
    return heard.join(order, on="publisher").sort("row")
