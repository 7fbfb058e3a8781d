"""By how much the figures may be off because the emulation was late. docs/reference/results.md has the rules."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..data.messages import Matching
from ..data.run import Run
from .deliveries import QUANTILES, RESERVED, publishers_by_group, quantiles
from .fullqueues import FullQueues
from .intervals import AFTER_EFFECT, after_effect, held_up, in_flight, union
from .lateness import Interval, Lateness
from .ways import Ways

# Linux TCP's least retransmission time-out: a shorter lateness makes no protocol give up.
GIVE_UP_SECONDS = 0.200
# Protocols that never give up a message: only dropped frames lose one.
UNANSWERED = ("mqtt-udp",)
# How long a lost delivery counts as in flight if its group received nothing.
UNKNOWN_FLIGHT_SECONDS = 1.0
_SECOND = 10**9


@dataclass
class _Scope:
    """Late intervals and the deliveries that they concern: all (chosen is None), or those of a node."""

    chosen: np.ndarray | None
    # Intervals in which deliveries were late, and in which they may have been lost.
    late: np.ndarray
    fatal: np.ndarray
    # Intervals in which the emulation dropped frames, or the model did after a late interval.
    dropping: np.ndarray


class Marking:
    """All deliveries of a run, and how late each may have been."""

    def __init__(self, run: Run, matching: Matching, lateness: Lateness):
        deliveries = matching.deliveries
        self._run, self._lateness, self._deliveries = run, lateness, deliveries
        self._publisher, self._subscriber = (deliveries[name].to_numpy() for name in ("publisher", "subscriber"))
        self._sent = deliveries["sent"].to_numpy()
        self._ways = Ways(run, self._publisher, self._subscriber)
        self._arrived = deliveries["received"].is_not_null().to_numpy()
        self._delay = np.where(self._arrived, deliveries["received"].fill_null(0).to_numpy() - self._sent, 0)
        self._over_radio = ~deliveries["local"].to_numpy()
        self._seconds = max(run.duration_seconds, 1e-9)
        self._senders = set(matching.messages["publisher"].unique())
        self._groups = publishers_by_group(run, self._senders)
        # A late frame may be lost where the protocol gives up, or where the links change over time.
        answered = [_changes(run) or i.protocol not in UNANSWERED for i in run.instances]
        self._answered = np.array(answered, bool)[self._publisher]
        self._full = FullQueues(run, matching.messages, lateness)
        self._routed = {n["name"] for n in run.plan.get("spec", {}).get("networks") or [] if n.get("routing")}
        self._scopes = list(self._found_scopes())
        self._queue_costs = self._full.costs(self._publisher, self._subscriber, self._sent, self._delay, self._arrived & self._over_radio)
        self._late = self._lateness_of_each()
        self._shift, self._unheard = self._actions()
        self._interference = list(self._late_interference())

    def _lateness_of_each(self) -> np.ndarray:
        """How late each delivery may have been. Without lateness it took at least its pair's least undisturbed delay."""
        direct, after = np.zeros(len(self._sent), np.int64), np.zeros(len(self._sent), np.int64)
        for scope in self._scopes:
            if not len(scope.late):
                continue
            rows = slice(None) if scope.chosen is None else scope.chosen
            direct[rows] += held_up(self._sent[rows], self._delay[rows], scope.late)
            after[rows] += after_effect(self._sent[rows], self._delay[rows], scope.late)
        concerned = self._over_radio & self._arrived
        late = direct + after
        punctual = pl.when(pl.Series(concerned & (late == 0))).then(pl.Series(self._delay)).min().over("publisher", "subscriber")
        least = self._deliveries.select(punctual.fill_null(0)).to_series().to_numpy()
        return np.where(concerned, np.clip(self._delay - least, 0, late), 0)

    def _found_scopes(self) -> Iterable[_Scope]:
        """Late intervals by the node whose deliveries they concern. With routing any node may relay, so all deliveries count."""
        late: dict[str, list[tuple[int, int]]] = {}
        fatal: dict[str, list[tuple[int, int]]] = {}
        for interval in self._lateness.intervals:
            node = "" if interval.network in self._routed else interval.node
            late.setdefault(node, []).append((interval.start, interval.end))
            if _gives_up(interval):
                fatal.setdefault(node, []).append((interval.start, interval.end))
        for loss in self._lateness.losses:
            fatal.setdefault("" if loss.network in self._routed else loss.node, []).append((loss.start, loss.end))
        dropping = self._dropping()
        for node in sorted({*late, *fatal, *dropping}):
            yield _Scope(self._of_node(node) if node else None, *(union(of.get(node, ())) for of in (late, fatal, dropping)))

    def _dropping(self) -> dict[str, list[tuple[int, int]]]:
        """Intervals by node in which lateness dropped frames: by the emulation, or by the model until the after-effect ended."""
        found: dict[str, list[tuple[int, int]]] = {}
        late = union((i.start, i.end + AFTER_EFFECT * (i.end - i.start)) for i in self._lateness.intervals)
        by_emulation = [(loss, True) for loss in self._lateness.losses]
        for loss, certain in by_emulation + [(loss, False) for loss in self._lateness.overflows + self._full.uncounted]:
            at = np.searchsorted(late[:, 1], loss.start)
            after = at < len(late) and late[at, 0] <= loss.end
            if after or certain:
                start = min(loss.start, late[at, 0]) if after else loss.start
                found.setdefault("" if loss.network in self._routed else loss.node, []).append((start, loss.end))
        return found

    def _of_node(self, node: str) -> np.ndarray:
        """Rows of the deliveries whose sender or receiver is on the node, or a broker or mediator on the way."""
        there = np.array([node in (i.node, i.broker_node) for i in self._run.instances])
        rows = there[self._publisher] | there[self._subscriber]
        for name in self._ways.names:
            if name.startswith(f"{node}/"):
                rows |= self._ways.over(name)
        return np.flatnonzero(rows)

    def _actions(self) -> tuple[np.ndarray, np.ndarray]:
        """Seconds by which late starts and stops shifted each delivery's share of the run, and deliveries that they may have lost."""
        instances = self._run.instances
        shift, unheard = np.zeros(len(self._sent)), np.zeros(len(self._sent), bool)
        numbers = {i.name: i.number for i in instances}
        for action in self._lateness.actions:
            number = numbers.get(action.instance)
            if not action.late or number is None:
                continue
            instance = instances[number]
            # The plan does not know whether a program of the user's own publishes.
            publishes = instance.publishes or number in self._senders
            serves = not publishes and not instance.subscribes
            broker = f"{instance.node}/{instance.app}"
            clients = np.array([i.number == number or (serves and (broker in i.brokers or not i.brokers)) for i in instances])
            sends, hears = clients[self._publisher], clients[self._subscriber]
            if serves:
                hears = sends | hears | self._ways.over(broker)
            if publishes or serves:
                shift += action.seconds * sends
            if instance.subscribes and action.what != "started":
                shift += action.seconds * hears
            elif serves and action.what != "started":
                shift += action.seconds * (hears & ~sends)
            if not publishes or instance.subscribes:
                meanwhile = (self._sent >= action.at - action.seconds * _SECOND) & (self._sent <= action.at)
                unheard |= hears & meanwhile
        return shift, unheard

    def bounds(self, group: dict) -> dict:
        """runapi.Bounds of a group's result."""
        chosen = self._chosen(group["name"])
        arrived = chosen & self._arrived
        flight = round(((group["delaySeconds"] or {}).get("p95") or UNKNOWN_FLIGHT_SECONDS) * _SECOND)
        marked = self._marked_losses(chosen & ~self._arrived, flight)
        counts, late = group["messages"], self._late[arrived]
        offered = counts.get("offered", counts["expected"])
        answered = 0.0 if group["name"] == "local" or not chosen.any() else self._answered[chosen].mean()
        lost = marked + offered * answered * self._lost_share()
        lost = min(lost, offered - counts["received"])
        doubtful = self._doubtful(arrived)
        return {
            "delaySeconds": _delays(self._delay[arrived], late, round(lost) + doubtful, group["delaySeconds"]),
            "deliveredPercent": self._delivered(offered, counts["received"], chosen, lost, doubtful),
            "marked": int(np.count_nonzero(late)) + marked,
            "markedLost": marked,
        }

    def _chosen(self, name: str) -> np.ndarray:
        if name == "all":
            return np.ones(len(self._sent), bool)
        if name in RESERVED:
            return self._deliveries[name].to_numpy()
        return np.isin(self._publisher, self._groups.get(name, []))

    def _marked_losses(self, lost: np.ndarray, flight: int) -> int:
        rows = np.flatnonzero(lost)
        marked = self._unheard[rows]
        on_air = self._over_radio[rows]
        for scope in self._scopes:
            there = on_air if scope.chosen is None else on_air & np.isin(rows, scope.chosen)
            marked |= there & self._answered[rows] & in_flight(self._sent[rows], flight, scope.fatal)
            marked |= there & ~self._answered[rows] & in_flight(self._sent[rows], flight, scope.dropping)
        others = rows[on_air & ~marked & ~self._answered[rows]]
        return int(np.count_nonzero(marked)) + self._full.of(self._publisher[others], self._subscriber[others], self._queue_costs)

    def _delivered(self, offered: int, received: int, chosen: np.ndarray, lost: float, doubtful: int) -> dict | None:
        if not offered:
            return None
        shifted = self._shift[chosen].sum() / self._seconds
        low, high = max(received - doubtful - shifted, 0.0), min(received + lost + shifted, offered)
        return {"low": 100.0 * float(low) / offered, "high": 100.0 * float(high) / offered}

    def _late_interference(self) -> Iterable[tuple[np.ndarray | slice, int]]:
        """Deliveries by node, and receptions there that would have failed with interference that was known too late."""
        receptions: dict[str, int] = {}
        for found in self._lateness.interference:
            node = "" if found.network in self._routed else found.node
            receptions[node] = receptions.get(node, 0) + found.frames
        for node, count in receptions.items():
            yield self._of_node(node) if node else slice(None), count

    def _doubtful(self, arrived: np.ndarray) -> int:
        """How many of these deliveries may have arrived only because interference was known too late."""
        over_radio = arrived & self._over_radio
        doubtful = sum(min(count, int(np.count_nonzero(over_radio[rows]))) for rows, count in self._interference)
        return min(doubtful, int(np.count_nonzero(over_radio)))

    def _lost_share(self) -> float:
        """The share of messages that long late intervals and missed slots may have lost besides the marked ones."""
        long = union((i.start, i.end) for i in self._lateness.intervals if _gives_up(i) and not i.slots)
        slots, missed = (sum(n.get(name, 0) for n in self._lateness.networks) for name in ("slots", "missed"))
        return (long[:, 1] - long[:, 0]).sum() / _SECOND / self._seconds + (missed / (slots + missed) if missed else 0.0)


def _changes(run: Run) -> bool:
    """Report whether radios move or their settings change."""
    spec = run.plan.get("spec", {})
    return bool(run.plan.get("scenario") or run.plan.get("liveChanges") or any(entry.get("set") for entry in spec.get("timeline") or []))


def _gives_up(interval: Interval) -> bool:
    return interval.seconds >= GIVE_UP_SECONDS


def _delays(delay: np.ndarray, late: np.ndarray, lost: int, measured: dict | None) -> dict | None:
    """Bounds of the quantiles. Low: delays less lateness, losses as the fastest. High: measured delays, losses as the slowest."""
    if measured is None:
        return None
    less = np.sort(delay - late)
    low = quantiles(np.concatenate([np.full(lost, less[0]), less]))
    high = quantiles(np.sort(np.concatenate([np.full(lost, less[-1]), delay])))
    return {name: {"low": min(low[name], measured[name]), "high": max(high[name], measured[name])} for name in QUANTILES}
