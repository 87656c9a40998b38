"""A plan is never lost: addresses, reloads, other tabs, other stages, dead kernels, and links that are not plans."""

from __future__ import annotations

import pytest
from conftest import new_visitor, ready
from test_page import move, shows

from advisor.ui.link import encode

ONE = "/voila/render/01_model_and_method.ipynb"
TWO = "/voila/render/02_vram_budget.ipynb"


def address(given: dict) -> str:
    return "#p=" + encode(given)


def test_reload_next_stage_back_and_new_tab(server, visitor):
    page = visitor.open(server.url + ONE)
    move(page, 3)
    page.get_by_role("button", name="QLoRA").click()
    shows(page, "11 qlora")
    page.wait_for_function("hash => location.hash === hash", arg=address({"batch": 11, "method": "qlora"}))
    page.reload()
    shows(page, "11 qlora")
    page.get_by_role("link", name="VRAM budget").click()
    page.wait_for_url("**/02_vram_budget.ipynb#p=*")
    shows(page, "11 qlora")
    move(page, 1)
    shows(page, "12 qlora")
    page.go_back()
    page.wait_for_url("**/01_model_and_method.ipynb#p=*")
    shows(page, "11 qlora")  # the address of that page, as it was left
    other = visitor.open(server.url + TWO)
    shows(other, "11 qlora")  # no address of its own: what this browser saw last


def test_a_link_in_another_browser(server, browser):
    other = new_visitor(browser)
    page = other.open(server.url + TWO + address({"batch": 33, "method": "full"}))
    shows(page, "33 full")
    page.close(run_before_unload=True)
    other.context.close()
    assert other.unexpected() == []


def test_a_link_pasted_into_the_open_page(server, visitor):
    page = visitor.open(server.url + TWO)
    page.evaluate("hash => { location.hash = hash }", address({"batch": 5, "method": "full"}))
    shows(page, "5 full")


@pytest.mark.parametrize(
    ("fragment", "sentence"),
    [
        ("#p=%00%ff", "The link is damaged"),
        ("#p=AAAA", "The link is damaged"),
        ("#p=" + "x" * 7000, "at most 6000 are read"),
        ("#p=9.AAAA", "another version"),
        (address({"batch": 10**9}), "The micro-batch must be between 1 and 64."),
        (address({"batch": "<img src=x onerror=alert(1)>"}), "The micro-batch must be between 1 and 64."),
        (address({"method": "<img src=x onerror=alert(1)>"}), "The method must be full, lora or qlora."),
    ],
)
def test_a_link_that_is_no_plan_is_one_sentence_and_the_defaults(server, visitor, fragment, sentence):
    page = visitor.open(server.url + TWO + fragment)
    page.get_by_role("alert").filter(has_text=sentence).wait_for()
    shows(page, "8 lora")
    move(page, 1)
    shows(page, "9 lora")


def test_undo_survives_a_reload(server, visitor):
    page = visitor.open(server.url + TWO)
    move(page, 1)
    shows(page, "9 lora")
    page.get_by_role("button", name="Full").click()
    shows(page, "9 full")
    page.get_by_role("button", name="undo").click()
    shows(page, "9 lora")
    page.wait_for_function("hash => location.hash === hash", arg=address({"batch": 9, "method": "lora"}))
    page.reload()
    ready(page)
    shows(page, "9 lora")
    page.get_by_role("button", name="redo").click()
    shows(page, "9 full")


def test_named_plans_stay_in_the_browser(server, visitor):
    page = visitor.open(server.url + TWO)
    move(page, 4)
    shows(page, "12 lora")
    page.get_by_role("button", name="save").click()
    page.wait_for_function("() => JSON.parse(localStorage.getItem('advisor.plans') ?? '{}').mine")
    other = visitor.open(server.url + ONE + address({"batch": 2, "method": "full"}))
    shows(other, "2 full")
    other.get_by_role("button", name="recall").click()
    shows(other, "12 lora")


def test_the_link_is_copied(server, visitor):
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.open(server.url + TWO)
    move(page, 1)
    shows(page, "9 lora")
    page.get_by_role("button", name="share").click()
    page.get_by_role("status").filter(has_text="Link copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").endswith(address({"batch": 9, "method": "lora"}))


def test_a_dead_session_is_announced_and_reload_brings_the_plan_back(server, visitor):
    before = {kernel.pid for kernel in server.kernels()}
    page = visitor.open(server.url + TWO)
    move(page, 5)
    shows(page, "13 lora")
    page.wait_for_timeout(1500)
    assert page.locator(".advisor-lost").count() == 0  # three pings went well
    for kernel in server.kernels():
        if kernel.pid not in before:
            kernel.kill()
    page.get_by_role("alert").filter(has_text="The calculation behind this page has ended").wait_for(timeout=15_000)
    page.locator(".advisor-lost button").click()
    page.wait_for_load_state()
    ready(page)
    shows(page, "13 lora")


def test_broken_storage_does_not_break_the_page(server, visitor):
    visitor.context.add_init_script(
        "localStorage.setItem('advisor.plan', '{not json'); localStorage.setItem('advisor.plans', '[1, 2]');"
        "sessionStorage.setItem('advisor.undo', JSON.stringify({history: [7, null, 'AAAA'], position: 'x'}))"
    )
    page = visitor.open(server.url + TWO)
    shows(page, "8 lora")
    move(page, 1)
    shows(page, "9 lora")
