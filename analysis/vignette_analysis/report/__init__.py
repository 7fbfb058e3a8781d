"""The report of a run: one self-contained HTML file, with the same bytes for the same run.

Sections are independent. A section that fails becomes a gap, and a sentence in its place.
"""

import base64
import functools
import hashlib
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from ..data.gaps import Gaps
from ..figures.analysis import Analysis
from . import asked, bursting, charts, delays, figures, freshness, incidents, mapping, pictured, radios, record, traffic, words
from .parts import Section, Text

NAME = "report.html"

# The name for a gap, and the function that makes the section.
SECTIONS: dict[str, Callable[[Analysis, Gaps], Section | None]] = {
    "figures": lambda analysis, _: figures.section(analysis),
    "late": lambda analysis, _: record.late(analysis),
    "delays": lambda analysis, _: delays.section(analysis),
    "requests": lambda analysis, _: asked.section(analysis),
    "bursts": lambda analysis, _: bursting.section(analysis),
    "losses": lambda analysis, _: delays.losses(analysis),
    "freshness": lambda analysis, _: freshness.section(analysis),
    "picture": lambda analysis, _: pictured.section(analysis),
    "map": lambda analysis, _: mapping.section(analysis),
    "hops": lambda analysis, _: radios.hops(analysis),
    "links": lambda analysis, _: radios.links(analysis),
    "data volume": lambda analysis, _: traffic.volume_section(analysis),
    "TCP": lambda analysis, _: traffic.tcp_section(analysis),
    "changes by hand": lambda analysis, _: record.by_hand(analysis),
    "incidents": incidents.section,
    "run": lambda analysis, _: record.run(analysis),
}


def write(analysis: Analysis, directory: Path) -> list[Path]:
    """Write the report into a folder and return its path. Failures become gaps in the results, never errors."""
    gaps = Gaps()
    try:
        path = directory / NAME
        path.write_bytes(render(analysis, gaps))
        return [path]
    except Exception as error:
        # An error here must not lose the computed figures.
        gaps.add("report", f"it could not be made: {type(error).__name__}: {error}")
        return []
    finally:
        analysis.results["gaps"] = (analysis.results["gaps"] or []) + gaps.found or None


def render(analysis: Analysis, gaps: Gaps) -> bytes:
    """The report as HTML in UTF-8. Sections that failed are added to the gaps."""
    made = []
    for name, make in SECTIONS.items():
        before = len(gaps.found)
        try:
            section = make(analysis, gaps)
            # Parts outside sections are made here, so that rendering the page cannot fail on them.
            if section is not None:
                _page("section.html", section=section)
        except Exception as error:
            del gaps.found[before:]
            gaps.add(f"report: {name}", f"this section could not be made: {type(error).__name__}: {error}")
            broken = [Text("This section could not be made: see \u201cWhat is missing\u201d.")]
            section = Section(name.replace(" ", "-"), name[0].upper() + name[1:], broken)
        if section is not None:
            made.append(section)
    made.append(record.missing(analysis, gaps.found))
    script = _template("report.js")
    return page(
        "report.html",
        results=analysis.results,
        start=words.clock(analysis.run.t0),
        duration=analysis.run.duration_seconds,
        banner=words.banner(analysis.results),
        headline=words.headline(analysis.results),
        sections=made,
        script=Markup(script),
        script_hash=_digest(script),
    )


def page(name: str, **values: object) -> bytes:
    """A page in the report's style, from its template."""
    style = _template("report.css")
    # JSON may contain half a surrogate pair, which is no character.
    return _page(name, style=Markup(style), style_hash=_digest(style), **values).encode("utf-8", "replace")


def _template(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """A source in a Content-Security-Policy that allows exactly this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: object) -> Markup:
    """JSON for a script element, without any character that could end it."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


@functools.cache
def _environment() -> jinja2.Environment:
    loader, undefined = jinja2.FunctionLoader(_template), jinja2.StrictUndefined
    environment = jinja2.Environment(loader=loader, undefined=undefined, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["json"] = _json
    environment.globals["markers"] = charts.MARKERS
    return environment


def _page(name: str, **values: object) -> str:
    return _environment().get_template(name).render(**values)
