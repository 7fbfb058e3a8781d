"""radiod's samples: data volume and frames of each network."""

import itertools
from collections import Counter
from collections.abc import Iterable

import polars as pl

from . import radiolog
from .gaps import Gaps
from .radiolog import RadioLog
from .run import Run


def examine(run: Run, log: RadioLog, gaps: Gaps) -> tuple[list[dict], bool]:
    """Return each network's figures, and whether every radio was sampled."""
    samples = log.samples
    radiolog.name_outages(run, log.outages, gaps)
    radiolog.name_captures(run, log.captures, gaps)
    specs = {n["name"]: n for n in run.plan.get("spec", {}).get("networks") or []}
    networks = dict.fromkeys(specs, 0.0)
    measured: set[str] = set()
    routing = {name: 0.0 for name, network in specs.items() if (network.get("routing") or {}).get("protocol") == "static"}
    frames: dict[str, Counter[str]] = {}
    window = run.window
    ordered = radiolog.in_order(samples, *radiolog.RADIO)
    for (network, node), series in ordered.partition_by(["network", "node"], as_dict=True, maintain_order=True).items():
        rows = series.to_dicts()
        if window:
            networks[network] = networks.get(network, 0.0) + _bytes(run, log, network, node, rows, gaps)
            measured.add(network)
            frames.setdefault(network, Counter()).update(_frames(series, window))
            routed = series.drop_nulls("routingBytesSent")
            if not routed.is_empty():
                routing[network] = routing.get(network, 0.0) + _growth(_counter(routed["ts"], routed["routingBytesSent"]), window)
        _in_flight(run, network, node, rows, gaps)
    whole = not samples.is_empty() and _all_sampled(run, samples, gaps)
    if window is None and networks:
        gaps.add("networks' bytesPerSecond", "the measuring window (first start of a publisher to end of the drain) is not known")
    seconds = (window[1] - window[0]) / 1e9 if window else 0.0
    figures = [
        {"name": n}
        | ({"bytesPerSecond": total / seconds} if n in measured else {})
        | ({"routingBytesPerSecond": routing[n] / seconds} if n in routing and n in measured else {})
        | ({"frames": _rounded(frames[n])} if n in frames else {})
        for n, total in networks.items()
    ]
    return figures, whole


def _all_sampled(run: Run, samples: pl.DataFrame, gaps: Gaps) -> bool:
    """Name every attachment without samples where others have some: whether it kept up is unknown."""
    sampled = set(samples.select("network", "node").unique().rows())
    every = True
    for node in run.nodes:
        for network in node.get("addresses") or {}:
            if (network, node["name"]) not in sampled:
                reason = "the archive has none: what this node sent is not in bytesPerSecond"
                gaps.add(f"radio samples of {node['name']} on {network}", reason, node["name"])
                every = False
    return every


def _counter(times: Iterable[int], counts: Iterable[int | None]) -> list[tuple[int, int]]:
    """A counter's values over time, continued across restarts of radiod."""
    values, offset, before = [], 0, 0
    for ts, count in zip(times, counts, strict=True):
        now = count or 0
        if now < before:
            offset += before
        before = now
        values.append((ts, now + offset))
    return values


def _at(values: list[tuple[int, int]], ts: int) -> float:
    """A counter's value at a time: interpolated between two samples, the nearest one outside."""
    if ts <= values[0][0]:
        return values[0][1]
    for (left, low), (right, high) in itertools.pairwise(values):
        if ts <= right:
            return low + (high - low) * (ts - left) / (right - left) if right > left else high
    return values[-1][1]


def _growth(values: list[tuple[int, int]], window: tuple[int, int]) -> float:
    return _at(values, window[1]) - _at(values, window[0])


def _bytes(run: Run, log: RadioLog, network: str, node: str, rows: list[dict], gaps: Gaps) -> float:
    values = _counter((row["ts"] for row in rows), (row["bytesSent"] for row in rows))
    start, end = run.window
    what = f"radio samples of {node} on {network}"
    if rows[0]["ts"] > start and rows[0]["framesSent"] > 0:
        reason = f"the first sample came late: {rows[0]['bytesSent']} bytes sent before it are not in bytesPerSecond"
        gaps.add(what, reason, node, run.since_t0(start), run.since_t0(rows[0]["ts"]))
    # A host whose whole log ends early is named by the archive's seal.
    if rows[-1]["ts"] < end <= log.until[rows[-1]["host"]]:
        gaps.add(what, "the last sample came before the end of the measurement", node, run.since_t0(rows[-1]["ts"]), run.since_t0(end))
    for before, after in itertools.pairwise(rows):
        if after["bytesSent"] < before["bytesSent"] and start <= after["ts"] and before["ts"] <= end:
            reason = "the counters began at 0 again: what was sent between these two samples may be counted in part"
            gaps.add(what, reason, node, run.since_t0(before["ts"]), run.since_t0(after["ts"]))
    return _growth(values, run.window)


def _frames(series: pl.DataFrame, window: tuple[int, int]) -> dict[str, float]:
    """A radio's frames in the window: sent, received, and dropped by reason."""
    counters = series.select(sent="framesSent", received="framesReceived").hstack(series["drops"].struct.unnest())
    return {c.name: _growth(_counter(series["ts"], c), window) for c in counters if c.max()}


def _rounded(frames: Counter[str]) -> dict:
    """The frames of all radios, of which some are interpolated. Reasons are in the order of the documentation."""
    counts = {name: round(value) for name, value in frames.items()}
    drops = {reason: counts[reason] for reason in radiolog.DROPS if counts.get(reason)}
    return {"sent": counts.get("sent", 0), "received": counts.get("received", 0), "drops": drops or None}


def _in_flight(run: Run, network: str, node: str, rows: list[dict], gaps: Gaps) -> None:
    """Name the frames that radio queues still held when the measurement ended."""
    if run.window is None:
        return
    end = run.window[1]
    depths = [(row["ts"], row["queueDepth"] or 0) for row in rows]
    between = _at(depths, end) if depths[0][0] <= end else 0
    queued = max(round(between), int(between > 0))
    # radiod counts the frames that it drops at the end. A queue sampled just before has the same frames.
    dropped = max(((row["drops"] or {}).get("inFlightAtEnd") or 0 for row in rows), default=0)
    frames = max(queued, dropped)
    about = "about " if queued > dropped and queued not in (depth for ts, depth in depths if ts == end) else ""
    if frames:
        at = run.since_t0(end)
        reason = f"inFlightAtEnd: {about}{frames} frames of {node} were still queued when the drain ended"
        gaps.add(f"frames in flight on {network}", reason, node, at, at)
