"""The twelve scenarios' plans and kits, made once."""

from __future__ import annotations

import functools

import pytest

from advisor import make_plan
from advisor.handoff import ENGINES, HandoffError, kit_files
from tests.handoff.scenarios import SCENARIOS


@functools.cache
def plan_of(name: str):
    return make_plan(SCENARIOS[name])


@functools.cache
def kits_of(name: str) -> dict[str, dict[str, str]]:
    """{engine: its files} for every engine that can run the scenario's plan."""
    found = {}
    for engine in ENGINES:
        try:
            found[engine] = kit_files(plan_of(name), engine)
        except HandoffError:
            continue
    return found


@pytest.fixture(params=SCENARIOS, ids=str)
def scenario_name(request) -> str:
    return request.param
