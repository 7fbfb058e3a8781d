"""Sequence, order and age of information of what each subscriber received from each publisher."""

from dataclasses import dataclass

import polars as pl

from ..data.gaps import Gaps
from ..data.messages import Matching
from ..data.run import Run
from . import age, order, pairs, sequences


@dataclass
class Flows:
    """Tables in order of publisher and subscriber. The modules of the same names define the columns."""

    sequences: pl.DataFrame
    order: pl.DataFrame
    age: pl.DataFrame


def compute(run: Run, matching: Matching, gaps: Gaps) -> Flows:
    """Compute the tables. Without an end of the measuring window there is no age, and a gap says so."""
    sequence_parts, order_parts, age_parts = [], [], []
    for batch in pairs.batches(matching):
        sequence_parts.append(sequences.of(run, matching, batch))
        came = order.arrivals(batch)
        order_parts.append(order.of(run, batch, came))
        if run.measure_end is not None:
            age_parts.append(age.of(run, batch, came, run.measure_end))
    if run.measure_end is None and order_parts:
        gaps.add("age", "the run record does not tell when the measurement ended: for how long the last message was the freshest one is not known")
    return Flows(_table(sequences.SCHEMA, sequence_parts), _table(order.SCHEMA, order_parts), _table(age.SCHEMA, age_parts))


def _table(schema: dict, parts: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=schema), *parts])
