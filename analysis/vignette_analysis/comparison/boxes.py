"""Box plots of runs side by side, as SVG within a page. matplotlib is imported where it is used only."""

import io
import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from .comparing import Comparison, select
from .loading import Loaded
from .rendering import doubtful, marked

# Groups that are drawn, one below another, where they have deliveries.
GROUPS = ("all", "radio", "cross", "local")
# Boxes of one group; each takes 8 mm.
MAX_BOXES = 100
# An axis of delays that span more than this factor is logarithmic.
LOGARITHMIC_FROM = 50.0
# Whiskers go from the 5th to the 95th percentile, as in the plots of a run.
LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def boxes(comparison: Comparison) -> tuple[str, str]:
    """Draw a box of delays for every run in each group; empty where nothing was received. And what is not drawn, if there is anything.

    Where these are too many, repeats are drawn together; where conditions are too many, the levels of axes are drawn.
    """
    samples, left_out = _samples(comparison)
    panels = [(name, rows) for name in GROUPS if (rows := _quantiles(samples, name)).size]
    if not panels:
        return "", left_out
    os.environ.setdefault("MPLCONFIGDIR", str(Path(tempfile.gettempdir()) / "vignette-matplotlib"))
    import matplotlib
    from matplotlib.figure import Figure

    marks = doubtful(comparison.results)
    labels = [marked(label, marks) for label, _ in samples]
    style = {"svg.fonttype": "none", "svg.hashsalt": "vignette", "font.family": "sans-serif", "font.size": 9, "text.parse_math": False}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(7.2, (0.7 + 0.3 * len(labels)) * len(panels)), layout="constrained")
        for axes, (name, rows) in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True):
            _panel(axes, name, rows, labels)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    drawn = out.getvalue()
    return drawn[drawn.index("<svg") :], left_out


def _samples(comparison: Comparison) -> tuple[list[tuple[str, list[Loaded]]], str]:
    """What is drawn, each with its label and its runs, and what is not."""
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


def _quantiles(samples: list[tuple[str, list[Loaded]]], group: str) -> np.ndarray:
    """Rows of quantiles in seconds with the sample's number first."""
    rows = []
    for i, (_, runs) in enumerate(samples):
        delays = np.concatenate([run.deliveries["delay"].filter(pl.Series(select(run.deliveries, group))).drop_nulls().to_numpy() for run in runs])
        if len(delays):
            rows.append([i, *np.quantile(delays, LEVELS) / 1e9])
    return np.array(rows)


def _panel(axes, name: str, rows: np.ndarray, labels: list[str]) -> None:
    run, least, low, p25, median, p75, high, greatest = rows.T
    axes.hlines(run, low, high, color="#444444", linewidth=0.9)
    axes.barh(run, p75 - p25, left=p25, height=0.55, facecolor="#9ecae1", edgecolor="#08519c", linewidth=0.8)
    axes.vlines(median, run - 0.275, run + 0.275, color="#d55e00", linewidth=1.6)
    for end in (least, greatest):
        axes.plot(end, run, linestyle="none", marker=".", markersize=4, color="#444444")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    wide = least.min() > 0 and greatest.max() / least.min() > LOGARITHMIC_FROM
    if wide:
        axes.set_xscale("log")
    axes.set_xlabel("delay (s), logarithmic" if wide else "delay (s)")
    axes.set_title(f"Group {name}", loc="left", fontweight="bold", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#d9d9d9", linewidth=0.5)
    axes.set_axisbelow(True)
