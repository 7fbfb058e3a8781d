"""Which captures a network's figures come from, and what of its traffic these do not cover."""

from dataclasses import dataclass, field
from pathlib import Path

from ..radiolog import RadioLog
from ..run import Run

# The capture of an experiment's spec, which begins when its nodes' radios are attached (docs/captures.md).
WHOLE_RUN = "run"


@dataclass
class Coverage:
    """The captures of one network: one for each of its nodes, so that each transmission counts once."""

    network: str
    # Each node's capture: its name and file.
    files: dict[str, tuple[str, Path]] = field(default_factory=dict)
    # What keeps figures of the network from being whole.
    lacks: list[str] = field(default_factory=list)
    # Frames that captures dropped, within what they cover.
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
        found.lacks.insert(0, f"no capture of {_names(uncaptured)}")
    return found


def _preference(capture: dict) -> tuple:
    return bool(capture.get("filter")), capture["name"] != WHOLE_RUN, capture["name"]


def _names(nodes: list[str]) -> str:
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
        found.lacks.append(f"{run.relative(path)} has only what matches {capture['filter']!r}")
    rows = [row for row in log.captures if (row["capture"], row.get("network"), row.get("node")) == (capture["name"], found.network, node)]
    _times(run, capture["name"], path, rows, found)
    found.dropped += _dropped(rows)


def _path(run: Run, capture: dict, node: str) -> Path:
    return run.directory / "captures" / capture["name"] / capture["network"] / f"{node}.pcapng"


def _times(run: Run, name: str, path: Path, rows: list[dict], found: Coverage) -> None:
    """Name a capture that began after the measurement did, or ended before."""
    if run.window is None:
        return
    start, end = run.window
    if name != WHOLE_RUN and (not rows or rows[0]["ts"] > start):
        when = f"at {run.since_t0(rows[0]['ts']):.3f} s" if rows else "nobody knows when"
        found.lacks.append(f"{run.relative(path)} began {when}, and the measurement at {run.since_t0(start):.3f} s")
    ended = next((row for row in rows if row.get("ended")), None)
    if ended and ended["ts"] < end:
        found.lacks.append(
            f"{run.relative(path)} ended ({ended['ended']}) at {run.since_t0(ended['ts']):.3f} s, and the measurement at {run.since_t0(end):.3f} s"
        )


def _dropped(rows: list[dict]) -> int:
    """Frames dropped for any reason; counters that fall began anew with radiod."""
    total, before = 0, {}
    for row in rows:
        now = row.get("dropped") or {}
        for reason, count in now.items():
            total += count - before.get(reason, 0) if count >= before.get(reason, 0) else count
        before = now
    return total
