"""The form of the results that a comparison reads. A team's pods write them: they are not trusted until checked."""

import json
import sys
from dataclasses import dataclass

# Longest value that an error quotes, in characters.
_LONGEST = 40


class FormError(ValueError):
    """A field that is not what it should be, in words."""


@dataclass(frozen=True)
class _Maybe:
    """A form, or null; absent also, unless it must be there."""

    form: object
    there: bool = False


@dataclass(frozen=True)
class _Each:
    """An object whose fields all have one form, whatever their names."""

    form: object


_ABSENT = object()
_KINDS = {
    "a text": lambda value: isinstance(value, str),
    "a number": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max,
    "a whole number from 0 to 1000000000": lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**9,
    "true or false": lambda value: isinstance(value, bool),
    "an object": lambda value: isinstance(value, dict),
}
_TEXT, _NUMBER, _COUNT, _TRUTH, _OBJECT = _KINDS
_INTERVAL = {"low": _NUMBER, "high": _NUMBER}
_REMARKS = _Maybe([{"what": _TEXT, "reason": _TEXT}])
# Older results lack some.
_QUANTILES = {name: _Maybe(_NUMBER) for name in ("min", "p25", "median", "mean", "p75", "p95", "max")}
_MESSAGES = {name: _COUNT for name in ("sent", "expected", "received", "lost")}
_MESSAGES |= {"neverSent": _Maybe(_COUNT), "lostPercent": _Maybe(_NUMBER), "deliveredPercent": _Maybe(_NUMBER)}
_REQUESTS = {name: _COUNT for name in ("triggered", "sent", "receipts", "outstanding")} | {
    "retransmissions": _Maybe(_COUNT, there=True),
    "failed": _Maybe(_Each(_COUNT), there=True),
    "receiptPercent": _Maybe(_NUMBER, there=True),
    "responseSeconds": _Maybe(_QUANTILES | {name: _NUMBER for name in ("min", "mean", "max")}, there=True),
    "confidence": {name: _Maybe(_INTERVAL, there=True) for name in ("receiptPercent", "meanSeconds")},
}
_BOUNDS = {"delaySeconds": _Maybe({name: _Maybe(_INTERVAL) for name in ("median", "p95")}), "deliveredPercent": _Maybe(_INTERVAL)}


def _results(version: int) -> dict:
    # What version 1 lacks is made of what was lost.
    own = {"triggered": _COUNT, "offered": _COUNT} if version > 1 else {"lostPercent": _NUMBER}
    counted = {"messages": _MESSAGES | own, "delaySeconds": _Maybe(_QUANTILES)}
    counted |= {} if version > 1 else {"confidence": _Maybe({"lostPercent": _Maybe(_INTERVAL)})}
    figures = counted | {"bounds": _Maybe(_BOUNDS), "requests": _Maybe(_REQUESTS)}
    medians = _Maybe({"median": _Maybe(_NUMBER)})
    return ({} if version > 1 else counted) | {
        "startTime": _Maybe(_TEXT),
        "durationSeconds": _Maybe(_NUMBER),
        "headline": _Maybe(_TEXT),
        "verdict": _Maybe({"keptUp": _Maybe(_TRUTH), "exceeded": _Maybe([_TEXT]), "late": _Maybe([_OBJECT])}),
        "warnings": _REMARKS,
        "gaps": _REMARKS,
        "groups": _Maybe([{"name": _TEXT} | figures]),
        "publishers": _Maybe([{"name": _TEXT, "node": _TEXT} | counted]),
        "pairs": _Maybe([{"from": _TEXT, "to": _TEXT} | figures]),
        "networks": _Maybe([{"name": _TEXT, "bytesPerSecond": _Maybe(_NUMBER)}]),
        "messageSizes": _Maybe([{"protocol": _TEXT, "medianBytes": _NUMBER}]),
        "picture": _Maybe({"groups": _Maybe([{"name": _TEXT, "errorMetres": medians, "ageSeconds": medians}])}),
    }


def check(results: dict) -> None:
    """Raise FormError for the first field that a comparison reads and that is not as docs/reference/results.md has it."""
    _check("", results, _results(results["schemaVersion"]))
    for name in ("groups", "pairs"):
        for i, entry in enumerate(results.get(name) or []):
            offered, expected = (entry["messages"].get(count) for count in ("offered", "expected"))
            if offered is not None and offered < expected:
                raise FormError(f"{name}[{i}].messages.offered is {offered}: want what is expected, {expected}, or more")


def _check(field: str, value: object, form: object) -> None:
    if isinstance(form, _Maybe):
        if value is None or (value is _ABSENT and not form.there):
            return
        form = form.form
    kind = _kind(form)
    if not (isinstance(value, list) if isinstance(form, list) else _KINDS[kind](value)):
        raise FormError(f"{field} is {_quoted(value)}: want {kind}")
    if isinstance(form, dict):
        for name, part in form.items():
            _check(f"{field}.{name}".removeprefix("."), value.get(name, _ABSENT), part)
    if isinstance(form, _Each):
        for name, part in value.items():
            _check(f"{field}.{_quoted(name)}", part, form.form)
    if isinstance(form, list):
        for i, entry in enumerate(value):
            _check(f"{field}[{i}]", entry, form[0])


def _kind(form: object) -> str:
    if isinstance(form, list):
        return "a list"
    return _OBJECT if isinstance(form, dict | _Each) else form


def _quoted(value: object) -> str:
    if value is _ABSENT:
        return "missing"
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
