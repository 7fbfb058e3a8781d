"""Gaps in the sequence of a publisher's messages at a subscriber: the loss periods of RFC 3357, section 5.

A loss period is a sequence of messages, in the order of sending, that were all lost.
"""

import numpy as np
import polars as pl

from ..data.messages import Matching
from ..data.run import Run
from . import pairs

SCHEMA = pairs.SCHEMA | {
    "firstID": pl.String,
    "lastID": pl.String,
    "messages": pl.Int64,
    # When the first and the last one were sent, in seconds after T0; null without one.
    "fromSeconds": pl.Float64,
    "toSeconds": pl.Float64,
    # From the sending of the first lost message to that of the next one that arrived; null if none did.
    "outageSeconds": pl.Float64,
    # Whether it has the most messages of its pair's loss periods; the earliest of equals.
    "longest": pl.Boolean,
}


def of(run: Run, matching: Matching, batch: pairs.Batch) -> pl.DataFrame:
    """Loss periods of a batch in order of publisher, subscriber and time."""
    lost = np.flatnonzero(~batch.arrived)
    pair = batch.pair[lost]
    begins = (np.diff(lost, prepend=-2) != 1) | batch.first(pair)
    start = np.flatnonzero(begins)
    length = np.diff(start, append=len(lost))
    first, last = lost[start], lost[start + length - 1]
    ids = matching.messages["id"]
    return pairs.named(run, batch.pairs[batch.pair[first]]).with_columns(
        ids.gather(batch.message[first]).alias("firstID"),
        ids.gather(batch.message[last]).alias("lastID"),
        pl.Series("messages", length),
        _since_t0(run, "fromSeconds", batch.sent[first]),
        _since_t0(run, "toSeconds", batch.sent[last]),
        _outages(batch, first, last),
        pl.Series("longest", _longest(batch.pair[first], length)),
    )


def _since_t0(run: Run, name: str, ts: np.ndarray) -> pl.Series:
    return pl.Series(name, [None] * len(ts) if run.t0 is None else (ts - run.t0) / 1e9, dtype=pl.Float64)


def _outages(batch: pairs.Batch, first: np.ndarray, last: np.ndarray) -> pl.Series:
    following = np.minimum(last + 1, len(batch.pair) - 1)
    ended = (last + 1 < len(batch.pair)) & (batch.pair[following] == batch.pair[last])
    seconds = pl.Series("outageSeconds", (batch.sent[following] - batch.sent[first]) / 1e9, dtype=pl.Float64)
    return seconds.to_frame().select(pl.when(pl.Series(ended)).then("outageSeconds")).to_series()


def _longest(pair: np.ndarray, length: np.ndarray) -> np.ndarray:
    # By pair, the longest first; the earliest of equals, as the sort is stable.
    order = np.lexsort((-length, pair))
    found = np.zeros(len(pair), bool)
    found[order[np.diff(pair[order], prepend=-1) != 0]] = True
    return found
