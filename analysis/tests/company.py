"""A made-up run that has all that a report shows: vehicles that move in platoons, links that fade, routes of several hops, losses."""

import json
import math
import random
from pathlib import Path

from lab import SECOND, T0, Lab

REACH_DB = 6.0


def company(directory: Path, vehicles: int = 23, seconds: int = 1200, period: float = 10.0) -> Lab:
    """A headquarters and vehicles in three platoons on a TDMA network with OLSRv2; positions, links and routes every second."""
    rng = random.Random(11)
    lab = Lab(directory)
    lab.node("hq", {"name": "broker", "kind": "mosquitto"}, {"name": "picture", "topics": ["#"], "to": "broker"})
    for i in range(vehicles):
        lab.node(f"veh-{i + 1}", {"name": "bft", "topic": "/{}", "to": "broker"}, group=("alpha", "bravo", "charlie")[i * 3 // vehicles])
    for i, node in enumerate(lab.nodes):
        node["addresses"] = {"vhf": f"198.18.0.{i + 1}"}
    lab.plan = _plan(lab, seconds)
    for node, app in [("hq", "picture"), *((n["name"], "bft") for n in lab.nodes[1:])]:
        lab.agent(node, app, "started", 0.0, instance=f"{node}/{app}", latenessSeconds=0.0004)
    walk = _Walk(lab, rng)
    for second in range(-2, seconds + 6):
        walk.second(second)
    _messages(lab, rng, walk, seconds, period)
    for node in [n["name"] for n in lab.nodes]:
        sent = 0
        for second in range(-2, seconds + 6):
            sent += 100 * rng.randint(2, 6)
            lateness = 0.031 if node == "veh-3" and seconds * 0.6 <= second < seconds * 0.6 + 3 else 0.0002
            lab.sample(node, float(second), sent, network="vhf", worstLatenessSeconds=lateness)
    lab.state["incidents"] = [
        {"what": "AppFailed", "node": "veh-5", "fromSeconds": seconds * 0.4, "toSeconds": seconds * 0.42, "reason": "exit code 1; restarted"}
    ]
    lab.logs["events.jsonl"] = [json.dumps(event) for event in _events(seconds)]
    return lab


def _plan(lab: Lab, seconds: int) -> dict:
    tdma = {
        "phy": {"frequency": "300MHz", "bandwidth": "250kHz", "transmitPower": "37dBm"},
        "rate": "1Mbit",
        "structure": {"frames": 8, "slotDuration": "5ms"},
    }
    routing = {"protocol": "olsrv2", "hello": "2s", "tc": "8s"}
    return {
        "namespace": "team-nor",
        "name": "bft-over-tdma",
        "uid": "5f2b7c11-88aa-4f5e-9c2c-0f2f6f1f7a10",
        "spec": {
            "duration": f"{seconds}s",
            "seed": 7,
            "networks": [{"name": "vhf", "waveform": "tdma-wideband", "engine": "native", "subnet": "198.18.0.0/24", "routing": routing}],
            "apps": list(lab.apps.values()),
            "timeline": [{"at": "0s", "start": ["bft"]}],
        },
        "waveforms": {"tdma-wideband": {"tdma": tdma}},
        "scenario": {"name": "anglova-like", "digest": "sha256:42de9f43cc3ee1cbe597404790139aed41887ebba0444ae30768d984a8c9c1d6"},
        "measureEndNanoseconds": (seconds + 4) * SECOND,
        "liveChanges": [
            {
                "name": "jam-1",
                "atNanoseconds": int(seconds * 0.5) * SECOND,
                "changes": [{"network": "vhf", "jammer": {"name": "j1", "power": "20dBm", "position": {"latitude": "58.2", "longitude": "7.93"}}}],
            },
            {"name": "quiet", "atNanoseconds": int(seconds * 0.7) * SECOND, "changes": [{"network": "vhf", "from": "alpha", "silent": True}]},
        ],
        "environment": {"host/hq": "n1", "kernel/n1": "6.12.41", "kubelet/n1": "v1.34.4", "operator": "0.1.0"},
    }


def _events(seconds: int) -> list[dict]:
    def event(at: float, kind: str, reason: str, name: str, message: str, count: int = 1) -> dict:
        thing = {"kind": "Pod", "name": f"bft-over-tdma-{name}"}
        return {
            "ts": T0 + round(at * SECOND),
            "uid": f"{reason}-{name}",
            "type": kind,
            "reason": reason,
            "object": thing,
            "node": name,
            "message": message,
            "count": count,
        }

    found = [event(-20 + i / 4, "Normal", "Started", f"veh-{i + 1}", "Started container node") for i in range(23)]
    return [*found, event(seconds * 0.4, "Warning", "Unhealthy", "veh-5", "Liveness probe failed: no answer", 2)]


class _Walk:
    """Positions, SINR and hops, second by second."""

    def __init__(self, lab: Lab, rng: random.Random):
        self.lab, self.rng, self.nodes = lab, rng, [n["name"] for n in lab.nodes]
        self.fades = {(a, b): rng.gauss(0, 4) for a in range(len(self.nodes)) for b in range(a)}
        self.heard: dict[tuple[int, int], int] = {}
        self.routes: list[dict[int, int]] = [{} for _ in self.nodes]
        # Hops from the headquarters to each node by second.
        self.hops: list[dict[int, int]] = []

    def second(self, second: int) -> None:
        places = [self._place(i, second) for i in range(len(self.nodes))]
        moved = {name: [round(58.19 + y / 111_195, 6), round(7.91 + x / 58_600, 6), 20.0] for name, (x, y) in zip(self.nodes, places, strict=True)}
        self.lab.around(float(second), network="vhf", positions=moved)
        near: list[set[int]] = [set() for _ in self.nodes]
        for receiver in range(len(self.nodes)):
            self._hear(second, receiver, places, near)
        tables = [self._hops(near, source) for source in range(len(self.nodes))]
        if second % 3 == 0:
            self._route(second, tables)
        self.hops.append(tables[0])

    def _place(self, i: int, second: int) -> tuple[float, float]:
        if i == 0:
            return 0.0, 0.0
        platoon, rank = divmod(i - 1, max(-(-(len(self.nodes) - 1) // 3), 1))
        angle = (platoon - 1) * 0.7 + 0.15 * math.sin(second / 170 + platoon)
        along = 500 + 260 * rank + 2.2 * max(second, 0) * (1 + 0.1 * platoon)
        return along * math.cos(angle), along * math.sin(angle) + 60 * math.sin(second / 40 + i)

    def _hear(self, second: int, receiver: int, places: list, near: list[set[int]]) -> None:
        heard = []
        for source in range(len(self.nodes)):
            if source == receiver:
                continue
            distance = max(math.dist(places[source], places[receiver]), 10)
            loss = 32.4 + 20 * math.log10(300) + 30 * math.log10(distance / 1000) + self.fades[max(source, receiver), min(source, receiver)]
            sinr = 98 - loss + 3 * math.sin(second / 25 + source + receiver)
            if sinr > REACH_DB:
                near[receiver].add(source)
            if sinr > 0 and (second + source) % 2 == 0:
                pair = source, receiver
                self.heard[pair] = self.heard.get(pair, 0) + (1 if sinr > REACH_DB else 0)
                link = {"node": self.nodes[source], "sinrDB": round(sinr, 2), "pathlossDB": round(loss, 2), "heard": self.heard[pair]}
                heard.append(link | ({"missed": {"lowSINR": second + 3}} if sinr <= REACH_DB else {}))
        if heard:
            self.lab.around(float(second), network="vhf", receiver=self.nodes[receiver], **{"from": heard})

    @staticmethod
    def _hops(near: list[set[int]], source: int) -> dict[int, int]:
        found, edge, hops = {source: 0}, [source], 0
        while edge:
            hops += 1
            edge = sorted({b for a in edge for b in near[a]} - found.keys())
            found |= dict.fromkeys(edge, hops)
        return {node: h for node, h in found.items() if h}

    def _route(self, second: int, tables: list[dict[int, int]]) -> None:
        for source, table in enumerate(tables):
            before, self.routes[source] = self.routes[source], table
            changed = [{"to": f"198.18.0.{d + 1}/32", "network": "vhf", "hops": h, "metric": h} for d, h in table.items() if before.get(d) != h]
            gone = [f"198.18.0.{d + 1}/32" for d in before if d not in table]
            if changed or gone:
                self.lab.around(float(second), node=self.nodes[source], routing="olsrv2", routes=changed, gone=gone)


def _messages(lab: Lab, rng: random.Random, walk: _Walk, seconds: int, period: float) -> None:
    for vehicle in range(1, len(lab.nodes)):
        name = lab.nodes[vehicle]["name"]
        at, i = rng.uniform(0, period), 0
        while at < seconds:
            hops = walk.hops[int(at) + 2].get(vehicle)
            lab.event(f"{name}/bft", "triggered", at - 0.001, f"m{i}", f"/{name}/bft").event(
                f"{name}/bft", "sent", at, f"m{i}", f"/{name}/bft", bytes=890
            )
            if hops and rng.random() < 0.985**hops:
                delay = sum(0.02 + rng.expovariate(1 / 0.08) for _ in range(hops)) + (rng.paretovariate(1.3) * 0.3 if rng.random() < 0.06 else 0)
                lab.event("hq/picture", "received", at + min(delay, 30.0), f"m{i}", f"/{name}/bft")
            at, i = at + period, i + 1
