"""What a headline must name: clients, publishers, subscribers and apps that did nothing."""

import pytest
from lab import BFT, PICTURE, T0, UNIT, Lab

from vignette_analysis import analyse, compare, outputs, report
from vignette_analysis.data.gaps import Gaps, merged
from vignette_analysis.report import words

BROKER = {"name": "broker", "kind": "mosquitto"}
CLIENT = BFT | {"brokers": ["hq/broker"]}


def warnings(results: dict) -> dict[str, str]:
    return {warning["what"]: warning["reason"] for warning in results.get("warnings") or []}


def dead(lab: Lab) -> Lab:
    """A radio over which a client never connects: it triggers 31 messages, and those of hq to itself arrive."""
    lab.node("hq", BROKER, BFT | {"brokers": ["hq/broker"]}, PICTURE | {"brokers": ["hq/broker"]}).node("veh", CLIENT)
    for m in range(31):
        lab.event("veh/bft", "triggered", m + 0.5, f"v{m}", "/veh/bft")
    lab.event("hq/bft", "connected", 0.1, "hq:1883").event("hq/picture", "connected", 0.1, "hq:1883")
    for m in range(7):
        lab.event("hq/bft", "triggered", m + 0.1, f"h{m}", "/hq/bft").event("hq/bft", "sent", m + 0.2, f"h{m}", "/hq/bft")
        lab.event("hq/picture", "received", m + 0.3, f"h{m}", "/hq/bft")
    return lab


def alive(lab: Lab, lost: int = 0) -> Lab:
    """The same, and the client connects."""
    dead(lab).event("veh/bft", "connected", 0.2, "hq:1883")
    for m in range(31):
        lab.event("veh/bft", "sent", m + 0.6, f"v{m}", "/veh/bft")
        if m >= lost:
            lab.event("hq/picture", "received", m + 0.7, f"v{m}", "/veh/bft")
    return lab


def test_a_dead_radio_delivered_nothing_and_its_client_is_named(lab, tmp_path):
    analysis = analyse(dead(lab).write())
    results = analysis.results
    sentence = "0 of 31 offered deliveries between nodes arrived (0 %): 0 lost on the way, 31 never sent"
    assert results["headline"] == "radio"
    assert warnings(results) == {
        "client veh/bft never connected": "none of its 31 triggered messages was sent; broker: hq/broker",
        "subscriber hq/picture never heard another node": "none of the deliveries that other nodes offered it arrived",
    }
    tables = outputs.tables(results)
    assert sentence in tables and tables.index("WARNING: client veh/bft never connected") < tables.index("Deliveries by group")
    banner = words.banner(results)
    assert (banner.kind, banner.title) == ("bad", "Nothing arrived") and "client veh/bft never connected" in banner.text
    page = report.render(analysis, Gaps()).decode()
    assert "31 never sent" in page and "Nothing arrived" in page


def test_a_run_without_trouble_has_neither_gaps_nor_warnings(lab):
    results = analyse(alive(lab).write()).results
    for start in ("hq/broker", "hq/bft", "hq/picture", "veh/bft"):
        node, app = start.split("/")
        lab.agent(node, app, "started", 0.001, instance=start, latenessSeconds=0.001)
    for node in ("hq", "veh"):
        for second in range(-1, 62):
            lab.sample(node, float(second), 100 * max(second, 0))
    results = analyse(lab.write()).results
    assert results["gaps"] is None and "warnings" not in results
    assert {note["what"].split(":")[0] for note in results["notes"]} >= {"CPU pressure", "networks"}
    assert words.banner(results).title == "The emulation kept up"


def test_in_a_comparison_the_dead_radio_is_the_worst(tmp_path):
    folders = []
    for name, make in (("dead", dead), ("lossy", lambda lab: alive(lab, lost=10)), ("good", alive)):
        lab = make(Lab(tmp_path / name))
        lab.plan |= {"uid": name, "name": name}
        folders.append(lab.write())
    compared = compare(folders, by="run").results
    first = compared["groups"][0]
    assert first["name"] == "radio"
    assert [row["messages"]["deliveredPercent"] for row in first["runs"]] == [0.0, pytest.approx(100 * 21 / 31), 100.0]
    assert [run["warnings"] for run in compared["runs"]] == [2, 0, 0]
    assert first["runs"][0]["confidence"]["deliveredPercent"]["low"] == 0


def test_a_publisher_that_triggers_nothing_never_published(lab):
    lab.node("nor", BFT, {"name": "silent", "topic": "/{}"}).node("prt", PICTURE)
    lab.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 1.1, "a", "/nor/bft")
    assert warnings(analyse(lab.write()).results) == {"publisher nor/silent never published": "no message was triggered"}


def test_a_publisher_that_hears_others_and_sends_nothing_never_published(lab):
    lab.node("nor", BFT).node("prt", UNIT).node("usa", UNIT)
    lab.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("usa/unit", "triggered", 1.0, "b", "/usa/unit")
    for unit in ("prt/unit", "usa/unit"):
        lab.event(unit, "received", 1.1, "a", "/nor/bft")
    assert warnings(analyse(lab.write()).results) == {
        "publisher prt/unit never published": "no message was triggered",
        "publisher usa/unit never published": "none of its 1 triggered messages was sent",
    }


def test_a_subscriber_to_which_nothing_was_offered_is_not_deaf(lab):
    lab.node("nor", BFT).node("prt", {"name": "other", "topics": ["/none"]}, PICTURE)
    lab.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 1.1, "a", "/nor/bft")
    assert warnings(analyse(lab.write()).results) == {}


def in_seconds(lab: Lab, node: str) -> None:
    for m in range(15):
        lab.log_of(f"{node}/chat").append(f'{{"ts":{1795995350 + m},"instance":"{node}/chat","status":"sent","id":"{node}-{m}","topic":"chat"}}')


CHAT = {"name": "chat", "kind": "image", "topics": ["chat"]}


def test_an_app_that_logs_times_in_seconds_is_named_once_for_all_its_nodes(lab):
    lab.node("a", CHAT).node("b", CHAT).node("c", CHAT)
    in_seconds(lab, "a")
    in_seconds(lab, "b")
    lab.event("c/chat", "sent", 1.0, "c-1", "chat")
    reason = "none of 30 lines in 2 message logs on a, b counts; line 1: ts 1795995350 is in seconds, want nanoseconds since 1970, an integer"
    assert warnings(analyse(lab.write()).results) == {"message logs of app chat cannot be used": reason}


def test_one_usable_line_is_no_warning(lab):
    lab.node("a", CHAT).node("b", CHAT)
    in_seconds(lab, "a")
    lab.event("a/chat", "sent", 1.0, "a-x", "chat").event("b/chat", "received", 1.1, "a-x", "chat")
    assert warnings(analyse(lab.write()).results) == {}


def test_a_planned_publisher_of_which_no_line_counts_is_not_said_to_be_silent(lab):
    lab.node("nor", BFT).node("prt", PICTURE)
    lab.log_of("nor/bft").append('{"ts":1795995350,"instance":"nor/bft","status":"sent","id":"a"}')
    results = analyse(lab.write()).results
    assert list(warnings(results)) == ["message logs of app bft cannot be used"] and results["warnings"][0]["node"] == "nor"


def test_an_app_that_names_another_instance_logged_nothing_usable(lab):
    lab.node("a", CHAT).node("b", CHAT)
    lab.log_of("a/chat").append(f'{{"ts":{T0 + 1},"instance":"chat","status":"sent","id":"a-1","topic":"chat"}}')
    why = "instance chat is not of this app, want a/chat, the value of VIGNETTE_INSTANCE"
    assert warnings(analyse(lab.write()).results) == {
        "message logs of app chat cannot be used": f"none of 1 lines in 1 message logs on a counts; {why}"
    }


def test_an_app_whose_output_has_no_valid_event_logged_nothing_usable(lab):
    lab.node("a", CHAT).node("b", CHAT)
    for node in ("a", "b"):
        lab.agent(node, "chat", "noMessage", 1.0, instance=f"{node}/chat", message="ts is 5: want nanoseconds since the Unix epoch")
    lab.event("b/chat", "sent", 1.0, "b-1", "chat")
    found = warnings(analyse(lab.write()).results)
    assert found["message logs of app chat cannot be used"] == "no line of its output on a counts; ts is 5: want nanoseconds since the Unix epoch"


def chatter(lab: Lab, clear: int) -> dict[str, str]:
    """Two nodes that repeat an id on one topic, and some ids of one of them alone."""
    lab.node("a", CHAT).node("b", CHAT)
    for node in ("a", "b"):
        lab.event(f"{node}/chat", "sent", 1.0, "1", "chat")
    for m in range(clear):
        lab.event("a/chat", "sent", 2.0, f"a-{m}", "chat").event("b/chat", "received", 2.1, f"a-{m}", "chat")
    return warnings(analyse(lab.write()).results)


@pytest.mark.parametrize(("clear", "named"), [(0, True), (18, True), (19, False)])
def test_ids_that_two_instances_repeat_are_a_warning_from_a_tenth_of_the_messages_on(lab, clear, named):
    found = chatter(lab, clear)
    assert ("messages are ambiguous" in found) == named
    assert not named or found["messages are ambiguous"].startswith(f"2 of {2 + clear} sent messages have an id that another instance sent")


def test_messages_without_a_topic_are_a_warning_where_they_are_many(lab):
    lab.node("a", CHAT).node("b", CHAT).event("a/chat", "sent", 1.0, "a-1")
    found = warnings(analyse(lab.write()).results)
    assert found["messages have no topic"].startswith("1 of 1 sent messages have no topic, so that nobody is expected to receive them; want")


@pytest.mark.parametrize(
    ("lived", "stopped", "code", "named"), [(0.5, False, 0, True), (30.0, False, 0, True), (30.0, True, 0, False), (0.5, False, 1, False)]
)
def test_a_broker_that_ends_by_itself_while_clients_need_it_is_named(lab, lived, stopped, code, named):
    lab.node("hq", {"name": "broker", "kind": "image"}, PICTURE | {"brokers": ["hq/broker"]}).node("veh", CLIENT)
    lab.event("veh/bft", "connected", 0.2, "hq").event("veh/bft", "sent", 1.0, "a", "/veh/bft").event("hq/picture", "received", 1.1, "a", "/veh/bft")
    lab.agent("hq", "broker", "started", 0.0, instance="hq/broker")
    if stopped:
        lab.agent("hq", "broker", "stopped", lived - 0.1, instance="hq/broker")
    lab.agent("hq", "broker", "exited", lived, instance="hq/broker", exitCode=code)
    found = warnings(analyse(lab.write()).results)
    reason = f"it exited by itself with code 0 after {lived:.1f} s, while 2 clients name it as their broker"
    assert found == ({"app hq/broker ended": reason} if named else {})


def joining(lab: Lab, sent: int, kept: int = 0) -> dict:
    """A subscriber on c, which starts at 30.5 s, gets the first messages of before its start and all of after it; one on b gets all but one."""
    lab.node("a", BFT).node("b", PICTURE).node("c", {"name": "late", "topics": ["#"]}, PICTURE)
    at = {0: [("a", "bft"), ("b", "picture"), ("c", "picture")], 30.5: [("c", "late")], 40: [("b", "picture")]}
    lab.plan["armed"] = [
        {"id": f"{i}", "atNanoseconds": round(s * 1e9), "verb": "start", "targets": [{"node": node, "app": app} for node, app in apps]}
        for i, (s, apps) in enumerate(at.items())
    ]
    for m in range(sent):
        before = m < 4
        lab.event("a/bft", "sent", 20.0 + m if before else 31.0 + m / 10, f"{m}", "/a/bft")
        if m:
            lab.event("b/picture", "received", 45.0, f"{m}", "/a/bft")
        lab.event("c/picture", "received", 45.0, f"{m}", "/a/bft")
        if not before or m < kept:
            lab.event("c/late", "received", 45.0, f"{m}", "/a/bft")
    return analyse(lab.write()).results


JOINED = "messages sent before it started on c at T0+30.5s"


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (0, f"4 of 4 lost deliveries to it were of {JOINED}"),
        (1, f"3 of 3 lost deliveries to it were of {JOINED}; so was 1 that it received: delays count from the publication"),
        (4, f"4 deliveries to it were of {JOINED}: delays count from the publication"),
    ],
)
def test_a_subscriber_that_joined_late_says_what_it_missed_and_what_was_kept_for_it(lab, kept, said):
    results = joining(lab, sent=40, kept=kept)
    assert warnings(results) == {"app late joined late": said}
    assert not any("joined late" in note["what"] for note in results.get("notes") or [])


def test_what_a_late_subscriber_missed_is_a_note_where_it_is_less_than_a_tenth(lab):
    results = joining(lab, sent=41)
    assert warnings(results) == {}
    assert [note["node"] for note in results["notes"] if note["what"] == "app late joined late"] == ["c"]


def test_an_app_that_joined_late_on_several_nodes_is_named_once(lab):
    lab.node("a", BFT).node("b", PICTURE).node("c", PICTURE)
    targets = [(1, "b"), (2, "c")]
    lab.plan["armed"] = [
        {"id": node, "atNanoseconds": at * 10**9, "verb": "start", "targets": [{"node": node, "app": "picture"}]} for at, node in targets
    ]
    lab.event("a/bft", "sent", 0.5, "1", "/a/bft").event("a/bft", "sent", 3.0, "2", "/a/bft")
    for node in ("b", "c"):
        lab.event(f"{node}/picture", "received", 3.1, "2", "/a/bft")
    reason = "2 of 2 lost deliveries to it were of messages sent before it started on b, c from T0+1s to T0+2s"
    assert warnings(analyse(lab.write()).results) == {"app picture joined late": reason}


def test_nobody_joins_late_whose_app_starts_before_the_first_message(lab):
    lab.node("a", BFT).node("b", PICTURE)
    lab.plan["armed"] = [
        {"id": "1", "atNanoseconds": 10**9, "verb": "start", "targets": [{"node": n, "app": a}]} for n, a in (("a", "bft"), ("b", "picture"))
    ]
    lab.event("a/bft", "sent", 1.0, "1", "/a/bft").event("a/bft", "sent", 2.0, "2", "/a/bft").event("b/picture", "received", 2.1, "2", "/a/bft")
    results = analyse(lab.write()).results
    assert results["messages"]["lost"] == 1 and not any("joined late" in e["what"] for e in [*(results["notes"] or []), *results.get("warnings", [])])


def test_gaps_of_one_cause_are_one_line_that_names_up_to_ten_nodes():
    gaps = Gaps()
    for n in range(12):
        gaps.add(f"radio samples of n{n} on wan", f"n{n} has none", f"n{n}")
    gaps.add("radio samples of n0 on wan", "n0 has none", "n0", 5.0, 6.0)
    gaps.add("verdict", "no T0")
    names = ", ".join(f"n{n}" for n in range(10))
    assert merged(gaps.found) == [
        {"what": "radio samples of * on wan", "reason": f"* has none (12 nodes: {names} and 2 more)"},
        {"what": "radio samples of n0 on wan", "node": "n0", "fromSeconds": 5.0, "toSeconds": 6.0, "reason": "n0 has none"},
        {"what": "verdict", "reason": "no T0"},
    ]
