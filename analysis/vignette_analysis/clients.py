"""What happened to clients themselves: connections to brokers that were lost, and periods that were adapted to the radio."""

import itertools

import polars as pl

from .gaps import Gaps
from .run import Instance, Run

STATUSES = ("connected", "disconnected", "period")


def examine(run: Run, events: pl.DataFrame, gaps: Gaps) -> set[str]:
    """Name every instance that was without a connection after its first one, or that sent at another period than planned.

    Returns the instances that connected. The events have columns ts, instance, status, id (a broker, or a period) and text (why).
    """
    instances = {i.name: i for i in run.instances}
    # When a run ends all processes do, brokers before some of their clients.
    events = events.filter(pl.col("ts") < run.measure_end) if run.measure_end else events
    for (name,), own in events.sort("ts", maintain_order=True).partition_by("instance", as_dict=True, maintain_order=True).items():
        rows = own.to_dicts()
        _connections(run, instances[name], rows, gaps)
        _periods(run, instances[name], rows, gaps)
    return set(events.filter(pl.col("status") == "connected")["instance"].unique())


def _connections(run: Run, instance: Instance, rows: list[dict], gaps: Gaps) -> None:
    changes = [row for row in rows if row["status"] != "period"]
    outages = [(row, after) for row, after in itertools.pairwise([*changes, None]) if row["status"] == "disconnected"]
    if not outages:
        return
    brokers = [row["id"] for row in changes if row["status"] == "connected"]
    ended = [(row, after) for row, after in outages if after]
    seconds = sum((after["ts"] - row["ts"]) / 1e9 for row, after in ended)
    first, last = outages[0][0], outages[-1][1]
    times = "lost once" if len(outages) == 1 else f"lost {len(outages)} times"
    lacking = f"without one for {seconds:.3f} s" if last else "and not made again to the end"
    way = ", then ".join(broker for broker, _ in itertools.groupby(brokers)) or first["id"]
    reason = f"{times}, {lacking}; brokers: {way}; the first time: {first['text'] or 'no reason given'}"
    gaps.add(f"connection of {instance.name}", reason, instance.node, run.since_t0(first["ts"]), run.since_t0(last["ts"]) if last else None)


def _periods(run: Run, instance: Instance, rows: list[dict], gaps: Gaps) -> None:
    changes = [row for row in rows if row["status"] == "period"]
    if not changes:
        return
    lengths = [row["id"] for row in changes]
    reason = f"adapted to the queue of the node's radio: {len(changes)} times, first to {lengths[0]} ({changes[0]['text']}), in the end {lengths[-1]}"
    gaps.note(f"period of {instance.name}", reason, instance.node, run.since_t0(changes[0]["ts"]), run.since_t0(changes[-1]["ts"]))
