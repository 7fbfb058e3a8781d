"""TCP's figures, held against tshark's own counts on captures of real TCP over the link model with losses.

The captures are of Linux' TCP between two nodes, over the link model at 500 kbit/s, 60 ms and 12 % loss.
"""

import re
import shutil
import subprocess
from pathlib import Path

import capturelab
import polars as pl
import pytest
from capturelab import IN, OUT
from lab import BFT, PICTURE, SECOND, T0, Lab, gap
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from vignette_analysis import Analysis, analyse
from vignette_analysis.data.captures import pcapng, tcp

RECORDED = Path(__file__).parent / "testdata" / "tcp"
NODES = {"nor": RECORDED / "node-1.pcapng", "prt": RECORDED / "node-2.pcapng"}
ADDRESSES = {"nor": "198.18.0.1", "prt": "198.18.0.2"}

needs_tshark = pytest.mark.skipif(not tcp.available(), reason="tshark is not installed: hack/test-packages installs it")


@pytest.fixture
def recorded(lab) -> Lab:
    """Two nodes with the recorded captures, which the measurement covers."""
    lab.node("nor", BFT).node("prt", PICTURE)
    first = min(int(frames.ts[0]) for path in NODES.values() for frames in pcapng.read(path))
    shift = first // SECOND * SECOND - T0
    lab.plan |= {"t0": _text(T0 + shift), "captures": [{"name": "run", "network": "wan", "nodes": list(NODES)}]}
    for node, path in zip(lab.nodes, NODES.values(), strict=True):
        node["addresses"] = {"wan": ADDRESSES[node["name"]]}
        target = lab.directory / f"captures/run/wan/{node['name']}.pcapng"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return lab


def _text(ts: int) -> str:
    return subprocess.run(["date", "-u", "-d", f"@{ts // SECOND}", "+%Y-%m-%dT%H:%M:%SZ"], check=True, capture_output=True, text=True).stdout.strip()


def counted_by_tshark(path: Path, *filters: str) -> list[int]:
    """What `tshark -q -z io,stat,0` counts, with its defaults: all that TCP carries dissected and put together."""
    statistics = "io,stat,0," + ",".join(f"COUNT(frame.number)frame.number and {f}" for f in filters)
    done = subprocess.run(["tshark", "-q", "-r", path, "-z", statistics], check=True, capture_output=True, text=True)
    (row,) = re.findall(r"^\|.*<>.*$", done.stdout, re.MULTILINE)
    return [int(cell) for cell in row.strip("|").split("|")[1:] if cell.strip()]


RETRANSMISSIONS, SPURIOUS, DUPLICATE_ACKS = tcp.VERDICTS.values()
SENT, RECEIVED = "frame.packet_flags_direction == 2", "frame.packet_flags_direction == 1"


@needs_tshark
def test_figures_are_tsharks_own(recorded):
    sent = [counted_by_tshark(path, f"{RETRANSMISSIONS} and {SENT}", f"{DUPLICATE_ACKS} and {SENT}") for path in NODES.values()]
    received = [counted_by_tshark(path, f"{SPURIOUS} and {RECEIVED}") for path in NODES.values()]
    expected = {
        "retransmissions": sum(retransmissions for retransmissions, _ in sent),
        "spurious": sum(spurious for (spurious,) in received),
        "duplicateAcks": sum(acks for _, acks in sent),
    }
    assert min(expected.values()) > 0, "these captures prove nothing"
    analysis = analyse(recorded.write())
    assert analysis.results["networks"][0]["tcp"] == expected
    assert {name: analysis.tcp[name].sum() for name in tcp.VERDICTS} == expected


@needs_tshark
@pytest.mark.parametrize("node", NODES)
def test_every_frame_is_judged_as_tshark_does_by_default(node):
    judged = tcp.verdicts(NODES[node])
    ways = [(name, outbound) for name in tcp.VERDICTS for outbound in (True, False)]
    expected = counted_by_tshark(NODES[node], *(f"{tcp.VERDICTS[name]} and {SENT if outbound else RECEIVED}" for name, outbound in ways))
    assert [judged.filter(outbound=outbound)[name].sum() for name, outbound in ways] == expected


@needs_tshark
def test_flows_have_the_frames_of_their_direction(recorded):
    analysis = analyse(recorded.write())
    for node, path in NODES.items():
        (expected,) = counted_by_tshark(path, f"tcp and {SENT}")
        of_node = analysis.tcp.filter(node=node)
        assert of_node["frames"].sum() == expected and of_node.height == 2
        assert of_node["bytes"].sum() == analysis.volume.filter(pl.col("protocol") != "arp", node=node)["bytes"].sum()
    assert all(flow.endswith((":1883", ":5672")) or ":1883 > " in flow or ":5672 > " in flow for flow in analysis.tcp["flow"])


@needs_tshark
def test_only_what_happened_in_the_measuring_window_counts(recorded):
    recorded.plan["measureEndNanoseconds"] = 6 * SECOND
    early = analyse(recorded.write())
    recorded.plan["measureEndNanoseconds"] = 60 * SECOND
    whole = analyse(recorded.write())
    assert 0 < early.tcp["frames"].sum() < whole.tcp["frames"].sum()
    assert 0 < early.tcp["duplicateAcks"].sum() <= whole.tcp["duplicateAcks"].sum()
    assert early.tcp["retransmissions"].sum() < whole.tcp["retransmissions"].sum()


def test_without_tshark_the_gap_says_so(recorded, monkeypatch):
    monkeypatch.setattr(tcp, "PROGRAM", "tshark-that-is-not-there")
    analysis = analyse(recorded.write())
    assert "byLayer" in analysis.results["networks"][0] and "tcp" not in analysis.results["networks"][0]
    assert "tshark-that-is-not-there, which tells TCP's retransmissions, is not installed" in gap(analysis.results, "networks: tcp of wan")["reason"]
    assert analysis.tcp["frames"].sum() > 0 and analysis.tcp["retransmissions"].null_count() == analysis.tcp.height == 4


@needs_tshark
def test_a_tshark_that_fails_is_a_gap(recorded, monkeypatch):
    monkeypatch.setattr(tcp, "_command", lambda path: ["tshark", "-r", f"{path}.gone"])
    analysis = analyse(recorded.write())
    assert "tshark ended with" in gap(analysis.results, "networks: tcp of wan")["reason"]
    assert analysis.tcp["retransmissions"].null_count() == 4


def segment(source: str, destination: str, sequence: int, ports: tuple[int, int] = (40000, 1883)) -> bytes:
    network = IPv6 if ":" in source else IP
    packet = network(src=source, dst=destination) / TCP(sport=ports[0], dport=ports[1], flags="A", seq=sequence, ack=1) / Raw(bytes(50))
    return bytes(Ether(src="02:02:00:00:00:01", dst="02:02:00:00:00:02") / packet)


@needs_tshark
@pytest.mark.parametrize(("source", "destination"), [("198.18.9.1", "198.18.9.3"), ("fd00::1", "fd00::3")])
def test_a_node_that_forwards_a_segment_does_not_count_it(lab, source, destination):
    """nor sends to usa by way of prt, which has every frame twice, so that tshark takes each second one for a retransmission."""
    lab.node("nor", BFT).node("prt", BFT).node("usa", PICTURE)
    frames = [(i, segment(source, destination, 50 * n)) for i, n in enumerate((1, 2, 3, 3))]  # the last one is sent again a second later
    passed = {
        "nor": [(i * SECOND, OUT, frame) for i, frame in frames],
        "prt": [(i * SECOND + delay, way, frame) for i, frame in frames for delay, way in ((SECOND // 4, IN), (SECOND // 3, OUT))],
        "usa": [(i * SECOND + SECOND // 2, IN, frame) for i, frame in frames],
    }
    lab.plan["captures"] = [{"name": "run", "network": "wan", "nodes": list(passed)}]
    for number, (node, packets) in enumerate(passed.items()):
        lab.nodes[number]["addresses"] = {"wan": f"198.18.9.{number + 1}"}
        written = [capturelab.packet(T0 + ts, frame, way) for ts, way, frame in packets]
        capturelab.write(lab.directory / f"captures/run/wan/{node}.pcapng", *written)
    analysis: Analysis = analyse(lab.write())
    assert analysis.tcp.select("node", "frames", "retransmissions").rows() == [("nor", 4, 1)]
    assert analysis.results["networks"][0]["tcp"]["retransmissions"] == 1
    assert analysis.volume.filter(layer="ethernet")["frames"].sum() == 8, "forwarding is a transmission of its own"
