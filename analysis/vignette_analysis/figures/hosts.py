"""What a host's radiod measured of other hosts (runapi.RadioHost): clocks, unreachable hosts, losses between them."""

import itertools

from ..data.gaps import Gaps
from ..data.radiolog import UNREACHABLE, RadioLog
from ..data.run import Run
from .lateness import Interval, Lateness, Loss

# A greater difference of clocks is a gap: delays between hosts are off by it.
CLOCK_OFFSET_SECONDS = 0.001
LOSSES = {"missingDatagrams": "datagrams lost on the way", "notSent": "transmissions not sent", "unusable": "transmissions of no use"}


def examine(run: Run, log: RadioLog, gaps: Gaps, found: Lateness) -> None:
    """Name clock differences that falsify delays between hosts, and add times without emulation."""
    for outage in log.outages:
        if outage.what == UNREACHABLE:
            end = outage.end or (run.window[1] if run.window else outage.start)
            found.intervals.append(Interval(outage.start, end, max(end - outage.start, 0) / 1e9, outage.reason))
    for (host, peer), series in log.peers.partition_by(["host", "peer"], as_dict=True, maintain_order=True).items():
        rows = [row for row in series.to_dicts() if run.t0 is not None and row["ts"] >= run.t0 and (not run.window or row["ts"] <= run.window[1])]
        _clock(host, peer, rows, gaps)
        found.losses += _lost(host, peer, rows)


def _clock(host: str, peer: str, rows: list[dict], gaps: Gaps) -> None:
    known = [row for row in rows if row["offsetSeconds"] is not None]
    if not known:
        return
    worst = max(known, key=lambda row: abs(row["offsetSeconds"]) + row["uncertaintySeconds"])
    if abs(worst["offsetSeconds"]) + worst["uncertaintySeconds"] > CLOCK_OFFSET_SECONDS:
        text = f"{worst['offsetSeconds']:.6f} s (known within {worst['uncertaintySeconds']:.6f} s)"
        gaps.add(
            "clock offset", f"the clock of host {peer} was up to {text} off that of host {host}: delays between their nodes are wrong by as much"
        )


def _lost(host: str, peer: str, rows: list[dict]) -> list[Loss]:
    found = []
    for before, after in itertools.pairwise(rows):
        for field, what in LOSSES.items():
            # A restarted radiod counts from 0.
            lost = max((after[field] or 0) - (before[field] or 0), 0)
            if lost:
                found.append(Loss(before["ts"], after["ts"], lost, f"{what} between hosts {peer} and {host}"))
    return found
