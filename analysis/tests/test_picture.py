"""The picture of the README: a window of a real run of E4, each message from where it was sent to where it arrived."""

import io
import tarfile
from pathlib import Path

import matplotlib as mpl
import polars as pl
import pytest
from matplotlib.figure import Figure

from vignette_analysis import analyse
from vignette_analysis.plots import style

DOCS = Path(__file__).parents[2] / "docs"
PICTURE = DOCS / "pictures" / "run.svg"
NATIONS = ("deu", "nor", "prt", "usa")
FROM, SECONDS = 60.0, 8.0


@pytest.fixture(scope="module")
def deliveries(tmp_path_factory) -> pl.DataFrame:
    """Deliveries between nations in the window: nodes, and seconds from its begin."""
    folder = tmp_path_factory.mktemp("run")
    with tarfile.open(DOCS / "notebooks" / "runs" / "mqtt-udp.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    run = analyse(folder)
    begin = run.run.t0 + round(FROM * 1e9)
    node = pl.col("publisher").cast(str).str.split("/").list.first()
    at = pl.col("subscriber").cast(str).str.split("/").list.first()
    return (
        run.delivery_table()
        .with_columns(node=node, at=at, sent=(pl.col("sent") - begin) / 1e9, received=(pl.col("received") - begin) / 1e9)
        .filter(pl.col("sent").is_between(0, SECONDS), pl.col("node") != pl.col("at"))
        # The eight units of a nation receive at the same moment.
        .unique(["publisher", "id", "at"], keep="first", maintain_order=True)
    )


def draw(deliveries: pl.DataFrame) -> Figure:
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


def test_the_picture_is_what_the_run_gives(deliveries, request):
    with mpl.rc_context(style.RC):
        made, out = draw(deliveries), io.StringIO()
        style.settle(made)
        made.savefig(out, format="svg", metadata={"Date": None})
    if request.config.getoption("--update"):
        PICTURE.write_text(out.getvalue())
    assert deliveries["received"].null_count() > 0 and PICTURE.read_text() == out.getvalue()
