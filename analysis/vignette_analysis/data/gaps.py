"""Gaps: what is missing from the results, and why. Warnings and notes have the same form."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import safe

# Gaps of runapi.RadioGap, and incidents of the operator, in which there was no emulation at all, not a late one.
OUTAGES = ("radiodRestarted", "attachmentLost", "RadioTrouble", "RadioSilenced")
# Most nodes that an entry names.
MAX_NAMED = 10


@dataclass
class Gaps:
    """Collects gaps, warnings and notes, each in the order of discovery. Times are seconds after T0."""

    found: list[dict] = field(default_factory=list)
    # What a reader must know first, such as a client that never connected.
    warnings: list[dict] = field(default_factory=list)
    # Not asked for, or not measurable here. No result lacks anything by it.
    notes: list[dict] = field(default_factory=list)

    def add(self, what: str, reason: str, node: str = "", start: float | None = None, end: float | None = None) -> None:
        """Add one gap, in the form of runapi.Gap."""
        self.found.append(_entry(what, reason, node, start, end))

    def warn(self, what: str, reason: str, node: str = "", start: float | None = None) -> None:
        """Add one warning."""
        self.warnings.append(_entry(what, reason, node, start))

    def note(self, what: str, reason: str, node: str = "", start: float | None = None, end: float | None = None) -> None:
        """Add one note."""
        self.notes.append(_entry(what, reason, node, start, end))

    def bad_lines(self, name: str, bad: int, node: str, first: str = "") -> None:
        """Add a log's lines that are no records. first says what is wrong with the first one."""
        if bad:
            self.add(f"log {name}", f"{bad} lines are no records{f'; {first}' if first else ''}", node)


def _entry(what: str, reason: str, node: str, start: float | None = None, end: float | None = None) -> dict:
    entry: dict = {"what": safe.bounded(what)}
    if node:
        entry["node"] = node
    if start is not None:
        entry["fromSeconds"] = start
    if end is not None:
        entry["toSeconds"] = end
    return entry | {"reason": safe.bounded(reason, safe.MOST_MESSAGE)}


def merged(entries: list[dict]) -> list[dict] | None:
    """Merge entries that say the same about several nodes at the same time. None of none."""
    alike: dict[tuple, list[dict]] = {}
    for entry in entries:
        times = entry.get("fromSeconds"), entry.get("toSeconds")
        own = "" if entry.get("node") else object()  # an entry without a node is not merged
        alike.setdefault((own, *times, _anywhere(entry, "what"), _anywhere(entry, "reason")), []).append(entry)
    return [some[0] if len(some) == 1 else _together(some) for some in alike.values()] or None


def _anywhere(entry: dict, key: str) -> str:
    """The text with an asterisk in place of the entry's node."""
    node = entry.get("node")
    return re.sub(rf"(?<![\w-]){re.escape(node)}(?![\w-])", "*", entry[key]) if node else entry[key]


def listed(names: Sequence[str], most: int = MAX_NAMED) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _together(some: list[dict]) -> dict:
    nodes = list(dict.fromkeys(entry["node"] for entry in some))
    reason = f"{_anywhere(some[0], 'reason')} ({len(nodes)} nodes: {listed(nodes)})"
    return _entry(_anywhere(some[0], "what"), reason, "", some[0].get("fromSeconds"), some[0].get("toSeconds"))
