"""Writes runs with their results, which internal/live is held against: python live_runs.py DIRECTORY."""

import json
import sys
from dataclasses import replace
from pathlib import Path

from company import company
from lab import BFT, PICTURE, Lab
from test_reference import NAMED, Writer

from vignette_analysis import analyse

# What only the whole of the logs can tell: which of several messages of one id was meant, and what clocks that differ do to medians.
LEFT_OUT = {"receivers without topics", "clocks of hosts that differ", "clocks that are set back"}


def troubled(directory: Path) -> list[Lab]:
    """The runs of the reference, whose lines are in the order of their times, as programs write them."""
    runs = []
    for name, trouble in NAMED.items():
        if name in LEFT_OUT:
            continue
        lab = Writer(directory / name.replace(" ", "-"), replace(trouble, messages=trouble.messages * 5), 1).lab
        for lines in lab.logs.values():
            lines.sort(key=_time)
        runs.append(lab)
    return runs


def _time(line: str) -> int:
    try:
        return json.loads(line)["ts"]
    except (ValueError, TypeError, KeyError):
        return 0


def bridged(directory: Path) -> Lab:
    """Two brokers and a way between them for one of two topics, which has another name beyond."""
    lab = Lab(directory)
    here, there = {"brokers": ["nor/b"]}, {"brokers": ["prt/b"]}
    lab.node("nor", BFT | {"topic": "/bft"} | here, {"name": "log", "topic": "/log"} | here, PICTURE | here).node("prt", PICTURE | there)
    lab.renamed = [("nor/bft", "prt/picture", "nor/bft")]
    for m in range(40):
        lab.event("nor/bft", "sent", m + 0.5, f"b{m}", "/bft").event("nor/log", "sent", m + 0.6, f"l{m}", "/log")
        lab.event("nor/picture", "received", m + 0.51 + m / 1e4, f"b{m}", "/bft")
        if m % 4:
            lab.event("prt/picture", "received", m + 0.9 - m / 1e3, f"b{m}", "nor/bft")
    return lab


def dead(directory: Path) -> Lab:
    """Two nodes of one group whose radio carries nothing: one client never connects, and what the other one sends is lost."""
    lab = Lab(directory).node("veh-1", BFT, PICTURE, group="veh").node("veh-2", BFT, PICTURE, group="veh")
    for m in range(31):
        lab.event("veh-1/bft", "triggered", m + 0.5, f"m{m}", "/veh-1/bft")
        lab.event("veh-2/bft", "triggered", m + 0.5, f"n{m}").event("veh-2/bft", "sent", m + 0.6, f"n{m}")
        lab.event("veh-2/picture", "received", m + 0.7, f"n{m}", "/veh-2/bft")
    return lab


def main(directory: Path) -> None:
    """Write every run, and beside its records what the analysis makes of it."""
    for lab in [*troubled(directory), bridged(directory / "bridged"), dead(directory / "dead"), company(directory / "company", seconds=300)]:
        folder = lab.write()
        (folder / "results.json").write_text(json.dumps(analyse(folder).results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
