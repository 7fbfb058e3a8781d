"""Measures the analysis beside pandas on the same generated run: python3 analysis/tests/bench.py [EVENTS]

Units on 32 instances publish to all others, as in E4's setting 2, until so many events are logged; some are lost and some come twice. Each
contestant is a process of its own, so that its processor time and its peak of memory are its own; the figures of all must agree.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from lab import T0, UNIT, Lab

INSTANCES = 32
# Of each so many deliveries one is lost, or comes twice.
LOST_ONE_IN, TWICE_ONE_IN = 97, 101
# What an analysis of ten million events may take.
TARGET_SECONDS, TARGET_GIB = 60, 4
GIB = 1 << 30


def generate(directory: Path, events: int) -> Path:
    """Write a run with about so many events and return its folder."""
    lab = Lab(directory)
    names = []
    for node in ("deu", "nor", "prt", "usa"):
        lab.node(node, UNIT | {"instances": INSTANCES // 4})
        names += [f"{node}/unit/{i + 1}" for i in range(INSTANCES // 4)]
    lab.sample("nor", -1.0, 0).sample("nor", 61.0, 10**6)
    each = max(1, events // (2 * INSTANCES**2))
    lab.plan["measureEndNanoseconds"] = (each + 30) * 2_000_000_000
    path = lab.write()
    for receiver in range(INSTANCES):
        node, app, number = names[receiver].split("/")
        with (path / f"logs/{node}/{app}/messages-{number}.jsonl").open("w") as log:
            for m in range(each):
                log.write(_at_one_time(names, receiver, m))
    return path


def _at_one_time(names: list[str], receiver: int, m: int) -> str:
    """What an instance logs of everybody's m-th message."""
    ts = T0 + m * 2_000_000_000
    lines = [_line(ts, names[receiver], status, names[receiver], m) for status in ("triggered", "sent")]
    for sender in range(INSTANCES):
        chance = (m * INSTANCES + sender) * INSTANCES + receiver
        if sender != receiver and chance % LOST_ONE_IN:
            # A long tail, from a millisecond to a few seconds.
            delay = 1_000_000 + (chance * 7_919 % 10_007) ** 2 * 31
            lines += [_line(ts + delay, names[receiver], "received", names[sender], m)] * (1 if chance % TWICE_ONE_IN else 2)
            lines.append(_line(ts + delay + 20_000, names[receiver], "processed", names[sender], m))
    return "".join(lines)


def _line(ts: int, instance: str, status: str, sender: str, m: int) -> str:
    return f'{{"ts":{ts},"instance":"{instance}","status":"{status}","id":"{sender}_{m}","topic":"/{sender}","bytes":240}}\n'


def figures(run: Path, out: Path) -> dict:
    """Analyse the run; returns groups and publishers by name."""
    from vignette_analysis import analyse

    return _figures(analyse(run).results)


def files(run: Path, out: Path) -> dict:
    """Analyse the run and write all its files."""
    from vignette_analysis import analyse, outputs

    analysis = analyse(run)
    outputs.write(analysis, out)
    return _figures(analysis.results)


def _figures(results: dict) -> dict:
    return {entry["name"]: [entry["messages"], entry["delaySeconds"]] for entry in results["groups"] + results["publishers"]}


def pandas(run: Path, out: Path) -> dict:
    """Compute the same figures with pandas: everybody subscribes to everything, ids are unique and nothing is damaged."""
    import pandas as pd

    names = [name for node in json.loads((run / "run.json").read_text())["nodes"] for app in node["apps"] for name in app["instances"]]
    kinds = {"instance": pd.CategoricalDtype(names), "topic": pd.CategoricalDtype([f"/{name}" for name in names])}
    kinds["status"] = pd.CategoricalDtype(["triggered", "sent", "received", "processed"])
    logs = sorted(run.glob("logs/*/*/messages-*.jsonl"))
    events = pd.concat([pd.read_json(log, lines=True, dtype=False).astype(kinds) for log in logs], ignore_index=True)
    by_time = events.sort_values("ts", kind="stable")
    sent = by_time.loc[by_time["status"] == "sent", ["ts", "instance", "id", "topic"]].drop_duplicates(["instance", "id"])
    received = by_time.loc[by_time["status"] == "received", ["ts", "instance", "id", "topic"]]
    both = received.merge(sent.rename(columns={"ts": "sent", "instance": "publisher"}), on=["id", "topic"])
    both = both[both["instance"] != both["publisher"]]
    arrived = both.groupby(["publisher", "instance", "id"], observed=True, sort=False).agg(
        ts=("ts", "min"), count=("ts", "size"), sent=("sent", "first")
    )
    arrived = arrived.reset_index()
    node = {name: name.split("/")[0] for name in names}
    arrived["delay"] = arrived["ts"] - arrived["sent"]
    arrived["from"], arrived["to"] = arrived["publisher"].map(node), arrived["instance"].map(node)
    count = sent["instance"].value_counts()
    inside = INSTANCES // 4 - 1
    local = arrived["from"].astype(str) == arrived["to"].astype(str)
    outside = (arrived[~local], INSTANCES - 1 - inside)
    whole = {"all": (arrived, INSTANCES - 1), "radio": outside, "local": (arrived[local], inside), "cross": outside}
    found = {name: _pandas_entry(part, len(sent), len(sent) * receivers) for name, (part, receivers) in whole.items()}
    for key, names_of in (("from", sorted(set(node.values()))), ("publisher", names)):
        parts = dict(iter(arrived.groupby(key, observed=True)))
        for name in names_of:
            messages = int(count[name]) if key == "publisher" else int(sum(count[n] for n in names if node[n] == name))
            found[name] = _pandas_entry(parts[name], messages, messages * (INSTANCES - 1))
    return found


def _pandas_entry(arrived, sent: int, expected: int) -> list[dict]:
    quantiles = arrived["delay"].quantile([0, 0.25, 0.5, 0.75, 1]).to_numpy() / 1e9
    lost = expected - len(arrived)
    counts = {"sent": sent, "expected": expected, "received": len(arrived), "lost": lost, "lostPercent": 100 * lost / expected}
    counts["duplicates"] = int(arrived["count"].sum()) - len(arrived)
    return [counts, dict(zip(("min", "p25", "median", "p75", "max"), map(float, quantiles), strict=True))]


CONTESTANTS: dict[str, Callable[[Path, Path], dict]] = {"figures": figures, "files": files, "pandas": pandas}
_TITLES = {"figures": "vignette, figures", "files": "vignette, figures and all files", "pandas": "pandas, figures"}


def measure(name: str, run: Path, scratch: Path) -> tuple[dict, float, float, float]:
    """Run a contestant as a process: its figures, wall seconds, processor seconds, and peak memory in GiB."""
    answer = scratch / f"{name}.json"
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, __file__, "--contestant", name, str(run), str(answer)])
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name}: exit code {process.returncode}")
    return json.loads(answer.read_text()), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / GIB


def differences(one: dict, other: dict) -> list[str]:
    """Names of the entries in which two contestants' figures differ by more than rounding."""
    differing = sorted(set(one) ^ set(other))
    for name in set(one) & set(other):
        (counts, delays), (counts_too, delays_too) = one[name], other[name]
        same = all(abs(counts[c] - counts_too[c]) < 1e-9 for c in counts_too) and all(abs(delays[q] - delays_too[q]) < 1e-9 for q in delays_too)
        differing += [] if same else [name]
    return differing


def main() -> None:
    """Print what each contestant takes, and whether they agree."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with TemporaryDirectory(prefix="vignette-bench-") as scratch:
        run = generate(Path(scratch) / "run", events)
        logged = sum(log.read_bytes().count(b"\n") for log in run.glob("logs/*/*/messages-*.jsonl"))
        print(f"{logged} message events of {INSTANCES} instances, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True)
        print(f"{'':32}{'wall s':>9}{'CPU s':>9}{'µs/event':>10}{'GiB':>7}{'wall':>8}{'memory':>8}  (to pandas' one)", flush=True)
        measured = {}
        for name in ("pandas", "figures", "files"):
            measured[name] = _, wall, cpu, memory = measure(name, run, Path(scratch))
            _, base_wall, _, base_memory = measured["pandas"]
            ratios = f"{wall / base_wall:8.2f}{memory / base_memory:8.2f}"
            print(f"{_TITLES[name]:32}{wall:9.1f}{cpu:9.1f}{cpu / logged * 1e6:10.2f}{memory:7.2f}{ratios}", flush=True)
    for name in ("figures", "files"):
        if differing := differences(measured[name][0], measured["pandas"][0]):
            raise SystemExit(f"figures of {', '.join(differing)} differ between {name} and pandas")
    print(f"all {len(measured['pandas'][0])} groups and publishers agree: sent, expected, received, lost, duplicates and five quantiles each")
    _, wall, _, memory = measured["files"]
    if logged > 9_900_000:
        met = wall < TARGET_SECONDS and memory < TARGET_GIB
        print(f"target, with all files: {TARGET_SECONDS} s of wall time and {TARGET_GIB} GiB: {'met' if met else 'not met'}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--contestant"]:
        Path(sys.argv[4]).write_text(json.dumps(CONTESTANTS[sys.argv[2]](Path(sys.argv[3]), Path(sys.argv[4]).with_suffix(".out"))))
    else:
        main()
