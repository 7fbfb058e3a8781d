"""python3 -m vignette_analysis compare DIR DIR …"""

import argparse
import sys
from pathlib import Path

from .comparison import compare
from .reference import MAX_BYTES, Reference, parse, read
from .rendering import FORMS


def add(commands) -> None:
    """Add the command to a program's commands."""
    command = commands.add_parser("compare", help="put runs side by side, with effect sizes and tests")
    command.add_argument("directories", nargs="*", type=Path, metavar="DIR", help="a run's folder")
    command.add_argument("--by", metavar="FIELD", help="field of the spec whose values are compared, such as delay; run: each run with each other")
    command.add_argument(
        "--reference",
        type=Path,
        metavar="FILE",
        help="CSV file of published or earlier figures, to stand beside those of the runs; -: from standard input",
    )
    command.add_argument("--reference-name", default="standard input", help=argparse.SUPPRESS)
    command.add_argument("--format", choices=FORMS, default="text", help="what to print")
    command.add_argument("--out", type=Path, help="folder to write every form to, too")
    command.set_defaults(execute=_execute)


def _execute(options: argparse.Namespace) -> int:
    comparison = compare(options.directories, options.by, _reference(options))
    if options.out:
        comparison.write(options.out)
    print(comparison.render(options.format), end="")
    return 0


def _reference(options: argparse.Namespace) -> Reference | None:
    if options.reference is None:
        return None
    if str(options.reference) == "-":
        return parse(options.reference_name, sys.stdin.buffer.read(MAX_BYTES + 1))
    return read(options.reference)
