"""Agents' own logs: how late actions were, and when apps were down."""

import itertools

import polars as pl

from . import findings, jsonlines
from .gaps import Gaps
from .run import Run

_SCHEMA = {
    "ts": pl.Int64,
    "event": pl.String,
    "instance": pl.String,
    "actionID": pl.String,
    "plannedTs": pl.Int64,
    "latenessSeconds": pl.Float64,
    "exitCode": pl.Int64,
    "message": pl.String,
}
# An action this late was not simultaneous with its peers: the bound that agents are built for (README).
LATE_ACTION_SECONDS = 0.010
# The least that the kernel's quota takes away when it does is some milliseconds of one period of 100 ms.
THROTTLED_SECONDS = 0.010
# The share of the run in which some task of an app may have waited for a processor.
PRESSURE_SHARE = 0.05
# A clock that goes back by more than this was stepped; less is two threads that log at once.
CLOCK_STEP_SECONDS = 0.001


def examine(run: Run, gaps: Gaps) -> tuple[list[dict], bool]:
    """Read every agent.jsonl. Returns what was late, in the form of runapi.Late, and whether any agent logged at all."""
    late: list[dict] = []
    any_log = False
    unmeasured: dict[str, list[str]] = {event: [] for event in _CPU}
    for node in run.nodes:
        for app in node.get("apps") or []:
            name = f"logs/{node['name']}/{app['name']}/agent.jsonl"
            path = run.directory / name
            if not path.exists():
                if not gaps.names(f"log {name}") and not gaps.names(f"logs of {node['name']}/{app['name']}"):
                    gaps.add(f"log {name}", "the archive has no such file", node["name"])
                continue
            any_log = True
            events, bad, torn = jsonlines.read(path, _SCHEMA)
            good = events.filter((pl.col("ts") > 0) & pl.col("event").is_not_null())
            bad += events.height - good.height
            if bad and not (bad == 1 and torn and gaps.names(f"log {name}")):
                gaps.add(f"log {name}", f"{bad} lines are no records{', the last one is torn' if torn else ''}", node["name"])
            rows = good.to_dicts()
            late += _late(run, node["name"], rows)
            late += _starved(run, node["name"], app["name"], rows, unmeasured)
            _down(run, node["name"], app, rows, gaps)
            findings.ended(run, node["name"], app, rows, gaps)
            _said(run, node["name"], app["name"], rows, gaps)
    for event, apps in unmeasured.items():
        if apps:
            names = ", ".join(apps[:10]) + (" and others" if len(apps) > 10 else "")
            gaps.note(_CPU[event], f"not measured for {len(apps)} apps: {names}")
    return late, any_log


# What agents say once, at the end of a run, and what it is of.
_CPU = {"cpuThrottled": "throttling", "cpuPressure": "CPU pressure"}


def _starved(run: Run, node: str, app: str, rows: list[dict], unmeasured: dict[str, list[str]]) -> list[dict]:
    """Judge how long an app's cgroup was kept from processors, over the whole run."""
    found = []
    for event, name in _CPU.items():
        said = [row for row in rows if row["event"] == event]
        if not said:
            unmeasured[event].append(f"{node}/{app}")
            continue
        # An agent that came back tells of each of its lives.
        waited = sum(row["latenessSeconds"] or 0.0 for row in said)
        end = run.since_t0(said[-1]["ts"]) or 0.0
        if waited > (THROTTLED_SECONDS if event == "cpuThrottled" else PRESSURE_SHARE * end) and run.t0 is not None:
            found.append(late_entry(node, 0.0, end, f"{name} of app {app}, in total", waited))
    return found


def _late(run: Run, node: str, rows: list[dict]) -> list[dict]:
    found = []
    for row in rows:
        lateness = row["latenessSeconds"] or 0.0
        if row["event"] in ("started", "stopped") and lateness > LATE_ACTION_SECONDS:
            begin = run.since_t0(row["plannedTs"] or row["ts"])
            found.append(late_entry(node, begin, (begin or 0.0) + lateness, f"{row['event']} {row['instance']}", lateness))
        if row["event"] == "armedTooLate":
            at = run.since_t0(row["ts"])
            found.append(late_entry(node, at, at, f"armed too late: {row['actionID']}", lateness))
    for before, after in itertools.pairwise(rows):
        back = (before["ts"] - after["ts"]) / 1e9
        if back > CLOCK_STEP_SECONDS:
            found.append(late_entry(node, run.since_t0(after["ts"]), run.since_t0(before["ts"]), "clock stepped back", back))
    return found


def late_entry(node: str, start: float | None, end: float | None, what: str, worst: float) -> dict:
    """One runapi.Late; times are 0 where T0 is not known."""
    return {"node": node, "fromSeconds": start or 0.0, "toSeconds": end or 0.0, "what": what, "worstSeconds": worst}


def _down(run: Run, node: str, app: dict, rows: list[dict], gaps: Gaps) -> None:
    """Name every interval in which an instance was down by itself: from its exit to its next start."""
    running: dict[str, bool] = {}
    exits: dict[str, dict] = {}

    def close(instance: str, end: int | None) -> None:
        row = exits.pop(instance)
        reason = f"it exited by itself with code {row['exitCode']}" + (f": {row['message']}" if row["message"] else "")
        gaps.add(f"app {instance} down", reason, node, run.since_t0(row["ts"]), run.since_t0(end))

    for row in rows:
        instance, event = row["instance"] or "", row["event"]
        if event in ("started", "restarted", "stopped"):
            if instance in exits:
                close(instance, row["ts"])
            running[instance] = event != "stopped"
        elif event == "exited" and running.get(instance, False):
            running[instance] = False
            # An image may end when it is done; brokers and clients of the platform never do.
            if row["exitCode"] != 0 or app["kind"] != "image":
                exits[instance] = row
    for instance in list(exits):
        close(instance, None)


_SAID = {
    "failed": ("app {app} failed", "the agent gave the app up"),
    "spoolFull": ("logs of {app}", "the agent's spool was full: what the app logged meanwhile is lost"),
    "notArchived": ("logs of {app}", "a file in the log folder was not archived"),
    "noMessage": ("messages of {app}", "lines of standard output that were meant as message events are none, and in no figure"),
    "stamped": ("times of {app}", "its delays hold the time that its output took to the agent"),
    "resumed": ("agent of {app} restarted", "the agent itself ended and came back"),
}


def _said(run: Run, node: str, app: str, rows: list[dict], gaps: Gaps) -> None:
    for row in rows:
        if row["event"] in _SAID:
            what, reason = _SAID[row["event"]]
            text = f"{reason}: {row['message']}" if row["message"] else reason
            gaps.add(what.format(app=f"{node}/{app}"), text, node, run.since_t0(row["ts"]))
