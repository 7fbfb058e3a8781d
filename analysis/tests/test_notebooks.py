"""The worked example: the notebook runs, on real runs of E4, and its figures are those of the results."""

import json
import tarfile
from pathlib import Path

import pytest

from vignette_analysis import analyse, outputs

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOK = json.loads((FOLDER / "e4-boxplot.ipynb").read_text())


@pytest.fixture(scope="module")
def namespace(tmp_path_factory):
    """What the notebook's cells leave, run one after another where its two downloaded runs are."""
    folder = tmp_path_factory.mktemp("e4")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs.plots, "PLOTS", {})
        for name in ("mosquitto", "mqtt-udp"):
            with tarfile.open(FOLDER / "runs" / f"{name}.tar.xz") as archive:
                archive.extractall(folder / name, filter="data")
            outputs.write(analyse(folder / name), folder / name / "results")
        patch.setenv("MPLBACKEND", "agg")
        patch.chdir(folder)
        left: dict = {}
        for cell in NOTEBOOK["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), f"{NOTEBOOK['metadata']['kernelspec']['name']}:{cell['id']}", "exec"), left)
        assert (folder / "e4-publishers.pdf").stat().st_size and (folder / "e4-nations.pdf").stat().st_size
        yield left
        left["plt"].close("all")


def test_the_notebook_has_no_outputs():
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert code and all(not cell["outputs"] and cell["execution_count"] is None for cell in code)


def test_boxes_are_those_of_every_publisher_and_nation(namespace):
    assert len(namespace["medians"]) == 32 and list(namespace["of_nations"]["MQTT/UDP"]) == ["deu", "nor", "prt", "usa"]
    frame = namespace["deliveries"]["Mosquitto"]
    for publisher, median in namespace["medians"].items():
        assert median == pytest.approx(frame.filter(frame["publisher"].cast(str) == publisher)["delaySeconds"].median())


def test_what_crossed_is_what_the_results_say(namespace):
    for row, frame in zip(namespace["table"].to_dicts(), namespace["deliveries"].values(), strict=True):
        assert (row["expected"], row["lost"]) == (4608, frame["delaySeconds"].null_count()) == (frame.height, frame["lost"].sum())
        assert (
            row["median"] == pytest.approx(frame["delaySeconds"].median()) and row["lostPercentLow"] <= row["lostPercent"] <= row["lostPercentHigh"]
        )
    assert namespace["table"]["lost"].to_list() == [0, 72]
