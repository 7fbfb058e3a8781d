"""Holds dashboards against Grafana's published schema: python schema.py FILE…

Grafana's foundation SDK has types made from that schema. Fields that they do not know are lost when they read and write a dashboard.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard

# Fields of annotations that are Grafana's Prometheus data source's own; the schema has none of any data source.
OF_PROMETHEUS = {".annotations.list[0].step", ".annotations.list[0].titleFormat", ".annotations.list[0].useValueForTime"}


def unknown(path: str, written: object, kept: object) -> Iterator[str]:
    """Name what is not kept as it was written; an empty value may go."""
    if isinstance(written, dict) and isinstance(kept, dict):
        for key, value in written.items():
            if key in kept:
                yield from unknown(f"{path}.{key}", value, kept[key])
            elif value and f"{path}.{key}" not in OF_PROMETHEUS:
                yield f"{path}.{key} is {json.dumps(value)}, and the schema has no such field"
    elif isinstance(written, list) and isinstance(kept, list) and len(written) == len(kept):
        for i, (one, other) in enumerate(zip(written, kept, strict=True)):
            yield from unknown(f"{path}[{i}]", one, other)
    elif written != kept:
        yield f"{path} is {json.dumps(written)}, and {json.dumps(kept)} by the schema"


def main(files: list[str]) -> int:
    """Print what is wrong with the files and return how much that is."""
    plugins.register_default_plugins()
    problems = 0
    for file in files:
        written = json.loads(Path(file).read_text())
        kept = json.loads(json.dumps(dashboard.Dashboard.from_json(written), cls=JSONEncoder))
        for problem in unknown("", written, kept):
            print(f"{file}: {problem}")
            problems += 1
    return problems


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
