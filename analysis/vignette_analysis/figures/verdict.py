"""The verdict: whether the bounds of the headline's figures are within the spec's tolerances."""

from dataclasses import replace

from ..data.gaps import Gaps
from ..data.run import Run, duration
from .bounds import GIVE_UP_SECONDS
from .intervals import union
from .lateness import Lateness, Loss

# runapi.MostLate
MOST_LATE = 50
# Defaults of spec.tolerances.
DEFAULTS = {"median": "1%", "p95": "5%", "delay": "1ms", "delivered": "0.1%"}
# Greatest shares without message logs: late frames, frames lost by the emulation, missed slots, time without emulation.
LATE_SHARE, LOST_SHARE, HALTED_SHARE = 0.01, 0.001, 0.01


def possible(run: Run, lateness: Lateness, sampled: bool, gaps: Gaps) -> bool:
    """Report whether there is enough for a verdict, and name what is missing."""
    emane = _emane_networks(run)
    for name in emane:
        reason = "EMANE tells missed slots and late frames, and not how late each frame was: the emulation is not said to have kept up"
        gaps.note(f"verdict: EMANE on {name}", reason)
    if run.t0 is not None and lateness.logged and (sampled or not run.plan.get("spec", {}).get("networks")):
        return True
    if not emane:
        gaps.add("verdict", "logs of some agent, radio samples of some node or T0 are missing: whether the emulation kept up is not known")
    return False


def judge(run: Run, lateness: Lateness, headline: dict) -> dict:
    """Return {"verdict": runapi.Verdict}; empty for networks of EMANE, which does not report its lateness."""
    bounds = headline.get("bounds")
    allowed = tolerances(run)
    exceeded = _exceeded(headline, allowed) if bounds else _shares_exceeded(run, lateness)
    if _emane_networks(run) and not exceeded:
        return {}
    return {
        "verdict": {
            "keptUp": not exceeded,
            **({"exceeded": exceeded} if exceeded else {}),
            "tolerances": allowed,
            **({"bounds": bounds} if bounds else {}),
            **({"networks": lateness.networks} if lateness.networks else {}),
            "actions": _actions(lateness),
            "late": _moments(run, lateness) or None,
            **({"context": lateness.context} if lateness.context else {}),
        }
    }


def _emane_networks(run: Run) -> list[str]:
    return [n["name"] for n in run.plan.get("spec", {}).get("networks") or [] if n.get("engine") == "emane"]


def tolerances(run: Run) -> dict:
    """runapi.Tolerances of the spec."""
    given = DEFAULTS | (run.plan.get("spec", {}).get("tolerances") or {})
    percent = {name: float(given[name].removesuffix("%")) for name in ("median", "p95", "delivered")}
    return {
        "medianPercent": percent["median"],
        "p95Percent": percent["p95"],
        "leastSeconds": duration(given["delay"]),
        "deliveredPoints": percent["delivered"],
    }


def off_by(group: dict) -> dict[str, float]:
    """By how much a group's median and p95 (seconds) and delivered share (points) are off at most; unknown ones are left out."""
    bounds, delay, found = group.get("bounds") or {}, group["delaySeconds"] or {}, {}
    for name in ("median", "p95"):
        interval = (bounds.get("delaySeconds") or {}).get(name)
        if interval and delay.get(name) is not None:
            found[name] = _furthest(interval, delay[name])
    share, delivered = bounds.get("deliveredPercent"), group["messages"].get("deliveredPercent")
    if share and delivered is not None:
        found["delivered"] = _furthest(share, delivered)
    return found


def off_text(off: dict[str, float]) -> str:
    """off_by in words; empty if nothing is known."""
    said = [f"{milliseconds(off[name])} of {'the median' if name == 'median' else name}" for name in ("median", "p95") if name in off]
    return ", ".join(said + ([f"{off['delivered']:.2g} points of delivered"] if "delivered" in off else []))


def sentence(verdict: dict | None, group: dict) -> str:
    """The verdict in a sentence, and by how much the headline figures are off."""
    if verdict is None:
        return "not judged"
    if verdict["keptUp"]:
        off = off_by(group)
        return "kept up" + (f"; figures are off by at most {off_text(off)}" if any(off.values()) else "")
    return f"DID NOT KEEP UP: {'; '.join(reasons(verdict))}"


def reasons(verdict: dict) -> list[str]:
    """Sentences on why the emulation did not keep up. Older results have none."""
    return verdict.get("exceeded") or [f"late {len(verdict.get('late') or [])} times"]


def _furthest(interval: dict, measured: float) -> float:
    return max(interval["high"] - measured, measured - interval["low"], 0.0)


def _exceeded(headline: dict, allowed: dict) -> list[str]:
    off = off_by(headline)
    found = []
    for name in ("median", "p95"):
        if name not in off:
            continue
        measured, percent = headline["delaySeconds"][name], allowed[f"{name}Percent"]
        limit = max(percent / 100 * measured, allowed["leastSeconds"])
        if off[name] > limit:
            found.append(f"the {name} of the delay may be off by {milliseconds(off[name])}; {percent:g} % or {milliseconds(limit)} is tolerated")
    if off.get("delivered", 0.0) > allowed["deliveredPoints"]:
        limit = allowed["deliveredPoints"]
        found.append(f"the delivered share may be off by {off['delivered']:.2f} points; {limit:g} points are tolerated")
    return found


def _shares_exceeded(run: Run, lateness: Lateness) -> list[str]:
    """Compare the emulation's own counts with their limits, for runs without message logs."""
    found = []
    for network in lateness.networks:
        frames, slots = network["frames"], network.get("slots", 0)
        parts = (
            ("late", frames, LATE_SHARE, "frames were released late"),
            ("lost", frames + network["lost"], LOST_SHARE, "frames were lost by the emulation"),
            ("missed", slots + network.get("missed", 0), LOST_SHARE, "time slots were missed"),
            ("lateInterference", frames, LOST_SHARE, "frames were received only because interference was known too late"),
        )
        for name, total, limit, what in parts:
            count = network.get(name, 0)
            if count > limit * total:
                found.append(f"{count} of {total} {what} on {network['name']}; {100 * limit:g} % is tolerated")
    # What is late at once counts once.
    long = union((i.end - round(1e9 * i.seconds), i.end) for i in lateness.intervals if i.seconds >= GIVE_UP_SECONDS)
    halted = float((long[:, 1] - long[:, 0]).sum()) / 1e9
    halted += max((a.seconds for a in lateness.actions if a.late), default=0.0)
    if halted > HALTED_SHARE * run.duration_seconds:
        found.append(f"the emulation or the start of an app was late by {halted:.1f} s; {100 * HALTED_SHARE:g} % of the run is tolerated")
    lost = sum(loss.frames for loss in lateness.losses if not loss.network)
    if lost:
        found.append(f"{lost} transmissions between hosts were lost; none is tolerated without message logs")
    return found


def milliseconds(seconds: float) -> str:
    """A duration for people."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _actions(lateness: Lateness) -> dict:
    return {
        "actions": len(lateness.actions),
        "late": sum(action.late for action in lateness.actions),
        "worstSeconds": max((action.seconds for action in lateness.actions), default=0.0),
    }


def _moments(run: Run, lateness: Lateness) -> list[dict]:
    """The worst moments as runapi.Late in order of time. Lost frames are chosen first, then the longest lateness."""
    lost = [loss for loss in lateness.losses if loss.frames] + _by_network(lateness.interference)
    found = [((0, -loss.frames), _late(run, loss.node, loss.start, loss.end, f"{loss.frames} {loss.what}", 0.0)) for loss in lost]
    found += [((1, -i.seconds), _late(run, i.node, i.start, i.end, i.what, i.seconds)) for i in lateness.intervals]
    for a in lateness.actions:
        if a.late:
            due = a.at - round(a.seconds * 1e9)
            found.append(((1, -a.seconds), _late(run, a.node, due, a.at, f"{a.what} {a.instance}".strip(), a.seconds)))
    worst = [entry for _, entry in sorted(found, key=lambda pair: pair[0])[:MOST_LATE]]
    return sorted(worst, key=lambda entry: (entry["fromSeconds"], entry["node"], entry["what"]))


def _by_network(receptions: list[Loss]) -> list[Loss]:
    """One entry for all receptions of a network, as there may be some in every second."""
    found: dict[str, Loss] = {}
    for one in receptions:
        before = found.get(one.network, replace(one, frames=0))
        found[one.network] = Loss(min(before.start, one.start), max(before.end, one.end), before.frames + one.frames, one.what, one.network)
    return list(found.values())


def _late(run: Run, node: str, start: int, end: int, what: str, seconds: float) -> dict:
    return {"node": node, "fromSeconds": run.since_t0(start), "toSeconds": run.since_t0(end), "what": what, "worstSeconds": round(seconds, 6)}
