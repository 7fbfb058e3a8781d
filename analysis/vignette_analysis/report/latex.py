r"""Tables of a run as LaTeX, for \input in a paper. They need the packages booktabs and longtable."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..figures import summary
from ..figures.deliveries import QUANTILES

FOLDER = "tables"
# Characters that are special to TeX somewhere in a table, with their escapes: brackets and asterisk after a row's end, quotes
# and dashes beside their like.
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
    """Escape a text for LaTeX in any font encoding. A character that is not printable ASCII becomes U+XXXX."""
    written = (_SPECIAL.get(c) or (c if c.isascii() and c.isprintable() else f"U+{ord(c):04X}") for c in text)
    return _LIGATURE.sub("\\g<0>{}", "".join(written))


def write(results: dict, directory: Path) -> list[Path]:
    """Write every table below a folder and return their paths."""
    folder = directory / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"headline": headline(results), "groups": groups(results), "publishers": publishers(results), "networks": networks(results)}
    if entries := summary.pairs(results):
        texts["pairs"] = pairs(entries, results)
    if "requests" in results:
        texts["requests"] = requests(results)
    for name, text in texts.items():
        (folder / f"{name}.tex").write_text(text)
    return [folder / f"{name}.tex" for name in texts]


def pairs(entries: list[dict], results: dict) -> str:
    """Counts and delays by groups of sender and receiver."""
    rows = _figure_rows([entry | {"name": summary.pair(entry)} for entry in entries])
    return _tabular("l" + "r" * (len(_FIGURES) + len(QUANTILES)), ("From and to", *_FIGURE_HEADER), rows, results, long=True)


def requests(results: dict) -> str:
    """Counts and response times of requests by group, pair of groups and publisher."""
    header = (
        "Requests of",
        "Requests",
        "Sent",
        "Receipts",
        r"Receipts (\%)",
        "Failed",
        "Outst.",
        "Retr.",
        "Min (s)",
        "Median (s)",
        "Mean (s)",
        "95 \\% (s)",
        "Max (s)",
    )
    return _tabular("lrrrrlrr" + "r" * 5, header, summary.request_rows(results), results, long=True)


def headline(results: dict) -> str:
    """A row for each figure of the whole run."""
    return _tabular("lr", ("Figure", "Value"), summary.headline(results), results)


def groups(results: dict) -> str:
    """Counts and delays by group."""
    return _tabular("l" + "r" * (len(_FIGURES) + len(QUANTILES)), ("Group", *_FIGURE_HEADER), _figure_rows(results["groups"]), results)


def publishers(results: dict) -> str:
    """Counts and delays by publisher, on one page or more."""
    columns = "l" + "r" * (len(_FIGURES) + len(QUANTILES))
    return _tabular(columns, ("Publisher", *_FIGURE_HEADER), _figure_rows(results["publishers"]), results, long=True)


_FIGURES = {"sent": "Sent", "offered": "Offered", "received": "Recv.", "deliveredPercent": r"Recv. (\%)", "lost": "Lost", "duplicates": "Dupl."}
_FIGURE_HEADER = (*_FIGURES.values(), "Min (s)", "Q1 (s)", "Median (s)", "Mean (s)", "Q3 (s)", "95 \\% (s)", "Max (s)")


def _figure_rows(entries: list[dict] | None) -> Iterable[Sequence[str]]:
    digits = summary.places(entries or [])
    for entry in entries or []:
        counts = entry["messages"]
        cells = [summary.percent(counts.get(c)) if c == "deliveredPercent" else str(counts[c]) for c in _FIGURES]
        yield [entry["name"], *cells, *(summary.delay(entry, q, digits) for q in QUANTILES)]


def networks(results: dict) -> str:
    """Data volume by layer and TCP's retransmissions by network."""
    header = ("Network", "All (B/s)", "Routing", "Ethernet", "IP", "Transport", "Appl.", "TCP retr.", "Spurious", "Dup. ACKs")
    rows = [
        [str(row["name"]), *(summary.number(row[name], 0 if name.startswith("tcp") else 1) for name in summary.NETWORK_FIGURES)]
        for row in summary.networks(results)
    ]
    return _tabular("l" + "r" * (len(header) - 1), header, rows, results)


def _cell(text: str) -> str:
    """A cell: a dash for nothing, and a minus sign for numbers below zero."""
    return re.sub(r"^-(?=\d)", "$-$", escape(text)) or "--"


def _tabular(columns: str, header: Sequence[str], rows: Iterable[Sequence[str]], results: dict, long: bool = False) -> str:
    """A table with booktabs' rules. The header is LaTeX already. A comment names the run."""
    kind = "longtable" if long else "tabular"
    head = [" & ".join(header) + r" \\", r"\midrule", *([r"\endhead", r"\bottomrule", r"\endfoot"] if long else [])]
    body = [" & ".join(map(_cell, row)) + r" \\" for row in rows]
    lines = [rf"\begin{{{kind}}}{{{columns}}}", r"\toprule", *head, *body, *([] if long else [r"\bottomrule"]), rf"\end{{{kind}}}"]
    of = "".join(c if c.isascii() and c.isprintable() else "?" for c in f"{results['namespace']}/{results['experiment']}, run {results['uid']}")
    return f"% {of}. \\usepackage{{booktabs,longtable}}\n" + "\n".join(lines) + "\n"
