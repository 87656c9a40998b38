"""Serving: weights and key-value cache by hand, and the layers that keep less."""

from __future__ import annotations

import pytest

from advisor.architecture import Architecture, find_architecture
from advisor.memory import estimate_inference
from advisor.units import Q, unit

from .conftest import estimate, training


def test_llama_8b_by_hand(llama: Architecture) -> None:
    """2 x 8 heads x 128 x 2 B x 32 layers = 131 072 B a token: 8 sequences of 8192 tokens take 8 GiB."""
    result = estimate_inference(llama, batch_size=8, context_length=8192)
    assert result.key_value_per_token.m_as("B") == 131_072
    assert result.key_value_cache.m_as("GiB / GPU") == pytest.approx(8.0)
    assert result.weights.m_as("B / GPU") == pytest.approx(2 * 8_030_261_248)


def test_it_runs_does_not_mean_it_trains(llama: Architecture) -> None:
    """An 8B serves from a 24 GB card and trains on none of that size."""
    card = Q(24.0, unit("GiB / GPU"))
    assert estimate_inference(llama, capacity=card).verdict == "fits"
    assert estimate(llama, training(precision="bf16_mixed"), card).verdict == "does_not_fit"


def test_latent_attention_keeps_one_vector() -> None:
    """DeepSeek-V3 caches 512 + 64 values a token and layer: 576 x 2 B x 61 = 70 272 B, a twentieth of full heads."""
    assert estimate_inference(find_architecture("DeepSeek-V3")).key_value_per_token.m_as("B") == 576 * 2 * 61


def test_a_sliding_window_stops_growing() -> None:
    """Gemma 2's sliding layers keep 4096 tokens: doubling a long context adds only what the full layers see."""
    model = find_architecture("Gemma 2 9B")
    short = estimate_inference(model, context_length=4096).key_value_cache
    double = estimate_inference(model, context_length=8192).key_value_cache
    assert double < 1.6 * short


def test_sequences_that_fit_fill_the_card(llama: Architecture) -> None:
    """One more sequence than said would not fit."""
    card = Q(80.0, unit("GiB / GPU"))
    many = estimate_inference(llama, context_length=32768, capacity=card).sequences_that_fit
    assert estimate_inference(llama, context_length=32768, batch_size=many, capacity=card).verdict == "fits"
    assert estimate_inference(llama, context_length=32768, batch_size=many + 1, capacity=card).verdict == "does_not_fit"


def test_four_bits_take_a_quarter_of_the_linears(llama: Architecture) -> None:
    """Embedding and head stay 16-bit: 2.1 GB, and 6.98e9 linear parameters at half a byte and their scales."""
    weights = estimate_inference(llama, weights="int4").weights
    assert weights.m_as("GB / GPU") == pytest.approx(2.1 + 6.98 * (0.5 + 2 / 64), rel=0.01)


def test_recurrent_layers_keep_a_state_that_does_not_grow() -> None:
    """Qwen3-Next: 36 of 48 layers keep a state of 524 288 fp32 numbers; only the other 12 grow with the context."""
    model = find_architecture("Qwen3-Next 80B-A3B")
    result = estimate_inference(model, context_length=1000)
    growing = 12 * 2 * model.key_value_size * 2
    assert result.key_value_per_token.m_as("B") == growing
    assert result.key_value_cache.m_as("B / GPU") == pytest.approx(1000 * growing + 36 * 524_288 * 4)
