"""How long bursts took, by protocols."""

from ..figures import bursts
from ..figures.analysis import Analysis
from .parts import Section, Text, table


def section(analysis: Analysis) -> Section | None:
    """The matrix of times; none if no publisher waited for its connection."""
    entries = analysis.results.get("bursts")
    if not entries:
        return None
    header, rows = bursts.matrix(entries)
    note = "From the start of the publisher, its connecting included, to the arrival of its last message. Where messages are missing, how many came. "
    note += "Of several bursts of the same protocols the mean; bursts.csv has each."
    parts = [table("Seconds, by protocols of publisher (rows) and subscriber (columns)", header, rows), Text(note, "note")]
    return Section("bursts", "Times of bursts", parts)
