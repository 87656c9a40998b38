"""A server of ours on demo notebooks, and a Chromium that reaches nothing but it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from advisor.serve.nursery import NAME

HERE = Path(__file__).parent
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
START = (
    "from advisor.serve import serve; from pathlib import Path; serve(open_browser=False, folder=Path({folder!r}), {options})"
)
NOTEBOOKS = {
    "01_model_and_method": "from demo_app import Demo\nDemo('01_model_and_method').root",
    "02_vram_budget": "from demo_app import Demo\nDemo('02_vram_budget').root",
    "bare": "from demo_app import Chart, lines, points\nChart(lines(), points(8), description='bare')",
    "broken": "raise RuntimeError('secret of the server')",
}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@dataclass
class Server:
    """A running server: its address, its process, and what it prints."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def kernels(self) -> list[psutil.Process]:
        children = psutil.Process(self.process.pid).children(recursive=True)
        found = []
        for child in children:
            with contextlib.suppress(psutil.Error):
                if child.name() == NAME or "ipykernel_launcher" in child.cmdline():
                    found.append(child)
        return found

    def wait_for_kernels(self, count: int, seconds: float = 15) -> None:
        until = time.monotonic() + seconds
        while len(self.kernels()) != count:
            if time.monotonic() > until:
                raise AssertionError(f"{len(self.kernels())} kernels, not {count}")
            time.sleep(0.1)

    def get(self, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> tuple[int, str, Any]:
        request = urllib.request.Request(self.url + path, method=method, headers=headers or {})  # noqa: S310 - our own server
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, answer.read().decode(errors="replace"), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace"), error.headers


@contextlib.contextmanager
def running(folder: Path, port: int | None = None, base: str = "", **options: Any) -> Iterator[Server]:
    """Start a server, wait until it answers, end it and its kernels afterwards."""
    port = port or free_port()
    words = ", ".join(f"{name}={value!r}" for name, value in {"port": port, **options}.items())
    log = folder.parent / f"server-{port}.log"
    environment = {**os.environ, "JUPYTER_PREFER_ENV_PATH": "1"}
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", START.format(folder=str(folder), options=words)],
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        try:
            until = time.monotonic() + 60
            while "Advisor is at" not in log.read_text():
                if process.poll() is not None or time.monotonic() > until:
                    raise AssertionError(f"the server did not start:\n{log.read_text()}")
                time.sleep(0.05)
            yield Server(f"http://127.0.0.1:{port}{base}", process, log)
        finally:
            children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
            for child in children:
                with contextlib.suppress(psutil.Error):
                    child.kill()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of demo notebooks."""
    folder = tmp_path_factory.mktemp("demo") / "notebooks"
    folder.mkdir()
    shutil.copy(HERE / "demo_app.py", folder)
    for name, source in NOTEBOOKS.items():
        kernel = {"name": "python3", "language": "python", "display_name": "Python"}
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source)],
            metadata={"title": name, "kernelspec": kernel, "voila": {"template": "advisor"}},
        )
        nbformat.write(notebook, folder / f"{name}.ipynb")
    (folder / "secret.svg").write_text("<svg/>")
    (folder / "secret.csv").write_text("secret")
    return folder


@pytest.fixture(scope="session")
def server(demo: Path) -> Iterator[Server]:
    with running(demo) as one:
        yield one


@pytest.fixture(scope="session")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the real notebooks."""
    folder = tmp_path_factory.mktemp("walk") / "notebooks"
    shutil.copytree(HERE.parents[1] / "notebooks", folder)
    with running(folder) as one:
        yield one


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The machine's Chromium. A missing one fails these tests: an unopened page is not a passed one."""
    assert Path(CHROMIUM).exists(), f"no Chromium at {CHROMIUM}: install it or set CHROMIUM"
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield one
        one.close()


@dataclass
class Visitor:
    """A browser of its own: storage, pages, and what went wrong in it."""

    context: BrowserContext
    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    #: Parts of console errors that a test expects.
    expected: tuple[str, ...] = ()

    def open(self, url: str, charts: int = 2) -> Page:
        """A page, ready: its charts are drawn."""
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.goto(url)
        ready(page, charts)
        return page

    def unexpected(self) -> list[str]:
        return [text for text in self.errors if not any(part in text for part in self.expected)]


def settled(page: Page, charts: int = 0) -> None:
    """Every chart on screen shows its last rows, and there are at least so many."""
    page.wait_for_function(
        "count => { const all = [...document.querySelectorAll('.advisor-chart-picture')].filter(p => p.clientWidth);"
        " return all.length >= count && all.every(p => p.dataset.drawn === p.dataset.revision && p.querySelector('svg')) }",
        arg=charts,
        timeout=30_000,
    )


def ready(page: Page, charts: int = 2) -> None:
    if charts:
        page.wait_for_function(
            "count => document.querySelectorAll('.advisor-chart-picture[data-drawn] svg').length >= count",
            arg=charts,
            timeout=60_000,
        )


def new_visitor(browser: Browser, silent: bool = False, **options: Any) -> Visitor:
    """silent: other hosts do not answer at all, as behind a firewall that drops packets."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "accept_downloads": True, **options})
    one = Visitor(context)

    def gate(route: Any) -> None:
        url = route.request.url
        if url.startswith(("http://127.0.0.1", "data:", "blob:")):
            route.continue_()
            return
        one.outside.append(url)
        if not silent:
            route.abort()

    context.route("**/*", gate)
    return one


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    """A visitor whose pages load nothing from outside and log no error."""
    one = new_visitor(browser)
    yield one
    for page in one.context.pages:
        page.close(run_before_unload=True)
    one.context.close()
    assert one.outside == []
    assert one.unexpected() == []
