"""Plots of what networks did over time: volume, hops, links."""

from types import SimpleNamespace

import polars as pl
import pytest
from lab import SECOND, T0

from vignette_analysis import plots
from vignette_analysis.figures import surroundings
from vignette_analysis.figures.picture import TIMES
from vignette_analysis.plots import curves, hops, links, picture, volume

VOLUME = {"network": pl.Categorical, "node": pl.Categorical, "second": pl.Int64, "layer": pl.Categorical, "protocol": pl.Categorical}
VOLUME |= {"routing": pl.Boolean, "frames": pl.Int64, "bytes": pl.Int64}


def run(**frames):
    """As much of an analysis as these plots read."""
    return SimpleNamespace(results={"experiment": "quickstart"}, run=SimpleNamespace(t0=T0, duration_seconds=60.0), **frames)


def volumes(*rows: tuple) -> pl.DataFrame:
    return pl.DataFrame(
        [("vhf", "n1", second, layer, protocol, routing, 1, size) for second, layer, protocol, routing, size in rows], VOLUME, orient="row"
    )


def link_news(count: int, seconds: int) -> pl.DataFrame:
    rows = [(T0 + s * SECOND, "vhf", f"n{i}", "hq", 10.0 + i, 90.0 + s) for s in range(seconds) for i in range(count)]
    schema = {name: kind for name, kind in surroundings.LINKS.items() if name in ("ts", "network", "source", "receiver", "sinrDB", "pathlossDB")}
    return pl.DataFrame(rows, schema, orient="row")


def labels(figure) -> list[str]:
    return [text for axes in figure.axes for text in axes.get_legend_handles_labels()[1]]


def heights(figure) -> dict[str, list[float]]:
    """The height of each series of a stack in each interval."""
    from matplotlib.patches import StepPatch

    found = [patch for patch in figure.axes[0].patches if isinstance(patch, StepPatch) and patch.get_fill()]
    return {patch.get_label(): list(patch.get_data().values - patch.get_data().baseline) for patch in found}


MIXED = volumes(
    (0, "ethernet", "mqtt", False, 14),
    (0, "application", "mqtt", False, 100),
    (2, "ethernet", "olsr", True, 14),
    (2, "application", "olsr", True, 50),
    (2, "ethernet", "arp", False, 42),
)


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (volume.by_layer, {"application": [100, 0, 0], "Ethernet": [14, 0, 42], "routing, all layers": [0, 0, 64]}),
        (volume.by_protocol, {"mqtt": [114, 0, 0], "arp": [0, 0, 42], "routing: olsr": [0, 0, 64]}),
    ],
)
def test_a_stack_has_the_bytes_of_every_second_and_routing_apart(draw, expected):
    assert heights(draw(run(volume=MIXED))) == expected


def test_of_many_protocols_the_smallest_are_added_up():
    figure = volume.by_protocol(run(volume=volumes(*((0, "ethernet", f"p{i:02}", False, 100 - i) for i in range(20)))))
    assert labels(figure) == [*(f"p{i:02}" for i in range(volume.MAX_PROTOCOLS)), "other"]
    assert heights(figure)["other"] == [sum(100 - i for i in range(volume.MAX_PROTOCOLS, 20))]


def test_a_long_run_is_averaged_over_intervals_that_keep_the_total():
    frame = volumes(*((s, "ethernet", "mqtt", False, s) for s in range(5000)))
    values = heights(volume.by_layer(run(volume=frame)))["Ethernet"]
    width = -(-5000 // plots.style.MAX_TIMES)
    whole = 5000 // width
    assert len(values) == whole + 1 <= plots.style.MAX_TIMES
    assert sum(values[:whole]) * width + values[whole] * (5000 % width) == pytest.approx(sum(range(5000)))


def test_a_last_interval_of_fewer_seconds_shows_the_rate_of_these():
    frame = volumes(*((s, "ethernet", "mqtt", False, 100) for s in range(-1, 1201)))
    assert set(heights(volume.by_layer(run(volume=frame)))["Ethernet"]) == {100}


def test_a_picture_of_one_second_is_drawn_as_points():
    frame = pl.DataFrame([(5, 1, 1, 10.0, 20.0, 1.0, 2.0)], TIMES, orient="row")
    assert {line.get_marker() for axes in picture.over_time(run(picture_times=frame)).axes for line in axes.lines} == {"o"}


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (links.MAX_LINES, links.MAX_LINES), (links.MAX_LINES + 1, 3), (600, 3)])
def test_few_links_have_a_line_each_and_many_have_bands(count, expected):
    figure = links.draw(run(links=link_news(count, 3)))
    assert len(figure.axes) == 2 and [len(axes.get_legend_handles_labels()[1]) for axes in figure.axes] == [expected] * 2


def test_what_radios_do_not_tell_has_no_panel():
    figure = links.draw(run(links=link_news(2, 3).with_columns(sinrDB=pl.lit(None, pl.Float64))))
    assert ["pathloss" in axes.get_ylabel() for axes in figure.axes] == [True]


def test_lines_break_where_there_is_nothing():
    frame = link_news(1, 10).filter(~pl.col("ts").is_between(T0 + 3 * SECOND, T0 + 6 * SECOND))
    values = links.draw(run(links=frame)).axes[0].lines[0].get_ydata()
    assert [value != value for value in values] == [False] * 3 + [True] * 4 + [False] * 3


def median(frame: pl.DataFrame) -> list[float]:
    """The median of the SINR in each second."""
    return list(links.draw(run(links=frame)).axes[0].lines[0].get_ydata())


def test_the_median_is_of_the_same_links_where_few_are_heard_in_each_second():
    count = links.MAX_LINES + 2
    frame = link_news(count, 30)
    by_turns = frame.filter((pl.col("ts") - T0) // SECOND % count == pl.col("source").cast(pl.String).str.slice(1).cast(pl.Int64))
    assert by_turns.height == 30 and median(by_turns)[count - 1 :] == median(frame)[count - 1 :]


def test_a_link_that_is_silent_for_long_no_longer_counts_in_the_median():
    count = links.MAX_LINES + 1
    frame = link_news(count, 100).filter((pl.col("source").cast(pl.String) == "n0") | (pl.col("ts") == T0))
    whole, alone = 10.0 + (count - 1) / 2, 10.0
    assert median(frame) == [whole] * (curves.HOLD_SECONDS + 1) + [alone] * (99 - curves.HOLD_SECONDS)


def test_the_median_breaks_where_every_link_is_silent_for_long():
    frame = link_news(links.MAX_LINES + 1, 100).filter(pl.col("ts").is_in([T0, T0 + 99 * SECOND]))
    assert [value != value for value in median(frame)] == [False] * (curves.HOLD_SECONDS + 1) + [True] * (98 - curves.HOLD_SECONDS) + [False]


def test_hops_are_averaged_over_pairs_that_have_a_route():
    rows = [("vhf", 0, 1, 3), ("vhf", 0, 3, 1), ("vhf", 0, None, 4), ("vhf", 1, 2, 8)]
    figure = hops.draw(run(hop_histogram=pl.DataFrame(rows, surroundings.HOP_HISTOGRAM, orient="row")))
    assert list(figure.axes[0].lines[0].get_ydata()) == [1.5, 2.0] and list(figure.axes[1].lines[0].get_ydata()) == [50.0, 0.0]


@pytest.mark.parametrize(
    ("draw", "frames"),
    [
        (volume.by_layer, {"volume": MIXED}),
        (links.draw, {"links": link_news(2, 3)}),
        (hops.draw, {"hop_histogram": pl.DataFrame([("vhf", 5, 1, 3)], surroundings.HOP_HISTOGRAM, orient="row")}),
        (picture.over_time, {"picture_times": pl.DataFrame([(5, 1, 1, 10.0, 20.0, 1.0, 2.0)], TIMES, orient="row")}),
    ],
)
def test_the_axis_of_time_has_the_whole_run(draw, frames):
    assert {axes.get_xlim() for axes in draw(run(**frames)).axes} == {(0, 60)}


@pytest.mark.parametrize(
    ("draw", "frames"),
    [
        (volume.by_layer, {"volume": volumes()}),
        (volume.by_protocol, {"volume": volumes()}),
        (links.draw, {"links": pl.DataFrame(schema=surroundings.LINKS)}),
        (hops.draw, {"hop_histogram": pl.DataFrame(schema=surroundings.HOP_HISTOGRAM)}),
        (hops.draw, {"hop_histogram": pl.DataFrame([("vhf", 0, None, 4)], surroundings.HOP_HISTOGRAM, orient="row")}),
    ],
)
def test_where_there_is_nothing_there_is_no_plot(draw, frames, tmp_path):
    assert plots.save(draw, run(**frames), tmp_path / "plot") == [] and not list(tmp_path.iterdir())


def test_a_title_beside_long_names_of_rows_stays_on_the_page():
    made = run()
    made.results["experiment"] = "battalion-study-" * 5
    figure, (axes,) = plots.style.figure(made, "deliveries that did not arrive", 3.0, "caption")
    plots.style.names(axes, [f"vehicle-of-a-mechanised-company-{i}" for i in range(3)], 0.19)
    plots.style.settle(figure)
    (title,) = [text for text in figure.texts if text.get_text().endswith("deliveries that did not arrive")]
    assert 0 <= title.get_window_extent().x0 and title.get_window_extent().x1 <= figure.bbox.x1


@pytest.mark.parametrize("name", ["$x^2$ & _{", "x" * 300])
def test_names_are_drawn_as_they_are_however_long(name, tmp_path):
    frame = link_news(2, 2).with_columns(network=pl.lit(name), source=pl.lit(name))
    made = run(links=frame)
    made.results["experiment"] = name
    assert len(plots.save(links.draw, made, tmp_path / "plot")) == 2
