"""Reordering at each subscriber of each publisher's messages, by RFC 4737, and duplicates.

Messages take the place of packets, and the order in which they were sent, by the publisher's clock, that of sequence numbers; those sent at the same
time are in any order. As the RFC says, only the first copy of each counts: other copies are duplicates.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from . import pairs
from .run import Run

SCHEMA = pairs.SCHEMA | {
    "received": pl.Int64,
    # Section 3.3, Type-P-Reordered: received after a message that was sent later.
    "reordered": pl.Int64,
    # Section 4.1, the ratio of reordered messages, in percent of received ones; null where none was received.
    "reorderedPercent": pl.Float64,
    # Section 4.2, reordering extent: messages between the first one that overtook it and itself; null where none was reordered.
    "extentMean": pl.Float64,
    "extentMax": pl.Int64,
    # Section 4.3, late time offset: for how long that first one had been there.
    "lateMeanSeconds": pl.Float64,
    "lateMaxSeconds": pl.Float64,
    "duplicates": pl.Int64,
}


@dataclass
class Arrivals:
    """The received deliveries of a batch, in order of pair and arrival."""

    pair: np.ndarray
    sent: np.ndarray
    received: np.ndarray
    # Grows with pair and time of sending.
    rank: np.ndarray
    # The greatest rank so far, this one included.
    newest: np.ndarray

    def fresh(self) -> np.ndarray:
        """Tell of each whether it was sent later than all of its pair that had arrived before."""
        return np.diff(self.newest, prepend=-1) > 0


def arrivals(batch: pairs.Batch) -> Arrivals:
    """Put what was received in order of arrival; of what arrived at the same time, what was sent first is first."""
    rank = np.cumsum((np.diff(batch.sent, prepend=0) != 0) | batch.first(batch.pair))
    pair, sent, received, rank = (values[batch.arrived] for values in (batch.pair, batch.sent, batch.received, rank))
    by_time = np.argsort(received, kind="stable")
    order = by_time[np.argsort(pair[by_time].astype(np.min_scalar_type(batch.pairs.height)), kind="stable")]
    rank = rank[order]
    # Ranks of a pair are above those of all pairs before, so that one pass does for all.
    return Arrivals(pair[order], sent[order], received[order], rank, np.maximum.accumulate(rank) if len(rank) else rank)


def of(run: Run, batch: pairs.Batch, came: Arrivals) -> pl.DataFrame:
    """One row per pair of a batch in order of publisher and subscriber."""
    late = np.flatnonzero(came.rank < came.newest)
    overtaken_by = np.searchsorted(came.newest, came.rank[late], side="right")
    extent = late - overtaken_by
    seconds = (came.received[late] - came.received[overtaken_by]) / 1e9
    pair = came.pair[late]
    received, reordered = batch.counts(came.pair), batch.counts(pair)
    with np.errstate(divide="ignore", invalid="ignore"):
        figures = pl.DataFrame(
            {
                "received": received,
                "reordered": reordered,
                "reorderedPercent": 100 * reordered / received,
                "extentMean": batch.sums(pair, extent) / reordered,
                "extentMax": batch.greatest(pair, extent),
                "lateMeanSeconds": batch.sums(pair, seconds) / reordered,
                "lateMaxSeconds": batch.greatest(pair, seconds),
                "duplicates": batch.sums(batch.pair, batch.duplicates),
            }
        )
    figures = figures.fill_nan(None).cast({name: SCHEMA[name] for name in figures.columns})
    return pl.concat([pairs.named(run, batch.pairs), figures], how="horizontal")
