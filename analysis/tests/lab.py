"""Builds runs on disk for tests."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vignette_analysis.data import topics

T0 = 1_767_323_045_000_000_000  # 2026-01-02T03:04:05Z
T0_TEXT = "2026-01-02T03:04:05Z"
SECOND = 10**9


@dataclass
class Lab:
    """A run's folder under construction. Times are seconds after T0."""

    directory: Path
    apps: dict[str, dict] = field(default_factory=dict)
    nodes: list[dict] = field(default_factory=list)
    logs: dict[str, list[str]] = field(default_factory=dict)
    # Streams that brokers rename: publisher, subscriber, topic at the subscriber.
    renamed: list[tuple[str, str, str]] = field(default_factory=list)
    state: dict = field(default_factory=lambda: {"schemaVersion": 1, "agents": [], "incidents": [], "sealed": True})
    manifest: dict = field(default_factory=lambda: {"schemaVersion": 1, "uid": "run-1", "files": None, "gaps": None})
    plan: dict = field(default_factory=dict)

    def node(self, name: str, *apps: dict, group: str | None = None) -> "Lab":
        """Add a node that runs these apps; each gets empty logs."""
        node_apps = []
        for app in apps:
            count = app.get("instances", 1)
            names = [f"{name}/{app['name']}" + (f"/{i + 1}" if count > 1 else "") for i in range(count)]
            # publishTopics, subscriptions and to are for the lab alone: the analysis reads streams and brokerNode.
            planned = {"name": app["name"], "kind": app.get("kind", "traffic"), "instances": names, "protocol": app.get("protocol", "mqtt")}
            planned |= {"subscribes": bool(app.get("topics")), "to": app.get("to", "")}
            spec = {"name": app["name"]}
            if "topic" in app:
                planned |= {"publishes": True, "publishTopics": [app["topic"].format(n) for n in names]}
                spec["publisher"] = {"protocol": app.get("protocol", "mqtt"), "period": "2s"} | ({"to": app["to"]} if "to" in app else {})
            if app.get("kind") == "image":
                planned |= {"subscriptions": app.get("topics"), "protocol": app.get("protocol", "")}
                spec |= {"image": "i", "command": ["x"], "subscribes": app.get("topics"), "protocol": app.get("protocol", "")}
            elif app.get("kind") == "mgen" or app.get("script"):
                planned |= {"subscriptions": app.get("topics"), "publishes": bool(app.get("script"))}
                planned |= {"protocol": "mgen"} if app.get("kind") == "mgen" else {"to": "broker"}
                planned["senders"] = [f"{name}/{app['name']}/{flow}" for flow in app.get("flows", [])]
                spec |= {"mgen": {"script": "…"}} if app.get("kind") == "mgen" else {"script": {"protocol": "mqtt", "to": "broker"}}
            elif "messaging" in app:
                service = f"messaging/{app['name']}"
                filters = [f"{service}/to/{to}" for to in (name, *app.get("groups", []))]
                planned |= {"publishes": True, "subscribes": True, "subscriptions": filters, "brokers": [service]}
                planned["protocol"] = app["messaging"].get("transport", "")
                spec |= {"messaging": app["messaging"]}
            elif "topics" in app:
                each = [[topic.replace("{instance}", str(i + 1)) for topic in app["topics"]] for i in range(count)]
                planned |= {"subscriptions": app["topics"]} if all(own == app["topics"] for own in each) else {"instanceSubscriptions": each}
                spec["subscriber"] = {"protocol": app.get("protocol", "mqtt"), "topics": app["topics"]} | ({"to": app["to"]} if "to" in app else {})
            planned |= {key: app[key] for key in ("brokers", "platforms") if app.get(key)}
            self.apps[app["name"]] = spec
            node_apps.append(planned)
            self.logs[f"logs/{name}/{app['name']}/agent.jsonl"] = []
            if planned["kind"] in ("traffic", "image", "mgen"):
                for i in range(count):
                    self.logs[f"logs/{name}/{app['name']}/messages-{i + 1}.jsonl"] = []
        self.nodes.append(
            {"name": name, "group": group or name, "nem": len(self.nodes) + 1, "podUID": f"pod-{name}", "pod": f"x-{name}", "apps": node_apps}
        )
        return self

    def log_of(self, instance: str) -> list[str]:
        """The message log of an instance."""
        node, app, *number = instance.split("/")
        planned = next((a for n in self.nodes for a in n["apps"] if n["name"] == node and a["name"] == app), {})
        shared = instance in planned.get("senders", [])  # several names of one process
        return self.logs[f"logs/{node}/{app}/messages-{1 if shared or not number else number[0]}.jsonl"]

    def event(self, instance: str, status: str, at: float | int, id: str, topic: str | None = None, **more) -> "Lab":
        """Add an event; an integer time is nanoseconds after T0, a float seconds."""
        ts = T0 + (at if isinstance(at, int) else round(at * SECOND))
        record = {"ts": ts, "instance": instance, "status": status, "id": id} | ({"topic": topic} if topic else {}) | more
        self.log_of(instance).append(json.dumps(record))
        return self

    def agent(self, node: str, app: str, event: str, at: float, **more) -> "Lab":
        """Add a line to an agent's own log."""
        self.logs[f"logs/{node}/{app}/agent.jsonl"].append(json.dumps({"ts": T0 + round(at * SECOND), "event": event} | more))
        return self

    def sample(self, node: str, at: float, sent: int, network: str = "wan", host: str = "host-a", **more) -> "Lab":
        """Add a radio sample; every frame has 100 bytes unless told."""
        record = {
            "ts": T0 + round(at * SECOND),
            "network": network,
            "node": node,
            "framesSent": sent // 100,
            "bytesSent": sent,
            "framesReceived": 0,
            "bytesReceived": 0,
            "queueDepth": 0,
            "worstLatenessSeconds": 0.0001,
            "lateReleases": 0,
        } | more
        self.logs.setdefault(f"radio/{host}.jsonl", []).append(json.dumps(record))
        return self

    def around(self, at: float, host: str = "host-a", **record) -> "Lab":
        """Add any other record to a host's radio log: positions, links, routes."""
        self.logs.setdefault(f"radio/{host}.jsonl", []).append(json.dumps({"ts": T0 + round(at * SECOND)} | record))
        return self

    def streams(self) -> dict:
        """The table of streams as the operator makes it, of brokers that nothing joins but what is `renamed`."""
        rows, audiences = [], []

        def row(publisher: str, heard: list[tuple[str, dict]], **messages) -> None:
            entries = [{"audience": len(audiences) + i} | renamed for i, (_, renamed) in enumerate(heard)]
            audiences.extend([name] for name, _ in heard)
            rows.append({"publishers": [publisher], "heard": entries} | messages)

        subscribers = list(self._subscribers())
        for app in (app for node in self.nodes for app in node["apps"]):
            planned = dict(zip(app["instances"], app.get("publishTopics") or [], strict=False))
            hearing = [(name, filters) for name, other, filters in subscribers if _meet(app, other)]
            for publisher in (*app["instances"], *app.get("senders", [])):
                if topic := planned.get(publisher):
                    covered = [(name, {}) for name, filters in hearing if any(topics.matches(f, topic) for f in filters)]
                    row(publisher, covered + [(name, {"topic": other}) for p, name, other in self.renamed if p == publisher], topic=topic)
                elif not planned:
                    for name, filters in hearing:
                        row(publisher, [(name, {})], filters=filters)
        return {"rows": rows, "audiences": audiences}

    def _subscribers(self) -> Iterator[tuple[str, dict, list[str]]]:
        for app in (app for node in self.nodes for app in node["apps"]):
            own = app.get("instanceSubscriptions") or [app.get("subscriptions")] * len(app["instances"])
            yield from ((name, app, filters) for name, filters in zip(app["instances"], own, strict=True) if filters)

    def _broker_node(self, node: dict, app: dict) -> str:
        where, _, name = app["to"].rpartition("/")
        hosts = [n["name"] for n in self.nodes if any(a["name"] == name for a in n["apps"])]
        return where or ("" if node["name"] in hosts or not hosts else hosts[0])

    def archived(self) -> list[dict]:
        """The logs as files of a manifest."""
        return [{"path": name, "bytes": len(content(lines))} for name, lines in self.logs.items()]

    def write(self) -> Path:
        """Write the run and return its folder."""
        plan = {
            "schemaVersion": 2,
            "revision": 3,
            "namespace": "team-nor",
            "name": "quickstart",
            "uid": "run-1",
            "phase": "Analysing",
            "t0": T0_TEXT,
            "spec": {"duration": "1m", "networks": [{"name": "wan", "subnet": "198.18.9.0/24"}], "apps": list(self.apps.values()), "nodes": []},
            "nodes": [node | {"apps": [app | {"brokerNode": self._broker_node(node, app)} for app in node["apps"]]} for node in self.nodes],
            "streams": self.streams(),
            "measureStartNanoseconds": 0,
            "measureEndNanoseconds": 60 * SECOND,
        } | self.plan
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, record in (("run.json", plan), ("state.json", self.state), ("manifest.json", self.manifest)):
            if record is not None:
                (self.directory / name).write_text(json.dumps(record))
        for name, lines in self.logs.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content(lines))
        return self.directory


def _meet(one: dict, other: dict) -> bool:
    """Report whether two apps have a broker in common; where brokers are not known, whether their protocols agree."""
    if one.get("brokers") and other.get("brokers"):
        return bool(set(one["brokers"]) & set(other["brokers"]))
    return not one["protocol"] or not other["protocol"] or one["protocol"] == other["protocol"]


def content(lines: list[str]) -> bytes:
    """A log of these lines."""
    return "".join(line if line.endswith("\0torn") else line + "\n" for line in lines).replace("\0torn", "").encode()


def torn(line: str) -> str:
    """Mark a line to be written without its end."""
    return line + "\0torn"


BFT = {"name": "bft", "topic": "/{}"}
PICTURE = {"name": "picture", "topics": ["#"]}
UNIT = {"name": "unit", "topic": "/{}", "topics": ["#"]}


def gap(results: dict, what: str) -> dict:
    """The one gap of this name."""
    found = [g for g in results["gaps"] or [] if g["what"] == what]
    assert len(found) == 1, f"{len(found)} gaps {what!r} in {results['gaps']}"
    return found[0]


def gap_names(results: dict) -> set[str]:
    """The names of all gaps."""
    return {g["what"] for g in results["gaps"] or []}
