"""The picture of platforms at subscribers: error and age."""

import polars as pl

from ..figures.analysis import Analysis
from ..figures.picture import FIGURES
from . import charts, times
from .charts import fixed, number, share
from .parts import Chart, Section, Table, Text, table

# Most pairs of subscriber and node in a table: the worst ones.
MAX_PAIRS = 50


def section(analysis: Analysis) -> Section | None:
    """Error and age by group, over time, and of the worst pairs; none where no positions were compared."""
    found = analysis.results.get("picture")
    if not found:
        return None
    note = "Error: horizontal distance from the freshest position that a subscriber has received of a node to the node's true position "
    note += f"at that time. Age: time since that position was made. Both are sampled every {found['sampleSeconds']} s; "
    note += "plots/picture-tracks shows true and reported positions."
    return Section("picture", "Picture of the nodes", [_groups(found), _chart(analysis), *_pairs(analysis), Text(note, "note")])


def _groups(found: dict) -> Table:
    rows = []
    for entry in found["groups"]:
        figures = [fixed((entry[name] or {}).get(q), 1) for name in ("errorMetres", "ageSeconds") for q in FIGURES]
        rows.append((entry["name"], number(entry["pairs"]), share(entry["knownPercent"]), *figures))
    header = ("Group of the node", "Pairs", "Known (%)", *(f"Error, {q} (m)" for q in FIGURES), *(f"Age, {q} (s)" for q in FIGURES))
    return table("Error and age by group", header, rows)


def _chart(analysis: Analysis) -> Chart | Text:
    frame = analysis.picture_times.filter(pl.col("errorMedianMetres").is_not_null())
    if frame.is_empty():
        return Text("No position arrived whose error is known.")
    width = times.width(frame["second"].max() + 1)
    curve = frame.group_by(at=pl.col("second") // width * width).agg(pl.col("errorMedianMetres", "errorP95Metres").mean()).sort("at")
    at = curve["at"].to_list()
    kinds = [(name, at, curve[column].to_list()) for name, column in (("median", "errorMedianMetres"), ("95 %", "errorP95Metres"))]
    most = max(curve["errorP95Metres"].max(), 1.0)
    bands, marks = times.happenings(analysis)
    alt = "Error of the picture over time; figures are in the table above."
    ends = (0.0, max(analysis.run.duration_seconds, float(at[-1]), 1.0))
    svg = charts.points(kinds, ends, (0.0, most * 1.04, False), (times.AFTER_T0, "error (m)"), alt, bands, marks)
    caption = "Over all pairs of a subscriber and a node on which it has a position." + (f" Averages over {width} s." if width > 1 else "")
    return Chart("Error of the picture over time", svg, caption + times.about(bands, marks), [(f"k{i}", name) for i, (name, *_) in enumerate(kinds)])


def _pairs(analysis: Analysis) -> list[Table]:
    """The worst pairs; none of a run with too many for a table."""
    if analysis.picture.is_empty():
        return []
    worst = analysis.picture.sort("errorMeanMetres", "subscriber", "node", descending=[True, False, False], nulls_last=False).head(MAX_PAIRS)
    columns = ("errorMedianMetres", "errorMeanMetres", "errorP95Metres", "ageMedianSeconds", "ageP95Seconds")
    rows = [(str(r["subscriber"]), str(r["node"]), share(r["knownPercent"]), *(fixed(r[c], 1) for c in columns)) for r in worst.to_dicts()]
    header = ("Subscriber", "Node", "Known (%)", "Error, median (m)", "mean (m)", "95 % (m)", "Age, median (s)", "95 % (s)")
    return [table(f"The {len(rows)} pairs with the greatest error", header, rows, folded=True, text=(0, 1))]
