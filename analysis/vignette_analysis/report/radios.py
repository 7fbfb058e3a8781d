"""Hops over time, and the figures of radio links."""

import polars as pl

from ..figures.analysis import Analysis
from ..figures.surroundings import MISSED
from . import charts, times
from .charts import fixed, number, share
from .parts import Chart, Section, Table, Text, table

# Most links of a network in the table.
MAX_LINKS = 15
# Hop counts with an area of their own; greater ones share the last.
MAX_AREAS = 6
_LINK = ("network", "source", "receiver")
_WHY = {
    "belowSensitivity": "too weak",
    "lowSINR": "low SINR",
    "interfered": "interfered",
    "halfDuplex": "was sending",
    "notListening": "was not listening",
}


def hops(analysis: Analysis) -> Section:
    """Hop counts between nodes."""
    networks = analysis.hop_histogram.partition_by("network", as_dict=True, maintain_order=True)
    parts = [_areas(analysis, str(key[0]), part) for key, part in networks.items()]
    return Section("hops", "Hops", parts or [Text("No node routed by a protocol that radiod speaks: hop counts are not known.")])


def _areas(analysis: Analysis, network: str, part: pl.DataFrame) -> Chart:
    width = times.width(part["second"].max() + 1)
    kinds = sorted(h for h in part["hops"].unique() if h is not None)
    alone, rest = kinds[:MAX_AREAS], kinds[MAX_AREAS:]
    series = [(_name(h), [h]) for h in alone] + ([(f"{rest[0]} and more hops", rest)] if rest else [])
    sums = part.group_by(pl.col("second") // width, "hops").agg(pairs=pl.col("pairs").sum())
    totals = {row["second"]: row["pairs"] for row in sums.group_by("second").agg(pl.col("pairs").sum()).to_dicts()}
    pairs = {(row["second"], row["hops"]): row["pairs"] for row in sums.to_dicts()}
    at = sorted(totals)
    values = [(name, [100 * sum(pairs.get((t, h), 0) for h in of) / totals[t] for t in at]) for name, of in series]
    bands, marks = times.happenings(analysis)
    axes = charts.Axes([(t + 0.5) * width for t in at], analysis.run.duration_seconds, times.AFTER_T0, "pairs of nodes (%)")
    alt = f"Share of pairs of nodes by hops over time on {network}; figures are in the table below."
    svg = charts.stacked(values, axes, alt, bands, marks, sequential=True)
    caption = "Share of all ordered pairs of nodes, by the hops of the route that the one had to the other. The rest above had no route."
    caption += (f" Averages over {width} s." if width > 1 else "") + times.about(bands, marks)
    legend = [(f"q{i}", name) for i, (name, _) in enumerate(values)]
    return Chart(f"Hops over time: {network}", svg, caption, legend, _hop_table(part, kinds))


def _name(hops: int) -> str:
    return f"{hops} hop" if hops == 1 else f"{hops} hops"


def _hop_table(part: pl.DataFrame, kinds: list[int]) -> Table:
    pairs = {row["hops"]: row["pairs"] for row in part.group_by("hops").agg(pairs=pl.col("pairs").sum()).to_dicts()}
    total, seconds = sum(pairs.values()), part["second"].n_unique()
    named = [*((_name(h), pairs[h]) for h in kinds), ("no route", pairs.get(None, 0))]
    rows = [(name, number(count / seconds), share(100 * count / total)) for name, count in named]
    routed = total - pairs.get(None, 0)
    mean = sum(h * pairs[h] for h in kinds) / routed if routed else None
    return table("Figures", ("Hops", "Pairs on average", "Share (%)"), [*rows, ("mean of all routes", fixed(mean, 2), "")], folded=True)


def links(analysis: Analysis) -> Section:
    """Figures of the radio links over the whole run."""
    if analysis.links.is_empty():
        return Section("links", "Links", [Text("No network has a physical layer (rfpipe, tdma): there is no SINR and no pathloss.")])
    of = [pl.col(name).cast(pl.String) for name in _LINK]
    counts = ("heard", *MISSED)
    found = (
        analysis.links.lazy()
        .with_columns(_growth(count) for count in counts)
        .group_by(of)
        .agg(
            pl.col("sinrDB").median().alias("sinr"),
            pl.col("sinrDB").min().alias("least"),
            pl.col("pathlossDB").median().alias("pathloss"),
            *(pl.when(pl.col(count).count() > 0).then(pl.col(count).sum()).alias(count) for count in counts),
        )
        .with_columns(missed=pl.sum_horizontal(MISSED))
        .sort("network", pl.col("heard") + pl.col("missed"), "source", "receiver", descending=[False, True, False, False])
        .collect()
    )
    rows = [_link(row) for row in found.group_by("network", maintain_order=True).head(MAX_LINKS).to_dicts()]
    header = ("Link", "Network", "SINR, median (dB)", "least (dB)", "Pathloss, median (dB)", "Heard", "Missed", "because")
    which = f"Of each network the {MAX_LINKS} links with the most transmissions, {len(rows)} of {found.height}. " if found.height > len(rows) else ""
    note = f"{which}Heard and missed are transmissions in the whole run; links.csv has every second."
    return Section("links", "Links", [_receptions(found), table("Radio links", header, rows, text=(0, 1, 7)), Text(note, "note")])


def _receptions(found: pl.DataFrame) -> Table:
    """What all links of each network heard and missed, and why."""
    sums = found.group_by("network", maintain_order=True).agg(pl.len().alias("links"), pl.col("heard", "missed", *MISSED).sum())
    rows = []
    for row in sums.to_dicts():
        missed = share(100 * row["missed"] / max(row["heard"] + row["missed"], 1))
        rows.append((row["network"], *(number(row[name]) for name in ("links", "heard", "missed")), missed, _because(row)))
    return table("Receptions by network", ("Network", "Links", "Heard", "Missed", "Missed (%)", "because"), rows, text=(0, 5))


def _growth(count: str) -> pl.Expr:
    """Growth of a link's counter, which starts from 0 with radiod, and with the first sample."""
    now, before = pl.col(count), pl.col(count).forward_fill().shift(1).over(_LINK).fill_null(0)
    return pl.when(now >= before).then(now - before).otherwise(now).alias(count)


def _link(row: dict) -> tuple[str, ...]:
    figures = [fixed(row[name], 1) for name in ("sinr", "least", "pathloss")]
    return f"{row['source']} \u2192 {row['receiver']}", row["network"], *figures, number(row["heard"]), number(row["missed"]), _because(row)


def _because(row: dict) -> str:
    """The reasons of what was missed, the most frequent first."""
    reasons = sorted((reason for reason in MISSED if row[reason]), key=lambda reason: -row[reason])
    return ", ".join(f"{_WHY[reason]} {number(row[reason])}" for reason in reasons)
