"""What hypervisors took from the hosts (runapi.RadioStolen): what is late meanwhile is late for that, at least in part."""

import polars as pl

from .radiolog import RadioLog
from .run import Run

# A line tells of the second before it.
PERIOD_SECONDS = 1.0


def explain(run: Run, log: RadioLog, late: list[dict]) -> None:
    """Say in every late entry what was taken from the host of its node meanwhile; from any host, for an entry without a node."""
    if run.t0 is None or log.stolen.is_empty():
        return
    hosts = dict(log.samples.select("node", "host").unique().rows())
    for entry in late:
        start, end = (run.t0 + round(entry[field] * 1e9) for field in ("fromSeconds", "toSeconds"))
        during = log.stolen.filter((pl.col("ts") > start) & (pl.col("ts") <= end + round(PERIOD_SECONDS * 1e9)))
        if entry["node"]:
            during = during.filter(pl.col("host") == hosts.get(entry["node"], ""))
        for host, seconds in during.group_by("host").agg(pl.col("stolenSeconds").sum()).sort("host").rows():
            entry["what"] += f"; meanwhile the hypervisor took {seconds:.2f} s of processor time from host {host}"
