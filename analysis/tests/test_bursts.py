"""Times of bursts."""

import polars as pl
import pytest
from lab import BFT, PICTURE

from vignette_analysis import analyse, outputs
from vignette_analysis.figures import bursts


@pytest.fixture
def run(lab):
    """Bursts of three messages: AMQP's arrives whole at both subscribers, STOMP's lacks one message at XMPP's. A third app has another phase."""
    hub = {"brokers": ["hub/b"]}
    lab.node("out", BFT | hub | {"name": "a", "protocol": "amqp"}, BFT | hub | {"name": "s", "protocol": "stomp"}, BFT | hub | {"name": "o"})
    lab.node("in", PICTURE | hub | {"name": "m", "protocol": "mqtt"}, PICTURE | hub | {"name": "x", "protocol": "xmpp"})
    for name in ("a", "s"):
        lab.apps[name]["publisher"]["phase"] = "connected"
    for name, begin in (("a", 1.0), ("s", 11.0), ("o", 21.0)):
        lab.agent("out", name, "started", begin - 0.2, instance=f"out/{name}", plannedTs=0, latenessSeconds=0.0)
        for number in range(3):
            identifier, topic = f"{name}_{number}", f"/out/{name}"
            lab.event(f"out/{name}", "triggered", begin, identifier, topic).event(f"out/{name}", "sent", begin + 0.01 * number, identifier, topic)
            lab.event("in/m", "received", begin + 0.1 + 0.2 * number, identifier, topic)
            if (name, number) != ("s", 1):
                lab.event("in/x", "received", begin + 1.0 - 0.25 * number, identifier, topic)
    return lab.write()


def test_a_burst_takes_from_its_publishers_start_to_the_arrival_of_its_last_message(run):
    analysis = analyse(run)
    columns = ("publisher", "subscriber", "publisherProtocol", "subscriberProtocol", "messages", "received", "connectedSeconds", "seconds")
    table = analysis.bursts.with_columns(pl.col(pl.Categorical).cast(pl.String))
    assert table.columns == list(columns)
    assert [(*row[:6], pytest.approx(row[6]), row[7] and pytest.approx(row[7])) for row in table.rows()] == [
        ("out/a", "in/m", "amqp", "mqtt", 3, 3, 0.2, 0.7),
        ("out/a", "in/x", "amqp", "xmpp", 3, 3, 0.2, 1.2),
        ("out/s", "in/m", "stomp", "mqtt", 3, 3, 0.2, 0.7),
        ("out/s", "in/x", "stomp", "xmpp", 3, 2, 0.2, None),
    ]
    assert [entry["seconds"] for entry in analysis.results["bursts"]] == [pytest.approx(0.7), pytest.approx(1.2), pytest.approx(0.7), None]


def test_a_late_start_begins_when_it_came(lab):
    lab.node("out", BFT | {"name": "a"}).node("in", PICTURE)
    lab.apps["a"]["publisher"]["phase"] = "connected"
    lab.agent("out", "a", "started", 1.0, instance="out/a", plannedTs=0, latenessSeconds=0.0)
    lab.agent("out", "a", "started", 5.0, instance="out/a", plannedTs=0, latenessSeconds=0.0)  # a restart
    lab.event("out/a", "triggered", 1.5, "a_1", "/out/a").event("out/a", "sent", 1.5, "a_1", "/out/a").event(
        "in/picture", "received", 2.0, "a_1", "/out/a"
    )
    assert analyse(lab.write()).bursts["seconds"].to_list() == [pytest.approx(1.0)]


def test_a_burst_lacks_messages_that_were_never_sent_and_one_that_never_began_has_none(lab):
    lab.node("out", BFT | {"name": "full"}, BFT | {"name": "silent"}).node("in", PICTURE)
    for name in ("full", "silent"):
        lab.apps[name]["publisher"]["phase"] = "connected"
        lab.agent("out", name, "started", 1.0, instance=f"out/{name}", plannedTs=0, latenessSeconds=0.0)
    lab.event("out/full", "triggered", 1.5, "1").event("out/full", "triggered", 1.6, "2").event("out/full", "sent", 1.7, "2")
    lab.event("in/picture", "received", 2.0, "2", "/out/full")
    analysis = analyse(lab.write())
    assert analysis.bursts.select("messages", "received", "connectedSeconds", "seconds").rows() == [(2, 1, 0.5, None), (0, 0, None, None)]
    assert bursts.matrix(bursts.summarise(analysis.bursts[1:])) == (["publisher", "mqtt"], [["mqtt", "0 of 0"]])


@pytest.mark.usefixtures("without_plots")
def test_tables_and_report_have_the_matrix(run, tmp_path):
    outputs.write(analyse(run), tmp_path)
    lines = [line.split() for line in (tmp_path / "tables.txt").read_text().splitlines()]
    assert ["amqp", "0.700", "1.200"] in lines and ["stomp", "0.700", "2", "of", "3"] in lines
    assert "Times of bursts" in (tmp_path / "report.html").read_text()
    assert len((tmp_path / "bursts.csv").read_text().splitlines()) == 5


def test_several_bursts_of_the_same_protocols_have_their_mean():
    rows = [("a/1", "x", "amqp", "mqtt", 3, 3, 0.1, 1.0), ("a/2", "x", "amqp", "mqtt", 3, 3, 0.3, 2.0)]
    entries = bursts.summarise(pl.DataFrame(rows, bursts.BURSTS, orient="row"))
    assert bursts.matrix(entries) == (["publisher", "mqtt"], [["amqp", "1.500"]])
    assert entries[0]["connectedSeconds"] == pytest.approx(0.2)


def test_a_run_without_such_publishers_has_no_bursts(lab):
    lab.node("out", BFT).node("in", PICTURE).event("out/bft", "sent", 1.0, "1", "/out/bft")
    analysis = analyse(lab.write())
    assert "bursts" not in analysis.results and analysis.bursts.is_empty()
