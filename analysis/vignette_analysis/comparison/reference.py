"""Reads reference figures: published ones, or those of earlier runs, as a CSV file.

The operator reads the same format (internal/reference); the cases in its testdata hold for both.
"""

import csv
import difflib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..data.run import RunError

MAX_BYTES, MAX_ROWS = 32 << 10, 500
_MAX_CELL, _MAX_PROBLEMS, _MAX_NAMED, _MAX_SHOWN = 300, 5, 10, 60
# Least and greatest value of a figure but 0: differences in percent of it stay finite.
_LEAST, _MOST = 1e-12, 1e15
# Columns of the file, and whether it must have them.
COLUMNS = {"run": True, "group": False, "metric": True, "value": True, "note": False}
# Figures of a comparison, named as in its CSV; bytesPerSecond is of a network.
METRICS = (
    *("triggered", "sent", "offered", "received", "lost", "unsent", "deliveredPercent"),
    *("minSeconds", "p25Seconds", "medianSeconds", "meanSeconds", "p75Seconds", "p95Seconds", "maxSeconds"),
    *("requests", "receiptPercent", "failed", "outstanding", "retransmissions"),
    *("responseMinSeconds", "responseMedianSeconds", "responseMeanSeconds", "responseP95Seconds", "responseMaxSeconds"),
    "bytesPerSecond",
)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
# A cell with its quotation marks, and a carriage return that ends no line of Windows.
_CELL = re.compile(r'"[^"]*(?:""[^"]*)*(?:"|\Z)|[^,\n]*')
_LONE_RETURN = re.compile(r"\r[^\n]")


@dataclass(frozen=True)
class Figure:
    """A row of the file."""

    # The header is row 1.
    row: int
    run: str
    group: str
    metric: str
    value: float
    note: str


@dataclass(frozen=True)
class Reference:
    """Figures of a file."""

    name: str
    figures: tuple[Figure, ...]


class _Problems:
    """Collects what is wrong with a file, up to a limit."""

    def __init__(self, name: str):
        self.name, self.found = name, []

    def add(self, text: str) -> None:
        self.found.append(f"{self.name}{text}")

    def cell(self, row: int, column: str, text: str) -> None:
        self.add(f", row {row}, column {column}: {text}")

    def check(self) -> None:
        """Raise RunError if there are any."""
        if self.found:
            raise RunError("; ".join(self.found))


def read(path: Path) -> Reference:
    """Read a file. Raises RunError, which names file, row and column, the value, and what would be right."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
            size = path.stat().st_size
    except OSError as error:
        raise RunError(f"{path}: {(error.strerror or 'it cannot be read').lower()}: want a CSV file of reference figures") from error
    if len(text) > MAX_BYTES:
        raise RunError(f"{path.name} has {size} bytes: want {MAX_BYTES} at most")
    return parse(path.name, text)


def parse(name: str, text: bytes) -> Reference:
    """Read the text of a file; see read."""
    if len(text) > MAX_BYTES:
        raise RunError(f"{name} has {len(text)} bytes: want {MAX_BYTES} at most")
    problems = _Problems(name)
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RunError(f"{name} is no text in UTF-8: save it as CSV in UTF-8") from None
    _check_form(decoded, problems)
    problems.check()
    figures: list[Figure] = []
    header: list[str] | None = None
    try:
        for row, cells in _rows(decoded):
            if header is None:
                header = cells
                _check_header(cells, problems)
                problems.check()
            else:
                figures += _figure(row, cells, header, figures, problems)
            if len(problems.found) >= _MAX_PROBLEMS:
                break
    except csv.Error:
        problems.add(f" cannot be read as CSV: want a row with {','.join(COLUMNS)}, and rows of cells with commas between them")
    if not figures and not problems.found:
        problems.add(f" has no figures: want a row with {','.join(COLUMNS)}, and a row for each figure")
    problems.check()
    return Reference(name, tuple(figures))


def _check_form(text: str, problems: _Problems) -> None:
    """Find what readers of CSV take differently."""
    if lone := _LONE_RETURN.search(text):
        row = 1 + text.count("\n", 0, lone.start())
        problems.add(f", row {row}: a carriage return has no line feed after it: want lines that end as on Linux or Windows")
        return
    row = line = 1
    at = 0
    while True:
        found = _CELL.match(text, at)
        line += text.count("\n", at, found.end())
        at = found.end() + (text[found.end() : found.end() + 1] == "\r")
        if at == len(text):
            return
        if text[at] == "\n":
            row = line = line + 1
        elif text[at] != ",":
            problems.add(f", row {row}: text follows the closing quotation mark of a cell: want two marks for one within the cell")
            return
        at += 1


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with its number."""
    reader = csv.reader(line + "\n" for line in text.split("\n"))
    first = 1
    for cells in reader:
        row, first = first, reader.line_num + 1
        cells = [cell.strip() for cell in cells]
        if any(cells):
            yield row, cells


def _check_header(cells: list[str], problems: _Problems) -> None:
    if len(cells) == 1 and cells[0].count(";") > 1:
        problems.add(", row 1: semicolons are between the cells: want commas")
        return
    for i, cell in enumerate(cells):
        if cell not in COLUMNS:
            problems.add(f', row 1: "{_short(cell)}" is no column: {_meant(cell, COLUMNS)}want {",".join(COLUMNS)}')
        elif cell in cells[:i]:
            problems.add(f", row 1: column {cell} is there twice")
    for column, needed in COLUMNS.items():
        if needed and column not in cells:
            problems.add(f", row 1: column {column} is missing: want {','.join(COLUMNS)}")


def _figure(row: int, cells: list[str], header: list[str], before: list[Figure], problems: _Problems) -> list[Figure]:
    """The figure of a row; none where that cannot be said."""
    if len(cells) > len(header):
        problems.add(f", row {row}: {len(cells)} cells, and the header has {len(header)}: a cell with commas needs quotation marks around it")
        return []
    if len(before) == MAX_ROWS:
        problems.add(f", row {row}: want {MAX_ROWS} figures at most")
        return []
    known = len(problems.found)
    named = dict.fromkeys(COLUMNS, "") | dict(zip(header, cells, strict=False))
    for column in COLUMNS:
        if any(c in named[column] for c in "\r\n"):
            problems.cell(row, column, "the cell has several lines: a quotation mark may be missing")
        elif len(named[column]) > _MAX_CELL:
            problems.cell(row, column, f"{len(named[column])} characters: want {_MAX_CELL} at most")
    if not named["run"]:
        problems.cell(row, "run", "is empty: want the name of a run, condition or point")
    if named["metric"] not in METRICS:
        problems.cell(row, "metric", unknown(named["metric"], METRICS, len(METRICS)))
    value = _value(row, named["metric"], named["value"], problems)
    for other in before:
        if (other.run, other.group, other.metric) == (named["run"], named["group"], named["metric"]) and len(problems.found) == known:
            problems.add(f", row {row}: the same run, group and metric as row {other.row}")
    return [Figure(row, named["run"], named["group"], named["metric"], value, named["note"])]


def _value(row: int, metric: str, cell: str, problems: _Problems) -> float:
    value = float(cell) if _DECIMAL.fullmatch(cell) else math.inf
    if math.isinf(value):
        problems.cell(row, "value", f'"{_short(cell)}" is no number: want one such as 97.5, without a unit')
    elif metric.endswith("Percent") and not 0 <= value <= 100:
        problems.cell(row, "value", f"{cell}: want a share between 0 and 100")
    elif value < 0:
        problems.cell(row, "value", f"{cell}: want 0 or more")
    elif value and not _LEAST <= value <= _MOST:
        problems.cell(row, "value", f"{cell}: want 0, or a number from 1e-12 to 1e15")
    return value


def unknown(word: str, names: Sequence[str], most: int = _MAX_NAMED) -> str:
    """A sentence on a name that is none of these."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f'"{_short(word)}" is unknown: {_meant(word, names)}want one of {", ".join(names[:most])}{more}'


def _meant(word: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(word.lower(), {name.lower(): name for name in names}, 1)
    return f"did you mean {next(name for name in names if name.lower() == near[0])}? " if near else ""


def _short(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
