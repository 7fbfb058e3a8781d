"""Runs made at random, of which the truth is known because it was made first."""

import json
import random
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st
from lab import Lab, gap_names, torn

from vignette_analysis import analyse, outputs

# The end of the drain, after T0: among the arrivals that are drawn, about half come later and do not count.
DRAINED = 500 * 10**9
FILTERS = ["#", "/#", "/n0/+", "/n1/#", "/+/unit", "nothing/+"]


@st.composite
def runs(draw):
    """A plan, what was sent, and when each expected delivery arrived: never, once or several times."""
    nodes = []
    for n in range(draw(st.integers(1, 4))):
        publishes = draw(st.booleans())
        filters = draw(st.lists(st.sampled_from(FILTERS), max_size=2, unique=True))
        nodes.append(
            {
                "name": f"n{n}",
                "group": draw(st.sampled_from(["red", "blue"])),
                "count": draw(st.integers(1, 3)),
                "publishes": publishes,
                "filters": filters,
            }
        )
    arrivals = draw(st.lists(st.lists(st.integers(0, 10**12), max_size=3), min_size=1, max_size=30))
    return {
        "nodes": nodes,
        "messages": draw(st.integers(0, 6)),
        "arrivals": arrivals,
        "seed": draw(st.integers(0, 2**32)),
        "unique_ids": draw(st.booleans()),
        "torn": draw(st.booleans()),
        "nonsense": draw(st.integers(0, 3)),
    }


def covers(topic_filter: str, topic: str) -> bool:
    """The truth for FILTERS alone, written another way than the analysis does."""
    _, node, last = topic.split("/")
    return {"#": True, "/#": True, "/n0/+": node == "n0", "/n1/#": node == "n1", "/+/unit": last == "unit", "nothing/+": False}[topic_filter]


def exact_quantile(values: list[int], q: Fraction) -> float:
    """Linear interpolation between order statistics, in exact arithmetic."""
    values = sorted(values)
    position = q * (len(values) - 1)
    low = int(position)
    high = min(low + 1, len(values) - 1)
    return float((values[low] + (values[high] - values[low]) * (position - low)) / 10**9)


class Truth:
    """What the results must say of one set of deliveries."""

    def __init__(self):
        self.messages, self.expected, self.delays, self.duplicates = set(), 0, [], 0

    def check(self, entry: dict) -> None:
        received = len(self.delays)
        lost = self.expected - received
        assert entry["messages"] == {
            "triggered": len(self.messages),
            "sent": len(self.messages),
            "offered": self.expected,
            **({"deliveredPercent": 100 * received / self.expected} if self.expected else {}),
            "expected": self.expected,
            "received": received,
            "lost": lost,
            "lostPercent": 100 * lost / self.expected if self.expected else 0,
            "duplicates": self.duplicates,
            "neverSent": 0,
        }
        if not self.delays:
            assert entry["delaySeconds"] is None
            return
        for name, q in {"min": 0, "p25": Fraction(1, 4), "median": Fraction(1, 2), "p75": Fraction(3, 4), "p95": Fraction(19, 20), "max": 1}.items():
            assert abs(entry["delaySeconds"][name] - exact_quantile(self.delays, Fraction(q))) <= 1e-9


def build(run: dict, directory: Path) -> tuple[Lab, dict[str, Truth]]:
    """Write a run's logs, shuffled, and the truth of every group and publisher."""
    lab = Lab(directory, plan={"measureEndNanoseconds": DRAINED})
    clients, truths, arrival = [], defaultdict(Truth), 0
    for node in run["nodes"]:
        app = {"name": f"unit-{node['name']}", "instances": node["count"]}
        app |= {"topic": f"/{node['name']}/unit"} if node["publishes"] else {}
        app |= {"topics": node["filters"]} if node["filters"] else {}
        lab.node(node["name"], app, group=node["group"])
        for i in range(node["count"]):
            clients.append((f"{node['name']}/{app['name']}" + (f"/{i + 1}" if node["count"] > 1 else ""), node))
    for sender, node in clients:
        if not node["publishes"]:
            continue
        topic = f"/{node['name']}/unit"
        for m in range(run["messages"]):
            # Ids that several nodes use are fine, as their topics differ; within a node they are its own.
            id = f"{sender}_{m}" if run["unique_ids"] else f"{sender.partition('/')[2]}".replace(node["name"], "") + f"_{m}"
            key, sent = (sender, m), m * 10**9
            lab.event(sender, "triggered", sent - 5, id, topic).event(sender, "sent", sent, id, topic)
            for name in ("all", node["group"], sender):
                truths[name].messages.add(key)
            for receiver, other in clients:
                if receiver == sender:
                    if node["filters"] and any(covers(f, topic) for f in node["filters"]):
                        lab.event(receiver, "received", sent + 1, id, topic)  # its own: expected by nobody
                    continue
                if not any(covers(f, topic) for f in other["filters"]):
                    continue
                arrivals = run["arrivals"][arrival % len(run["arrivals"])]
                times = [delay for delay in arrivals if sent + delay <= DRAINED]
                arrival += 1
                names = ["all", node["group"], sender]
                names += ["radio"] if node is not other else []
                names += ["local"] if node is other else []
                names += ["cross"] if node["group"] != other["group"] else []
                for name in names:
                    truth = truths[name]
                    truth.messages.add(key)
                    truth.expected += 1
                    truth.delays += [min(times)] if times else []
                    truth.duplicates += max(len(times) - 1, 0)
                for delay in arrivals:
                    lab.event(receiver, "received", sent + delay, id, topic)
    return lab, truths


def damage(run: dict, lab: Lab) -> dict[str, int]:
    """Shuffle every log and put bad lines between; returns how many each has but for torn ones."""
    chance, bad = random.Random(run["seed"]), {}
    for name, lines in lab.logs.items():
        if "messages-" not in name:
            continue
        chance.shuffle(lines)
        for _ in range(run["nonsense"]):
            lines.insert(
                chance.randint(0, len(lines)), chance.choice(["nonsense", "{}", '{"ts":1}', "[]", '{"ts":1,"instance":"a","status":"lost","id":"x"}'])
            )
        if run["torn"]:
            lines.append(torn('{"ts":17673230450000'))
        bad[name] = run["nonsense"]
    return bad


@settings(max_examples=60)
@given(runs())
def test_every_figure_is_exact_whatever_happened(run):
    with TemporaryDirectory() as scratch:
        lab, truths = build(run, Path(scratch) / "run")
        bad = damage(run, lab)
        analysis = analyse(lab.write())
        results = analysis.results
        for entry in results["groups"] + (results["publishers"] or []):
            truths[entry["name"]].check(entry)
        assert results["messages"] == results["groups"][0]["messages"]
        named = {g["what"]: g["reason"] for g in results["gaps"]}
        for name, count in bad.items():
            assert (f"log {name}" in named) == (count > 0)
            assert count == 0 or named[f"log {name}"].startswith(f"{count} lines")
        assert not any("received events" in name or "ambiguous" in name for name in gap_names(results))
        with mock.patch.object(outputs.plots, "write", return_value=[]):  # they take longer than all the rest
            outputs.write(analysis, Path(scratch) / "out")
        rows = (Path(scratch) / "out" / "deliveries.csv").read_text().splitlines()
        assert len(rows) - 1 == results["messages"]["expected"]
        assert json.loads((Path(scratch) / "out" / "results.json").read_text()) == results


@settings(max_examples=25)
@given(runs(), st.data())
def test_a_missing_log_takes_only_its_own_deliveries_and_is_named(run, data):
    with TemporaryDirectory() as scratch:
        lab, truths = build(run, Path(scratch) / "run")
        name = data.draw(st.sampled_from(sorted(n for n in lab.logs if "messages-" in n)))
        lab.manifest["files"] = lab.archived()
        lost = [json.loads(line) for line in lab.logs.pop(name)]
        results = analyse(lab.write()).results
        assert f"log {name}" in gap_names(results)
        sent = len({r["id"] for r in lost if r["status"] == "sent"})
        assert results["messages"]["sent"] == len(truths["all"].messages) - sent
