"""The map: positions of nodes and states of links on a grid of times, small enough for the page.

A layer is a quantity that lines between nodes show: SINR of a network, or the delivered share. A line joins two nodes and covers
both directions.
"""

import base64
import math
import zlib
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ..data.run import Run, duration
from ..figures import summary
from ..figures.analysis import Analysis
from ..figures.picture import EARTH_METRES
from . import charts, words

# Most times, positions, and values of lines in all: each takes one or two bytes before compression.
MAX_FRAMES = 1500
MIN_FRAMES = 120
MAX_POSITIONS = 500_000
MAX_VALUES = 3_000_000
# How long a link stays on the map after its last received transmission: HELLOs of routing protocols are 2 s apart.
HOLD_SECONDS = 10
# A moment's share covers messages sent in this many seconds before it: several periods of most publishers.
SHARE_SECONDS = 30
UNKNOWN = 65535
_SPAN = 65000
NOT_HEARD, NO_SINR = 0, 255
SINR_LEAST_DB, SINR_STEP_DB = -30.0, 0.5
# Classes of lines: the least value of each except the first, in dB and in percent.
SINR_BOUNDS = (5, 10, 15, 20, 30)
SHARE_BOUNDS = (1, 50, 90, 97, 100)


@dataclass(frozen=True)
class Layer:
    """A quantity that lines show."""

    name: str
    # sinr or delivered.
    kind: str
    # Pairs of node numbers, and their values: a row for each pair, a column for each time; 0: no line.
    pairs: np.ndarray
    values: np.ndarray
    # Number of pairs that were left out for lack of room.
    left_out: int

    @property
    def bounds(self) -> tuple[int, ...]:
        """The least value of each class except the first."""
        return SINR_BOUNDS if self.kind == "sinr" else SHARE_BOUNDS

    def classes(self, frame: int) -> np.ndarray:
        """The class of each pair's line at a time: -1 without a line, one above the last for an unknown SINR."""
        codes = self.values[:, frame]
        value = SINR_LEAST_DB + (codes - 1.0) * SINR_STEP_DB if self.kind == "sinr" else codes - 1.0
        found = np.searchsorted(self.bounds, value, side="right")
        found[codes == NO_SINR] = len(self.bounds) + 1
        found[codes == NOT_HEARD] = -1
        return found


@dataclass(frozen=True)
class Ground:
    """The area of the map: degrees at its north-western corner, and degrees of a unit to the east and to the south."""

    longitude: float
    latitude: float
    east: float
    south: float

    @classmethod
    def around(cls, latitude: np.ndarray, longitude: np.ndarray) -> "Ground":
        """The square around places."""
        # Longitudes relative to the first one, so that the antimeridian does not split the map.
        longitude = longitude[0] + (longitude - longitude[0] + 180) % 360 - 180
        cosine = math.cos(math.radians(float(latitude.mean())))
        # A single place is in the middle of a square kilometre.
        extent = max(float(np.ptp(longitude)) * cosine, float(np.ptp(latitude)), math.degrees(1000 / EARTH_METRES))
        south, east = extent / _SPAN, extent / _SPAN / cosine
        middle = [(float(values.max()) + float(values.min())) / 2 for values in (longitude, latitude)]
        return cls(middle[0] - east * _SPAN / 2, middle[1] + south * _SPAN / 2, east, south)

    def units(self, latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
        """Places on the map, east and south."""
        middle = self.longitude + self.east * _SPAN / 2
        across = ((longitude - middle + 180) % 360 - 180) / self.east + _SPAN / 2
        return np.stack([across, (self.latitude - latitude) / self.south], axis=-1).clip(0, _SPAN)


@dataclass(frozen=True)
class Jammer:
    """A source of noise from a start to an end in seconds after T0; latitude and longitude are None where it has a pathloss instead."""

    name: str
    network: str
    start: float
    end: float
    latitude: float | None
    longitude: float | None
    about: str


@dataclass(frozen=True)
class MapData:
    """Nodes on a grid of times."""

    nodes: list[str]
    groups: list[str]
    step: float
    frames: int
    # By node, time and axis (east, south): 0 to _SPAN, or UNKNOWN.
    places: np.ndarray
    # None for a layout without distances.
    ground: Ground | None
    layers: list[Layer]
    jammers: list[Jammer]
    # As places, where nodes last reported that they are, by messages that somebody has received; None where none report, and without ground.
    reported: np.ndarray | None

    @property
    def metres(self) -> float:
        """Metres of a unit; 0 for a layout without distances."""
        return math.radians(self.ground.south) * EARTH_METRES if self.ground else 0.0

    def seen(self, frame: int) -> np.ndarray:
        """For each node, whether both its place and the reported one are known at a time."""
        if self.reported is None:
            return np.zeros(len(self.nodes), bool)
        return (self.places[:, frame, 0] != UNKNOWN) & (self.reported[:, frame, 0] != UNKNOWN)

    def placed(self) -> list[tuple[Jammer, float, float]]:
        """Jammers with a position, and its place on the map."""
        known = [jammer for jammer in self.jammers if self.ground and jammer.latitude is not None]
        return [(jammer, *map(float, self.ground.units(np.array(jammer.latitude), np.array(jammer.longitude)))) for jammer in known]

    def data(self) -> dict:
        """The data for the page's script."""
        return {
            "nodes": self.nodes,
            "groups": self.groups,
            "step": self.step,
            "frames": self.frames,
            "metres": self.metres,
            "ground": vars(self.ground) if self.ground else None,
            "jammers": [{"name": j.name, "about": j.about, "from": j.start, "to": j.end, "x": x, "y": y} for j, x, y in self.placed()],
            "places": _packed_places(self.places),
            "reported": None if self.reported is None else _packed_places(self.reported),
            "layers": [
                {
                    "name": layer.name,
                    "kind": layer.kind,
                    "bounds": layer.bounds,
                    "pairs": _packed(layer.pairs.astype("<u2")),
                    "values": _packed(layer.values),
                }
                for layer in self.layers
            ],
        }


def _packed(array: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()


def _packed_places(places: np.ndarray) -> str:
    """Of each node its places east, then south, each as the difference to the one before."""
    deltas = np.diff(places, axis=1, prepend=np.zeros_like(places[:, :1])).astype("<u2")
    return _packed(deltas.transpose(0, 2, 1))


def build(analysis: Analysis) -> MapData | None:
    """Put a run's surroundings on a grid of times; None where T0, a duration or nodes are missing."""
    run = analysis.run
    if run.t0 is None or not run.duration_seconds or len(run.nodes) < 1:
        return None
    nodes = [node["name"] for node in run.nodes]
    heard = _heard(analysis, nodes)
    pairs = sum(part.select("low", "high").unique().height for part in heard.values())
    room = min(MAX_FRAMES, MAX_POSITIONS // len(nodes), max(MIN_FRAMES, MAX_VALUES // max(pairs, 1)))
    step = max(math.ceil(run.duration_seconds / (room - 1)), 1)
    frames = math.ceil(run.duration_seconds / step) + 1
    jammers = _jammers(run)
    reports = _reports(analysis, nodes)
    places, ground = _places(analysis, nodes, frames, step, jammers, reports)
    reported = None
    if ground and reports.height:
        reported = _held(_grid(reports.with_columns(frame=_frame(analysis, step, frames, "received")), ground, (len(nodes), frames)))
    layers = [_sinr(network, part.with_columns(frame=_frame(analysis, step, frames)), frames, step) for network, part in heard.items()]
    delivered = _delivered(analysis, nodes, frames, step)
    layers += [delivered] if delivered else []
    return MapData(nodes, [node["group"] for node in run.nodes], step, frames, places, ground, layers, jammers, reported)


def _jammers(run: Run) -> list[Jammer]:
    """Jammers of the timeline and of changes by hand; a later change of the same name ends one."""
    timeline = run.plan.get("spec", {}).get("timeline") or []
    changes = [(duration(entry["at"]), change) for entry in timeline for change in entry.get("set") or []]
    changes += [(live["atNanoseconds"] / 1e9, change) for live in run.plan.get("liveChanges") or [] for change in live["changes"]]
    made: list[Jammer] = []
    for at, change in sorted((entry for entry in changes if entry[1].get("jammer")), key=lambda entry: entry[0]):
        jammer, network = change["jammer"], change["network"]
        last = next((i for i in reversed(range(len(made))) if (made[i].network, made[i].name) == (network, jammer["name"])), None)
        if last is not None and made[last].end > at:
            made[last] = replace(made[last], end=at)
        if not any(jammer.get(key) for key in ("silent", "off", "false")):
            place = [float(jammer["position"][axis]) for axis in ("latitude", "longitude")] if jammer.get("position") else [None, None]
            made.append(Jammer(jammer["name"], network, at, run.duration_seconds, *place, words.change(change)))
    return made


def _frame(analysis: Analysis, step: float, frames: int, column: str = "ts") -> pl.Expr:
    """The first time of the grid at or after an event."""
    return (((pl.col(column) - analysis.run.t0) / (1e9 * step)).ceil().clip(0, frames - 1)).cast(pl.Int64)


def _number(column: str, nodes: list[str]) -> pl.Expr:
    return pl.col(column).cast(pl.String).replace_strict(nodes, range(len(nodes)), default=None, return_dtype=pl.Int64)


def _reports(analysis: Analysis, nodes: list[str]) -> pl.DataFrame:
    """Positions that nodes report, at the time at which the first subscriber on another node has one: number, received, coordinates.

    One that was overtaken by a later one is left out. So are those of platforms that carry no node.
    """
    carried = [i.name for i in analysis.run.instances if i.platform is None]
    rows = analysis.reports.lazy().with_columns(number=_number("node", nodes)).drop_nulls(["number", "received"])
    rows = rows.filter(pl.col("publisher").cast(pl.String).is_in(carried)).sort("received", "ts")
    rows = rows.filter(pl.col("ts") == pl.col("ts").cum_max().over("number"))
    return rows.select("number", "received", "latitudeDegrees", "longitudeDegrees").collect()


def _places(
    analysis: Analysis, nodes: list[str], frames: int, step: float, jammers: list[Jammer], reports: pl.DataFrame
) -> tuple[np.ndarray, Ground | None]:
    known = analysis.positions.with_columns(number=_number("node", nodes), frame=_frame(analysis, step, frames))
    known = known.filter(pl.col("number").is_not_null())
    if known.is_empty():
        return _circle(len(nodes), frames), None
    there = [jammer for jammer in jammers if jammer.latitude is not None]
    also = [[jammer.latitude for jammer in there], [jammer.longitude for jammer in there]]
    of_axes = zip(("latitudeDegrees", "longitudeDegrees"), also, strict=True)
    ground = Ground.around(*(np.concatenate([known[axis].to_numpy(), reports[axis].to_numpy(), jammed]) for axis, jammed in of_axes))
    return _held(_grid(known, ground, (len(nodes), frames))), ground


def _grid(rows: pl.DataFrame, ground: Ground, shape: tuple[int, int]) -> np.ndarray:
    """Places by node and time. Rows are in order of time: the last one of a moment wins."""
    grid = np.full((*shape, 2), UNKNOWN, dtype=np.uint16)
    units = ground.units(rows["latitudeDegrees"].to_numpy(), rows["longitudeDegrees"].to_numpy())
    grid[rows["number"].to_numpy(), rows["frame"].to_numpy()] = np.rint(units).astype(np.uint16)
    return grid


def _held(grid: np.ndarray) -> np.ndarray:
    """Repeat each node's last position until the next one."""
    seen = np.where(grid[:, :, 0] != UNKNOWN, np.arange(grid.shape[1]), 0)
    last = np.maximum.accumulate(seen, axis=1)
    return np.take_along_axis(grid, last[:, :, None], axis=1)


def _circle(count: int, frames: int) -> np.ndarray:
    angles = np.arange(count) / max(count, 1) * 2 * np.pi - np.pi / 2
    places = np.rint(_SPAN / 2 * (1 + 0.98 * np.stack([np.cos(angles), np.sin(angles)], axis=1))).astype(np.uint16)
    return np.repeat(places[:, None, :], frames, axis=1)


def _heard(analysis: Analysis, nodes: list[str]) -> dict[str, pl.DataFrame]:
    """By network, the seconds in which a receiver received from a source: ts, sinrDB, and the two nodes in order."""
    source, receiver = _number("source", nodes), _number("receiver", nodes)
    rows = (
        analysis.links.lazy()
        .with_columns(a=source, b=receiver, news=pl.col("heard") != pl.col("heard").shift(1, fill_value=0).over("network", "source", "receiver"))
        .filter(pl.col("news") & pl.col("a").is_not_null() & pl.col("b").is_not_null())
        .select("ts", "network", "sinrDB", "a", "b", low=pl.min_horizontal("a", "b"), high=pl.max_horizontal("a", "b"))
        .collect()
    )
    return {str(key[0]): part for key, part in rows.partition_by("network", as_dict=True, maintain_order=True).items()}


def _sinr(network: str, heard: pl.DataFrame, frames: int, step: float) -> Layer:
    """The weaker SINR of both directions, for links with a recent transmission."""
    counts = heard.group_by("low", "high").agg(n=pl.len()).sort(["n", "low", "high"], descending=[True, False, False])
    room = max(MAX_VALUES // frames, 1)
    kept = counts.head(room).sort("low", "high").with_row_index("pair")
    rows = heard.join(kept, on=("low", "high"))
    code = ((pl.col("sinrDB") - SINR_LEAST_DB) / SINR_STEP_DB).round().clip(0, 253) + 1
    rows = rows.sort("ts", maintain_order=True).with_columns(code=code.fill_null(NO_SINR).cast(pl.UInt8))
    hold = max(math.ceil(HOLD_SECONDS / step), 1)
    none = 256
    weaker = np.full((kept.height, frames), none, dtype=np.uint16)
    for forth in (True, False):
        some = rows.filter((pl.col("a") < pl.col("b")) == forth)
        codes = _last(some["pair"].to_numpy(), some["frame"].to_numpy(), some["code"].to_numpy(), weaker.shape, hold)
        weaker = np.minimum(weaker, codes.astype(np.uint16), out=weaker, where=codes != NOT_HEARD)
    values = np.where(weaker == none, NOT_HEARD, weaker).astype(np.uint8)
    return Layer(network, "sinr", kept.select("low", "high").to_numpy(), values, counts.height - kept.height)


def _last(rows: np.ndarray, columns: np.ndarray, codes: np.ndarray, shape: tuple[int, int], hold: int) -> np.ndarray:
    """Repeat each row's last code for this many columns."""
    grid = np.zeros(shape, dtype=np.uint8)
    grid[rows, columns] = codes
    # int16 holds every column: there are at most MAX_FRAMES.
    column = np.arange(shape[1], dtype=np.int16)
    said = np.maximum.accumulate(np.where(grid != NOT_HEARD, column, np.int16(-1)), axis=1)
    held = np.take_along_axis(grid, np.maximum(said, 0), axis=1)
    return np.where((said >= 0) & (column - said <= hold), held, NOT_HEARD).astype(np.uint8)


def _delivered(analysis: Analysis, nodes: list[str], frames: int, step: float) -> Layer | None:
    """The share of the deliveries between two nodes that arrived, of messages sent in the last SHARE_SECONDS."""
    index = {name: i for i, name in enumerate(nodes)}
    instances = pl.DataFrame(
        {"instance": [i.number for i in analysis.run.instances], "node": [index[i.node] for i in analysis.run.instances]},
        schema={"instance": analysis.deliveries.schema["publisher"], "node": pl.Int64},
    )
    rows = (
        analysis.deliveries.lazy()
        .join(instances.rename({"node": "a"}).lazy(), left_on="publisher", right_on="instance")
        .join(instances.rename({"node": "b"}).lazy(), left_on="subscriber", right_on="instance")
        .filter(pl.col("a") != pl.col("b"))
        .group_by(frame=_frame(analysis, step, frames, "sent"), low=pl.min_horizontal("a", "b"), high=pl.max_horizontal("a", "b"))
        .agg(expected=pl.len(), arrived=pl.col("received").count())
        .collect()
    )
    if rows.is_empty():
        return None
    counts = rows.group_by("low", "high").agg(n=pl.col("expected").sum()).sort(["n", "low", "high"], descending=[True, False, False])
    kept = counts.head(max(MAX_VALUES // frames, 1)).sort("low", "high").with_row_index("pair")
    rows = rows.join(kept, on=("low", "high"))
    window = max(math.ceil(SHARE_SECONDS / step), 1)
    expected, arrived = (_lately(rows, column, (kept.height, frames), window) for column in ("expected", "arrived"))
    # Rounded down, so that 100 % means all.
    values = np.where(expected > 0, 1 + 100 * arrived // np.maximum(expected, 1), 0).astype(np.uint8)
    return Layer("messages", "delivered", kept.select("low", "high").to_numpy(), values, counts.height - kept.height)


def _lately(rows: pl.DataFrame, column: str, shape: tuple[int, int], window: int) -> np.ndarray:
    """Sums over the last columns of the grid."""
    grid = np.zeros((shape[0], shape[1] + window), dtype=np.int64)
    np.add.at(grid, (rows["pair"].to_numpy(), rows["frame"].to_numpy() + window), rows[column].to_numpy())
    total = grid.cumsum(axis=1)
    return total[:, window:] - total[:, :-window]


SHAPES = ("circle", "square", "diamond", "triangle", "pentagon", "cross")
_SIDES = {"square": (4, 45), "diamond": (4, 0), "triangle": (3, -90), "pentagon": (5, -90)}


def snapshot(map_data: MapData, layer: Layer | None, frame: int, title: str) -> str:
    """The map at one time, as the script draws it, for print and for browsers without script."""
    canvas = charts.Canvas(charts.NARROW, 300, left=16, right=16, top=16, bottom=16)
    places, reported, jammers = _fitted(map_data, canvas)
    if layer is not None:
        _lines(canvas, layer, frame, places)
    for i in np.flatnonzero(map_data.seen(frame)).tolist():
        (x, y), (real_x, real_y) = reported[i, frame], places[i, frame]
        canvas.add("path", class_="reported", d=f"{shape('circle', x, y, 3)}M{x:.1f} {y:.1f}L{real_x:.1f} {real_y:.1f}")
    shapes = {group: i for i, group in enumerate(dict.fromkeys(map_data.groups))}
    for i, (name, group) in enumerate(zip(map_data.nodes, map_data.groups, strict=True)):
        if map_data.places[i, frame, 0] != UNKNOWN:
            x, y = places[i, frame]
            canvas.add("path", title=name, class_=f"node s{shapes[group] % charts.SERIES}", d=shape(SHAPES[shapes[group] % len(SHAPES)], x, y, 5))
            if len(map_data.nodes) <= 30:
                canvas.add("text", summary.shorten(name, 10), x=x + 7, y=y + 4, class_="name")
    for jammer, x, y in jammers:
        if jammer.start <= frame * map_data.step < jammer.end:
            canvas.add("path", title=jammer.about, class_="jammer", d=f"M{x - 6:.1f} {y - 6:.1f}l12 12m0-12l-12 12")
            canvas.add("text", summary.shorten(jammer.name, 10), x=x + 9, y=y + 4, class_="name")
    return canvas.svg(title)


def _fitted(map_data: MapData, canvas: charts.Canvas) -> tuple[np.ndarray, np.ndarray, list[tuple[Jammer, float, float]]]:
    """Positions of nodes, reported ones and jammers in px, centred with equal scales on both axes, and the graticule below them."""
    reported = map_data.places[:, :0] if map_data.reported is None else map_data.reported
    jammers = map_data.placed()
    known = np.concatenate([of[of[:, :, 0] != UNKNOWN].astype(float) for of in (map_data.places, reported)] + [[[x, y]] for _, x, y in jammers])
    low, high = known.min(axis=0), known.max(axis=0)
    room = np.array([canvas.width - canvas.left - canvas.right - 40, canvas.height - canvas.top - canvas.bottom])
    scale = float((room / np.maximum(high - low, 1.0)).min()) if (high > low).any() else 1000 / _SPAN
    begin = np.array([canvas.left, canvas.top]) + (room - (high - low) * scale) / 2
    if map_data.ground:
        _graticule(canvas, map_data.ground, low - begin / scale, scale)
    places, reports = (begin + (of.astype(float) - low) * scale for of in (map_data.places, reported))
    return places, reports, [(jammer, *(begin + (np.array([x, y]) - low) * scale)) for jammer, x, y in jammers]


def _graticule(canvas: charts.Canvas, ground: Ground, corner: np.ndarray, scale: float) -> None:
    """Lines of longitude and latitude, with their degrees; corner is the place at the canvas's upper left."""
    west, north = ground.longitude + corner[0] * ground.east, ground.latitude - corner[1] * ground.south
    across, down = ground.east / scale, ground.south / scale
    step = charts.round_step(across * canvas.width / 5)
    digits = max(-math.floor(math.log10(step) + 1e-9), 0)
    for i in range(math.ceil(west / step), math.floor((west + across * canvas.width) / step) + 1):
        x = (i * step - west) / across
        canvas.add("path", class_="graticule", d=f"M{x:.1f} 0V{canvas.height}")
        if 50 < x < canvas.width - 50:
            canvas.add("text", degrees(i * step, digits, "E", "W"), x=x + 2, y=canvas.height - 4, class_="degrees")
    for i in range(math.ceil((north - down * canvas.height) / step), math.floor(north / step) + 1):
        y = (north - i * step) / down
        canvas.add("path", class_="graticule", d=f"M0 {y:.1f}H{canvas.width}")
        if 12 < y < canvas.height - 14:
            canvas.add("text", degrees(i * step, digits, "N", "S"), x=2, y=y - 2, class_="degrees")


def degrees(value: float, digits: int, positive: str, negative: str) -> str:
    """A longitude or latitude for people."""
    value = (value + 180) % 360 - 180
    return f"{abs(value):.{digits}f}\u00b0\u00a0{positive if value >= 0 else negative}"


def _lines(canvas: charts.Canvas, layer: Layer, frame: int, places: np.ndarray) -> None:
    found = layer.classes(frame)
    for c in sorted(set(found.tolist()) - {-1}):
        ends = layer.pairs[found == c]
        path = "".join("M{:.0f} {:.0f}L{:.0f} {:.0f}".format(*places[a, frame], *places[b, frame]) for a, b in ends.tolist())
        canvas.add("path", class_=f"link l{c}", d=path)


def shape(name: str, x: float, y: float, radius: float) -> str:
    """The outline of a marker as the data of an SVG path."""
    if name == "circle":
        return f"M{x - radius:.1f} {y:.1f}a{radius} {radius} 0 1 0 {2 * radius} 0a{radius} {radius} 0 1 0 {-2 * radius} 0Z"
    if name == "cross":
        # A plus; its arms are a third of its width.
        steps = "h{0}v-{0}h{0}v{0}h{0}v{0}h-{0}v{0}h-{0}v-{0}h-{0}Z".format(f"{radius * 0.7:.1f}")
        return f"M{x - 1.05 * radius:.1f} {y - 0.35 * radius:.1f}{steps}"
    sides, turn = _SIDES[name]
    angles = [math.radians(turn + 360 * i / sides) for i in range(sides)]
    return "M" + "L".join(f"{x + 1.2 * radius * math.cos(a):.1f} {y + 1.2 * radius * math.sin(a):.1f}" for a in angles) + "Z"
