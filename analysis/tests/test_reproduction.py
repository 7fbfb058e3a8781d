"""Reference figures: the file's format, what stands beside what, and every form of a comparison with them."""

import json
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest
from test_comparison import asking, platoons, run

from vignette_analysis import analyse, compare
from vignette_analysis.__main__ import main
from vignette_analysis.comparison import reference, rendering
from vignette_analysis.data.run import RunError

SHARED = Path(__file__).parents[2] / "internal" / "reference" / "testdata"
CASES = json.loads((SHARED / "cases.json").read_text())
HEADER = "run,group,metric,value,note\n"


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_files_are_read_as_the_operator_reads_them(case):
    """Only the operator knows which points there can be: the analysis takes other names here."""
    if case["refused"] and not case["runs"]:
        with pytest.raises(RunError) as refused:
            reference.parse("paper.csv", case["text"].encode())
        assert str(refused.value) == "; ".join(case["refused"])
        return
    read = reference.parse("paper.csv", case["text"].encode()).figures
    if case["refused"]:
        assert not {figure.run for figure in read} <= set(case["runs"])
    else:
        assert [asdict(figure) for figure in read] == case["figures"]


def test_the_metrics_are_those_of_the_operator():
    assert reference.METRICS == tuple((SHARED / "metrics.txt").read_text().split())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEADER.encode() + b"a,radio,medianSeconds,1,\n" * 2000, "paper.csv has 50028 bytes: want 32768 at most"),
        (HEADER.encode() + "".join(f"r{i},,sent,1,\n" for i in range(501)).encode(), "paper.csv, row 502: want 500 figures at most"),
        (b"run,metric,value,note\na,sent,1,caf\xe9\n", "paper.csv is no text in UTF-8: save it as CSV in UTF-8"),
    ],
)
def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path, text, says):
    (tmp_path / "paper.csv").write_bytes(text)
    with pytest.raises(RunError, match=says):
        reference.read(tmp_path / "paper.csv")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RunError, match=r"nowhere.csv: no such file or directory: want a CSV file of reference figures"):
        reference.read(tmp_path / "nowhere.csv")


@pytest.fixture
def repeats(tmp_path):
    """Two repeats of a link of 5 ms, and one run of 45 ms that loses every tenth message."""
    return [run(tmp_path, "a", 5).write(), run(tmp_path, "b", 5, seed=2).write(), run(tmp_path, "c", 45, seed=3, lose=10).write()]


@pytest.fixture
def told(repeats, tmp_path):
    """Compares the three runs with a file of these rows."""

    def made(*rows: str, **by: str):
        path = tmp_path / "paper.csv"
        path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
        return compare(repeats, reference=path, **by)

    return made


def figure(comparison, **wanted) -> dict:
    found = [entry for entry in comparison.results["reference"]["figures"] if wanted.items() <= entry.items()]
    assert len(found) == 1, found
    return found[0]


def test_a_figure_stands_beside_that_of_its_condition(told):
    comparison = told("delay=5ms,radio,medianSeconds,0.008,made up", "delay=45ms,radio,deliveredPercent,99,", "delay=45ms,,meanSeconds,0.049,")
    group = next(group for group in comparison.results["groups"] if group["name"] == "radio")
    row = group["conditions"][0]
    median = figure(comparison, metric="medianSeconds")
    assert median == {
        "source": "paper.csv",
        "label": "delay=5ms",
        "runs": 2,
        "group": "radio",
        "metric": "medianSeconds",
        "value": 0.008,
        "measured": row["delaySeconds"]["median"],
        "interval": row["confidence"]["medianSeconds"],
        "difference": row["delaySeconds"]["median"] - 0.008,
        "differencePercent": pytest.approx(100 * (row["delaySeconds"]["median"] / 0.008 - 1)),
        "covered": True,
        "withinLateness": False,
        "note": "made up",
    }
    delivered = figure(comparison, metric="deliveredPercent")
    assert (delivered["measured"], delivered["covered"], delivered["difference"]) == (90, False, -9)
    assert figure(comparison, metric="meanSeconds")["group"] == "radio"  # without a group, that of the headline
    counts = {key: value for key, value in comparison.results["reference"].items() if key != "figures"}
    assert counts == {"covered": 2, "notCovered": 1, "withoutInterval": 0, "notMeasured": 0}


def test_a_run_is_named_by_its_label_its_experiment_or_its_uid(told):
    comparison = told("delay=5ms #1,,sent,60,", "run-b,,sent,60,", "c,,sent,61,")
    assert [(entry["label"], entry["runs"], entry["difference"]) for entry in comparison.results["reference"]["figures"]] == [
        ("delay=5ms #1", 1, 0),
        ("delay=5ms #2", 1, 0),
        ("delay=45ms", 1, -1),
    ]


def test_a_count_of_repeats_is_the_mean_of_the_runs_with_its_interval(told):
    lost = figure(told("delay=5ms,all,sent,60,", "delay=45ms,all,lost,6,"), metric="sent")
    assert (lost["measured"], lost["interval"], lost["covered"]) == (60, {"low": 60, "high": 60}, True)
    assert figure(told("delay=45ms,all,lost,6,"), metric="lost")["interval"] is None


def test_bytes_per_second_are_those_of_a_network(told):
    rate = figure(told("delay=5ms,wan,bytesPerSecond,100,"), metric="bytesPerSecond")
    assert rate["measured"] == pytest.approx(98, abs=5) and rate["interval"]["low"] <= rate["measured"] <= rate["interval"]["high"]
    assert figure(told("delay=5ms,,bytesPerSecond,100,"), metric="bytesPerSecond")["group"] == "wan"  # the only network


def test_an_unknown_run_or_group_is_refused_with_the_near_ones(told):
    with pytest.raises(RunError) as refused:
        told("delay=5s,radio,sent,60,", "delay=5ms,radios,sent,60,", "delay=5ms,wam,bytesPerSecond,1,")
    first, second, third = str(refused.value).split("; ")
    assert first.startswith('paper.csv, row 2, column run: "delay=5s" is unknown: did you mean delay=5ms? want one of delay=5ms, delay=45ms, ')
    assert second.startswith('paper.csv, row 3, column group: "radios" is unknown: did you mean radio? want one of ')
    assert third == 'paper.csv, row 4, column group: "wam" is unknown: did you mean wan? want one of wan'


@pytest.mark.parametrize(
    "rows",
    [
        ("delay=45ms,radio,sent,60,", "run-c,radio,sent,61,"),
        ("run-c,radio,sent,60,", "c,radio,sent,61,"),
        ("delay=45ms,,sent,60,", "delay=45ms,radio,sent,61,"),
    ],
    ids=["a run by its condition and experiment", "a run by its experiment and UID", "a group left empty and named"],
)
def test_a_figure_that_is_told_twice_by_other_names_is_refused(told, rows):
    with pytest.raises(RunError, match=r"^paper.csv, row 3: the same figure as row 2$"):
        told(*rows)


def test_a_figure_of_records_that_is_told_twice_is_shown_once_and_that_is_said(tmp_path):
    twice = [("", "sent", 60.0), ("radio", "sent", 61.0)]
    comparison = compare([of_campaign(run(tmp_path, "a", 5), "near", *twice), of_campaign(run(tmp_path, "b", 45), "far")])
    assert [entry["value"] for entry in comparison.results["reference"]["figures"]] == [60]
    assert {"what": "reference figures of near", "reason": "sent of radio is there twice: the first is shown"} in comparison.results["gaps"]


def test_receipts_of_repeats_are_compared_in_every_form(tmp_path):
    path = tmp_path / "paper.csv"
    path.write_text(HEADER + "run-r1,radio,receiptPercent,60,\n")
    comparison = compare([asking(tmp_path, f"r{seed}", 0.5, seed).write() for seed in range(1, 6)], reference=path)
    assert all(comparison.render(form) for form in ("json", "csv", "latex", "html", "text"))
    assert figure(comparison, metric="receiptPercent")["covered"] is True


def test_what_was_not_measured_is_said(told):
    comparison = told("delay=5ms,radio,receiptPercent,99,", "delay=5ms,radio,responseMeanSeconds,1,", "delay=5ms,radio,sent,60,")
    assert comparison.results["reference"]["notMeasured"] == 2
    assert {"what": "reference figure receiptPercent", "reason": "delay=5ms has no such figure of radio"} in comparison.results["gaps"]
    assert "not measured" in comparison.text()


def of_campaign(lab, point: str, *figures: tuple[str, str, float], name: str = "paper", start: str = "2026-01-01T00:00:00Z"):
    """A run of a campaign that has reference figures for this point."""
    told = {"name": name, "figures": [{"group": g, "metric": m, "value": v} for g, m, v in figures]}
    lab.plan["campaign"] = {"name": "links", "uid": "c1", "round": 1, "point": point, "levels": {"link": point}}
    lab.plan["reference"] = told
    lab.plan["startTime"] = start
    return lab.write()


def test_the_figures_of_the_runs_campaign_stand_beside_them(tmp_path):
    near, far = ("radio", "medianSeconds", 0.008), ("radio", "deliveredPercent", 90.0)
    folders = [
        of_campaign(run(tmp_path, "a", 5), "near", near),
        of_campaign(run(tmp_path, "b", 5, seed=2), "near", near),
        of_campaign(run(tmp_path, "c", 45, lose=10), "far", far),
    ]
    comparison = compare(folders)
    assert [(e["source"], e["label"], e["runs"], e["covered"]) for e in comparison.results["reference"]["figures"]] == [
        ("paper", "link=near", 2, True),
        ("paper", "link=far", 1, True),
    ]
    each = compare(folders, by="run").results["reference"]["figures"]
    assert [(e["label"], e["value"]) for e in each] == [("run-a", 0.008), ("run-b", 0.008), ("run-c", 90)]
    (tmp_path / "other.csv").write_text(HEADER + "link=far,radio,sent,60,\n")
    assert [e["source"] for e in compare(folders, reference=tmp_path / "other.csv").results["reference"]["figures"]] == ["other.csv"]


def test_figures_of_repeats_that_are_pooled_with_others_stand_beside_nothing_and_that_is_said(tmp_path):
    folders = []
    for uid, delay, rate in (("a", 5, "slow"), ("b", 5, "slow"), ("c", 5, "fast"), ("d", 45, "slow")):
        lab = run(tmp_path, uid, delay, seed=len(folders))
        of_campaign(lab, f"{delay}-{rate}", ("radio", "sent", 60.0))
        lab.plan["campaign"]["levels"] = {"link": f"{delay}", "rate": rate}
        folders.append(lab.write())
    comparison = compare(folders, by="link")
    assert [entry["label"] for entry in comparison.results["reference"]["figures"]] == ["link=5 #3", "link=45"]
    reason = "its runs are compared together with others, by another field: they stand beside nothing"
    assert {"what": "reference figures of 5-slow", "reason": reason} in comparison.results["gaps"]
    assert [entry["runs"] for entry in compare(folders).results["reference"]["figures"]] == [2, 1, 1]
    comparison.results["reference"]["figures"] = []
    assert not any("eference fig" in table.title for table in rendering.tables(comparison.results))


def test_figures_that_were_changed_between_runs_are_those_of_the_last_one_and_that_is_said(tmp_path):
    folders = [
        of_campaign(run(tmp_path, "a", 5), "near", ("radio", "sent", 60.0)),
        of_campaign(run(tmp_path, "b", 5, seed=2), "near", ("radio", "sent", 61.0)),
        of_campaign(run(tmp_path, "c", 45), "far"),
    ]
    comparison = compare(folders)
    assert len(comparison.results["reference"]["figures"]) == 1
    assert {"what": "reference figures of near", "reason": "they were changed between runs: those of the last run are shown"} in comparison.results[
        "gaps"
    ]


def test_figures_that_a_campaign_got_after_its_first_runs_stand_beside_all_of_them_and_that_is_said(tmp_path):
    first = of_campaign(run(tmp_path, "a", 5), "near")
    plan = json.loads((first / "run.json").read_text())
    del plan["reference"]
    (first / "run.json").write_text(json.dumps(plan))
    comparison = compare(
        [first, of_campaign(run(tmp_path, "b", 5, seed=2), "near", ("radio", "sent", 60.0)), of_campaign(run(tmp_path, "c", 45), "far")]
    )
    assert [(entry["label"], entry["runs"]) for entry in comparison.results["reference"]["figures"]] == [("link=near", 2)]
    reasons = [gap["reason"] for gap in comparison.results["gaps"] if gap["what"] == "reference figures of near"]
    assert reasons == ["1 of 2 runs have none: those of the last run that has some are shown"]


def test_figures_of_records_that_this_version_does_not_know_are_named(tmp_path):
    figures = [("radio", "sent", 60.0), ("radio", "jitterSeconds", 0.1)]
    comparison = compare([of_campaign(run(tmp_path, "a", 5), "near", *figures), of_campaign(run(tmp_path, "b", 45), "far")])
    assert [entry["metric"] for entry in comparison.results["reference"]["figures"]] == ["sent"]
    reason = "this version does not know metric jitterSeconds: its figures are left out"
    assert {"what": "reference figures of near", "reason": reason} in comparison.results["gaps"]


def test_figures_of_networks_have_no_columns_in_the_csv_whose_rows_are_groups(told):
    header = told("delay=5ms,wan,bytesPerSecond,100,", "delay=5ms,radio,sent,60,").render("csv").splitlines()[0]
    assert "sentReference" in header and "bytesPerSecond" not in header


def test_a_comparison_without_a_reference_says_nothing_of_one(repeats):
    comparison = compare(repeats)
    assert "reference" not in comparison.results
    assert not any("eference" in comparison.render(form) for form in ("text", "csv", "latex"))


def test_every_form_has_the_figures(told, tmp_path):
    comparison = told(
        'delay=5ms,radio,medianSeconds,0.008,"made up, <b>"',
        "delay=45ms,radio,medianSeconds,0.020,",
        "delay=45ms,radio,p95Seconds,0.060,",
        "delay=45ms,radio,lost,0,",
    )
    text = comparison.text()
    assert "Reference figures: paper.csv" in text and "NOT covered" in text and "no interval" in text
    assert (
        "Of 4 reference figures the interval of one's own covers 1, and not 1; 2 without an interval. Differences are measured - reference." in text
    )
    table = pl.read_csv(comparison.render("csv").encode())
    radio = table.filter(pl.col("group") == "radio")
    assert radio["medianSecondsReference"].to_list() == [None, None, 0.020, 0.008]  # the repeats' figure is their condition's
    assert radio["medianSecondsCovered"].to_list() == [None, None, False, True]
    tex = comparison.render("latex")
    assert r"\caption{Reference figures: paper.csv}" in tex and "made up, {}<b" not in tex
    page = comparison.render("html")
    assert "made up, &lt;b&gt;" in page and "Beside the reference" in page
    assert page.count('class="uncovered"') == 2 and page.count('class="covered"') == 2 and page.count('class="untold"') == 2  # for screens and phones
    assert "Not drawn, as not measured or the reference is 0: 1." in page
    assert "reference median 0.008 s</title>" in page and "Diamonds: reference figures of the delay." in page


def test_the_command_takes_a_file_or_standard_input(repeats, tmp_path, capsys, monkeypatch):
    (tmp_path / "paper.csv").write_text(HEADER + "delay=5ms,radio,sent,60,\n")
    folders = list(map(str, repeats))
    assert main(["compare", *folders, "--reference", str(tmp_path / "paper.csv")]) == 0
    assert "Reference figures: paper.csv" in capsys.readouterr().out
    with (tmp_path / "paper.csv").open() as told:
        monkeypatch.setattr("sys.stdin", told)
        assert main(["compare", *folders, "--reference", "-", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["reference"]["figures"][0]["source"] == "standard input"
    assert main(["compare", *folders, "--reference", str(tmp_path / "none.csv")]) == 1
    assert "none.csv: no such file or directory" in capsys.readouterr().err


def test_a_figure_within_the_runs_lateness_is_marked(told, monkeypatch):
    from vignette_analysis.comparison.loading import Loaded

    monkeypatch.setattr(Loaded, "off_by", {"radio": {"median": 0.005}})
    comparison = told("delay=5ms,radio,medianSeconds,0.007,")
    assert figure(comparison, metric="medianSeconds")["withinLateness"] and f"covered{rendering.WITHIN}" in comparison.text()


def test_a_figure_within_a_group_may_be_within_the_lateness_of_its_senders(tmp_path):
    runs = [analyse(platoons(tmp_path, uid, 0.5).write()) for uid in ("one", "two")]
    for one in runs:
        group = next(group for group in one.results["groups"] if group["name"] == "alpha")
        group["bounds"] = {"delaySeconds": {"median": {"low": group["delaySeconds"]["median"] - 0.015, "high": group["delaySeconds"]["median"]}}}
    path = tmp_path / "paper.csv"
    for off, within in ((0.01, True), (0.02, False)):
        measured = next(entry for entry in runs[0].results["pairs"] if entry["from"] == entry["to"] == "alpha")["delaySeconds"]["median"]
        path.write_text(f"{HEADER}one,alpha to alpha,medianSeconds,{measured + off},\n")
        assert figure(compare(runs, by="run", reference=path), group="alpha to alpha")["withinLateness"] is within
