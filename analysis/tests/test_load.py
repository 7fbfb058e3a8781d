"""How busy hosts were, and what the run record says of other runs."""

import json

import pytest
from lab import PICTURE, T0, UNIT, Lab, gap_names

from vignette_analysis import analyse
from vignette_analysis.data.environment import flat
from vignette_analysis.data.run import Run, RunError
from vignette_analysis.report import record


def lab_of(directory) -> Lab:
    lab = Lab(directory).node("nor", UNIT, PICTURE)
    for second in range(-1, 62):
        lab.sample("nor", float(second), 0)
    return lab


def busy(lab: Lab, at: float, host: str = "host-a", **more) -> None:
    line = {"ts": T0 + round(at * 1e9), "seconds": 1.0, "busySeconds": 0.5, "cpus": 2, "loadAverage": 1.5} | more
    lab.logs.setdefault(f"radio/{host}.jsonl", []).append(json.dumps(line))


def test_load_is_that_between_t0_and_the_end_of_the_drain(tmp_path):
    lab = lab_of(tmp_path / "run")
    busy(lab, 0.0, busySeconds=2.0, loadAverage=9.0)  # of the second before T0
    busy(lab, 1.0, cpuPressureSeconds=0.25, memoryPressureSeconds=0.0)
    busy(lab, 4.0, seconds=3.0, busySeconds=4.5, loadAverage=2.5, cpuPressureSeconds=0.75, memoryPressureSeconds=0.5)
    busy(lab, 61.0, busySeconds=2.0, loadAverage=9.0)  # after the drain
    lab.around(1.0, stolenSeconds=0.125)
    results = analyse(lab.write()).results
    assert results["hosts"] == [
        {
            "name": "host-a",
            "cpus": 2,
            "busyPercent": 62.5,  # 5 s of 4 s on two processors
            "maxBusyPercent": 75.0,
            "maxLoadAverage": 2.5,
            "stolenSeconds": 0.12,
            "cpuPressurePercent": 25.0,
            "memoryPressurePercent": 12.5,
        }
    ]
    assert not [name for name in gap_names(results) if name.startswith("log ")], "lines of load are taken for damage"


def test_each_host_has_its_own_load_and_no_figure_where_its_kernel_tells_none(tmp_path):
    lab = lab_of(tmp_path / "run")
    busy(lab, 1.0, "host-b", busySeconds=2.01)  # a tick too many
    busy(lab, 1.0, "host-a", busySeconds=0.0)
    hosts = analyse(lab.write()).results["hosts"]
    assert [(h["name"], h["busyPercent"], "cpuPressurePercent" in h) for h in hosts] == [("host-a", 0.0, False), ("host-b", 100.0, False)]


def test_without_lines_of_load_there_is_no_figure(tmp_path):
    assert "hosts" not in analyse(lab_of(tmp_path / "run").write()).results


def test_a_rerun_says_what_it_repeats(tmp_path):
    lab = lab_of(tmp_path / "run")
    lab.plan["rerunOf"] = {"namespace": "team-nor", "name": "first", "uid": "u1"}
    assert analyse(lab.write()).results["rerunOf"] == "u1"
    assert "rerunOf" not in analyse(lab_of(tmp_path / "other").write()).results


def test_a_run_of_a_changed_spec_says_what_it_is_based_on_and_the_report_what_was_changed(tmp_path):
    lab = lab_of(tmp_path / "run")
    lab.plan["basedOn"] = {
        "uid": "u1",
        "name": "first",
        "changes": [{"path": "networks[wan].link.rate", "from": "", "to": "9.8kbit"}],
        "moreChanges": 2,
    }
    analysis = analyse(lab.write())
    assert analysis.results["basedOn"] == "u1" and "rerunOf" not in analysis.results
    changed = next(part for part in record.run(analysis).parts if getattr(part, "title", "").startswith("Changed"))
    assert list(changed.rows) == [("networks[wan].link.rate", "none", "9.8kbit"), ("and 2 more", "", "")]


@pytest.mark.parametrize("name", ["run.json", "state.json", "manifest.json"])
def test_a_record_of_a_later_version_is_refused_by_name(tmp_path, name):
    directory = lab_of(tmp_path / "run").write()
    record = json.loads((directory / name).read_text())
    (directory / name).write_text(json.dumps(record | {"schemaVersion": 3}))
    with pytest.raises(RunError, match=rf"{name} has schemaVersion 3, and this analysis reads versions up to 2"):
        analyse(directory)


@pytest.mark.parametrize("record", ["[]", "{}", '{"schemaVersion": "1"}', '{"schemaVersion": 0}'])
def test_what_has_no_version_is_no_record(tmp_path, record):
    directory = lab_of(tmp_path / "run").write()
    (directory / "run.json").write_text(record)
    with pytest.raises(RunError, match="schemaVersion"):
        analyse(directory)


def test_the_fixture_of_version_1_is_read(tmp_path, pytestconfig):
    fixture = pytestconfig.rootpath.parent / "internal" / "runapi" / "testdata" / "run-v1.json"
    (tmp_path / "run.json").write_text(fixture.read_text())
    run = Run.load(tmp_path)
    assert (run.plan["uid"], run.duration_seconds) == ("0b6fd5cc-5c1e-4f5e-9d43-6a0f3c5f6d11", 12.7)
    assert [i.name for i in run.instances if i.publishes] == ["veh/bft"]


def test_both_forms_of_the_environment_are_names_and_values():
    typed = {
        "platform": {"version": "0.1.0", "operator": "abc"},
        "kubernetes": "v1.34.1",
        "hosts": [{"name": "n1", "nodes": ["hq", "veh"], "kernel": "6.1", "cpus": 2, "memoryBytes": 4 << 30}],
        "images": [
            {"container": "radiod", "host": "n1", "image": "r/radiod:1", "id": "sha256:1"},
            {"node": "hq", "container": "broker", "image": "r/m:1", "id": "r/m@sha256:2"},
        ],
    }
    assert flat(typed) == {
        "platform/version": "0.1.0",
        "platform/operator": "abc",
        "kubernetes": "v1.34.1",
        "host/hq": "n1",
        "host/veh": "n1",
        "kernel/n1": "6.1",
        "processors/n1": "2",
        "memory/n1": "4.0 GiB",
        "image/radiod/n1": "r/radiod:1 sha256:1",
        "image/hq/broker": "r/m:1 r/m@sha256:2",
    }
    first = {"host/hq": "n1", "kernel/n1": "6.1"}
    assert (flat(first), flat(None)) == (first, {})
