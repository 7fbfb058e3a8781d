"""The report of a run: one HTML file that needs nothing else, and the same bytes for the same run.

Every section is made apart: one that cannot be made is a gap, says so in its place, and harms no other.
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

from ..analysis import Analysis
from ..gaps import Gaps
from . import charts, delays, figures, freshness, incidents, mapping, radios, record, traffic, words
from .parts import Section, Text

NAME = "report.html"

# A name for the gap, and what makes the section.
SECTIONS: dict[str, Callable[[Analysis, Gaps], Section | None]] = {
    "figures": lambda analysis, _: figures.section(analysis),
    "late": lambda analysis, _: record.late(analysis),
    "delays": lambda analysis, _: delays.section(analysis),
    "losses": lambda analysis, _: delays.losses(analysis),
    "freshness": lambda analysis, _: freshness.section(analysis),
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
    """Write the report into a folder and return its path; what could not be made is a gap in the results, and none of it an error."""
    gaps = Gaps()
    try:
        path = directory / NAME
        path.write_bytes(render(analysis, gaps))
        return [path]
    except Exception as error:
        # Whatever goes wrong here, the figures are computed and must not be lost with it.
        gaps.add("report", f"it could not be made: {type(error).__name__}: {error}")
        return []
    finally:
        analysis.results["gaps"] = (analysis.results["gaps"] or []) + gaps.found or None


def render(analysis: Analysis, gaps: Gaps) -> bytes:
    """The report as HTML in UTF-8; sections that could not be made are added to the gaps, and named among what is missing."""
    made = []
    for name, make in SECTIONS.items():
        before = len(gaps.found)
        try:
            section = make(analysis, gaps)
            # What is in no section of its own is checked here: nothing of it may fail while the page is put together.
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
    """A page of its own in the report's style, by its template."""
    style = _template("report.css")
    # Half of a surrogate pair, which JSON can have, is no character.
    return _page(name, style=Markup(style), style_hash=_digest(style), **values).encode("utf-8", "replace")


def _template(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """A source in a Content-Security-Policy that allows exactly this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: object) -> Markup:
    """JSON that may stand in a script element: no character of it can end that."""
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
