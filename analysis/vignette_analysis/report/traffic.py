"""Data volume and TCP figures from the networks' captures."""

import math

import numpy as np
import polars as pl

from ..data.captures.coverage import Covered, covered
from ..figures import summary
from ..figures.analysis import Analysis
from . import charts, times
from .charts import number
from .parts import Chart, Section, Table, Text, table

LAYERS = ("ethernet", "ip", "transport", "application")
_LAYERS = ("Ethernet", "IP", "transport", "application")
# A part of the chart of layers: what routing protocols send, with all of its headers.
_ROUTING = "routing"
# Most TCP flows in the table.
MAX_FLOWS = 100
_TCP = {"retransmissions": "Retransmissions", "spurious": "Spurious", "duplicateAcks": "Duplicate ACKs"}


def volume_section(analysis: Analysis) -> Section:
    """Bytes of each network by layer, over time and by protocol."""
    networks = analysis.results["networks"] or []
    window = Text("From the first start of a publisher to the end of the drain.", "note")
    parts: list = [_rates(networks), *_frames(networks), window] if networks else []
    if analysis.volume.is_empty():
        parts.append(Text("By layer and protocol: not known, as no capture was analysed; an experiment asks for captures with collect.captures."))
        return Section("volume", "Data volume", parts)
    for key, part in analysis.volume.partition_by("network", as_dict=True, maintain_order=True).items():
        network = str(key[0])
        # The table has whole seconds, also that in which the drain ended.
        known = covered(analysis.results, network, math.ceil(analysis.run.duration_seconds))
        part = part.filter(pl.col("second").is_between(int(known.start), known.end, closed="left"))
        if part.is_empty():
            parts.append(Text(f"By layer and protocol on {network}: nothing was captured that was {known}."))
        else:
            parts += [_by_layer(analysis, f"{network}, {known}", part, known), _by_protocol(f"{network}, {known}", part, known.end - known.start)]
    return Section("volume", "Data volume", parts)


def _rates(networks: list[dict]) -> Table:
    rows = []
    for entry in networks:
        layers = entry.get("byLayer") or {}
        cells = [number(entry.get(name)) for name in ("bytesPerSecond", "routingBytesPerSecond")]
        rows.append((entry["name"], *cells, *(number(layers.get(layer)) for layer in LAYERS)))
    return table("Bytes per second of all nodes", ("Network", "All", "Routing", *_LAYERS), rows)


def _frames(networks: list[dict]) -> list[Table]:
    counted = [(entry["name"], entry["frames"]) for entry in networks if entry.get("frames")]
    rows = [(name, number(frames["sent"]), number(frames["received"]), summary.dropped(frames)) for name, frames in counted]
    return [table("Frames of all radios", ("Network", "Sent", "Received", "Dropped, by reason"), rows, text=(0, 3))] if rows else []


def _by_layer(analysis: Analysis, of: str, part: pl.DataFrame, known: Covered) -> Chart:
    first = int(known.start)
    width = times.width(known.end - first)
    at = (pl.col("second") - first) // width
    layer = pl.when("routing").then(pl.lit(_ROUTING)).otherwise(pl.col("layer").cast(pl.String))
    sums = part.group_by(at=at, layer=layer).agg(bytes=pl.col("bytes").sum())
    sizes = {(row["at"], row["layer"]): row["bytes"] for row in sums.to_dicts()}
    seconds = known.share(first, width, max(math.ceil((known.end - first) / width), 1))
    intervals = np.flatnonzero(~np.isnan(seconds)).tolist()
    series = [(name, [sizes.get((t, name), 0) / seconds[t] for t in intervals]) for name in (*LAYERS, _ROUTING)]
    bands, marks = times.happenings(analysis)
    axes = charts.Axes([first + (t + 0.5) * width for t in intervals], analysis.run.duration_seconds, times.AFTER_T0, "bytes/s")
    alt = f"Bytes per second by layer over time on {of}; totals by layer are in the table below."
    caption = f"Bytes that {known.nodes} sent, each frame once: headers of each layer, what applications sent, and routing apart. "
    caption += f"Averages over {width} s."
    if known.start > 0 or known.end < analysis.run.duration_seconds:
        caption += f" Nothing was captured before {number(known.start)} s and after {number(known.end)} s."
    totals = dict(sums.group_by("layer").agg(pl.col("bytes").sum()).iter_rows())
    names = (*_LAYERS, "routing, all layers")
    rows = [(said, number(totals.get(name, 0)), number(max(values, default=0))) for said, (name, values) in zip(names, series, strict=True)]
    figures = table("Figures", ("Layer", "Bytes in all", "Most in one interval (bytes/s)"), rows, folded=True)
    legend = [(f"s{i}", name) for i, name in enumerate(names)]
    svg = charts.stacked(series, axes, alt, bands, marks)
    return Chart(f"Data volume by layer: {of}", svg, caption + times.about(bands, marks), legend, figures)


def _by_protocol(of: str, part: pl.DataFrame, seconds: float) -> Table:
    # A frame has a row for each of its layers. The Ethernet layer has all frames, and counts each once.
    sums = part.group_by(protocol=pl.col("protocol").cast(pl.String), routing="routing").agg(
        frames=pl.col("frames").filter(pl.col("layer").cast(pl.String) == "ethernet").sum(), bytes=pl.col("bytes").sum()
    )
    rows = []
    for row in sums.sort("bytes", "protocol", descending=[True, False]).to_dicts():
        rate = number(row["bytes"] / seconds if seconds else None)
        rows.append((row["protocol"], "routing" if row["routing"] else "", number(row["frames"]), number(row["bytes"]), rate))
    return table(f"Data volume by protocol: {of}", ("Protocol", "", "Frames", "Bytes", "Bytes/s"), rows, text=(0, 1))


def tcp_section(analysis: Analysis) -> Section:
    """Retransmissions and duplicate ACKs."""
    totals = [(e["name"], *(number(e["tcp"].get(c)) for c in _TCP)) for e in analysis.results["networks"] or [] if e.get("tcp")]
    if not totals and analysis.tcp.is_empty():
        return Section("tcp", "TCP", [Text("Not known: no capture was analysed, or there was no TCP in it.")])
    parts: list = [table("TCP by network", ("Network", *_TCP.values()), totals)] if totals else []
    for entry in analysis.results["networks"] or []:
        if entry.get("captured"):
            known = covered(analysis.results, entry["name"], analysis.run.duration_seconds)
            parts.append(Text(f"Of {entry['name']} only flows in what was {known} are known."))
    if not analysis.tcp.is_empty():
        worst = analysis.tcp.sort("retransmissions", "bytes", "network", "flow", descending=[True, True, False, False], nulls_last=True).head(
            MAX_FLOWS
        )
        rows = [(str(r["flow"]), str(r["node"]), str(r["network"]), *(number(r[c]) for c in (*_TCP, "frames", "bytes"))) for r in worst.to_dicts()]
        header = ("Flow", "Node", "Network", *_TCP.values(), "Frames", "Bytes")
        parts.append(table("Flows with the most retransmissions", header, rows, folded=True, text=(0, 1, 2)))
    return Section("tcp", "TCP", [*parts, Text("By Wireshark's definitions. tcp.csv has every flow.", "note")])
