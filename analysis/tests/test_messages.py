import json

import polars as pl
import pytest
from lab import BFT, PICTURE, T0, UNIT, Lab, gap, gap_names, torn

from vignette_analysis import analyse
from vignette_analysis.figures import named


def counts(sent, expected, received, duplicates=0, never_sent=0, unsent=0):
    lost, offered = expected - received, expected + unsent
    return {
        "triggered": sent + never_sent,
        "sent": sent,
        "offered": offered,
        **({"deliveredPercent": 100 * received / offered} if offered else {}),
        "expected": expected,
        "received": received,
        "lost": lost,
        "lostPercent": 100 * lost / expected if expected else 0.0,
        "duplicates": duplicates,
        "neverSent": never_sent,
    }


def group(results, name):
    return next(g for g in results["groups"] if g["name"] == name)


def test_one_message_that_arrives(pair):
    pair.event("nor/bft", "triggered", 0.9, "a", "/nor/bft").event("nor/bft", "sent", 1.0, "a", "/nor/bft", bytes=240)
    pair.event("prt/picture", "received", 1.25, "a", "/nor/bft")
    results = analyse(pair.write()).results
    assert results["messages"] == counts(1, 1, 1)
    assert results["delaySeconds"] == dict.fromkeys(["min", "p25", "median", "mean", "p75", "p95", "max"], 0.25)
    assert group(results, "cross")["messages"] == counts(1, 1, 1)
    assert group(results, "local")["messages"] == counts(0, 0, 0)
    assert [p["name"] for p in results["publishers"]] == ["nor/bft"]
    assert gap_names(results) == set()
    assert results["verdict"]["keptUp"] and results["verdict"]["late"] is None


def test_no_message_at_all(pair):
    results = analyse(pair.write()).results
    assert results["messages"] == counts(0, 0, 0)
    assert results["delaySeconds"] is None
    nothing = {"level": 0.95, "medianSeconds": None, "meanSeconds": None, "lostPercent": None}
    assert results["publishers"] == [{"name": "nor/bft", "node": "nor", "messages": counts(0, 0, 0), "delaySeconds": None, "confidence": nothing}]
    assert gap_names(results) == set()


def test_quantiles_interpolate_linearly(pair):
    for i, delay in enumerate([0.1, 0.2, 0.4, 0.8]):
        pair.event("nor/bft", "sent", float(i), f"m{i}", "/nor/bft").event("prt/picture", "received", i + delay, f"m{i}", "/nor/bft")
    delay = analyse(pair.write()).results["delaySeconds"]
    assert delay == pytest.approx({"min": 0.1, "p25": 0.175, "median": 0.3, "mean": 0.375, "p75": 0.5, "p95": 0.74, "max": 0.8}, abs=1e-12)


def test_duplicates_and_the_first_arrival_count(pair):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft")
    for at in (1.5, 1.2, 1.9):
        pair.event("prt/picture", "received", at, "a", "/nor/bft")
    results = analyse(pair.write()).results
    assert results["messages"] == counts(1, 1, 1, duplicates=2)
    assert results["delaySeconds"]["max"] == 0.2


def test_units_that_publish_and_subscribe_expect_all_but_their_own(lab):
    lab.node("nor", UNIT | {"instances": 2}).node("prt", UNIT | {"instances": 2})
    names = ["nor/unit/1", "nor/unit/2", "prt/unit/1", "prt/unit/2"]
    for sender in names:
        lab.event(sender, "sent", 1.0, f"{sender}_1", f"/{sender}")
        for receiver in names:
            lab.event(receiver, "received", 1.5, f"{sender}_1", f"/{sender}")
    results = analyse(lab.write()).results
    assert results["messages"] == counts(4, 12, 12)
    assert group(results, "local")["messages"] == counts(4, 4, 4)
    assert group(results, "cross")["messages"] == counts(4, 8, 8)
    assert group(results, "prt")["messages"] == counts(2, 6, 6)


def test_two_nodes_of_one_group_hear_each_other_by_radio(lab):
    lab.node("veh-1", UNIT, group="veh").node("veh-2", UNIT, group="veh")
    lab.event("veh-1/unit", "sent", 1.0, "a", "/veh-1/unit").event("veh-2/unit", "received", 1.1, "a", "/veh-1/unit")
    results = analyse(lab.write()).results
    assert results["headline"] == "radio"
    assert group(results, "radio")["messages"] == counts(1, 1, 1)
    assert group(results, "radio")["delaySeconds"]["median"] == pytest.approx(0.1)
    assert group(results, "cross")["messages"] == counts(0, 0, 0)


def test_where_every_delivery_stays_within_a_node_the_headline_is_of_all(lab):
    lab.node("nor", BFT, PICTURE).node("prt", BFT | {"topic": "/none"})
    lab.nodes[0]["apps"][1]["subscriptions"] = ["/nor/bft"]
    lab.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("nor/picture", "received", 1.1, "a", "/nor/bft")
    results = analyse(lab.write()).results
    assert results["headline"] == "all"
    assert group(results, "radio")["messages"] == counts(0, 0, 0)


def test_messages_that_were_never_sent_were_offered_and_not_delivered(lab):
    """A radio over which no client ever connects has delivered nothing of what was asked of it."""
    lab.node("nor", BFT, PICTURE).node("prt", PICTURE)
    for m in range(31):
        lab.event("nor/bft", "triggered", float(m), f"m{m}", "/nor/bft")
    lab.event("nor/bft", "sent", 7.0, "m7", "/nor/bft").event("nor/picture", "received", 7.1, "m7", "/nor/bft")
    results = analyse(lab.write()).results
    assert results["headline"] == "radio"
    assert results["messages"] == counts(1, 2, 1, never_sent=30, unsent=60)
    assert group(results, "radio")["messages"] == counts(1, 1, 0, never_sent=30, unsent=30)
    assert group(results, "radio")["messages"]["deliveredPercent"] == 0
    assert group(results, "radio")["confidence"]["deliveredPercent"]["low"] == 0
    assert group(results, "nor")["messages"] == results["publishers"][0]["messages"] == results["messages"]


def test_cross_is_between_groups_and_local_within_a_node(lab):
    lab.node("nor-1", BFT, group="nor").node("nor-2", PICTURE, group="nor").node("prt", PICTURE)
    lab.event("nor-1/bft", "sent", 1.0, "a", "/nor-1/bft").event("nor-2/picture", "received", 1.1, "a", "/nor-1/bft")
    results = analyse(lab.write()).results
    assert group(results, "local")["messages"] == counts(0, 0, 0)
    assert group(results, "cross")["messages"] == counts(1, 1, 0)
    assert group(results, "nor")["messages"] == counts(1, 2, 1)


def test_what_goes_by_a_broker_on_another_node_is_not_local(lab):
    hub = {"name": "hub", "kind": "mosquitto"}
    for to, local in (("hub", {"nor"}), ("nor/hub", {"nor"}), ("prt/hub", {"prt"})):
        run = Lab(lab.directory.parent / to.replace("/", "-"))
        two = "/" in to  # without a node's name there is but one broker, or one on the client's own node
        run.node("nor", hub, UNIT | {"instances": 2, "to": to}).node("prt", *([hub] if two else []), UNIT | {"instances": 2, "to": to})
        for node in ("nor", "prt"):
            run.event(f"{node}/unit/1", "sent", 1.0, f"{node}_1", f"/{node}/unit/1")
        analysis = analyse(run.write())
        assert {analysis.run.instances[n].node for n in analysis.deliveries.filter("local")["publisher"]} == local, to


def test_subscriptions_and_protocols_decide_what_is_expected(lab):
    lab.node("nor", BFT, {"name": "udp", "topic": "/u", "protocol": "mqtt-udp"})
    lab.node(
        "prt",
        {"name": "some", "topics": ["/nor/+", "x"]},
        {"name": "none", "topics": ["/prt/#"]},
        {"name": "all-udp", "topics": ["#"], "protocol": "mqtt-udp"},
    )
    lab.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("nor/udp", "sent", 1.0, "b", "/u")
    deliveries = analyse(lab.write()).deliveries
    assert deliveries.select("publisher", "subscriber").rows() == [(0, 2), (1, 4)]


def test_a_record_without_topic_takes_the_planned_one_and_matches_by_id(pair):
    pair.event("nor/bft", "sent", 1.0, "a").event("prt/picture", "received", 1.5, "a")
    pair.event("nor/bft", "sent", 2.0, "b").event("prt/picture", "received", 2.5, "b", "/nor/bft")
    results = analyse(pair.write()).results
    assert results["messages"] == counts(2, 2, 2)
    assert gap_names(results) == set()


def test_ids_reused_on_other_topics_are_other_messages(lab):
    lab.node("nor", BFT).node("prt", BFT).node("hq", PICTURE)
    for sender, delay in (("nor", 0.1), ("prt", 0.3)):
        lab.event(f"{sender}/bft", "sent", 1.0, "1", f"/{sender}/bft").event("hq/picture", "received", 1.0 + delay, "1", f"/{sender}/bft")
    results = analyse(lab.write()).results
    assert results["messages"] == counts(2, 2, 2)
    assert [p["delaySeconds"]["median"] for p in results["publishers"]] == pytest.approx([0.1, 0.3])
    assert "ambiguous messages" not in gap_names(results)


def test_keys_that_two_instances_sent_are_named_and_in_no_other_figure(lab):
    same = BFT | {"topic": "/same"}
    lab.node("nor", same).node("prt", same).node("hq", PICTURE)
    for sender in ("nor", "prt"):
        lab.event(f"{sender}/bft", "sent", 1.0, "1", "/same").event("hq/picture", "received", 1.5, "1", "/same")
    lab.event("nor/bft", "sent", 2.0, "2", "/same").event("hq/picture", "received", 2.5, "2", "/same")
    results = analyse(lab.write()).results
    assert results["messages"] == counts(3, 1, 1)
    assert "2 messages count as sent" in gap(results, "ambiguous messages")["reason"]
    assert gap_names(results) >= {"ambiguous messages"} and not any("received events" in name for name in gap_names(results))


def test_what_was_triggered_but_never_sent_is_a_gap(pair):
    pair.event("nor/bft", "triggered", 1.0, "a", "/nor/bft").event("nor/bft", "triggered", 3.0, "b", "/nor/bft")
    results = analyse(pair.write()).results
    nothing = counts(0, 0, 0, never_sent=2, unsent=2)
    assert results["messages"] == group(results, "cross")["messages"] == results["publishers"][0]["messages"] == nothing
    assert group(results, "local")["messages"] == counts(0, 0, 0)
    found = gap(results, "messages of nor/bft")
    assert (found["node"], found["fromSeconds"], found["toSeconds"]) == ("nor", 1.0, 3.0) and "2 messages" in found["reason"]


def test_ids_that_an_instance_repeats_count_once_and_are_named(pair):
    pair.event("nor/bft", "sent", 2.0, "a", "/nor/bft").event("nor/bft", "sent", 1.0, "a", "/nor/bft")
    pair.event("prt/picture", "received", 2.5, "a", "/nor/bft")
    results = analyse(pair.write()).results
    assert results["messages"] == counts(1, 1, 1) and results["delaySeconds"]["min"] == 1.5
    assert "1 sent events repeat" in gap(results, "messages of nor/bft")["reason"]


def test_an_instance_that_counts_each_topic_by_itself_is_told_what_ids_it_should_have(pair):
    pair.event("nor/bft", "sent", 1.0, "1", "/nor/bft").event("nor/bft", "sent", 2.0, "1", "/other")
    results = analyse(pair.write()).results
    assert results["messages"]["sent"] == 1
    assert "want one for each message, whatever the topic" in gap(results, "messages of nor/bft")["reason"]


def test_received_events_that_match_nothing_are_a_gap(pair):
    pair.event("prt/picture", "received", 1.0, "ghost", "/nor/bft").event("prt/picture", "received", 1.0, "ghost")
    results = analyse(pair.write()).results
    assert results["messages"] == counts(0, 0, 0)
    assert "2 received events" in gap(results, "received events of prt/picture")["reason"]


def test_what_is_sent_after_the_drain_does_not_count(pair):
    pair.event("nor/bft", "triggered", 59.0, "a").event("nor/bft", "sent", 59.5, "a").event("nor/bft", "sent", 60.5, "b")
    results = analyse(pair.write()).results
    assert results["messages"] == counts(1, 1, 0)
    assert [note["reason"] for note in results["notes"] if note["what"] == "messages after the drain"] == [
        "1 messages were triggered or sent after the drain had ended; they do not count"
    ]


def test_nothing_is_said_to_be_lost_of_what_is_sent_after_the_drain_and_arrives(pair):
    pair.event("nor/bft", "sent", 60.5, "a").event("prt/picture", "received", 60.6, "a", "/nor/bft").event("nor/bft", "receipt", 60.7, "a")
    assert analyse(pair.write()).results["gaps"] is None


def test_what_is_triggered_before_the_end_of_the_drain_and_sent_after_it_counts_as_never_sent(pair):
    pair.event("nor/bft", "triggered", 59.0, "a").event("nor/bft", "triggered", 59.5, "b").event("nor/bft", "sent", 60.5, "b")
    results = analyse(pair.write()).results
    assert results["messages"] == counts(0, 0, 0, never_sent=2, unsent=2)
    reason = "2 messages were triggered but never sent, or only after the drain (1); they do not count as sent"
    assert gap(results, "messages of nor/bft")["reason"] == reason
    assert not [note for note in results["notes"] if note["what"] == "messages after the drain"]


def test_messages_without_a_topic_have_no_subscribers_and_are_named(lab):
    lab.node("nor", {"name": "own", "kind": "image"}).node("prt", PICTURE)
    lab.event("nor/own", "sent", 1.0, "a").event("nor/own", "triggered", 2.0, "b").event("prt/picture", "received", 1.5, "a", "/x").event(
        "prt/picture", "received", 1.5, "a"
    )
    results = analyse(lab.write()).results
    assert results["messages"]["sent"] == 1 and results["messages"]["offered"] == 0
    reasons = [gap["reason"] for gap in results["gaps"] if gap["what"] == "messages of nor/own"]
    assert "2 messages have no topic: nobody is expected to receive them" in reasons
    assert not any("does not subscribe" in gap["reason"] for gap in results["gaps"])


def test_deliveries_to_who_does_not_subscribe_are_a_gap(lab):
    lab.node("nor", BFT).node("prt", {"name": "some", "topics": ["/prt/#"]})
    lab.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/some", "received", 1.5, "a", "/nor/bft")
    results = analyse(lab.write()).results
    assert results["messages"] == counts(1, 0, 0)
    assert "does not subscribe" in gap(results, "received events of prt/some")["reason"]


def test_nonsense_is_counted_and_a_torn_line_left_to_the_seal(pair):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 1.5, "a", "/nor/bft")
    pair.log_of("prt/picture").extend(["nonsense", '{"ts":0,"instance":"prt/picture","status":"received","id":"a"}', torn('{"ts":1767')])
    results = analyse(pair.write()).results
    assert results["messages"] == counts(1, 1, 1)
    found = gap(results, "log logs/prt/picture/messages-1.jsonl")
    assert found["reason"] == '2 lines are no records; line 2: "nonsense" is no JSON object' and found["node"] == "prt"


@pytest.mark.parametrize(("unit", "name"), [(10**9, "seconds"), (10**6, "milliseconds"), (10**3, "microseconds")])
def test_times_in_other_units_than_nanoseconds_are_no_records(pair, unit, name):
    ts = 1767323046 * 10**9 // unit
    pair.log_of("nor/bft").append(f'{{"ts":{ts},"instance":"nor/bft","status":"sent","id":"a","topic":"/nor/bft"}}')
    results = analyse(pair.write()).results
    assert results["messages"]["sent"] == 0
    reason = f"1 lines are no records; line 1: ts {ts} is in {name}, want nanoseconds since 1970, an integer"
    assert gap(results, "log logs/nor/bft/messages-1.jsonl")["reason"] == reason


GOOD = {"ts": T0, "instance": "nor/bft", "status": "sent", "id": "a"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"ts": None}, "it has no ts"),
        ({"ts": 1.767323046e18}, "ts 1.767323046e+18 is no integer"),
        ({"ts": True}, "ts true is no integer"),
        ({"ts": str(T0)}, f'ts "{T0}" is no integer'),
        ({"ts": T0 * 1000}, f"ts {T0 * 1000} is too large"),
        ({"ts": -1}, "ts -1 is before 2001"),
        ({"instance": ""}, "it has no instance"),
        ({"status": "send"}, 'status "send" is unknown, want one of triggered, sent, received, '),
        ({"id": None}, "it has no id"),
        ({"bytes": 12.5}, "bytes 12.5 is no integer"),
        ({"bytes": "12"}, 'bytes "12" is no integer'),
        ({"position": "58.1 N"}, 'position "58.1 N" is no list of numbers'),
        ({"position": [58.1, "8 E"]}, 'position [58.1, "8 E"] is no list of numbers'),
        ({}, ""),
        ({"id": 17, "topic": 5, "text": ["x"], "bytes": None, "position": [58.1, 8.2, None]}, ""),
    ],
)
def test_a_line_that_is_no_record_is_named_with_its_field_and_value(pair, change, why):
    pair.log_of("nor/bft").append(json.dumps(GOOD | change))
    results = analyse(pair.write()).results
    reasons = [found["reason"] for found in results["gaps"] or [] if found["what"] == "log logs/nor/bft/messages-1.jsonl"]
    assert len(reasons) == bool(why) and all(reason.startswith(f"1 lines are no records; line 1: {why}") for reason in reasons)


@pytest.mark.parametrize("line", ["[1]", "5", "{'ts': 5}", "[" * 100_000])
def test_a_line_that_is_no_object_is_shown(pair, line):
    pair.log_of("nor/bft").append(line)
    reason = gap(analyse(pair.write()).results, "log logs/nor/bft/messages-1.jsonl")["reason"]
    assert reason.startswith(f'1 lines are no records; line 1: "{line[:100]}') and reason.endswith("is no JSON object")


def test_a_log_may_speak_for_its_own_app_only(pair):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft")
    pair.log_of("nor/bft").append('{"ts":1767323046500000000,"instance":"prt/picture","status":"received","id":"a","topic":"/nor/bft"}')
    results = analyse(pair.write()).results
    assert results["messages"] == counts(1, 1, 0)
    assert "prt/picture" in gap(results, "log logs/nor/bft/messages-1.jsonl")["reason"]


def test_what_was_received_before_it_was_sent_is_named(pair):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 0.5, "a", "/nor/bft")
    results = analyse(pair.write()).results
    assert results["delaySeconds"]["min"] == -0.5
    assert "1 deliveries" in gap(results, "negative delays")["reason"]


def test_a_node_group_may_be_named_like_a_group_of_results(lab):
    lab.node("local", BFT).node("prt", PICTURE)
    lab.event("local/bft", "sent", 1.0, "a", "/x")
    assert [g["name"] for g in analyse(lab.write()).results["groups"]] == ["all", "radio", "local", "cross", "group/local"]


def test_the_results_say_that_a_run_was_stopped_early(pair):
    pair.plan["armed"] = [{"id": "early-stop", "atNanoseconds": 20 * 10**9}]
    found = gap(analyse(pair.write()).results, "stopped early")
    assert (found["fromSeconds"], found["reason"]) == (20.0, "spec.stop ended the run before its duration of 1m")


def test_only_the_plan_is_indispensable(tmp_path):
    from vignette_analysis.data.run import RunError

    with pytest.raises(RunError, match=r"run\.json: no such file or directory: without the plan nothing can be analysed"):
        analyse(tmp_path)
    assert Lab(tmp_path).write()
    assert analyse(tmp_path).results["messages"]["sent"] == 0


def test_seconds_of_tables_have_no_digits_below_a_nanosecond():
    table = pl.DataFrame({"nanoseconds": [56_471_026_515 + n * 2_001_234_567 for n in range(60)]})
    texts = table.select(named.seconds(pl.col("nanoseconds"))).write_csv(include_header=False).split()
    assert max(len(text.partition(".")[2]) for text in texts) == 9
