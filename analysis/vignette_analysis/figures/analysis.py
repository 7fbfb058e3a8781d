"""From a run's folder to results.json."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ..data import captures, messages, radio, radiolog, requests
from ..data.gaps import Gaps, merged
from ..data.messages import Matching
from ..data.run import Run, is_log, stopped_early
from . import (
    age,
    agents,
    bursts,
    clocks,
    deliveries,
    display,
    findings,
    flows,
    grouppairs,
    hostload,
    hosts,
    lateness,
    named,
    picture,
    responses,
    stages,
    surroundings,
    wire,
)
from . import verdict as verdicts
from .bounds import Marking

SCHEMA_VERSION = 2
# Versions of results that programs read. Version 1 has no offered deliveries, headline group, warnings and notes.
READ_VERSIONS = range(1, SCHEMA_VERSION + 1)


@dataclass
class Analysis:
    """A run's results and the tables behind them."""

    run: Run
    # The JSON contract of internal/runapi/results.go.
    results: dict
    messages: pl.DataFrame
    deliveries: pl.DataFrame
    # What became of each request: see requests.SCHEMA.
    requests: pl.DataFrame
    # Durations between measuring points, loss periods, reordering and age of information: see
    # the modules of these names.
    stages: pl.DataFrame
    sequences: pl.DataFrame
    order: pl.DataFrame
    age: pl.DataFrame
    # How long bursts of publishers that wait for their connection took: see bursts.BURSTS.
    bursts: pl.DataFrame
    # Positions, links and routes of the nodes: see surroundings.Surroundings.
    positions: pl.DataFrame
    links: pl.DataFrame
    hops: pl.DataFrame
    hop_histogram: pl.DataFrame
    # Positions that messages report, and what subscribers made of them: see picture.Picture.
    reports: pl.DataFrame
    picture: pl.DataFrame
    picture_times: pl.DataFrame
    # Figures from captures: see captures.Captured.
    volume: pl.DataFrame
    tcp: pl.DataFrame
    packets: pl.DataFrame

    def message_table(self) -> pl.DataFrame:
        """`messages` with the names of publishers, their nodes and groups: the table that messages.csv has."""
        return named.messages(self.run, self.messages, self.deliveries)

    def delivery_table(self) -> pl.DataFrame:
        """`deliveries` with the names of publishers and subscribers, and delays in seconds: the table that deliveries.csv has."""
        return named.deliveries(self.run, self.deliveries, self.messages)

    def request_table(self) -> pl.DataFrame:
        """`requests` with the names of publishers and subscribers, and response times in seconds: the table that requests.csv has."""
        return named.requests(self.run, self.requests)

    def _repr_html_(self) -> str:
        return display.html(self.results)


def analyse(directory: str | Path, left_out: dict[str, str] | None = None) -> Analysis:
    """Analyse a run's folder, as the archive keeps it or as it was downloaded.

    left_out maps captures of the archive that were not downloaded to the reason.
    """
    run = Run.load(Path(directory))
    gaps = Gaps()
    _records(run, gaps)
    logs = messages.read_events(run, gaps)
    matching = messages.match(run, logs.events, gaps)
    findings.useless(logs.unusable, gaps)
    findings.uncounted(matching, gaps)
    findings.joined_late(run, matching, gaps)
    findings.silent(run, matching, logs, gaps)
    asked = requests.match(run, logs.requests, matching, gaps)
    reported = logs.reported
    del logs
    staged = stages.compute(run, matching, gaps)
    flowing = flows.compute(run, matching, gaps)
    groups = deliveries.publishers_by_group(run, set(matching.messages["publisher"].unique()))
    computed = deliveries.compute(run, matching, staged.delays, responses.compute(run, asked, groups))
    between = grouppairs.compute(run, matching, asked, gaps)
    late = lateness.Lateness()
    agents.examine(run, gaps, late)
    bursting = bursts.compute(run, matching, late)
    log = radiolog.read(run, gaps)
    networks, sampled = radio.examine(run, log, gaps)
    hosts.examine(run, log, gaps, late)
    lateness.examine(run, log, late)
    judged = _bounded(run, matching, late, computed, sampled, gaps)
    around = surroundings.read(run, gaps)
    surroundings.add_figures(around, networks)
    pictured = picture.compute(run, matching, reported, around.positions, gaps)
    own_clocks = clocks.summarise(run, gaps)
    captured = captures.examine(run, log, networks, gaps, left_out)
    _not_computed(run, gaps)
    found = {
        "pairs": between,
        "bursts": bursts.summarise(bursting) if bursting.height else None,
        "picture": pictured.results,
        "age": age.summarise(flowing.age),
        "messageSizes": wire.summarise(run, captured.sizes, matching.messages),
        "hosts": hostload.summarise(run, log),
        "clocks": own_clocks,
    }
    results = _results(run, gaps, judged, computed, networks, found)
    return Analysis(
        run=run,
        results=results,
        messages=matching.messages,
        deliveries=matching.deliveries,
        requests=asked,
        stages=staged.frame,
        sequences=flowing.sequences,
        order=flowing.order,
        age=flowing.age,
        bursts=bursting,
        positions=around.positions,
        links=around.links,
        hops=around.hops,
        hop_histogram=around.hop_histogram,
        reports=pictured.reports,
        picture=pictured.pairs,
        picture_times=pictured.times,
        volume=captured.volume,
        tcp=captured.tcp,
        packets=captured.packets,
    )


def _results(run: Run, gaps: Gaps, judged: dict, computed: deliveries.Figures, networks: list[dict], found: dict) -> dict:
    """Put the results together. Leave out empty parts of found."""
    everything = computed.groups[0]
    return {
        "schemaVersion": SCHEMA_VERSION,
        "experiment": run.plan["name"],
        "namespace": run.plan["namespace"],
        "uid": run.plan["uid"],
        "phase": run.plan.get("phase", ""),
        **({"startTime": run.plan["t0"]} if run.plan.get("t0") else {}),
        "durationSeconds": run.duration_seconds,
        **judged,
        "headline": computed.headline,
        **({"warnings": merged(gaps.warnings)} if gaps.warnings else {}),
        "messages": everything["messages"],
        "delaySeconds": everything["delaySeconds"],
        **({"requests": everything["requests"]} if "requests" in everything else {}),
        "groups": computed.groups or None,
        "publishers": computed.publishers or None,
        **{name: found[name] for name in ("pairs", "bursts", "picture", "age", "messageSizes") if found[name]},
        "networks": networks or None,
        "gaps": merged(gaps.found),
        **({"notes": merged(gaps.notes)} if gaps.notes else {}),
        **{name: found[name] for name in ("hosts", "clocks") if found[name]},
        **{origin: run.plan[origin]["uid"] for origin in ("rerunOf", "basedOn") if run.plan.get(origin)},
    }


def _records(run: Run, gaps: Gaps) -> None:
    """Gaps and failures that the archive's own records name."""
    for name, reason in run.problems:
        gaps.add(name, reason)
    if (at := stopped_early(run.plan)) is not None:
        gaps.add("stopped early", f"spec.stop ended the run before its duration of {run.plan['spec']['duration']}", start=at)
    # The seal of the archive found what it lacks.
    for gap in (run.manifest or {}).get("gaps") or []:
        gaps.add(gap["what"], gap["reason"], gap.get("node", ""), gap.get("fromSeconds"), gap.get("toSeconds"))
    for file in (run.manifest or {}).get("files") or []:
        if is_log(file["path"]):
            _compare(run, file, gaps)
    state = run.state or {}
    for incident in state.get("incidents") or []:
        gaps.add(incident["what"], incident["reason"], incident.get("node", ""), incident["fromSeconds"], incident.get("toSeconds"))
    for node in run.nodes:
        if node.get("openManagement"):
            gaps.add("isolation", "eth0 of this node is open: its traffic may have gone around the radio", node["name"])


def _compare(run: Run, file: dict, gaps: Gaps) -> None:
    """Name an archived log that the run's folder does not have, or not in full."""
    name, path = file["path"], run.directory / file["path"]
    here = path.stat().st_size if path.is_file() else None
    if here != file["bytes"]:
        has = "has no such file" if here is None else f"has {here} of it"
        node = name.split("/")[1] if name.startswith("logs/") else ""
        gaps.add(f"log {name}", f"the archive has {file['bytes']} bytes, and the run's folder {has}", node)


def _bounded(run: Run, matching: Matching, late: lateness.Lateness, computed: deliveries.Figures, sampled: bool, gaps: Gaps) -> dict:
    """Add the bounds of each group, and the verdict from those of the headline group."""
    headline = next(group for group in computed.groups if group["name"] == computed.headline)
    if not verdicts.possible(run, late, sampled, gaps):
        return {}
    if headline["messages"].get("offered", headline["messages"]["expected"]):
        marking = Marking(run, matching, late)
        for group in computed.groups:
            group["bounds"] = marking.bounds(group)
    return verdicts.judge(run, late, headline)


def _not_computed(run: Run, gaps: Gaps) -> None:
    if run.t0 is not None and not run.duration_seconds:
        gaps.add("durationSeconds", "the experiment has no duration of its own, and the end of its measurement is not in the run record")
