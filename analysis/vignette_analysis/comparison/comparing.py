"""From runs to the figures of a comparison, whose form docs/reference/comparison.md describes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import polars as pl

from ..data.gaps import Gaps, listed
from ..data.run import RunError
from ..figures.analysis import Analysis
from ..figures.deliveries import KINDS, quantiles
from ..figures.statistics import LEVEL, from_zero
from ..figures.verdict import reasons
from . import asked, effects, labels, reproduction
from .effects import Sample, Share
from .loading import BLOCKS, PICTURE_MEDIANS, Loaded, load
from .reference import Reference, read

SCHEMA_VERSION = 2
# Most runs of a comparison, as a round of a campaign has.
MAX_RUNS = 1000
# Most tested pairs of conditions in each group: those of 50 conditions. Beyond, only pairs that differ in one axis.
MAX_PAIRS = 1225


@dataclass
class Compared:
    """Runs side by side."""

    # The JSON form.
    results: dict
    runs: list[Loaded] = field(repr=False)


@dataclass
class _Condition:
    """Runs that are repeats of each other. The unit is a run, or a block where there is only one run."""

    label: str
    runs: list[Loaded]

    @property
    def unit(self) -> str:
        return "run" if len(self.runs) > 1 else "block"

    def described(self) -> dict:
        """The JSON form."""
        return {"label": self.label, "runs": [run.uid for run in self.runs], "unit": self.unit}

    def units(self) -> list[np.ndarray]:
        """The unit of every delivery of every run."""
        if len(self.runs) == 1:
            return [self.runs[0].deliveries["block"].to_numpy()]
        return [np.full(run.deliveries.height, i, dtype=np.uint16) for i, run in enumerate(self.runs)]


_NOTHING = Sample(np.array([]), np.array([]))


@dataclass
class _Group:
    """The deliveries of one group in one condition, or in one run."""

    delays: Sample
    losses: Share | None
    row: dict

    def thinned(self) -> "_Group":
        """The group with thinned samples, as samples of all conditions are large."""
        return _Group(self.delays.thinned(), self.losses, self.row)

    def without_samples(self) -> "_Group":
        """The group's row without samples, for groups that are not tested."""
        return _Group(_NOTHING, None, self.row)


def compared(runs: Sequence[str | Path | Analysis], by: str | None, reference: str | Path | Reference | None) -> Compared:
    """Compare runs; see comparison.compare."""
    if not 2 <= len(runs) <= MAX_RUNS:
        raise RunError(f"{counted(len(runs))}: a comparison takes 2 to {MAX_RUNS}")
    told = read(Path(reference)) if isinstance(reference, str | Path) else reference
    loaded = [load(run) for run in runs]
    _distinct(loaded)
    naming = labels.name(loaded, by)
    conditions = _conditions(loaded, naming)
    run_labels = _run_labels(naming)
    gaps = Gaps()
    for condition in conditions:
        _remarks(condition, gaps)
    if naming.pooled:
        gaps.add("pooled", f"runs of one condition differ in {', '.join(naming.pooled)}")
    names = list(dict.fromkeys(group["name"] for run in loaded for group in run.results["groups"]))
    heads = {run.results.get("headline") for run in loaded}
    names.sort(key=lambda name: name not in heads)
    pairs = _pairs(naming, gaps)
    results = {
        "schemaVersion": SCHEMA_VERSION,
        "level": LEVEL,
        "by": by,
        "fields": [{"field": path, "values": values} for path, values in naming.differences.items()] or None,
        "runs": [_described(run, label, naming.labels[c]) for run, label, c in zip(loaded, run_labels, naming.conditions, strict=True)],
        "conditions": [c.described() for c in conditions],
        "groups": [_group(name, loaded, run_labels, conditions, pairs, gaps) for name in names] or None,
        "axes": _axes(names, loaded, naming, gaps) if len(pairs) < comb(len(conditions), 2) else None,
        "publishers": _publishers(loaded, run_labels) or None,
        "networks": _networks(loaded, run_labels, naming, gaps) or None,
        "messageSizes": _sizes(loaded, run_labels) or None,
        "picture": _picture(loaded, run_labels, gaps) or None,
    }
    compared = [group for part in [results, *(results["axes"] or [])] for group in part["groups"] or []]
    _too_few(conditions, compared, gaps)
    results |= _reproduction(reproduction.Subjects(loaded, run_labels, naming), told, results, gaps)
    return Compared(results | {"warnings": gaps.warnings or None, "notes": gaps.notes or None, "gaps": gaps.found or None}, loaded)


def counted(runs: int) -> str:
    """A number of runs in words."""
    return "1 run" if runs == 1 else f"{runs} runs"


def _reproduction(of: reproduction.Subjects, told: Reference | None, results: dict, gaps: Gaps) -> dict:
    """The reference figures beside one's own, where there are some: of the file, or else of the runs' campaigns."""
    found = reproduction.given(told, of, results, gaps) if told else reproduction.planned(of, results, gaps)
    return {"reference": found} if found else {}


def _conditions(loaded: list[Loaded], naming: labels.Naming) -> list[_Condition]:
    members: list[list[Loaded]] = [[] for _ in naming.labels]
    for run, condition in zip(loaded, naming.conditions, strict=True):
        members[condition].append(run)
    return [_Condition(label, some) for label, some in zip(naming.labels, members, strict=True)]


def _pairs(naming: labels.Naming, gaps: Gaps) -> list[tuple[int, int]]:
    """The tested pairs of conditions: all; if too many, those that differ in one axis; if still too many, none."""
    count = len(naming.labels)
    if comb(count, 2) <= MAX_PAIRS:
        return list(combinations(range(count), 2))
    near = _near(naming.levels)
    tested = near if len(near) <= MAX_PAIRS else []
    what = f"{count} conditions make {comb(count, 2)} pairs, and {MAX_PAIRS} are tested at most: "
    if tested:
        what += f"the {len(tested)} of which all axes but one agree, and the levels of each axis"
    else:
        what += "none of them, but the levels of each axis" if len(naming.axes) > 1 else "none of them"
    gaps.add("differences", what + "; for others compare fewer runs (of a campaign: --where AXIS=LEVEL), or --by AXIS")
    return tested


def _near(levels: list[tuple[str, ...]]) -> list[tuple[int, int]]:
    """Pairs of conditions whose levels differ in one axis only, in the order of all pairs."""
    found = set()
    for axis in range(len(levels[0]) if levels else 0):
        alike: dict[tuple[str, ...], list[int]] = {}
        for i, some in enumerate(levels):
            alike.setdefault(some[:axis] + some[axis + 1 :], []).append(i)
        found |= {pair for some in alike.values() for pair in combinations(some, 2)}
    return sorted(found)


def _axes(names: list[str], runs: list[Loaded], naming: labels.Naming, gaps: Gaps) -> list[dict] | None:
    """For each axis, its levels compared, with the other axes pooled."""
    made = []
    for axis in naming.axes if len(naming.axes) > 1 else []:
        by_level = labels.by_axis(runs, axis)
        levels = _conditions(runs, by_level)
        if comb(len(levels), 2) > MAX_PAIRS:
            gaps.add(f"differences of axis {axis}", f"{len(levels)} levels make more than {MAX_PAIRS} pairs: none is tested")
            continue
        pairs = list(combinations(range(len(levels)), 2))
        groups = [{"name": name} | _pooled(name, levels, pairs, {}) for name in names]
        made.append({"axis": axis, "levels": [level.described() for level in levels], "groups": groups})
    return made or None


def _distinct(runs: list[Loaded]) -> None:
    twice = sorted(uid for uid, count in Counter(run.uid for run in runs).items() if count > 1)
    if twice:
        raise RunError(f"run {', '.join(twice)} is there twice: a run cannot be compared with itself")


def _run_labels(naming: labels.Naming) -> list[str]:
    """Conditions' labels, numbered where a condition has several runs."""
    seen: Counter[int] = Counter()
    sizes = Counter(naming.conditions)
    made = []
    for condition in naming.conditions:
        seen[condition] += 1
        made.append(naming.labels[condition] + (f" #{seen[condition]}" if sizes[condition] > 1 else ""))
    return made


def _described(run: Loaded, label: str, condition: str) -> dict:
    return {
        "label": label,
        "condition": condition,
        "experiment": run.name,
        "namespace": run.plan["namespace"],
        "uid": run.uid,
        "startTime": run.results.get("startTime"),
        "durationSeconds": run.results.get("durationSeconds"),
        "seed": run.plan.get("spec", {}).get("seed"),
        "keptUp": run.kept_up,
        "offBy": run.off_by.get(run.results.get("headline") or "all") or None,
        "complete": not run.lacking,
        "warnings": len(run.results.get("warnings") or []),
        **({"basedOn": run.plan["basedOn"]} if run.plan.get("basedOn") else {}),
    }


def _remarks(condition: _Condition, gaps: Gaps) -> None:
    """Remarks on the runs that a reader of the differences must know."""
    for run in condition.runs:
        where = f"{run.name}@{run.uid[:8]}"
        if run.kept_up is None:
            gaps.add(f"verdict of {where}", "not known: whether the emulation kept up was not judged")
        elif not run.kept_up:
            gaps.add(f"verdict of {where}", f"the emulation did not keep up: {'; '.join(reasons(run.results['verdict']))}")
        for reason in run.lacking:
            gaps.add(f"incomplete {where}", reason)
        for warning in run.results.get("warnings") or []:
            gaps.warn(f"{warning['what']} in {where}", warning["reason"])
    if len(condition.runs) == 1:
        run = condition.runs[0]
        for what, table, correlation in (("", run.deliveries, run.correlation), ("requests of ", run.requests, run.request_correlation)):
            if table is not None and table.height and correlation > 2 / np.sqrt(BLOCKS[-1]):
                reason = f"even {BLOCKS[-1]} blocks of the run correlate with their neighbours: intervals are too narrow and p too small"
                gaps.add(f"blocks of {what}{condition.label}", f"{reason}; repeat the run")


def select(deliveries: pl.DataFrame, name: str) -> np.ndarray:
    """Which deliveries belong to a group of results.json."""
    if name == "all":
        return np.ones(deliveries.height, dtype=bool)
    if name in KINDS:
        return deliveries[name].to_numpy()
    for column in ("group", "within"):
        if name in deliveries[column].dtype.categories:
            return (deliveries[column] == name).fill_null(False).to_numpy()
    return np.zeros(deliveries.height, dtype=bool)


def _group(name: str, runs: list[Loaded], run_labels: list[str], conditions: list[_Condition], pairs: list[tuple[int, int]], gaps: Gaps) -> dict:
    alone = {c.runs[0].uid: i for i, c in enumerate(conditions) if len(c.runs) == 1}
    tested = {i for pair in pairs for i in pair}
    rows, measured, lacking = [], {}, []
    for run, label in zip(runs, run_labels, strict=True):
        single = _Condition(label, [run])
        figures = _summed(name, [run])
        if figures is None:
            lacking.append(label)
        found = _measured(name, single, figures)
        rows.append(found.row | _asked(name, [run]) | {"label": label, "uid": run.uid})
        if (i := alone.get(run.uid)) is not None:
            measured[i] = found.thinned() if i in tested else found.without_samples()
    if lacking:
        gaps.add(f"group {name}", _without(lacking, "has no such group", "have no such group"))
    return {"name": name, "runs": rows} | _pooled(name, conditions, pairs, measured)


def _asked(name: str, runs: list[Loaded]) -> dict:
    """The requests of a group, where there are some."""
    found = asked.of(name, runs)
    return {"requests": found} if found else {}


def _without(runs: list[str], one: str, several: str) -> str:
    """Name runs that lack something; of many only the first, as null figures show all."""
    if len(runs) == 1:
        return f"{runs[0]} {one}"
    return f"{len(runs)} runs {several}: {listed(runs, 5)}"


def _pooled(name: str, conditions: list[_Condition], pairs: list[tuple[int, int]], measured: dict[int, _Group]) -> dict:
    """The rows of conditions and the differences of their pairs. Reuses earlier measurements."""
    tested = {i for pair in pairs for i in pair}
    groups = []
    for i, condition in enumerate(conditions):
        group = measured.get(i) or _measured(name, condition, _summed(name, condition.runs))
        groups.append(group.thinned() if i in tested else group.without_samples())
    rows = [g.row | _asked(name, c.runs) | {"label": c.label, "runs": len(c.runs)} for g, c in zip(groups, conditions, strict=True)]
    differences = [_difference(a, b, groups[a], groups[b], conditions) for a, b in pairs]
    for pair, (a, b) in zip(differences, pairs, strict=True):
        pair["withinLateness"] = _within_lateness(name, pair, conditions[a].runs + conditions[b].runs)
    _adjust(differences)
    return {"conditions": rows, "differences": differences or None} | _request_differences(name, conditions, pairs)


def _request_differences(name: str, conditions: list[_Condition], pairs: list[tuple[int, int]]) -> dict:
    """Differences of response times, and of requests without a receipt, as those of delays and losses; empty without requests."""
    groups = {i: _requested(name, conditions[i]) for i in sorted({i for pair in pairs for i in pair})}
    both = [(a, b) for a, b in pairs if groups[a].losses and groups[b].losses]
    differences = [_difference(a, b, groups[a], groups[b], conditions) for a, b in both]
    _adjust(differences)
    return {"requestDifferences": differences} if differences else {}


def _requested(name: str, condition: _Condition) -> _Group:
    """The samples of a group's requests: response times, and whether each has no receipt. None where the table has others than the results."""
    parts: list[tuple[np.ndarray, ...]] = []
    for number, run in enumerate(condition.runs):
        asked = next((group.get("requests") for group in run.results["groups"] if group["name"] == name), None)
        some = run.requests.filter(pl.Series(select(run.requests, name))) if run.requests is not None else pl.DataFrame()
        if some.height != (asked["triggered"] if asked else 0):
            return _Group(_NOTHING, None, {})
        if some.height:
            delay = some["delay"]
            parts.append((delay.fill_null(0).to_numpy(), delay.is_null().to_numpy(), np.full(some.height, number), some["block"].to_numpy()))
    if not parts:
        return _Group(_NOTHING, None, {})
    delay, missing, run_of, block = (np.concatenate(part) for part in zip(*parts, strict=True))
    unit = run_of if condition.unit == "run" else block
    answered = Sample.of(delay[~missing], unit[~missing]) if not missing.all() else _NOTHING
    losses = Share.of(missing, unit, len(missing), block if condition.unit == "run" else None)
    return _Group(answered.thinned(), losses, {})


def _summed(name: str, runs: list[Loaded]) -> dict | None:
    """Summed counts of runs, and delays if there is one run; None if a run has no such group."""
    found = [g for run in runs for g in run.results["groups"] if g["name"] == name]
    if len(found) < len(runs):
        return None
    if len(found) == 1:
        return {"messages": found[0]["messages"], "delaySeconds": found[0]["delaySeconds"]}
    counts = {key: sum(g["messages"].get(key, 0) for g in found) for key in found[0]["messages"] if not key.endswith("Percent")}
    counts["lostPercent"] = 100.0 * counts["lost"] / counts["expected"] if counts["expected"] else 0.0
    counts["deliveredPercent"] = 100.0 * counts["received"] / counts["offered"] if counts["offered"] else None
    return {"messages": counts}


def _measured(name: str, condition: _Condition, figures: dict | None) -> _Group:
    """The samples of a group, and its row of the table."""
    empty = {"messages": None, "delaySeconds": None, "confidence": None}
    if figures is None:
        return _Group(_NOTHING, None, empty)
    # Known delays, whether each offered delivery was lost, and the unit and block of each.
    parts: list[tuple[np.ndarray, ...]] = []
    for number, (run, unit) in enumerate(zip(condition.runs, condition.units(), strict=True)):
        which = select(run.deliveries, name)
        delay = run.deliveries["delay"].filter(pl.Series(which))
        block = run.deliveries["block"].to_numpy()
        unsent = [_unsent(name, run, of, first) for of, first in ((unit, number), (block, 0))]
        missing = np.concatenate([delay.is_null().to_numpy(), np.ones(len(unsent[0]), bool)])
        parts.append(
            (delay.drop_nulls().to_numpy(), missing, *(np.concatenate([of[which], more]) for of, more in zip((unit, block), unsent, strict=True)))
        )
    missing, unit, block = (np.concatenate([part[i] for part in parts]) for i in (1, 2, 3))
    delays = Sample.of(np.concatenate([part[0] for part in parts]), unit[~missing]) if not missing.all() else _NOTHING
    row = empty | {"delaySeconds": quantiles(delays.values)} | figures
    if not len(missing):
        return _Group(_NOTHING, None, row)
    messages = sum(run.messages.get(name, 0) for run in condition.runs) + figures["messages"].get("neverSent", 0)
    losses = Share.of(missing, unit, messages, block if len(condition.runs) > 1 else None)
    return _Group(delays, losses, row | {"confidence": _confidence(delays, losses)})


def _unsent(name: str, run: Loaded, units: np.ndarray, first: int) -> np.ndarray:
    """The units of deliveries that were never sent. Their times are unknown: they are distributed evenly over the run's units.

    A run in which nothing was sent is one unit, the first.
    """
    counts = next(group["messages"] for group in run.results["groups"] if group["name"] == name)
    those = np.unique(units) if len(units) else np.full(1, first, units.dtype)
    return np.resize(those, counts["offered"] - counts["expected"])


def _confidence(delays: Sample, losses: Share) -> dict:
    missing = losses.interval().times(100)
    return {
        "deliveredPercent": {"low": 100 - missing["high"], "high": 100 - missing["low"]},
        "medianSeconds": _limits(effects.median(delays)) if delays.count else None,
        "meanSeconds": _from_zero(_limits(effects.mean(delays)), delays) if delays.count else None,
    }


def _from_zero(limits: dict | None, delays: Sample) -> dict | None:
    found = from_zero(limits and (limits["low"], limits["high"]), delays.values)
    return found and {"low": found[0], "high": found[1]}


def _limits(interval: effects.Interval) -> dict | None:
    """The limits of an interval in ns as seconds; None where there is none."""
    found = interval.times(1e-9)
    return None if found["low"] is None else {key: found[key] for key in ("low", "high")}


def _difference(a: int, b: int, first: _Group, second: _Group, conditions: list[_Condition]) -> dict:
    """The differences of two conditions; positive where the second one has more."""
    pair = {"from": conditions[a].label, "to": conditions[b].label, "delay": None, "loss": None}
    if first.delays.count and second.delays.count:
        delta, test = effects.brunner_munzel(first.delays, second.delays)
        pair["delay"] = {
            "shiftSeconds": effects.shift(first.delays, second.delays).times(1e-9),
            "cliffsDelta": vars(delta),
            "brunnerMunzel": _test(test),
            "mannWhitney": {"u": (other := effects.mann_whitney(first.delays, second.delays)).statistic} | _p(other),
            "units": [_units(conditions[i], g.delays.count) for i, g in ((a, first), (b, second))],
        }
    if first.losses and second.losses:
        difference, test = effects.loss_difference(first.losses, second.losses)
        pair["loss"] = {
            "percentagePoints": difference.times(100),
            "welch": _test(test),
            "designEffects": [first.losses.design_effect, second.losses.design_effect],
        }
    return pair


def _within_lateness(name: str, pair: dict, runs: list[Loaded]) -> list[str]:
    """Differences no larger than the summed bounds of the two runs with the most lateness."""
    found = []
    for measure, figure, estimated in (("delay", "median", "shiftSeconds"), ("loss", "delivered", "percentagePoints")):
        off = sorted(run.off_by_of(name).get(figure, 0.0) for run in runs)[-2:]
        if pair[measure] and 0 < abs(pair[measure][estimated]["estimate"]) <= sum(off):
            found.append(measure)
    return found


def _units(condition: _Condition, count: int) -> dict:
    return {"unit": condition.unit, "count": count}


def _test(test: effects.Test) -> dict:
    return {"statistic": test.statistic, "degreesOfFreedom": test.degrees_of_freedom} | _p(test)


def _p(test: effects.Test) -> dict:
    return {"p": test.p, "tooFew": test.least_p}


def _adjust(pairs: list[dict]) -> None:
    """Add Holm's p. A family is one test of one group for all pairs, without tests that no data could make significant."""
    for measure, name in (("delay", "brunnerMunzel"), ("delay", "mannWhitney"), ("loss", "welch")):
        tests = [pair[measure][name] for pair in pairs if pair[measure]]
        family = [test for test in tests if test["tooFew"] <= 1 - LEVEL]
        adjusted, least = (effects.holm([test[key] for test in family]) for key in ("p", "tooFew"))
        for test in tests:
            test |= {"pHolm": None, "tooFew": True}
        for test, p, possible in zip(family, adjusted, least, strict=True):
            test |= {"pHolm": p, "tooFew": possible > 1 - LEVEL}
        for test in tests:
            if test["tooFew"]:
                test["p"] = test["pHolm"] = None


def _too_few(conditions: list[_Condition], compared: list[dict], gaps: Gaps) -> None:
    """Note what too few repeats cannot show."""
    few = [f"{c.label} ({len(c.runs)})" for c in conditions if 1 < len(c.runs) < effects.FEWEST_REPEATS]
    if few:
        reason = f"too few repeats to tell how far runs lie apart, make {effects.FEWEST_REPEATS} or more: "
        gaps.note("intervals of shares and medians", reason + listed(few, 5))
    pairs = [pair for group in compared for pair in [*(group["differences"] or []), *group.get("requestDifferences", [])]]
    without = sum(any(test["tooFew"] for test in tests) for pair in pairs if (tests := _tests(pair)))
    if without:
        reason = f"too few repeats to tell in {without} of {len(pairs)} differences: no test of so few can give a p below {1 - LEVEL:.2g}"
        gaps.note("tests", f"{reason}; that is no sign that conditions are equal")


def _tests(pair: dict) -> list[dict]:
    delay, loss = pair["delay"] or {}, pair["loss"] or {}
    return [test for test in (delay.get("brunnerMunzel"), delay.get("mannWhitney"), loss.get("welch")) if test]


def _publishers(runs: list[Loaded], run_labels: list[str]) -> list[dict]:
    """The figures of every publisher in every run; null where a run does not have it."""
    tables = [{p["name"]: p for p in run.results["publishers"]} for run in runs]
    names = dict.fromkeys(name for table in tables for name in table)
    return [
        {
            "name": name,
            "node": next(t[name]["node"] for t in tables if name in t),
            "runs": [_cells(t.get(name), la) for t, la in zip(tables, run_labels, strict=True)],
        }
        for name in names
    ]


def _cells(figures: dict | None, label: str) -> dict:
    return {"label": label, "messages": figures and figures["messages"], "delaySeconds": figures and figures["delaySeconds"]}


def _networks(runs: list[Loaded], run_labels: list[str], naming: labels.Naming, gaps: Gaps) -> list[dict]:
    """Bytes per second of every run, and their mean over the repeats of each condition; null where a run has none."""
    tables = [{n["name"]: n for n in run.results["networks"]} for run in runs]
    names = dict.fromkeys(name for table in tables for name in table)
    found = []
    for name in names:
        values = [table.get(name, {}).get("bytesPerSecond") for table in tables]
        if lacking := [label for label, value in zip(run_labels, values, strict=True) if value is None]:
            gaps.add(f"bytesPerSecond of {name}", _without(lacking, "does not have it", "do not have it"))
        conditions = []
        for c, label in enumerate(naming.labels):
            mean, interval = reproduction.mean_of_runs([v for v, own in zip(values, naming.conditions, strict=True) if own == c])
            conditions.append({"label": label, "bytesPerSecond": mean, "confidence": {"bytesPerSecond": interval}})
        rows = [{"label": la, "bytesPerSecond": v} for la, v in zip(run_labels, values, strict=True)]
        found.append({"name": name, "runs": rows, "conditions": conditions})
    return found


def _sizes(runs: list[Loaded], run_labels: list[str]) -> list[dict]:
    """The median size of messages on the wire by protocol, in every run; null where a run has none."""
    tables = [{entry["protocol"]: entry["medianBytes"] for entry in run.results.get("messageSizes") or []} for run in runs]
    names = sorted({name for table in tables for name in table})
    labelled = list(zip(run_labels, tables, strict=True))
    return [{"protocol": name, "runs": [{"label": la, "medianBytes": table.get(name)} for la, table in labelled]} for name in names]


def _picture(runs: list[Loaded], run_labels: list[str], gaps: Gaps) -> list[dict]:
    """Median error and age of the picture by group of reported nodes, in every run; null where a run has none."""
    tables = [{entry["name"]: entry for entry in run.results.get("picture") or []} for run in runs]
    names = dict.fromkeys(name for table in tables for name in table)
    found = []
    for name in names:
        rows = [{"label": la} | {key: table.get(name, {}).get(key) for key in PICTURE_MEDIANS} for la, table in zip(run_labels, tables, strict=True)]
        if lacking := [row["label"] for row in rows if None in row.values()]:
            gaps.add(f"picture of {name}", _without(lacking, "does not have it", "do not have it"))
        found.append({"name": name, "runs": rows})
    return found
