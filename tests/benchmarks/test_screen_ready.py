"""How soon a page is there: for a new visitor, for one who comes again, and from a process started before.

    pytest tests/benchmarks/test_screen_ready.py --benchmark-only -s

Times are printed beside the load of the machine and the targets they are meant for; what is asserted holds on a busy machine of
two cores too.
"""

from __future__ import annotations

import shutil
import statistics

import pytest
from screen import BUSY, NOTEBOOKS, PAGES, TARGETS, open_page, rest, running, say, visiting, work


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
