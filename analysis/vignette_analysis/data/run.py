"""A run's records on disk: run.json, state.json, manifest.json."""

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path, PurePosixPath

# The newest version of records that is read (runapi.SchemaVersion); all older ones are too.
SCHEMA_VERSION = 2

# The log of a node's true positions, in the folder of one of its apps.
POSITIONS_LOG = "positions.jsonl"
# The id of the action that spec.stop adds (internal/core/timeline, EarlyStopID).
EARLY_STOP = "early-stop"
RUN_FILE, STATE_FILE, MANIFEST_FILE, EVENTS_FILE = "run.json", "state.json", "manifest.json", "events.jsonl"


# The seal, which writes the manifest, looks for what the archive lacks.
_WITHOUT = {MANIFEST_FILE: "; without the manifest of a sealed run nobody knows what the archive lacks"}


class RunError(Exception):
    """The run cannot be analysed at all."""


@dataclass(frozen=True)
class Instance:
    """One process of an app, from the plan."""

    number: int
    name: str
    node: str
    group: str
    app: str
    kind: str
    publishes: bool
    subscribes: bool
    protocol: str
    # The node of its broker; its own node without a broker.
    broker_node: str
    # Its brokers, as node/app, and the networks on which it broadcasts; none if the plan does not say.
    brokers: tuple[str, ...]
    message_log: str
    # Of the scenario, whose position its messages report, with the log of its true positions; None for its node's own.
    platform: int | None
    platform_log: str

    @property
    def broker_nodes(self) -> set[str]:
        """The nodes of all its brokers: with several (failover) it uses one at a time."""
        return {self.broker_node} | ({broker.partition("/")[0] for broker in self.brokers} if len(self.brokers) > 1 else set())

    @property
    def reported(self) -> str:
        """Whose position its messages report: its own name, if it has a platform of its own, else its node's."""
        return self.node if self.platform is None else self.name


@dataclass
class Run:
    """The archive's records of a run."""

    directory: Path
    plan: dict
    state: dict | None = None
    manifest: dict | None = None
    # Problems with the records themselves: (file, reason).
    problems: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def load(cls, directory: Path) -> "Run":
        """Read a run's folder. Only run.json is required."""
        try:
            plan = json.loads((directory / RUN_FILE).read_text())
        except (OSError, ValueError) as error:
            raise RunError(f"{directory / RUN_FILE}: {unreadable(error)}: without the plan nothing can be analysed") from error
        _check_version(directory / RUN_FILE, plan)
        run = cls(directory, plan)
        run.state = run._optional(STATE_FILE)
        run.manifest = run._optional(MANIFEST_FILE)
        return run

    def _optional(self, name: str) -> dict | None:
        try:
            record = json.loads((self.directory / name).read_text())
        except FileNotFoundError:
            self.problems.append((name, f"there is no such file{_WITHOUT.get(name, '')}"))
            return None
        except ValueError as error:
            self.problems.append((name, f"{unreadable(error)}{_WITHOUT.get(name, '')}"))
            return None
        if not isinstance(record, dict):
            self.problems.append((name, f"JSON, but no object{_WITHOUT.get(name, '')}"))
            return None
        _check_version(self.directory / name, record)
        return record

    @cached_property
    def t0(self) -> int | None:
        """T0 in Unix nanoseconds."""
        text = self.plan.get("t0")
        return nanoseconds(text) if text else None

    @cached_property
    def window(self) -> tuple[int, int] | None:
        """The measuring window in Unix nanoseconds: the first start of a publisher to the end of the drain."""
        start, end = self.plan.get("measureStartNanoseconds"), self.plan.get("measureEndNanoseconds")
        if self.t0 is None or start is None or end is None or end <= start:
            return None
        return self.t0 + start, self.t0 + end

    @cached_property
    def measure_end(self) -> int | None:
        """The end of the drain in Unix nanoseconds. Messages received later do not count."""
        end = self.plan.get("measureEndNanoseconds")
        return None if self.t0 is None or end is None else self.t0 + end

    @cached_property
    def duration_seconds(self) -> float:
        """Seconds from T0 to the end of the drain; without one, the spec's duration, or 0."""
        end = self.plan.get("measureEndNanoseconds")
        return end / 1e9 if end is not None else duration(self.plan.get("spec", {}).get("duration") or "0s")

    def since_t0(self, ts: int | None) -> float | None:
        """Seconds after T0 of a time in Unix nanoseconds."""
        return None if ts is None or self.t0 is None else (ts - self.t0) / 1e9

    @cached_property
    def first_starts(self) -> dict[tuple[str, str], int]:
        """When each app of a node is to start first, by node and app, in nanoseconds after T0."""
        found: dict[tuple[str, str], int] = {}
        for action in self.plan.get("armed") or []:
            if action.get("verb") == "start":
                for target in action["targets"]:
                    key = target["node"], target["app"]
                    found[key] = min(found.get(key, action["atNanoseconds"]), action["atNanoseconds"])
        return found

    @cached_property
    def nodes(self) -> list[dict]:
        """The planned nodes."""
        return self.plan.get("nodes") or []

    @cached_property
    def instances(self) -> list[Instance]:
        """Every planned instance, in the plan's order."""
        found: list[Instance] = []
        for node in self.nodes:
            for app in node.get("apps") or []:
                publishes, subscribes = bool(app.get("publishes")), bool(app.get("subscribes"))
                names = [(name, i + 1, publishes, subscribes) for i, name in enumerate(app.get("instances") or [])]
                # A process with several names has one message log, and receives under its first name.
                names += [(name, 1, True, False) for name in app.get("senders") or []]
                found += [_instance(len(found) + i, node, app, *one) for i, one in enumerate(names)]
        return found

    @cached_property
    def streams(self) -> dict:
        """The table of who should receive whose messages (runapi.Streams)."""
        if table := self.plan.get("streams"):
            return table
        lacking = "has no streams, the table of who should receive what, as a run of version 1 of the records"
        raise RunError(f"{self.directory / RUN_FILE} {lacking}: take its results as they are, or the analysis of the version that made the run")

    def files(self, pattern: str) -> list[Path]:
        """Archived files by pattern, in order."""
        return sorted(self.directory.glob(pattern))

    def relative(self, path: Path) -> str:
        """A file's path as the archive names it."""
        return path.relative_to(self.directory).as_posix()


def stopped_early(plan: dict) -> float | None:
    """Seconds after T0 at which spec.stop ended a run before its timeline's end; None of all others. A live cluster ends no other way."""
    spec = plan.get("spec") or {}
    stop = next((action["atNanoseconds"] / 1e9 for action in plan.get("armed") or [] if action.get("id") == EARLY_STOP), None)
    if stop is None or not spec.get("duration"):
        return None
    ends = [duration(spec["duration"]), *(duration(entry["at"]) for entry in spec.get("timeline") or [])]
    return stop if stop < max(ends) else None


def unreadable(error: OSError | ValueError) -> str:
    """Why a file of JSON could not be read, in plain words."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON from line {error.lineno}, column {error.colno} on"
    return (error.strerror or "it cannot be read").lower() if isinstance(error, OSError) else "no text in UTF-8"


def is_log(path: str) -> bool:
    """Report whether an archived file is a log that figures are computed from."""
    name = PurePosixPath(path).name
    return path.startswith("radio/") or name in ("agent.jsonl", POSITIONS_LOG) or name.startswith(("messages-", "positions-"))


def _instance(number: int, node: dict, app: dict, name: str, log: int, publishes: bool, subscribes: bool) -> Instance:
    platforms = app.get("platforms") or []
    return Instance(
        number=number,
        name=name,
        node=node["name"],
        group=node["group"],
        app=app["name"],
        kind=app["kind"],
        publishes=publishes,
        subscribes=subscribes,
        protocol=app.get("protocol", ""),
        broker_node=app.get("brokerNode") or node["name"],
        brokers=tuple(app.get("brokers") or ()),
        message_log=f"logs/{node['name']}/{app['name']}/messages-{log}.jsonl",
        platform_log=f"logs/{node['name']}/{app['name']}/positions-{log}.jsonl",
        platform=platforms[log - 1] if log <= len(platforms) else None,
    )


def _check_version(path: Path, record: object) -> None:
    """Refuse records of a later version, as they may mean something else."""
    if not isinstance(record, dict):
        raise RunError(f"{path}: want an object with schemaVersion 1 to {SCHEMA_VERSION}")
    version = record.get("schemaVersion")
    if not isinstance(version, int) or version < 1:
        raise RunError(f"{path} has no schemaVersion, or {version!r}: want 1 to {SCHEMA_VERSION}")
    if version > SCHEMA_VERSION:
        raise RunError(f"{path} has schemaVersion {version}, and this analysis reads versions up to {SCHEMA_VERSION}: take a newer one")


def nanoseconds(text: str) -> int:
    """Convert an RFC 3339 time with up to nine digits of fraction to Unix nanoseconds, exactly."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", text)
    if not match:
        raise RunError(f"time {text!r}: want RFC 3339, such as 2026-01-02T03:04:05.678Z")
    whole = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
    return int(whole.timestamp()) * 10**9 + int((match[2] or "").ljust(9, "0"))


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """Convert a duration such as 100ms, 21m or 1h30m to seconds."""
    parts = re.findall(r"([0-9.]+)(ns|us|µs|ms|s|m|h)", text)
    if "".join(number + unit for number, unit in parts) != text or not parts:
        raise RunError(f"duration {text!r}: want numbers with units, such as 21m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
