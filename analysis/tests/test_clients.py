"""What happened to clients themselves is in the gaps."""

import pytest
from lab import BFT, PICTURE, Lab, gap, gap_names

from vignette_analysis.analysis import analyse


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
