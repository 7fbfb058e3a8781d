"""The median size of messages on the wire by protocol, from captures."""

import polars as pl

from ..data.run import Run

# What captures call the protocols of clients, where that differs.
_ON_THE_WIRE = {
    "ws-notification": ("http", "https"),
    "zeromq": ("zeromq", "pgm"),
    "http": ("http", "https"),
    "soap": ("http", "https"),
    "coap-tcp": ("coap",),
    "mgen": ("udp", "tcp"),
}


def summarise(run: Run, sizes: pl.DataFrame, messages: pl.DataFrame) -> list[dict]:
    """The results' messageSizes. Shorter than the shortest logged message are acknowledgements and the like: they do not count."""
    shortest = _shortest(run, messages)
    counted = sizes.filter(pl.col("applicationBytes") >= pl.col("protocol").replace_strict(shortest, default=None, return_dtype=pl.Int64))
    grouped = counted.group_by("protocol", "wireBytes").agg(pl.col("messages").sum()).sort("protocol", "wireBytes")
    return [
        {"protocol": protocol, "messages": int(rows["messages"].sum()), "medianBytes": _median(rows)}
        for (protocol,), rows in grouped.group_by("protocol", maintain_order=True)
    ]


def _shortest(run: Run, messages: pl.DataFrame) -> dict[str, int]:
    """The shortest logged message of each protocol that clients have, by its name in captures. One with subscribers alone has that of all."""
    found: dict[str, int] = {}
    rows = messages.group_by("publisher").agg(pl.col("bytes").min()).drop_nulls().rows()
    for publisher, size in rows:
        for protocol in _names(run.instances[publisher].protocol):
            found[protocol] = min(size, found.get(protocol, size))
    if found:
        of_all = min(size for _, size in rows)
        for instance in run.instances:
            for protocol in _names(instance.protocol):
                found.setdefault(protocol, of_all)
    return found


def _names(protocol: str) -> tuple[str, ...]:
    return _ON_THE_WIRE.get(protocol, (protocol,))


def _median(rows: pl.DataFrame) -> float:
    """The median of sizes in order, each so many times."""
    upto, count = rows["messages"].cast(pl.Int64).cum_sum(), int(rows["messages"].sum())
    middle = [int(rows["wireBytes"][upto.search_sorted(at + 1, side="left")]) for at in ((count - 1) // 2, count // 2)]
    return sum(middle) / 2
