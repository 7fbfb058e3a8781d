import os
import shutil
import sys
import tarfile
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

from company import company
from lab import BFT, PICTURE, Lab

from vignette_analysis import Analysis, analyse, outputs

# What a property takes on a busy machine says nothing about it.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="rewrite committed fixtures with what the analysis computes now")


@pytest.fixture
def lab(tmp_path) -> Lab:
    """A run without nodes, whose radio samples cover the measurement."""
    made = Lab(tmp_path / "run")
    for second in range(-1, 62, 2):
        made.sample("nor", float(second), 0)
    return made


@pytest.fixture
def pair(lab) -> Lab:
    """A publisher on nor and a subscriber on prt, both started at T0."""
    lab.node("nor", BFT).node("prt", PICTURE)
    lab.agent("nor", "bft", "started", 0, instance="nor/bft", latenessSeconds=0.001)
    lab.agent("prt", "picture", "started", 0, instance="prt/picture", latenessSeconds=0.001)
    return lab


@pytest.fixture
def without_plots(monkeypatch):
    """Results are written without plots, which take longer than all the rest."""
    monkeypatch.setattr(outputs.plots, "PLOTS", {})


@pytest.fixture(scope="session")
def eight_vehicles(tmp_path_factory) -> Analysis:
    """A run that has all that a report shows."""
    return analyse(company(tmp_path_factory.mktemp("company") / "run", vehicles=8, seconds=60, period=5).write())


def real_run(folder: Path, name: str) -> Analysis:
    """A real run of study E4 over a tactical link, short form."""
    with tarfile.open(Path(__file__).parents[2] / "docs" / "notebooks" / "runs" / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return analyse(folder)


@pytest.fixture(scope="session")
def brokerless(tmp_path_factory) -> Analysis:
    return real_run(tmp_path_factory.mktemp("brokerless"), "mqtt-udp")


@pytest.fixture(scope="session")
def bridged(tmp_path_factory) -> Analysis:
    return real_run(tmp_path_factory.mktemp("bridged"), "mosquitto")


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests. Where it cannot be had they skip and say so; where it can, its absence is a failure."""
    program = shutil.which("chromium")
    if program is None:
        reason = "no chromium on PATH: the report is not tested in a browser (hack/test-packages installs it)"
        if os.geteuid() == 0 and shutil.which("apt-get"):
            pytest.fail(reason)
        warnings.warn(reason, stacklevel=1)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # A network that is not there, so that nothing but a file can be loaded, whatever the page asks for.
        arguments = ["--proxy-server=127.0.0.1:9", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        launched = playwright.chromium.launch(executable_path=program, args=arguments)
        yield launched
        launched.close()
