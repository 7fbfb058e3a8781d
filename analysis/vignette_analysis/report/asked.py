"""Requests: counts, response times, failures by reason, retransmissions."""

import polars as pl

from ..data.requests import by_retransmissions, without_receipt
from ..figures import statistics, summary
from ..figures.analysis import Analysis
from ..figures.deliveries import KINDS, publishers_by_group
from . import charts
from .charts import fixed, number, share
from .delays import Measure, box, boxes
from .parts import Chart, Section, Table, Text, table

_RESPONSE = Measure("response time", "response times", "Receipts")
_COUNTS = ("triggered", "sent", "receipts")
_HEADER = ("Requests", "Sent", "Receipts", "Receipts (%)", "Failed", "Outstanding", "Retrans\u00admissions")
_TIMES = ("Min (s)", "Median (s)", "Mean (s)", "95 % (s)", "Max (s)")
_SHOWN = ("min", "median", "mean", "p95", "max")
# Most rows of publishers that are shown unfolded.
MAX_ROWS = 12
_NOTE = (
    "A request is a message whose sender waits for a response, the receipt. Response time: receipt minus sent. "
    "Outstanding: neither a receipt nor a failure at the end of the drain. requests.csv has every request."
)


def section(analysis: Analysis) -> Section | None:
    """Tables and charts of requests; none where there are none."""
    if analysis.requests.is_empty():
        return None
    results = analysis.results
    named = [(entry["name"], entry["requests"]) for entry in results["groups"] if "requests" in entry]
    named += [(summary.pair(entry), entry["requests"]) for entry in summary.pairs(results) if "requests" in entry]
    senders = [(entry["name"], entry["requests"]) for entry in results["publishers"] or [] if "requests" in entry]
    places = summary.places((entry for _, entry in named + senders), "responseSeconds")
    parts: list = [_table("Requests by group and pair of groups", "Group", named, places)]
    parts.append(_table("Requests by publisher", "Publisher", senders, places, folded=len(senders) > MAX_ROWS))
    parts.append(_confidence(named + senders, places))
    return Section("requests", "Requests", [*parts, *_response_times(analysis), *_outcomes(analysis.requests), Text(_NOTE, "note")])


def _table(title: str, what: str, entries: list[tuple[str, dict]], places: int, folded: bool = False) -> Table:
    rows = []
    for name, entry in entries:
        times = entry["responseSeconds"] or {}
        cells = [*(number(entry[c]) for c in _COUNTS), share(entry["receiptPercent"]), number(sum((entry["failed"] or {}).values()))]
        cells += [number(entry["outstanding"]), number(entry["retransmissions"]), *(fixed(times.get(q), places) for q in _SHOWN)]
        rows.append((name, *cells))
    return table(title, (what, *_HEADER, *_TIMES), rows, folded)


def _confidence(entries: list[tuple[str, dict]], places: int) -> Table:
    rows = []
    for name, entry in entries:
        known = entry["confidence"]
        times = [fixed((known[which] or {}).get(end), places) for which in ("medianSeconds", "meanSeconds") for end in ("low", "high")]
        rows.append((name, *times, *(share((known["receiptPercent"] or {}).get(end)) for end in ("low", "high"))))
    header = ("Group or publisher", "Median from (s)", "to (s)", "Mean from (s)", "to (s)", "Receipts from (%)", "to (%)")
    return table(f"Intervals of {number(100 * statistics.LEVEL)} % confidence", header, rows, folded=True)


def _response_times(analysis: Analysis) -> list[Chart]:
    """Boxes by group and by publisher; nothing without receipts."""
    answered = analysis.requests.filter(pl.col("receipt").is_not_null()).with_columns(delay=(pl.col("receipt") - pl.col("sent")) / 1e9)
    if answered.is_empty():
        return []
    groups = {"all": answered} | {kind: answered.filter(kind) for kind in KINDS}
    for name, numbers in publishers_by_group(analysis.run, set(answered["publisher"].unique())).items():
        groups[name] = answered.filter(pl.col("publisher").is_in(numbers))
    by_group = [{"name": name} | part.select(box()).row(0, named=True) for name, part in groups.items() if part.height]
    found = {row["publisher"]: row for row in answered.group_by("publisher").agg(box()).to_dicts()}
    by_publisher = [{"name": i.name} | found[i.number] for i in analysis.run.instances if i.number in found]
    return [boxes("group", by_group, _RESPONSE), boxes("publisher", by_publisher, _RESPONSE)]


def _outcomes(requests: pl.DataFrame) -> list[Chart]:
    """Bars of the requests without a receipt by reason, and of those that were sent by their retransmissions."""
    made = []
    if reasons := without_receipt(requests):
        caption = "Share of all requests, and their number. Lines: intervals (Wilson)."
        made.append(_bars("Requests without a receipt, by reason", "Reason", reasons, requests.height, caption))
    sent = requests.filter(pl.col("sent").is_not_null())
    if sent["retransmissions"].sum():
        caption = "Share of the requests that were sent, by how often the protocol sent one, or a block of it, again. Lines: intervals (Wilson)."
        made.append(_bars("Retransmissions of a request", "Retransmissions", by_retransmissions(sent), sent.height, caption))
    return made


def _bars(title: str, what: str, counts: list[tuple[str, int]], total: int, caption: str) -> Chart:
    rows = []
    for name, count in counts:
        low, high = statistics.wilson_interval(count, total)
        text = f"{share(100 * count / total)}\u00a0% ({number(count)})"
        rows.append({"name": name, "value": 100 * count / total, "text": text, "low": 100 * low, "high": 100 * high})
    figures = table(
        "Figures",
        (what, "Requests", "Share (%)"),
        [(r["name"], number(c), share(r["value"])) for r, (_, c) in zip(rows, counts, strict=True)],
        True,
    )
    alt = f"{title}: bars of {len(rows)} shares in percent; the greatest is {share(max(r['value'] for r in rows))} %."
    return Chart(title, charts.bars(rows, "requests (%)", alt), caption, table=figures)
