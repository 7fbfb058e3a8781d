"""How many messages lateness may have cost where queues of links were full."""

import numpy as np
import polars as pl

from ..data.run import Run
from .intervals import AFTER_EFFECT, held_up, in_flight, union
from .lateness import Lateness

# Nanoseconds by which a receiver may log late.
_LOGGED_LATE = 10**9


def counted(run: Run) -> set[str]:
    """Links whose drops by full queues can be counted: each message crosses one of them once."""
    networks = run.plan.get("spec", {}).get("networks") or []
    passed_on = run.plan.get("passages") or any(n.get("routing") for n in networks)
    passed_on = passed_on or any(app["kind"] == "mediator" for node in run.nodes for app in node.get("apps") or [])
    return set() if passed_on else {n["name"] for n in networks if "link" in n and n.get("engine") != "emane"}


def never_empty(sent: np.ndarray, delay: np.ndarray, late: np.ndarray) -> np.ndarray:
    """For each late interval, whether a queue surely held some of these deliveries throughout. All came through it.

    A frame is there from its sending, or from the end of the interval that it was sent in. It waits for its delay less the
    least one and the late time in its flight. Half of that, at most a second, is left out: the receiver may log late.
    """
    if not len(sent):
        return np.zeros(len(late), bool)
    start, in_late = sent.copy(), in_flight(sent, 0, late)
    start[in_late] = late[np.searchsorted(late[:, 1], sent[in_late], side="left"), 1]
    waited = delay - delay.min() - held_up(sent, delay, late)
    end = sent + waited - np.minimum(waited // 2, _LOGGED_LATE)
    some = end > start
    held = union(zip(start[some].tolist(), end[some].tolist(), strict=True))
    if not len(held):
        return np.zeros(len(late), bool)
    at = np.searchsorted(held[:, 0], late[:, 0], side="right") - 1
    return (at >= 0) & (late[:, 1] <= held[np.maximum(at, 0), 1])


class FullQueues:
    """Bounds of what late times cost where they filled queues: messages from a node that a subscriber may have missed.

    radiod releases what is due before it takes a frame. So lateness changes a queue only by when it takes frames. Those sent in
    a late interval come at its end, in their order. Frames are taken to be of one length.

    One frame more in a queue changes how many others it accepts by one at most. That queue is one frame fuller at first.
    Both are alike again once the other one takes a frame that the fuller one drops. Or the fuller one sends while the other one rests.
    So moving one frame changes the number of accepted ones by at most one. Late intervals cost no more than was sent in them.

    An interval in which the late queue never rests costs nothing. Whenever the late queue drops a frame, it has accepted
    as many as it sent, and its limit. The punctual queue has accepted no more than it sent, and the limit. It sent no more.
    """

    def __init__(self, run: Run, messages: pl.DataFrame, lateness: Lateness):
        self._lateness, self._messages = lateness, messages
        networks = counted(run)
        self._drops = [loss for loss in lateness.full if loss.network in networks]
        self.uncounted = [loss for loss in lateness.full if loss.network not in networks]
        nodes = {name: i for i, name in enumerate(sorted({i.node for i in run.instances}))}
        self._node = np.array([nodes[i.node] for i in run.instances])
        self._names = list(nodes)
        addresses = {node["name"]: node.get("addresses") or {} for node in run.nodes}
        self._one_link = np.array([len(addresses.get(name, {})) <= 1 for name in self._names])

    def costs(self, publisher: np.ndarray, subscriber: np.ndarray, sent: np.ndarray, delay: np.ndarray, arrived: np.ndarray) -> dict:
        """How many deliveries lateness may have cost, by the numbers of the publisher's node and the subscriber; zeros are left out."""
        found: dict[tuple[int, int], int] = {}
        for node, name in enumerate(self._names):
            late, frames = self._late_frames(node, name)
            if not frames.any():
                continue
            here = self._node[publisher] == node
            for number in np.unique(subscriber[here]):
                rows = np.flatnonzero(here & (subscriber == number) & arrived)
                busy = self._one_link[node] & never_empty(sent[rows], delay[rows], late)
                if cost := int(np.ceil(frames[~busy].sum())):
                    found[node, int(number)] = cost
        return found

    def of(self, publisher: np.ndarray, subscriber: np.ndarray, costs: dict) -> int:
        """How many of these lost deliveries are due to lateness at most."""
        pairs, lost = np.unique(np.column_stack([self._node[publisher], subscriber]), axis=0, return_counts=True)
        return sum(min(int(count), costs.get((int(node), int(number)), 0)) for (node, number), count in zip(pairs, lost, strict=True))

    def _late_frames(self, node: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Late intervals of a node, and the frames sent in each that drops followed. A frame counts as the short ones that fit into it."""
        late = union((i.start, i.end) for i in self._lateness.intervals if i.node in ("", name))
        drops = union((loss.start, loss.end) for loss in self._drops if loss.node == name)
        if not len(late) or not len(drops):
            return late, np.zeros(len(late))
        own = self._messages.filter(pl.Series(self._node[self._messages["publisher"].to_numpy()] == node)).sort("sent")
        sent = own["sent"].to_numpy()
        inside = np.searchsorted(sent, late[:, 1], side="right") - np.searchsorted(sent, late[:, 0], side="left")
        shortest, longest = (own["bytes"].min() or 1, own["bytes"].max() or 1) if "bytes" in own.columns else (1, 1)
        frames = inside * (longest / max(shortest, 1)) + self._other_frames(name, sent, late)
        followed = in_flight(late[:, 0], (1 + AFTER_EFFECT) * (late[:, 1] - late[:, 0]), drops)
        return late, np.where(followed, frames, 0)

    def _other_frames(self, name: str, sent: np.ndarray, late: np.ndarray) -> np.ndarray:
        """Frames that are no messages, or further parts of messages, in the samples that each interval touches: any may be in it."""
        of_node = self._lateness.offered.filter(pl.col("node") == name)
        samples = of_node.group_by("since", "ts").agg(pl.col("framesSent").sum()).sort("since")
        since, until = (samples[column].to_numpy() for column in ("since", "ts"))
        messages = np.searchsorted(sent, until, side="right") - np.searchsorted(sent, since, side="right")
        total = np.concatenate([[0], np.cumsum(np.maximum(samples["framesSent"].to_numpy() - messages, 0))])
        first, last = np.searchsorted(until, late[:, 0], side="left"), np.searchsorted(since, late[:, 1], side="right")
        return total[np.maximum(last, first)] - total[first]
