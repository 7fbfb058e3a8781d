"""Sizes of messages on the wire: what a node's own apps wrote, with all headers of the frames that carried it.

A datagram is a message with all of its fragments. Of TCP a message ends with a segment that has PSH, which Linux sets on the last segment of
what an app wrote. Frames that a node forwards are not its own.
"""

import ipaddress
from collections.abc import Iterable

import numpy as np
import polars as pl

from .headers import Headers
from .pcapng import Frames

SCHEMA = {"protocol": pl.UInt8, "applicationBytes": pl.Int64, "wireBytes": pl.Int64, "messages": pl.UInt32}
_STREAM = {"destination": pl.UInt64, "sourcePort": pl.Int64, "destinationPort": pl.Int64, "identification": pl.Int64, "protocol": pl.UInt8}
_PARTS = _STREAM | {"ends": pl.Boolean, "applicationBytes": pl.Int64, "wireBytes": pl.Int64}
# Offset of IPv4's source address in a frame; the destination follows.
_SOURCE = 26


class Sizes:
    """Counts the messages of one node by size, chunk by chunk."""

    def __init__(self, addresses: Iterable[str]):
        self._own = np.array([int(ip) for ip in map(ipaddress.ip_address, addresses) if ip.version == 4], dtype=np.uint64)
        self._begun = pl.DataFrame(schema=_PARTS)
        self._counted = pl.DataFrame(schema=SCHEMA)

    def add(self, sent: Frames, headers: Headers, inside: np.ndarray) -> None:
        """Count the messages that end in a chunk; those that only begin there wait for the next one."""
        rows = np.flatnonzero(headers.carries & inside)
        source, destination = (_address(sent.data, sent.at[rows] + _SOURCE + offset) for offset in (0, 4))
        own = np.isin(source, self._own)
        rows, destination = rows[own], destination[own]
        columns = {
            "destination": destination,
            "sourcePort": headers.source_port[rows],
            "destinationPort": headers.destination_port[rows],
            "identification": headers.identification[rows],
            "protocol": headers.protocol[rows],
            "ends": headers.ends[rows],
            "applicationBytes": headers.application[rows],
            "wireBytes": sent.length[rows],
        }
        parts = pl.concat([self._begun, pl.DataFrame(columns, schema=_PARTS)])
        ends = pl.col("ends").cast(pl.Int64)
        message = (ends.cum_sum() - ends).over(*_STREAM)
        whole = parts.group_by(*_STREAM, message.alias("message")).agg(pl.col("ends").any(), pl.col("applicationBytes", "wireBytes").sum())
        self._begun = whole.filter(~pl.col("ends")).select(*_PARTS)
        done = whole.filter("ends").group_by("protocol", "applicationBytes", "wireBytes").agg(messages=pl.len())
        self._counted = _summed(pl.concat([self._counted, done.select(*SCHEMA)]))

    def total(self) -> pl.DataFrame:
        """Number of messages by protocol (code) and size."""
        return self._counted


def _summed(counted: pl.DataFrame) -> pl.DataFrame:
    return counted.group_by("protocol", "applicationBytes", "wireBytes").agg(pl.col("messages").sum()).select(*SCHEMA)


def _address(data: np.ndarray, at: np.ndarray) -> np.ndarray:
    value = np.zeros(at.size, dtype=np.uint64)
    for i in range(4):
        value = value << np.uint64(8) | data[at + i]
    return value
