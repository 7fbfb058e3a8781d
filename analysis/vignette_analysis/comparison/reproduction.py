"""How close the figures of a comparison are to reference figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..data.gaps import Gaps
from ..data.run import RunError
from ..figures.statistics import from_zero, repeats_interval
from .labels import Naming
from .loading import Loaded
from .reference import METRICS, Figure, Reference, unknown

# Metrics whose name in verdict.off_by is another.
_OFF = {"medianSeconds": "median", "p95Seconds": "p95", "deliveredPercent": "delivered"}
_RESPONSES = {f"response{q.capitalize()}Seconds": q for q in ("min", "median", "mean", "p95", "max")}
_COUNTS_OF_REQUESTS = ("requests", "failed", "outstanding", "retransmissions")
_COUNTS = ("triggered", "sent", "offered", "received", "lost", "unsent")


@dataclass(frozen=True)
class Subjects:
    """What a comparison is of."""

    runs: list[Loaded]
    labels: list[str]
    naming: Naming

    def members(self, condition: int) -> frozenset[int]:
        """The runs of a condition, by their places."""
        return frozenset(i for i, c in enumerate(self.naming.conditions) if c == condition)


@dataclass(frozen=True)
class _Subject:
    """The condition, or the single run, that a reference figure stands beside."""

    label: str
    runs: list[Loaded]
    # Places of its row in the lists of the results: of runs, or of conditions.
    kind: str
    place: int


def given(reference: Reference, of: Subjects, results: dict, gaps: Gaps) -> dict:
    """Put the figures of a file beside one's own. Raises RunError for a run or group that nothing here is called."""
    names = _names(of)
    problems = []
    for figure in reference.figures:
        if figure.run not in names:
            problems.append(f"{reference.name}, row {figure.row}, column run: {unknown(figure.run, list(names))}")
        elif figure.group and figure.group not in (known := _groups(figure.metric, results)):
            problems.append(f"{reference.name}, row {figure.row}, column group: {unknown(figure.group, known)}")
    _check(problems)
    return _beside([(reference.name, figure, names[figure.run]) for figure in reference.figures], of, results, gaps)


def _check(problems: list[str]) -> None:
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise RunError("; ".join(problems[:5]) + more)


def planned(of: Subjects, results: dict, gaps: Gaps) -> dict | None:
    """Put the figures beside one's own that the runs' campaigns have; None where they have none."""
    points: dict[tuple[str, str], list[int]] = {}
    for i, run in enumerate(of.runs):
        if place := run.plan.get("campaign"):
            points.setdefault((place["uid"], place["point"]), []).append(i)
    found = []
    for (_, point), places in points.items():
        # A campaign may get its figures, or others, after its first runs.
        having = [i for i in places if of.runs[i].plan.get("reference")]
        if not having:
            continue
        newest = max(having, key=lambda i: of.runs[i].results.get("startTime") or "")
        reference = _of_plan(of.runs[newest], point)
        if any(_of_plan(of.runs[i], point) != reference for i in having):
            gaps.add(f"reference figures of {point}", "they were changed between runs: those of the last run are shown")
        if lacking := len(places) - len(having):
            gaps.add(f"reference figures of {point}", f"{lacking} of {len(places)} runs have none: those of the last run that has some are shown")
        for metric in sorted({figure.metric for figure in reference.figures} - set(METRICS)):
            gaps.add(f"reference figures of {point}", f"this version does not know metric {metric}: its figures are left out")
        found += [(reference.name, figure, frozenset(places)) for figure in reference.figures if figure.metric in METRICS]
    return _beside(found, of, results, gaps) if found else None


def _of_plan(run: Loaded, point: str) -> Reference:
    """The figures in a run's record. Runs' records are the operator's, which has checked them."""
    told = run.plan["reference"]
    rows = (Figure(0, point, str(f.get("group") or ""), str(f["metric"]), float(f["value"]), str(f.get("note") or "")) for f in told["figures"])
    return Reference(str(told["name"]), tuple(rows))


def _names(of: Subjects) -> dict[str, frozenset[int]]:
    """What a row may name, with the places of its runs: conditions first, then points, runs, experiments and UIDs."""
    names: dict[str, frozenset[int]] = {label: of.members(c) for c, label in enumerate(of.naming.labels)}
    kinds = (
        [(run.plan.get("campaign") or {}).get("point") for run in of.runs],
        of.labels,
        [run.name for run in of.runs],
        [run.uid for run in of.runs],
    )
    for kind in kinds:
        members: dict[str, set[int]] = {}
        for i, name in enumerate(kind):
            if name:
                members.setdefault(name, set()).add(i)
        for name, places in members.items():
            names.setdefault(name, frozenset(places))
    return names


def _groups(metric: str, results: dict) -> list[str]:
    """Names that may stand in column group."""
    of = results["networks"] if metric == "bytesPerSecond" else results["groups"]
    return [entry["name"] for entry in of or []]


def _subjects(places: frozenset[int], of: Subjects) -> list[_Subject]:
    """The conditions, or else the run, that these runs are; none where they are a part of a condition."""
    conditions = list(dict.fromkeys(of.naming.conditions[i] for i in sorted(places)))
    if frozenset().union(*(of.members(c) for c in conditions)) == places:
        return [_Subject(of.naming.labels[c], [of.runs[i] for i in sorted(of.members(c))], "conditions", c) for c in conditions]
    if len(places) == 1:
        (place,) = places
        return [_Subject(of.labels[place], [of.runs[place]], "runs", place)]
    return []


def _beside(rows: Iterable[tuple[str, Figure, frozenset[int]]], of: Subjects, results: dict, gaps: Gaps) -> dict:
    figures: list[dict] = []
    pooled: set[str] = set()
    for figure, entries in _once([(figure, _entries(source, figure, places, of, results)) for source, figure, places in rows], gaps):
        if not entries:
            pooled.add(figure.run)
        figures += entries
    for name in sorted(pooled):
        gaps.add(f"reference figures of {name}", "its runs are compared together with others, by another field: they stand beside nothing")
    for entry in figures:
        if entry["measured"] is None:
            gaps.add(f"reference figure {entry['metric']}", f"{entry['label']} has no such figure{_of_group(entry['group'])}")
    counts = {name: sum(entry["covered"] is value for entry in figures) for name, value in (("covered", True), ("notCovered", False))}
    measured = sum(entry["measured"] is not None for entry in figures)
    counts |= {"withoutInterval": measured - sum(counts.values()), "notMeasured": len(figures) - measured}
    return counts | {"figures": figures}


def _entries(source: str, figure: Figure, places: frozenset[int], of: Subjects, results: dict) -> list[dict]:
    return [_compared(source, figure, subject, results) for subject in _subjects(places, of)]


def _once(found: list[tuple[Figure, list[dict]]], gaps: Gaps) -> list[tuple[Figure, list[dict]]]:
    """Each figure once, though a run or group has several names. Raises RunError for rows of a file; of records the first is taken."""
    first: dict[tuple[str, str, str], Figure] = {}
    problems, kept = [], []
    for figure, entries in found:
        new = []
        for entry in entries:
            other = first.setdefault((entry["label"], entry["group"], entry["metric"]), figure)
            if other is figure:
                new.append(entry)
            elif figure.row:
                problems.append(f"{entry['source']}, row {figure.row}: the same figure as row {other.row}")
            else:
                gaps.add(f"reference figures of {figure.run}", f"{entry['metric']} of {entry['group']} is there twice: the first is shown")
        if new or not entries:
            kept.append((figure, new))
    _check(list(dict.fromkeys(problems)))
    return kept


def _of_group(group: str) -> str:
    return f" of {group}" if group else ""


def _compared(source: str, figure: Figure, subject: _Subject, results: dict) -> dict:
    group = figure.group or _implied(figure.metric, subject, results)
    measured, interval = _measured(figure.metric, group, subject, results)
    difference = None if measured is None else measured - figure.value
    off = max((run.off_by_of(group).get(_OFF.get(figure.metric, ""), 0.0) for run in subject.runs), default=0.0)
    return {
        "source": source,
        "label": subject.label,
        "runs": len(subject.runs),
        "group": group,
        "metric": figure.metric,
        "value": figure.value,
        "measured": measured,
        "interval": interval,
        "difference": difference,
        "differencePercent": 100 * difference / figure.value if difference is not None and figure.value else None,
        "covered": interval["low"] <= figure.value <= interval["high"] if interval else None,
        "withinLateness": difference is not None and 0 < abs(difference) <= off,
        "note": figure.note,
    }


def _implied(metric: str, subject: _Subject, results: dict) -> str:
    """The group that is meant without one: the headline's, or the only network."""
    if metric == "bytesPerSecond":
        names = _groups(metric, results)
        return names[0] if len(names) == 1 else ""
    return subject.runs[0].results.get("headline") or "all"


def _measured(metric: str, group: str, subject: _Subject, results: dict) -> tuple[float | None, dict | None]:
    """One's own figure with its interval of confidence. Of repeats a count is the mean of the runs."""
    if metric == "bytesPerSecond":
        return mean_of_runs(_rates(group, subject, results))
    entry = next((entry for entry in results["groups"] or [] if entry["name"] == group), None)
    if entry is None:
        return None, None
    if metric in _COUNTS or metric in _COUNTS_OF_REQUESTS:
        uids = {run.uid for run in subject.runs}
        return mean_of_runs([_count(metric, row) for row in entry["runs"] if row["uid"] in uids])
    row = entry[subject.kind][subject.place]
    confidence = row["confidence"] or {}
    if metric == "deliveredPercent":
        return (row["messages"] or {}).get(metric), confidence.get(metric)
    if metric == "receiptPercent":
        return _of_requests(row, lambda asked: asked[metric], metric)
    if metric in _RESPONSES:
        return _of_requests(
            row, lambda asked: (asked["responseSeconds"] or {}).get(_RESPONSES[metric]), "meanSeconds" if metric == "responseMeanSeconds" else ""
        )
    return (row["delaySeconds"] or {}).get(metric.removesuffix("Seconds")), confidence.get(metric)


def _of_requests(row: dict, value, interval: str) -> tuple[float | None, dict | None]:
    asked = row.get("requests")
    return (value(asked), asked["confidence"].get(interval)) if asked else (None, None)


def _count(metric: str, row: dict) -> int | None:
    if metric in _COUNTS_OF_REQUESTS:
        asked = row.get("requests")
        if not asked:
            return None
        return {"requests": asked["triggered"], "failed": sum((asked["failed"] or {}).values())}.get(metric, asked.get(metric))
    counts = row["messages"]
    if not counts:
        return None
    return counts["offered"] - counts["expected"] if metric == "unsent" else counts[metric]


def _rates(network: str, subject: _Subject, results: dict) -> list[float | None]:
    entry = next((entry for entry in results["networks"] or [] if entry["name"] == network), None)
    uids = {run.uid for run in subject.runs}
    return [value["bytesPerSecond"] for value, run in zip(entry["runs"], results["runs"], strict=True) if run["uid"] in uids] if entry else []


def mean_of_runs(values: Sequence[float | None]) -> tuple[float | None, dict | None]:
    """The mean of counts or rates of runs, with Student's interval where there are several. None where a run has none."""
    if not values or None in values:
        return None, None
    interval = from_zero(repeats_interval(values), values)
    return sum(values) / len(values), interval and {"low": interval[0], "high": interval[1]}
