"""The screen in Chromium: how soon a page is there, how soon charts follow, what a visitor costs and leaves behind.

    pytest tests/benchmarks/test_screen.py --benchmark-only -s

Times are printed beside the load of the machine and the targets they are meant for; what is asserted holds on a busy machine of
two cores too. What must not depend on the machine is asserted strictly: nothing asked of other hosts, no growth over many
changes, places counted, no process left behind.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import re
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
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
STAGES = ("01_model_and_method", "02_vram_budget", "03_cards_and_interconnect", "04_storage_layout", "05_budget", "advisor")
MB = 1e6
#: Shown beside what was measured.
TARGETS = {"cold": 4.0, "preheated": 2.0, "change": 0.1, "session": 110}
#: What a busy machine may take, in seconds.
BUSY = {"ready": 30.0, "change": 3.0}
CHANGES = 500
WARM_UP = 20

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
#: An hour in a minute: what the server does after minutes it does after seconds.
HASTE = """
from advisor.serve import handlers, server as s
handlers.UNCLAIMED = 5
usual = s.settings
def hasty(**options):
    config = usual(**options)
    culling = config.MappingKernelManager
    culling.cull_idle_timeout, culling.cull_interval = 40, 2
    return config
s.settings = hasty
"""


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("screen") / "notebooks"
    shutil.copytree(NOTEBOOKS, found)
    return found


@pytest.fixture(scope="module")
def server(folder: Path, browser: Browser) -> Iterator[Server]:
    """Of all notebooks, with its nursery warm."""
    with running(folder, max_sessions=20) as one:
        with visiting(browser) as visitor:
            open_page(visitor, one, "02_vram_budget")
        one.wait_for_kernels(0)
        yield one


@pytest.fixture(scope="module")
def charts(server: Server, browser: Browser) -> dict[str, int]:
    """How many charts the pages draw."""
    found = {}
    with visiting(browser) as visitor:
        for name in PAGES:
            page, _ = open_page(visitor, server, name)
            page.wait_for_timeout(3000)
            page.wait_for_function(DRAWN, arg=1)
            found[name] = page.evaluate(
                "[...document.querySelectorAll('.advisor-chart-picture')].filter(p => p.clientWidth).length"
            )
            page.close(run_before_unload=True)
    server.wait_for_kernels(0)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_ready(server, browser, charts, name, benchmark):
    """A new visitor with an empty browser, and the same one again."""
    cold, again, worked = [], [], []

    def visit() -> None:
        with visiting(browser) as visitor:
            for times in (cold, again):
                before = work()
                page, seconds = open_page(visitor, server, name, charts[name])
                times.append(seconds)
                worked.append(work() - before)
                page.close(run_before_unload=True)

    benchmark.pedantic(visit, rounds=3)
    server.wait_for_kernels(0)
    first, second = statistics.median(cold), statistics.median(again)
    say(
        f"{name}: ready with {charts[name]} charts after {first:.2f} s cold ({min(cold):.2f} to {max(cold):.2f}; "
        f"target {TARGETS['cold']}), {second:.2f} s for a browser that has been here; all processes together compute "
        f"{statistics.median(worked[::2]):.2f} and {statistics.median(worked[1::2]):.2f} s"
    )
    assert max(first, second) <= BUSY["ready"]


def test_a_preheated_page_is_ready(tmp_path, browser, charts, benchmark):
    """One process for each page is started before anybody comes."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name in PAGES:
        shutil.copy(NOTEBOOKS / f"{name}.ipynb", folder)
    times: dict[str, list[float]] = {name: [] for name in PAGES}
    worked: dict[str, list[float]] = {name: [] for name in PAGES}
    with running(folder, preheat=True) as server:

        def visit() -> None:
            for name in PAGES:
                rest(server, len(PAGES))
                before = work()
                with visiting(browser) as visitor:
                    times[name].append(open_page(visitor, server, name, charts[name])[1])
                    worked[name].append(work() - before)

        benchmark.pedantic(visit, rounds=3)
    for name, all_times in times.items():
        say(
            f"{name}: ready after {statistics.median(all_times):.2f} s preheated (target {TARGETS['preheated']}); all "
            f"processes together compute {statistics.median(worked[name]):.2f} s"
        )
        assert statistics.median(all_times) <= BUSY["ready"]


@pytest.mark.parametrize("name", PAGES)
def test_charts_follow_a_control(server, browser, charts, name, benchmark):
    """Another sequence length, never planned before, until every chart on the page has drawn its rows."""
    before = server.kernels()
    with visiting(browser) as visitor:
        page, _ = open_page(visitor, server, name, charts[name])
        session = session_of(server, before)
        control = field(page, "Sequence length")
        control.evaluate(CHANGE, lengths(5, first=300))
        used, everything = cpu(session), work()
        times = benchmark.pedantic(control.evaluate, args=(CHANGE, lengths(20)), rounds=1)
        used, everything = (cpu(session) - used) / len(times), (work() - everything) / len(times)
    server.wait_for_kernels(len(before))
    answered, drawn = (statistics.median(part) / 1000 for part in zip(*times, strict=True))
    fastest = min(whole for _, whole in times) / 1000
    say(
        f"{name}: {charts[name]} charts follow after {drawn * 1000:.0f} ms (best {fastest * 1000:.0f}; target "
        f"{TARGETS['change'] * 1000:.0f}), the answer after {answered * 1000:.0f} ms; the session computes "
        f"{used * 1000:.0f} ms of it, all processes together {everything * 1000:.0f} ms"
    )
    assert drawn <= BUSY["change"]


def counted(page: Page, wire: Any) -> dict[str, float]:
    """What the page holds once its rubbish is collected."""
    for _ in range(3):
        wire.send("HeapProfiler.collectGarbage")
        page.wait_for_timeout(100)
    found = wire.send("Memory.getDOMCounters")
    found["heap"] = wire.send("Runtime.getHeapUsage")["usedSize"] / MB
    found["attached"] = page.evaluate("document.getElementsByTagName('*').length")
    return found


def test_nothing_grows_over_many_changes(server, browser, charts, benchmark):
    """Heap, nodes and listeners of the page, and memory of its session, over 500 changes, one in five to a plan that is new."""
    before = server.kernels()
    with visiting(browser) as visitor:
        page, _ = open_page(visitor, server, "02_vram_budget", charts["02_vram_budget"])
        session = session_of(server, before)
        opened = pss(session)
        wire = visitor.context.new_cdp_session(page)
        wire.send("HeapProfiler.enable")
        control = field(page, "Sequence length")
        new, known = lengths(CHANGES + WARM_UP), lengths(9, first=16_384)
        values = [new[step] if step % 5 == 0 else known[step % 9] for step in range(len(new))]
        control.evaluate(CHANGE, values[:WARM_UP])
        seen = [counted(page, wire)]
        memory = [pss(session)]

        def change() -> None:
            for start in range(WARM_UP, len(values), 100):
                control.evaluate(CHANGE, values[start : start + 100])
                seen.append(counted(page, wire))
                memory.append(pss(session))

        benchmark.pedantic(change, rounds=1)
    server.wait_for_kernels(len(before))
    heap, nodes, listeners = (
        " ".join(f"{one[key]:.{digits}f}" for one in seen)
        for key, digits in (("heap", 2), ("nodes", 0), ("jsEventListeners", 0))
    )
    say(
        f"over {CHANGES} changes: heap {heap} MB, nodes {nodes}, listeners {listeners}, session {opened:.0f}, then "
        f"{' '.join(f'{one:.1f}' for one in memory)} MB"
    )
    first, last = seen[0], seen[-1]
    assert last["attached"] - first["attached"] <= 50
    assert last["nodes"] - first["nodes"] <= 0.02 * first["nodes"]
    assert last["jsEventListeners"] - first["jsEventListeners"] <= 20
    # Seen: 12 MB above the start after 400 changes, 6 MB after 500. Why is not known: the bound holds that, it is no proof.
    assert last["heap"] - first["heap"] <= 16
    assert memory[-1] - memory[1] <= 8
    assert memory[-1] <= 1.5 * TARGETS["session"]


def test_ten_visitors_at_once_and_an_eleventh(folder, browser, charts, benchmark):
    with running(folder, max_sessions=10) as server:
        visitors = [new_visitor(browser) for _ in range(10)]
        pages = [visitor.context.new_page() for visitor in visitors]

        def come() -> None:
            for number, page in enumerate(pages):
                page.evaluate("url => { location.href = url }", address(server, STAGES[number % len(STAGES)]))
            for page in pages:
                page.wait_for_function(DRAWN, arg=1, timeout=180_000)

        start = time.perf_counter()
        benchmark.pedantic(come, rounds=1)
        seconds = time.perf_counter() - start
        assert len(server.kernels()) == 10
        each = [pss(one) for one in server.kernels()]
        with visiting(browser) as late:
            page = late.context.new_page()
            answer = page.goto(address(server, "advisor"))
            assert answer.status == 503 and answer.headers["retry-after"]
            words = page.locator("body").inner_text()
            assert "All places are taken." in words and "当前使用人数已满" in words
        assert len(server.kernels()) == 10
        leave(visitors.pop())
        server.wait_for_kernels(9)
        with visiting(browser) as late:
            open_page(late, server, "02_vram_budget")
        for visitor in visitors:
            leave(visitor)
            assert visitor.outside == []
        server.wait_for_kernels(0)
    say(
        f"10 visitors at once: all ready after {seconds:.1f} s; a session has {statistics.median(each):.0f} MB "
        f"(most {max(each):.0f}; target {TARGETS['session']})"
    )
    assert max(each) <= 1.5 * TARGETS["session"]


def test_memory_of_a_session(server, browser, charts, benchmark):
    """The only visitor, who shares nothing with another: the dearest."""
    found = {}

    def measure() -> None:
        for name in PAGES:
            before = server.kernels()
            with visiting(browser) as visitor:
                page, _ = open_page(visitor, server, name, charts[name])
                session = session_of(server, before)
                fresh = pss(session)
                field(page, "Sequence length").evaluate(CHANGE, lengths(20))
                page.get_by_role("button", name="中文").click()
                page.wait_for_function("() => document.documentElement.lang === 'zh-CN'")
                page.wait_for_timeout(500)
                found[name] = (fresh, pss(session), sum(map(pss, stand_ins(server))))
            server.wait_for_kernels(len(before))

    benchmark.pedantic(measure, rounds=1)
    for name, (fresh, used, beside) in found.items():
        say(
            f"{name}: a session has {fresh:.0f} MB when opened, {used:.0f} MB after 20 changes and the other language "
            f"(target {TARGETS['session']}), and {beside:.0f} MB for what stands for it"
        )
        assert used + beside <= 1.5 * TARGETS["session"]


def test_no_page_asks_anything_of_other_hosts(server, browser, benchmark):
    names = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))

    def visit() -> None:
        with visiting(browser) as visitor:
            page = visitor.context.new_page()
            page.goto(server.url)
            for name in names:
                page.goto(address(server, name))
                page.locator(".advisor-root").wait_for(timeout=90_000)
                page.wait_for_timeout(2000)
            assert visitor.outside == []

    benchmark.pedantic(visit, rounds=1)
    server.wait_for_kernels(0, seconds=30)
    say(f"{len(names)} pages and the start page: 0 requests to other hosts")


def act(dice: random.Random, visitor: Visitor, server: Server) -> str:
    """One thing that a person does."""
    pages = visitor.context.pages
    page = pages[-1] if pages else visitor.context.new_page()
    what = (
        dice.choice(["change", "change", "change", "go on", "reload", "close", "vanish"])
        if page.url != "about:blank"
        else "open"
    )
    try:
        if what == "open":
            page.goto(address(server, dice.choice(STAGES)), timeout=60_000, wait_until="commit")
        elif what == "change":
            page.locator(".advisor-figures .advisor-figure").first.wait_for(timeout=60_000)
            page.get_by_role("button", name=dice.choice(["QLoRA", "LoRA", "Full"]), exact=True).click(timeout=20_000)
        elif what == "go on":
            page.locator("a[data-advisor-nav]").nth(dice.randrange(6)).click(timeout=20_000)
        elif what == "reload":
            page.reload(timeout=30_000, wait_until="commit")
        elif what == "close":
            page.close(run_before_unload=True)
        else:  # the tab goes without a word to the server
            page.close()
    except PlaywrightError as error:
        return f"{what} failed: {str(error).splitlines()[0]}"
    return what


def test_an_hour_of_use_leaves_no_process_behind(folder, browser, benchmark, monkeypatch):
    """Ten people open, change, go on, reload, close and lose their pages; one robot reads pages and never connects."""
    monkeypatch.setattr(helpers, "START", HASTE + helpers.START)
    dice = random.Random(8)  # noqa: S311 - the same hour every time
    done: dict[str, int] = {}
    with running(folder, max_sessions=30) as server:
        visitors = [new_visitor(browser) for _ in range(10)]
        most = 0

        def hour() -> None:
            nonlocal most
            until = time.monotonic() + 60
            while time.monotonic() < until:
                for visitor in dice.sample(visitors, len(visitors)):
                    what = act(dice, visitor, server)
                    done[what] = done.get(what, 0) + 1
                    most = max(most, len(server.kernels()))
                    if time.monotonic() > until:
                        break
                server.get("/voila/render/02_vram_budget.ipynb")

        benchmark.pedantic(hour, rounds=1)
        for visitor in visitors:
            leave(visitor)
        closed = time.monotonic()
        server.wait_for_kernels(0, seconds=120)
        gone = time.monotonic() - closed
        until = time.monotonic() + 20
        while stand_ins(server) and time.monotonic() < until:
            time.sleep(0.2)
        left = stand_ins(server)
        family = psutil.Process(server.process.pid).children(recursive=True)
        log = server.log.read_text()
    say(
        f"mixed use: {done}; up to {most} sessions, none {gone:.0f} s after the last page was closed; "
        f"{len(family)} process stays"
    )
    assert left == []
    assert len(family) <= 1  # the nursery
    assert most >= 5
    assert not [what for what in done if "failed" in what]
    assert "Traceback" not in log
    assert all(visitor.outside == [] for visitor in visitors)
