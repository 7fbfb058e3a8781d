"""The median size of messages on the wire by protocol, from captures."""

import polars as pl

from ..data.captures.protocols import ROUTING


def summarise(sizes: pl.DataFrame, messages: pl.DataFrame) -> list[dict]:
    """The results' messageSizes. Shorter than the shortest logged message are acknowledgements and the like: they do not count."""
    shortest = messages["bytes"].min()
    if shortest is None:
        return []
    counted = sizes.filter(pl.col("applicationBytes") >= shortest, ~pl.col("protocol").is_in(sorted(ROUTING)))
    grouped = counted.group_by("protocol", "wireBytes").agg(pl.col("messages").sum()).sort("protocol", "wireBytes")
    return [
        {"protocol": protocol, "messages": int(rows["messages"].sum()), "medianBytes": _median(rows)}
        for (protocol,), rows in grouped.group_by("protocol", maintain_order=True)
    ]


def _median(rows: pl.DataFrame) -> float:
    """The median of sizes in order, each so many times."""
    upto, count = rows["messages"].cast(pl.Int64).cum_sum(), int(rows["messages"].sum())
    middle = [int(rows["wireBytes"][upto.search_sorted(at + 1)]) for at in ((count - 1) // 2, count // 2)]
    return sum(middle) / 2
