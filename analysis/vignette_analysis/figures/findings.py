"""Warnings: an app or a radio that did nothing at all, which counts alone do not show."""

import polars as pl

from ..data import requests
from ..data.gaps import Gaps, listed
from ..data.messages import Logs, Matching
from ..data.run import Instance, Run
from ..data.unusable import Unusable

# An app that ends sooner after its start did not do its work.
AT_ONCE_SECONDS = 10.0
# A share of the sent messages that is too large to be left to a gap.
MANY = 0.1


def useless(logs: list[Unusable], gaps: Gaps) -> None:
    """Name apps with message logs of which no line counts."""
    for app in dict.fromkeys(log.app for log in logs):
        some = [log for log in logs if log.app == app]
        nodes = list(dict.fromkeys(log.node for log in some))
        named = listed(nodes)
        lines = sum(log.lines for log in some)
        reason = f"none of {lines} lines in {len(some)} message logs on {named} counts" if lines else f"no line of its output on {named} counts"
        reason += f"; {some[0].why}" if some[0].why else ""
        gaps.warn(f"message logs of app {app} cannot be used", reason, nodes[0] if len(nodes) == 1 else "")


def uncounted(matching: Matching, gaps: Gaps) -> None:
    """Name messages that are in no figure of deliveries, where they are many."""
    messages = matching.messages
    least = max(MANY * messages.height, 1)
    ambiguous = (messages["ambiguous"] & messages["topic"].is_not_null()).sum()
    nameless = messages["topic"].null_count()
    if ambiguous >= least:
        reason = f"{ambiguous} of {messages.height} sent messages have an id that another instance sent on the same topic: their deliveries "
        gaps.warn("messages are ambiguous", f"{reason}are in no figure; want ids that no other instance has, such as node-number")
    if nameless >= least:
        reason = f"{nameless} of {messages.height} sent messages have no topic, so that nobody is expected to receive them"
        gaps.warn("messages have no topic", f"{reason}; want the field topic in the sender's log")


def joined_late(run: Run, matching: Matching, gaps: Gaps) -> None:
    """Name apps to which messages were due from before their first start: they get none of these, or what a broker kept."""
    starts = {key: run.t0 + at for key, at in run.first_starts.items() if at > 0} if run.t0 is not None else {}
    apps = {app for _, app in starts}
    rows = [(i.number, i.app, i.node, starts.get((i.node, i.app))) for i in run.instances if i.app in apps]
    due = pl.DataFrame(rows, schema={"subscriber": pl.UInt32, "app": pl.String, "node": pl.String, "start": pl.Int64}, orient="row")
    before, lost = pl.col("sent") < pl.col("start"), pl.col("received").is_null()
    found = (
        matching.deliveries.lazy()
        .join(due.lazy(), on="subscriber")
        .group_by("app")
        .agg(
            due=pl.len(),
            lost=lost.sum(),
            missed=(before & lost).sum(),
            kept=(before & ~lost).sum(),
            nodes=pl.col("node").filter(before).unique().sort(),
            first=pl.col("start").filter(before).min(),
            last=pl.col("start").filter(before).max(),
        )
        .collect()
    )
    for row in found.filter(pl.col("nodes").list.len() > 0).sort("app").iter_rows(named=True):
        tell = gaps.warn if row["missed"] + row["kept"] >= MANY * row["due"] else gaps.note
        tell(f"app {row['app']} joined late", _joined_late(run, row), row["nodes"][0] if len(row["nodes"]) == 1 else "")


def _joined_late(run: Run, row: dict) -> str:
    first, last = (f"T0+{run.since_t0(row[name]):g}s" for name in ("first", "last"))
    when = f"at {first}" if first == last else f"from {first} to {last}"
    of = f"to it were of messages sent before it started on {listed(row['nodes'])} {when}"
    if not row["missed"]:
        return f"{row['kept']} deliveries {of}: delays count from the publication"
    kept = f"; so {'was' if row['kept'] == 1 else 'were'} {row['kept']} that it received: delays count from the publication" if row["kept"] else ""
    return f"{row['missed']} of {row['lost']} lost deliveries {of}{kept}"


def silent(run: Run, matching: Matching, logs: Logs, gaps: Gaps) -> None:
    """Name clients that never connected, publishers that never published, and subscribers that never received anything."""
    unusable = {log.path for log in logs.unusable}
    known = {i.number for i in run.instances if i.message_log not in unusable and (run.directory / i.message_log).exists()}
    deliveries = _received_by_subscriber(matching)
    sent = dict(matching.messages.group_by("publisher").len().iter_rows())
    never_sent = dict(matching.never_sent.group_by("publisher").len().iter_rows())
    unconnected, services = set(), requests.services(run)
    for instance in run.instances:
        number = instance.number
        if number not in known or sent.get(number):
            continue
        heard = any(received for _, received in deliveries.get(number, {}).values())
        triggered = never_sent.get(number, 0)
        if not heard and _of_broker(instance) and instance.app not in services and instance.name not in logs.connected:
            unconnected.add(number)
            nothing = f"none of its {triggered} triggered messages was sent" if triggered else "nothing was sent or received"
            gaps.warn(f"client {instance.name} never connected", f"{nothing}; broker: {', '.join(instance.brokers)}", instance.node)
        elif instance.publishes:
            reason = f"none of its {triggered} triggered messages was sent" if triggered else "no message was triggered"
            gaps.warn(f"publisher {instance.name} never published", reason, instance.node)
    for number, kinds in sorted(deliveries.items()):
        if number in known and number not in unconnected:
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
