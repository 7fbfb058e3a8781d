"""Incidents of nodes, and events of Kubernetes (events.jsonl, runapi.KubernetesEvent)."""

import json

from ..data.gaps import Gaps
from ..data.run import EVENTS_FILE, Run
from ..figures.analysis import Analysis
from .charts import number
from .parts import Section, Text, table

# Most events that are kept while the file is read.
MAX_EVENTS = 20_000
_TITLE = "Incidents and Kubernetes events"


def section(analysis: Analysis, gaps: Gaps) -> Section:
    """Incidents, and Kubernetes' events with warnings first."""
    run = analysis.run
    incidents = []
    for i in (run.state or {}).get("incidents") or []:
        incidents.append((i["what"], i.get("node", ""), number(i.get("fromSeconds")), number(i.get("toSeconds")), i.get("reason", "")))
    parts: list = [Text("No incident was reported.")]
    if incidents:
        parts = [table("Incidents", ("What", "Node", "From (s)", "To (s)", "Why"), incidents, text=(0, 1, 4))]
    if not (run.directory / EVENTS_FILE).exists():
        parts.append(Text("Kubernetes' events of this run are not in the archive.", "note"))
        return Section("incidents", _TITLE, parts)
    events = _read(run, gaps)
    for warning, name in ((True, "Warnings of Kubernetes"), (False, "Other events of Kubernetes")):
        rows = [_row(run, event) for event in events if (event.get("type") == "Warning") == warning]
        if rows:
            header = ("Reason", "Last (s)", "Times", "Object", "Node", "Message")
            parts.append(table(name, header, rows, folded=not warning or len(rows) > 20, text=(0, 3, 4, 5)))
    return Section("incidents", _TITLE, parts)


def _read(run: Run, gaps: Gaps) -> list[dict]:
    """The last record of each event, in order of time. A repeated event is logged again with its count."""
    last: dict[str, dict] = {}
    bad = dropped = 0
    with (run.directory / EVENTS_FILE).open("rb") as file:
        for i, line in enumerate(file):
            try:
                event = json.loads(line)
            except ValueError:
                event = None
            if not isinstance(event, dict) or not isinstance(event.get("ts"), int):
                bad += 1
            elif len(last) < MAX_EVENTS or event.get("uid") in last:
                last[str(event.get("uid") or i)] = event
            else:
                dropped += 1
    if bad or dropped:
        reason = f"{bad} lines of {EVENTS_FILE} are no events; {dropped} after the first {MAX_EVENTS} events are not in the report"
        gaps.add("report: Kubernetes events", reason)
    return sorted(last.values(), key=lambda event: event["ts"])


def _row(run: Run, event: dict) -> tuple[str, ...]:
    thing = event.get("object")
    name = f"{thing.get('kind', '')} {thing.get('name', '')}".strip() if isinstance(thing, dict) else str(thing or "")
    texts = [str(event.get(field) or "") for field in ("node", "message")]
    count = event.get("count")
    return str(event.get("reason") or ""), number(run.since_t0(event["ts"])), number(count if isinstance(count, int) else 1), name, *texts
