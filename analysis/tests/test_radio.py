import re
from pathlib import Path

import polars as pl
from lab import gap, gap_names

from vignette_analysis import analyse, outputs
from vignette_analysis.data.radiolog import DROPS


def test_a_node_that_no_radio_sampled_is_a_gap(pair):
    for node in pair.nodes:
        node["addresses"] = {"wan": "198.18.9.1"}
    assert gap(analyse(pair.write()).results, "radio samples of prt on wan")["node"] == "prt"
    pair.sample("prt", -1.0, 0).sample("prt", 61.0, 0)
    assert gap_names(analyse(pair.write()).results) == set()


def test_bytes_of_routing_are_averaged_over_the_measurement(pair):
    for second, sent in ((-1.0, 0), (10.0, 1000), (20.0, 2000), (61.0, 2000)):
        pair.sample("prt", second, 10 * sent, routingBytesSent=sent).sample("nor", second, 0)
    results = analyse(pair.write()).results
    assert round(results["networks"][0]["routingBytesPerSecond"], 6) == round((2000 - 1000 / 11) / 60, 6)
    assert "networks: byLayer, tcp of wan" in {note["what"] for note in results["notes"]}


def test_with_static_routes_nobody_sends_bytes_of_routing(pair):
    pair.plan["spec"] = {"networks": [{"name": "wan", "routing": {"protocol": "static"}}]}
    results = analyse(pair.write()).results
    assert results["networks"][0]["routingBytesPerSecond"] == 0
    assert "networks: byLayer, tcp of wan" in {note["what"] for note in results["notes"]}


def test_a_radiod_that_began_to_count_anew_loses_no_bytes_of_routing(pair):
    for second, sent in ((-1.0, 0), (0.0, 0), (10.0, 1000), (12.0, None), (20.0, 500), (60.0, 500)):
        pair.sample("prt", second, 10000, **({} if sent is None else {"routingBytesSent": sent}))
    assert round(analyse(pair.write()).results["networks"][0]["routingBytesPerSecond"], 6) == round(1500 / 60, 6)


def test_frames_are_counted_over_the_measurement_by_reason_of_drops(pair):
    pair.logs["radio/host-a.jsonl"].clear()
    for node in ("nor", "prt"):
        pair.sample(node, 0.0, 0, drops={"silent": 4})  # before it
        pair.sample(node, 30.0, 2000, framesReceived=15, drops={"silent": 4, "queueFull": 2})
        pair.sample(node, 31.0, 100, framesReceived=1)  # radiod began to count anew
        pair.sample(node, 60.0, 100, framesReceived=1, drops={"loss": 3})
    pair.sample("prt", 62.0, 100, framesReceived=1, drops={"loss": 9})  # after it
    frames = analyse(pair.write()).results["networks"][0]["frames"]
    assert frames == {"sent": 2 * 21, "received": 2 * 16, "drops": {"loss": 6, "queueFull": 4}}


def test_frames_are_in_every_form_of_the_results(pair, tmp_path, without_plots):
    pair.sample("prt", -1.0, 0).sample("prt", 61.0, 1000, framesReceived=9, drops={"lowSINR": 1})
    analysis = analyse(pair.write())
    outputs.write(analysis, tmp_path)
    assert "; 10 frames sent, 9 received, dropped 1 (1 lowSINR)" in (tmp_path / "tables.txt").read_text()
    row = pl.read_csv(tmp_path / "networks.csv").to_dicts()[0]
    assert (row["framesSent"], row["framesReceived"], row["droppedLowSINR"], row["droppedLoss"]) == (10, 9, 1, 0)
    assert "Dropped, by reason" in (tmp_path / "report.html").read_text()


def test_a_network_without_drops_says_so(pair):
    pair.sample("prt", -1.0, 0).sample("prt", 61.0, 1000, framesReceived=10)
    assert analyse(pair.write()).results["networks"][0]["frames"]["drops"] is None


def test_every_documented_reason_of_a_drop_is_counted():
    page = Path(__file__).parents[2] / "docs/reference/radio/metrics.md"
    table = page.read_text().split("## Reasons of drops")[1].split("\n\n")[1]
    documented = [reason for row in table.splitlines()[2:] for reason in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert list(DROPS) == documented


def test_lines_of_routes_are_no_broken_samples(pair):
    pair.sample("prt", -1.0, 0).sample("prt", 61.0, 0)
    pair.logs["radio/host-a.jsonl"].append(
        '{"ts":1,"node":"prt","routing":"olsrv2","whole":true,"routes":[{"to":"198.18.9.2/32","network":"wan","hops":1,"metric":1}]}'
    )
    assert not [name for name in gap_names(analyse(pair.write()).results) if name.startswith("log ")]


def test_a_clock_that_is_set_back_makes_radios_count_nothing_twice(pair):
    pair.sample("prt", -1.0, 0, drops={"tapRing": 0})
    for second in range(1, 71):
        pair.sample("prt", second - (10.0 if second > 30 else 0.0), 100 * second, drops={"tapRing": second // 20})
    results = analyse(pair.write()).results
    assert round(results["networks"][0]["bytesPerSecond"], 6) == round((7000 - 50) / 60, 6)
    assert (results["verdict"]["networks"][0]["frames"], results["verdict"]["networks"][0]["lost"]) == (70, 3)
    assert "radio samples of prt on wan" not in gap_names(results)
