"""Makes texts from outside safe for each form of output: ids, topics, errors and output of apps may contain anything.

HTML is escaped by the report's templates and by `display`, LaTeX by `latex.escape`.
"""

import re
import unicodedata

import polars as pl

# Most characters of a text from outside inside a message, and of a whole message.
MOST = 200
MOST_MESSAGE = 2000
# Most characters of the last lines that an app wrote.
MOST_OUTPUT = 1000
# Spreadsheets take such texts for formulas, except numbers. Python and polars read these expressions alike.
_FORMULA = "\\A[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
_NUMBER = r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
# Characters that change the direction of text or begin a line; control characters are known by their category.
_TURNING = frozenset("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def bounded(text: str, most: int = MOST) -> str:
    """Cut a longer text, and say how long it was."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def terminal(text: str) -> str:
    r"""Write characters that control a terminal as \uXXXX. Line feeds and tabs stay."""
    return text if text.isascii() and text.isprintable() else "".join(f"\\u{ord(c):04x}" if _obeyed(c) else c for c in text)


def line(text: str) -> str:
    """Make a text one line, safe for a terminal."""
    return terminal(" | ".join(part for part in re.split(r"[\r\n]+", text) if part))


def _obeyed(c: str) -> bool:
    return c not in "\n\t" and (unicodedata.category(c) in ("Cc", "Cs") or c in _TURNING)


def cell(value: object) -> object:
    """A cell of a CSV file: a text that a spreadsheet would take for a formula begins with an apostrophe. Numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def _is_formula(text: str) -> bool:
    return bool(re.match(_FORMULA, text)) and not re.match(_NUMBER.replace(r"\z", r"\Z"), text)


def cells(frame: pl.DataFrame) -> pl.DataFrame:
    """A table for a CSV file; see cell."""
    texts = [name for name, kind in frame.schema.items() if kind in (pl.String, pl.Categorical, pl.Enum)]
    formulas = {name: _formula(name) for name in texts}
    found = frame.select(**{name: formula.any() for name, formula in formulas.items()}) if texts else None
    changed = [name for name in texts if found[name][0]]
    return frame.with_columns(
        pl.when(formulas[name]).then(pl.format("'{}", name)).otherwise(pl.col(name).cast(pl.String)).alias(name) for name in changed
    )


def _formula(name: str) -> pl.Expr:
    text = pl.col(name).cast(pl.String)
    return text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER)
