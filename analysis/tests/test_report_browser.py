"""The report in Chromium: it asks for nothing, complains of nothing, moves, prints, and can be read by everybody."""

import re
from dataclasses import dataclass, field

import pytest
from lab import Lab
from test_comparison import run
from test_report import hostile
from test_requests import CHAT, send

from vignette_analysis import analyse, compare, report
from vignette_analysis.data.gaps import Gaps
from vignette_analysis.report import mapdata


@dataclass
class Written:
    """A report on disk and what it was made from."""

    url: str
    map_data: mapdata.MapData


@pytest.fixture(scope="session")
def written(tmp_path_factory, eight_vehicles) -> Written:
    folder = tmp_path_factory.mktemp("report")
    gaps = Gaps()
    (folder / "report.html").write_bytes(report.render(eight_vehicles, gaps))
    assert gaps.found == []
    return Written((folder / "report.html").as_uri(), mapdata.build(eight_vehicles))


@dataclass
class Heard:
    """What a page said and asked for, and the page."""

    page: object
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def show(browser):
    """Opens a report, and fails if it complained or asked for anything but itself."""
    contexts, opened = [], []

    def show_one(url: str, **options) -> Heard:
        context = (
            browser.new_context(viewport={"width": 1100, "height": 800}, **options) if "viewport" not in options else browser.new_context(**options)
        )
        contexts.append(context)
        heard = Heard(context.new_page())
        opened.append((url, heard))
        heard.page.on("console", lambda message: heard.complaints.append(message.text))
        heard.page.on("pageerror", lambda error: heard.complaints.append(str(error)))
        heard.page.on("dialog", lambda dialog: heard.complaints.append(f"dialog {dialog.message}"))
        context.on("request", lambda request: heard.requests.append(request.url))
        heard.page.goto(url)
        if options.get("java_script_enabled", True) and heard.page.locator(".map").count():
            heard.page.wait_for_selector(".map.live")
        return heard

    yield show_one
    for context in contexts:
        context.close()
    for url, heard in opened:
        assert heard.complaints == []
        assert heard.requests == [url]


def places(page) -> list[str]:
    return page.eval_on_selector_all("#map-drawing g[class^=dot-]", "dots => dots.map(dot => dot.getAttribute('transform'))")


def go_to(page, frame: int) -> None:
    page.eval_on_selector("#time", "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", frame)


def wait_until(page, condition: str) -> None:
    """Wait for a condition; Playwright's own waiting evaluates text, which the page's policy forbids."""
    for _ in range(400):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"it never became true: {condition}")


def test_requests_are_shown_without_a_complaint(show, tmp_path):
    lab = Lab(tmp_path / "run").node("a", CHAT).node("b", CHAT)
    send(lab, "1", 1.0, retransmitted=0.25, receipt=0.5)
    send(lab, "2", 2.0, failed=1.0)
    (tmp_path / "report.html").write_bytes(report.render(analyse(lab.write()), Gaps()))
    page = show((tmp_path / "report.html").as_uri()).page
    assert page.locator("#requests table").first.is_visible() and page.locator("#requests svg.chart.wide").count() == 4


def test_the_slider_moves_nodes_and_links(show, written):
    page = show(written.url).page
    drawings = []
    for frame in (0, 30, 60):
        go_to(page, frame)
        drawings.append((places(page), page.eval_on_selector_all("#map-drawing .link", "lines => lines.map(line => line.getAttribute('d'))")))
        assert f"{frame} s · 03:0{(5 + frame) // 60 + 4}:{(5 + frame) % 60:02} UTC" in page.inner_text("#status")
    assert len({str(where) for where, _ in drawings}) == 3 and len({str(lines) for _, lines in drawings}) == 3
    assert drawings[0][0][0] == drawings[2][0][0], "the headquarters stands still"


def test_what_the_script_draws_is_what_python_computed(show, written):
    page = show(written.url).page
    for number, layer in enumerate(written.map_data.layers):
        page.select_option("#layer", str(number))
        for frame in (0, 17, 60):
            go_to(page, frame)
            shown = [int(n) for n in page.eval_on_selector_all("#map-lines b", "counts => counts.map(count => count.textContent)")]
            found = layer.classes(frame).tolist()
            assert shown == [found.count(c) for c in range(len(shown))], (layer.name, frame)


def test_lines_can_be_those_of_one_node(show, written):
    page = show(written.url).page
    go_to(page, 30)
    layer, wanted = written.map_data.layers[0], 3
    page.select_option("#only", str(wanted))
    total = sum(int(n) for n in page.eval_on_selector_all("#map-lines b", "counts => counts.map(count => count.textContent)"))
    assert total == int(((layer.classes(30) >= 0) & (layer.pairs == wanted).any(axis=1)).sum()) > 0


def test_play_goes_on_until_it_is_paused(show, written):
    page = show(written.url).page
    page.select_option("#speed", "5")
    page.click("#play")
    wait_until(page, "document.getElementById('play').getAttribute('aria-pressed') === 'true'")
    wait_until(page, "Number(document.getElementById('time').value) > 2")
    page.click("#play")
    wait_until(page, "document.getElementById('play').getAttribute('aria-pressed') === 'false'")
    stopped = page.input_value("#time")
    page.wait_for_timeout(150)
    assert page.input_value("#time") == stopped


def test_play_stops_at_the_end_and_begins_anew(show, written):
    page = show(written.url).page
    go_to(page, 58)
    page.select_option("#speed", "10")
    page.click("#play")
    wait_until(page, "document.getElementById('play').getAttribute('aria-pressed') === 'false'")
    assert page.input_value("#time") == str(written.map_data.frames - 1)
    page.click("#play")
    wait_until(page, "Number(document.getElementById('time').value) < 30")


def test_the_keyboard_is_enough(show, written):
    page = show(written.url).page
    page.focus("#time")
    before = places(page)
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    assert page.input_value("#time") == "20" and page.get_attribute("#time", "aria-valuetext") == "20 s after T0" and places(page) != before
    page.keyboard.press("Space")
    wait_until(page, "document.getElementById('play').getAttribute('aria-pressed') === 'true'")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "play"
    page.keyboard.press("Enter")
    wait_until(page, "document.getElementById('play').getAttribute('aria-pressed') === 'false'")


@pytest.mark.parametrize("width", [390, 768])
def test_no_page_is_wider_than_its_screen(show, written, width):
    page = show(written.url, viewport={"width": width, "height": 844}, is_mobile=width < 600, has_touch=width < 600).page
    page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.is_visible("#delays .chart.narrow") == (width < 600) and page.is_visible("#delays .chart.wide") == (width > 600)
    # Text of charts is not scaled down below what can be read.
    assert min(text_heights(page)) > 9


@pytest.fixture(scope="session")
def pages(tmp_path_factory, written) -> dict[str, str]:
    """A report and comparisons, of one run each with long names and of repeats."""
    folder = tmp_path_factory.mktemp("comparisons")
    long = [run(folder, f"long{d}", d, name=f"an-experiment-with-a-long-name-{d}", spec={"duration": "9" * 30 + f"{d}s"}) for d in (5, 45)]
    repeats = [run(folder, f"u{d}-{seed}", d, seed=seed, lose=d // 4) for d in (5, 45) for seed in (1, 2)]
    found = {"report": written.url}
    for name, runs in (("long names", long), ("repeats", repeats)):
        path = folder / f"{name}.html"
        path.write_text(compare([made.write() for made in runs]).render("html"))
        found[name] = path.as_uri()
    return found


CUT = """
(all) => all.filter((one) => one.getClientRects().length).filter((one) => {
  const text = one.getBoundingClientRect(), picture = one.ownerSVGElement.getBoundingClientRect();
  return text.left < picture.left - 0.5 || text.right > picture.right + 0.5 || text.top < picture.top - 0.5 || text.bottom > picture.bottom + 0.5;
}).map((one) => one.textContent)
"""
TOO_WIDE = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.getAttribute('aria-label'))"


@pytest.mark.parametrize("name", ["report", "long names", "repeats"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut_off(show, pages, name, width):
    page = show(pages[name], viewport={"width": width, "height": 844}, is_mobile=width < 600, has_touch=width < 600).page
    page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.eval_on_selector_all("svg.chart text", CUT) == []
    assert not any("\\" in text or "$" in text for text in page.eval_on_selector_all("svg text", "all => all.map(one => one.textContent)"))
    if width == 1280:
        assert page.eval_on_selector_all(".scroll", TOO_WIDE) == []


def test_each_figure_of_a_comparison_has_one_table(show, pages):
    page = show(pages["repeats"], viewport={"width": 1280, "height": 844}).page
    assert page.locator("figure").count() == 1 == page.locator("figure table").count()
    tables = page.eval_on_selector_all("table tbody", "all => all.map(one => one.textContent)")
    assert len(tables) == len(set(tables))


def test_the_map_has_degrees_and_its_jammer(show, written):
    page = show(written.url, viewport={"width": 1280, "height": 844}).page
    labels = page.eval_on_selector_all("#map-drawing .degrees", "all => all.map(one => one.textContent)")
    assert {label[-1] for label in labels} == {"N", "E"} and any(label.startswith("58.") for label in labels)
    assert not page.is_visible("#map-drawing .jammer"), "it begins at half the time"
    go_to(page, 40)
    assert page.is_visible("#map-drawing .jammer")
    assert "jammer j1 power 20dBm" in page.inner_text("#hand")


def text_heights(page) -> list[float]:
    script = "all => all.filter(one => one.getClientRects().length).map(one => one.getBoundingClientRect().height)"
    return page.eval_on_selector_all("#delays .chart text", script)


def test_in_print_the_map_is_a_few_pictures(show, written):
    page = show(written.url).page
    document = page.pdf(prefer_css_page_size=True)
    assert document.startswith(b"%PDF") and 2 <= len(re.findall(rb"/Type\s*/Page\b", document)) <= 12
    page.emulate_media(media="print")
    assert not page.is_visible("#time") and not page.is_visible("nav")
    assert page.locator(".snapshots svg.chart:visible").count() == 4
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_without_script_everything_but_the_moving_map_is_there(show, written):
    page = show(written.url, java_script_enabled=False).page
    assert page.locator(".snapshots svg.chart:visible").count() == 4 and not page.is_visible("#time")
    assert page.is_visible("#delays .chart.wide")


LUMINANCE = """
(all) => {
  const parts = (text) => text.match(/[0-9.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = parts(colour).map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    const colour = getComputedStyle(one).backgroundColor;
    return parts(colour)[3] === 0 ? behind(one.parentElement) : colour;
  };
  const found = {};
  for (const one of all) {
    if (!one.getClientRects().length || !one.textContent.trim()) continue;
    const style = getComputedStyle(one);
    const ink = one.namespaceURI.endsWith('svg') ? style.fill : style.color;
    const [a, b] = [luminance(ink), luminance(behind(one))].sort();
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const name = one.tagName + '.' + (one.getAttribute('class') || '');
    found[name] = Math.min(found[name] || 99, ratio);
  }
  return found;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_against_what_is_behind_it(show, written, scheme):
    """At least 4.5 : 1 (WCAG 2.2, success criterion 1.4.3)."""
    page = show(written.url, color_scheme=scheme).page
    page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    ratios = page.eval_on_selector_all(
        "h1, h2, h3, p, a, b, dt, span, strong, summary, th, td, caption, figcaption, li, pre, button, label, text", LUMINANCE
    )
    assert len(ratios) > 20
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_and_markers_stand_out(show, written, scheme):
    """At least 3 : 1 for what must be told apart from the background, but for the lightest two of a row (WCAG 2.2, 1.4.11)."""
    page = show(written.url, color_scheme=scheme).page
    colours = page.evaluate("""() => {
      const style = getComputedStyle(document.documentElement);
      return Object.fromEntries(['l0', 'l1', 'l4', 'l5', 'l6', 's0', 's2', 's4', 'box-line', 'median', 'card', 'page'].map(
        (name) => [name, style.getPropertyValue('--' + name).trim()]));
    }""")
    for name in set(colours) - {"card", "page"}:
        for ground in ("card", "page"):
            assert contrast(colours[name], colours[ground]) >= 3, (name, ground)


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_screen_reader_is_told_everything(show, written):
    page = show(written.url).page
    assert page.get_attribute("html", "lang") == "en" and page.title() == "bft-over-tdma: report of a run"
    assert page.eval_on_selector_all("svg[role=img]", "all => all.filter(one => !one.getAttribute('aria-label')).length") == 0
    assert page.eval_on_selector_all("figure:has(> svg.chart.wide)", "all => all.filter(one => !one.querySelector('table')).length") == 0
    unnamed = "all => all.filter(one => !(one.labels && one.labels.length) && !one.textContent.trim()).length"
    assert page.eval_on_selector_all("input, select, button", unnamed) == 0
    ids = page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))
    links = page.eval_on_selector_all("a", "all => all.map(one => one.getAttribute('href').slice(1))")
    assert set(links) <= set(ids)


def test_hostile_names_are_text(show, tmp_path):
    (tmp_path / "report.html").write_bytes(report.render(analyse(hostile(tmp_path / "run").write()), Gaps()))
    page = show((tmp_path / "report.html").as_uri()).page
    go_to(page, 30)
    page.select_option("#only", "0")
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0
    assert page.inner_text("h1").startswith("</script><script>window.hacked=1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1100


def test_even_a_script_that_got_in_would_do_nothing(browser, written):
    page = browser.new_page()
    page.goto(written.url)
    blocked = page.evaluate("""async () => {
      const script = document.createElement('script');
      script.textContent = 'window.hacked = 1';
      document.body.append(script);
      const fetched = await fetch('https://192.0.2.1/').then(() => 'fetched', () => 'refused');
      return [window.hacked === undefined, fetched];
    }""")
    page.close()
    assert blocked == [True, "refused"]
