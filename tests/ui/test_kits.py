"""The launch kit's part of the page, without a browser."""

from __future__ import annotations

import io
import zipfile

import pytest

from advisor import make_plan
from advisor.handoff import ENGINES as KNOWN
from advisor.handoff import HandoffError
from advisor.ui.panels.kits import ENGINES, KitPart
from advisor.ui.text import Texts


class Page:
    """Stands in for the model and the keeper: one plan, and what was handed to the browser."""

    def __init__(self, scenario):
        self.plan = make_plan(scenario)
        self.files = []

    def save_file(self, *file):
        self.files.append(file)


def part(page):
    return KitPart(page, page, Texts(lang="en"), lambda handler: handler)


def test_every_engine_of_the_hand_over_can_be_chosen():
    assert {name for _, name in ENGINES} == set(KNOWN)


def test_the_chosen_engines_kit_comes_down_as_a_zip():
    page = Page({"model": "llama-3.1-8b", "method": "lora"})
    shown = part(page)
    shown.engine.value = "axolotl"
    shown.download()
    name, kind, content = page.files[0]
    assert (name, kind) == ("kit-axolotl.zip", "application/zip")
    assert any(inside.endswith("README.md") for inside in zipfile.ZipFile(io.BytesIO(content)).namelist())


def test_an_engine_that_cannot_run_the_plan_says_so():
    page = Page({"model": "llama-3.1-8b", "method": "qlora"})
    shown = part(page)
    shown.engine.value = "megatron"
    with pytest.raises(HandoffError, match="megatron"):
        shown.download()
    assert page.files == []
