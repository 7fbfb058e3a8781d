"""How late the emulation was: late intervals, missed slots, frames that it lost itself, late starts and stops of apps."""

import itertools
from dataclasses import dataclass, field

import polars as pl

from ..data.gaps import OUTAGES
from ..data.radiolog import RADIO, Outage, RadioLog, in_order
from ..data.run import Run
from .hostload import while_running

# radio.LatenessBounds. The last bucket is above all bounds.
BUCKETS = (20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3, 1.0)
# A frame or an action that is later than this counts as late.
LATE_FRAME_SECONDS = 0.002
LATE_ACTION_SECONDS = 0.010
SILENCE_SECONDS = 5.0
LATE_STEP_SECONDS = 0.100
# A clock that goes back by more was stepped. Less comes from two threads that log at the same time.
CLOCK_STEP_SECONDS = 0.001
# Drops by the emulation itself, by the samples' reason. missedSlot: frames too old for their next slot.
_LOSSES = {
    "tapRing": "frames dropped in the TAP's own ring",
    "routerSocket": "routing packets dropped in the router's socket",
    "missedSlot": "frames dropped for a missed slot",
}
# Drops by the radio model that grow when frames arrive late and together.
_OVERFLOWS = dict.fromkeys(("interfered", "halfDuplex", "fragmentTimeout"), "frames dropped by the radio model")
_FULL = {"queueFull": "frames dropped by a full queue"}
# Receptions that would have failed had a transmission of another host or network been known in time.
_INTERFERENCE = {"lateInterference": "receptions whose interference was known too late"}
_OFFERED = {"node": pl.String, "since": pl.Int64, "ts": pl.Int64, "framesSent": pl.Int64}
_BUCKET_COLUMNS = [f"bucket{i}" for i in range(len(BUCKETS) + 1)]


@dataclass(frozen=True)
class Interval:
    """An interval in Unix nanoseconds in which deliveries may have been late, by at most `seconds` each."""

    start: int
    end: int
    seconds: float
    what: str
    # Empty where it concerns all deliveries over the radio.
    network: str = ""
    node: str = ""
    # Number of missed TDMA slots, if it has any.
    slots: int = 0


@dataclass(frozen=True)
class Loss:
    """An interval in which the emulation itself lost frames; 0 where it may have lost some in an interval that is late, too."""

    start: int
    end: int
    frames: int
    what: str
    network: str = ""
    node: str = ""


@dataclass(frozen=True)
class Action:
    """A start or stop of an app's instance, at a time in Unix nanoseconds. It was due `seconds` before: a restart when the app had ended."""

    instance: str
    node: str
    what: str
    at: int
    seconds: float

    @property
    def late(self) -> bool:
        """Report whether it was too late to be simultaneous with its peers."""
        return self.seconds > LATE_ACTION_SECONDS


@dataclass
class Lateness:
    """All that was late in a run."""

    intervals: list[Interval] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    # Each a runapi.NetworkTiming.
    networks: list[dict] = field(default_factory=list)
    # Sentences on possible causes.
    context: list[str] = field(default_factory=list)
    # Whether there are the logs of all agents.
    logged: bool = False
    # Intervals in which the radio model dropped frames for reasons that lateness adds to.
    overflows: list[Loss] = field(default_factory=list)
    # Those in which its queues were full.
    full: list[Loss] = field(default_factory=list)
    # Frames that nodes sent from sample to sample.
    offered: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_OFFERED))
    # Intervals with receptions that would have failed had transmissions of other hosts or networks been known in time.
    interference: list[Loss] = field(default_factory=list)


def examine(run: Run, log: RadioLog, found: Lateness) -> None:
    """Add the lateness that radiod logged."""
    if run.t0 is None:
        return
    samples = _between_samples(run, log.samples)
    found.intervals += _late_lines(run, log) + _silence(run, log.samples, [o for o in log.outages if o.what in OUTAGES])
    found.intervals += _clock_steps(log.samples)
    found.intervals += _without_lines(samples, found.intervals)
    found.overflows += _losses(samples, _OVERFLOWS)
    found.full += _losses(samples, _FULL)
    found.offered = samples.select(*_OFFERED)
    found.interference += _losses(samples, _INTERFERENCE)
    # Frames met the earlier values meanwhile: some may have come late, and some may have been lost.
    earlier = _late_steps(run, log.steps) + _late_changes(run, log.changes)
    found.intervals += earlier
    found.losses += _losses(samples, _LOSSES) + [Loss(i.start, i.end, 0, i.what, i.network) for i in earlier]
    found.networks = [_network(*part) for part in samples.partition_by("network", as_dict=True).items()]
    found.context += _stolen(run, log)


def _between_samples(run: Run, samples: pl.DataFrame) -> pl.DataFrame:
    """Each radio's counts between two samples from T0 to the end of the drain, in the times `since` to `ts`."""
    counters = [*_BUCKET_COLUMNS, *_LOSSES, *_OVERFLOWS, *_FULL, *_INTERFERENCE, "slotsMissed", "slotsUsed", "framesSent"]
    end = run.window[1] if run.window else samples["ts"].max() or run.t0
    flat = in_order(samples, *RADIO).with_columns(
        *(pl.col("latenessCounts").list.get(i, null_on_oob=True).alias(name) for i, name in enumerate(_BUCKET_COLUMNS)),
        *(pl.col("drops").struct.field(name) for name in (*_LOSSES, *_OVERFLOWS, *_FULL)),
        counted=pl.col("latenessCounts").is_not_null(),
    )
    grown = flat.with_columns(*map(_grown, counters), before=pl.col("ts").shift(1).over("network", "node")).drop_nulls("before")
    # A clock that was set back in between has all times from the one to the other.
    between = grown.with_columns(since=pl.min_horizontal("before", "ts"), ts=pl.max_horizontal("before", "ts"))
    return between.filter((pl.col("ts") > run.t0) & (pl.col("since") < end))


def _grown(counter: str) -> pl.Expr:
    """Growth of a counter, which starts from 0 with radiod."""
    now = pl.col(counter).fill_null(0)
    before = now.shift(1).over("network", "node")
    return pl.when(now >= before).then(now - before).otherwise(now).alias(counter)


def _late_lines(run: Run, log: RadioLog) -> list[Interval]:
    late, missed = _begun(run, log.late, "fromTs"), _begun(run, log.missed, "slotsMissedFrom")
    found = [
        Interval(start, end, seconds, f"radio of host {host} held up")
        for start, end, seconds, host in late.select("fromTs", "ts", "lateSeconds", "host").rows()
    ]
    for start, end, slots, network, node in missed.select("slotsMissedFrom", "ts", "slots", "network", "node").rows():
        found.append(Interval(start, end, (end - start) / 1e9, f"{slots} tdma slots missed on {network}", network, node, slots))
    return found


def _begun(run: Run, lines: pl.DataFrame, start: str) -> pl.DataFrame:
    """Intervals that end after T0 and begin before the end of the drain."""
    after = lines.filter(pl.col("ts") > run.t0)
    return after if run.measure_end is None else after.filter(pl.col(start) < run.measure_end)


def _without_lines(samples: pl.DataFrame, known: list[Interval]) -> list[Interval]:
    """Seconds with late frames or missed slots and no interval for them, as in older logs."""
    suspect = samples.filter((pl.col("slotsMissed") > 0) | (pl.col("lateReleases") > 0) | (pl.col("worstLatenessSeconds") > LATE_FRAME_SECONDS))
    if suspect.is_empty():
        return []
    lines = pl.DataFrame([(i.start, i.end) for i in known], schema={"start": pl.Int64, "end": pl.Int64}, orient="row").sort("end")
    # The first interval that ends after a second's start is in that second if it begins before its end.
    suspect = suspect.sort("since").join_asof(lines, left_on="since", right_on="end", strategy="forward")
    found = []
    for row in suspect.filter(pl.col("start").is_null() | (pl.col("start") > pl.col("ts"))).iter_rows(named=True):
        of, where = (row["since"], row["ts"]), (row["network"], row["node"])
        if row["slotsMissed"]:
            what = f"{row['slotsMissed']} tdma slots missed on {where[0]}"
            found.append(Interval(*of, row["worstSlotLatenessSeconds"] or 0.0, what, *where, row["slotsMissed"]))
        if (row["worstLatenessSeconds"] or 0.0) > LATE_FRAME_SECONDS:
            found.append(Interval(*of, row["worstLatenessSeconds"], f"frames released late on {where[0]}", *where))
    return found


def _losses(samples: pl.DataFrame, reasons: dict[str, str]) -> list[Loss]:
    found = []
    for reason, what in reasons.items():
        rows = samples.filter(pl.col(reason) > 0).select("since", "ts", reason, "network", "node").rows()
        found += [Loss(start, end, frames, f"{what} on {network}", network, node) for start, end, frames, network, node in rows]
    return found


def _late_steps(run: Run, steps: pl.DataFrame) -> list[Interval]:
    """Intervals in which positions and pathloss were applied late."""
    before = pl.col("ts").shift(1).over("host", "network").fill_null(run.t0)
    late = while_running(run, steps.sort("host", "network", "ts").with_columns(since=before))
    rows = late.filter(pl.col("worstStepLatenessSeconds") > LATE_STEP_SECONDS)
    return [
        Interval(start, end, seconds, f"positions and pathloss of {network} came {seconds:.3f} s late on host {host}", network)
        for start, end, seconds, network, host in rows.select("since", "ts", "worstStepLatenessSeconds", "network", "host").rows()
    ]


def _late_changes(run: Run, changes: pl.DataFrame) -> list[Interval]:
    """Intervals in which changes were due and not carried out."""
    return [
        Interval(due, ts, (ts - due) / 1e9, f"changes of {network} came {(ts - due) / 1e9:.3f} s late on host {host}", network)
        for due, ts, network, host in _begun(run, changes, "changeDueTs").select("changeDueTs", "ts", "network", "host").rows()
        if ts - due > LATE_ACTION_SECONDS * 1e9
    ]


def _clock_steps(samples: pl.DataFrame) -> list[Interval]:
    before = samples.with_columns(before=pl.col("ts").shift(1).over("network", "node"))
    back = before.filter(pl.col("before") - pl.col("ts") > CLOCK_STEP_SECONDS * 1e9).select("ts", "before", "network", "node")
    return [
        Interval(ts, before, (before - ts) / 1e9, f"clock stepped back in samples of {node} on {network}")
        for ts, before, network, node in back.unique(["ts", "before"], keep="first", maintain_order=True).sort("ts").rows()
    ]


def _silence(run: Run, samples: pl.DataFrame, outages: list[Outage]) -> list[Interval]:
    """Intervals without a sample, in which the emulation may have been late. Outages are left out: there was no emulation."""
    found = []
    for (host,), of_host in samples.partition_by(["host"], as_dict=True, maintain_order=True).items():
        whole_host = _pauses(run, of_host["ts"], [o for o in outages if o.concerns(host, "")])
        found += [Interval(a, b, (b - a) / 1e9, f"no radio samples of host {host}") for a, b in whole_host]
        for (network, node), series in of_host.partition_by(["network", "node"], as_dict=True, maintain_order=True).items():
            for a, b in _pauses(run, series["ts"], [o for o in outages if o.concerns(host, node)]):
                if not any(start < b and a < end for start, end in whole_host):
                    found.append(Interval(a, b, (b - a) / 1e9, f"no radio samples of {node} on {network}", network, node))
    return found


def _pauses(run: Run, stamps: pl.Series, outages: list[Outage]) -> list[tuple[int, int]]:
    """Too long intervals without a sample from T0 to the end of the drain, without outages."""
    times = stamps.unique().sort().to_list()
    end = run.window[1] if run.window else times[-1]
    inside = [run.t0, *(ts for ts in times if run.t0 < ts < end), max(end, run.t0)]
    pieces = [piece for pair in itertools.pairwise(inside) for piece in _without(pair, outages)]
    return [(a, b) for a, b in pieces if b - a > SILENCE_SECONDS * 1e9]


def _without(pause: tuple[int, int], outages: list[Outage]) -> list[tuple[int, int]]:
    """The parts of a pause outside outages."""
    start, end = pause
    left = []
    for outage in sorted(outages, key=lambda o: o.start):
        if outage.start >= end:
            break
        left.append((start, outage.start))
        start = max(start, end if outage.end is None else outage.end)
    return [(a, b) for a, b in [*left, (start, end)] if b > a]


def _network(key: tuple, samples: pl.DataFrame) -> dict:
    """One runapi.NetworkTiming. Without a histogram, the frames are those that nodes sent."""
    counts = [int(samples[name].sum()) for name in _BUCKET_COLUMNS]
    uncounted = samples.filter(~pl.col("counted"))
    lateness = [{"upToSeconds": bound, "frames": count} for bound, count in zip((*BUCKETS, None), counts, strict=True)]
    interference = int(samples["lateInterference"].sum())
    slots = {"slots": int(samples["slotsUsed"].sum()), "missed": int(samples["slotsMissed"].sum())}
    return {
        "name": key[0],
        "frames": sum(counts) + int(uncounted["framesSent"].sum()),
        "late": sum(counts[BUCKETS.index(LATE_FRAME_SECONDS) + 1 :]) + int(uncounted["lateReleases"].sum()),
        "worstSeconds": samples["worstLatenessSeconds"].max() or 0.0,
        "lost": sum(int(samples[reason].sum()) for reason in _LOSSES),
        **({"lateInterference": interference} if interference else {}),
        **(slots | {"worstSlotSeconds": samples["worstSlotLatenessSeconds"].max() or 0.0} if any(slots.values()) else {}),
        **({"lateness": lateness} if any(counts) else {}),
    }


def _stolen(run: Run, log: RadioLog) -> list[str]:
    """Processor time that hypervisors took from hosts, and how long tasks waited there."""
    found = []
    for host, seconds in while_running(run, log.stolen).group_by("host").agg(pl.col("stolenSeconds").sum()).sort("host").rows():
        found.append(f"The hypervisor took {seconds:.1f} s of processor time from host {host}.")
    loads = while_running(run, log.loads).group_by("host").agg(pl.col("seconds", "cpuPressureSeconds").sum()).sort("host")
    for host, seconds, waited in loads.rows():
        if waited and waited > 0.05 * seconds:
            found.append(f"Some task on host {host} waited for a processor for {100 * waited / seconds:.0f} % of the time.")
    return found
