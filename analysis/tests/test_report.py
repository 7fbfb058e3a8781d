"""The report as a file: complete, bounded, escaped, the same every time, and broken parts named."""

import base64
import hashlib
import json
import re
import zlib

import numpy as np
import polars as pl
import pytest
from lab import BFT, PICTURE, SECOND, T0, Lab, gap

from vignette_analysis import analyse, outputs, report
from vignette_analysis.__main__ import main
from vignette_analysis.data.gaps import Gaps
from vignette_analysis.figures import display, summary, surroundings
from vignette_analysis.report import asked, charts, delays, freshness, mapdata, mapping, radios, traffic, words
from vignette_analysis.report.parts import Table

HOSTILE = "</script><script>window.hacked=1</script>\"'><img src=x onerror=window.hacked=1>&amp;\u2028]]>"


def rendered(run: Lab) -> str:
    gaps = Gaps()
    text = report.render(analyse(run.write()), gaps).decode()
    assert gaps.found == []
    return text


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL))


def network(lab: Lab, *names: str, spec: dict | None = None) -> Lab:
    """Nodes without apps on one network."""
    for i, name in enumerate(names):
        lab.node(name)
        lab.nodes[-1]["addresses"] = {"wan": f"198.18.9.{i + 1}"}
    lab.plan["spec"] = {"duration": "1m", "networks": [{"name": "wan"} | (spec or {})], "apps": []}
    return lab


def heard(lab: Lab, at: float, source: str, receiver: str, sinr: float | None, count: int) -> None:
    link = {"node": source, "heard": count} | ({"sinrDB": sinr} if sinr is not None else {})
    lab.around(at, network="wan", receiver=receiver, **{"from": [link]})


def test_the_same_run_gives_the_same_bytes(eight_vehicles):
    assert report.render(eight_vehicles, Gaps()) == report.render(eight_vehicles, Gaps())


def test_every_part_is_there(eight_vehicles):
    text = text_of(report.render(eight_vehicles, Gaps()).decode())
    for part in (
        "The emulation did not keep up",
        "Deliveries by group",
        "Delay by publisher",
        "Delay of every delivery over time",
        "Deliveries that did not arrive, by group",
        "Hops over time: vhf",
        "Radio links",
        "Changes by hand",
        "Incidents",
        "Warnings of Kubernetes",
        "Specification as it was resolved",
        "What is missing",
    ):
        assert part in text, part


def test_long_names_stay_apart():
    vehicles = [f"mechanised-company-vehicle-{i}/blue-force-tracking" for i in range(12)]
    assert summary.apart(vehicles, 36) == [f"mechanised-company-vehicle-{i}\u2026" for i in range(12)]
    assert summary.apart(vehicles, 14) == [f"\u2026y-vehicle-{i}\u2026" for i in range(12)]
    assert summary.apart(["hq/bft", *vehicles], 36) == ["hq/bft", *summary.apart(vehicles, 36)]
    assert summary.apart(["hq/bft", vehicles[0]], 36) == ["hq/bft", summary.shorten(vehicles[0], 36)]
    platoons = [f"{platoon}-platoon-of-the-mechanised-company/vehicle" for platoon in ("first", "second")]
    assert summary.apart(platoons, 36) == [summary.shorten(name, 36) for name in platoons]
    assert summary.apart(["a", "a" * 40], 36) == ["a", summary.shorten("a" * 40, 36)] and summary.apart([], 36) == []


def test_a_terminal_has_age_hops_and_sinr_in_a_line_each(eight_vehicles):
    lines = outputs.terminal(eight_vehicles).splitlines()
    age, hops, sinr = (next(line for line in lines if line.startswith(what)) for what in ("Age of information", "Hops on vhf", "SINR on vhf"))
    ages, routed = eight_vehicles.age["meanSeconds"].drop_nulls(), eight_vehicles.hop_histogram.drop_nulls("hops")
    mean = (routed["hops"] * routed["pairs"]).sum() / routed["pairs"].sum()
    assert f"mean {ages.mean():.3f} s over {len(ages)} of 8 pairs" in age
    assert f"mean {mean:.2f}, greatest {routed['hops'].max()}; " in hops and hops.endswith(" % of all pairs of nodes without a route")
    assert re.fullmatch(r"SINR on vhf, median of each link: -?[\d.]+ dB in the middle, -?[\d.]+ to -?[\d.]+ dB for 90 % of \d+ links", sinr)


def test_a_terminal_says_where_no_node_had_a_route(eight_vehicles):
    histogram = pl.DataFrame([("hf", 0, None, 72)], eight_vehicles.hop_histogram.schema, orient="row")
    networks = [{"name": "hf"}]
    surroundings.add_figures(surroundings.Surroundings(eight_vehicles.positions, eight_vehicles.links, eight_vehicles.hops, histogram), networks)
    assert networks == [{"name": "hf", "hops": {"mean": None, "max": None, "withoutRoutePercent": 100.0}}]
    lines = outputs.tables(eight_vehicles.results | {"networks": networks}).splitlines()
    assert "Hops on hf: no node had a route to another one" in lines


def test_nothing_in_it_is_fetched_from_anywhere(eight_vehicles):
    page = report.render(eight_vehicles, Gaps()).decode()
    assert {href for href in re.findall(r'href="([^"]*)"', page) if not href.startswith("#")} == set()
    assert {url for url in re.findall(r"url\(([^)]*)\)", page) if not url.startswith("#")} == set()
    assert not re.search(r"\bsrc=|@import|<link|<iframe|<object|<base", page)


def test_the_policy_allows_the_page_its_own_script_and_style_and_nothing_else(eight_vehicles):
    page = report.render(eight_vehicles, Gaps()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def hostile(directory) -> Lab:
    """A run every string of which is an attack."""
    lab = Lab(directory).node(HOSTILE, BFT).node("prt", PICTURE, group=HOSTILE)
    lab.logs = {name.replace(HOSTILE, "x"): lines for name, lines in lab.logs.items()}
    lab.nodes[0] |= {"addresses": {HOSTILE: HOSTILE}}
    lab.nodes[0]["apps"][0]["instances"] = [HOSTILE]
    lab.logs["logs/x/bft/messages-1.jsonl"] = [
        json.dumps({"ts": T0 + SECOND, "instance": HOSTILE, "status": "sent", "id": HOSTILE, "topic": HOSTILE})
    ]
    lab.plan = {name: HOSTILE for name in ("name", "namespace", "uid", "phase", "message")} | {
        "spec": {
            "duration": "60s",
            HOSTILE: HOSTILE,
            "networks": [{"name": HOSTILE, "waveform": HOSTILE}],
            "apps": [{"name": HOSTILE, "image": HOSTILE}],
        },
        "scenario": {"name": HOSTILE, "digest": HOSTILE},
        "waveforms": {HOSTILE: {HOSTILE: HOSTILE}},
        "environment": {HOSTILE: HOSTILE},
        "liveChanges": [{"name": HOSTILE, "atNanoseconds": SECOND, "changes": [{"network": HOSTILE, "link": {HOSTILE: HOSTILE}}]}],
        "captures": [{"name": HOSTILE, "network": HOSTILE, "nodes": [HOSTILE], "filter": HOSTILE}],
    }
    lab.state["incidents"] = [{"what": HOSTILE, "node": HOSTILE, "fromSeconds": 1, "reason": HOSTILE}]
    lab.manifest["gaps"] = [{"what": HOSTILE, "node": HOSTILE, "reason": HOSTILE + "\ud800"}]
    event = {"ts": T0, "uid": "e", "type": "Warning", "reason": HOSTILE, "object": {"kind": HOSTILE, "name": HOSTILE}, "message": HOSTILE, "count": 1}
    lab.logs["events.jsonl"] = [json.dumps(event)]
    lab.around(1.0, network=HOSTILE, positions={HOSTILE: [58, 7, 0], "prt": [58.1, 7, 0]})
    lab.around(1.0, network=HOSTILE, receiver="prt", **{"from": [{"node": HOSTILE, "sinrDB": 10, "heard": 2}]})
    return lab


def test_no_string_of_a_run_gets_out_of_its_place(tmp_path):
    page = rendered(hostile(tmp_path / "run"))
    assert page.count("<script") == page.count("</script>") == 2 and "<img" not in page
    assert text_of(page).count("&lt;img src=x") > 20


@pytest.mark.parametrize("name", ["figures", "map", "incidents"])
def test_a_broken_section_is_named_and_harms_no_other(eight_vehicles, monkeypatch, name):
    def fail(*_):
        raise ArithmeticError("<b>broken</b>")

    monkeypatch.setitem(report.SECTIONS, name, fail)
    gaps = Gaps()
    page = report.render(eight_vehicles, gaps).decode()
    assert gaps.found == [{"what": f"report: {name}", "reason": "this section could not be made: ArithmeticError: <b>broken</b>"}]
    assert "This section could not be made" in page and "&lt;b&gt;broken" in page
    made = set(report.SECTIONS) - {"requests", "bursts", "picture"} | {name}  # the run has no requests and bursts, and reports no positions
    assert page.count("<section") == len(made) + 1


@pytest.mark.usefixtures("without_plots")
def test_a_broken_report_is_a_gap_of_the_results(pair, tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError("too little")

    monkeypatch.setattr(report.words, "banner", fail)
    analysis = analyse(pair.write())
    paths = outputs.write(analysis, tmp_path)
    assert "MemoryError: too little" in gap(analysis.results, "report")["reason"]
    assert not (tmp_path / "report.html").exists() and paths[-1].name == "results.json" and '"report"' in paths[-1].read_text()


def test_a_run_without_anything_has_a_report(lab):
    lab.plan = {"t0": None, "measureStartNanoseconds": None, "measureEndNanoseconds": None, "spec": {}}
    text = text_of(rendered(lab))
    assert "Whether the emulation kept up is not known" in text and "Nothing was received" in text


def test_the_command_writes_the_same_file(pair, tmp_path):
    directory = pair.write()
    assert main(["report", "--directory", str(directory), "--out", str(tmp_path / "a.html")]) == 0
    assert main(["report", "--directory", str(directory)]) == 0
    assert (tmp_path / "a.html").read_bytes() == (directory / "results" / "report.html").read_bytes()


def test_of_many_deliveries_a_sample_is_drawn_that_keeps_the_slowest(pair, monkeypatch):
    monkeypatch.setattr(delays, "MAX_POINTS", 20)
    monkeypatch.setattr(delays, "SLOWEST", 2)
    for i in range(50):
        pair.event("nor/bft", "sent", float(i), f"m{i}", "/nor/bft").event(
            "prt/picture", "received", i + (9.0 if i == 7 else 0.25), f"m{i}", "/nor/bft"
        )
    analysis = analyse(pair.write())
    chart = delays.section(analysis).parts[-1]
    assert "20 of 50 are drawn: a random sample, and the 2 slowest" in chart.caption
    assert float(chart.table.rows[1][-1]) == 9.0


def test_events_are_told_once_with_their_last_count(pair):
    line = {
        "ts": T0,
        "uid": "a",
        "type": "Warning",
        "reason": "BackOff",
        "object": {"kind": "Pod", "name": "x-nor"},
        "node": "nor",
        "message": "restarting",
    }
    pair.logs["events.jsonl"] = [json.dumps(line | {"count": n}) for n in (1, 17)] + ["{torn\0torn"]
    gaps = Gaps()
    page = report.render(analyse(pair.write()), gaps).decode()
    assert page.count("BackOff") == 1 and ">17</td>" in page
    assert "1 lines of events.jsonl are no events" in gaps.found[0]["reason"]


def test_a_link_is_as_good_as_its_weaker_direction_while_it_is_heard(lab):
    network(lab, "a", "b")
    heard(lab, 5.0, "a", "b", 25.0, 1)
    heard(lab, 7.0, "b", "a", 12.0, 1)
    heard(lab, 8.0, "b", "a", 3.0, 1)  # nothing more was heard: the old figure
    (layer,) = mapdata.build(analyse(lab.write())).layers
    classes = {second: int(layer.classes(second)[0]) for second in (4, 5, 6, 7, 15, 17, 18)}
    assert classes == {4: -1, 5: 4, 6: 4, 7: 2, 15: 2, 17: 2, 18: -1}


def test_a_link_of_unknown_sinr_is_a_class_of_its_own(lab):
    heard(network(lab, "a", "b"), 5.0, "a", "b", None, 1)
    (layer,) = mapdata.build(analyse(lab.write())).layers
    assert layer.classes(5)[0] == len(layer.bounds) + 1


def test_messages_between_nodes_are_shown_by_the_share_that_arrived(pair):
    for i in range(4):
        pair.event("nor/bft", "sent", 10.0 + i, f"m{i}", "/nor/bft")
    pair.event("prt/picture", "received", 11.5, "m1", "/nor/bft").event("prt/picture", "received", 12.5, "m2", "/nor/bft")
    (layer,) = mapdata.build(analyse(pair.write())).layers
    assert [layer.values[0, second] - 1 for second in (10, 11, 12, 13)] == [0, 50, 66, 50]
    assert layer.values[0, 9] == 0 and layer.values[0, 13 + mapdata.SHARE_SECONDS] == 0


def test_loss_periods_and_ages_are_those_of_the_tables(pair):
    for number in range(10):
        pair.event("nor/bft", "sent", 10.0 + number, f"m{number}", "/nor/bft")
        if number not in (4, 5, 6):
            pair.event("prt/picture", "received", 10.5 + number, f"m{number}", "/nor/bft")
    stages, losses, ages = freshness.section(analyse(pair.write())).parts[:3]
    assert ("sent \u2192 received", "7") == stages.rows[0][:2] and set(stages.rows[0][2:]) == {"0.5000"}
    assert losses.rows == [("nor/bft", "prt/picture", "3", "14.0", "16.0", "3")]
    assert ages.rows[0][:3] == ("nor/bft", "prt/picture", "7")


def test_positions_are_held_and_to_scale(lab):
    network(lab, "a", "b", "c")
    lab.around(0.0, network="wan", positions={"a": [60.0, 7.0, 0], "b": [60.01, 7.0, 0]})
    lab.around(20.0, network="wan", positions={"b": [60.0, 7.02, 0]})
    found = mapdata.build(analyse(lab.write()))
    a, b = (found.places[i].astype(float) * found.metres for i in (0, 1))
    assert a[0][1] - b[0][1] == pytest.approx(1112, rel=0.01) and b[19].tolist() == b[0].tolist()
    assert b[20][0] - a[20][0] == pytest.approx(1112, rel=0.01)
    assert (found.places[2] == mapdata.UNKNOWN).all() and "1 nodes without a position are not drawn" in mapping.about(found)


def test_nodes_on_both_sides_of_the_date_line_are_neighbours(lab):
    network(lab, "a", "b").around(0.0, network="wan", positions={"a": [0.0, 179.999, 0], "b": [0.0, -179.999, 0]})
    found = mapdata.build(analyse(lab.write()))
    assert abs(np.diff(found.places[:, 0, 0].astype(float))[0] * found.metres) == pytest.approx(222, rel=0.01)


def test_without_positions_the_layout_is_schematic_and_says_so(pair):
    found = mapdata.build(analyse(pair.write()))
    assert found.ground is None and "schematic layout without distances" in mapping.about(found)


def test_the_data_of_the_page_are_what_was_computed(eight_vehicles):
    found = mapdata.build(eight_vehicles)
    data = found.data()

    def unpacked(text: str, kind: str) -> np.ndarray:
        return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=kind)

    places = unpacked(data["places"], "<u2").reshape(len(found.nodes), 2, found.frames).cumsum(axis=2, dtype=np.uint16)
    assert (places.transpose(0, 2, 1) == found.places).all()
    for layer, packed in zip(found.layers, data["layers"], strict=True):
        assert (unpacked(packed["values"], "u1").reshape(-1, found.frames) == layer.values).all()
        assert (unpacked(packed["pairs"], "<u2").reshape(-1, 2) == layer.pairs).all()


def test_what_the_map_holds_is_bounded_and_what_is_left_out_is_said(eight_vehicles, monkeypatch):
    monkeypatch.setattr(mapdata, "MAX_VALUES", 300)
    monkeypatch.setattr(mapdata, "MIN_FRAMES", 20)
    found = mapdata.build(eight_vehicles)
    assert all(layer.values.size <= 300 for layer in found.layers) and found.frames <= 21
    assert found.layers[0].left_out > 0 and "pairs with the most news are drawn" in mapping.about(found)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, "1\u202f234\u202f567"),
        (0.5, "0.5"),
        (0.123456, "0.1235"),
        (12345.6, "12\u202f346"),
        (None, "\u2013"),
        (-0.25, "-0.25"),
        (2e-9, "2.000e-09"),
    ],
)
def test_numbers_are_for_people(value, text):
    assert charts.number(value) == text


@pytest.mark.parametrize(
    ("value", "cell", "text"),
    [
        (99.984, "99.98", "99.98"),
        (99.9998, "99.99", "99.99"),
        (0.001, "0.01", "0.01"),
        (100.0, "100.00", "100"),
        (0.0, "0.00", "0"),
        (62.5, "62.50", "62.5"),
    ],
)
def test_shares_are_rounded_to_all_or_nothing_only_where_they_are_that(value, cell, text):
    assert charts.share(value) == cell and words.percent(value) == f"{text}\u00a0%"


def test_tables_of_pictures_requests_and_groups_keep_a_single_loss_visible():
    assert summary.picture_cells({"pairs": 1, "knownPercent": 99.999, "errorMetres": None, "ageSeconds": None})[1] == "99.99"
    assert asked._bars("Failures", "Reason", [("timeout", 1)], 100_000, "").table.rows == [("timeout", "1", "0.01")]
    counts = dict.fromkeys(display._COUNTS, 1) | {"deliveredPercent": 99.999}
    assert "99.99" in display._group({"name": "all", "messages": counts, "delaySeconds": None}, 4)


def test_tables_of_delays_show_microseconds_where_there_are_some():
    assert [summary.decimals(times) for times in ([0.0, 0.25, None, 12.0], [0.25, 0.00025])] == [4, 6]


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (charts.Scale(0, 1200, 0, 700), [0, 200, 400, 600, 800, 1000, 1200]),
        (charts.Scale(-1, 1, 0, 700), [-1, -0.5, 0, 0.5, 1]),
        (charts.Scale(0.02, 30, 0, 700, True), [0.1, 1, 10]),
        (charts.Scale(0.1, 1, 0, 700, True), [0.1, 0.2, 0.5, 1]),
    ],
)
def test_ticks_are_round(scale, ticks):
    assert scale.ticks(6) == pytest.approx(ticks)


def test_an_axis_of_equal_values_has_a_length():
    for value in (-0.5, 0.0, 0.5):
        low, high, _ = charts.spanning(value, value)
        assert low <= value <= high and low < high


def test_equal_negative_delays_are_drawn(pair):
    for second in range(5):
        pair.event("nor/bft", "sent", second + 1.0, f"m{second}", "/nor/bft").event("prt/picture", "received", second + 0.5, f"m{second}", "/nor/bft")
    rendered(pair)


def test_links_count_on_where_radiod_began_anew(pair):
    for at, heard, missed in ((1.0, 40, 2), (2.0, 100, 5), (3.0, 10, 1), (4.0, 30, 1)):
        link = {"node": "nor", "sinrDB": 10, "pathlossDB": 80, "heard": heard, "missed": {"lowSINR": missed}}
        pair.around(at, network="wan", receiver="prt", **{"from": [link]})
    assert re.search(r"nor \u2192 prt .*130 .*6 .*low SINR 6", text_of(rendered(pair)))


def test_a_clock_that_is_set_back_makes_links_hear_nothing_twice(pair):
    for count in range(1, 31):
        link = {"node": "nor", "sinrDB": 10, "heard": count}
        pair.around(count - (10.0 if count > 20 else 0.0), network="wan", receiver="prt", **{"from": [link]})
    networks, *_ = radios.links(analyse(pair.write())).parts
    assert networks.rows == [("wan", "1", "30", "0", "0.00", "")]


def test_a_busy_network_hides_no_links_of_a_slow_one(pair):
    many = [f"node-{i}" for i in range(radios.MAX_LINKS + 5)]
    for network, heard, missed in (("fast", 90, {"lowSINR": 10}), ("slow", 6, {"halfDuplex": 3, "lowSINR": 1})):
        links = [{"node": name, "sinrDB": 10, "pathlossDB": 80, "heard": heard, "missed": missed} for name in many]
        pair.around(1.0, network=network, receiver="prt", **{"from": links})
    networks, links, note = radios.links(analyse(pair.write())).parts
    assert networks.rows == [
        ("fast", "20", "1\u202f800", "200", "10.00", "low SINR 200"),
        ("slow", "20", "120", "80", "40.00", "was sending 60, low SINR 20"),
    ]
    assert [row[1] for row in links.rows] == ["fast"] * radios.MAX_LINKS + ["slow"] * radios.MAX_LINKS
    assert "30 of 40" in note.text


def test_the_flows_that_are_known_to_retransmit_most_come_before_unknown_ones(pair):
    analysis = analyse(pair.write())
    counts = [None] * traffic.MAX_FLOWS + [3, 7]
    columns = {"flow": [f"f{i}" for i in range(len(counts))], "retransmissions": counts, "bytes": [9000 - i for i in range(len(counts))]}
    analysis.tcp = pl.DataFrame(columns).select(pl.col(name) if name in columns else pl.lit(None).alias(name) for name in analysis.tcp.columns)
    (flows,) = [part for part in traffic.tcp_section(analysis).parts if isinstance(part, Table)]
    assert [row[0] for row in flows.rows[:3]] == ["f101", "f100", "f0"]
