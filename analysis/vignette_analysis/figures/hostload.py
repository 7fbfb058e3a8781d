"""How busy the hosts were while the experiment ran (runapi.HostResult), with any work."""

import polars as pl

from ..data.radiolog import RadioLog
from ..data.run import Run


def summarise(run: Run, log: RadioLog) -> list[dict]:
    """One entry for each host that logged its load, from T0 to the end of the drain, in order of names."""
    during = while_running(run, log.loads).filter(pl.col("seconds") > 0)
    stolen = dict(while_running(run, log.stolen).group_by("host").agg(pl.col("stolenSeconds").sum()).rows())
    return [_host(str(name), samples, stolen.get(name, 0.0)) for (name,), samples in sorted(during.group_by("host"))]


def while_running(run: Run, frame: pl.DataFrame) -> pl.DataFrame:
    if run.t0 is None:
        return frame.clear()
    frame = frame.filter(pl.col("ts") > run.t0)
    return frame if run.measure_end is None else frame.filter(pl.col("ts") <= run.measure_end)


def _host(name: str, samples: pl.DataFrame, stolen: float) -> dict:
    processors = samples["seconds"] * samples["cpus"]
    pressures = {}
    for field, column in (("cpuPressurePercent", "cpuPressureSeconds"), ("memoryPressurePercent", "memoryPressureSeconds")):
        measured = samples.filter(pl.col(column).is_not_null())
        if measured.height:
            pressures[field] = _percent(measured[column].sum(), measured["seconds"].sum())
    return {
        "name": name,
        "cpus": samples["cpus"].max(),
        "busyPercent": _percent(samples["busySeconds"].sum(), processors.sum()),
        "maxBusyPercent": _percent((samples["busySeconds"] / processors).max(), 1.0),
        "maxLoadAverage": samples["loadAverage"].max(),
        "stolenSeconds": round(stolen, 2),
        **pressures,
    }


def _percent(part: float, whole: float) -> float:
    """A share of at most 100 %: the kernel counts in hundredths of a second, and may count one too many."""
    return round(min(100 * part / whole, 100.0), 2)
