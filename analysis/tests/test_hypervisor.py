"""What hypervisors took stands beside what was late."""

import json

from lab import SECOND, T0

from vignette_analysis import analyse


def taken(run, at: float, seconds: float, host: str = "host-a"):
    run.logs.setdefault(f"radio/{host}.jsonl", []).append(json.dumps({"ts": T0 + round(at * SECOND), "stolenSeconds": seconds}))


def late_frames(pair):
    """Frames of nor were late from 4 s to 5 s."""
    pair.logs.pop("radio/host-a.jsonl", None)
    for second in range(-1, 62):
        pair.sample("nor", float(second), 0, worstLatenessSeconds=0.03 if second == 5 else 0.0001)
        pair.sample("prt", float(second), 0, host="host-b")


def test_what_was_late_says_what_the_hypervisor_took_from_its_host_meanwhile(pair):
    late_frames(pair)
    taken(pair, 3.0, 0.9)
    taken(pair, 5.0, 0.05)
    taken(pair, 5.5, 0.07)
    taken(pair, 5.0, 0.8, host="host-b")
    taken(pair, 20.0, 0.9)
    (late,) = analyse(pair.write()).results["verdict"]["late"]
    assert late["what"] == "frames released late on wan; meanwhile the hypervisor took 0.12 s of processor time from host host-a"


def test_what_the_hypervisor_took_is_not_late_by_itself(pair):
    pair.sample("nor", -1.0, 0).sample("nor", 61.0, 0).sample("prt", -1.0, 0).sample("prt", 61.0, 0)
    plain = analyse(pair.write()).results
    taken(pair, 20.0, 0.9)
    assert analyse(pair.write()).results["gaps"] == plain["gaps"]


def test_late_without_anything_taken_is_said_as_before(pair):
    late_frames(pair)
    (late,) = analyse(pair.write()).results["verdict"]["late"]
    assert late["what"] == "frames released late on wan"
