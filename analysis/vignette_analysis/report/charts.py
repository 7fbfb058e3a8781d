"""Charts as SVG with the page's colours, so they follow light, dark and print. Each has two widths, for screens and phones.

Series differ by colour and by pattern, dash or marker. All text is escaped.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from ..figures import summary

# Widths of a chart in px, on a screen or paper, and on a phone.
WIDE, NARROW = 780, 350
# Ratio of the largest to the smallest value from which an axis is logarithmic.
LOGARITHMIC_FROM = 50.0
SERIES = 8


@dataclass(frozen=True)
class Scale:
    """Maps values to positions in px along an axis."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The position of a value; values beyond the axis are at its end."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int) -> list[float]:
        """About this many round values."""
        if self.logarithmic:
            factors = (1, 2, 5) if self.high / self.low < 10 ** (count / 3) else (1,)
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            decades = decades[:: max(math.ceil(math.log10(self.high / self.low) / count), 1)]
            return [f * 10.0**d for d in decades for f in factors if self.low <= f * 10.0**d * (1 + 1e-9) and f * 10.0**d <= self.high * (1 + 1e-9)]
        step = round_step((self.high - self.low) / max(count, 1))
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def round_step(step: float) -> float:
    """The least round number that is not less."""
    magnitude = 10.0 ** math.floor(math.log10(step))
    return next(f * magnitude for f in (1, 2, 5, 10) if f * magnitude >= step * (1 - 1e-9))


def spanning(least: float, greatest: float) -> tuple[float, float, bool]:
    """The ends of an axis for values in this range, and whether it is logarithmic."""
    if least > 0 and greatest / least > LOGARITHMIC_FROM:
        return least / 1.15, greatest * 1.15, True
    low = min(least, 0.0)
    high = greatest + (greatest - low) * 0.04
    return low, high if high > low else low + 1.0, False


def number(value: float | None, digits: int = 4) -> str:
    """A number with this many significant digits; an en dash for None."""
    if value is None or math.isnan(value):
        return "\u2013"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", "\u202f")
    if abs(value) >= 10**digits:
        return number(round(value), digits)
    text = f"{value:.{digits}g}"
    return f"{value:.{digits - 1}e}" if "e" in text and abs(value) < 1e-6 else f"{float(text):f}".rstrip("0").rstrip(".")


def fixed(value: float | None, decimals: int) -> str:
    """A number with this many decimals, for columns of tables; an en dash for None."""
    return "\u2013" if value is None or math.isnan(value) else f"{value:.{decimals}f}"


def share(percent: float | None) -> str:
    """A share of so many percent, for columns of tables; an en dash for None."""
    return summary.percent(percent) or "\u2013"


@dataclass(frozen=True)
class Band:
    """An interval with a fault, in seconds after T0."""

    start: float
    end: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A moment of a change by hand, in seconds after T0."""

    at: float
    label: str


@dataclass(frozen=True)
class Axes:
    """The axes of a chart over time: the times with values, the end of the axis, and the names of both axes."""

    at: Sequence[float]
    end: float
    time: str
    quantity: str


@dataclass
class Canvas:
    """An SVG while it is drawn."""

    width: int
    height: float
    left: float
    right: float
    top: float = 8
    bottom: float = 42
    parts: list[str] = field(default_factory=list)

    @property
    def narrow(self) -> bool:
        """Report whether it is for a phone."""
        return self.width <= NARROW

    def x(self, low: float, high: float, logarithmic: bool = False) -> Scale:
        """A scale along the horizontal axis."""
        return Scale(low, high, self.left, self.width - self.right, logarithmic)

    def y(self, low: float, high: float, logarithmic: bool = False) -> Scale:
        """A scale along the vertical axis."""
        return Scale(low, high, self.height - self.bottom, self.top, logarithmic)

    def add(self, tag: str, text: str | None = None, title: str | None = None, **attributes: object) -> None:
        """Add an element. In attribute names a trailing underscore goes, others become hyphens."""
        said = "".join(f' {name.rstrip("_").replace("_", "-")}="{escape(_short(value))}"' for name, value in attributes.items())
        inside = (f"<title>{escape(title)}</title>" if title else "") + (str(escape(text)) if text is not None else "")
        self.parts.append(f"<{tag}{said}>{inside}</{tag}>" if inside else f"<{tag}{said}/>")

    def x_axis(self, scale: Scale, label: str) -> None:
        """Grid lines, numbers and the name of the horizontal axis."""
        bottom = self.height - self.bottom
        for tick in scale.ticks(4 if self.narrow else 8):
            at = scale(tick)
            self.add("path", class_="grid", d=f"M{_short(at)} {_short(self.top)}V{_short(bottom)}")
            self.add("text", number(tick), x=at, y=bottom + 16, text_anchor="middle")
        self.add("path", class_="axis", d=f"M{_short(self.left)} {_short(bottom)}H{_short(self.width - self.right)}")
        name = label + (", logarithmic" if scale.logarithmic else "")
        self.add("text", name, x=self.width - self.right, y=bottom + 34, text_anchor="end", class_="label")

    def y_axis(self, scale: Scale, label: str, count: int = 6) -> None:
        """Grid lines, numbers and the name of the vertical axis, above it."""
        for tick in scale.ticks(count):
            at = scale(tick)
            self.add("path", class_="grid", d=f"M{_short(self.left)} {_short(at)}H{_short(self.width - self.right)}")
            self.add("text", number(tick), x=self.left - 6, y=at + 4, text_anchor="end")
        self.add("text", label + (", logarithmic" if scale.logarithmic else ""), x=2, y=self.top - 8, class_="label")

    def times(self, scale: Scale, bands: Sequence[Band], marks: Sequence[Mark]) -> None:
        """Shade bands of time and draw a dashed line, with its number, at marks."""
        for band in bands:
            if band.end >= scale.low and band.start <= scale.high:
                left, right = scale(band.start), scale(band.end)
                height = self.height - self.bottom - self.top
                self.add("rect", title=band.label, class_="band", x=left, y=self.top, width=max(right - left, 2), height=height)
        for i, mark in enumerate(marks):
            if scale.low <= mark.at <= scale.high:
                at = scale(mark.at)
                line = f"M{_short(at)} {_short(self.top)}V{_short(self.height - self.bottom)}"
                self.add("path", class_="halo", d=line)
                self.add("path", title=mark.label, class_="mark", d=line)
                self.add("text", str(i + 1), x=at, y=self.top + 9, class_="mark-number", text_anchor="middle")

    def svg(self, alt: str) -> Markup:
        """The whole drawing."""
        kind = "narrow" if self.narrow else "wide"
        head = f'<svg class="chart {kind}" viewBox="0 0 {self.width} {_short(self.height)}" role="img" aria-label="{escape(alt)}">'
        return Markup(head + "".join(self.parts) + "</svg>")


def _short(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def both(draw: Callable[[int], Markup]) -> Markup:
    """A drawing in both widths; the page shows one."""
    return draw(WIDE) + draw(NARROW)


def _rows(width: int, names: Sequence[str], pitch: float, right: float) -> tuple[Canvas, list[float]]:
    """A canvas with a row for each name, and each row's middle. On a phone long names are above their rows."""
    longest = max((len(name) for name in names), default=4)
    above = 18 if width == NARROW and longest > 13 else 0
    most = 38 if above else 36
    shown = summary.apart(names, most)
    left = 10 if above else 14 + 8.2 * max(map(len, shown), default=4)
    canvas = Canvas(width, 50 + (pitch + above) * len(names), left=left, right=right)
    middles = [canvas.top + (pitch + above) * (i + 1) - pitch / 2 for i in range(len(names))]
    for name, short, middle in zip(names, shown, middles, strict=True):
        place = {"x": 4, "y": middle - 11} if above else {"x": canvas.left - 8, "y": middle + 4, "text_anchor": "end"}
        canvas.add("text", short, title=name if short != name else None, **place)
    return canvas, middles


def boxes(rows: Sequence[dict], label: str, alt: str) -> Markup:
    """Box plots one below another: each with name, min, low, p25, median, p75, high, max, and references as (name, value) if any."""
    told = [value for r in rows for _, value in r.get("references", ())]
    low, high, logarithmic = spanning(min([r["min"] for r in rows] + told), max([r["max"] for r in rows] + told))

    def draw(width: int) -> Markup:
        canvas, middles = _rows(width, [r["name"] for r in rows], 22, right=20)
        scale = canvas.x(low, high, logarithmic)
        canvas.x_axis(scale, label)
        for row, y in zip(rows, middles, strict=True):
            _box(canvas, scale, row, y)
        return canvas.svg(alt)

    return both(draw)


def _box(canvas: Canvas, scale: Scale, row: dict, y: float) -> None:
    at = {name: scale(row[name]) for name in ("min", "low", "p25", "median", "p75", "high", "max")}
    text = f"median {number(row['median'])} s, quartiles {number(row['p25'])} and {number(row['p75'])} s, greatest {number(row['max'])} s"
    lines = "".join(f"M{_short(at[a])} {_short(y)}H{_short(at[b])}" for a, b in (("low", "p25"), ("p75", "high")))
    ends = "".join(f"M{_short(at[end])} {_short(y - 4)}v8" for end in ("low", "high"))
    canvas.add("path", class_="whisker", d=lines + ends)
    width = max(at["p75"] - at["p25"], 1.0)
    canvas.add("rect", title=f"{row['name']}: {text}", class_="box", x=at["p25"], y=y - 7, width=width, height=14)
    canvas.add("path", class_="median", d=f"M{_short(at['median'])} {_short(y - 7)}v14")
    canvas.add("path", class_="extreme", d=f"M{_short(at['min'])} {_short(y)}h0M{_short(at['max'])} {_short(y)}h0")
    for name, value in row.get("references", ()):
        diamond = f"M{_short(scale(value) - 5)} {_short(y)}l5-5 5 5-5 5z"
        canvas.add("path", title=f"{row['name']}: reference {name} {number(value)} s", class_="reference", d=diamond)


def differences(rows: Sequence[dict], label: str, alt: str) -> Markup:
    """Differences one below another: each with name, value, covered, text, and low and high if there is an interval."""
    ends = [0.0, *(r[end] for r in rows for end in ("value", "low", "high") if end in r)]
    margin = (max(ends) - min(ends)) * 0.04 or 1.0

    def draw(width: int) -> Markup:
        canvas, middles = _rows(width, [r["name"] for r in rows], 22, right=20)
        scale = canvas.x(min(ends) - margin, max(ends) + margin)
        canvas.x_axis(scale, label)
        canvas.add("path", class_="mark", d=f"M{_short(scale(0.0))} {_short(canvas.top)}V{_short(canvas.height - canvas.bottom)}")
        for row, y in zip(rows, middles, strict=True):
            at = scale(row["value"])
            if "low" in row:
                line = f"M{_short(scale(row['low']))} {_short(y - 4)}v8m0-4H{_short(scale(row['high']))}m0-4v8"
                canvas.add("path", class_="interval", d=line)
            title = f"{row['name']}: {row['text']}"
            if row["covered"] is False:
                canvas.add("path", title=title, class_="uncovered", d=f"M{_short(at - 4)} {_short(y - 4)}l8 8m0-8l-8 8")
            else:
                canvas.add("circle", title=title, class_="covered" if row["covered"] else "untold", cx=at, cy=y, r=4.5)
        return canvas.svg(alt)

    return both(draw)


def bars(rows: Sequence[dict], label: str, alt: str) -> Markup:
    """Bars one below another: each with name, value, text, and low and high if there is an interval."""
    greatest = max(max(r["value"], r.get("high") or 0.0) for r in rows)
    beside = 14 + 7.6 * max(len(r["text"]) for r in rows)

    def draw(page: int) -> Markup:
        canvas, middles = _rows(page, [r["name"] for r in rows], 22, right=beside)
        scale = canvas.x(0.0, greatest or 1.0)
        canvas.x_axis(scale, label)
        for row, y in zip(rows, middles, strict=True):
            end = scale(row["value"])
            width = max(end - canvas.left, 0.5)
            canvas.add("rect", title=f"{row['name']}: {row['text']}", class_="bar", x=canvas.left, y=y - 7, width=width, height=14)
            if row.get("high") is not None:
                low, end = scale(row["low"]), scale(row["high"])
                canvas.add("path", class_="interval", d=f"M{_short(low)} {_short(y - 4)}v8m0-4H{_short(end)}m0-4v8")
            canvas.add("text", row["text"], x=end + 6, y=y + 4)
        return canvas.svg(alt)

    return both(draw)


# Markers of kinds of points: a dot, a cross, a ring of four strokes.
MARKERS = ("h0", "m-2-2l4 4m0-4l-4 4", "m-2-2h4v4h-4z")


def points(
    kinds: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    times: tuple[float, float],
    values: tuple[float, float, bool],
    labels: tuple[str, str],
    alt: str,
    bands: Sequence[Band] = (),
    marks: Sequence[Mark] = (),
) -> Markup:
    """Points by time: kinds of (name, times, values), from the first to the last time, with the ends that spanning() gives."""

    def draw(width: int) -> Markup:
        canvas = Canvas(width, 240 if width == NARROW else 340, left=52, right=20, top=26)
        across, up = canvas.x(*times), canvas.y(*values)
        canvas.times(across, bands, ())
        canvas.x_axis(across, labels[0])
        canvas.y_axis(up, labels[1])
        for i, (_, earlier, sizes) in enumerate(kinds):
            # Points on the same half pixel are drawn once.
            spots = dict.fromkeys((round(2 * across(t)), round(2 * up(v))) for t, v in zip(earlier, sizes, strict=True))
            canvas.add("path", class_=f"points k{i}", d="".join(f"M{_half(x)} {_half(y)}{MARKERS[i % len(MARKERS)]}" for x, y in spots))
        canvas.times(across, (), marks)
        return canvas.svg(alt)

    return both(draw)


def _half(value: int) -> str:
    return f"{value // 2}.5" if value % 2 else str(value // 2)


def stacked(
    series: Sequence[tuple[str, Sequence[float]]],
    axes: Axes,
    alt: str,
    bands: Sequence[Band] = (),
    marks: Sequence[Mark] = (),
    sequential: bool = False,
) -> Markup:
    """Areas on top of each other over time, the first at the bottom."""
    sums = [[0.0] * len(axes.at)]
    for _, values in series:
        sums.append([below + value for below, value in zip(sums[-1], values, strict=True)])
    top = max(sums[-1], default=0.0) * 1.04 or 1.0

    def draw(width: int) -> Markup:
        canvas = Canvas(width, 220 if width == NARROW else 300, left=56, right=20, top=26)
        across, up = canvas.x(0.0, max(axes.end, *axes.at, 1.0)), canvas.y(0.0, top)
        canvas.times(across, bands, ())
        canvas.x_axis(across, axes.time)
        canvas.y_axis(up, axes.quantity)
        places = [_short(across(t)) for t in axes.at]
        for i, (name, _) in enumerate(series):
            upper = [f"{x} {_short(up(v))}" for x, v in zip(places, sums[i + 1], strict=True)]
            lower = [f"{x} {_short(up(v))}" for x, v in zip(places, sums[i], strict=True)]
            canvas.add("path", title=name, class_=f"area {'q' if sequential else 's'}{i % SERIES}", d=f"M{'L'.join(upper + lower[::-1])}Z")
        canvas.times(across, (), marks)
        return canvas.svg(alt)

    return both(draw)
