"""Who is expected to receive what: the plan's table of streams, which decides alone."""

import json

import polars as pl
import pytest
from lab import BFT, PICTURE, UNIT, gap, gap_names
from test_messages import counts

from vignette_analysis import analyse
from vignette_analysis.data.expected import Table, streams
from vignette_analysis.data.run import RunError


def pairs(analysis):
    """Names of publisher and subscriber of all expected deliveries."""
    names = [i.name for i in analysis.run.instances]
    return {(names[p], names[s]) for p, s in analysis.deliveries.select("publisher", "subscriber").rows()}


@pytest.fixture
def mediated(lab):
    """A mediator between MQTT, where everything it carries is under e7/, and XMPP."""
    mqtt, xmpp = {"brokers": ["hub/mqtt"]}, {"brokers": ["hub/xmpp"], "protocol": "xmpp"}
    lab.node("nor", BFT | {"topic": "e7/nor/bft"} | mqtt).node("prt", PICTURE | xmpp)
    lab.node("swe", BFT | {"topic": "swe/bft"} | xmpp).node("usa", PICTURE | {"topics": ["e7/#"]} | mqtt)
    lab.renamed = [("nor/bft", "prt/picture", "nor/bft"), ("swe/bft", "usa/picture", "e7/swe/bft")]
    return lab


def test_what_is_received_under_another_topic_is_the_message_that_was_sent(mediated):
    mediated.event("nor/bft", "sent", 1.0, "nor_1", "e7/nor/bft").event("swe/bft", "sent", 1.0, "swe_1", "swe/bft")
    mediated.event("prt/picture", "received", 1.5, "nor_1", "nor/bft").event("prt/picture", "received", 1.5, "swe_1", "swe/bft")
    mediated.event("usa/picture", "received", 1.5, "swe_1", "e7/swe/bft").event("usa/picture", "received", 1.6, "swe_1", "e7/swe/bft")
    results = analyse(mediated.write()).results
    assert results["messages"] == counts(2, 4, 3, duplicates=1)
    assert not [name for name in gap_names(results) if "picture" in name]


def test_what_a_broker_on_another_node_may_carry_is_not_local(lab):
    for node, brokers in (("nor", ["nor/broker"]), ("prt", ["prt/broker", "nor/broker"])):
        client = {"brokers": brokers, "to": "broker"}
        lab.node(node, {"name": "broker", "kind": "mosquitto"}, BFT | client, PICTURE | client)
    found = analyse(lab.write()).run
    local = streams(found, Table(found), pl.DataFrame(Table(found).planned(), schema=["publisher", "topic"], orient="row")).pairs
    assert dict(local.filter("local").select("publisher", "subscriber").rows()) == {1: 2}


def test_a_topic_that_nobody_gives_a_message_does_not_count(mediated):
    mediated.event("nor/bft", "sent", 1.0, "nor_1", "e7/nor/bft").event("prt/picture", "received", 1.5, "nor_1", "wrong/nor/bft")
    results = analyse(mediated.write()).results
    assert results["messages"] == counts(1, 2, 0)
    assert "match no sent message" in gap(results, "received events of prt/picture")["reason"]


def test_instances_may_each_take_a_topic_of_their_own(lab):
    """E8: publishers and subscribers in pairs."""
    lab.node("client", BFT | {"topic": "e8/x", "instances": 2}, PICTURE | {"topics": ["e8/{instance}"], "instances": 3})
    publishers, subscribers = lab.nodes[0]["apps"]
    publishers["publishTopics"] = ["e8/1", "e8/2"]
    for topic, name in zip(publishers["publishTopics"], publishers["instances"], strict=True):
        lab.event(name, "sent", 1.0, f"{name}_1", topic)
    assert pairs(analyse(lab.write())) == set(zip(publishers["instances"], subscribers["instances"][:2], strict=True))


def test_topics_of_own_programs_are_held_against_the_filters_of_subscribers(lab):
    lab.node("hq", {"name": "own", "kind": "image"}).node("veh", PICTURE | {"topics": ["a/+"]}).node("uav", PICTURE | {"topics": ["#"]})
    lab.event("hq/own", "sent", 1.0, "m1", "a/b").event("hq/own", "sent", 1.0, "m2", "b")
    assert pairs(analyse(lab.write())) == {("hq/own", "veh/picture"), ("hq/own", "uav/picture")}


def test_nobody_hears_himself_in_an_audience_that_he_is_part_of(lab):
    lab.node("nor", UNIT).node("prt", UNIT)
    everybody = {"topic": "t", "publishers": ["nor/unit", "prt/unit"], "heard": [{"audience": 0}]}
    lab.plan["streams"] = {"rows": [everybody], "audiences": [["nor/unit", "prt/unit"]]}
    lab.event("nor/unit", "sent", 1.0, "m1", "t").event("prt/unit", "sent", 1.0, "m2", "t")
    assert pairs(analyse(lab.write())) == {("nor/unit", "prt/unit"), ("prt/unit", "nor/unit")}


def test_what_the_table_does_not_have_nobody_is_to_receive(lab):
    lab.node("nor", BFT).node("prt", PICTURE).event("nor/bft", "sent", 1.0, "m1", "unplanned")
    assert analyse(lab.write()).results["messages"] == counts(1, 0, 0)


def test_a_record_without_the_table_is_refused(lab):
    directory = lab.node("nor", BFT).write()
    plan = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps({key: value for key, value in plan.items() if key != "streams"} | {"schemaVersion": 1}))
    with pytest.raises(RunError, match=r"run\.json has no streams, .* take its results as they are"):
        analyse(directory)
