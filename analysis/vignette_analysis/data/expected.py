"""Expected deliveries: each message once for each other instance that subscribes to it at a broker that it reaches."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from . import topics
from .reach import Reach
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


def streams(run: Run, keys: pl.DataFrame) -> Streams:
    """Find the subscribers of every (publisher, topic)."""
    found = keys.select("publisher", "topic").unique().drop_nulls().sort("publisher", "topic").with_row_index("stream")
    rows: list[tuple] = []
    count = np.zeros(found.height, np.int64)
    kinds: dict[tuple[int, ...], int] = {}
    kind = np.zeros(found.height, np.int64)
    subscribed = _Subscriptions(run)
    for stream, number, topic in found.rows():
        publisher = run.instances[number]
        heard_by = list(subscribed.to(publisher, topic))
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
    slots = np.full((len(kinds), len(run.instances)), NOBODY, np.int32)
    for numbers, row in kinds.items():
        slots[row, list(numbers)] = np.arange(len(numbers))
    return Streams(found, pairs, np.cumsum(count) - count, count, slots, kind)


class _Subscriptions:
    """Matches each topic once per set of subscriptions, which the instances of an app share."""

    def __init__(self, run: Run):
        self._subscribers = [i for i in run.instances if i.subscriptions]
        self._reach = Reach(run)
        self._known: dict[tuple[tuple[str, ...], str], bool] = {}

    def to(self, publisher: Instance, topic: str) -> Iterator[tuple[Instance, str]]:
        """Subscribers of what a publisher sends to a topic, and the topic that each sees."""
        for subscriber in self._subscribers:
            other = subscriber.message_log != publisher.message_log  # a process may have several names
            heard = self._heard(publisher, subscriber, topic) if other else None
            if heard is not None:
                yield subscriber, heard

    def _heard(self, publisher: Instance, subscriber: Instance, topic: str) -> str | None:
        if not publisher.brokers or not subscriber.brokers:  # their brokers are unknown: compare protocols alone
            return topic if self._covers(subscriber.subscriptions, topic) and _speak_the_same(publisher, subscriber) else None
        reached = self._reach.of(publisher.brokers, topic)
        names = (name for broker in subscriber.brokers for name in reached.get(broker, ()))
        return next((name for name in names if self._covers(subscriber.subscriptions, name)), None)

    def _covers(self, filters: tuple[str, ...], topic: str) -> bool:
        key = (filters, topic)
        if key not in self._known:
            self._known[key] = any(topics.matches(f, topic) for f in filters)
        return self._known[key]


def _speak_the_same(publisher: Instance, subscriber: Instance) -> bool:
    """Report whether two instances may exchange messages: their protocols agree, or one is unknown."""
    either_unknown = not publisher.publish_protocol or not subscriber.subscribe_protocol
    return either_unknown or publisher.publish_protocol == subscriber.subscribe_protocol


def _kinds(publisher: Instance, subscriber: Instance) -> tuple[bool, bool, bool]:
    """Report whether deliveries are radio, local and cross. One that returns from a broker on another node is neither radio nor local."""
    stays = publisher.node == subscriber.node == publisher.publish_broker == subscriber.subscribe_broker
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
