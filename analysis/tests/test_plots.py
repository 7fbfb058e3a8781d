"""The plots and the Parquet tables."""

import polars as pl
import pytest
from lab import BFT, PICTURE, SECOND, T0, Lab, gap

from vignette_analysis import analyse, outputs, plots

ALWAYS = ("delays-by-group", "delays-by-publisher", "delays-over-time")
PLOTS = tuple(f"{name}.{kind}" for name in (*ALWAYS, "age-by-subscriber", "delay-stages", "loss") for kind in ("png", "svg"))


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Draw with fewer pixels: most of a plot's time goes into them."""
    monkeypatch.setattr(plots.style, "DPI", 40)


def delivered(run: Lab, count: int = 3) -> Lab:
    for i in range(count):
        run.event("nor/bft", "sent", float(i), f"m{i}", "/nor/bft").event("prt/picture", "received", i + 0.25 + i / 100, f"m{i}", "/nor/bft")
    return run


def written(run: Lab, directory):
    outputs.write(analyse(run.write()), directory)
    return directory / "plots"


def texts(figure) -> str:
    from matplotlib.text import Text

    return "\n".join(t.get_text() for t in figure.findobj(Text))


def test_plots_are_png_and_svg_and_the_same_run_gives_the_same_bytes(pair, tmp_path):
    first, second = written(delivered(pair), tmp_path / "a"), written(pair, tmp_path / "b")
    assert sorted(p.name for p in first.iterdir()) == sorted(PLOTS)
    for name in PLOTS:
        content = (first / name).read_bytes()
        assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml") and b"<dc:date>" not in content
        assert content == (second / name).read_bytes(), name


def test_a_run_without_deliveries_has_plots_that_say_so(pair, tmp_path):
    analysis = analyse(pair.write())
    for name in ALWAYS:
        assert "nothing was received" in texts(plots.PLOTS[name](analysis)), name
    assert {path.stem for path in plots.write(analysis, tmp_path)} == set(ALWAYS)


def test_a_run_without_nodes_has_plots(lab, tmp_path):
    analysis = analyse(lab.write())
    assert {path.stem for path in plots.write(analysis, tmp_path)} == set(ALWAYS) and not any("plot" in g["what"] for g in analysis.results["gaps"])


def test_captions_define_what_is_drawn(pair):
    pair.event("nor/bft", "sent", 9.0, "lost", "/nor/bft")
    analysis = analyse(delivered(pair).write())
    boxes, points = texts(plots.by_publisher.draw(analysis)), texts(plots.over_time.draw(analysis))
    for text in (boxes, points):
        flat = text.replace("\n", " ").replace("\u00a0", " ")
        assert "quickstart: delay" in flat and "delay (s)" in flat
        assert "3 of 4 offered deliveries between nodes arrived (75 %): 1 lost on the way, 0 never sent" in flat
    assert "Whiskers: 5th to 95th percentile" in boxes.replace("\n", " ") and "nor/bft" in boxes
    assert "after T0 (s)" in points and "cross: between groups" in points


def test_boxes_have_the_quantiles_of_the_results(pair):
    analysis = analyse(delivered(pair, 11).write())
    row = plots.by_publisher.quantiles(analysis, ["nor/bft"]).row(0, named=True)
    drawn = {q: row[q] for q in ("min", "p25", "median", "p75", "max")}
    assert drawn == pytest.approx({q: analysis.results["publishers"][0]["delaySeconds"][q] for q in drawn})
    assert (row["low"], row["high"]) == pytest.approx((0.255, 0.345))


def test_large_runs_are_thinned_to_a_stated_number_that_keeps_the_slowest(pair, monkeypatch):
    monkeypatch.setattr(plots.over_time, "MAX_POINTS", 20)
    monkeypatch.setattr(plots.over_time, "SLOWEST", 2)
    pair.plan["measureEndNanoseconds"] = 200 * SECOND
    delivered(pair, 100).event("nor/bft", "sent", 5.5, "slow", "/nor/bft").event("prt/picture", "received", 50.0, "slow", "/nor/bft")
    analysis = analyse(pair.write())
    points, arrived = plots.over_time.points_of(analysis)
    assert (points.height, arrived) == (20, 101) and points["delay"].max() == 44.5
    assert plots.over_time.points_of(analysis)[0].equals(points)
    assert "20 of 101 points are drawn" in texts(plots.over_time.draw(analysis)).replace("\n", " ")


def test_many_publishers_stay_on_one_page(lab):
    lab.node("nor", BFT | {"instances": 400}).node("prt", PICTURE)
    lab.event("nor/bft/1", "sent", 1.0, "a", "/nor/bft/1").event("prt/picture", "received", 1.5, "a", "/nor/bft/1")
    figure = plots.by_publisher.draw(analyse(lab.write()))
    assert figure.get_size_inches()[1] < 30
    assert len(figure.axes[0].get_yticks()) <= plots.style.MAX_NAMES
    assert "One of 3 publishers is named" in texts(figure).replace("\n", " ")


def test_delays_of_several_magnitudes_have_a_logarithmic_axis_but_never_negative_ones(pair):
    pair.event("nor/bft", "sent", 1.0, "a", "/nor/bft").event("prt/picture", "received", 1.001, "a", "/nor/bft")
    pair.event("nor/bft", "sent", 2.0, "b", "/nor/bft").event("prt/picture", "received", 12.0, "b", "/nor/bft")
    assert plots.over_time.draw(analyse(pair.write())).axes[0].get_yscale() == "log"
    pair.event("nor/bft", "sent", 3.0, "c", "/nor/bft").event("prt/picture", "received", 2.5, "c", "/nor/bft")
    assert plots.over_time.draw(analyse(pair.write())).axes[0].get_yscale() == "linear"


def test_a_plot_that_fails_is_a_gap_and_the_results_are_there(pair, tmp_path, monkeypatch):
    def fail(analysis):
        raise MemoryError("too little")

    monkeypatch.setattr(plots, "PLOTS", {"delays-over-time": fail})
    analysis = analyse(delivered(pair).write())
    paths = outputs.write(analysis, tmp_path)
    assert "MemoryError: too little" in gap(analysis.results, "plot delays-over-time")["reason"]
    assert paths[-1].name == "results.json" and "plot delays-over-time" in paths[-1].read_text() and "plot delays-over-time" in paths[-2].read_text()


@pytest.mark.usefixtures("without_plots")
def test_parquet_has_the_columns_and_rows_of_the_csv_with_types(pair, tmp_path):
    pair.event("nor/bft", "triggered", 0.9, "m0", "/nor/bft").event("nor/bft", "sent", 9.0, "lost", "/nor/bft")
    outputs.write(analyse(delivered(pair).write()), tmp_path)
    for name, times in (("messages", ["triggered", "sent"]), ("deliveries", ["sent", "received"])):
        typed, text = pl.read_parquet(tmp_path / f"{name}.parquet"), pl.read_csv(tmp_path / f"{name}.csv")
        assert typed.columns == text.columns and typed.height == text.height
        for column in times:
            assert typed.schema[column] == pl.Datetime("ns", "UTC"), column
            assert typed[column].dt.epoch("ns").to_list() == text[column].to_list()
        assert typed.schema["publisher"] == pl.Categorical
    assert pl.read_parquet(tmp_path / "deliveries.parquet")["sent"].dt.epoch("ns")[0] == T0
    assert pl.read_parquet(tmp_path / "messages.parquet").schema["received"].is_integer()


def test_stages_of_few_groups_are_drawn_and_those_of_many_are_left_to_the_table(pair, monkeypatch):
    analysis = analyse(delivered(pair).write())
    assert "nor: sent to received" in texts(plots.stages.draw(analysis))
    monkeypatch.setattr(plots.stages, "MAX_GROUPS", 0)
    drawn = texts(plots.stages.draw(analysis))
    assert "nor: " not in drawn and "all: sent to received" in drawn and "stages.csv" in drawn


def test_loss_is_drawn_of_whom_something_was_offered(pair):
    pair.event("nor/bft", "sent", 9.0, "lost", "/nor/bft").node("usa", {"name": "silent", "topic": "/{}"})
    groups, publishers = plots.loss.draw(analyse(delivered(pair).write())).axes
    assert [bar.get_width() for bar in publishers.patches] == [25.0]
    assert [label.get_text() for label in groups.get_yticklabels()] == ["all", "radio", "cross", "nor"]
    # Wilson's interval of 1 in 4, by hand.
    assert publishers.collections[0].get_segments()[0][:, 0] == pytest.approx([4.559, 69.936], abs=0.001)


def test_boxes_of_groups_have_the_quantiles_of_the_results(pair):
    analysis = analyse(delivered(pair, 11).write())
    names = [group["name"] for group in analysis.results["groups"]]
    boxes = {names[row["row"]]: row for row in plots.by_group.quantiles(analysis, names).to_dicts()}
    for group in analysis.results["groups"]:
        assert (group["name"] in boxes) == (group["delaySeconds"] is not None)
        if group["name"] in boxes:
            drawn = {q: boxes[group["name"]][q] for q in ("min", "p25", "median", "p75", "max")}
            assert drawn == pytest.approx({q: group["delaySeconds"][q] for q in drawn})


def test_age_is_drawn_of_every_subscriber_that_heard_something(pair):
    pair.node("usa", {"name": "deaf", "topics": ["#"]})
    analysis = analyse(delivered(pair).write())
    axes = plots.age.draw(analysis).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["prt/picture"]
    assert axes.lines[-1].get_xdata().tolist() == analysis.age["maxSeconds"].drop_nulls().to_list()
    assert "1 of 2 pairs" in texts(axes.figure).replace("\n", " ")
