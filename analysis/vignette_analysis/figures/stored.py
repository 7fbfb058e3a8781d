"""Opens a run with its stored results, without computing them again."""

import dataclasses
import json
from pathlib import Path

import polars as pl

from ..data.requests import SCHEMA
from ..data.run import Run, RunError, unreadable
from . import bursts, picture
from .analysis import READ_VERSIONS, SCHEMA_VERSION, Analysis
from .deliveries import KINDS

FOLDER = "results"
RESULTS_FILE = "results.json"
_MESSAGES = ("message", "id", "topic", "triggered", "bytes", "ambiguous", "publisher", "sent")
_DELIVERIES = ("message", "publisher", "subscriber", "sent", "received", "processed", "duplicates", *KINDS)


def load(directory: str | Path) -> Analysis:
    """Open a downloaded run with its results, from DIRECTORY/run.json and the Parquet files in DIRECTORY/results.

    Raises RunError where one of them is missing or damaged, or of a later version of the platform. `analyse` computes what is
    missing from the logs.
    """
    run = Run.load(Path(directory))
    folder = run.directory / FOLDER
    results = _results(folder / RESULTS_FILE)
    # Earlier results have fewer tables.
    later = {"requests": SCHEMA, "bursts": bursts.BURSTS, "reports": picture.REPORTS, "picture": picture.PAIRS, "picture_times": picture.TIMES}
    lacking = {name for name in later if name not in results and not (folder / f"{name.replace('_', '-')}.parquet").exists()}
    names = [field.name for field in dataclasses.fields(Analysis) if field.type is pl.DataFrame and field.name not in lacking]
    frames = {name: _read(folder, name) for name in names}
    if "reports" in frames and "received" not in frames["reports"].columns:  # those of before lack it
        frames["reports"] = frames["reports"].with_columns(received=pl.lit(None, pl.Int64))
    numbers = pl.DataFrame(
        {"name": [i.name for i in run.instances], "number": [i.number for i in run.instances]}, schema={"name": pl.Categorical, "number": pl.UInt32}
    )
    # Rows are in the order of the messages' numbers.
    messages = _numbered(frames["messages"], "publisher", numbers).with_row_index("message")
    deliveries = with_radio(frames["deliveries"].lazy(), run).collect()
    deliveries = _numbered(_numbered(deliveries, "publisher", numbers), "subscriber", numbers)
    deliveries = deliveries.join(messages.select("publisher", "id", "message"), on=["publisher", "id"], how="left", maintain_order="left")
    frames |= {name: pl.DataFrame(schema=later[name]) for name in lacking}
    asked = pl.DataFrame(schema=SCHEMA) if "requests" in lacking else _asked(frames["requests"], messages, numbers)
    frames |= {"messages": messages.select(_MESSAGES), "deliveries": deliveries.select(_DELIVERIES), "requests": asked}
    return Analysis(run=run, results=results, **frames)


def _asked(table: pl.DataFrame, messages: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    numbered = _numbered(_numbered(table, "publisher", numbers), "subscriber", numbers)
    found = numbered.join(messages.select("publisher", "id", "message"), on=["publisher", "id"], how="left", maintain_order="left")
    return found.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def with_radio(deliveries: pl.LazyFrame, run: Run) -> pl.LazyFrame:
    """Add the column `radio`, which version 1 lacks, to deliveries."""
    if "radio" in deliveries.collect_schema().names():
        return deliveries
    nodes = {i.name: i.node for i in run.instances}
    publisher, subscriber = (
        pl.col(column).cast(pl.String).replace_strict(nodes, default=None, return_dtype=pl.String) for column in ("publisher", "subscriber")
    )
    return deliveries.with_columns(radio=publisher != subscriber)


def _results(path: Path) -> dict:
    try:
        results = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: {unreadable(error)}: analyse() computes results from a run's logs") from error
    version = results.get("schemaVersion") if isinstance(results, dict) else None
    if version not in READ_VERSIONS:
        raise RunError(f"{path}: schemaVersion {version}: this program reads up to {SCHEMA_VERSION}; analyse() computes results again")
    return upgraded(results)


def upgraded(results: dict) -> dict:
    """Add the fields of later versions to results of version 1, which know only deliveries of sent messages as offered."""
    if results["schemaVersion"] > 1:
        return results
    for entry in [results, *(results.get("groups") or []), *(results.get("publishers") or [])]:
        counts, lost = entry["messages"], (entry.get("confidence") or {}).get("lostPercent")
        counts |= {"triggered": counts["sent"] + counts.get("neverSent", 0), "offered": counts["expected"]}
        counts |= {"deliveredPercent": 100 - counts["lostPercent"]} if counts["expected"] else {}
        if lost:
            entry["confidence"]["deliveredPercent"] = {"low": 100 - lost["high"], "high": 100 - lost["low"]}
    reason = "deliveries of messages that were never sent are not among the offered ones"
    return {"headline": "all", "notes": [{"what": "results of version 1", "reason": reason}]} | results


def _read(folder: Path, name: str) -> pl.DataFrame:
    """One frame, with its times as Unix nanoseconds."""
    path = folder / f"{name.replace('_', '-')}.parquet"
    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RunError(f"{path}: {error}: analyse() computes it from a run's logs") from error
    return frame.with_columns(pl.col(pl.Datetime).dt.epoch("ns"))


def _numbered(frame: pl.DataFrame, column: str, numbers: pl.DataFrame) -> pl.DataFrame:
    """Replace instances' names by their numbers."""
    named = numbers.rename({"name": column, "number": "_number"})
    return frame.join(named, on=column, how="left", maintain_order="left").drop(column).rename({"_number": column})
