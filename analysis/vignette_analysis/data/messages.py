"""Message logs: reads them, and matches received messages to sent ones.

A message's key is (id, topic). The topic is that of the record, or else the planned one.
"""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from . import arrivals, clients, expected, jsonlines, safe, unusable
from .gaps import Gaps
from .run import Run
from .unusable import LEAST_TS, Unusable

_SCHEMA = {"ts": pl.Int64, "instance": pl.String, "status": pl.String, "id": pl.String, "topic": pl.String, "bytes": pl.Int64, "text": pl.String}
_SCHEMA |= {"position": pl.List(pl.Float64)}
STATUSES = ("triggered", "sent", "received", "processed")
# Events of a request at its sender.
REQUEST_STATUSES = ("receipt", "retransmitted", "failed")
_ALL = (*STATUSES, *REQUEST_STATUSES, *clients.STATUSES)
# Polars numbers ids and topics: numbers take less memory, and join faster.
_EVENT = {"ts": pl.Int64, "number": pl.UInt32, "status": pl.Enum(STATUSES), "id": pl.Categorical, "topic": pl.Categorical, "bytes": pl.Int64}
# Positions that messages report as their sender's.
_REPORT = {"ts": pl.Int64, "number": pl.UInt32, "id": pl.String, "latitudeDegrees": pl.Float64, "longitudeDegrees": pl.Float64}
_REPORT |= {"altitudeMetres": pl.Float64}
_REQUEST_EVENT = {"ts": pl.Int64, "number": pl.UInt32, "status": pl.Enum(REQUEST_STATUSES), "id": pl.String, "bytes": pl.Int64, "text": pl.String}


@dataclass
class Logs:
    """The events of all message logs."""

    # ts, number (of the instance), status, id, topic, bytes.
    events: pl.DataFrame
    # Receipts, failures and retransmissions: ts, number, status, id, bytes, text.
    requests: pl.DataFrame
    # Positions that messages report: ts, number, id, latitudeDegrees, longitudeDegrees, altitudeMetres; one for each (number, id).
    reported: pl.DataFrame
    # Names of clients that connected to a broker.
    connected: set[str]
    unusable: list[Unusable]


def read_events(run: Run, gaps: Gaps) -> Logs:
    """Read every message log. Other events of clients become gaps and notes."""
    frames, requests, own, connected = [pl.DataFrame(schema=_EVENT)], [pl.DataFrame(schema=_REQUEST_EVENT)], [], set()
    reported, useless = [pl.DataFrame(schema=_REPORT)], []
    for path in run.files("logs/*/*/messages-*.jsonl"):
        of_messages, of_requests, of_client, of_positions = _read_log(run, path, gaps, useless)
        frames.append(of_messages)
        requests.append(of_requests)
        own.append(of_client)
        reported.append(of_positions)
    if own:
        connected = clients.examine(run, pl.concat(own), gaps)
    return Logs(pl.concat(frames), pl.concat(requests), pl.concat(reported), connected, useless)


def _read_log(run: Run, path: Path, gaps: Gaps, useless: list[Unusable]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """A log's events of messages, of requests and of the client itself, and the positions in messages. Adds to the useless logs."""
    name = run.relative(path)
    _, node, app, _ = name.split("/")
    raw, bad = jsonlines.read(path, _SCHEMA)
    valid = (pl.col("ts") >= LEAST_TS) & (pl.col("instance") != "") & (pl.col("id") != "") & pl.col("status").is_in(_ALL)
    events = raw.filter(valid.fill_null(False))
    bad += raw.height - events.height
    first = unusable.first(path, _ALL) if bad else ""
    gaps.bad_lines(name, bad, node, first)
    own = {i.name: i.number for i in run.instances if i.node == node and i.app == app}
    known = pl.DataFrame({"instance": list(own), "number": list(own.values())}, schema={"instance": pl.String, "number": pl.UInt32})
    mine = events.join(known, on="instance", how="inner", maintain_order="left")
    if mine.height < events.height:
        foreign = ", ".join(map(safe.bounded, sorted(set(events["instance"].unique()) - set(own))[:5]))
        gaps.add(f"log {name}", f"{events.height - mine.height} records name instances that this app is not: {foreign}", node)
        first = first or f"instance {foreign} is not of this app, want {', '.join(list(own)[:5])}, the value of VIGNETTE_INSTANCE"
    if own and mine.is_empty() and bad + events.height:
        useless.append(Unusable(name, node, app, bad + events.height, first))
    empty_as_null = pl.when(pl.col("topic") == "").then(None).otherwise(pl.col("topic"))
    of_messages = mine.filter(pl.col("status").is_in(STATUSES)).with_columns(empty_as_null.alias("topic"))
    of_client = mine.filter(pl.col("status").is_in(clients.STATUSES)).select("ts", "instance", "status", _short("id"), _short("text"))
    of_requests = mine.filter(pl.col("status").is_in(REQUEST_STATUSES))
    positions = _positions(of_messages, name, node, gaps)
    return _typed(of_messages, _EVENT), _typed(of_requests, _REQUEST_EVENT), of_client, positions


def _positions(events: pl.DataFrame, name: str, node: str, gaps: Gaps) -> pl.DataFrame:
    """Positions that messages report, at their first triggered or sent event that has one."""
    with_one = events.filter(pl.col("position").is_not_null() & pl.col("status").is_in(("triggered", "sent")))
    columns = {column: pl.col("position").list.get(i, null_on_oob=True) for i, column in enumerate(list(_REPORT)[3:])}
    placed = with_one.with_columns(**columns)
    good = placed.filter(pl.col("latitudeDegrees").is_between(-90, 90) & pl.col("longitudeDegrees").is_between(-180, 180))
    if bad := placed.height - good.height:
        what = "want latitude from -90 to 90 and longitude from -180 to 180 degrees, then the altitude in metres if it is known"
        gaps.add(f"log {name}", f"{bad} records have no position in their field position: {what}; these positions do not count", node)
    return _typed(good.sort("ts", maintain_order=True).unique(["number", "id"], keep="first", maintain_order=True), _REPORT)


def _typed(frame: pl.DataFrame, schema: dict) -> pl.DataFrame:
    return frame.select(pl.col(column).cast(kind) for column, kind in schema.items())


@dataclass
class Matching:
    """Sent messages, expected deliveries, and which of them arrived."""

    # One row per sent message: message (the row), publisher (instance number), id, topic, triggered, sent, bytes, ambiguous.
    messages: pl.DataFrame
    # One row per expected delivery: message, publisher, subscriber, sent, received (null: lost), processed, duplicates, radio, local, cross.
    deliveries: pl.DataFrame
    # One row per message that was triggered and never sent: publisher, topic, id, triggered, bytes.
    never_sent: pl.DataFrame
    streams: expected.Streams


def match(run: Run, events: pl.DataFrame, gaps: Gaps) -> Matching:
    """Match received and processed events to sent messages, and name those that do not match."""
    table = expected.Table(run)
    messages, never_sent = _messages(run, events, table.default_topics(), gaps)
    keys = ["publisher", "topic"]
    # Streams are planned even if their publishers' logs have nothing.
    silent = pl.DataFrame(table.planned(), schema={"publisher": pl.UInt32, "topic": pl.Categorical}, orient="row")
    streams = expected.streams(run, table, pl.concat([messages.select(keys), never_sent.select(keys), silent]))
    planned = expected.deliveries(messages, streams)
    deliveries = arrivals.match(run, events, messages, planned, streams.renamed(), gaps)
    return Matching(messages.with_columns(pl.col("id").cast(pl.String)), deliveries, never_sent, streams)


def _first(events: pl.DataFrame, status: str) -> pl.DataFrame:
    """The first event with a status of each (instance, id), in order of time."""
    some = events.filter(pl.col("status") == status).sort("ts", "number", "id")
    return some.unique(["number", "id"], keep="first", maintain_order=True)


def _messages(run: Run, events: pl.DataFrame, topics: dict[int, str], gaps: Gaps) -> tuple[pl.DataFrame, pl.DataFrame]:
    events, late = _in_time(run, events, gaps)
    sent, triggered = _first(events, "sent"), _first(events, "triggered")
    _repeated(run, events, sent, gaps)
    never_sent = triggered.join(sent, on=["number", "id"], how="anti")
    _never_sent(run, never_sent, late, gaps)
    planned = pl.DataFrame({"number": list(topics), "planned": list(topics.values())}, schema={"number": pl.UInt32, "planned": pl.Categorical})

    def with_topic(frame: pl.DataFrame) -> pl.DataFrame:
        joined = frame.join(planned, on="number", how="left", maintain_order="left")
        return joined.with_columns(pl.coalesce("topic", "planned").alias("topic"))

    messages = (
        with_topic(sent.join(triggered.select("number", "id", triggered="ts"), on=["number", "id"], how="left", maintain_order="left"))
        .with_row_index("message")
        .with_columns(ambiguous=pl.struct("id", "topic").is_duplicated())
        .select("message", "id", "topic", "triggered", "bytes", "ambiguous", publisher="number", sent="ts")
    )
    _ambiguous(run, messages, gaps)
    unsent = with_topic(never_sent).select("topic", pl.col("id").cast(pl.String), "bytes", publisher="number", triggered="ts")
    _without_topic(run, pl.concat([messages.select("publisher", "topic"), unsent.select("publisher", "topic")]), gaps)
    return messages, unsent


def _in_time(run: Run, events: pl.DataFrame, gaps: Gaps) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Events of messages up to the end of the drain, and those after it. Messages that begin later have no time to arrive."""
    published = events.filter(pl.col("status").is_in(["triggered", "sent"]))
    if run.measure_end is None:
        return published, published.clear()
    in_time, late = (published.filter(there) for there in (pl.col("ts") <= run.measure_end, pl.col("ts") > run.measure_end))
    begun = late.join(in_time, on=["number", "id"], how="anti")
    if count := begun.select("number", "id").unique().height:
        reason = f"{count} messages were triggered or sent after the drain had ended; they do not count"
        gaps.note("messages after the drain", reason, start=run.since_t0(begun["ts"].min()), end=run.since_t0(begun["ts"].max()))
    return in_time, late


def _without_topic(run: Run, messages: pl.DataFrame, gaps: Gaps) -> None:
    """Name the messages of which nobody can say who should receive them."""
    for number, count in messages.filter(pl.col("topic").is_null()).group_by("publisher").len().sort("publisher").rows():
        instance = run.instances[number]
        gaps.add(f"messages of {instance.name}", f"{count} messages have no topic: nobody is expected to receive them", instance.node)


def _short(column: str) -> pl.Expr:
    """A text that is short enough for a message; see safe.bounded."""
    text = pl.col(column)
    short = pl.format("{}… ({} characters)", text.str.head(safe.MOST), text.str.len_chars())
    return pl.when(text.str.len_chars() > safe.MOST).then(short).otherwise(text).alias(column)


def _repeated(run: Run, events: pl.DataFrame, sent: pl.DataFrame, gaps: Gaps) -> None:
    count = events.filter(pl.col("status") == "sent").group_by("number").len().join(sent.group_by("number").len(), on="number", suffix="_first")
    for number, all_of_them, first in count.sort("number").rows():
        if all_of_them > first:
            instance = run.instances[number]
            repeat = f"{all_of_them - first} sent events repeat an id of the same instance"
            reason = f"{repeat}: want one for each message, whatever the topic; the first one of each counts"
            gaps.add(f"messages of {instance.name}", reason, instance.node)


def _never_sent(run: Run, lacking: pl.DataFrame, late: pl.DataFrame, gaps: Gaps) -> None:
    after = lacking.join(late.filter(pl.col("status") == "sent"), on=["number", "id"], how="semi").group_by("number").agg(after=pl.len())
    summary = lacking.group_by("number").agg(pl.len(), pl.col("ts").min().alias("first"), pl.col("ts").max().alias("last"))
    for number, count, first, last, later in summary.join(after, on="number", how="left").sort("number").rows():
        instance = run.instances[number]
        or_late = f", or only after the drain ({later})" if later else ""
        gaps.add(
            f"messages of {instance.name}",
            f"{count} messages were triggered but never sent{or_late}; they do not count as sent",
            instance.node,
            run.since_t0(first),
            run.since_t0(last),
        )


def _ambiguous(run: Run, messages: pl.DataFrame, gaps: Gaps) -> None:
    shared = messages.filter("ambiguous")
    if shared.is_empty():
        return
    names = [run.instances[n].name for n in shared["publisher"].unique().sort()]
    keys = shared.select(pl.col("id", "topic").cast(pl.String)).unique().sort("id", "topic")
    example = f"id {safe.bounded(keys['id'][0])!r} on topic {safe.bounded(keys['topic'][0])!r}"
    gaps.add(
        "ambiguous messages",
        f"{keys.height} keys (id, topic) such as {example} were sent by more than one instance ({', '.join(names[:10])}): these "
        f"{shared.height} messages count as sent, but their deliveries are in no other figure",
    )
