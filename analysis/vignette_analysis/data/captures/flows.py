"""TCP by direction of a connection. Each direction is counted once, from the capture of an end.

The sender's capture has every segment that it sent, lost ones too. Frames, bytes, retransmissions and duplicate
acknowledgements come from there. A retransmission is spurious if the receiver had acknowledged its data before.
Only the receiver's capture has these in order of time, so spurious ones are counted there.
Nodes that forward a segment are no ends: their captures of it do not count.
"""

import polars as pl

from ..run import Run
from . import tcp
from .volume import Volume

SCHEMA = {
    "network": pl.String,
    # The node that sends in this direction; empty if unknown.
    "node": pl.String,
    # source:port > destination:port
    "flow": pl.String,
    # Null where the capture is missing or tshark did not read it.
    "retransmissions": pl.Int64,
    "spurious": pl.Int64,
    "duplicateAcks": pl.Int64,
    "frames": pl.Int64,
    "bytes": pl.Int64,
}
_FLOW = ("source", "sourcePort", "destination", "destinationPort")


def owners(run: Run, volumes: dict[str, Volume]) -> dict[str, str]:
    """The node of each address: as planned; for other addresses (IPv6, routed ones) the first node that sent from it."""
    found = {address: node["name"] for node in run.nodes for address in (node.get("addresses") or {}).values()}
    firsts = sorted((row["first"], node, row["source"]) for node, measured in volumes.items() for row in measured.flows.iter_rows(named=True))
    for _, node, address in firsts:
        found.setdefault(address, node)
    return found


def ends(volumes: dict[str, Volume], owner: dict[str, str]) -> set[str]:
    """Nodes with a capture that sent in a connection of their own."""
    return {node for node, measured in volumes.items() if any(owner.get(source) == node for source in measured.flows["source"])}


def count(run: Run, network: str, volumes: dict[str, Volume], verdicts: dict[str, pl.DataFrame], owner: dict[str, str]) -> pl.DataFrame:
    """The rows of a network: inside the measuring window, or in the whole capture if the window is unknown."""
    rows: dict[tuple, dict] = {}
    for node, measured in volumes.items():
        for flow in measured.flows.iter_rows(named=True):
            if owner.get(flow["source"]) == node and flow["frames"]:
                _row(rows, flow).update(frames=flow["frames"], bytes=flow["bytes"])
    for node, judged in verdicts.items():
        for frame in _inside(run, judged).iter_rows(named=True):
            if frame["outbound"] and owner.get(frame["source"]) == node:
                row = _row(rows, frame)
                row["retransmissions"] += frame["retransmissions"]
                row["duplicateAcks"] += frame["duplicateAcks"]
            elif not frame["outbound"] and owner.get(frame["destination"]) == node:
                _row(rows, frame)["spurious"] += frame["spurious"]
    named = [_named(network, key, row, owner, set(verdicts)) for key, row in sorted(rows.items())]
    return pl.DataFrame(named, schema=SCHEMA, orient="row")


def _key(flow: dict) -> tuple:
    return tuple(flow[name] for name in _FLOW)


def _row(rows: dict[tuple, dict], flow: dict) -> dict:
    return rows.setdefault(_key(flow), {"retransmissions": 0, "spurious": 0, "duplicateAcks": 0, "frames": 0, "bytes": 0})


def _inside(run: Run, judged: pl.DataFrame) -> pl.DataFrame:
    """Number of frames by direction of a connection and tshark's finding."""
    inside = judged if run.window is None else judged.filter((pl.col("ts") >= run.window[0]) & (pl.col("ts") < run.window[1]))
    return inside.group_by("outbound", *_FLOW).agg(pl.col(*tcp.VERDICTS).sum())


def _named(network: str, key: tuple, row: dict, owner: dict[str, str], judged: set[str]) -> dict:
    source, source_port, destination, destination_port = key
    sender = owner.get(source, "")
    if sender not in judged:
        row |= {"retransmissions": None, "duplicateAcks": None}
    if owner.get(destination) not in judged:
        row["spurious"] = None
    return {"network": network, "node": sender, "flow": f"{_end(source, source_port)} > {_end(destination, destination_port)}"} | row


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
