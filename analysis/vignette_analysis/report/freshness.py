"""How fresh a subscriber's messages were: stages of the delay, loss periods, age of information."""

import polars as pl

from ..figures import summary
from ..figures.analysis import Analysis
from ..figures.deliveries import QUANTILES
from .charts import fixed, number
from .parts import Section, Table, Text, table

# Most pairs of publisher and subscriber in a table: the worst ones.
MAX_PAIRS = 50

_STAGES = {
    "triggeredToSent": "triggered \u2192 sent",
    "sentToReceived": "sent \u2192 received",
    "receivedToProcessed": "received \u2192 processed",
    "triggeredToProcessed": "triggered \u2192 processed",
}
_QUANTILES = tuple(f"{q}Seconds" for q in QUANTILES)
_PAIR = ("Publisher", "Subscriber")


def section(analysis: Analysis) -> Section | None:
    """Tables of stages, loss periods and age; none without data."""
    parts = [part for part in (_stages(analysis), _outages(analysis), _age(analysis)) if part]
    if not parts:
        return None
    note = f"Of many pairs the {MAX_PAIRS} that fared worst; stages.csv, sequences.csv and age.csv have all. Age of information: how long ago the "
    note += "freshest message that has arrived was sent, from the first one to the end of the measurement."
    return Section("freshness", "Stages, loss periods and age of information", [*parts, Text(note, "note")])


def _stages(analysis: Analysis) -> Table | None:
    rows = analysis.stages.filter((pl.col("scope").cast(pl.String) == "all") & (pl.col("count") > 0)).to_dicts()
    if not rows:
        return None
    shown = [q for q in _QUANTILES if q in rows[0]]  # older tables have fewer
    digits = summary.decimals(row[q] for row in rows for q in shown)
    cells = [(_STAGES[str(row["stage"])], number(row["count"]), *(fixed(row.get(q), digits) for q in _QUANTILES)) for row in rows]
    header = ("Stage", "Count", "Min (s)", "Lower quartile", "Median (s)", "Mean (s)", "Upper quartile", "95 % (s)", "Max (s)")
    return table("Stages of the delay, of all deliveries", header, cells)


def _outages(analysis: Analysis) -> Table | None:
    longest = analysis.sequences.filter("longest")
    if longest.is_empty():
        return None
    worst = longest.sort("messages", "fromSeconds", "publisher", "subscriber", descending=[True, False, False, False]).head(MAX_PAIRS)
    rows = [
        (
            str(r["publisher"]),
            str(r["subscriber"]),
            number(r["messages"]),
            fixed(r["fromSeconds"], 1),
            fixed(r["toSeconds"], 1),
            number(r["outageSeconds"]),
        )
        for r in worst.to_dicts()
    ]
    header = (*_PAIR, "Lost in a row", "From (s)", "To (s)", "Until the next arrived (s)")
    return table("Longest loss period of each pair", header, rows, folded=True, text=(0, 1))


def _age(analysis: Analysis) -> Table | None:
    known = analysis.age.filter(pl.col("meanSeconds").is_not_null())
    if known.is_empty():
        return None
    worst = known.sort("meanSeconds", "publisher", "subscriber", descending=[True, False, False]).head(MAX_PAIRS)
    ages = ("meanSeconds", "peakMeanSeconds", "maxSeconds")
    rows = [(str(r["publisher"]), str(r["subscriber"]), number(r["updates"]), *(number(r[c]) for c in ages)) for r in worst.to_dicts()]
    header = (*_PAIR, "Updates", "Mean age (s)", "Mean peak (s)", "Greatest (s)")
    return table("Age of information", header, rows, folded=True, text=(0, 1))
