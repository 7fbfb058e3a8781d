"""Age of information at each subscriber of each publisher: the time since its freshest message was sent.

At time t the age is t - u(t), where u(t) is when the freshest message received until t was sent: Kaul, Yates and Gruteser, "Real-Time
Status: How Often Should One Update?", INFOCOM 2012. It grows with time and falls when a fresher message arrives. Older messages and duplicates
do not change it. The peak age is the age right before it falls: Costa, Codreanu and Ephremides, "Age of Information with Packet Management",
ISIT 2014.
"""

import numpy as np
import polars as pl

from ..data.run import Run
from . import pairs
from .order import Arrivals

SCHEMA = pairs.SCHEMA | {
    # The interval in seconds after T0: from the first message received to the end of the measuring window. Null where none was received.
    "fromSeconds": pl.Float64,
    "toSeconds": pl.Float64,
    # Messages received that were fresher than all before.
    "updates": pl.Int64,
    # Mean over the interval; null where it has no length.
    "meanSeconds": pl.Float64,
    # Mean of the ages right before each update except the first; null where there was only one.
    "peakMeanSeconds": pl.Float64,
    "maxSeconds": pl.Float64,
}


def of(run: Run, batch: pairs.Batch, came: Arrivals, end: int) -> pl.DataFrame:
    """One row per pair of a batch in order of publisher and subscriber; `end` of the measuring window in Unix nanoseconds."""
    fresh = came.fresh()
    pair, sent, received = came.pair[fresh], came.sent[fresh], came.received[fresh]
    first = batch.first(pair)
    last = np.append(first[1:], True)[: len(first)]
    # Each update's age lasts until the next one of its pair, or to the end.
    until = np.where(last, end, np.append(received[1:], end)[: len(pair)])
    length, young, old = (until - received) / 1e9, (received - sent) / 1e9, (until - sent) / 1e9
    area = batch.sums(pair, length * (young + old) / 2)
    start = np.full(batch.pairs.height, np.nan)
    start[pair[first]] = (received[first] - (run.t0 or 0)) / 1e9
    duration = np.full(batch.pairs.height, np.nan)
    duration[pair[first]] = (end - received[first]) / 1e9
    updates, peaks = batch.counts(pair), batch.counts(pair[~last])
    with np.errstate(divide="ignore", invalid="ignore"):
        figures = pl.DataFrame(
            {
                "fromSeconds": start,
                "toSeconds": np.where(updates > 0, (end - (run.t0 or 0)) / 1e9, np.nan),
                "updates": updates,
                "meanSeconds": np.where(duration > 0, area / duration, np.nan),
                "peakMeanSeconds": batch.sums(pair[~last], old[~last]) / peaks,
                "maxSeconds": batch.greatest(pair, old),
            }
        )
    figures = figures.fill_nan(None).cast({name: SCHEMA[name] for name in figures.columns})
    return pl.concat([pairs.named(run, batch.pairs), figures], how="horizontal")


def summarise(ages: pl.DataFrame) -> dict | None:
    """The figures of all pairs of publisher and subscriber; None where no pair has an age."""
    known = ages.drop_nulls("meanSeconds")
    if known.is_empty():
        return None
    mean, greatest = known["meanSeconds"].mean(), known["maxSeconds"].max()
    return {"pairs": ages.height, "knownPairs": known.height, "meanSeconds": mean, "maxSeconds": greatest}
