"""The report's sections, each from an analysis; what it has nothing to say of says so."""

import json

import polars as pl
import yaml

from ..analysis import Analysis
from ..figures import QUANTILES, publishers_by_group
from . import charts, words
from .charts import Band, Mark, fixed, number
from .parts import Chart, Code, Section, Table, Text, table

# Points of the scatter at most; the slowest deliveries are always among them.
MAX_POINTS = 20_000
SLOWEST = 500
# Boxes and bars in one chart at most.
MAX_BOXES = 80
# Times of a chart over time at most.
MAX_TIMES = 240
# Links in the table.
MAX_LINKS = 15
# Rows of the table under a chart over time.
TABLE_TIMES = 20
_BOX = {"min": 0.0, "low": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "high": 0.95, "max": 1.0}
_KINDS = (("cross", "between groups (cross)"), ("local", "within a node (local)"), ("other", "within a group, by radio"))
_COUNTS = {"sent": "Sent", "expected": "Expected", "received": "Received", "lost": "Lost", "lostPercent": "Lost (%)", "duplicates": "Dupli\u00adcates"}


def run_section(analysis: Analysis) -> Section:
    """What was run."""
    run, plan = analysis.run, analysis.run.plan
    spec = plan.get("spec", {})
    scenario = plan.get("scenario") or {}
    rows = [
        ("Experiment", f"{plan.get('namespace', '')}/{plan.get('name', '')}"),
        ("Run (UID)", plan.get("uid", "")),
        ("T0", words.clock(run, run.t0)),
        ("Duration", f"{number(run.duration_seconds)} s from T0 to the end of the drain"),
        ("Seed", str(spec.get("seed", "\u2013"))),
        ("Scenario", f"{scenario['name']}, {scenario.get('digest', '')}" if scenario.get("name") else "none"),
        ("Nodes", number(len(run.nodes))),
    ]
    networks = [_network_row(network) for network in spec.get("networks") or []]
    apps = [_app_row(app, run.nodes) for app in spec.get("apps") or []]
    nodes = [_node_row(node, plan.get("environment") or {}) for node in run.nodes]
    parts = [
        table("The run", ("Property", "Value"), rows, text=(0, 1)),
        table("Networks", ("Network", "Radio", "Subnet", "Routing"), networks, text=range(4)),
        table("Apps", ("App", "What it is", "Instances"), apps, text=(0, 1)),
        table("Nodes", ("Node", "Group", "Addresses", "Apps", "Host"), nodes, folded=len(nodes) > 12, text=range(5)),
        Code("Specification as it was resolved", _yaml(spec)),
    ]
    if plan.get("waveforms"):
        parts.append(Code("Waveforms", _yaml(plan["waveforms"])))
    versions = [(name, str(value)) for name, value in sorted((plan.get("environment") or {}).items())]
    parts.append(table("Versions, images and hosts", ("What", "Value"), versions, folded=True, text=(0, 1)))
    return Section("run", "What was run", [part for part in parts if not isinstance(part, Table) or part.rows])


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)


def _network_row(network: dict) -> tuple[str, ...]:
    model = next((name for name in ("link", "rfpipe", "tdma") if network.get(name)), "")
    radio = network.get("waveform") or model or "\u2013"
    radio += f" ({network['engine']})" if network.get("engine") else ""
    routing = network.get("routing") or {}
    return network["name"], radio, network.get("subnet", ""), ", ".join(f"{k} {v}" if k != "protocol" else str(v) for k, v in routing.items() if k != "routes") or "none"


def _app_row(app: dict, nodes: list[dict]) -> tuple[str, ...]:
    kind = next((name for name in app if name not in ("name", "instances", "subscribes", "protocol", "command")), "app")
    inner = app.get(kind)
    said = ", ".join(f"{k} {v if isinstance(v, str | int | float) else json.dumps(v)}" for k, v in inner.items()) if isinstance(inner, dict) else str(inner or "")
    count = sum(len(a.get("instances") or []) for node in nodes for a in node.get("apps") or [] if a["name"] == app["name"])
    return app["name"], f"{kind}: {said}" if said else kind, number(count)


def _node_row(node: dict, environment: dict) -> tuple[str, ...]:
    addresses = ", ".join(f"{network} {address}" for network, address in (node.get("addresses") or {}).items())
    apps = ", ".join(app["name"] for app in node.get("apps") or [])
    return node["name"], node["group"], addresses, apps, str(environment.get(f"host/{node['name']}", "\u2013"))


def headline_section(analysis: Analysis) -> Section:
    """The tables of the published studies."""
    header = ("", *_COUNTS.values(), "Min (s)", "Lower quartile", "Median (s)", "Upper quartile", "Max (s)")
    results = analysis.results
    publishers = [_figures(entry) for entry in results["publishers"] or []]
    parts = [table("Deliveries by group", ("Group", *header[1:]), [_figures(entry) for entry in results["groups"] or []])]
    if publishers:
        parts.append(table("Deliveries by publisher", ("Publisher", *header[1:]), publishers, folded=len(publishers) > 12))
    levels = [entry["confidence"]["level"] for entry in results["groups"] or [] if entry.get("confidence")]
    if levels:
        parts.append(_confidence(results, levels[0]))
    note = "Delay: received minus sent. A delivery is expected by each other instance that subscribes. local: within a node; cross: between groups of nodes; others: by the publisher's group."
    return Section("figures", "Figures", [*parts, Text(note, "note")])


def _figures(entry: dict) -> tuple[str, ...]:
    counts, delay = entry["messages"], entry["delaySeconds"] or {}
    cells = [fixed(counts[c] if counts["expected"] else None, 2) if c == "lostPercent" else number(counts[c]) for c in _COUNTS]
    return entry["name"], *cells, *(fixed(delay.get(q), 4) for q in QUANTILES)


def _confidence(results: dict, level: float) -> Table:
    rows = []
    for entry in [*results["groups"], *(results["publishers"] or [])]:
        known = entry.get("confidence") or {}
        ends = [fixed((known.get(name) or {}).get(end), d) for name, d in (("medianSeconds", 4), ("lostPercent", 2)) for end in ("low", "high")]
        rows.append((entry["name"], *ends))
    header = ("", "Median from (s)", "to (s)", "Lost from (%)", "to (%)")
    return table(f"Intervals of {number(100 * level)} % confidence", header, rows, folded=True)


def delays_section(analysis: Analysis) -> Section:
    """Box plots and the scatter."""
    arrived = analysis.deliveries.lazy().filter(pl.col("received").is_not_null())
    arrived = arrived.select("publisher", "subscriber", "sent", "local", "cross", delay=(pl.col("received") - pl.col("sent")) / 1e9).collect()
    if arrived.is_empty():
        return Section("delays", "Delays", [Text("Nothing was received: there are no delays to show.")])
    parts = [_boxes("group", _group_boxes(analysis, arrived)), _boxes("publisher", _publisher_boxes(analysis, arrived)), _scatter(analysis, arrived)]
    return Section("delays", "Delays", [part for part in parts if part])


def _quantiles(frame: pl.DataFrame | pl.LazyFrame) -> dict:
    asked = [pl.col("delay").quantile(q, interpolation="linear").alias(name) for name, q in _BOX.items()]
    return frame.lazy().select(count=pl.len(), *asked).collect().row(0, named=True)


def _group_boxes(analysis: Analysis, arrived: pl.DataFrame) -> list[dict]:
    groups = {"all": arrived, "local": arrived.filter("local"), "cross": arrived.filter("cross")}
    for name, numbers in publishers_by_group(analysis.run, set(arrived["publisher"].unique())).items():
        groups[name] = arrived.filter(pl.col("publisher").is_in(numbers))
    return [{"name": name} | _quantiles(part) for name, part in groups.items() if part.height]


def _publisher_boxes(analysis: Analysis, arrived: pl.DataFrame) -> list[dict]:
    asked = [pl.col("delay").quantile(q, interpolation="linear").alias(name) for name, q in _BOX.items()]
    found = {row["publisher"]: row for row in arrived.group_by("publisher").agg(count=pl.len(), *asked).to_dicts()}
    return [{"name": i.name} | found[i.number] for i in analysis.run.instances if i.number in found]


def _boxes(what: str, rows: list[dict]) -> Chart:
    shown = sorted(rows, key=lambda row: -row["median"])[:MAX_BOXES] if len(rows) > MAX_BOXES else rows
    caption = "Box: lower to upper quartile, with the median. Whiskers: 5th to 95th percentile. Dots: least and greatest delay."
    if len(rows) > len(shown):
        caption += f" The {len(shown)} of {len(rows)} {what}s with the greatest medians are drawn."
    header = (what.capitalize(), "Deliveries", "Min (s)", "5 % (s)", "25 % (s)", "Median (s)", "75 % (s)", "95 % (s)", "Max (s)")
    cells = [(row["name"], number(row["count"]), *(fixed(row[q], 4) for q in _BOX)) for row in rows]
    alt = f"Box plots of delays in seconds of {len(shown)} {what}s; medians from {number(min(r['median'] for r in shown))} to {number(max(r['median'] for r in shown))} s."
    return Chart(f"Delay by {what}", charts.boxes(shown, "delay (s)", alt), caption, table=table("Figures", header, cells, folded=True))


def _scatter(analysis: Analysis, arrived: pl.DataFrame) -> Chart:
    some = arrived
    if arrived.height > MAX_POINTS:
        indexed = arrived.with_row_index()
        slowest = indexed.top_k(SLOWEST, by=["delay", "index"])
        rest = indexed.join(slowest.select("index"), on="index", how="anti").sample(MAX_POINTS - SLOWEST, seed=1)
        some = pl.concat([rest, slowest]).drop("index")
    begin = analysis.run.t0 or arrived["sent"].min()
    kind = pl.when("cross").then(pl.lit("cross")).when("local").then(pl.lit("local")).otherwise(pl.lit("other"))
    points = some.select("delay", at=(pl.col("sent") - begin) / 1e9, kind=kind).sort("at", "delay", "kind")
    kinds = [(label, *(points.filter(pl.col("kind") == name)[c].to_list() for c in ("at", "delay"))) for name, label in _KINDS]
    limits = (min(0.0, points["at"].min()), max(analysis.run.duration_seconds, points["at"].max(), 1.0), *charts.spanning(points["delay"].min(), points["delay"].max()))
    caption = "Each point is a delivery that arrived, at the time at which its message was sent."
    if some.height < arrived.height:
        caption += f" {number(some.height)} of {number(arrived.height)} are drawn: a random sample, and the {SLOWEST} slowest."
    bands, marks = happenings(analysis)
    alt = f"Scatter of {number(some.height)} deliveries' delays over time; figures by interval are in the table below."
    svg = charts.points(kinds, limits, ("time after T0 (s)", "delay (s)"), alt, bands, marks)
    legend = [(f"k{i}", label) for i, (label, times, _) in enumerate(kinds) if times]
    return Chart("Delay of every delivery over time", svg, caption + about(bands, marks), legend, _by_time(analysis, arrived, begin))


def _by_time(analysis: Analysis, arrived: pl.DataFrame, begin: int) -> Table:
    width = _round(max(analysis.run.duration_seconds, 1.0) / TABLE_TIMES)
    asked = [pl.col("delay").quantile(q, interpolation="linear").alias(name) for name, q in _BOX.items()]
    at = ((pl.col("sent") - begin) / (1e9 * width)).floor().cast(pl.Int64).alias("interval")
    rows = arrived.group_by(at).agg(count=pl.len(), *asked).sort("interval").to_dicts()
    cells = [(f"{number(r['interval'] * width)} to {number((r['interval'] + 1) * width)}", number(r["count"]), *(fixed(r[q], 4) for q in ("median", "high", "max"))) for r in rows]
    return table("Figures", ("Sent (s after T0)", "Deliveries", "Median (s)", "95 % (s)", "Max (s)"), cells, folded=True)


def _round(seconds: float) -> int:
    """A round number of seconds, not less than this."""
    return next((s for s in (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600) if s >= seconds), max(int(seconds), 1))


def happenings(analysis: Analysis) -> tuple[list[Band], list[Mark]]:
    """Times in which the emulation was not as it should be, and changes by hand, to be drawn over time."""
    results, end = analysis.results, analysis.run.duration_seconds
    bands = [Band(e["fromSeconds"], e["toSeconds"], f"late: {e['what']}") for e in (results.get("verdict") or {}).get("late") or [] if e.get("fromSeconds") is not None]
    for gap in results["gaps"] or []:
        if gap["what"] in words.OUTAGES and gap.get("fromSeconds") is not None:
            bands.append(Band(gap["fromSeconds"], gap.get("toSeconds") or end, f"{gap['what']}: {gap['reason']}"))
    changes = analysis.run.plan.get("liveChanges") or []
    marks = [Mark(c["atNanoseconds"] / 1e9, f"{c['name']}: {'; '.join(words.change(x) for x in c.get('changes') or [])}") for c in changes]
    # What is as long as the run would only grey everything.
    return [b for b in bands if b.end - b.start < 0.8 * max(end, 1.0)][:200], marks[:50]


def about(bands: list[Band], marks: list[Mark]) -> str:
    """What hatches and numbered lines of a chart over time mean."""
    said = " Hatched: times in which the emulation was late or interrupted." if bands else ""
    return said + (" Numbered lines: changes by hand, as listed below." if marks else "")


def loss_section(analysis: Analysis) -> Section:
    """Bars of lost deliveries."""
    parts = []
    for what in ("group", "publisher"):
        entries = [e for e in analysis.results[f"{what}s"] or [] if e["messages"]["expected"]]
        if entries:
            parts.append(_loss(what, entries))
    return Section("loss", "Losses", parts or [Text("No delivery was expected: nothing could be lost.")])


def _loss(what: str, entries: list[dict]) -> Chart:
    shown = sorted(entries, key=lambda e: -e["messages"]["lostPercent"])[:MAX_BOXES] if len(entries) > MAX_BOXES else entries
    rows = []
    for entry in shown:
        counts, bounds = entry["messages"], (entry.get("confidence") or {}).get("lostPercent") or {}
        text = f"{fixed(counts['lostPercent'], 2)}\u00a0% ({number(counts['lost'])})"
        rows.append({"name": entry["name"], "value": counts["lostPercent"], "text": text, "low": bounds.get("low"), "high": bounds.get("high")})
    caption = "Share of the expected deliveries that did not arrive by the end of the drain, and their number."
    if any(row["high"] is not None for row in rows):
        caption += " Lines: intervals of confidence (Wilson)."
    if len(entries) > len(shown):
        caption += f" The {len(shown)} of {len(entries)} {what}s that lost most are drawn."
    cells = [(e["name"], *(number(e["messages"][c]) for c in ("expected", "received", "lost")), fixed(e["messages"]["lostPercent"], 2)) for e in entries]
    figures = table("Figures", (what.capitalize(), "Expected", "Received", "Lost", "Lost (%)"), cells, folded=True)
    alt = f"Bars of lost deliveries in percent of {len(shown)} {what}s; the greatest is {number(max(r['value'] for r in rows), 3)} %."
    return Chart(f"Lost deliveries by {what}", charts.bars(rows, "lost (%)", alt), caption, table=figures)


def hops_section(analysis: Analysis) -> Section:
    """How many hops nodes were apart."""
    histogram = analysis.hop_histogram
    if histogram.is_empty():
        return Section("hops", "Hops", [Text("No node routed by a protocol that radiod speaks: hop counts are not known.")])
    parts = [_hops(analysis, str(key[0]), part) for key, part in histogram.partition_by("network", as_dict=True, maintain_order=True).items()]
    return Section("hops", "Hops", parts)


def _hops(analysis: Analysis, network: str, part: pl.DataFrame) -> Chart:
    width = max(1, -(-(part["second"].max() + 1) // MAX_TIMES))
    sums = part.group_by(pl.col("second") // width, "hops").agg(pairs=pl.col("pairs").sum())
    total = sums.group_by("second").agg(total=pl.col("pairs").sum())
    shares = sums.join(total, on="second").with_columns(share=100 * pl.col("pairs") / pl.col("total"))
    times = sorted(total["second"])
    kinds = [*sorted(h for h in part["hops"].unique() if h is not None)]
    shown, more = kinds[:6], kinds[6:]
    series = [(_hop_name(h), [h]) for h in shown] + ([(f"{more[0]} and more hops", more)] if more else [])
    by = {(row["second"], row["hops"]): row["share"] for row in shares.to_dicts()}
    values = [(name, [sum(by.get((t, h), 0.0) for h in of) for t in times]) for name, of in series]
    bands, marks = happenings(analysis)
    alt = f"Share of pairs of nodes by hops over time on {network}; figures are in the table below."
    svg = charts.stacked(values, [t * width + width / 2 for t in times], analysis.run.duration_seconds, ("time after T0 (s)", "pairs of nodes (%)"), alt, bands, marks, sequential=True)
    caption = "Share of all ordered pairs of nodes by the hops of the route that the one had to the other; what is left above had no route." + about(bands, marks)
    if width > 1:
        caption += f" Averages over {width} s."
    legend = [(f"q{i}", name) for i, (name, _) in enumerate(values)]
    return Chart(f"Hops over time: {network}", svg, caption, legend, _hop_table(part, kinds))


def _hop_name(hops: int) -> str:
    return f"{hops} hop" if hops == 1 else f"{hops} hops"


def _hop_table(part: pl.DataFrame, kinds: list[int]) -> Table:
    pairs = {row["hops"]: row["pairs"] for row in part.group_by("hops").agg(pairs=pl.col("pairs").sum()).to_dicts()}
    total, seconds = sum(pairs.values()), part["second"].n_unique()
    rows = [(_hop_name(h) if h is not None else "no route", number(pairs[h] / seconds), fixed(100 * pairs[h] / total, 2)) for h in [*kinds, None] if h in pairs]
    routed = total - pairs.get(None, 0)
    mean = sum(h * pairs[h] for h in kinds) / routed if routed else None
    return table("Figures", ("Hops", "Pairs on average", "Share (%)"), [*rows, ("mean of routes", fixed(mean, 2), "")], folded=True)


def links_section(analysis: Analysis) -> Section:
    """The radio links' figures over the whole run."""
    if analysis.links.is_empty():
        return Section("links", "Links", [Text("No network has a physical layer (rfpipe, tdma): there is no SINR and no pathloss.")])
    from ..surroundings import MISSED

    reasons = list(MISSED)
    last = [(pl.col(c).max()).alias(c) for c in ("heard", *reasons)]
    asked = [pl.col("sinrDB").median().alias("sinr"), pl.col("sinrDB").min().alias("least"), pl.col("pathlossDB").median().alias("pathloss"), *last]
    links = analysis.links.group_by("network", "source", "receiver").agg(*asked).with_columns(sent=pl.col("heard") + pl.sum_horizontal(reasons))
    links = links.with_columns(pl.col("network", "source", "receiver").cast(pl.String)).sort(["sent", "network", "source", "receiver"], descending=[True, False, False, False])
    rows = [
        (f"{r['source']} \u2192 {r['receiver']}", r["network"], *(fixed(r[c], 1) for c in ("sinr", "least", "pathloss")), *(number(r[c]) for c in ("heard", *reasons)))
        for r in links.head(MAX_LINKS).to_dicts()
    ]
    header = ("Link", "Network", "SINR median (dB)", "least (dB)", "Pathloss median (dB)", "Heard", "Too weak", "Low SINR", "Interfered", "Half duplex", "Not listening")
    note = f"The {len(rows)} of {links.height} links with the most transmissions; heard, and why not. links.csv has every second." if links.height > len(rows) else "Transmissions that were heard, and why others were not. links.csv has every second."
    return Section("links", "Links", [table("Radio links", header, rows, text=(0, 1)), Text(note, "note")])


def verdict_section(analysis: Analysis) -> Section | None:
    """When and where the emulation was late."""
    late = (analysis.results.get("verdict") or {}).get("late")
    if not late:
        return None
    rows = [(e["node"] or "a host", number(e["fromSeconds"]), number(e["toSeconds"]), e["what"], number(e["worstSeconds"])) for e in late]
    return Section("late", "Where the emulation was late", [table("Late", ("Node", "From (s)", "To (s)", "What", "Worst (s)"), rows, text=(0, 3))])


def hand_section(analysis: Analysis) -> Section:
    """What people changed and captured while the experiment ran."""
    plan = analysis.run.plan
    changes = [
        (str(i + 1), number(c["atNanoseconds"] / 1e9), c["name"], "; ".join(words.change(x) for x in c.get("changes") or []))
        for i, c in enumerate(plan.get("liveChanges") or [])
    ]
    captures = [
        (c["name"], c["network"], ", ".join(c.get("nodes") or []), c.get("filter") or "all frames", "before the run" if c.get("ended") else "with the run")
        for c in plan.get("captures") or []
    ]
    parts: list = [table("Changes by hand", ("No.", "At (s)", "LiveChange", "Change"), changes, text=(2, 3))] if changes else [Text("Nobody changed the networks by hand.")]
    if captures:
        parts.append(table("Captures", ("Capture", "Network", "Nodes", "Filter", "Ended"), captures, text=range(5)))
    return Section("hand", "What people did", parts)


def missing_section(analysis: Analysis, more: list[dict]) -> Section:
    """Every gap, also those of the report itself."""
    rows = [(g["what"], g.get("node", ""), number(g.get("fromSeconds")), number(g.get("toSeconds")), g["reason"]) for g in [*(analysis.results["gaps"] or []), *more]]
    header = ("What", "Node", "From (s)", "To (s)", "Why")
    return Section("missing", "What is missing", [table("Gaps", header, rows, text=(0, 1, 4)) if rows else Text("Nothing: no gap was found.")])
