"""Apps whose traffic is a script: MGEN's flows, and messages that say whom they are for."""

from lab import PICTURE, gap_names
from test_messages import counts

from vignette_analysis import analyse

A, B, GROUP = "mgen/udp/198.18.0.1/5000", "mgen/udp/198.18.0.2/5000", "mgen/udp/239.1.1.1/5001"


def voice(*flows, topics=()):
    return {"name": "voice", "kind": "mgen", "flows": flows, "topics": list(topics)}


def test_each_flow_is_a_publisher_and_whoever_listens_expects_it(lab):
    lab.node("a", voice(1, 2, topics=[A])).node("b", voice(1, topics=[B])).node("c", voice())
    for second in range(4):
        lab.event("a/voice/1", "sent", second + 1.0, f"a/1_{second}", B)
    lab.event("a/voice/2", "sent", 1.0, "a/2_0", "mgen/udp/198.18.0.3/5000").event("b/voice/1", "sent", 1.0, "b/1_0", A)
    for second in range(3):
        lab.event("b/voice", "received", second + 1.25, f"a/1_{second}", B)
    lab.event("b/voice", "received", 1.75, "a/1_0", B).event("a/voice", "received", 1.5, "b/1_0", A)
    results = analyse(lab.write()).results
    assert results["messages"] == counts(6, 5, 4, duplicates=1)
    assert {p["name"]: p["messages"] for p in results["publishers"]} == {
        "a/voice/1": counts(4, 4, 3, duplicates=1),
        "a/voice/2": counts(1, 0, 0),
        "b/voice/1": counts(1, 1, 1),
    }
    assert not [name for name in gap_names(results) if "voice" in name]


def test_a_group_is_expected_by_all_that_joined_but_by_no_process_of_its_own(lab):
    lab.node("a", voice(1, topics=[GROUP])).node("b", voice(topics=[GROUP])).node("c", voice(topics=[GROUP]))
    lab.event("a/voice/1", "sent", 1.0, "a/1_0", GROUP).event("b/voice", "received", 1.5, "a/1_0", GROUP)
    assert analyse(lab.write()).results["messages"] == counts(1, 2, 1)


def test_what_a_process_hears_of_its_own_flows_is_no_gap(lab):
    lab.node("a", voice(1, topics=[GROUP])).node("b", voice(topics=[GROUP]))
    lab.event("a/voice/1", "sent", 1.0, "a/1_0", GROUP).event("a/voice", "received", 1.1, "a/1_0", GROUP)
    assert not [name for name in gap_names(analyse(lab.write()).results) if "voice" in name]


def test_a_subscriber_to_everything_by_mqtt_is_not_expected_to_receive_flows(lab):
    lab.node("a", voice(1)).node("b", PICTURE | {"topics": ["#"]}, voice(topics=[B]))
    lab.event("a/voice/1", "sent", 1.0, "a/1_0", B).event("b/voice", "received", 1.5, "a/1_0", B)
    assert analyse(lab.write()).results["messages"] == counts(1, 1, 1)


def chat(*names):
    return {"name": "chat", "script": True, "topics": [f"script/chat/to/{name}" for name in (*names, "all")]}


def test_a_message_of_a_script_is_expected_by_those_whom_it_addresses(lab):
    lab.node("a1", chat("a1", "a"), group="a").node("b1", chat("b1", "b"), group="b").node("b2", chat("b2", "b"), group="b")
    lab.event("a1/chat", "sent", 1.0, "a1/chat_1", "script/chat/to/b1").event("b1/chat", "received", 1.5, "a1/chat_1", "script/chat/to/b1")
    lab.event("a1/chat", "sent", 2.0, "a1/chat_2", "script/chat/to/b").event("b2/chat", "received", 2.5, "a1/chat_2", "script/chat/to/b")
    lab.event("b2/chat", "sent", 3.0, "b2/chat_1", "script/chat/to/all")
    assert analyse(lab.write()).results["messages"] == counts(3, 5, 2)
