"""How long bursts take: from the start of a publisher that sends when it has connected, to the arrival of its last message."""

import polars as pl

from ..data.messages import Matching
from ..data.run import Run
from .deliveries import unsent
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
    """One row for each publisher with phase `connected` that was started, and each of its subscribers."""
    begun = _begun(run, late)
    if not begun:
        return pl.DataFrame(schema=BURSTS)
    starts = pl.DataFrame({"publisher": list(begun), "begun": list(begun.values())}, schema={"publisher": pl.UInt32, "begun": pl.Int64})
    times = (matching.messages.select("publisher", at=pl.coalesce("triggered", "sent")), matching.never_sent.select("publisher", at="triggered"))
    first = pl.concat(times).group_by("publisher").agg(first=pl.col("at").min())
    rows = _pairs(matching).join(starts, on="publisher").join(first, on="publisher", how="left").sort("publisher", "subscriber").to_dicts()
    found = []
    for row in rows:
        out, into = run.instances[row["publisher"]], run.instances[row["subscriber"]]
        whole = row["received"] == row["messages"] > 0
        found.append(
            (
                *(out.name, into.name, out.protocol, into.protocol, row["messages"], row["received"]),
                (row["first"] - row["begun"]) / 1e9 if row["messages"] else None,
                (row["last"] - row["begun"]) / 1e9 if whole else None,
            )
        )
    return pl.DataFrame(found, schema=BURSTS, orient="row")


def _pairs(matching: Matching) -> pl.DataFrame:
    """What each subscriber should receive of each publisher, also of what was never sent, and what it received."""
    pair = ["publisher", "subscriber"]
    counts = (
        matching.deliveries.group_by(pair).agg(sent=pl.len(), received=pl.col("received").count(), last=pl.col("received").max()),
        unsent(matching).group_by(pair).agg(unsent=pl.col("messages").sum()),
    )
    found = matching.streams.pairs.select(pair).unique()
    for part in counts:
        found = found.join(part, on=pair, how="left")
    some = found.with_columns(pl.col("sent", "unsent", "received").fill_null(0))
    return some.with_columns(messages=pl.col("sent") + pl.col("unsent"))


def _begun(run: Run, late: Lateness) -> dict[int, int]:
    """The first start of each publisher with phase `connected`, in Unix nanoseconds."""
    waiting = {app["name"] for app in run.plan.get("spec", {}).get("apps") or [] if (app.get("publisher") or {}).get("phase") == "connected"}
    begun: dict[str, int] = {}
    for action in late.actions:
        if action.what == "started":
            begun[action.instance] = min(action.at, begun.get(action.instance, action.at))
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
