"""The comparison of runs as programs and notebooks use it."""

from collections.abc import Sequence
from pathlib import Path

from ..figures.analysis import Analysis
from . import rendering
from .comparing import Compared, compared
from .reference import Reference


class Comparison(Compared):
    """Runs side by side, in every form."""

    def render(self, form: str) -> str:
        """Write the comparison as text, json, csv, latex or html."""
        return rendering.FORMS[form](self)

    def text(self) -> str:
        """The tables for a terminal."""
        return self.render("text")

    def write(self, directory: Path) -> list[Path]:
        """Write every form into a folder and return the paths."""
        return rendering.write(self, directory)


def compare(runs: Sequence[str | Path | Analysis], by: str | None = None, reference: str | Path | Reference | None = None) -> Comparison:
    """Compare runs: folders of runs, or analyses.

    Runs whose specs differ in nothing but the seed are repeats of one condition. `by` makes conditions of the values of one
    field instead, or of each run. `reference` is a CSV file of figures that stand beside those of the runs; without it, those of the
    runs' campaigns do. Raises RunError for a run or file that cannot be read, and for a field that does not differ.
    """
    made = compared(runs, by, reference)
    return Comparison(made.results, made.runs)
