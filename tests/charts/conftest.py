"""Plans that the chart tests share: one card, a box, a cluster, one that does not fit, a mixture of experts in yuan."""

from __future__ import annotations

import functools

import pytest

import advisor.charts as charts
from advisor import make_plan

SCENARIOS = {
    "one_card": {"model": "llama-3.1-8b", "method": "lora", "tokens": "200 Mtoken"},
    "one_box": {"model": "llama-3.1-8b", "method": "full", "tokens": "1 Gtoken", "gpu": "H100", "gpus": 8},
    "cluster": {
        "model": "llama-3.1-70b",
        "method": "full",
        "tokens": "20 Gtoken",
        "gpu": "H100",
        "gpus": 64,
        "framework": "megatron",
    },
    "does_not_fit": {"model": "llama-3.1-70b", "method": "full", "tokens": "10 Mtoken", "gpu": "A100 80GB", "gpus": 1},
    "experts_in_yuan": {
        "model": "mixtral-8x7b",
        "method": "full",
        "tokens": "2 Gtoken",
        "gpu": "H100",
        "gpus": 16,
        "purchase": {"currency": "CNY"},
    },
}


@functools.cache
def _plan(name: str):
    return make_plan(SCENARIOS[name])


@pytest.fixture
def plan_of():
    """The plan of a scenario by its name."""
    return _plan


@pytest.fixture(params=SCENARIOS)
def plan(request):
    """Each of the plans."""
    return _plan(request.param)


@pytest.fixture
def rows():
    """The rows of a chart: rows(stage, name, scenario, lang)."""
    return lambda stage, name, scenario, lang="en": chart(stage, name).rows(_plan(scenario), lang)


def chart(stage: str, name: str):
    return next(one for one in charts.of_stage(stage) if one.name == name)
