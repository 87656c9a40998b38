"""How long the memory stage takes: one estimate, and a hundred thousand in one call."""

from __future__ import annotations

import numpy as np

from advisor.architecture import find_architecture
from advisor.memory import MemoryInputs, estimate_memory
from advisor.training import Layout, Training
from advisor.units import Q, unit

RECIPE = Training(
    method="full",
    precision="bf16_mixed",
    weights="bf16",
    gradients="bf16",
    master="fp32",
    moments="fp32",
    framework="deepspeed",
)
CARD = Q(80.0, unit("GiB / GPU"))


def test_one_estimate(benchmark):
    """A warm scalar estimate, trail included, in a few milliseconds of one core."""
    inputs = MemoryInputs(architecture=find_architecture("Llama 3.1 8B"), training=RECIPE, layout=Layout(), capacity=CARD)
    benchmark(estimate_memory, inputs)
    assert benchmark.stats.stats.min < 0.005


def test_a_hundred_thousand_layouts_in_one_call(benchmark):
    """Every layout field an array: about as many operations as one estimate, on longer arrays."""
    rng, size = np.random.default_rng(1), 100_000
    layout = Layout(
        micro_batch_size=rng.integers(1, 9, size),
        zero_stage=rng.integers(0, 4, size),
        data_parallel_size=rng.choice([1, 2, 8, 64], size),
        tensor_parallel_size=rng.choice([1, 2, 4, 8], size),
        pipeline_parallel_size=rng.choice([1, 2, 4], size),
        activation_recomputation=rng.choice(["none", "selective", "full"], size),
        offload=rng.choice(["none", "optimizer"], size),
    )
    inputs = MemoryInputs(architecture=find_architecture("Llama 3.1 8B"), training=RECIPE, layout=layout, capacity=CARD)
    result = benchmark.pedantic(estimate_memory, (inputs,), rounds=3)
    assert result.total.shape == (size,)
    assert benchmark.stats.stats.min < 1.5
