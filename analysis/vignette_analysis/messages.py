"""Message logs: reading them, and matching what was received to what was sent.

A message's key is (id, topic). A publisher's topic is that of its record, or else the planned one.
"""

from dataclasses import dataclass

import polars as pl

from . import jsonlines, topics
from .gaps import Gaps
from .run import Instance, Run

_SCHEMA = {"ts": pl.Int64, "instance": pl.String, "status": pl.String, "id": pl.String, "topic": pl.String, "bytes": pl.Int64}
_EVENT = {"ts": pl.Int64, "number": pl.UInt32, "status": pl.Categorical, "id": pl.String, "topic": pl.Categorical, "bytes": pl.Int64}
STATUSES = ("triggered", "sent", "received", "processed")


def read_events(run: Run, gaps: Gaps) -> pl.DataFrame:
    """Read every message log: columns ts, number (of the instance), status, id, topic, bytes."""
    frames = [pl.DataFrame(schema=_EVENT)]
    for path in run.files("logs/*/*/messages-*.jsonl"):
        frames.append(_read_log(run, path, gaps))
    for instance in run.instances:
        missing = not (run.directory / instance.message_log).exists()
        covered = gaps.names(f"log {instance.message_log}") or gaps.names(f"logs of {instance.node}/{instance.app}")
        # Of an app of the user's own no log is known to lack, unless it is said to receive.
        logs = instance.kind == "traffic" or (instance.kind == "image" and instance.subscriptions)
        if missing and logs and not covered:
            gaps.add(f"log {instance.message_log}", "the archive has no such file", instance.node)
    return pl.concat(frames)


def _read_log(run: Run, path, gaps: Gaps) -> pl.DataFrame:
    name = run.relative(path)
    _, node, app, _ = name.split("/")
    raw, bad, torn = jsonlines.read(path, _SCHEMA)
    valid = (pl.col("ts") > 0) & (pl.col("instance") != "") & (pl.col("id") != "") & pl.col("status").is_in(STATUSES)
    events = raw.filter(valid.fill_null(False))
    bad += raw.height - events.height
    if bad and not (bad == 1 and torn and gaps.names(f"log {name}")):
        gaps.add(f"log {name}", f"{bad} lines are no records{', the last one is torn' if torn else ''}", node)
    own = {i.name: i.number for i in run.instances if i.node == node and i.app == app}
    known = pl.DataFrame({"instance": list(own), "number": list(own.values())}, schema={"instance": pl.String, "number": pl.UInt32})
    mine = events.join(known, on="instance", how="inner", maintain_order="left")
    if mine.height < events.height:
        foreign = sorted(set(events["instance"].unique()) - set(own))
        gaps.add(f"log {name}", f"{events.height - mine.height} records name instances that this app is not: {', '.join(foreign[:5])}", node)
    empty_as_null = pl.when(pl.col("topic") == "").then(None).otherwise(pl.col("topic"))
    return mine.with_columns(empty_as_null.alias("topic")).select(pl.col(column).cast(kind) for column, kind in _EVENT.items())


@dataclass
class Matching:
    """Who sent what, who was to receive it, and who did."""

    # One row per sent message: message, publisher (instance number), id, topic, triggered, sent, bytes, ambiguous.
    messages: pl.DataFrame
    # One row per expected delivery: message, publisher, subscriber, sent, received (null: lost), duplicates, local, cross.
    deliveries: pl.DataFrame


def match(run: Run, events: pl.DataFrame, gaps: Gaps) -> Matching:
    """Match received events to sent messages, and name all that does not match."""
    messages = _messages(run, events, gaps)
    received = _received(run, events, messages, gaps)
    expected = _expected(run, messages.filter(~pl.col("ambiguous")))
    deliveries = expected.join(received, on=["message", "subscriber"], how="left", maintain_order="left")
    deliveries = deliveries.with_columns(duplicates=(pl.col("count").cast(pl.Int64) - 1).fill_null(0)).drop("count")
    _unexpected(run, received, expected, gaps)
    return Matching(messages, deliveries)


def _first(events: pl.DataFrame, status: str) -> pl.DataFrame:
    """The first event of a status of each (instance, id), in order of time."""
    some = events.filter(pl.col("status") == status).sort("ts", "number", "id")
    return some.unique(["number", "id"], keep="first", maintain_order=True)


def _messages(run: Run, events: pl.DataFrame, gaps: Gaps) -> pl.DataFrame:
    sent, triggered = _first(events, "sent"), _first(events, "triggered")
    _repeated(run, events, sent, gaps)
    _never_sent(run, sent, triggered, gaps)
    planned = pl.DataFrame(
        {"number": [i.number for i in run.instances], "planned": [i.topic for i in run.instances]},
        schema={"number": pl.UInt32, "planned": pl.Categorical},
    )
    messages = (
        sent.join(triggered.select("number", "id", triggered="ts"), on=["number", "id"], how="left", maintain_order="left")
        .join(planned, on="number", how="left", maintain_order="left")
        .with_columns(pl.coalesce("topic", "planned").alias("topic"))
        .with_row_index("message")
        .with_columns(ambiguous=pl.struct("id", "topic").is_duplicated())
        .select("message", "id", "topic", "triggered", "bytes", "ambiguous", publisher="number", sent="ts")
    )
    _ambiguous(run, messages, gaps)
    return messages


def _repeated(run: Run, events: pl.DataFrame, sent: pl.DataFrame, gaps: Gaps) -> None:
    count = events.filter(pl.col("status") == "sent").group_by("number").len().join(sent.group_by("number").len(), on="number", suffix="_first")
    for number, all_of_them, first in count.sort("number").rows():
        if all_of_them > first:
            instance = run.instances[number]
            reason = f"{all_of_them - first} sent events repeat an id of the same instance; the first one of each counts"
            gaps.add(f"messages of {instance.name}", reason, instance.node)


def _never_sent(run: Run, sent: pl.DataFrame, triggered: pl.DataFrame, gaps: Gaps) -> None:
    lacking = triggered.join(sent, on=["number", "id"], how="anti")
    summary = lacking.group_by("number").agg(pl.len(), pl.col("ts").min().alias("first"), pl.col("ts").max().alias("last"))
    for number, count, first, last in summary.sort("number").rows():
        instance = run.instances[number]
        gaps.add(
            f"messages of {instance.name}",
            f"{count} messages were triggered but never sent; they do not count as sent",
            instance.node,
            run.since_t0(first),
            run.since_t0(last),
        )


def _ambiguous(run: Run, messages: pl.DataFrame, gaps: Gaps) -> None:
    shared = messages.filter("ambiguous")
    if shared.is_empty():
        return
    names = [run.instances[n].name for n in shared["publisher"].unique().sort()]
    keys = shared.select("id", "topic").unique().sort("id", "topic")
    example = f"id {keys['id'][0]!r} on topic {keys['topic'][0]!r}"
    gaps.add(
        "ambiguous messages",
        f"{keys.height} keys (id, topic) such as {example} were sent by more than one instance ({', '.join(names[:10])}): these "
        f"{shared.height} messages count as sent, but their deliveries are in no other figure",
    )


def _received(run: Run, events: pl.DataFrame, messages: pl.DataFrame, gaps: Gaps) -> pl.DataFrame:
    """Received events by message and subscriber: first time and count; a publisher's own messages left out."""
    received = events.lazy().filter(pl.col("status") == "received").select("ts", "id", "topic", subscriber="number").collect()
    received = _in_time(run, received, gaps)
    keys = messages.lazy().filter(~pl.col("ambiguous")).select("message", "publisher", "id", "topic").collect()
    matched = received.join(keys, on=["id", "topic"], how="left", nulls_equal=True)
    without_topic = matched.filter(pl.col("message").is_null() & pl.col("topic").is_null()).drop("message", "publisher")
    if without_topic.height:
        # A receiver that logs no topic can be matched where the id alone says which message it is.
        unique_ids = messages.filter(pl.col("id").is_unique() & ~pl.col("ambiguous")).select("message", "publisher", "id")
        by_id = without_topic.join(unique_ids, on="id", how="left").select(matched.columns)
        matched = pl.concat([matched.filter(pl.col("message").is_not_null() | pl.col("topic").is_not_null()), by_id])
    _unmatched(run, matched.filter(pl.col("message").is_null()), messages, gaps)
    return (
        matched.lazy()
        .filter(pl.col("message").is_not_null() & (pl.col("publisher") != pl.col("subscriber")))
        .group_by("message", "subscriber")
        .agg(received=pl.col("ts").min(), count=pl.len())
        .collect()
    )


def _in_time(run: Run, received: pl.DataFrame, gaps: Gaps) -> pl.DataFrame:
    """Received events up to the end of the drain. Receivers run a little longer, and how long is chance."""
    if run.measure_end is None:
        return received
    late = received.filter(pl.col("ts") > run.measure_end)
    if late.is_empty():
        return received
    gaps.add(
        "deliveries in flight",
        f"inFlightAtEnd: {late.height} events were received after the drain had ended; they do not count, and what came by them alone is lost",
        start=run.since_t0(run.measure_end),
        end=run.since_t0(late["ts"].max()),
    )
    return received.filter(pl.col("ts") <= run.measure_end)


def _unmatched(run: Run, unmatched: pl.DataFrame, messages: pl.DataFrame, gaps: Gaps) -> None:
    # What matches an ambiguous key is named there.
    shared = messages.filter("ambiguous").select("id", "topic").unique()
    unknown = unmatched.join(shared, on=["id", "topic"], how="anti")
    for number, count, first in unknown.group_by("subscriber").agg(pl.len(), pl.col("id").min()).sort("subscriber").rows():
        instance = run.instances[number]
        gaps.add(
            f"received events of {instance.name}",
            f"{count} received events, such as of id {first!r}, match no sent message; they are in no figure",
            instance.node,
        )


def _speak_the_same(publisher: Instance, subscriber: Instance) -> bool:
    """Instances of different protocols never hear each other; of an app of unknown protocol nothing is known."""
    either_unknown = not publisher.publish_protocol or not subscriber.subscribe_protocol
    return either_unknown or publisher.publish_protocol == subscriber.subscribe_protocol


def _stays(publisher: Instance, subscriber: Instance) -> bool:
    """Tell whether deliveries never leave the node: what goes by a broker on another node meets the radio twice."""
    return publisher.node == subscriber.node == publisher.publish_broker == subscriber.subscribe_broker


def _expected(run: Run, messages: pl.DataFrame) -> pl.DataFrame:
    """Every message once per other instance that subscribes to it."""
    rows: list[tuple] = []
    # Instances of one app share their subscriptions, so that each topic is matched only a few times.
    known: dict[tuple[tuple[str, ...], str], bool] = {}
    for number, topic in messages.select("publisher", "topic").unique().sort("publisher", "topic").rows():
        publisher = run.instances[number]
        for subscriber in run.instances:
            if subscriber.number == number or not subscriber.subscriptions or topic is None:
                continue
            key = (subscriber.subscriptions, topic)
            if key not in known:
                known[key] = any(topics.matches(f, topic) for f in subscriber.subscriptions)
            if known[key] and _speak_the_same(publisher, subscriber):
                rows.append((number, topic, subscriber.number, _stays(publisher, subscriber), publisher.group != subscriber.group))
    pairs = pl.DataFrame(
        rows,
        orient="row",
        schema={"publisher": pl.UInt32, "topic": pl.Categorical, "subscriber": pl.UInt32, "local": pl.Boolean, "cross": pl.Boolean},
    )
    expected = messages.select("message", "publisher", "topic", "sent").join(pairs, on=["publisher", "topic"], how="inner")
    return expected.drop("topic").sort("message", "subscriber")


def _unexpected(run: Run, received: pl.DataFrame, expected: pl.DataFrame, gaps: Gaps) -> None:
    extra = received.join(expected, on=["message", "subscriber"], how="anti")
    for number, count in extra.group_by("subscriber").len().sort("subscriber").rows():
        instance = run.instances[number]
        gaps.add(
            f"received events of {instance.name}",
            f"{count} messages came to an instance that does not subscribe to them; they are in no figure",
            instance.node,
        )
