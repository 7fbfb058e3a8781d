"""Events of clients: lost connections, refused subscriptions, periods adapted to the radio."""

import itertools

import polars as pl

from .gaps import Gaps, listed
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
    named: dict[str, None] = {}
    refused: set[str] = set()
    # Times, by the log's clock, in which any subscription was refused: [start, end or None].
    spans: list[list] = []
    for row in rows:
        if row["status"] == "refused":
            if not refused:
                spans.append([row["ts"], None])
            named[row["id"]] = None
            refused.add(row["id"])
        elif row["status"] == "subscribed" and row["id"] in refused:
            refused.remove(row["id"])
            if not refused:
                spans[-1][1] = row["ts"]
    if not spans:
        return
    text = next(row["text"] for row in rows if row["status"] == "refused")
    start, last = spans[0][0], spans[-1][1]
    # The run may have no T0.
    seconds = max((end - begin) / 1e9 for begin, end in spans if end) if last else None
    filters, again = listed(list(named), MAX_NAMED), len(spans) > 1
    lasts = (f", for {seconds:.3f} s at most" if again else f" for {seconds:.3f} s") if last else " and not made again to the end"
    reason = f"{filters}: refused by the broker{f' in {len(spans)} periods' if again else ''}{lasts}; the first time: {text or 'no reason given'}"
    tell = gaps.add if not last or seconds >= LASTING_SECONDS else gaps.note
    tell(f"subscription of {instance.name}", reason, instance.node, run.since_t0(start), run.since_t0(last))


def _periods(run: Run, instance: Instance, rows: list[dict], gaps: Gaps) -> None:
    changes = [row for row in rows if row["status"] == "period"]
    if not changes:
        return
    lengths = [row["id"] for row in changes]
    reason = f"adapted to the queue of the node's radio: {len(changes)} times, first to {lengths[0]} ({changes[0]['text']}), in the end {lengths[-1]}"
    gaps.note(f"period of {instance.name}", reason, instance.node, run.since_t0(changes[0]["ts"]), run.since_t0(changes[-1]["ts"]))
