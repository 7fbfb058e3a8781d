"""Plots of a run for print, as PNG and SVG: one module for each, and one line each in PLOTS.

A module's `draw(analysis)` returns a figure, or None where the run has nothing to show there: the file is not made, and why
there is nothing is named where it was found. matplotlib is imported where it is used only: it takes as long as a small analysis.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis import Analysis
from ..gaps import Gaps
from . import age, by_group, by_publisher, hops, links, loss, over_time, stages, style, volume

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = "plots"
# The name of each plot's files, and what draws it.
PLOTS: dict[str, Callable[[Analysis], "Figure | None"]] = {
    "delays-by-publisher": by_publisher.draw,
    "delays-by-group": by_group.draw,
    "delays-over-time": over_time.draw,
    "delay-stages": stages.draw,
    "age-by-subscriber": age.draw,
    "loss": loss.draw,
    "volume-by-layer": volume.by_layer,
    "volume-by-protocol": volume.by_protocol,
    "hops-over-time": hops.draw,
    "links-over-time": links.draw,
}


def write(analysis: Analysis, directory: Path) -> list[Path]:
    """Write every plot and return the paths of those that were drawn; of those that failed there are gaps in the results."""
    gaps, paths = Gaps(), []
    for name, draw in PLOTS.items():
        try:
            paths += save(draw, analysis, directory / FOLDER / name)
        except Exception as error:
            # Whatever goes wrong in drawing, the figures are computed and must not be lost with it.
            gaps.add(f"plot {name}", f"it could not be drawn: {type(error).__name__}: {error}")
    analysis.results["gaps"] = (analysis.results["gaps"] or []) + gaps.found or None
    return paths


def save(draw: Callable[[Analysis], "Figure | None"], analysis: Analysis, stem: Path) -> list[Path]:
    """Draw one plot as STEM.png and STEM.svg, the same bytes every time, and return their paths: none where there is nothing to draw."""
    # Without a home that can be written to, matplotlib complains and makes such a folder anyhow.
    os.environ.setdefault("MPLCONFIGDIR", str(Path(tempfile.gettempdir()) / "vignette-matplotlib"))
    import matplotlib

    with matplotlib.rc_context(style.RC):
        figure = draw(analysis)
        if figure is None:
            return []
        style.settle(figure)
        stem.parent.mkdir(parents=True, exist_ok=True)
        paths = []
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
            paths.append(stem.with_suffix(suffix))
            figure.savefig(paths[-1], dpi=style.DPI, metadata=metadata)
    return paths
