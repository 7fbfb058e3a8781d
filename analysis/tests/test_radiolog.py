"""Lines of radiod's logs that are no samples: gaps and captures; and what is not sampled at all."""

import json

import pytest
from lab import BFT, PICTURE, SECOND, T0, Lab, gap, gap_names

from vignette_analysis import analyse, outputs
from vignette_analysis.report import words


def radio_gap(run: Lab, what: str, start: float, end: float | None, host: str = "host-a", **more) -> Lab:
    record = {"ts": T0 + round((end or start) * SECOND), "gap": what, "fromTs": T0 + round(start * SECOND), "reason": "worker killed"} | more
    run.logs.setdefault(f"radio/{host}.jsonl", []).append(json.dumps(record | ({"toTs": T0 + round(end * SECOND)} if end is not None else {})))
    return run


def capture(run: Lab, at: float, **more) -> Lab:
    record = {"ts": T0 + round(at * SECOND), "capture": "run", "network": "wan", "node": "nor", "frames": 10, "bytes": 1000} | more
    run.logs["radio/host-a.jsonl"].append(json.dumps(record))
    return run


def sampled(run: Lab, node: str, *stretches: tuple[int, int]) -> Lab:
    for start, end in stretches:
        for second in range(start, end + 1):
            run.sample(node, float(second), 0)
    return run


def text_of(analysis) -> str:
    return outputs.tables(analysis.results, analysis.run.plan)


def test_radios_that_were_silenced_or_broken_were_interrupted(pair):
    for what in ("RadioTrouble", "RadioSilenced"):
        pair.state["incidents"].append({"what": what, "fromSeconds": 5.0, "reason": "of wan"})
    pair.event("nor/bft", "sent", 1.0, "a").event("prt/picture", "received", 1.5, "a")
    analysis = analyse(pair.write())
    assert "Radios: INTERRUPTED, RadioTrouble once, RadioSilenced once" in text_of(analysis)
    assert "Radios were interrupted twice" in words.banner(analysis.results).text


def test_a_restart_of_radiod_is_a_gap_and_no_lateness(pair):
    radio_gap(pair, "radiodRestarted", 12.0, 12.18, framesLost=7)
    analysis = analyse(pair.write())
    found = gap(analysis.results, "radiodRestarted")
    assert (found["fromSeconds"], found["toSeconds"]) == (12.0, 12.18) and "node" not in found
    assert "worker killed" in found["reason"] and "7 frames" in found["reason"] and "host-a" in found["reason"]
    assert analysis.results["verdict"]["keptUp"] and analysis.results["verdict"]["late"] is None
    assert "Radios: INTERRUPTED, radiodRestarted once; " in text_of(analysis)


def test_a_lost_attachment_is_a_gap_of_its_node_that_may_be_open(pair):
    radio_gap(pair, "attachmentLost", 30.0, None, node="prt")
    found = gap(analyse(pair.write()).results, "attachmentLost")
    assert (found["node"], found["fromSeconds"], found.get("toSeconds")) == ("prt", 30.0, None)


@pytest.mark.parametrize("what", ["radiodRestarted", "hostUnreachable"])
@pytest.mark.parametrize(("start", "end", "when"), [(-9.0, -2.0, "before T0"), (60.0, None, "after the end of the drain")])
def test_an_outage_before_t0_or_after_the_drain_is_a_note_and_judges_nothing(pair, what, start, end, when):
    results = analyse(radio_gap(pair, what, start, end).write()).results
    assert what not in gap_names(results) and results["verdict"]["keptUp"]
    (found,) = [note for note in results["notes"] if note["what"] == what]
    assert found["fromSeconds"] == start and when in found["reason"]


def test_an_outage_counts_from_t0_to_the_end_of_the_drain(pair):
    radio_gap(pair, "attachmentLost", -3.0, 2.0, node="prt")
    radio_gap(pair, "attachmentLost", 59.0, 70.0, node="nor")
    found = [(gap["fromSeconds"], gap["toSeconds"]) for gap in analyse(pair.write()).results["gaps"] if gap["what"] == "attachmentLost"]
    assert found == [(0.0, 2.0), (59.0, 60.0)]


def test_a_gap_that_is_written_again_when_it_has_ended_counts_once(pair):
    radio_gap(pair, "attachmentLost", 30.0, None, node="prt")
    radio_gap(pair, "attachmentLost", 30.0, 31.5, node="prt")
    assert gap(analyse(pair.write()).results, "attachmentLost")["toSeconds"] == 31.5


@pytest.mark.parametrize(
    ("stretches", "outage", "kept_up"),
    [
        (((-1, 61),), None, True),
        (((-1, 20), (24, 61)), None, True),
        (((-1, 20), (30, 61)), None, False),
        (((10, 61),), None, False),
        (((-1, 40),), None, False),
        (((-1, 20), (30, 61)), (21.0, 29.5), True),
        (((-1, 20), (40, 61)), (21.0, 29.5), False),
        (((-1, 20),), (21.0, None), True),
    ],
)
def test_a_radio_without_samples_for_long_did_not_keep_up_unless_a_gap_says_why(pair, stretches, outage, kept_up):
    pair.logs["radio/host-a.jsonl"].clear()
    sampled(pair, "nor", (-1, 61))
    sampled(pair, "prt", *stretches)
    if outage:
        radio_gap(pair, "attachmentLost", *outage, node="prt")
    verdict = analyse(pair.write()).results["verdict"]
    assert verdict["keptUp"] is kept_up
    assert {entry["what"] for entry in verdict["late"] or []} == (set() if kept_up else {"no radio samples of prt on wan"})


def test_samples_that_found_no_room_are_a_gap_that_excuses_no_silence(pair):
    pair.logs["radio/host-a.jsonl"].clear()
    sampled(pair, "nor", (-1, 20))
    pair.logs["radio/host-a.jsonl"].append(json.dumps({"ts": T0 + 40 * SECOND, "gap": "spoolFull", "fromTs": T0 + 20 * SECOND, "bytes": 4096}))
    sampled(pair, "nor", (40, 61))
    results = analyse(pair.write()).results
    assert gap(results, "radio samples") == {
        "what": "radio samples", "fromSeconds": 20.0, "toSeconds": 40.0, "reason": "radiod had no room for 4096 bytes of samples on host host-a",
    }  # fmt: skip
    assert results["verdict"]["keptUp"] is False


def test_captures_that_lack_a_restarts_frames_are_a_gap_that_excuses_no_silence(pair):
    pair.logs["radio/host-a.jsonl"].clear()
    sampled(pair, "nor", (-1, 61))
    sampled(pair, "prt", (-1, 20), (40, 61))
    radio_gap(pair, "capture", 20.0, 40.0)
    results = analyse(pair.write()).results
    assert gap(results, "capture")["fromSeconds"] == 20.0
    assert results["verdict"]["keptUp"] is False


def test_the_silence_of_a_whole_host_is_named_once(pair):
    pair.logs["radio/host-a.jsonl"].clear()
    for node in ("nor", "prt"):
        sampled(pair, node, (-1, 20), (30, 61))
    late = analyse(pair.write()).results["verdict"]["late"]
    assert [(entry["node"], entry["fromSeconds"], entry["toSeconds"]) for entry in late] == [("", 20.0, 30.0)]


def test_of_a_radio_that_was_never_sampled_nobody_knows_whether_it_kept_up(pair):
    for node in pair.nodes:
        node["addresses"] = {"wan": "198.18.9.1"}
    results = analyse(pair.write()).results
    assert "verdict" not in results and gap_names(results) == {"radio samples of prt on wan", "verdict"}


def test_frames_that_a_capture_dropped_are_gaps(pair):
    capture(pair, 5.0)
    capture(pair, 6.0, dropped={"ringFull": 3})
    capture(pair, 9.0, dropped={"ringFull": 3, "spoolFull": 2})
    capture(pair, 12.0, dropped={"ringFull": 3, "spoolFull": 2}, ended="stopped")
    found = gap(analyse(pair.write()).results, "capture")
    assert (found["node"], found["fromSeconds"], found["toSeconds"]) == ("nor", 5.0, 9.0)
    assert "lacks 5 frames: 3 ringFull, 2 spoolFull" in found["reason"]


def test_a_capture_whose_counters_begin_anew_goes_on(pair):
    capture(pair, 6.0, dropped={"ringFull": 3})
    capture(pair, 9.0, dropped={"ringFull": 1})
    assert "lacks 4 frames" in gap(analyse(pair.write()).results, "capture")["reason"]


def test_a_capture_that_ended_at_its_limit_is_a_gap_and_one_that_was_stopped_is_none(pair):
    capture(pair, 6.0, ended="limit", bytes=4096)
    capture(pair, 7.0, capture="mine", ended="stopped")
    found = gap(analyse(pair.write()).results, "capture")
    assert found["fromSeconds"] == 6.0 and "toSeconds" not in found and "limit, after 10 frames in 4096 bytes" in found["reason"]


def test_lines_of_every_kind_are_no_bad_samples_and_nonsense_is(pair):
    pair.logs["radio/host-a.jsonl"].insert(0, '{"ts":1767323045000000000,"host":"host-a","kernel":"6.1"}')
    capture(radio_gap(pair, "radiodRestarted", 1.0, 1.1), 2.0)
    pair.logs["radio/host-a.jsonl"].append('{"ts":17673230450000')
    results = analyse(pair.write()).results
    assert gap_names(results) == {"log radio/host-a.jsonl", "radiodRestarted"}
    assert "1 lines are no samples" in gap(results, "log radio/host-a.jsonl")["reason"]


def test_what_people_changed_is_in_the_tables(pair):
    pair.plan["liveChanges"] = [
        {"name": "jam-1", "atNanoseconds": 12_500_000_000, "changes": [{"network": "wan", "from": "nor", "link": {"loss": "50%", "limit": 10}}]},
        {"name": "jam-2", "atNanoseconds": 20_000_000_000, "changes": [{"network": "wan", "silent": True}]},
        {"name": "jam-3", "atNanoseconds": 21_000_000_000, "changes": [{"network": "wan", "jammer": {"name": "noise", "power": "20dBm"}}]},
    ]
    text = text_of(analyse(pair.write()))
    lines = [
        "12.500 s  jam-1: wan from nor to *: loss 50%, limit 10",
        "20.000 s  jam-2: wan: silent",
        "21.000 s  jam-3: wan: jammer noise power 20dBm",
    ]
    assert "".join(f"  {line}\n" for line in lines) in text


def test_what_arrives_after_the_drain_is_in_flight_at_the_end(pair):
    pair.event("nor/bft", "sent", 58.0, "a", "/nor/bft").event("nor/bft", "sent", 59.0, "b", "/nor/bft")
    pair.event("prt/picture", "received", 60.0, "a", "/nor/bft").event("prt/picture", "received", 60.5, "b", "/nor/bft")
    pair.event("prt/picture", "received", 61.0, "a", "/nor/bft")
    results = analyse(pair.write()).results
    assert (results["messages"]["received"], results["messages"]["lost"], results["messages"]["duplicates"]) == (1, 1, 0)
    found = gap(results, "deliveries in flight")
    assert found["reason"].startswith("inFlightAtEnd: 2 events") and (found["fromSeconds"], found["toSeconds"]) == (60.0, 61.0)


@pytest.mark.parametrize(
    ("event", "seconds", "said"),
    [("cpuThrottled", 0.0, False), ("cpuThrottled", 0.02, True), ("cpuPressure", 2.9, False), ("cpuPressure", 3.1, True)],
)
def test_an_app_that_waited_for_processors_is_context_and_decides_nothing(pair, event, seconds, said):
    pair.agent("nor", "bft", event, 60.0, **({"latenessSeconds": seconds} if seconds else {}))
    verdict = analyse(pair.write()).results["verdict"]
    assert verdict["keptUp"] and len(verdict.get("context", ())) == said
    assert not said or f"1 app, most of all nor/bft, for {seconds:.2f} s" in verdict["context"][0]


def test_what_agents_did_not_measure_is_noted_and_what_they_did_is_not(pair):
    for node, app in (("nor", "bft"), ("prt", "picture")):
        pair.agent(node, app, "cpuThrottled", 60.0)
    pair.agent("nor", "bft", "cpuPressure", 60.0, latenessSeconds=0.1)
    notes = {note["what"]: note["reason"] for note in analyse(pair.write()).results["notes"]}
    assert "throttling" not in notes and notes["CPU pressure"] == "not measured for 1 apps: prt/picture"


def test_lines_of_older_logs_are_ignored_without_a_gap(pair):
    pair.around(1.0, stillSeconds=0.02).around(1.0, processorStillSeconds=0.02, processor=1)
    results = analyse(pair.write()).results
    assert not gap_names(results) and results["verdict"]["keptUp"]


def test_a_cluster_without_a_duration_has_the_one_that_it_was_measured_for(lab):
    lab.node("nor", BFT).node("prt", PICTURE)
    lab.plan |= {"spec": {"networks": [], "apps": []}, "measureEndNanoseconds": 90 * SECOND}
    assert analyse(lab.write()).results["durationSeconds"] == 90.0
    lab.plan["measureEndNanoseconds"] = None
    results = analyse(lab.write()).results
    assert results["durationSeconds"] == 0.0 and "durationSeconds" in gap_names(results)
