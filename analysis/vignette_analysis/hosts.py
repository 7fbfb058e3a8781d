"""What one host's radiod knows of another's (runapi.RadioHost): clocks, lost hosts, and what was lost between them."""

import itertools

import polars as pl

from .agents import late_entry
from .gaps import Gaps
from .radiolog import Outage
from .run import Run

UNREACHABLE = "hostUnreachable"
# A difference of clocks above this is named: delays between hosts are off by it.
CLOCK_OFFSET_SECONDS = 0.001
LOSSES = {"missingDatagrams": "datagrams lost on the way", "notSent": "transmissions not sent", "unusable": "transmissions of no use"}


def examine(run: Run, lines: pl.DataFrame, outages: list[Outage], gaps: Gaps) -> list[dict]:
    """Name what speaks against delays and deliveries between hosts; what was not emulated is returned as late."""
    late = [_unreachable(run, outage) for outage in outages if outage.what == UNREACHABLE]
    for (host, peer), series in lines.partition_by(["host", "peer"], as_dict=True, maintain_order=True).items():
        rows = [row for row in series.to_dicts() if run.t0 is not None and row["ts"] >= run.t0 and (not run.window or row["ts"] <= run.window[1])]
        _clock(host, peer, rows, gaps)
        late += _lost(run, host, peer, rows)
    return late


def _unreachable(run: Run, outage: Outage) -> dict:
    end = outage.end or (run.window[1] if run.window else outage.start)
    return late_entry("", run.since_t0(outage.start), run.since_t0(end), outage.reason, max(end - outage.start, 0) / 1e9)


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


def _lost(run: Run, host: str, peer: str, rows: list[dict]) -> list[dict]:
    found = []
    for field, what in LOSSES.items():
        # A restarted radiod counts anew.
        lost = sum(max((after[field] or 0) - (before[field] or 0), 0) for before, after in itertools.pairwise(rows))
        if lost:
            where = f"{lost} {what} between hosts {peer} and {host}: what they carried was not received, which no radio model decided"
            found.append(late_entry("", run.since_t0(rows[0]["ts"]), run.since_t0(rows[-1]["ts"]), where, 0.0))
    return found
