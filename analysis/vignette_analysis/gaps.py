"""Gaps: what is missing from the results, and why. Nothing is lost silently."""

from dataclasses import dataclass, field

# Gaps of runapi.RadioGap: there was no emulation, which is another thing than a late one.
OUTAGES = ("radiodRestarted", "attachmentLost")


@dataclass
class Gaps:
    """Collects gaps in the order in which they are found; times are seconds after T0."""

    found: list[dict] = field(default_factory=list)

    def add(self, what: str, reason: str, node: str = "", start: float | None = None, end: float | None = None) -> None:
        """Add one gap, in the form of runapi.Gap."""
        gap: dict = {"what": what}
        if node:
            gap["node"] = node
        if start is not None:
            gap["fromSeconds"] = start
        if end is not None:
            gap["toSeconds"] = end
        gap["reason"] = reason
        self.found.append(gap)

    def names(self, what: str) -> bool:
        """Tell whether a gap with this name is there already."""
        return any(gap["what"] == what for gap in self.found)
