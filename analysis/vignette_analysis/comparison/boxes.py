"""Box plots of runs side by side, in the style of a run's report."""

import numpy as np
import polars as pl

from ..figures.summary import NAMES
from ..report import charts
from ..report.charts import number
from ..report.parts import Chart, Table
from .comparing import Compared, select
from .loading import Loaded
from .marks import doubtful, marked

# Most boxes of a group, and most groups with boxes.
MAX_BOXES = 100
MAX_GROUPS = 6
# Whiskers go from the 5th to the 95th percentile, as in the plots of a run.
_LEVELS = {"min": 0.0, "low": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "high": 0.95, "max": 1.0}
_CAPTION = "Box: lower to upper quartile, with the median. Whiskers: 5th to 95th percentile. Dots: least and greatest delay."
_DIAMONDS = " Diamonds: reference figures of the delay."


class Boxes:
    """Draws boxes of delays: of each run, of pooled repeats if there are too many runs, or of axes' levels."""

    def __init__(self, comparison: Compared):
        self._samples, self.left_out = _samples(comparison)
        self._references = _references(comparison.results)
        self._marks, self._drawn = doubtful(comparison.results), 0

    def chart(self, title: str, group: str, table: Table) -> Chart | Table:
        """The boxes of a group above its table; the table alone where nothing was received or enough is drawn."""
        rows = [row for label, runs in self._samples if (row := self._row(label, runs, group))]
        if not rows or self._drawn == MAX_GROUPS:
            return table
        self._drawn += 1
        medians = [row["median"] for row in rows]
        alt = f"Box plots of delays of group {group} in {len(rows)} rows; medians from {number(min(medians))} to {number(max(medians))} s."
        caption = _CAPTION + (_DIAMONDS if any(row["references"] for row in rows) else "")
        return Chart(title, charts.boxes(rows, "delay (s)", alt), caption, table=table)

    def _row(self, label: str, runs: list[Loaded], group: str) -> dict | None:
        """The box of runs, with the reference figures that all of them have."""
        row = _box(marked(label, self._marks), runs, group)
        if row:
            each = [self._references.get((group, run.uid), {}) for run in runs]
            row["references"] = [(name, value) for name, value in each[0].items() if all(some.get(name) == value for some in each)]
        return row


def _samples(comparison: Compared) -> tuple[list[tuple[str, list[Loaded]]], str]:
    """The boxes with their labels and runs, and a text on what is left out."""
    runs = {run.uid: run for run in comparison.runs}
    results = comparison.results
    if len(runs) <= MAX_BOXES:
        return [(run["label"], [runs[run["uid"]]]) for run in results["runs"]], ""
    levels = [level for axis in results["axes"] or [] for level in axis["levels"]]
    for what, conditions in (("repeats of a condition", results["conditions"]), ("runs of each level of an axis", levels)):
        if 0 < len(conditions) <= MAX_BOXES:
            drawn = [(c["label"], [runs[uid] for uid in c["runs"]]) for c in conditions]
            return drawn, f"{len(runs)} runs are more than {MAX_BOXES} boxes: {what} are drawn together."
    return [], f"{len(runs)} runs are more than {MAX_BOXES} boxes: none is drawn. Their quartiles are in the tables."


def _references(results: dict) -> dict[tuple[str, str], dict[str, float]]:
    """By group and run, the reference figures of its delays by their names."""
    members = {condition["label"]: condition["runs"] for condition in results["conditions"]}
    members |= {run["label"]: [run["uid"]] for run in results["runs"] if run["label"] not in members}
    found: dict[tuple[str, str], dict[str, float]] = {}
    for entry in (results.get("reference") or {"figures": []})["figures"]:
        if (name := entry["metric"].removesuffix("Seconds")) in NAMES:
            for uid in members[entry["label"]]:
                found.setdefault((entry["group"], uid), {})[NAMES[name]] = entry["value"]
    return found


def _box(label: str, runs: list[Loaded], group: str) -> dict | None:
    """A box in seconds; None where nothing was received."""
    delays = np.concatenate([run.deliveries["delay"].filter(pl.Series(select(run.deliveries, group))).drop_nulls().to_numpy() for run in runs])
    if not len(delays):
        return None
    return {"name": label} | dict(zip(_LEVELS, (np.quantile(delays, list(_LEVELS.values())) / 1e9).tolist(), strict=True))
