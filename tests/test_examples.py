"""Worked examples that a reader can check by hand, from the question to the budget."""

from __future__ import annotations

import pytest

from advisor import make_plan
from advisor.units import Q

FULL_7B = {"model": "7B", "method": "full", "precision": "bf16_mixed", "gpu": "a100-80", "tokens": "500 Mtoken"}


def gb(value):
    return value.m_as("GB / GPU")


def test_states_of_a_full_7b_run_do_not_fit_one_80_gb_card():
    """7e9 parameters x (2 weights + 2 gradients + 4 master + 4 + 4 moments) bytes = 14 + 14 + 84 = 112 GB, and then
    come the activations."""
    memory = make_plan({**FULL_7B, "gpus": 1}).memory
    assert gb(memory.weights) == pytest.approx(14.0, rel=0.01)
    assert gb(memory.gradients) == pytest.approx(14.0, rel=0.01)
    assert gb(memory.optimizer_states) == pytest.approx(84.0, rel=0.01)
    assert memory.verdict == "does_not_fit"
    assert memory.total > Q(112, "GB / GPU") > memory.capacity
    assert memory.escalation, "the plan must say what would make it fit"


def test_the_same_run_fits_eight_cards_with_zero_3():
    """112 GB of states / 8 = 14 GB a card; activations and gathered layers take the rest of what is used."""
    memory = make_plan({**FULL_7B, "gpus": 8, "parallelism": {"zero_stage": 3}}).memory
    states = gb(memory.weights) + gb(memory.gradients) + gb(memory.optimizer_states)
    assert states == pytest.approx(112 / 8, rel=0.01)
    assert memory.verdict == "fits"


def test_7b_on_half_a_billion_tokens_is_58_gpu_hours_at_100_tflops():
    """6 x 7e9 x 5e8 = 2.1e19 FLOP; / 100e12 FLOP/s = 210 000 s = 58.3 GPU-hours = 7.3 h on 8 ideal cards."""
    plan = make_plan({**FULL_7B, "gpus": 8})
    rule = next(step for step in plan.trail if step.name == "training_flop_rule_of_thumb")
    flop = Q(2.1e19, "FLOP")
    assert rule.value.to("FLOP").magnitude == pytest.approx(flop.magnitude, rel=0.02)
    ideal = (flop / Q(100, "TFLOP/s")).to("h")
    assert ideal.magnitude == pytest.approx(58.3, rel=0.001)
    assert (ideal / 8).magnitude == pytest.approx(7.3, rel=0.01)
    # attention and the head come on top of 6 N D: the exact count is a little above the rule
    assert 1.0 <= (plan.workload.training_flop / flop).m_as("") < 1.15
    assert Q(5, "h") <= plan.cluster.high and plan.cluster.low <= Q(10, "h")
    assert plan.cluster.low < plan.cluster.training_time < plan.cluster.high


@pytest.mark.parametrize(("gpu", "recomputation"), [("l40s", "none"), ("a100-40", "none"), ("4090", "full")])
def test_7b_lora_fits_one_card(gpu, recomputation):
    """13.5 GB of frozen bf16 weights, adapters of 40 M parameters, and at sequence 2048 some 15 GB of activations that
    recomputation takes away."""
    plan = make_plan(
        {
            "model": "7B",
            "method": "lora",
            "sequence_length": 2048,
            "micro_batch_size": 1,
            "activation_recomputation": recomputation,
            "gpu": gpu,
        }
    )
    assert plan.memory.verdict == "fits"
    assert plan.cluster.gpus == 1
    assert plan.cluster.interconnect.required_scale_up is None and plan.cluster.interconnect.required_scale_out is None


def test_the_growth_path_of_one_team():
    """LoRA on one card, full fine-tuning on one 8-GPU box, two boxes with a stated network, then 70B on RDMA and a parallel
    file system."""
    first = make_plan({"model": "llama-3.1-8b", "method": "lora", "tokens": "200 Mtoken"})
    second = make_plan({"model": "llama-3.1-8b", "method": "full", "tokens": "2 Gtoken"})
    third = make_plan({"model": "llama-3.1-8b", "method": "full", "tokens": "20 Gtoken", "gpus": 16, "gpu": "h100"})
    fourth = make_plan({"model": "llama-3.1-70b", "method": "full", "tokens": "2 Gtoken"})
    assert first.cluster.gpus == 1
    assert (second.cluster.gpus, second.cluster.nodes) == (8, 1) and second.cluster.layout.zero_stage >= 1
    assert third.cluster.nodes == 2 and third.cluster.interconnect.required_scale_out > Q(1, "GB / s / node")
    assert fourth.cluster.nodes >= 2 and fourth.cluster.network is not None
    assert any(tier.storage_class == "parallel-fs" for tier in fourth.storage.tiers)
    totals = [plan.budget.total.m_as("USD") for plan in (first, second, third, fourth)]
    assert totals[0] < totals[1] < totals[2]


def test_sixteen_cards_on_25_gbe_are_slower_than_eight_on_nvlink():
    """A step of 64 sequences: two boxes exchange 13.5 GB of gradients over about 2.5 GB/s, which is longer than the compute
    that eight more cards save."""
    same_step = {**FULL_7B, "global_batch_size": 64}
    eight = make_plan({**same_step, "gpus": 8})
    sixteen = make_plan({**same_step, "gpus": 16, "scale_out": "Ethernet 25G TCP"})
    assert sixteen.cluster.step_time > eight.cluster.step_time
    link = sixteen.cluster.interconnect
    assert link.communication_share > 0.2
    reason = next(one for one in sixteen.advice if one.code == "communication_bound")
    assert link.cheapest_fabric in reason.text["en"] and link.cheapest_fabric in reason.text["zh"]
    cured = next(rung for rung in link.ladder if rung.name == link.cheapest_fabric)
    assert cured.step_time < eight.cluster.step_time


@pytest.mark.parametrize(
    ("model", "least", "most"),
    [("1B", 1, 1), ("13B", 8, 32), ("gpt-3 175b", 32, 1024)],
)
def test_cards_by_size_of_model(model, least, most):
    """About 1B: one 24 or 32 GB card. 13B, full: an 8-GPU NVLink box. 175B: 32 cards and more on 200/400G."""
    cluster = make_plan({"model": model, "method": "full", "tokens": "1 Gtoken"}).cluster
    assert least <= cluster.gpus <= most
    if model == "1B":
        assert cluster.gpu in ("GeForce RTX 3090", "GeForce RTX 4090", "GeForce RTX 5090", "L4", "A10")
    else:
        assert "NVLink" in cluster.interconnect.fabric


def test_a_refused_scenario_gives_no_plan():
    with pytest.raises(ValueError, match="tokens must be a quantity in token"):
        make_plan({"model": "7B", "tokens": "5 GB"})
