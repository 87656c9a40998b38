"""The defaults of a practitioner, and the answers to "why not fewer?" and "why not that card?"."""

from __future__ import annotations

import pytest

from advisor.catalog import gpu
from advisor.cluster import choose, why_not_card, why_not_fewer
from advisor.units import Q


@pytest.mark.parametrize(
    ("model", "method", "framework", "tokens", "least", "most"),
    [
        ("llama-3.1-8b", "lora", "transformers", 2e8, 1, 1),
        ("llama-3.1-8b", "qlora", "transformers", 2e8, 1, 1),
        ("tinyllama-1.1b", "full", "deepspeed", 1e9, 1, 4),
        ("llama-2-7b", "full", "deepspeed", 2e9, 8, 8),
        ("llama-2-13b", "full", "deepspeed", 2e9, 8, 8),
        ("llama-3-70b", "full", "deepspeed", 2e9, 16, 64),
        ("llama-3-70b", "full", "megatron", 2e9, 16, 64),
        ("gpt-3 175b", "full", "megatron", 2e9, 32, 256),
    ],
)
def test_how_many_cards_a_practitioner_would_start_with(job, model, method, framework, tokens, least, most):
    choice = choose(job(model, method, tokens, framework))
    assert least <= choice.gpus <= most
    assert choice.verdict == "fits"
    assert choice.low < choice.training_time < choice.high
    for text in choice.reasons:
        assert text["en"].endswith(".")
        assert text["zh"].endswith("。")
    if choice.gpus >= 8:
        assert not gpu(choice.gpu).scale_up.startswith("PCIe")
        assert choice.layout.tensor_parallel_size <= 8
    if choice.nodes > 1:
        assert choice.scale_out


def test_a_small_model_starts_on_a_small_card(job):
    choice = choose(job("tinyllama-1.1b", "full", 1e9, "transformers"))
    assert choice.gpus == 1
    assert gpu(choice.gpu).memory <= Q(32, "GB")


def test_full_training_of_7b_shards_its_states(job):
    assert choose(job()).layout.zero_stage >= 1


def test_a_given_card_and_count_are_kept(job):
    choice = choose(job(gpus=("a100 80gb",), counts=(8,), tokens=5e8))
    assert (choice.gpu, choice.gpus, choice.nodes) == ("A100 SXM4 80GB", 8, 1)
    assert 3 < choice.training_time.m_as("h") < 10


def test_a_deadline_asks_for_more_cards(job):
    relaxed, pressed = choose(job(tokens=1e10)), choose(job(tokens=1e10, deadline=Q(6, "h")))
    assert pressed.training_time <= Q(6, "h")
    assert pressed.gpus > relaxed.gpus


def test_offload_is_the_last_resort_on_one_card(job):
    choice = choose(job(gpus=("rtx 4090",), counts=(1,), tokens=1e8))
    assert choice.layout.offload != "none"
    assert any("offload" in text["en"] for text in choice.reasons)


def test_what_fits_nowhere_is_said_not_to_fit(job):
    choice = choose(job("deepseek-v3", gpus=("T4",), counts=(1,)))
    assert choice.verdict == "does_not_fit"
    assert "Nothing tried fits" in choice.reasons[0]["en"]


def test_why_not_fewer_names_memory_or_time(job):
    memory = why_not_fewer(job("llama-3-70b"), "H100 SXM5 80GB", 16, 8)
    assert "do not hold it" in memory["en"] or "tight" in memory["en"]
    time = why_not_fewer(job(), "H100 SXM5 80GB", 16, 8)
    assert "would take" in time["en"]
    assert "需要" in time["zh"]


def test_why_not_that_card(job):
    inputs = job()
    choice = choose(job(gpus=("h100",), counts=(8,)))
    assert "slower" in why_not_card(inputs, choice, "A100 SXM4 80GB")["en"]
    assert "do not hold it" in why_not_card(inputs, choice, "T4")["en"] or "bf16" in why_not_card(inputs, choice, "T4")["en"]
    assert "bf16" in why_not_card(inputs, choice, "V100 SXM2 32GB")["en"]


def test_slow_sharding_gives_way_to_a_tight_layout_that_is_quick(job):
    """A LoRA of 7B on 16 cards of 24 GB behind 25G Ethernet: ZeRO-3 would wait for four fifths of each step."""
    choice = choose(job("qwen2.5-7b", "lora", 2e8, "transformers", gpus=("GeForce RTX 4090",), counts=(16,)))
    assert choice.layout.zero_stage < 3
    assert choice.communication_share.m_as("") < 0.3


def test_clusters_are_not_made_of_consumer_cards(job):
    assert gpu(choose(job("qwen2.5-7b", "lora", 2e8, "transformers", counts=(16,))).gpu).segment != "consumer"
