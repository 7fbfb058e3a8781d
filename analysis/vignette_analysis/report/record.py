"""The run's record: spec and versions, changes by hand, lateness, and what is missing."""

import yaml

from ..data.environment import flat
from ..figures import summary
from ..figures.analysis import Analysis
from . import words
from .charts import fixed, number, share
from .parts import Code, Section, Table, Text, table

# Keys of an app's spec that are not its kind.
_APP_KEYS = ("name", "instances", "subscribes", "protocol", "command")


def run(analysis: Analysis) -> Section:
    """The run, its networks, apps and nodes, its spec, and the versions of everything."""
    plan, nodes = analysis.run.plan, analysis.run.nodes
    spec, environment = plan.get("spec", {}), flat(plan.get("environment"))
    networks = [_network(network) for network in spec.get("networks") or []]
    apps = [_app(app, nodes) for app in spec.get("apps") or []]
    planned = [_node(node, environment) for node in nodes]
    versions = sorted(environment.items())
    parts = [
        table("The run", ("Property", "Value"), _properties(analysis), text=(0, 1)),
        table("Changed from the run that it is based on", ("Field", "From", "To"), _changes(plan), text=range(3)),
        table("Networks", ("Network", "Radio", "Subnet", "Routing"), networks, text=range(4)),
        table("Apps", ("App", "What it is", "Instances"), apps, text=(0, 1)),
        table("Nodes", ("Node", "Group", "Addresses", "Apps", "Host"), planned, folded=len(planned) > 12, text=range(5)),
        Code("Specification as it was resolved", _yaml(spec)),
        *([Code("Waveforms", _yaml(plan["waveforms"]))] if plan.get("waveforms") else []),
        table("Load of the hosts", _LOAD, [_load(host) for host in analysis.results.get("hosts") or []]),
        table("Clocks of virtual machines", _CLOCK, [_clock(clock) for clock in analysis.results.get("clocks") or []]),
        table("Versions, images and hosts", ("What", "Value"), versions, folded=True, text=(0, 1)),
    ]
    return Section("run", "What was run", [part for part in parts if not isinstance(part, Table) or part.rows])


def _properties(analysis: Analysis) -> list[tuple[str, str]]:
    plan = analysis.run.plan
    scenario = plan.get("scenario") or {}
    return [
        ("Experiment", f"{plan.get('namespace', '')}/{plan.get('name', '')}"),
        ("Run (UID)", plan.get("uid", "")),
        ("T0", words.clock(analysis.run.t0)),
        ("Duration", f"{number(analysis.run.duration_seconds)} s from T0 to the end of the drain"),
        ("Seed", str(plan.get("spec", {}).get("seed", "\u2013"))),
        ("Scenario", f"{scenario['name']}, {scenario.get('digest', '')}" if scenario.get("name") else "none"),
        ("Nodes", number(len(analysis.run.nodes))),
        *([("Rerun of", plan["rerunOf"]["uid"])] if plan.get("rerunOf") else []),
        *([("Based on", _based_on(plan["basedOn"]))] if plan.get("basedOn") else []),
    ]


def _based_on(origin: dict) -> str:
    return origin["uid"] + ("" if origin.get("changes") else ", whose spec is not known")


def _changes(plan: dict) -> list[tuple[str, ...]]:
    """Changes to the spec of the run that this one is based on."""
    origin = plan.get("basedOn") or {}
    rows = [(change["path"], change["from"] or "none", change["to"] or "none") for change in origin.get("changes") or []]
    return [*rows, *([(f"and {origin['moreChanges']} more", "", "")] if origin.get("moreChanges") else [])]


_LOAD = (
    "Host",
    "Processors",
    "Busy %",
    "Busiest second %",
    "Load average, most",
    "Stolen s",
    "CPU pressure %",
    "Memory pressure %",
)


def _load(host: dict) -> tuple[str, ...]:
    fields = ("cpus", "busyPercent", "maxBusyPercent", "maxLoadAverage", "stolenSeconds")
    fields += ("cpuPressurePercent", "memoryPressurePercent")
    return host["name"], *(number(host[field]) if field in host else "\u2013" for field in fields)


_CLOCK = ("Node", "Set at the start by (s)", "Then off the server's by at most (s)", "Known within (s)", "Measurements")


def _clock(clock: dict) -> tuple[str, ...]:
    return clock["node"], *(number(clock[field]) for field in ("setSeconds", "worstOffsetSeconds", "worstUncertaintySeconds", "measurements"))


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)


def _network(network: dict) -> tuple[str, ...]:
    radio = network.get("waveform") or next((name for name in ("link", "rfpipe", "tdma") if network.get(name)), "\u2013")
    engine = f" ({network['engine']})" if network.get("engine") else ""
    routing = {name: value for name, value in (network.get("routing") or {}).items() if name != "routes"}
    protocol = routing.pop("protocol", "none")
    return (
        network["name"],
        f"{radio}{engine}",
        network.get("subnet", ""),
        ", ".join([protocol, *(f"{k} {words.plain(v)}" for k, v in routing.items())]),
    )


def _app(app: dict, nodes: list[dict]) -> tuple[str, ...]:
    kind = next((name for name in app if name not in _APP_KEYS), "app")
    inner = app.get(kind)
    said = ", ".join(f"{k} {words.plain(v)}" for k, v in inner.items()) if isinstance(inner, dict) else str(inner or "")
    instances = [a.get("instances") or [] for node in nodes for a in node.get("apps") or [] if a["name"] == app["name"]]
    return app["name"], f"{kind}: {said}" if said else kind, number(sum(map(len, instances)))


def _node(node: dict, environment: dict[str, str]) -> tuple[str, ...]:
    addresses = ", ".join(f"{network} {address}" for network, address in (node.get("addresses") or {}).items())
    apps = ", ".join(app["name"] for app in node.get("apps") or [])
    return node["name"], node["group"], addresses, apps, environment.get(f"host/{node['name']}", "\u2013")


def late(analysis: Analysis) -> Section | None:
    """When and where the emulation was late."""
    verdict = analysis.results.get("verdict")
    if not verdict:
        return None
    parts: list = [Text(sentence) for sentence in verdict.get("context") or []]
    digits = summary.places(analysis.results["groups"])
    if bounds := [_bounds(group, digits) for group in analysis.results["groups"] if group.get("bounds")]:
        parts.append(table("How far figures may be off", ("Group", *_BOUNDS), bounds))
    if networks := verdict.get("networks"):
        parts.append(table("Frames and slots", _TIMING, [_timing(network) for network in networks]))
    late = verdict["late"] or []
    rows = [(e["node"] or "a host", number(e["fromSeconds"]), number(e["toSeconds"]), e["what"], number(e["worstSeconds"])) for e in late]
    if rows:
        header = ("Node", "From (s)", "To (s)", "What", "Worst (s)")
        parts.append(table("Late", header, rows, text=(0, 3), folded=len(rows) > 12))
    return Section("late", "How punctual the emulation was", parts) if parts else None


_BOUNDS = ("Median from (s)", "to (s)", "95 % from (s)", "to (s)", "Delivered from (%)", "to (%)", "Deliveries in flight while late", "of them lost")


def _bounds(group: dict, digits: int) -> tuple[str, ...]:
    bounds = group["bounds"]
    delays = bounds["delaySeconds"] or {}
    times = [fixed((delays.get(name) or {}).get(end), digits) for name in ("median", "p95") for end in ("low", "high")]
    shares = [share((bounds["deliveredPercent"] or {}).get(end)) for end in ("low", "high")]
    return group["name"], *times, *shares, number(bounds["marked"]), number(bounds["markedLost"])


_TIMING = ("Network", "Frames", "Late", "Worst (s)", "Lost by the emulation", "Interference known late", "Slots", "Missed", "Worst slot (s)")


def _timing(network: dict) -> tuple[str, ...]:
    fields = ("frames", "late", "worstSeconds", "lost", "lateInterference", "slots", "missed", "worstSlotSeconds")
    return network["name"], *(number(network[field]) if field in network else "\u2013" for field in fields)


def by_hand(analysis: Analysis) -> Section:
    """Changes and captures that were made by hand during the run."""
    made = analysis.run.plan.get("liveChanges") or []
    changes = [(str(i + 1), number(change["atNanoseconds"] / 1e9), change["name"], words.changes(change)) for i, change in enumerate(made)]
    parts: list = [Text("Nobody changed the networks by hand.")]
    if changes:
        parts = [table("Changes by hand", ("No.", "At (s)", "LiveChange", "Change"), changes, text=(2, 3))]
    captures = []
    for capture in analysis.run.plan.get("captures") or []:
        ended = "before the run" if capture.get("ended") else "with the run"
        captures.append((capture["name"], capture["network"], ", ".join(capture.get("nodes") or []), capture.get("filter") or "all frames", ended))
    if captures:
        parts.append(table("Captures", ("Capture", "Network", "Nodes", "Filter", "Ended"), captures, text=range(5)))
    return Section("hand", "What people did", parts)


def missing(analysis: Analysis, more: list[dict]) -> Section:
    """All warnings, gaps (the report's own too) and notes."""
    results, header = analysis.results, ("What", "Node", "From (s)", "To (s)", "Why")
    found = {"Warnings": results.get("warnings"), "Gaps": [*(results["gaps"] or []), *more], "Notes": results.get("notes")}
    parts: list = [] if found["Gaps"] else [Text("Nothing: no gap was found.")]
    for name, entries in found.items():
        rows = [(e["what"], e.get("node", ""), number(e.get("fromSeconds")), number(e.get("toSeconds")), e["reason"]) for e in entries or []]
        if rows:
            parts.append(table(name, header, rows, folded=name == "Notes", text=(0, 1, 4)))
    return Section("missing", "What is missing", parts)
