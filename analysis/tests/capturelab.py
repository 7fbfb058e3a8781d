"""Builds capture files as radiod writes them (internal/pcapng), from frames or in bulk."""

import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np

OUT, IN = 2, 1


def block(kind: int, body: bytes) -> bytes:
    """One block of pcapng."""
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def option(code: int, value: bytes) -> bytes:
    """One option of a block."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(resolution: int = 9, link: int = 1) -> bytes:
    """A section with its interface."""
    head = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + option(4, b"vignette radiod") + option(0, b"")
    interface = struct.pack("<HHI", link, 0, 262144) + option(2, b"vhf") + option(3, b"hq on vhf") + option(9, bytes([resolution])) + option(0, b"")
    return block(0x0A0D0D0A, head) + block(1, interface)


def packet(ts: int, frame: bytes, direction: int | None = OUT, snap: int = 1 << 16) -> bytes:
    """A frame of which at most snap bytes are kept."""
    kept = frame[:snap]
    body = struct.pack("<IIIII", 0, ts >> 32, ts & 0xFFFFFFFF, len(kept), len(frame)) + kept + bytes(-len(kept) % 4)
    if direction is not None:
        body += option(2, struct.pack("<I", direction)) + option(0, b"")
    return block(6, body)


def write(path: Path, *packets: bytes) -> Path:
    """A capture of one section."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(section() + b"".join(packets))
    return path


def udp(source: str, port: int, payload: bytes) -> bytes:
    """A frame with a datagram to everybody."""
    datagram = struct.pack(">HHHH", port, port, 8 + len(payload), 0) + payload
    addresses = bytes(map(int, source.split("."))) + bytes((255,) * 4)
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(datagram), 0, 0x4000, 64, 17, 0) + addresses
    return bytes((255,) * 6) + bytes.fromhex("020200000001") + b"\x08\x00" + header + datagram


def bulk(path: Path, frames: Iterable[tuple[bytes, int, int]], rounds: int, start: int, step: int, size: int, every: int) -> None:
    """Write so many rounds of the same frames (bytes, direction, number of its TCP stream or -1).

    From round to round the sequence number of each segment grows by size (of one that comes in, its acknowledgement), but that each
    round whose number ends an interval of length every repeats the one before. Stamps grow by step for each frame.
    """
    begins, packets, at = [], [], 0
    for frame, direction, stream in frames:
        packets.append(packet(0, frame, direction))
        begins.append((at, direction, stream))
        at += len(packets[-1])
    pattern = np.frombuffer(b"".join(packets), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(section())
        for first in range(0, rounds, 4096):
            numbers = np.arange(first, min(first + 4096, rounds), dtype=np.int64)
            rows = np.tile(pattern, (numbers.size, 1))
            sequence = ((numbers - (numbers + 1) // every) * size + 1).astype(">u4").view(np.uint8).reshape(-1, 4)
            after = ((numbers - (numbers + 1) // every) * size + size + 1).astype(">u4").view(np.uint8).reshape(-1, 4)
            for i, (begin, direction, stream) in enumerate(begins):
                ts = start + (numbers * len(begins) + i) * step
                rows[:, begin + 12 : begin + 16] = (ts >> 32).astype("<u4").view(np.uint8).reshape(-1, 4)
                rows[:, begin + 16 : begin + 20] = (ts & 0xFFFFFFFF).astype("<u4").view(np.uint8).reshape(-1, 4)
                if stream >= 0:
                    field = begin + 28 + 34 + (4 if direction == OUT else 8)
                    rows[:, field : field + 4] = sequence if direction == OUT else after
            file.write(rows.tobytes())
