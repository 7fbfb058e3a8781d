"""Figures of deliveries by the node groups of sender and receiver, in the form of runapi.PairResult."""

import numpy as np
import polars as pl

from ..data.gaps import Gaps
from ..data.messages import Matching
from ..data.run import Run
from . import responses, statistics
from .deliveries import Delay, counted, entry, unsent

# Most pairs of groups, as of ten groups of which each sends to all.
MAX_PAIRS = 100
_ENDS = ("publisher", "subscriber")


def compute(run: Run, matching: Matching, requests: pl.DataFrame, gaps: Gaps) -> list[dict]:
    """The figures of every pair of groups with planned deliveries, in the plan's order. None of more than MAX_PAIRS, and a note says so."""
    names = list(dict.fromkeys(i.group for i in run.instances))
    group_of = pl.Series([names.index(i.group) for i in run.instances], dtype=pl.Int64)

    def pair(frame: pl.DataFrame) -> pl.Series:
        publisher, subscriber = (group_of.gather(frame[end]) for end in _ENDS)
        return (publisher * len(names) + subscriber).alias("pair")

    planned = pair(matching.streams.pairs).unique().sort().to_list()
    if len(planned) > MAX_PAIRS:
        gaps.note(
            "pairs", f"{len(names)} groups of nodes make {len(planned)} pairs, and {MAX_PAIRS} are computed at most: give several nodes one group"
        )
        return []
    counts, delays = _counts(matching, pair), _delays(matching, pair)
    ends_of_topics = matching.streams.pairs.select("publisher", "topic", pair(matching.streams.pairs)).unique()
    asked = requests.join(ends_of_topics, on=["publisher", "topic"], maintain_order="left").partition_by("pair", as_dict=True)
    found = []
    for number in planned:
        ends = names[number // len(names)], names[number % len(names)]
        delay = Delay.of(delays.get(number, np.array([], np.int64)), statistics.stream(run.plan["uid"], "pair", *ends))
        figures = {"from": ends[0], "to": ends[1]} | entry(counts[number], delay)
        if (some := asked.get((number,))) is not None:
            figures["requests"] = responses.of(run, some, "pair", *ends)
        found.append(figures)
    return found


def _counts(matching: Matching, pair) -> dict[int, dict]:
    """Counts of deliveries and of their messages by pair; zero where nothing was sent."""
    deliveries = matching.deliveries.select("message", "received", "duplicates", pair(matching.deliveries))
    sent = deliveries.group_by("pair").agg(*counted(), sent=pl.col("message").n_unique())
    lacking = unsent(matching)
    lacking = lacking.with_columns(pair(lacking))
    never = lacking.unique(["pair", "publisher", "topic"]).group_by("pair").agg(neverSent=pl.col("messages").sum())
    planned = pl.DataFrame({"pair": pair(matching.streams.pairs).unique()})
    joined = planned.join(sent, on="pair", how="left").join(never, on="pair", how="left")
    joined = joined.join(lacking.group_by("pair").agg(unsent=pl.col("messages").sum()), on="pair", how="left").fill_null(0)
    return {row.pop("pair"): row for row in joined.with_columns(pl.all().cast(pl.Int64)).to_dicts()}


def _delays(matching: Matching, pair) -> dict[int, np.ndarray]:
    """Delays in ns of each pair, in ascending order."""
    arrived = matching.deliveries.select("received", "sent", pair(matching.deliveries)).filter(pl.col("received").is_not_null())
    delays = arrived.select("pair", delay=pl.col("received") - pl.col("sent")).sort("pair", "delay")
    return {key[0]: some["delay"].to_numpy() for key, some in delays.partition_by("pair", as_dict=True).items()}
