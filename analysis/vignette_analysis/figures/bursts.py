"""How long bursts take: from the start of a publisher that sends when it has connected, to the arrival of its last message."""

import polars as pl

from ..data.messages import Matching
from ..data.run import Run
from .lateness import Lateness

BURSTS = {
    "publisher": pl.Categorical,
    "subscriber": pl.Categorical,
    "publisherProtocol": pl.Categorical,
    "subscriberProtocol": pl.Categorical,
    "messages": pl.UInt32,
    "received": pl.UInt32,
    "connectedSeconds": pl.Float64,
    "seconds": pl.Float64,
}


def compute(run: Run, matching: Matching, late: Lateness) -> pl.DataFrame:
    """One row for each publisher with phase `connected` and each subscriber that expects something of it."""
    begun = _begun(run, late)
    if not begun:
        return pl.DataFrame(schema=BURSTS)
    starts = pl.DataFrame({"publisher": list(begun), "begun": list(begun.values())}, schema={"publisher": pl.UInt32, "begun": pl.Int64})
    first = matching.messages.group_by("publisher").agg(first=pl.coalesce("triggered", "sent").min())
    pairs = matching.deliveries.group_by("publisher", "subscriber").agg(
        messages=pl.len(), received=pl.col("received").count(), last=pl.col("received").max()
    )
    rows = pairs.join(starts, on="publisher").join(first, on="publisher").sort("publisher", "subscriber").to_dicts()
    instances = {i.number: i for i in run.instances}
    found = []
    for row in rows:
        out, into = instances[row["publisher"]], instances[row["subscriber"]]
        whole = row["received"] == row["messages"]
        found.append(
            (
                *(out.name, into.name, out.protocol, into.protocol, row["messages"], row["received"]),
                (row["first"] - row["begun"]) / 1e9,
                (row["last"] - row["begun"]) / 1e9 if whole else None,
            )
        )
    return pl.DataFrame(found, schema=BURSTS, orient="row")


def _begun(run: Run, late: Lateness) -> dict[int, int]:
    """The first start of each publisher with phase `connected`, in Unix nanoseconds."""
    waiting = {app["name"] for app in run.plan.get("spec", {}).get("apps") or [] if (app.get("publisher") or {}).get("phase") == "connected"}
    begun: dict[str, int] = {}
    for action in late.actions:
        if action.what == "started":
            at = action.planned + round(action.seconds * 1e9)
            begun[action.instance] = min(at, begun.get(action.instance, at))
    return {i.number: begun[i.name] for i in run.instances if i.app in waiting and i.name in begun}


def summarise(bursts: pl.DataFrame) -> list[dict]:
    """The figures of results: one entry for each protocol of publishers and subscribers. Of several bursts the mean."""
    named = bursts.with_columns(pl.col("publisherProtocol", "subscriberProtocol").cast(pl.String))
    entries = named.group_by("publisherProtocol", "subscriberProtocol").agg(
        bursts=pl.len(),
        messages=pl.col("messages").sum(),
        received=pl.col("received").sum(),
        connectedSeconds=pl.col("connectedSeconds").mean(),
        seconds=pl.when(pl.col("seconds").null_count() == 0).then(pl.col("seconds").mean()),
    )
    return entries.sort("publisherProtocol", "subscriberProtocol").to_dicts()


def matrix(entries: list[dict]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: publishers' protocols by rows, subscribers' by columns. Seconds, or how many messages came of how many."""
    into = sorted({entry["subscriberProtocol"] for entry in entries})
    cells = {(entry["publisherProtocol"], entry["subscriberProtocol"]): _cell(entry) for entry in entries}
    out = sorted({entry["publisherProtocol"] for entry in entries})
    return ["publisher", *into], [[name, *(cells.get((name, column), "-") for column in into)] for name in out]


def _cell(entry: dict) -> str:
    if entry["seconds"] is None:
        return f"{entry['received']} of {entry['messages']}"
    return f"{entry['seconds']:.3f}"
