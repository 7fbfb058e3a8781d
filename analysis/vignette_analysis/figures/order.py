"""Reordering at each subscriber of each publisher's messages, by RFC 4737, and duplicates.

Messages stand for the RFC's packets, and the order of sending (by the publisher's clock) for sequence numbers. Messages sent at the same
time have no order. As in the RFC only the first copy counts; other copies are duplicates.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..data.run import Run
from . import pairs

SCHEMA = pairs.SCHEMA | {
    "received": pl.Int64,
    # Section 3.3, Type-P-Reordered: received after a message that was sent later.
    "reordered": pl.Int64,
    # Section 4.1, the ratio of reordered messages, in percent of received ones; null where none was received.
    "reorderedPercent": pl.Float64,
    # Section 4.2, reordering extent: messages between the first one that overtook it and itself; null where none was reordered.
    "extentMean": pl.Float64,
    "extentMax": pl.Int64,
    # Section 4.3, late time offset: how long before it that first one had arrived.
    "lateMeanSeconds": pl.Float64,
    "lateMaxSeconds": pl.Float64,
    "duplicates": pl.Int64,
}


@dataclass
class Arrivals:
    """Received deliveries of a batch, in order of pair and arrival."""

    pair: np.ndarray
    sent: np.ndarray
    received: np.ndarray
    # Ascending by pair and time of sending.
    rank: np.ndarray
    # The greatest rank up to and including this one.
    newest: np.ndarray

    def fresh(self) -> np.ndarray:
        """For each, whether it was sent later than all earlier arrivals of its pair."""
        return np.diff(self.newest, prepend=-1) > 0


def arrivals(batch: pairs.Batch) -> Arrivals:
    """Sort received deliveries by arrival, and those of the same time by sending."""
    rank = np.cumsum((np.diff(batch.sent, prepend=0) != 0) | batch.first(batch.pair))
    pair, sent, received, rank = (values[batch.arrived] for values in (batch.pair, batch.sent, batch.received, rank))
    by_time = np.argsort(received, kind="stable")
    order = by_time[np.argsort(pair[by_time].astype(np.min_scalar_type(batch.pairs.height)), kind="stable")]
    rank = rank[order]
    # A pair's ranks are above those of earlier pairs, so one pass handles all.
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
