"""Faults and changes that every chart over time shows."""

from ..data.gaps import OUTAGES
from ..figures.analysis import Analysis
from . import words
from .charts import Band, Mark

# Most times of a chart, and most rows of the table under it.
MAX_TIMES = 240
TABLE_TIMES = 20
MAX_BANDS, MAX_MARKS = 200, 50
AFTER_T0 = "time after T0 (s)"


def happenings(analysis: Analysis) -> tuple[list[Band], list[Mark]]:
    """Intervals in which the emulation was at fault, and changes by hand."""
    results, end = analysis.results, analysis.run.duration_seconds
    late = (results.get("verdict") or {}).get("late") or []
    bands = [Band(e["fromSeconds"], e["toSeconds"], f"late: {e['what']}") for e in late if e.get("fromSeconds") is not None]
    for gap in results["gaps"] or []:
        if gap["what"] in OUTAGES and gap.get("fromSeconds") is not None:
            bands.append(Band(gap["fromSeconds"], gap.get("toSeconds") or end, f"{gap['what']}: {gap['reason']}"))
    marks = [
        Mark(change["atNanoseconds"] / 1e9, f"{change['name']}: {words.changes(change)}") for change in analysis.run.plan.get("liveChanges") or []
    ]
    # A band as long as the run would grey the whole chart.
    return [b for b in bands if b.end - b.start < 0.8 * max(end, 1.0)][:MAX_BANDS], marks[:MAX_MARKS]


def about(bands: list[Band], marks: list[Mark]) -> str:
    """The meaning of hatches and numbered lines in charts over time."""
    said = " Hatched: times in which the emulation was late or interrupted." if bands else ""
    return said + (" Numbered lines: changes by hand, as listed below." if marks else "")


def width(seconds: float) -> int:
    """Seconds of an interval, so that a chart over this duration has at most MAX_TIMES."""
    return max(1, -(-int(seconds) // MAX_TIMES))


def round_width(seconds: float) -> int:
    """A round number of seconds for about TABLE_TIMES intervals."""
    least = max(seconds, 1.0) / TABLE_TIMES
    return next((s for s in (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600) if s >= least), max(int(least), 1))
