"""Counts, quantiles and confidence intervals of deliveries: overall, by group, by publisher."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..data.messages import Matching
from ..data.run import Run
from . import statistics

# In the order of the tables' columns. The mean is no quantile, and has a column beside them.
QUANTILES = {"min": 0.0, "p25": 0.25, "median": 0.5, "mean": None, "p75": 0.75, "p95": 0.95, "max": 1.0}
# Names that a node group's result may not have, as they mean something else.
RESERVED = ("all", "radio", "local", "cross")
# Kinds of deliveries, each a column of Matching.deliveries and of streams' pairs.
KINDS = ("radio", "local", "cross")
_COUNTS = ("sent", "expected", "received", "duplicates", "neverSent", "unsent")


@dataclass(frozen=True)
class Delay:
    """Delays of one scope in seconds: quantiles and confidence intervals of median and mean. None where there are too few."""

    quantiles: dict[str, float] | None = None
    median_interval: tuple[float, float] | None = None
    mean_interval: tuple[float, float] | None = None

    @classmethod
    def of(cls, ordered: np.ndarray, random: np.random.Generator) -> "Delay":
        """Of nanoseconds in ascending order, with random numbers for the bootstrap."""
        of_mean = statistics.from_zero(statistics.mean_interval(ordered), ordered)
        return cls(quantiles(ordered), _seconds(statistics.median_interval(ordered, random)), _seconds(of_mean))


@dataclass
class Figures:
    """Figures in the form of runapi.Results."""

    groups: list[dict]
    publishers: list[dict]
    # Name of the headline group.
    headline: str


def compute(run: Run, matching: Matching, delays: dict[tuple[str, str | None], Delay], requests: dict[tuple[str, str | None], dict]) -> Figures:
    """Compute the figures of every group and publisher from counts, and their delays and figures of requests."""
    by_publisher = {row["publisher"]: row for row in _by_publisher(matching).rows(named=True)}
    none = dict.fromkeys(_COUNTS, 0)

    def of(scope: str, name: str | None, counts: dict) -> dict:
        asked = requests.get((scope, name))
        return {"name": name or scope} | entry(counts, delays[scope, name]) | ({"requests": asked} if asked else {})

    groups = [of("all", None, _sum(by_publisher.values()))]
    groups += [of(kind, None, _of_kind(matching, kind)) for kind in KINDS]
    for name, numbers in publishers_by_group(run, set(matching.messages["publisher"].unique())).items():
        groups.append(of("group", name, _sum(by_publisher.get(n, none) for n in numbers)))
    publishers = []
    for i in run.instances:
        if ("publisher", i.name) in delays:
            publishers.append({"name": i.name, "node": i.node} | of("publisher", i.name, by_publisher.get(i.number, none)))
    return Figures(groups, publishers, "radio" if matching.streams.pairs["radio"].any() else "all")


def group_name(instance) -> str:
    """The name of an instance's node group in results. Those of RESERVED get a prefix."""
    return f"group/{instance.group}" if instance.group in RESERVED else instance.group


def publishers_by_group(run: Run, senders: set[int]) -> dict[str, list[int]]:
    """Publishing instances of each node group in the plan's order: planned ones, and own apps that sent."""
    groups: dict[str, list[int]] = {}
    for instance in run.instances:
        if instance.publishes or instance.number in senders:
            groups.setdefault(group_name(instance), []).append(instance.number)
    return groups


def _seconds(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return interval and (interval[0] / 1e9, interval[1] / 1e9)


def quantiles(ordered: np.ndarray) -> dict[str, float] | None:
    """Quantiles (by linear interpolation) and mean, in seconds, of ascending nanoseconds. None of none."""
    if not len(ordered):
        return None
    found = {}
    for name, q in QUANTILES.items():
        if q is None:
            found[name] = float(ordered.mean()) / 1e9
            continue
        low, rest = divmod((len(ordered) - 1) * q, 1)
        low = int(low)
        between = (int(ordered[low + 1]) - int(ordered[low])) * rest if rest else 0
        found[name] = (int(ordered[low]) + between) / 1e9
    return found


def _by_publisher(matching: Matching) -> pl.DataFrame:
    """Each publisher's counts."""
    parts = (
        matching.messages.group_by("publisher").agg(sent=pl.len()),
        matching.deliveries.group_by("publisher").agg(counted()),
        matching.never_sent.group_by("publisher").agg(neverSent=pl.len()),
        unsent(matching).group_by("publisher").agg(unsent=pl.col("messages").sum()),
    )
    joined = pl.concat([part.select("publisher") for part in parts]).unique()
    for part in parts:
        joined = joined.join(part, on="publisher", how="left")
    return joined.with_columns(pl.col(_COUNTS).fill_null(0).cast(pl.Int64))


def counted() -> list[pl.Expr]:
    """Counts of deliveries."""
    return [pl.len().alias("expected"), pl.col("received").count(), pl.col("duplicates").sum()]


def unsent(matching: Matching) -> pl.DataFrame:
    """Pairs of the streams, with the number of messages that were triggered and never sent."""
    messages = matching.never_sent.group_by("publisher", "topic").agg(messages=pl.len())
    return matching.streams.pairs.join(messages, on=["publisher", "topic"])


def _of_kind(matching: Matching, kind: str) -> dict:
    """Counts of a kind of deliveries, and of their messages."""
    some = matching.deliveries.lazy().filter(kind)
    counts = some.select(*counted(), sent=pl.col("message").n_unique()).collect().row(0, named=True)
    lacking = unsent(matching).filter(kind)
    never_sent = lacking.unique(["publisher", "topic"])["messages"].sum()
    return counts | {"neverSent": never_sent, "unsent": lacking["messages"].sum()}


def _sum(rows) -> dict:
    total = dict.fromkeys(_COUNTS, 0)
    for row in rows:
        total = {name: total[name] + row[name] for name in _COUNTS}
    return total


def entry(counts: dict, delay: Delay) -> dict:
    """The figures of some deliveries: messages, delaySeconds, confidence."""
    expected, lost = counts["expected"], counts["expected"] - counts["received"]
    offered = expected + counts["unsent"]
    messages = {
        "triggered": counts["sent"] + counts["neverSent"],
        "sent": counts["sent"],
        "offered": offered,
        **({"deliveredPercent": 100.0 * counts["received"] / offered} if offered else {}),
        "expected": expected,
        "received": counts["received"],
        "lost": lost,
        "lostPercent": 100.0 * lost / expected if expected else 0.0,
        "duplicates": int(counts["duplicates"]),
        "neverSent": counts["neverSent"],
    }
    return {"messages": messages, "delaySeconds": delay.quantiles, "confidence": _confidence(messages, delay)}


def _confidence(messages: dict, delay: Delay) -> dict:
    delivered = statistics.wilson_interval(messages["received"], messages["offered"])
    return {
        "level": statistics.LEVEL,
        "medianSeconds": interval(delay.median_interval, 1),
        "meanSeconds": interval(delay.mean_interval, 1),
        "lostPercent": interval(statistics.wilson_interval(messages["lost"], messages["expected"]), 100),
        **({"deliveredPercent": interval(delivered, 100)} if delivered else {}),
    }


def interval(bounds: tuple[float, float] | None, unit: int) -> dict | None:
    """An interval as runapi.Interval, in another unit."""
    return None if bounds is None else {"low": unit * bounds[0], "high": unit * bounds[1]}
