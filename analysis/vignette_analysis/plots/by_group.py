"""A box of delays for each group of the results: all, radio, local, cross, and the publishers' node groups."""

from typing import TYPE_CHECKING

import polars as pl

from ..figures import deliveries
from ..figures.analysis import Analysis
from . import boxes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(analysis: Analysis) -> "Figure":
    """Draw a box of delays for each group of the results."""
    names = [entry["name"] for entry in analysis.results["groups"] or []]
    return boxes.figure(analysis, "delay by group", "group", names, quantiles(analysis, names))


def quantiles(analysis: Analysis, names: list[str]) -> pl.DataFrame:
    """Quantiles in seconds of each group with a received delivery, with its row."""
    senders = deliveries.publishers_by_group(analysis.run, set(analysis.messages["publisher"].unique()))
    chosen = {"all": pl.lit(True)} | {kind: pl.col(kind) for kind in deliveries.KINDS}
    chosen |= {name: pl.col("publisher").is_in(numbers) for name, numbers in senders.items()}
    # One group at a time: each sorts its own delays, which takes memory.
    heard = [
        boxes.delays(analysis).filter(chosen[name]).select(boxes.quantiles()).with_columns(row=pl.lit(row, pl.Int64)).collect()
        for row, name in enumerate(names)
    ]
    empty = pl.DataFrame(schema={name: pl.Float64 for name in boxes.QUANTILES} | {"row": pl.Int64})
    return pl.concat([empty, *heard]).filter(pl.col("median").is_not_null())
