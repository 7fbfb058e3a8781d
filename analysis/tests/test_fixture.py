"""The fixture that internal/runapi holds against its Go types: what the analysis writes is what programs read."""

import json
from pathlib import Path

import capturelab
from lab import PICTURE, SECOND, T0, UNIT, Lab

from vignette_analysis import analyse, outputs

FIXTURE = Path(__file__).parents[2] / "internal" / "runapi" / "testdata" / "results.json"


def eventful(directory: Path) -> Lab:
    """A run in which every part of the results has something to say."""
    lab = Lab(directory).node("nor", UNIT | {"instances": 2}).node("prt", UNIT, PICTURE).node("usa", {"name": "silent", "topic": "/{}"})
    for m in range(5):
        lab.event("nor/unit/1", "triggered", m + 0.9, f"m{m}", "/nor/unit/1", position=[58.1, 7.9, 20.0]).event(
            "nor/unit/1", "sent", m + 1.0, f"m{m}", "/nor/unit/1", bytes=240
        )
        lab.event("nor/unit/2", "received", m + 1.001, f"m{m}", "/nor/unit/1").event("nor/unit/2", "processed", m + 1.003, f"m{m}", "/nor/unit/1")
        if m != 3:
            lab.event("prt/picture", "received", m + 1.1 + m / 100, f"m{m}", "/nor/unit/1")
    lab.event("prt/picture", "received", 4.0, "m1", "/nor/unit/1").event("nor/unit/2", "triggered", 7.0, "x", "/nor/unit/2")
    # The messages of nor/unit/1 are requests: two receipts, one failure, two outstanding. That of nor/unit/2 has failed before it was sent.
    lab.event("nor/unit/1", "receipt", 1.25, "m0", "/nor/unit/1").event("nor/unit/1", "retransmitted", 4.5, "m1", "/nor/unit/1")
    lab.event("nor/unit/1", "receipt", 4.75, "m1", "/nor/unit/1", bytes=12)
    lab.event("nor/unit/1", "failed", 13.0, "m2", "/nor/unit/1", text="timeout: no response in 10 s")
    lab.event("nor/unit/2", "failed", 7.5, "x", "/nor/unit/2", text="refused")
    for node, app, names in (
        ("nor", "unit", ["nor/unit/1", "nor/unit/2"]),
        ("prt", "unit", ["prt/unit"]),
        ("prt", "picture", ["prt/picture"]),
        ("usa", "silent", ["usa/silent"]),
    ):
        for name in names:
            lab.agent(node, app, "started", 0.0005, instance=name, actionID="start", plannedTs=1767323045000000000, latenessSeconds=0.0005)
    lab.agent("prt", "unit", "exited", 5.0, instance="prt/unit", exitCode=1, message="broker away").agent(
        "prt", "unit", "restarted", 5.5, instance="prt/unit"
    )
    lab.logs["logs/nor/unit/positions.jsonl"] = [json.dumps({"ts": T0 + s * SECOND, "position": [58.1 + s / 10_000, 7.9, 20.0]}) for s in range(9)]
    for second in range(-1, 62):
        lab.sample(
            "nor",
            float(second),
            max(second, 0) * 700,
            worstLatenessSeconds=0.03 if second == 3 else 0.0002,
            queueDepth=2,
            latenessCounts=histogram(second),
        )
    for second in (1, 2):
        load = {"seconds": 1.0, "busySeconds": 0.75 * second, "cpus": 2, "loadAverage": 1.5, "cpuPressureSeconds": 0.1, "memoryPressureSeconds": 0.0}
        lab.logs["radio/host-a.jsonl"].append(json.dumps({"ts": T0 + second * SECOND} | load))
    lab.around(2.13, fromTs=T0 + round(2.09 * SECOND), lateSeconds=0.03)
    lab.around(4.25, slotsMissedFrom=T0 + 4 * SECOND, network="wan", node="nor", slots=1).around(5.0, stolenSeconds=0.25)
    lab.plan["rerunOf"] = {"namespace": "team-nor", "name": "quickstart", "uid": "run-0"}
    lab.plan["captures"] = [{"name": "run", "network": "wan", "nodes": ["nor", "prt", "usa"]}]
    for i, node in enumerate(("nor", "prt", "usa")):
        of_node = [capturelab.packet(T0 + n * SECOND, capturelab.udp(f"198.18.9.{i + 1}", 1883, bytes(240))) for n in range(1, 6 - i)]
        capturelab.write(directory / f"captures/run/wan/{node}.pcapng", *of_node)
    lab.state["incidents"] = [{"what": "NodeFailed", "node": "usa", "fromSeconds": 40.5, "reason": "pod evicted"}]
    return lab


def histogram(second: int) -> list[int]:
    """Counts of frames by how late they were: seven a second, and one late."""
    return [7 * max(second, 0), *([0] * 9), int(second >= 3)][: 11 if second >= 3 else 1]


def test_the_fixture_is_what_the_analysis_computes(tmp_path, request):
    analysis = analyse(eventful(tmp_path / "run").write())
    outputs.write(analysis, tmp_path / "out")
    text = (tmp_path / "out" / "results.json").read_text()
    if request.config.getoption("--update"):
        FIXTURE.parent.mkdir(exist_ok=True)
        FIXTURE.write_text(text)
        FIXTURE.with_name("tables.txt").write_text((tmp_path / "out" / "tables.txt").read_text())
    assert rounded(text) == rounded(FIXTURE.read_text()), "run pytest with --update if the change is meant"
    assert (tmp_path / "out" / "tables.txt").read_text() == FIXTURE.with_name("tables.txt").read_text()


def rounded(text: str) -> dict:
    """Results with numbers of twelve digits: further ones depend on the processor's vector instructions."""
    return json.loads(text, parse_float=lambda number: float(f"{float(number):.12g}"))


def test_tables_have_one_row_per_entry(tmp_path, without_plots):
    analysis = analyse(eventful(tmp_path / "run").write())
    outputs.write(analysis, tmp_path / "out")
    numbers = {"messages": 5, "deliveries": 15, "publishers": 4, "groups": 7, "pairs": 6, "requests": 6}
    rows = {name: (tmp_path / "out" / f"{name}.csv").read_text().splitlines() for name in numbers}
    assert {name: len(lines) - 1 for name, lines in rows.items()} == numbers
    header = "publisher,subscriber,id,sent,received,delaySeconds,radio,local,cross,lost,duplicates,delayFromTriggeredSeconds"
    assert rows["deliveries"][0] == f"{header},processed,processingSeconds,sentSeconds"
    assert (
        rows["deliveries"][1]
        == "nor/unit/1,nor/unit/2,m0,1767323046000000000,1767323046001000000,0.001,false,true,false,false,0,0.101,1767323046003000000,0.002,1.0"
    )
    assert rows["messages"][1].endswith(",m0,/nor/unit/1,1767323045900000000,1767323046000000000,240,3,2,1,0,false,0.1")
