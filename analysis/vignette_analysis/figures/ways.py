"""Which deliveries a broker may have carried: those of its own clients, and those that passages lead over it."""

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from ..data.run import Run


class Ways:
    """The passages between a run's brokers, whatever topics they carry. A broker is named as node/app."""

    def __init__(self, run: Run, publisher: np.ndarray, subscriber: np.ndarray):
        self._brokers, self._publisher, self._subscriber = [i.brokers for i in run.instances], publisher, subscriber
        self._ahead: dict[str, set[str]] = defaultdict(set)
        self._behind: dict[str, set[str]] = defaultdict(set)
        for passage in run.plan.get("passages") or []:
            self._ahead[passage["from"]].add(passage["to"])
            self._behind[passage["to"]].add(passage["from"])
        # Passages do not name the mediators that they lead through.
        self._mediators = {f"{node['name']}/{app['name']}" for node in run.nodes for app in node.get("apps") or [] if app["kind"] == "mediator"}
        # All that may carry others' messages.
        self.names = sorted({*self._ahead, *self._behind, *self._mediators, *(b for brokers in self._brokers for b in brokers)})

    def over(self, broker: str) -> np.ndarray:
        """For each delivery, whether it may have come over this broker or mediator."""
        if broker in self._mediators:
            return self._apart()
        own = self._clients(lambda brokers: broker in brokers)
        rows = own[self._publisher] | own[self._subscriber]
        if broker not in self._ahead or broker not in self._behind:
            return rows
        before, after = self._reached([broker], self._behind.get), self._reached([broker], self._ahead.get)
        passes = self._clients(before.intersection)[self._publisher] & self._clients(after.intersection)[self._subscriber]
        for side in self._sides(broker):
            there = self._clients(lambda brokers, side=side: side.issuperset(brokers))
            passes &= ~(there[self._publisher] & there[self._subscriber])
        return rows | passes

    def _apart(self) -> np.ndarray:
        """Deliveries between clients that have no broker in common."""
        sets = {brokers: i for i, brokers in enumerate(dict.fromkeys(self._brokers))}
        apart = np.array([[bool(one and other) and not set(one) & set(other) for other in sets] for one in sets], bool)
        kind = np.array([sets[brokers] for brokers in self._brokers])
        return apart[kind[self._publisher], kind[self._subscriber]]

    def _clients(self, hold: Callable) -> np.ndarray:
        """The instances with brokers for which this holds."""
        return np.array([bool(brokers) and bool(hold(brokers)) for brokers in self._brokers], bool)

    def _sides(self, broker: str) -> list[set[str]]:
        """Sets of brokers that only one passage joins to this one: what stays within such a set does not come over it."""
        nearest = self._ahead[broker] | self._behind[broker]
        found = []
        for one in sorted(nearest):
            side = self._reached([one], lambda at: (self._ahead.get(at, set()) | self._behind.get(at, set())) - {broker})
            if len(side & nearest) == 1:
                found.append(side)
        return found

    @staticmethod
    def _reached(start: Iterable[str], neighbours: Callable) -> set[str]:
        found, ahead = set(start), list(start)
        while ahead:
            new = set(neighbours(ahead.pop()) or ()) - found
            found |= new
            ahead += new
        return found
