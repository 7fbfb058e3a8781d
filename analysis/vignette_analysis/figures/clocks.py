"""Clocks of nodes that have their own: virtual machines (runapi.AgentClock)."""

from ..data.gaps import Gaps
from ..data.run import Run
from .hosts import CLOCK_OFFSET_SECONDS


def summarise(run: Run, gaps: Gaps) -> list[dict]:
    """One runapi.ClockResult for each such node, in order of names. A clock that was off by more than its uncertainty is a gap."""
    known: dict[str, dict] = {}
    for agent in (run.state or {}).get("agents") or []:
        clock = agent.get("clock")
        # All agents of a node report the same clock; the last report covers the most time.
        if clock and clock["measurements"] >= known.get(agent["node"], {"measurements": 0})["measurements"]:
            known[agent["node"]] = clock
    for node, clock in sorted(known.items()):
        if clock["worstOffsetSeconds"] - clock["worstUncertaintySeconds"] > CLOCK_OFFSET_SECONDS:
            text = f"{clock['worstOffsetSeconds']:.6f} s (known within {clock['worstUncertaintySeconds']:.6f} s)"
            gaps.add("clock offset", f"the clock of this node was up to {text} off the server's: delays to and from it are wrong by as much", node)
    return [_result(node, clock) for node, clock in sorted(known.items())]


def _result(node: str, clock: dict) -> dict:
    fields = ("worstOffsetSeconds", "worstUncertaintySeconds", "setSeconds", "measurements")
    return {"node": node, **{field: clock[field] for field in fields}}
