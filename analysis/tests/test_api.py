"""docs/reference/analysis-api.md: generated from the package's own texts, with --update, and held against them."""

import dataclasses
import inspect
from pathlib import Path

import polars as pl
import pytest
from lab import Lab

import vignette_analysis
from vignette_analysis import analyse, outputs, plots
from vignette_analysis.figures import frames
from vignette_analysis.figures.analysis import Analysis

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "analysis-api.md"
HEAD = """# Analysis in Python

<!-- generated from the package by hack/python -m pytest analysis/tests/test_api.py --update -->

`pip install ./analysis` in a clone of the repository installs it.
[Analyse with Python](../how-to/analyse-with-python.md) has examples, [Results](results.md) what the figures mean.

    from vignette_analysis import load
    run = load("e4")                      # a folder that `vignette results NAME --download e4` made
    run.results["messages"]["lost"]       # results.json as a dict
    run.delivery_table()                  # a polars DataFrame with names and delays in seconds
    run                                   # in a notebook: headline figures and groups
"""
FUNCTIONS = {
    "load": vignette_analysis.load,
    "analyse": vignette_analysis.analyse,
    "compare": vignette_analysis.compare,
    "Analysis.message_table": Analysis.message_table,
    "Analysis.delivery_table": Analysis.delivery_table,
    "Analysis.request_table": Analysis.request_table,
    "outputs.write": outputs.write,
    "plots.save": plots.save,
}


def frames_of(analysis: Analysis) -> dict[str, pl.DataFrame]:
    return {field.name: getattr(analysis, field.name) for field in dataclasses.fields(Analysis) if field.type is pl.DataFrame}


def text_of(function) -> str:
    """A docstring as paragraphs."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.getdoc(function).split("\n\n"))


def page(analysis: Analysis) -> str:
    parts = [HEAD, "## Functions\n"]
    for name, function in FUNCTIONS.items():
        signature = str(inspect.signature(function)).replace("self, ", "").replace("self", "")
        for module in (
            "pathlib.",
            "vignette_analysis.figures.analysis.",
            "vignette_analysis.comparison.comparison.",
            "vignette_analysis.comparison.reference.",
            "polars.dataframe.frame.",
            "collections.abc.",
        ):
            signature = signature.replace(module, "")
        parts.append(f"### {name}\n\n    {name}{signature}\n\n{text_of(function)}\n")
    parts.append("`plots.PLOTS` has every plot by name: a function of an `Analysis` that returns a matplotlib figure, or None for nothing.\n")
    parts.append(
        "## Analysis\n\n`run` is the run record (`run.plan` is run.json, `run.t0` is T0 in Unix ns, `run.instances` are apps' processes by number), "
        "`results` the dict of results.json. The other attributes are polars DataFrames, empty where the run has nothing of the kind. "
        "Each is also a file in `results/`, as CSV and Parquet, under the same name (`-` for `_`).\n"
    )
    for name, frame in frames_of(analysis).items():
        row, columns = frames.TABLES[name]
        parts.append(f"### Analysis.{name}\n\nA row is {row}.\n\n| column | type | meaning, unit |\n|---|---|---|")
        parts.append("\n".join(f"| `{column}` | {frame.schema[column]} | {meaning} |" for column, meaning in columns.items()) + "\n")
    return "\n".join(parts)


@pytest.fixture
def empty(tmp_path) -> Analysis:
    return analyse(Lab(tmp_path / "run").write())


def test_every_column_of_every_table_is_described(empty):
    assert {name: set(frame.columns) for name, frame in frames_of(empty).items()} == {name: set(c) for name, (_, c) in frames.TABLES.items()}


def test_every_public_name_is_described():
    assert set(vignette_analysis.__all__) - {"Analysis", "Comparison"} <= set(FUNCTIONS)
    assert all(inspect.getdoc(function) and "return" in inspect.get_annotations(function) for function in FUNCTIONS.values())


def test_the_page_is_up_to_date(empty, request):
    if request.config.getoption("--update"):
        PAGE.write_text(page(empty))
    assert PAGE.read_text() == page(empty), "run pytest with --update"
