"""What happened to clients themselves is in the gaps."""

import pytest
from lab import BFT, PICTURE, Lab, gap, gap_names

from vignette_analysis.figures.analysis import analyse


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path / "run").node("nor", BFT).node("prt", PICTURE)
    return lab.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 1.5, "a", "/nor/bft")


def test_a_connection_that_was_never_lost_is_no_gap(lab):
    lab.event("nor/bft", "connected", 0.5, "hq:1883").event("nor/bft", "disconnected", 61.0, "hq:1883", text="the run is over")
    results = analyse(lab.write()).results
    assert "connection of nor/bft" not in gap_names(results)
    assert results["messages"]["sent"] == 1 and results["messages"]["received"] == 1


def test_a_failover_is_named_with_its_brokers_and_times(lab):
    lab.event("nor/bft", "connected", 0.5, "hq:1883").event("nor/bft", "disconnected", 10.0, "hq:1883", text="EOF")
    lab.event("nor/bft", "connected", 12.5, "prt:1883")
    found = gap(analyse(lab.write()).results, "connection of nor/bft")
    assert (found["node"], found["fromSeconds"], found["toSeconds"]) == ("nor", 10.0, 12.5)
    assert found["reason"] == "lost once, without one for 2.500 s; brokers: hq:1883, then prt:1883; the first time: EOF"


def test_losses_of_one_instance_are_one_gap_that_may_have_no_end(lab):
    for at in (5.0, 15.0, 25.0):
        lab.event("prt/picture", "connected", at, "hq:1883").event("prt/picture", "disconnected", at + 1, "hq:1883", text="reset")
    found = gap(analyse(lab.write()).results, "connection of prt/picture")
    assert found["fromSeconds"] == 6.0 and "toSeconds" not in found
    assert found["reason"] == "lost 3 times, and not made again to the end; brokers: hq:1883; the first time: reset"


def test_an_adapted_period_is_named(lab):
    lab.event("nor/bft", "period", 4.0, "4s", text="12 frames wait").event("nor/bft", "period", 8.0, "2s", text="1 frame waits")
    (found,) = [note for note in analyse(lab.write()).results["notes"] if note["what"] == "period of nor/bft"]
    assert (found["fromSeconds"], found["toSeconds"]) == (4.0, 8.0)
    assert found["reason"] == "adapted to the queue of the node's radio: 2 times, first to 4s (12 frames wait), in the end 2s"


def test_a_subscription_that_was_refused_for_long_is_a_gap(lab):
    lab.event("prt/picture", "refused", 1.0, "/nor/#", text="return code 0x80").event("prt/picture", "subscribed", 8.5, "/nor/#")
    lab.event("prt/picture", "refused", 2.0, "/deu/#", text="return code 0x80").event("prt/picture", "subscribed", 3.0, "/deu/#")
    found = gap(analyse(lab.write()).results, "subscription of prt/picture")
    assert (found["node"], found["fromSeconds"], found["toSeconds"]) == ("prt", 1.0, 8.5)
    assert found["reason"] == "/nor/#, /deu/#: refused by the broker for 7.500 s; the first time: return code 0x80"


def test_a_subscription_that_was_never_made_is_a_gap_without_an_end(lab):
    lab.event("prt/picture", "subscribed", 0.5, "/nor/#").event("prt/picture", "refused", 1.0, "/nor/#", text="not authorized")
    found = gap(analyse(lab.write()).results, "subscription of prt/picture")
    assert "toSeconds" not in found
    assert found["reason"] == "/nor/#: refused by the broker and not made again to the end; the first time: not authorized"


def test_a_refusal_while_the_broker_starts_is_a_note(lab):
    lab.event("prt/picture", "refused", 0.2, "/nor/#", text="return code 0x80").event("prt/picture", "subscribed", 1.2, "/nor/#")
    results = analyse(lab.write()).results
    assert "subscription of prt/picture" not in gap_names(results)
    (found,) = [note for note in results["notes"] if note["what"] == "subscription of prt/picture"]
    assert (found["fromSeconds"], found["toSeconds"]) == (0.2, 1.2)


def test_short_refusals_at_each_start_of_a_broker_are_a_note_with_the_longest(lab):
    for at, seconds in ((0.2, 0.5), (40.0, 1.5)):
        lab.event("prt/picture", "refused", at, "/nor/#", text="return code 0x80").event("prt/picture", "subscribed", at + seconds, "/nor/#")
    results = analyse(lab.write()).results
    assert "subscription of prt/picture" not in gap_names(results)
    (found,) = [note for note in results["notes"] if note["what"] == "subscription of prt/picture"]
    assert (found["fromSeconds"], found["toSeconds"]) == (0.2, 41.5)
    assert found["reason"] == "/nor/#: refused by the broker in 2 periods, for 1.500 s at most; the first time: return code 0x80"


def test_a_subscription_that_was_never_refused_is_nothing_to_tell(lab):
    lab.event("prt/picture", "subscribed", 0.2, "/nor/#")
    results = analyse(lab.write()).results
    assert not [e for e in results["gaps"] + (results["notes"] or []) if e["what"].startswith("subscription")]


def test_a_run_without_t0_has_its_refusals_and_lost_messages_without_times(lab):
    lab.plan["t0"] = None
    lab.event("prt/picture", "refused", 1.0, "/nor/#", text="no").event("prt/picture", "subscribed", 8.5, "/nor/#")
    lab.event("nor/bft", "sent", 3.0, "b", "/nor/bft")
    analysis = analyse(lab.write())
    found = gap(analysis.results, "subscription of prt/picture")
    assert "for 7.500 s" in found["reason"] and "fromSeconds" not in found
    assert analysis.sequences.select("firstID", "fromSeconds", "toSeconds").rows() == [("b", None, None)]
