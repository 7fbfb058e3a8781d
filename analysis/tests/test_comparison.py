"""Comparisons of runs: conditions and labels, the tables, the differences, and every form."""

import json
import re
import time
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from lab import BFT, PICTURE, SECOND, UNIT, Lab
from scipy import stats

from vignette_analysis import analyse, compare, outputs
from vignette_analysis.__main__ import main
from vignette_analysis.comparison import asked, boxes, comparing, labels, loading, rendering
from vignette_analysis.comparison.loading import Loaded
from vignette_analysis.comparison.reference import Figure, Reference
from vignette_analysis.data.run import RunError
from vignette_analysis.figures.deliveries import quantiles


def link(delay: str, **more) -> dict:
    return {"name": "wan", "subnet": "198.18.9.0/24", "link": {"delay": delay} | more}


def run(directory, uid: str, delay_ms: int, seed: int = 1, count: int = 60, lose: int = 0, **plan) -> Lab:
    """A run whose delays are that of its link and something random, and of whose messages every lose-th is lost."""
    lab = Lab(directory / uid)
    lab.node("nor", BFT).node("prt", PICTURE)
    for second in range(-1, 62, 2):
        lab.sample("nor", float(second), 100 * max(second, 0)).sample("prt", float(second), 0)
    for node, app, instance in (("nor", "bft", "nor/bft"), ("prt", "picture", "prt/picture")):
        lab.agent(node, app, "started", 0, instance=instance, latenessSeconds=0.001)
    random = np.random.default_rng(seed)
    for i in range(count):
        at = i * 50 * SECOND // count
        lab.event("nor/bft", "sent", at, f"m{i}", "/nor/bft")
        if not lose or i % lose:
            lab.event("prt/picture", "received", at + delay_ms * 10**6 + int(random.exponential(4e6)), f"m{i}", "/nor/bft")
    spec = {"duration": "1m", "seed": seed, "networks": [link(f"{delay_ms}ms")], "apps": list(lab.apps.values()), "nodes": []}
    lab.plan |= {"uid": uid, "name": plan.pop("name", f"run-{uid}"), "spec": spec | plan.pop("spec", {})} | plan
    return lab


@pytest.fixture
def two(tmp_path):
    """Two runs whose links differ by 40 ms, of which the second loses every tenth message."""
    return [run(tmp_path, "one", 5).write(), run(tmp_path, "two", 45, seed=2, lose=10).write()]


def write_results(folder) -> None:
    """What a comparison reads of the results, without plots."""
    analysis = analyse(folder)
    (folder / "results").mkdir()
    (folder / "results" / "results.json").write_text(json.dumps(analysis.results))
    outputs._write_table(analysis.delivery_table(), ("sent", "received"), folder / "results" / "deliveries")
    outputs._write_table(analysis.request_table(), ("triggered", "sent", "receipt", "failed"), folder / "results" / "requests")


def pair(comparison, group: str = "all") -> dict:
    found = next(g for g in comparison.results["groups"] if g["name"] == group)
    assert len(found["differences"]) == 1
    return found["differences"][0]


def test_the_shift_is_the_difference_of_the_links_and_the_loss_that_of_the_losses(two):
    found = pair(compare(two))
    shift, delta = found["delay"]["shiftSeconds"], found["delay"]["cliffsDelta"]
    assert shift["low"] < 0.040 < shift["high"] and shift["high"] - shift["low"] < 0.006
    assert delta["estimate"] == 1 and found["delay"]["brunnerMunzel"]["pHolm"] < 1e-6 and found["delay"]["mannWhitney"]["pHolm"] < 1e-6
    assert found["loss"]["percentagePoints"]["estimate"] == pytest.approx(10) and found["loss"]["percentagePoints"]["low"] > 0


def test_shifts_of_microseconds_keep_their_digits(tmp_path):
    text = rendering.text(compare([run(tmp_path, "one", 5).write(), run(tmp_path, "two", 5, seed=2).write()], by="run"))
    shift = next(line for line in text.splitlines() if line.startswith("run-one  run-two"))
    assert re.search(r" [+-]0\.00\d{4} \[[+-]0\.00\d{4}, [+-]0\.00\d{4}\]", shift), shift


def of_campaign(directory, uid: str, levels: dict[str, str], delay: str, seed: int = 1, campaign: str = "c1", **spec):
    """A run of a campaign, as far as labels look at it."""
    place = {"name": "nightly", "uid": campaign, "round": 1, "point": "-".join(levels.values()), "levels": levels}
    plan = {"uid": uid, "name": f"nightly-{uid}", "campaign": place, "spec": {"seed": seed, "networks": [link(delay)]} | spec}
    return Loaded(plan, {}, pl.DataFrame())


def test_runs_of_a_campaign_are_labelled_by_their_levels(tmp_path):
    near, far, other = ({"broker": b, "link": li} for b, li in (("one", "near"), ("one", "far"), ("two", "near")))
    runs = [
        of_campaign(tmp_path, "a", near, "5ms"),
        of_campaign(tmp_path, "b", far, "45ms"),
        of_campaign(tmp_path, "c", near, "5ms", seed=2),
        of_campaign(tmp_path, "d", other, "5ms", duration="2m"),
    ]
    naming = labels.name(runs)
    assert naming.labels == ["broker=one, link=near", "broker=one, link=far", "broker=two, link=near"]
    assert naming.conditions == [0, 1, 0, 2]
    assert naming.pooled == []
    assert labels.name(runs[:3]).labels == ["link=near", "link=far"]  # axes that do not differ are not named
    by_link = labels.name(runs, by="link")
    assert (by_link.labels, by_link.conditions, by_link.pooled) == (["link=near", "link=far"], [0, 1, 0, 0], ["duration"])
    assert labels.name(runs, by="run").conditions == [0, 1, 2, 3]
    assert labels.name(runs, by="delay").labels == ["delay=5ms", "delay=45ms"]  # fields of the spec can be asked for all the same
    edited = [*runs, of_campaign(tmp_path, "e", near, "6ms")]
    assert labels.name(edited).pooled == ["networks.wan.link.delay"]  # the template was edited between repeats


def test_runs_of_two_campaigns_are_labelled_by_what_differs(tmp_path):
    runs = [of_campaign(tmp_path, "a", {"link": "near"}, "5ms"), of_campaign(tmp_path, "b", {"link": "far"}, "45ms", campaign="c2")]
    assert labels.name(runs).labels == ["delay=5ms", "delay=45ms"]


def test_repeats_of_one_point_are_one_condition(tmp_path):
    runs = [of_campaign(tmp_path, uid, {"link": "near"}, "5ms", seed=seed) for seed, uid in enumerate("ab")]
    naming = labels.name(runs)
    assert (naming.labels, naming.conditions) == (["nightly-a"], [0, 0])


def test_labels_name_what_differs(two):
    comparison = compare(two)
    assert [r["label"] for r in comparison.results["runs"]] == ["delay=5ms", "delay=45ms"]
    assert comparison.results["fields"] == [{"field": "networks.wan.link.delay", "values": ["5ms", "45ms"]}]


def test_the_figures_are_those_of_each_runs_results(two):
    rows = compare(two).results["groups"][0]["runs"]
    for folder, row in zip(two, rows, strict=True):
        results = analyse(folder).results
        assert (row["messages"], row["delaySeconds"]) == (results["messages"], results["delaySeconds"])
        delivered = row["confidence"]["deliveredPercent"]
        assert delivered["low"] <= results["messages"]["deliveredPercent"] <= delivered["high"]
        assert row["confidence"]["medianSeconds"]["low"] < results["delaySeconds"]["median"] < row["confidence"]["medianSeconds"]["high"]


def test_folders_with_results_analyses_and_folders_without_give_the_same(two):
    plain = compare(two).results
    assert compare([analyse(folder) for folder in two]).results == plain
    for folder in two:
        write_results(folder)
    assert compare(two).results == plain


def test_a_run_that_is_based_on_another_says_with_which_differences(tmp_path):
    changes = [{"path": "networks[wan].link.delay", "from": "5ms", "to": "45\nms"}]
    runs = [run(tmp_path, "one", 5).write(), run(tmp_path, "two", 45, basedOn={"uid": "u1", "name": "one", "changes": changes}).write()]
    text = rendering.text(compare(runs))
    assert "delay=45ms is based on one u1, with these differences: networks[wan].link.delay 45 ms instead of 5ms" in text


def test_the_order_of_runs_turns_the_signs_only(two):
    forth, back = pair(compare(two)), pair(compare(two[::-1]))
    assert forth["delay"]["shiftSeconds"]["estimate"] == pytest.approx(-back["delay"]["shiftSeconds"]["estimate"])
    assert forth["loss"]["percentagePoints"]["low"] == pytest.approx(-back["loss"]["percentagePoints"]["high"])
    assert forth["delay"]["brunnerMunzel"]["p"] == pytest.approx(back["delay"]["brunnerMunzel"]["p"])


def test_repeats_with_other_seeds_are_one_condition_with_the_run_as_the_unit(tmp_path):
    runs = [run(tmp_path, f"a{s}", 5, seed=s, lose=7).write() for s in (1, 2, 3)] + [run(tmp_path, f"b{s}", 45, seed=s).write() for s in (4, 5, 6)]
    comparison = compare(runs)
    assert [c["unit"] for c in comparison.results["conditions"]] == ["run", "run"]
    assert [r["label"] for r in comparison.results["runs"]][:2] == ["delay=5ms #1", "delay=5ms #2"]
    found = pair(comparison)
    assert [u["count"] for u in found["delay"]["units"]] == [3, 3]
    # Three runs of each bear no smaller p than 1 of the 20 ways to choose them, on either side: 0.1 says nothing then.
    for test in (found["delay"]["brunnerMunzel"], found["delay"]["mannWhitney"], found["loss"]["welch"]):
        assert (test["p"], test["pHolm"], test["tooFew"]) == (None, None, True)
    pooled = comparison.results["groups"][0]["conditions"][0]
    assert (pooled["runs"], pooled["messages"]["sent"]) == (3, 180)
    delays = np.concatenate([run.deliveries["delay"].drop_nulls().to_numpy() for run in comparison.runs[:3]]) / 1e9
    low, low_quarter, middle, mean, *high = pooled["delaySeconds"].values()
    quantiles = np.quantile(delays, (0, 0.25, 0.5, 0.75, 0.95, 1)).tolist()
    assert [low, low_quarter, middle, *high] == pytest.approx(quantiles, abs=1e-12) and mean == pytest.approx(delays.mean())
    text = comparison.text()
    assert "(3 runs)" in text and "  too few  " in text
    assert [note["what"] for note in comparison.results["notes"]] == ["intervals of shares and medians", "tests"]
    assert text.count("too few repeats to tell") == 2


def test_four_repeats_on_each_side_are_enough_for_one_difference(tmp_path):
    runs = [run(tmp_path, f"{delay}-{seed}", delay, seed=seed).write() for delay in (5, 45) for seed in (1, 2, 3, 4)]
    comparison = compare(runs)
    assert pair(comparison)["delay"]["mannWhitney"]["p"] == pytest.approx(2 / 70) and comparison.results["notes"] is None


def test_a_condition_with_too_few_repeats_takes_no_p_of_the_others(tmp_path):
    runs = [run(tmp_path, f"{delay}-{seed}", delay, seed=seed).write() for delay in (5, 45) for seed in (1, 2, 3, 4)]
    runs += [run(tmp_path, f"85-{seed}", 85, seed=seed).write() for seed in (1, 2)]
    tests = [found["delay"]["mannWhitney"] for found in compare(runs).results["groups"][0]["differences"]]
    assert [(test["pHolm"], test["tooFew"]) for test in tests] == [(pytest.approx(2 / 70), False), (None, True), (None, True)]


def test_repeats_that_lose_nothing_have_a_narrower_interval_than_one_of_them(tmp_path):
    comparison = compare([run(tmp_path, f"u{seed}", 5, seed=seed).write() for seed in (1, 2)])
    one, both = (comparison.results["groups"][0][rows][0]["confidence"]["deliveredPercent"] for rows in ("runs", "conditions"))
    assert one["high"] == both["high"] == 100 and 93 < one["low"] < both["low"]


def test_groups_with_the_same_deliveries_have_one_table(two):
    titles = [table.title for table in rendering.tables(compare(two).results)]
    assert "Groups radio, all, cross and nor (the same deliveries)" in titles and len([t for t in titles if t.startswith("Group")]) == 1


def asking(directory, uid: str, delay: float, seed: int = 1, **plan) -> Lab:
    """A run of requests, of which every tenth has failed."""
    lab = run(directory, uid, 5, seed, **plan)
    for i in range(40):
        lab.event("nor/bft", "retransmitted", i + 0.5, f"m{i}", "/nor/bft")
        if i % 10:
            lab.event("nor/bft", "receipt", i * 50 * SECOND // 60 + round((delay + seed / 100 + i / 1000) * SECOND), f"m{i}", "/nor/bft")
        else:
            lab.event("nor/bft", "failed", i + 1.0, f"m{i}", "/nor/bft", text="timeout")
    return lab


def test_requests_of_each_run_have_a_table_with_their_own_intervals(tmp_path):
    folders = [asking(tmp_path, "one", 0.5).write(), asking(tmp_path, "two", 0.75, name="slow").write()]
    comparison = compare(folders, by="run")
    rows = comparison.results["groups"][0]["runs"]
    expected = [analyse(folder).results["requests"] for folder in folders]
    assert all(
        row["requests"].items() >= {k: v for k, v in own.items() if k != "confidence"}.items() for row, own in zip(rows, expected, strict=True)
    )
    assert [row["requests"]["confidence"]["meanSeconds"] for row in rows] == [own["confidence"]["meanSeconds"] for own in expected]
    table = next(t for t in rendering.tables(comparison.results) if t.kind == "requests")
    assert table.title == "Requests in groups radio, all, cross and nor (the same deliveries)" and len(table.rows) == 2
    assert table.rows[0][3:6] == ["4 (4 timeout)", "20", "40"] and re.fullmatch(r"0\.5\d+ \[0\.5\d+, 0\.5\d+\]", table.rows[0][8])
    written = pl.read_csv(comparison.render("csv").encode())
    assert written["failed"].to_list()[0] == 4 and written["responseMeanSeconds"].to_list()[0] == rows[0]["requests"]["responseSeconds"]["mean"]
    assert "Response times of requests" in comparison.text() and "Requests" in comparison.render("latex") and "Requests" in comparison.render("html")


@pytest.mark.parametrize("stored", [False, True])
def test_response_times_and_receipts_of_requests_are_tested(tmp_path, stored):
    slow = asking(tmp_path, "two", 0.75, spec={"networks": [link("9ms")]})
    log = slow.log_of("nor/bft")
    log[:] = [line for line in log if '"receipt"' not in line or int(json.loads(line)["id"][1:]) % 3]
    folders = [asking(tmp_path, "one", 0.5).write(), slow.write()]
    for folder in folders if stored else []:
        write_results(folder)
    comparison = compare(folders)
    found = comparison.results["groups"][0]["requestDifferences"]
    assert [(pair["from"], pair["to"]) for pair in found] == [("delay=5ms", "delay=9ms")]
    assert found[0]["delay"]["shiftSeconds"]["estimate"] == pytest.approx(0.25, abs=0.005) and found[0]["delay"]["brunnerMunzel"]["pHolm"] < 0.01
    rows = [row["requests"] for row in comparison.results["groups"][0]["runs"]]
    points = rows[0]["receiptPercent"] - rows[1]["receiptPercent"]
    assert points > 10 and found[0]["loss"]["percentagePoints"]["estimate"] == pytest.approx(points) and found[0]["loss"]["welch"]["pHolm"] < 0.5
    (table,) = [table for table in rendering.tables(comparison.results) if table.kind == "requestDifferences"]
    assert table.title.startswith("Differences of requests in groups radio") and table.rows[0][-1] == "6 blocks, 6 blocks"
    for form in ("text", "latex", "html"):
        assert "ifferences of requests" in comparison.render(form), form
    assert "requestDifferences" not in compare([run(tmp_path, "a", 5).write(), run(tmp_path, "b", 9).write()]).results["groups"][0]


def test_response_times_of_repeats_are_tested_with_the_run_as_the_unit(tmp_path):
    runs = [asking(tmp_path, f"{delay}-{seed}", delay, seed, spec={"networks": [link(f"{delay}s")]}) for delay in (0.5, 0.75) for seed in range(1, 5)]
    (found,) = compare([one.write() for one in runs]).results["groups"][0]["requestDifferences"]
    assert found["delay"]["units"] == [{"unit": "run", "count": 4}] * 2 and found["delay"]["brunnerMunzel"]["pHolm"] == pytest.approx(2 / 70)
    assert found["loss"]["percentagePoints"]["estimate"] == 0


def test_requests_of_repeats_have_the_mean_of_their_means(tmp_path):
    comparison = compare([asking(tmp_path, f"r{seed}", 0.5, seed).write() for seed in range(1, 6)])
    together = comparison.results["groups"][0]["conditions"][0]["requests"]
    means = [row["requests"]["responseSeconds"]["mean"] for row in comparison.results["groups"][0]["runs"]]
    assert together["triggered"] == 300 and together["receipts"] == 180 and together["failed"] == {"timeout": 20}
    assert together["responseSeconds"]["mean"] == pytest.approx(np.mean(means)) and together["responseSeconds"]["min"] == pytest.approx(0.511)
    low, high = stats.t.interval(0.95, 4, np.mean(means), stats.sem(means))
    assert together["confidence"]["meanSeconds"] == pytest.approx({"low": low, "high": high})
    assert together["confidence"]["receiptPercent"]["low"] < 60 < together["confidence"]["receiptPercent"]["high"]


def test_intervals_of_mean_times_are_bounded_at_0(tmp_path):
    same = {"networks": [link("5ms")]}
    runs = [run(tmp_path, f"r{seed}", delay, seed, spec=same).write() for seed, delay in ((1, 5), (2, 500))]
    confidence = compare(runs).results["groups"][0]["conditions"][0]["confidence"]["meanSeconds"]
    assert confidence["low"] == 0 < confidence["high"]
    slower = [SimpleNamespace(results={"groups": [{"name": "all", "requests": requests(900, mean)}]}) for mean in (0.2, 4.0)]
    found = asked.of("all", slower)["confidence"]["meanSeconds"]
    assert found["low"] == 0 < found["high"]


def test_receipts_of_two_repeats_have_the_interval_of_the_command_line():
    runs = [SimpleNamespace(results={"groups": [{"name": "all", "requests": requests(n)}]}) for n in (900, 900)]
    found = asked.of("all", runs)["confidence"]["receiptPercent"]
    # "two runs that lost alike" in internal/confidence/testdata/shares.json.
    assert (found["low"], found["high"]) == (pytest.approx(88.6075588), pytest.approx(91.2390775))


def test_repeats_over_tcp_have_no_count_of_retransmissions():
    def of(*counts: int | None) -> int | None:
        entries = [requests(900) | {"retransmissions": count} for count in counts]
        return asked.of("all", [SimpleNamespace(results={"groups": [{"name": "all", "requests": entry}]}) for entry in entries])["retransmissions"]

    assert (of(None, None), of(None, 2), of(1, 2)) == (None, 2, 3)
    nothing = {"receiptPercent": 90.0, "retransmissions": None, "confidence": dict.fromkeys(("receiptPercent", "meanSeconds"))}
    assert rendering._requests(requests(900) | nothing)[4] == "-"


def requests(receipts: int, mean: float = 0.2) -> dict:
    counts = {"triggered": 1000, "sent": 1000, "receipts": receipts, "outstanding": 0, "retransmissions": 0}
    return counts | {"failed": None, "responseSeconds": {"min": 0.1, "mean": mean, "max": 10 * mean}}


def platoons(directory, uid: str, slower: float) -> Lab:
    """Two groups of two nodes, with a slower way from one to the other."""
    lab = Lab(directory / uid)
    for node, group in (("a1", "alpha"), ("a2", "alpha"), ("b1", "bravo"), ("b2", "bravo")):
        lab.node(node, UNIT, group=group)
    for i in range(30):
        lab.event("a1/unit", "sent", i + 1.0, f"m{i}", "/a1/unit")
        for receiver, delay in (("a2", 0.1), ("b1", slower), ("b2", slower)):
            lab.event(f"{receiver}/unit", "received", i + 1.0 + delay + i / 1000, f"m{i}", "/a1/unit")
    lab.plan |= {"uid": uid, "spec": {"networks": [link(f"{slower}s")], "apps": list(lab.apps.values())}}
    return lab


@pytest.mark.parametrize("stored", [False, True])
def test_groups_of_several_nodes_are_compared_within_too(tmp_path, stored):
    folders = [platoons(tmp_path, "one", 0.5).write(), platoons(tmp_path, "two", 0.75).write()]
    for folder in folders if stored else []:
        write_results(folder)
    groups = {group["name"]: group for group in compare(folders).results["groups"]}
    assert list(groups) == ["radio", "all", "local", "cross", "alpha", "bravo", "alpha to alpha"]
    assert [row["messages"]["received"] for row in groups["alpha to alpha"]["runs"]] == [30, 30]
    shift = {name: groups[name]["differences"][0]["delay"]["shiftSeconds"]["estimate"] for name in ("alpha to alpha", "cross")}
    assert shift == {"alpha to alpha": 0, "cross": pytest.approx(0.25)}


def test_a_difference_within_a_group_may_be_within_the_lateness_of_its_senders(tmp_path):
    runs = [analyse(platoons(tmp_path, uid, 0.5).write()) for uid in ("one", "two")]
    runs[1].deliveries = runs[1].deliveries.with_columns(received=pl.col("received") + 20_000_000)
    for one in runs:
        for group in one.results["groups"]:
            if group["name"] == "alpha":
                median = group["delaySeconds"]["median"]
                group["bounds"] = {"delaySeconds": {"median": {"low": median - 0.015, "high": median}}}
    groups = {group["name"]: group for group in compare(runs, by="run").results["groups"]}
    assert groups["alpha to alpha"]["differences"][0]["withinLateness"] == ["delay"]
    assert groups["bravo"]["differences"][0]["withinLateness"] == []


def test_runs_without_requests_say_nothing_of_them(two):
    comparison = compare(two)
    assert "requests" not in json.dumps(comparison.results) and "equests" not in comparison.text()


def test_sizes_of_messages_on_the_wire_are_beside_each_other(two):
    runs = [analyse(folder) for folder in two]
    runs[0].results["messageSizes"] = [{"protocol": "mqtt", "messages": 60, "medianBytes": 308.0}]
    comparison = compare(runs)
    (sizes,) = comparison.results["messageSizes"]
    assert sizes["protocol"] == "mqtt" and [row["medianBytes"] for row in sizes["runs"]] == [308.0, None]
    (table,) = [table for table in rendering.tables(comparison.results) if table.kind == "sizes"]
    assert (table.header[1:], [row[1:] for row in table.rows]) == (["mqtt"], [["308"], ["-"]])
    assert "Message on the wire" in rendering.html(comparison) and "Message on the wire" in rendering.latex(comparison)
    assert compare(two).results["messageSizes"] is None


def test_error_and_age_of_the_picture_are_beside_each_other(two):
    runs = [analyse(folder) for folder in two]
    figures = {"errorMetres": {"median": 12.34, "mean": 20.0}, "ageSeconds": {"median": 2.5, "mean": 3.0}}
    runs[0].results["picture"] = {"sampleSeconds": 1, "groups": [{"name": "all"} | figures, {"name": "nor"} | figures]}
    runs[1].results["picture"] = {"sampleSeconds": 1, "groups": [{"name": "all", "errorMetres": None, "ageSeconds": None}]}
    comparison = compare(runs)
    near = {"label": "delay=5ms", "errorMedianMetres": 12.34, "ageMedianSeconds": 2.5}
    far = {"label": "delay=45ms", "errorMedianMetres": None, "ageMedianSeconds": None}
    assert comparison.results["picture"] == [{"name": name, "runs": [near, far]} for name in ("all", "nor")]
    assert gap_of(comparison, "picture of nor") == gap_of(comparison, "picture of all") == "delay=45ms does not have it"
    (table,) = [table for table in rendering.tables(comparison.results) if table.kind == "picture"]
    assert [(row[0], row[1].removesuffix(" *"), *row[2:]) for row in table.rows[:2]] == [
        ("all", "delay=5ms", "12.3", "2.5"),
        ("all", "delay=45ms", "-", "-"),
    ]
    title = "Picture of the nodes, medians by group"
    assert all(title in comparison.render(form) for form in ("text", "html", "latex"))
    assert compare(two).results["picture"] is None and title not in compare(two).text()


def test_of_many_groups_in_many_runs_the_picture_of_all_nodes_is_shown(two, monkeypatch):
    monkeypatch.setattr(rendering, "MAX_PUBLISHER_ROWS", 3)
    runs = [analyse(folder) for folder in two]
    figures = {"errorMetres": {"median": 12.34}, "ageSeconds": {"median": 2.5}}
    for run in runs:
        run.results["picture"] = {"sampleSeconds": 1, "groups": [{"name": name} | figures for name in ("all", "nor")]}
    (table,) = [table for table in rendering.tables(compare(runs).results) if table.kind == "picture"]
    assert [row[0] for row in table.rows] == ["all", "all"]
    assert table.left_out == "group all only: all 2 groups are in the form json"


def test_what_differs_is_said_without_json(tmp_path):
    change = {"network": "wan", "jammer": {"name": "j1", "power": "20dBm", "position": {"latitude": "58.2", "longitude": "7.9"}}}
    live = {"liveChanges": [{"name": "jam", "atNanoseconds": 5, "changes": [change]}]}
    comparison = compare([run(tmp_path, "a", 5, **live).write(), run(tmp_path, "b", 5).write()])
    assert "position (latitude 58.2" in comparison.results["fields"][0]["values"][0] and "{" not in comparison.text()


def test_what_was_changed_by_hand_is_said_with_its_time(tmp_path):
    live = {"liveChanges": [{"name": "over-8gpgl", "atNanoseconds": 6052312000, "changes": [{"network": "wan", "link": {"limit": 200}}]}]}
    comparison = compare([run(tmp_path, "a", 5, **live).write(), run(tmp_path, "b", 5).write()])
    assert comparison.results["fields"][0]["values"] == ["wan: limit 200 at 6.05 s", "-"]


def test_repeats_alone_are_one_condition_unless_each_run_is_asked_for(tmp_path):
    runs = [run(tmp_path, uid, 5, seed=seed, name="same").write() for seed, uid in enumerate(("u1", "u2"))]
    assert compare(runs).results["groups"][0]["differences"] is None
    each = compare(runs, by="run")
    assert [r["label"] for r in each.results["runs"]] == ["same@u1", "same@u2"] and abs(pair(each)["delay"]["shiftSeconds"]["estimate"]) < 0.003


def test_a_field_pools_what_else_differs_and_says_so(tmp_path):
    def spec(loss: str, delay: int) -> dict:
        return {"networks": [link(f"{delay}ms", loss=loss)]}

    runs = [run(tmp_path, f"{d}-{i}", d, spec=spec(loss, d)).write() for d in (5, 45) for i, loss in enumerate(("0%", "1%"))]
    comparison = compare(runs, by="delay")
    assert [c["label"] for c in comparison.results["conditions"]] == ["delay=5ms", "delay=45ms"]
    assert {"what": "pooled", "reason": "runs of one condition differ in networks.wan.link.loss"} in comparison.results["gaps"]
    with pytest.raises(
        RunError, match=r"by 'colour': no field of that name differs.*want run, or one of.*networks.wan.link.delay, networks.wan.link.loss"
    ):
        compare(runs, by="colour")


def loaded(spec: dict, **plan) -> Loaded:
    return Loaded({"uid": json.dumps([spec, plan])[-40:], "name": plan.pop("name", "x"), "spec": spec} | plan, {}, pl.DataFrame())


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        ({"apps": [{"name": "b", "mosquitto": {"bridges": []}}]}, {"apps": [{"name": "b", "rabbitmq": {}}]}, ["b=mosquitto", "b=rabbitmq"]),
        (
            {"apps": [{"name": "a", "publisher": {"period": "2s"}}]},
            {"apps": [{"name": "a", "publisher": {"period": "10s"}}]},
            ["period=2s", "period=10s"],
        ),
        ({"networks": [{"name": "w", "waveform": "lan"}]}, {"networks": [{"name": "w", "waveform": "satcom"}]}, ["waveform=lan", "waveform=satcom"]),
        (
            {"apps": [{"name": n, "publisher": {"period": p}} for n, p in (("a", "1s"), ("b", "2s"))]},
            {"apps": [{"name": n, "publisher": {"period": p}} for n, p in (("a", "3s"), ("b", "4s"))]},
            ["a.publisher.period=1s, b.publisher.period=2s", "a.publisher.period=3s, b.publisher.period=4s"],
        ),
        ({"duration": "1m"}, {}, ["duration=1m", "duration=-"]),
        ({"timeline": [{"at": "1m", "start": ["a", "b"]}]}, {"timeline": [{"at": "1m", "start": ["a"]}]}, ["start=a, b", "start=a"]),
        ({"timeline": [{"at": "1m", "start": ["a-name-that-is-too-long-for-labels"]}]}, {"timeline": []}, ["one", "two"]),
    ],
)
def test_labels(first, second, want):
    waveforms = [{"lan": {"link": {"delay": "1ms"}}}, {"satcom": {"link": {"delay": "550ms"}}}] if "networks" in first else [{}, {}]
    runs = [loaded(spec, name=name, waveforms=w) for spec, name, w in zip((first, second), ("one", "two"), waveforms, strict=True)]
    assert labels.name(runs).labels == want


def test_a_waveform_that_was_changed_between_runs_is_a_difference():
    spec = {"networks": [{"name": "w", "waveform": "lan"}]}
    runs = [loaded(spec, waveforms={"lan": {"link": {"delay": delay}}}) for delay in ("1ms", "2ms")]
    assert labels.name(runs).labels == ["delay=1ms", "delay=2ms"]


def test_bytes_per_second_stand_in_the_table_of_all_whatever_group_names_it(two):
    runs = [analyse(folder) for folder in two]
    (table,) = [table for table in rendering.tables(compare(runs).results) if table.kind == "figures" and "all" in table.title]
    assert table.title.startswith("Groups radio") and table.header[-1] == "wan B/s"


def test_bytes_per_second_of_repeats_are_the_mean_of_the_runs(tmp_path):
    runs = [analyse(run(tmp_path, f"r{seed}", 5, seed).write()) for seed in range(1, 5)]
    rates = [100.0, 140.0, 90.0, 110.0]
    for one, rate in zip(runs, rates, strict=True):
        one.results["networks"][0]["bytesPerSecond"] = rate
    comparison = compare(runs)
    (found,) = comparison.results["networks"][0]["conditions"]
    low, high = stats.t.interval(0.95, 3, np.mean(rates), stats.sem(rates))
    assert found["bytesPerSecond"] == 110 and found["confidence"]["bytesPerSecond"] == pytest.approx({"low": low, "high": high})
    (table,) = [table for table in rendering.tables(comparison.results) if table.kind == "figures"]
    assert [row[-1] for row in table.rows] == ["100.0", "140.0", "90.0", "110.0", "110.0"]
    runs[1].results["networks"][0]["bytesPerSecond"] = None
    assert compare(runs).results["networks"][0]["conditions"][0]["bytesPerSecond"] is None


def test_runs_of_one_kind_of_app_that_differ_are_no_repeats_because_another_run_has_another_kind():
    specs = [{"mosquitto": {"queue": 1}}, {"mosquitto": {"queue": 2}}, {"rabbitmq": {"vhost": "v"}}]
    found = labels.name([loaded({"apps": [{"name": "broker"} | spec]}) for spec in specs])
    assert found.conditions == [0, 1, 2]
    assert list(found.differences) == ["apps.broker", "apps.broker.mosquitto.queue"]


def test_runs_with_one_waveform_of_other_contents_are_no_repeats_because_a_run_has_another_waveform():
    delays = [("lan", "1ms"), ("lan", "2ms"), ("satcom", "550ms")]
    specs = [({"networks": [{"name": "w", "waveform": name}]}, {name: {"link": {"delay": delay}}}) for name, delay in delays]
    assert labels.name([loaded(spec, waveforms=waveforms) for spec, waveforms in specs]).conditions == [0, 1, 2]


def test_runs_with_one_scenario_of_other_digests_are_no_repeats_because_a_run_has_another_scenario():
    runs = [loaded({"scenario": {"ref": ref}}) for ref in ("march", "march", "halt")]
    for one, digest in zip(runs, ("sha256:1", "sha256:2", "sha256:3"), strict=True):
        one.plan["scenario"] = {"digest": digest}
    assert labels.name(runs).conditions == [0, 1, 2]


def test_seeds_and_housekeeping_are_no_differences():
    runs = [loaded({"seed": s, "collect": {"x": s}, "networks": [{"name": "w", "subnet": f"198.18.{s}.0/24"}]}) for s in (1, 2)]
    assert labels.name(runs).conditions == [0, 0]


def test_late_unjudged_and_incomplete_runs_are_marked_in_every_table(tmp_path):
    late = run(tmp_path, "late", 5)
    late.agent("nor", "bft", "started", 1, instance="nor/bft", latenessSeconds=5.0)
    untold = run(tmp_path, "untold", 45)
    untold.logs = {name: lines for name, lines in untold.logs.items() if not name.startswith("radio/")}
    torn = run(tmp_path, "torn", 85)
    torn.log_of("nor/bft").append("{")
    comparison = compare([late.write(), untold.write(), torn.write(), run(tmp_path, "good", 125).write()])
    for table in rendering.tables(comparison.results):
        cells = [cell for row in [table.header, *table.rows] for cell in row]
        for label in ("delay=5ms", "delay=45ms", "delay=85ms"):
            assert label not in cells and f"{label} *" in cells, f"{label} is not marked in {table.title}"
    assert ">delay=5ms *</text>" in (page := comparison.render("html")) and ">delay=125ms</text>" in page
    text = comparison.text()
    assert (
        "kept up: NO" in text
        and "not judged" in text
        and "kept up: yes, off by at most 0 ms of the median" in text
        and "INCOMPLETE" in text
        and "delay=125ms  " in text
    )
    told = {gap["what"] for gap in comparison.results["gaps"]}
    assert {"verdict of run-late@late", "verdict of run-untold@untold", "incomplete run-torn@torn"} <= told


@pytest.mark.parametrize(
    ("what", "complete"),
    [
        ("log logs/nor/bft/messages-1.jsonl", False),
        ("logs of nor/bft", False),
        ("radiodRestarted", False),
        ("RadioSilenced", False),
        ("EMANEFailed", False),
        ("clock offset", False),
        ("log logs/nor/bft/stdout-1.log", True),
        ("verdict: throttling", True),
        ("Kubernetes events", True),
    ],
)
def test_a_run_is_incomplete_by_what_lacks_messages(what, complete):
    made = Loaded({"spec": {}}, {"gaps": [{"what": what, "reason": "gone"}]}, pl.DataFrame())
    assert made.lacking == ([] if complete else [f"{what}: gone"])


EARLY = [{"id": "001-start", "atNanoseconds": 0}, {"id": "early-stop", "atNanoseconds": 20 * SECOND}]


@pytest.mark.parametrize(
    ("spec", "complete"),
    [
        ({"duration": "1m"}, False),
        ({"duration": "10s", "timeline": [{"at": "30s"}]}, False),
        ({"duration": "20s"}, True),  # stopped while it drained
        ({}, True),  # a live cluster
    ],
)
def test_a_run_that_was_stopped_early_is_incomplete(spec, complete):
    made = Loaded({"spec": spec, "armed": EARLY}, {"gaps": None}, pl.DataFrame())
    assert made.lacking == ([] if complete else ["spec.stop ended the run 20.0 s after T0, before its end"])


def test_what_one_run_lacks_is_null_and_said(tmp_path):
    other = run(tmp_path, "b", 45)
    other.nodes[0]["group"] = "allies"
    other.logs = {name: lines for name, lines in other.logs.items() if not name.startswith("radio/")}
    comparison = compare([run(tmp_path, "a", 5).write(), other.write()])
    groups = {g["name"]: g for g in comparison.results["groups"]}
    assert groups["nor"]["runs"][1]["messages"] is None and groups["nor"]["differences"][0]["delay"] is None
    (network,) = comparison.results["networks"]
    for entries in (network["runs"], network["conditions"]):
        rates = {entry["label"]: entry["bytesPerSecond"] for entry in entries}
        assert rates == {"delay=5ms": pytest.approx(98, abs=5), "delay=45ms": None}
    told = {(gap["what"], gap["reason"]) for gap in comparison.results["gaps"]}
    assert ("group nor", "delay=45ms has no such group") in told and ("bytesPerSecond of wan", "delay=45ms does not have it") in told


def test_runs_without_a_delivery_are_compared_by_what_there_is(tmp_path):
    comparison = compare([run(tmp_path, "a", 5).write(), run(tmp_path, "b", 45, lose=1).write(), run(tmp_path, "c", 85, count=0).write()])
    differences = comparison.results["groups"][0]["differences"]
    assert [d["delay"] for d in differences] == [None] * 3
    assert differences[0]["loss"]["percentagePoints"]["estimate"] == 100 and differences[1]["loss"] is None
    for form in rendering.FORMS:
        assert comparison.render(form)


def test_a_repeat_that_sent_nothing_is_a_unit_of_its_own(tmp_path):
    silent = run(tmp_path, "silent", 5, seed=2, count=0)
    for i in range(60):
        silent.event("nor/bft", "triggered", float(i), f"m{i}", "/nor/bft")
    comparison = compare([run(tmp_path, "whole", 5).write(), silent.write()])
    [condition] = comparison.results["groups"][0]["conditions"]
    delivered = condition["confidence"]["deliveredPercent"]
    assert condition["messages"]["deliveredPercent"] == 50 and delivered["low"] < 5 and delivered["high"] > 95


def test_messages_that_drift_are_cut_into_fewer_blocks(tmp_path):
    def blocks(delays) -> int:
        sent = np.arange(len(delays))
        frame = pl.DataFrame({"publisher": "p", "group": "g", "sent": sent, "delay": delays, "radio": True, "local": False, "cross": True})
        return int(loading.blocks(frame)[0].max()) + 1

    random = np.random.default_rng(5)
    assert blocks(random.integers(0, 10**9, 3200)) == 32
    slow = np.repeat(random.integers(0, 10**9, 16), 200)
    assert blocks(slow + random.integers(0, 10**7, 3200)) <= 16


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (lambda folders: folders[:1], "1 run: a comparison takes 2 to 1000"),
        (lambda folders: [folders[0], folders[0]], "run one is there twice"),
        (lambda folders: [folders[0], folders[0] / "nowhere"], "without the plan nothing can be analysed"),
    ],
)
def test_what_cannot_be_compared_is_refused(two, prepare, says):
    with pytest.raises(RunError, match=says):
        compare(prepare(two))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("results.json", b"[]", "schemaVersion is None"),
        ("results.json", b'{"schemaVersion": 99}', "schemaVersion is 99; this program reads up to 2"),
        ("results.json", b"{", "not JSON from line 1, column 2 on: run `vignette_analysis analyse --directory"),
        ("results.json", b"\xff", "no text in UTF-8: run `vignette_analysis analyse --directory"),
        ("deliveries.parquet", b"PAR1 no table PAR1", "without it nothing can be compared"),
        ("deliveries.parquet", None, "without it nothing can be compared"),
    ],
)
def test_results_that_are_not_what_they_should_be_are_refused(two, name, content, says):
    write_results(two[0])
    if content is None:
        pl.DataFrame({"x": [1]}).write_parquet(two[0] / "results" / name)
    else:
        (two[0] / "results" / name).write_bytes(content)
    with pytest.raises(RunError, match=says):
        compare(two)


ASKED = {"triggered": 9, "sent": 9, "receipts": 9, "outstanding": 0, "retransmissions": None, "failed": None, "receiptPercent": 100}


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (["groups"], {}, "groups is {}: want a list"),
        (["groups", 0], "all", 'groups[0] is "all": want an object'),
        (["groups", 1, "name"], None, "groups[1].name is null: want a text"),
        (["groups", 0, "messages", "sent"], -1, "groups[0].messages.sent is -1: want a whole number from 0 to 1000000000"),
        (["groups", 0, "delaySeconds", "median"], float("nan"), "groups[0].delaySeconds.median is NaN: want a number"),
        (["groups", 0, "delaySeconds", "max"], 10**400, f"groups[0].delaySeconds.max is 1{'0' * 39}…: want a number"),
        (["publishers", 0, "messages"], "x" * 99, f'publishers[0].messages is "{"x" * 39}…: want an object'),
        (["verdict", "keptUp"], "yes", 'verdict.keptUp is "yes": want true or false'),
        (["gaps"], [{"what": "verdict"}], "gaps[0].reason is missing: want a text"),
        (["groups", 0, "messages", "offered"], 59, "groups[0].messages.offered is 59: want what is expected, 60, or more"),
        (["groups", 0, "requests"], ASKED | {"failed": {"x": ""}}, 'groups[0].requests.failed."x" is "": want a whole number from 0 to 1000000000'),
        (["groups", 0, "requests"], ASKED | {"responseSeconds": {}}, "groups[0].requests.responseSeconds.min is missing: want a number"),
        (["networks"], [{"name": "wan", "bytesPerSecond": True}], "networks[0].bytesPerSecond is true: want a number"),
    ],
)
def test_a_field_of_results_that_is_not_what_it_should_be_is_named(two, place, value, says):
    write_results(two[0])
    path = two[0] / "results" / "results.json"
    results = json.loads(path.read_text())
    *way, last = place
    entry = results
    for step in way:
        entry = entry[step]
    entry[last] = value
    path.write_text(json.dumps(results))
    with pytest.raises(RunError, match=re.escape(f"{path}: {says}: run `vignette_analysis analyse --directory {two[0]}` again")):
        compare(two)


def test_results_of_version_1_have_the_form_of_theirs(two):
    write_results(two[0])
    path = two[0] / "results" / "results.json"
    results = json.loads(path.read_text()) | {"schemaVersion": 1}
    for entry in [results, *results["groups"], *results["publishers"]]:
        del entry["messages"]["offered"], entry["messages"]["triggered"]
        entry["delaySeconds"] = entry["delaySeconds"] and {"median": entry["delaySeconds"]["median"]}
    path.write_text(json.dumps(results))
    assert [row["messages"]["offered"] for row in compare(two).results["groups"][0]["runs"]] == [60, 60]
    del results["messages"]["expected"]
    path.write_text(json.dumps(results))
    with pytest.raises(RunError, match=re.escape("results.json: messages.expected is missing: want a whole number from 0 to 1000000000")):
        compare(two)


def test_every_form_is_written_and_the_same_every_time(two, tmp_path):
    first, second = compare(two).write(tmp_path / "a"), compare(two).write(tmp_path / "b")
    assert [p.name for p in first] == [f"comparison.{e}" for e in ("txt", "json", "csv", "tex", "html")]
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes(), a.name
    assert json.loads(first[1].read_text())["schemaVersion"] == 2
    table = pl.read_csv(first[2])
    assert table.filter(pl.col("group") == "all")["sent"].to_list() == [60, 60] and all(
        "kept up: yes" in cell for cell in table["emulation"].drop_nulls()
    )
    tex = first[3].read_text()
    assert (
        tex.count(r"\begin{table}") == tex.count(r"\end{table}") == 2
        and "delay=45ms & 60 & 60 & 60 & 54 & 6 & 0 & 90.00 " in tex
        and r"\toprule" in tex
    )
    columns = [len(found) for found in re.findall(r"begin\{tabular\}\{(\w+)\}", tex)]
    bodies = re.findall(r"\\toprule(.*?)\\bottomrule", tex, re.DOTALL)
    for count, body in zip(columns, bodies, strict=True):
        assert {line.replace(r"\&", "").count("&") + 1 for line in body.splitlines() if line.endswith(r"\\")} == {count}


def test_the_page_needs_nothing_else_and_shows_names_as_text(tmp_path):
    evil = "<script>alert(1)</script>"
    runs = [run(tmp_path, "a", 5, spec={"networks": [link(evil)]}).write(), run(tmp_path, "b", 45).write()]
    page = compare(runs).render("html")
    assert evil not in page and "&lt;script&gt;" in page and "default-src &#39;none&#39;" not in page
    assert not re.search(r"(src|href)=\"(?!#)", page) and "@import" not in page and len(page) < 200_000
    drawing = page[page.index("<svg") : page.index("</svg>") + 6]
    assert ElementTree.fromstring(drawing).tag.endswith("svg") and "delay (s)" in drawing


def test_the_command_compares_folders(two, tmp_path, capsys):
    assert main(["compare", *map(str, two), "--format", "json", "--out", str(tmp_path / "out")]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["label"] == "delay=5ms"
    assert (tmp_path / "out" / "comparison.html").exists()
    assert main(["compare", *map(str, two), "--by", "colour"]) == 1 and "by 'colour'" in capsys.readouterr().err
    assert main(["compare"]) == 1 and "0 runs: a comparison takes 2 to 1000" in capsys.readouterr().err


def points(count: int, axes: dict[str, int], repeats: int = 1) -> list[dict[str, str]]:
    """The levels of the first runs of a campaign with so many levels of each axis."""
    grid = product(*([f"{axis}{i}" for i in range(size)] for axis, size in axes.items()))
    return [dict(zip(axes, levels, strict=True)) for levels in grid for _ in range(repeats)][:count]


@pytest.fixture
def many(monkeypatch):
    """Makes a comparison of loaded runs of a campaign, of a few deliveries each, in which 28 pairs are too many."""
    monkeypatch.setattr(comparing, "MAX_PAIRS", 27)
    monkeypatch.setattr(boxes, "MAX_BOXES", 10)
    monkeypatch.setattr(rendering, "MAX_RUN_ROWS", 20)
    monkeypatch.setattr(rendering, "MAX_LINES", 20)
    monkeypatch.setattr(rendering, "MAX_PAGE_ROWS", 15)
    monkeypatch.setattr(rendering, "MAX_PUBLISHER_ROWS", 50)

    def made(levels: list[dict[str, str]], each: int = 24, **by):
        random = np.random.default_rng(7)
        runs = []
        for i, some in enumerate(levels):
            run = of_campaign(None, f"u{i}", some, some.get("link", "0"))
            run.plan |= {"namespace": "team-nor", "name": f"run-{i}"}
            delays = (random.lognormal(0, 1, each - 1) * 10**7 * (1 + (some.get("link") == "link1"))).astype(int)
            delay = pl.Series([*delays.tolist(), None])
            block = np.arange(each, dtype=np.uint8) // 3
            run.deliveries = pl.DataFrame({"delay": delay, "radio": True, "local": False, "cross": True, "block": block})
            run.deliveries = run.deliveries.with_columns(group=pl.lit("nor", pl.Enum(["nor"])))
            run.messages = {"all": each, "radio": each, "cross": each, "nor": each}
            counts = {"triggered": each, "sent": each, "offered": each, "expected": each, "received": each - 1, "lost": 1}
            counts |= {"lostPercent": 100 / each, "deliveredPercent": 100 - 100 / each}
            known = quantiles(np.sort(delay.drop_nulls().to_numpy()))
            group = {"name": "all", "messages": counts, "delaySeconds": known}
            publishers = [{"name": f"nor/bft/{n}", "node": "nor", "messages": counts, "delaySeconds": known} for n in range(3)]
            run.results = {"verdict": {"keptUp": i > 0}, "groups": [group], "publishers": publishers, "networks": []}
            runs.append(run)
        monkeypatch.setattr(comparing, "load", lambda i: runs[i])
        return compare(range(len(runs)), **by)

    return made


def gap_of(comparison, what: str) -> str | None:
    return next((gap["reason"] for gap in comparison.results["gaps"] if gap["what"] == what), None)


def test_all_pairs_are_tested_up_to_a_limit(many):
    comparison = many(points(7, {"link": 7}))
    assert len(comparison.results["groups"][0]["differences"]) == 21
    assert comparison.results["axes"] is None and gap_of(comparison, "differences") is None


def test_of_more_conditions_those_are_tested_that_differ_in_one_axis_and_the_levels_of_each_axis(many):
    comparison = many(points(12, {"link": 3, "messaging": 2, "payload": 2}))
    differences = comparison.results["groups"][0]["differences"]
    assert len(differences) == 12 * (2 + 1 + 1) // 2
    assert all(len(set(d["from"].split(", ")) - set(d["to"].split(", "))) == 1 for d in differences)
    assert gap_of(comparison, "differences").startswith(
        "12 conditions make 66 pairs, and 27 are tested at most: the 24 of which all axes but one agree, and"
    )
    axes = {axis["axis"]: axis for axis in comparison.results["axes"]}
    assert {name: len(axis["groups"][0]["differences"]) for name, axis in axes.items()} == {"link": 3, "messaging": 1, "payload": 1}
    assert [len(level["runs"]) for level in axes["link"]["levels"]] == [4] * 3
    shifts = {(d["from"], d["to"]): d["delay"]["shiftSeconds"]["estimate"] for d in axes["link"]["groups"][0]["differences"]}
    assert shifts["link=link0", "link=link1"] > 0.005 > abs(shifts["link=link0", "link=link2"])


def test_the_levels_of_an_axis_are_compared_as_by_that_axis(many):
    levels = points(12, {"link": 3, "messaging": 2, "payload": 2})
    axis = next(axis for axis in many(levels).results["axes"] if axis["axis"] == "link")
    by = many(levels, by="link").results
    assert axis["levels"] == by["conditions"]
    assert (axis["groups"][0]["conditions"], axis["groups"][0]["differences"]) == (by["groups"][0]["conditions"], by["groups"][0]["differences"])


def test_where_even_these_are_too_many_the_levels_only_are_tested(many):
    comparison = many(points(16, {"link": 8, "broker": 2}))
    assert comparison.results["groups"][0]["differences"] is None
    assert gap_of(comparison, "differences").startswith(
        "16 conditions make 120 pairs, and 27 are tested at most: none of them, but the levels of each axis"
    )
    assert [axis["axis"] for axis in comparison.results["axes"]] == ["broker"]
    assert gap_of(comparison, "differences of axis link") == "8 levels make more than 27 pairs: none is tested"
    assert gap_of(many(points(8, {"link": 8})), "differences").startswith(
        "8 conditions make 28 pairs, and 27 are tested at most: none of them; for others"
    )


def test_tables_and_drawings_of_many_runs_stay_readable_and_say_what_they_leave_out(many):
    comparison = many(points(40, {"link": 2, "messaging": 4}, repeats=5))
    tables = {table.title: table for table in rendering.tables(comparison.results)}
    assert len(tables["Group all"].rows) == 8 and "the 40 runs are in the forms csv and json" in tables["Group all"].left_out
    assert tables["Publishers"].rows == [] and tables["Publishers"].left_out == "3 publishers in 40 runs: they are in the form json"
    assert tables["What differs"].header == ["field", "value", "runs", "which"]
    assert tables["What differs"].rows[0][:3] == ["networks.wan.link.delay", "link0", "20"]
    assert tables["Levels of link in group all"].rows[0][:2] == ["link=link0 *", "20"]  # one of its runs was late
    text, page, tex = (comparison.render(form) for form in ("text", "html", "latex"))
    assert "(20 more rows are in the forms html and json)" in text and len(text.splitlines()) < 144
    assert page.count("<details>") == page.count("</details>") == 2 and page.count(">team-nor/run-") == 40
    assert "40 runs are more than 10 boxes: repeats of a condition are drawn together." in page
    assert tex.count(r"\begin{longtable}") == tex.count(r"\end{longtable}") == 1 and r"\usepackage{booktabs,longtable}" in tex
    assert len(comparison.render("csv").splitlines()) == 1 + 40 + 8
    told = json.loads(comparison.render("json"))
    assert len(told["groups"][0]["runs"]) == len(told["publishers"][0]["runs"]) == 40


def test_the_tables_of_a_campaign_of_many_points_fit_on_a_terminal(many):
    comparison = many(points(48, {"messaging": 4, "broker": 2, "link": 2}, repeats=3))
    text = comparison.render("text")
    printed = text[: text.index(rendering.DEFINITIONS[0])].splitlines()
    assert max(map(len, printed)) <= 100, max(printed, key=len)
    assert len(printed) < 200
    legend = printed[1 : printed.index("")]
    assert printed[0] == "Labels" and "C1   messaging=messaging0, broker=broker0, link=link0" in legend
    rest = printed[len(legend) + 1 :]
    assert "broker=broker0, link" not in "".join(rest)
    used = {line.split()[0] for line in rest if line.startswith("C")}
    assert used == {line.split()[0] for line in legend} and any(line.startswith("C1 #2") for line in rest)
    heads = [line.split("  ") for line in rest if line.startswith("label ")]
    assert any("delivered % [95 %]" in head and "max" in head for head in [[cell.strip() for cell in head] for head in heads])
    tests = next(i for i, line in enumerate(rest) if line.startswith("Differences between levels of link"))
    parts = [line.split() for line in rest[tests : tests + 6] if line.startswith("from ")]
    assert len(parts) == 2 and all(part[:2] == ["from", "to"] for part in parts)  # a wide table goes on below itself
    assert "messaging=messaging0, broker=broker0, link=link0" in comparison.render("csv")


def test_short_labels_are_not_numbered(many):
    text = many(points(4, {"link": 2}, repeats=2)).render("text")
    assert "Labels" not in text and "\nlink=link0 #1" in text


def test_where_conditions_are_too_many_the_levels_are_drawn_and_without_axes_nothing(many):
    page = many(points(12, {"link": 6, "broker": 2})).render("html")
    assert ">broker=broker1</text>" in page and "12 runs are more than 10 boxes: runs of each level of an axis are drawn together." in page
    page = many(points(11, {"link": 11})).render("html")
    assert "<svg" not in page and "11 runs are more than 10 boxes: none is drawn. Their quartiles are in the tables." in page


def test_the_guide_names_every_field(many):
    """docs/reference/comparison.md has the form of the JSON."""
    guide = (Path(__file__).parents[2] / "docs" / "reference" / "comparison.md").read_text()
    named = set(re.findall(r"\w+", guide.split("## JSON\n")[1].split("```\n")[1])) - {
        "true",
        "false",
        "null",
        "run",
        "block",
        "COUNT",
        "of",
        "each",
        "or",
        "2",
        "0",
        "95",
        "requests",  # only where runs have some
        "requestDifferences",
    }

    told = Reference("paper.csv", (Figure(2, "run-0", "all", "deliveredPercent", 90.0, ""),))

    def fields(value) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(fields, value))
        return set(value).union(*(fields(v) for k, v in value.items() if k not in ("messages", "delaySeconds"))) if isinstance(value, dict) else set()

    assert (
        fields(
            many(points(12, {"link": 3, "messaging": 2, "payload": 2}), reference=told).results
            | {"networks": [{"name": "", "runs": [{"label": "", "bytesPerSecond": 1}], "conditions": []}]}
            | {"messageSizes": [{"protocol": "", "runs": [{"label": "", "medianBytes": 1}]}]}
            | {"picture": [{"name": "", "runs": [{"label": "", "errorMedianMetres": 1, "ageMedianSeconds": 1}]}]}
        )
        == named
    )


def test_a_million_deliveries_in_ten_runs_take_seconds():
    random = np.random.default_rng(6)
    each = 100_000
    runs = []
    for i in range(10):
        sent = np.arange(each) * 10**6
        frame = pl.DataFrame({"publisher": "p", "group": "g", "sent": sent, "delay": (random.lognormal(0, 1, each) * (i + 1) * 1e6).astype(int)})
        runs.append(frame.with_columns(radio=pl.lit(True), local=pl.lit(False), cross=pl.lit(True)))
    from vignette_analysis.comparison import effects

    begin = time.process_time()
    samples = [effects.Sample.of(r["delay"].to_numpy(), loading.blocks(r)[0]) for r in runs]
    for a, b in pairwise(samples):
        effects.shift(a, b)
        effects.brunner_munzel(a, b)
    assert time.process_time() - begin < 10
