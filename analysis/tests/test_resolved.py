"""A rerun has in place what the spec of its run names: waveforms, images and scenarios. It is a repeat of that run."""

import json

import polars as pl

from vignette_analysis.comparison import labels, rendering
from vignette_analysis.comparison.loading import Loaded

PCR = '<tdmabasemodel-pcr packetsize="0">\n  <datarate bps="1M"><entry sinr="3" por="0"/></datarate>\n</tdmabasemodel-pcr>\n'
TDMA = {
    "phy": {"frequency": "330MHz", "bandwidth": "1MHz", "transmitPower": "37dBm", "pathloss": "Scenario", "subid": 3},
    "structure": {"frames": 1, "slotDuration": "5ms", "slotOverhead": "3us"},
    "rate": "1Mbit",
    "adaptiveRates": [{"rate": "1Mbit", "sinr": "6dB"}, {"rate": "500kbit", "sinr": "3dB"}],
    "queue": {"depth": 256, "aggregation": True},
    "pcr": PCR,
}
GROUP_NET = {"group-net": {"description": "Broadband group net.", "tdma": TDMA}}
ROUTING = {"protocol": "olsrv2", "hello": "1s", "metric": "dat"}


def record(name: str, spec: dict, **plan) -> Loaded:
    """A record as run.json has it; a copy, as no two runs share objects."""
    return Loaded(json.loads(json.dumps({"uid": name, "name": name, "spec": spec} | plan)), {}, pl.DataFrame())


def uhf(subnet: int, **model) -> dict:
    rest = {"engine": "native", "radios": [{"nodes": ["lead"], "transmitPower": "15dBm"}], "routing": ROUTING, "mtu": 1500}
    return {"networks": [{"name": "uhf"} | model | rest | {"subnet": f"198.18.{subnet}.0/24"}]}


NAMED = record("t1", uhf(9, waveform="group-net"), waveforms=GROUP_NET)


def test_a_rerun_with_the_waveform_in_place_is_a_repeat_in_either_order():
    rerun = record("t1-rerun-1", uhf(10, tdma=TDMA))
    for runs in ([NAMED, rerun], [rerun, NAMED]):
        found = labels.name(runs)
        assert (found.differences, found.conditions) == ({}, [0, 0])


def test_of_a_rerun_with_a_change_only_that_change_differs():
    changed = record("t1-rerun-2", uhf(10, tdma=TDMA | {"rate": "2Mbit"}))
    found = labels.name([NAMED, record("t1-rerun-1", uhf(10, tdma=TDMA)), changed])
    assert (found.conditions, found.labels) == ([0, 0, 1], ["rate=1Mbit", "rate=2Mbit"])
    assert list(found.differences) == ["networks.uhf.tdma.rate"]


def test_waveforms_keep_their_names_beside_a_rerun_of_one():
    other = record("t2", uhf(9, waveform="leader-net"), waveforms={"leader-net": {"tdma": TDMA | {"rate": "64kbit", "pcr": "<other/>"}}})
    for by in (None, "waveform"):
        found = labels.name([other, record("t1-rerun-1", uhf(10, tdma=TDMA)), NAMED], by)
        assert (found.conditions, found.labels) == ([0, 1, 1], ["waveform=leader-net", "waveform=group-net"])
        assert list(found.differences) == ["networks.uhf.waveform"]


def test_a_waveform_of_other_contents_is_no_repeat_of_a_rerun():
    changed = record("t2", uhf(9, waveform="group-net"), waveforms={"group-net": {"tdma": TDMA | {"rate": "64kbit"}}})
    found = labels.name([NAMED, record("t1-rerun-1", uhf(10, tdma=TDMA)), changed])
    assert (found.conditions, found.labels) == ([0, 0, 1], ["rate=1Mbit", "rate=64kbit"])


def test_the_description_of_a_waveform_changes_nothing():
    described = record("t2", uhf(9, waveform="group-net"), waveforms={"group-net": GROUP_NET["group-net"] | {"description": "In other words."}})
    assert labels.name([NAMED, described]).differences == {}


def test_the_downlink_of_a_base_is_a_link_of_the_rerun():
    def cell(*base: str) -> Loaded:
        networks = [{"name": "cell", "waveform": "edge", "base": list(base)}]
        return record(f"cell-{base[0]}", {"networks": networks}, waveforms={"edge": {"link": {"delay": "60ms"}, "downlink": {"delay": "30ms"}}})

    links = [{"from": "hq", "to": "*", "delay": "30ms"}]
    rerun = record("cell-rerun-1", {"networks": [{"name": "cell", "link": {"delay": "60ms"}, "links": links}]})
    assert labels.name([cell("hq"), rerun]).differences == {}
    assert labels.name([cell("hq"), rerun, cell("mid")]).labels == ["base=hq", "base=mid"]


def app(image: str, ran: str = "") -> Loaded:
    images = [{"node": "lead", "container": "chat", "image": image, "id": ran}, {"container": "server", "image": "server:1", "id": "server@sha256:9"}]
    return record(image, {"apps": [{"name": "chat", "image": image}]}, environment={"images": images})


def test_an_image_by_its_digest_is_the_one_that_ran_by_its_tag():
    tagged, rerun = app("hub:5000/chat:v1", "docker-pullable://hub:5000/chat@sha256:1"), app("hub:5000/chat@sha256:1", "hub:5000/chat@sha256:1")
    assert labels.name([tagged, rerun]).conditions == [0, 0]
    assert labels.name([app("hub:5000/chat:v1", "hub:5000/chat@sha256:2"), rerun]).conditions == [0, 1]
    assert labels.name([app("hub:5000/chat:v1", "sha256:1"), rerun]).conditions == [0, 1], "an image from no registry has no digest"


def test_a_copy_of_a_scenario_is_the_same_scenario():
    def march(ref: str, digest: str) -> Loaded:
        return record(ref, {"scenario": {"ref": ref}}, scenario={"name": ref, "digest": digest})

    runs = [march("march", "sha256:1"), march("march-123456789abc", "sha256:1"), march("halt", "sha256:2")]
    found = labels.name(runs)
    assert (found.conditions, found.labels) == ([0, 0, 1], ["ref=march", "ref=halt"])


def test_long_values_come_last():
    longer = record("t2", uhf(9, tdma=TDMA | {"pcr": PCR + PCR, "rate": "64kbit"}) | {"duration": "5m"})
    found = labels.name([record("t1", uhf(9, tdma=TDMA) | {"duration": "1m"}), longer])
    assert list(found.differences) == ["networks.uhf.tdma.rate", "duration", "networks.uhf.tdma.pcr"]


def test_long_values_of_several_lines_are_cut_to_one_short_line():
    results = {"runs": [{"label": "a"}, {"label": "b"}], "fields": [{"field": "pcr", "values": ["<pcr>\n  <rate/>\n</pcr>\n", PCR]}]}
    ((_, short, long),) = rendering._fields_table(results, set()).rows
    assert short == "<pcr> <rate/> </pcr>"
    assert (long[-1], len(long)) == ("…", 40) and "\n" not in long
