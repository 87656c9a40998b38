"""Benchmarks run only when asked for: `pytest tests/benchmarks --benchmark-only`. The fixtures are of those of the screen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from screen import DRAWN, NOTEBOOKS, PAGES, Server, browser, open_page, running, visiting

__all__ = ["browser"]


def pytest_ignore_collect(collection_path, config):
    """Leave the benchmarks out of an ordinary run of the tests."""
    return True if collection_path.name.startswith("test_") and not config.getoption("benchmark_only", False) else None


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
