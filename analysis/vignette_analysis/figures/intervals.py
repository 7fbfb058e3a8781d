"""Late intervals, and the deliveries that were in flight in them."""

from collections.abc import Iterable

import numpy as np

# A queue that a late interval filled may delay later messages for this multiple of its length: at 90 % load of the queue.
AFTER_EFFECT = 10


def union(intervals: Iterable[tuple[int, int]]) -> np.ndarray:
    """Disjoint intervals in ascending order that cover the same time: a (start, end) in each row."""
    given = np.array(sorted(intervals), np.int64).reshape(-1, 2)
    if not len(given):
        return given
    reached = np.maximum.accumulate(given[:, 1])
    first = np.concatenate([[True], given[1:, 0] > reached[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.column_stack([given[first, 0], reached[last]])


def held_up(sent: np.ndarray, delay: np.ndarray, intervals: np.ndarray) -> np.ndarray:
    """How long disjoint intervals delayed each delivery.

    An interval that ended less than the delivery's delay before its sending filled a queue ahead of it.
    """
    starts, ends = intervals[:, 0], intervals[:, 1]
    length = ends - starts
    before = np.concatenate([[0], np.cumsum(length)])
    begun = np.searchsorted(starts, sent + delay, side="right")
    last = np.maximum(begun - 1, 0)
    until_received = np.where(begun > 0, before[last] + np.minimum(sent + delay - starts[last], length[last]), 0)
    late = until_received - before[np.searchsorted(ends, sent - delay, side="left")]
    return np.clip(late, 0, np.maximum(delay, 0))


def after_effect(sent: np.ndarray, delay: np.ndarray, intervals: np.ndarray) -> np.ndarray:
    """How long earlier intervals, which `held_up` does not count, may have kept a queue filled; messages are in order of `sent`.

    The wait at the end of an interval is at most its length, and at most the delays of messages sent soon after.
    """
    ends, length = intervals[:, 1], intervals[:, 1] - intervals[:, 0]
    first, soon, last = (np.searchsorted(sent, ends + times * length, side="right") for times in (0, 1, AFTER_EFFECT))
    late = np.zeros(len(sent), np.int64)
    for i in np.flatnonzero(last > first):
        left = min(length[i], delay[first[i] : max(soon[i], first[i] + 1)].max())
        some = slice(first[i], first[i] + np.searchsorted(sent[first[i] : last[i]], ends[i] + AFTER_EFFECT * left))
        late[some] += np.where(sent[some] - delay[some] > ends[i], left, 0)
    return late


def in_flight(sent: np.ndarray, flight: int | np.ndarray, intervals: np.ndarray) -> np.ndarray:
    """For each message, whether one of these disjoint intervals touches its flight: from `sent` on, for `flight` at most."""
    if not len(intervals):
        return np.zeros(len(sent), bool)
    following = np.searchsorted(intervals[:, 1], sent, side="left")
    there = np.minimum(following, len(intervals) - 1)
    return (following < len(intervals)) & (intervals[there, 0] <= sent + flight)
