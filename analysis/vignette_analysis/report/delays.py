"""Box plots and the scatter of delays, and bars of losses."""

from dataclasses import dataclass

import polars as pl

from ..figures.analysis import Analysis
from ..figures.deliveries import KINDS, publishers_by_group
from ..figures.summary import decimals
from . import charts, times
from .charts import fixed, number, share
from .parts import Chart, Section, Table, Text, table

# Most points of the scatter, the slowest deliveries among them.
MAX_POINTS = 20_000
SLOWEST = 500
# Most boxes and bars in a chart.
MAX_BOXES = 80
_BOX = {"min": 0.0, "low": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "high": 0.95, "max": 1.0}
_KINDS = (("cross", "between groups (cross)"), ("local", "within a node (local)"), ("other", "within a group, by radio"))


def section(analysis: Analysis) -> Section:
    """Delays by group, by publisher and over time."""
    arrived = analysis.deliveries.lazy().filter(pl.col("received").is_not_null())
    delay = ((pl.col("received") - pl.col("sent")) / 1e9).alias("delay")
    found = arrived.select("publisher", "subscriber", "sent", *KINDS, delay).collect()
    if found.is_empty():
        return Section("delays", "Delays", [Text("Nothing was received: there are no delays to show.")])
    parts = [boxes("group", _by_group(analysis, found)), boxes("publisher", _by_publisher(analysis, found)), _scatter(analysis, found)]
    return Section("delays", "Delays", parts)


def box() -> list[pl.Expr]:
    """What a box shows of a column `delay`, and the number of values."""
    return [pl.len().alias("count"), *(pl.col("delay").quantile(q, interpolation="linear").alias(name) for name, q in _BOX.items())]


def _by_group(analysis: Analysis, arrived: pl.DataFrame) -> list[dict]:
    groups = {"all": arrived} | {kind: arrived.filter(kind) for kind in KINDS}
    for name, numbers in publishers_by_group(analysis.run, set(arrived["publisher"].unique())).items():
        groups[name] = arrived.filter(pl.col("publisher").is_in(numbers))
    return [{"name": name} | part.select(box()).row(0, named=True) for name, part in groups.items() if part.height]


def _by_publisher(analysis: Analysis, arrived: pl.DataFrame) -> list[dict]:
    found = {row["publisher"]: row for row in arrived.group_by("publisher").agg(box()).to_dicts()}
    return [{"name": i.name} | found[i.number] for i in analysis.run.instances if i.number in found]


@dataclass(frozen=True)
class Measure:
    """What boxes are of: the name of the figure, in the plural too, and of what there is one for each."""

    name: str
    plural: str
    counted: str


_DELAY = Measure("delay", "delays", "Deliveries")


def boxes(what: str, rows: list[dict], of: Measure = _DELAY) -> Chart:
    """A box for each row: name, count and what box() gives."""
    shown = sorted(rows, key=lambda row: -row["median"])[:MAX_BOXES] if len(rows) > MAX_BOXES else rows
    caption = f"Box: lower to upper quartile, with the median. Whiskers: 5th to 95th percentile. Dots: least and greatest {of.name}."
    if len(rows) > len(shown):
        caption += f" The {len(shown)} of {len(rows)} {what}s with the greatest medians are drawn."
    header = (what.capitalize(), of.counted, "Min (s)", "5 % (s)", "25 % (s)", "Median (s)", "75 % (s)", "95 % (s)", "Max (s)")
    places = decimals(row[q] for row in rows for q in _BOX)
    cells = [(row["name"], number(row["count"]), *(fixed(row[q], places) for q in _BOX)) for row in rows]
    medians = [row["median"] for row in shown]
    alt = f"Box plots of {of.plural} in seconds of {len(shown)} {what}s; medians from {number(min(medians))} to {number(max(medians))} s."
    figures = table("Figures", header, cells, folded=True)
    return Chart(f"{of.name.capitalize()} by {what}", charts.boxes(shown, f"{of.name} (s)", alt), caption, table=figures)


def _scatter(analysis: Analysis, arrived: pl.DataFrame) -> Chart:
    some = _sample(arrived)
    begin = analysis.run.t0 or arrived["sent"].min()
    kind = pl.when("cross").then(pl.lit("cross")).when("local").then(pl.lit("local")).otherwise(pl.lit("other"))
    points = some.select("delay", at=(pl.col("sent") - begin) / 1e9, kind=kind).sort("at", "delay", "kind")
    kinds = [(label, *(points.filter(pl.col("kind") == name)[c].to_list() for c in ("at", "delay"))) for name, label in _KINDS]
    across = min(0.0, points["at"].min()), max(analysis.run.duration_seconds, points["at"].max(), 1.0)
    caption = "Each point is a delivery that arrived, at the time at which its message was sent."
    if some.height < arrived.height:
        caption += f" {number(some.height)} of {number(arrived.height)} are drawn: a random sample, and the {SLOWEST} slowest."
    bands, marks = times.happenings(analysis)
    alt = f"Scatter of {number(some.height)} deliveries' delays over time; figures by interval are in the table below."
    up = charts.spanning(points["delay"].min(), points["delay"].max())
    svg = charts.points(kinds, across, up, (times.AFTER_T0, "delay (s)"), alt, bands, marks)
    legend = [(f"k{i}", label) for i, (label, at, _) in enumerate(kinds) if at]
    return Chart("Delay of every delivery over time", svg, caption + times.about(bands, marks), legend, _by_time(analysis, arrived, begin))


def _sample(arrived: pl.DataFrame) -> pl.DataFrame:
    """A sample of the deliveries, the slowest among them."""
    if arrived.height <= MAX_POINTS:
        return arrived
    indexed = arrived.with_row_index()
    slowest = indexed.top_k(SLOWEST, by=["delay", "index"])
    rest = indexed.join(slowest.select("index"), on="index", how="anti").sample(MAX_POINTS - SLOWEST, seed=1)
    return pl.concat([rest, slowest]).drop("index")


def _by_time(analysis: Analysis, arrived: pl.DataFrame, begin: int) -> Table:
    width = times.round_width(analysis.run.duration_seconds)
    at = ((pl.col("sent") - begin) / (1e9 * width)).floor().cast(pl.Int64).alias("interval")
    cells, rows = [], arrived.group_by(at).agg(box()).sort("interval").to_dicts()
    places = decimals(row[q] for row in rows for q in ("median", "high", "max"))
    for row in rows:
        name = f"{number(row['interval'] * width)} to {number((row['interval'] + 1) * width)}"
        cells.append((name, number(row["count"]), *(fixed(row[q], places) for q in ("median", "high", "max"))))
    return table("Figures", ("Sent (s after T0)", "Deliveries", "Median (s)", "95 % (s)", "Max (s)"), cells, folded=True)


def losses(analysis: Analysis) -> Section:
    """The share of offered deliveries that did not arrive, by group and by publisher."""
    parts = []
    for what in ("group", "publisher"):
        entries = [e for e in analysis.results[f"{what}s"] or [] if e["messages"]["offered"]]
        if entries:
            parts.append(_bars(what, entries))
    return Section("loss", "Losses", parts or [Text("No delivery was offered: nothing could be lost.")])


def _bars(what: str, entries: list[dict]) -> Chart:
    shown = sorted(entries, key=lambda e: e["messages"]["deliveredPercent"])[:MAX_BOXES] if len(entries) > MAX_BOXES else entries
    rows = [_bar(entry) for entry in shown]
    caption = "Share of the offered deliveries that did not arrive by the end of the drain, and their number: lost on the way, or never sent."
    if any(row["high"] is not None for row in rows):
        caption += " Lines: intervals of confidence (Wilson)."
    if len(entries) > len(shown):
        caption += f" The {len(shown)} of {len(entries)} {what}s that lost most are drawn."
    cells = []
    for entry in entries:
        counts = entry["messages"]
        unsent, missing = counts["offered"] - counts["expected"], share(100 - counts["deliveredPercent"])
        cells.append((entry["name"], *(number(n) for n in (counts["offered"], counts["received"], counts["lost"], unsent)), missing))
    header = (what.capitalize(), "Offered", "Received", "Lost on the way", "Never sent", "Not delivered (%)")
    figures = table("Figures", header, cells, folded=True)
    alt = f"Bars of deliveries that did not arrive, in percent, of {len(shown)} {what}s; the greatest is {share(max(r['value'] for r in rows))} %."
    return Chart(f"Deliveries that did not arrive, by {what}", charts.bars(rows, "not delivered (%)", alt), caption, table=figures)


def _bar(entry: dict) -> dict:
    counts, bounds = entry["messages"], (entry.get("confidence") or {}).get("deliveredPercent")
    value, unsent = 100 - counts["deliveredPercent"], counts["offered"] - counts["expected"]
    text = f"{share(value)}\u00a0% ({number(counts['lost'])} lost{f', {number(unsent)} never sent' if unsent else ''})"
    limits = {"low": 100 - bounds["high"], "high": 100 - bounds["low"]} if bounds else {"low": None, "high": None}
    return {"name": entry["name"], "value": value, "text": text} | limits
