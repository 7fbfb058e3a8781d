"""Loads what a comparison needs of each run: plan, results, and every expected delivery."""

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from ..data.gaps import OUTAGES
from ..data.run import Run, RunError, stopped_early, unreadable
from ..figures import summary
from ..figures.analysis import READ_VERSIONS, SCHEMA_VERSION, Analysis, analyse
from ..figures.deliveries import KINDS, RESERVED, publishers_by_group
from ..figures.stored import upgraded, with_radio
from ..figures.verdict import off_by
from . import form

# Most deliveries of a run: at about 100 bytes each they take 2 GB of memory.
MAX_DELIVERIES = 20_000_000
# Numbers of blocks of a run: Schmeiser, "Batch Size Effects in the Analysis of Simulation Output", Operations
# Research 30 (1982), finds that 10 to 30 lose little, and that more gain nothing.
BLOCKS = (32, 16, 8)
# Prefixes of gaps by which figures do not cover the whole run, or are wrong.
LACKING = ("log ", "logs of ", "ambiguous messages", *OUTAGES, "app ", "run.json", "state.json", "manifest.json")
LACKING += ("NodeFailed", "AppFailed", "Evicted", "EMANEFailed", "NotReported", "clock offset", "negative delays", "isolation")
# Logs of apps' output, which have no messages.
PRINTED = ("/stdout-", "/stderr-")

_COLUMNS = ("publisher", "subscriber", "sent", "received", *KINDS)
# Requests in the same columns: the receipt is what is received. What was never sent has the time at which it was triggered.
_OF_REQUESTS = ("publisher", "subscriber", pl.coalesce("sent", "triggered").alias("sent"), pl.col("receipt").alias("received"), *KINDS)
# Fields of the results that a comparison uses, and of their lists' entries. Complete results are many times larger.
_RESULTS = ("startTime", "durationSeconds", "verdict", "headline", "warnings", "gaps")
_ENTRIES = {
    "groups": ("name", "messages", "delaySeconds", "bounds", "requests"),
    "publishers": ("name", "node", "messages", "delaySeconds"),
    "networks": ("name", "bytesPerSecond"),
    "messageSizes": ("protocol", "medianBytes"),
}
# Medians of the picture, and the figures of its groups that have them.
PICTURE_MEDIANS = {"errorMedianMetres": "errorMetres", "ageMedianSeconds": "ageSeconds"}


@dataclass
class Loaded:
    """One run. Hundreds of them are held at once: a delivery takes 10 bytes."""

    plan: dict
    # The fields of the results that a comparison uses.
    results: dict
    # One row per expected delivery: group (of the publisher's node), within (the pair of a group with itself, null for others), radio,
    # local, cross, delay in ns (null: lost), and block: parts of the run with equal numbers of messages, as many as are uncorrelated.
    deliveries: pl.DataFrame
    # Number of messages with deliveries in each group of the results.
    messages: dict[str, int] = field(default_factory=dict)
    # Correlation of neighbouring blocks.
    correlation: float = 0.0
    # As deliveries, one row per request with its response time in ns (null: no receipt); None where there are none.
    requests: pl.DataFrame | None = None
    request_correlation: float = 0.0

    @property
    def uid(self) -> str:
        """UID of the experiment."""
        return self.plan["uid"]

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.plan["name"]

    @cached_property
    def kept_up(self) -> bool | None:
        """The verdict; None if there is none."""
        return (self.results.get("verdict") or {}).get("keptUp")

    @cached_property
    def off_by(self) -> dict[str, dict[str, float]]:
        """By group, the bounds of its figures in words; empty for older results."""
        return {group["name"]: off_by(group) for group in self.results["groups"]}

    def off_by_of(self, name: str) -> dict[str, float]:
        """By how much a group's figures are off at most. Pairs of groups have no bounds: those of the sender's group stand for them."""
        sender, pair, _ = name.partition(" to ")
        if not pair or self.off_by.get(name):
            return self.off_by.get(name, {})
        return self.off_by.get(f"group/{sender}" if sender in RESERVED else sender, {})

    @cached_property
    def lacking(self) -> list[str]:
        """Gaps that make the results incomplete."""
        gaps = self.results.get("gaps") or []
        named = [gap for gap in gaps if gap["what"].startswith(LACKING) and not any(name in gap["what"] for name in PRINTED)]
        lacking = [f"{gap['what']}: {gap['reason']}" for gap in named]
        if self.plan.get("phase") == "Failed":
            lacking.append(f"the run failed: {self.plan.get('message', '')}")
        if (at := stopped_early(self.plan)) is not None:
            lacking.append(f"spec.stop ended the run {at:.1f} s after T0, before its end")
        return lacking


def blocks(deliveries: pl.DataFrame) -> tuple[np.ndarray, float]:
    """The block of each delivery, and the larger correlation of neighbouring blocks: of mean ranks of delays, or of losses."""
    # Deliveries of a message have one time of sending, and so one block.
    rank = deliveries["sent"].rank("dense").to_numpy().astype(np.int64) - 1
    times = int(rank.max()) + 1 if len(rank) else 1
    ranks = deliveries["delay"].rank("average").to_numpy()
    lost = deliveries["delay"].is_null().to_numpy().astype(float)
    for count in BLOCKS:
        cut = rank * min(count, times) // times
        correlation = max(_lag_one(cut, ranks), _lag_one(cut, lost))
        if correlation <= 2 / np.sqrt(count):
            break
    return cut.astype(np.uint8), correlation


def _lag_one(cut: np.ndarray, values: np.ndarray) -> float:
    known = ~np.isnan(values)
    sizes = np.bincount(cut[known])
    means = np.bincount(cut[known], weights=values[known])[sizes > 0] / sizes[sizes > 0]
    off = means - means.mean() if len(means) else means
    total = float(np.sum(off**2))
    return float(np.sum(off[1:] * off[:-1])) / total if total > 0 else 0.0


def load(source: str | Path | Analysis) -> Loaded:
    """Load an analysis or a run's folder. A folder without results is analysed now."""
    if isinstance(source, Analysis):
        return _of_analysis(source)
    folder = Path(source)
    run = Run.load(folder)
    results = folder / "results" / "results.json"
    if not results.exists():
        return _of_analysis(analyse(folder))
    try:
        figures = json.loads(results.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"{results}: {unreadable(error)}: run `vignette_analysis analyse --directory {folder}` again") from error
    version = figures.get("schemaVersion") if isinstance(figures, dict) else None
    if version not in READ_VERSIONS:
        raise RunError(f"{results}: schemaVersion is {version!r}; this program reads up to {SCHEMA_VERSION}")
    try:
        form.check(figures)
    except form.FormError as error:
        raise RunError(f"{results}: {error}: run `vignette_analysis analyse --directory {folder}` again") from error
    requests = _read(folder / "results" / "requests.parquet", run, _OF_REQUESTS) if figures.get("requests") else None
    return _loaded(run, upgraded(figures), _read(folder / "results" / "deliveries.parquet", run, _COLUMNS), requests)


def _of_analysis(analysis: Analysis) -> Loaded:
    names = pl.Series([i.name for i in analysis.run.instances], dtype=pl.String)

    def named(frame: pl.DataFrame, columns: tuple) -> pl.DataFrame:
        return frame.select(*columns).with_columns(names.gather(frame[end]).alias(end) for end in ("publisher", "subscriber"))

    requests = named(analysis.requests, _OF_REQUESTS) if analysis.requests.height else None
    return _loaded(analysis.run, analysis.results, named(analysis.deliveries, _COLUMNS), requests)


def _loaded(run: Run, figures: dict, deliveries: pl.DataFrame, requests: pl.DataFrame | None) -> Loaded:
    results = {key: figures.get(key) for key in _RESULTS}
    for key, kept in _ENTRIES.items():
        results[key] = [{name: entry.get(name) for name in kept} for entry in figures.get(key) or []]
    within = _within(run, figures)
    results["groups"] += [{"name": name} | {key: entry.get(key) for key in _ENTRIES["groups"][1:]} for name, entry in within.values()]
    results["picture"] = _picture(figures)
    pairs = {group: name for group, (name, _) in within.items()}
    grouped = _grouped(run, deliveries, pairs)
    compact, correlation = _compact(grouped)
    asked = (None, 0.0) if requests is None else _compact(_grouped(run, requests, pairs))
    return Loaded(run.plan, results, compact, _messages(grouped), correlation, *asked)


def _compact(grouped: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    """Deliveries or requests with their blocks, and the correlation of these."""
    cut, correlation = blocks(grouped)
    return grouped.select("group", "within", *KINDS, "delay", block=pl.Series(cut, dtype=pl.UInt8)), correlation


def _within(run: Run, figures: dict) -> dict[str, tuple[str, dict]]:
    """Groups of several nodes whose deliveries among themselves are compared too: the name and figures of that pair of groups."""
    nodes = Counter(node["group"] for node in run.nodes)
    own = [entry for entry in summary.pairs(figures) if entry["from"] == entry["to"] and nodes[entry["from"]] > 1]
    return {entry["from"]: (summary.pair(entry), entry) for entry in own}


def _picture(figures: dict) -> list[dict]:
    """Median error and age of the picture by group of reported nodes; empty where no positions were compared."""
    groups = (figures.get("picture") or {}).get("groups") or []
    return [
        {"name": entry["name"]} | {medians: (entry.get(figure) or {}).get("median") for medians, figure in PICTURE_MEDIANS.items()}
        for entry in groups
    ]


def _messages(deliveries: pl.DataFrame) -> dict[str, int]:
    """Number of messages that have deliveries in each group of the results."""
    each = deliveries.group_by("publisher", "sent").agg(pl.col(KINDS).any(), pl.col("group").first(), pl.col("within").drop_nulls().first())
    groups = dict(each.drop_nulls("group").group_by("group").len().iter_rows()) | dict(each.drop_nulls("within").group_by("within").len().iter_rows())
    return {str(name): count for name, count in groups.items()} | {"all": each.height} | {kind: int(each[kind].sum()) for kind in KINDS}


def _read(path: Path, run: Run, columns: tuple) -> pl.DataFrame:
    # A team's pods write this file: it is not trusted until it is checked to be such a table.
    try:
        table = pl.scan_parquet(path)
        rows = table.select(pl.len()).collect().item()
        if rows > MAX_DELIVERIES:
            raise RunError(f"{path}: {rows} {path.stem}; a comparison takes {MAX_DELIVERIES} at most")
        types = {"publisher": pl.String, "subscriber": pl.String, "sent": pl.Int64, "received": pl.Int64} | dict.fromkeys(KINDS, bool)
        return with_radio(table, run).select(columns).cast(types).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RunError(f"{path}: {error}: without it nothing can be compared; analyse the run again") from error


def _grouped(run: Run, deliveries: pl.DataFrame, within: dict[str, str]) -> pl.DataFrame:
    """Add each publisher's group, the delay, and the pair of a group with itself; within has the names of those."""
    known = {i.name: i.number for i in run.instances}
    senders = {known[name] for name in deliveries["publisher"].unique() if name in known}
    members = publishers_by_group(run, senders)
    group = {run.instances[n].name: name for name, numbers in members.items() for n in numbers}
    kind = pl.Enum(list(members))
    pair = {i.name: within[i.group] for i in run.instances if i.group in within}
    own, other = (pl.col(end).replace_strict(pair, default=None, return_dtype=pl.Enum(list(within.values()))) for end in ("publisher", "subscriber"))
    return deliveries.select(
        "publisher",
        "sent",
        *KINDS,
        group=pl.col("publisher").replace_strict(group, default=None, return_dtype=kind),
        within=pl.when(own == other).then(own),
        delay=pl.col("received") - pl.col("sent"),
    )
