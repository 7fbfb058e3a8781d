"""What hypervisors took, and for how long whole hosts and single processors stood still, stands beside what was late."""

import json

import pytest
from lab import SECOND, T0

from vignette_analysis import analyse


def taken(run, at: float, seconds: float, host: str = "host-a"):
    run.logs.setdefault(f"radio/{host}.jsonl", []).append(json.dumps({"ts": T0 + round(at * SECOND), "stolenSeconds": seconds}))


def late_frames(pair):
    """Frames of nor were late from 4 s to 5 s."""
    pair.logs.pop("radio/host-a.jsonl", None)
    for second in range(-1, 62):
        pair.sample("nor", float(second), 0, worstLatenessSeconds=0.03 if second == 5 else 0.0001)
        pair.sample("prt", float(second), 0, host="host-b")


def test_what_was_late_says_what_the_hypervisor_took_from_its_host_meanwhile(pair):
    late_frames(pair)
    taken(pair, 3.0, 0.9)
    taken(pair, 5.0, 0.05)
    taken(pair, 5.5, 0.07)
    taken(pair, 5.0, 0.8, host="host-b")
    taken(pair, 20.0, 0.9)
    (late,) = analyse(pair.write()).results["verdict"]["late"]
    assert late["what"] == "frames released late on wan; meanwhile the hypervisor took 0.12 s of processor time from host host-a"


def test_what_the_hypervisor_took_is_not_late_by_itself(pair):
    pair.sample("nor", -1.0, 0).sample("nor", 61.0, 0).sample("prt", -1.0, 0).sample("prt", 61.0, 0)
    plain = analyse(pair.write()).results
    taken(pair, 20.0, 0.9)
    assert analyse(pair.write()).results["gaps"] == plain["gaps"]


def test_late_without_anything_taken_is_said_as_before(pair):
    late_frames(pair)
    (late,) = analyse(pair.write()).results["verdict"]["late"]
    assert late["what"] == "frames released late on wan"


def stood(run, end: float, seconds: float, host: str = "host-a"):
    run.around(end, host, stillSeconds=seconds)


STILL = "; meanwhile host host-a stood still for {} s"


@pytest.mark.parametrize(
    ("stops", "seconds"),
    [
        pytest.param([(4.5, 0.025)], 0.025, id="one within the second"),
        pytest.param([(4.2, 0.011), (4.5, 0.025), (4.8, 0.012)], 0.025, id="the longest of several"),
        pytest.param([(4.5, 0.012), (4.52, 0.011)], 0.023, id="two in a row together"),
        pytest.param([(4.5, 0.012), (4.52, 0.011), (4.54, 0.012)], 0.023, id="no more than began within the lateness"),
        pytest.param([(3.975, 0.02)], 0.02, id="before the second, by less than the lateness"),
        pytest.param([(5.032, 0.027)], 0.027, id="begun just after the sample's time, while its counters were read"),
        pytest.param([(3.969, 0.02)], None, id="too early"),
        pytest.param([(5.05, 0.02)], None, id="too late"),
    ],
)
def test_late_frames_say_how_long_their_host_stood_still_meanwhile(pair, stops, seconds):
    late_frames(pair)
    for end, length in stops:
        stood(pair, end, length)
    stood(pair, 4.5, 0.9, host="host-b")
    results = analyse(pair.write()).results
    (late,) = results["verdict"]["late"]
    assert late.get("stoodStillSeconds") == seconds
    assert late["what"] == "frames released late on wan" + (STILL.format(f"{seconds:.3f}") if seconds else "")
    assert (late["worstSeconds"], results["verdict"]["keptUp"]) == (0.03, False), "late is late, whatever the reason"
    assert not [g for g in results["gaps"] if g["what"].startswith("log ")], "lines of stops are taken for damage"


@pytest.mark.parametrize("event", ["started", "stopped"])
def test_an_app_that_was_late_says_how_long_its_host_stood_still_meanwhile(pair, event):
    pair.agent("nor", "bft", event, 4.0186, instance="nor/bft", plannedTs=T0 + 4 * SECOND, latenessSeconds=0.0186)
    stood(pair, 4.018, 0.015)
    stood(pair, 9.0, 0.5)
    (late,) = analyse(pair.write()).results["verdict"]["late"]
    assert (late["what"], late["stoodStillSeconds"]) == (f"{event} nor/bft" + STILL.format("0.015"), 0.015)


def test_a_node_without_a_radio_is_on_the_host_that_the_run_record_says(pair):
    pair.plan["environment"] = {"host/prt": "host-a", "kernel/host-a": "6.1"}
    pair.agent("prt", "picture", "started", 4.0186, instance="prt/picture", plannedTs=T0 + 4 * SECOND, latenessSeconds=0.0186)
    stood(pair, 4.018, 0.015)
    (late,) = analyse(pair.write()).results["verdict"]["late"]
    assert (late["node"], late["stoodStillSeconds"]) == ("prt", 0.015)


def test_what_is_late_on_no_node_names_every_host_that_stood_still(pair):
    pair.logs["radio/host-a.jsonl"] = [
        line for line in pair.logs["radio/host-a.jsonl"] if not T0 + 20 * SECOND < json.loads(line)["ts"] < T0 + 27 * SECOND
    ]
    stood(pair, 21.0, 0.5)
    stood(pair, 22.0, 0.7, host="host-b")
    (silent,) = analyse(pair.write()).results["verdict"]["late"]
    assert silent["node"] == "", silent
    assert silent["what"].endswith(STILL.format("0.500") + "; meanwhile host host-b stood still for 0.700 s")
    assert silent["stoodStillSeconds"] == 0.7


def test_a_host_that_stood_still_is_told_beside_what_the_hypervisor_took(pair):
    late_frames(pair)
    taken(pair, 5.0, 0.05)
    stood(pair, 4.5, 0.025)
    (late,) = analyse(pair.write()).results["verdict"]["late"]
    assert late["what"].endswith(STILL.format("0.025") + "; meanwhile the hypervisor took 0.05 s of processor time from host host-a")


@pytest.mark.parametrize(
    ("host_seconds", "stops", "told"),
    [
        pytest.param(None, [(1, 4.5, 0.012)], (1, 0.012), id="one processor alone"),
        pytest.param(None, [(0, 4.5, 0.012), (1, 4.7, 0.014), (0, 4.8, 0.011)], (1, 0.014), id="the one that stood still the longest"),
        pytest.param(None, [(0, 4.5, 0.012), (1, 4.51, 0.013), (0, 4.52, 0.011)], (0, 0.023), id="stops of one in a row together"),
        pytest.param(0.012, [(0, 4.5, 0.012), (1, 4.502, 0.016)], (1, 0.016), id="longer than the whole host"),
        pytest.param(0.012, [(0, 4.5, 0.012), (1, 4.5, 0.012)], None, id="only as the whole host did"),
        pytest.param(None, [(1, 6.0, 0.012)], None, id="at another time"),
    ],
)
def test_late_frames_say_how_long_a_processor_of_their_host_stood_still_meanwhile(pair, host_seconds, stops, told):
    late_frames(pair)
    if host_seconds:
        stood(pair, 4.5, host_seconds)
    for processor, end, seconds in stops:
        pair.around(end, processor=processor, processorStillSeconds=seconds)
    pair.around(4.5, "host-b", processor=0, processorStillSeconds=0.9)
    results = analyse(pair.write()).results
    (late,) = results["verdict"]["late"]
    assert (late.get("stoodStillSeconds"), late.get("processorStoodStillSeconds")) == (host_seconds, told[1] if told else None)
    assert late["what"] == (
        "frames released late on wan"
        + (STILL.format(f"{host_seconds:.3f}") if host_seconds else "")
        + (f"; meanwhile processor {told[0]} of host host-a stood still for {told[1]:.3f} s" if told else "")
    )
    assert not results["verdict"]["keptUp"], "late is late, whatever the reason"
    assert not [g for g in results["gaps"] if g["what"].startswith("log ")], "lines of stops are taken for damage"


def test_a_host_that_stood_still_is_not_late_by_itself(pair):
    plain = analyse(pair.write()).results
    stood(pair, 20.0, 0.09)
    pair.around(20.0, processor=0, processorStillSeconds=0.09)
    assert analyse(pair.write()).results == plain
