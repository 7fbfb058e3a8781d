"""Reads radiod's capture files (internal/pcapng, draft-ietf-opsawg-pcapng) as arrays of thousands of frames.

A file is a sequence of sections, each with one Ethernet interface and time stamps in nanoseconds. Only one chunk
is in memory at a time.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CHUNK_BYTES = 8 << 20
# Zeroes after a chunk, so that reading the headers of a short frame stays inside the array.
MARGIN_BYTES = 256

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_LINK_ETHERNET = 1
_OPTION_FLAGS, _OPTION_RESOLUTION, _NANOSECONDS = 2, 9, 9
_DIRECTION, _OUTBOUND, _INBOUND = 3, 2, 1
_MINIMUM_BLOCK, _MAXIMUM_BLOCK = 12, 1 << 20
# Length of a packet block without frame and options.
_PACKET_OVERHEAD = 32


class CaptureError(Exception):
    """A file is not radiod's, or is damaged. All frames before that place were returned."""


@dataclass(frozen=True)
class Frames:
    """Frames of one chunk, in the order of the file; the arrays have an entry per frame."""

    # Bytes of the chunk; the next chunk overwrites them.
    data: np.ndarray
    # Offset of each frame in data.
    at: np.ndarray
    # Unix nanoseconds.
    ts: np.ndarray
    # Captured and original length of the frame, from its Ethernet header, without FCS.
    captured: np.ndarray
    length: np.ndarray
    # Whether the node sent it, or received it; both false if the file does not say.
    outbound: np.ndarray
    inbound: np.ndarray

    def select(self, which: np.ndarray) -> "Frames":
        """Frames by a mask or by their numbers."""
        columns = (self.at, self.ts, self.captured, self.length, self.outbound, self.inbound)
        return Frames(self.data, *(column[which] for column in columns))


def read(path: Path, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Frames]:
    """Yield a capture's frames chunk by chunk; raise CaptureError after the last complete frame of a torn or damaged file."""
    chunk_bytes = max(chunk_bytes & ~3, _MAXIMUM_BLOCK)
    buffer = np.zeros(chunk_bytes + MARGIN_BYTES, dtype=np.uint8)
    view = memoryview(buffer)[:chunk_bytes]
    described, base, have = False, 0, 0
    with path.open("rb", buffering=0) as file:
        while True:
            count = file.readinto(view[have:])
            have += count
            if not base and have >= 4 and buffer.view("<u4")[0] != _SECTION:
                raise CaptureError("it does not begin with a section: it is no pcapng")
            offsets, end, problem = _blocks(buffer, have)
            frames, described, wrong = _frames(buffer, offsets, described)
            if frames.at.size:
                yield frames
            for at, reason in (wrong, problem):
                if reason:
                    raise CaptureError(f"at byte {base + at}: {reason}")
            if not count:
                if have > end:
                    raise CaptureError(f"its last block, at byte {base + end}, is torn")
                return
            buffer[: have - end] = buffer[end:have].copy()
            base, have = base + end, have - end


_NO_PROBLEM = (0, "")


def _blocks(buffer: np.ndarray, have: int) -> tuple[np.ndarray, int, tuple[int, str]]:
    """Offsets of complete blocks, the end of the last one, and the error that stopped there."""
    words = memoryview(buffer).cast("I")
    found: list[int] = []
    at, last = 0, have // 4 - 3  # in 32-bit words; the shortest block has three
    while at <= last:
        length = words[at + 1]
        if length < _MINIMUM_BLOCK or length > _MAXIMUM_BLOCK or length & 3:
            reason = f"a block of {length} bytes; want {_MINIMUM_BLOCK} to {_MAXIMUM_BLOCK} and a multiple of 4"
            return _offsets(found), at * 4, (at * 4, reason)
        if at * 4 + length > have:
            break
        found.append(at)
        at += length >> 2
    return _offsets(found), at * 4, _NO_PROBLEM


def _offsets(words: list[int]) -> np.ndarray:
    return np.array(words, dtype=np.int64) * 4


def _frames(buffer: np.ndarray, offsets: np.ndarray, described: bool) -> tuple[Frames, bool, tuple[int, str]]:
    """Frames of these blocks up to the first invalid one, whether the last section has its interface, the error and its place."""
    words = buffer.view("<u4")
    start = offsets >> 2
    kinds, lengths = words[start], words[start + 1]
    trailers = words[start + (lengths >> 2) - 1]
    problem = _NO_PROBLEM
    limit = offsets.size
    for i in np.flatnonzero((kinds != _PACKET) | (trailers != lengths)).tolist():
        block = buffer[offsets[i] : offsets[i] + int(lengths[i])]
        reason = "a block's two lengths differ" if trailers[i] != lengths[i] else ""
        if not reason and kinds[i] == _SECTION:
            reason, described = _section(block), False
        elif not reason and kinds[i] == _INTERFACE:
            reason, described = _interface(block, described), True
        if reason:
            limit, problem = i, (int(offsets[i]), reason)
            break
    chosen = np.flatnonzero(kinds[:limit] == _PACKET)
    frames, bad, reason = _packets(buffer, words, offsets[chosen], lengths[chosen].astype(np.int64))
    return frames, described, (int(offsets[chosen[bad]]), reason) if reason else problem


def _section(block: np.ndarray) -> str:
    """The error in a section's header, or nothing."""
    if block.size < 28 or struct.unpack_from("<I", block, 8)[0] != _BYTE_ORDER_MAGIC:
        return "a section that is not in little-endian order, which radiod's are"
    return ""


def _interface(block: np.ndarray, described: bool) -> str:
    """The error in an interface's description, or nothing."""
    if described:
        return "a second interface in a section: radiod's captures have one"
    link = struct.unpack_from("<H", block, 8)[0] if block.size >= 20 else None
    if link != _LINK_ETHERNET:
        return f"an interface of link type {link}: want {_LINK_ETHERNET}, Ethernet"
    at = 16
    while at + 4 <= block.size - 4:
        code, length = struct.unpack_from("<HH", block, at)
        if code == _OPTION_RESOLUTION and length == 1 and block[at + 4] == _NANOSECONDS:
            return ""
        at += 4 + (length + 3 & ~3)
    return "stamps that are not in nanoseconds"


def _packets(buffer: np.ndarray, words: np.ndarray, offsets: np.ndarray, lengths: np.ndarray) -> tuple[Frames, int, str]:
    """Frames of packet blocks up to the first invalid one, its number, and the error."""
    start = offsets >> 2
    fits = lengths >= _PACKET_OVERHEAD
    captured = np.where(fits, words[np.where(fits, start + 5, 0)], 0).astype(np.int64)
    options = 28 + (captured + 3 & ~3)
    length = words[start + 6].astype(np.int64)
    fits &= (options + 4 <= lengths) & (captured <= length)
    bad, reason = 0, ""
    if not fits.all():
        bad, reason = int(np.argmin(fits)), "a frame that is longer than its block or than it was"
        start, offsets, lengths, captured, options, length = (a[:bad] for a in (start, offsets, lengths, captured, options, length))
    ts = (words[start + 3].astype(np.int64) << 32) | words[start + 4]
    option = start + (options >> 2)
    # radiod writes the flags as the first option. A block without options has its length there.
    flagged = (options + 12 <= lengths) & (words[option] == (_OPTION_FLAGS | 4 << 16))
    direction = np.where(flagged, words[np.where(flagged, option + 1, 0)] & _DIRECTION, 0)
    frames = Frames(buffer, offsets + 28, ts, captured, length, direction == _OUTBOUND, direction == _INBOUND)
    return frames, bad, reason
