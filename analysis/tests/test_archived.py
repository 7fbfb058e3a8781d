"""What the archive lacks: the seal finds it, the manifest names it, and the analysis says it once."""

import pytest
from lab import Lab, gap, gap_names, torn

from vignette_analysis import analyse


@pytest.fixture
def lacking(pair) -> Lab:
    """A run whose archive lacks a message log, an agent's log, the end of a line, radio samples and a capture."""
    pair.plan["captures"] = [{"name": "run", "network": "wan", "nodes": ["nor"]}]
    for node in pair.nodes:
        node["addresses"] = {"wan": "198.18.9.1"}
    pair.log_of("nor/bft").append(torn('{"ts":1767'))
    del pair.logs["logs/prt/picture/messages-1.jsonl"], pair.logs["logs/prt/picture/agent.jsonl"]
    pair.logs["radio/host-a.jsonl"].clear()
    for second in range(-1, 40, 2):
        pair.sample("nor", float(second), 0).sample("prt", float(second), 0)
    return pair


SEALED = [
    {"what": "log logs/prt/picture/messages-1.jsonl", "node": "prt", "reason": "the agent shipped no such file"},
    {"what": "log logs/prt/picture/agent.jsonl", "node": "prt", "reason": "the agent shipped no such file"},
    {"what": "log logs/nor/bft/messages-1.jsonl", "node": "nor", "reason": "the last line is incomplete"},
    {"what": "radio/host-a.jsonl", "fromSeconds": 39.0, "toSeconds": 60.0, "reason": "radiod of this host shipped no samples up to the end"},
    {"what": "capture captures/run/wan/nor.pcapng", "node": "nor", "reason": "no radiod shipped anything of it"},
]


def test_what_the_manifest_names_is_said_as_it_is_and_not_found_again(lacking):
    lacking.manifest |= {"files": lacking.archived(), "gaps": SEALED}
    results = analyse(lacking.write()).results
    # The figures that cannot be computed without the capture or an agent's log are the analysis' to name.
    assert gap(results, "networks: byLayer, tcp, routingBytesPerSecond of wan") and gap(results, "verdict")
    assert [entry for entry in results["gaps"] if not entry["what"].startswith(("networks", "verdict"))] == SEALED


def test_of_a_run_that_was_not_sealed_one_gap_says_that_nobody_knows_what_its_archive_lacks(lacking):
    lacking.manifest = None
    results = analyse(lacking.write()).results
    assert gap_names(results) == {"manifest.json", "networks: byLayer, tcp, routingBytesPerSecond of wan", "verdict"}
    assert "nobody knows what the archive lacks" in gap(results, "manifest.json")["reason"]


def test_archived_logs_that_the_folder_does_not_have_in_full_are_named(pair):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("nor/bft", "sent", 2.0, "b", "/nor/bft")
    pair.manifest["files"] = [*pair.archived(), {"path": "logs/nor/bft/stdout-1.log", "bytes": 7}]
    assert gap_names(analyse(pair.write()).results) == set()
    pair.log_of("nor/bft").pop()
    (pair.directory / "logs/prt/picture/agent.jsonl").unlink()
    del pair.logs["logs/prt/picture/agent.jsonl"]
    results = analyse(pair.write()).results
    assert gap_names(results) == {"log logs/nor/bft/messages-1.jsonl", "log logs/prt/picture/agent.jsonl", "verdict"}
    assert gap(results, "log logs/prt/picture/agent.jsonl")["node"] == "prt"
    assert "the run's folder has no such file" in gap(results, "log logs/prt/picture/agent.jsonl")["reason"]
