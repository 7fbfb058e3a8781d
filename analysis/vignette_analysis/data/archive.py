"""A run on the server: downloads its records and logs, uploads results. Uses only the standard library."""

import base64
import hashlib
import http.client
import io
import json
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from .run import EVENTS_FILE, MANIFEST_FILE, RUN_FILE, STATE_FILE, RunError, is_log

TIMEOUT_SECONDS = 60
# Pauses double from half a second to a minute in all, which covers a restart of the server.
ATTEMPTS = 8
# Answers of a server that has no room for a file: it is too large, or quota or volume are used up.
NO_ROOM = (413, 507)
CAPTURES = "captures/"
# Share of the scratch volume. By default Kubernetes evicts pods where less than 10 % of a node's disk is free.
FREE_SHARE = 0.12
# So many bytes of captures are taken also from a volume that is fuller than this, at most half of what is free.
SMALL_BYTES = 64 << 20


class NoRoomError(RunError):
    """The server has no room for a file."""


class _Connection(http.client.HTTPConnection):
    """A connection on which a server may refuse a large file before it has read all of it."""

    def request(self, *args, **more) -> None:
        try:
            super().request(*args, **more)
        except (BrokenPipeError, ConnectionResetError):
            if self.sock is None:
                raise
            # The answer is there: it says why the server reads no more.


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, request)


_OPENER = urllib.request.build_opener(_Handler)


class Archive:
    """One run on one server."""

    def __init__(self, server: str, uid: str, token_file: Path | None = None):
        self.base = f"{server.rstrip('/')}/v1/runs/{urllib.parse.quote(uid, safe='')}/files"
        self.token_file = token_file

    def fetch(self, directory: Path) -> dict[str, str]:
        """Download what the analysis needs, and verify it against the manifest's checksums.

        Captures that do not fit are left out: the result maps them to the reason.
        """
        with io.BytesIO() as text:
            self._download("", text)
            manifest = json.loads(text.getvalue())
        files = [file for file in manifest["files"] or [] if _needed(file["path"])]
        for file in files:
            if not file["path"].startswith(CAPTURES):
                self._fetch(file, directory)
        room, left_out = _room(directory), {}
        for file in (file for file in files if file["path"].startswith(CAPTURES)):
            size = file.get("bytes", 0)
            if size > room:
                left_out[file["path"]] = f"it has {size} bytes, and the analysis' scratch volume has room for {room}"
                continue
            self._fetch(file, directory)
            room -= size
        return left_out

    def _fetch(self, file: dict, directory: Path) -> None:
        target = directory.joinpath(*PurePosixPath(file["path"]).parts)
        if not target.resolve().is_relative_to(directory.resolve()):
            raise RunError(f"the server names a file outside of the run: {file['path']!r}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as out:
            self._download("/" + urllib.parse.quote(file["path"]), out)
        if file.get("sha256"):
            with target.open("rb") as stored:
                digest = hashlib.file_digest(stored, "sha256").hexdigest()
            if digest != file["sha256"]:
                raise RunError(f"{file['path']}: its SHA-256 is {digest}, the manifest says {file['sha256']}: the archive is damaged")

    def _download(self, path: str, out: BinaryIO) -> None:
        """Write an answer to out; begin again where the connection breaks within it."""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(2 ** (attempt - 1) / 2)
            out.seek(0)
            out.truncate()
            try:
                with self._open("GET", path) as answer:
                    shutil.copyfileobj(answer, out, 1 << 20)
                    if not answer.length:
                        return
            except (http.client.IncompleteRead, ConnectionError, TimeoutError):
                pass
        raise RunError(f"GET {self.base}{path}: the connection broke {ATTEMPTS} times before the end")

    def put_result(self, path: Path, name: str) -> None:
        """Upload one file of the results to its path below results/."""
        with self._open("PUT", "/results/" + urllib.parse.quote(name), path):
            pass

    def _open(self, method: str, path: str, body: Path | None = None):
        """Send a request; try again where the server is away or busy."""
        for attempt in range(ATTEMPTS):
            try:
                return self._send(method, path, body)
            except urllib.error.HTTPError as error:
                kind = NoRoomError if error.code in NO_ROOM else RunError
                if kind is NoRoomError or (error.code < 500 and error.code != 429) or attempt == ATTEMPTS - 1:
                    raise kind(f"{method} {self.base}{path}: {error.code} {error.read(4096).decode(errors='replace')}") from error
            except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
                if attempt == ATTEMPTS - 1:
                    raise RunError(f"{method} {self.base}{path}: {error}") from error
            time.sleep(2**attempt / 2)
        raise AssertionError("unreachable")

    def _send(self, method: str, path: str, body: Path | None):
        headers = {"Authorization": f"Bearer {self.token_file.read_text().strip()}"} if self.token_file else {}
        if body is None:
            return _OPENER.open(urllib.request.Request(self.base + path, headers=headers, method=method), timeout=TIMEOUT_SECONDS)
        headers |= {"Content-Type": "application/octet-stream", "Content-Length": str(body.stat().st_size)}
        with body.open("rb") as data:
            digest = base64.b64encode(hashlib.file_digest(data, "sha256").digest()).decode()
            headers["Content-Digest"] = f"sha-256=:{digest}:"  # RFC 9530
            data.seek(0)
            request = urllib.request.Request(self.base + path, data=data, headers=headers, method=method)
            return _OPENER.open(request, timeout=TIMEOUT_SECONDS)


def _room(directory: Path) -> int:
    """Bytes of captures for which the volume has room."""
    volume = shutil.disk_usage(directory)
    return max(volume.free - round(volume.total * FREE_SHARE), min(SMALL_BYTES, volume.free // 2))


def _needed(path: str) -> bool:
    return path in (RUN_FILE, STATE_FILE, MANIFEST_FILE, EVENTS_FILE) or path.startswith(CAPTURES) or is_log(path)
