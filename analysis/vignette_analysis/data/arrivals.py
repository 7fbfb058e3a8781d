"""Matches received and processed events to expected deliveries."""

import numpy as np
import polars as pl

from .expected import NOBODY, Expected
from .gaps import Gaps
from .run import Run

_NEVER = np.iinfo(np.int64).max


def match(run: Run, events: pl.DataFrame, messages: pl.DataFrame, planned: Expected, renamed: pl.DataFrame, gaps: Gaps) -> pl.DataFrame:
    """Add to each expected delivery when its first copy was received and processed, and the number of duplicates.

    renamed has a row for each topic that a broker renamed: publisher, topic, heard (the topic at the subscriber).
    """
    later = events.lazy().filter(pl.col("status").is_in(["received", "processed"]))
    arrived = later.select("ts", "id", "topic", subscriber="number", processed=pl.col("status") == "processed").collect()
    arrived = _in_time(run, _identified(arrived, messages, renamed), gaps)
    known = arrived["message"].is_not_null()
    row = np.full(arrived.height, NOBODY, np.int64)
    row[known.to_numpy()] = planned.rows(arrived["message"].drop_nulls().to_numpy(), arrived["subscriber"].filter(known).to_numpy())
    elsewhere = arrived.select("id", "topic", "message", "subscriber", "processed").filter(row == NOBODY)
    _elsewhere(run, elsewhere.filter(~pl.col("processed")), messages, gaps)
    ts, processed = arrived["ts"].to_numpy(), arrived["processed"].to_numpy()
    height = planned.deliveries.height
    received, copies = _earliest(ts, row, ~processed & (row != NOBODY), height)
    done, times_done = _earliest(ts, row, processed & (row != NOBODY), height)
    orphans = planned.deliveries.select("message", "subscriber").filter((times_done > 0) & (copies == 0))
    _never_received(run, orphans, elsewhere, messages, gaps)
    return planned.deliveries.select(
        "message",
        "publisher",
        "subscriber",
        "sent",
        _where(copies > 0, received).alias("received"),
        _where((copies > 0) & (times_done > 0), done).alias("processed"),
        pl.Series("duplicates", np.maximum(copies - 1, 0)),
        "radio",
        "local",
        "cross",
    )


def _in_time(run: Run, arrived: pl.DataFrame, gaps: Gaps) -> pl.DataFrame:
    """Events up to the end of the drain. Receivers run a little longer by chance."""
    if run.measure_end is None:
        return arrived
    in_time = arrived.filter(pl.col("ts") <= run.measure_end)
    # Messages that begin after the drain are in no figure, so nothing is lost where they arrive.
    late = arrived.filter((pl.col("ts") > run.measure_end) & pl.col("message").is_not_null())
    if late.is_empty():
        return in_time
    processed = late["processed"].sum()
    also = f"; {processed} were processed after it and do not count as processed" if processed else ""
    gaps.add(
        "deliveries in flight",
        f"inFlightAtEnd: {late.height - processed} events were received after the drain had ended; they do not count, and what came by them alone "
        f"is lost{also}",
        start=run.since_t0(run.measure_end),
        end=run.since_t0(late["ts"].max()),
    )
    return in_time


def _identified(arrived: pl.DataFrame, messages: pl.DataFrame, renamed: pl.DataFrame) -> pl.DataFrame:
    """Add the message of each event; null where no message or an ambiguous one matches."""
    clear = messages.filter(~pl.col("ambiguous"))
    by_key = clear.select("message", _key())
    if not renamed.is_empty():
        elsewhere = clear.join(renamed, on=["publisher", "topic"]).with_columns(topic="heard").select("message", _key())
        by_key = pl.concat([by_key, elsewhere.filter(pl.col("key").is_unique()).join(by_key, on="key", how="anti")])
    arrived = arrived.with_columns(_key()).join(by_key, on="key", how="left", maintain_order="left").drop("key")
    lacking = pl.col("message").is_null() & pl.col("topic").is_null()
    without_topic = arrived.filter(lacking).drop("message")
    if without_topic.is_empty():
        return arrived
    # An event without a topic is matched where the id alone is unique.
    unique_ids = messages.filter(pl.col("id").is_unique() & ~pl.col("ambiguous")).select("message", "id")
    by_id = without_topic.join(unique_ids, on="id", how="left").select(arrived.columns)
    return pl.concat([arrived.filter(~lacking), by_id])


def _key() -> pl.Expr:
    """(id, topic) as one number. Polars' codes have 32 bits; "no topic" is the greatest."""
    topic = pl.col("topic").to_physical().cast(pl.UInt64).fill_null(2**32 - 1)
    return (pl.col("id").to_physical().cast(pl.UInt64) * 2**32 + topic).alias("key")


def _earliest(ts: np.ndarray, row: np.ndarray, chosen: np.ndarray, height: int) -> tuple[np.ndarray, np.ndarray]:
    """The least ts and the count of the chosen events of each row."""
    rows = row[chosen]
    first = np.full(height, _NEVER)
    np.minimum.at(first, rows, ts[chosen])
    return first, np.bincount(rows, minlength=height)


def _where(has: np.ndarray, values: np.ndarray) -> pl.Series:
    return pl.select(pl.when(pl.Series(has)).then(pl.Series(values))).to_series()


def _elsewhere(run: Run, received: pl.DataFrame, messages: pl.DataFrame, gaps: Gaps) -> None:
    """Name received events that belong to no expected delivery. Ambiguous keys are named elsewhere."""
    unknown = received.filter(pl.col("message").is_null()).join(_ambiguous(messages), on=["id", "topic"], how="anti")
    for number, count, first in unknown.group_by("subscriber").agg(pl.len(), pl.col("id").cast(pl.String).min()).sort("subscriber").rows():
        instance = run.instances[number]
        gaps.add(
            f"received events of {instance.name}",
            f"{count} received events, such as of id {first!r}, match no sent message; they are in no figure",
            instance.node,
        )
    extra = _of_others(run, received, messages.filter(pl.col("topic").is_not_null())).select("subscriber", "message").unique()
    for number, count in extra.group_by("subscriber").len().sort("subscriber").rows():
        instance = run.instances[number]
        gaps.add(
            f"received events of {instance.name}",
            f"{count} messages came to an instance that does not subscribe to them; they are in no figure",
            instance.node,
        )


def _ambiguous(messages: pl.DataFrame) -> pl.DataFrame:
    return messages.filter("ambiguous").select("id", "topic").unique()


def _of_others(run: Run, events: pl.DataFrame, messages: pl.DataFrame) -> pl.DataFrame:
    """Events of messages that their planned publisher did not log."""
    joined = events.filter(pl.col("message").is_not_null()).join(messages.select("message", "publisher"), on="message")
    # A process may have several names.
    logs = {log: i for i, log in enumerate(dict.fromkeys(i.message_log for i in run.instances))}
    process = pl.Series([logs[i.message_log] for i in run.instances], dtype=pl.UInt32)
    return joined.filter(process.gather(joined["publisher"]) != process.gather(joined["subscriber"]))


def _never_received(run: Run, orphans: pl.DataFrame, elsewhere: pl.DataFrame, messages: pl.DataFrame, gaps: Gaps) -> None:
    """Name messages that were processed and not received: `orphans` are expected deliveries, `elsewhere` has all other events."""
    columns = ["subscriber", "id", "topic"]
    others = elsewhere.filter("processed").join(elsewhere.filter(~pl.col("processed")), on=columns, how="anti", nulls_equal=True)
    expected = orphans.join(messages.select("message", "id", "topic"), on="message")
    lacking = pl.concat([expected.select(columns), others.select(columns)]).unique()
    for number, count, first in lacking.group_by("subscriber").agg(pl.len(), pl.col("id").cast(pl.String).min()).sort("subscriber").rows():
        instance = run.instances[number]
        gaps.add(
            f"processed events of {instance.name}",
            f"{count} messages, such as id {first!r}, were processed and have no received event that counts; they are in no figure",
            instance.node,
        )
