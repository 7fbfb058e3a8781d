"""Error and age of the picture: positions received against the true ones."""

import json
import math

import polars as pl
import pytest
from lab import SECOND, T0, Lab

from vignette_analysis import analyse, outputs, plots
from vignette_analysis.figures import picture, summary
from vignette_analysis.figures.stored import load
from vignette_analysis.report import mapdata, pictured

# Metres of a degree of latitude on the mean sphere.
DEGREE = math.radians(1) * picture.EARTH_METRES


def convoy(directory, seconds=60) -> Lab:
    """veh goes 10 m to the north each second, and reports its position every 10 s from second 2 on; hq has it a second later."""
    lab = Lab(directory).node("veh", {"name": "bft", "topic": "/{}"}, group="alpha").node("hq", {"name": "picture", "topics": ["#"]})
    lab.logs["logs/veh/bft/positions.jsonl"] = [
        json.dumps({"ts": T0 + s * SECOND, "position": [58 + 10 * s / DEGREE, 8.0, 20.0]}) for s in range(seconds)
    ]
    for i, at in enumerate(range(2, seconds, 10)):
        place = [58 + 10 * at / DEGREE, 8.0, 20.0]
        lab.event("veh/bft", "triggered", at * SECOND, f"m{i}", "/veh/bft", position=place).event("veh/bft", "sent", at + 0.001, f"m{i}", "/veh/bft")
        lab.event("hq/picture", "received", at + 1.0, f"m{i}", "/veh/bft")
    return lab


def group(results: dict, name: str) -> dict:
    """The group of this name."""
    return next(entry for entry in results["picture"]["groups"] if entry["name"] == name)


def test_the_error_is_how_far_the_node_has_gone_since_its_freshest_position(tmp_path):
    results = analyse(convoy(tmp_path).write()).results
    entry = group(results, "all")
    # From second 2 to 60 there are 59 samples; at second 2 nothing had come. The node stands from second 59 on.
    assert (entry["pairs"], entry["samples"], round(entry["knownPercent"], 6)) == (1, 59, round(100 * 58 / 59, 6))
    # At the seconds after a report the age is 1 to 10 s, and 10 m for each second.
    ages = [(t - 2) % 10 or 10 for t in range(3, 61)]
    assert entry["ageSeconds"] == pytest.approx({"median": 5.0, "mean": sum(ages) / 58, "p95": 10.0, "max": 10.0})
    errors = [10 * (min(t, 59) - (t - age)) for t, age in zip(range(3, 61), ages, strict=True)]
    assert entry["errorMetres"]["mean"] == pytest.approx(sum(errors) / 58, rel=1e-6)
    assert entry["errorMetres"]["max"] == pytest.approx(100.0, rel=1e-6)


def test_a_lost_position_makes_the_picture_older_and_worse(tmp_path):
    lab = convoy(tmp_path)
    lost = lab.logs["logs/hq/picture/messages-1.jsonl"].pop(2)
    assert '"m2"' in lost
    entry = group(analyse(lab.write()).results, "alpha")
    assert entry["ageSeconds"]["max"] == 20.0
    assert entry["errorMetres"]["max"] == pytest.approx(200.0, rel=1e-6)


def test_where_no_position_arrived_the_report_says_so(tmp_path):
    lab = convoy(tmp_path)
    lab.logs["logs/hq/picture/messages-1.jsonl"].clear()
    section = pictured.section(analyse(lab.write()))
    assert next(part.text for part in section.parts if part.kind == "text") == "No position arrived whose error is known."


def test_a_position_that_was_overtaken_changes_nothing(tmp_path):
    lab = convoy(tmp_path)
    log = lab.logs["logs/hq/picture/messages-1.jsonl"]
    late = json.loads(log[1])
    log[1] = json.dumps(late | {"ts": T0 + 24 * SECOND})  # after m2, of second 22
    entry = group(analyse(lab.write()).results, "all")
    assert entry["ageSeconds"]["max"] == 20.0, "from second 2 to 22 the position of second 2 was the freshest"
    times = analyse(tmp_path).picture_times
    assert times.filter(times["second"] == 25)["ageMedianSeconds"].item() == 3.0


def test_without_the_agents_log_the_radios_positions_are_the_true_ones(tmp_path):
    lab = convoy(tmp_path)
    for line in map(json.loads, lab.logs.pop("logs/veh/bft/positions.jsonl")):
        lab.around((line["ts"] - T0) / SECOND, network="wan", positions={"veh": line["position"]})
    assert group(analyse(lab.write()).results, "all")["errorMetres"]["max"] == pytest.approx(100.0, abs=0.2)


def test_a_nodes_own_log_counts_and_the_radios_samples_go_on_after_its_end(tmp_path):
    lab = convoy(tmp_path)
    log = lab.logs["logs/veh/bft/positions.jsonl"]
    for line in map(json.loads, log):
        lab.around((line["ts"] - T0) / SECOND + 0.7, network="wan", positions={"veh": line["position"]})
    del log[30:]  # the agent was killed
    positions = analyse(lab.write()).positions
    offsets = {(ts - T0) % SECOND for ts in positions["ts"] if ts <= T0 + 29 * SECOND}
    assert offsets == {0}
    assert positions["ts"].max() == T0 + 59 * SECOND + SECOND * 7 // 10


def test_a_position_is_known_also_where_the_true_one_is_not(tmp_path):
    lab = convoy(tmp_path)
    del lab.logs["logs/veh/bft/positions.jsonl"][:20]  # the true position is known from second 20 on
    analysis = analyse(lab.write())
    entry = group(analysis.results, "all")
    assert round(entry["knownPercent"], 6) == round(100 * 58 / 59, 6)
    ages = [(t - 2) % 10 or 10 for t in range(3, 61)]
    assert entry["ageSeconds"]["mean"] == pytest.approx(sum(ages) / 58)
    errors = [10 * (min(t, 59) - (t - age)) for t, age in zip(range(3, 61), ages, strict=True) if t >= 20]
    assert entry["errorMetres"]["mean"] == pytest.approx(sum(errors) / 41, rel=1e-6)
    row = analysis.picture.row(0, named=True)
    assert (row["knownPercent"], row["errorMeanMetres"]) == (entry["knownPercent"], entry["errorMetres"]["mean"])
    early = analysis.picture_times.filter(analysis.picture_times["second"] == 5).row(0, named=True)
    assert (early["known"], early["errorMedianMetres"], early["ageMedianSeconds"]) == (1, None, 3.0)


def test_unknown_true_positions_are_a_gap_and_no_figure(tmp_path):
    lab = convoy(tmp_path)
    del lab.logs["logs/veh/bft/positions.jsonl"]
    analysis = analyse(lab.write())
    assert "picture" not in analysis.results
    assert [g["reason"] for g in analysis.results["gaps"] if g["what"] == "picture"] == [
        "the true positions of veh are not known: positions of 1 nodes have no error"
    ]
    assert analysis.reports.height == 6


def test_messages_without_positions_have_no_picture(tmp_path):
    lab = convoy(tmp_path)
    log = lab.logs["logs/veh/bft/messages-1.jsonl"]
    log[:] = [json.dumps({k: v for k, v in json.loads(line).items() if k != "position"}) for line in log]
    analysis = analyse(lab.write())
    assert "picture" not in analysis.results
    assert not [g for g in analysis.results["gaps"] or [] if g["what"] == "picture"]


@pytest.mark.parametrize("bad", [[], [58.0], [91.0, 8.0, 0.0], [58.0, 181.0, 0.0]])
def test_a_field_position_that_is_none_is_a_gap(tmp_path, bad):
    lab = convoy(tmp_path)
    log = lab.logs["logs/veh/bft/messages-1.jsonl"]
    log[0] = json.dumps(json.loads(log[0]) | {"position": bad})
    analysis = analyse(lab.write())
    assert "1 records have no position in their field position" in str(analysis.results["gaps"])
    assert analysis.reports.height == 5


def units(directory) -> Lab:
    """Two units on one node, which stand 1 and 2 degrees from the equator, report a position 10 and 20 m further north; hq receives both."""
    lab = Lab(directory).node("nor", {"name": "units", "topic": "/{}", "instances": 2, "platforms": [9, 10]})
    lab.node("hq", {"name": "picture", "topics": ["#"]})
    for unit in (1, 2):
        name = f"nor/units/{unit}"
        lab.logs[f"logs/nor/units/positions-{unit}.jsonl"] = [json.dumps({"ts": T0, "position": [unit, 8.0, 20.0]})]
        lab.event(name, "triggered", 1, f"m{unit}", f"/{name}", position=[unit + 10 * unit / DEGREE, 8.0, 20.0])
        lab.event(name, "sent", 1, f"m{unit}", f"/{name}").event("hq/picture", "received", 2, f"m{unit}", f"/{name}")
    return lab


def test_instances_with_platforms_of_their_own_are_held_against_these(tmp_path):
    analysis = analyse(units(tmp_path).write())
    errors = analysis.picture.select("subscriber", "node", "errorMaxMetres").rows()
    assert [(subscriber, node, round(error, 3)) for subscriber, node, error in errors] == [
        ("hq/picture", "nor/units/1", 10.0),
        ("hq/picture", "nor/units/2", 20.0),
    ]
    assert group(analysis.results, "nor")["pairs"] == 2
    assert plots.picture.tracks(analysis) is not None
    assert "picture" not in {g["what"] for g in analysis.results["gaps"] or []}


def test_without_the_log_of_its_platform_an_instance_has_no_error(tmp_path):
    lab = units(tmp_path)
    del lab.logs["logs/nor/units/positions-2.jsonl"]
    analysis = analyse(lab.write())
    assert analysis.picture["node"].to_list() == ["nor/units/1"]
    assert "the true positions of nor/units/2 are not known" in str(analysis.results["gaps"])


def test_own_positions_are_no_picture(tmp_path):
    lab = convoy(tmp_path)
    screen = {"name": "screen", "kind": "traffic", "instances": ["veh/screen"], "protocol": "mqtt", "to": ""}
    lab.nodes[0]["apps"].append(screen | {"subscribes": True, "subscriptions": ["#"]})
    lab.logs["logs/veh/screen/messages-1.jsonl"] = []
    for i in range(6):
        lab.event("veh/screen", "received", 10 * i + 2.5, f"m{i}", "/veh/bft")
    analysis = analyse(lab.write())
    assert group(analysis.results, "all")["pairs"] == 1
    assert analysis.reports["receivers"].to_list() == [1] * 6
    assert analysis.reports["received"].to_list() == [T0 + (10 * i + 3) * SECOND for i in range(6)]


def test_positions_of_nodes_that_nobody_else_receives_are_reports_without_a_picture(tmp_path):
    lab = Lab(tmp_path).node("veh", {"name": "bft", "topic": "/{}"}, {"name": "picture", "topics": ["#"]}, group="alpha")
    lab.event("veh/bft", "triggered", 2.0, "m0", "/veh/bft", position=[58.0, 8.0, 20.0]).event("veh/bft", "sent", 2.001, "m0", "/veh/bft")
    lab.event("veh/picture", "received", 2.1, "m0", "/veh/bft")
    analysis = analyse(lab.write())
    assert analysis.results["messages"]["received"] == 1
    assert "picture" not in analysis.results


def test_positions_are_in_the_tables_plots_and_report(tmp_path):
    analysis = analyse(convoy(tmp_path / "run").write())
    outputs.write(analysis, tmp_path / "run" / "results")
    tables = (tmp_path / "run" / "results" / "tables.txt").read_text()
    assert "Picture by group of the reported nodes" in tables
    assert summary.picture(analysis.results)[1][:3] == ("alpha", "1", "98.31")
    for name in ("picture-tracks", "picture-over-time"):
        assert (tmp_path / "run" / "results" / "plots" / f"{name}.png").stat().st_size > 10_000
    report = (tmp_path / "run" / "results" / "report.html").read_text()
    assert "Picture of the nodes" in report and "could not be made" not in report
    stored = load(tmp_path / "run")
    assert stored.picture.equals(analysis.picture) and stored.reports.height == 6
    table = tmp_path / "run" / "results" / "reports.parquet"
    pl.read_parquet(table).drop("received").write_parquet(table)  # as earlier results have it
    assert load(tmp_path / "run").reports["received"].to_list() == [None] * 6


@pytest.mark.usefixtures("without_plots")
def test_the_reports_map_has_the_reported_position_beside_the_true_one(tmp_path):
    analysis = analyse(convoy(tmp_path).write())
    found = mapdata.build(analysis)
    # The position of second 2 has come at second 3, and that of second 12 at second 13.
    assert [bool(found.seen(frame)[0]) for frame in (2, 3)] == [False, True]
    for frame, made in ((3, 2), (12, 2), (13, 12)):
        north = (int(found.reported[0, frame, 1]) - int(found.places[0, frame, 1])) * found.metres
        assert north == pytest.approx(10 * (frame - made), abs=0.1), frame
    outputs.write(analysis, tmp_path / "results")
    page = (tmp_path / "results" / "report.html").read_text()
    assert 'class="reported"' in page and "reported position" in page


def test_a_lost_or_overtaken_position_does_not_move_the_reported_one(tmp_path):
    lab = convoy(tmp_path)
    log = lab.logs["logs/hq/picture/messages-1.jsonl"]
    log[1] = json.dumps(json.loads(log[1]) | {"ts": T0 + 24 * SECOND})  # m1 comes after m2, of second 22
    del log[3]
    found = mapdata.build(analyse(lab.write()))
    at = {frame: found.reported[0, frame].tolist() for frame in (10, 22, 23, 25, 40)}
    assert at[10] == at[22] and at[23] == at[25] == at[40] != at[22]


def test_without_reports_the_map_has_true_positions_only(tmp_path):
    lab = convoy(tmp_path)
    lab.logs["logs/hq/picture/messages-1.jsonl"].clear()
    found = mapdata.build(analyse(lab.write()))
    assert found.ground is not None and found.reported is None and found.data()["reported"] is None


def test_platforms_of_their_own_are_not_the_nodes_position_on_the_map(tmp_path):
    found = mapdata.build(analyse(units(tmp_path).write()))
    assert found.ground is None and found.reported is None


@pytest.mark.usefixtures("without_plots")
def test_more_pairs_than_a_table_takes_have_groups_and_times_only(tmp_path, monkeypatch):
    monkeypatch.setattr(picture, "MAX_PAIRS", 0)
    analysis = analyse(convoy(tmp_path / "run").write())
    assert analysis.picture.is_empty() and group(analysis.results, "all")["pairs"] == 1 and analysis.picture_times.height == 59
    assert "1 pairs of a subscriber and a node: the table of pairs is for up to 0" in str(analysis.results["notes"])
    outputs.write(analysis, tmp_path / "results")
    assert "pairs with the greatest error" not in (tmp_path / "results" / "report.html").read_text()


def test_a_run_without_positions_has_no_plot_of_them(tmp_path):
    analysis = analyse(Lab(tmp_path / "run").node("veh", {"name": "bft", "topic": "/{}"}).write())
    assert plots.picture.tracks(analysis) is None and plots.picture.over_time(analysis) is None


def test_distances_are_those_of_the_sphere():
    assert picture.metres(0.0, 0.0, 1.0, 0.0) == pytest.approx(DEGREE)
    assert picture.metres(60.0, 179.9, 60.0, -179.9) == pytest.approx(0.2 * DEGREE * 0.5, rel=1e-4)


def test_whole_numbers_are_positions_and_text_is_a_bad_line(tmp_path):
    lab = convoy(tmp_path)
    log = lab.logs["logs/veh/bft/messages-1.jsonl"]
    log[0] = json.dumps(json.loads(log[0]) | {"position": [58, 8, 20]})
    log[2] = json.dumps(json.loads(log[2]) | {"position": "58 N"})
    analysis = analyse(lab.write())
    assert analysis.reports.row(0)[4:7] == (58.0, 8.0, 20.0)
    assert "1 lines are no records" in str(analysis.results["gaps"])
    assert analysis.reports.height == 5
