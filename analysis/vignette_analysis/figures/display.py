"""An analysis as a notebook shows it."""

from html import escape

from . import summary
from .deliveries import QUANTILES

# Most groups that are shown.
MAX_GROUPS = 30
_COUNTS = {
    "triggered": "triggered",
    "sent": "sent",
    "offered": "offered",
    "received": "received",
    "deliveredPercent": "received (%)",
    "lost": "lost",
    "duplicates": "duplicates",
}


def html(results: dict) -> str:
    """Headline figures and groups as HTML tables. All text from a run is escaped."""
    groups = results["groups"] or []
    header = ("group", *_COUNTS.values(), *(f"{q} delay (s)" for q in QUANTILES))
    more = f"<p>{len(groups) - MAX_GROUPS} more groups are in results['groups'].</p>" if len(groups) > MAX_GROUPS else ""
    digits = summary.places(groups)
    return _table(("figure", "value"), summary.headline(results)) + _table(header, [_group(entry, digits) for entry in groups[:MAX_GROUPS]]) + more


def _group(entry: dict, digits: int) -> tuple[str, ...]:
    counts = entry["messages"]
    cells = (summary.percent(counts.get(c)) if c == "deliveredPercent" else str(counts[c]) for c in _COUNTS)
    return (entry["name"], *cells, *(summary.delay(entry, q, digits) for q in QUANTILES))


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
