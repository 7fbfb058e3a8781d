"""The forms of a comparison: text, JSON, CSV, LaTeX, and one HTML file."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

from ..latex import escape
from .comparing import Comparison

COUNTS = ("sent", "expected", "received", "lost")
QUANTILES = ("min", "p25", "median", "p75", "max")
NOTHING = "-"
# Beside the label of every run, in every table, that is not known to have been emulated on time and to be whole.
MARK = "*"
DEFINITIONS = (
    "Delays in seconds, received - sent. [ ]: 95 % confidence intervals, of loss by Wilson, of medians by Woodruff, from the variance of units: "
    "blocks of a run, or whole runs where there are repeats.",
    "Shift: Hodges-Lehmann, median of all differences of delays. Delta: Cliff's, P(longer) - P(shorter), 0 where neither tends to be longer.",
    "p: Brunner-Munzel for delays, Mann-Whitney (MW) of the units' medians beside it, Welch for loss; adjusted by Holm for the number of pairs.",
)


def text(comparison: Comparison) -> str:
    """Tables for a terminal."""
    lines = []
    for title, header, rows in tables(comparison.results):
        lines += [title, *_aligned(header, rows), ""]
    lines += [*DEFINITIONS, *([f"{MARK} emulation late or not judged, or results incomplete"] if _doubtful(comparison.results) else [])]
    gaps = comparison.results["gaps"] or []
    lines += ["", f"Gaps: {len(gaps) or 'none'}", *(f"  {gap['what']}: {gap['reason']}" for gap in gaps)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def tables(results: dict) -> list[tuple[str, list[str], list[list[str]]]]:
    """Every table: title, header, and rows of text; the first column is the label."""
    made = [("Runs", ["label", "experiment", "run", "seed", "emulation", "results"], [_run_cells(run, results) for run in results["runs"]])]
    if results["fields"]:
        header = ["field", *(marked(run["label"], results) for run in results["runs"])]
        made.append(("What differs", header, [[f["field"], *map(_cut, f["values"])] for f in results["fields"]]))
    for group in results["groups"] or []:
        if any(row["messages"] and row["messages"]["expected"] for row in group["runs"]):
            made += _group_tables(group, results)
    if results["publishers"]:
        made.append(("Publishers", ["publisher", "label", *COUNTS, "lost %", *QUANTILES], _publisher_cells(results)))
    return made


def _group_tables(group: dict, results: dict) -> list[tuple[str, list[str], list[list[str]]]]:
    networks = (results["networks"] or []) if group["name"] == "all" else []
    header = ["label", *COUNTS, "lost % [95 %]", "min", "p25", "median [95 %]", "p75", "max", *(f"{n['name']} B/s" for n in networks)]
    header.append("emulation")
    rows = []
    for i, row in enumerate(group["runs"]):
        volume = [_number(n["runs"][i]["bytesPerSecond"], ".1f") for n in networks]
        run = results["runs"][i]
        rows.append([marked(run["label"], results), *_figures(row), *volume, _verdict(run)])
    for row in group["conditions"]:
        if row["runs"] > 1:
            rows.append([f"{marked(row['label'], results)} ({row['runs']} runs)", *_figures(row), *([NOTHING] * len(networks)), ""])
    made = [(f"Group {group['name']}", header, rows)]
    if group["differences"]:
        header = ["from", "to", "shift (s) [95 %]", "delta [95 %]", "p", "MW p", "loss, points [95 %]", "p", "units"]
        made.append((f"Differences in group {group['name']}", header, [_difference(pair, results) for pair in group["differences"]]))
    return made


def _figures(row: dict) -> list[str]:
    counts, delay, confidence = row["messages"], row["delaySeconds"], row["confidence"] or {}
    cells = [str(counts[c]) if counts else NOTHING for c in COUNTS]
    cells.append(_estimate(counts and counts["lostPercent"], confidence.get("lostPercent"), ".2f"))
    for q in QUANTILES:
        interval = confidence.get("medianSeconds") if q == "median" else None
        cells.append(_estimate(delay and delay[q], interval, ".4f"))
    return cells


def _estimate(value: float | None, interval: dict | None, form: str) -> str:
    if value is None:
        return NOTHING
    limits = f" [{interval['low']:{form}}, {interval['high']:{form}}]" if interval and interval["low"] is not None else ""
    return f"{value:{form}}{limits}"


def _number(value: float | None, form: str) -> str:
    return NOTHING if value is None else f"{value:{form}}"


def _difference(pair: dict, results: dict) -> list[str]:
    cells = [marked(pair["from"], results), marked(pair["to"], results)]
    if delay := pair["delay"]:
        shift, delta = delay["shiftSeconds"], delay["cliffsDelta"]
        cells += [_estimate(shift["estimate"], shift, "+.4f"), _estimate(delta["estimate"], delta, "+.3f")]
        cells += [_probability(delay["brunnerMunzel"]["pHolm"]), _probability(delay["mannWhitney"]["pHolm"])]
    else:
        cells += [NOTHING] * 4
    if loss := pair["loss"]:
        points = loss["percentagePoints"]
        cells += [_estimate(points["estimate"], points, "+.2f"), _probability(loss["welch"]["pHolm"])]
    else:
        cells += [NOTHING] * 2
    units = [f"{u['count']} {u['unit']}s" for u in delay["units"]] if delay else []
    return [*cells, ", ".join(units) or NOTHING]


def _probability(p: float | None) -> str:
    if p is None:
        return NOTHING
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def _run_cells(run: dict, results: dict) -> list[str]:
    state = "complete" if run["complete"] else "INCOMPLETE"
    return [marked(run["label"], results), f"{run['namespace']}/{run['experiment']}", run["uid"], str(run["seed"]), _verdict(run), state]


def _verdict(run: dict) -> str:
    words = {True: "kept up", False: "LATE", None: "not judged"}[run["keptUp"]]
    return words if run["complete"] else f"{words}, INCOMPLETE"


def _doubtful(results: dict) -> set[str]:
    """Labels of runs and conditions that a reader must not trust without looking."""
    doubtful = [run for run in results["runs"] if run["keptUp"] is not True or not run["complete"]]
    return {run["label"] for run in doubtful} | {run["condition"] for run in doubtful}


def marked(label: str, results: dict) -> str:
    """A label as tables and plots show it."""
    return f"{label} {MARK}" if label in _doubtful(results) else label


def _publisher_cells(results: dict) -> list[list[str]]:
    rows = []
    for publisher in results["publishers"]:
        for entry in publisher["runs"]:
            rows.append([publisher["name"], marked(entry["label"], results), *_figures(entry | {"confidence": None})])
    return rows


def _cut(value: str) -> str:
    return value if len(value) <= 40 else value[:39] + "…"


def _aligned(header: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    left = {"label", "experiment", "run", "from", "to", "field", "emulation", "results", "units", "publisher"}
    return ["  ".join(c.ljust(w) if h in left else c.rjust(w) for c, w, h in zip(row, widths, header, strict=True)) for row in [header, *rows]]


def as_json(comparison: Comparison) -> str:
    """The results as docs/compare.md describes them."""
    return json.dumps(comparison.results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(comparison: Comparison) -> str:
    """One row for each group of each run, and of each condition with several runs; differences are in the JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    intervals = ("lostPercentLow", "lostPercentHigh", "medianSecondsLow", "medianSecondsHigh")
    delays = [f"{q}Seconds" for q in QUANTILES]
    writer.writerow(
        ["group", "label", "experiment", "uid", "runs", *COUNTS, "lostPercent", *intervals[:2], *delays, *intervals[2:], "emulation", "complete"]
    )
    runs = {run["uid"]: run for run in comparison.results["runs"]}
    for group in comparison.results["groups"] or []:
        for row in group["runs"]:
            run = runs[row["uid"]]
            told = [_verdict(run | {"complete": True}), str(run["complete"]).lower()]
            writer.writerow([group["name"], row["label"], run["experiment"], run["uid"], 1, *_plain(row), *told])
        for row in group["conditions"]:
            if row["runs"] > 1:
                writer.writerow([group["name"], row["label"], "", "", row["runs"], *_plain(row), "", ""])
    return out.getvalue()


def _plain(row: dict) -> list:
    counts, delay, confidence = row["messages"] or {}, row["delaySeconds"] or {}, row["confidence"] or {}
    lost, middle = confidence.get("lostPercent") or {}, confidence.get("medianSeconds") or {}
    cells = [counts.get(c) for c in (*COUNTS, "lostPercent")] + [lost.get("low"), lost.get("high")]
    return cells + [delay.get(q) for q in QUANTILES] + [middle.get("low"), middle.get("high")]


def latex(comparison: Comparison) -> str:
    """Tables for \\usepackage{booktabs}, as the papers have them: a table of figures and one of differences for each group."""
    parts = ["% \\usepackage{booktabs}"]
    for title, header, rows in tables(comparison.results):
        if not title.startswith(("Group", "Differences")):
            continue
        columns = "ll" if title.startswith("Differences") else "l"
        body = [" & ".join(map(escape, row)) + r" \\" for row in [header, *rows]]
        lines = [
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{escape(title)}}}",
            rf"\begin{{tabular}}{{{columns}{'r' * (len(header) - len(columns))}}}",
        ]
        lines += [r"\toprule", body[0], r"\midrule", *body[1:], r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        parts.append("\n".join(lines))
    notes = [*DEFINITIONS, *([f"{MARK} emulation late or not judged, or results incomplete"] if _doubtful(comparison.results) else [])]
    return "\n\n".join([*parts, "\n".join(f"% {note}" for note in notes)]) + "\n"


def html(comparison: Comparison) -> str:
    """One file that needs nothing else."""
    from jinja2 import Environment, PackageLoader

    from .boxes import boxes

    environment = Environment(loader=PackageLoader(__package__), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("comparison.html").render(
        results=comparison.results,
        tables=tables(comparison.results),
        boxes=boxes(comparison),
        definitions=DEFINITIONS,
        marked=bool(_doubtful(comparison.results)),
        mark=MARK,
    )


# What each form is called.
FORMS: dict[str, Callable[[Comparison], str]] = {"text": text, "json": as_json, "csv": as_csv, "latex": latex, "html": html}
_FILES = {"text": "comparison.txt", "json": "comparison.json", "csv": "comparison.csv", "latex": "comparison.tex", "html": "comparison.html"}


def write(comparison: Comparison, directory: Path) -> list[Path]:
    """Write every form into a folder and return the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / _FILES[form] for form in FORMS]
    for form, path in zip(FORMS, paths, strict=True):
        path.write_text(FORMS[form](comparison), encoding="utf-8")
    return paths
