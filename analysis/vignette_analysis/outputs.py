"""The files of an analysis: results.json, tables as CSV and Parquet, plots, and a table for the terminal."""

import json
from pathlib import Path

import polars as pl

from . import plots, report
from .data import safe
from .data.gaps import OUTAGES
from .data.requests import OTHER, REASONS
from .figures import bursts, summary
from .figures.analysis import Analysis
from .figures.deliveries import QUANTILES
from .figures.verdict import sentence
from .report import latex, words

RESULTS = "results.json"
COUNTS = ("triggered", "sent", "offered", "expected", "received", "lost", "duplicates")
SHARES = ("deliveredPercent", "lostPercent")


# Rows of a batch: more take more memory, fewer make larger files.
ROW_GROUP_ROWS = 1 << 18


def write(analysis: Analysis, directory: Path) -> list[Path]:
    """Write every file into a folder and return their paths. results.json is last: where it exists, all others do."""
    directory.mkdir(parents=True, exist_ok=True)
    results = analysis.results
    paths = []
    # One table at a time, as large ones take much memory.
    for name, build, times in _LARGE:
        paths += _write_table(build(analysis), times, directory / name)
    for name, frame, times in (
        ("stages", analysis.stages, ()),
        ("sequences", analysis.sequences, ()),
        ("order", analysis.order, ()),
        ("age", analysis.age, ()),
        ("bursts", analysis.bursts, ()),
        ("positions", analysis.positions, ("ts",)),
        ("links", analysis.links, ("ts",)),
        ("hops", analysis.hops, ("ts",)),
        ("hop-histogram", analysis.hop_histogram, ()),
        ("reports", analysis.reports, ("ts", "received")),
        ("picture", analysis.picture, ()),
        ("picture-times", analysis.picture_times, ()),
        ("volume", analysis.volume, ()),
        ("tcp", analysis.tcp, ()),
        ("packets", analysis.packets, ()),
    ):
        paths += _write_table(frame, times, directory / name)
    for name, keys in (("publishers", ("name", "node")), ("groups", ("name",)), ("pairs", ("from", "to"))):
        paths.append(directory / f"{name}.csv")
        safe.cells(_flat(results.get(name), keys)).write_csv(paths[-1])
    for name, frame in (("headline", _headline(results)), ("networks", _networks(results))):
        paths.append(directory / f"{name}.csv")
        safe.cells(frame).write_csv(paths[-1])
    paths += latex.write(results, directory)
    paths += plots.write(analysis, directory)
    paths += report.write(analysis, directory)
    return paths + write_texts(analysis, directory)


def write_texts(analysis: Analysis, directory: Path) -> list[Path]:
    """Write the files that contain gaps. Called again after a late gap."""
    results = analysis.results
    texts = {"tables.txt": terminal(analysis), RESULTS: json.dumps(results, indent=1, ensure_ascii=False) + "\n"}
    for name, text in texts.items():
        (directory / name).write_text(text)
    return [directory / name for name in texts]


def _write_table(frame: pl.DataFrame, times: tuple[str, ...], stem: Path) -> list[Path]:
    """Write a table as CSV, with Unix nanoseconds, and as Parquet, with times in UTC."""
    paths = [stem.with_suffix(".csv"), stem.with_suffix(".parquet")]
    safe.cells(frame).write_csv(paths[0])
    typed = frame.lazy().with_columns(pl.col(times).cast(pl.Datetime("ns", "UTC")))
    typed.sink_parquet(paths[1], compression="zstd", row_group_size=ROW_GROUP_ROWS)
    return paths


# Large tables: their names, what makes them, and their columns of times.
_LARGE = (
    ("messages", Analysis.message_table, ("triggered", "sent")),
    ("deliveries", Analysis.delivery_table, ("sent", "received", "processed")),
    ("requests", Analysis.request_table, ("triggered", "sent", "receipt", "failed")),
)


# Prefix and suffix of the columns of confidence intervals.
_INTERVALS = {
    "medianSeconds": ("median", "Seconds"),
    "lostPercent": ("lost", "Percent"),
    "deliveredPercent": ("delivered", "Percent"),
    "meanSeconds": ("mean", "Seconds"),
}


def _flat(entries: list[dict] | None, keys: tuple[str, ...]) -> pl.DataFrame:
    schema = dict.fromkeys(keys, pl.String) | dict.fromkeys(COUNTS, pl.Int64) | dict.fromkeys(SHARES, pl.Float64)
    schema |= {f"delay{q.capitalize()}Seconds": pl.Float64 for q in QUANTILES} | {"neverSent": pl.Int64}
    schema |= dict.fromkeys([f"{name}{end}{unit}" for name, unit in _INTERVALS.values() for end in ("Low", "High")], pl.Float64)
    asked = any("requests" in entry for entry in entries or [])
    schema |= _REQUESTS if asked else {}
    rows = []
    for entry in entries or []:
        delay, confidence, counts = entry["delaySeconds"] or {}, entry["confidence"], entry["messages"]
        row = [entry[k] for k in keys] + [counts.get(c) for c in COUNTS + SHARES] + [delay.get(q) for q in QUANTILES] + [counts["neverSent"]]
        row += [(confidence.get(what) or {}).get(end) for what in _INTERVALS for end in ("low", "high")]
        rows.append(row + (_requests(entry.get("requests")) if asked else []))
    return pl.DataFrame(rows, schema=schema, orient="row")


# Columns of requests, where there are any.
_REQUESTS = dict.fromkeys(("requests", "requestsSent", "receipts"), pl.Int64) | {"receiptPercent": pl.Float64}
_REQUESTS |= dict.fromkeys((*(f"failed{reason.capitalize()}" for reason in (*REASONS, OTHER)), "outstanding", "retransmissions"), pl.Int64)
_REQUESTS |= dict.fromkeys(
    (*(f"response{q.capitalize()}Seconds" for q in QUANTILES), "responseMeanLowSeconds", "responseMeanHighSeconds"), pl.Float64
)


def _requests(entry: dict | None) -> list:
    if entry is None:
        return [0, 0, 0, None, *[0] * (len(REASONS) + 3), *[None] * (len(QUANTILES) + 2)]
    failed, response, mean = entry["failed"] or {}, entry["responseSeconds"] or {}, entry["confidence"]["meanSeconds"] or {}
    counts = [entry[name] for name in ("triggered", "sent", "receipts", "receiptPercent")]
    counts += [*(failed.get(reason, 0) for reason in (*REASONS, OTHER)), entry["outstanding"], entry["retransmissions"]]
    return counts + [response.get(q) for q in QUANTILES] + [mean.get(end) for end in ("low", "high")]


def _headline(results: dict) -> pl.DataFrame:
    return pl.DataFrame(summary.headline(results), schema={"figure": pl.String, "value": pl.String}, orient="row")


def _networks(results: dict) -> pl.DataFrame:
    schema = {"name": pl.String} | dict.fromkeys(summary.NETWORK_FIGURES, pl.Float64) | dict.fromkeys(summary.FRAME_COUNTS, pl.Int64)
    return pl.DataFrame(summary.networks(results), schema=schema)


def terminal(analysis: Analysis) -> str:
    """The text of tables.txt, which the analysis also prints."""
    return tables(analysis.results, analysis.run.plan)


def _age_hops_sinr(results: dict) -> list[str]:
    """Sentences on the age of information, the hops of routes and the SINR of links, where a run has them."""
    lines = []
    if age := results.get("age"):
        pairs = f"{age['knownPairs']} of {age['pairs']} pairs of publisher and subscriber"
        lines.append(f"Age of information: mean {age['meanSeconds']:.3f} s over {pairs}, greatest {age['maxSeconds']:.3f} s")
    networks = results["networks"] or []
    for name, hops in ((network["name"], network["hops"]) for network in networks if "hops" in network):
        if hops["mean"] is None:
            lines.append(f"Hops on {name}: no node had a route to another one")
            continue
        without = summary.short(hops["withoutRoutePercent"])
        lines.append(f"Hops on {name}: mean {hops['mean']:.2f}, greatest {hops['max']}; {without} % of all pairs of nodes without a route")
    for name, sinr in ((network["name"], network["sinrDB"]) for network in networks if "sinrDB" in network):
        low, median, high = (f"{sinr[figure]:.1f}" for figure in ("p5", "median", "p95"))
        lines.append(f"SINR on {name}, median of each link: {median} dB in the middle, {low} to {high} dB for 90 % of {sinr['links']} links")
    return lines


def tables(results: dict, plan: dict | None = None) -> str:
    """A compact table as in published studies. With the run record, also changes made by hand during the run."""
    # The phase is left out: it changes after the analysis.
    lines = [f"{results['namespace']}/{results['experiment']}  {results['durationSeconds']:.1f} s  uid {results['uid']}"]
    entry = summary.group(results)
    lines += [f"Group {entry['name']}: {summary.sentence(entry)}"]
    lines += [f"WARNING: {safe.line(text)}" for text in summary.warned(results)]
    lines += [f"Emulation: {sentence(results.get('verdict'), entry)}", *_outage_lines(results["gaps"] or []), ""]
    of_groups, of_publishers = results["groups"] or [], results["publishers"] or []
    digits = summary.places([*of_groups, *of_publishers])
    groups, publishers = ([[entry["name"], *_cells(entry, digits)] for entry in some] for some in (of_groups, of_publishers))
    widths = _widths([_HEADER, *groups, *publishers])
    lines += _table("Deliveries by group (delays in seconds)", _HEADER, groups, widths)
    lines += _table("Deliveries by publisher (delays in seconds)", _HEADER, publishers, widths)
    lines += _pair_lines(results) + _request_lines(results) + _burst_lines(results) + _picture_lines(results)
    if sizes := summary.sizes(results):
        lines.append(f"Message on the wire, median: {', '.join(f'{name} {size} bytes' for name, size in sizes)}")
    for network in results["networks"] or []:
        rate, frames = network.get("bytesPerSecond"), network.get("frames")
        line = f"Network {network['name']}: " + ("not measured" if rate is None else f"{rate:.1f} bytes/s sent")
        if frames is not None:
            line += f"; {frames['sent']} frames sent, {frames['received']} received, dropped {summary.dropped(frames)}"
        lines.append(line)
    lines += [*_age_hops_sinr(results), *_by_hand(plan or {})]
    gaps = results["gaps"] or []
    lines += ["", f"Missing: {len(gaps) or 'nothing'}"]
    lines += [_sentence(gap) for gap in gaps]
    notes = results.get("notes") or []
    lines += ["", "Notes", *map(_sentence, notes)] if notes else []
    return safe.terminal("\n".join(line.rstrip() for line in lines) + "\n")


def _pair_lines(results: dict) -> list[str]:
    """A table of pairs of groups, if there are several."""
    entries = summary.pairs(results)
    digits = summary.places(entries)
    rows = [[summary.pair(entry), *_cells(entry, digits)] for entry in entries]
    return _sized("Deliveries by groups of sender and receiver (delays in seconds)", _HEADER, rows) if rows else []


def _request_lines(results: dict) -> list[str]:
    """A table of requests by group and publisher; nothing if there are none."""
    if "requests" not in results:
        return []
    title = "Requests by group, pair of groups and publisher (response times in seconds)"
    return _sized(title, ["", *summary.REQUEST_HEADER], summary.request_rows(results))


def _burst_lines(results: dict) -> list[str]:
    """The times of bursts by protocols; nothing if no publisher waited for its connection."""
    if "bursts" not in results:
        return []
    header, rows = bursts.matrix(results["bursts"])
    return _sized("Time of a burst by protocols of publisher and subscriber (seconds from the publisher's start)", header, rows)


def _picture_lines(results: dict) -> list[str]:
    """A table of the picture's error and age by group; nothing if no positions were compared."""
    if "picture" not in results:
        return []
    rows = summary.picture(results)
    return _sized("Picture by group of the reported nodes (error in metres, age in seconds)", ["", *summary.PICTURE_HEADER], rows)


def _sentence(entry: dict) -> str:
    return safe.line(f"  {entry['what']}{_where(entry)}: {entry['reason']}")


def _outage_lines(gaps: list[dict]) -> list[str]:
    counts = {name: sum(gap["what"] == name for gap in gaps) for name in OUTAGES}
    said = ", ".join(f"{name} {words.times(count)}" for name, count in counts.items() if count)
    return [f"Radios: INTERRUPTED, {said}; the emulation is judged outside of these gaps only"] if said else []


def _by_hand(plan: dict) -> list[str]:
    """Changes and captures that were made by hand during the run."""
    lines = []
    for live in plan.get("liveChanges") or []:
        lines += [f"  {live['atNanoseconds'] / 1e9:.3f} s  {live['name']}: {words.change(change)}" for change in live["changes"]]
    if lines:
        lines = ["", "Changed by hand (time after T0, name of the LiveChange)", *lines]
    captures = plan.get("captures") or []
    if captures:
        lines += ["", "Captures"]
    for capture in captures:
        ended = ", ended before the run" if capture.get("ended") else ""
        kept = f", only {capture['filter']}" if capture.get("filter") else ""
        lines.append(f"  {capture['name']} on {capture['network']} at {', '.join(capture.get('nodes') or [])}{kept}{ended}")
    return lines


# Counts in the tables for terminals, with their headers.
_SHOWN = {
    "triggered": "triggered",
    "sent": "sent",
    "offered": "offered",
    "received": "received",
    "deliveredPercent": "deliv. %",
    "lost": "lost",
    "unsent": "never sent",
    "duplicates": "dupl.",
}


_HEADER = ["", *_SHOWN.values(), *("mean [95 %]" if q == "mean" else q for q in QUANTILES)]


def _cells(entry: dict, digits: int) -> list[str]:
    counts = entry["messages"]
    delivered = summary.share(counts["received"], counts["offered"]) if counts["offered"] else "-"
    shown = counts | {"deliveredPercent": delivered, "unsent": counts["offered"] - counts["expected"]}
    cells = [str(shown[c]) for c in _SHOWN]
    return cells + [summary.delay(entry, q, digits) or "-" for q in QUANTILES]


def _widths(rows: list[list[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _sized(title: str, header: list[str], rows: list[list[str]]) -> list[str]:
    return _table(title, header, rows, _widths([header, *rows]))


def _table(title: str, header: list[str], rows: list[list[str]], widths: list[int]) -> list[str]:
    def line(cells: list[str]) -> str:
        return "  ".join([cells[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True)])

    return [title, line(header)] + [line(row) for row in rows] + [""]


def _where(gap: dict) -> str:
    node = f" on {gap['node']}" if gap.get("node") else ""
    start, end = gap.get("fromSeconds"), gap.get("toSeconds")
    if start is None:
        return node + (f" up to {end:.3f} s" if end is not None else "")
    return f"{node} from {start:.3f} s" + (f" to {end:.3f} s" if end is not None else "")
