"""Runs whose networks lie on several hosts."""

import json

from lab import SECOND, T0, Lab, gap, gap_names
from test_radiolog import radio_gap

from vignette_analysis import analyse


def known(run: Lab, at: float, host: str = "host-a", peer: str = "host-b", **more) -> Lab:
    record = {
        "ts": T0 + round(at * SECOND),
        "peer": peer,
        "reachable": True,
        "offsetSeconds": 0.0,
        "uncertaintySeconds": 0.00007,
        "sent": 1,
        "received": 1,
    }
    run.logs.setdefault(f"radio/{host}.jsonl", []).append(json.dumps(record | more))
    return run


def test_what_hosts_know_of_each_other_is_no_gap_while_all_is_well(pair):
    plain = analyse(pair.write()).results
    known(known(pair, 1.0), 2.0)
    results = analyse(pair.write()).results
    assert gap_names(results) == gap_names(plain)
    assert results["verdict"]["keptUp"] and results["verdict"]["late"] is None


def test_a_difference_of_clocks_is_named(pair):
    known(known(pair, 1.0), 2.0, offsetSeconds=-0.25)
    found = gap(analyse(pair.write()).results, "clock offset")
    assert "host-b was up to -0.250000 s (known within 0.000070 s) off that of host host-a" in found["reason"]


def test_clocks_that_may_differ_are_said_to_by_the_sum_of_what_is_known_and_not(pair):
    known(known(pair, 1.0), 2.0, offsetSeconds=-0.0005, uncertaintySeconds=0.002)
    found = gap(analyse(pair.write()).results, "clock offset")
    assert found["reason"].endswith(
        "was up to -0.000500 s (known within 0.002000 s) off that of host host-a: delays between their nodes may be wrong by 0.002500 s"
    )


def test_a_lost_host_speaks_against_the_emulation(pair):
    radio_gap(pair, "hostUnreachable", 12.0, None, reason="host host-b of network wan was not reachable")
    radio_gap(pair, "hostUnreachable", 12.0, 15.5, reason="host host-b of network wan was not reachable")
    results = analyse(pair.write()).results
    assert gap(results, "hostUnreachable")["toSeconds"] == 15.5
    (late,) = results["verdict"]["late"]
    assert (late["fromSeconds"], late["toSeconds"], late["worstSeconds"]) == (12.0, 15.5, 3.5) and "host-b" in late["what"]


def test_what_is_lost_between_hosts_speaks_against_the_emulation(pair):
    known(known(known(pair, 1.0, missingDatagrams=5), 2.0, missingDatagrams=8), 3.0, missingDatagrams=1)
    # radiod began to count anew before the last sample.
    late = analyse(pair.write()).results["verdict"]["late"]
    assert [moment["what"] for moment in late] == [f"{n} datagrams lost on the way between hosts host-b and host-a" for n in (3, 1)]


def test_what_is_lost_between_hosts_counts_from_t0_to_the_end_of_the_drain(pair):
    for at, missing in ((-2.5, 0), (-1.5, 2), (0.5, 5), (59.5, 5), (60.5, 9), (61.5, 20)):
        known(pair, at, missingDatagrams=missing)
    late = analyse(pair.write()).results["verdict"]["late"]
    assert [(moment["fromSeconds"], moment["what"].split()[0]) for moment in late] == [(-1.5, "3"), (59.5, "4")]
