"""What a comparison needs of each run: its plan, its results, and every expected delivery."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from ..analysis import SCHEMA_VERSION, Analysis, analyse
from ..figures import publishers_by_group
from ..run import Run, RunError

# Deliveries of one run: about 100 bytes each in memory, so that this many take 2 GB.
MAX_DELIVERIES = 20_000_000
# Numbers of blocks that a run is cut into: Schmeiser, "Batch Size Effects in the Analysis of Simulation Output", Operations
# Research 30 (1982), finds that 10 to 30 lose little, and that more gain nothing.
BLOCKS = (32, 16, 8)
# Beginnings of the names of gaps that lack messages of the run, so that its figures are not those of all of it.
LACKING = ("log ", "logs of ", "ambiguous messages", "radiodRestarted", "attachmentLost", "app ", "run.json", "state.json", "manifest.json")
# Logs of what apps printed, which have no messages.
PRINTED = ("/stdout-", "/stderr-")

_COLUMNS = ("publisher", "sent", "received", "local", "cross")


@dataclass
class Loaded:
    """One run."""

    plan: dict
    results: dict
    # One row per expected delivery: publisher, group (of the publisher's node), sent and delay in ns (null: lost), local, cross.
    deliveries: pl.DataFrame
    # Cuts of the run into blocks, by the number of blocks.
    _cuts: dict[int, np.ndarray] = field(default_factory=dict)

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
        """The emulation's verdict; None where there is none."""
        return (self.results.get("verdict") or {}).get("keptUp")

    @cached_property
    def lacking(self) -> list[str]:
        """What the results do not have of the run, so that they are incomplete."""
        gaps = self.results.get("gaps") or []
        named = [gap for gap in gaps if gap["what"].startswith(LACKING) and not any(name in gap["what"] for name in PRINTED)]
        lacking = [f"{gap['what']}: {gap['reason']}" for gap in named]
        if self.plan.get("phase") == "Failed":
            lacking.append(f"the run failed: {self.plan.get('message', '')}")
        if self.plan.get("spec", {}).get("stop"):
            lacking.append("the run was stopped before its end")
        return lacking

    @cached_property
    def blocks(self) -> np.ndarray:
        """The block of each delivery: stretches of the run with equally many messages, in as many as do not correlate."""
        for count in BLOCKS:
            cut = self._cut(count)
            if self.correlation(cut) <= 2 / np.sqrt(count):
                return cut
        return cut

    def correlation(self, cut: np.ndarray) -> float:
        """The larger one of the correlations of neighbouring blocks, of their mean ranks of delays and of their losses."""
        ranks = self.deliveries["delay"].rank("average").to_numpy()
        lost = self.deliveries["delay"].is_null().to_numpy().astype(float)
        return max(_lag_one(cut, ranks), _lag_one(cut, lost))

    def _cut(self, count: int) -> np.ndarray:
        # Deliveries of one message are sent at one time, and so are in one block.
        rank = self.deliveries["sent"].rank("dense").to_numpy().astype(np.int64) - 1
        times = int(rank.max()) + 1 if len(rank) else 1
        return rank * min(count, times) // times


def _lag_one(cut: np.ndarray, values: np.ndarray) -> float:
    known = ~np.isnan(values)
    sizes = np.bincount(cut[known])
    means = np.bincount(cut[known], weights=values[known])[sizes > 0] / sizes[sizes > 0]
    off = means - means.mean() if len(means) else means
    total = float(np.sum(off**2))
    return float(np.sum(off[1:] * off[:-1])) / total if total > 0 else 0.0


def load(source: str | Path | Analysis) -> Loaded:
    """Take a run that is analysed, or a run's folder: with its results, or else it is analysed now."""
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
        raise RunError(f"{results}: {error}: run `vignette_analysis analyse --directory {folder}` again") from error
    if not isinstance(figures, dict) or figures.get("schemaVersion") != SCHEMA_VERSION:
        version = figures.get("schemaVersion") if isinstance(figures, dict) else None
        raise RunError(f"{results}: schemaVersion is {version!r}; this program reads {SCHEMA_VERSION}")
    return Loaded(run.plan, figures, _grouped(run, _read(folder / "results" / "deliveries.parquet")))


def _of_analysis(analysis: Analysis) -> Loaded:
    names = pl.Series([i.name for i in analysis.run.instances], dtype=pl.String)
    deliveries = analysis.deliveries.select(*_COLUMNS).with_columns(publisher=names.gather(analysis.deliveries["publisher"]))
    return Loaded(analysis.run.plan, analysis.results, _grouped(analysis.run, deliveries))


def _read(path: Path) -> pl.DataFrame:
    # A team's own pods write this file: it is taken for nothing until it is seen to be a table of deliveries.
    try:
        table = pl.scan_parquet(path)
        rows = table.select(pl.len()).collect().item()
        if rows > MAX_DELIVERIES:
            raise RunError(f"{path}: {rows} deliveries; a comparison takes {MAX_DELIVERIES} at most")
        return table.select(_COLUMNS).cast({"publisher": pl.String, "sent": pl.Int64, "received": pl.Int64, "local": bool, "cross": bool}).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RunError(f"{path}: {error}: without it nothing can be compared; analyse the run again") from error


def _grouped(run: Run, deliveries: pl.DataFrame) -> pl.DataFrame:
    """Add each publisher's group and the delay."""
    known = {i.name: i.number for i in run.instances}
    senders = {known[name] for name in deliveries["publisher"].unique() if name in known}
    rows = [(run.instances[n].name, group) for group, numbers in publishers_by_group(run, senders).items() for n in numbers]
    groups = pl.DataFrame(rows, schema={"publisher": pl.String, "group": pl.String}, orient="row")
    joined = deliveries.join(groups, on="publisher", how="left", maintain_order="left")
    return joined.select("publisher", "group", "sent", "local", "cross", delay=pl.col("received") - pl.col("sent"))
