"""By how much the figures may be off because the emulation was late. docs/results.md has the rules."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .figures import QUANTILES, RESERVED, publishers_by_group, quantiles
from .lateness import Interval, Lateness
from .messages import Matching
from .run import Run

# A queue that a late interval filled delays messages up to so many times its length later.
AFTER_EFFECT = 5
# The least time-out of TCP in Linux: what is less late makes no protocol give up.
GIVE_UP_SECONDS = 0.200
# How long a lost delivery counts as in flight where nothing was received.
UNKNOWN_FLIGHT_SECONDS = 1.0
_SECOND = 10**9


def union(intervals: Iterable[tuple[int, int]]) -> np.ndarray:
    """Disjoint intervals in ascending order that cover the same time: one (start, end) a row."""
    given = np.array(sorted(intervals), np.int64).reshape(-1, 2)
    if not len(given):
        return given
    reached = np.maximum.accumulate(given[:, 1])
    first = np.concatenate([[True], given[1:, 0] > reached[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.column_stack([given[first, 0], reached[last]])


def late_time(sent: np.ndarray, delay: np.ndarray, intervals: np.ndarray) -> np.ndarray:
    """For how long each delivery may have been held up by disjoint intervals; messages are in order of `sent`."""
    starts, ends = intervals[:, 0], intervals[:, 1]
    length = ends - starts
    before = np.concatenate([[0], np.cumsum(length)])
    begun = np.searchsorted(starts, sent + delay, side="right")
    last = np.maximum(begun - 1, 0)
    until_received = np.where(begun > 0, before[last] + np.minimum(sent + delay - starts[last], length[last]), 0)
    # What ended less than its own delay before a message was sent may have filled a queue that the message met.
    late = until_received - before[np.searchsorted(ends, sent - delay, side="left")]
    first = np.searchsorted(sent, ends, side="right")
    after = np.searchsorted(sent, ends + AFTER_EFFECT * length, side="right")
    for i in np.flatnonzero(after > first):
        some = slice(first[i], after[i])
        late[some] += np.where(sent[some] - delay[some] > ends[i], length[i], 0)
    return np.clip(late, 0, np.maximum(delay, 0))


def in_flight(sent: np.ndarray, flight: int, intervals: np.ndarray) -> np.ndarray:
    """Tell of each message whether it may have been under way in one of these disjoint intervals."""
    if not len(intervals):
        return np.zeros(len(sent), bool)
    following = np.searchsorted(intervals[:, 1], sent, side="left")
    there = np.minimum(following, len(intervals) - 1)
    return (following < len(intervals)) & (intervals[there, 0] <= sent + flight)


@dataclass
class _Scope:
    """Late times that concern some deliveries: all of them (chosen is None), or those of a node."""

    chosen: np.ndarray | None
    # Times in which deliveries were late, and those in which they may have been lost.
    late: np.ndarray
    fatal: np.ndarray


class Marking:
    """All deliveries of a run, with how late each may have been."""

    def __init__(self, run: Run, matching: Matching, lateness: Lateness):
        deliveries = matching.deliveries
        self._run, self._lateness, self._deliveries = run, lateness, deliveries
        self._publisher, self._subscriber = (deliveries[name].to_numpy() for name in ("publisher", "subscriber"))
        self._sent = deliveries["sent"].to_numpy()
        self._arrived = deliveries["received"].is_not_null().to_numpy()
        self._delay = np.where(self._arrived, deliveries["received"].fill_null(0).to_numpy() - self._sent, 0)
        self._over_radio = ~deliveries["local"].to_numpy()
        self._seconds = max(run.duration_seconds, 1e-9)
        self._groups = publishers_by_group(run, set(matching.messages["publisher"].unique()))
        self._scopes = list(self._found_scopes())
        self._late = np.zeros(len(self._sent), np.int64)
        for scope in self._scopes:
            self._hold_up(scope)
        self._late = np.where(self._over_radio & self._arrived, np.minimum(self._late, np.maximum(self._delay, 0)), 0)
        self._shift, self._unheard = self._actions()

    def _hold_up(self, scope: _Scope) -> None:
        if not len(scope.late):
            return
        rows = slice(None) if scope.chosen is None else scope.chosen
        self._late[rows] += late_time(self._sent[rows], self._delay[rows], scope.late)

    def _found_scopes(self) -> Iterable[_Scope]:
        """Late times by the node whose deliveries they concern; with routing any node may relay, and all deliveries count."""
        routed = {n["name"] for n in self._run.plan.get("spec", {}).get("networks") or [] if n.get("routing")}
        late: dict[str, list[tuple[int, int]]] = {}
        fatal: dict[str, list[tuple[int, int]]] = {}
        for interval in self._lateness.intervals:
            node = "" if interval.network in routed else interval.node
            late.setdefault(node, []).append((interval.start, interval.end))
            if _gives_up(interval):
                fatal.setdefault(node, []).append((interval.start, interval.end))
        for loss in self._lateness.losses:
            fatal.setdefault("" if loss.network in routed else loss.node, []).append((loss.start, loss.end))
        for node in sorted({*late, *fatal}):
            yield _Scope(self._of_node(node) if node else None, union(late.get(node, ())), union(fatal.get(node, ())))

    def _of_node(self, node: str) -> np.ndarray:
        """Rows of the deliveries whose sender, receiver or broker is a node."""
        there = np.array([node in (i.node, i.publish_broker, i.subscribe_broker) for i in self._run.instances])
        return np.flatnonzero(there[self._publisher] | there[self._subscriber])

    def _actions(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """By instance how many seconds it published or heard at another time than planned; and deliveries that a late start may have lost."""
        instances = self._run.instances
        shift = {"publisher": np.zeros(len(instances)), "subscriber": np.zeros(len(instances))}
        unheard = np.zeros(len(self._sent), bool)
        numbers = {i.name: i.number for i in instances}
        for action in self._lateness.actions:
            number = numbers.get(action.instance)
            if not action.late or number is None:
                continue
            instance = instances[number]
            serves = not instance.publishes and not instance.subscriptions
            broker = f"{instance.node}/{instance.app}"
            clients = np.array([i.number == number or (serves and (broker in i.brokers or not i.brokers)) for i in instances])
            if instance.publishes or serves:
                shift["publisher"][clients] += action.seconds
            if instance.subscriptions and action.what != "started":
                shift["subscriber"][clients] += action.seconds
            if not instance.publishes or instance.subscriptions:
                concerned = clients[self._subscriber] | (clients[self._publisher] & serves)
                meanwhile = (self._sent >= action.planned) & (self._sent <= action.planned + action.seconds * _SECOND)
                unheard |= concerned & meanwhile
        return shift, unheard

    def bounds(self, group: dict) -> dict:
        """runapi.Bounds of a group's result."""
        chosen = self._chosen(group["name"])
        arrived = chosen & self._arrived
        flight = round(((group["delaySeconds"] or {}).get("p95") or UNKNOWN_FLIGHT_SECONDS) * _SECOND)
        lost = int(np.count_nonzero(self._marked_losses(chosen & ~self._arrived, flight)))
        held_up = self._late[arrived]
        return {
            "delaySeconds": _delays(self._delay[arrived], held_up, lost, group["delaySeconds"]),
            "deliveredPercent": self._delivered(group["messages"], chosen, lost, over_radio=group["name"] != "local"),
            "marked": int(np.count_nonzero(held_up)) + lost,
            "markedLost": lost,
        }

    def _chosen(self, name: str) -> np.ndarray:
        if name == "all":
            return np.ones(len(self._sent), bool)
        if name in RESERVED:
            return self._deliveries[name].to_numpy()
        return np.isin(self._publisher, self._groups.get(name, []))

    def _marked_losses(self, lost: np.ndarray, flight: int) -> np.ndarray:
        rows = np.flatnonzero(lost)
        marked = self._unheard[rows]
        on_air = self._over_radio[rows]
        for scope in self._scopes:
            there = on_air if scope.chosen is None else on_air & np.isin(rows, scope.chosen)
            marked |= there & in_flight(self._sent[rows], flight, scope.fatal)
        return marked

    def _delivered(self, counts: dict, chosen: np.ndarray, lost: int, *, over_radio: bool) -> dict | None:
        offered = counts.get("offered", counts["expected"])
        if not offered:
            return None
        shifted = sum(seconds[getattr(self, f"_{side}")[chosen]].sum() for side, seconds in self._shift.items()) / self._seconds
        gained = lost + shifted + (offered * self._lost_share() if over_radio else 0.0)
        percent = 100.0 / offered
        measured = percent * counts["received"]
        return {"low": max(measured - percent * shifted, 0.0), "high": min(measured + percent * gained, 100.0)}

    def _lost_share(self) -> float:
        """The share of messages that long late times, in which nothing moved, and missed slots may have cost besides the marked ones."""
        long = union((i.start, i.end) for i in self._lateness.intervals if _gives_up(i) and not i.slots)
        slots, missed = (sum(n.get(name, 0) for n in self._lateness.networks) for name in ("slots", "missed"))
        return (long[:, 1] - long[:, 0]).sum() / _SECOND / self._seconds + (missed / (slots + missed) if missed else 0.0)


def _gives_up(interval: Interval) -> bool:
    return interval.seconds >= GIVE_UP_SECONDS


def _delays(delay: np.ndarray, held_up: np.ndarray, lost: int, measured: dict | None) -> dict | None:
    """Intervals of the quantiles: less what held deliveries up, and with marked losses as the fastest, or the slowest."""
    if measured is None:
        return None
    less, more = np.sort(delay - held_up), np.sort(delay)
    low = quantiles(np.concatenate([np.full(lost, less[0]), less]))
    high = quantiles(np.concatenate([more, np.full(lost, more[-1])]))
    return {name: {"low": min(low[name], measured[name]), "high": max(high[name], measured[name])} for name in QUANTILES}
