"""Apps of the user's own: the plan knows what they subscribe to, their message events tell what they publish."""

from lab import BFT, PICTURE, gap
from test_messages import counts, group

from vignette_analysis import analyse

SPEAKER = {"name": "speaker", "kind": "image"}
LISTENER = {"name": "listener", "kind": "image", "topics": ["own/#"]}


def test_deliveries_between_own_apps_are_expected_by_topic(lab):
    lab.node("nor", SPEAKER).node("prt", LISTENER).node("swe", LISTENER)
    lab.event("nor/speaker", "sent", 1.0, "1", "own/nor").event("nor/speaker", "sent", 2.0, "2", "own/nor")
    lab.event("nor/speaker", "sent", 3.0, "3", "elsewhere")
    lab.event("prt/listener", "received", 1.5, "1", "own/nor").event("swe/listener", "received", 1.5, "1", "own/nor")
    lab.event("prt/listener", "received", 2.5, "2", "own/nor")
    results = analyse(lab.write()).results
    assert results["messages"] == counts(3, 4, 3)
    assert group(results, "nor")["messages"] == counts(3, 4, 3)
    assert [p["name"] for p in results["publishers"]] == ["nor/speaker"]


def test_traffic_and_own_apps_hear_each_other_where_their_topics_meet(lab):
    lab.node("nor", BFT, SPEAKER).node("prt", PICTURE, {"name": "tap", "kind": "image", "topics": ["/nor/+"]})
    lab.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("nor/speaker", "sent", 1.0, "b", "own/nor")
    for receiver in ("picture", "tap"):
        lab.event(f"prt/{receiver}", "received", 1.5, "a", "/nor/bft")
    lab.event("prt/picture", "received", 1.7, "b", "own/nor")
    results = analyse(lab.write()).results
    assert results["messages"] == counts(2, 3, 3)


def test_apps_of_different_protocols_are_not_expected_to_hear_each_other(lab):
    lab.node("nor", BFT, SPEAKER | {"protocol": "own-udp"}).node("prt", PICTURE, LISTENER | {"topics": ["#"], "protocol": "own-udp"})
    lab.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 1.5, "a", "/nor/bft")
    lab.event("nor/speaker", "sent", 1.0, "b", "own/nor").event("prt/listener", "received", 1.7, "b", "own/nor")
    results = analyse(lab.write()).results
    assert results["messages"] == counts(2, 2, 2)


def test_an_own_app_without_subscriptions_is_expected_to_receive_nothing(lab):
    lab.node("nor", BFT).node("prt", {"name": "tap", "kind": "image"})
    lab.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/tap", "received", 1.5, "a", "/nor/bft")
    results = analyse(lab.write()).results
    assert results["messages"] == counts(1, 0, 0)
    assert "does not subscribe" in gap(results, "received events of prt/tap")["reason"]


def test_what_the_agent_says_of_message_events_is_a_gap(lab):
    lab.node("nor", SPEAKER)
    lab.agent("nor", "speaker", "stamped", 1.0, message="without ts").agent("nor", "speaker", "noMessage", 2.0, message="a line")
    results = analyse(lab.write()).results
    assert "without ts" in gap(results, "times of nor/speaker")["reason"]
    assert "a line" in gap(results, "messages of nor/speaker")["reason"]
