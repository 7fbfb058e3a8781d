"""The tables as LaTeX."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import gap_names

from vignette_analysis import analyse, outputs
from vignette_analysis.report import latex

HOSTILE = r"""a_b&c%d#e$f{g}h~i^j\k<l>m|n"o'p`q--r[s]*?`!`"""
ENTRY = {
    "name": HOSTILE,
    "messages": {"triggered": 4, "sent": 3, "offered": 8, "expected": 6, "received": 5, "deliveredPercent": 62.5, "lost": 1, "duplicates": 0},
    "delaySeconds": {"min": -0.1, "p25": 0.2, "median": 0.3, "p75": 0.4, "max": 12.5},
}
SILENT = {"name": "[silent]", "messages": dict.fromkeys(ENTRY["messages"], 0) | {"deliveredPercent": None}, "delaySeconds": None}
NETWORK = {
    "name": "wan",
    "bytesPerSecond": 10.0,
    "byLayer": {"ethernet": 10.0, "ip": 8.0},
    "tcp": {"retransmissions": 4, "spurious": 0, "duplicateAcks": 1},
}
RESULTS = {
    "experiment": HOSTILE,
    "namespace": "team-nor",
    "uid": "run-1\n\\input{x}",
    "durationSeconds": 60.0,
    "messages": ENTRY["messages"],
    "delaySeconds": ENTRY["delaySeconds"],
    "groups": [
        ENTRY
        | {"name": "all", "confidence": {"level": 0.95, "medianSeconds": {"low": 0.1, "high": 0.5}, "deliveredPercent": {"low": 30.6, "high": 86.3}}},
        SILENT,
    ],
    "publishers": [ENTRY, SILENT],
    "networks": [NETWORK, {"name": "unmeasured"}],
    "gaps": None,
}
TABLES = (latex.headline, latex.groups, latex.publishers, latex.networks)
# All that a cell may have: text without a special character, and what escape() writes for one.
CELL = re.compile(
    r"(?:\$-\$)?(?:[^\\{}$&%#_~^<>|\"'`\[\]*-]|\\[{}$&%#_]|\\(?:text[a-z]+|char34)\{\}|['`]\{\}|-(?:\{\}(?=-)|(?!-))|\{[\[\]*]\}|[?!]\{\})*|--"
)


def rows(table: str) -> list[list[str]]:
    """The cells of a table, of which every line is what a table may have."""
    comment, begin, top, *lines, end = table.splitlines()
    assert comment.startswith("% ") and comment.isprintable()
    kind, columns = re.fullmatch(r"\\begin\{(tabular|longtable)\}\{(l[lr]+)\}", begin).groups()
    assert top == r"\toprule" and end == rf"\end{{{kind}}}"
    header, *body = [line for line in lines if line not in (r"\midrule", r"\bottomrule", r"\endhead", r"\endfoot")]
    found = []
    for line in body:
        assert line.endswith(r" \\")
        cells = re.split(r" (?<!\\)& ", line[:-3])
        assert len(cells) == len(columns) and all(CELL.fullmatch(cell) for cell in cells), line
        found.append(cells)
    assert header.count(" & ") == len(columns) - 1
    return found


@pytest.mark.parametrize("table", TABLES)
def test_no_name_escapes_its_cell(table):
    assert rows(table(RESULTS))


@pytest.mark.parametrize("table", TABLES)
def test_a_run_without_anything_has_tables_without_rows(table):
    empty = RESULTS | {"groups": None, "publishers": None, "networks": None, "delaySeconds": None}
    assert bool(rows(table(empty))) == (table is latex.headline)


@given(st.text())
def test_any_text_is_escaped(text):
    escaped = latex.escape(text)
    assert CELL.fullmatch(escaped)
    assert escaped.isascii() and (escaped.isprintable() or not escaped)


def test_characters_that_latex_cannot_print_are_written_as_code_points():
    assert latex.escape("nør\t") == "nU+00F8rU+0009"


def test_figures_are_those_of_the_results():
    table = rows(latex.groups(RESULTS))
    assert table[0] == ["all", "3", "8", "5", "62.50", "1", "0", "$-$0.1000", "0.2000", "0.3000", "--", "0.4000", "--", "12.5000"]
    assert table[1] == ["{[}silent{]}", "0", "0", "0", "--", "0", "0", *["--"] * 7]
    values = dict(rows(latex.headline(RESULTS)))
    assert values["Deliveries received of offered (\\%)"] == "62.50 {[}30.60, 86.30{]}"
    assert values["Delay, median (s)"] == "0.3000 {[}0.1000, 0.5000{]}"
    assert rows(latex.networks(RESULTS))[0] == ["wan", "10.0", "--", "10.0", "8.0", "--", "--", "4", "0", "1"]


def test_delays_of_microseconds_keep_their_digits():
    median = {"medianSeconds": {"low": 0.0005, "high": 0.00053}}
    fast = ENTRY | {"name": "all", "delaySeconds": {"median": 0.000512, "max": 0.2}, "confidence": median}
    table = rows(latex.groups(RESULTS | {"groups": [fast]}))
    assert table[0][9] == "0.000512" and table[0][-1] == "0.200000"
    assert dict(rows(latex.headline(RESULTS | {"groups": [fast]})))["Delay, median (s)"] == "0.000512 {[}0.000500, 0.000530{]}"


def test_a_single_loss_or_arrival_of_many_is_never_rounded_away():
    def of(received: int, percent: float) -> dict:
        counts = ENTRY["messages"] | {"offered": 100_000, "received": received, "deliveredPercent": percent}
        return ENTRY | {"name": "all", "messages": counts, "confidence": {"level": 0.95, "deliveredPercent": {"low": 99.994, "high": 99.9998}}}

    lost, arrived = (RESULTS | {"groups": [of(*one)]} for one in ((99_999, 99.999), (1, 0.001)))
    assert "99.99 {[}99.99, 99.99{]}" in latex.headline(lost) and "100.00" not in latex.groups(lost)
    assert "0.01 {[}" in latex.headline(arrived) and "& 0.01 &" in latex.groups(arrived)


@pytest.mark.usefixtures("without_plots")
def test_every_run_has_the_tables_and_their_csv(pair, tmp_path):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 1.5, "a", "/nor/bft")
    analysis = analyse(pair.write())
    paths = {path.relative_to(tmp_path).as_posix() for path in outputs.write(analysis, tmp_path)}
    for name in ("headline", "groups", "publishers", "networks"):
        assert {f"tables/{name}.tex", f"{name}.csv"} <= paths
    assert rows((tmp_path / "tables/publishers.tex").read_text())[0][:2] == ["nor/bft", "1"]
    assert "Deliveries received,1" in (tmp_path / "headline.csv").read_text() and not any("table" in name for name in gap_names(analysis.results))
