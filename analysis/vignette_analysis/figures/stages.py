"""Durations between a message's four measuring points: triggered, sent, received, processed."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..data.gaps import Gaps
from ..data.messages import Matching
from ..data.run import Run
from . import statistics
from .deliveries import KINDS, QUANTILES, Delay, publishers_by_group, quantiles

# The first and last measuring point of each stage.
STAGES = {
    "triggeredToSent": ("triggered", "sent"),
    "sentToReceived": ("sent", "received"),
    "receivedToProcessed": ("received", "processed"),
    "triggeredToProcessed": ("triggered", "processed"),
}
DELAY = "sentToReceived"
_SCHEMA = dict.fromkeys(("scope", "name", "stage"), pl.Categorical) | {"count": pl.Int64} | {f"{q}Seconds": pl.Float64 for q in QUANTILES}


@dataclass
class Stages:
    """Durations between measuring points."""

    # One row per scope (all, radio, local, cross, group, publisher, subscriber), name in it (null for the first four) and stage.
    frame: pl.DataFrame
    # By scope and name, of the stage from sent to received only.
    delays: dict[tuple[str, str | None], Delay]


def compute(run: Run, matching: Matching, gaps: Gaps) -> Stages:
    """Compute the quantiles of every stage in every scope."""
    rows, delays = [], {}
    for stage, (start, end) in STAGES.items():
        values = _of_messages(matching) if stage == "triggeredToSent" else _of_deliveries(matching, start, end)
        if stage in _EARLY:
            _early(run, stage, values, gaps)
        for scope, name, ordered in _scoped(run, matching, values, of_messages=stage == "triggeredToSent"):
            found = quantiles(ordered)
            rows.append([scope, name, stage, len(ordered)] + [found[q] if found else None for q in QUANTILES])
            if stage == DELAY and scope != "subscriber":
                delays[scope, name] = Delay.of(ordered, statistics.stream(run.plan["uid"], scope, name or ""))
    return Stages(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), delays)


def _of_messages(matching: Matching) -> pl.DataFrame:
    """Message, publisher, duration and end in nanoseconds, for each message that was triggered and sent."""
    values = matching.messages.select("message", "publisher", end="sent", value=pl.col("sent") - pl.col("triggered"))
    return values.filter(pl.col("value").is_not_null())


def _of_deliveries(matching: Matching, start: str, end: str) -> pl.DataFrame:
    """Publisher, subscriber, radio, local, cross, duration and end in nanoseconds, for each delivery that has both times."""
    deliveries = matching.deliveries.lazy()
    if start == "triggered":
        deliveries = deliveries.with_columns(pl.Series("triggered", matching.messages["triggered"].gather(matching.deliveries["message"])))
    values = deliveries.select("publisher", "subscriber", *KINDS, end=end, value=pl.col(end) - pl.col(start))
    return values.filter(pl.col("value").is_not_null()).collect()


def _scoped(run: Run, matching: Matching, values: pl.DataFrame, *, of_messages: bool) -> Iterator[tuple[str, str | None, np.ndarray]]:
    """Values of every scope in ascending order."""
    value, publisher = values["value"].to_numpy(), values["publisher"].to_numpy()
    yield "all", None, np.sort(value)
    for kind in KINDS:
        chosen = _some_delivery(matching, kind)[values["message"].to_numpy()] if of_messages else values[kind].to_numpy()
        yield kind, None, np.sort(value[chosen])
    groups = publishers_by_group(run, set(matching.messages["publisher"].unique()))
    group_of = np.zeros(len(run.instances), np.int64)
    for i, numbers in enumerate(groups.values()):
        group_of[numbers] = i
    for name, ordered in zip(groups, _split(value, group_of[publisher], len(groups)), strict=True):
        yield "group", name, ordered
    publishing = {number for numbers in groups.values() for number in numbers}
    for instance, ordered in zip(run.instances, _split(value, publisher, len(run.instances)), strict=True):
        if instance.number in publishing:
            yield "publisher", instance.name, ordered
    if of_messages:
        # A message counts once for each instance that was to receive it.
        message, subscriber = matching.deliveries["message"], matching.deliveries["subscriber"]
        of_message = (matching.messages["sent"] - matching.messages["triggered"]).gather(message)
        value, subscriber = of_message.drop_nulls().to_numpy(), subscriber.filter(of_message.is_not_null()).to_numpy()
    else:
        subscriber = values["subscriber"].to_numpy()
    for instance, ordered in zip(run.instances, _split(value, subscriber, len(run.instances)), strict=True):
        if instance.subscribes:
            yield "subscriber", instance.name, ordered


def _some_delivery(matching: Matching, kind: str) -> np.ndarray:
    """For each message, whether any of its expected deliveries is of this kind."""
    has = np.zeros(matching.messages.height, bool)
    has[matching.deliveries["message"].filter(matching.deliveries[kind]).to_numpy()] = True
    return has


def _split(values: np.ndarray, keys: np.ndarray, number: int) -> Iterator[np.ndarray]:
    """Values of each key from 0 to number - 1, in ascending order."""
    # numpy sorts 16-bit integers by radix.
    narrow = keys.astype(np.min_scalar_type(max(number - 1, 0)))
    grouped = values[np.argsort(narrow, kind="stable")]
    ends = np.cumsum(np.bincount(narrow, minlength=number))
    for start, end in zip(ends - np.diff(ends, prepend=0), ends, strict=True):
        yield np.sort(grouped[start:end])


# Causes of a stage with a negative duration.
_EARLY = {
    "triggeredToSent": "{count} messages were sent up to {worst:.6f} s before they were logged as triggered; they count as they are",
    "sentToReceived": "{count} deliveries were received up to {worst:.6f} s before they were logged as sent; they count as they are",
    "receivedToProcessed": "{count} deliveries were processed up to {worst:.6f} s before they were logged as received; they count as they are",
}


def _early(run: Run, stage: str, values: pl.DataFrame, gaps: Gaps) -> None:
    early = values.filter(pl.col("value") < 0)
    if early.height:
        reason = _EARLY[stage].format(count=early.height, worst=-early["value"].min() / 1e9)
        gaps.add("negative delays", reason, start=run.since_t0(early["end"].min()), end=run.since_t0(early["end"].max()))
