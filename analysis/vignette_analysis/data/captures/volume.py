"""Data volume of one capture: what its node sent, by second, layer and protocol."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from . import pcapng, protocols
from .headers import LAYERS, Dissector, Headers
from .pcapng import Frames
from .sizes import Sizes

_TIME = ("second", "inside", "protocol")
_PACKET = ("protocol", "application")
_FLOW = ("version6", "source", "sourceLow", "destination", "destinationLow", "sourcePort", "destinationPort")
_FIRST = "first"
_ADDRESS_OFFSETS = {False: (26, 4), True: (22, 16)}


@dataclass
class Volume:
    """What a node sent on a network, according to its capture."""

    # second, inside, protocol (code), and each layer's bytes and frames that have any: a row for each combination.
    seconds: pl.DataFrame
    # protocol (code), application bytes, frames.
    packets: pl.DataFrame
    # source, destination, sourcePort, destinationPort of TCP, frames and bytes inside the measuring window, and first, the time of the first one.
    flows: pl.DataFrame
    # See sizes.SCHEMA.
    messages: pl.DataFrame
    frames: int = 0
    bytes: int = 0
    # Frames with cut headers, with cut TCP headers, and without a direction.
    cut: int = 0
    tcp_cut: int = 0
    undirected: int = 0
    # The error that stopped reading the file.
    problem: str = ""


@dataclass
class _Sums:
    """Sums of the chunks so far."""

    keys: tuple[str, ...]
    parts: list[pl.DataFrame] = field(default_factory=list)
    rows: int = 0

    def add(self, part: pl.DataFrame) -> None:
        self.parts.append(self._group(part))
        self.rows += self.parts[-1].height
        if self.rows > 1 << 18 and len(self.parts) > 1:
            total = self.total()
            self.parts, self.rows = [total], 0

    def total(self) -> pl.DataFrame:
        return self._group(pl.concat(self.parts)).sort(self.keys)

    def _group(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.group_by(self.keys).agg(
            pl.col(name).min() if name == _FIRST else pl.col(name).sum() for name in rows.columns if name not in self.keys
        )


def measure(
    path: Path,
    t0: int,
    window: tuple[int, int] | None,
    chunk_bytes: int = pcapng.CHUNK_BYTES,
    ports: protocols.Ports = protocols.USUAL,
    addresses: Iterable[str] = (),
) -> Volume:
    """Read a capture of a node with these addresses; times are Unix nanoseconds. Without a window all frames are inside."""
    sums = tuple(_Sums(keys) for keys in (_TIME, _PACKET, _FLOW))
    nothing = np.zeros(0, dtype=np.int64)
    none = Frames(np.zeros(pcapng.MARGIN_BYTES, dtype=np.uint8), *(nothing,) * 4, *(nothing.astype(bool),) * 2)
    dissector, sizes = Dissector(ports), Sizes(addresses)
    result = Volume(*(pl.DataFrame(),) * 4)
    _count(none, dissector, t0, window, sums, sizes, result)
    try:
        for frames in pcapng.read(path, chunk_bytes):
            result.undirected += int((~frames.outbound & ~frames.inbound).sum())
            _count(frames.select(frames.outbound), dissector, t0, window, sums, sizes, result)
    except (pcapng.CaptureError, OSError) as error:
        result.problem = str(error)
    result.seconds, result.packets, result.flows = (s.total() for s in sums)
    result.flows, result.messages = _readable(result.flows), sizes.total()
    return result


def _count(
    sent: Frames, dissector: Dissector, t0: int, window: tuple[int, int] | None, sums: tuple[_Sums, ...], sizes: Sizes, result: Volume
) -> None:
    headers = dissector.dissect(sent)
    inside = np.ones(sent.ts.size, dtype=bool) if window is None else (sent.ts >= window[0]) & (sent.ts < window[1])
    layers = {layer: getattr(headers, layer) for layer in LAYERS}
    assert (sum(layers.values()) == sent.length).all(), "layers of a frame do not add up to its length"
    for target, columns in zip(
        sums,
        (
            {"second": (sent.ts - t0) // 10**9, "inside": inside, "protocol": headers.protocol}
            | layers
            | {f"{layer}Frames": (of > 0).astype(np.int64) for layer, of in layers.items()},
            {"protocol": headers.protocol, "application": headers.application, "frames": np.ones(sent.ts.size, dtype=np.int64)},
            _flows(sent, headers, inside),
        ),
        strict=True,
    ):
        target.add(pl.DataFrame(columns))
    sizes.add(sent, headers, inside)
    result.frames += sent.ts.size
    result.bytes += int(sent.length.sum())
    result.cut += int(headers.cut.sum())
    result.tcp_cut += int(headers.tcp_cut.sum())


def _flows(sent: Frames, headers: Headers, inside: np.ndarray) -> dict[str, np.ndarray]:
    """TCP frames with the ends of their flows. An IPv4 address is the low half of an IPv6 one."""
    rows = np.flatnonzero(headers.tcp)
    version6 = headers.version6[rows]
    columns = {"version6": version6}
    for number, name in enumerate(("source", "destination")):
        high, low = (np.zeros(rows.size, dtype=np.uint64) for _ in range(2))
        for which, (offset, length) in _ADDRESS_OFFSETS.items():
            some = np.flatnonzero(version6 == which)
            at = sent.at[rows[some]] + offset + number * length
            words = [_integer(sent.data, at + i, min(length, 8)) for i in range(0, length, 8)]
            low[some] = words[-1]
            if which:
                high[some] = words[0]
        columns |= {name: high, f"{name}Low": low}
    frames = np.ones(rows.size, dtype=np.int64)
    length = sent.length[rows]
    columns |= {"sourcePort": headers.source_port[rows], "destinationPort": headers.destination_port[rows]}
    return columns | {"frames": frames * inside[rows], "bytes": length * inside[rows], _FIRST: sent.ts[rows]}


def _integer(data: np.ndarray, at: np.ndarray, length: int) -> np.ndarray:
    """Big-endian numbers of this many bytes."""
    value = np.zeros(at.size, dtype=np.uint64)
    for i in range(length):
        value = value << np.uint64(8) | data[at + i]
    return value


def _readable(flows: pl.DataFrame) -> pl.DataFrame:
    """Flows with their addresses as text."""
    text: dict[str, list[str]] = {"source": [], "destination": []}
    for row in flows.iter_rows(named=True):
        form = ipaddress.IPv6Address if row["version6"] else ipaddress.IPv4Address
        for end, values in text.items():
            values.append(str(form(row[end] << 64 | row[f"{end}Low"])))
    named = [pl.Series(end, values, dtype=pl.String) for end, values in text.items()]
    return flows.with_columns(named).select("source", "destination", "sourcePort", "destinationPort", "frames", "bytes", _FIRST)
