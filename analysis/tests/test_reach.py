"""Who is expected to hear whom: what reaches a subscriber's broker over bridges, clusters, gateways and mediators."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import BFT, PICTURE, gap, gap_names
from test_messages import counts

from vignette_analysis import analyse
from vignette_analysis.data.reach import Reach
from vignette_analysis.data.run import Run

EVERYTHING = ("#",)


def at(app, *brokers):
    """The app, as a client of these brokers."""
    return app | {"brokers": list(brokers)}


def way(origin, to, *filters, **prefixes):
    return {"from": origin, "to": to, "filters": list(filters or EVERYTHING)} | prefixes


def both(one, other, *filters):
    return [way(one, other, *filters), way(other, one, *filters)]


def heard(lab, *passages):
    """(publisher's node, subscriber's node) of all expected deliveries of a message of each publisher."""
    lab.plan["passages"] = list(passages)
    for node in lab.nodes:
        for app in node["apps"]:
            for topic, name in zip(app.get("publishTopics", []), app["instances"], strict=False):
                lab.event(name, "sent", 1.0, f"{name}_1", topic)
    analysis = analyse(lab.write())
    nodes = [i.node for i in analysis.run.instances]
    return {(nodes[p], nodes[s]) for p, s in analysis.deliveries.select("publisher", "subscriber").rows()}


@pytest.fixture
def coalition(lab):
    """E3: three nations, each with a publisher and a subscriber at its own broker."""
    for nation in ("nor", "prt", "usa"):
        lab.node(nation, at(BFT | {"topic": f"/{nation.upper()}/bft"}, f"{nation}/b"), at(PICTURE, f"{nation}/b"))
    return lab


def own(*nations):
    return {(n, n) for n in nations}


def test_brokers_that_nothing_joins_do_not_hear_each_other(coalition):
    assert heard(coalition) == own("nor", "prt", "usa")


def test_a_bridge_of_everything_goes_both_ways(coalition):
    assert heard(coalition, *both("prt/b", "nor/b")) == own("nor", "prt", "usa") | {("nor", "prt"), ("prt", "nor")}


def test_messages_go_over_several_bridges(coalition):
    joined = heard(coalition, *both("prt/b", "nor/b"), *both("usa/b", "nor/b"))
    assert joined == {(a, b) for a in ("nor", "prt", "usa") for b in ("nor", "prt", "usa")}


def test_topics_and_directions_of_every_bridge_on_the_way_decide(coalition):
    joined = heard(
        coalition,
        way("nor/b", "prt/b", "/NOR/#", "/USA/#"),  # PRT takes these in
        way("prt/b", "nor/b", "/PRT/#"),  # and gives its own
        way("usa/b", "nor/b", "/USA/#"),  # USA gives its own, and takes nothing
    )
    assert joined == own("nor", "prt", "usa") | {("nor", "prt"), ("usa", "prt"), ("prt", "nor"), ("usa", "nor")}


def test_subscriptions_decide_at_the_end_of_the_way(lab):
    lab.node("nor", at(BFT, "nor/b")).node("prt", at(PICTURE | {"topics": ["/prt/#"]}, "prt/b")).node(
        "usa", at(PICTURE | {"topics": ["/+/bft"]}, "prt/b")
    )
    assert heard(lab, *both("nor/b", "prt/b")) == {("nor", "usa")}


def test_protocols_meet_at_one_broker_and_over_a_gateway(lab):
    lab.node("amqp", at(BFT | {"protocol": "amqp"}, "hub/rabbit")).node("stomp", at(PICTURE | {"protocol": "stomp"}, "hub/rabbit"))
    lab.node("sn", at(PICTURE | {"protocol": "mqtt-sn"}, "hub/gateway")).node("xmpp", at(PICTURE | {"protocol": "xmpp"}, "hub/prosody"))
    assert heard(lab, *both("hub/gateway", "hub/rabbit")) == {("amqp", "stomp"), ("amqp", "sn")}


def test_brokers_of_a_cluster_are_one(lab):
    lab.node("nor", at(BFT | {"protocol": "amqp"}, "nor/rabbit")).node("prt", at(PICTURE | {"protocol": "mqtt"}, "prt/rabbit"))
    assert heard(lab, *both("nor/rabbit", "prt/rabbit")) == {("nor", "prt")}


def test_the_networks_of_broadcasts_are_apart(lab):
    udp = {"protocol": "mqtt-udp"}
    lab.node("nor", at(BFT | udp, "wan")).node("prt", at(PICTURE | udp, "wan")).node("usa", at(PICTURE | udp, "lan"))
    assert heard(lab) == {("nor", "prt")}


def test_with_failover_all_brokers_count(lab):
    lab.node("nor", at(BFT, "hq/b", "spare/b")).node("prt", at(PICTURE, "spare/b")).node("usa", at(PICTURE, "other/b"))
    assert heard(lab) == {("nor", "prt")}


@pytest.mark.parametrize(("publisher", "subscriber"), [((), ()), ((), ("nor/b",)), (("nor/b",), ())])
def test_where_a_broker_is_not_known_protocols_decide(lab, publisher, subscriber):
    lab.node("nor", at(BFT, *publisher)).node("prt", at(PICTURE, *subscriber)).node(
        "usa", at(PICTURE | {"name": "chat", "protocol": "xmpp"}, *subscriber)
    )
    assert heard(lab) == {("nor", "prt")}


def mediated(lab):
    """A mediator between MQTT, where everything it carries is under e7/, and XMPP."""
    lab.node("nor", at(BFT | {"topic": "e7/nor/bft"}, "hub/mqtt")).node("prt", at(PICTURE | {"protocol": "xmpp"}, "hub/xmpp"))
    lab.node("swe", at(BFT | {"protocol": "xmpp", "topic": "swe/bft"}, "hub/xmpp")).node("usa", at(PICTURE | {"topics": ["e7/#"]}, "hub/mqtt"))
    return [way("hub/mqtt", "hub/xmpp", stripPrefix="e7/"), way("hub/xmpp", "hub/mqtt", addPrefix="e7/")]


def test_a_mediator_joins_protocols_and_changes_topics(lab):
    passages = mediated(lab)
    lab.node("out", at(BFT | {"topic": "elsewhere"}, "hub/mqtt"))
    assert heard(lab, *passages) == {("nor", "prt"), ("swe", "prt"), ("nor", "usa"), ("swe", "usa")}


def test_what_is_received_under_another_topic_is_the_message_that_was_sent(lab):
    lab.plan["passages"] = mediated(lab)
    lab.event("nor/bft", "sent", 1.0, "nor_1", "e7/nor/bft").event("swe/bft", "sent", 1.0, "swe_1", "swe/bft")
    lab.event("prt/picture", "received", 1.5, "nor_1", "nor/bft").event("prt/picture", "received", 1.5, "swe_1", "swe/bft")
    lab.event("usa/picture", "received", 1.5, "swe_1", "e7/swe/bft").event("usa/picture", "received", 1.6, "swe_1", "e7/swe/bft")
    results = analyse(lab.write()).results
    assert results["messages"] == counts(2, 4, 3, duplicates=1)
    assert not [name for name in gap_names(results) if "picture" in name]


def test_a_topic_that_nobody_gives_a_message_does_not_count(lab):
    lab.plan["passages"] = mediated(lab)
    lab.event("nor/bft", "sent", 1.0, "nor_1", "e7/nor/bft").event("prt/picture", "received", 1.5, "nor_1", "wrong/nor/bft")
    results = analyse(lab.write()).results
    assert results["messages"] == counts(1, 2, 0)
    assert "match no sent message" in gap(results, "received events of prt/picture")["reason"]


NAMES = st.sampled_from(["a/b", "b/b", "c/b", "d/b"])
LEVELS = st.lists(st.sampled_from(["x", "y", ""]), min_size=1, max_size=3).map("/".join)
FILTERS = st.lists(st.sampled_from(["#", "x/#", "+/y", "x"]), min_size=1, max_size=2)
PREFIXES = st.sampled_from(["", "x/", "y/"])


PASSAGES = st.builds(lambda a, b, f, s, p: way(a, b, *f, stripPrefix=s, addPrefix=p), NAMES, NAMES, FILTERS, PREFIXES, PREFIXES)


@given(st.lists(PASSAGES, max_size=8), NAMES, LEVELS)
def test_a_walk_ends_begins_at_the_broker_itself_and_every_step_is_a_passage(passages, start, topic):
    run = Run(directory=None, plan={"passages": passages})
    reached = Reach(run).of((start,), topic)
    assert topic in reached[start]
    for broker, names in reached.items():
        assert len(names) == len(set(names)) <= 16
        for name in names:
            steps = [p for p in passages if p["to"] == broker and name.startswith(p["addPrefix"])]
            assert (broker, name) == (start, topic) or any(
                p["stripPrefix"] + name[len(p["addPrefix"]) :] in reached.get(p["from"], ()) for p in steps
            )


def test_instances_may_each_take_a_topic_of_their_own(lab):
    """E8: publishers and subscribers in pairs."""
    lab.node("client", BFT | {"topic": "e8/x", "instances": 2}, PICTURE | {"topics": ["e8/{instance}"], "instances": 3})
    publishers, subscribers = lab.nodes[0]["apps"]
    publishers["publishTopics"] = ["e8/1", "e8/2"]
    for topic, name in zip(publishers["publishTopics"], publishers["instances"], strict=True):
        lab.event(name, "sent", 1.0, f"{name}_1", topic)
    analysis = analyse(lab.write())
    names = [i.name for i in analysis.run.instances]
    pairs = {(names[p], names[s]) for p, s in analysis.deliveries.select("publisher", "subscriber").rows()}
    assert pairs == set(zip(publishers["instances"], subscribers["instances"][:2], strict=True))
