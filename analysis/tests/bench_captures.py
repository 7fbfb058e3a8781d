"""Measures the network analysis on a generated capture set: python3 analysis/tests/bench_captures.py [GIGABYTES]

24 nodes talk MQTT over TCP (eight connections each, of whose segments one in a hundred is sent again), MQTT/UDP and OLSR. Beside it,
on a part of the same set: tshark alone, with what it does by default and with the columns that the analysis asks for, and dpkt.
"""

import os
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import capturelab
import dpkt
from capturelab import IN, OUT
from lab import BFT, SECOND, T0, Lab

from vignette_analysis.data import captures, radiolog
from vignette_analysis.data.captures import pcapng, tcp, volume
from vignette_analysis.data.gaps import Gaps
from vignette_analysis.data.run import Run

NODES = 24
CONNECTIONS = 8
SEGMENT_BYTES = 300
EVERY = 100


def ethernet(packet: bytes) -> bytes:
    """A frame with a packet of IPv4."""
    return bytes.fromhex("0202000000010202000000020800") + packet


def ipv4(number: int, source: bytes, destination: bytes, body: bytes) -> bytes:
    """A packet of IPv4."""
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 1, 0x4000, 64, number, 0) + source + destination + body


def pattern(node: int) -> list[tuple[bytes, int, int]]:
    """What one node sends and receives again and again."""
    own, broker = bytes((198, 18, 0, node)), bytes((198, 18, 0, 250))
    frames = []
    for stream in range(CONNECTIONS):
        for source, destination, way, body in ((own, broker, OUT, bytes(SEGMENT_BYTES)), (broker, own, IN, b"")):
            ports = (40000 + stream, 1883) if way == OUT else (1883, 40000 + stream)
            header = struct.pack(">HHIIBBHHH", *ports, 1, 1, 0x80, 0x10, 500, 0, 0) + bytes.fromhex("0101080a0000000100000001")
            frames.append((ethernet(ipv4(6, source, destination, header + body)), way, stream))
    for port, length, ways in ((1883, 240, (OUT,)), (698, 100, (OUT, IN, IN, IN))):
        datagram = struct.pack(">HHHH", port, port, 8 + length, 0) + bytes(length)
        frames += [(ethernet(ipv4(17, own, bytes((255,) * 4), datagram)), way, -1) for way in ways]
    return frames


def generate(directory: Path, size: float) -> tuple[Path, int]:
    """Write a run whose captures have about so many bytes; returns its folder and the rounds of each node."""
    lab = Lab(directory)
    for number in range(1, NODES + 1):
        lab.node(f"veh-{number}", BFT)
        lab.nodes[-1]["addresses"] = {"wan": f"198.18.0.{number}"}
        lab.sample(f"veh-{number}", -1.0, 0)
    names = [node["name"] for node in lab.nodes]
    lab.plan |= {"captures": [{"name": "run", "network": "wan", "nodes": names}], "measureEndNanoseconds": 10**6 * SECOND}
    of_round = sum(len(capturelab.packet(0, frame, way)) for frame, way, _ in pattern(1))
    rounds = max(EVERY, int(size / NODES / of_round))
    path = lab.write()
    for number, name in enumerate(names, 1):
        capturelab.bulk(path / f"captures/run/wan/{name}.pcapng", pattern(number), rounds, T0, SECOND // 1000, SEGMENT_BYTES, EVERY)
    return path, rounds


def cpu() -> float:
    """CPU seconds of this process and of its children that ended."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def timed(what: str, frames: int, work: Callable[[], object]) -> object:
    """Run something and print what it took."""
    wall, used = time.perf_counter(), cpu()
    result = work()
    wall, used = time.perf_counter() - wall, cpu() - used
    print(f"{what:<58} {wall:8.1f} s  CPU {used:8.1f} s  {used / frames * 1e6:7.2f} µs a frame", flush=True)
    return result


def by_dpkt(path: Path) -> int:
    """Bytes by layer of what went out, frame by frame, with dpkt: the least that a program would do."""
    layers = [0, 0, 0, 0]
    with path.open("rb") as file:
        for _, frame in dpkt.pcapng.Reader(file):
            packet = dpkt.ethernet.Ethernet(frame).data
            if isinstance(packet, dpkt.ip.IP):
                header = packet.data.off * 4 if isinstance(packet.data, dpkt.tcp.TCP) else 8
                layers = [a + b for a, b in zip(layers, (14, packet.hl * 4, header, packet.len - packet.hl * 4 - header), strict=True)]
    return sum(layers)


def tshark(path: Path, *arguments: str) -> None:
    """Run tshark on a capture."""
    subprocess.run(["tshark", "-n", "-r", path, *arguments], check=True, capture_output=True)


def main() -> None:
    """Print the time and memory that the analysis of captures takes."""
    size = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    with TemporaryDirectory() as scratch:
        path, rounds = generate(Path(scratch) / "run", size * 1e9)
        files = sorted(path.glob("captures/run/wan/*.pcapng"))
        each = rounds * len(pattern(1))
        frames = each * len(files)
        print(f"{sum(file.stat().st_size for file in files) / 1e9:.2f} GB in {len(files)} captures, {frames} frames, {os.cpu_count()} processors")
        run, gaps, figures = Run.load(path), Gaps(), [{"name": "wan"}]
        log = radiolog.read(run, Gaps())
        captured = timed("all captures: volume and TCP", frames, lambda: captures.examine(run, log, figures, gaps))
        assert figures[0]["tcp"]["retransmissions"] == NODES * CONNECTIONS * (rounds // EVERY), (figures, gaps.found)
        assert captured.volume.filter(layer="ethernet")["frames"].sum() == NODES * rounds * (CONNECTIONS + 2), "frames that were sent"
        own, children = (resource.getrusage(who).ru_maxrss / 1024**2 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        print(f"peak memory: {own:.2f} GiB, and of each of {captures.WORKERS} tshark {children:.2f} GiB")
        compare(files[0], each)


def compare(path: Path, frames: int) -> None:
    """The parts of the analysis and other programs on one capture."""
    print("of these, one capture:")
    timed("  volume", frames, lambda: volume.measure(path, T0, None))
    timed("    of which finding frames", frames, lambda: sum(part.at.size for part in pcapng.read(path)))
    timed("  TCP by tshark, columns of what it flags", frames, lambda: tcp.verdicts(path))
    timed("  tshark -q -z io,stat,0, by default", frames, lambda: tshark(path, "-q", "-z", "io,stat,0,COUNT(tcp.analysis.flags)tcp.analysis.flags"))
    timed("  tshark -T fields, by default", frames, lambda: tshark(path, "-Y", "tcp.analysis.flags", "-T", "fields", "-e", "frame.number"))
    timed("  dpkt, bytes by layer", frames, lambda: by_dpkt(path))


if __name__ == "__main__":
    main()
