"""The brokers that a message reaches from its publisher's: over bridges, clusters, gateways and mediators."""

from collections import defaultdict
from dataclasses import dataclass

from . import topics
from .run import Run

# Most topics of one message at one broker. A loop of bridges that add prefixes would make ever new ones.
_MOST_NAMES = 16


@dataclass(frozen=True)
class _Passage:
    """A way from one broker to another (runapi.PlannedPassage)."""

    to: str
    filters: tuple[str, ...]
    strip: str
    add: str

    def name_beyond(self, topic: str) -> str | None:
        """The topic of a message on the other side; None where it does not pass."""
        if not topic.startswith(self.strip):
            return None
        bare = topic[len(self.strip) :]
        return self.add + bare if any(topics.matches(f, bare) for f in self.filters) else None


class Reach:
    """The ways between a run's brokers."""

    def __init__(self, run: Run):
        self._from: dict[str, list[_Passage]] = defaultdict(list)
        for passage in run.plan.get("passages") or []:
            filters = tuple(passage.get("filters") or ())
            self._from[passage["from"]].append(_Passage(passage["to"], filters, passage.get("stripPrefix", ""), passage.get("addPrefix", "")))
        self._known: dict[tuple[tuple[str, ...], str], dict[str, tuple[str, ...]]] = {}

    def of(self, brokers: tuple[str, ...], topic: str) -> dict[str, tuple[str, ...]]:
        """Brokers that a message published to some brokers reaches, and its topics there."""
        key = (brokers, topic)
        if key not in self._known:
            self._known[key] = self._walk(brokers, topic)
        return self._known[key]

    def _walk(self, brokers: tuple[str, ...], topic: str) -> dict[str, tuple[str, ...]]:
        names: dict[str, list[str]] = {}
        ahead = [(broker, topic) for broker in brokers]
        while ahead:
            broker, name = ahead.pop()
            here = names.setdefault(broker, [])
            if name in here or len(here) == _MOST_NAMES:
                continue
            here.append(name)
            beyond = ((passage.to, passage.name_beyond(name)) for passage in self._from.get(broker, ()))
            ahead += [(to, other) for to, other in beyond if other is not None]
        return {broker: tuple(here) for broker, here in names.items()}
