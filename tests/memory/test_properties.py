"""Properties that hold whatever the numbers: monotone terms, conserved totals, one formula for scalars and arrays."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.architecture import Architecture, find_architecture
from advisor.memory import MemoryInputs, estimate_memory
from advisor.training import Layout
from advisor.units import Quantity

from .conftest import CARD_80, estimate, training

MORE = {
    "sequence_length": ("activations", "logits"),
    "micro_batch_size": ("activations", "logits"),
}
RECIPES = [training(), training("lora"), training("qlora", "bf16_mixed", dtype="fp32"), training(precision="bf16_mixed")]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.method}-{recipe.precision}")
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@given(one=st.integers(1, 64), more=st.integers(1, 64))
@settings(max_examples=15, deadline=None)
def test_more_tokens_never_lower_their_terms(llama: Architecture, recipe, attention: str, one: int, more: int) -> None:
    """Longer sequences and larger micro-batches never lower activations, logits or the total."""
    recipe = replace(recipe, attention=attention)
    for field, terms in MORE.items():
        step = 128 if field == "sequence_length" else 1
        less = estimate(llama, recipe, **{field: one * step})
        larger = estimate(llama, recipe, **{field: (one + more) * step})
        for term in (*terms, "allocated", "total"):
            assert getattr(larger, term) >= getattr(less, term)


@given(shards=st.sampled_from([2, 4, 8, 64]))
@settings(max_examples=4, deadline=None)
def test_zero_conserves_states_over_the_gpus(llama: Architecture, shards: int) -> None:
    """What ZeRO divides adds up over the ranks to what one rank held."""
    recipe = training(precision="bf16_mixed", framework="deepspeed")
    whole = estimate(llama, recipe)
    for stage, terms in (
        (1, ("optimizer_states",)),
        (2, ("optimizer_states", "gradients")),
        (3, ("optimizer_states", "gradients", "weights")),
    ):
        part = estimate(llama, recipe, zero_stage=stage, data_parallel_size=shards)
        for term in terms:
            assert (getattr(part, term) * shards).m_as("B / GPU") == pytest.approx(getattr(whole, term).m_as("B / GPU"))


@pytest.mark.parametrize("tensor", [2, 4, 8])
def test_tensor_parallelism_conserves_states(llama: Architecture, tensor: int) -> None:
    """t ranks together hold what one held."""
    recipe = training(precision="bf16_mixed", framework="megatron")
    whole, part = estimate(llama, recipe), estimate(llama, recipe, tensor_parallel_size=tensor)
    for term in ("weights", "gradients", "optimizer_states"):
        assert (getattr(part, term) * tensor).m_as("B / GPU") == pytest.approx(getattr(whole, term).m_as("B / GPU"))


def test_zero_2_never_lowers_what_the_weights_take(llama: Architecture) -> None:
    """Sharding gradients leaves the weights whole, however many GPUs there are."""
    recipe = training(precision="bf16_mixed", framework="deepspeed")
    alone = estimate(llama, recipe).weights
    for shards in (2, 64, 1024):
        assert estimate(llama, recipe, zero_stage=2, data_parallel_size=shards).weights == alone


def test_experts_are_divided_once(llama: Architecture) -> None:
    """e ranks hold the experts of a mixture once; dense parts stay whole on each."""
    model = find_architecture("Mixtral 8x7B")
    recipe = training(precision="bf16_mixed", framework="megatron")
    whole = estimate(model, recipe, data_parallel_size=8).weights
    split = estimate(model, recipe, data_parallel_size=8, expert_parallel_size=8).weights
    experts = sum(m.parameters.m_as("parameter") for m in model.matrices if m.block == "expert") * 2
    assert (whole - split).m_as("B / GPU") == pytest.approx(experts * 7 / 8)
    sharded = {"data_parallel_size": 8, "zero_stage": 1}
    states = estimate(model, recipe, **sharded).optimizer_states.m_as("B / GPU")
    with_experts = estimate(model, recipe, expert_parallel_size=8, **sharded).optimizer_states.m_as("B / GPU")
    assert with_experts == pytest.approx(states)


def test_experts_are_spread_no_further_than_the_ranks() -> None:
    """Eight GPUs as t = 4, p = 2 hold a mixture's experts once, whatever expert parallelism is asked for."""
    model = find_architecture("Qwen3 30B-A3B")
    recipe = training(precision="bf16_mixed", framework="megatron")
    layout = {"tensor_parallel_size": 4, "pipeline_parallel_size": 2}
    plain = estimate(model, recipe, **layout).weights
    assert estimate(model, recipe, expert_parallel_size=4, **layout).weights == plain


def test_recomputation_and_fused_loss_never_add(llama: Architecture) -> None:
    """Each saver lowers its own term and leaves the others."""
    for recipe in RECIPES:
        kept = [estimate(llama, recipe, activation_recomputation=word).activations for word in ("none", "selective", "full")]
        assert kept[0] >= kept[1] >= kept[2]
        fused = estimate(llama, replace(recipe, fused_loss=True))
        assert fused.logits < estimate(llama, recipe).logits


FRAMEWORKS = ["transformers", "deepspeed", "fsdp", "megatron", "torchtitan", "torchtune"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_scalar_equals_array_over_every_layout_field(llama: Architecture, framework: str) -> None:
    """One formula: an array call gives, element by element, what scalar calls give."""
    rng = np.random.default_rng(7)
    size = 40
    columns = {
        "sequence_length": rng.choice([512, 4096], size),
        "micro_batch_size": rng.choice([1, 4], size),
        "gradient_accumulation_steps": rng.choice([1, 2, 16], size),
        "zero_stage": rng.choice([0, 1, 2, 3], size),
        "data_parallel_size": rng.choice([1, 2, 8], size),
        "tensor_parallel_size": rng.choice([1, 2, 8], size),
        "pipeline_parallel_size": rng.choice([1, 2, 4], size),
        "context_parallel_size": rng.choice([1, 2], size),
        "expert_parallel_size": rng.choice([1, 2], size),
        "sequence_parallel": rng.choice([True, False], size),
        "virtual_pipeline": rng.choice([1, 2], size),
        "activation_recomputation": rng.choice(["none", "selective", "full"], size),
        "offload": rng.choice(["none", "optimizer", "optimizer_and_parameters"], size),
        "gpus_per_node": rng.choice([4, 8], size),
    }
    recipe = training(precision="bf16_mixed", framework=framework, attention="eager")
    array = estimate_memory(MemoryInputs(architecture=llama, training=recipe, layout=Layout(**columns), capacity=CARD_80))
    for row in range(size):
        single = estimate(llama, recipe, CARD_80, **{name: values[row].item() for name, values in columns.items()})
        for field in fields(single):
            value, many = getattr(single, field.name), getattr(array, field.name)
            if isinstance(value, Quantity) and field.name != "capacity":
                assert np.broadcast_to(many.m_as(value.units), size)[row] == pytest.approx(value.magnitude, rel=1e-12), (
                    field.name
                )
        assert (array.peak_phase[row], array.verdict[row]) == (single.peak_phase, single.verdict)


def test_a_scalar_beside_arrays_broadcasts(llama: Architecture) -> None:
    """A zero stage given once serves every candidate."""
    layout = Layout(zero_stage=3, data_parallel_size=np.array([1, 2, 4, 8]))
    recipe = training(precision="bf16_mixed", framework="deepspeed")
    result = estimate_memory(MemoryInputs(architecture=llama, training=recipe, layout=layout))
    assert np.all(np.diff(result.weights.m_as("GB / GPU")) < 0)
