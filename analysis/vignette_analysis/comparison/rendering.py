"""The forms of a comparison: text, JSON, CSV, LaTeX, and one HTML file."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..data import safe
from ..figures import summary
from ..figures.verdict import off_text
from ..report.latex import escape
from .comparing import Compared
from .loading import PICTURE_MEDIANS
from .marks import MARK, WITHIN, covered, doubtful, marked

COUNTS = ("triggered", "sent", "offered", "received", "lost", "unsent")
# Heads of these in tables; unsent ones are called so in CSV only.
_COUNT_HEADS = ("triggered", "sent", "offered", "received", "lost", "never sent")
QUANTILES = ("min", "p25", "median", "mean", "p75", "p95", "max")
NOTHING = "-"
DEFINITIONS = (
    "Delivered: of the offered deliveries, those that arrived; lost on the way and never sent are apart.",
    "Delays in seconds, received - sent, of all deliveries of repeats together. "
    "[ ]: 95 % confidence intervals, of shares by Wilson, of medians by Woodruff, of means by Student's t, "
    "from the variance of units: blocks of a run, or whole runs where there are repeats.",
    "Shift: Hodges-Lehmann, median of all differences of delays. Delta: Cliff's, P(longer) - P(shorter), 0 where neither tends to be longer.",
    "p: Brunner-Munzel for delays, Mann-Whitney (MW) of the units' medians beside it, Welch for shares; adjusted by Holm for the number of pairs.",
)
_OF_REQUESTS = "Response times of requests in seconds, receipt - sent. Of several runs the mean is that of their means, with Student's t interval."


# Most runs with a column each in the table of differing fields. Beyond, the table has a row for each value.
MAX_COLUMNS = 12
# Most values of a field in that form, and most runs that are named beside one.
MAX_VALUES, MAX_NAMED = 20, 3
# Most runs with a row each in the tables of groups, if conditions have several.
MAX_RUN_ROWS = 100
# Most rows of publishers, or of the picture's groups, in all runs. Beyond, they are in the JSON only.
MAX_PUBLISHER_ROWS = 1000
# Most rows of a table, and most gaps, on a terminal, and its columns of letters. Wider tables go on below themselves.
MAX_LINES, MAX_WIDTH = 40, 100
# As MAX_RUN_ROWS, on a terminal.
MAX_RUN_LINES = 12
# Longest label in tables on a terminal. Longer ones are numbered.
MAX_LABEL = 16
# Most rows of a LaTeX table on one page, and of a table that the HTML page shows unfolded.
MAX_PAGE_ROWS = 40


@dataclass(frozen=True)
class Table:
    """A table of text; the first column is the label."""

    # The kind of its content: runs, fields, reference, figures, requests, differences, requestDifferences, sizes, picture or publishers.
    kind: str
    title: str
    header: list[str]
    rows: list[list[str]]
    # A sentence on rows that are left out, and where they are; or empty.
    left_out: str = ""
    # The group whose runs have a row each, which boxes can show.
    group: str = ""

    @property
    def long(self) -> bool:
        """Report whether it has too many rows for a glance."""
        return len(self.rows) > MAX_PAGE_ROWS


def text(comparison: Compared) -> str:
    """Tables for a terminal."""
    names = _numbers(comparison.results)
    lines = []
    for table in tables(_renamed(comparison.results, names), MAX_RUN_LINES):
        shown = [i for i, name in enumerate(table.header) if table.kind not in ("figures", "publishers") or name not in _NOT_ON_TERMINALS]
        cells = [[row[i] for i in shown] for row in [table.header, *table.rows[:MAX_LINES]]]
        lines += [table.title, *_folded(*cells), *_more(len(table.rows), "rows")]
        lines += [*([f"({table.left_out})"] if table.left_out else []), ""]
    lines = [*_legend(names, lines), *lines, "All counts and quantiles are in the forms csv and html."]
    lines += _notes(comparison.results) + _remarks(comparison.results)
    warnings = comparison.results["warnings"] or []
    lines += ["", *(f"WARNING: {warning['what']}: {warning['reason']}" for warning in warnings[:MAX_LINES])] if warnings else []
    gaps = comparison.results["gaps"] or []
    lines += ["", f"Gaps: {len(gaps) or 'none'}", *(f"  {gap['what']}: {gap['reason']}" for gap in gaps[:MAX_LINES]), *_more(len(gaps), "gaps")]
    return "".join(safe.line(line).rstrip() + "\n" for line in lines)


def _numbers(results: dict) -> dict[str, str]:
    """Numbers for labels that are too long for columns on a terminal. A run's has its condition's, and which repeat it is."""
    levels = [level for axis in results["axes"] or [] for level in axis["levels"]]
    long = dict.fromkeys(entry["label"] for entry in [*results["conditions"], *levels] if len(entry["label"]) > MAX_LABEL)
    names = {label: f"C{number}" for number, label in enumerate(long, 1)}
    for run in results["runs"]:
        if (label := run["label"]).startswith(condition := run["condition"]) and condition in names:
            names[label] = names[condition] + label.removeprefix(condition)
        elif len(label) > MAX_LABEL:
            names[label] = f"R{len(names) + 1}"
    return names


def _renamed(value: object, names: dict[str, str], key: str = "") -> object:
    """A copy of results with other labels."""
    if isinstance(value, dict):
        return {name: _renamed(part, names, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_renamed(part, names, key) for part in value]
    return names.get(value, value) if isinstance(value, str) and key in ("label", "condition", "from", "to") else value


def _legend(names: dict[str, str], lines: list[str]) -> list[str]:
    """What the numbers in these lines stand for."""
    used = {number for line in lines for number in re.findall(r"\b[CR]\d+\b", line)}
    rows = [f"{number:4} {label}" for label, number in names.items() if number in used]
    return ["Labels", *rows, ""] if rows else []


def _more(count: int, what: str) -> list[str]:
    return [f"({count - MAX_LINES} more {what} are in the forms html and json)"] if count > MAX_LINES else []


def _notes(results: dict) -> list[str]:
    doubts = [f"{MARK} emulation late or not judged, results incomplete, or warnings"] if doubtful(results) else []
    return [*_closeness(results), *DEFINITIONS, *([_OF_REQUESTS] if _asked(results) else []), *doubts, *_origins(results)]


def _asked(results: dict) -> bool:
    """Report whether some run has requests."""
    return any("requests" in row for group in results["groups"] or [] for row in group["runs"])


def _origins(results: dict) -> list[str]:
    """The runs that others are based on, and the changes of their specs."""
    lines = []
    for run in results["runs"]:
        if origin := run.get("basedOn"):
            changes = [f"{c['path']} {c['to'] or 'none'} instead of {c['from'] or 'none'}" for c in origin.get("changes") or []]
            more = [f"{origin['moreChanges']} more"] if origin.get("moreChanges") else []
            words = "with these differences: " + ", ".join(changes + more) if changes else "whose spec is not known"
            sentence = f"{run['label']} is based on {origin.get('name') or 'run'} {origin['uid']}, {words}"
            lines.append(" ".join(sentence.split()))  # a value may have several lines, and a note has one
    return lines[:MAX_LINES]


def _remarks(results: dict) -> list[str]:
    """The notes as sentences."""
    return [f"{note['what'][0].upper()}{note['what'][1:]}: {note['reason']}." for note in results["notes"] or []]


def tables(results: dict, most_runs: int | None = None) -> list[Table]:
    """Every table. Groups have a row for each of so many runs, MAX_RUN_ROWS by default, or for conditions only."""
    most_runs = MAX_RUN_ROWS if most_runs is None else most_runs
    marks = doubtful(results)
    made = [
        Table("runs", "Runs", ["label", "experiment", "run", "seed", "emulation", "results"], [_run_cells(run, marks) for run in results["runs"]])
    ]
    if results["fields"]:
        made.append(_fields_table(results, marks))
    if figures := _references(results):
        made.append(_reference_table(figures, marks))
    for axis in results["axes"] or []:
        for group in axis["groups"]:
            if any(row["messages"] and row["messages"]["offered"] for row in group["conditions"]):
                made += _axis_tables(axis["axis"], group, marks)
    alike: dict[str, list[dict]] = {}
    for group in results["groups"] or []:
        if any(row["messages"] and row["messages"]["offered"] for row in group["runs"]):
            # If all deliveries are of one kind, several groups are the same.
            alike.setdefault(json.dumps(group | {"name": ""}), []).append(group)
    for groups in alike.values():
        made += _group_tables(groups[0], [group["name"] for group in groups], results, marks, most_runs)
    if results["messageSizes"]:
        made.append(_sizes_table(results, marks))
    if results["picture"]:
        made.append(_picture_table(results, marks))
    if results["publishers"]:
        made.append(_publishers_table(results, marks))
    return made


def _fields_table(results: dict, marks: set[str]) -> Table:
    labels = [marked(run["label"], marks) for run in results["runs"]]
    if len(labels) <= MAX_COLUMNS:
        return Table("fields", "What differs", ["field", *labels], [[f["field"], *map(_cut, f["values"])] for f in results["fields"]])
    rows, left_out = [], ""
    for differing in results["fields"]:
        having: dict[str, list[str]] = {}
        for value, label in zip(differing["values"], labels, strict=True):
            having.setdefault(value, []).append(label)
        rows += [[differing["field"], _cut(value), str(len(some)), _named(some)] for value, some in list(having.items())[:MAX_VALUES]]
        if len(having) > MAX_VALUES:
            rows.append([differing["field"], f"{len(having) - MAX_VALUES} other values", NOTHING, NOTHING])
            left_out = "the values of all runs are in the form json"
    return Table("fields", "What differs", ["field", "value", "runs", "which"], rows, left_out)


def _references(results: dict) -> list[dict]:
    return (results.get("reference") or {"figures": []})["figures"]


def _reference_table(figures: list[dict], marks: set[str]) -> Table:
    several = len({entry["source"] for entry in figures}) > 1
    header = [
        "label",
        "of",
        "figure",
        "reference",
        "measured [95 %]",
        "difference",
        "difference %",
        "interval",
        *(["source"] if several else []),
        "note",
    ]
    rows = [_reference_cells(entry, marks, several) for entry in figures]
    sources = list(dict.fromkeys(entry["source"] for entry in figures))
    return Table("reference", f"Reference figures: {', '.join(sources)}", header, rows)


def _reference_cells(entry: dict, marks: set[str], several: bool) -> list[str]:
    form = next((form for end, form in (("Seconds", ".4f"), ("Percent", ".2f")) if entry["metric"].endswith(end)), ".1f")
    cells = [marked(entry["label"], marks), entry["group"] or NOTHING, entry["metric"], f"{entry['value']:.10g}"]
    is_share = entry["metric"].endswith("Percent")
    cells.append(_share(entry["measured"], entry["interval"]) if is_share else _estimate(entry["measured"], entry["interval"], form))
    cells.append(_number(entry["difference"], f"+{form}"))
    cells += [_number(entry["differencePercent"], "+.1f"), covered(entry)]
    return [*cells, *([entry["source"]] if several else []), entry["note"] or NOTHING]


def _closeness(results: dict) -> list[str]:
    """A sentence on how many reference figures the intervals cover."""
    if not _references(results):
        return []
    found = results["reference"]
    rest = [f"{found[name]} {what}" for name, what in (("withoutInterval", "without an interval"), ("notMeasured", "not measured")) if found[name]]
    figures = f"{len(found['figures'])} reference figure{'s' if len(found['figures']) != 1 else ''}"
    inside = f"Of {figures} the interval of one's own covers {found['covered']}, and not {found['notCovered']}"
    return [inside + (f"; {', '.join(rest)}" if rest else "") + ". Differences are measured - reference."]


def _named(labels: list[str]) -> str:
    return "; ".join(labels[:MAX_NAMED]) + (" …" if len(labels) > MAX_NAMED else "")


_FIGURES = [*_COUNT_HEADS, "delivered % [95 %]", "min", "p25", "median [95 %]", "mean [95 %]", "p75", "p95", "max"]


def _axis_tables(axis: str, group: dict, marks: set[str]) -> list[Table]:
    rows = [[marked(row["label"], marks), str(row["runs"]), *_figures(row)] for row in group["conditions"]]
    made = [Table("figures", f"Levels of {axis} in group {group['name']}", ["label", "runs", *_FIGURES], rows)]
    made += _request_tables(f"Requests by levels of {axis} in group {group['name']}", [(row["label"], row) for row in group["conditions"]], marks)
    if group["differences"]:
        made.append(_differences_table(f"Differences between levels of {axis} in group {group['name']}", group, marks))
    return made + _request_differences_tables(f"Differences of requests between levels of {axis} in group {group['name']}", group, marks)


def _groups(names: list[str]) -> str:
    """Titles of groups; those with the same deliveries share one."""
    return f"group {names[0]}" if len(names) == 1 else f"groups {', '.join(names[:-1])} and {names[-1]} (the same deliveries)"


def _group_tables(group: dict, names: list[str], results: dict, marks: set[str], most_runs: int) -> list[Table]:
    """Tables of a group, which stands for all of these names."""
    title, networks = _groups(names), (results["networks"] or []) if "all" in names else []
    header = ["label", *_FIGURES, *(f"{n['name']} B/s" for n in networks)]
    several = any(row["runs"] > 1 for row in group["conditions"])
    short = several and len(group["runs"]) > most_runs
    rows = []
    for i, row in enumerate([] if short else group["runs"]):
        volume = [_number(n["runs"][i]["bytesPerSecond"], ".1f") for n in networks]
        rows.append([marked(results["runs"][i]["label"], marks), *_figures(row), *volume])
    for i, row in enumerate(group["conditions"]):
        if row["runs"] > 1 or short:
            runs = f" ({row['runs']} runs)" if row["runs"] > 1 else ""
            volume = [_number(n["conditions"][i]["bytesPerSecond"], ".1f") for n in networks]  # without intervals: the table is wide
            rows.append([marked(row["label"], marks) + runs, *_figures(row), *volume])
    left_out = f"conditions only: the {len(group['runs'])} runs are in the forms csv and json, bytes per second in json" if short else ""
    made = [Table("figures", title[0].upper() + title[1:], header, rows, left_out, group["name"])]
    named = [] if short else [(run["label"], row) for run, row in zip(results["runs"], group["runs"], strict=True)]
    named += [(row["label"], row) for row in group["conditions"] if row["runs"] > 1 or short]
    made += _request_tables(f"Requests in {title}", named, marks)
    if group["differences"]:
        made.append(_differences_table(f"Differences in {title}", group, marks))
    return made + _request_differences_tables(f"Differences of requests in {title}", group, marks)


def _request_tables(title: str, named: list[tuple[str, dict]], marks: set[str]) -> list[Table]:
    """A table of requests by run and condition; none without requests."""
    if not any("requests" in row for _, row in named):
        return []
    header = ["label", "requests", "receipts % [95 %]", "failed", "outstanding", "retransmissions", "min", "median", "mean [95 %]", "p95", "max"]
    rows = []
    for label, row in named:
        several = f" ({row['runs']} runs)" if isinstance(row.get("runs"), int) and row["runs"] > 1 else ""
        rows.append([marked(label, marks) + several, *_requests(row.get("requests"))])
    return [Table("requests", title, header, rows)]


def _requests(entry: dict | None) -> list[str]:
    if entry is None:
        return [NOTHING] * 10
    response, confidence = entry["responseSeconds"] or {}, entry["confidence"]
    cells = [str(entry["triggered"]), _share(entry["receiptPercent"], confidence["receiptPercent"]), summary.failed(entry)]
    cells += [str(entry["outstanding"]), _number(entry["retransmissions"], "d")]
    return cells + [_estimate(response.get(q), confidence.get("meanSeconds") if q == "mean" else None, ".4f") for q in _RESPONSES]


def _differences_table(title: str, group: dict, marks: set[str]) -> Table:
    header = ["from", "to", "shift (s) [95 %]", "delta [95 %]", "p", "MW p", "not delivered, points [95 %]", "p", "units"]
    return Table("differences", title, header, _differences(group["differences"], marks))


def _request_differences_tables(title: str, group: dict, marks: set[str]) -> list[Table]:
    """A table of differences in response times and receipts; none without requests."""
    if not group.get("requestDifferences"):
        return []
    header = ["from", "to", "shift (s) [95 %]", "delta [95 %]", "p", "MW p", "no receipt, points [95 %]", "p", "units"]
    return [Table("requestDifferences", title, header, _differences(group["requestDifferences"], marks))]


def _figures(row: dict) -> list[str]:
    counts, delay, confidence = row["messages"], row["delaySeconds"] or {}, row["confidence"] or {}
    cells = [str(_count(counts, c)) if counts else NOTHING for c in COUNTS]
    cells.append(_share(counts and counts.get("deliveredPercent"), confidence.get("deliveredPercent")))
    for q in QUANTILES:
        cells.append(_estimate(delay.get(q), confidence.get(f"{q}Seconds"), ".4f"))
    return cells


def _count(counts: dict, name: str) -> int:
    return counts["offered"] - counts["expected"] if name == "unsent" else counts[name]


def _estimate(value: float | None, interval: dict | None, form: str) -> str:
    return _limited(value, interval, lambda number: f"{number:{form}}")


def _share(percent: float | None, interval: dict | None) -> str:
    return _limited(percent, interval, summary.percent)


def _limited(value: float | None, interval: dict | None, write: Callable[[float], str]) -> str:
    if value is None:
        return NOTHING
    limits = f" [{write(interval['low'])}, {write(interval['high'])}]" if interval and interval["low"] is not None else ""
    return f"{write(value)}{limits}"


def _number(value: float | None, form: str) -> str:
    return NOTHING if value is None else f"{value:{form}}"


def _differences(pairs: list[dict], marks: set[str]) -> list[list[str]]:
    digits = summary.decimals(pair["delay"]["shiftSeconds"]["estimate"] for pair in pairs if pair["delay"])
    return [_difference(pair, marks, f"+.{digits}f") for pair in pairs]


def _difference(pair: dict, marks: set[str], form: str) -> list[str]:
    cells = [marked(pair["from"], marks), marked(pair["to"], marks)]
    if delay := pair["delay"]:
        shift, delta = delay["shiftSeconds"], delay["cliffsDelta"]
        cells += [_estimate(shift["estimate"], shift, form), _estimate(delta["estimate"], delta, "+.3f")]
        cells += [_probability(delay["brunnerMunzel"]), _probability(delay["mannWhitney"])]
    else:
        cells += [NOTHING] * 4
    if loss := pair["loss"]:
        points = loss["percentagePoints"]
        cells += [_estimate(points["estimate"], points, "+.2f"), _probability(loss["welch"])]
    else:
        cells += [NOTHING] * 2
    for measure, cell in (("delay", 2), ("loss", 6)):
        if measure in pair.get("withinLateness", ()):
            cells[cell] += WITHIN
    units = [f"{u['count']} {u['unit']}s" for u in delay["units"]] if delay else []
    return [*cells, ", ".join(units) or NOTHING]


def _probability(test: dict) -> str:
    if test["tooFew"]:
        return "too few"
    if (p := test["pHolm"]) is None:
        return NOTHING
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def _run_cells(run: dict, marks: set[str]) -> list[str]:
    state = "complete" if run["complete"] else "INCOMPLETE"
    return [marked(run["label"], marks), f"{run['namespace']}/{run['experiment']}", run["uid"], str(run["seed"]), _verdict(run), state]


def _verdict(run: dict) -> str:
    words = {True: "kept up: yes", False: "kept up: NO", None: "not judged"}[run["keptUp"]]
    if off := off_text(run.get("offBy") or {}):
        words += f", off by at most {off}"
    return words if run["complete"] else f"{words}, INCOMPLETE"


def _sizes_table(results: dict, marks: set[str]) -> Table:
    sizes = results["messageSizes"]
    labels = [run["label"] for run in results["runs"]]
    rows = [[marked(label, marks), *(_number(entry["runs"][i]["medianBytes"], "g") for entry in sizes)] for i, label in enumerate(labels)]
    return Table("sizes", "Message on the wire, median bytes by protocol", ["label", *(entry["protocol"] for entry in sizes)], rows)


def _picture_table(results: dict, marks: set[str]) -> Table:
    groups, left_out = results["picture"], ""
    if len(groups) * len(results["runs"]) > MAX_PUBLISHER_ROWS:
        groups, left_out = groups[:1], f"group {groups[0]['name']} only: all {len(groups)} groups are in the form json"
    rows = [
        [group["name"], marked(row["label"], marks), *(_number(row[key], ".1f") for key in PICTURE_MEDIANS)]
        for group in groups
        for row in group["runs"]
    ]
    return Table("picture", "Picture of the nodes, medians by group", ["nodes", "label", "error (m)", "age (s)"], rows, left_out)


def _publishers_table(results: dict, marks: set[str]) -> Table:
    count = len(results["publishers"]) * len(results["runs"])
    header = ["publisher", "label", *_COUNT_HEADS, "delivered %", *QUANTILES]
    if count > MAX_PUBLISHER_ROWS:
        return Table(
            "publishers",
            "Publishers",
            header,
            [],
            f"{len(results['publishers'])} publishers in {len(results['runs'])} runs: they are in the form json",
        )
    rows = []
    for publisher in results["publishers"]:
        for entry in publisher["runs"]:
            rows.append([publisher["name"], marked(entry["label"], marks), *_figures(entry | {"confidence": None})])
    return Table("publishers", "Publishers", header, rows)


def _cut(value: str) -> str:
    value = " ".join(value.split())
    return value if len(value) <= 40 else value[:39] + "…"


# Columns that are aligned to the left.
_TEXTS = {
    "label",
    "experiment",
    "run",
    "from",
    "to",
    "field",
    "emulation",
    "results",
    "units",
    "publisher",
    "nodes",
    "value",
    "which",
    "of",
    "figure",
    "interval",
    "source",
    "note",
}


# Columns of figures that the terminal leaves to the other forms.
_NOT_ON_TERMINALS = {"triggered", "sent", "received", "lost", "min", "p25", "mean [95 %]", "mean", "p75"}
# Leading columns that say what a row is of: each part of a wide table has them.
_KEYS = {"label", "from", "to", "publisher", "nodes", "field", "of", "figure"}

# Begins the second part of a wide table of differences, whatever the widths of its figures.
_SECOND = "MW p"


def _folded(header: list[str], *rows: list[str]) -> list[str]:
    """Aligned columns in parts below each other, none wider than a terminal unless a single column is."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    keys = next((i for i, name in enumerate(header) if name not in _KEYS), len(header))
    parts, width = [[*range(keys)]], sum(widths[:keys]) + 2 * keys
    taken, wide = width, sum(widths) + 2 * len(widths) > MAX_WIDTH
    for i in range(keys, len(header)):
        full = taken + widths[i] > MAX_WIDTH or (wide and header[i] == _SECOND)
        if full and len(parts[-1]) > keys:
            parts.append([*range(keys)])
            taken = width
        parts[-1].append(i)
        taken += widths[i] + 2
    return [_aligned_row([(row[i], header[i], widths[i]) for i in part]) for part in parts for row in [header, *rows]]


def _aligned_row(cells: list[tuple[str, str, int]]) -> str:
    return "  ".join(cell.ljust(width) if name in _TEXTS else cell.rjust(width) for cell, name, width in cells)


def as_json(comparison: Compared) -> str:
    """The results as docs/reference/comparison.md describes them."""
    return json.dumps(comparison.results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(comparison: Compared) -> str:
    """A row for each group of each run, and of each condition with several runs. Differences are in the JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    intervals = ("deliveredPercentLow", "deliveredPercentHigh", "medianSecondsLow", "medianSecondsHigh", "meanSecondsLow", "meanSecondsHigh")
    delays = [f"{q}Seconds" for q in QUANTILES]
    asked, references = _asked(comparison.results), _References(comparison.results)
    writer.writerow(
        ["group", "label", "experiment", "uid", "runs", *COUNTS, "deliveredPercent", *intervals[:2], *delays, *intervals[2:], "emulation", "complete"]
        + (_REQUEST_COLUMNS if asked else [])
        + references.columns
    )
    runs = {run["uid"]: run for run in comparison.results["runs"]}

    def write(group: str, row: dict, of: list, state: list) -> None:
        more = [*(_plain_requests(row) if asked else []), *references.cells(group, row["label"])]
        writer.writerow(map(safe.cell, [group, row["label"], *of, *_plain(row), *state, *more]))

    for group in comparison.results["groups"] or []:
        for row in group["runs"]:
            run = runs[row["uid"]]
            state = [_verdict(run | {"complete": True}), str(run["complete"]).lower()]
            write(group["name"], row, [run["experiment"], row["uid"], 1], state)
        for row in group["conditions"]:
            if row["runs"] > 1:
                write(group["name"], row, ["", "", row["runs"]], ["", ""])
    return out.getvalue()


class _References:
    """Columns of reference figures: for each metric that has one its value, the difference, and whether the interval covers it."""

    def __init__(self, results: dict):
        # A row is of a group, and bytesPerSecond is of a network.
        figures = [entry for entry in _references(results) if entry["metric"] != "bytesPerSecond"]
        self._metrics = list(dict.fromkeys(entry["metric"] for entry in figures))
        self._figures = {(entry["group"], entry["label"], entry["metric"]): entry for entry in figures}
        self.columns = [f"{metric}{what}" for metric in self._metrics for what in ("Reference", "Difference", "Covered")]

    def cells(self, group: str, label: str) -> list:
        """The cells of a row."""
        found = [self._figures.get((group, label, metric), {}) for metric in self._metrics]
        return [entry.get(key) for entry in found for key in ("value", "difference", "covered")]


_RESPONSES = ("min", "median", "mean", "p95", "max")
_REQUEST_COLUMNS = ["requests", "receiptPercent", "receiptPercentLow", "receiptPercentHigh", "failed", "outstanding", "retransmissions"]
_REQUEST_COLUMNS += [*(f"response{q.capitalize()}Seconds" for q in _RESPONSES), "responseMeanSecondsLow", "responseMeanSecondsHigh"]


def _plain_requests(row: dict) -> list:
    if "requests" not in row:
        return [None] * len(_REQUEST_COLUMNS)
    entry = row["requests"]
    response, confidence = entry["responseSeconds"] or {}, entry["confidence"]
    share, mean = (confidence.get(name) or {} for name in ("receiptPercent", "meanSeconds"))
    cells = [entry["triggered"], entry["receiptPercent"], share.get("low"), share.get("high"), sum((entry["failed"] or {}).values())]
    return [*cells, entry["outstanding"], entry["retransmissions"], *(response.get(q) for q in _RESPONSES), mean.get("low"), mean.get("high")]


def _plain(row: dict) -> list:
    counts, delay, confidence = row["messages"], row["delaySeconds"] or {}, row["confidence"] or {}
    share, *delays = (confidence.get(name) or {} for name in ("deliveredPercent", "medianSeconds", "meanSeconds"))
    cells = [counts and _count(counts, c) for c in COUNTS] + [counts and counts.get("deliveredPercent"), share.get("low"), share.get("high")]
    return cells + [delay.get(q) for q in QUANTILES] + [interval.get(end) for interval in delays for end in ("low", "high")]


def latex(comparison: Compared) -> str:
    """Tables of figures and of differences for each group, with booktabs. Long ones take several pages."""
    shown = [table for table in tables(comparison.results) if table.kind in _IN_LATEX]
    packages = "booktabs,longtable" if any(table.long for table in shown) else "booktabs"
    parts = [rf"% \usepackage{{{packages}}}", *(_latex_table(table) for table in shown)]
    return "\n\n".join([*parts, "\n".join(f"% {safe.line(note)}" for note in _notes(comparison.results) + _remarks(comparison.results))]) + "\n"


_IN_LATEX = ("reference", "figures", "requests", "differences", "requestDifferences", "sizes", "picture")


def _latex_table(table: Table) -> str:
    if table.kind == "reference":
        columns = "".join("l" if name in _TEXTS else "r" for name in table.header)
    else:
        labels = 2 if table.kind in ("differences", "requestDifferences", "picture") else 1
        columns = "l" * labels + "r" * (len(table.header) - labels)
    header, *body = [" & ".join(map(escape, row)) + r" \\" for row in [table.header, *table.rows]]
    caption = escape(table.title + (f" ({table.left_out})" if table.left_out else ""))
    if table.long:
        lines = [rf"\begin{{longtable}}{{{columns}}}", rf"\caption{{{caption}}}\\", r"\toprule", header, r"\midrule", r"\endhead"]
        return "\n".join([*lines, *body, r"\bottomrule", r"\end{longtable}"])
    lines = [r"\begin{table}", r"\centering\small", rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule"]
    return "\n".join([*lines, *body, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


# Headings of the page's sections and titles of their tables, by kind of table. Other headings are the tables' own titles.
_HEADINGS = {"runs": "What was compared", "publishers": "Publishers", "reference": "Beside the reference"}
_CAPTIONS = {
    "runs": "Runs",
    "fields": "What differs",
    "reference": "Reference figures",
    "figures": "Figures",
    "requests": "Requests",
    "differences": "Differences",
    "requestDifferences": "Differences of requests",
    "sizes": "Message on the wire",
    "picture": "Medians",
    "publishers": "Figures",
}


def html(comparison: Compared) -> str:
    """One file that needs nothing else."""
    from ..report import page, parts
    from .boxes import Boxes

    boxes, sections = Boxes(comparison), []
    for i, table in enumerate(tables(comparison.results)):
        if table.kind not in ("fields", "requests", "differences", "requestDifferences"):
            sections.append(parts.Section(f"part-{i}", _HEADINGS.get(table.kind, table.title)))
        if table.kind == "reference":
            sections[-1].parts += map(parts.Text, _closeness(comparison.results))
        header, *rows = ([_kept_together(cell) for cell in row] for row in (table.header, *table.rows))
        texts = frozenset(i for i, name in enumerate(header) if name in _TEXTS or table.kind == "fields")
        grid = parts.Table(_CAPTIONS[table.kind], header, rows, table.long, texts)
        if rows:
            sections[-1].parts.append(_drawn(table, grid, boxes, comparison.results))
        sections[-1].parts += [parts.Text(text, "note") for text in (table.left_out, boxes.left_out if table.kind == "runs" else "") if text]
    sections.append(parts.Section("missing", "What is missing or in doubt", _missing(comparison.results)))
    title = f"Comparison of {len(comparison.results['runs'])} runs"
    return page(
        "comparison.html", title=title, warnings=comparison.results["warnings"] or [], sections=sections, notes=_notes(comparison.results)
    ).decode()


def _drawn(table: Table, grid, boxes, results: dict):
    """A table below its chart, where it has one."""
    if table.kind == "reference":
        from .closeness import chart

        return chart(results["reference"]["figures"], doubtful(results), grid)
    return boxes.chart("Delays", table.group, grid) if table.group else grid


def _kept_together(cell: str) -> str:
    """A cell that may break between an estimate and its interval, and not before a mark."""
    return cell.replace(", ", ",\u00a0").replace("95 %", "95\u00a0%") if "[" in cell else cell.replace(f" {MARK}", f"\u00a0{MARK}")


def _missing(results: dict) -> list:
    from ..report import parts

    rows = [(gap["what"], gap["reason"]) for gap in results["gaps"] or []]
    gaps = parts.Table("Gaps", ("What", "Why"), rows, len(rows) > MAX_PAGE_ROWS, frozenset({0, 1}))
    return [*map(parts.Text, _remarks(results)), gaps if rows else parts.Text("Nothing is missing: no gap was found.")]


# File names of the forms.
FORMS: dict[str, Callable[[Compared], str]] = {"text": text, "json": as_json, "csv": as_csv, "latex": latex, "html": html}
_FILES = {"text": "comparison.txt", "json": "comparison.json", "csv": "comparison.csv", "latex": "comparison.tex", "html": "comparison.html"}


def write(comparison: Compared, directory: Path) -> list[Path]:
    """Write every form into a folder and return the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / _FILES[form] for form in FORMS]
    for form, path in zip(FORMS, paths, strict=True):
        path.write_text(FORMS[form](comparison), encoding="utf-8")
    return paths
