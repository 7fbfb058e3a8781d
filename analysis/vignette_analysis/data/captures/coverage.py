"""Chooses the captures for a network's figures, and finds the traffic that they do not cover."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..radiolog import RadioLog, dropped
from ..run import Run

# The capture of an experiment's spec, which begins when its nodes' radios are attached (docs/how-to/capture-traffic.md).
WHOLE_RUN = "run"
# Reasons of captures that ended as asked: deleted, or at their duration.
STOPPED = "stopped"


@dataclass
class Coverage:
    """The captures of one network: one for each of its nodes, so that each transmission counts once."""

    network: str
    # Each node's capture: its name and file.
    files: dict[str, tuple[str, Path]] = field(default_factory=dict)
    # Why figures of the network are incomplete: by a fault, and because no more was asked for.
    lacks: list[str] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    # When all these nodes were captured, in seconds after T0; None: from the start or to the end of the run.
    start: float | None = None
    end: float | None = None
    # Frames that captures dropped while they ran.
    dropped: int = 0
    planned: bool = False


def find(run: Run, log: RadioLog, network: str, left_out: dict[str, str]) -> Coverage:
    """Choose each node's capture; left_out gives the reason for archived files that are not in the run's folder."""
    found = Coverage(network)
    captures = [c for c in run.plan.get("captures") or [] if c["network"] == network]
    found.planned = bool(captures)
    uncaptured = []
    members = {node["name"] for node in run.nodes if network in (node.get("addresses") or {})}
    members |= {node for c in captures for node in c.get("nodes") or []}
    for node in sorted(members):
        of_node = sorted((c for c in captures if node in (c.get("nodes") or [])), key=_preference)
        if of_node:
            _choose(run, log, node, of_node, left_out, found)
        else:
            uncaptured.append(node)
    if uncaptured:
        found.chosen.insert(0, f"no capture of {names(uncaptured)}")
    return found


@dataclass(frozen=True)
class Covered:
    """The nodes, in words, and the seconds after T0 of a network's capture tables."""

    nodes: str
    start: float
    end: float
    # Whether nodes or times are missing.
    partial: bool

    def __str__(self) -> str:
        return f"sent by {self.nodes} from {self.start:.0f} to {self.end:.0f} s"

    def share(self, first: int, width: int, count: int) -> np.ndarray:
        """Covered seconds of each of a number of intervals; less than half a second counts as 0."""
        edges = first + width * np.arange(count + 1)
        seconds = np.minimum(edges[1:], self.end) - np.maximum(edges[:-1], self.start)
        return np.where(seconds < 0.5, np.nan, seconds)


def covered(results: dict, network: str, end: float, start: float = 0.0) -> Covered:
    """What a network's captures cover according to the results: all of start to end, or a part."""
    entry = next((entry for entry in results.get("networks") or [] if entry["name"] == network), {})
    part = entry.get("captured")
    if part is None:
        return Covered("all nodes", start, end, partial=False)
    # Captures that did not end before the drain go on after it.
    until = end if part["toSeconds"] == results["durationSeconds"] else min(part["toSeconds"], end)
    return Covered(names(part["nodes"]), max(part["fromSeconds"], 0.0), until, partial=True)


def _preference(capture: dict) -> tuple:
    return bool(capture.get("filter")), capture["name"] != WHOLE_RUN, capture["name"]


def names(nodes: list[str]) -> str:
    """Nodes in words; of many, the first ones."""
    return ", ".join(nodes[:5]) + (f" and {len(nodes) - 5} others" if len(nodes) > 5 else "")


def _choose(run: Run, log: RadioLog, node: str, captures: list[dict], left_out: dict[str, str], found: Coverage) -> None:
    there = [(c, path) for c in captures if (path := _path(run, c, node)).is_file()]
    if not there:
        name = run.relative(_path(run, captures[0], node))
        found.lacks.append(f"{name} is not there" + (f": {left_out[name]}" if name in left_out else ""))
        return
    capture, path = there[0]
    found.files[node] = capture["name"], path
    if capture.get("filter"):
        found.chosen.append(f"{run.relative(path)} has only what matches {capture['filter']!r}")
    rows = [row for row in log.captures if (row["capture"], row.get("network"), row.get("node")) == (capture["name"], found.network, node)]
    _times(run, capture["name"], path, rows, found)
    found.dropped += sum(dropped(rows).frames.values())


def _path(run: Run, capture: dict, node: str) -> Path:
    return run.directory / "captures" / capture["name"] / capture["network"] / f"{node}.pcapng"


def _times(run: Run, name: str, path: Path, rows: list[dict], found: Coverage) -> None:
    """Name a capture that began after the measurement began, or ended before its end."""
    if run.window is None:
        return
    start, end = run.window
    whole = name == WHOLE_RUN
    if not whole and not rows:
        found.lacks.append(f"nobody knows when {run.relative(path)} began")
    elif not whole and rows[0]["ts"] > start:
        began = run.since_t0(rows[0]["ts"])
        found.start = max(began, found.start or began)
        found.chosen.append(f"{run.relative(path)} began at {began:.3f} s, and the measurement at {run.since_t0(start):.3f} s")
    pauses, last = _ends(rows)
    for ended, resumed in pauses:
        if ended < end and resumed > start:
            found.lacks.append(f"{run.relative(path)} has nothing from {run.since_t0(ended):.3f} to {run.since_t0(resumed):.3f} s")
    if last and last["ts"] < end:
        ended = run.since_t0(last["ts"])
        found.end = min(ended, ended if found.end is None else found.end)
        said = f"{run.relative(path)} ended ({last['ended']}) at {ended:.3f} s, and the measurement at {run.since_t0(end):.3f} s"
        (found.lacks if whole or last["ended"] != STOPPED else found.chosen).append(said)


def _ends(rows: list[dict]) -> tuple[list[tuple[int, int]], dict | None]:
    """When a capture ended and went on later, as its node's radio was attached again, and the row of its last end."""
    pauses, last = [], None
    for row in rows:
        if row.get("ended"):
            last = last or row
        elif last:
            pauses.append((last["ts"], row["ts"]))
            last = None
    return pauses, last
