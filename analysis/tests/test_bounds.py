"""Bounds of figures: by hand where that is possible, and held against queues that are simulated with and without a stall."""

import json
import time
from collections import deque

import numpy as np
import polars as pl
import pytest
from lab import BFT, PICTURE, SECOND, T0, Lab

from vignette_analysis import analyse
from vignette_analysis.data.expected import Table, streams
from vignette_analysis.data.messages import Matching
from vignette_analysis.data.run import Run
from vignette_analysis.figures.bounds import Marking
from vignette_analysis.figures.deliveries import quantiles
from vignette_analysis.figures.intervals import after_effect, held_up, union
from vignette_analysis.figures.lateness import Action, Interval, Lateness, Loss
from vignette_analysis.figures.verdict import off_by

MS = SECOND // 1000
MINUTE = 60.0


class Deliveries:
    """A run of one publisher and one subscriber, by when messages were sent and received (NaN: lost), in seconds."""

    def __init__(self, directory, sent, received, seconds: float = MINUTE, protocol: str = "mqtt"):
        lab = Lab(directory / "run").node("nor", BFT | {"protocol": protocol}).node("prt", PICTURE)
        lab.plan = {"measureEndNanoseconds": round(seconds * SECOND), "spec": {"networks": [{"name": "wan", "link": {}}]}}
        self.run = Run.load(lab.write())
        order = np.argsort(sent, kind="stable")
        sent, received = np.asarray(sent, float)[order], np.asarray(received, float)[order]
        ts = [None if np.isnan(r) else T0 + round(r * SECOND) for r in received]
        height = len(sent)
        numbers = {"message": range(height), "publisher": [0] * height, "subscriber": [1] * height}
        deliveries = pl.DataFrame(numbers, schema=dict.fromkeys(numbers, pl.UInt32)).with_columns(
            sent=pl.Series([T0 + round(s * SECOND) for s in sent], dtype=pl.Int64),
            received=pl.Series(ts, dtype=pl.Int64),
            radio=True,
            local=False,
            cross=True,
        )
        keys = pl.DataFrame(schema={"publisher": pl.UInt32, "topic": pl.Categorical})
        self.matching = Matching(deliveries.select("publisher", "sent"), deliveries, keys, streams(self.run, Table(self.run), keys))
        self.delays = deliveries.drop_nulls().select(pl.col("received") - pl.col("sent")).to_series().sort().to_numpy()
        counts = {"expected": height, "received": len(self.delays), "deliveredPercent": 100 * len(self.delays) / height}
        self.group = {"name": "all", "messages": counts, "delaySeconds": quantiles(self.delays)}
        self.delivered = 100 * len(self.delays) / height

    def bounds(self, *intervals: tuple[float, float], losses=(), actions=(), **more) -> dict:
        """Bounds for late times of the radio's loop, in seconds."""
        late = [Interval(T0 + round(a * SECOND), T0 + round(b * SECOND), b - a, "late") for a, b in intervals]
        return Marking(self.run, self.matching, Lateness(late, list(losses), list(actions), **more)).bounds(self.group)


# Brokers of one, two and far are joined to the hub's alone.
STAR = [(a, b) for node in ("one", "two", "far") for a, b in ((node, "hub"), ("hub", node))]


def joined(directory, *more: tuple[str, dict], passages=STAR, **picture) -> Lab:
    """A publisher on one and a subscriber on two, at brokers of their own, which passages join: one delivery each second."""
    lab = Lab(directory / "run")
    client = {"one": [BFT | {"brokers": ["one/broker"]}], "two": [PICTURE | {"brokers": ["two/broker"]} | picture]}
    for node in ("one", "two", "hub", "far"):
        own = [app for where, app in more if where == node]
        lab.node(node, {"name": "broker", "kind": "mosquitto"}, *client.get(node, []), *own)
    lab.plan = {"passages": [{"from": f"{a}/broker", "to": f"{b}/broker", "filters": ["#"]} for a, b in passages]}
    lab.renamed = [("one/bft", "two/picture", "/picture")]
    for second in range(60):
        lab.event("one/bft", "sent", second + 0.1, f"m{second}", "/one/bft")
        lab.event("two/picture", "received", second + 0.6 if second == 30 else second + 0.2, f"m{second}", "/picture")
    for node in lab.nodes:
        for second in range(-1, 63):
            lab.sample(node["name"], float(second), 0)
        for app in node["apps"]:
            lab.agent(node["name"], app["name"], "started", 0.0, instance=app["instances"][0], latenessSeconds=0.0)
    return lab


def marked_by_a_missed_slot_of(lab: Lab, node: str) -> int:
    lab.around(30.55, slotsMissedFrom=T0 + 30 * SECOND, network="wan", node=node, slots=1)
    return analyse(lab.write()).results["groups"][0]["bounds"]["marked"]


@pytest.mark.parametrize(("node", "marked"), [("one", 1), ("two", 1), ("hub", 1), ("far", 0)])
def test_a_late_broker_on_the_way_concerns_what_it_carries_and_no_other_one(tmp_path, node, marked):
    assert marked_by_a_missed_slot_of(joined(tmp_path), node) == marked


def test_each_broker_of_a_ring_may_have_carried_a_message(tmp_path):
    ring = [("one", "hub"), ("hub", "two"), ("one", "far"), ("far", "two")]
    assert marked_by_a_missed_slot_of(joined(tmp_path, passages=ring), "far") == 1


def test_passages_lead_only_in_their_direction(tmp_path):
    assert marked_by_a_missed_slot_of(joined(tmp_path, passages=[("one", "two"), ("far", "two"), ("one", "hub")]), "hub") == 0


def test_a_broker_that_a_client_may_fail_over_to_concerns_its_deliveries(tmp_path):
    lab = joined(tmp_path, passages=[("one", "two")], brokers=["two/broker", "far/broker"])
    assert marked_by_a_missed_slot_of(lab, "far") == 1


def test_a_late_mediator_concerns_what_goes_from_broker_to_broker(tmp_path):
    lab = joined(tmp_path, ("far", {"name": "relay", "kind": "mediator"}), passages=[("one", "two")])
    assert marked_by_a_missed_slot_of(lab, "far") == 1


def test_a_broker_on_the_way_that_started_late_may_have_lost_what_was_sent_meanwhile(tmp_path):
    lab = joined(tmp_path)
    lab.logs["logs/two/picture/messages-1.jsonl"] = lab.logs["logs/two/picture/messages-1.jsonl"][2:]
    lab.logs["logs/hub/broker/agent.jsonl"].clear()
    lab.agent("hub", "broker", "started", 1.5, instance="hub/broker", plannedTs=T0, latenessSeconds=1.5)
    share = analyse(lab.write()).results["groups"][0]["bounds"]
    assert share["markedLost"] == 2 and share["deliveredPercent"]["high"] == 100


def test_a_broker_that_is_restarted_was_due_when_it_had_ended(tmp_path):
    lab = joined(tmp_path)
    del lab.logs["logs/two/picture/messages-1.jsonl"][20:24]
    lab.agent("hub", "broker", "started", 23.5, instance="hub/broker", plannedTs=T0 + 20 * SECOND, latenessSeconds=0.5)
    results = analyse(lab.write()).results
    assert [(late["fromSeconds"], late["toSeconds"]) for late in results["verdict"]["late"]] == [(23.0, 23.5)]
    assert results["groups"][0]["bounds"]["markedLost"] == 1


@pytest.mark.parametrize(("node", "doubtful"), [("two", 3), ("far", 0)])
def test_receptions_whose_interference_was_known_too_late_may_not_have_been_deliveries(tmp_path, node, doubtful):
    lab = joined(tmp_path)
    lab.logs["radio/host-a.jsonl"] = [
        json.dumps(record | {"lateInterference": 3}) if (record := json.loads(line)).get("node") == node and record["ts"] > T0 + 30 * SECOND else line
        for line in lab.logs["radio/host-a.jsonl"]
    ]
    results = analyse(lab.write()).results
    group, verdict = results["groups"][0], results["verdict"]
    share = group["bounds"]["deliveredPercent"]
    assert share["low"] == pytest.approx(100 * (60 - doubtful) / 60) and share["high"] == 100
    assert verdict["keptUp"] is (doubtful == 0) and verdict["networks"][0]["lateInterference"] == 3


def evenly(count: int, period: float, delay: float) -> tuple[np.ndarray, np.ndarray]:
    sent = (np.arange(count) + 0.5) * period
    return sent, sent + delay


def test_without_lateness_the_bounds_are_the_figures(tmp_path):
    one = Deliveries(tmp_path, *evenly(600, 0.1, 0.02))
    bounds = one.bounds()
    assert bounds["marked"] == bounds["markedLost"] == 0
    assert all(bounds["delaySeconds"][q] == {"low": v, "high": v} for q, v in one.group["delaySeconds"].items())
    assert bounds["deliveredPercent"] == {"low": 100.0, "high": 100.0}


def test_an_interval_counts_for_what_overlaps_it_and_for_what_was_sent_a_while_after_it():
    sent = np.array([0, 95, 120, 149, 209, 649, 651]) * MS
    of = sent, np.full(len(sent), 60 * MS), union([(100 * MS, 150 * MS)])
    # The first was there before the interval began; the second met 50 of its 60 ms; the last was sent over 10 * 50 ms after its end.
    assert list(held_up(*of) // MS) == [0, 50, 50, 50, 50, 0, 0]
    assert list(after_effect(*of) // MS) == [0, 0, 0, 0, 0, 50, 0]


def test_no_delivery_was_late_by_more_than_its_delay():
    late = held_up(np.array([0, 10 * MS]), np.array([0, 3 * MS]), union([(0, 5 * MS), (4 * MS, 20 * MS)]))
    assert list(late) == [0, 3 * MS]


def test_a_delivery_that_was_as_fast_as_punctual_ones_was_not_late(tmp_path):
    one = Deliveries(tmp_path, *evenly(600, 0.1, 0.02))
    assert one.bounds((30.0, 30.5))["delaySeconds"]["median"] == {"low": pytest.approx(0.02), "high": pytest.approx(0.02)}


@pytest.mark.parametrize(("protocol", "overflown", "high"), [("mqtt", False, 100.0), ("mqtt-udp", False, 90.0), ("mqtt-udp", True, 92.5)])
def test_a_protocol_without_answers_loses_only_what_is_dropped(tmp_path, protocol, overflown, high):
    sent, received = evenly(40, 1.0, 0.02)
    received[::10] = np.nan
    one = Deliveries(tmp_path, sent, received, protocol=protocol)
    overflow = Loss(T0 + 10 * SECOND, T0 + 11 * SECOND, 1, "frames dropped by the radio model")
    assert one.bounds((10.0, 11.0), (20.0, 24.0), overflows=[overflow] * overflown)["deliveredPercent"]["high"] == pytest.approx(high)


def test_one_interval_among_evenly_spaced_messages_of_one_delay(tmp_path):
    """One message each 100 ms takes 20 ms; the one sent at 10.05 s met an interval of 50 ms and took 70 ms."""
    sent, received = evenly(600, 0.1, 0.02)
    received[100] += 0.05
    bounds = Deliveries(tmp_path, sent, received).bounds((10.05, 10.1))
    assert bounds["marked"] == 1
    assert bounds["delaySeconds"]["median"] == bounds["delaySeconds"]["p95"] == {"low": 0.02, "high": 0.02}
    assert bounds["delaySeconds"]["max"] == {"low": 0.02, "high": 0.07}
    assert bounds["delaySeconds"]["mean"] == {"low": pytest.approx(0.02), "high": pytest.approx(0.02 + 0.05 / 600)}
    assert bounds["deliveredPercent"] == {"low": 100.0, "high": 100.0}


def test_losses_count_as_those_of_the_emulation_only_where_it_can_have_lost_them(tmp_path):
    sent, received = evenly(600, 0.1, 0.02)
    received[[100, 300, 500]] = np.nan  # sent at 10.05, 30.05 and 50.05 s
    one = Deliveries(tmp_path, sent, received)
    assert one.bounds((10.0, 10.19), (30.0, 30.19))["deliveredPercent"]["high"] == one.delivered, "less than any time-out"
    long = one.bounds((10.0, 10.3))
    # One marked loss, and 0.3 s of messages that a stop may have kept back.
    assert long["markedLost"] == 1
    assert long["deliveredPercent"] == {"low": one.delivered, "high": pytest.approx(min(one.delivered + 100 / 600 + 100 * 0.3 / 60, 100))}
    ring = one.bounds(losses=[Loss(T0 + 30 * SECOND, T0 + 31 * SECOND, 3, "ring")])
    assert (ring["markedLost"], ring["deliveredPercent"]["high"]) == (1, pytest.approx(one.delivered + 100 / 600))
    # With the marked loss as the slowest delivery or the fastest, the median is what it was.
    assert ring["delaySeconds"]["median"] == {"low": 0.02, "high": 0.02}


def test_late_starts_and_stops_shift_a_share_of_what_is_published(tmp_path):
    sent, received = evenly(600, 0.1, 0.02)
    received[:10] = np.nan
    one = Deliveries(tmp_path, sent, received)
    publisher = one.bounds(actions=[Action("nor/bft", "nor", "started", T0 + 3 * SECOND // 10, 0.3), Action("nor/bft", "nor", "stopped", T0, 0.009)])
    share = 100 * 0.3 / 60
    assert publisher["deliveredPercent"] == {"low": pytest.approx(one.delivered - share), "high": pytest.approx(one.delivered + share)}
    subscriber = one.bounds(actions=[Action("prt/picture", "prt", "started", T0 + 3 * SECOND // 10, 0.3)])
    assert (subscriber["markedLost"], subscriber["deliveredPercent"]["low"]) == (3, one.delivered)


def test_missed_slots_may_have_cost_their_share(tmp_path):
    one = Deliveries(tmp_path, *evenly(600, 0.1, 0.02))
    one.group["messages"]["received"] = 590
    bounds = one.bounds(networks=[{"name": "vhf", "slots": 999, "missed": 1}])
    assert bounds["deliveredPercent"]["high"] == pytest.approx(100 * 590 / 600 + 0.1)


def test_a_late_start_of_an_own_program_that_hears_and_sends_shifts_its_messages(lab):
    lab.node("nor", {"name": "own", "kind": "image", "topics": ["orders"]}).node("prt", PICTURE)
    for second in range(60):
        lab.event("nor/own", "sent", second + 0.1, f"m{second}", "/own").event("prt/picture", "received", second + 0.2, f"m{second}", "/own")
    lab.agent("nor", "own", "started", 3.0, instance="nor/own", plannedTs=T0, latenessSeconds=3.0)
    share = analyse(lab.write()).results["verdict"]["bounds"]["deliveredPercent"]
    assert share["low"] == pytest.approx(95)


def fifo(sent: np.ndarray, service: np.ndarray, stalls: list[tuple[float, float]], room: float = np.inf) -> np.ndarray:
    """When a queue with one server delivers; what would wait for longer than `room` is dropped. The server does nothing in stalls."""
    free, done = 0.0, np.full(len(sent), np.nan)
    for i, (at, takes) in enumerate(zip(sent, service, strict=True)):
        begin = max(at, free)
        if begin - at > room:
            continue
        end = begin + takes
        for start, stop in stalls:
            if start < end and begin < stop:
                end += stop - max(start, begin)
        free = done[i] = end
    return done


def taken(sent: np.ndarray, stalls: list[tuple[float, float]]) -> np.ndarray:
    """When a loop takes frames that come in its stalls: at their ends."""
    at = np.array(sent)
    for start, stop in stalls:
        at[(at >= start) & (at <= stop)] = stop
    return at


def link(at: np.ndarray, service: np.ndarray, limit: int, delay: float = 0.05) -> np.ndarray:
    """When frames that a link takes at these times arrive; NaN if as many as the limit had not arrived."""
    free, arrivals = 0.0, np.full(len(at), np.nan)
    under_way: deque[float] = deque()
    for i, (now, takes) in enumerate(zip(at, service, strict=True)):
        while under_way and under_way[0] <= now:
            under_way.popleft()
        if len(under_way) < limit:
            free = max(now, free) + takes
            arrivals[i] = free + delay
            under_way.append(arrivals[i])
    return arrivals


def dropped(arrivals: np.ndarray, at: np.ndarray) -> list[Loss]:
    """The seconds in which a full queue dropped frames."""
    seconds, frames = np.unique(np.floor(at[np.isnan(arrivals)]), return_counts=True)
    return [
        Loss(T0 + round(s * SECOND), T0 + round((s + 1) * SECOND), int(n), "frames dropped by a full queue", "wan", "nor")
        for s, n in zip(seconds, frames, strict=True)
    ]


# From a queue that is rarely full to one that always is, and sources from even to bursts.
@pytest.mark.parametrize("load", [0.5, 0.8, 1.2, 2.4])
@pytest.mark.parametrize("bursts", [1, 8])
def test_no_late_interval_cost_a_full_queue_more_than_its_bound(tmp_path, load, bursts):
    for seed in range(RUNS):
        random = np.random.default_rng(seed)
        count, takes, limit = 800, 0.06, int(random.integers(2, 30))
        seconds = count * takes / load
        sent = np.sort(np.repeat(random.uniform(0, seconds, count // bursts), bursts) + random.uniform(0, 0.001, count))
        starts = np.sort(random.uniform(0, seconds, 20))
        stalls = [(a, min(a + random.exponential(0.1), b)) for a, b in zip(starts, [*starts[1:], seconds], strict=True)]
        service = np.full(count, takes)
        plain, late = link(sent, service, limit), link(taken(sent, stalls), service, limit)
        one = Deliveries(tmp_path, sent, late, seconds, protocol="mqtt-udp")
        bounds = one.bounds(*stalls, full=dropped(late, taken(sent, stalls)))
        assert np.count_nonzero(np.isnan(late)) - np.count_nonzero(np.isnan(plain)) <= bounds["markedLost"], f"seed {seed}"


def test_late_times_cost_a_queue_that_is_always_full_nothing(tmp_path):
    """Two and a half times what a link carries for 90 s, and a stall of 50 ms in each second."""
    sent, _ = evenly(880, 0.1, 0.0)
    stalls = [(second + 0.03, second + 0.08) for second in range(5, 85)]
    received = link(taken(sent, stalls), np.full(880, 0.24), 30)
    one = Deliveries(tmp_path, sent, received, 90.0, protocol="mqtt-udp")
    bounds = one.bounds(*stalls, full=dropped(received, sent))
    assert bounds["markedLost"] == 0 and bounds["deliveredPercent"] == {"low": one.delivered, "high": one.delivered}
    median = one.group["delaySeconds"]["median"]
    assert bounds["delaySeconds"]["median"]["low"] > 0.9 * median


def test_a_burst_that_came_late_may_have_filled_a_queue(tmp_path):
    """A link takes 60 ms for a frame and holds 3. Of 10 frames that come together at the end of a second, 7 are dropped, and so is the next one."""
    sent, _ = evenly(600, 0.1, 0.0)
    late = taken(sent, [(30.0, 31.0)])
    received = link(late, np.full(600, 0.06), 3)
    one = Deliveries(tmp_path, sent, received, protocol="mqtt-udp")
    lost = int(np.count_nonzero(np.isnan(received)))
    assert lost == 8 and one.bounds((30.0, 31.0), full=dropped(received, late))["markedLost"] == 8
    assert one.bounds((40.0, 41.0), full=dropped(received, late))["markedLost"] == 0


@pytest.mark.parametrize(("network", "marked"), [({}, 1), ({"routing": {"protocol": "olsrv2"}}, 6), ({"rfpipe": {}}, 6)])
def test_only_drops_of_links_are_counted_by_frames_that_came_late(tmp_path, network, marked):
    sent, received = evenly(600, 0.1, 0.02)
    received[298:304] = np.nan
    one = Deliveries(tmp_path, sent, received, protocol="mqtt-udp")
    one.run.plan["spec"]["networks"] = [{"name": "wan"} | (network if "rfpipe" in network else {"link": {}} | network)]
    assert one.bounds((30.0, 30.1), full=[Loss(T0 + 29 * SECOND, T0 + 31 * SECOND, 6, "full", "wan", "nor")])["markedLost"] == marked


def test_frames_that_are_no_messages_may_have_come_late_too(tmp_path):
    sent, received = evenly(600, 0.1, 0.02)
    received[298:304] = np.nan
    one = Deliveries(tmp_path, sent, received, protocol="mqtt-udp")
    since = pl.Series([T0 + 29 * SECOND, T0 + 30 * SECOND])
    offered = pl.DataFrame({"node": ["nor", "nor"], "since": since, "ts": since + SECOND, "framesSent": [10, 13]})
    full = [Loss(T0 + 29 * SECOND, T0 + 31 * SECOND, 6, "full", "wan", "nor")]
    assert one.bounds((30.01, 30.1), full=full, offered=offered)["markedLost"] == 4


RUNS = 30
LENGTH, MESSAGES, ROOM = 240.0, 6000, 2.0


# The load of the queue: nearly none, half, much, and more than it can carry.
@pytest.mark.parametrize("load", [0.02, 0.5, 0.8, 1.2])
@pytest.mark.parametrize("stall", [0.05, 0.5, 5.0])
def test_bounds_cover_what_a_stall_did_to_a_queue(tmp_path, load, stall):
    covered = fitting = 0
    for seed in range(RUNS):
        random = np.random.default_rng(seed)
        sent = np.sort(random.uniform(0, LENGTH - 2, MESSAGES))
        service = np.full(MESSAGES, load * (LENGTH - 2) / MESSAGES)
        start = random.uniform(5, LENGTH - 10 - stall)
        plain = Deliveries(tmp_path, sent, fifo(sent, service, [], ROOM), LENGTH)
        stalled = Deliveries(tmp_path, sent, fifo(sent, service, [(start, start + stall)], ROOM), LENGTH)
        off = off_by(stalled.group | {"bounds": stalled.bounds((start, start + stall))})
        tolerated = {"delivered": 0.1}
        difference = {"delivered": abs(plain.delivered - stalled.delivered)}
        for name, share in (("median", 0.01), ("p95", 0.05)):
            was, is_now = (one.group["delaySeconds"][name] for one in (plain, stalled))
            tolerated[name], difference[name] = max(share * was, 0.001), abs(was - is_now)
        covered += all(difference[name] <= max(off[name], tolerated[name]) for name in off)
        fitting += all(off[name] <= 5 * max(difference[name], tolerated[name]) for name in off)
    assert covered >= 0.95 * RUNS
    assert fitting >= 0.9 * RUNS


def test_a_million_deliveries_and_a_thousand_intervals_take_seconds(tmp_path):
    random = np.random.default_rng(1)
    sent = np.sort(random.uniform(0, 1199, 1_000_000))
    one = Deliveries(tmp_path, sent, sent + random.uniform(0.4, 0.6, len(sent)), 1200.0)
    starts = np.arange(1000) * 1.2
    began = time.process_time()
    bounds = one.bounds(*zip(starts, starts + 0.01, strict=True))
    assert time.process_time() - began < 10
    assert bounds["marked"] > 300_000
