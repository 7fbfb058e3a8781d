"""Runs that are opened with the results that they have."""

import dataclasses
import json

import polars as pl
import pytest
from lab import UNIT, Lab
from polars.testing import assert_frame_equal
from test_fixture import eventful

from vignette_analysis import analyse, load, outputs, report
from vignette_analysis.data.run import RunError


@pytest.fixture
def stored(tmp_path, without_plots):
    """A run with its results, but for the plots."""
    path = eventful(tmp_path / "run").write()
    outputs.write(analyse(path), path / "results")
    return path


def test_what_is_loaded_is_what_was_computed(stored):
    computed, loaded = analyse(stored), load(stored)
    assert loaded.results == computed.results
    for field in dataclasses.fields(computed):
        if field.type is pl.DataFrame:
            assert_frame_equal(getattr(loaded, field.name), getattr(computed, field.name), categorical_as_str=True)
    assert_frame_equal(loaded.delivery_table(), computed.delivery_table(), categorical_as_str=True)


def test_nothing_is_computed_from_logs(stored):
    for log in stored.glob("logs/*/*/*"):
        log.unlink()
    assert load(stored).results["messages"]["sent"] == 5


@pytest.mark.usefixtures("without_plots")
def test_a_run_that_nobody_sent_in_is_loaded(tmp_path):
    path = Lab(tmp_path / "run").node("nor", UNIT).write()
    outputs.write(analyse(path), path / "results")
    assert load(path).deliveries.is_empty() and load(path).messages.schema == analyse(path).messages.schema


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("results.json", None, r"results\.json: no such file or directory: analyse\(\)"),
        ("results.json", "{", r"results\.json: not JSON from line 1, column 2 on: analyse\(\)"),
        ("results.json", "[]", "schemaVersion None"),
        ("results.json", json.dumps({"schemaVersion": 99}), "schemaVersion 99"),
        ("deliveries.parquet", None, r"deliveries\.parquet.*analyse\(\)"),
        ("links.parquet", "nonsense", r"links\.parquet.*analyse\(\)"),
    ],
)
def test_what_lacks_or_is_damaged_is_named(stored, name, content, message):
    path = stored / "results" / name
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(RunError, match=message):
        load(stored)


def test_a_notebook_shows_figures_and_escapes_names(stored):
    analysis = load(stored)
    analysis.results["experiment"] = "<script>alert(1)</script>"
    shown = analysis._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;" in shown and "<td>cross</td>" in shown


@pytest.mark.usefixtures("without_plots")
def test_results_of_version_1_stay_readable_and_say_what_they_do_not_count(pair, tmp_path):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 1.5, "a", "/nor/bft")
    pair.event("nor/bft", "triggered", 2.0, "b", "/nor/bft")
    folder = pair.write()
    outputs.write(analyse(folder), folder / "results")
    path = folder / "results" / "results.json"
    results = json.loads(path.read_text()) | {"schemaVersion": 1}
    later = ("triggered", "offered", "deliveredPercent")
    for entry in [results, *results["groups"], *results["publishers"]]:
        entry["messages"] = {name: value for name, value in entry["messages"].items() if name not in later}
        entry.pop("bounds", None)
        if entry["delaySeconds"]:
            entry["delaySeconds"] = {name: value for name, value in entry["delaySeconds"].items() if name not in ("mean", "p95")}
    results["verdict"] = {"keptUp": False, "late": [{"node": "nor", "fromSeconds": 1.0, "toSeconds": 2.0, "what": "late", "worstSeconds": 0.02}]}
    for name in ("headline", "notes", "warnings"):
        results.pop(name, None)
    path.write_text(json.dumps(results))
    table = folder / "results" / "deliveries.parquet"
    pl.read_parquet(table).drop("radio").write_parquet(table)
    analysis = load(folder)
    assert analysis.deliveries["radio"].to_list() == [True]
    assert (analysis.results["headline"], analysis.results["messages"]["offered"], analysis.results["messages"]["deliveredPercent"]) == (
        "all",
        1,
        100,
    )
    assert analysis.results["notes"][0]["what"] == "results of version 1"
    assert "DID NOT KEEP UP: late 1 times" in outputs.tables(analysis.results)
    assert report.write(analysis, tmp_path)
