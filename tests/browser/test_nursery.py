"""Warm sessions: apart from each other, gone with the server, and replaced by ordinary kernels when the nursery is gone."""

from __future__ import annotations

import contextlib
import signal
import time

import psutil
from conftest import NAME, new_visitor, running
from test_page import move, shows

PAGE = "/voila/render/02_vram_budget.ipynb"


def nursery(server) -> psutil.Process:
    (one,) = (child for child in psutil.Process(server.process.pid).children() if "advisor.serve.nursery" in child.cmdline())
    return one


def test_sessions_are_forked_warm_and_do_not_see_each_other(server, browser):
    visitors = [new_visitor(browser) for _ in range(2)]
    first, second = (visitor.open(server.url + PAGE) for visitor in visitors)
    move(first, 3)
    shows(first, "11 lora")
    shows(second, "8 lora")
    assert {session.name() for session in server.kernels()} == {NAME}
    for visitor in visitors:
        for page in visitor.context.pages:
            page.close(run_before_unload=True)
        visitor.context.close()


def test_a_killed_server_leaves_no_process_behind(demo):
    with running(demo) as server:
        assert server.get(PAGE)[0] == 200
        family = psutil.Process(server.process.pid).children(recursive=True)
        assert len(family) >= 3  # the nursery, a session, and what stands for it
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(10)
        _, alive = psutil.wait_procs(family, timeout=15)
        assert alive == []


def test_without_a_nursery_pages_come_the_ordinary_way(demo):
    with running(demo) as server:
        nursery(server).kill()
        time.sleep(0.5)
        status, body, _ = server.get(PAGE)
        assert status == 200 and "kernelId" in body
        assert [session.name() == NAME for session in server.kernels()] == [False]


def test_a_session_ends_with_what_stands_for_it(demo):
    with running(demo) as server:
        assert server.get(PAGE)[0] == 200
        (session,) = server.kernels()
        children = psutil.Process(server.process.pid).children()
        for child in children:
            with contextlib.suppress(psutil.Error):
                if any(part.endswith("session.py") for part in child.cmdline()):
                    child.kill()
        session.wait(10)
