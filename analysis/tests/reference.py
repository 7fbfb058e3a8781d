"""Every figure of messages once more, from the logs: slowly, in plain Python and exact arithmetic, and in another way than the analysis does.

Of expectations it knows only what the tests that use it plan: no brokers, one protocol, filters that are "#" or a topic.
"""

import json
import math
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from itertools import groupby
from pathlib import Path

STATUSES = ("triggered", "sent", "received", "processed")
REQUEST_STATUSES = ("receipt", "retransmitted", "failed")
REASONS = ("timeout", "reset", "refused", "unreachable", "rejected", "cancelled", "invalid")
STAGES = {
    "triggeredToSent": ("triggered", "sent"),
    "sentToReceived": ("sent", "received"),
    "receivedToProcessed": ("received", "processed"),
    "triggeredToProcessed": ("triggered", "processed"),
}


@dataclass
class Instance:
    name: str
    node: str
    group: str
    log: str
    topic: str
    filters: list[str]
    publishes: bool


@dataclass
class Message:
    publisher: str
    id: str
    topic: str
    sent: int
    triggered: int | None = None
    ambiguous: bool = False


@dataclass
class Delivery:
    message: Message
    subscriber: str
    received: list[int] = field(default_factory=list)
    processed: list[int] = field(default_factory=list)

    def times(self) -> dict[str, int | None]:
        """The four measuring points, None where there is none that counts."""
        received = min(self.received, default=None)
        processed = min(self.processed, default=None) if self.received else None
        return {"triggered": self.message.triggered, "sent": self.message.sent, "received": received, "processed": processed}


@dataclass
class Request:
    """What became of a message that asked for a response."""

    publisher: str
    id: str
    topic: str
    sent: int | None
    receipts: list[int]
    failures: list[tuple[int, str]]
    repeats: int

    def outcome(self) -> tuple[str | None, int | None]:
        """The reason, None for a receipt, and when."""
        receipt = min(self.receipts, default=None) if self.sent is not None else None
        failure = min(self.failures, key=lambda f: f[0], default=None)
        if receipt is not None and (failure is None or receipt <= failure[0]):
            return None, receipt
        return (failure[1], failure[0]) if failure else ("inFlightAtEnd", None)


def reason_of(text: str | None) -> str:
    word = (text or "").split(":")[0].strip()
    return word if word in REASONS else "other"


class Reference:
    """The truth of a run's folder. Times are Unix nanoseconds."""

    def __init__(self, directory: Path):
        plan = json.loads((directory / "run.json").read_text())
        self.t0 = int(datetime.fromisoformat(plan["t0"].replace("Z", "+00:00")).timestamp()) * 10**9
        self.end = self.t0 + plan["measureEndNanoseconds"]
        self.instances = {i.name: i for i in instances(plan)}
        self.bad: dict[str, int] = {}
        self.missing: set[str] = set()
        # Logs whose last line is cut off: it counts as no bad one.
        self.torn: set[str] = set()
        self.events: dict[str, list[dict]] = {}
        for name, instance in self.instances.items():
            self.events[name] = self.read(directory, instance.log)
        self.messages = self.find_messages()
        self.deliveries = self.expect()
        self.late, self.unknown, self.unexpected = 0, defaultdict(int), defaultdict(set)
        self.only_processed: dict[str, set] = defaultdict(set)
        self.receive()

    def read(self, directory: Path, log: str) -> list[dict]:
        if not (directory / log).exists():
            self.missing.add(log)
            return []
        events, bad = [], 0
        *lines, rest = (directory / log).read_bytes().split(b"\n")
        if rest:
            self.torn.add(log)
        for line in lines:
            if not line.strip():
                continue
            try:
                event = json.loads(line)
                good = event["ts"] > 0 and event["id"] and event["instance"] and event["status"] in STATUSES + REQUEST_STATUSES
            except (ValueError, TypeError, KeyError):
                good = False
            events += [event] if good else []
            bad += not good
        self.bad[log] = bad
        return events

    def of(self, name: str, status: str) -> list[dict]:
        return [e for e in self.events[name] if e["status"] == status]

    def find_messages(self) -> list[Message]:
        found: dict[tuple, Message] = {}
        self.repeated, self.never_sent = {}, {}
        for name, instance in self.instances.items():
            sent = sorted(self.of(name, "sent"), key=lambda e: (e["ts"], e["id"]))
            for event in sent:
                topic = event.get("topic") or instance.topic
                found.setdefault((name, event["id"]), Message(name, event["id"], topic, event["ts"]))
            self.repeated[name] = len(sent) - len({e["id"] for e in sent})
            unsent = {}
            for event in self.of(name, "triggered"):
                message = found.get((name, event["id"]))
                if message is None:
                    unsent[event["id"]] = event.get("topic") or instance.topic
                else:
                    message.triggered = min(message.triggered or event["ts"], event["ts"])
            self.never_sent[name] = unsent
        for message in found.values():
            message.ambiguous = sum((m.id, m.topic) == (message.id, message.topic) for m in found.values()) > 1
        order = {name: i for i, name in enumerate(self.instances)}
        return sorted(found.values(), key=lambda m: (m.sent, order[m.publisher], m.id))

    def subscribers(self, publisher: str, topic: str) -> list[str]:
        return [n for n, i in self.instances.items() if n != publisher and any(f in ("#", topic) for f in i.filters)]

    def expect(self) -> list[Delivery]:
        return [Delivery(m, s) for m in self.messages if not m.ambiguous for s in self.subscribers(m.publisher, m.topic)]

    def message_of(self, event: dict) -> Message | None:
        if event.get("topic"):
            return next((m for m in self.messages if (m.id, m.topic) == (event["id"], event["topic"])), None)
        same_id = [m for m in self.messages if m.id == event["id"]]
        return same_id[0] if len(same_id) == 1 else None

    def receive(self) -> None:
        rows = {(d.message.publisher, d.message.id, d.subscriber): d for d in self.deliveries}
        for name in self.instances:
            other_received, other_processed = set(), set()
            for event in self.of(name, "received") + self.of(name, "processed"):
                processed = event["status"] == "processed"
                message = self.message_of(event)
                if event["ts"] > self.end:
                    self.late += not processed and message is not None and not message.ambiguous
                    continue
                delivery = message and not message.ambiguous and rows.get((message.publisher, message.id, name))
                if delivery:
                    (delivery.processed if processed else delivery.received).append(event["ts"])
                    continue
                (other_processed if processed else other_received).add((event["id"], event.get("topic")))
                if processed:
                    continue
                if message is None:
                    self.unknown[name] += 1
                elif not message.ambiguous and message.publisher != name:
                    self.unexpected[name].add((message.publisher, message.id))
            orphans = {(d.message.id, d.message.topic) for d in self.deliveries if d.subscriber == name and d.processed and not d.received}
            self.only_processed[name] = orphans | (other_processed - other_received)

    def find_requests(self) -> tuple[list[Request], dict[str, int]]:
        """Requests in order of sending, then those never sent, and the number of events of nobody's messages by instance."""
        found, strangers = [], defaultdict(int)
        for name in self.instances:
            known = {m.id: Request(name, m.id, m.topic, m.sent, [], [], 0) for m in self.messages if m.publisher == name}
            known |= {id: Request(name, id, topic, None, [], [], 0) for id, topic in self.never_sent[name].items()}
            for event in [e for status in REQUEST_STATUSES for e in self.of(name, status) if e["ts"] <= self.end]:
                request = known.get(event["id"])
                if request is None:
                    strangers[name] += 1
                elif event["status"] == "receipt":
                    request.receipts.append(event["ts"])
                elif event["status"] == "failed":
                    request.failures.append((event["ts"], reason_of(event.get("text"))))
                else:
                    request.repeats += 1
            answered = {r.topic for r in known.values() if r.receipts}
            found += [r for r in known.values() if r.topic in answered or r.receipts or r.failures or r.repeats]
        return found, strangers

    def request_figures(self, of_publisher, of_pair) -> dict | None:
        """Counts and response times in ns; None where there are no requests."""
        some = []
        for r in self.find_requests()[0]:
            reached = of_publisher(r.publisher) if of_publisher else any(of_pair(r.publisher, s) for s in self.subscribers(r.publisher, r.topic))
            some += [r] if reached else []
        reasons = [r.outcome()[0] for r in some]
        counts = {
            "triggered": len(some),
            "sent": sum(r.sent is not None for r in some),
            "receipts": reasons.count(None),
            "failed": {x: reasons.count(x) for x in (*REASONS, "other") if x in reasons} or None,
            "outstanding": reasons.count("inFlightAtEnd"),
            "retransmissions": sum(r.repeats for r in some if r.sent is not None),
        }
        return counts | {"times": sorted(r.outcome()[1] - r.sent for r in some if r.outcome()[0] is None)} if some else None

    def request_gaps(self) -> set[tuple[str, int]]:
        """The name and number of every gap of requests."""
        requests, strangers = self.find_requests()
        found = {(f"requests of {name}", count) for name, count in strangers.items()}
        for name in self.instances:
            own = [r for r in requests if r.publisher == name]
            numbers = (
                sum(len(r.receipts) + r.repeats for r in own if r.sent is None),
                sum(max(len(r.receipts) - 1, 0) for r in own),
                sum(max(len(r.failures) - 1, 0) for r in own),
                sum(r.sent is not None and bool(r.receipts) and bool(r.failures) for r in own),
                sum(reason == "other" for r in own for _, reason in r.failures),
            )
            found |= {(f"requests of {name}", n) for n in numbers if n}
        known = {(m.publisher, m.id) for m in self.messages} | {(name, id) for name, ids in self.never_sent.items() for id in ids}
        after = [(name, e["id"]) for name in self.instances for status in REQUEST_STATUSES for e in self.of(name, status) if e["ts"] > self.end]
        late = not known.isdisjoint(after)
        outstanding = sum(r.outcome()[0] == "inFlightAtEnd" for r in requests)
        early = sum(r.outcome()[0] is None and r.outcome()[1] < r.sent for r in requests)
        found |= {("requests in flight", outstanding)} if late or outstanding else set()
        return found | ({("negative delays", early)} if early else set())

    def pair_scopes(self) -> dict[tuple[str, str], tuple]:
        """By groups of sender and receiver with planned deliveries, in the plan's order: tests for messages' publishers and deliveries."""
        topics = {(m.publisher, m.topic) for m in self.messages} | {(p, t) for p, ids in self.never_sent.items() for t in ids.values()}
        topics |= {(n, i.topic) for n, i in self.instances.items() if i.topic}
        group = {n: i.group for n, i in self.instances.items()}
        planned = {(group[p], group[s]) for p, topic in topics for s in self.subscribers(p, topic)}
        order = list(dict.fromkeys(group.values()))
        pairs = sorted(planned, key=lambda pair: (order.index(pair[0]), order.index(pair[1])))
        return {(a, b): (None, lambda p, s, a=a, b=b: (group[p], group[s]) == (a, b)) for a, b in pairs}

    # What follows is of a scope: (scope, name) with name None for all, radio, local and cross.

    def scopes(self) -> dict[tuple, tuple]:
        """By scope: tests for messages' publishers and for deliveries."""
        senders = {m.publisher for m in self.messages}
        publishing = [i for i in self.instances.values() if i.publishes or i.name in senders]

        def related(kind: str, publisher: str, subscriber: str) -> bool:
            a, b = self.instances[publisher], self.instances[subscriber]
            return {"radio": a.node != b.node, "local": a.node == b.node, "cross": a.group != b.group}[kind]

        found = {("all", None): (lambda p: True, lambda p, s: True)}
        for kind in ("radio", "local", "cross"):
            found[kind, None] = (None, lambda p, s, kind=kind: related(kind, p, s))
        for group in dict.fromkeys(i.group for i in publishing):
            found["group", group] = (lambda p, g=group: self.instances[p].group == g, lambda p, s, g=group: self.instances[p].group == g)
        for i in publishing:
            found["publisher", i.name] = (lambda p, n=i.name: p == n, lambda p, s, n=i.name: p == n)
        for i in self.instances.values():
            if i.filters:
                found["subscriber", i.name] = (None, lambda p, s, n=i.name: s == n)
        return found

    def counted(self, scope: tuple) -> dict[str, float]:
        of_publisher, of_pair = (self.scopes() | self.pair_scopes())[scope]
        some = [d for d in self.deliveries if of_pair(d.message.publisher, d.subscriber)]
        received = sum(bool(d.received) for d in some)
        lost = len(some) - received
        if of_publisher:
            sent = sum(of_publisher(m.publisher) for m in self.messages)
            unsent = sum(len(ids) for p, ids in self.never_sent.items() if of_publisher(p))
        else:
            sent = len({id(d.message) for d in some})
            unsent = sum(any(of_pair(p, s) for s in self.subscribers(p, topic)) for p, ids in self.never_sent.items() for topic in ids.values())
        offered = len(some)
        offered += sum(of_pair(p, s) for p, ids in self.never_sent.items() for topic in ids.values() for s in self.subscribers(p, topic))
        return {
            "triggered": sent + unsent,
            "sent": sent,
            "offered": offered,
            **({"deliveredPercent": 100 * received / offered} if offered else {}),
            "expected": len(some),
            "received": received,
            "lost": lost,
            "lostPercent": 100 * lost / len(some) if some else 0,
            "duplicates": sum(len(d.received) - 1 for d in some if d.received),
            "neverSent": unsent,
        }

    def durations(self, scope: tuple, stage: str) -> list[int]:
        """Nanoseconds between two measuring points, in ascending order."""
        start, end = STAGES[stage]
        of_publisher, of_pair = (self.scopes() | self.pair_scopes())[scope]
        some = [d for d in self.deliveries if of_pair(d.message.publisher, d.subscriber)]
        if end != "sent":
            both = [(t[start], t[end]) for t in (d.times() for d in some)]
        elif of_publisher:
            both = [(m.triggered, m.sent) for m in self.messages if of_publisher(m.publisher)]
        else:
            both = [(m.triggered, m.sent) for m in {id(d.message): d.message for d in some}.values()]
        return sorted(b - a for a, b in both if a is not None and b is not None)

    # What follows is of pairs, in order of publisher and subscriber.

    def pairs(self) -> dict[tuple[str, str], list[Delivery]]:
        """Deliveries of each pair in the order in which they were sent."""
        found = defaultdict(list)
        for p in self.instances:
            for s in self.instances:
                some = [d for d in self.deliveries if (d.message.publisher, d.subscriber) == (p, s)]
                found[p, s] += some
        return {pair: some for pair, some in found.items() if some}

    def seconds(self, ts: int) -> float:
        return (ts - self.t0) / 1e9

    def sequences(self) -> list[tuple]:
        rows = []
        for pair, deliveries in self.pairs().items():
            runs = []
            position = 0
            for lost, part in groupby(deliveries, key=lambda d: not d.received):
                part = list(part)
                position += len(part)
                if lost:
                    after = deliveries[position].message.sent if position < len(deliveries) else None
                    runs.append((part, after))
            longest = max((len(part) for part, _ in runs), default=0)
            for part, after in runs:
                first, last = part[0].message, part[-1].message
                outage = None if after is None else (after - first.sent) / 1e9
                is_longest = len(part) == longest
                longest = math.inf if is_longest else longest
                rows.append((*pair, first.id, last.id, len(part), self.seconds(first.sent), self.seconds(last.sent), outage, is_longest))
        return rows

    def arrivals(self, deliveries: list[Delivery]) -> list[tuple[int, int]]:
        """(received, sent) in order of arrival."""
        return sorted((min(d.received), d.message.sent) for d in deliveries if d.received)

    def order(self) -> list[tuple]:
        rows = []
        for pair, deliveries in self.pairs().items():
            came = self.arrivals(deliveries)
            extents, lateness = [], []
            for i, (at, sent) in enumerate(came):
                overtaken_by = [j for j in range(i) if came[j][1] > sent]
                if overtaken_by:
                    extents.append(i - overtaken_by[0])
                    lateness.append(at - came[overtaken_by[0]][0])
            n = len(extents)
            row = (len(came), n, 100 * n / len(came) if came else None)
            row += (sum(extents) / n, max(extents), float(Fraction(sum(lateness), n * 10**9)), max(lateness) / 1e9) if n else (None,) * 4
            rows.append((*pair, *row, sum(len(d.received) - 1 for d in deliveries if d.received)))
        return rows

    def age(self) -> list[tuple]:
        """By the definition, between all the times at which anything came: there the age is a straight line."""
        rows = []
        for pair, deliveries in self.pairs().items():
            came = self.arrivals(deliveries)
            if not came:
                rows.append((*pair, None, None, 0, None, None, None))
                continue
            times = sorted({at for at, _ in came} | {self.end})
            area, greatest, peaks, updates = Fraction(0), -math.inf, [], 1
            for i, start in enumerate(times):
                freshest = max(sent for at, sent in came if at <= start)
                stop = times[i + 1] if i + 1 < len(times) else start
                area += Fraction((stop - start) * ((start - freshest) + (stop - freshest)), 2)
                greatest = max(greatest, start - freshest, stop - freshest)
            for i, (at, sent) in enumerate(came[1:], 1):
                before = max(s for _, s in came[:i])
                if sent > before:
                    updates += 1
                    peaks.append(at - before)
            length = self.end - came[0][0]
            mean = float(area / length / 10**9) if length else None
            peak = float(Fraction(sum(peaks), len(peaks) * 10**9)) if peaks else None
            rows.append((*pair, self.seconds(came[0][0]), self.seconds(self.end), updates, mean, peak, greatest / 1e9))
        return rows


def instances(plan: dict):
    """Every instance of a plan."""
    for node in plan["nodes"]:
        for app in node["apps"]:
            for i, name in enumerate(app["instances"]):
                topics = app.get("publishTopics") or []
                log = f"logs/{node['name']}/{app['name']}/messages-{i + 1}.jsonl"
                yield Instance(
                    name, node["name"], node["group"], log, topics[i] if topics else "", app.get("subscriptions") or [], bool(app.get("publishes"))
                )


def quantile(ordered: list[int], q: Fraction) -> float:
    """Linear interpolation between order statistics of nanoseconds, in seconds."""
    position = q * (len(ordered) - 1)
    low = math.floor(position)
    high = math.ceil(position)
    return float((ordered[low] + (ordered[high] - ordered[low]) * (position - low)) / 10**9)


def wilson(count: int, total: int) -> list[float]:
    """The shares p with (count/total - p)^2 = z^2 p (1 - p) / total, in percent: the roots of a quadratic equation."""
    z2 = 3.841458820694124
    a, b, c = 1 + z2 / total, -(2 * count + z2) / total, (count / total) ** 2
    root = math.sqrt(max(b * b - 4 * a * c, 0))
    return [100 * (-b - root) / (2 * a), 100 * (-b + root) / (2 * a)]
