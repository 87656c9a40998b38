"""Whole estimates: hand-checkable sums, published values, the instants, pipelines, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from advisor import catalog
from advisor.architecture import Architecture, find_architecture
from advisor.memory import MemoryInputs, estimate_memory
from advisor.trail import evaluate
from advisor.training import Layout
from advisor.units import Q, UnitError, unit

from .conftest import CARD_80, estimate, gib, training


def test_mixed_precision_states_of_a_7b_by_hand(seven: Architecture) -> None:
    """7e9 parameters: weights 2 B, gradients 2 B, master and two moments 12 B each: 14 + 14 + 84 = 112 GB."""
    result = estimate(seven, training(precision="bf16_mixed", framework="deepspeed"), capacity=CARD_80)
    assert result.weights.m_as("GB / GPU") == pytest.approx(14.0, rel=2e-3)
    assert result.gradients.m_as("GB / GPU") == pytest.approx(14.0, rel=2e-3)
    assert result.optimizer_states.m_as("GB / GPU") == pytest.approx(84.0, rel=2e-3)
    assert result.verdict == "does_not_fit"


def test_eight_cards_with_zero_3_hold_a_7b(seven: Architecture) -> None:
    """16 B x 7e9 / 8 = 14 GB of states a card, and activations: far below 80 GB."""
    recipe = training(precision="bf16_mixed", framework="deepspeed")
    assert estimate(seven, recipe, CARD_80, zero_stage=3, data_parallel_size=8).verdict == "fits"


@pytest.mark.parametrize(
    ("card", "recomputation", "verdict"),
    [
        ("L40S", "none", "fits"),
        ("A100 40GB", "none", "fits"),
        ("RTX 4090", "full", "fits"),
        ("RTX 4090", "none", "does_not_fit"),
    ],
)
def test_lora_of_a_7b_on_one_card(seven: Architecture, card: str, recomputation: str, verdict: str) -> None:
    """14 GB of frozen weights and about 14 GB of activations at 2048 tokens: 40 GB has room, 24 GB needs recomputation."""
    recipe = training("lora", "bf16_mixed", dtype="fp32")
    result = estimate(seven, recipe, catalog.gpu(card).capacity, activation_recomputation=recomputation)
    assert result.verdict == verdict


@pytest.mark.parametrize(
    ("recipe", "none", "full"),
    [
        (training("lora"), 29.40, 18.66),
        (training("lora", "bf16_mixed", dtype="fp32"), 31.71, 18.89),
        (training("qlora", upcast=False), 19.75, 9.01),
        (training("qlora", "bf16_mixed", dtype="fp32"), 29.75, 12.68),
        (training(), 60.13, 59.85),
    ],
)
def test_allocated_of_llama_8b_traced_from_real_model_code(llama: Architecture, recipe, none: float, full: float) -> None:
    """GiB allocated at 2048 tokens, sdpa, traced under PyTorch's memory tracker: without and with recomputation."""
    assert gib(estimate(llama, recipe).allocated) == pytest.approx(none, rel=0.02)
    assert gib(estimate(llama, recipe, activation_recomputation="full").allocated) == pytest.approx(full, rel=0.02)


@pytest.mark.parametrize(("stage", "none", "full"), [(3, 28.84, 20.34), (2, 41.43, 29.67)])
def test_allocated_of_fsdp_on_eight_ranks(llama: Architecture, stage: int, none: float, full: float) -> None:
    """fp32 shards, 16-bit compute, fp32 reduction; resharded after the forward pass (3) or not (2)."""
    recipe = training(precision="fp32_autocast", framework="fsdp")
    sharding = {"zero_stage": stage, "data_parallel_size": 8}
    assert gib(estimate(llama, recipe, **sharding).allocated) == pytest.approx(none, rel=0.03)
    assert gib(estimate(llama, recipe, activation_recomputation="full", **sharding).allocated) == pytest.approx(full, rel=0.03)


@pytest.mark.parametrize(
    ("recomputation", "sequence_parallel", "published"),
    [("none", False, 66.84), ("selective", True, 12.35), ("full", False, 5.81)],
)
def test_activations_of_gpt_3_as_published(recomputation: str, sequence_parallel: bool, published: float) -> None:
    """Korthikanti et al. 2022: 175B, t = p = 8, three chunks a stage, one micro-batch of 2048 tokens, fused kernels.

    s b h L / t ... : 2048 x 12288 x 96 x (10 + 24/8 + 5 x 96 x 2048 / 12288 / 8) x (1 + 7/24) bytes = 66.84 GiB.
    """
    recipe = training(precision="bf16_mixed", gradients="fp32", framework="megatron", attention="eager")
    result = estimate(
        find_architecture("GPT-3 175B"),
        recipe,
        tensor_parallel_size=8,
        pipeline_parallel_size=8,
        virtual_pipeline=3,
        gradient_accumulation_steps=64,
        activation_recomputation=recomputation,
        sequence_parallel=sequence_parallel,
    )
    assert gib(result.activations) == pytest.approx(published, abs=0.01)
    assert result.worst_stage == "first"


def test_megatron_distributed_optimizer_takes_6_plus_12_over_d(llama: Architecture) -> None:
    """bf16 weights and fp32 gradients are whole (6 B), master and moments are divided by d = 4 (12 / 4 = 3 B)."""
    recipe = training(precision="bf16_mixed", gradients="fp32", framework="megatron")
    result = estimate(llama, recipe, zero_stage=1, data_parallel_size=4)
    states = result.weights + result.gradients + result.optimizer_states
    assert states.m_as("B / GPU") == pytest.approx(9 * llama.parameters_total.m_as("parameter"))


def test_terms_at_the_peak_add_up_to_what_is_allocated(llama: Architecture) -> None:
    """The peak is one instant: its terms and nothing else."""
    peak = estimate(llama, activation_recomputation="full").at_peak
    terms = peak.weights + peak.gradients + peak.optimizer_states + peak.activations + peak.logits + peak.buffers
    assert terms.m_as("B / GPU") == pytest.approx(estimate(llama, activation_recomputation="full").allocated.m_as("B / GPU"))


def test_which_instant_wins(llama: Architecture) -> None:
    """LoRA peaks at the loss; pure bf16 with recomputation at the end of the backward pass; an fp32 master copy at the step."""
    assert estimate(llama, training("lora")).peak_phase == "loss"
    assert estimate(llama, activation_recomputation="full").peak_phase == "backward"
    mixed = training(precision="bf16_mixed")
    assert estimate(llama, mixed, activation_recomputation="full").peak_phase == "optimizer_step"


def test_gradients_of_an_accumulated_step_are_there_at_the_loss(llama: Architecture) -> None:
    """The first micro-batch of a step has no gradients yet at its loss; later ones have them all."""
    one, two = estimate(llama, gradient_accumulation_steps=1), estimate(llama, gradient_accumulation_steps=2)
    assert two.allocated - one.allocated > 0.9 * one.gradients


def test_three_measures_in_order(llama: Architecture) -> None:
    """allocated < reserved < what nvidia-smi shows, and the last is compared with the card."""
    result = estimate(llama, training("lora"))
    assert result.allocated < result.reserved < result.total
    assert result.low < result.total < result.high


def test_a_full_card_squeezes_the_allocator_and_not_the_tensors(llama: Architecture) -> None:
    """31.7 GiB allocated would reserve a tenth more; a card of 33 GiB makes the allocator give cached blocks back."""
    recipe = training("lora", "bf16_mixed", dtype="fp32")
    free, squeezed = estimate(llama, recipe), estimate(llama, recipe, Q(33.5, unit("GiB / GPU")))
    assert squeezed.allocated == free.allocated
    assert squeezed.total < free.total
    assert squeezed.total <= squeezed.capacity
    assert squeezed.verdict == "tight"


def test_worst_stage_holds_the_head_when_logits_dominate() -> None:
    """One layer a stage, a vocabulary of 152 k and many tokens: the last stage's logits outweigh the first's micro-batches."""
    model = find_architecture("Qwen2.5 0.5B")
    recipe = training(precision="bf16_mixed", framework="megatron")
    result = estimate(model, recipe, pipeline_parallel_size=2, micro_batch_size=8, activation_recomputation="full")
    assert result.worst_stage == "last"
    assert result.logits.m_as("B / GPU") > 0


def test_offload_moves_states_to_the_host(llama: Architecture) -> None:
    """8.03e9 x 12 B of master copy and moments and 4 B of gradients leave the cards for one node's memory."""
    recipe = training(precision="bf16_mixed", framework="deepspeed")
    kept = estimate(llama, recipe, zero_stage=2, data_parallel_size=8)
    moved = estimate(llama, recipe, zero_stage=2, data_parallel_size=8, offload="optimizer")
    assert moved.optimizer_states.m_as("B / GPU") == 0
    more = (moved.host_ram - kept.host_ram).m_as("GB / node")
    assert more == pytest.approx(16 * 8.03, rel=0.01)


def test_qlora_exceeds_lora_only_through_its_unquantized_part(llama: Architecture) -> None:
    """On a model with a large vocabulary fp32 embedding and head outweigh what 4-bit linears save; without the upcast never."""
    small = find_architecture("Llama 3.2 1B")
    for model in (small, llama):
        lora = estimate(model, training("lora", "bf16_mixed", dtype="fp32"))
        upcast = estimate(model, training("qlora", "bf16_mixed", dtype="fp32"))
        plain = estimate(model, training("qlora", upcast=False))
        assert plain.allocated < lora.allocated
        unquantized = upcast.weights - plain.weights
        assert unquantized.m_as("GB / GPU") > 0.4
        assert upcast.weights - unquantized < lora.weights


def test_adapters_of_llama_8b_by_hand(llama: Architecture) -> None:
    """Rank 16 on all linears trains 41 943 040 parameters: 4 B of fp32 gradients and 8 B of moments each."""
    result = estimate(llama, training("lora", "bf16_mixed", dtype="fp32"))
    assert result.gradients.m_as("B / GPU") == pytest.approx(4 * 41_943_040)
    assert result.optimizer_states.m_as("B / GPU") == pytest.approx(8 * 41_943_040)
    bf16_base = 2 * 8_030_261_248
    assert result.weights.m_as("B / GPU") == pytest.approx(bf16_base + 4 * 41_943_040)


def test_every_step_of_the_trail_computes_its_value(llama: Architecture) -> None:
    """What is shown is what was done."""
    steps = estimate(
        llama, training(precision="bf16_mixed", framework="deepspeed"), CARD_80, zero_stage=3, data_parallel_size=8
    ).trail
    assert {"weights", "gradients", "optimizer_states", "activations", "logits", "allocated", "total"} <= {
        s.name for s in steps
    }
    for step in steps:
        assert evaluate(step) == step.value


def test_capacity_needs_bytes_per_gpu(llama: Architecture) -> None:
    """80 GB of one card and 80 GB in all are not the same thing."""
    with pytest.raises(UnitError, match=r"MemoryInputs.capacity needs .*information.*gpu.*, but was given 80 GB"):
        MemoryInputs(architecture=llama, training=training(), layout=Layout(), capacity=Q(80, "GB"))


def test_unknown_family_is_said_to_be_unmeasured() -> None:
    """A model type that was not traced is answered with what its config says, and says so."""
    from advisor.architecture import architecture_from_config

    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}
    known = architecture_from_config({**config, "intermediate_size": 128})
    other = architecture_from_config({**config, "intermediate_size": 128, "model_type": "mpt", "d_model": 64, "n_heads": 4})
    assert not any("not measured" in sentence for sentence in estimate(known).assumptions)
    assert any("not measured" in sentence for sentence in estimate(other).assumptions)


def test_one_call_on_arrays_names_each_phase_and_stage(llama: Architecture) -> None:
    """A search is one call; the words come back as arrays too."""
    layout = Layout(pipeline_parallel_size=np.array([1, 4]), micro_batch_size=np.array([1, 2]))
    result = estimate_memory(MemoryInputs(architecture=llama, training=training(), layout=layout, capacity=CARD_80))
    assert result.peak_phase.shape == result.verdict.shape == (2,)
    assert result.worst_stage[0] == "only"
