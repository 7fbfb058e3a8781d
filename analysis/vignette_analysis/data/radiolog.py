"""radiod's logs, radio/HOST.jsonl: samples of radios, and other records that one field identifies: headers (host),
gaps (gap), captures (capture), positions (positions), reception by link (receiver), steps of scenarios (steps), nodes' routes (routing),
other hosts (peer), late times (lateSeconds), missed slots (slotsMissedFrom), what a hypervisor took (stolenSeconds) and how busy the host
was (busySeconds)."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from . import jsonlines
from .gaps import Gaps
from .run import Run

# Why radiod drops frames (docs/reference/radio/metrics.md).
DROPS = (
    "loss",
    "queueFull",
    "silent",
    "emissionControl",
    "noReceiver",
    "tooLarge",
    "belowSensitivity",
    "lowSINR",
    "interfered",
    "halfDuplex",
    "notListening",
    "fragmentTimeout",
    "malformed",
    "oversize",
    "detached",
    "interfaceDown",
    "writeFailed",
    "inFlightAtEnd",
    "missedSlot",
    "tapRing",
    "routerSocket",
    "radiodRestarted",
)
_SAMPLE = {
    "ts": pl.Int64,
    "network": pl.String,
    "node": pl.String,
    "framesSent": pl.Int64,
    "bytesSent": pl.Int64,
    "framesReceived": pl.Int64,
    "queueDepth": pl.Int64,
    "host": pl.String,
    "drops": pl.Struct(dict.fromkeys(DROPS, pl.Int64)),
    "worstLatenessSeconds": pl.Float64,
    "lateReleases": pl.Int64,
    "lateInterference": pl.Int64,
    "latenessCounts": pl.List(pl.Int64),
    "slotsUsed": pl.Int64,
    "slotsMissed": pl.Int64,
    "worstSlotLatenessSeconds": pl.Float64,
    "routingBytesSent": pl.Int64,
}
_STEPS = {"ts": pl.Int64, "network": pl.String, "host": pl.String, "steps": pl.Int64, "lateSteps": pl.Int64, "worstStepLatenessSeconds": pl.Float64}
_HOSTS = {
    "ts": pl.Int64,
    "peer": pl.String,
    "host": pl.String,
    "offsetSeconds": pl.Float64,
    "uncertaintySeconds": pl.Float64,
    "notSent": pl.Int64,
    "missingDatagrams": pl.Int64,
    "unusable": pl.Int64,
}
_STOLEN = {"ts": pl.Int64, "host": pl.String, "stolenSeconds": pl.Float64}
_LATE = {"ts": pl.Int64, "host": pl.String, "fromTs": pl.Int64, "lateSeconds": pl.Float64}
_MISSED = {"ts": pl.Int64, "host": pl.String, "network": pl.String, "node": pl.String, "slotsMissedFrom": pl.Int64, "slots": pl.Int64}
_CHANGES = {"ts": pl.Int64, "host": pl.String, "network": pl.String, "changeDueTs": pl.Int64}
# Records of older logs that are ignored.
_OLD = {"stillSeconds": pl.Float64, "processorStillSeconds": pl.Float64}
_LOAD = {
    "ts": pl.Int64,
    "host": pl.String,
    "seconds": pl.Float64,
    "busySeconds": pl.Float64,
    "cpus": pl.Int64,
    "loadAverage": pl.Float64,
    "cpuPressureSeconds": pl.Float64,
    "memoryPressureSeconds": pl.Float64,
}
# Only the presence of positions matters here: an empty struct accepts any object.
_SCHEMA = (
    _SAMPLE
    | _STEPS
    | _HOSTS
    | _STOLEN
    | _LATE
    | _MISSED
    | _CHANGES
    | _OLD
    | _LOAD
    | {"gap": pl.String, "capture": pl.String, "receiver": pl.String, "routing": pl.String, "positions": pl.Struct({"": pl.Null})}
)


UNREACHABLE = "hostUnreachable"


@dataclass(frozen=True)
class Outage:
    """An interval in which a host's radios did not follow the model (runapi.RadioGap)."""

    what: str
    host: str
    # Empty: all nodes of the host.
    node: str
    start: int
    # None: it has not ended.
    end: int | None
    reason: str
    frames_lost: int

    def concerns(self, host: str, node: str) -> bool:
        """Report whether the outage concerns a node's radios on a host; without a node, all of the host's."""
        return self.host == host and self.node in ("", node)


@dataclass
class RadioLog:
    """All hosts' radio logs of a run."""

    samples: pl.DataFrame
    outages: list[Outage]
    # Capture samples in the order of each file (runapi.CaptureSample).
    captures: list[dict]
    # How networks kept up with their scenarios (runapi.RadioSteps).
    steps: pl.DataFrame
    # What each host measured of others (runapi.RadioHost).
    peers: pl.DataFrame
    # Processor time that hypervisors took from hosts (runapi.RadioStolen).
    stolen: pl.DataFrame
    # When hosts handled frames late (runapi.RadioLateTime), and slots that were missed (runapi.RadioMissedSlots).
    late: pl.DataFrame
    missed: pl.DataFrame
    # When changes of networks were due and not carried out (runapi.RadioLateChange).
    changes: pl.DataFrame
    # How busy hosts were (runapi.RadioLoad).
    loads: pl.DataFrame
    # The time of each host's newest line that is not of a capture, Unix nanoseconds.
    until: dict[str, int]


def read(run: Run, gaps: Gaps) -> RadioLog:
    """Read every host's log. Lines of an unknown kind are a gap."""
    frames, steps, outages, captures = [pl.DataFrame(schema=_SAMPLE)], [pl.DataFrame(schema=_STEPS)], {}, []
    kinds = (_HOSTS, _STOLEN, _LATE, _MISSED, _CHANGES, _LOAD)
    peers, stolen, lates, misses, changes, loads = ([pl.DataFrame(schema=schema)] for schema in kinds)
    until = {}
    for path in run.files("radio/*.jsonl"):
        raw, bad = jsonlines.read(path, _SCHEMA)
        timed = raw.filter(pl.col("ts") > 0)
        until[path.stem] = timed.filter(pl.col("capture").is_null())["ts"].max() or 0
        special = pl.col("gap").is_not_null() | pl.col("capture").is_not_null()
        good = timed.filter(~special & pl.all_horizontal(pl.col("network", "node", "framesSent", "bytesSent").is_not_null()))
        headers = timed.filter(~special & pl.col("host").is_not_null() & pl.col("network").is_null())
        others = timed.filter(special).height
        moves = timed.filter(~special & pl.col("network").is_not_null() & pl.any_horizontal(pl.col("receiver", "positions", "steps").is_not_null()))
        routes = timed.filter(~special & pl.all_horizontal(pl.col("node", "routing").is_not_null()) & pl.col("network").is_null())
        known = timed.filter(~special & pl.col("peer").is_not_null())
        taken = timed.filter(~special & pl.col("stolenSeconds").is_not_null())
        late = timed.filter(~special & pl.all_horizontal(pl.col("lateSeconds", "fromTs").is_not_null()))
        missed = timed.filter(~special & pl.all_horizontal(pl.col("slotsMissedFrom", "slots", "network", "node").is_not_null()))
        changed = timed.filter(~special & pl.all_horizontal(pl.col("changeDueTs", "network").is_not_null()))
        old = timed.filter(~special & pl.any_horizontal(pl.col(_OLD.keys()).is_not_null()))
        busy = timed.filter(~special & pl.all_horizontal(pl.col("busySeconds", "seconds", "cpus").is_not_null()))
        if others:
            for record in _special(path):
                if record.get("gap") == "spoolFull":
                    reason = f"radiod had no room for {record.get('bytes', 0)} bytes of samples on host {path.stem}"
                    gaps.add("radio samples", reason, start=run.since_t0(record.get("fromTs")), end=run.since_t0(record["ts"]))
                elif record.get("gap"):
                    outage = _outage(path.stem, record)
                    # A gap that was logged while it lasted is logged again at its end.
                    outages[outage.what, outage.host, outage.node, outage.start] = outage
                else:
                    captures.append(record)
        bad += raw.height - others - sum(frame.height for frame in (good, headers, moves, routes, known, taken, late, missed, changed, old, busy))
        name = run.relative(path)
        if bad:
            gaps.add(f"log {name}", f"{bad} lines are no samples")
        frames.append(good.select(_SAMPLE.keys()).with_columns(host=pl.lit(path.stem)))
        steps.append(moves.filter(pl.col("steps").is_not_null()).select(_STEPS.keys()).with_columns(host=pl.lit(path.stem)))
        peers.append(known.select(_HOSTS.keys()).with_columns(host=pl.lit(path.stem)))
        stolen.append(taken.select(_STOLEN.keys()).with_columns(host=pl.lit(path.stem)))
        lates.append(late.select(_LATE.keys()).with_columns(host=pl.lit(path.stem)))
        misses.append(missed.select(_MISSED.keys()).with_columns(host=pl.lit(path.stem)))
        changes.append(changed.select(_CHANGES.keys()).with_columns(host=pl.lit(path.stem)))
        loads.append(busy.select(_LOAD.keys()).with_columns(host=pl.lit(path.stem)))
    return RadioLog(
        pl.concat(frames),
        _of_the_run(run, list(outages.values()), gaps),
        captures,
        *(pl.concat(parts) for parts in (steps, peers, stolen, lates, misses, changes, loads)),
        until,
    )


# A radio, whose samples are in one log.
RADIO = ("host", "network", "node")


def in_order(lines: pl.DataFrame, *log: str) -> pl.DataFrame:
    """Return lines in order of time.

    Those of one log, which the given columns tell, keep their order: a clock that is set back repeats times, and counters only grow.
    """
    return lines.sort(pl.col("ts").cum_max().over(*log), maintain_order=True)


def _special(path: Path) -> list[dict]:
    """Gaps and capture samples of a log. They are few, and their maps by reason fit no schema."""
    found = []
    with path.open("rb") as file:
        for line in file:
            if b'"gap"' in line or b'"capture"' in line:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # counted as a line that is no sample
                if (record.get("gap") or record.get("capture")) and record.get("ts", 0) > 0:
                    found.append(record)
    return found


def _outage(host: str, record: dict) -> Outage:
    return Outage(
        what=record["gap"],
        host=host,
        node=record.get("node") or "",
        start=record.get("fromTs") or record["ts"],
        end=record.get("toTs") or None,
        reason=record.get("reason") or "radiod gave no reason",
        frames_lost=record.get("framesLost") or 0,
    )


def _of_the_run(run: Run, outages: list[Outage], gaps: Gaps) -> list[Outage]:
    """The outages from T0 to the end of the drain, cut to that time. Others are notes, as no figure is of their time."""
    first, last = run.t0, run.measure_end
    found = []
    for outage in outages:
        before = first is not None and outage.end is not None and outage.end <= first
        after = last is not None and outage.start >= last
        if before or after:
            reason = f"{_reason(outage)}; this was {'before T0' if before else 'after the end of the drain'}"
            gaps.note(outage.what, reason, outage.node, run.since_t0(outage.start), run.since_t0(outage.end))
            continue
        start = outage.start if first is None else max(outage.start, first)
        end = outage.end if last is None or outage.end is None else min(outage.end, last)
        found.append(replace(outage, start=start, end=end))
    return found


def _reason(outage: Outage) -> str:
    where = "" if outage.node else f" (all of this run's nodes on host {outage.host})"
    lost = f"; {outage.frames_lost} frames were lost" if outage.frames_lost else ""
    return f"{outage.reason}{where}{lost}"


def name_outages(run: Run, outages: list[Outage], gaps: Gaps) -> None:
    """Name every outage in the results."""
    for outage in sorted(outages, key=lambda o: (o.start, o.host, o.node)):
        gaps.add(outage.what, _reason(outage), outage.node, run.since_t0(outage.start), run.since_t0(outage.end))


def name_captures(run: Run, captures: list[dict], gaps: Gaps) -> None:
    """Name every capture that lacks frames: dropped ones, and those after its limit."""
    by_radio: dict[tuple[str, str, str], list[dict]] = {}
    for row in captures:
        by_radio.setdefault((row["capture"], row.get("network") or "", row.get("node") or ""), []).append(row)
    for (capture, network, node), rows in sorted(by_radio.items()):
        if (lost := dropped(rows)).frames:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(lost.frames.items()))
            reason = f"capture {capture} of {node} on {network} lacks {sum(lost.frames.values())} frames: {reasons}"
            gaps.add("capture", reason, node, run.since_t0(lost.first), run.since_t0(lost.last))
        last = rows[-1]
        if last.get("ended") == "limit":
            reason = (
                f"capture {capture} of {node} on {network} ended at its limit, after {last.get('frames', 0)} frames in {last.get('bytes', 0)} bytes"
            )
            gaps.add("capture", reason, node, run.since_t0(last["ts"]))


@dataclass
class Dropped:
    """Frames that a capture dropped, by reason, and between which times, Unix nanoseconds."""

    frames: dict[str, int]
    first: int | None
    last: int | None


def dropped(rows: list[dict]) -> Dropped:
    """Count the frames that a capture dropped, from its samples."""
    total: dict[str, int] = {}
    before: dict[str, int] = {}
    since, first, last = None, None, None
    for row in rows:
        now = row.get("dropped") or {}
        for reason, count in now.items():
            # A counter below the previous one restarted with radiod.
            grown = count - before.get(reason, 0) if count >= before.get(reason, 0) else count
            if grown:
                total[reason] = total.get(reason, 0) + grown
                first, last = first or since or row["ts"], row["ts"]
        before, since = now, row["ts"]
    return Dropped(total, first, last)
