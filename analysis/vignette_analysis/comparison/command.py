"""python3 -m vignette_analysis compare DIR DIR … and compare --server URL --run UID --run UID …"""

import argparse
import sys
import tempfile
from pathlib import Path

from ..data.archive import Archive
from .comparison import Comparison, compare
from .reference import MAX_BYTES, Reference, parse, read
from .rendering import FORMS


def add(commands) -> None:
    """Add the command to a program's commands."""
    command = commands.add_parser("compare", help="put runs side by side, with effect sizes and tests")
    command.add_argument("directories", nargs="*", type=Path, metavar="DIR", help="a run's folder")
    command.add_argument("--server", help="base URL of the server that has the runs, in place of folders")
    command.add_argument("--run", action="append", default=[], metavar="UID", help="UID of a run on the server; give it for each")
    command.add_argument("--token-file", type=Path, help="file with the token for the server")
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
    if bool(options.directories) == bool(options.server):
        print("give folders of runs, or --server and several --run", file=sys.stderr)
        return 2
    reference = _reference(options)
    if options.directories:
        _show(compare(options.directories, options.by, reference), options)
        return 0
    with tempfile.TemporaryDirectory(prefix="vignette-") as scratch:
        folders = [Path(scratch) / str(i) for i in range(len(options.run))]
        for uid, folder in zip(options.run, folders, strict=True):
            Archive(options.server, uid, options.token_file).fetch_results(folder)
        _show(compare(folders, options.by, reference), options)
    return 0


def _reference(options: argparse.Namespace) -> Reference | None:
    if options.reference is None:
        return None
    if str(options.reference) == "-":
        return parse(options.reference_name, sys.stdin.buffer.read(MAX_BYTES + 1))
    return read(options.reference)


def _show(comparison: Comparison, options: argparse.Namespace) -> None:
    if options.out:
        comparison.write(options.out)
    print(comparison.render(options.format), end="")
