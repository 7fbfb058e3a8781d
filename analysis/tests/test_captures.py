"""Data volume from captures: frames of known layers, read as radiod writes them."""

import re
from pathlib import Path

import capturelab
import polars as pl
import pytest
from capturelab import IN, OUT
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import BFT, PICTURE, SECOND, T0, Lab, gap
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, Ether
from scapy.layers.sctp import SCTP
from scapy.packet import Raw

from vignette_analysis import analyse, outputs, plots
from vignette_analysis.data.captures import pcapng, protocols, volume
from vignette_analysis.data.captures.headers import LAYERS
from vignette_analysis.data.run import Run
from vignette_analysis.figures import summary, wire
from vignette_analysis.report import charts, traffic, words

ETHER = Ether(dst="02:02:00:00:00:02", src="02:02:00:00:00:01")
V4, V6 = IP(src="198.18.9.1", dst="198.18.9.2"), IPv6(src="fe80::1", dst="fe80::2")
TIMESTAMP = [("NOP", None), ("NOP", None), ("Timestamp", (1, 2))]

FRAMES = {
    # name: (frame, protocol, bytes of Ethernet, IP, transport, application)
    "ARP": (ETHER / ARP(), "arp", 14, 28, 0, 0),
    "ARP, padded to 60 bytes": (ETHER / ARP() / Raw(bytes(18)), "arp", 32, 28, 0, 0),
    "MQTT over TCP": (ETHER / V4 / TCP(sport=40000, dport=1883, options=TIMESTAMP) / Raw(bytes(100)), "mqtt", 14, 20, 32, 100),
    "an acknowledgement of MQTT's broker": (ETHER / V4 / TCP(sport=1883, dport=40000, options=TIMESTAMP), "mqtt", 14, 20, 32, 0),
    "AMQP with IP options": (
        ETHER / IP(src="1.1.1.1", dst="2.2.2.2", options=[IPOption_NOP()] * 4) / TCP(dport=5672) / Raw(b"x" * 7),
        "amqp", 14, 24, 20, 7,
    ),
    "TCP of no known port": (ETHER / V4 / TCP(sport=40000, dport=40001) / Raw(b"x"), "tcp", 14, 20, 20, 1),
    "MQTT-SN": (ETHER / V4 / UDP(sport=5000, dport=1884) / Raw(bytes(50)), "mqtt-sn", 14, 20, 8, 50),
    "MQTT/UDP": (ETHER / V4 / UDP(sport=1883, dport=1883) / Raw(bytes(240)), "mqtt-udp", 14, 20, 8, 240),
    "CoAP": (ETHER / V4 / UDP(sport=5000, dport=5683) / Raw(bytes(9)), "coap", 14, 20, 8, 9),
    "a CoAP response": (ETHER / V4 / UDP(sport=5683, dport=50000) / Raw(bytes(9)), "coap", 14, 20, 8, 9),
    "CoAP over TCP": (ETHER / V4 / TCP(sport=50000, dport=5683) / Raw(bytes(9)), "coap", 14, 20, 20, 9),
    "an HTTP request": (ETHER / V4 / TCP(sport=50000, dport=8080) / Raw(bytes(9)), "http", 14, 20, 20, 9),
    "SOAP-over-UDP": (ETHER / V4 / UDP(sport=50000, dport=3702) / Raw(bytes(9)), "soap-udp", 14, 20, 8, 9),
    "OLSR": (ETHER / V4 / UDP(sport=698, dport=698) / Raw(bytes(60)), "olsrv1", 14, 20, 8, 60),
    "OLSRv2": (ETHER / V4 / UDP(sport=269, dport=269) / Raw(bytes(60)), "olsrv2", 14, 20, 8, 60),
    "babel over IPv6": (ETHER / V6 / UDP(sport=6696, dport=6696) / Raw(bytes(60)), "babel", 14, 40, 8, 60),
    "OSPF": (ETHER / IP(proto=89, src="1.1.1.1", dst="224.0.0.5") / Raw(bytes(44)), "ospf", 14, 20, 0, 44),
    "ICMP": (ETHER / V4 / ICMP() / Raw(bytes(56)), "icmp", 14, 84, 0, 0),
    "IPv6 with extension headers": (
        ETHER / V6 / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / TCP(sport=1, dport=1883) / Raw(bytes(10)),
        "mqtt", 14, 56, 20, 10,
    ),
    "a first fragment of IPv6": (
        ETHER / V6 / IPv6ExtHdrFragment(m=1, nh=17) / Raw(bytes(UDP(dport=1883) / Raw(bytes(32)))),
        "mqtt-udp", 14, 48, 8, 32,
    ),
    "SCTP": (ETHER / V4 / SCTP(sport=1, dport=2) / Raw(bytes(20)), "sctp", 14, 20, 12, 20),
    "no IP": (Ether(type=0x88B5) / Raw(bytes(46)), "other", 14, 0, 0, 46),
    "an Ethernet frame without an end of its header": (Raw(bytes(9)), "other", 9, 0, 0, 0),
    "IP that claims more than there is": (ETHER / IP(len=100) / Raw(bytes(10)), "other", 14, 30, 0, 0),
}  # fmt: skip


def test_ports_that_the_spec_gives_messaging_services_are_known(tmp_path):
    services = {
        "http": ({"transport": "soap", "port": 9000}, TCP(sport=40000, dport=9000), "http"),
        "coap": ({"transport": "coap", "port": 9001}, UDP(sport=9001, dport=40000), "coap"),
        "tcp": ({"transport": "coap-tcp", "port": 9002}, TCP(sport=40000, dport=9002), "coap"),
        "soap": ({"transport": "soap-udp", "port": 9003}, UDP(sport=40000, dport=9003), "soap-udp"),
        "usual": ({"transport": "coap"}, UDP(sport=40000, dport=5683), "coap"),
    }
    run = Run(tmp_path, {"spec": {"apps": [{"name": name, "messaging": settings} for name, (settings, _, _) in services.items()]}})
    for name, (_, header, protocol) in services.items():
        path = capturelab.write(tmp_path / f"{name}.pcapng", capturelab.packet(T0, bytes(ETHER / V4 / header / Raw(bytes(9)))))
        result = volume.measure(path, T0, None, ports=protocols.planned(run))
        assert [protocols.NAMES[code] for code in result.seconds["protocol"]] == [protocol], name
    other = volume.measure(tmp_path / "http.pcapng", T0, None)
    assert [protocols.NAMES[code] for code in other.seconds["protocol"]] == ["tcp"]


def measured(tmp_path: Path, *packets: bytes, window: tuple[int, int] | None = None) -> volume.Volume:
    return volume.measure(capturelab.write(tmp_path / "a.pcapng", *packets), T0, window)


def layers(result: volume.Volume) -> tuple[int, ...]:
    return tuple(result.seconds[layer].sum() for layer in LAYERS)


@pytest.mark.parametrize("name", FRAMES)
def test_every_byte_of_a_frame_is_of_one_layer(name, tmp_path):
    frame, protocol, *expected = FRAMES[name]
    result = measured(tmp_path, capturelab.packet(T0, bytes(frame)))
    assert [protocols.NAMES[code] for code in result.seconds["protocol"]] == [protocol]
    assert layers(result) == tuple(expected) and sum(expected) == len(bytes(frame)) == result.bytes


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_of_which_only_headers_are_kept_has_the_same_layers(name, tmp_path):
    frame, _, *expected = FRAMES[name]
    result = measured(tmp_path, capturelab.packet(T0, bytes(frame), snap=96))
    assert layers(result) == tuple(expected) and not result.cut and not result.tcp_cut


def test_fragments_are_of_their_datagrams_protocol(tmp_path):
    datagram = V4.copy() / UDP(sport=1883, dport=1883) / Raw(bytes(4000))
    datagram.id = 77
    other = IP(src="198.18.9.1", dst="198.18.9.3", id=77) / UDP(sport=7000, dport=10000) / Raw(bytes(3000))
    frames = [bytes(ETHER / part) for pair in zip(fragment(datagram, 1480), fragment(other, 1480), strict=False) for part in pair]
    result = measured(tmp_path, *(capturelab.packet(T0, frame) for frame in frames))
    by_protocol = {protocols.NAMES[code]: frames for code, frames in result.seconds.select("protocol", "ethernetFrames").rows()}
    assert by_protocol == {"mqtt-udp": 3, "mqtt-sn": 3} and result.seconds["transport"].sum() == 16


def test_what_a_capture_cut_off_is_of_the_innermost_layer_that_is_known(tmp_path):
    frame = bytes(ETHER / V4 / TCP(dport=1883) / Raw(bytes(100)))
    cuts = {14: (14, 140, 0, 0), 33: (14, 140, 0, 0), 34: (14, 20, 120, 0), 46: (14, 20, 120, 0), 47: (14, 20, 20, 100)}
    for snap, expected in cuts.items():
        result = measured(tmp_path, capturelab.packet(T0, frame, snap=snap))
        assert layers(result) == expected and result.cut == (snap < 47), snap
    assert result.tcp_cut == 1


@settings(max_examples=40)
@given(
    st.binary(min_size=0, max_size=120), st.integers(0, 130), st.sampled_from([b"", b"\x08\x00\x45", b"\x08\x00\x46", b"\x86\xdd\x60", b"\x08\x06"])
)
def test_layers_add_up_to_the_frame_whatever_it_contains(tmp_path_factory, content, snap, kind):
    frame = bytes(12) + kind + content if kind else content
    result = measured(tmp_path_factory.mktemp("any"), capturelab.packet(T0, frame, snap=snap))
    assert sum(layers(result)) == len(frame) and result.frames == 1 and min(layers(result)) >= 0


@settings(max_examples=40)
@given(
    options=st.integers(0, 10),
    tcp_options=st.integers(0, 10),
    payload=st.integers(0, 1300),
    padding=st.integers(0, 46),
    snap=st.sampled_from([134, 1 << 16]),
)
def test_layers_of_tcp_are_exact_for_all_lengths_of_headers(tmp_path_factory, options, tcp_options, payload, padding, snap):
    segment = TCP(dport=1883, options=[("NOP", None)] * (4 * tcp_options)) / Raw(bytes(payload))
    packet = IP(src="1.1.1.1", dst="2.2.2.2", options=[IPOption_NOP()] * (4 * options)) / segment
    frame = bytes(ETHER / packet) + bytes(padding)
    result = measured(tmp_path_factory.mktemp("tcp"), capturelab.packet(T0, frame, snap=snap))
    assert layers(result) == (14 + padding, 20 + 4 * options, 20 + 4 * tcp_options, payload)


def test_only_what_the_node_sent_counts_at_its_second(tmp_path):
    frame = bytes(FRAMES["MQTT/UDP"][0])
    times = [(-1, OUT), (0, OUT), (SECOND - 1, OUT), (SECOND, OUT), (SECOND, IN), (5 * SECOND, OUT)]
    result = measured(tmp_path, *(capturelab.packet(T0 + ts, frame, way) for ts, way in times), window=(T0, T0 + 5 * SECOND))
    assert result.seconds.select("second", "inside", "ethernetFrames").rows() == [(-1, False, 1), (0, True, 2), (1, True, 1), (5, False, 1)]
    assert result.packets.rows() == [(protocols.CODES["mqtt-udp"], 240, 5)]


def test_a_file_is_read_alike_in_chunks_of_any_length_and_with_new_sections(tmp_path):
    frames = [bytes(ETHER / V4 / UDP(sport=i % 3 + 1882, dport=9999) / Raw(bytes(i % 1200))) for i in range(600)]
    packets = [
        (capturelab.section() if i % 97 == 0 else b"") + capturelab.packet(T0 + i * SECOND // 10, frame) for i, frame in enumerate(frames * 12)
    ]
    path = capturelab.write(tmp_path / "a.pcapng", *packets)
    assert path.stat().st_size > 2 << 20
    results = [volume.measure(path, T0, None, chunk_bytes) for chunk_bytes in (1 << 20, (1 << 20) + 4, 1 << 26)]
    assert all(r.seconds.equals(results[0].seconds) and r.packets.equals(results[0].packets) and not r.problem for r in results)
    assert results[0].bytes == sum(map(len, frames)) * 12 and results[0].frames == 7200


FRAME = bytes(FRAMES["MQTT/UDP"][0])
GOOD = capturelab.packet(T0, FRAME)
TOO_LONG = GOOD[:20] + b"\xff\xff\0\0\xff\xff\0\0" + GOOD[28:]
DAMAGES = {
    "a torn block": (capturelab.section() + GOOD + GOOD[:-9], "torn", 1),
    "a torn length": (capturelab.section() + GOOD + GOOD[:6], "torn", 1),
    "a block of length 0": (capturelab.section() + GOOD + bytes(400), "a block of 0 bytes", 1),
    "two lengths that differ": (capturelab.section() + GOOD + GOOD[:-4] + b"\x20\0\0\0" + GOOD, "two lengths differ", 1),
    "a frame longer than its block": (capturelab.section() + GOOD + TOO_LONG + GOOD, "longer than its block", 1),
    "stamps in microseconds": (capturelab.section(resolution=6) + GOOD, "not in nanoseconds", 0),
    "an interface that is no Ethernet": (capturelab.section(link=101) + GOOD, "link type 101", 0),
    "classic pcap": (bytes.fromhex("d4c3b2a1") + bytes(100), "no pcapng", 0),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_read_up_to_the_damage(name, tmp_path):
    content, problem, frames = DAMAGES[name]
    (tmp_path / "a.pcapng").write_bytes(content)
    result = volume.measure(tmp_path / "a.pcapng", T0, None)
    assert problem in result.problem and result.frames == frames


@settings(max_examples=40)
@given(st.binary(max_size=300), st.integers(0, 400))
def test_no_content_of_a_file_breaks_the_reader(tmp_path_factory, noise, at):
    content = bytearray(capturelab.section() + GOOD * 2)
    content[at : at + len(noise)] = noise
    path = tmp_path_factory.mktemp("noise") / "a.pcapng"
    path.write_bytes(content)
    result = volume.measure(path, T0, None)
    assert result.bytes == sum(layers(result))


def written(port: int, *segments: int) -> list[bytes]:
    """TCP segments with so many bytes each; the last one ends what the app wrote."""
    flags = ["A"] * (len(segments) - 1) + ["PA"]
    return [bytes(ETHER / V4 / TCP(sport=port, dport=1883, flags=f) / Raw(bytes(n))) for f, n in zip(flags, segments, strict=True)]


def sizes(tmp_path: Path, *frames: bytes, chunk_bytes: int = pcapng.CHUNK_BYTES, own: str = "198.18.9.1") -> dict[tuple[str, int, int], int]:
    path = capturelab.write(tmp_path / "a.pcapng", *(capturelab.packet(T0, frame) for frame in frames))
    counted = volume.measure(path, T0, None, chunk_bytes, addresses=[own, "fe80::1"]).messages
    return {(protocols.NAMES[code], *rest): count for code, *rest, count in counted.rows()}


def test_a_message_is_a_datagram_with_its_fragments_or_what_ends_with_a_pushed_segment(tmp_path):
    datagram = V4.copy() / UDP(sport=1883, dport=1883) / Raw(bytes(3000))
    datagram.id = 77
    parts = [bytes(ETHER / part) for part in fragment(datagram, 1480)]
    first, second = written(40000, 1448, 500), written(40001, 100)
    acknowledgement = bytes(ETHER / V4 / TCP(sport=1883, dport=40000, flags="A"))
    mixed = [parts[0], first[0], parts[1], second[0], acknowledgement, first[1], parts[2], *written(40000, 4)]
    found = {("mqtt-udp", 3000, 3000 + 8 + 3 * 34): 1, ("mqtt", 1948, 1948 + 2 * 54): 1, ("mqtt", 100, 154): 1, ("mqtt", 4, 58): 1}
    assert sizes(tmp_path, *mixed) == found
    assert sizes(tmp_path, *mixed, own="198.18.9.3") == {}  # a node that forwards


def test_a_message_may_be_in_two_chunks(tmp_path):
    frames = written(40000, *[1448] * 2000)
    assert sizes(tmp_path, *frames, chunk_bytes=1 << 20) == {("mqtt", 2000 * 1448, 2000 * 1502): 1}


@pytest.fixture
def captured(pair) -> Lab:
    """The pair of nodes, of MQTT/UDP, with a capture of each: in all 20 frames of 282 bytes and 10 of OLSRv2 of 102 bytes, in 60 s."""
    pair.plan["captures"] = [{"name": "run", "network": "wan", "nodes": ["nor", "prt"]}]
    for number, node in enumerate(("nor", "prt")):
        pair.nodes[number]["addresses"] = {"wan": f"198.18.9.{number + 1}"}
        pair.nodes[number]["apps"][0]["protocol"] = "mqtt-udp"
        pair.sample(node, -1.0, 0).sample(node, 61.0, 0)
        of_node = [
            capturelab.packet(T0 + i * SECOND, capturelab.udp(f"198.18.9.{number + 1}", port, bytes(length)))
            for port, length, count in ((1883, 240, 10), (269, 60, 5))
            for i in range(count)
        ]
        capturelab.write(pair.directory / f"captures/run/wan/{node}.pcapng", *of_node)
    return pair


def test_bytes_by_layer_are_means_over_the_measurement_with_routing_apart(captured):
    analysis = analyse(captured.write())
    (network,) = analysis.results["networks"]
    assert network["byLayer"] == {"ethernet": 280 / 60, "ip": 400 / 60, "transport": 160 / 60, "application": 80.0, "routing": 17.0}
    assert network["routingBytesPerSecond"] == 17.0 and network["tcp"] == {"retransmissions": 0, "spurious": 0, "duplicateAcks": 0}
    assert analysis.volume["bytes"].sum() == 20 * 282 + 10 * 102
    assert analysis.volume.filter(layer="ethernet")["frames"].sum() == 30
    assert analysis.volume.filter("routing")["protocol"].unique().to_list() == ["olsrv2"]
    assert analysis.results["gaps"] is None


def test_messages_on_the_wire_have_a_median_size_by_protocol(captured):
    assert "messageSizes" not in analyse(captured.write()).results  # the log does not say how long a message is
    captured.event("nor/bft", "triggered", 1.0, "x_1", bytes=240).event("nor/bft", "sent", 1.0, "x_1", bytes=240)
    results = analyse(captured.write()).results
    assert results["messageSizes"] == [{"protocol": "mqtt-udp", "messages": 20, "medianBytes": 282.0}]
    assert ("Message on the wire, mqtt-udp, median (bytes)", "282") in summary.headline(results)
    assert ("Message on the wire, mqtt-udp", "282\u00a0bytes", "median of 20") in words.headline(results)
    assert "Message on the wire, median: mqtt-udp 282 bytes" in outputs.tables(results)


def test_sizes_are_absent_where_captures_cover_a_network_in_part(captured):
    captured.event("nor/bft", "triggered", 1.0, "x_1", bytes=240).event("nor/bft", "sent", 1.0, "x_1", bytes=240)
    captured.plan["captures"][0]["nodes"] = ["nor"]
    assert "messageSizes" not in analyse(captured.write()).results
    assert "messageSizes leave it out" in incomplete(captured)


def wire_sizes(lab: Lab, logged: dict[str, int], *counted: tuple[str, int, int, int]) -> list[dict]:
    """The messageSizes of these (protocol, application bytes, wire bytes, messages), where instances logged a message of so many bytes."""
    run = Run.load(lab.write())
    number = {instance.name: instance.number for instance in run.instances}
    messages = pl.DataFrame({"publisher": [number[name] for name in logged], "bytes": list(logged.values())})
    return wire.summarise(run, pl.DataFrame(counted, schema=["protocol", "applicationBytes", "wireBytes", "messages"], orient="row"), messages)


def test_what_counts_as_a_message_is_by_the_protocol_of_its_publishers(lab):
    lab.node(
        "n",
        {"name": "gps", "protocol": "mqtt-udp", "topic": "g"},
        {"name": "image", "topic": "i"},
        {"name": "viewer", "protocol": "amqp", "topics": ["i"]},
    )
    sizes = wire_sizes(
        lab,
        {"n/gps": 40, "n/image": 50000},
        *(
            ("mqtt-udp", 46, 88, 7),
            ("mqtt", 60, 114, 900),
            ("mqtt", 50020, 52000, 3),
            ("amqp", 8, 62, 99),
            ("amqp", 70, 124, 2),
            ("ssh", 90, 144, 500),
        ),
    )
    assert {size["protocol"]: (size["messages"], size["medianBytes"]) for size in sizes} == {
        "mqtt-udp": (7, 88),
        "mqtt": (3, 52000),
        "amqp": (2, 124),
    }


def test_the_median_is_between_the_middle_two_of_sizes_with_equal_counts(lab):
    lab.node("n", {"name": "a", "topic": "t"})
    (size,) = wire_sizes(lab, {"n/a": 4}, ("mqtt", 4, 50, 2), ("mqtt", 6, 60, 2))
    assert size["medianBytes"] == 55.0 and size["messages"] == 4


WHOLE = "networks: byLayer, tcp, routingBytesPerSecond of wan"


def incomplete(lab: Lab) -> str:
    """The reason for which a network has no figures, though there are captures."""
    results = analyse(lab.write()).results
    assert not {"byLayer", "tcp", "routingBytesPerSecond"} & set(results["networks"][0])
    (found,) = [g for g in [*(results["gaps"] or []), *results.get("notes", [])] if g["what"] == WHOLE]
    return found["reason"]


def test_a_node_that_was_not_captured_is_named(captured):
    captured.plan["captures"][0]["nodes"] = ["nor"]
    assert "no capture of prt" in incomplete(captured)


def test_a_filter_is_named(captured):
    captured.plan["captures"][0]["filter"] = "udp port 698"
    assert "nor.pcapng has only what matches 'udp port 698'" in incomplete(captured)


def test_a_capture_that_ended_at_its_limit_is_named(captured):
    captured.logs["radio/host-a.jsonl"].append(
        f'{{"ts":{T0 + 30 * SECOND},"capture":"run","network":"wan","node":"nor","frames":9,"bytes":900,"ended":"limit"}}'
    )
    assert "nor.pcapng ended (limit) at 30.000 s, and the measurement at 60.000 s" in incomplete(captured)


@pytest.mark.parametrize(("ended", "resumed", "lacks"), [(-3, -2, ""), (20, 24, "nor.pcapng has nothing from 20.000 to 24.000 s")])
def test_a_capture_of_a_radio_that_was_attached_again_lacks_only_the_time_between(captured, ended, resumed, lacks):
    row = '{{"ts":{},"capture":"run","network":"wan","node":"nor","frames":9,"bytes":900{}}}'
    captured.logs["radio/host-a.jsonl"] += [row.format(T0 + ended * SECOND, ',"ended":"detached"'), row.format(T0 + resumed * SECOND, "")]
    if lacks:
        assert lacks in incomplete(captured)
    else:
        assert "byLayer" in analyse(captured.write()).results["networks"][0]


def test_a_capture_for_a_while_is_named(captured):
    captured.plan["captures"][0]["name"] = "later"
    (captured.directory / "captures/run").rename(captured.directory / "captures/later")
    for node in ("nor", "prt"):
        captured.logs["radio/host-a.jsonl"].append(
            f'{{"ts":{T0 + 9 * SECOND},"capture":"later","network":"wan","node":"{node}","frames":9,"bytes":900}}'
        )
    assert "prt.pcapng began at 9.000 s, and the measurement at 0.000 s" in incomplete(captured)


@pytest.fixture
def partly(captured) -> Lab:
    """A capture of one of the nodes from 9 s to 19 s, in which it sent 2 frames of OLSRv2 and 1 at its end, of 102 bytes each."""
    captured.plan["captures"] = [{"name": "later", "network": "wan", "nodes": ["nor"], "ended": True}]
    times = (9.5, 12.0, 18.9)
    packets = [capturelab.packet(T0 + int(at * SECOND), capturelab.udp("198.18.9.1", 269, bytes(60))) for at in times]
    capturelab.write(captured.directory / "captures/later/wan/nor.pcapng", *packets)
    row = '{{"ts":{},"capture":"later","network":"wan","node":"nor","frames":3,"bytes":306{}}}'
    captured.logs["radio/host-a.jsonl"] += [row.format(T0 + 9 * SECOND, ""), row.format(T0 + 19 * SECOND, ',"ended":"stopped"')]
    return captured


def test_figures_of_a_part_are_of_its_nodes_and_seconds(partly):
    analysis = analyse(partly.write())
    assert analysis.results["networks"][0]["captured"] == {"nodes": ["nor"], "fromSeconds": 9.0, "toSeconds": 19.0}
    assert any(note["what"] == WHOLE for note in analysis.results["notes"]) and analysis.results["gaps"] is None
    section = traffic.volume_section(analysis)
    chart, by_protocol = section.parts[3:5]
    assert chart.title == "Data volume by layer: wan, sent by nor from 9 to 19 s" and "Bytes that nor sent" in chart.caption
    assert by_protocol.title.endswith("wan, sent by nor from 9 to 19 s") and by_protocol.rows == [("olsrv2", "routing", "3", "306", "30.6")]
    wide = chart.svg[: chart.svg.index("</svg>")]
    places = [float(x) for d in re.findall(r'class="area[^>]* d="M([^"]+)Z"', wide) for x in re.findall(r"([\d.]+) [\d.]+", d)]
    assert 56 + 704 * 9 / 60 < min(places) and max(places) < 56 + 704 * 19 / 60


def test_the_chart_of_layers_has_routing_apart(captured):
    chart = traffic.volume_section(analyse(captured.write())).parts[3]
    totals = {row[0]: row[1] for row in chart.table.rows}
    own, routing = charts.number(20 * 240), charts.number(10 * 102)
    assert totals == {"Ethernet": "280", "IP": "400", "transport": "160", "application": own, "routing, all layers": routing}
    assert [name for _, name in chart.legend] == list(totals)


@pytest.mark.parametrize("nodes", [["nor", "prt"], ["nor"]])
def test_the_second_in_which_the_drain_ended_has_the_rate_of_a_whole_one(captured, nodes):
    captured.plan["captures"][0]["nodes"] = nodes
    captured.plan["measureEndNanoseconds"] = 20 * SECOND + SECOND // 2
    packets = [capturelab.packet(T0 + int(at * SECOND), capturelab.udp("198.18.9.1", 269, bytes(60))) for at in (20.2, 20.8)]
    capturelab.write(captured.directory / "captures/run/wan/nor.pcapng", *packets)
    chart, by_protocol = traffic.volume_section(analyse(captured.write())).parts[3:5]
    frames = 7 if len(nodes) == 2 else 2
    assert chart.table.rows[-1] == ("routing, all layers", str(102 * frames), "204")
    assert ("olsrv2", "routing", str(frames), str(102 * frames), charts.number(102 * frames / 21)) in by_protocol.rows


def test_what_was_not_captured_is_blank_in_plots(partly):
    from matplotlib.patches import StepPatch

    figure = plots.volume.by_layer(analyse(partly.write()))
    (stack,) = [patch for patch in figure.axes[0].patches if isinstance(patch, StepPatch) and patch.get_fill()]
    values = dict(zip(stack.get_data().edges, stack.get_data().values, strict=False))
    assert values[9] == 102 and values[10] == 0 and figure.axes[0].get_xlim() == (0, 60)
    assert "wan: only what was sent by nor from 9 to 19 s" in "".join(text.get_text() for text in figure.texts).replace("\n", " ")


def test_a_capture_that_is_not_there_is_named(captured):
    (captured.directory / "captures/run/wan/nor.pcapng").unlink()
    assert "captures/run/wan/nor.pcapng is not there" in incomplete(captured)


def test_headers_that_were_not_kept_are_named(captured):
    capturelab.write(captured.directory / "captures/run/wan/nor.pcapng", capturelab.packet(T0, FRAME, snap=20))
    assert "lacks the headers of 1 frames: captureSnapLengthBytes of 96 or more" in incomplete(captured)


def test_a_torn_capture_is_named(captured):
    with (captured.directory / "captures/run/wan/nor.pcapng").open("ab") as file:
        file.write(GOOD[:50])
    assert "could be read in part only: its last block, at byte" in incomplete(captured)


def test_frames_that_a_capture_dropped_are_named_beside_the_figures(captured):
    for frames, dropped in ((1, 3), (2, 5), (3, 1)):
        record = f'"frames":{frames},"bytes":9,"dropped":{{"ringFull":{dropped}}}'
        captured.logs["radio/host-a.jsonl"].append(f'{{"ts":{T0 + frames * SECOND},"capture":"run","network":"wan","node":"nor",{record}}}')
    results = analyse(captured.write()).results
    assert "byLayer" in results["networks"][0]
    assert gap(results, "networks: byLayer, tcp of wan")["reason"] == "computed without 6 frames that captures dropped"


def test_a_node_with_two_captures_counts_once(captured):
    captured.plan["captures"].append({"name": "olsr", "network": "wan", "nodes": ["nor"], "filter": "udp port 269"})
    capturelab.write(captured.directory / "captures/olsr/wan/nor.pcapng", GOOD)
    assert analyse(captured.write()).results["networks"][0]["byLayer"]["application"] == 80.0


def test_without_captures_the_results_say_how_to_have_them(lab):
    lab.node("nor", BFT).node("prt", PICTURE)
    analysis = analyse(lab.write())
    (reason,) = [note["reason"] for note in analysis.results["notes"] if note["what"].startswith("networks")]
    assert "collect: {captures: [wan], captureSnapLengthBytes: 96}" in reason
    assert [frame.height for frame in (analysis.volume, analysis.tcp, analysis.packets)] == [0, 0, 0]


def test_chunks_are_bounded_whatever_a_file_has(tmp_path):
    path = capturelab.write(tmp_path / "a.pcapng", *[GOOD] * 20000)
    sizes = [frames.data.size for frames in pcapng.read(path, 1 << 20)]
    assert len(sizes) > 5 and max(sizes) <= (1 << 20) + pcapng.MARGIN_BYTES
