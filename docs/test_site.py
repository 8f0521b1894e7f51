"""The site that `make docs` has built, in a browser: nothing is broken or missing, search works.

Screenshots at two widths go to build/docs-pictures, to be looked at. Where PARSIMON_BROWSER is
"required", as in `make test-docs`, tests fail without a site and a browser; elsewhere they skip.
"""

import functools
import os
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "docs"
PICTURES = ROOT / "build" / "docs-pictures"
SHOWN = ("index", "getting_started", "guide/which", "streams", "gallery/index", "api", "comparison")


def missing(sentence):
    """Skip the test, unless somebody wants to know that it cannot run."""
    (pytest.fail if os.environ.get("PARSIMON_BROWSER") == "required" else pytest.skip)(sentence)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    if not (SITE / "index.html").exists():
        missing("There is no site in build/docs: run make docs.")
    handler = functools.partial(Quiet, directory=str(SITE))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    program = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if program is None:
        missing("No Chromium is installed: on Debian, apt-get install chromium.")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright is not installed: pip install playwright.")
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_page(address, browser):
    """Return a function that opens pages, and refuse what they ask of other hosts in the end."""
    elsewhere, opened = [], []

    def listen(request):
        url = urlsplit(request.url)
        if url.scheme not in ("data", "blob") and not request.url.startswith(address):
            elsewhere.append(request.url)

    def new(**options):
        opened.append(browser.new_page(**options))
        opened[-1].on("request", listen)
        return opened[-1]

    yield new
    for page in opened:
        page.close()
    assert not elsewhere, f"Pages of the site ask other hosts for {sorted(set(elsewhere))}."


def test_every_link_leads_somewhere_and_every_picture_is_there(address, open_page):
    page = open_page()
    failed, waiting, seen, anchors = [], {urljoin(address, "index.html")}, set(), {}
    page.on(
        "response", lambda got: failed.append((got.status, got.url)) if got.status >= 400 else None
    )
    asked = []  # (page, link with an anchor)
    while waiting:
        url = waiting.pop()
        seen.add(url)
        page.goto(url, wait_until="load")
        anchors[url] = set(page.eval_on_selector_all("[id]", "all => all.map(each => each.id)"))
        empty = page.eval_on_selector_all(
            "img",
            "all => all.filter(each => each.loading != 'lazy' && !each.naturalWidth)"
            ".map(each => each.src)",
        )
        failed += [(url, source) for source in empty]
        for link in page.eval_on_selector_all("a[href]", "all => all.map(each => each.href)"):
            target, anchor = urldefrag(link)
            if not target.startswith(address):
                continue
            if target == address or target.endswith("/"):
                target = urljoin(target, "index.html")
            if anchor:
                asked.append((url, target, anchor))
            if target.endswith(".html"):
                waiting |= {target} - seen
            elif not (SITE / target.removeprefix(address)).exists():
                failed.append((url, link))
    failed += [
        (url, f"{target}#{anchor}")
        for url, target, anchor in asked
        if target in anchors and anchor not in anchors[target]
    ]
    assert not failed
    assert len(seen) > 100


def test_search_finds_an_estimator(address, open_page):
    page = open_page()
    page.goto(urljoin(address, "search.html?q=POLKClassifier"))
    page.wait_for_selector("#search-results li a", timeout=30_000)
    found = page.eval_on_selector_all("#search-results li a", "all => all.map(each => each.href)")
    assert any("parsimon.POLKClassifier" in each for each in found)


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", SHOWN)
def test_no_page_is_wider_than_the_screen(address, open_page, name, width):
    page = open_page(viewport={"width": width, "height": 900})
    page.goto(urljoin(address, f"{name}.html"), wait_until="load")
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name.replace('/', '-')}-{width}.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
