"""Requests of runs and of conditions, from the runs' results."""

import numpy as np

from ..figures.statistics import from_zero, repeats_interval
from .effects import Share
from .loading import Loaded

_COUNTS = ("triggered", "sent", "receipts", "outstanding")


def of(name: str, runs: list[Loaded]) -> dict | None:
    """The requests of a group in a run, or in the repeats of a condition together; None where no run has any.

    Over several runs there are the least, mean and greatest response time: the mean is that of the runs' means, and its interval Student's.
    """
    found = [group["requests"] for run in runs for group in run.results["groups"] if group["name"] == name and group.get("requests")]
    if len(found) < 2:
        return found[0] | {"confidence": {key: found[0]["confidence"][key] for key in ("receiptPercent", "meanSeconds")}} if found else None
    counts = {key: sum(one[key] for one in found) for key in _COUNTS}
    again = [one["retransmissions"] for one in found if one["retransmissions"] is not None]
    counts["retransmissions"] = sum(again) if again else None
    failed: dict[str, int] = {}
    for reason, count in ((reason, count) for one in found for reason, count in (one["failed"] or {}).items()):
        failed[reason] = failed.get(reason, 0) + count
    share = 100.0 * counts["receipts"] / counts["triggered"]
    times = [one["responseSeconds"] for one in found if one["responseSeconds"]]
    response = (
        {"min": min(t["min"] for t in times), "mean": float(np.mean([t["mean"] for t in times])), "max": max(t["max"] for t in times)}
        if times
        else None
    )
    means = [t["mean"] for t in times]
    mean = from_zero(repeats_interval(means), means)
    confidence = {"receiptPercent": _interval(_share_interval(found)), "meanSeconds": _interval(mean)}
    return counts | {"receiptPercent": share, "failed": failed or None, "responseSeconds": response, "confidence": confidence}


def _share_interval(found: list[dict]) -> tuple[float, float]:
    """The interval of the share of receipts in percent, with the run as the unit."""
    receipts, requests = (np.array([one[key] for one in found]) for key in ("receipts", "triggered"))
    share = Share.of_counts(requests - receipts, requests, int(requests.sum())).interval()
    return 100 - 100 * share.high, 100 - 100 * share.low


def _interval(limits: tuple[float, float] | None) -> dict | None:
    return limits and {"low": float(limits[0]), "high": float(limits[1])}  # JSON knows no numbers of numpy's
