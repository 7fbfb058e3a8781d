"""radiod's samples: data volume of each network, and whether the emulation kept up."""

import itertools
import math

import polars as pl

from . import hosts, radiolog
from .agents import late_entry
from .gaps import Gaps
from .radiolog import Outage, RadioLog
from .run import Run

# Bounds of the verdict; README says how they were chosen.
LATE_RELEASE_SECONDS = 0.010
LATE_RELEASE_SHARE = 0.01
SILENCE_SECONDS = 5.0
LATE_STEP_SECONDS = 0.100
CLOCK_STEP_SECONDS = 0.001


def examine(run: Run, log: RadioLog, gaps: Gaps) -> tuple[list[dict], list[dict], bool]:
    """Returns each network's figures, what was late, and whether every radio was sampled."""
    samples = log.samples
    radiolog.name_outages(run, log.outages, gaps)
    radiolog.name_captures(run, log.captures, gaps)
    networks = {n["name"]: 0.0 for n in run.plan.get("spec", {}).get("networks") or []}
    if samples.is_empty() and networks and not gaps.names("radio samples"):
        gaps.add("radio samples", "the archive has none: data volumes and the emulation's lateness are not known")
    late = _silence(run, samples, [o for o in log.outages if o.what != hosts.UNREACHABLE]) + _late_steps(run, log.steps)
    late += hosts.examine(run, log.peers, log.outages, gaps)
    measured: set[str] = set()
    routing: dict[str, float] = {}
    window = run.window
    for (network, node), series in samples.partition_by(["network", "node"], as_dict=True, maintain_order=True).items():
        rows = series.to_dicts()
        late += _clock_steps(run, node, network, rows)
        rows.sort(key=lambda row: row["ts"])
        if window:
            networks[network] = networks.get(network, 0.0) + _bytes(run, network, node, rows, window, gaps)
            measured.add(network)
            routed = [row for row in rows if row["routingBytesSent"] is not None]
            if routed:
                values = _counter(routed, "routingBytesSent")
                routing[network] = routing.get(network, 0.0) + _at(values, window[1]) - _at(values, window[0])
        late += _late(run, network, node, rows) + _missed_slots(run, network, node, rows)
        _in_flight(run, network, node, rows, gaps)
    whole = not samples.is_empty() and _all_sampled(run, samples, gaps)
    if window is None and networks:
        gaps.add("networks' bytesPerSecond", "the measuring window (first start of a publisher to end of the drain) is not known")
    seconds = (window[1] - window[0]) / 1e9 if window else 0.0
    figures = [
        {"name": n}
        | ({"bytesPerSecond": total / seconds} if n in measured else {})
        | ({"routingBytesPerSecond": routing[n] / seconds} if n in routing else {})
        for n, total in networks.items()
    ]
    return figures, late, whole


def _all_sampled(run: Run, samples: pl.DataFrame, gaps: Gaps) -> bool:
    """Name every attachment that no radiod sampled, though others were: of those nobody knows whether they kept up."""
    sampled = set(samples.select("network", "node").unique().rows())
    every = True
    for node in run.nodes:
        for network in node.get("addresses") or {}:
            if (network, node["name"]) not in sampled:
                reason = "the archive has none: what this node sent is not in bytesPerSecond"
                gaps.add(f"radio samples of {node['name']} on {network}", reason, node["name"])
                every = False
    return every


def _counter(rows: list[dict], field: str) -> list[tuple[int, int]]:
    """A counter's values over time, made to grow on where radiod began anew."""
    values, offset, before = [], 0, 0
    for row in rows:
        now = row[field] or 0
        if now < before:
            offset += before
        before = now
        values.append((row["ts"], now + offset))
    return values


def _at(values: list[tuple[int, int]], ts: int) -> float:
    """A counter at a time, by linear interpolation between two samples; beyond them, the nearest one."""
    if ts <= values[0][0]:
        return values[0][1]
    for (left, low), (right, high) in itertools.pairwise(values):
        if ts <= right:
            return low + (high - low) * (ts - left) / (right - left) if right > left else high
    return values[-1][1]


def _bytes(run: Run, network: str, node: str, rows: list[dict], window: tuple[int, int], gaps: Gaps) -> float:
    values = _counter(rows, "bytesSent")
    start, end = window
    what = f"radio samples of {node} on {network}"
    if rows[0]["ts"] > start and rows[0]["framesSent"] > 0:
        reason = f"the first sample came late: {rows[0]['bytesSent']} bytes sent before it are not in bytesPerSecond"
        gaps.add(what, reason, node, run.since_t0(start), run.since_t0(rows[0]["ts"]))
    if rows[-1]["ts"] < end:
        gaps.add(what, "the last sample came before the end of the measurement", node, run.since_t0(rows[-1]["ts"]), run.since_t0(end))
    for before, after in itertools.pairwise(rows):
        if after["bytesSent"] < before["bytesSent"] and start <= after["ts"] and before["ts"] <= end:
            reason = "the counters began anew: what was sent between these two samples may be counted in part"
            gaps.add(what, reason, node, run.since_t0(before["ts"]), run.since_t0(after["ts"]))
    return _at(values, end) - _at(values, start)


def _clock_steps(run: Run, node: str, network: str, rows: list[dict]) -> list[dict]:
    found = []
    for before, after in itertools.pairwise(rows):
        back = (before["ts"] - after["ts"]) / 1e9
        if back > CLOCK_STEP_SECONDS:
            found.append(late_entry(node, run.since_t0(after["ts"]), run.since_t0(before["ts"]), f"clock stepped back in samples of {network}", back))
    return found


def _silence(run: Run, samples: pl.DataFrame, outages: list[Outage]) -> list[dict]:
    """Times during the run at which no sample was taken: nobody knows that the emulation kept up then.

    What a named outage covers is no lateness: the gap says that there was no emulation at all.
    """
    if run.t0 is None:
        return []
    found = []
    for (host,), of_host in samples.partition_by(["host"], as_dict=True, maintain_order=True).items():
        whole_host = _pauses(run, of_host["ts"], [o for o in outages if o.concerns(host, "")])
        what = f"no radio samples of host {host}: the clock stepped on, or radiod stood still"
        found += [late_entry("", run.since_t0(a), run.since_t0(b), what, (b - a) / 1e9) for a, b in whole_host]
        for (network, node), series in of_host.partition_by(["network", "node"], as_dict=True, maintain_order=True).items():
            for a, b in _pauses(run, series["ts"], [o for o in outages if o.concerns(host, node)]):
                if not any(start < b and a < end for start, end in whole_host):
                    found.append(late_entry(node, run.since_t0(a), run.since_t0(b), f"no radio samples of {node} on {network}", (b - a) / 1e9))
    return found


def _pauses(run: Run, stamps: pl.Series, outages: list[Outage]) -> list[tuple[int, int]]:
    """Times from T0 to the end of the drain without a sample, outages left out, that are too long."""
    times = stamps.unique().sort().to_list()
    end = run.window[1] if run.window else times[-1]
    inside = [run.t0, *(ts for ts in times if run.t0 < ts < end), max(end, run.t0)]
    pieces = [piece for pair in itertools.pairwise(inside) for piece in _without(pair, outages)]
    return [(a, b) for a, b in pieces if b - a > SILENCE_SECONDS * 1e9]


def _without(pause: tuple[int, int], outages: list[Outage]) -> list[tuple[int, int]]:
    """What is left of a pause between outages."""
    start, end = pause
    left = []
    for outage in sorted(outages, key=lambda o: o.start):
        if outage.start >= end:
            break
        left.append((start, outage.start))
        start = max(start, end if outage.end is None else outage.end)
    return [(a, b) for a, b in [*left, (start, end)] if b > a]


def _during(run: Run, rows: list[dict]) -> list[tuple[dict, dict]]:
    """Pairs of samples between T0 and the end of the drain: what lies between them counts."""
    if run.t0 is None:
        return []
    end = run.window[1] if run.window else rows[-1]["ts"]
    return [(a, b) for a, b in itertools.pairwise(rows) if b["ts"] > run.t0 and a["ts"] < end]


def _late(run: Run, network: str, node: str, rows: list[dict]) -> list[dict]:
    pairs = _during(run, rows)
    found: list[dict] = []
    releases = frames = rings = routers = 0
    worst = 0.0
    previous_late = False
    for before, after in pairs:
        here = after["worstLatenessSeconds"] or 0.0
        worst = max(worst, here)
        releases += after["lateReleases"] or 0
        frames += max(after["framesSent"] - before["framesSent"], 0)
        rings += max(_drops(after, "tapRing") - _drops(before, "tapRing"), 0)
        routers += max(_drops(after, "routerSocket") - _drops(before, "routerSocket"), 0)
        is_late = here > LATE_RELEASE_SECONDS
        if is_late and previous_late:
            found[-1]["toSeconds"] = run.since_t0(after["ts"])
            found[-1]["worstSeconds"] = max(found[-1]["worstSeconds"], here)
        elif is_late:
            found.append(late_entry(node, run.since_t0(before["ts"]), run.since_t0(after["ts"]), f"frames released late on {network}", here))
        previous_late = is_late
    if pairs:
        whole = run.since_t0(pairs[0][0]["ts"]), run.since_t0(pairs[-1][1]["ts"])
        if frames and releases > _allowed(frames):
            found.append(late_entry(node, *whole, f"{releases} of {frames} frames released over 2 ms late on {network}", worst))
        if rings:
            found.append(late_entry(node, *whole, f"{rings} frames dropped in the TAP's own ring on {network}", 0.0))
        if routers:
            found.append(late_entry(node, *whole, f"{routers} routing packets dropped in the router's socket on {network}", 0.0))
    return found


def _missed_slots(run: Run, network: str, node: str, rows: list[dict]) -> list[dict]:
    """Times in which radiod was too late for time slots of a node: a slot that is missed carries nothing, so that each one counts."""
    found: list[dict] = []
    missed = 0
    for before, after in _during(run, rows):
        now, then = after["slotsMissed"] or 0, before["slotsMissed"] or 0
        slots = now - then if now >= then else now
        worst = after["worstSlotLatenessSeconds"] or 0.0
        if not slots:
            missed = 0
            continue
        start, end = run.since_t0(before["ts"]), run.since_t0(after["ts"])
        if missed:
            start, worst = found[-1]["fromSeconds"], max(worst, found[-1]["worstSeconds"])
            found.pop()
        missed += slots
        found.append(late_entry(node, start, end, f"{missed} tdma slots missed on {network}", worst))
    return found


def _late_steps(run: Run, steps: pl.DataFrame) -> list[dict]:
    """Times in which positions and pathloss came later than the scenario says."""
    found: list[dict] = []
    for (host, network), series in steps.partition_by(["host", "network"], as_dict=True, maintain_order=True).items():
        for before, after in _during(run, series.sort("ts").to_dicts()):
            worst = after["worstStepLatenessSeconds"] or 0.0
            if worst > LATE_STEP_SECONDS:
                what = f"positions and pathloss of {network} came late on host {host}"
                found.append(late_entry("", run.since_t0(before["ts"]), run.since_t0(after["ts"]), what, worst))
    return found


def _allowed(frames: int) -> float:
    """Late releases that a share of LATE_RELEASE_SHARE may show by chance: three standard deviations above it."""
    mean = LATE_RELEASE_SHARE * frames
    return mean + 3 * math.sqrt(mean * (1 - LATE_RELEASE_SHARE))


def _drops(row: dict, reason: str) -> int:
    return (row["drops"] or {}).get(reason) or 0


def _in_flight(run: Run, network: str, node: str, rows: list[dict], gaps: Gaps) -> None:
    """Name the frames that radio queues still held when the measurement ended."""
    if run.window is None:
        return
    end = run.window[1]
    up_to = [row for row in rows if row["ts"] <= end]
    queued = up_to[-1]["queueDepth"] or 0 if up_to else 0
    # radiod counts what it throws away at the end; a queue seen just before it is the same frames.
    frames = max(queued, max((_drops(row, "inFlightAtEnd") for row in rows), default=0))
    if frames:
        at = run.since_t0(end)
        gaps.add(f"frames in flight on {network}", f"inFlightAtEnd: {frames} frames of {node} were still queued when the drain ended", node, at, at)
