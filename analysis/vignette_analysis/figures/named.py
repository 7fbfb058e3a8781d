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


def seconds(nanoseconds: pl.Expr) -> pl.Expr:
    """Seconds with the digits of nanoseconds: polars multiplies by the inverse, whose error would show after them."""
    return (nanoseconds / 1e9).round(9)


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
        seconds(pl.col("sent") - pl.col("triggered")).alias("sendingSeconds"),
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
        seconds(pl.col("received") - pl.col("sent")).alias("delaySeconds"),
        *KINDS,
        pl.col("received").is_null().alias("lost"),
        "duplicates",
        seconds(pl.col("received") - pl.col("triggered")).alias("delayFromTriggeredSeconds"),
        "processed",
        seconds(pl.col("processed") - pl.col("received")).alias("processingSeconds"),
        seconds(pl.col("sent") - run.t0).alias("sentSeconds"),
    )


def requests(run: Run, made: pl.DataFrame) -> pl.DataFrame:
    """One row per request; times are Unix nanoseconds."""
    names = _names(run)
    joined = made.rename({"publisher": "from", "subscriber": "to"})
    joined = joined.join(names.rename({"name": "publisher"}), left_on="from", right_on="number", how="left", maintain_order="left")
    joined = joined.join(names.select("number", subscriber="name"), left_on="to", right_on="number", how="left", maintain_order="left")
    columns = ("publisher", "node", "group", "subscriber", "id", "topic", "triggered", "sent", "receipt", "failed", "reason", "retransmissions")
    response = seconds(pl.col("receipt") - pl.col("sent")).alias("responseSeconds")
    return joined.select(*columns, response, "bytes", "receiptBytes", *KINDS)
