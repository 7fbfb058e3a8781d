"""Expected deliveries by pair of publisher and subscriber, in the order of sending."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..data.messages import Matching
from ..data.run import Run

# Deliveries of a batch: more take more memory, fewer more time.
BATCH_ROWS = 1 << 20


@dataclass
class Batch:
    """All deliveries of some publishers, in order of pair and of message; pairs are numbered from 0."""

    # One row per pair: publisher, subscriber (instance numbers).
    pairs: pl.DataFrame
    # By delivery: its pair, its message, and the columns of Matching.deliveries.
    pair: np.ndarray
    message: np.ndarray
    sent: np.ndarray
    received: np.ndarray
    arrived: np.ndarray
    duplicates: np.ndarray

    def first(self, pair: np.ndarray) -> np.ndarray:
        """For each of some rows in order of pair, whether it is the first of its pair."""
        return np.diff(pair, prepend=-1) != 0

    def sums(self, pair: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sums of some rows' values by pair."""
        return np.bincount(pair, weights=values, minlength=self.pairs.height)

    def counts(self, pair: np.ndarray) -> np.ndarray:
        """Number of some rows by pair."""
        return np.bincount(pair, minlength=self.pairs.height)

    def greatest(self, pair: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The greatest of some rows' values by pair; NaN where there is none."""
        found = np.full(self.pairs.height, -np.inf)
        np.maximum.at(found, pair, values)
        return np.where(np.isinf(found), np.nan, found)


def batches(matching: Matching) -> Iterator[Batch]:
    """Split the deliveries into batches, in order of publishers."""
    sizes = matching.deliveries.group_by("publisher").len().sort("publisher")
    some, rows = [], 0
    for publisher, size in sizes.rows():
        some.append(publisher)
        rows += size
        if rows >= BATCH_ROWS:
            yield _batch(matching, some)
            some, rows = [], 0
    if some:
        yield _batch(matching, some)


def _batch(matching: Matching, publishers: list[int]) -> Batch:
    chosen = matching.deliveries.lazy().filter(pl.col("publisher").is_between(publishers[0], publishers[-1]))
    deliveries = chosen.select("message", "publisher", "subscriber", "sent", "received", "duplicates").collect()
    pairs = deliveries.select("publisher", "subscriber").unique().sort("publisher", "subscriber")
    # By publisher and subscriber, both from 0.
    least, width = publishers[0], int(deliveries["subscriber"].max()) + 1
    number = np.zeros((publishers[-1] - least + 1) * width, np.int64)
    number[_place(pairs, least, width)] = np.arange(pairs.height)
    pair = number[_place(deliveries, least, width)]
    # numpy sorts 16-bit integers by radix. The sort is stable: messages stay in order.
    order = np.argsort(pair.astype(np.min_scalar_type(pairs.height)), kind="stable")
    return Batch(
        pairs,
        pair[order],
        deliveries["message"].to_numpy()[order],
        deliveries["sent"].to_numpy()[order],
        deliveries["received"].fill_null(0).to_numpy()[order],
        deliveries["received"].is_not_null().to_numpy()[order],
        deliveries["duplicates"].to_numpy()[order],
    )


def _place(frame: pl.DataFrame, least: int, width: int) -> np.ndarray:
    return (frame["publisher"].to_numpy().astype(np.int64) - least) * width + frame["subscriber"].to_numpy()


def named(run: Run, pairs: pl.DataFrame) -> pl.DataFrame:
    """Pairs with the names of their instances."""
    names = pl.Series([i.name for i in run.instances], dtype=pl.Categorical)
    return pairs.select(names.gather(pairs[column]).alias(column) for column in ("publisher", "subscriber"))


SCHEMA = {"publisher": pl.Categorical, "subscriber": pl.Categorical}
