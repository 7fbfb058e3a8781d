"""Comparisons for the server, over a Unix socket."""

import argparse
import http.client
import json
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest
from test_comparison import run, write_results

from vignette_analysis import serve


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path):
        super().__init__("server")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """An archive with two analysed runs and one that is not."""
    folder = tmp_path_factory.mktemp("archive")
    for uid, delay in (("one", 5), ("two", 45), ("raw", 85)):
        made = run(folder / "scratch", uid, delay).write()
        if uid != "raw":
            write_results(made)
        shutil.move(made, folder / "team-nor" / f"run-{uid}" / uid)
    return folder


@pytest.fixture
def start(archive, tmp_path):
    """Start a server; the answer is a function that asks it."""
    servers = []

    def started(timeout_seconds: float = 60, memory_bytes: int = 1 << 30):
        path = tmp_path / f"s{len(servers)}"
        server = serve.Server(path, archive, timeout_seconds, memory_bytes)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

        def ask(*runs: str, method: str = "POST", path_asked: str = "/compare", **query: str) -> tuple[int, str, str]:
            connection = Connection(path)
            connection.request(method, path_asked, urlencode([("run", r) for r in runs] + list(query.items())))
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            return answer.status, answer.headers["Content-Type"], text

        ask.server = server
        return ask

    yield started
    for server in servers:
        server.shutdown()
        server.server_close()


ONE, TWO, RAW = (f"team-nor/run-{uid}/{uid}" for uid in ("one", "two", "raw"))


def test_a_comparison_is_answered_in_the_form_that_is_asked_for(start):
    ask = start()
    status, kind, text = ask(ONE, TWO)
    assert (status, kind) == (200, "application/json") and json.loads(text)["runs"][0]["label"] == "delay=5ms"
    status, kind, text = ask(ONE, TWO, format="text", by="run")
    assert (status, kind) == (200, "text/plain; charset=utf-8") and "run-one" in text
    assert ask(method="GET", path_asked="/healthz")[::2] == (200, "ok\n")


def test_reference_figures_stand_beside_those_of_the_runs(start):
    status, _, text = start()(ONE, TWO, reference="run,metric,value,note\ndelay=5ms,sent,60,\u201cmade up\u201d\n", referenceName="paper.csv")
    (found,) = json.loads(text)["reference"]["figures"]
    assert (status, found["source"], found["measured"], found["note"]) == (200, "paper.csv", 60, "\u201cmade up\u201d")


@pytest.mark.parametrize(
    ("runs", "query", "status", "says"),
    [
        ([ONE], {}, 400, "1 run: a comparison takes 2 to 1000"),
        ([ONE, TWO], {"format": "pdf"}, 400, "format 'pdf': want one of text, json, csv, latex, html"),
        ([ONE, TWO], {"by": "x\n"}, 400, "by: want the name of a field"),
        ([ONE, "../../etc"], {}, 400, "run '../../etc': want NAMESPACE/NAME/UID"),
        ([ONE, "--out=/tmp/x"], {}, 400, "want NAMESPACE/NAME/UID"),
        ([ONE, "team-nor/run-one/nowhere"], {}, 422, "the archive has no such folder"),
        ([ONE, RAW], {}, 422, f"run {RAW} has no results yet"),
        ([ONE, TWO], {"by": "--colour"}, 422, "by '--colour': no field of that name differs"),
        ([ONE, ONE], {}, 422, "run one is there twice"),
        ([ONE, TWO], {"reference": "run,metric,value\nx,sent,1\n"}, 422, 'reference.csv, row 2, column run: "x" is unknown'),
        ([ONE, TWO], {"reference": "x" * 40_000}, 400, "reference: 40000 bytes: want 32768 at most"),
        ([ONE, TWO], {"reference": "x", "referenceName": "a\nb"}, 400, "referenceName: want the name of a file"),
        ([ONE, TWO], {"path_asked": "/other"}, 404, "/other: want /compare"),
    ],
)
def test_what_cannot_be_answered_says_why(start, runs, query, status, says):
    got, kind, text = start()(*runs, **query)
    assert (got, kind) == (status, "application/json") and says in json.loads(text)["error"]


def test_a_link_in_the_archive_leads_nowhere(start, archive, tmp_path):
    link = archive / "team-nor" / "link"
    link.symlink_to(archive / "team-nor" / "run-one")
    try:
        assert start()(ONE, "team-nor/link/one")[0] == 422
    finally:
        link.unlink()


def test_a_comparison_that_takes_too_long_is_ended(start):
    status, _, text = start(timeout_seconds=0.05)(ONE, TWO)
    assert status == 504 and "took more than 0.05 s" in text


def test_a_comparison_that_takes_too_much_memory_is_ended(start):
    status, _, text = start(memory_bytes=1 << 20)(ONE, TWO)
    assert status == 507 and "needs more memory than 1 MiB (server.analysis.memory)" in text


def test_only_so_many_wait(start):
    ask = start(timeout_seconds=0.2)
    with ask.server.turn:
        places = range(serve.MAX_WAITING + 1)
        for _ in places:
            ask.server.places.acquire()
        status, _, text = ask(ONE, TWO)
        assert status == 429 and "4 comparisons are waiting already" in text
        for _ in places:
            ask.server.places.release()
        status, _, text = ask(ONE, TWO)
        assert status == 504 and "other comparisons took all of 0.2 s" in text


def test_the_command_takes_memory_as_kubernetes_writes_it():
    assert [serve._quantity(text) for text in ("7", "2k", "1Mi", "3Gi")] == [7, 2000, 1 << 20, 3 << 30]
    assert [serve._quantity(text) for text in ("1.5Gi", "2T", "1Ti", "1E", "500m")] == [3 << 29, 2 * 10**12, 1 << 40, 10**18, 0]
    # Helm writes a large number so, and Kubernetes takes it.
    assert serve._quantity("1.073741824e+09") == 1 << 30
    for text in ("1 GB", "1ki", "", "-1", "1e999"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}': want bytes such as 1Gi"):
            serve._quantity(text)


def test_the_command_ends_when_its_container_is_stopped(archive, tmp_path):
    command = [sys.executable, "-m", "vignette_analysis", "serve", f"--socket={tmp_path / 's'}", f"--archive={archive}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"serving")
        process.terminate()
        assert process.wait(30) == 0  # -SIGTERM: by the default, which a container's first process does not have
