"""Logs with everything that can go wrong, and every figure held against a slow reference."""

import random
import re
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import Lab, torn
from reference import STAGES, Reference, quantile, wilson

from vignette_analysis import Analysis, analyse
from vignette_analysis.figures.statistics import from_zero, mean_interval, median_interval, stream

DRAINED = 40 * 10**9
QUANTILES = {"min": 0, "p25": 25, "median": 50, "p75": 75, "p95": 95, "max": 100}


@dataclass(frozen=True)
class Trouble:
    """What may happen in a run."""

    messages: int = 4  # of each publisher, at most
    copies: int = 1  # of each delivery, at most; none is a loss
    shuffled_sending: bool = False  # many messages at few times, in any order
    reordering: bool = False
    offset_hosts: bool = False
    set_back: bool = False
    in_flight: bool = False
    reused_ids: bool = False
    shared_topic: bool = False
    repeated_ids: bool = False
    never_sent: bool = False
    no_topic: bool = False
    processed: str = "always"  # or never, sometimes, alone
    strangers: bool = False  # receptions of nobody's messages, and of those that were for others
    torn_line: bool = False
    nonsense: bool = False
    missing_log: bool = False
    requests: bool = False  # with receipts, failures and retransmissions of every kind and order


NAMED = {
    "zero messages": Trouble(messages=0),
    "one message": Trouble(messages=1),
    "duplicates": Trouble(copies=3),
    "reordering": Trouble(messages=12, reordering=True),
    "messages of the same time": Trouble(messages=12, shuffled_sending=True, reordering=True),
    "clocks of hosts that differ": Trouble(offset_hosts=True),
    "clocks that are set back": Trouble(messages=12, set_back=True),
    "in flight at the end": Trouble(messages=12, copies=2, in_flight=True),
    "ids reused by two publishers": Trouble(reused_ids=True),
    "ids reused on one topic": Trouble(reused_ids=True, shared_topic=True),
    "ids repeated by one publisher": Trouble(repeated_ids=True),
    "triggered and never sent": Trouble(never_sent=True),
    "receivers without topics": Trouble(no_topic=True, reused_ids=True),
    "processed missing": Trouble(processed="sometimes"),
    "processed without received": Trouble(processed="alone", copies=3, strangers=True),
    "events of nobody's messages": Trouble(strangers=True),
    "truncated last line": Trouble(torn_line=True),
    "lines that are no records": Trouble(nonsense=True),
    "missing files": Trouble(missing_log=True),
    "requests": Trouble(messages=12, requests=True),
    "requests that are never sent": Trouble(messages=12, requests=True, never_sent=True, torn_line=True),
}


class Writer:
    """Writes one run with its trouble."""

    def __init__(self, directory: Path, trouble: Trouble, seed: int):
        self.trouble, self.chance = trouble, random.Random(seed)
        self.lab = Lab(directory, plan={"measureEndNanoseconds": DRAINED})
        self.clients: list[tuple[str, dict, str]] = []
        for n in range(self.chance.randint(2, 3)):
            self.add_node(f"n{n}")
        self.offset = {name: self.chance.randint(-(10**10), 10**10) if trouble.offset_hosts else 0 for name, _, _ in self.clients}
        self.step = {name: self.chance.randrange(DRAINED) if trouble.set_back else DRAINED * 10 for name, _, _ in self.clients}
        self.write()

    def add_node(self, node: str) -> None:
        count = self.chance.randint(1, 2)
        app = {"name": f"unit-{node}", "instances": count, "topic": "/all" if self.trouble.shared_topic else "/{}"}
        app["topics"] = self.chance.choice([["#"], [], [f"/n0/unit-n0{'/1' if count > 1 else ''}", "/all"]])
        apps = [{k: v for k, v in app.items() if k != "topics" or v}]
        if self.chance.random() < 0.6:
            apps.append({"name": f"ear-{node}", "topics": self.chance.choice([["#"], ["/all", "/n1/unit-n1"]])})
        self.lab.node(node, *apps, group=self.chance.choice(["red", "blue"]))
        for a in apps:
            number = a.get("instances", 1)
            for i in range(number):
                name = f"{node}/{a['name']}" + (f"/{i + 1}" if number > 1 else "")
                self.clients.append((name, a, a["topic"].format(name) if "topic" in a else ""))

    def log(self, instance: str, status: str, at: int, id: str, topic: str) -> None:
        local = at + self.offset[instance] - (3 * 10**9 if at > self.step[instance] else 0)
        self.lab.event(instance, status, local, id, None if self.trouble.no_topic and self.chance.random() < 0.7 else topic)

    def write(self) -> None:
        for sender, app, topic in self.clients:
            if "topic" in app:
                for m in range(self.chance.randint(min(self.trouble.messages, 1), self.trouble.messages)):
                    self.message(sender, topic, f"m{m}" if self.trouble.reused_ids else f"{sender}_{m}", m)
        for name, _, _ in self.clients:
            if self.trouble.strangers:
                sender, _, topic = self.chance.choice(self.clients)
                for id in ["stranger", f"{sender}_0"] * self.trouble.copies:
                    self.arrival(name, self.chance.randrange(DRAINED), id, topic)
        self.damage()

    def message(self, sender: str, topic: str, id: str, m: int) -> None:
        if self.trouble.shuffled_sending:
            sent = self.chance.randint(1, 3) * 10**9
        else:
            sent = (m + 1) * 10**9 + self.chance.randrange(10**8)
        if self.chance.random() < 0.9:
            self.log(sender, "triggered", sent - self.chance.randrange(10**7), id, topic)
        if self.trouble.never_sent and self.chance.random() < 0.5:
            self.log(sender, "triggered", sent - 1, id, topic)
            self.request(sender, sent, id, topic)
            return
        self.log(sender, "sent", sent, id, topic)
        self.request(sender, sent, id, topic)
        if self.trouble.repeated_ids and self.chance.random() < 0.5:
            self.log(sender, "sent", sent + self.chance.randrange(10**9), id, topic)
        for receiver, app, _ in self.clients:
            covered = any(f in ("#", topic) for f in app.get("topics", []))
            if covered and self.chance.random() < 0.8:
                for _ in range(self.chance.randint(1, self.trouble.copies)):
                    self.arrival(receiver, sent + self.delay(), id, topic)

    def request(self, sender: str, sent: int, id: str, topic: str) -> None:
        """Some of receipt, failure and retransmissions, in any order."""
        if not self.trouble.requests or self.chance.random() < 0.2:
            return
        texts = ["timeout", "timeout: no response in 60 s", "refused:", " reset : by peer", "Timeout", "timeouts: two", "it broke", "", "invalid"]
        for status in self.chance.choice([["receipt"], ["receipt"], ["failed"], [], ["receipt", "failed"], ["receipt", "receipt"], ["failed"] * 2]):
            at = sent + self.chance.choice([self.delay(), self.delay(), -5, DRAINED])
            text = {"text": self.chance.choice(texts)} if status == "failed" else {}
            self.lab.event(sender, status, at + self.offset[sender], id, topic, **text)
        for _ in range(self.chance.choice([0, 0, 1, 3])):
            self.lab.event(sender, "retransmitted", sent + self.delay() + self.offset[sender], id, topic)
        if self.chance.random() < 0.1:
            self.lab.event(sender, self.chance.choice(["receipt", "failed", "retransmitted"]), sent, f"not {id}", topic, text="timeout")

    def delay(self) -> int:
        if self.trouble.in_flight:
            return self.chance.randrange(2 * DRAINED)
        return self.chance.randrange(5 * 10**9) if self.trouble.reordering else self.chance.randrange(10**9)

    def arrival(self, receiver: str, at: int, id: str, topic: str) -> None:
        kind = self.trouble.processed
        alone = kind == "alone" and self.chance.random() < 0.3
        if not alone:
            self.log(receiver, "received", at, id, topic)
        if alone or kind == "always" or (kind == "sometimes" and self.chance.random() < 0.5):
            self.log(receiver, "processed", at + self.chance.randrange(-5, 10**7), id, topic)

    def damage(self) -> None:
        logs = sorted(name for name in self.lab.logs if "messages-" in name)
        for name in logs:
            lines = self.lab.logs[name]
            self.chance.shuffle(lines)
            if self.trouble.nonsense:
                lines.insert(self.chance.randint(0, len(lines)), self.chance.choice(["nonsense", "{}", '{"ts":1}', "[]", "\x00\x00"]))
            if self.trouble.torn_line:
                whole = lines.pop() if lines else '{"ts":1767323045000000001,"instance":"x","status":"sent","id":"y"}'
                lines.append(torn(whole[: self.chance.randrange(1, len(whole))]))
        self.lab.manifest["files"] = self.lab.archived()
        if self.trouble.missing_log:
            del self.lab.logs[self.chance.choice(logs)]


def check(analysis: Analysis, truth: Reference) -> None:
    check_figures(analysis.results, truth)
    check_stages(analysis, truth)
    check_rows(analysis.sequences.rows(), truth.sequences())
    check_rows(analysis.order.rows(), truth.order())
    check_rows(analysis.age.rows(), truth.age())
    check_deliveries(analysis, truth)
    check_gaps(analysis.results["gaps"] or [], truth)


def check_rows(found: list[tuple], expected: list[tuple]) -> None:
    assert len(found) == len(expected)
    for row, want in zip(found, expected, strict=True):
        for value, true_value in zip(row, want, strict=True):
            if isinstance(true_value, float):
                assert value == pytest.approx(true_value, rel=1e-12, abs=1e-9), (row, want)
            else:
                assert value == true_value, (row, want)


def check_figures(results: dict, truth: Reference) -> None:
    scopes = [("all", None), ("radio", None), ("local", None), ("cross", None), *(s for s in truth.scopes() if s[0] in ("group", "publisher"))]
    entries = results["groups"] + (results["publishers"] or [])
    assert [e["name"] for e in entries] == [name or kind for kind, name in scopes]
    assert results["messages"] == entries[0]["messages"] and results["delaySeconds"] == entries[0]["delaySeconds"]
    for entry, scope in zip(entries, scopes, strict=True):
        counts = truth.counted(scope)
        assert entry["messages"] == pytest.approx(counts, rel=1e-12)
        delays = truth.durations(scope, "sentToReceived")
        check_quantiles(entry["delaySeconds"], delays)
        check_confidence(entry["confidence"], counts, delays, stream("run-1", scope[0], scope[1] or ""))
        check_requests(entry.get("requests"), truth.request_figures(*truth.scopes()[scope]), stream("run-1", "requests", scope[0], scope[1] or ""))
    assert results.get("requests") == entries[0].get("requests")
    check_pairs(results.get("pairs") or [], truth)


def check_pairs(pairs: list[dict], truth: Reference) -> None:
    assert [(entry["from"], entry["to"]) for entry in pairs] == list(truth.pair_scopes())
    for entry, (pair, scope) in zip(pairs, truth.pair_scopes().items(), strict=True):
        check_requests(entry.get("requests"), truth.request_figures(*scope), stream("run-1", "requests", "pair", *pair))
        counts, delays = truth.counted(pair), truth.durations(pair, "sentToReceived")
        assert entry["messages"] == pytest.approx(counts, rel=1e-12)
        check_quantiles(entry["delaySeconds"], delays)
        check_confidence(entry["confidence"], counts, delays, stream("run-1", "pair", *pair))


def check_requests(found: dict | None, expected: dict | None, random_numbers) -> None:
    if expected is None:
        assert found is None
        return
    times = expected.pop("times")
    assert {name: found[name] for name in expected} == expected
    assert found["receiptPercent"] == pytest.approx(100 * len(times) / expected["triggered"])
    check_quantiles(found["responseSeconds"], times)
    low, high = wilson(len(times), expected["triggered"])
    assert found["confidence"]["receiptPercent"] == pytest.approx({"low": low, "high": high}, abs=1e-6)
    for name, interval in (("medianSeconds", median_interval(times, random_numbers)), ("meanSeconds", from_zero(mean_interval(times), times))):
        assert found["confidence"][name] == (interval and pytest.approx({"low": interval[0] / 1e9, "high": interval[1] / 1e9}))


def check_quantiles(found: dict | None, ordered: list[int]) -> None:
    expected = {name: quantile(ordered, Fraction(q, 100)) for name, q in QUANTILES.items()} if ordered else None
    if expected:
        expected["mean"] = float(Fraction(sum(ordered), len(ordered) * 10**9))
    assert found == (expected and pytest.approx(expected, abs=1e-9))


def check_confidence(found: dict, counts: dict, delays: list[int], random_numbers) -> None:
    assert found["level"] == 0.95
    # test_statistics tests the interval; this, that it is of these values.
    interval = median_interval(delays, random_numbers)
    assert found["medianSeconds"] == (interval and pytest.approx({"low": interval[0] / 1e9, "high": interval[1] / 1e9}))
    interval = from_zero(mean_interval(delays), delays)
    assert found["meanSeconds"] == (interval and pytest.approx({"low": interval[0] / 1e9, "high": interval[1] / 1e9}))
    share = wilson(counts["lost"], counts["expected"]) if counts["expected"] else None
    assert found["lostPercent"] == (share and pytest.approx({"low": share[0], "high": share[1]}, abs=1e-6))


def check_stages(analysis: Analysis, truth: Reference) -> None:
    rows = {(row["scope"], row["name"], row["stage"]): row for row in analysis.stages.rows(named=True)}
    assert set(rows) == {(*scope, stage) for scope in truth.scopes() for stage in STAGES}
    assert len(rows) == analysis.stages.height
    for (*scope, stage), row in rows.items():
        ordered = truth.durations(tuple(scope), stage)
        assert row["count"] == len(ordered)
        check_quantiles({q: row[f"{q}Seconds"] for q in (*QUANTILES, "mean")} if ordered else None, ordered)
        assert ordered or row["maxSeconds"] is None


def check_deliveries(analysis: Analysis, truth: Reference) -> None:
    names = [i.name for i in analysis.run.instances]
    messages = [(names[m["publisher"]], m["id"], m["topic"], m["triggered"], m["sent"], m["ambiguous"]) for m in analysis.messages.rows(named=True)]
    assert messages == [(m.publisher, m.id, m.topic, m.triggered, m.sent, m.ambiguous) for m in truth.messages]
    found = [
        (messages[d["message"]][:2], names[d["publisher"]], names[d["subscriber"]], d["sent"], d["received"], d["processed"], d["duplicates"])
        for d in analysis.deliveries.rows(named=True)
    ]
    expected = []
    for d in truth.deliveries:
        m, times = d.message, d.times()
        expected.append(((m.publisher, m.id), m.publisher, d.subscriber, m.sent, times["received"], times["processed"], max(len(d.received) - 1, 0)))
    assert found == expected


def check_gaps(gaps: list[dict], truth: Reference) -> None:
    """Every gap that messages have, with its number, and no other."""
    expected: set[tuple[str, int]] = set()
    for log, bad in truth.bad.items():
        expected |= {(f"log {log}", bad)} if bad else set()
    for name in truth.instances:
        expected |= {(f"messages of {name}", n) for n in (truth.repeated[name], len(truth.never_sent[name])) if n}
        expected |= {(f"received events of {name}", n) for n in (truth.unknown[name], len(truth.unexpected[name])) if n}
        expected |= {(f"processed events of {name}", len(truth.only_processed[name]))} if truth.only_processed[name] else set()
    shared = {(m.id, m.topic) for m in truth.messages if m.ambiguous}
    expected |= {("ambiguous messages", len(shared))} if shared else set()
    for start, end in list(STAGES.values())[:3]:
        early = sum(d < 0 for d in truth.durations(("all", None), {v: k for k, v in STAGES.items()}[start, end]))
        expected |= {("negative delays", early)} if early else set()
    expected |= truth.request_gaps()
    of_messages = re.compile("messages of|received events|processed events|ambiguous|negative|requests")
    found = {(g["what"], int(re.search(r"\d+", g["reason"])[0])) for g in gaps if of_messages.match(g["what"])}
    logs = {g["what"]: g["reason"] for g in gaps if g["what"].startswith("log ")}
    assert {f"log {log}" for log in truth.missing} == {what for what, reason in logs.items() if "no such file" in reason}
    found |= {(what, int(reason.split()[0])) for what, reason in logs.items() if "no such file" not in reason}
    assert found == expected
    late = [g["reason"] for g in gaps if g["what"] == "deliveries in flight"]
    assert not truth.late or f"{truth.late} events were received after" in late[0]


def analyse_and_check(trouble: Trouble, seed: int) -> Reference:
    with TemporaryDirectory() as scratch:
        directory = Writer(Path(scratch) / "run", trouble, seed).lab.write()
        truth = Reference(directory)
        check(analyse(directory), truth)
        return truth


def happened(truths: list[Reference]) -> set[str]:
    """What was found in some runs, by the reference: that the trouble was made at all."""
    found = set()
    for truth in truths:
        times = [d.times() for d in truth.deliveries]
        found |= {"duplicates"} if any(len(d.received) > 1 for d in truth.deliveries) else set()
        found |= {"reordering"} if any(row[3] for row in truth.order()) else set()
        found |= {"losses"} if truth.sequences() else set()
        found |= {"in flight at the end"} if truth.late else set()
        found |= {"ambiguous"} if any(m.ambiguous for m in truth.messages) else set()
        found |= {"reused ids"} if len({m.id for m in truth.messages}) < len(truth.messages) else set()
        found |= {"repeated ids"} if any(truth.repeated.values()) else set()
        found |= {"never sent"} if any(truth.never_sent.values()) else set()
        found |= {"unprocessed"} if any(t["received"] and not t["processed"] for t in times) else set()
        found |= {"only processed"} if any(truth.only_processed.values()) else set()
        found |= {"negative delays"} if any(t["received"] and t["received"] < t["sent"] for t in times) else set()
        found |= {"strangers"} if any(truth.unknown.values()) and any(truth.unexpected.values()) else set()
        found |= {"bad lines"} if any(truth.bad.values()) else set()
        found |= {"torn lines"} if truth.torn else set()
        found |= {"missing files"} if truth.missing else set()
        requests, strangers = truth.find_requests()
        reasons = {r.outcome()[0] for r in requests}
        found |= {"receipts"} if None in reasons else set()
        found |= {"failures"} if reasons & {"timeout", "refused", "reset"} else set()
        found |= {"nameless failures"} if "other" in reasons else set()
        found |= {"outstanding"} if "inFlightAtEnd" in reasons else set()
        found |= {"unsent failures"} if any(r.sent is None and r.failures for r in requests) else set()
        found |= {"contradictions"} if any(r.receipts and r.failures for r in requests) and strangers else set()
        found |= {"nothing"} if not truth.messages else {"messages"}
    return found


MADE = {
    "zero messages": {"nothing"},
    "one message": {"messages"},
    "duplicates": {"duplicates"},
    "reordering": {"reordering"},
    "messages of the same time": {"reordering"},
    "clocks of hosts that differ": {"negative delays"},
    "clocks that are set back": {"negative delays", "reordering"},
    "in flight at the end": {"in flight at the end"},
    "ids reused by two publishers": {"reused ids"},
    "ids reused on one topic": {"ambiguous"},
    "ids repeated by one publisher": {"repeated ids"},
    "triggered and never sent": {"never sent"},
    "receivers without topics": {"reused ids"},
    "processed missing": {"unprocessed"},
    "processed without received": {"only processed"},
    "events of nobody's messages": {"strangers"},
    "truncated last line": {"torn lines"},
    "lines that are no records": {"bad lines"},
    "missing files": {"missing files"},
    "requests": {"receipts", "failures", "nameless failures", "outstanding", "contradictions"},
    "requests that are never sent": {"receipts", "failures", "unsent failures", "torn lines"},
}


@pytest.mark.parametrize("name", NAMED)
def test_every_figure_is_that_of_the_reference_with(name):
    truths = [analyse_and_check(NAMED[name], seed) for seed in range(2)]
    assert happened(truths) >= MADE[name]


@st.composite
def troubles(draw) -> Trouble:
    """Any trouble with any other."""
    drawn = {f.name: draw(st.booleans()) for f in fields(Trouble) if f.type == "bool" or f.type is bool}
    return replace(
        Trouble(**drawn),
        messages=draw(st.integers(0, 10)),
        copies=draw(st.integers(1, 3)),
        processed=draw(st.sampled_from(["always", "never", "sometimes", "alone"])),
    )


@settings(max_examples=25)
@given(troubles(), st.integers(0, 2**32))
def test_every_figure_is_that_of_the_reference_whatever_happens_together(trouble, seed):
    analyse_and_check(trouble, seed)


def test_a_run_whose_end_is_not_known_has_no_age_and_says_so(tmp_path):
    writer = Writer(tmp_path / "run", Trouble(), 1)
    writer.lab.plan["measureEndNanoseconds"] = None
    analysis = analyse(writer.lab.write())
    assert analysis.age.is_empty() and analysis.order.height
    assert any(g["what"] == "age" for g in analysis.results["gaps"])
