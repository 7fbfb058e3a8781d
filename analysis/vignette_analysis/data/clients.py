"""Events of clients: lost connections, refused subscriptions, periods adapted to the radio."""

import itertools

import polars as pl

from .gaps import Gaps
from .run import Instance, Run

STATUSES = ("connected", "disconnected", "subscribed", "refused", "period")
# A starting broker may refuse for a moment. A longer refusal is a gap.
LASTING_SECONDS = 5.0
# Topic filters that an entry names at most.
MAX_NAMED = 5


def examine(run: Run, events: pl.DataFrame, gaps: Gaps) -> set[str]:
    """Name every instance that lost its connection, was refused a subscription, or sent at another period than planned.

    Returns the instances that connected. The events have columns ts, instance, status, id (a broker, a topic filter, a period) and text (why).
    """
    instances = {i.name: i for i in run.instances}
    # At the end of a run brokers may stop before their clients.
    events = events.filter(pl.col("ts") < run.measure_end) if run.measure_end else events
    for (name,), own in events.sort("ts", maintain_order=True).partition_by("instance", as_dict=True, maintain_order=True).items():
        rows = own.to_dicts()
        _connections(run, instances[name], rows, gaps)
        _subscriptions(run, instances[name], rows, gaps)
        _periods(run, instances[name], rows, gaps)
    return set(events.filter(pl.col("status") == "connected")["instance"].unique())


def _connections(run: Run, instance: Instance, rows: list[dict], gaps: Gaps) -> None:
    changes = [row for row in rows if row["status"] in ("connected", "disconnected")]
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


def _subscriptions(run: Run, instance: Instance, rows: list[dict], gaps: Gaps) -> None:
    refusals: dict[str, list[dict | None]] = {}
    for row in rows:
        if row["status"] == "refused":
            refusals.setdefault(row["id"], [row, None])[1] = None
        elif row["status"] == "subscribed" and row["id"] in refusals and refusals[row["id"]][1] is None:
            refusals[row["id"]][1] = row
    if not refusals:
        return
    first, ends = next(iter(refusals.values()))[0], [end for _, end in refusals.values()]
    never = None in ends
    last = None if never else max(end["ts"] for end in ends)
    # The run may have no T0.
    seconds = None if last is None else (last - first["ts"]) / 1e9
    named = ", ".join(list(refusals)[:MAX_NAMED]) + (f" and {len(refusals) - MAX_NAMED} more" if len(refusals) > MAX_NAMED else "")
    lasts = "and not made again to the end" if never else f"for {seconds:.3f} s"
    tell = gaps.add if never or seconds >= LASTING_SECONDS else gaps.note
    reason = f"{named}: refused by the broker {lasts}; the first time: {first['text'] or 'no reason given'}"
    tell(f"subscription of {instance.name}", reason, instance.node, run.since_t0(first["ts"]), run.since_t0(last))


def _periods(run: Run, instance: Instance, rows: list[dict], gaps: Gaps) -> None:
    changes = [row for row in rows if row["status"] == "period"]
    if not changes:
        return
    lengths = [row["id"] for row in changes]
    reason = f"adapted to the queue of the node's radio: {len(changes)} times, first to {lengths[0]} ({changes[0]['text']}), in the end {lengths[-1]}"
    gaps.note(f"period of {instance.name}", reason, instance.node, run.since_t0(changes[0]["ts"]), run.since_t0(changes[-1]["ts"]))
