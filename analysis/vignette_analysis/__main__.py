"""python3 -m vignette_analysis analyse (--server URL --run UID [--token-file F] | --directory DIR), or report, compare, serve"""

import argparse
import sys
import tempfile
from pathlib import Path

from . import outputs, plots, report, serve
from .comparison import command as comparison
from .data import safe
from .data.archive import Archive, NoRoomError
from .data.gaps import Gaps
from .data.run import RunError
from .figures.analysis import Analysis, analyse


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.execute(options) or 0
    except (RunError, OSError) as error:
        print(f"analysis: {safe.terminal(str(error))}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vignette_analysis")
    commands = parser.add_subparsers(required=True)
    comparison.add(commands)
    serve.add(commands)
    command = commands.add_parser("analyse", help="compute a run's results")
    command.add_argument("--server", help="base URL of the server")
    command.add_argument("--run", help="UID of the run")
    command.add_argument("--token-file", type=Path, help="file with the token for the server")
    command.add_argument("--directory", type=Path, help="a downloaded run, in place of --server")
    command.add_argument("--out", type=Path, help="folder for the results; by default results/ of --directory")
    command.set_defaults(execute=_analyse_any)
    command = commands.add_parser("report", help="make the report of a run, one HTML file, and nothing else")
    command.add_argument("--directory", type=Path, required=True, help="a downloaded run")
    command.add_argument("--out", type=Path, help=f"the file; by default results/{report.NAME} of --directory")
    command.set_defaults(execute=_report)
    return parser


def _report(options: argparse.Namespace) -> int:
    path = options.out or options.directory / "results" / report.NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    gaps = Gaps()
    path.write_bytes(report.render(analyse(options.directory), gaps))
    for gap in gaps.found:
        print(safe.line(f"{gap['what']}: {gap['reason']}"), file=sys.stderr)
    return 1 if gaps.found else 0


def _analyse_any(options: argparse.Namespace) -> int:
    if options.directory:
        _analyse(options.directory, options.out or options.directory / "results")
    elif options.server and options.run:
        _analyse_archived(options)
    else:
        print("give --directory, or --server and --run", file=sys.stderr)
        return 2
    return 0


def _analyse_archived(options: argparse.Namespace) -> None:
    archive = Archive(options.server, options.run, options.token_file)
    with tempfile.TemporaryDirectory(prefix="vignette-") as scratch:
        run = Path(scratch) / "run"
        left_out = archive.fetch(run)
        out = options.out or Path(scratch) / "results"
        analysis, paths = _analyse(run, out, left_out)
        for path in paths:
            _upload(archive, analysis, path, out)


def _upload(archive: Archive, analysis: Analysis, path: Path, out: Path) -> None:
    """Upload one file. One for which the server has no room becomes a gap in results.json, which no quota keeps out."""
    name = path.relative_to(out).as_posix()
    try:
        archive.put_result(path, name)
    except NoRoomError as error:
        if name == outputs.RESULTS:
            raise
        kind = "plot" if name.startswith(f"{plots.FOLDER}/") else "table"
        reason = safe.bounded(f"the server did not take it: {error}", safe.MOST_MESSAGE)
        gap = {"what": "report" if name == report.NAME else f"{kind} {path.name}", "reason": reason}
        analysis.results["gaps"] = [*(analysis.results["gaps"] or []), gap]
        outputs.write_texts(analysis, out)


def _analyse(run: Path, out: Path, left_out: dict[str, str] | None = None) -> tuple[Analysis, list[Path]]:
    analysis = analyse(run, left_out)
    paths = outputs.write(analysis, out)
    print(outputs.terminal(analysis), end="")
    return analysis, paths


if __name__ == "__main__":
    sys.exit(main())
