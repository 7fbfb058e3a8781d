import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

from company import company
from lab import BFT, PICTURE, Lab

from vignette_analysis import Analysis, analyse

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


@pytest.fixture(scope="session")
def eight_vehicles(tmp_path_factory) -> Analysis:
    """A run that has all that a report shows."""
    return analyse(company(tmp_path_factory.mktemp("company") / "run", vehicles=8, seconds=60, period=5).write())
