"""Counts and quantiles of deliveries: overall, by group, by publisher."""

from dataclasses import dataclass

import polars as pl

from .gaps import Gaps
from .messages import Matching
from .run import Run

QUANTILES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "max": 1.0}
# Names that a node group's result may not take, as they mean something else.
RESERVED = ("all", "local", "cross")


@dataclass
class Figures:
    """Figures in the form of runapi.Results."""

    groups: list[dict]
    publishers: list[dict]


def compute(run: Run, matching: Matching, gaps: Gaps) -> Figures:
    """Compute the figures of every group and publisher."""
    deliveries = matching.deliveries.with_columns(delay=pl.col("received") - pl.col("sent"))
    _early(run, deliveries, gaps)
    messages = matching.messages
    groups = [_named("all", messages, deliveries)]
    for kind in ("local", "cross"):
        some = deliveries.filter(kind)
        groups.append(_named(kind, messages.join(some, on="message", how="semi"), some))
    for name, numbers in publishers_by_group(run, set(messages["publisher"])).items():
        groups.append(_named(name, messages.filter(pl.col("publisher").is_in(numbers)), deliveries.filter(pl.col("publisher").is_in(numbers))))
    by_sender = {key[0]: part for key, part in messages.partition_by("publisher", as_dict=True).items()}
    delivered = {key[0]: part for key, part in deliveries.partition_by("publisher", as_dict=True).items()}
    publishers = []
    for i in run.instances:
        if i.publishes or i.number in by_sender:
            part = _named(i.name, by_sender.get(i.number, messages.clear()), delivered.get(i.number, deliveries.clear()))
            publishers.append({"name": part["name"], "node": i.node, **{k: part[k] for k in ("messages", "delaySeconds")}})
    return Figures(groups, publishers)


def publishers_by_group(run: Run, senders: set[int]) -> dict[str, list[int]]:
    """Publishing instances of each node group, in the plan's order: planned ones, and apps of the user's own that sent."""
    groups: dict[str, list[int]] = {}
    for instance in run.instances:
        if instance.publishes or instance.number in senders:
            name = f"group/{instance.group}" if instance.group in RESERVED else instance.group
            groups.setdefault(name, []).append(instance.number)
    return groups


def _named(name: str, messages: pl.DataFrame, deliveries: pl.DataFrame) -> dict:
    expected, received = deliveries.height, deliveries["received"].count()
    lost = expected - received
    counts = {
        "sent": messages.height,
        "expected": expected,
        "received": received,
        "lost": lost,
        "lostPercent": 100.0 * lost / expected if expected else 0.0,
        "duplicates": int(deliveries["duplicates"].sum()),
    }
    return {"name": name, "messages": counts, "delaySeconds": quantiles(deliveries["delay"])}


def quantiles(delays: pl.Series) -> dict[str, float] | None:
    """Quantiles in seconds of delays in nanoseconds, by linear interpolation; None where there is none."""
    some = delays.drop_nulls()
    if some.is_empty():
        return None
    return {name: some.quantile(q, interpolation="linear") / 1e9 for name, q in QUANTILES.items()}


def _early(run: Run, deliveries: pl.DataFrame, gaps: Gaps) -> None:
    early = deliveries.filter(pl.col("delay") < 0)
    if early.height:
        worst = -early["delay"].min() / 1e9
        gaps.add(
            "negative delays",
            f"{early.height} deliveries were received up to {worst:.6f} s before they were logged as sent; they count as they are",
            start=run.since_t0(early["received"].min()),
            end=run.since_t0(early["received"].max()),
        )
