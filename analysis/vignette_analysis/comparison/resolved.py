"""Specs of runs with what they name in place, so that a rerun, which has no such names, is a repeat of its run."""

import json

from .loading import Loaded

# The fields of a network that its waveform decides: the models, and links, which may be a base's downlink.
MODELS = ("link", "downlink", "rfpipe", "tdma", "emane")
_DECIDED = (*MODELS, "links")
# How a network names its waveform.
_NAMES = ("waveform", "base")


def specs(runs: list[Loaded]) -> list[dict]:
    """The spec of every run. Names stay only where all runs have what they stand for under a name."""
    made = [dict(run.plan.get("spec", {})) for run in runs]
    for spec, networks in zip(made, _networks(runs), strict=True):
        if networks:
            spec["networks"] = networks
    for spec, apps in zip(made, _apps(runs), strict=True):
        if apps:
            spec["apps"] = apps
    _name_scenarios(made, runs)
    return made


def _networks(runs: list[Loaded]) -> list[list[dict]]:
    """The networks of every run. They keep a waveform's name if each run's contents belong to one that a run names, else have models in place."""
    of_runs = [(run.plan.get("spec", {}).get("networks") or [], run.plan.get("waveforms") or {}) for run in runs]
    in_place = [[_in_place(network, waveforms) for network in networks] for networks, waveforms in of_runs]
    # By a network's name and contents, how the first run that names its waveform has it.
    named: dict[tuple[str, str], dict] = {}
    for (networks, waveforms), placed in zip(of_runs, in_place, strict=True):
        for network, contents in zip(networks, placed, strict=True):
            if "waveform" in network:
                named.setdefault(_key(contents), _named(network, waveforms))
    nameless = {network["name"] for placed in in_place for network in placed if _key(network) not in named}
    return [[n if n["name"] in nameless else _without(n, _DECIDED) | named[_key(n)] for n in placed] for placed in in_place]


def _in_place(network: dict, waveforms: dict[str, dict]) -> dict:
    """A network with its waveform in place, as a rerun has it by render.WithWaveform."""
    waveform = waveforms.get(network.get("waveform", ""))
    if waveform is None:
        return network
    links, downlink = list(network.get("links") or []), waveform.get("downlink")
    for base in (network.get("base") or []) if downlink is not None else []:
        if not any(link["from"] == base and link["to"] == "*" for link in links):
            links.append({"from": base, "to": "*"} | downlink)
    models = {key: waveform[key] for key in MODELS if key in waveform and key != "downlink"}
    return _without(network, _NAMES) | models | ({"links": links} if links else {})


def _named(network: dict, waveforms: dict[str, dict]) -> dict:
    """What a network that names its waveform has instead of the models in place."""
    waveform = waveforms.get(network["waveform"], {})
    return {key: network[key] for key in (*_NAMES, "links") if key in network} | {key: waveform[key] for key in MODELS if key in waveform}


def _key(network: dict) -> tuple[str, str]:
    """A network's name, and what its waveform decides."""
    return network["name"], json.dumps({key: network.get(key) for key in ("waveform", *_DECIDED)}, sort_keys=True)


def _without(network: dict, fields: tuple[str, ...]) -> dict:
    return {key: value for key, value in network.items() if key not in fields}


def _apps(runs: list[Loaded]) -> list[list[dict]]:
    """The apps of every run. An image has its digest in place of its tag where another run names the same one by its digest."""
    of_runs = [run.plan.get("spec", {}).get("apps") or [] for run in runs]
    pinned = {app["image"] for apps in of_runs for app in apps if "@" in app.get("image", "")}
    return [
        [app | {"image": image} if (image := _by_digest(app, run)) in pinned else app for app in apps]
        for run, apps in zip(runs, of_runs, strict=True)
    ]


def _by_digest(app: dict, run: Loaded) -> str | None:
    """The image of an app by the digest that ran; None unless one is known, and only one."""
    image = app.get("image", "")
    if not image or "@" in image:
        return image or None
    ran = (run.plan.get("environment") or {}).get("images") or []
    found = {entry.get("id", "").partition("@")[2] for entry in ran if entry.get("node") and entry.get("container") == app["name"]}
    if len(found) != 1 or not all(found):
        return None
    start, slash, last = image.rpartition("/")
    return f"{start}{slash}{last.partition(':')[0]}@{found.pop()}"


def _name_scenarios(made: list[dict], runs: list[Loaded]) -> None:
    """Give scenarios of one digest one name: a rerun may have a copy under another."""
    names: dict[str, str] = {}
    for spec, run in zip(made, runs, strict=True):
        digest = (run.plan.get("scenario") or {}).get("digest")
        if digest and (ref := (spec.get("scenario") or {}).get("ref")):
            spec["scenario"] = spec["scenario"] | {"ref": names.setdefault(digest, ref)}
