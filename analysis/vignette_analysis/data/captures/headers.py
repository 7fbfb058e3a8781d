"""Reads the headers of many frames at once: bytes by layer, and the protocol of each frame.

The four layers of a frame add up to its length. Bytes that a capture cut off count for the innermost known layer.
"""

from dataclasses import dataclass

import numpy as np

from . import protocols
from .pcapng import Frames

LAYERS = ("ethernet", "ip", "transport", "application")

ETHERNET_BYTES = 14
_ARP_BYTES = 28
_IPV4, _IPV6, _ARP = 0x0800, 0x86DD, (0x0806, 0x8035)
_TCP, _UDP = 6, 17
# Extension headers of IPv6 (RFC 8200, RFC 4302, RFC 6275): all but two state their length in units of 8 bytes, without the first.
_EXTENSIONS, _FRAGMENT, _AUTHENTICATION = (0, 43, 44, 51, 60, 135), 44, 51
_MOST_EXTENSIONS = 8
# Flags of TCP.
_FIN_RST_PSH = 0b1101
# Most datagrams that wait for later fragments.
_MOST_DATAGRAMS = 1 << 16


@dataclass
class Headers:
    """Contents of headers; arrays with an entry for each frame."""

    # Bytes by layer.
    ethernet: np.ndarray
    ip: np.ndarray
    transport: np.ndarray
    application: np.ndarray
    # Indices in protocols.NAMES.
    protocol: np.ndarray
    # Whether the capture cut the transport's header.
    cut: np.ndarray
    # TCP frames, and those whose header the capture cut. The fields below are valid for TCP frames only.
    tcp: np.ndarray
    tcp_cut: np.ndarray
    version6: np.ndarray
    source_port: np.ndarray
    destination_port: np.ndarray
    # Whether it is of IPv4 and carries content of an app, and whether a message ends with it. Fragments have their datagram's number.
    carries: np.ndarray
    ends: np.ndarray
    identification: np.ndarray


class Dissector:
    """Reads headers chunk by chunk. It remembers datagrams, so that all fragments get their datagram's protocol."""

    def __init__(self, ports: protocols.Ports = protocols.USUAL) -> None:
        self._ports = ports
        self._datagrams: dict[tuple, int] = {}

    def dissect(self, frames: Frames) -> Headers:
        """The layers and the protocol of each frame."""
        packets = _Packets(frames, self._ports)
        packets.ethernet()
        packets.ipv4()
        packets.ipv6()
        packets.transport()
        self._fragments(packets)
        return packets.headers()

    def _fragments(self, packets: "_Packets") -> None:
        """Give later fragments, which have no ports, the protocol of their datagram's first one."""
        for i in np.flatnonzero(packets.fragment).tolist():
            key = packets.datagram(i)
            if packets.later[i]:
                packets.protocol[i] = self._datagrams.get(key, packets.protocol[i])
                continue
            self._datagrams[key] = packets.protocol[i]
            if len(self._datagrams) > _MOST_DATAGRAMS:
                del self._datagrams[next(iter(self._datagrams))]


class _Packets:
    """The frames of a chunk while their headers are read from the outside in."""

    def __init__(self, frames: Frames, ports: protocols.Ports):
        self.frames, self.ports = frames, ports
        count = frames.at.size
        self.protocol = np.full(count, protocols.CODES[protocols.OTHER], dtype=np.uint8)
        self.cut = np.zeros(count, dtype=bool)
        # Offsets in the frame: start of the internet layer (fixed), end of its headers, end of the packet.
        self.headers_end = np.minimum(frames.length, ETHERNET_BYTES)
        self.packet_end = frames.length.copy()
        self.transport_bytes = np.zeros(count, dtype=np.int64)
        # IP protocol number of the content, or -1.
        self.number = np.full(count, -1, dtype=np.int64)
        self.version6, self.fragment, self.later, self.tcp, self.tcp_cut = (np.zeros(count, dtype=bool) for _ in range(5))
        self.identification = np.zeros(count, dtype=np.int64)
        self.ends = np.ones(count, dtype=bool)
        self.source_port, self.destination_port = (np.zeros(count, dtype=np.int64) for _ in range(2))

    def byte(self, rows: np.ndarray, offset: np.ndarray | int) -> np.ndarray:
        """A byte of each of these frames; undefined where it was not captured."""
        at = self.frames.at[rows] + np.minimum(offset, self.frames.captured[rows])
        return self.frames.data[at].astype(np.int64)

    def word(self, rows: np.ndarray, offset: np.ndarray | int) -> np.ndarray:
        """Sixteen bits of each of these frames; see byte."""
        return self.byte(rows, offset) << 8 | self.byte(rows, offset + 1)

    def _captured(self, rows: np.ndarray, end: np.ndarray | int) -> np.ndarray:
        """Those of these frames that were captured up to here. The others are cut, unless they were that short."""
        there = self.frames.captured[rows] >= end
        short = rows[~there]
        self.cut[short] = self.frames.captured[short] < self.frames.length[short]
        return rows[there]

    def ethernet(self) -> None:
        self.kind = np.full(self.frames.at.size, -1, dtype=np.int64)
        known = self._captured(np.arange(self.frames.at.size), ETHERNET_BYTES)
        self.kind[known] = self.word(known, 12)
        for kind, name in protocols.ETHERTYPES.items():
            rows = np.flatnonzero(self.kind == kind)
            self.protocol[rows] = protocols.CODES[name]
            if kind in _ARP:
                self.packet_end[rows] = self.headers_end[rows] = np.minimum(self.frames.length[rows], ETHERNET_BYTES + _ARP_BYTES)
        self._uncertain(np.flatnonzero((self.kind == _IPV4) | (self.kind == _IPV6)))

    def _uncertain(self, rows: np.ndarray) -> None:
        """Count these packets whole for the internet layer, until more headers are read."""
        self.headers_end[rows] = self.frames.length[rows]

    def ipv4(self) -> None:
        rows = self._captured(np.flatnonzero(self.kind == _IPV4), ETHERNET_BYTES + 20)
        first = self.byte(rows, ETHERNET_BYTES)
        header, total = (first & 15) * 4, self.word(rows, ETHERNET_BYTES + 2)
        sound = (first >> 4 == 4) & (header >= 20) & (total >= header) & (ETHERNET_BYTES + total <= self.frames.length[rows])
        rows, header, total = rows[sound], header[sound], total[sound]
        self.headers_end[rows] = ETHERNET_BYTES + header
        self.packet_end[rows] = ETHERNET_BYTES + total
        self.number[rows] = self.byte(rows, ETHERNET_BYTES + 9)
        fragment = self.word(rows, ETHERNET_BYTES + 6)
        self.later[rows] = fragment & 0x1FFF > 0
        self.fragment[rows] = fragment & 0x3FFF > 0
        self.identification[rows] = self.word(rows, ETHERNET_BYTES + 4)
        self.ends[rows] = fragment & 0x2000 == 0

    def ipv6(self) -> None:
        rows = self._captured(np.flatnonzero(self.kind == _IPV6), ETHERNET_BYTES + 40)
        end = ETHERNET_BYTES + 40 + self.word(rows, ETHERNET_BYTES + 4)
        sound = (self.byte(rows, ETHERNET_BYTES) >> 4 == 6) & (end <= self.frames.length[rows])
        rows = rows[sound]
        self.version6[rows] = True
        self.headers_end[rows] = ETHERNET_BYTES + 40
        self.packet_end[rows] = end[sound]
        self.number[rows] = self.byte(rows, ETHERNET_BYTES + 6)
        for _ in range(_MOST_EXTENSIONS):
            rows = rows[np.isin(self.number[rows], _EXTENSIONS) & ~self.later[rows]]
            if not rows.size:
                return
            rows = self._extension(rows)

    def _extension(self, rows: np.ndarray) -> np.ndarray:
        """Skip one extension header of each of these packets; return those that have another."""
        at, number = self.headers_end[rows], self.number[rows]
        # A header that cannot be skipped counts for the internet layer with all that follows.
        self.number[rows] = -1
        self.headers_end[rows] = self.packet_end[rows]
        there = self.frames.captured[rows] >= at + 8
        self.cut[rows[~there]] |= self.frames.captured[rows[~there]] < self.packet_end[rows[~there]]
        rows, at, number = rows[there], at[there], number[there]
        units = self.byte(rows, at + 1)
        length = np.where(number == _FRAGMENT, 8, np.where(number == _AUTHENTICATION, (units + 2) * 4, (units + 1) * 8))
        fits = at + length <= self.packet_end[rows]
        rows, at, number, length = rows[fits], at[fits], number[fits], length[fits]
        self.number[rows] = self.byte(rows, at)
        self.headers_end[rows] = at + length
        parts, where = rows[number == _FRAGMENT], at[number == _FRAGMENT]
        flags = self.word(parts, where + 2)
        self.fragment[parts] = flags & 0xFFF9 > 0
        self.later[parts] = flags & 0xFFF8 > 0
        self.identification[parts] = self.word(parts, where + 4) << 16 | self.word(parts, where + 6)
        return rows

    def transport(self) -> None:
        rows = np.flatnonzero(self.number >= 0)
        number = self.number[rows]
        self.protocol[rows] = protocols.BY_NUMBER[number]
        internet = rows[protocols.IS_INTERNET[number]]
        self.headers_end[internet] = self.packet_end[internet]
        rows = rows[~self.later[rows]]
        self.transport_bytes[rows] = protocols.HEADER_BYTES[self.number[rows]]
        for number in (_TCP, _UDP):
            self._ports(rows[self.number[rows] == number], number)
        self.transport_bytes = np.minimum(self.transport_bytes, self.packet_end - self.headers_end)

    def _ports(self, rows: np.ndarray, number: int) -> None:
        begin = self.headers_end[rows]
        need = begin + (13 if number == _TCP else 4)
        # A first fragment may end within the header: no capture cut it.
        whole = self.packet_end[rows] >= need
        there = self.frames.captured[rows] >= need
        short = rows[whole & ~there]
        self.cut[short] = True
        self.tcp_cut[short] = number == _TCP
        self.transport_bytes[short] = self.packet_end[short] - self.headers_end[short]
        rows, begin = rows[whole & there], begin[whole & there]
        source, destination = self.word(rows, begin), self.word(rows, begin + 2)
        self.protocol[rows] = self.ports.codes(number, source, destination)
        if number == _TCP:
            self.transport_bytes[rows] = np.maximum((self.byte(rows, begin + 12) >> 4) * 4, 20)
            self.tcp[rows] = True
            self.tcp_cut[rows] = self.frames.captured[rows] < np.minimum(begin + self.transport_bytes[rows], self.packet_end[rows])
            self.source_port[rows], self.destination_port[rows] = source, destination
            flagged = self.frames.captured[rows] > begin + 13
            self.ends[rows[flagged]] &= self.byte(rows[flagged], begin[flagged] + 13) & _FIN_RST_PSH > 0

    def datagram(self, i: int) -> tuple:
        """The fields that all fragments of a datagram share (RFC 791, RFC 8200)."""
        begin, length = (22, 32) if self.version6[i] else (26, 8)
        at = int(self.frames.at[i]) + begin
        number = 0 if self.version6[i] else int(self.number[i])
        return number, int(self.identification[i]), self.frames.data[at : at + length].tobytes()

    def headers(self) -> Headers:
        begin = np.minimum(self.frames.length, ETHERNET_BYTES)
        padding = self.frames.length - self.packet_end
        ip = self.headers_end - begin
        application = self.packet_end - self.headers_end - self.transport_bytes
        return Headers(
            ethernet=begin + padding,
            ip=ip,
            transport=self.transport_bytes,
            application=application,
            protocol=self.protocol,
            cut=self.cut,
            tcp=self.tcp,
            tcp_cut=self.tcp_cut,
            version6=self.version6,
            source_port=self.source_port,
            destination_port=self.destination_port,
            carries=(self.number >= 0) & ~self.version6 & (application > 0),
            ends=self.ends,
            identification=np.where(self.fragment, self.identification, 0),
        )
