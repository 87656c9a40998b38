"""Recipes and models that the memory tests share."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.architecture import Architecture, architecture_from_config
from advisor.memory import MemoryEstimate, MemoryInputs, estimate_memory
from advisor.training import Layout, LoRA, Quantization, Training
from advisor.units import Q, Quantity, unit

LLAMA_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
DTYPES = {
    "bf16_pure": {"weights": "bf16", "gradients": "bf16", "master": "none", "moments": "bf16"},
    "bf16_mixed": {"weights": "bf16", "gradients": "bf16", "master": "fp32", "moments": "fp32"},
    "fp32_autocast": {"weights": "fp32", "gradients": "fp32", "master": "none", "moments": "fp32"},
    "fp32": {"weights": "fp32", "gradients": "fp32", "master": "none", "moments": "fp32"},
}


def training(method: str = "full", precision: str = "bf16_pure", **given: Any) -> Training:
    """A recipe with the dtypes its precision implies; adapters in `dtype` (bf16), on all linears with rank 16."""
    fields = dict(DTYPES[precision])
    if method != "full":
        dtype = given.pop("dtype", "bf16")
        lora = {name: given.pop(name) for name in ("rank", "targets", "dropout") if name in given}
        given["lora"] = LoRA(dtype=dtype, **lora)
        fields |= {"weights": "bf16", "gradients": dtype, "master": "none", "moments": dtype}
    if method == "qlora":
        given["quantization"] = Quantization(upcast_unquantized=given.pop("upcast", True))
    return Training(method=method, precision=precision, **{**fields, **given})


def estimate(
    architecture: Architecture, recipe: Training | None = None, capacity: Quantity | None = None, **layout: Any
) -> MemoryEstimate:
    """An estimate with the layout's other fields at their defaults."""
    recipe = recipe or training()
    return estimate_memory(MemoryInputs(architecture=architecture, training=recipe, layout=Layout(**layout), capacity=capacity))


def gib(value: Quantity) -> float:
    """A per-GPU quantity in GiB."""
    return float(value.m_as("GiB / GPU"))


@pytest.fixture(scope="session")
def llama() -> Architecture:
    """Llama-3.1-8B: 8 030 261 248 parameters, untied."""
    return architecture_from_config(LLAMA_8B, "Llama-3.1-8B")


@pytest.fixture(scope="session")
def seven() -> Architecture:
    """Exactly 7e9 parameters would be 14.0 GB in bf16; the typical dense 7B is within 0.1 % of that."""
    from advisor.architecture import find_architecture

    return find_architecture("7B")


CARD_80 = Q(80.0, unit("GiB / GPU"))
