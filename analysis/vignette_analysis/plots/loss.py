"""The share of deliveries lost, by group and by publisher, with intervals of confidence."""

from typing import TYPE_CHECKING

from ..analysis import Analysis
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(analysis: Analysis) -> "Figure | None":
    """Draw a bar for each group, and below them for each publisher, to which or from which something was expected."""
    parts = [(kind, _expected(analysis.results[f"{kind}s"])) for kind in ("group", "publisher")]
    parts = [(kind, entries) for kind, entries in parts if entries]
    if not parts:
        return None
    caption = ["Share of the expected deliveries that did not arrive by the end of the drain.", style.counted(analysis.results["messages"])]
    caption += _about_intervals(parts)
    pitch = style.pitch(sum(len(entries) for _, entries in parts))
    heights = [0.35 + pitch * len(entries) for _, entries in parts]
    for kind, entries in parts:
        every = style.name_every(entries)
        caption += [f"One of {every} {kind}s is named; there are {len(entries)}."] if every > 1 else []
    made, panels = style.figure(analysis, "deliveries lost", 1.1 + sum(heights), " ".join(caption), panels=len(parts))
    panels[0].get_gridspec().set_height_ratios(heights)
    for axes, (kind, entries) in zip(panels, parts, strict=True):
        _bars(axes, entries)
        style.names(axes, [entry["name"] for entry in entries], pitch)
        axes.set_ylabel(kind)
        axes.grid(axis="x")
    greatest = max(max(entry["messages"]["lostPercent"], _interval(entry)[1]) for _, entries in parts for entry in entries)
    panels[-1].set_xlim(0, min(greatest * 1.05, 100) or 1)
    panels[-1].set_xlabel("deliveries lost (%)")
    return made


def _expected(entries: list[dict] | None) -> list[dict]:
    return [entry for entry in entries or [] if entry["messages"]["expected"]]


def _interval(entry: dict) -> tuple[float, float]:
    """The interval of confidence in percent; the share itself where none was computed."""
    found = (entry.get("confidence") or {}).get("lostPercent")
    share = entry["messages"]["lostPercent"]
    return (found["low"], found["high"]) if found else (share, share)


def _about_intervals(parts: list[tuple[str, list[dict]]]) -> list[str]:
    levels = {entry["confidence"]["level"] for _, entries in parts for entry in entries if (entry.get("confidence") or {}).get("lostPercent")}
    return [f"Lines: intervals of {level * 100:g}\u00a0% confidence (Wilson), as if deliveries were lost independently." for level in sorted(levels)]


def _bars(axes: "Axes", entries: list[dict]) -> None:
    rows = range(len(entries))
    axes.barh(rows, [entry["messages"]["lostPercent"] for entry in entries], height=0.64, color=style.ORANGE, edgecolor="#7f5200", linewidth=0.5)
    lows, highs = zip(*(_interval(entry) for entry in entries), strict=True)
    axes.hlines(rows, lows, highs, color=style.DARK, linewidth=0.9)
    for ends in (lows, highs):
        axes.plot(ends, rows, linestyle="none", marker="|", markersize=3.5, color=style.DARK)
