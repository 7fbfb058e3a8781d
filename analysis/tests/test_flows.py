"""Examples by hand; that every figure is right whatever happens, test_reference tells."""

import pytest
from lab import gap

from vignette_analysis import analyse


def arrive(pair, order: list[int]):
    """Message m is sent m seconds after T0; they arrive in this order, half a second apart, from 20 s on."""
    for m in sorted(set(order)):
        pair.event("nor/bft", "sent", float(m), f"m{m}", "/nor/bft")
    for i, m in enumerate(order):
        pair.event("prt/picture", "received", 20 + i / 2, f"m{m}", "/nor/bft")
    return analyse(pair.write()).order.row(0, named=True)


@pytest.mark.parametrize(
    ("order", "extents", "late_seconds"),
    [
        ([1, 2, 3, 4], [], []),
        ([1, 2, 3, 5, 6, 7, 8, 4, 9, 10], [4], [2.0]),
        ([1, 2, 3, 4, 7, 5, 6, 8], [1, 2], [0.5, 1.0]),
        ([3, 2, 1], [1, 2], [0.5, 1.0]),
        # 3 is late for 4; 2 too, and not for 3.
        ([1, 4, 3, 2], [1, 2], [0.5, 1.0]),
        # A copy that comes again is a duplicate, and not reordered.
        ([1, 2, 3, 1], [], []),
    ],
)
def test_messages_are_reordered_that_arrive_after_later_ones(pair, order, extents, late_seconds):
    row = arrive(pair, order)
    assert (row["received"], row["reordered"], row["duplicates"]) == (len(set(order)), len(extents), len(order) - len(set(order)))
    assert row["reorderedPercent"] == 100 * len(extents) / len(set(order))
    if extents:
        assert (row["extentMax"], row["extentMean"]) == (max(extents), sum(extents) / len(extents))
        assert (row["lateMaxSeconds"], row["lateMeanSeconds"]) == (max(late_seconds), sum(late_seconds) / len(late_seconds))
    else:
        assert row["extentMax"] is row["lateMeanSeconds"] is None


def test_information_grows_old_until_something_fresher_comes(pair):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 2.0, "a", "/nor/bft")
    pair.event("nor/bft", "sent", 3.0, "c", "/nor/bft").event("prt/picture", "received", 3.5, "c", "/nor/bft")
    pair.event("nor/bft", "sent", 2.5, "b", "/nor/bft").event("prt/picture", "received", 9.0, "b", "/nor/bft")  # old news
    pair.plan["measureEndNanoseconds"] = 10 * 10**9
    row = analyse(pair.write()).age.row(0, named=True)
    # From 2 s to 3.5 s the age goes from 1 s to 2.5 s, from there to 10 s from 0.5 s to 7 s.
    mean = (1.5 * (1 + 2.5) / 2 + 6.5 * (0.5 + 7) / 2) / 8
    assert (row["fromSeconds"], row["toSeconds"], row["updates"]) == (2.0, 10.0, 2)
    assert (row["meanSeconds"], row["peakMeanSeconds"], row["maxSeconds"]) == pytest.approx((mean, 2.5, 7.0))


def test_messages_lost_one_after_another_are_one_loss_period(pair):
    for m in range(8):
        pair.event("nor/bft", "sent", float(m), f"m{m}", "/nor/bft")
        if m in (0, 3, 5):
            pair.event("prt/picture", "received", m + 0.5, f"m{m}", "/nor/bft")
    rows = analyse(pair.write()).sequences.select("firstID", "lastID", "messages", "fromSeconds", "toSeconds", "outageSeconds", "longest").rows()
    assert rows == [("m1", "m2", 2, 1.0, 2.0, 2.0, True), ("m4", "m4", 1, 4.0, 4.0, 1.0, False), ("m6", "m7", 2, 6.0, 7.0, None, False)]


def test_stages_are_the_time_between_measuring_points(pair):
    for status, at, who in (
        ("triggered", 1.0, "nor/bft"),
        ("sent", 1.5, "nor/bft"),
        ("received", 2.5, "prt/picture"),
        ("processed", 4.5, "prt/picture"),
    ):
        pair.event(who, status, at, "a", "/nor/bft")
    stages = analyse(pair.write()).stages.filter(scope="subscriber", name="prt/picture")
    seconds = dict(stages.select("stage", "medianSeconds").rows())
    assert seconds == {"triggeredToSent": 0.5, "sentToReceived": 1.0, "receivedToProcessed": 2.0, "triggeredToProcessed": 3.5}


def test_what_was_processed_and_not_received_is_a_gap(pair):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "processed", 2.0, "a", "/nor/bft")
    analysis = analyse(pair.write())
    assert analysis.results["messages"]["lost"] == 1
    assert gap(analysis.results, "processed events of prt/picture")["reason"].startswith("1 messages, such as id 'a'")
    assert analysis.stages.filter(stage="receivedToProcessed")["count"].sum() == 0
