"""Expected deliveries: each message once for each other instance that receives its stream, by the plan's table of streams."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import polars as pl

from . import topics
from .run import Instance, Run

NOBODY = -1


@dataclass
class Streams:
    """A stream is all messages of one publisher on one topic. They have the same subscribers, in the plan's order."""

    # One row per stream: stream, publisher, topic.
    streams: pl.DataFrame
    # One row per stream and subscriber: stream, publisher, topic, subscriber, heard (the topic at the subscriber), radio, local, cross.
    pairs: pl.DataFrame
    # By stream: its first row in pairs, and its number of rows.
    first: np.ndarray
    count: np.ndarray
    # By row (see `kind`) and instance: its index among the stream's subscribers, or NOBODY.
    slots: np.ndarray
    # By stream: its row of slots.
    kind: np.ndarray

    def renamed(self) -> pl.DataFrame:
        """Topics that a broker renamed: publisher, topic, heard."""
        return self.pairs.filter(pl.col("heard") != pl.col("topic")).select("publisher", "topic", "heard").unique(maintain_order=True)


class Table:
    """The plan's table of streams, by publisher."""

    def __init__(self, run: Run):
        self._instances = run.instances
        numbers = {i.name: i.number for i in run.instances}
        self._audiences = [[numbers[name] for name in names] for names in run.streams["audiences"]]
        self._rows: dict[int, list[dict]] = defaultdict(list)
        for row in run.streams["rows"]:
            for name in row["publishers"]:
                self._rows[numbers[name]].append(row)

    def planned(self) -> list[tuple[int, str]]:
        """Publisher and topic of all streams, as far as topics are planned."""
        return [(number, row["topic"]) for number, rows in self._rows.items() for row in rows if row.get("topic")]

    def default_topics(self) -> dict[int, str]:
        """The topic of each publisher that has only one."""
        return {number: rows[0]["topic"] for number, rows in self._rows.items() if len(rows) == 1 and rows[0].get("topic")}

    def heard(self, publisher: Instance, topic: str) -> list[tuple[Instance, str]]:
        """Subscribers of what a publisher sends to a topic, in the plan's order, and the topic that each sees."""
        rows = [row for row in self._rows[publisher.number] if _is_of(row, topic)]
        entries = [entry for row in rows for entry in row.get("heard") or []]
        found = sorted((number, entry.get("topic") or topic) for entry in entries for number in self._audiences[entry["audience"]])
        # A process may have several names.
        return [(s, name) for number, name in found if (s := self._instances[number]).message_log != publisher.message_log]


def _is_of(row: dict, topic: str) -> bool:
    return row.get("topic") == topic or any(topics.matches(f, topic) for f in row.get("filters") or ())


def streams(run: Run, table: Table, keys: pl.DataFrame) -> Streams:
    """Find the subscribers of every (publisher, topic)."""
    found = keys.select("publisher", "topic").unique().drop_nulls().sort("publisher", "topic").with_row_index("stream")
    rows: list[tuple] = []
    count = np.zeros(found.height, np.int64)
    kinds: dict[tuple[int, ...], int] = {}
    kind = np.zeros(found.height, np.int64)
    for stream, number, topic in found.rows():
        publisher = run.instances[number]
        heard_by = table.heard(publisher, topic)
        rows += [(stream, number, topic, s.number, heard, *_kinds(publisher, s)) for s, heard in heard_by]
        count[stream] = len(heard_by)
        kind[stream] = kinds.setdefault(tuple(s.number for s, _ in heard_by), len(kinds))
    pairs = pl.DataFrame(
        rows,
        orient="row",
        schema={
            "stream": pl.UInt32,
            "publisher": pl.UInt32,
            "topic": pl.Categorical,
            "subscriber": pl.UInt32,
            "heard": pl.Categorical,
            "radio": pl.Boolean,
            "local": pl.Boolean,
            "cross": pl.Boolean,
        },
    )
    # A row at least, so that messages without a stream can be looked up.
    slots = np.full((max(len(kinds), 1), len(run.instances)), NOBODY, np.int32)
    for numbers, row in kinds.items():
        slots[row, list(numbers)] = np.arange(len(numbers))
    return Streams(found, pairs, np.cumsum(count) - count, count, slots, kind)


def _kinds(publisher: Instance, subscriber: Instance) -> tuple[bool, bool, bool]:
    """Report whether deliveries are radio, local and cross. One that returns from a broker on another node is neither radio nor local."""
    stays = {publisher.node, subscriber.node} | publisher.broker_nodes | subscriber.broker_nodes == {publisher.node}
    return publisher.node != subscriber.node, stays, publisher.group != subscriber.group


@dataclass
class Expected:
    """Expected deliveries in order of message and subscriber, with an index."""

    # message, publisher, subscriber, sent, radio, local, cross.
    deliveries: pl.DataFrame
    _offset: np.ndarray
    _kind: np.ndarray
    _slots: np.ndarray

    def rows(self, message: np.ndarray, subscriber: np.ndarray) -> np.ndarray:
        """Row of each (message, subscriber) in `deliveries`; NOBODY where it is not expected."""
        kind = self._kind[message]
        slot = np.where(kind == NOBODY, NOBODY, self._slots[kind, subscriber])
        return np.where(slot == NOBODY, NOBODY, self._offset[message] + slot)


def deliveries(messages: pl.DataFrame, known: Streams) -> Expected:
    """Expand messages (message = row, publisher, topic, sent, ambiguous) to their expected deliveries. Ambiguous messages have none."""
    streamed = messages.select("publisher", "topic", "ambiguous").join(known.streams, on=["publisher", "topic"], how="left", maintain_order="left")
    has = (streamed["stream"].is_not_null() & ~streamed["ambiguous"]).to_numpy()
    stream = streamed["stream"].fill_null(0).to_numpy()
    count, kind, first = (np.zeros(messages.height, np.int64) for _ in range(3))
    count[has], kind[has], first[has] = known.count[stream[has]], known.kind[stream[has]], known.first[stream[has]]
    kind[~has] = NOBODY
    offset = np.cumsum(count) - count
    message = np.repeat(np.arange(messages.height, dtype=np.uint32), count)
    pair = np.repeat(first - offset, count)
    pair += np.arange(len(pair))
    columns = known.pairs.select("publisher", "subscriber", "radio", "local", "cross")[pair]
    sent = messages["sent"].gather(message)
    expanded = columns.select(pl.Series("message", message), "publisher", "subscriber", sent.alias("sent"), "radio", "local", "cross")
    return Expected(expanded, offset, kind, known.slots)
