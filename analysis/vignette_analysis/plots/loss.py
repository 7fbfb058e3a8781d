"""The share of offered deliveries that did not arrive, by group and by publisher, with intervals of confidence."""

from typing import TYPE_CHECKING

from ..figures.analysis import Analysis
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(analysis: Analysis) -> "Figure | None":
    """Draw a bar for each group and publisher with offered deliveries."""
    parts = [(kind, _offered(analysis.results[f"{kind}s"])) for kind in ("group", "publisher")]
    parts = [(kind, entries) for kind, entries in parts if entries]
    if not parts:
        return None
    caption = ["Share of the offered deliveries that did not arrive by the end of the drain; the light part of a bar was never sent."]
    caption.append(style.counted(analysis.results))
    caption += _about_intervals(parts)
    pitch = style.pitch(sum(len(entries) for _, entries in parts))
    heights = [0.35 + pitch * len(entries) for _, entries in parts]
    for kind, entries in parts:
        every = style.name_every(entries)
        caption += [f"One of {every} {kind}s is named; there are {len(entries)}."] if every > 1 else []
    made, panels = style.figure(analysis, "deliveries that did not arrive", 1.1 + sum(heights), " ".join(caption), panels=len(parts))
    panels[0].get_gridspec().set_height_ratios(heights)
    for axes, (kind, entries) in zip(panels, parts, strict=True):
        _bars(axes, entries)
        style.names(axes, [entry["name"] for entry in entries], pitch)
        axes.set_ylabel(kind)
        axes.grid(axis="x")
    greatest = max(max(_missing(entry), _interval(entry)[1]) for _, entries in parts for entry in entries)
    panels[-1].set_xlim(0, min(greatest * 1.05, 100) or 1)
    panels[-1].set_xlabel("deliveries that did not arrive (%)")
    return made


def _offered(entries: list[dict] | None) -> list[dict]:
    return [entry for entry in entries or [] if entry["messages"]["offered"]]


def _missing(entry: dict) -> float:
    return 100 - entry["messages"]["deliveredPercent"]


def _interval(entry: dict) -> tuple[float, float]:
    """The confidence interval in percent; the share itself if none was computed."""
    found = (entry.get("confidence") or {}).get("deliveredPercent")
    return (100 - found["high"], 100 - found["low"]) if found else (_missing(entry),) * 2


def _about_intervals(parts: list[tuple[str, list[dict]]]) -> list[str]:
    levels = {entry["confidence"]["level"] for _, entries in parts for entry in entries if (entry.get("confidence") or {}).get("deliveredPercent")}
    return [f"Lines: intervals of {level * 100:g}\u00a0% confidence (Wilson), as if deliveries were lost independently." for level in sorted(levels)]


def _bars(axes: "Axes", entries: list[dict]) -> None:
    rows = range(len(entries))
    lost = [100 * entry["messages"]["lost"] / entry["messages"]["offered"] for entry in entries]
    unsent = [100 * (entry["messages"]["offered"] - entry["messages"]["expected"]) / entry["messages"]["offered"] for entry in entries]
    axes.barh(rows, lost, height=0.64, color=style.ORANGE, edgecolor="#7f5200", linewidth=0.5)
    if any(unsent):
        axes.barh(rows, unsent, left=lost, height=0.64, color="#fbe3b5", edgecolor="#7f5200", linewidth=0.5)
    lows, highs = zip(*(_interval(entry) for entry in entries), strict=True)
    axes.hlines(rows, lows, highs, color=style.DARK, linewidth=0.9)
    for ends in (lows, highs):
        axes.plot(ends, rows, linestyle="none", marker="|", markersize=3.5, color=style.DARK)
