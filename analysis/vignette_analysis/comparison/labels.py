"""Differences between the specs of runs, which runs are repeats, and their labels."""

from collections import Counter
from dataclasses import dataclass, field

from ..data.run import RunError
from ..report.words import changes, plain
from . import resolved
from .loading import Loaded

# Fields of a spec that do not change what is measured: the seed makes repeats, the others are housekeeping.
INDIFFERENT = ("seed", "stop", "ttlAfterFinished", "collect")
# Longest values and labels; longer ones are replaced by the experiments' names.
MAX_VALUE, MAX_LABEL = 24, 48
ABSENT = "-"
# --by RUN compares every run with every other, repeats too.
EACH_RUN = "run"


@dataclass(frozen=True)
class Naming:
    """The conditions of a comparison."""

    # Fields that differ, each with its value in every run.
    differences: dict[str, list[str]]
    # The condition of every run, as an index of labels.
    conditions: list[int]
    # The label of every condition.
    labels: list[str]
    # Differing fields that were pooled; none unless a field was asked for.
    pooled: list[str]
    # Axes of a campaign that make the conditions, and each condition's levels; empty for other runs.
    axes: list[str] = field(default_factory=list)
    levels: list[tuple[str, ...]] = field(default_factory=list)


def name(runs: list[Loaded], by: str | None = None) -> Naming:
    """Find out what differs, and sort the runs into conditions: by all that differs, or by one field."""
    differences = _differences([_fields(run, spec) for run, spec in zip(runs, resolved.specs(runs), strict=True)])
    points = _points(runs)
    if points and by in points:
        return _by_levels(points, [by], differences)
    if points and by is None:
        return _by_levels(points, list(points), differences)
    if by == EACH_RUN:
        return Naming(differences, list(range(len(runs))), _unique(runs, [run.name for run in runs]), [])
    chosen = _chosen(differences, by)
    keys = [tuple(differences[field][i] for field in chosen) for i in range(len(runs))]
    order, conditions = _sorted(keys)
    firsts = [runs[keys.index(key)] for key in order]
    labels = _written(chosen, order) if len(order) > 1 else [firsts[0].name]
    return Naming(differences, conditions, labels or _unique(firsts, [run.name for run in firsts]), _pooled(differences, conditions, chosen))


def by_axis(runs: list[Loaded], axis: str) -> Naming:
    """Sort runs of a campaign into conditions by one axis, and ignore other differences."""
    return _by_levels(_points(runs), [axis], {})


def _points(runs: list[Loaded]) -> dict[str, list[str]]:
    """The levels of every run by differing axis; empty if they do not distinguish the points of one campaign."""
    places = [run.plan.get("campaign") or {} for run in runs]
    if len({place.get("uid") for place in places}) != 1 or not all(place.get("levels") for place in places):
        return {}
    axes = list(dict.fromkeys(axis for place in places for axis in place["levels"]))
    levels = {axis: [place["levels"].get(axis, ABSENT) for place in places] for axis in axes}
    varied = {axis: some for axis, some in levels.items() if len(set(some)) > 1}
    apart = {(place["point"], key) for place, key in zip(places, zip(*varied.values(), strict=True) or [], strict=False)}
    return varied if len({point for point, _ in apart}) == len({key for _, key in apart}) == len({place["point"] for place in places}) else {}


def _by_levels(points: dict[str, list[str]], axes: list[str], differences: dict[str, list[str]]) -> Naming:
    """Conditions from the levels of some axes. Other differences are pooled: other axes, or an edited template."""
    keys = list(zip(*(points[axis] for axis in axes), strict=True))
    order, conditions = _sorted(keys)
    pooled = _pooled(differences, conditions, [])
    return Naming(differences, conditions, _written(axes, order) or ["-".join(key) for key in order], pooled, axes, order)


def _sorted(keys: list[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[int]]:
    """The distinct keys in the order of their first run, and the index of each run's key."""
    place = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return list(place), [place[key] for key in keys]


def _chosen(differences: dict[str, list[str]], by: str | None) -> list[str]:
    if by is None:
        return list(differences)
    chosen = [field for field in differences if field == by or field.endswith(f".{by}")]
    if not chosen:
        known = ", ".join(differences) or "nothing"
        raise RunError(f"by {by!r}: no field of that name differs between the runs; want {EACH_RUN}, or one of those that differ: {known}")
    return chosen


def _fields(run: Loaded, spec: dict) -> dict[str, str]:
    """Every field of the resolved spec, by its path."""
    spec = {key: value for key, value in spec.items() if key not in INDIFFERENT}
    fields: dict[str, str] = {}
    _flatten("", spec, fields)
    if run.plan.get("scenario"):
        fields["scenario.digest"] = run.plan["scenario"].get("digest", "")
    for file in run.plan.get("configMaps") or []:
        fields[f"configMaps.{file['name']}.{file['key']}"] = file.get("sha256", "")
    if run.plan.get("liveChanges"):
        fields["liveChanges"] = "; ".join(f"{changes(live)} at {live['atNanoseconds'] / 1e9:.2f} s" for live in run.plan["liveChanges"])
    return fields


def _flatten(path: str, value: object, fields: dict[str, str]) -> None:
    for key in ("name", "at"):
        if isinstance(value, list) and value and all(isinstance(v, dict) and key in v for v in value) and len({v[key] for v in value}) == len(value):
            value = {v[key]: {k: w for k, w in v.items() if k != key} for v in value}
    if not isinstance(value, dict):
        fields[path] = plain(value)
        return
    if path.count(".") == 1 and path.startswith("apps."):
        # The kind of an app is the name of a field: publisher, mosquitto, image and others.
        fields[path] = "+".join(sorted(key for key, part in value.items() if isinstance(part, dict))) or "image"
    for key, part in value.items():
        if not path.startswith("networks.") or key != "subnet":
            _flatten(f"{path}.{key}" if path else key, part, fields)


def _differences(runs: list[dict[str, str]]) -> dict[str, list[str]]:
    paths = list(dict.fromkeys(path for fields in runs for path in fields))
    values = {path: [fields.get(path, ABSENT) for fields in runs] for path in paths}
    differing = {path: some for path, some in values.items() if len(set(some)) > 1}
    found = {path: some for path, some in differing.items() if not _follows(some, _parents(path, runs))}
    return dict(sorted(found.items(), key=lambda item: max(map(len, item[1])) > MAX_VALUE))  # long ones last


def _follows(values: list[str], parents: list[str] | None) -> bool:
    """Report whether a field differs only because another one does: runs that agree in that one agree in this, too."""
    return parents is not None and len(set(parents)) > 1 and len(set(zip(parents, values, strict=True))) == len(set(parents))


def _parents(path: str, runs: list[dict[str, str]]) -> list[str] | None:
    """What the field belongs to in each run: the kind of an app, a waveform, or a scenario; None for all others."""
    parts = path.split(".")
    if parts[0] == "networks" and len(parts) > 2 and parts[2] in resolved.MODELS:
        return [fields.get(f"networks.{parts[1]}.waveform", ABSENT) for fields in runs]
    if path == "scenario.digest":
        return [fields.get("scenario.ref", ABSENT) for fields in runs]
    if parts[0] == "apps" and len(parts) > 2:
        return [fields.get(".".join(parts[:2]), ABSENT) for fields in runs]
    return None


def _written(fields: list[str], values: list[tuple[str, ...]]) -> list[str] | None:
    """Labels made of the values; None if they are too long."""
    if any(len(value) > MAX_VALUE for key in values for value in key):
        return None
    names = [_short(field, fields) for field in fields]
    labels = [", ".join(f"{name}={value}" for name, value in zip(names, key, strict=True)) for key in values]
    return labels if all(len(label) <= MAX_LABEL for label in labels) else None


def _short(field: str, among: list[str]) -> str:
    """The shortest end of a path that no other path has."""
    parts = field.split(".")
    ends = (".".join(parts[-n:]) for n in range(1, len(parts)))
    return next((end for end in ends if sum(f == end or f.endswith(f".{end}") for f in among) == 1), field)


def _unique(runs: list[Loaded], labels: list[str]) -> list[str]:
    times = Counter(labels)
    return [f"{label}@{run.uid[:8]}" if times[label] > 1 else label for run, label in zip(runs, labels, strict=True)]


def _pooled(differences: dict[str, list[str]], conditions: list[int], chosen: list[str]) -> list[str]:
    def varies(values: list[str]) -> bool:
        return len(set(zip(conditions, values, strict=True))) > len(set(conditions))

    return [field for field, values in differences.items() if field not in chosen and varies(values)]
