"""radiod's samples: data volume of each network, and whether the emulation kept up."""

import itertools
import math

import polars as pl

from . import jsonlines
from .agents import late_entry
from .gaps import Gaps
from .run import Run

_SCHEMA = {
    "ts": pl.Int64,
    "network": pl.String,
    "node": pl.String,
    "framesSent": pl.Int64,
    "bytesSent": pl.Int64,
    "queueDepth": pl.Int64,
    "host": pl.String,
    "drops": pl.Struct({"inFlightAtEnd": pl.Int64, "tapRing": pl.Int64}),
    "worstLatenessSeconds": pl.Float64,
    "lateReleases": pl.Int64,
}
# Bounds of the verdict; README says how they were chosen.
LATE_RELEASE_SECONDS = 0.010
LATE_RELEASE_SHARE = 0.01
SILENCE_SECONDS = 5.0
CLOCK_STEP_SECONDS = 0.001


def read(run: Run, gaps: Gaps) -> pl.DataFrame:
    """Read every host's samples, in the order of each file."""
    frames = [pl.DataFrame(schema=_SCHEMA)]
    for path in run.files("radio/*.jsonl"):
        raw, bad, torn = jsonlines.read(path, _SCHEMA)
        good = raw.filter((pl.col("ts") > 0) & pl.all_horizontal(pl.col("network", "node", "framesSent", "bytesSent").is_not_null()))
        # A line that names its host is radiod's record of the namespace's settings, for the run record.
        settings = raw.filter((pl.col("ts") > 0) & pl.col("host").is_not_null() & pl.col("network").is_null())
        bad += raw.height - good.height - settings.height
        name = run.relative(path)
        if bad and not (bad == 1 and torn and gaps.names(f"log {name}")):
            gaps.add(f"log {name}", f"{bad} lines are no samples{', the last one is torn' if torn else ''}")
        frames.append(good.with_columns(host=pl.lit(path.stem)))
    return pl.concat(frames)


def examine(run: Run, gaps: Gaps) -> tuple[list[dict], list[dict], bool]:
    """Returns each network's figures, what was late, and whether there are any samples."""
    samples = read(run, gaps)
    networks = {n["name"]: 0.0 for n in run.plan.get("spec", {}).get("networks") or []}
    if samples.is_empty() and networks and not gaps.names("radio samples"):
        gaps.add("radio samples", "the archive has none: data volumes and the emulation's lateness are not known")
    late = _silence(run, samples)
    measured: set[str] = set()
    window = run.window
    for (network, node), series in samples.partition_by(["network", "node"], as_dict=True, maintain_order=True).items():
        rows = series.to_dicts()
        late += _clock_steps(run, node, network, rows)
        rows.sort(key=lambda row: row["ts"])
        if window:
            networks[network] = networks.get(network, 0.0) + _bytes(run, network, node, rows, window, gaps)
            measured.add(network)
        late += _late(run, network, node, rows)
        _in_flight(run, network, node, rows, gaps)
    if not samples.is_empty():
        _unsampled(run, samples, gaps)
    if window is None and networks:
        gaps.add("networks' bytesPerSecond", "the measuring window (first start of a publisher to end of the drain) is not known")
    seconds = (window[1] - window[0]) / 1e9 if window else 0.0
    figures = [{"name": n} | ({"bytesPerSecond": total / seconds} if n in measured else {}) for n, total in networks.items()]
    return figures, late, not samples.is_empty()


def _unsampled(run: Run, samples: pl.DataFrame, gaps: Gaps) -> None:
    """Name every attachment that no radiod sampled, though others were."""
    sampled = set(samples.select("network", "node").unique().rows())
    for node in run.nodes:
        for network in node.get("addresses") or {}:
            if (network, node["name"]) not in sampled:
                reason = "the archive has none: what this node sent is not in bytesPerSecond"
                gaps.add(f"radio samples of {node['name']} on {network}", reason, node["name"])


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


def _silence(run: Run, samples: pl.DataFrame) -> list[dict]:
    """Times during the run at which a host's radiod took no sample at all."""
    found = []
    for (host,), series in samples.partition_by(["host"], as_dict=True, maintain_order=True).items():
        rows = [{"ts": ts} for ts in series["ts"].unique().sort()]
        for before, after in _during(run, rows):
            length = (after["ts"] - before["ts"]) / 1e9
            if length > SILENCE_SECONDS:
                what = f"no radio samples of host {host}: the clock stepped on, or radiod stood still"
                found.append(late_entry("", run.since_t0(before["ts"]), run.since_t0(after["ts"]), what, length))
    return found


def _during(run: Run, rows: list[dict]) -> list[tuple[dict, dict]]:
    """Pairs of samples between T0 and the end of the drain: what lies between them counts."""
    if run.t0 is None:
        return []
    end = run.window[1] if run.window else rows[-1]["ts"]
    return [(a, b) for a, b in itertools.pairwise(rows) if b["ts"] > run.t0 and a["ts"] < end]


def _late(run: Run, network: str, node: str, rows: list[dict]) -> list[dict]:
    pairs = _during(run, rows)
    found: list[dict] = []
    releases = frames = rings = 0
    worst = 0.0
    previous_late = False
    for before, after in pairs:
        here = after["worstLatenessSeconds"] or 0.0
        worst = max(worst, here)
        releases += after["lateReleases"] or 0
        frames += max(after["framesSent"] - before["framesSent"], 0)
        rings += max(_drops(after, "tapRing") - _drops(before, "tapRing"), 0)
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
