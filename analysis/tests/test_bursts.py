"""The figure of scenarios/e7."""

import importlib.util
from pathlib import Path

import pytest
from lab import BFT, PICTURE

SCRIPT = Path(__file__).parents[2] / "scenarios" / "e7" / "bursts.py"


@pytest.fixture(scope="module")
def bursts():
    spec = importlib.util.spec_from_file_location("bursts", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(lab):
    """Bursts of three messages: AMQP's arrives whole at both subscribers, STOMP's lacks one message at XMPP's."""
    hub = {"brokers": ["hub/b"]}
    lab.node("out", BFT | hub | {"name": "a", "protocol": "amqp"}, BFT | hub | {"name": "s", "protocol": "stomp"})
    lab.node("in", PICTURE | hub | {"name": "m", "protocol": "mqtt"}, PICTURE | hub | {"name": "x", "protocol": "xmpp"})
    for name, begin in (("a", 1.0), ("s", 11.0)):
        for number in range(3):
            identifier = f"{name}_{number}"
            lab.event(f"out/{name}", "triggered", begin, identifier, "/t").event(f"out/{name}", "sent", begin + 0.01 * number, identifier, "/t")
            lab.event("in/m", "received", begin + 0.1 + 0.2 * number, identifier, "/t")
            if (name, number) != ("s", 1):
                lab.event("in/x", "received", begin + 1.0 - 0.25 * number, identifier, "/t")
    return lab.write()


def test_a_burst_takes_from_its_first_message_to_the_arrival_of_its_last(bursts, run, capsys, tmp_path):
    bursts.main([str(run), "--csv", str(tmp_path / "b.csv"), "--plot", str(tmp_path / "b.png")])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["publisher", "mqtt", "xmpp"], ["amqp", "0.500", "s", "1.000", "s"], ["stomp", "0.500", "s", "2/3"]]
    assert (tmp_path / "b.csv").read_text().splitlines()[1:] == [
        "amqp,mqtt,out/a,in/m,3,3,0.5",
        "amqp,xmpp,out/a,in/x,3,3,1.0",
        "stomp,mqtt,out/s,in/m,3,3,0.5",
        "stomp,xmpp,out/s,in/x,3,2,",
    ]
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
