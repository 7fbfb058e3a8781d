"""Measures the analysis on a generated run: python3 analysis/tests/bench.py [EVENTS]

Units on 32 instances publish to all others, as in E4's setting 2, until so many events are logged.
"""

import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from lab import T0, UNIT, Lab

from vignette_analysis import analyse, outputs

INSTANCES = 32


def generate(directory: Path, events: int) -> Path:
    """Write a run with about so many events and return its folder."""
    lab = Lab(directory)
    names = []
    for node in ("deu", "nor", "prt", "usa"):
        lab.node(node, UNIT | {"instances": INSTANCES // 4})
        names += [f"{node}/unit/{i + 1}" for i in range(INSTANCES // 4)]
    lab.sample("nor", -1.0, 0).sample("nor", 61.0, 10**6)
    each = max(1, events // (INSTANCES * (INSTANCES + 1)))
    lab.plan["measureEndNanoseconds"] = (each + 30) * 2_000_000_000
    path = lab.write()
    for receiver in names:
        node, app, number = receiver.split("/")
        with (path / f"logs/{node}/{app}/messages-{number}.jsonl").open("w") as log:
            for m in range(each):
                ts = T0 + m * 2_000_000_000
                for status in ("triggered", "sent"):
                    log.write(_line(ts, receiver, status, receiver, m))
                for i, sender in enumerate(names):
                    if sender != receiver:
                        log.write(_line(ts + 1_000_000 + i, receiver, "received", sender, m))
    return path


def _line(ts: int, instance: str, status: str, sender: str, m: int) -> str:
    return f'{{"ts":{ts},"instance":"{instance}","status":"{status}","id":"{sender}_{m}","topic":"/{sender}","bytes":240}}\n'


def main() -> None:
    """Print the time and memory that an analysis takes."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with TemporaryDirectory() as scratch:
        run = generate(Path(scratch) / "run", events)
        begin = time.perf_counter()
        analysis = analyse(run)
        computed = time.perf_counter() - begin
        outputs.write(analysis, Path(scratch) / "out")
        total = time.perf_counter() - begin
        assert analysis.results["messages"]["lost"] == 0, analysis.results["messages"]
        usage = resource.getrusage(resource.RUSAGE_SELF)
        print(f"{events} events: figures {computed:.1f} s, with files {total:.1f} s, {total / events * 1e6:.2f} µs an event")
        print(f"CPU {usage.ru_utime + usage.ru_stime:.1f} s with the generation, peak memory {usage.ru_maxrss / 1024**2:.2f} GiB")


if __name__ == "__main__":
    main()
