"""Nodes with clocks of their own."""

from lab import PICTURE, UNIT, Lab, gap_names

from vignette_analysis import analyse


def clock(**more) -> dict:
    known = {"offsetSeconds": 0.0001, "uncertaintySeconds": 0.0004, "worstOffsetSeconds": 0.0012, "worstUncertaintySeconds": 0.0009}
    return known | {"setSeconds": 420.5, "measurements": 7, "measuredTs": 1} | more


def results_with(directory, *clocks: dict | None) -> dict:
    lab = Lab(directory).node("nor", UNIT, PICTURE)
    agents = [{"node": "nor", "app": f"app-{i}", "phase": "done", "restarts": 0, **({"clock": c} if c else {})} for i, c in enumerate(clocks)]
    lab.state["agents"] = agents
    return analyse(lab.write()).results


def test_a_nodes_clock_is_in_the_results_as_the_agent_that_was_there_last_knew_it(tmp_path):
    results = results_with(tmp_path / "run", clock(measurements=3, worstOffsetSeconds=0.001), clock(), None)
    assert results["clocks"] == [
        {"node": "nor", "worstOffsetSeconds": 0.0012, "worstUncertaintySeconds": 0.0009, "setSeconds": 420.5, "measurements": 7}
    ]
    assert "clock offset" not in gap_names(results), "what may be the uncertainty alone is no offset"


def test_a_clock_that_was_off_for_sure_is_a_gap(tmp_path):
    results = results_with(tmp_path / "run", clock(worstOffsetSeconds=0.0521))
    found = [gap for gap in results["gaps"] if gap["what"] == "clock offset"]
    assert [gap["node"] for gap in found] == ["nor"] and "0.052100 s (known within 0.000900 s)" in found[0]["reason"]


def test_without_clocks_of_their_own_there_is_no_figure(tmp_path):
    assert "clocks" not in results_with(tmp_path / "run", None)
