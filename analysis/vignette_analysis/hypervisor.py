"""What hypervisors took from the hosts: what is late meanwhile is late for that, at least in part.

A whole host that stood still (runapi.RadioStill), or a processor (runapi.RadioProcessorStill), is told with its time and length; of processor time
that was taken (runapi.RadioStolen) only how much of it in a second.
"""

import polars as pl

from .environment import flat
from .radiolog import RadioLog
from .run import Run

# A line of what was taken tells of the second before it.
PERIOD_SECONDS = 1.0
# A sample has its time before its counters, and a stop is told from up to one tick of radiod's watch on: one that makes frames late in a sample may
# begin so long after the sample's time.
AFTER_SECONDS = 0.010


def explain(run: Run, log: RadioLog, late: list[dict]) -> None:
    """Say in every late entry how long the host of its node stood still and what was taken from it meanwhile; any host, for an entry without a node.

    An entry has stoodStillSeconds (runapi.Late) where its host stood still, and processorStoodStillSeconds where a processor did for longer.
    """
    if run.t0 is None or (log.stolen.is_empty() and log.still.is_empty() and log.processors_still.is_empty()):
        return
    hosts = {name.removeprefix("host/"): host for name, host in flat(run.plan.get("environment")).items() if name.startswith("host/")}
    hosts |= dict(log.samples.select("node", "host").unique().rows())
    for entry in late:
        at = pl.col("host") == hosts.get(entry["node"], "") if entry["node"] else pl.lit(True)
        _stood_still(run, log.still.filter(at), entry)
        _processor_stood_still(run, log.processors_still.filter(at), entry)
        _taken(run, log.stolen.filter(at), entry)


def _during(run: Run, still: pl.DataFrame, column: str, entry: dict) -> pl.DataFrame:
    """Stops that may have made an entry late, by when they began."""
    # What was late by so much at the beginning should have been done so long before.
    start = run.t0 + round((entry["fromSeconds"] - entry["worstSeconds"]) * 1e9)
    end = run.t0 + round((entry["toSeconds"] + AFTER_SECONDS) * 1e9)
    began = pl.col("ts") - (pl.col(column) * 1e9).round().cast(pl.Int64)
    return still.with_columns(began=began).filter((pl.col("ts") > start) & (pl.col("began") < end)).sort("host", "began")


def _stood_still(run: Run, still: pl.DataFrame, entry: dict) -> None:
    during = _during(run, still, "stillSeconds", entry)
    for (host,), stops in during.partition_by("host", as_dict=True, maintain_order=True).items():
        seconds = _most(stops.select("began", "stillSeconds").rows(), entry["worstSeconds"])
        entry["stoodStillSeconds"] = round(max(seconds, entry.get("stoodStillSeconds", 0.0)), 6)
        entry["what"] += f"; meanwhile host {host} stood still for {seconds:.3f} s"


def _processor_stood_still(run: Run, still: pl.DataFrame, entry: dict) -> None:
    during = _during(run, still, "processorStillSeconds", entry)
    alone = {}
    for (host, processor), stops in during.partition_by("host", "processor", as_dict=True, maintain_order=True).items():
        alone[_most(stops.select("began", "processorStillSeconds").rows(), entry["worstSeconds"])] = host, processor
    seconds = round(max(alone, default=0.0), 6)
    if seconds > entry.get("stoodStillSeconds", 0.0):
        host, processor = alone[max(alone)]
        entry["processorStoodStillSeconds"] = seconds
        entry["what"] += f"; meanwhile processor {processor} of host {host} stood still for {seconds:.3f} s"


def _most(stops: list[tuple[int, float]], late: float) -> float:
    """The most that stops can have to do with something that was late by so much: those together that began within that time."""
    most, together, first = 0.0, 0.0, 0
    for began, seconds in stops:
        together += seconds
        while began - stops[first][0] > late * 1e9:
            together -= stops[first][1]
            first += 1
        most = max(most, together)
    return most


def _taken(run: Run, stolen: pl.DataFrame, entry: dict) -> None:
    start, end = (run.t0 + round(entry[field] * 1e9) for field in ("fromSeconds", "toSeconds"))
    during = stolen.filter((pl.col("ts") > start) & (pl.col("ts") <= end + round(PERIOD_SECONDS * 1e9)))
    for host, seconds in during.group_by("host").agg(pl.col("stolenSeconds").sum()).sort("host").rows():
        entry["what"] += f"; meanwhile the hypervisor took {seconds:.2f} s of processor time from host {host}"
