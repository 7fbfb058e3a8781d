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
        if run.t0 is None:
            continue
        rows, end = series.to_dicts(), run.window[1] if run.window else series["ts"].max()
        _clock(host, peer, [row for row in rows if run.t0 <= row["ts"] <= end], gaps)
        within = [(before, after) for before, after in itertools.pairwise(rows) if after["ts"] > run.t0 and before["ts"] < end]
        found.losses += _lost(host, peer, within)


def _clock(host: str, peer: str, rows: list[dict], gaps: Gaps) -> None:
    known = [row for row in rows if row["offsetSeconds"] is not None]
    if not known:
        return
    worst = max(known, key=lambda row: abs(row["offsetSeconds"]) + row["uncertaintySeconds"])
    most = abs(worst["offsetSeconds"]) + worst["uncertaintySeconds"]
    if most > CLOCK_OFFSET_SECONDS:
        text = f"{worst['offsetSeconds']:.6f} s (known within {worst['uncertaintySeconds']:.6f} s)"
        wrong = f"delays between their nodes may be wrong by {most:.6f} s"
        gaps.add("clock offset", f"the clock of host {peer} was up to {text} off that of host {host}: {wrong}")


def _lost(host: str, peer: str, pairs: list[tuple[dict, dict]]) -> list[Loss]:
    found = []
    for before, after in pairs:
        for field, what in LOSSES.items():
            counted, earlier = after[field] or 0, before[field] or 0
            # A restarted radiod counts from 0.
            lost = counted if counted < earlier else counted - earlier
            if lost:
                found.append(Loss(before["ts"], after["ts"], lost, f"{what} between hosts {peer} and {host}"))
    return found
