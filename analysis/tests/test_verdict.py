"""The verdict on whole runs: lateness that changes nothing is no reason to throw a run away, and starving never looks like a clean loss."""

import json
import random

import pytest
from lab import BFT, PICTURE, SECOND, T0, Lab, gap

from vignette_analysis import analyse

VEHICLES, LENGTH, PERIOD = 23, 1200, 10


@pytest.fixture
def fleet(tmp_path) -> Lab:
    """Vehicles that publish to a headquarters on a TDMA network with routing: 2760 deliveries, of which some are lost."""
    lab = Lab(tmp_path / "run").node("hq", {"name": "broker", "kind": "mosquitto"}, {"name": "picture", "topics": ["#"], "to": "broker"})
    draw = random.Random(3)
    for v in range(VEHICLES):
        name = f"veh-{v + 1}"
        lab.node(name, {"name": "bft", "topic": "/{}", "to": "broker"}, group="vehicles")
        phase = draw.uniform(0, PERIOD)
        for m in range(LENGTH // PERIOD):
            at = phase + m * PERIOD
            lab.event(f"{name}/bft", "triggered", at, f"m{m}").event(f"{name}/bft", "sent", at, f"m{m}", f"/{name}/bft")
            if draw.random() > 0.02:
                lab.event("hq/picture", "received", at + 0.05 + draw.expovariate(2.0), f"m{m}", f"/{name}/bft")
    networks = [{"name": "vhf", "subnet": "198.18.0.0/24", "routing": {"protocol": "olsrv2"}}]
    spec = {"duration": "20m", "networks": networks, "apps": list(lab.apps.values()), "nodes": []}
    lab.plan = {"spec": spec, "measureEndNanoseconds": (LENGTH + 5) * SECOND}
    for node in lab.nodes:
        for second in range(-1, LENGTH + 6):
            lab.sample(node["name"], float(second), max(second, 0) * 300, network="vhf", slotsUsed=max(second, 0) * 9)
    return lab


def started(lab: Lab, late: dict[str, float] | None = None) -> Lab:
    for node, app in [("hq", "broker"), ("hq", "picture"), *((f"veh-{v + 1}", "bft") for v in range(VEHICLES))]:
        seconds = (late or {}).get(node, 0.0004)
        lab.agent(node, app, "started", seconds, instance=f"{node}/{app}", plannedTs=T0, latenessSeconds=seconds)
    return lab


def missed_slots(lab: Lab) -> Lab:
    """Six slots of 260 000, each with 240 ms to the next one."""
    for i in range(6):
        node = f"veh-{i + 1}"
        at = 100.5 + 170 * i
        lab.around(at + 0.24, slotsMissedFrom=T0 + round(at * SECOND), network="vhf", node=node, slots=1)
        lab.logs["radio/host-a.jsonl"] = [_missed(line, node, at) for line in lab.logs["radio/host-a.jsonl"]]
    return started(lab)


def _missed(line: str, node: str, at: float) -> str:
    record = json.loads(line)
    return (
        json.dumps(record | {"slotsMissed": 1}) if record.get("node") == node and "framesSent" in record and record["ts"] > T0 + at * SECOND else line
    )


def one_late_second(lab: Lab) -> Lab:
    lab.around(601.0, fromTs=T0 + 600 * SECOND, lateSeconds=0.05)
    return started(lab)


def late_starts(lab: Lab) -> Lab:
    return started(lab, {f"veh-{v + 1}": 0.2 + v / 90 for v in range(18)})


@pytest.mark.parametrize("disturb", [started, missed_slots, one_late_second, late_starts])
def test_a_little_lateness_is_within_the_tolerances(fleet, disturb):
    verdict = analyse(disturb(fleet).write()).results["verdict"]
    assert verdict["keptUp"], verdict["exceeded"]
    bounds = verdict["bounds"]
    assert bounds["deliveredPercent"]["high"] - bounds["deliveredPercent"]["low"] < 0.1
    assert bounds["delaySeconds"]["median"]["high"] - bounds["delaySeconds"]["median"]["low"] < 0.005
    assert (bounds["marked"] > 0) is (disturb in (missed_slots, one_late_second))


def test_a_starved_radio_did_not_keep_up(fleet):
    for second in range(LENGTH):
        fleet.around(second + 0.7, fromTs=T0 + second * SECOND, lateSeconds=0.1)
    verdict = analyse(started(fleet).write()).results["verdict"]
    assert not verdict["keptUp"] and len(verdict["exceeded"]) >= 2
    assert len(verdict["late"]) == 50


def test_a_stop_of_five_seconds_with_drops_bounds_what_was_lost(fleet):
    fleet.around(305.0, fromTs=T0 + 300 * SECOND, lateSeconds=5.0)
    fleet.logs["radio/host-a.jsonl"] = [
        json.dumps(record | {"drops": {"tapRing": 40}})
        if (record := json.loads(line)).get("node") == "veh-1" and record["ts"] > T0 + 304 * SECOND
        else line
        for line in fleet.logs["radio/host-a.jsonl"]
    ]
    verdict = analyse(started(fleet).write()).results["verdict"]
    assert not verdict["keptUp"] and verdict["networks"][0]["lost"] == 40
    assert any("40 frames dropped in the TAP's own ring" in moment["what"] for moment in verdict["late"])
    share = verdict["bounds"]["deliveredPercent"]
    assert share["high"] - share["low"] >= 100 * 5 / 1205


def test_tolerances_are_those_of_the_spec(fleet):
    one_late_second(fleet)
    fleet.plan["spec"]["tolerances"] = {"median": "0%", "delay": "0s", "delivered": "5%"}
    verdict = analyse(fleet.write()).results["verdict"]
    assert verdict["tolerances"] == {"medianPercent": 0.0, "p95Percent": 5.0, "leastSeconds": 0.0, "deliveredPoints": 5.0}
    assert not verdict["keptUp"] and verdict["exceeded"][0].startswith("the median of the delay may be off by")


@pytest.mark.parametrize(("late", "kept_up"), [(10, True), (11, False)])
def test_without_message_logs_the_shares_decide(pair, late, kept_up):
    pair.logs["radio/host-a.jsonl"].clear()
    for second in range(-1, 62):
        pair.sample("nor", float(second), 0, latenessCounts=[1000 * max(second, 0), *([0] * 6), late * max(second, 0)], lateReleases=late)
    verdict = analyse(pair.write()).results["verdict"]
    assert verdict["keptUp"] is kept_up and "bounds" not in verdict
    assert verdict["networks"][0] | {"lateness": None} == {
        "name": "wan",
        "frames": 60 * (1000 + late),
        "late": 60 * late,
        "worstSeconds": 0.0001,
        "lost": 0,
        "lateness": None,
    }


@pytest.mark.parametrize(("late", "kept_up"), [(6, True), (7, False)])
def test_without_message_logs_the_share_of_late_interference_decides(pair, late, kept_up):
    pair.logs["radio/host-a.jsonl"].clear()
    for second in range(-1, 62):
        pair.sample("nor", float(second), 0, latenessCounts=[100 * max(second, 0)], lateInterference=1 if second > 30 else 0)
        pair.sample("prt", float(second), 0, lateInterference=late - 1 if second > 40 else 0)
    verdict = analyse(pair.write()).results["verdict"]
    assert verdict["keptUp"] is kept_up and verdict["networks"][0]["lateInterference"] == late
    assert verdict["late"] == [
        {
            "node": "",
            "fromSeconds": 30.0,
            "toSeconds": 41.0,
            "what": f"{late} receptions whose interference was known too late on wan",
            "worstSeconds": 0.0,
        }
    ]


def silences(lab: Lab, seconds: float) -> Lab:
    """Without messages: five of six nodes whose radios had no samples for the same seconds, and of which each missed the same two slots."""
    lab.logs["radio/host-a.jsonl"].clear()
    for n in range(6):
        lab.node(f"n{n}")
        for tenth in range(-10, 610):
            if n == 5 or not 300 < tenth < 300 + 10 * seconds:
                lab.sample(f"n{n}", tenth / 10, 0, slotsUsed=100 * max(tenth, 0), slotsMissed=2 if tenth > 100 else 0)
        lab.around(10.4, slotsMissedFrom=T0 + 10 * SECOND, network="wan", node=f"n{n}", slots=2)
    return lab


@pytest.mark.parametrize(("seconds", "kept_up"), [(0.5, True), (5.5, False)])
def test_without_message_logs_what_stalls_at_once_counts_once(pair, seconds, kept_up):
    verdict = analyse(silences(pair, seconds).write()).results["verdict"]
    assert verdict["keptUp"] is kept_up
    if not kept_up:
        assert verdict["exceeded"] == ["the emulation or the start of an app was late by 5.9 s; 1 % of the run is tolerated"]


def test_steps_that_come_late_and_clocks_that_are_set_back_are_moments(pair):
    for second in range(61):
        pair.around(float(second), network="wan", steps=second + 1, **({"worstStepLatenessSeconds": 0.11} if second == 7 else {}))
    pair.agent("nor", "bft", "stopped", 9.0, instance="nor/bft").agent("nor", "bft", "started", 8.0, instance="nor/bft")
    late = analyse(pair.write()).results["verdict"]["late"]
    assert [(moment["fromSeconds"], moment["worstSeconds"]) for moment in late] == [(6.0, 0.11), (8.0, 1.0)]
    assert "came 0.110 s late" in late[0]["what"] and "stepped back" in late[1]["what"]


def test_the_first_step_may_be_late_too(pair):
    pair.around(7.0, network="wan", steps=1, worstStepLatenessSeconds=0.11)
    late = analyse(pair.write()).results["verdict"]["late"]
    assert [(moment["fromSeconds"], moment["toSeconds"], moment["worstSeconds"]) for moment in late] == [(0.0, 7.0, 0.11)]


def test_changes_that_come_late_are_moments_in_which_frames_met_the_earlier_values(pair):
    for due, done in ((-3.0, -1.0), (20.0, 20.009), (29.9, 30.4), (80.0, 81.0)):
        pair.around(done, network="wan", changeDueTs=T0 + round(due * SECOND))
    for second in range(60):
        pair.event("nor/bft", "sent", second + 0.1, f"m{second}", "/nor/bft")
        pair.event("prt/picture", "received", second + (0.4 if second == 30 else 0.2), f"m{second}", "/nor/bft")
    results = analyse(pair.write()).results
    late = results["verdict"]["late"]
    assert [(moment["fromSeconds"], moment["toSeconds"], moment["worstSeconds"]) for moment in late] == [(29.9, 30.4, 0.5)]
    assert late[0]["what"] == "changes of wan came 0.500 s late on host host-a"
    assert results["groups"][0]["bounds"]["marked"] == 1 and results["gaps"] is None


@pytest.mark.parametrize(("step", "start", "end"), [(5.0, 24.0, 30.0), (-5.0, 29.0, 35.0)])
def test_a_step_of_the_clock_that_agents_log_is_late_time_and_a_gap(pair, step, start, end):
    for node, app in (("nor", "bft"), ("prt", "picture")):
        pair.agent(node, app, "clockStep", 30.0, latenessSeconds=step)
    results = analyse(pair.write()).results
    assert [(late["fromSeconds"], late["toSeconds"], late["worstSeconds"]) for late in results["verdict"]["late"]] == [(start, end, 5.0)] * 2
    assert not results["verdict"]["keptUp"]
    assert f"stepped once, most of all by {step:.3f} s" in gap(results, "clock offset")["reason"]


def test_agents_of_one_node_log_the_same_step_of_the_clock(lab):
    lab.node("nor", BFT, PICTURE)
    for app in ("bft", "picture"):
        lab.agent("nor", app, "clockStep", 30.0, latenessSeconds=0.5)
    assert len(analyse(lab.write()).results["verdict"]["late"]) == 1


def test_steps_of_the_clock_before_and_after_the_measurement_do_not_count(pair):
    for at in (-20.0, 90.0):
        pair.agent("nor", "bft", "clockStep", at, latenessSeconds=5.0)
    pair.logs["logs/nor/bft/agent.jsonl"].sort()
    results = analyse(pair.write()).results
    assert results["verdict"]["keptUp"] and results["gaps"] is None


def test_a_clock_of_its_own_concerns_its_node_alone(pair):
    clock = {"worstOffsetSeconds": 0.0, "worstUncertaintySeconds": 0.0, "setSeconds": 0.0, "measurements": 5}
    pair.state["agents"] = [{"node": "nor", "app": "bft", "phase": "done", "clock": clock}]
    for node, app in (("nor", "bft"), ("prt", "picture")):
        pair.agent(node, app, "clockStep", 30.0, latenessSeconds=5.0)
    assert [late["node"] for late in analyse(pair.write()).results["verdict"]["late"]] == ["", "nor"]


def test_there_is_no_verdict_without_the_log_of_each_agent(pair):
    del pair.logs["logs/prt/picture/agent.jsonl"]
    results = analyse(pair.write()).results
    assert "verdict" not in results and "some agent" in gap(results, "verdict")["reason"]


def test_positions_that_come_late_are_late_times_of_deliveries(pair):
    for second in range(61):
        pair.around(float(second), network="wan", steps=second + 1, **({"worstStepLatenessSeconds": 0.15} if second == 30 else {}))
        pair.event("nor/bft", "sent", second + 0.1, f"m{second}", "/nor/bft")
        pair.event("prt/picture", "received", second + (0.4 if second == 29 else 0.2), f"m{second}", "/nor/bft")
    assert analyse(pair.write()).results["groups"][0]["bounds"]["marked"] == 1
