"""The tables of the published studies."""

from ..figures import summary
from ..figures.analysis import Analysis
from ..figures.deliveries import QUANTILES
from .charts import fixed, number, share
from .parts import Section, Table, Text, table

_COUNTS = {
    "triggered": "Trig\u00adgered",
    "sent": "Sent",
    "offered": "Offered",
    "received": "Received",
    "deliveredPercent": "Received (%)",
    "lost": "Lost on the way",
    "unsent": "Never sent",
    "duplicates": "Dupli\u00adcates",
}
_DELAYS = ("Min (s)", "Lower quartile", "Median (s)", "Mean (s)", "Upper quartile", "95 % (s)", "Max (s)")
_NOTE = (
    "Delay: received minus sent. A delivery is offered to each other instance that subscribes, once for every message that was triggered. "
    "radio: between nodes; local: within a node; cross: between groups of nodes; others: by the publisher's group."
)


def section(analysis: Analysis) -> Section:
    """Counts and delays by group and by publisher, with intervals of confidence."""
    results = analysis.results
    every = [entry for name in ("groups", "pairs", "publishers") for entry in results.get(name) or []]
    places = summary.places(every)
    groups, publishers = ([_row(entry, places) for entry in results[name] or []] for name in ("groups", "publishers"))
    parts: list = [table("Deliveries by group", ("Group", *_COUNTS.values(), *_DELAYS), groups)]
    if pairs := summary.pairs(results):
        rows = [_row(entry | {"name": summary.pair(entry)}, places) for entry in pairs]
        parts.append(table("Deliveries by groups of sender and receiver", ("From and to", *_COUNTS.values(), *_DELAYS), rows, folded=len(pairs) > 12))
    if publishers:
        parts.append(table("Deliveries by publisher", ("Publisher", *_COUNTS.values(), *_DELAYS), publishers, folded=len(publishers) > 12))
    levels = [entry["confidence"]["level"] for entry in results["groups"] or [] if entry.get("confidence")]
    if levels:
        parts.append(_confidence(results, levels[0], places))
    return Section("figures", "Figures", [*parts, Text(_NOTE, "note")])


def _row(entry: dict, places: int) -> tuple[str, ...]:
    counts, delay = entry["messages"], entry["delaySeconds"] or {}
    cells = {name: number(count) for name, count in counts.items()}
    cells |= {"deliveredPercent": share(counts.get("deliveredPercent")), "unsent": number(counts["offered"] - counts["expected"])}
    return entry["name"], *(cells[c] for c in _COUNTS), *(fixed(delay.get(q), places) for q in QUANTILES)


def _confidence(results: dict, level: float, places: int) -> Table:
    rows = []
    pairs = [entry | {"name": summary.pair(entry)} for entry in summary.pairs(results)]
    for entry in [*results["groups"], *pairs, *(results["publishers"] or [])]:
        known = entry.get("confidence") or {}
        times = [fixed((known.get(name) or {}).get(end), places) for name in ("medianSeconds", "meanSeconds") for end in ("low", "high")]
        rows.append((entry["name"], *times, *(share((known.get("deliveredPercent") or {}).get(end)) for end in ("low", "high"))))
    header = ("Group or publisher", "Median from (s)", "to (s)", "Mean from (s)", "to (s)", "Received from (%)", "to (%)")
    return table(f"Intervals of {number(100 * level)} % confidence", header, rows, folded=True)
