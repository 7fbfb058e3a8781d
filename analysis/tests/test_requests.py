"""What became of requests: receipts, failures by reason, retransmissions, response times. test_reference has every contradiction."""

import re
from pathlib import Path

import pytest
from lab import PICTURE, UNIT, Lab, gap, gap_names

from vignette_analysis import analyse, outputs, plots
from vignette_analysis.data import requests
from vignette_analysis.figures import summary
from vignette_analysis.report import asked, latex, words
from vignette_analysis.report.parts import Chart

CHAT = {"name": "chat", "messaging": {"transport": "coap"}}
TO_B, TO_C = "messaging/chat/to/b", "messaging/chat/to/c"


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(tmp_path / "run").node("a", CHAT, group="red").node("b", CHAT, group="red").node("c", CHAT, group="blue")


def send(lab: Lab, id: str, at: float, topic: str = TO_B, sender: str = "a/chat", **outcomes: float) -> None:
    """A request with what is logged of it at the sender, by status and seconds after its sending."""
    lab.event(sender, "triggered", at - 0.001, id, topic, bytes=100).event(sender, "sent", at, id, topic, bytes=100)
    for status, after in outcomes.items():
        text = {"text": "timeout: after 4 retransmissions"} if status == "failed" else {}
        lab.event(sender, status, at + after, id, topic, **text)


def of(results: dict, name: str) -> dict | None:
    return next(entry for entry in results["groups"] + results["publishers"] if entry["name"] == name).get("requests")


def test_each_request_has_a_receipt_or_has_failed_or_is_outstanding(lab):
    send(lab, "1", 1.0, receipt=0.5)
    send(lab, "2", 2.0, retransmitted=2.0, receipt=3.0)
    send(lab, "3", 3.0, retransmitted=2.5, failed=60.0 - 13)
    send(lab, "4", 4.0)
    results = analyse(lab.write()).results
    found = results["requests"]
    assert {key: found[key] for key in ("triggered", "sent", "receipts", "receiptPercent", "failed", "outstanding", "retransmissions")} == {
        "triggered": 4,
        "sent": 4,
        "receipts": 2,
        "receiptPercent": 50.0,
        "failed": {"timeout": 1},
        "outstanding": 1,
        "retransmissions": 2,
    }
    assert found["responseSeconds"]["min"] == 0.5 and found["responseSeconds"]["mean"] == 1.75 and found["responseSeconds"]["max"] == 3.0
    assert of(results, "a/chat") == found | {"confidence": of(results, "a/chat")["confidence"]} and of(results, "b/chat") is None
    assert gap(results, "requests in flight")["reason"] == "inFlightAtEnd: 1 requests had neither a receipt nor a failure at the end of the drain"


def test_what_tcp_repeats_is_not_counted_as_no_retransmission(tmp_path):
    for transport, repeated, want in (("http", False, None), ("coap-tcp", False, None), ("soap", False, None), ("http", True, 1), ("coap", False, 0)):
        service = CHAT | {"messaging": {"transport": transport}}
        lab = Lab(tmp_path / f"{transport}-{repeated}").node("a", service).node("b", service)
        send(lab, "1", 1.0, receipt=0.5)
        if repeated:
            lab.event("a/chat", "retransmitted", 1.2, "1", TO_B)
        analysis = analyse(lab.write())
        assert analysis.results["requests"]["retransmissions"] == want, transport
        cells = summary.request_cells(analysis.results["requests"], 4)
        assert cells[summary.REQUEST_HEADER.index("retrans.")] == ("-" if want is None else str(want))
        groups = outputs._flat(analysis.results["groups"], ("name",))
        assert groups["retransmissions"][0] == want and "Requests" in [s.title for s in [asked.section(analysis)]]


def test_requests_are_in_the_groups_of_their_deliveries(lab):
    send(lab, "1", 1.0, receipt=0.5)
    send(lab, "2", 2.0, TO_C, receipt=1.0)
    send(lab, "3", 3.0, "messaging/chat/to/a", "c/chat", receipt=2.0)
    results = analyse(lab.write()).results
    assert {name: of(results, name)["receipts"] for name in ("all", "radio", "cross", "red", "blue")} == {
        "all": 3, "radio": 3, "cross": 2, "red": 2, "blue": 1,
    }  # fmt: skip
    assert of(results, "local") is None
    pairs = {(p["from"], p["to"]): p.get("requests", {}).get("receipts") for p in results["pairs"]}
    assert pairs == {("red", "red"): 1, ("red", "blue"): 1, ("blue", "red"): 1}


def test_a_message_that_asks_for_no_receipt_is_no_request(tmp_path):
    for settings in ({"receipt": False}, {"multicast": True}):
        service = CHAT | {"messaging": settings, "groups": ["red"]}
        lab = Lab(tmp_path / str(settings)).node("a", service, group="red").node("b", service, group="red")
        send(lab, "1", 1.0, TO_B if "receipt" in settings else "messaging/chat/to/red")
        analysis = analyse(lab.write())
        assert "requests" not in analysis.results and analysis.requests.is_empty(), settings
        assert not any(name.startswith("requests") for name in gap_names(analysis.results))


def test_a_repeated_message_that_asks_for_no_receipt_is_no_request(tmp_path):
    service = CHAT | {"messaging": {"transport": "soap-udp", "receipt": False}}
    lab = Lab(tmp_path / "run").node("a", service).node("b", service)
    send(lab, "1", 1.0)
    lab.event("a/chat", "retransmitted", 1.1, "1", TO_B)
    analysis = analyse(lab.write())
    assert "requests" not in analysis.results and analysis.requests.is_empty()
    assert not any(name.startswith("requests") for name in gap_names(analysis.results))


def test_a_failure_without_asking_for_a_receipt_counts_alone(tmp_path):
    service = CHAT | {"messaging": {"transport": "coap-tcp", "receipt": False}}
    lab = Lab(tmp_path / "run").node("a", service).node("b", service)
    lab.event("a/chat", "triggered", 1.0, "1", TO_B).event("a/chat", "failed", 1.5, "1", TO_B, text="refused")
    send(lab, "2", 2.0)
    found = analyse(lab.write()).results["requests"]
    assert (found["triggered"], found["sent"], found["failed"], found["outstanding"]) == (1, 0, {"refused": 1}, 0)


def test_requests_to_an_own_server_are_counted_by_their_receipts_alone(tmp_path):
    client = {"name": "client", "messaging": {"transport": "http", "server": "tracks"}}
    for subscribed in (False, True):
        own = {"name": "tracks", "kind": "image", "topics": ["messaging/client/to/b"] if subscribed else None, "protocol": "http"}
        lab = (
            Lab(tmp_path / str(subscribed)).node("a", client | {"groups": []}, group="red").node("b", own, group="blue").node("c", own, group="blue")
        )
        lab.nodes[0]["apps"][0] |= {"subscribes": False, "subscriptions": None}
        send(lab, "1", 1.0, "messaging/client/to/b", "a/client", receipt=0.5)
        send(lab, "2", 2.0, "messaging/client/to/b", "a/client", failed=1.0)
        if subscribed:
            lab.event("b/tracks", "received", 1.25, "1", "messaging/client/to/b")
        analysis = analyse(lab.write())
        results = analysis.results
        found = results["requests"]
        assert (found["triggered"], found["receipts"], found["failed"]) == (2, 1, {"timeout": 1})
        assert of(results, "a/client")["receipts"] == 1
        assert analysis.requests["radio"].all() and analysis.requests["cross"].all()
        notes = [n for n in results.get("notes") or [] if n["what"] == "requests to tracks"]
        if subscribed:
            assert (results["messages"]["expected"], results["messages"]["lost"]) == (4, 3) and not notes
        else:
            assert (results["messages"]["expected"], results["messages"]["lost"]) == (0, 0)
            assert notes[0]["reason"] == "2 requests of client are in no delivery: tracks is an app of its user's own that subscribes to none of them"


def test_an_own_app_s_messages_are_requests_where_their_topic_has_receipts(tmp_path):
    lab = Lab(tmp_path / "run").node("a", {"name": "own", "kind": "image", "topics": ["x"]}).node("b", PICTURE)
    for n in range(3):
        lab.event("a/own", "sent", n + 1.0, f"q{n}", "ask").event("a/own", "sent", n + 1.5, f"t{n}", "tell")
    lab.event("a/own", "receipt", 1.25, "q0", "ask")
    analysis = analyse(lab.write())
    assert analysis.requests["id"].to_list() == ["q0", "q1", "q2"]
    assert analysis.requests["reason"].to_list() == [None, "inFlightAtEnd", "inFlightAtEnd"]


def test_what_came_after_the_drain_does_not_count(lab):
    send(lab, "1", 59.0, receipt=1.5)
    send(lab, "2", 59.5, failed=2.0)
    results = analyse(lab.write()).results
    assert (results["requests"]["receipts"], results["requests"]["failed"], results["requests"]["outstanding"]) == (0, None, 2)
    found = gap(results, "requests in flight")
    assert "2 requests had neither" in found["reason"] and "2 receipts, failures and retransmissions came after it" in found["reason"]
    assert found["fromSeconds"] == 59.0 and found["toSeconds"] == 61.5


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([("receipt", 2.0, "stranger")], "1 receipts, failures and retransmissions, such as of id 'stranger', are of messages that it neither"),
        (
            [("receipt", 2.0, "1"), ("receipt", 3.0, "1")],
            "1 receipts, such as of id '1', repeat an earlier one; the first one of each request counts",
        ),
        ([("failed", 2.0, "1"), ("failed", 3.0, "1")], "1 failures, such as of id '1', repeat an earlier one"),
        ([("failed", 2.0, "1"), ("receipt", 3.0, "1")], "1 requests, such as id '1', have both a receipt and a failure; the earlier one counts"),
        ([("failed", 2.0, "1", "it broke")], "1 failures, such as of id '1', do not begin with a known reason; they count as other"),
        ([("receipt", 2.0, "2")], "1 receipts and retransmissions, such as of id '2', are of messages that it did not send"),
    ],
)
def test_contradictions_are_gaps(lab, events, reason):
    send(lab, "1", 1.0)
    lab.event("a/chat", "triggered", 1.0, "2", TO_B)
    for status, at, id, *text in events:
        lab.event("a/chat", status, at, id, TO_B, text=text[0] if text else "timeout")
    assert reason in gap(analyse(lab.write()).results, "requests of a/chat")["reason"]


def test_a_receipt_before_its_request_is_a_gap_and_counts(lab):
    send(lab, "1", 1.0, receipt=-0.25)
    results = analyse(lab.write()).results
    assert results["requests"]["responseSeconds"]["median"] == -0.25
    assert "1 receipts came up to 0.250000 s before" in gap(results, "negative delays")["reason"]


def test_a_run_without_requests_says_nothing_of_them(tmp_path):
    lab = Lab(tmp_path / "run").node("nor", UNIT).node("prt", PICTURE)
    lab.event("nor/unit", "sent", 1.0, "1", "/nor/unit")
    analysis = analyse(lab.write())
    assert "requests" not in analysis.results and all("requests" not in e for e in analysis.results["groups"] + analysis.results["publishers"])
    assert analysis.requests.is_empty() and list(analysis.requests.columns) == list(requests.SCHEMA)


def test_a_messaging_service_has_no_broker_to_be_connected_to(lab):
    send(lab, "1", 1.0, receipt=0.5)
    assert not any("never connected" in w["what"] for w in analyse(lab.write()).results["warnings"])


def test_the_table_of_requests_has_names_and_response_times(lab):
    send(lab, "1", 1.0, TO_C, receipt=0.5)
    row = analyse(lab.write()).request_table().to_dicts()[0]
    assert (row["publisher"], row["subscriber"], row["node"], row["group"], row["responseSeconds"]) == ("a/chat", "c/chat", "a", "red", 0.5)


def test_the_reasons_are_those_of_the_traffic_program():
    source = (Path(__file__).parents[2] / "internal" / "traffic" / "request" / "request.go").read_text()
    assert tuple(re.findall(r'Reason = "(\w+)"', source)) == requests.REASONS


def test_the_report_has_tables_and_charts_of_requests(lab):
    send(lab, "1", 1.0, receipt=0.5)
    send(lab, "2", 2.0, TO_C, retransmitted=2.0, receipt=3.0)
    send(lab, "3", 3.0, failed=40.0)
    send(lab, "4", 4.0, TO_C)
    section = asked.section(analyse(lab.write()))
    groups, publishers = section.parts[0], section.parts[1]
    assert groups.rows[0][:8] == ("all", "4", "4", "2", "50.00", "1", "1", "1") and [row[0] for row in publishers.rows] == ["a/chat"]
    assert [row[0] for row in groups.rows] == ["all", "radio", "cross", "red", "red to red", "red to blue"]
    charts = {part.title: part for part in section.parts if isinstance(part, Chart)}
    titles = ["Response time by group", "Response time by publisher", "Requests without a receipt, by reason", "Retransmissions of a request"]
    assert list(charts) == titles
    assert charts[titles[2]].table.rows == [("outstanding (inFlightAtEnd)", "1", "25.00"), ("timeout", "1", "25.00")]
    assert charts[titles[3]].table.rows == [("0", "3", "75.00"), ("1", "1", "25.00")]


def test_the_report_begins_with_receipts_and_the_mean_response_time(lab):
    for n in range(8):
        send(lab, str(n), n + 1.0, receipt=0.5 + n / 100)
    send(lab, "9", 9.0, failed=1.0)
    tiles = {name: (value, about) for name, value, about in words.headline(analyse(lab.write()).results)}
    assert tiles["Requests with a receipt"][0] == "88.89\u00a0%"
    assert tiles["Requests with a receipt"][1].startswith("8 of 9 requests; 1 (1 timeout) failed, 0 outstanding; 95\u00a0% interval")
    assert tiles["Mean response time"][0] == "535\u00a0ms" and "95\u00a0% interval 514" in tiles["Mean response time"][1]


def test_charts_of_requests_are_for_those_that_have_something_to_draw(lab):
    send(lab, "1", 1.0, failed=2.0)
    titles = [part.title for part in asked.section(analyse(lab.write())).parts if isinstance(part, Chart)]
    assert titles == ["Requests without a receipt, by reason"]


def test_a_report_without_requests_has_no_section_of_them(tmp_path):
    assert asked.section(analyse(Lab(tmp_path / "run").node("nor", UNIT).write())) is None


def test_plots_of_requests_are_drawn_where_there_are_some(lab, tmp_path):
    send(lab, "1", 1.0, receipt=0.5)
    send(lab, "2", 2.0, receipt=0.75)
    analysis = analyse(lab.write())
    drawn = {plot: plots.PLOTS[plot](analysis) for plot in ("response-times-by-group", "request-outcomes")}
    assert [label.get_text() for label in drawn["response-times-by-group"].axes[0].get_yticklabels()] == ["all", "radio", "red"]
    assert [label.get_text() for label in drawn["request-outcomes"].axes[0].get_yticklabels()] == ["receipt"]
    nothing = analyse(Lab(tmp_path / "nothing").node("nor", UNIT).write())
    assert plots.PLOTS["response-times-by-group"](nothing) is None and plots.PLOTS["request-outcomes"](nothing) is None


def test_latex_has_tables_of_requests_and_pairs(lab, tmp_path):
    send(lab, "1", 1.0, receipt=0.5)
    send(lab, "2", 1.5, TO_C, failed=0.5)
    names = {path.stem: path.read_text() for path in latex.write(analyse(lab.write()).results, tmp_path)}
    assert r"all & 2 & 2 & 1 & 50 & 1 (1 timeout) & 0 & 0 &" in names["requests"]
    assert "red to blue & 1 & 1 & 0" in names["pairs"]


def test_more_pairs_of_groups_than_can_be_read_are_left_out_and_a_note_says_so(tmp_path):
    lab = Lab(tmp_path / "run")
    for n in range(11):
        lab.node(f"n{n}", UNIT | {"name": "unit"})
    results = analyse(lab.write()).results
    assert "pairs" not in results
    reason = "11 groups of nodes make 110 pairs, and 100 are computed at most: give several nodes one group"
    assert [note["reason"] for note in results["notes"] if note["what"] == "pairs"] == [reason]
