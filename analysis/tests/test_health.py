import json

import pytest
from lab import T0, gap, gap_names

from vignette_analysis import analyse


def test_bytes_per_second_are_averaged_over_the_measurement_by_interpolation(pair):
    pair.plan |= {"measureStartNanoseconds": 10 * 10**9, "measureEndNanoseconds": 20 * 10**9}
    pair.logs["radio/host-a.jsonl"].clear()
    pair.sample("nor", 9.0, 0).sample("nor", 11.0, 1000).sample("nor", 19.0, 9000).sample("nor", 21.0, 9400)
    pair.sample("prt", 9.5, 700).sample("prt", 20.5, 700)
    results = analyse(pair.write()).results
    # nor: 500 bytes until 10 s by interpolation, 9200 until 20 s; prt: nothing meanwhile.
    assert results["networks"] == [{"name": "wan", "bytesPerSecond": 870.0, "frames": {"sent": 87, "received": 0, "drops": None}}]


def test_counters_that_begin_anew_go_on(pair):
    pair.logs["radio/host-a.jsonl"].clear()
    pair.sample("nor", 0.0, 0).sample("nor", 30.0, 6000).sample("nor", 31.0, 100).sample("nor", 60.0, 1100)
    results = analyse(pair.write()).results
    assert results["networks"][0]["bytesPerSecond"] == 7100 / 60
    assert "began at 0 again" in gap(results, "radio samples of nor on wan")["reason"]


def test_samples_that_do_not_cover_the_measurement_are_gaps(pair):
    pair.logs["radio/host-a.jsonl"].clear()
    pair.sample("nor", 2.0, 500).sample("nor", 5.0, 900).sample("prt", -1.0, 0).sample("prt", 61.0, 0)
    reasons = [g["reason"] for g in analyse(pair.write()).results["gaps"] if g["what"] == "radio samples of nor on wan"]
    assert len(reasons) == 2 and "first sample came late" in reasons[0] and "last sample came before the end" in reasons[1]


def test_without_samples_there_is_neither_volume_nor_verdict(pair):
    pair.logs["radio/host-a.jsonl"].clear()
    results = analyse(pair.write()).results
    assert results["networks"] == [{"name": "wan"}] and "verdict" not in results
    assert gap_names(results) == {"verdict"}


def test_a_network_of_emane_is_not_claimed_to_have_kept_up(pair):
    pair.plan = {"spec": {"duration": "1m", "networks": [{"name": "wan", "engine": "emane"}], "apps": list(pair.apps.values()), "nodes": []}}
    results = analyse(pair.write()).results
    assert "verdict" not in results
    assert any(note["what"] == "verdict: EMANE on wan" and "not how late" in note["reason"] for note in results["notes"])


def test_what_is_late_speaks_against_emane_too(pair):
    pair.plan = {"spec": {"duration": "1m", "networks": [{"name": "wan", "engine": "emane"}], "apps": list(pair.apps.values()), "nodes": []}}
    pair.agent("nor", "bft", "stopped", 51.0, instance="nor/bft", plannedTs=1767323095000000000, latenessSeconds=1.0)
    assert not analyse(pair.write()).results["verdict"]["keptUp"]


def test_positions_and_links_are_lines_of_the_log(pair):
    pair.logs["radio/host-a.jsonl"] += [
        json.dumps({"ts": T0, "network": "wan", "positions": {"nor": [58.1, 7.9, 3.0]}}),
        json.dumps(
            {
                "ts": T0,
                "network": "wan",
                "receiver": "prt",
                "from": [{"node": "nor", "sinrDB": 3.2, "pathlossDB": 101.0, "heard": 4, "missed": {"lowSINR": 1}}],
            }
        ),
    ]
    assert not gap_names(analyse(pair.write()).results)


def test_frames_still_queued_at_the_end_are_named(pair):
    pair.logs["radio/host-a.jsonl"].clear()
    pair.sample("nor", -1.0, 0).sample("nor", 60.0, 0, queueDepth=7).sample("nor", 61.0, 0, drops={"inFlightAtEnd": 7})
    found = gap(analyse(pair.write()).results, "frames in flight on wan")
    assert found["reason"].startswith("inFlightAtEnd: 7 frames of nor") and found["fromSeconds"] == 60.0


def test_frames_queued_between_two_samples_are_about_as_many_as_the_nearer_one_has(pair):
    pair.logs["radio/host-a.jsonl"].clear()
    pair.sample("nor", -1.0, 0).sample("nor", 59.1, 0, queueDepth=6).sample("nor", 60.1, 0, queueDepth=2).sample("nor", 61.0, 0)
    assert gap(analyse(pair.write()).results, "frames in flight on wan")["reason"].startswith("inFlightAtEnd: about 2 frames of nor")


def test_an_app_that_ends_by_itself_is_a_named_interval(pair):
    pair.agent("prt", "picture", "exited", 10.0, instance="prt/picture", exitCode=137).agent(
        "prt", "picture", "restarted", 10.5, instance="prt/picture"
    )
    pair.agent("prt", "picture", "exited", 20.0, instance="prt/picture", exitCode=0, message="bye")
    gaps = [g for g in analyse(pair.write()).results["gaps"] if g["what"] == "app prt/picture down"]
    assert [(g["node"], g["fromSeconds"], g.get("toSeconds")) for g in gaps] == [("prt", 10.0, 10.5), ("prt", 20.0, None)]
    assert "code 137" in gaps[0]["reason"] and "bye" in gaps[1]["reason"]


def test_an_image_may_end_when_it_is_done_and_a_stopped_app_is_not_missing(lab):
    lab.node("nor", {"name": "own", "kind": "image"})
    lab.agent("nor", "own", "started", 0, instance="nor/own").agent("nor", "own", "exited", 5.0, instance="nor/own", exitCode=0)
    lab.agent("nor", "own", "restarted", 6.0, instance="nor/own").agent("nor", "own", "stopped", 7.0, instance="nor/own")
    lab.agent("nor", "own", "exited", 7.1, instance="nor/own", exitCode=143)
    assert gap_names(analyse(lab.write()).results) == set()


def test_what_the_platform_saw_go_wrong_is_named(pair):
    pair.state["incidents"] = [{"what": "NodeFailed", "node": "prt", "fromSeconds": 12.5, "reason": "pod evicted"}]
    pair.state["agents"] = [{"node": "prt", "app": "picture", "phase": "failed", "message": "app picture on node prt exited with code 1"}]
    pair.manifest["gaps"] = [{"what": "logs of prt/picture", "node": "prt", "reason": "lost"}]
    pair.nodes[0]["openManagement"] = True
    pair.agent("nor", "bft", "spoolFull", 3.0)
    pair.agent("prt", "picture", "notArchived", 4.0, message="a b.log")
    results = analyse(pair.write()).results
    assert gap_names(results) == {"NodeFailed", "app prt/picture", "logs of prt/picture", "isolation", "logs of nor/bft"}
    assert gap(results, "NodeFailed") == {"what": "NodeFailed", "node": "prt", "fromSeconds": 12.5, "reason": "pod evicted"}


def test_records_that_are_missing_are_named(pair):
    pair.state, pair.manifest = None, None
    assert gap_names(analyse(pair.write()).results) == {"state.json", "manifest.json"}


@pytest.mark.parametrize("name", ["state.json", "manifest.json"])
@pytest.mark.parametrize("record", ["[]", "3", "null"])
def test_a_record_that_is_no_object_is_named_and_the_rest_analysed(pair, name, record):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 1.5, "a", "/nor/bft")
    (pair.write() / name).write_text(record)
    results = analyse(pair.directory).results
    assert gap(results, name)["reason"].startswith("JSON, but no object") and results["messages"]["received"] == 1


def test_the_failure_of_an_app_is_named_once_from_its_log_or_else_from_its_last_report(pair):
    pair.state["agents"] = [{"node": "prt", "app": "picture", "phase": "failed", "message": "exited with code 1"}]
    assert "code 1" in gap(analyse(pair.write()).results, "app prt/picture")["reason"]
    pair.agent("prt", "picture", "failed", 4.0, message="exited with code 1")
    results = analyse(pair.write()).results
    assert gap_names(results) == {"app prt/picture failed"} and gap(results, "app prt/picture failed")["fromSeconds"] == 4.0


def test_a_run_that_never_began_still_has_results(pair):
    pair.plan |= {"t0": None, "measureStartNanoseconds": None, "measureEndNanoseconds": None, "phase": "Failed"}
    results = analyse(pair.write()).results
    assert "startTime" not in results and "verdict" not in results and results["durationSeconds"] == 60.0
    assert results["networks"] == [{"name": "wan"}]


def test_a_record_of_settings_is_no_bad_sample(pair):
    pair.logs["radio/host-a.jsonl"].insert(0, '{"ts":1767323045000000000,"host":"host-a","kernel":"6.1","settings":{"net.ipv4.ip_forward":"1"}}')
    assert gap_names(analyse(pair.write()).results) == set()
