"""Requests: messages whose sender waits for a response, the receipt. docs/reference/results.md has the definitions."""

import polars as pl

from . import safe
from .gaps import Gaps
from .messages import Matching
from .run import Run

# request.Reasons: the first word of a failed event's text. Any other word counts as OTHER.
REASONS = ("timeout", "reset", "refused", "unreachable", "rejected", "cancelled", "invalid")
OTHER = "other"
# The reason of requests that had neither a receipt nor a failure at the end of the drain.
OUTSTANDING = "inFlightAtEnd"
# Retransmissions of one request up to which requests are counted apart.
MAX_APART = 8
# Protocols that leave repetition to TCP. HTTP sends a GET again over another connection.
OVER_TCP = ("http", "soap", "coap-tcp")
SCHEMA = {
    "message": pl.UInt32,
    "publisher": pl.UInt32,
    "subscriber": pl.UInt32,
    "id": pl.String,
    "topic": pl.Categorical,
    "triggered": pl.Int64,
    "sent": pl.Int64,
    "receipt": pl.Int64,
    "failed": pl.Int64,
    "reason": pl.Categorical,
    "retransmissions": pl.Int64,
    "bytes": pl.Int64,
    "receiptBytes": pl.Int64,
    "radio": pl.Boolean,
    "local": pl.Boolean,
    "cross": pl.Boolean,
}


def services(run: Run) -> dict[str, dict]:
    """The settings of messaging services, by the app's name."""
    return {app["name"]: app["messaging"] for app in run.plan.get("spec", {}).get("apps") or [] if app.get("messaging")}


def match(run: Run, events: pl.DataFrame, matching: Matching, gaps: Gaps) -> pl.DataFrame:
    """Find what became of every request: a row for each, in the order of SCHEMA's columns."""
    if events.is_empty() and not services(run):
        return pl.DataFrame(schema=SCHEMA)
    known = _messages(matching)
    events, late = _in_time(run, events.sort("ts", maintain_order=True))
    outcomes = _outcomes(events)
    found = known.join(outcomes, on=["publisher", "id"], how="left", maintain_order="left")
    _unknown(run, outcomes.join(known, on=["publisher", "id"], how="anti"), gaps)
    found = _answered_topics(found).filter(_told(run) | pl.col("answeredTopic") | _asked(run))
    found = found.with_columns(pl.col("receipts", "failures", "nameless", "retransmissions").fill_null(0))
    _contradictions(run, found, gaps)
    found = _settled(found)
    _in_flight(run, found, late.join(known, left_on=["number", "id"], right_on=["publisher", "id"], how="semi"), gaps)
    _early(run, found, gaps)
    found = _at_own_servers(run, _addressed(found, matching), gaps)
    return found.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def without_receipt(requests: pl.DataFrame) -> list[tuple[str, int]]:
    """The reason of requests without a receipt and how many have it, the most frequent one first."""
    lacking = requests.filter(pl.col("reason").is_not_null())
    counts = lacking.group_by(reason=pl.col("reason").cast(pl.String)).len().sort("len", "reason", descending=[True, False])
    return [(f"outstanding ({reason})" if reason == OUTSTANDING else reason, count) for reason, count in counts.rows()]


def retransmissions(run: Run, requests: pl.DataFrame) -> int | None:
    """How often the senders' protocols sent requests again; None where TCP alone may have done so, which logs do not tell."""
    count = requests["retransmissions"].sum()
    return None if not count and all(run.instances[n].protocol in OVER_TCP for n in requests["publisher"].unique()) else count


def by_retransmissions(requests: pl.DataFrame) -> list[tuple[str, int]]:
    """How often a request was sent again, and how many were so often."""
    counts: dict[str, int] = {}
    for times, count in requests.group_by("retransmissions").len().sort("retransmissions").rows():
        name = str(times) if times < MAX_APART else f"{MAX_APART} or more"
        counts[name] = counts.get(name, 0) + count
    return list(counts.items())


def _messages(matching: Matching) -> pl.DataFrame:
    """Every message, sent or only triggered: message (null where it was not sent), publisher, id, topic, triggered, sent, bytes."""
    columns = ("message", "publisher", "id", "topic", "triggered", "sent", "bytes")
    sent = matching.messages.select(columns)
    never_sent = matching.never_sent.select("publisher", "id", "topic", "triggered", "bytes")
    return pl.concat([sent, never_sent], how="diagonal").select(columns)


def _in_time(run: Run, events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Events up to the end of the drain, and those after it."""
    if run.measure_end is None:
        return events, events.clear()
    late = pl.col("ts") > run.measure_end
    return events.filter(~late), events.filter(late)


def _outcomes(events: pl.DataFrame) -> pl.DataFrame:
    """What the log has of each (publisher, id); events are in order of time."""
    word = pl.col("text").str.extract(r"^\s*([A-Za-z]+)\s*(?::|$)")
    reason = pl.when(word.is_in(REASONS)).then(word).otherwise(pl.lit(OTHER))

    def of(status: str, value: pl.Expr) -> pl.Expr:
        return value.filter(pl.col("status") == status)

    return (
        events.with_columns(reason=reason)
        .group_by("number", "id", maintain_order=True)
        .agg(
            events=pl.len(),
            receipt=of("receipt", pl.col("ts")).first(),
            receiptBytes=of("receipt", pl.col("bytes")).first(),
            receipts=of("receipt", pl.col("ts")).len(),
            failed=of("failed", pl.col("ts")).first(),
            reason=of("failed", pl.col("reason")).first(),
            failures=of("failed", pl.col("ts")).len(),
            nameless=of("failed", pl.col("reason") == OTHER).sum(),
            retransmissions=of("retransmitted", pl.col("ts")).len(),
        )
        .rename({"number": "publisher"})
    )


def _answered_topics(found: pl.DataFrame) -> pl.DataFrame:
    """Add whether any message of the publisher on the same topic has a receipt: then all of them ask for one."""
    answered = found.filter(pl.col("receipt").is_not_null()).select("publisher", "topic", answeredTopic=True).unique()
    joined = found.join(answered, on=["publisher", "topic"], how="left", maintain_order="left", nulls_equal=True)
    return joined.with_columns(pl.col("answeredTopic").fill_null(False))


def _asked(run: Run) -> pl.Expr:
    """Whether a messaging service sent the message to one node and asked for a receipt."""
    nodes, groups = [node["name"] for node in run.nodes], {node["group"] for node in run.nodes}
    known = services(run)
    asked = pl.lit(False)
    for name, settings in known.items():
        if settings.get("receipt") is False:
            continue
        # By multicast a message to a group has no receipt, also to a group with the name of a node.
        alone = [node for node in nodes if not (settings.get("multicast") and node in groups)]
        numbers = [i.number for i in run.instances if i.app == name]
        to_one = pl.col("topic").cast(pl.String).is_in([f"messaging/{name}/to/{node}" for node in alone])
        asked = asked | (pl.col("publisher").is_in(numbers) & to_one)
    return asked.fill_null(False)


def _told(run: Run) -> pl.Expr:
    """Whether the log says that the message was a request. A service repeats also messages for which it asks no receipt."""
    numbers = [i.number for i in run.instances if i.app in services(run)]
    outcome = pl.col("receipt").is_not_null() | pl.col("failed").is_not_null()
    return pl.when(pl.col("publisher").is_in(numbers)).then(outcome).otherwise(pl.col("events").is_not_null()).fill_null(False)


def _settled(found: pl.DataFrame) -> pl.DataFrame:
    """Keep the earlier one of receipt and failure. A message that was not sent has no receipt and no retransmissions."""
    sent = pl.col("sent").is_not_null()
    answered = sent & pl.col("receipt").is_not_null() & (pl.col("failed").is_null() | (pl.col("receipt") <= pl.col("failed")))
    failed = pl.col("failed").is_not_null() & ~answered
    return found.with_columns(
        receipt=pl.when(answered).then("receipt"),
        receiptBytes=pl.when(answered).then("receiptBytes"),
        failed=pl.when(failed).then("failed"),
        reason=pl.when(failed).then("reason").when(~answered).then(pl.lit(OUTSTANDING)),
        retransmissions=pl.when(sent).then("retransmissions").otherwise(0),
    )


def _addressed(found: pl.DataFrame, matching: Matching) -> pl.DataFrame:
    """Add the subscriber, if there is exactly one, and whether any delivery is radio, local or cross."""
    pairs = matching.streams.pairs.group_by("publisher", "topic").agg(
        pl.col("radio", "local", "cross").any(), pl.when(pl.len() == 1).then(pl.col("subscriber").first()).alias("subscriber")
    )
    joined = found.join(pairs, on=["publisher", "topic"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("radio", "local", "cross").fill_null(False))


def _at_own_servers(run: Run, found: pl.DataFrame, gaps: Gaps) -> pl.DataFrame:
    """Complete requests to servers of the user's own that are in no delivery, and note them. A client calls other nodes only."""
    servers = {name: settings["server"] for name, settings in services(run).items() if settings.get("server")}
    groups = {node["name"]: node["group"] for node in run.nodes}
    called = [
        (i.number, f"messaging/{i.app}/to/{node}", group != i.group) for i in run.instances if i.app in servers for node, group in groups.items()
    ]
    known = pl.DataFrame(called, schema={"publisher": pl.UInt32, "topic": pl.Categorical, "across": pl.Boolean}, orient="row")
    found = found.join(known, on=["publisher", "topic"], how="left", maintain_order="left")
    undelivered = pl.col("across").is_not_null() & ~pl.col("radio") & ~pl.col("local")
    for name, server in sorted(servers.items()):
        numbers = [i.number for i in run.instances if i.app == name]
        count = found.filter(undelivered & pl.col("publisher").is_in(numbers)).height
        if count:
            gaps.note(
                f"requests to {server}",
                f"{count} requests of {name} are in no delivery: {server} is an app of its user's own that subscribes to none of them",
            )
    return found.with_columns(radio=pl.col("radio") | undelivered, cross=pl.col("cross") | (undelivered & pl.col("across")))


def _by_instance(run: Run, counted: pl.DataFrame, what: str, gaps: Gaps) -> None:
    """A gap for each publisher with a count; what has {count} and may have {example}, an id."""
    for number, count, example in counted.filter(pl.col("count") > 0).sort("publisher").rows():
        instance = run.instances[number]
        reason = what.format(count=count, example=f"{safe.bounded(example or '')!r}")
        gaps.add(f"requests of {instance.name}", reason, instance.node)


def _sums(found: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    """The sum of a value by publisher, and the least id that has any."""
    some = found.with_columns(count=value).filter(pl.col("count") > 0)
    return some.group_by("publisher").agg(pl.col("count").sum(), pl.col("id").min())


def _unknown(run: Run, unknown: pl.DataFrame, gaps: Gaps) -> None:
    what = "{count} receipts, failures and retransmissions, such as of id {example}, are of messages that it neither triggered nor sent; "
    _by_instance(run, _sums(unknown, pl.col("events").cast(pl.Int64)), what + "they are in no figure", gaps)


def _contradictions(run: Run, found: pl.DataFrame, gaps: Gaps) -> None:
    """Name events that contradict each other."""
    receipts, failures = pl.col("receipts").cast(pl.Int64), pl.col("failures").cast(pl.Int64)
    unsent = pl.when(pl.col("sent").is_null()).then(receipts + pl.col("retransmissions").cast(pl.Int64)).otherwise(0)
    both = (pl.col("sent").is_not_null() & pl.col("receipt").is_not_null() & pl.col("failed").is_not_null()).cast(pl.Int64)
    for value, what in (
        (unsent, "{count} receipts and retransmissions, such as of id {example}, are of messages that it did not send; they are in no figure"),
        ((receipts - 1).clip(0), "{count} receipts, such as of id {example}, repeat an earlier one; the first one of each request counts"),
        ((failures - 1).clip(0), "{count} failures, such as of id {example}, repeat an earlier one; the first one of each request counts"),
        (both, "{count} requests, such as id {example}, have both a receipt and a failure; the earlier one counts"),
        (pl.col("nameless").cast(pl.Int64), "{count} failures, such as of id {example}, do not begin with a known reason; they count as " + OTHER),
    ):
        _by_instance(run, _sums(found, value), what, gaps)


def _in_flight(run: Run, found: pl.DataFrame, late: pl.DataFrame, gaps: Gaps) -> None:
    """Name requests that were outstanding when the drain ended, and what came after it."""
    outstanding = found.filter(pl.col("reason") == OUTSTANDING)
    if outstanding.is_empty() and late.is_empty():
        return
    after = f"; {late.height} receipts, failures and retransmissions came after it and do not count" if late.height else ""
    reason = f"{OUTSTANDING}: {outstanding.height} requests had neither a receipt nor a failure at the end of the drain{after}"
    first = outstanding.select(pl.coalesce("sent", "triggered").min()).item() if outstanding.height else run.measure_end
    last = late["ts"].max() if late.height else run.measure_end
    gaps.add("requests in flight", reason, start=run.since_t0(first), end=run.since_t0(last))


def _early(run: Run, found: pl.DataFrame, gaps: Gaps) -> None:
    early = found.filter(pl.col("receipt") < pl.col("sent"))
    if early.height:
        worst = early.select((pl.col("sent") - pl.col("receipt")).max()).item() / 1e9
        reason = f"{early.height} receipts came up to {worst:.6f} s before their requests were logged as sent; they count as they are"
        gaps.add("negative delays", reason, start=run.since_t0(early["receipt"].min()), end=run.since_t0(early["receipt"].max()))
