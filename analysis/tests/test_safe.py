import csv
import io
import json
from types import SimpleNamespace

import polars as pl
import pytest
from lab import gap

from vignette_analysis import analyse, outputs
from vignette_analysis.comparison.rendering import as_csv
from vignette_analysis.data import safe

HOSTILE = "\x1b]0;owned\x07\x1b[2Jx\x9b31m\u202e\r\n=1+1"
LONG = "x" * 10_000_000


@pytest.mark.parametrize("text", ["=1+1", "@sum", "+a", "-", "-1+1", "\t=1", "\r=1", "\n=1", "\uff1d1", "-inf", "-1\n"])
def test_no_cell_is_a_formula(text):
    assert safe.cell(text) == f"'{text}"
    for kind in (pl.String, pl.Categorical):
        assert safe.cells(pl.DataFrame({"a": ["b", text]}, schema={"a": kind}))["a"].to_list() == ["b", f"'{text}"]


@pytest.mark.parametrize("value", ["-5", "-1.5e-3", "+7", "-.5", "", "nor-1/bft", "a=b", "'=x", -5, 1.5, None])
def test_numbers_stay_numbers(value):
    assert safe.cell(value) == value
    assert safe.cells(pl.DataFrame({"a": [value]}))["a"].to_list() == [value]


def test_a_table_without_rows_or_texts_stays_as_it_is():
    for frame in (pl.DataFrame(), pl.DataFrame({"a": []}, schema={"a": pl.String}), pl.DataFrame({"a": [1]})):
        assert safe.cells(frame).equals(frame)


def test_a_long_text_is_cut_and_says_its_length():
    assert safe.bounded("é" * 200) == "é" * 200
    assert safe.bounded(LONG) == "x" * 200 + "… (10000000 characters)"


def test_a_terminal_obeys_nothing():
    assert safe.terminal(HOSTILE) == "\\u001b]0;owned\\u0007\\u001b[2Jx\\u009b31m\\u202e\\u000d\n=1+1"
    assert safe.line(HOSTILE) == "\\u001b]0;owned\\u0007\\u001b[2Jx\\u009b31m\\u202e | =1+1"


def hostile_run(pair, text):
    """A run whose apps put this text wherever they may."""
    for instance in ("nor/bft", "nor/bft"):
        pair.event(instance, "sent", 1.0, text, text)
    pair.event("nor/bft", "sent", 2.0, "=1+1", "/nor/bft").event("nor/bft", "sent", 3.0, "-5", "/nor/bft")
    pair.event("prt/picture", "sent", 1.0, text, text).event("prt/picture", "connected", 1.0, text, text=text)
    pair.event("prt/picture", "disconnected", 2.0, text, text=text).event("prt/picture", "connected", 3.0, text)
    pair.event("prt/picture", "period", 4.0, text, text=text)
    pair.logs["logs/nor/bft/messages-1.jsonl"].append(json.dumps({"ts": 1, "instance": text, "status": "sent", "id": "a"}))
    for event in ("started", "exited", "failed", "notArchived", "armedTooLate"):
        pair.agent("nor", "bft", event, 5.0, instance=text, message=text, actionID=text, exitCode=1, latenessSeconds=9.0)
    pair.manifest["gaps"] = [{"what": text, "node": "nor", "reason": text}]
    pair.state["incidents"] = [{"what": text, "node": "nor", "fromSeconds": 1.0, "reason": text}]
    pair.state["agents"] = [{"node": "nor", "app": "bft", "phase": "failed", "message": text}]
    return analyse(pair.write())


def test_a_long_text_of_an_app_makes_no_large_results(pair, tmp_path):
    analysis = hostile_run(pair, LONG[:1_000_000])
    outputs.write(analysis, tmp_path / "out")
    for name in ("results.json", "tables.txt", "headline.csv", "tables/headline.tex"):
        assert (tmp_path / "out" / name).stat().st_size < 50_000, name
    assert (tmp_path / "out" / "report.html").stat().st_size < 1_000_000
    assert "… (1000000 characters)" in gap(analysis.results, "ambiguous messages")["reason"]


def test_tables_for_terminals_hold_nothing_that_one_obeys(pair):
    analysis = hostile_run(pair, HOSTILE)
    text = outputs.tables(analysis.results, analysis.run.plan)
    assert text == safe.terminal(text)
    assert text.count("owned") >= 8
    assert "\n=1+1" not in text


@pytest.mark.usefixtures("without_plots")
def test_csv_files_hold_no_formula(pair, tmp_path):
    outputs.write(hostile_run(pair, HOSTILE), tmp_path)
    ids = [row["id"] for row in csv.DictReader(io.StringIO((tmp_path / "messages.csv").read_text()))]
    assert {"'=1+1", "-5"} <= set(ids)
    assert "=1+1" in pl.read_parquet(tmp_path / "messages.parquet")["id"].to_list()


def test_a_comparisons_csv_holds_no_formula():
    row = {"label": "=1+1", "uid": "u", "messages": None, "delaySeconds": None, "confidence": None}
    runs = [{"uid": "u", "experiment": "e", "complete": True, "keptUp": True}]
    comparison = SimpleNamespace(results={"runs": runs, "groups": [{"name": "all", "runs": [row], "conditions": []}]})
    assert "all,'=1+1,e,u,1," in as_csv(comparison)
