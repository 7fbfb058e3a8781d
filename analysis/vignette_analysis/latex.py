r"""Tables of a run as LaTeX, to be taken into a paper with \input: they need the packages booktabs and longtable."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from .figures import QUANTILES

FOLDER = "tables"
# Characters that mean something to TeX at some place of a table, and how they are written: brackets and the asterisk after the end of a row, quotes
# beside their like, as dashes.
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "'": "'{}",
    "`": "`{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
}
_LIGATURE = re.compile("-(?=-)|[?!](?=`)")


def escape(text: str) -> str:
    """A text as LaTeX prints it in any encoding of fonts: what is not printable ASCII is written U+XXXX."""
    written = (_SPECIAL.get(c) or (c if c.isascii() and c.isprintable() else f"U+{ord(c):04X}") for c in text)
    return _LIGATURE.sub("\\g<0>{}", "".join(written))


def write(results: dict, directory: Path) -> list[Path]:
    """Write every table below a folder and return their paths."""
    folder = directory / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"headline": headline(results), "groups": groups(results), "publishers": publishers(results), "networks": networks(results)}
    for name, text in texts.items():
        (folder / f"{name}.tex").write_text(text)
    return [folder / f"{name}.tex" for name in texts]


def headline(results: dict) -> str:
    """One figure of the whole run a row."""
    return _tabular("lr", ("Figure", "Value"), headline_rows(results), results)


def headline_rows(results: dict) -> list[tuple[str, str]]:
    """The figures of the whole run as text: what, value (empty: there is none); units are in the names."""
    counts, delay = results["messages"], results["delaySeconds"] or {}
    verdict = results.get("verdict")
    kept_up = "not judged" if verdict is None else "kept up" if verdict["keptUp"] else f"late {len(verdict['late'])} times"
    every = next((entry for entry in results["groups"] or [] if entry["name"] == "all"), {})
    confidence = every.get("confidence") or {}
    rows = [
        ("Experiment", results["experiment"]),
        ("Duration (s)", f"{results['durationSeconds']:.1f}"),
        ("Emulation", kept_up),
        ("Messages sent", str(counts["sent"])),
        ("Deliveries expected", str(counts["expected"])),
        ("Deliveries received", str(counts["received"])),
        ("Deliveries lost", str(counts["lost"])),
        ("Deliveries lost (%)", _number(counts["lostPercent"] if counts["expected"] else None, 2) + _interval(confidence.get("lostPercent"), 2)),
        ("Duplicates", str(counts["duplicates"])),
    ]
    names = {"min": "least", "p25": "lower quartile", "median": "median", "p75": "upper quartile", "max": "greatest"}
    for quantile, name in names.items():
        interval = _interval(confidence.get("medianSeconds"), 4) if quantile == "median" else ""
        rows.append((f"Delay, {name} (s)", _number(delay.get(quantile), 4) + interval))
    rows.append(("Gaps in the results", str(len(results["gaps"] or []))))
    if confidence.get("level"):
        rows.append(("Level of the intervals (%)", f"{confidence['level'] * 100:g}"))
    return rows


def groups(results: dict) -> str:
    """Counts and delays by group."""
    return _tabular("l" + "r" * (len(_FIGURES) + len(QUANTILES)), ("Group", *_FIGURE_HEADER), _figure_rows(results["groups"]), results)


def publishers(results: dict) -> str:
    """Counts and delays by publisher, on as many pages as they take."""
    columns = "l" + "r" * (len(_FIGURES) + len(QUANTILES))
    return _tabular(columns, ("Publisher", *_FIGURE_HEADER), _figure_rows(results["publishers"]), results, long=True)


_FIGURES = {"sent": "Sent", "expected": "Exp.", "received": "Recv.", "lost": "Lost", "lostPercent": r"Lost (\%)", "duplicates": "Dupl."}
_FIGURE_HEADER = (*_FIGURES.values(), "Min (s)", "Q1 (s)", "Median (s)", "Q3 (s)", "Max (s)")


def _figure_rows(entries: list[dict] | None) -> Iterable[Sequence[str]]:
    for entry in entries or []:
        counts, delay = entry["messages"], entry["delaySeconds"] or {}
        cells = [_number(counts[c] if counts["expected"] else None, 2) if c == "lostPercent" else str(counts[c]) for c in _FIGURES]
        yield [entry["name"], *cells, *(_number(delay.get(q), 4) for q in QUANTILES)]


# Of a network's results: each figure's name in tables, and where it is.
_NETWORK = {
    "bytesPerSecond": ("bytesPerSecond",),
    "routingBytesPerSecond": ("routingBytesPerSecond",),
    **{f"{layer}BytesPerSecond": ("byLayer", layer) for layer in ("ethernet", "ip", "transport", "application")},
    **{f"tcp{key[0].upper()}{key[1:]}": ("tcp", key) for key in ("retransmissions", "spurious", "duplicateAcks")},
}
NETWORK_FIGURES = tuple(_NETWORK)


def network_rows(results: dict) -> list[dict[str, str | float | None]]:
    """Each network's name and NETWORK_FIGURES: bytes per second, and counts of TCP; None was not measured."""
    return [{"name": entry["name"]} | {name: _at(entry, path) for name, path in _NETWORK.items()} for entry in results["networks"] or []]


def _at(entry: dict, path: tuple[str, ...]) -> float | None:
    for key in path[:-1]:
        entry = entry.get(key) or {}
    return entry.get(path[-1])


def networks(results: dict) -> str:
    """Data volume by layer and TCP's retransmissions by network."""
    header = ("Network", "All (B/s)", "Routing", "Ethernet", "IP", "Transport", "Appl.", "TCP retr.", "Spurious", "Dup. ACKs")
    rows = [
        [str(row["name"]), *(_number(row[name], 0 if name.startswith("tcp") else 1) for name in NETWORK_FIGURES)] for row in network_rows(results)
    ]
    return _tabular("l" + "r" * (len(header) - 1), header, rows, results)


def _number(value: float | None, decimals: int) -> str:
    return "" if value is None else f"{value:.{decimals}f}"


def _interval(bounds: dict | None, decimals: int) -> str:
    return f" [{bounds['low']:.{decimals}f}, {bounds['high']:.{decimals}f}]" if bounds else ""


def _cell(text: str) -> str:
    """A cell: a dash for nothing, and numbers below zero with a minus sign in place of a hyphen."""
    return re.sub(r"^-(?=\d)", "$-$", escape(text)) or "--"


def _tabular(columns: str, header: Sequence[str], rows: Iterable[Sequence[str]], results: dict, long: bool = False) -> str:
    """A table with booktabs' rules. The header is LaTeX already; a comment says which run it is of."""
    kind = "longtable" if long else "tabular"
    head = [" & ".join(header) + r" \\", r"\midrule", *([r"\endhead", r"\bottomrule", r"\endfoot"] if long else [])]
    body = [" & ".join(map(_cell, row)) + r" \\" for row in rows]
    lines = [rf"\begin{{{kind}}}{{{columns}}}", r"\toprule", *head, *body, *([] if long else [r"\bottomrule"]), rf"\end{{{kind}}}"]
    of = "".join(c if c.isascii() and c.isprintable() else "?" for c in f"{results['namespace']}/{results['experiment']}, run {results['uid']}")
    return f"% {of}. \\usepackage{{booktabs,longtable}}\n" + "\n".join(lines) + "\n"
