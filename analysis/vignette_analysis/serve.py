"""python3 -m vignette_analysis serve: compares archived runs for the server, over a Unix socket beside it.

POST /compare with the form run=NAMESPACE/NAME/UID&run=…&format=FORM[&by=FIELD] returns the comparison (a URL cannot hold
hundreds of runs). reference=CSV&referenceName=FILE are figures to stand beside those of the runs.
Errors are JSON, {"error": why}: 400 for the request, 422 for runs that cannot be compared, 413
for a too long form, 429 if too many wait, 504 after the time limit, 507 if the memory does not suffice. Every comparison
is a process of its own, one at a time, so that it can be ended without harm. Teams' pods write the results:
they are not trusted.
"""

import argparse
import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from urllib.parse import parse_qs, urlsplit

from .comparison.comparing import MAX_RUNS, counted
from .comparison.reference import MAX_BYTES
from .comparison.rendering import FORMS

# Most comparisons that wait for a running one.
MAX_WAITING = 4
CONTENT_TYPES = {"text": "text/plain", "json": "application/json", "csv": "text/csv", "latex": "application/x-tex", "html": "text/html"}
# Names in Kubernetes. A UID has these characters, too.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_MAX_FIELD = 200
_MAX_FILE_NAME = 253
# Longest form. A run has a namespace (63 characters), a name (253), a UID (36), and escaped separators; a byte of a reference is escaped to 3.
_MAX_FORM_BYTES = 512 * MAX_RUNS + 3 * MAX_BYTES + 3 * _MAX_FILE_NAME
_PAGE_BYTES = 4096


_LESS = "compare fewer runs (of a campaign: --where AXIS=LEVEL), or download them and use python3 -m vignette_analysis compare"


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status


def add(commands) -> None:
    """Add the command to a program's commands."""
    command = commands.add_parser("serve", help="compare archived runs for the server")
    command.add_argument("--socket", type=Path, required=True, help="Unix socket to listen at")
    command.add_argument("--archive", type=Path, required=True, help="folder of the archive")
    command.add_argument("--timeout", type=float, default=300.0, help="longest time in seconds that a comparison may take, with its wait")
    command.add_argument("--memory", type=_quantity, default="1Gi", help="most memory of a comparison, in bytes, or with a unit such as Mi")
    command.set_defaults(execute=_execute)


_UNITS = {
    **{unit: Decimal(1000) ** i for i, unit in enumerate(["m", "", *"kMGTPE"], start=-1)},
    **{f"{unit}i": Decimal(1024) ** i for i, unit in enumerate("KMGTPE", start=1)},
}


def _quantity(text: str) -> int:
    """Bytes as Kubernetes writes them, or as Helm writes numbers: 1.073741824e+09."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(?:[eE]([+-]?\d{1,2})|([KMGTPE]i|[mkMGTPE])?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r}: want bytes such as 1Gi")
    return int(Decimal(match[1]).scaleb(int(match[2] or 0)) * _UNITS[match[3] or ""])


def _execute(options: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # a container's first process has no default for it
    options.socket.unlink(missing_ok=True)
    with Server(options.socket, options.archive, options.timeout, options.memory) as server:
        print(f"serving comparisons of {options.archive} at {options.socket}", flush=True)
        server.serve_forever()


class Server(ThreadingUnixStreamServer):
    """Answers comparisons, one after another."""

    daemon_threads = True
    request_queue_size = 16

    def __init__(self, socket: Path, archive: Path, timeout_seconds: float, memory_bytes: int):
        super().__init__(str(socket), _Handler)
        self.archive = archive.resolve()
        self.timeout_seconds, self.memory_bytes = timeout_seconds, memory_bytes
        self.places = threading.BoundedSemaphore(MAX_WAITING + 1)
        self.turn = threading.Lock()

    def compare(self, asked: str) -> tuple[str, bytes]:
        """Compare the form's runs; return the content type of the answer and its text."""
        arguments, form, reference = self._arguments(asked)
        if not self.places.acquire(blocking=False):
            raise RefusedError(429, f"{MAX_WAITING} comparisons are waiting already: try again later")
        deadline = time.monotonic() + self.timeout_seconds
        try:
            if not self.turn.acquire(timeout=self.timeout_seconds):
                raise RefusedError(504, f"other comparisons took all of {self.timeout_seconds:g} s: try again later")
            try:
                return form, self._run(arguments, reference, deadline)
            finally:
                self.turn.release()
        finally:
            self.places.release()

    def _arguments(self, text: str) -> tuple[list[str], str, bytes]:
        asked = parse_qs(text, keep_blank_values=True)
        form, by = asked.get("format", ["json"])[0], asked.get("by", [""])[0]
        if form not in FORMS:
            raise RefusedError(400, f"format {form!r}: want one of {', '.join(FORMS)}")
        if len(by) > _MAX_FIELD or not by.isprintable():
            raise RefusedError(400, f"by: want the name of a field, of {_MAX_FIELD} characters at most")
        runs = asked.get("run", [])
        if not 2 <= len(runs) <= MAX_RUNS:
            raise RefusedError(400, f"{counted(len(runs))}: a comparison takes 2 to {MAX_RUNS}")
        folders = [str(self._folder(run)) for run in runs]
        reference, name = asked.get("reference", [""])[0].encode(), asked.get("referenceName", ["reference.csv"])[0]
        if len(reference) > MAX_BYTES:
            raise RefusedError(400, f"reference: {len(reference)} bytes: want {MAX_BYTES} at most")
        if len(name) > _MAX_FILE_NAME or not name.isprintable():
            raise RefusedError(400, f"referenceName: want the name of a file, of {_MAX_FILE_NAME} characters at most")
        options = [f"--format={form}", *([f"--by={by}"] if by else []), *(["--reference=-", f"--reference-name={name}"] if reference else [])]
        return [*folders, *options], form, reference

    def _folder(self, run: str) -> Path:
        parts = run.split("/")
        if len(parts) != 3 or not all(_NAME.fullmatch(part) for part in parts):
            raise RefusedError(400, f"run {run!r}: want NAMESPACE/NAME/UID")
        folder = self.archive.joinpath(*parts)
        if folder.resolve() != folder or not folder.is_dir():
            raise RefusedError(422, f"run {run}: the archive has no such folder")
        if not (folder / "results" / "results.json").is_file():
            raise RefusedError(422, f"run {run} has no results yet: it must have been analysed")
        return folder

    def _run(self, arguments: list[str], reference: bytes, deadline: float) -> bytes:
        command = [sys.executable, "-m", "vignette_analysis", "compare", *arguments]
        with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as problems:
            told.write(reference)
            told.seek(0)
            process = subprocess.Popen(command, stdin=told, stdout=out, stderr=problems)
            try:
                self._watch(process, deadline)
            finally:
                process.kill()
                process.wait()
            for file in (out, problems):
                file.seek(0)
            if process.returncode:
                said = problems.read()[-4096:].decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
                raise RefusedError(422, said[-1].removeprefix("analysis: ").replace(f"{self.archive}/", ""))
            return out.read()

    def _watch(self, process: subprocess.Popen, deadline: float) -> None:
        """Wait until the process has ended or exceeded its time or memory."""
        while process.poll() is None:
            if time.monotonic() > deadline:
                raise RefusedError(504, f"the comparison took more than {self.timeout_seconds:g} s: {_LESS}")
            if _resident_bytes(process.pid) > self.memory_bytes:
                limit = f"{self.memory_bytes >> 20} MiB (server.analysis.memory)"
                raise RefusedError(507, f"the comparison needs more memory than {limit}: {_LESS}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0  # it has just ended


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    # Seconds until a client that does not finish its request is dropped.
    timeout = 10

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/healthz":
            self._answer(200, "text/plain", b"ok\n")
        else:
            self._refuse(RefusedError(404, f"{self.path}: want POST /compare, or GET /healthz"))

    def do_POST(self) -> None:
        try:
            asked = self._form()  # read it even if refused: the sender must reach the answer
            if self.path != "/compare":
                raise RefusedError(404, f"{self.path}: want /compare")
            form, text = self.server.compare(asked)
            self._answer(200, CONTENT_TYPES[form], text)
        except RefusedError as refused:
            self._refuse(refused)

    def _form(self) -> str:
        length = self.headers.get("Content-Length") or ""
        if not length.isdecimal():
            raise RefusedError(400, f"Content-Length {length!r}: want the form's number of bytes")
        if int(length) > _MAX_FORM_BYTES:
            raise RefusedError(413, f"the form has {length} bytes: want {_MAX_FORM_BYTES} at most")
        return self.rfile.read(int(length)).decode(errors="replace")

    def _refuse(self, refused: RefusedError) -> None:
        # The unread rest of a request must not be read as the next one.
        self.close_connection = True
        self._answer(refused.status, "application/json", json.dumps({"error": str(refused)}).encode())

    def _answer(self, status: int, kind: str, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind if kind == "application/json" else f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def address_string(self) -> str:
        return "server"  # a Unix socket has no addresses
