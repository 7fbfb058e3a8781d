"""Says why a line of a message log is no record."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import safe

# In 2001. A lesser time is in seconds, milliseconds or microseconds.
LEAST_TS = 10**18
_UNITS = {10**9: "seconds", 10**6: "milliseconds", 10**3: "microseconds"}
_WANT_TS = "want nanoseconds since 1970, an integer"
# Only so many lines are searched for the first bad one: reading lines one by one is slow.
_SEARCHED = 100_000


@dataclass(frozen=True)
class Unusable:
    """A message log of which no line counts."""

    path: str
    node: str
    app: str
    # 0: all lines were refused before they came to the log.
    lines: int
    # What is wrong with the first one.
    why: str


def first(path: Path, statuses: Sequence[str]) -> str:
    """Say what is wrong with a log's first line that is no record; an empty text if none is found."""
    with path.open("rb") as file:
        return next((f"line {n}: {why}" for n, line in enumerate(itertools.islice(file, _SEARCHED), 1) if (why := reason(line, statuses))), "")


def reason(line: bytes, statuses: Sequence[str]) -> str:
    """Say which field has which value, and what is right; an empty text for a record."""
    if not line.strip():
        return ""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        return f"{_shown(line.decode(errors='replace').strip())} is no JSON object"
    lacking = next((name for name in ("ts", "instance", "status", "id") if record.get(name) in (None, "")), "")
    if lacking:
        return f"it has no {lacking}"
    if wrong := _time(record["ts"]):
        return wrong
    if record["status"] not in statuses:
        return f"status {_shown(record['status'])} is unknown, want one of {', '.join(statuses)}"
    if type(record.get("bytes")) not in (int, type(None)):
        return f"bytes {_shown(record['bytes'])} is no integer"
    if not _is_position(record.get("position")):
        return f"position {_shown(record['position'])} is no list of numbers, want latitude, longitude, altitude"
    return ""


def _time(ts: object) -> str:
    if type(ts) is not int:
        return f"ts {_shown(ts)} is no integer, {_WANT_TS}"
    if ts >= 2**63:
        return f"ts {_shown(ts)} is too large, {_WANT_TS}"
    if ts >= LEAST_TS:
        return ""
    unit = next((name for factor, name in _UNITS.items() if LEAST_TS <= ts * factor < 10 * LEAST_TS), "")
    return f"ts {ts} is {f'in {unit}' if unit else 'before 2001'}, {_WANT_TS}"


def _is_position(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(type(part) in (int, float, type(None)) for part in value))


def _shown(value: object) -> str:
    return safe.bounded(json.dumps(value))
