"""Network analysis: data volume by layer and protocol, and TCP's retransmissions, from the captures of a run."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from ..gaps import Gaps
from ..radiolog import RadioLog
from ..run import Run
from . import coverage, flows, protocols, tcp, volume
from .coverage import Coverage
from .headers import LAYERS
from .pcapng import CaptureError
from .volume import Volume

# Captures that are read, and tshark processes that run, at the same time.
WORKERS = 2

VOLUME = {
    "network": pl.String,
    "node": pl.String,
    "second": pl.Int64,
    "layer": pl.String,
    "protocol": pl.String,
    "routing": pl.Boolean,
    "frames": pl.Int64,
    "bytes": pl.Int64,
}
_CATEGORIES = ("network", "node", "protocol", "layer")
SIZES = {"network": pl.String, "node": pl.String, "protocol": pl.String, "applicationBytes": pl.Int64, "wireBytes": pl.Int64, "messages": pl.UInt32}
PACKETS = {"network": pl.String, "node": pl.String, "protocol": pl.String, "applicationBytes": pl.Int64, "frames": pl.Int64}


@dataclass
class Captured:
    """Figures from captures. Every frame exists, if empty."""

    # What nodes sent: a row for each combination of these keys, with the layer's bytes and the frames that have any.
    volume: pl.DataFrame
    # One row per direction of a TCP connection: see flows.SCHEMA.
    tcp: pl.DataFrame
    # Number of frames that nodes sent by application size.
    packets: pl.DataFrame
    # Number of messages that nodes sent by their size on the wire, in networks that captures cover in full.
    sizes: pl.DataFrame


class Figures(NamedTuple):
    """A network's part of the results; unknown parts are empty."""

    by_layer: dict[str, float]
    tcp: dict[str, int]


@dataclass
class _Network:
    """One network while it is analysed."""

    coverage: Coverage
    volumes: dict[str, Volume] = field(default_factory=dict)
    verdicts: dict[str, pl.DataFrame] = field(default_factory=dict)
    # Why there are no TCP figures, besides gaps in the coverage.
    no_tcp: list[str] = field(default_factory=list)
    # Captures cover all of its nodes and the whole measurement.
    whole: bool = False
    flows: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=flows.SCHEMA))


def examine(run: Run, log: RadioLog, figures: list[dict], gaps: Gaps, left_out: dict[str, str] | None = None) -> Captured:
    """Analyse the captures of a run and add byLayer and tcp to its networks' figures. Unknown figures become gaps.

    left_out maps archived captures that are not in the run's folder to the reason.
    """
    networks = [_Network(coverage.find(run, log, figure["name"], left_out or {})) for figure in figures]
    if run.t0 is None:
        for network in networks:
            network.coverage.lacks.append("T0 is not known")
    else:
        with ThreadPoolExecutor(WORKERS) as pool:
            _measure(run, networks, pool)
            for network in networks:
                _judge(run, network, pool)
    for network, figure in zip(networks, figures, strict=True):
        if network.coverage.planned:
            _complete(run, network, figure, gaps)
    _not_asked_for(networks, figures, gaps)
    return _frames(networks)


def _measure(run: Run, networks: list[_Network], pool: ThreadPoolExecutor) -> None:
    """Read all captures."""
    ports = protocols.planned(run)
    own = {node["name"]: tuple((node.get("addresses") or {}).values()) for node in run.nodes}
    pending = [
        (network, node, pool.submit(volume.measure, path, run.t0, run.window, ports=ports, addresses=own.get(node, ())))
        for network in networks
        for node, (_, path) in network.coverage.files.items()
    ]
    for network, node, future in pending:
        measured = network.volumes[node] = future.result()
        name = run.relative(network.coverage.files[node][1])
        lacks = network.coverage.lacks
        if measured.problem:
            lacks.append(f"{name} could be read in part only: {measured.problem}")
            last = float(measured.seconds["second"].max() or 0) + 1
            network.coverage.end = min(last, last if network.coverage.end is None else network.coverage.end)
        if measured.undirected:
            lacks.append(f"{name} does not tell who sent {measured.undirected} frames")
        if measured.cut:
            lacks.append(f"{name} lacks the headers of {measured.cut} frames: captureSnapLengthBytes of 96 or more keeps them")
        elif measured.tcp_cut:
            network.no_tcp.append(f"{name} lacks a part of {measured.tcp_cut} TCP headers: captureSnapLengthBytes of 96 or more keeps them")


def _judge(run: Run, network: _Network, pool: ThreadPoolExecutor) -> None:
    """Have tshark judge the captures of nodes that are an end of a TCP connection."""
    owners = flows.owners(run, network.volumes)
    ends = flows.ends(network.volumes, owners)
    if ends and not tcp.available():
        network.no_tcp.append(f"{tcp.PROGRAM}, which tells TCP's retransmissions, is not installed here")
        ends = set()
    pending = {node: pool.submit(tcp.verdicts, network.coverage.files[node][1]) for node in sorted(ends)}
    for node, future in pending.items():
        try:
            network.verdicts[node] = future.result()
        except CaptureError as error:
            network.no_tcp.append(f"{run.relative(network.coverage.files[node][1])}: {error}")
    network.flows = flows.count(run, network.coverage.network, network.volumes, network.verdicts, owners)


def _complete(run: Run, network: _Network, figure: dict, gaps: Gaps) -> None:
    """Add the known figures of a network, and name the unknown ones."""
    coverage = network.coverage
    lacks = coverage.lacks + coverage.chosen + ([] if run.window else ["the measuring window is not known"])
    missing = []
    network.whole = not lacks
    if lacks:
        missing = ["byLayer", "tcp"] + ["routingBytesPerSecond"] * ("routingBytesPerSecond" not in figure)
        end = run.duration_seconds if coverage.end is None else coverage.end
        figure["captured"] = {"nodes": sorted(coverage.files), "fromSeconds": coverage.start or 0.0, "toSeconds": end}
    else:
        figure["byLayer"] = _by_layer(run, network)
        figure.setdefault("routingBytesPerSecond", figure["byLayer"]["routing"])
        if network.no_tcp:
            missing, lacks = ["tcp"], network.no_tcp
        else:
            figure["tcp"] = {name: int(network.flows[name].sum()) for name in tcp.VERDICTS}
    name = coverage.network
    if missing:
        # A figure that nobody asked for is no gap.
        tell = gaps.note if lacks == coverage.chosen else gaps.add
        sizes = [] if network.whole else ["messageSizes leave it out"]
        reason = "; ".join([*lacks, *sizes, "tables volume and tcp have what was captured"])
        tell(f"networks: {', '.join(missing)} of {name}", f"not computed: {reason}")
    elif coverage.dropped:
        gaps.add(f"networks: byLayer, tcp of {name}", f"computed without {coverage.dropped} frames that captures dropped")


def _by_layer(run: Run, network: _Network) -> dict[str, float]:
    """Bytes per second over the measuring window: routing protocols in one sum, all others by layer."""
    seconds = (run.window[1] - run.window[0]) / 1e9
    routing = [protocols.CODES[name] for name in protocols.ROUTING if name in protocols.CODES]
    totals = dict.fromkeys((*LAYERS, "routing"), 0)
    for measured in network.volumes.values():
        inside = measured.seconds.filter("inside").with_columns(routing=pl.col("protocol").is_in(routing))
        for layer in LAYERS:
            totals[layer] += inside.filter(~pl.col("routing"))[layer].sum()
            totals["routing"] += inside.filter("routing")[layer].sum()
    return {layer: total / seconds for layer, total in totals.items()}


def _not_asked_for(networks: list[_Network], figures: list[dict], gaps: Gaps) -> None:
    """Note how to get figures for networks without captures."""
    names = [network.coverage.network for network in networks if not network.coverage.planned]
    if names:
        # radiod counts the bytes of its own routing protocols.
        known = all("routingBytesPerSecond" in figure for figure in figures if figure["name"] in names)
        what = f"networks: byLayer, {'' if known else 'routingBytesPerSecond, '}tcp of {', '.join(names)}"
        asked = f"collect: {{captures: [{', '.join(names)}], captureSnapLengthBytes: 96}}"
        gaps.note(what, f"no frames were captured: ask for them in the experiment's spec, {asked}")


def _frames(networks: list[_Network]) -> Captured:
    volumes, packets, sizes = ([pl.DataFrame(schema=schema)] for schema in (VOLUME, PACKETS, SIZES))
    for network in networks:
        for node, measured in network.volumes.items():
            where = {"network": pl.lit(network.coverage.network), "node": pl.lit(node), "protocol": _names(pl.col("protocol"))}
            volumes.append(_by_second(measured.seconds).with_columns(**where).select(*VOLUME))
            packets.append(measured.packets.rename({"application": "applicationBytes"}).with_columns(**where).select(*PACKETS))
            if network.whole:
                sizes.append(measured.messages.with_columns(**where).select(*SIZES))
    return Captured(
        volume=pl.concat(volumes).sort("network", "node", "second", "protocol", "layer").with_columns(pl.col(_CATEGORIES).cast(pl.Categorical)),
        tcp=pl.concat([pl.DataFrame(schema=flows.SCHEMA), *(network.flows for network in networks)]).with_columns(
            pl.col(_CATEGORIES[:2]).cast(pl.Categorical)
        ),
        packets=pl.concat(packets).with_columns(pl.col(_CATEGORIES[:3]).cast(pl.Categorical)),
        sizes=pl.concat(sizes),
    )


def _by_second(seconds: pl.DataFrame) -> pl.DataFrame:
    """Turn a column for each layer into a row for each layer."""
    parts = []
    for layer in LAYERS:
        some = seconds.group_by("second", "protocol").agg(frames=pl.col(f"{layer}Frames").sum(), bytes=pl.col(layer).sum())
        parts.append(some.filter(pl.col("frames") > 0).with_columns(layer=pl.lit(layer)))
    return pl.concat(parts).with_columns(routing=_names(pl.col("protocol")).is_in(sorted(protocols.ROUTING)))


def _names(codes: pl.Expr) -> pl.Expr:
    return codes.replace_strict(dict(enumerate(protocols.NAMES)), return_dtype=pl.String)
