"""The page in a real browser: desktop, phone and print, light and dark; needs Chromium (on the path, or CHROMIUM)."""

import os
import shutil

import documents
import pytest

from tenfold.reviewing.rendering import html

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: put it on the path, or name it in CHROMIUM"),
]
# greenlet, under playwright, keeps its loop open until the interpreter ends
pytestmark.append(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    pages = {
        "plain": html.render(documents.document()),
        "hostile": html.render(documents.hostile()),
        "interactive": html.render(documents.hostile(), interactive=True),
    }
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8", newline="\n")
    return folder


class Seen:
    """A page that is open, and everything it complained of or asked for."""

    def __init__(self, browser, file, size, scheme, script=True):
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, java_script_enabled=script
        )
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri(), wait_until="load")
        self.asked.remove(file.as_uri())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def overflow(self):
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def complaints(page):
    """What axe finds, one line a place."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options={"runOnly": {"type": "tag", "values": RULES}}).response["violations"]
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ["hostile", "interactive"])
def test_silent_self_contained_and_accessible(browser, files, name, size, scheme):
    with Seen(browser, files / f"{name}.html", size, scheme) as seen:
        if name == "interactive":
            seen.page.wait_for_function("document.querySelectorAll('figure.with-live:not(.is-live)').length === 0")
        assert complaints(seen.page) == []
        assert seen.said == []
        assert seen.asked == []


@pytest.mark.parametrize("name", ["plain", "hostile", "interactive"])
def test_page_is_never_wider_than_the_window(browser, files, name):
    with Seen(browser, files / f"{name}.html", (1280, 900), "light") as seen:
        for width in (1280, 1024, 768, 640, 412, 390, 320):
            seen.page.set_viewport_size({"width": width, "height": 800})
            assert seen.overflow() <= 0, width


@pytest.mark.parametrize("name", ["plain", "hostile"])
def test_prints_within_the_paper(browser, files, name, tmp_path):
    with Seen(browser, files / f"{name}.html", (1280, 900), "dark") as seen:
        seen.page.emulate_media(media="print", color_scheme="dark")
        # A4 less its margins, at 96 dpi
        seen.page.set_viewport_size({"width": 687, "height": 1000})
        assert seen.overflow() <= 0
        wide = "[...document.querySelectorAll('.table, .wide')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
        assert seen.page.evaluate(wide) == 0
        assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert seen.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        assert seen.page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True).startswith(b"%PDF")


def test_links_lead_somewhere_and_back(browser, files):
    with Seen(browser, files / "plain.html", (1280, 900), "light") as seen:
        broken = (
            "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => !document.getElementById(a.hash.slice(1)))"
        )
        assert seen.page.evaluate(f"{broken}.map(a => a.hash)") == []
        seen.page.click(".how >> nth=0")
        assert seen.page.evaluate("location.hash") == "#made-spend"
        seen.page.click("#made-spend a >> text=Summary")
        assert seen.page.evaluate("location.hash") == "#summary--made-spend"


def test_keyboard_reaches_the_skip_link_first_and_then_the_sections(browser, files):
    with Seen(browser, files / "plain.html", (1280, 900), "light") as seen:
        reached = []
        for _ in range(3):
            seen.page.keyboard.press("Tab")
            reached.append(seen.page.evaluate("document.activeElement.getAttribute('href')"))
        assert reached == ["#main", "#summary", "#composition"]
        assert seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_tooltip_shows_a_hostile_name_as_text(browser, files):
    with Seen(browser, files / "interactive.html", (1280, 900), "light") as seen:
        seen.page.wait_for_selector("figure.is-live .live svg")
        bar = seen.page.locator(
            "#chart-by-team .live path[aria-roledescription='bar'], #chart-by-team .live .mark-rect path"
        )
        bar.first.hover()
        seen.page.wait_for_selector("#vg-tooltip-element.visible")
        assert "$" in seen.page.inner_text("#vg-tooltip-element")
        assert seen.page.locator("#vg-tooltip-element script, #vg-tooltip-element img").count() == 0
        assert seen.said == []
        assert seen.asked == []


def test_svg_stands_without_scripts_and_in_print(browser, files):
    with Seen(browser, files / "interactive.html", (1280, 900), "light", script=False) as seen:
        assert seen.page.locator("#chart-by-team svg.chart").bounding_box()["width"] > 400
    with Seen(browser, files / "interactive.html", (1280, 900), "light") as seen:
        seen.page.wait_for_selector("figure.is-live")
        seen.page.emulate_media(media="print")
        assert seen.page.locator("#chart-by-team svg.chart").bounding_box()["width"] > 400
        assert not seen.page.locator("#chart-by-team .live").is_visible()


def test_policy_holds_against_what_a_page_could_be_made_to_load(browser, files):
    with Seen(browser, files / "interactive.html", (1280, 900), "light") as seen:
        seen.page.evaluate("fetch('https://evil.invalid/').catch(() => 0)")
        seen.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=https://evil.invalid/i.png>')")
        seen.page.wait_for_timeout(200)
        assert [one for one in seen.said if "Content Security Policy" in one]
