from lab import gap, gap_names

from vignette_analysis import analyse


def test_a_node_that_no_radio_sampled_is_a_gap(pair):
    for node in pair.nodes:
        node["addresses"] = {"wan": "198.18.9.1"}
    assert gap(analyse(pair.write()).results, "radio samples of prt on wan")["node"] == "prt"
    pair.sample("prt", -1.0, 0).sample("prt", 61.0, 0)
    assert gap_names(analyse(pair.write()).results) == set()
