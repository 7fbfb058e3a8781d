"""The pictures of README and documentation that come from a real run of E4. --update redraws them."""

import io
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from vignette_analysis import Analysis, report
from vignette_analysis.data.gaps import Gaps
from vignette_analysis.plots import style

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
NATIONS = ("deu", "nor", "prt", "usa")
FROM, SECONDS = 60.0, 8.0
# Two renderings of one page differ by fonts and smoothing, by this share of full scale on average at most.
RENDERING = 0.02


@pytest.fixture(scope="module")
def deliveries(brokerless) -> pl.DataFrame:
    """Deliveries between nations in the window: nodes, and seconds from its begin."""
    begin = brokerless.run.t0 + round(FROM * 1e9)
    node = pl.col("publisher").cast(str).str.split("/").list.first()
    at = pl.col("subscriber").cast(str).str.split("/").list.first()
    return (
        brokerless.delivery_table()
        .with_columns(node=node, at=at, sent=(pl.col("sent") - begin) / 1e9, received=(pl.col("received") - begin) / 1e9)
        .filter(pl.col("sent").is_between(0, SECONDS), pl.col("node") != pl.col("at"))
        # The eight units of a nation receive at the same moment.
        .unique(["publisher", "id", "at"], keep="first", maintain_order=True)
    )


def draw_messages(deliveries: pl.DataFrame) -> Figure:
    """A lane for each nation; a line for each message and receiver, and a cross where it was lost."""
    made = Figure(figsize=(8, 2.9), layout="constrained")
    axes = made.subplots()
    lane = {nation: len(NATIONS) - i for i, nation in enumerate(NATIONS)}
    colors = dict(zip(NATIONS, (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE), strict=True))
    for nation in NATIONS:
        axes.axhline(lane[nation], color="#cccccc", linewidth=1, zorder=0)
    for row in deliveries.iter_rows(named=True):
        color, start = colors[row["node"]], lane[row["node"]]
        if row["received"] is not None:
            axes.plot([row["sent"], row["received"]], [start, lane[row["at"]]], color=color, linewidth=0.9, alpha=0.75)
        else:
            end = start + 0.8 * (lane[row["at"]] - start)
            axes.plot([row["sent"], row["sent"] + 0.12], [start, end], color=color, linewidth=0.9, linestyle=":")
            axes.plot(row["sent"] + 0.12, end, "x", color="#222222", markersize=5)
        axes.plot(row["sent"], start, "o", color=color, markersize=3.5)
    axes.set_yticks(list(lane.values()), [nation.upper() for nation in lane])
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(0, SECONDS + 0.6)
    what = "● a unit reports its position, and it arrives at the other nations, or is lost (cross)"
    axes.set_xlabel(f"seconds of a run of E4: {what}\n9.8 kbit/s, 100 ms, 1 % loss")
    return made


def hold(picture: str, made: Figure, request) -> None:
    """Compare a figure with the committed picture, or write that with --update."""
    out = io.StringIO()
    style.settle(made)
    made.savefig(out, format="svg", metadata={"Date": None})
    if request.config.getoption("--update"):
        (PICTURES / picture).write_text(out.getvalue())
    assert (PICTURES / picture).read_text() == out.getvalue(), f"{picture} is out of date: make pictures"


def test_the_picture_of_a_run_is_what_the_run_gives(deliveries, request):
    assert deliveries["received"].null_count() > 0
    with mpl.rc_context(style.RC):
        hold("run.svg", draw_messages(deliveries), request)


def radio_samples(analysis: Analysis) -> pl.DataFrame:
    """Seconds after T0, node, queue and bytes sent so far, from radiod's log."""
    lines = (json.loads(line) for path in sorted(analysis.run.directory.glob("radio/*.jsonl")) for line in path.read_text().splitlines())
    rows = [(line["ts"], line["node"], line["queueDepth"], line["bytesSent"]) for line in lines if "queueDepth" in line]
    table = pl.DataFrame(rows, schema=["ts", "node", "queue", "bytes"], orient="row")
    return table.with_columns(at=(pl.col("ts") - analysis.run.t0) / 1e9).filter(pl.col("at") >= 0).sort("at")


def live_figures(analysis: Analysis, times: np.ndarray) -> dict[str, np.ndarray]:
    """Delivered share and delays between nodes so far, as a Prometheus that asks at these times has them."""
    table = analysis.delivery_table().filter(pl.col("radio"))
    sent = (table["sent"].to_numpy() - analysis.run.t0) / 1e9
    received = (table["received"].cast(pl.Float64).fill_null(np.inf).to_numpy() - analysis.run.t0) / 1e9
    figures = {"share": [], "median": [], "p95": []}
    for at in times:
        delays = (received - sent)[received <= at]
        offered = np.count_nonzero(sent <= at)
        figures["share"].append(len(delays) / offered if offered else np.nan)
        figures["median"].append(np.quantile(delays, 0.5) if len(delays) else np.nan)
        figures["p95"].append(np.quantile(delays, 0.95) if len(delays) else np.nan)
    return {name: np.array(values) for name, values in figures.items()}


def draw_dashboard(analysis: Analysis) -> Figure:
    """Four panels of the dashboard Experiment live, each with the dashboard's title."""
    made = Figure(figsize=(9, 4.6), layout="constrained")
    panels = made.subplots(2, 2, sharex=True)
    times = np.arange(5.0, 141.0, 5.0)
    figures, samples = live_figures(analysis, times), radio_samples(analysis)
    share, delay, queue, volume = panels.flat
    share.plot(times, 100 * figures["share"], color=style.GREEN)
    share.set(title="Delivered share, %", ylim=(0, 103))
    delay.plot(times, figures["median"], color=style.BLUE, label="quantile 0.5")
    delay.plot(times, figures["p95"], color=style.ORANGE, label="quantile 0.95")
    delay.set(title="Delay, s", ylim=(0, None))
    for (node,), rows in samples.group_by("node", maintain_order=True):
        color = dict(zip(NATIONS, style.COLORS, strict=False))[node]
        queue.plot(rows["at"], rows["queue"], color=color, label=node, drawstyle="steps-post")
        rate = np.diff(np.interp(times, rows["at"], rows["bytes"])) / np.diff(times)
        volume.plot(times[1:], rate, color=color, label=node)
    queue.set(title="Queue depth, frames", ylim=(0, None), xlabel="seconds after T0")
    volume.set(title="Volume, bytes/s", ylim=(0, None), xlabel="seconds after T0")
    for axes in panels.flat:
        axes.title.set_fontweight("bold")
        axes.grid(visible=True)
        for entry in analysis.run.plan["spec"]["timeline"]:
            axes.axvline(float(entry["at"].rstrip("s")), color=style.SKY, linestyle="--", linewidth=1)
    for axes in (delay, queue, volume):
        axes.legend(frameon=False, ncols=2)
    return made


def test_the_dashboards_panels_are_what_the_run_gives(bridged, request):
    with mpl.rc_context(style.RC):
        hold("dashboard.svg", draw_dashboard(bridged), request)


def test_the_report_looks_as_in_the_picture(brokerless, browser, tmp_path, request):
    page = tmp_path / "report.html"
    page.write_bytes(report.render(brokerless, Gaps()))
    shown = browser.new_page(viewport={"width": 1100, "height": 870}, color_scheme="light")
    shown.goto(page.as_uri())
    shown.screenshot(path=tmp_path / "report.png")
    shown.close()
    picture = PICTURES / "report.png"
    if request.config.getoption("--update"):
        picture.write_bytes((tmp_path / "report.png").read_bytes())
    want, got = imread(picture), imread(tmp_path / "report.png")
    assert want.shape == got.shape
    assert np.abs(want - got).mean() < RENDERING, "report.png is out of date: make pictures"
