"""The analysis against a server: a stand-in that speaks the part of runapi that it uses."""

import base64
import hashlib
import http.server
import json
import threading
from pathlib import Path
from types import SimpleNamespace

import capturelab
import pytest
from lab import SECOND, T0, Lab

from vignette_analysis import analyse, plots, report
from vignette_analysis.__main__ import main
from vignette_analysis.data import archive

TOKEN = "a-token"


class Server(http.server.ThreadingHTTPServer):
    """Serves one run's folder and keeps what is put."""

    def __init__(self, run: Path):
        super().__init__(("127.0.0.1", 0), Handler)
        self.run, self.put, self.failures, self.cut, self.damage, self.refused, self.refusal = run, {}, 0, 0, "", "", 413

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def manifest(self) -> dict:
        files = []
        for path in sorted(p for p in self.run.rglob("*") if p.is_file()):
            name = path.relative_to(self.run).as_posix()
            digest = hashlib.sha256(path.read_bytes() + (b"x" if name == self.damage else b"")).hexdigest()
            files.append({"path": name, "bytes": path.stat().st_size} | ({"sha256": digest} if "/" in name else {}))
        return {"schemaVersion": 1, "uid": "run-1", "files": files, "gaps": None}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.server.failures > 0:
            self.server.failures -= 1
            return self._answer(503, b"away")
        name = self._name()
        if name is None:
            return None
        if not name:
            return self._answer(200, json.dumps(self.server.manifest()).encode())
        return self._answer(200, (self.server.run / name).read_bytes())

    def do_PUT(self):
        name = self._name()
        if name is not None:
            if name == self.server.refused:  # as the server does it: without reading the rest
                return self._answer(self.server.refusal, b'{"error":"no room"}')
            body = self.rfile.read(int(self.headers["Content-Length"]))
            digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
            if self.headers["Content-Digest"] != f"sha-256=:{digest}:":
                return self._answer(422, b'{"error":"damaged"}')
            self.server.put[name] = body
            self._answer(204, b"")
        return None

    def _name(self):
        prefix = "/v1/runs/run-1/files"
        if self.headers["Authorization"] != f"Bearer {TOKEN}" or not self.path.startswith(prefix):
            self._answer(403, b'{"error":"no"}')
            return None
        return self.path[len(prefix) :].lstrip("/")

    def _answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.cut > 0 and self.command == "GET":
            self.server.cut -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(pair: Lab, monkeypatch):
    monkeypatch.setattr(archive.time, "sleep", lambda _: None)
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 1.5, "a", "/nor/bft")
    server = Server(pair.write())
    (server.run / "logs/nor/bft/stdout-1.log").write_text("not needed")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def run(server: Server, tmp_path: Path, token: str = TOKEN) -> int:
    (tmp_path / "token").write_text(token + "\n")
    return main(["analyse", "--server", server.url, "--run", "run-1", "--token-file", str(tmp_path / "token")])


def test_results_are_computed_from_the_server_and_handed_in(server, tmp_path, capsys):
    server.failures = 2
    assert run(server, tmp_path) == 0
    assert main(["analyse", "--directory", str(server.run), "--out", str(tmp_path / "here")]) == 0
    here = {f"results/{path.relative_to(tmp_path / 'here').as_posix()}" for path in (tmp_path / "here").rglob("*") if path.is_file()}
    assert set(server.put) == here
    some = ("results.json", "tables.txt", "messages.csv", "deliveries.parquet", "plots/loss.svg", "report.html")
    assert here > {f"results/{name}" for name in some}
    assert json.loads(server.put["results/results.json"])["messages"]["received"] == 1
    assert "Deliveries by group" in capsys.readouterr().out


@pytest.mark.usefixtures("without_plots")
def test_results_are_handed_in_last(server, tmp_path):
    assert run(server, tmp_path) == 0
    assert list(server.put)[-1] == "results/results.json"


def test_a_plot_that_the_server_does_not_take_is_a_gap(server, tmp_path):
    server.refused = "results/plots/delays-over-time.svg"
    assert run(server, tmp_path) == 0
    gaps = json.loads(server.put["results/results.json"])["gaps"]
    assert any(g["what"] == "plot delays-over-time.svg" and "no room" in g["reason"] for g in gaps)
    assert "plot delays-over-time.svg" in server.put["results/tables.txt"].decode()


@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize(("status", "name"), [(507, "deliveries.csv"), (413, "deliveries.csv"), (507, "tables.txt")])
def test_a_table_for_which_the_server_has_no_room_is_a_gap(server, tmp_path, status, name):
    server.refused, server.refusal = f"results/{name}", status
    assert run(server, tmp_path) == 0
    gaps = json.loads(server.put["results/results.json"])["gaps"]
    assert any(g["what"] == f"table {name}" and "no room" in g["reason"] for g in gaps)


def test_a_file_that_is_refused_before_all_of_it_is_sent_is_not_sent_again(server, tmp_path):
    server.refused, server.refusal = "results/deliveries.csv", 507
    large = tmp_path / "deliveries.csv"
    with large.open("wb") as file:
        file.truncate(64 << 20)  # more than both ends' sockets hold
    (tmp_path / "token").write_text(TOKEN)
    with pytest.raises(archive.NoRoomError, match="no room"):
        archive.Archive(server.url, "run-1", tmp_path / "token").put_result(large, "deliveries.csv")


@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize(("status", "name"), [(422, "deliveries.csv"), (507, "results.json")])
def test_another_refusal_fails_the_analysis(server, tmp_path, status, name):
    server.refused, server.refusal = f"results/{name}", status
    assert run(server, tmp_path) == 1 and "results/results.json" not in server.put


def test_a_connection_that_breaks_within_a_file_is_made_again(server, tmp_path):
    server.cut = 3
    (tmp_path / "token").write_text(TOKEN)
    assert archive.Archive(server.url, "run-1", tmp_path / "token").fetch(tmp_path / "fetched") == {}
    assert analyse(tmp_path / "fetched").results["messages"]["received"] == 1


def test_a_connection_that_breaks_each_time_is_no_damage(server, tmp_path, capsys):
    server.cut = 100
    assert run(server, tmp_path) == 1
    assert "the connection broke 8 times before the end" in capsys.readouterr().err and not server.put


def test_a_damaged_log_is_never_analysed(server, tmp_path, capsys):
    server.damage = "logs/nor/bft/messages-1.jsonl"
    assert run(server, tmp_path) == 1
    assert "SHA-256" in capsys.readouterr().err and not server.put


def test_a_refusal_is_final_and_said(server, tmp_path, capsys):
    assert run(server, tmp_path, token="wrong") == 1
    assert "403" in capsys.readouterr().err


@pytest.mark.usefixtures("without_plots")
def test_a_directory_needs_no_server(pair, capsys):
    directory = pair.write()
    assert main(["analyse", "--directory", str(directory)]) == 0
    assert (directory / "results" / "results.json").exists()
    assert main(["analyse"]) == 2


@pytest.fixture
def captured(server, monkeypatch):
    # However full this machine's disk is.
    monkeypatch.setattr(archive.shutil, "disk_usage", lambda _: SimpleNamespace(total=1 << 30, free=1 << 30))
    plan = json.loads((server.run / "run.json").read_text())
    plan["captures"] = [{"name": "run", "network": "wan", "nodes": ["nor"]}]
    (server.run / "run.json").write_text(json.dumps(plan))
    capturelab.write(server.run / "captures/run/wan/nor.pcapng", capturelab.packet(T0 + SECOND, capturelab.udp("198.18.9.1", 1883, bytes(86))))
    return server


def test_captures_are_fetched_and_analysed(captured, tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    assert archive.Archive(captured.url, "run-1", tmp_path / "token").fetch(tmp_path / "fetched") == {}
    analysis = analyse(tmp_path / "fetched")
    assert analysis.results["networks"][0]["byLayer"] == {
        "ethernet": 14 / 60,
        "ip": 20 / 60,
        "transport": 8 / 60,
        "application": 86 / 60,
        "routing": 0.0,
    }
    assert analysis.volume.row(0) == ("wan", "nor", 1, "application", "mqtt-udp", False, 1, 86)


def test_a_capture_for_which_there_is_no_room_is_a_gap(captured, tmp_path, monkeypatch):
    for slow in (plots, report):
        monkeypatch.setattr(slow, "write", lambda *_: [])
    monkeypatch.setattr(archive.shutil, "disk_usage", lambda _: SimpleNamespace(total=1000, free=250))
    assert run(captured, tmp_path) == 0
    results = json.loads(captured.put["results/results.json"])
    assert "byLayer" not in results["networks"][0] and results["messages"]["received"] == 1
    size = (captured.run / "captures/run/wan/nor.pcapng").stat().st_size
    reason = next(g["reason"] for g in results["gaps"] if g["what"] == "networks: byLayer, tcp, routingBytesPerSecond of wan")
    assert f"wan/nor.pcapng is not there: it has {size} bytes, and the analysis' scratch volume has room for 130" in reason


def test_small_captures_are_fetched_to_a_volume_that_is_fuller_than_others_want(captured, tmp_path, monkeypatch):
    first = captured.run / "captures/run/wan/nor.pcapng"
    size = first.stat().st_size
    first.with_name("prt.pcapng").write_bytes(first.read_bytes())
    monkeypatch.setattr(archive.shutil, "disk_usage", lambda _: SimpleNamespace(total=100 << 30, free=4 * size - 2))
    (tmp_path / "token").write_text(TOKEN)
    left_out = archive.Archive(captured.url, "run-1", tmp_path / "token").fetch(tmp_path / "fetched")
    assert list(left_out.values()) == [f"it has {size} bytes, and the analysis' scratch volume has room for {size - 1}"]
