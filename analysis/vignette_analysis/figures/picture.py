"""The picture at each subscriber: where it has the platforms of other nodes, how old that is, and how far off.

At time t the picture of a platform is the freshest position received until t, by the time it was made. Its age is t minus that time; its
error is the horizontal distance to the true position at t. Both are sampled at whole seconds after T0. Positions hold until the next one,
as for the radios.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from ..data.gaps import Gaps
from ..data.messages import Matching
from ..data.run import Run
from .deliveries import group_name

# Most samples in all: for more pairs and longer runs samples are further apart.
MAX_SAMPLES = 5_000_000
# Most pairs with a row of their own in the table.
MAX_PAIRS = 100_000
# Mean radius of the Earth (IUGG).
EARTH_METRES = 6_371_008.8
REPORTS = {
    "ts": pl.Int64,
    "publisher": pl.Categorical,
    "node": pl.Categorical,
    "id": pl.String,
    "latitudeDegrees": pl.Float64,
    "longitudeDegrees": pl.Float64,
    "altitudeMetres": pl.Float64,
    "receivers": pl.Int64,
    "received": pl.Int64,
}
# Figures of error and age.
FIGURES = ("median", "mean", "p95", "max")
PAIRS = {"subscriber": pl.Categorical, "node": pl.Categorical, "samples": pl.Int64, "knownPercent": pl.Float64}
PAIRS |= {f"error{name.capitalize()}Metres": pl.Float64 for name in FIGURES} | {f"age{name.capitalize()}Seconds": pl.Float64 for name in FIGURES}
TIMES = {"second": pl.Int64, "known": pl.Int64, "pairs": pl.Int64}
TIMES |= dict.fromkeys(("errorMedianMetres", "errorP95Metres", "ageMedianSeconds", "ageP95Seconds"), pl.Float64)


@dataclass
class Picture:
    """The tables, and the figures by group of the platform's node in the form of runapi.PictureResult."""

    # A row for each reported position; receivers: how many subscribers on other nodes received it; received: when the first of them did.
    reports: pl.DataFrame
    # A row for each subscriber and node that reports positions.
    pairs: pl.DataFrame
    # A row for each sampled second.
    times: pl.DataFrame
    # None where no position was reported, or none of the true ones is known.
    results: dict | None


@dataclass
class _Samples:
    """The samples of one pair; node is an instance's name where that has a platform of its own.

    The age is NaN where the subscriber had no position, the error also where the true one is not known.
    """

    subscriber: str
    node: str
    group: str
    first: int
    error: np.ndarray
    age: np.ndarray


def compute(run: Run, matching: Matching, reported: pl.DataFrame, positions: pl.DataFrame, gaps: Gaps) -> Picture:
    """Compare what subscribers have received with the true positions; reported has number, id, ts and coordinates of each message."""
    reports = _reports(run, matching, reported)
    nothing = Picture(_named(run, reports), pl.DataFrame(schema=PAIRS), pl.DataFrame(schema=TIMES), None)
    if reports.is_empty():
        return nothing
    truth = _truth(positions)
    lacking = sorted({run.instances[n].reported for n in reports["publisher"].unique()} - truth.keys())
    if lacking:
        gaps.add("picture", f"the true positions of {', '.join(lacking[:10])} are not known: positions of {len(lacking)} nodes have no error")
    if run.t0 is None or run.measure_end is None:
        gaps.add("picture", "the run record does not tell T0 and when the measurement ended: positions are not compared")
        return nothing
    samples, step = _sampled(run, matching, reports, truth)
    if not samples:
        return nothing
    rows = [_pair_row(s) for s in samples] if len(samples) <= MAX_PAIRS else []
    if not rows:
        gaps.note("picture of pairs", f"{len(samples)} pairs of a subscriber and a node: the table of pairs is for up to {MAX_PAIRS}")
    pairs = pl.DataFrame(rows, schema=PAIRS, orient="row")
    return Picture(_named(run, reports), pairs, _times(samples, step), {"sampleSeconds": step, "groups": _groups(samples)})


def _reports(run: Run, matching: Matching, reported: pl.DataFrame) -> pl.DataFrame:
    """Each reported position of a sent message: message, publisher, id, ts, coordinates, receivers, received."""
    sent = matching.messages.select("message", "publisher", "id").join(
        reported.rename({"number": "publisher"}), on=["publisher", "id"], how="inner", maintain_order="left"
    )
    nodes = _node_numbers(run)
    elsewhere = pl.Series(nodes)[matching.deliveries["publisher"]] != pl.Series(nodes)[matching.deliveries["subscriber"]]
    came = matching.deliveries.filter(elsewhere & matching.deliveries["received"].is_not_null())
    counts = came.group_by("message").agg(pl.col("received").min(), receivers=pl.len().cast(pl.Int64))
    return sent.join(counts, on="message", how="left", maintain_order="left").with_columns(pl.col("receivers").fill_null(0))


def _numbers(names: list[str]) -> np.ndarray:
    """For each instance, the number of the first one with the same name of something."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(name, number) for number, name in enumerate(names)] or [0], np.int64)


def _node_numbers(run: Run) -> np.ndarray:
    """The node of each instance, by the number of the node's first instance."""
    return _numbers([i.node for i in run.instances])


def _named(run: Run, reports: pl.DataFrame) -> pl.DataFrame:
    number = reports["publisher"].to_list()
    columns = {"publisher": [run.instances[n].name for n in number], "node": [run.instances[n].node for n in number]}
    return reports.with_columns(pl.Series(name, values, pl.String) for name, values in columns.items()).select(
        pl.col(name).cast(kind) for name, kind in REPORTS.items()
    )


def _truth(positions: pl.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Times, latitudes and longitudes of each node, and of each instance with a platform of its own, in order of time."""
    parts = positions.sort("ts", maintain_order=True).partition_by("node", as_dict=True)
    return {str(key[0]): tuple(part[c].to_numpy() for c in ("ts", "latitudeDegrees", "longitudeDegrees")) for key, part in parts.items()}


def _sampled(run: Run, matching: Matching, reports: pl.DataFrame, truth: dict) -> tuple[list[_Samples], int]:
    """Samples of each pair of a subscriber and another node that reports positions, and the seconds from one to the next."""
    nodes, reported = _node_numbers(run), _numbers([i.reported for i in run.instances])
    table = matching.deliveries.join(reports.select("message", "ts", "latitudeDegrees", "longitudeDegrees"), on="message", how="inner")
    publishers, subscribers = table["publisher"].to_numpy(), table["subscriber"].to_numpy()
    table = table.with_columns(pl.Series("node", reported[publishers]))
    table = table.filter(pl.Series(nodes[publishers] != nodes[subscribers])).sort("subscriber", "node", "received", "ts")
    subscribers, of, columns = table["subscriber"].to_numpy(), table["node"].to_numpy(), _columns(table)
    # Slices of the sorted columns: a data frame for each pair would take a hundred times the memory.
    starts = np.flatnonzero((np.diff(subscribers, prepend=-1) != 0) | (np.diff(of, prepend=-1) != 0))
    end = (run.measure_end - run.t0) // 10**9
    step = max(1, -(-len(starts) * max(end, 1) // MAX_SAMPLES))
    found = []
    for start, stop in pairwise([*starts, len(of)]):
        subscriber, node = run.instances[subscribers[start]], run.instances[of[start]]
        if node.reported in truth:
            part = {name: column[start:stop] for name, column in columns.items()}
            found.append(_samples(run, part, truth[node.reported], (subscriber.name, node.reported, group_name(node)), end, step))
    return [s for s in found if len(s.error)], step


def _columns(table: pl.DataFrame) -> dict[str, np.ndarray]:
    """The columns of deliveries of reported positions that samples need; received is 0 where one did not arrive."""
    columns = {name: table[name].to_numpy() for name in ("ts", "latitudeDegrees", "longitudeDegrees")}
    return columns | {"received": table["received"].fill_null(0).to_numpy(), "arrived": table["received"].is_not_null().to_numpy()}


def _samples(run: Run, part: dict[str, np.ndarray], true: tuple, names: tuple[str, str, str], end: int, step: int) -> _Samples:
    """From the first position that the node reported to the end of the measuring window."""
    first = max(-(-(int(part["ts"].min()) - run.t0) // 10**9), 0)
    first = -(-first // step) * step
    at = run.t0 + np.arange(first, end + 1, step, dtype=np.int64) * 10**9
    came = {name: column[part["arrived"]] for name, column in part.items()}
    made = came["ts"]
    # The freshest of all that have arrived: a position that was overtaken changes nothing.
    freshest = np.maximum.accumulate(made) if len(made) else made
    newest = np.searchsorted(np.sort(made), freshest)
    in_order = np.argsort(made, kind="stable")
    index = np.searchsorted(came["received"], at, side="right") - 1
    place = np.searchsorted(true[0], at, side="right") - 1
    known = index >= 0
    error, age = np.full(len(at), np.nan), np.full(len(at), np.nan)
    row = in_order[newest[index[known]]]
    age[known] = (at[known] - made[row]) / 1e9
    latitude, longitude = (came[c][row] for c in ("latitudeDegrees", "longitudeDegrees"))
    there = place[known]
    error[known] = np.where(there >= 0, metres(latitude, longitude, true[1][there], true[2][there]), np.nan)
    return _Samples(*names, first, error, age)


def metres(latitude, longitude, other_latitude, other_longitude) -> np.ndarray:
    """Great-circle distances on the mean sphere, in degrees and metres (haversine)."""
    phi, other = np.radians(latitude), np.radians(other_latitude)
    across = np.radians(np.asarray(longitude) - other_longitude)
    half = np.sin((phi - other) / 2) ** 2 + np.cos(phi) * np.cos(other) * np.sin(across / 2) ** 2
    return 2 * EARTH_METRES * np.arcsin(np.sqrt(np.clip(half, 0, 1)))


def _figures(values: np.ndarray) -> dict[str, float] | None:
    """Median, mean, 95th percentile and maximum of the known ones; None of none."""
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    median, p95 = np.quantile(values, (0.5, 0.95))
    return dict(zip(FIGURES, map(float, (median, values.mean(), p95, values.max())), strict=True))


def _pair_row(s: _Samples) -> list:
    known = ~np.isnan(s.age)
    figures = [_figures(values) or dict.fromkeys(FIGURES) for values in (s.error, s.age)]
    return [s.subscriber, s.node, len(known), 100 * float(known.mean()), *(of[name] for of in figures for name in FIGURES)]


def _groups(samples: list[_Samples]) -> list[dict]:
    """All, and each group of nodes that report positions, in the order of the plan."""
    groups = {"all": samples}
    for s in samples:
        groups.setdefault(s.group, []).append(s)  # no group of nodes is named all: group_name
    return [_group(name, some) for name, some in groups.items()]


def _group(name: str, some: list[_Samples]) -> dict:
    error, age = (np.concatenate(values) for values in ([s.error for s in some], [s.age for s in some]))
    known = ~np.isnan(age)
    return {
        "name": name,
        "pairs": len(some),
        "samples": len(known),
        "knownPercent": 100 * float(known.mean()),
        "errorMetres": _figures(error),
        "ageSeconds": _figures(age),
    }


def _times(samples: list[_Samples], step: int) -> pl.DataFrame:
    """Median and 95th percentile over all pairs, by second."""
    ends = [s.first // step + len(s.error) for s in samples]
    start = min(s.first // step for s in samples)
    errors, ages = (np.full((len(samples), max(ends) - start), np.nan, np.float32) for _ in range(2))
    counted = np.zeros(max(ends) - start, np.int64)
    for i, s in enumerate(samples):
        place = slice(s.first // step - start, s.first // step - start + len(s.error))
        errors[i, place], ages[i, place] = s.error, s.age
        counted[place] += 1
    rows = []
    for column in range(errors.shape[1]):
        known = [of[~np.isnan(of[:, column]), column] for of in (errors, ages)]
        error, age = (np.quantile(values, (0.5, 0.95)) if len(values) else (None, None) for values in known)
        rows.append([(start + column) * step, len(known[1]), int(counted[column]), *(v if v is None else float(v) for v in (*error, *age))])
    return pl.DataFrame(rows, schema=TIMES, orient="row")
