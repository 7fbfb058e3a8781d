"""The report's plain words: the verdict, the headline, times, changes, events."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from ..data.gaps import OUTAGES
from ..figures import summary
from ..figures.verdict import off_by, off_text, reasons
from .charts import number

# Most warnings in the banner.
MAX_WARNINGS = 5


@dataclass(frozen=True)
class Banner:
    """The verdict: kind is good, bad or unknown. The symbol says the same without colour."""

    kind: str
    symbol: str
    title: str
    text: str


def banner(results: dict) -> Banner:
    """A sentence on whether everything worked, and whether the emulation kept up."""
    found = _emulation(results)
    entry, warnings = summary.group(results), summary.warned(results)
    counts = entry["messages"]
    if counts["offered"] and not counts["received"]:
        title = "Nothing arrived"
    elif warnings:
        title = "Something did not work"
    else:
        return found
    said = ". ".join([*warnings[:MAX_WARNINGS], *([f"{len(warnings) - MAX_WARNINGS} more warnings"] if len(warnings) > MAX_WARNINGS else [])])
    sentence = summary.sentence(entry)
    text = f"{sentence[0].upper()}{sentence[1:]}. {said}{'. ' if said else ''}{found.title}."
    return Banner("bad", "!", title, text)


def _emulation(results: dict) -> Banner:
    """Whether the emulation kept up."""
    verdict = results.get("verdict")
    interrupted = sum(gap["what"] in OUTAGES for gap in results["gaps"] or [])
    outage = ""
    if interrupted:
        outage = f" Radios were interrupted {times(interrupted)}: no frame was carried then, and the judgement is of the time outside."
    if verdict is None:
        text = "What there is to judge by is missing: see \u201cWhat is missing\u201d."
        return Banner("unknown", "?", "Whether the emulation kept up is not known", text + outage)
    if verdict["keptUp"]:
        off = off_by(summary.group(results))
        text = f"Because of lateness the figures are off by at most {off_text(off)}." if any(off.values()) else "Lateness changed no figure."
        return Banner("bad" if interrupted else "good", "!" if interrupted else "\u2713", "The emulation kept up", text + outage)
    text = f"{'. '.join(reason[0].upper() + reason[1:] for reason in reasons(verdict))}."
    if verdict["late"]:
        worst = max(verdict["late"], key=lambda entry: entry["worstSeconds"])
        where = f"{worst['node'] or 'a host'} from {number(worst['fromSeconds'])} to {number(worst['toSeconds'])} s: {worst['what']}"
        size = f", by {seconds(worst['worstSeconds'])}" if worst["worstSeconds"] else ""
        text += f" The worst was {where}{size}."
    return Banner("bad", "!", "The emulation did not keep up", text + outage)


def times(count: int) -> str:
    """A count in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def headline(results: dict) -> list[tuple[str, str, str]]:
    """The run's main figures: name, value, meaning."""
    entry = summary.group(results)
    messages, delay, confidence = entry["messages"], entry["delaySeconds"] or {}, entry.get("confidence") or {}
    offered, unsent = messages["offered"], messages["offered"] - messages["expected"]
    delivered = f"{summary.share(messages['received'], offered)}\u00a0%" if offered else "\u2013"
    missed = f"{number(messages['received'])} of {number(offered)} offered"
    missed += f", {number(messages['lost'])} lost on the way, {number(unsent)} never sent"
    where = " between nodes" if entry["name"] == "radio" else ""
    quartiles = f"quartiles {seconds(delay.get('p25'))} and {seconds(delay.get('p75'))}"
    return [
        ("Messages triggered", number(messages["triggered"]), f"{number(messages['sent'])} sent"),
        (f"Delivered{where}", delivered, missed + interval(confidence, "deliveredPercent", percent)),
        ("Median delay", seconds(delay.get("median")), quartiles + interval(confidence, "medianSeconds", seconds)),
        ("Mean delay", seconds(delay.get("mean")), interval(confidence, "meanSeconds", seconds).removeprefix("; ")),
        ("Greatest delay", seconds(delay.get("max")), f"least {seconds(delay.get('min'))}"),
        *_sizes(results.get("messageSizes") or []),
        *_requests(entry.get("requests")),
    ]


def _sizes(sizes: list[dict]) -> list[tuple[str, str, str]]:
    """The median size of messages on the wire by protocol; nothing without captures."""
    return [
        (f"Message on the wire, {size['protocol']}", f"{number(size['medianBytes'])}\u00a0bytes", f"median of {number(size['messages'])}")
        for size in sizes
    ]


def _requests(entry: dict | None) -> list[tuple[str, str, str]]:
    """Receipts and the mean response time; nothing without requests."""
    if entry is None:
        return []
    confidence, mean = entry["confidence"], (entry["responseSeconds"] or {}).get("mean")
    about = f"{number(entry['receipts'])} of {number(entry['triggered'])} requests; {summary.failed(entry)} failed"
    about += f", {number(entry['outstanding'])} outstanding"
    return [
        (
            "Requests with a receipt",
            f"{summary.share(entry['receipts'], entry['triggered'])}\u00a0%",
            about + interval(confidence, "receiptPercent", percent),
        ),
        ("Mean response time", seconds(mean), interval(confidence, "meanSeconds", seconds).removeprefix("; ")),
    ]


def percent(value: float) -> str:
    """A share for people."""
    return f"{summary.short(value)}\u00a0%"


def interval(confidence: dict, name: str, text: Callable[[float], str]) -> str:
    """A confidence interval; empty if there is none."""
    bounds = confidence.get(name)
    if not bounds:
        return ""
    level = number(100 * confidence.get("level", 0.95))
    return f"; {level}\u00a0% interval {text(bounds['low'])} to {text(bounds['high'])}"


def seconds(value: float | None) -> str:
    """A duration with its unit."""
    return "\u2013" if value is None else f"{number(value)}\u00a0s" if abs(value) >= 1 or value == 0 else f"{number(value * 1000)}\u00a0ms"


def clock(ts: int | None) -> str:
    """A time of day in UTC."""
    if ts is None:
        return "\u2013"
    try:
        return datetime.fromtimestamp(ts // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "\u2013"


def changes(live: dict) -> str:
    """What a LiveChange changed."""
    return "; ".join(change(entry) for entry in live.get("changes") or [])


def change(entry: dict) -> str:
    """One change of a network (v1alpha1.RadioChange)."""
    between = f" from {entry.get('from', '*')} to {entry.get('to', '*')}" if entry.get("from") or entry.get("to") else ""
    said = [f"{name} {plain(value)}" for name, value in (entry.get("link") or {}).items()]
    said += [f"radio {name} {plain(value)}" for name, value in (entry.get("radio") or {}).items()]
    if jammer := dict(entry.get("jammer") or {}):
        name = f"jammer {jammer.pop('name', '?')}"
        said.append(f"{name} off" if any(jammer.get(key) for key in ("silent", "off", "false")) else f"{name} {plain(jammer)}")
    if entry.get("silent") is not None:
        said.append("silent" if entry["silent"] else "no longer silent")
    if entry.get("schedule"):
        said.append("another TDMA schedule")
    return f"{entry.get('network', '?')}{between}: {', '.join(said)}"


def plain(value: object) -> str:
    """A value of a spec without the brackets and quotes of JSON."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {f'({plain(part)})' if isinstance(part, dict) else plain(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ("; " if any(isinstance(part, dict) for part in value) else ", ").join(map(plain, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
