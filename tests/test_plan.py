"""A plan as a whole: it explains itself, survives JSON, names its origins, and never comes in part."""

from __future__ import annotations

import json

import numpy as np
import pytest

from advisor import Plan, catalog, make_plan, search
from advisor.trail import evaluate
from advisor.units import Q, Quantity

SCENARIOS = {
    "lora": {"model": "llama-3.1-8b", "method": "lora", "tokens": "200 Mtoken"},
    "qlora": {"model": "qwen2.5-7b", "method": "qlora", "gpu": "4090"},
    "full_box": {"model": "llama-3.1-8b", "method": "full", "tokens": "2 Gtoken", "gpu": "h100", "gpus": 8},
    "two_boxes": {"model": "llama-3.1-8b", "method": "full", "tokens": "20 Gtoken", "gpu": "h100", "gpus": 16},
    "megatron": {
        "model": "llama-3.1-70b",
        "method": "full",
        "framework": "megatron",
        "gpu": "h100",
        "gpus": 64,
        "parallelism": {"tensor": 8, "pipeline": 4, "zero_stage": 1},
        "global_batch_size": 256,
    },
    "moe": {"model": "qwen3-30b-a3b", "method": "full", "framework": "megatron", "gpu": "h100", "gpus": 32},
    "does_not_fit": {"model": "70B", "method": "full", "gpu": "a100-80", "gpus": 1},
    "spot_cny": {"model": "7B", "purchase": {"mode": "spot", "currency": "CNY"}},
}

PATHS = """
workload.parameters_total workload.parameters_trainable workload.parameters_active workload.flop_per_token
workload.training_flop memory.weights memory.gradients memory.optimizer_states memory.activations memory.logits
memory.buffers memory.runtime memory.total memory.low memory.high memory.capacity memory.host_ram memory.peak_phase
memory.verdict memory.allocated memory.reserved memory.escalation cluster.gpu cluster.gpus cluster.nodes
cluster.layout cluster.step_time cluster.tokens_per_second_per_gpu cluster.tokens_per_second cluster.mfu
cluster.training_time cluster.gpu_hours cluster.low cluster.high cluster.interconnect.required_scale_up
cluster.interconnect.required_scale_out cluster.interconnect.binding_collective
cluster.interconnect.communication_share cluster.interconnect.fabric cluster.network storage.dataset
storage.checkpoint_size storage.checkpoint_interval storage.checkpoint_write_time storage.goodput storage.tiers
storage.required_read storage.required_write storage.startup_time storage.upload_time storage.requests storage.host
budget.total budget.low budget.high budget.lines budget.currency budget.as_of budget.gpu_hours
budget.break_even_utilization budget.alternatives advice trail
"""


@pytest.fixture(scope="module", params=SCENARIOS, ids=str)
def plan(request):
    return make_plan(SCENARIOS[request.param])


def test_every_step_of_the_trail_evaluates_to_its_value(plan):
    assert len(plan.trail) > 40
    for step in plan.trail:
        again = evaluate(step)
        if isinstance(step.value, Quantity):
            np.testing.assert_allclose(again.m_as(step.value.units), step.value.magnitude, rtol=1e-9, err_msg=step.name)
        else:
            assert again == step.value, step.name


def test_every_source_resolves(plan):
    known = catalog.sources()
    for step in plan.trail:
        assert step.source == "" or step.source in known, f"{step.name}: {step.source}"


def test_json_round_trip(plan):
    data = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    again = Plan.from_dict(data)
    assert again.to_dict() == plan.to_dict()
    assert again.memory.total == plan.memory.total
    assert again.summary("zh") == plan.summary("zh")


def test_contract_paths(plan):
    data = plan.to_dict()
    for path in PATHS.split():
        value = data
        for key in path.split("."):
            value = value[key]
    assert data["memory"]["total"]["unit"] == "GiB / GPU"
    for advice in data["advice"]:
        assert advice["severity"] in ("info", "warning", "stop") and advice["text"]["en"] and advice["text"]["zh"]
    assert all(entry["origin"] in ("given", "default", "derived") for entry in data["scenario"].values())


def test_terms_and_intervals_are_in_order(plan):
    memory, cluster, budget = plan.memory, plan.cluster, plan.budget
    assert memory.low <= memory.total <= memory.high
    assert memory.allocated <= memory.reserved <= memory.total
    assert cluster.low <= cluster.training_time <= cluster.high
    assert budget.low <= budget.total <= budget.high
    total = sum((line.amount for line in budget.lines), Q(0.0, budget.currency))
    assert total.m_as(budget.currency) == pytest.approx(budget.total.m_as(budget.currency))


def test_origins_tell_given_from_default_from_derived():
    scenario = make_plan(SCENARIOS["lora"]).scenario
    assert scenario["method"]["origin"] == "given"
    assert scenario["optimizer"] == {"value": "adamw", "origin": "default"}
    assert scenario["gpu"]["origin"] == "derived"
    assert scenario["tokens"] == {"value": 200.0, "unit": "Mtoken", "origin": "given"}


def test_given_sizes_are_kept():
    layout = make_plan(SCENARIOS["megatron"]).cluster.layout
    assert (layout.tensor_parallel_size, layout.pipeline_parallel_size, layout.data_parallel_size) == (8, 4, 2)
    assert layout.zero_stage == 1 and layout.global_batch_size == 256


def test_a_plan_that_does_not_fit_says_stop_and_a_way_out():
    plan = make_plan(SCENARIOS["does_not_fit"])
    assert plan.memory.verdict == "does_not_fit" and plan.cluster.gpus == 1
    assert plan.advice[0].severity == "stop"
    assert any(rung.verdict == "fits" for rung in plan.memory.escalation)


def test_search_ranks_and_marks_what_is_allowed():
    frame = search({**SCENARIOS["full_box"], "gpus": "auto", "deadline": "1 day"})
    assert len(frame) > 3 and frame["allowed"].iloc[0]
    allowed = frame[frame["allowed"]]
    assert allowed["cost (USD)"].is_monotonic_increasing
    assert (allowed["training_time (h)"] <= 24).all()


def test_more_tokens_cost_more_time_and_money():
    small, large = (make_plan({**SCENARIOS["full_box"], "tokens": tokens}) for tokens in ("1 Gtoken", "4 Gtoken"))
    assert large.cluster.training_time.m_as("h") == pytest.approx(4 * small.cluster.training_time.m_as("h"))
    assert large.budget.total > small.budget.total
    assert large.memory.total == small.memory.total
