"""Tables of messages, deliveries and requests with the names of instances, as files and notebooks have them."""

import polars as pl

from ..data.run import Run
from .deliveries import KINDS


def _names(run: Run) -> pl.DataFrame:
    instances = run.instances
    return pl.DataFrame(
        {
            "number": [i.number for i in instances],
            "name": [i.name for i in instances],
            "node": [i.node for i in instances],
            "group": [i.group for i in instances],
        },
        schema={"number": pl.UInt32, "name": pl.Categorical, "node": pl.Categorical, "group": pl.Categorical},
    )


def messages(run: Run, sent: pl.DataFrame, deliveries: pl.DataFrame) -> pl.DataFrame:
    """One row per sent message; times are Unix nanoseconds."""
    counts = deliveries.group_by("message").agg(
        expected=pl.len(), received=pl.col("received").count(), lost=pl.col("received").null_count(), duplicates=pl.col("duplicates").sum()
    )
    joined = sent.join(counts, on="message", how="left", maintain_order="left").join(
        _names(run), left_on="publisher", right_on="number", how="left", maintain_order="left"
    )
    return joined.select(
        pl.col("name").alias("publisher"),
        "node",
        "group",
        "id",
        "topic",
        "triggered",
        "sent",
        "bytes",
        *(pl.col(c).fill_null(0) for c in ("expected", "received", "lost", "duplicates")),
        "ambiguous",
        ((pl.col("sent") - pl.col("triggered")) / 1e9).alias("sendingSeconds"),
    )


def deliveries(run: Run, expected: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """One row per expected delivery; times are Unix nanoseconds."""
    names = _names(run).select("number", "name")
    joined = (
        expected.join(sent.select("message", "id", "triggered"), on="message", how="left", maintain_order="left")
        .join(names.rename({"name": "from"}), left_on="publisher", right_on="number", how="left", maintain_order="left")
        .join(names.rename({"name": "to"}), left_on="subscriber", right_on="number", how="left", maintain_order="left")
    )
    return joined.select(
        pl.col("from").alias("publisher"),
        pl.col("to").alias("subscriber"),
        "id",
        "sent",
        "received",
        ((pl.col("received") - pl.col("sent")) / 1e9).alias("delaySeconds"),
        *KINDS,
        pl.col("received").is_null().alias("lost"),
        "duplicates",
        ((pl.col("received") - pl.col("triggered")) / 1e9).alias("delayFromTriggeredSeconds"),
        "processed",
        ((pl.col("processed") - pl.col("received")) / 1e9).alias("processingSeconds"),
        ((pl.col("sent") - run.t0) / 1e9).alias("sentSeconds"),
    )


def requests(run: Run, made: pl.DataFrame) -> pl.DataFrame:
    """One row per request; times are Unix nanoseconds."""
    names = _names(run)
    joined = made.rename({"publisher": "from", "subscriber": "to"})
    joined = joined.join(names.rename({"name": "publisher"}), left_on="from", right_on="number", how="left", maintain_order="left")
    joined = joined.join(names.select("number", subscriber="name"), left_on="to", right_on="number", how="left", maintain_order="left")
    columns = ("publisher", "node", "group", "subscriber", "id", "topic", "triggered", "sent", "receipt", "failed", "reason", "retransmissions")
    response = ((pl.col("receipt") - pl.col("sent")) / 1e9).alias("responseSeconds")
    return joined.select(*columns, response, "bytes", "receiptBytes", *KINDS)
