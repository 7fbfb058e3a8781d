"""Counts and response times of requests, in the form of runapi.RequestResults."""

import polars as pl

from ..data.requests import OTHER, OUTSTANDING, REASONS, retransmissions
from ..data.run import Run
from . import statistics
from .deliveries import KINDS, Delay, interval


def compute(run: Run, requests: pl.DataFrame, groups: dict[str, list[int]]) -> dict[tuple[str, str | None], dict]:
    """The figures of each scope with requests, as (all, None), (radio, None), (group, NAME) or (publisher, NAME)."""
    scopes = {("all", None): requests} | {(kind, None): requests.filter(kind) for kind in KINDS}
    for name, numbers in groups.items():
        scopes["group", name] = requests.filter(pl.col("publisher").is_in(numbers))
    for (number,), some in requests.partition_by("publisher", as_dict=True).items():
        scopes["publisher", run.instances[number].name] = some
    return {scope: of(run, some, *scope) for scope, some in scopes.items() if some.height}


def of(run: Run, requests: pl.DataFrame, *scope: str | None) -> dict:
    """The figures of some requests; the scope names their stream of random numbers."""
    reasons = dict(requests.group_by(pl.col("reason").cast(pl.String)).len().iter_rows())
    receipts = requests["receipt"].count()
    times = requests.select((pl.col("receipt") - pl.col("sent")).drop_nulls().sort()).to_series().to_numpy()
    response = Delay.of(times, statistics.stream(run.plan["uid"], "requests", *(name or "" for name in scope)))
    return {
        "triggered": requests.height,
        "sent": requests["sent"].count(),
        "receipts": receipts,
        "receiptPercent": 100.0 * receipts / requests.height,
        "failed": {reason: reasons[reason] for reason in (*REASONS, OTHER) if reason in reasons} or None,
        "outstanding": reasons.get(OUTSTANDING, 0),
        "retransmissions": retransmissions(run, requests),
        "responseSeconds": response.quantiles,
        "confidence": {
            "level": statistics.LEVEL,
            "receiptPercent": interval(statistics.wilson_interval(receipts, requests.height), 100),
            "medianSeconds": interval(response.median_interval, 1),
            "meanSeconds": interval(response.mean_interval, 1),
        },
    }
