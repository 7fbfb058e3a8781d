"""The section with the moving map."""

from itertools import pairwise

import numpy as np

from ..analysis import Analysis
from . import scene as scenes
from .charts import SERIES, number, shorten
from .parts import Map, Section, Table, Text, table
from .scene import Layer, Scene
from .times import TABLE_TIMES, happenings

SNAPSHOTS = 4


def section(analysis: Analysis) -> Section:
    """Nodes and links over time."""
    scene = scenes.build(analysis)
    if scene is None:
        return Section("map", "Map", [Text("Without T0, a duration and nodes there is nothing to show over time.")])
    bands, marks = happenings(analysis)
    data = scene.data() | {
        "start": analysis.run.t0 // 10**6,
        "bands": [[band.start, band.end, band.label] for band in bands],
        "marks": [[mark.at, mark.label] for mark in marks],
        "classes": {layer.kind: names(layer) for layer in scene.layers},
    }
    groups = list(dict.fromkeys(scene.groups))
    legend = [(group, f"s{i % SERIES}", scenes.shape(scenes.SHAPES[i % len(scenes.SHAPES)], 8, 8, 5)) for i, group in enumerate(groups)]
    shown = scene.layers[0] if scene.layers else None
    frames = sorted({round(i * (scene.frames - 1) / (SNAPSHOTS - 1)) for i in range(SNAPSHOTS)})
    pictures = [(_caption(scene, shown, f), scenes.snapshot(scene, shown, f, f"Map at {number(f * scene.step)} s after T0")) for f in frames]
    return Section("map", "Map", [Map(data, pictures, about(scene), legend[:24], _figures(scene, shown))])


def names(layer: Layer) -> list[str]:
    """What each class of lines means."""
    bounds = layer.bounds
    if layer.kind == "sinr":
        between = [f"{a} to {b} dB" for a, b in pairwise(bounds)]
        return [f"< {bounds[0]} dB", *between, f"\u2265 {bounds[-1]} dB", "heard, SINR not known"]
    return ["none", *(f"{a} to {b - 1} %" for a, b in pairwise(bounds)), "all", ""]


def about(scene: Scene) -> str:
    """What the map shows and how."""
    where = "Positions as radiod reckoned them; north is up."
    if scene.ground is None:
        where = "Positions are not known: nodes are on a circle, a schematic layout without distances."
    hidden = int((scene.places[:, :, 0] == scenes.UNKNOWN).all(axis=1).sum())
    where += f" {hidden} nodes without a position are not drawn." if hidden else ""
    if undrawn := dict.fromkeys(j.name for j in scene.jammers if scene.ground is None or j.latitude is None):
        where += f" Not drawn, as it has no place here: jammer {', '.join(undrawn)}."
    kinds = {layer.kind for layer in scene.layers}
    lines = ""
    if "sinr" in kinds:
        lines += f" Lines: SINR of the last transmission that was heard in the last {scenes.HOLD_SECONDS} s, of the weaker direction."
    if "delivered" in kinds:
        lines += f" Messages: share of the deliveries between two nodes that arrived, of what was sent in the last {scenes.SHARE_SECONDS} s."
    for layer in scene.layers:
        if layer.left_out:
            lines += f" Of {layer.name}, {len(layer.pairs)} pairs with the most news are drawn, {layer.left_out} are not."
    return f"{where}{lines or ' There are no links to show.'} One picture for every {number(scene.step)} s."


def _caption(scene: Scene, layer: Layer | None, frame: int) -> str:
    if layer is None:
        return f"{number(frame * scene.step)} s"
    what = f"SINR on {layer.name}" if layer.kind == "sinr" else "messages that arrived"
    return f"{number(frame * scene.step)} s: {what}, {int((layer.classes(frame) >= 0).sum())} lines"


def _figures(scene: Scene, layer: Layer | None) -> Table | None:
    if layer is None:
        return None
    frames = sorted({round(i * (scene.frames - 1) / TABLE_TIMES) for i in range(TABLE_TIMES + 1)})
    count = len(layer.bounds) + 2
    rows = []
    for frame in frames:
        found = layer.classes(frame)
        classes = np.bincount(found[found >= 0], minlength=count)
        rows.append((number(frame * scene.step), number(int(classes.sum())), *(number(int(n)) for n in classes[: len(layer.bounds) + 1])))
    header = ("Time (s after T0)", "Lines", *names(layer)[:-1])
    return table(f"Figures of {shorten(layer.name, 40)}", header, rows, folded=True)
