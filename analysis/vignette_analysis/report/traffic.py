"""Data volume and TCP: what captures tell of the networks."""

import polars as pl

from ..analysis import Analysis
from . import charts
from .charts import number
from .parts import Chart, Section, Table, Text, table
from .sections import MAX_TIMES, about, happenings

LAYERS = ("ethernet", "ip", "transport", "application")
_NONE = pl.DataFrame()


def volume_section(analysis: Analysis) -> Section:
    """Bytes of each network by layer, over time and by protocol."""
    networks = analysis.results["networks"] or []
    parts: list = [_rates(networks)] if networks else []
    volume = getattr(analysis, "volume", _NONE)
    if volume.is_empty():
        parts.append(Text("By layer and protocol: not known, as no capture was analysed. An experiment asks for captures with collect.captures."))
        return Section("volume", "Data volume", parts)
    for key, part in volume.partition_by("network", as_dict=True, maintain_order=True).items():
        parts += [_by_layer(analysis, str(key[0]), part), _by_protocol(str(key[0]), part, analysis.run.duration_seconds)]
    return Section("volume", "Data volume", parts)


def _rates(networks: list[dict]) -> Table:
    rows = []
    for entry in networks:
        layers = entry.get("byLayer") or {}
        cells = [number(entry.get(name)) for name in ("bytesPerSecond", "routingBytesPerSecond")]
        rows.append((entry["name"], *cells, *(number(layers.get(layer)) for layer in LAYERS)))
    return table("Bytes per second, from the first start of a publisher to the end of the drain", ("Network", "All", "Routing", *LAYERS), rows)


def _by_layer(analysis: Analysis, network: str, part: pl.DataFrame) -> Chart:
    last = max(int(part["second"].max()), 0)
    width = max(1, -(-(last + 1) // MAX_TIMES))
    sums = part.filter(pl.col("second") >= 0).group_by(at=pl.col("second") // width, layer=pl.col("layer").cast(pl.String)).agg(bytes=pl.col("bytes").sum())
    by = {(row["at"], row["layer"]): row["bytes"] / width for row in sums.to_dicts()}
    times = range(last // width + 1)
    series = [(layer, [by.get((t, layer), 0.0) for t in times]) for layer in LAYERS]
    bands, marks = happenings(analysis)
    alt = f"Bytes per second on {network} by layer over time; totals by protocol are in the table below."
    svg = charts.stacked(series, [t * width + width / 2 for t in times], analysis.run.duration_seconds, ("time after T0 (s)", "bytes/s"), alt, bands, marks)
    caption = f"Bytes sent by all nodes, each frame once: headers of each layer, and what applications sent. Averages over {width} s." + about(bands, marks)
    rows = [(layer, number(int(sums.filter(pl.col("layer") == layer)["bytes"].sum())), number(max(values))) for layer, values in series]
    figures = table("Figures", ("Layer", "Bytes in all", "Most in one interval (bytes/s)"), rows, folded=True)
    return Chart(f"Data volume by layer: {network}", svg, caption, [(f"s{i}", layer) for i, layer in enumerate(LAYERS)], figures)


def _by_protocol(network: str, part: pl.DataFrame, seconds: float) -> Table:
    # A frame has a row for each layer that it has bytes of: the layer that has them all counts it once.
    sums = part.group_by(protocol=pl.col("protocol").cast(pl.String), routing="routing").agg(
        frames=pl.col("frames").filter(pl.col("layer").cast(pl.String) == "ethernet").sum(), bytes=pl.col("bytes").sum()
    )
    rows = [
        (r["protocol"], "routing" if r["routing"] else "", number(r["frames"]), number(r["bytes"]), number(r["bytes"] / seconds if seconds else None))
        for r in sums.sort(["bytes", "protocol"], descending=[True, False]).to_dicts()
    ]
    return table(f"Data volume by protocol: {network}", ("Protocol", "", "Frames", "Bytes", "Bytes/s"), rows, text=(0, 1))


def tcp_section(analysis: Analysis) -> Section:
    """Retransmissions and duplicate ACKs."""
    totals = [(e["name"], *(number(e["tcp"].get(c)) for c in ("retransmissions", "spurious", "duplicateAcks"))) for e in analysis.results["networks"] or [] if e.get("tcp")]
    if not totals:
        return Section("tcp", "TCP", [Text("Not known: no capture was analysed.")])
    parts: list = [table("TCP by network", ("Network", "Retransmissions", "of these spurious", "Duplicate ACKs"), totals)]
    flows = getattr(analysis, "tcp", _NONE)
    if not flows.is_empty():
        worst = flows.sort(["retransmissions", "bytes", "network", "flow"], descending=[True, True, False, False]).head(100).to_dicts()
        rows = [(str(r["flow"]), str(r["node"]), str(r["network"]), *(number(r[c]) for c in ("retransmissions", "spurious", "duplicateAcks", "frames", "bytes"))) for r in worst]
        header = ("Flow", "Node", "Network", "Retransmissions", "Spurious", "Duplicate ACKs", "Frames", "Bytes")
        parts.append(table("Flows with the most retransmissions", header, rows, folded=True, text=(0, 1, 2)))
    return Section("tcp", "TCP", [*parts, Text("By Wireshark's definitions.", "note")])
