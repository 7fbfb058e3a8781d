"""Measures comparisons of many runs: python3 analysis/tests/bench_comparison.py [RUNS [DELIVERIES [REPEATS]]]

Runs of a campaign with three axes, as E8's, and REPEATS of each point, of so many deliveries each; delays have long tails and some are
lost. Every comparison is a process of its own, as beside the server, so that its processor time and its peak of memory are its own.
"""

import json
import os
import sys
import time
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from lab import T0, UNIT, Lab

from vignette_analysis.comparison.comparing import select
from vignette_analysis.comparison.loading import SCHEMA_VERSION
from vignette_analysis.figures import quantiles

NODES = ("deu", "nor", "prt", "usa")
INSTANCES = 32
SIZES = {"network": 6, "messaging": 7, "payload": 25}


def campaign(folder: Path, runs: int, deliveries: int, repeats: int) -> list[Path]:
    """Write runs that are analysed already, and return their folders."""
    # The first axis varies fastest, so that few points have levels of all.
    reverse = product(*(range(size) for size in reversed(SIZES.values())))
    points = (levels[::-1] for levels in islice(reverse, (runs + repeats - 1) // repeats))
    return [_run(folder, i, levels, repeat, deliveries) for i, (levels, repeat) in enumerate(islice(product(points, range(repeats)), runs))]


def _run(folder: Path, number: int, levels: tuple[int, ...], repeat: int, count: int) -> Path:
    lab = Lab(folder / f"run-{number}")
    for node in NODES:
        lab.node(node, UNIT | {"instances": INSTANCES // len(NODES)})
    names = {axis: f"{axis}-{level}" for axis, level in zip(SIZES, levels, strict=True)}
    spec = {
        "seed": repeat,
        "apps": list(lab.apps.values()),
        "networks": [{"name": "wan", "waveform": names["network"]}],
        "duration": names["payload"],
    }
    place = {"name": "e8", "uid": "c1", "round": 1, "point": "-".join(names.values()), "levels": names}
    lab.plan |= {"uid": f"uid-{number:04}", "name": f"e8-{number}", "spec": spec | {"messaging": names["messaging"]}, "campaign": place}
    path = lab.write()
    (path / "results").mkdir()
    table = _deliveries(np.random.default_rng(number), levels, count)
    table.write_parquet(path / "results" / "deliveries.parquet", compression="zstd")
    (path / "results" / "results.json").write_text(json.dumps(_results(table)))
    return path


def _deliveries(random: np.random.Generator, levels: tuple[int, ...], count: int) -> pl.DataFrame:
    publishers = [f"{node}/unit/{i + 1}" for node in NODES for i in range(INSTANCES // len(NODES))]
    sender = np.arange(count) % INSTANCES
    sent = T0 + np.arange(count) // INSTANCES // (INSTANCES - 1) * 2_000_000_000 + sender
    delay = (random.lognormal(0, 1, count) * 1e7 * (1 + levels[0]) * random.normal(1, 0.05)).astype(np.int64) + 10**6 * levels[1]
    table = pl.DataFrame({"publisher": pl.Series(publishers).gather(sender), "sent": sent, "received": sent + delay})
    lost = pl.Series(random.random(count) < 0.01 * (1 + levels[2] % 5))
    table = table.with_columns(received=pl.when(~lost).then("received"))
    local = pl.Series(random.random(count) < 0.2)
    return table.with_columns(
        pl.col("sent", "received").cast(pl.Datetime("ns", "UTC")), radio=~local, local=local, cross=~local, group=pl.col("publisher").str.slice(0, 3)
    )


def _results(table: pl.DataFrame) -> dict:
    table = table.with_columns(delay=pl.col("received").cast(pl.Int64) - pl.col("sent").cast(pl.Int64), group=pl.col("group").cast(pl.Enum(NODES)))
    groups = [{"name": name} | _figures(table.filter(pl.Series(select(table, name)))) for name in ("all", "radio", "local", "cross", *NODES)]
    publishers = [{"name": p, "node": p[:3]} | _figures(some) for (p,), some in table.group_by("publisher", maintain_order=True)]
    networks = [{"name": "wan", "bytesPerSecond": 1234.5}]
    return {
        "schemaVersion": SCHEMA_VERSION,
        "verdict": {"keptUp": True, "late": None},
        "groups": groups,
        "publishers": publishers,
        "networks": networks,
        "gaps": None,
    }


def _figures(table: pl.DataFrame) -> dict:
    lost = table["delay"].null_count()
    sent, received = table["sent"].n_unique(), table.height - lost
    counts = {"triggered": sent, "sent": sent, "offered": table.height, "expected": table.height, "received": received, "lost": lost, "duplicates": 0}
    percent = 100 * lost / table.height if table.height else 0.0
    messages = counts | {"lostPercent": percent, "deliveredPercent": 100 - percent}
    return {"messages": messages, "delaySeconds": quantiles(np.sort(table["delay"].drop_nulls().to_numpy()))}


def measured(folders: list[Path], form: str, *more: str) -> None:
    """Compare runs in a process of its own, and print what it took."""
    out = folders[0].parent / "answer"
    begin = time.perf_counter()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "vignette_analysis", "compare", *map(str, folders), f"--format={form}", *more],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, str(out), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)],
    )
    _, status, usage = os.wait4(pid, 0)
    what = " ".join([form, *more])
    print(
        f"{what:<24} {time.perf_counter() - begin:7.1f} s  CPU {usage.ru_utime + usage.ru_stime:7.1f} s  memory {usage.ru_maxrss / 1024:6.0f} MiB"
        f"  {out.stat().st_size / 2**20:6.2f} MiB" + (f"  exit code {os.waitstatus_to_exitcode(status)}" if status else ""),
        flush=True,
    )


def main() -> None:
    """Print the time, the memory and the size of a comparison."""
    runs, deliveries, repeats = (*map(int, sys.argv[1:]), *(500, 30_000, 6)[len(sys.argv) - 1 :])
    with TemporaryDirectory() as scratch:
        folders = campaign(Path(scratch), runs, deliveries, repeats)
        print(f"{runs} runs of {deliveries} deliveries, {repeats} of each point; load {os.getloadavg()[0]:.1f}", flush=True)
        measured(folders, "json")
        measured(folders, "html")
        measured(folders, "json", "--by=network")


if __name__ == "__main__":
    main()
