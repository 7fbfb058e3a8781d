"""Plots of a run for print, as PNG and SVG: one module for each, and one line each in PLOTS.

A module's `draw(analysis)` returns a figure, or None where the run has nothing to show. Then there is no file, and a gap or
note names the reason. matplotlib is imported only where it is used: the import takes as long as a small analysis.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.gaps import Gaps
from ..figures.analysis import Analysis
from . import age, by_group, by_publisher, hops, links, loss, over_time, picture, responses, stages, style, volume

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
    "picture-tracks": picture.tracks,
    "picture-over-time": picture.over_time,
    "loss": loss.draw,
    "response-times-by-group": responses.times,
    "request-outcomes": responses.outcomes,
    "volume-by-layer": volume.by_layer,
    "volume-by-protocol": volume.by_protocol,
    "hops-over-time": hops.draw,
    "links-over-time": links.draw,
}


def write(analysis: Analysis, directory: Path) -> list[Path]:
    """Write every plot and return the paths of the drawn ones. A failed plot becomes a gap in the results."""
    gaps, paths = Gaps(), []
    for name, draw in PLOTS.items():
        try:
            paths += save(draw, analysis, directory / FOLDER / name)
        except Exception as error:
            # An error in drawing must not lose the computed figures.
            gaps.add(f"plot {name}", f"it could not be drawn: {type(error).__name__}: {error}")
    analysis.results["gaps"] = (analysis.results["gaps"] or []) + gaps.found or None
    return paths


def save(draw: Callable[[Analysis], "Figure | None"], analysis: Analysis, stem: Path) -> list[Path]:
    """Draw a plot as STEM.png and STEM.svg, with the same bytes every time, and return their paths; none without data."""
    # Without a writable home matplotlib warns and makes a temporary folder.
    os.environ.setdefault("MPLCONFIGDIR", str(Path(tempfile.gettempdir()) / "vignette-matplotlib"))
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with matplotlib.rc_context(style.RC):
        figure = draw(analysis)
        if figure is None:
            return []
        style.settle(figure)
        stem.parent.mkdir(parents=True, exist_ok=True)
        png, svg = stem.with_suffix(".png"), stem.with_suffix(".svg")
        # Figure.savefig would lay out the figure again before each file.
        figure.dpi = style.DPI
        FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
    return [png, svg]
