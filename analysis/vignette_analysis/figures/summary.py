"""The figures of a run as rows of text for every form of table: LaTeX, CSV, HTML."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import takewhile

from ..data.radiolog import DROPS
from .picture import FIGURES
from .verdict import off_by
from .verdict import sentence as verdict_sentence


def group(results: dict) -> dict:
    """The headline group."""
    name = results.get("headline", "all")
    everything = {"name": "all", "messages": results["messages"], "delaySeconds": results["delaySeconds"]}
    return next((entry for entry in results["groups"] or [] if entry["name"] == name), everything)


def sentence(entry: dict) -> str:
    """A sentence on a group's deliveries."""
    counts = entry["messages"]
    if not counts["offered"]:
        return "no delivery was offered"
    of = "offered deliveries between nodes" if entry["name"] == "radio" else "offered deliveries"
    delivered = share(counts["received"], counts["offered"])
    return (
        f"{counts['received']} of {counts['offered']} {of} arrived ({delivered} %): "
        f"{counts['lost']} lost on the way, {counts['offered'] - counts['expected']} never sent"
    )


def share(part: int, whole: int) -> str:
    """A share in percent, without needless zeros."""
    return short(100 * part / whole)


def percent(value: float | None) -> str:
    """A share of so many percent that is never rounded to 0 or 100 % unless it is exactly that; an empty text for None."""
    return "" if value is None else f"{min(max(value, 0.01 if value > 0 else 0), 99.99 if value < 100 else 100):.2f}"


def short(value: float) -> str:
    """A share of so many percent, without needless zeros."""
    return percent(value).rstrip("0").rstrip(".")


def shorten(name: str, length: int) -> str:
    """A name cut in its middle to this length, as names differ at their ends."""
    return name if len(name) <= length else f"{name[: length // 2]}\u2026{name[len(name) - (length - 1) // 2 :]}"


def apart(names: Sequence[str], length: int) -> list[str]:
    """Names cut to this length. Of names that the cut would make the same, it takes what all of them begin and end with."""
    alike = defaultdict(list)
    for name in dict.fromkeys(names):
        alike[shorten(name, length)].append(name)
    shown = {name: text for some in alike.values() for name, text in zip(some, _differing(some, length), strict=True)}
    return [shown[name] for name in names]


def _differing(names: Sequence[str], length: int) -> list[str]:
    longest, head, tail = max(map(len, names)), _alike(names), _alike([name[::-1] for name in names])
    if longest > length and min(map(len, names)) > head + tail:
        # Of what all begin with the end stays, as far as there is room.
        head = min(head, max(longest - tail + 2 - length, 0))
        names = ["\u2026" * (head > 0) + name[head : len(name) - tail] + "\u2026" * (tail > 0) for name in names]
    return [shorten(name, length) for name in names]


def _alike(names: Sequence[str]) -> int:
    """How many characters all begin with."""
    return sum(1 for _ in takewhile(lambda some: len(set(some)) == 1, zip(*names, strict=False)))


def warned(results: dict) -> list[str]:
    """All warnings, one in each line."""
    return [f"{entry['what']}: {entry['reason']}" for entry in results.get("warnings") or []]


# Names of figures.QUANTILES in tables.
NAMES = {
    "min": "least",
    "p25": "lower quartile",
    "median": "median",
    "mean": "mean",
    "p75": "upper quartile",
    "p95": "95th percentile",
    "max": "greatest",
}
_OFF = {"median": "median (s)", "p95": "95th percentile (s)", "delivered": "received of offered (points)"}


def headline(results: dict) -> list[tuple[str, str]]:
    """The headline figures as rows of text: name with unit, value (empty if there is none)."""
    entry = group(results)
    counts, delay = entry["messages"], entry["delaySeconds"] or {}
    confidence = entry.get("confidence") or {}
    rows = [
        ("Experiment", results["experiment"]),
        ("Duration (s)", f"{results['durationSeconds']:.1f}"),
        ("Emulation", verdict_sentence(results.get("verdict"), entry)),
        ("Group", entry["name"]),
        ("Messages triggered", str(counts["triggered"])),
        ("Messages sent", str(counts["sent"])),
        ("Deliveries offered", str(counts["offered"])),
        ("Deliveries received", str(counts["received"])),
        ("Deliveries received of offered (%)", percent(counts.get("deliveredPercent")) + _share_interval(confidence.get("deliveredPercent"))),
        ("Deliveries lost on the way", str(counts["lost"])),
        ("Deliveries never sent", str(counts["offered"] - counts["expected"])),
        ("Duplicates", str(counts["duplicates"])),
    ]
    rows += _times("Delay", delay, confidence)
    rows += [(f"Message on the wire, {name}, median (bytes)", text) for name, text in sizes(results)]
    rows += _headline_requests(entry.get("requests"))
    off = off_by(entry)
    digits = decimals(off.get(name) for name in ("median", "p95"))
    rows += [(f"Off by at most, {what}", number(off[key], 3 if key == "delivered" else digits)) for key, what in _OFF.items() if key in off]
    rows += [("Warning", text) for text in warned(results)]
    rows.append(("Gaps in the results", str(len(results["gaps"] or []))))
    if confidence.get("level"):
        rows.append(("Level of the intervals (%)", f"{confidence['level'] * 100:g}"))
    return rows


def sizes(results: dict) -> list[tuple[str, str]]:
    """Each protocol's name and the median size of its messages on the wire, in bytes."""
    return [(entry["protocol"], f"{entry['medianBytes']:g}") for entry in results.get("messageSizes") or []]


def _headline_requests(entry: dict | None) -> list[tuple[str, str]]:
    if not entry:
        return []
    response, confidence = entry["responseSeconds"] or {}, entry["confidence"]
    rows = [
        ("Requests", str(entry["triggered"])),
        ("Receipts of requests (%)", percent(entry["receiptPercent"]) + _share_interval(confidence["receiptPercent"])),
        ("Failed requests", failed(entry)),
        ("Outstanding requests", str(entry["outstanding"])),
        ("Retransmissions of requests", number(entry["retransmissions"], 0)),
    ]
    return rows + _times("Response time", response, confidence)


def _times(what: str, times: dict, confidence: dict) -> list[tuple[str, str]]:
    """A row for each quantile, and the mean, with its interval of confidence."""
    digits = decimals(times.values())
    return [(f"{what}, {name} (s)", number(times.get(q), digits) + _interval(confidence.get(f"{q}Seconds"), digits)) for q, name in NAMES.items()]


def decimals(times: Iterable[float | None]) -> int:
    """Decimals of a table of times in seconds: 6 if some are below 10 ms, which 4 would leave two digits of."""
    return 6 if any(0 < abs(time) < 0.010 for time in times if time is not None) else 4


def places(entries: Iterable[dict], figure: str = "delaySeconds") -> int:
    """Decimals of a table of the times of these entries."""
    return decimals(time for entry in entries for time in (entry[figure] or {}).values())


def number(value: float | None, decimals: int) -> str:
    """A number with this many decimals; an empty text for None."""
    return "" if value is None else f"{value:.{decimals}f}"


def delay(entry: dict, figure: str, decimals: int) -> str:
    """A figure of the delays of a group or publisher, the mean with its interval of confidence; an empty text if there is none."""
    interval = (entry.get("confidence") or {}).get("meanSeconds") if figure == "mean" else None
    return number((entry["delaySeconds"] or {}).get(figure), decimals) + _interval(interval, decimals)


def pairs(results: dict) -> list[dict]:
    """Pairs of groups with offered deliveries; none if there is only one, as it says what the groups say."""
    found = [entry for entry in results.get("pairs") or [] if entry["messages"]["offered"]]
    return found if len(found) > 1 else []


def pair(entry: dict) -> str:
    """The name of a pair of groups."""
    return f"{entry['from']} to {entry['to']}"


def requests(results: dict) -> list[tuple[str, dict]]:
    """The figures of requests by group, pair of groups and publisher, each with its name."""
    named = [(entry["name"], entry) for entry in results["groups"] or []]
    named += [(pair(entry), entry) for entry in pairs(results)]
    named += [(entry["name"], entry) for entry in results["publishers"] or []]
    return [(name, entry["requests"]) for name, entry in named if "requests" in entry]


REQUEST_HEADER = ("requests", "sent", "receipts", "receipts %", "failed", "outstanding", "retrans.", "min", "median", "mean [95 %]", "p95", "max")


def request_rows(results: dict) -> list[list[str]]:
    """Name and the figures under REQUEST_HEADER of each entry of requests."""
    named = requests(results)
    digits = places((entry for _, entry in named), "responseSeconds")
    return [[name, *request_cells(entry, digits)] for name, entry in named]


def request_cells(entry: dict, digits: int) -> list[str]:
    """The figures of requests under REQUEST_HEADER, times with so many decimals."""
    response, interval = entry["responseSeconds"] or {}, entry["confidence"]["meanSeconds"]
    counts = [entry["triggered"], entry["sent"], entry["receipts"], share(entry["receipts"], entry["triggered"]), failed(entry)]
    times = [number(response.get(q), digits) + (_interval(interval, digits) if q == "mean" else "") for q in ("min", "median", "mean", "p95", "max")]
    again = number(entry["retransmissions"], 0)
    return [*map(str, [*counts, entry["outstanding"]]), *(text or "-" for text in (again, *times))]


PICTURE_HEADER = (
    "pairs",
    "known %",
    *(f"error {q}" for q in FIGURES),
    *(f"age {q}" for q in FIGURES),
)


def picture(results: dict) -> list[tuple[str, ...]]:
    """Name and the figures under PICTURE_HEADER of each group of reported nodes."""
    return [(entry["name"], *picture_cells(entry)) for entry in results["picture"]["groups"]]


def picture_cells(entry: dict) -> list[str]:
    """The figures of a group under PICTURE_HEADER."""
    figures = [(entry[name] or {}).get(q) for name in ("errorMetres", "ageSeconds") for q in FIGURES]
    return [str(entry["pairs"]), percent(entry["knownPercent"]), *("-" if value is None else f"{value:.1f}" for value in figures)]


def failed(entry: dict) -> str:
    """The number of failed requests, with their reasons."""
    return _by_reason(entry["failed"])


def _by_reason(counts: dict[str, int] | None) -> str:
    counts = counts or {}
    named = f" ({', '.join(f'{count} {reason}' for reason, count in counts.items())})" if counts else ""
    return f"{sum(counts.values())}{named}"


def _interval(bounds: dict | None, decimals: int) -> str:
    return f" [{bounds['low']:.{decimals}f}, {bounds['high']:.{decimals}f}]" if bounds else ""


def _share_interval(bounds: dict | None) -> str:
    return f" [{percent(bounds['low'])}, {percent(bounds['high'])}]" if bounds else ""


# Figures of a network's results: the name in tables, and the path.
_NETWORK = {
    "bytesPerSecond": ("bytesPerSecond",),
    "routingBytesPerSecond": ("routingBytesPerSecond",),
    **{f"{layer}BytesPerSecond": ("byLayer", layer) for layer in ("ethernet", "ip", "transport", "application")},
    **{f"tcp{key[0].upper()}{key[1:]}": ("tcp", key) for key in ("retransmissions", "spurious", "duplicateAcks")},
}
NETWORK_FIGURES = tuple(_NETWORK)
_DROPPED = {f"dropped{reason[0].upper()}{reason[1:]}": reason for reason in DROPS}
# Counts of a network's frames; those dropped by reason.
FRAME_COUNTS = ("framesSent", "framesReceived", *_DROPPED)


def networks(results: dict) -> list[dict[str, str | float | None]]:
    """Each network's name, NETWORK_FIGURES (bytes per second, counts of TCP) and FRAME_COUNTS; None if not measured."""
    return [
        {"name": entry["name"]} | {name: _at(entry, path) for name, path in _NETWORK.items()} | _frames(entry.get("frames"))
        for entry in results["networks"] or []
    ]


def _frames(frames: dict | None) -> dict[str, int | None]:
    if frames is None:
        return dict.fromkeys(FRAME_COUNTS)
    drops = frames["drops"] or {}
    return {"framesSent": frames["sent"], "framesReceived": frames["received"]} | {name: drops.get(reason, 0) for name, reason in _DROPPED.items()}


def dropped(frames: dict) -> str:
    """The number of dropped frames, with the reasons."""
    return _by_reason(frames["drops"])


def _at(entry: dict, path: tuple[str, ...]) -> float | None:
    for key in path[:-1]:
        entry = entry.get(key) or {}
    return entry.get(path[-1])
