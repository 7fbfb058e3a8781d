"""Warnings: an app or a radio that did nothing at all, which counts alone do not show."""

import polars as pl

from ..data import requests
from ..data.gaps import Gaps
from ..data.messages import Matching
from ..data.run import Instance, Run

# An app that ends sooner after its start did not do its work.
AT_ONCE_SECONDS = 10.0


def silent(run: Run, matching: Matching, connected: set[str], gaps: Gaps) -> None:
    """Name clients that never connected, publishers that never published, and subscribers that never received anything."""
    deliveries = _received_by_subscriber(matching)
    sent = dict(matching.messages.group_by("publisher").len().iter_rows())
    never_sent = dict(matching.never_sent.group_by("publisher").len().iter_rows())
    unconnected, services = set(), requests.services(run)
    for instance in run.instances:
        number, has_log = instance.number, (run.directory / instance.message_log).exists()
        if not has_log or sent.get(number):
            continue
        heard = any(received for _, received in deliveries.get(number, {}).values())
        triggered = never_sent.get(number, 0)
        if not heard and _of_broker(instance) and instance.app not in services and instance.name not in connected:
            unconnected.add(number)
            nothing = f"none of its {triggered} triggered messages was sent" if triggered else "nothing was sent or received"
            gaps.warn(f"client {instance.name} never connected", f"{nothing}; broker: {', '.join(instance.brokers)}", instance.node)
        elif instance.publishes:
            reason = f"none of its {triggered} triggered messages was sent" if triggered else "no message was triggered"
            gaps.warn(f"publisher {instance.name} never published", reason, instance.node)
    for number, kinds in sorted(deliveries.items()):
        if number not in unconnected and (run.directory / run.instances[number].message_log).exists():
            _warn_of_silence(run.instances[number], kinds, gaps)


def _of_broker(instance: Instance) -> bool:
    """Report whether the instance is a client of a broker. Without a broker the plan has a network's name."""
    return instance.kind == "traffic" and any("/" in broker for broker in instance.brokers)


def _received_by_subscriber(matching: Matching) -> dict[int, dict[bool, tuple[int, int]]]:
    """Offered and received deliveries, by subscriber and by whether the sender is on another node."""
    unsent = matching.never_sent.group_by("publisher", "topic").agg(offered=pl.len())
    parts = [
        matching.deliveries.group_by("subscriber", "radio").agg(offered=pl.len(), received=pl.col("received").count()),
        matching.streams.pairs.join(unsent, on=["publisher", "topic"]).select("subscriber", "radio", "offered", received=pl.lit(0, pl.UInt32)),
    ]
    found: dict[int, dict[bool, tuple[int, int]]] = {}
    for subscriber, radio, offered, received in pl.concat(parts).group_by("subscriber", "radio").sum().rows():
        found.setdefault(subscriber, {})[radio] = (offered, received)
    return found


def _warn_of_silence(instance: Instance, kinds: dict[bool, tuple[int, int]], gaps: Gaps) -> None:
    offered, received = (sum(counts) for counts in zip(*kinds.values(), strict=True))
    by_radio = kinds.get(True, (0, 0))
    if by_radio[0] and not by_radio[1]:
        reason = "none of the deliveries that other nodes offered it arrived"
        gaps.warn(f"subscriber {instance.name} never heard another node", reason, instance.node)
    elif offered and not received:
        gaps.warn(f"subscriber {instance.name} never heard anything", "none of the deliveries offered to it arrived", instance.node)


def ended(run: Run, node: str, app: dict, rows: list[dict], gaps: Gaps) -> None:
    """Name instances that exited with code 0 soon after their start, or while they were the broker of clients."""
    clients = sum(f"{node}/{app['name']}" in instance.brokers for instance in run.instances)
    started: dict[str, int] = {}
    for row in rows:
        instance, event = row["instance"] or "", row["event"]
        if event in ("started", "restarted"):
            started[instance] = row["ts"]
        elif event == "stopped":
            started.pop(instance, None)
        elif event == "exited" and row["exitCode"] == 0 and instance in started:
            lived = (row["ts"] - started.pop(instance)) / 1e9
            waiting = f"{clients} clients name it as their broker" if clients else "it was not to stop yet"
            awaited = clients or any(i.name == instance and (i.subscribes or i.publishes) for i in run.instances)
            if clients or (awaited and lived <= AT_ONCE_SECONDS):
                reason = f"it exited by itself with code 0 after {lived:.1f} s, while {waiting}"
                gaps.warn(f"app {instance} ended", reason, node, run.since_t0(row["ts"]))
