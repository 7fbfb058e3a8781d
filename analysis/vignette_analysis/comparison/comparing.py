"""From runs to the figures of a comparison, whose form docs/compare.md describes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

from ..analysis import Analysis
from ..figures import quantiles
from ..gaps import Gaps
from ..run import RunError
from ..statistics import LEVEL
from . import effects, labels
from .effects import Sample, Share
from .loading import BLOCKS, Loaded, load

SCHEMA_VERSION = 1
MAX_RUNS = 50


@dataclass
class Comparison:
    """Runs side by side."""

    # The JSON form.
    results: dict
    runs: list[Loaded] = field(repr=False)

    def render(self, form: str) -> str:
        """Write the comparison as text, json, csv, latex or html."""
        from . import rendering

        return rendering.FORMS[form](self)

    def text(self) -> str:
        """The tables for a terminal."""
        return self.render("text")

    def write(self, directory: Path) -> list[Path]:
        """Write every form into a folder and return the paths."""
        from . import rendering

        return rendering.write(self, directory)


@dataclass
class _Condition:
    """Runs that are repeats of each other. The unit is a run, or a block where there is only one run."""

    label: str
    runs: list[Loaded]

    @property
    def unit(self) -> str:
        return "run" if len(self.runs) > 1 else "block"

    def units(self) -> list[np.ndarray]:
        """The unit of every delivery of every run."""
        if len(self.runs) == 1:
            return [self.runs[0].blocks]
        return [np.full(run.deliveries.height, i) for i, run in enumerate(self.runs)]


@dataclass
class _Group:
    """The deliveries of one group in one condition, or in one run."""

    delays: Sample
    losses: Share | None
    row: dict


def compare(runs: Sequence[str | Path | Analysis], by: str | None = None) -> Comparison:
    """Compare runs: folders of runs, or analyses.

    Runs whose specs differ in nothing but the seed are repeats of one condition; `by` makes conditions of the values of one
    field instead, or of each run. Raises RunError for a run that cannot be read, and for a field that does not differ.
    """
    if not 2 <= len(runs) <= MAX_RUNS:
        raise RunError(f"{len(runs)} runs: a comparison takes 2 to {MAX_RUNS}")
    loaded = [load(run) for run in runs]
    _distinct(loaded)
    naming = labels.name(loaded, by)
    conditions = [
        _Condition(label, [run for run, c in zip(loaded, naming.conditions, strict=True) if c == i]) for i, label in enumerate(naming.labels)
    ]
    run_labels = _run_labels(naming)
    gaps = Gaps()
    for condition in conditions:
        _remarks(condition, gaps)
    if naming.pooled:
        gaps.add("pooled", f"runs of one condition differ in {', '.join(naming.pooled)}")
    names = list(dict.fromkeys(group["name"] for run in loaded for group in run.results.get("groups") or []))
    results = {
        "schemaVersion": SCHEMA_VERSION,
        "level": LEVEL,
        "by": by,
        "fields": [{"field": path, "values": values} for path, values in naming.differences.items()] or None,
        "runs": [_described(run, label, naming.labels[c]) for run, label, c in zip(loaded, run_labels, naming.conditions, strict=True)],
        "conditions": [{"label": c.label, "runs": [run.uid for run in c.runs], "unit": c.unit} for c in conditions],
        "groups": [_group(name, loaded, run_labels, conditions, gaps) for name in names] or None,
        "publishers": _publishers(loaded, run_labels) or None,
        "networks": _networks(loaded, run_labels, gaps) or None,
    }
    return Comparison(results | {"gaps": gaps.found or None}, loaded)


def _distinct(runs: list[Loaded]) -> None:
    uids = [run.uid for run in runs]
    twice = sorted({uid for uid in uids if uids.count(uid) > 1})
    if twice:
        raise RunError(f"run {', '.join(twice)} is there twice: a run cannot be compared with itself")


def _run_labels(naming: labels.Naming) -> list[str]:
    """Conditions' labels, numbered where a condition has several runs."""
    seen: dict[int, int] = {}
    made = []
    for condition in naming.conditions:
        seen[condition] = seen.get(condition, 0) + 1
        several = naming.conditions.count(condition) > 1
        made.append(naming.labels[condition] + (f" #{seen[condition]}" if several else ""))
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
        "complete": not run.lacking,
    }


def _remarks(condition: _Condition, gaps: Gaps) -> None:
    """What a reader must know of the runs before believing in differences."""
    for run in condition.runs:
        where = f"{run.name}@{run.uid[:8]}"
        if run.kept_up is None:
            gaps.add(f"verdict of {where}", "not known: whether the emulation kept up was not judged")
        elif not run.kept_up:
            late = run.results["verdict"].get("late") or []
            gaps.add(f"verdict of {where}", f"the emulation was late {len(late)} times: what differs may be the emulator's doing")
        for reason in run.lacking:
            gaps.add(f"incomplete {where}", reason)
    if len(condition.runs) == 1:
        run = condition.runs[0]
        if run.deliveries.height and run.correlation(run.blocks) > 2 / np.sqrt(BLOCKS[-1]):
            reason = f"even {BLOCKS[-1]} blocks of the run correlate with their neighbours: intervals are too narrow and p too small; repeat the run"
            gaps.add(f"blocks of {condition.label}", reason)


def select(deliveries: pl.DataFrame, name: str) -> np.ndarray:
    """Which deliveries belong to a group of results.json."""
    if name == "all":
        return np.ones(deliveries.height, dtype=bool)
    if name in ("local", "cross"):
        return deliveries[name].to_numpy()
    return (deliveries["group"] == name).fill_null(False).to_numpy()


def _group(name: str, runs: list[Loaded], run_labels: list[str], conditions: list[_Condition], gaps: Gaps) -> dict:
    rows = []
    for run, label in zip(runs, run_labels, strict=True):
        figures = next((g for g in run.results.get("groups") or [] if g["name"] == name), None)
        if figures is None:
            gaps.add(f"group {name}", f"{label} has no such group")
        rows.append(_measured(name, [run], [run.blocks], figures).row | {"label": label, "uid": run.uid})
    groups = [_measured(name, c.runs, c.units(), _summed(name, c.runs)) for c in conditions]
    pooled = [g.row | {"label": c.label, "runs": len(c.runs)} for g, c in zip(groups, conditions, strict=True)]
    pairs = [_difference(a, b, groups[a], groups[b], conditions) for a, b in combinations(range(len(groups)), 2)]
    _adjust(pairs)
    return {"name": name, "runs": rows, "conditions": pooled, "differences": pairs or None}


def _summed(name: str, runs: list[Loaded]) -> dict | None:
    """Figures of runs together; None where one of them has no such group."""
    found = [g for run in runs for g in run.results.get("groups") or [] if g["name"] == name]
    if len(found) < len(runs):
        return None
    counts = {key: sum(g["messages"].get(key, 0) for g in found) for key in found[0]["messages"] if key != "lostPercent"}
    counts["lostPercent"] = 100.0 * counts["lost"] / counts["expected"] if counts["expected"] else 0.0
    if len(found) == 1:
        return {"messages": counts, "delaySeconds": found[0]["delaySeconds"]}
    delays = [run.deliveries.filter(select(run.deliveries, name))["delay"].drop_nulls().to_numpy() for run in runs]
    return {"messages": counts, "delaySeconds": quantiles(np.sort(np.concatenate(delays)))}


def _measured(name: str, runs: list[Loaded], units: list[np.ndarray], figures: dict | None) -> _Group:
    """The samples of a group, and its row of the table."""
    parts = [
        (run.deliveries.filter(which), unit[which]) for run, unit in zip(runs, units, strict=True) if (which := select(run.deliveries, name)).any()
    ]
    empty = {"messages": None, "delaySeconds": None, "confidence": None}
    if figures is None:
        return _Group(Sample(np.array([]), np.array([])), None, empty)
    row = empty | {"messages": figures["messages"], "delaySeconds": figures["delaySeconds"]}
    if not parts:
        return _Group(Sample(np.array([]), np.array([])), None, row)
    delay = np.concatenate([part["delay"].fill_null(0).to_numpy() for part, _ in parts])
    lost = np.concatenate([part["delay"].is_null().to_numpy() for part, _ in parts])
    unit = np.concatenate([unit for _, unit in parts])
    delays = Sample.of(delay[~lost], unit[~lost])
    losses = Share.of(lost, unit, sum(part.select("publisher", "sent").n_unique() for part, _ in parts))
    return _Group(delays, losses, row | {"confidence": _confidence(delays, losses)})


def _confidence(delays: Sample, losses: Share) -> dict:
    lost = losses.interval().times(100)
    middle = effects.median(delays).times(1e-9) if delays.count else None
    limits = ("low", "high")
    return {
        "lostPercent": {key: lost[key] for key in limits},
        "medianSeconds": {key: middle[key] for key in limits} if middle and middle["low"] is not None else None,
    }


def _difference(a: int, b: int, first: _Group, second: _Group, conditions: list[_Condition]) -> dict:
    """The differences of two conditions; positive where the second one has more."""
    pair = {"from": conditions[a].label, "to": conditions[b].label, "delay": None, "loss": None}
    if first.delays.count and second.delays.count:
        delta, test = effects.brunner_munzel(first.delays, second.delays)
        pair["delay"] = {
            "shiftSeconds": effects.shift(first.delays, second.delays).times(1e-9),
            "cliffsDelta": vars(delta),
            "brunnerMunzel": _test(test),
            "mannWhitney": {"u": (other := effects.mann_whitney(first.delays, second.delays)).statistic, "p": other.p},
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


def _units(condition: _Condition, count: int) -> dict:
    return {"unit": condition.unit, "count": count}


def _test(test: effects.Test) -> dict:
    return {"statistic": test.statistic, "degreesOfFreedom": test.degrees_of_freedom, "p": test.p}


def _adjust(pairs: list[dict]) -> None:
    """Add Holm's p: one family is one test of one group, for all pairs."""
    for measure, name in (("delay", "brunnerMunzel"), ("delay", "mannWhitney"), ("loss", "welch")):
        tests = [(pair[measure] or {}).get(name) for pair in pairs]
        adjusted = effects.holm([test["p"] if test else None for test in tests])
        for test, p in zip(tests, adjusted, strict=True):
            if test:
                test["pHolm"] = p


def _publishers(runs: list[Loaded], run_labels: list[str]) -> list[dict]:
    """The figures of every publisher in every run; null where a run does not have it."""
    tables = [{p["name"]: p for p in run.results.get("publishers") or []} for run in runs]
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


def _networks(runs: list[Loaded], run_labels: list[str], gaps: Gaps) -> list[dict]:
    tables = [{n["name"]: n for n in run.results.get("networks") or []} for run in runs]
    names = dict.fromkeys(name for table in tables for name in table)
    found = []
    for name in names:
        values = [table.get(name, {}).get("bytesPerSecond") for table in tables]
        for label, value in zip(run_labels, values, strict=True):
            if value is None:
                gaps.add(f"bytesPerSecond of {name}", f"{label} does not have it")
        found.append({"name": name, "runs": [{"label": la, "bytesPerSecond": v} for la, v in zip(run_labels, values, strict=True)]})
    return found
