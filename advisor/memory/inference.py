"""Serving beside training: why "it runs" does not mean "it trains"."""

from __future__ import annotations

import math

from advisor import catalog
from advisor.architecture import Architecture
from advisor.memory.parts import WIDTH
from advisor.memory.records import InferenceEstimate, InferenceInputs
from advisor.trail import Trail
from advisor.units import Q, Quantity, unit


def estimate_inference(
    architecture: Architecture,
    weights: str = "bf16",
    batch_size: int = 1,
    context_length: int = 4096,
    key_value: str = "bf16",
    tensor_parallel_size: int = 1,
    capacity: Quantity | None = None,
) -> InferenceEstimate:
    """Weights, key-value cache and working space of one GPU; see `InferenceInputs` for the arguments.

    Grouped queries shrink the cache, MLA keeps one latent vector a token, sliding-window layers keep no more than their
    window, and recurrent mixers a state that does not grow with the context.
    """
    inputs = InferenceInputs(
        architecture=architecture,
        weights=weights,
        key_value=key_value,
        batch_size=batch_size,
        context_length=context_length,
        tensor_parallel_size=tensor_parallel_size,
        capacity=capacity,
    )
    trail = Trail()
    per_gpu = Q(1, unit("1 / GPU"))
    weight_bytes = trail.step(
        "weights",
        "(linear * width + rest * rest_width) / tensor_parallel_size * per_gpu",
        "",
        linear=_linear(architecture),
        rest=architecture.parameters_total - _linear(architecture),
        width=Q(_stored_width(weights), unit("B / parameter")),
        rest_width=Q(max(WIDTH[weights], 2), unit("B / parameter")),
        tensor_parallel_size=tensor_parallel_size,
        per_gpu=per_gpu,
    )
    growing, sliding = cache_per_token(architecture, key_value)
    window = min(context_length, architecture.sliding_window or context_length)
    # Grouped key-value heads cannot be split over more ranks than there are heads; a latent cache is held by every rank.
    split = 1 if architecture.kv_lora_rank else min(tensor_parallel_size, architecture.num_key_value_heads)
    per_sequence = growing * context_length + sliding * window + _mixer_state(architecture)
    cache = trail.step(
        "key_value_cache",
        "batch_size * per_sequence / split * per_gpu",
        "",
        batch_size=batch_size,
        per_sequence=per_sequence,
        split=split,
        per_gpu=per_gpu,
    )
    token_width = 4 * architecture.vocab_size + 8 * architecture.hidden_size  # bytes per sequence being decoded
    working = trail.step(
        "working_set",
        "batch_size * per_token * per_gpu",
        "",
        batch_size=batch_size,
        per_token=Q(token_width, "B"),
        per_gpu=per_gpu,
    )
    runtime = trail.step("runtime", "context", "physics-runtime", context=catalog.constant("memory.context"))
    total = trail.step(
        "total", "weights + cache + working + runtime", "", weights=weight_bytes, cache=cache, working=working, runtime=runtime
    )
    fit = None
    if capacity is not None:
        room = (capacity - total + cache).m_as("B / GPU")
        fit = max(math.floor(room / (per_sequence / split).m_as("B")), 0) if per_sequence.m_as("B") else None
    return InferenceEstimate(
        weights=weight_bytes,
        key_value_cache=cache,
        key_value_per_token=growing + sliding,
        working_set=working,
        runtime=runtime,
        total=total,
        capacity=inputs.capacity,
        sequences_that_fit=fit,
        verdict="unknown" if capacity is None else "fits" if total <= capacity else "does_not_fit",
        trail=trail.done(),
    )


def _linear(architecture: Architecture) -> Quantity:
    """Parameters that a weight quantizer reaches: linears and experts, not embeddings, head and norms."""
    blocks = ("embedding", "head", "router")
    return sum((m.parameters for m in architecture.matrices if m.block not in blocks), Q(0, unit("parameter")))


def _stored_width(dtype: str) -> float:
    """Bytes per parameter with a 16-bit scale for each 64 values of a 4-bit format, 128 of an 8-bit one."""
    width = WIDTH[dtype]
    return width + (2 / 64 if width == 0.5 else 2 / 128 if dtype == "int8" else 0)


def cache_per_token(architecture: Architecture, key_value: str = "bf16") -> tuple[Quantity, Quantity]:
    """Bytes per token that the key-value cache grows by: (layers that see everything, sliding-window layers)."""
    if architecture.kv_lora_rank:
        each = architecture.kv_lora_rank + (architecture.qk_rope_head_dim or 0)
    else:
        each = 2 * architecture.key_value_size
    one = Q(each * WIDTH[key_value], unit("B"))
    return one * architecture.full_attention_layers, one * architecture.sliding_window_layers


def _mixer_state(architecture: Architecture) -> Quantity:
    """State of the recurrent layers of one sequence, kept in fp32: it does not grow with the context."""
    return Q(4.0 * architecture.mixer_layers * architecture.mixer_state_size, unit("B"))
