"""The parts of a report. The template renders each kind."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from ..data import safe

# Most rows of a table in the report; the files beside it have all.
MAX_ROWS = 300


@dataclass(frozen=True)
class Text:
    """A paragraph; style: note, or empty."""

    text: str
    style: str = ""
    kind: str = "text"


@dataclass(frozen=True)
class Table:
    """Rows of cells, the first of which names the row. Folded tables open by a click, and in print."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: bool = False
    # Columns of text. All others are numbers, and aligned to the right.
    text_columns: frozenset[int] = frozenset({0})
    left_out: int = 0
    kind: str = "table"

    @property
    def cards(self) -> bool:
        """Report whether a phone shows each row as a block of lines, as most columns are text."""
        return len(self.header) > 2 and 2 * len(self.text_columns) >= len(self.header)


@dataclass(frozen=True)
class Chart:
    """A drawing with its legend (class, name), caption, and figures as a table."""

    title: str
    svg: Markup
    caption: str
    legend: Sequence[tuple[str, str]] = ()
    table: Table | None = None
    kind: str = "chart"


@dataclass(frozen=True)
class Code:
    """Preformatted text, folded."""

    title: str
    text: str
    kind: str = "code"


@dataclass(frozen=True)
class Map:
    """The moving map: the script's data, pictures of some moments, its caption and figures."""

    data: dict
    snapshots: Sequence[tuple[str, Markup]]
    caption: str
    groups: Sequence[tuple[str, str, str]]
    table: Table | None
    kind: str = "map"


@dataclass
class Section:
    """A part of the report under a heading of its own."""

    id: str
    title: str
    parts: list = field(default_factory=list)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], folded: bool = False, text: Sequence[int] = (0,)) -> Table:
    """A table with at most the report's number of rows."""
    shown = [tuple(safe.bounded(cell, safe.MOST_MESSAGE) for cell in row) for row in rows[:MAX_ROWS]]
    return Table(title, header, shown, folded, frozenset(text), max(len(rows) - MAX_ROWS, 0))
