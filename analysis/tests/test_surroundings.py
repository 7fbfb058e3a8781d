"""Positions, links and hops, from radiod's logs."""

import json
import random

import polars as pl
import pytest
from lab import SECOND, T0, Lab, gap_names

from vignette_analysis import analyse, outputs
from vignette_analysis.figures import surroundings

NODES = {"a": "198.18.9.1", "b": "198.18.9.2", "c": "198.18.9.3"}


@pytest.fixture
def net(lab) -> Lab:
    """Three nodes that route by OLSRv2 on one network."""
    for name, address in NODES.items():
        lab.node(name)
        lab.nodes[-1]["addresses"] = {"wan": address}
    lab.plan["spec"] = {"duration": "1m", "networks": [{"name": "wan", "routing": {"protocol": "olsrv2"}}], "apps": []}
    return lab


def route(to: str, hops: int) -> dict:
    return {"to": f"{NODES.get(to, to)}/32", "network": "wan", "hops": hops, "metric": hops}


def hops_of(analysis) -> list[tuple]:
    return [((ts - T0) / SECOND, source, destination, hops) for ts, _, source, destination, hops in analysis.hops.rows()]


def counted(analysis, second: int) -> dict:
    return {hops: pairs for _, at, hops, pairs in analysis.hop_histogram.rows() if at == second}


@pytest.mark.usefixtures("without_plots")
def test_a_run_without_surroundings_has_empty_tables(pair, tmp_path):
    analysis = analyse(pair.write())
    outputs.write(analysis, tmp_path)
    for name, schema in (
        ("positions", surroundings.POSITIONS),
        ("links", surroundings.LINKS),
        ("hops", surroundings.HOPS),
        ("hop-histogram", surroundings.HOP_HISTOGRAM),
    ):
        frame = getattr(analysis, name.replace("-", "_"))
        assert frame.is_empty() and frame.columns == list(schema)
        assert (tmp_path / f"{name}.csv").read_text().strip() == ",".join(schema)


def test_positions_are_a_row_where_a_node_has_moved(net):
    net.around(0.5, network="wan", positions={"a": [58.0, 7.0, 20], "b": [58.1, 7.1, 20.5]})
    net.around(1.5, network="wan", positions={"b": [58.2, 7.1, 20.5]})
    rows = analyse(net.write()).positions.rows()
    assert rows[1:] == [(T0 + SECOND // 2, "b", 58.1, 7.1, 20.5), (T0 + 3 * SECOND // 2, "b", 58.2, 7.1, 20.5)] and rows[0][1] == "a"


def test_a_node_with_two_radios_is_at_one_place(net):
    for network in ("wan", "lan"):
        net.around(0.5, network=network, positions={"a": [58.0, 7.0, 20]})
    assert analyse(net.write()).positions.height == 1


@pytest.mark.parametrize("at", [[], [58.0], [91, 7, 0], ["x", 7, 0], None, {}])
def test_what_is_no_position_is_left_out(net, at):
    net.around(0.5, network="wan", positions={"a": at}).around(1.0, network="wan", positions={"b": [58, 7, 0]})
    assert analyse(net.write()).positions["node"].to_list() == ["b"]


def test_links_have_what_the_records_have(net):
    net.around(1, network="wan", receiver="b", **{"from": [{"node": "a", "sinrDB": 12.5, "pathlossDB": 80, "heard": 3, "missed": {"lowSINR": 2}}]})
    net.around(2, network="wan", receiver="b", **{"from": [{"node": "c", "heard": 0, "missed": {"belowSensitivity": 7, "halfDuplex": 1}}]})
    first, second = analyse(net.write()).links.to_dicts()
    assert first == {"ts": T0 + SECOND, "network": "wan", "source": "a", "receiver": "b", "sinrDB": 12.5, "pathlossDB": 80.0, "heard": 3} | {
        "belowSensitivity": 0, "lowSINR": 2, "interfered": 0, "halfDuplex": 0, "notListening": 0,
    }  # fmt: skip
    assert (second["sinrDB"], second["belowSensitivity"], second["halfDuplex"]) == (None, 7, 1)


def test_hops_are_a_row_where_they_changed(net):
    net.around(1, node="a", routing="olsrv2", whole=True, routes=[route("b", 1)])
    net.around(2, node="a", routing="olsrv2", routes=[route("c", 2)])
    net.around(3, node="a", routing="olsrv2", routes=[route("c", 2)])
    net.around(4, node="a", routing="olsrv2", routes=[route("c", 1)], gone=["198.18.9.2/32"])
    assert hops_of(analyse(net.write())) == [(1, "a", "b", 1), (2, "a", "c", 2), (4, "a", "c", 1), (4, "a", "b", None)]


def test_a_whole_table_ends_the_routes_that_it_lacks(net):
    net.around(1, node="a", routing="olsrv2", whole=True, routes=[route("b", 1), route("c", 2)])
    net.around(5, node="a", routing="olsrv2", whole=True, routes=[route("b", 1)])
    assert hops_of(analyse(net.write())) == [(1, "a", "b", 1), (1, "a", "c", 2), (5, "a", "c", None)]


def test_hops_are_those_of_the_first_topology(net):
    net.around(1, node="a", routing="olsrv2", whole=True, routes=[route("b", 1)])
    net.around(1, node="a", routing="olsrv2", topology="bulk", whole=True, routes=[route("b", 3), route("c", 3)])
    net.around(2, node="a", routing="olsrv2", topology="bulk", gone=["198.18.9.2/32"])
    assert hops_of(analyse(net.write())) == [(1, "a", "b", 1)]


def test_the_histogram_counts_every_pair_in_every_second(net):
    net.around(-1, node="a", routing="olsrv2", whole=True, routes=[route("b", 1)])
    net.around(-1, node="b", routing="olsrv2", whole=True)
    net.around(2.5, node="a", routing="olsrv2", routes=[route("c", 2)])
    analysis = analyse(net.write())
    # c does not route itself: two nodes with two others each.
    assert [counted(analysis, second) for second in (0, 1, 2, 59)] == [{1: 1, None: 3}] * 2 + [{1: 1, 2: 1, None: 2}] * 2
    assert analysis.hop_histogram["second"].max() == 59


def test_destinations_that_are_no_nodes_are_named(net):
    net.around(1, node="a", routing="olsrv2", routes=[route("10.0.0.0", 1)])
    analysis = analyse(net.write())
    assert analysis.hops.is_empty() and "hops" in gap_names(analysis.results)


def test_the_hops_are_those_of_the_tables_at_every_moment(net):
    """Random tables, told as radiod tells them: changes, and now and then the whole."""
    rng = random.Random(5)
    tables, truth = {name: {} for name in NODES}, {}
    for second in range(1, 60):
        node = rng.choice(list(NODES))
        others = [name for name in NODES if name != node]
        now = {other: rng.randint(1, 4) for other in others if rng.random() < 0.6}
        whole = rng.random() < 0.2
        changed = [route(to, hops) for to, hops in now.items() if whole or tables[node].get(to) != hops]
        gone = [f"{NODES[to]}/32" for to in tables[node] if to not in now]
        net.around(second, node=node, routing="olsrv2", routes=changed, **({"whole": True} if whole else {"gone": gone}))
        tables[node] = now
        truth[second] = {(n, to): hops for n, table in tables.items() for to, hops in table.items()}
    hops = analyse(net.write()).hops
    for second, expected in truth.items():
        last = hops.filter(pl.col("ts") <= T0 + second * SECOND).group_by("source", "destination", maintain_order=True).last()
        assert {(r["source"], r["destination"]): r["hops"] for r in last.to_dicts() if r["hops"] is not None} == expected


def test_blocks_make_no_difference(net, monkeypatch):
    for second in range(50):
        net.around(second, network="wan", positions={"a": [58 + second / 1000, 7, 0]})
        net.around(second, network="wan", receiver="b", **{"from": [{"node": "a", "heard": second}]})
    whole = analyse(net.write())
    monkeypatch.setattr(surroundings, "BLOCK_BYTES", 300)
    parts = analyse(net.directory)
    assert parts.positions.equals(whole.positions) and parts.links.equals(whole.links) and whole.links.height == 50


def test_torn_and_foreign_lines_do_no_harm(net):
    net.around(1, network="wan", receiver="b", **{"from": [{"node": "a", "heard": 1}]})
    lines = net.logs["radio/host-a.jsonl"]
    lines += ['{"receiver": 7}', '{"routing": {}}', '{"positions": []}', json.dumps({"ts": T0, "network": "wan", "receiver": "b", "from": "a"})]
    lines.append('{"ts": 1, "network": "wan", "receiver": "b", "from": [{"no\0torn')
    assert analyse(net.write()).links.height == 1
