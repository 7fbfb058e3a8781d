"""Positions, links and hop counts of the nodes over time, from radiod's logs.

radio/HOST.jsonl (runapi.RadioPositions, RadioLinks, RadioRoutes) has changes only, and they are kept as changes, without
thinning. Lines are parsed in blocks and become rows of a few dozen bytes: memory follows the number of changes, not the log's size.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ..data import jsonlines
from ..data.gaps import Gaps
from ..data.radiolog import in_order
from ..data.run import POSITIONS_LOG, Run

BLOCK_BYTES = 16 << 20
# Why a radio did not receive a transmission (internal/radio, Reason).
MISSED = ("belowSensitivity", "lowSINR", "interfered", "halfDuplex", "notListening")

POSITIONS = {
    "ts": pl.Int64,
    "node": pl.Categorical,
    "latitudeDegrees": pl.Float64,
    "longitudeDegrees": pl.Float64,
    "altitudeMetres": pl.Float64,
}
LINKS = {
    "ts": pl.Int64,
    "network": pl.Categorical,
    "source": pl.Categorical,
    "receiver": pl.Categorical,
    "sinrDB": pl.Float64,
    "pathlossDB": pl.Float64,
    "heard": pl.Int64,
} | {reason: pl.Int64 for reason in MISSED}
HOPS = {"ts": pl.Int64, "network": pl.Categorical, "source": pl.Categorical, "destination": pl.Categorical, "hops": pl.Int64}
HOP_HISTOGRAM = {"network": pl.Categorical, "second": pl.Int64, "hops": pl.Int64, "pairs": pl.Int64}

_LINK_LINE = {
    "ts": pl.Int64,
    "network": pl.String,
    "receiver": pl.String,
    "from": pl.List(
        pl.Struct(
            {
                "node": pl.String,
                "sinrDB": pl.Float64,
                "pathlossDB": pl.Float64,
                "heard": pl.Int64,
                "missed": pl.Struct({reason: pl.Int64 for reason in MISSED}),
            }
        )
    ),
}
_ROUTE_LINE = {
    "ts": pl.Int64,
    "node": pl.String,
    "routing": pl.String,
    "topology": pl.String,
    "whole": pl.Boolean,
    "routes": pl.List(pl.Struct({"to": pl.String, "hops": pl.Int64})),
    "gone": pl.List(pl.String),
}


@dataclass
class Surroundings:
    """A run's positions, links and hops over time; times are Unix nanoseconds."""

    # A row where a node's position changed.
    positions: pl.DataFrame
    # A row for each second in which a link changed. Counters of transmissions start at the attachment.
    links: pl.DataFrame
    # A row where the hop count of a node's route to another changed; null: no route. network: of the destination's address.
    hops: pl.DataFrame
    # Number of ordered pairs of nodes by hop count at the end of each second after T0; null hops: no route.
    hop_histogram: pl.DataFrame


def read(run: Run, gaps: Gaps) -> Surroundings:
    """Read every host's log. radiolog counts the lines that are no records."""
    positions, links, routes = [pl.DataFrame(schema=POSITIONS)], [pl.DataFrame(schema=LINKS)], [_routes([])]
    for path in run.files("radio/*.jsonl"):
        for kind, lines in _blocks(path):
            if kind == b'"positions"':
                positions.append(_positions(lines, [node["name"] for node in run.nodes]))
            elif kind == b'"receiver"':
                links.append(_links(lines))
            else:
                routes.append(_routes(lines))
    # Each network of a node with several radios logs the same position.
    moved = _merged(pl.concat(positions), _logged(run, gaps))
    tables, said = (pl.concat(parts) for parts in zip(*routes, strict=True))
    hops = _hops(run, tables, said, gaps)
    counted = in_order(pl.concat(links), "network", "receiver")
    return Surroundings(moved, counted, hops, _histogram(run, tables, hops))


def add_figures(around: Surroundings, networks: list[dict]) -> None:
    """Add the hops of routes and the SINR of links to the results of the networks that have them."""
    links = around.links.filter(pl.col("sinrDB").is_finite()).group_by("network", "source", "receiver").agg(sinr=pl.col("sinrDB").median())
    for network in networks:
        of = pl.col("network").cast(pl.String) == network["name"]
        if (pairs := around.hop_histogram.filter(of)).height:
            network["hops"] = _hop_figures(pairs)
        if (sinr := links.filter(of)["sinr"]).len():
            quantiles = {name: sinr.quantile(q, interpolation="linear") for name, q in (("p5", 0.05), ("median", 0.5), ("p95", 0.95))}
            network["sinrDB"] = {"links": sinr.len(), **quantiles}


def _hop_figures(pairs: pl.DataFrame) -> dict:
    routed, total = pairs.drop_nulls("hops"), pairs["pairs"].sum()
    with_route = routed["pairs"].sum()
    mean = (routed["hops"] * routed["pairs"]).sum() / with_route if with_route else None
    return {"mean": mean, "max": routed["hops"].max(), "withoutRoutePercent": 100 * (total - with_route) / total if total else 0.0}


_LOGGED = {"ts": pl.Int64, "position": pl.List(pl.Float64)}


def _logged(run: Run, gaps: Gaps) -> pl.DataFrame:
    """Positions that agents logged, of nodes and of instances with platforms of their own, with the times from which they hold."""
    logs = [(path, run.relative(path).split("/")[1]) for path in run.files(f"logs/*/*/{POSITIONS_LOG}")]
    own = [(run.directory / i.platform_log, i.name) for i in run.instances if i.platform is not None]
    logs += [(path, name) for path, name in own if path.exists()]
    found = [pl.DataFrame(schema=POSITIONS)]
    for path, of in logs:
        rows, bad = jsonlines.read(path, _LOGGED)
        gaps.bad_lines(run.relative(path), bad, of.split("/")[0])
        coordinates = ((column, pl.col("position").list.get(i, null_on_oob=True)) for i, column in enumerate(list(POSITIONS)[2:]))
        placed = rows.select("ts", pl.lit(of).cast(pl.Categorical).alias("node"), **dict(coordinates))
        found.append(placed.filter((pl.col("ts") > 0) & pl.col("latitudeDegrees").is_not_null() & pl.col("longitudeDegrees").is_not_null()))
    return pl.concat(found)


def _merged(of_radios: pl.DataFrame, logged: pl.DataFrame) -> pl.DataFrame:
    """All positions in order of time. radiod logs the time of its sample, so between a node's own lines these alone count."""
    spans = logged.group_by("node").agg(first=pl.col("ts").min(), last=pl.col("ts").max())
    outside = of_radios.join(spans, on="node", how="left", maintain_order="left")
    outside = outside.filter(pl.col("first").is_null() | (pl.col("ts") < pl.col("first")) | (pl.col("ts") > pl.col("last"))).drop("first", "last")
    return pl.concat([outside, logged]).unique(("ts", "node"), keep="first", maintain_order=True).sort("ts", maintain_order=True)


def _blocks(path: Path) -> Iterator[tuple[bytes, list[bytes]]]:
    """Blocks of the lines that have each of the three fields."""
    waiting: dict[bytes, list[bytes]] = {b'"positions"': [], b'"receiver"': [], b'"routing"': []}
    sizes = dict.fromkeys(waiting, 0)
    with path.open("rb") as file:
        for line in file:
            for kind, lines in waiting.items():
                if kind in line:
                    lines.append(line.rstrip(b"\n"))
                    sizes[kind] += len(line)
                    if sizes[kind] > BLOCK_BYTES:
                        yield kind, lines
                        waiting[kind], sizes[kind] = [], 0
                    break
    yield from ((kind, lines) for kind, lines in waiting.items() if lines)


def _parse(lines: list[bytes], schema: dict) -> pl.DataFrame:
    frames, _ = jsonlines.parse(lines, schema)
    return pl.concat([pl.DataFrame(schema=schema), *frames])


def _positions(lines: list[bytes], nodes: list[str]) -> pl.DataFrame:
    schema = {"ts": pl.Int64, "network": pl.String, "positions": pl.Struct({node: pl.List(pl.Float64) for node in nodes or [""]})}
    rows = _parse(lines, schema).filter(pl.col("network").is_not_null() & (pl.col("ts") > 0))
    long = rows.select("ts", pl.col("positions").struct.unnest()).unpivot(index="ts", variable_name="node", value_name="at")
    coordinates = ((name, pl.col("at").list.get(i, null_on_oob=True)) for i, name in enumerate(list(POSITIONS)[2:]))
    return (
        long.select("ts", pl.col("node").cast(pl.Categorical), **dict(coordinates))
        .filter(pl.col("latitudeDegrees").is_between(-90, 90) & pl.col("longitudeDegrees").is_between(-360, 360))
        .sort("ts", maintain_order=True)
    )


def _links(lines: list[bytes]) -> pl.DataFrame:
    rows = _parse(lines, _LINK_LINE).filter(pl.all_horizontal(pl.col("network", "receiver", "from").is_not_null()) & (pl.col("ts") > 0))
    heard = rows.explode("from", empty_as_null=False).unnest("from").unnest("missed").filter(pl.col("node").is_not_null())
    return heard.rename({"node": "source"}).select(
        pl.col(name).fill_null(0).cast(kind) if kind == pl.Int64 else pl.col(name).cast(kind) for name, kind in LINKS.items()
    )


def _routes(lines: list[bytes]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Route records of the first topology (ts, node, routing, destinations of complete ones), and their entries.

    Entries are source, to and hops; null: route gone.
    """
    first = pl.all_horizontal(pl.col("ts", "node", "routing").is_not_null()) & pl.col("topology").is_null()
    rows = _parse(lines, _ROUTE_LINE).filter(first)
    source = pl.col("node").alias("source")
    found = rows.select("ts", source, "routing", "routes").explode("routes", empty_as_null=False).unnest("routes")
    gone = rows.select("ts", source, "routing", to="gone").explode("to", empty_as_null=False).with_columns(hops=pl.lit(None, pl.Int64))
    names = pl.col("source", "routing", "to").cast(pl.Categorical)
    said = pl.concat([found, gone]).filter(pl.col("to").is_not_null()).with_columns(names)
    whole = pl.when("whole").then(pl.col("routes").list.eval(pl.element().struct.field("to")).fill_null([]))
    return rows.select("ts", "node", "routing", whole=whole), said


def _hops(run: Run, tables: pl.DataFrame, said: pl.DataFrame, gaps: Gaps) -> pl.DataFrame:
    """Changes of each pair's hop count."""
    changes = pl.concat([said, *_replaced(tables, said)]).join(_destinations(run), on="to", how="left").sort("ts", maintain_order=True)
    strangers = changes.filter(pl.col("destination").is_null())["to"].n_unique()
    if strangers:
        gaps.add("hops", f"{strangers} destinations of routes are no node's address in the run record: they are not among the hops")
    pair = ("network", "source", "destination")
    return (
        changes.filter(pl.col("destination").is_not_null() & (pl.col("destination").cast(pl.String) != pl.col("source").cast(pl.String)))
        .filter(pl.col("hops").ne_missing(pl.col("hops").shift(1).over(pair)))
        .select(*HOPS)
    )


def _destinations(run: Run) -> pl.DataFrame:
    """Each node's addresses, as routes contain them."""
    rows = [
        (f"{address}/{128 if ':' in address else 32}", network, node["name"])
        for node in run.nodes
        for network, address in (node.get("addresses") or {}).items()
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(("to", "network", "destination"), pl.Categorical), orient="row").unique("to", keep="first")


def _replaced(tables: pl.DataFrame, said: pl.DataFrame) -> list[pl.DataFrame]:
    """Routes that a complete record no longer has, as after a restart of radiod."""
    ended = []
    for line in tables.filter(pl.col("whole").is_not_null()).sort("ts").iter_rows(named=True):
        of_router = (pl.col("source") == line["node"]) & (pl.col("routing") == line["routing"]) & (pl.col("ts") < line["ts"])
        before = said.filter(of_router).unique("to", maintain_order=True).filter(~pl.col("to").cast(pl.String).is_in(line["whole"]))
        ended.append(before.with_columns(ts=pl.lit(line["ts"], pl.Int64), hops=pl.lit(None, pl.Int64)))
    return ended


def _histogram(run: Run, tables: pl.DataFrame, hops: pl.DataFrame) -> pl.DataFrame:
    """Count pairs by hops at the end of each second from T0 to the end of the measurement."""
    frames = [pl.DataFrame(schema=HOP_HISTOGRAM)]
    seconds = int(np.ceil(run.duration_seconds))
    if run.t0 is None or not seconds:
        return frames[0]
    routers = {protocol: set(part["node"]) for (protocol,), part in tables.partition_by("routing", as_dict=True).items()}
    for network in run.plan.get("spec", {}).get("networks") or []:
        sources = routers.get((network.get("routing") or {}).get("protocol", ""), set())
        members = [node["name"] for node in run.nodes if network["name"] in (node.get("addresses") or {})]
        pairs = sum(source != member for source in sources for member in members)
        if pairs:
            frames.append(_counted(network["name"], hops.filter(pl.col("network") == network["name"]), pairs, run.t0, seconds))
    return pl.concat(frames)


def _counted(network: str, hops: pl.DataFrame, pairs: int, t0: int, seconds: int) -> pl.DataFrame:
    """Sum the changes of one network's pairs, which all start without a route."""
    kinds = [None, *sorted(hops["hops"].drop_nulls().unique())]
    row = {kind: i for i, kind in enumerate(kinds)}
    before = hops.select(pl.col("hops").shift(1).over("source", "destination"))["hops"]
    at = ((hops["ts"].to_numpy() - t0) // 10**9).clip(0, seconds)
    change = np.zeros((len(kinds), seconds + 1), dtype=np.int64)
    np.add.at(change, ([row[h] for h in hops["hops"]], at), 1)
    np.add.at(change, ([row[h] for h in before], at), -1)
    change[0, 0] += pairs
    counts = change[:, :seconds].cumsum(axis=1)
    which, second = np.nonzero(counts)
    columns = {"network": [network] * len(which), "second": second, "hops": [kinds[i] for i in which], "pairs": counts[which, second]}
    return pl.DataFrame(columns, schema=HOP_HISTOGRAM).sort("second", "hops", nulls_last=True)
