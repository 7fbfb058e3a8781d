"""Agents' own logs: starts and stops of apps, how long apps waited for processors, and when they were down."""

import itertools
from pathlib import Path

import polars as pl

from ..data import jsonlines, safe
from ..data.gaps import Gaps
from ..data.run import Run
from ..data.unusable import Unusable
from . import findings
from .lateness import CLOCK_STEP_SECONDS, Action, Interval, Lateness

_SCHEMA = {
    "ts": pl.Int64,
    "event": pl.String,
    "instance": pl.String,
    "actionID": pl.String,
    "latenessSeconds": pl.Float64,
    "exitCode": pl.Int64,
    "message": pl.String,
}
# Characters of the texts.
_MOST = {"instance": safe.MOST, "actionID": safe.MOST, "message": safe.MOST_OUTPUT}
# The kernel's CPU quota takes at least some milliseconds of a period of 100 ms.
THROTTLED_SECONDS = 0.010
# An app that waits for processors longer than this share of the run is named.
PRESSURE_SHARE = 0.05
# An agent looks for steps of the clock so often (checkPeriod in internal/agent).
CLOCK_CHECK_SECONDS = 1.0


def examine(run: Run, gaps: Gaps, found: Lateness) -> None:
    """Read every agent.jsonl."""
    starved: dict[str, list[tuple[float, str]]] = {event: [] for event in _CPU}
    unmeasured: dict[str, list[str]] = {event: [] for event in _CPU}
    told = set()
    refused: list[Unusable] = []
    steps: dict[str, list[dict]] = {}
    found.logged = any(node.get("apps") for node in run.nodes)
    for node in run.nodes:
        for app in node.get("apps") or []:
            name = f"logs/{node['name']}/{app['name']}/agent.jsonl"
            path = run.directory / name
            if not path.exists():
                found.logged = False
                continue
            events, bad = jsonlines.read(path, _SCHEMA)
            good = events.filter((pl.col("ts") > 0) & pl.col("event").is_not_null())
            bad += events.height - good.height
            gaps.bad_lines(name, bad, node["name"])
            rows = [row | {name: safe.bounded(row[name], most) for name, most in _MOST.items() if row[name]} for row in good.to_dicts()]
            found.actions += _actions(node["name"], rows)
            found.intervals += _clock_steps(node["name"], rows)
            # All agents of a node log the same steps.
            steps[node["name"]] = max(steps.get(node["name"], []), _logged_steps(run, rows), key=len)
            _starved(run, f"{node['name']}/{app['name']}", rows, starved, unmeasured)
            _down(run, node["name"], app, rows, gaps)
            findings.ended(run, node["name"], app, rows, gaps)
            _add_gaps(run, node["name"], app["name"], rows, gaps)
            refused += _refused(run, node["name"], app["name"], rows)
            if any(row["event"] == "failed" for row in rows):
                told.add((node["name"], app["name"]))
    found.intervals += _stepped(run, steps, gaps)
    _failed(run, told, gaps)
    findings.useless(refused, gaps)
    for event, apps in starved.items():
        if apps:
            seconds, worst = max(apps)
            found.context.append(f"{_CPU[event]}: {len(apps)} app{'s' if len(apps) > 1 else ''}, most of all {worst}, for {seconds:.2f} s.")
        if unmeasured[event]:
            names = ", ".join(unmeasured[event][:10]) + (" and others" if len(unmeasured[event]) > 10 else "")
            gaps.note(_NAMES[event], f"not measured for {len(unmeasured[event])} apps: {names}")


def _refused(run: Run, node: str, app: str, rows: list[dict]) -> list[Unusable]:
    """Message logs that are empty, as the agent took no line of the output for a message event."""
    logs = {i.name: i.message_log for i in run.instances if i.node == node and i.app == app}
    why = {logs[row["instance"]]: row["message"] or "" for row in rows if row["event"] == "noMessage" and row["instance"] in logs}
    return [Unusable(log, node, app, 0, said) for log, said in why.items() if not _lines(run.directory / log)]


def _lines(path: Path) -> bool:
    """Report whether a file has any."""
    return path.exists() and path.stat().st_size > 0


def _failed(run: Run, told: set[tuple[str, str]], gaps: Gaps) -> None:
    """Name the agents whose last report says that they failed, where their logs did not come that far."""
    for agent in (run.state or {}).get("agents") or []:
        if agent.get("phase") == "failed" and (agent["node"], agent["app"]) not in told:
            gaps.add(f"app {agent['node']}/{agent['app']}", agent.get("message") or "the agent reported that it failed", agent["node"])


_NAMES = {"cpuThrottled": "throttling", "cpuPressure": "CPU pressure"}
# Events that agents log once, at the end of a run.
_CPU = {"cpuThrottled": "Stopped by their CPU limit", "cpuPressure": f"Waited for a processor for over {100 * PRESSURE_SHARE:g} % of the time"}


def _starved(run: Run, app: str, rows: list[dict], starved: dict[str, list[tuple[float, str]]], unmeasured: dict[str, list[str]]) -> None:
    """Note an app whose cgroup had to wait for processors, summed over the run."""
    for event, apps in starved.items():
        waits = [row for row in rows if row["event"] == event]
        if not waits:
            unmeasured[event].append(app)
            continue
        # A restarted agent logs the event once for each of its processes.
        waited = sum(row["latenessSeconds"] or 0.0 for row in waits)
        end = run.since_t0(waits[-1]["ts"]) or 0.0
        if waited > (THROTTLED_SECONDS if event == "cpuThrottled" else PRESSURE_SHARE * end):
            apps.append((waited, app))


def _actions(node: str, rows: list[dict]) -> list[Action]:
    found = []
    for row in rows:
        if row["event"] in ("started", "stopped", "armedTooLate"):
            what = f"armed too late: {row['actionID']}" if row["event"] == "armedTooLate" else row["event"]
            found.append(Action(row["instance"] or "", node, what, row["ts"], row["latenessSeconds"] or 0.0))
    return found


def _clock_steps(node: str, rows: list[dict]) -> list[Interval]:
    found = []
    for before, after in itertools.pairwise(rows):
        back = (before["ts"] - after["ts"]) / 1e9
        if back > CLOCK_STEP_SECONDS:
            found.append(Interval(after["ts"], before["ts"], back, f"clock of {node} stepped back"))
    return found


def _logged_steps(run: Run, rows: list[dict]) -> list[dict]:
    """Steps of the clock, in both directions, that the agent saw between T0 and the end of the drain."""
    if run.t0 is None:
        return []
    within = (row for row in rows if row["event"] == "clockStep" and row["latenessSeconds"] and row["ts"] > run.t0)
    return [row for row in within if run.measure_end is None or row["ts"] - CLOCK_CHECK_SECONDS * 1e9 < run.measure_end]


def _stepped(run: Run, steps: dict[str, list[dict]], gaps: Gaps) -> list[Interval]:
    """Times by the clock in which steps fell, and a gap for each node whose clock was stepped."""
    own = {agent["node"] for agent in (run.state or {}).get("agents") or [] if agent.get("clock")}
    found = []
    for node, rows in steps.items():
        for row in rows:
            seconds = row["latenessSeconds"]
            start, end = row["ts"] - round((CLOCK_CHECK_SECONDS + max(seconds, 0)) * 1e9), row["ts"] + round(max(-seconds, 0) * 1e9)
            # Containers share their host's clock with those of other nodes.
            found.append(Interval(start, end, abs(seconds), f"clock of {node} stepped by {seconds:.3f} s", node=node if node in own else ""))
        if rows:
            worst = max((row["latenessSeconds"] for row in rows), key=abs)
            often = "once" if len(rows) == 1 else f"{len(rows)} times"
            gaps.add("clock offset", f"the clock of this node was stepped {often}, most of all by {worst:.3f} s: delays are wrong by as much", node)
    return found


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
            # An image of the user's own may end when it is done; the platform's brokers and clients do not.
            if row["exitCode"] != 0 or app["kind"] != "image":
                exits[instance] = row
    for instance in list(exits):
        close(instance, None)


_GAPS = {
    "failed": ("app {app} failed", "the agent gave the app up"),
    "spoolFull": ("logs of {app}", "the agent's spool was full: the entries that the app logged meanwhile are lost"),
    "notArchived": ("logs of {app}", "a file in the log folder was not archived"),
    "noMessage": ("messages of {app}", "lines of standard output that were meant as message events are none, and in no figure"),
    "stamped": ("times of {app}", "its delays hold the time that its output took to the agent"),
    "resumed": ("agent of {app} restarted", "the agent itself ended and came back"),
}


def _add_gaps(run: Run, node: str, app: str, rows: list[dict], gaps: Gaps) -> None:
    for row in rows:
        if row["event"] in _GAPS:
            what, reason = _GAPS[row["event"]]
            text = f"{reason}: {row['message']}" if row["message"] else reason
            gaps.add(what.format(app=f"{node}/{app}"), text, node, run.since_t0(row["ts"]))
