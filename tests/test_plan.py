"""A plan as a whole: it explains itself, survives JSON, names its origins, and never comes in part."""

from __future__ import annotations

import json

import numpy as np
import pytest

from advisor import Plan, catalog, make_plan, search
from advisor.scenario import ScenarioError
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


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"purchase": {"as_of": "2020-01-01"}}, "purchase: as_of must be .* or later"),
        ({"model": "BLOOM 1.1B", "lora": {"targets": ["q_proj"]}}, "lora.targets: .*no module 'q_proj'"),
        ({"purchase": {"provider": "nobody"}}, "purchase: No on_demand price"),
        ({"data": {"location": "mars"}}, "data.location must be"),
        ({"method": "full", "gpu": "h100", "gpus": 200_000}, "gpus: .*cannot be joined"),
        ({"parallelism": {"expert": 8}}, "parallelism cannot be used: .*none"),
        (
            {"method": "full", "gpus": 16, "global_batch_size": 3, "parallelism": {"tensor": 1, "pipeline": 1, "context": 1}},
            "glo",
        ),
    ],
    ids=str,
)
def test_every_stage_refuses_with_one_sentence_that_names_the_key(data, sentence):
    with pytest.raises(ScenarioError, match=sentence) as caught:
        make_plan({"model": "7B", **data})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        {"model": "llama-3.1-8b", "sequence_length": 131072, "micro_batch_size": 16, "gpu": "h100"},
        {"model": "llama-3.1-8b", "method": "full", "gpu": "t4", "parallelism": {"tensor": 2, "pipeline": 2}},
        {
            "model": "llama-3.1-8b",
            "method": "full",
            "gpu": "h100",
            "gpus": 8,
            "parallelism": {"tensor": 2, "sequence_parallel": False},
        },
    ],
    ids=str,
)
def test_what_was_given_is_kept_even_where_nothing_fits(data):
    layout = make_plan(data).cluster.layout
    assert layout.micro_batch_size == data.get("micro_batch_size", layout.micro_batch_size)
    for name, value in data.get("parallelism", {}).items():
        assert getattr(layout, name if name == "sequence_parallel" else f"{name}_parallel_size") == value


def test_a_batch_smaller_than_the_cluster_is_laid_out_with_model_parallelism():
    """GPT-3 on 1 024 cards with 1 536 sequences a step (Narayanan et al. 2021, table 1) cannot be data parallel alone."""
    scenario = {"model": "gpt-3 175b", "method": "full", "gpu": "a100-80", "gpus": 1024, "global_batch_size": 1536}
    layout = make_plan({**scenario, "framework": "megatron"}).cluster.layout
    assert layout.global_batch_size == 1536
    assert layout.tensor_parallel_size * layout.pipeline_parallel_size > 1


def test_a_purchase_in_cny_takes_cards_that_are_sold_at_home():
    plan = make_plan({"model": "qwen2.5-72b", "method": "full", "purchase": {"currency": "CNY"}})
    assert not plan.cluster.gpu.startswith(("H200", "B200", "GeForce"))
    assert make_plan({"model": "8B", "purchase": {"provider": "AWS"}}).budget.price.provider == "AWS"


def test_a_quote_needs_no_date_of_its_own():
    quote = {"gpu": "4090", "price": "2 CNY/h"}
    plan = make_plan({"model": "7B", "gpu": "4090", "gpus": 1, "purchase": {"quotes": [quote], "currency": "CNY"}})
    assert plan.budget.price.origin == "quote"
    with pytest.raises(ScenarioError, match=r"quotes\[0\].price must be given"):
        make_plan({"model": "7B", "purchase": {"quotes": [{"gpu": "4090"}]}})


def test_a_simple_job_has_few_remarks_and_the_stage_keeps_the_rest():
    plan = make_plan({"model": "llama-3.1-8b", "tokens": "20 Mtoken"})
    assert len(plan.advice) <= 8
    codes = {one.code for one in plan.advice}
    assert "storage.retention" not in codes
    assert "storage.retention" in {one.code for one in plan.storage.advice}


def test_an_expected_need_above_the_card_is_not_said_to_fit():
    scenario = {"model": "llama-3.1-8b", "method": "full", "gpu": "a6000", "gpus": 1, "framework": "torchtune"}
    plan = make_plan({**scenario, "optimizer_in_backward": True, "activation_recomputation": "full", "micro_batch_size": 2})
    assert plan.memory.low < plan.memory.capacity < plan.memory.total
    assert next(one for one in plan.advice if one.code == "tight").text["en"].endswith("do not count on it.")


def test_an_interval_longer_than_the_run_costs_no_more_than_no_checkpoint():
    job = {"model": "7B", "method": "full", "tokens": "1 Ttoken", "gpu": "a100-80", "gpus": 64, "purchase": {"mode": "spot"}}
    hourly, never = (make_plan({**job, "checkpoint": {"interval": interval}}) for interval in ("1 h", "10 year"))
    assert never.storage.checkpoint_interval == never.cluster.training_time
    assert 5 < never.budget.total / hourly.budget.total < 100


def test_a_speed_that_rests_on_no_measured_run_says_so_and_has_a_wider_range():
    """Of T4 no training run was published; of H100 there are runs of 16,384 cards, of RTX 4090 of one."""
    said = {}
    for gpu, gpus in (("T4", 64), ("h100", 64), ("4090", 64), ("h100", 1)):
        plan = make_plan({"model": "Llama 3.1 8B", "method": "qlora", "gpu": gpu, "gpus": gpus})
        code = next((one for one in plan.advice if one.code == "speed_unmeasured"), None)
        wide = (plan.cluster.high / plan.cluster.training_time).m_as("")
        known = (plan.cluster.throughput.high / plan.cluster.step_time).m_as("")
        said[gpu, gpus] = (code.severity if code else "", wide / known > 1.1)
    assert said == {
        ("T4", 64): ("warning", True),
        ("h100", 64): ("", False),
        ("4090", 64): ("warning", True),
        ("h100", 1): ("", False),
    }
