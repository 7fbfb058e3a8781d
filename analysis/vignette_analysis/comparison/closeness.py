"""A chart of how far measured figures are from reference figures."""

from ..report import charts
from ..report.parts import Chart, Table
from .marks import covered, marked

# Most rows of the chart; the table has all.
MAX_ROWS = 60
_CAPTION = (
    "Measured figures and their 95 % intervals in percent of the reference figure, which is the line at 0. "
    "Dot: the interval covers it. Cross: it does not. Ring: there is no interval."
)


def chart(figures: list[dict], marks: set[str], table: Table) -> Chart | Table:
    """The chart above its table; the table alone where no figure can be drawn."""
    rows = [_row(entry, marks) for entry in figures if entry["differencePercent"] is not None]
    if not rows:
        return table
    lacking = len(figures) - len(rows)
    caption = _CAPTION + (f" The first {MAX_ROWS} of {len(rows)} are drawn." if len(rows) > MAX_ROWS else "")
    caption += f" Not drawn, as not measured or the reference is 0: {lacking}." if lacking else ""
    inside = sum(entry["covered"] is True for entry in figures)
    alt = f"Measured beside reference figures: of {len(figures)}, the interval covers {inside}."
    return Chart(
        "How far the measured figures are from the reference", charts.differences(rows[:MAX_ROWS], "difference (%)", alt), caption, table=table
    )


def _row(entry: dict, marks: set[str]) -> dict:
    """The differences in percent of the reference figure."""
    limits = entry["interval"] or {}
    ends = {end: 100 * (limits[end] / entry["value"] - 1) for end in ("low", "high") if end in limits}
    name = f"{marked(entry['label'], marks)}: {entry['group']} {entry['metric']}"
    text = f"measured {charts.number(entry['measured'])}, reference {charts.number(entry['value'])}: {covered(entry)}"
    return {"name": name, "value": entry["differencePercent"], "covered": entry["covered"], "text": text} | ends
