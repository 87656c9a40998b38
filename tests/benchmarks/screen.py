"""What the benchmarks of the screen share: a server of the real notebooks, visitors, and what processes and pages use."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Page
from playwright.sync_api import Error as PlaywrightError

TESTS = Path(__file__).parents[1]
NOTEBOOKS = TESTS.parent / "notebooks"


def _browser_tests() -> Any:
    """The helpers of tests/browser, whose file has the name that every folder's conftest has."""
    spec = importlib.util.spec_from_file_location("browser_conftest", TESTS / "browser" / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


helpers = _browser_tests()
Server, Visitor, running, browser = helpers.Server, helpers.Visitor, helpers.running, helpers.browser

PAGES = ("02_vram_budget", "advisor")
MB = 1e6
#: Shown beside what was measured.
TARGETS = {"cold": 4.0, "preheated": 2.0, "change": 0.1, "session": 110}
#: What a busy machine may take, in seconds.
BUSY = {"ready": 30.0, "change": 3.0}

DRAWN = """count => {
  const all = [...document.querySelectorAll('.advisor-chart-picture')].filter(p => p.clientWidth);
  return all.length >= count && all.every(p => p.dataset.drawn === p.dataset.revision && p.querySelector('svg'))
    && !!document.querySelector('.advisor-figures .advisor-figure');
}"""
#: Type each value into the field and wait until every chart has drawn rows it had not before: [until answered, until drawn].
CHANGE = """async (input, values) => {
  const pictures = () => [...document.querySelectorAll('.advisor-chart-picture')].filter(p => p.clientWidth);
  const times = [];
  for (const value of values) {
    const seen = pictures(); // asked once: to ask for a width is to lay the page out, which is the reader's time
    const before = new Map(seen.map(p => [p, p.dataset.drawn]));
    const figures = document.querySelector('.advisor-figures');
    const start = performance.now();
    let answered = 0;
    const follows = p => p.dataset.drawn === p.dataset.revision && p.dataset.drawn !== before.get(p);
    const drawn = new Promise((resolve, reject) => {
      const late = setTimeout(() => { watch.disconnect(); reject(new Error('charts do not follow ' + value)); }, 60000);
      const watch = new MutationObserver(records => {
        if (!answered && records.some(r => figures.contains(r.target))) answered = performance.now() - start;
        if (!seen.length || !seen.every(p => !p.isConnected || follows(p))) return;
        const end = performance.now() - start;
        if (!pictures().every(follows)) return; // one that was not there before
        watch.disconnect();
        clearTimeout(late);
        resolve(end);
      });
      watch.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ['data-drawn'] });
    });
    input.value = value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
    input.dispatchEvent(new Event('change', { bubbles: true }));
    const end = await drawn;
    times.push([answered, end]);
    await new Promise(resolve => setTimeout(resolve, 30));
  }
  return times;
}"""


def say(text: str) -> None:
    print(f"\n[load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores] {text}", flush=True)


def new_visitor(browser: Browser) -> Visitor:
    """One whose requests are seen but not routed: routing turns the browser's cache off."""
    one = Visitor(browser.new_context(viewport={"width": 1280, "height": 900}))

    def note(url: str) -> None:
        if not url.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:", "about:")):
            one.outside.append(url)

    one.context.on("request", lambda request: note(request.url))
    one.context.on("page", lambda page: page.on("websocket", lambda socket: note(socket.url)))
    return one


@contextlib.contextmanager
def visiting(browser: Browser) -> Iterator[Visitor]:
    """A visitor who closes all pages and has asked nothing of other hosts."""
    one = new_visitor(browser)
    try:
        yield one
    finally:
        leave(one)
    assert one.outside == []


def leave(visitor: Visitor) -> None:
    for page in visitor.context.pages:
        with contextlib.suppress(PlaywrightError):  # it is closing already
            page.close(run_before_unload=True)
    until = time.monotonic() + 5
    while visitor.context.pages and time.monotonic() < until:
        visitor.context.cookies()  # lets the closings be heard
        time.sleep(0.05)
    visitor.context.close()


def address(server: Server, name: str) -> str:
    return f"{server.url}/voila/render/{name}.ipynb"


def open_page(visitor: Visitor, server: Server, name: str, charts: int = 1) -> tuple[Page, float]:
    """(page, seconds until its numbers and charts are drawn)."""
    page = visitor.context.new_page()
    start = time.perf_counter()
    page.goto(address(server, name))
    page.wait_for_function(DRAWN, arg=charts, timeout=90_000)
    return page, time.perf_counter() - start


def field(page: Page, label: str) -> Any:
    """A field of the form, whichever section it is in."""
    found = page.get_by_role("textbox", name=re.compile(f"^{label}"))
    for head in page.locator(".advisor-section-head").all():
        if found.count():
            break
        head.click()
        page.wait_for_timeout(1500)
    return found.first


def lengths(count: int, first: int = 512) -> list[str]:
    """Sequence lengths of which no two make the same plan."""
    return [str(first + 8 * step) for step in range(count)]


def pss(process: psutil.Process) -> float:
    """Memory in MB, what is shared with others counted in parts."""
    return process.memory_full_info().pss / MB


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def work() -> float:
    """CPU seconds so far of everything at work here: this process, the servers with their sessions, and Chromium."""
    me = psutil.Process()
    total = cpu(me)
    for child in me.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            total += cpu(child)
    return total


def rest(server: Server, count: int) -> None:
    """Wait until there are so many kernels and they do nothing."""
    server.wait_for_kernels(count, seconds=120)
    used = -1.0
    until = time.monotonic() + 120
    while (now := sum(map(cpu, server.kernels()))) != used and time.monotonic() < until:
        used = now
        time.sleep(1.5)


def session_of(server: Server, before: list[psutil.Process]) -> psutil.Process:
    (mine,) = set(server.kernels()) - set(before)
    return mine


def stand_ins(server: Server) -> list[psutil.Process]:
    """What stands for sessions: the server's own child for each."""
    found = []
    for child in psutil.Process(server.process.pid).children():
        with contextlib.suppress(psutil.Error):
            if any(part.endswith("session.py") for part in child.cmdline()):
                found.append(child)
    return found
