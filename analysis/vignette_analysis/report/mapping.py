"""The section with the moving map."""

from itertools import pairwise

import numpy as np

from ..figures import summary
from ..figures.analysis import Analysis
from . import mapdata
from .charts import SERIES, number
from .mapdata import Layer, MapData
from .parts import Map, Section, Table, Text, table
from .times import TABLE_TIMES, happenings

SNAPSHOTS = 4


def section(analysis: Analysis) -> Section:
    """Nodes and links over time."""
    map_data = mapdata.build(analysis)
    if map_data is None:
        return Section("map", "Map", [Text("Without T0, a duration and nodes there is nothing to show over time.")])
    bands, marks = happenings(analysis)
    data = map_data.data() | {
        "start": analysis.run.t0 // 10**6,
        "bands": [[band.start, band.end, band.label] for band in bands],
        "marks": [[mark.at, mark.label] for mark in marks],
        "classes": {layer.kind: names(layer) for layer in map_data.layers},
    }
    groups = list(dict.fromkeys(map_data.groups))
    legend = [(group, f"s{i % SERIES}", mapdata.shape(mapdata.SHAPES[i % len(mapdata.SHAPES)], 8, 8, 5)) for i, group in enumerate(groups)]
    shown = map_data.layers[0] if map_data.layers else None
    frames = sorted({round(i * (map_data.frames - 1) / (SNAPSHOTS - 1)) for i in range(SNAPSHOTS)})
    titles = [f"Map at {number(f * map_data.step)} s after T0" for f in frames]
    pictures = [(_caption(map_data, shown, f), mapdata.snapshot(map_data, shown, f, title)) for f, title in zip(frames, titles, strict=True)]
    return Section("map", "Map", [Map(data, pictures, about(map_data), legend[:24], _figures(map_data, shown))])


def names(layer: Layer) -> list[str]:
    """The meaning of each class of lines."""
    bounds = layer.bounds
    if layer.kind == "sinr":
        between = [f"{a} to {b} dB" for a, b in pairwise(bounds)]
        return [f"< {bounds[0]} dB", *between, f"\u2265 {bounds[-1]} dB", "heard, SINR not known"]
    return ["none", *(f"{a} to {b - 1} %" for a, b in pairwise(bounds)), "all", ""]


def about(map_data: MapData) -> str:
    """A description of the map."""
    where = "Positions as radiod computed them; north is up."
    if map_data.ground is None:
        where = "Positions are not known: nodes are on a circle, a schematic layout without distances."
    if map_data.reported is not None:
        where += " Rings: the freshest position that a subscriber on another node has received, with a line to the true one."
    hidden = int((map_data.places[:, :, 0] == mapdata.UNKNOWN).all(axis=1).sum())
    where += f" {hidden} nodes without a position are not drawn." if hidden else ""
    if undrawn := dict.fromkeys(j.name for j in map_data.jammers if map_data.ground is None or j.latitude is None):
        where += f" Not drawn, as it has no place here: jammer {', '.join(undrawn)}."
    kinds = {layer.kind for layer in map_data.layers}
    lines = ""
    if "sinr" in kinds:
        lines += f" Lines: SINR of the last transmission that was heard in the last {mapdata.HOLD_SECONDS} s, of the weaker direction."
    if "delivered" in kinds:
        lines += f" Messages: share of the deliveries between two nodes that arrived, of what was sent in the last {mapdata.SHARE_SECONDS} s."
    for layer in map_data.layers:
        if layer.left_out:
            lines += f" Of {layer.name}, {len(layer.pairs)} pairs with the most news are drawn, {layer.left_out} are not."
    return f"{where}{lines or ' There are no links to show.'} One picture for every {number(map_data.step)} s."


def _caption(map_data: MapData, layer: Layer | None, frame: int) -> str:
    if layer is None:
        return f"{number(frame * map_data.step)} s"
    what = f"SINR on {layer.name}" if layer.kind == "sinr" else "messages that arrived"
    return f"{number(frame * map_data.step)} s: {what}, {int((layer.classes(frame) >= 0).sum())} lines"


def _figures(map_data: MapData, layer: Layer | None) -> Table | None:
    if layer is None:
        return None
    frames = sorted({round(i * (map_data.frames - 1) / TABLE_TIMES) for i in range(TABLE_TIMES + 1)})
    count = len(layer.bounds) + 2
    rows = []
    for frame in frames:
        found = layer.classes(frame)
        classes = np.bincount(found[found >= 0], minlength=count)
        rows.append((number(frame * map_data.step), number(int(classes.sum())), *(number(int(n)) for n in classes[: len(layer.bounds) + 1])))
    header = ("Time (s after T0)", "Lines", *names(layer)[:-1])
    return table(f"Figures of {summary.shorten(layer.name, 40)}", header, rows, folded=True)
