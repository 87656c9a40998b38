"""The ladder: ordered, honest about each rung, and never at its end without an answer."""

from __future__ import annotations

from itertools import pairwise

import pytest

from advisor.architecture import Architecture, find_architecture
from advisor.memory import MemoryInputs, escalate, estimate_memory
from advisor.training import Layout
from advisor.units import Q, unit

from .conftest import training


def _ladder(model: Architecture, card: float, recipe=None, **layout):
    recipe = recipe or training(precision="bf16_mixed", framework="deepspeed")
    return escalate(
        MemoryInputs(architecture=model, training=recipe, layout=Layout(**layout), capacity=Q(card, unit("GiB / GPU")))
    )


def test_nothing_to_do_where_it_fits(llama: Architecture) -> None:
    """A run that fits has an empty ladder."""
    assert _ladder(llama, 80, training("lora")) == ()


@pytest.mark.parametrize(("card", "cards"), [(80, 1), (24, 1), (24, 8), (8, 1), (2, 1)])
def test_each_rung_lowers_the_last_until_one_fits(llama: Architecture, card: float, cards: int) -> None:
    """No rung is in vain, none comes twice, and the ladder ends with what fits."""
    rungs = _ladder(llama, card, micro_batch_size=4, data_parallel_size=cards)
    assert len({rung.change for rung in rungs}) == len(rungs)
    highs = [rung.high.m_as("GiB / GPU") for rung in rungs if rung.change not in ("larger_card", "more_cards")]
    assert all(later < earlier for earlier, later in pairwise(highs))
    assert all(rung.verdict != "fits" for rung in rungs[:-2])
    assert rungs[-1].verdict == "fits"
    for rung in rungs:
        assert set(rung.text) == set(rung.quality) == {"en", "zh"}
        assert rung.text["en"]
        assert rung.text["zh"]


def test_the_cheapest_change_comes_first(llama: Architecture) -> None:
    """LoRA just above a card: recomputation is enough. Full training on eight cards: sharding before offload or adapters."""
    assert [rung.change for rung in _ladder(llama, 27, training("lora"))] == ["recomputation"]
    changes = [rung.change for rung in _ladder(llama, 40, micro_batch_size=1, data_parallel_size=8)]
    assert changes[-1] == "zero_3"
    assert "offload_optimizer" not in changes


def test_states_are_not_moved_to_a_host_that_does_not_exist() -> None:
    """A 405B's optimizer states are 5 TB: offload is no rung, adapters are."""
    changes = [rung.change for rung in _ladder(find_architecture("Llama 3.1 405B"), 80)]
    assert "offload_optimizer" not in changes
    assert "lora" in changes


def test_an_offload_rung_says_what_the_host_needs(llama: Architecture) -> None:
    """States moved off the card are not gone: 16 B of optimizer part a parameter and more in host memory."""
    rung = next(rung for rung in _ladder(llama, 24) if rung.change == "offload_optimizer")
    assert rung.host_ram.m_as("GB / node") > 4 * 8.03
    assert "host memory" in rung.text["en"]


def test_each_rung_says_what_estimating_it_would(llama: Architecture) -> None:
    """A rung's total is the estimate of its own recipe and layout."""
    for rung in _ladder(llama, 24, micro_batch_size=4, data_parallel_size=8):
        again = estimate_memory(
            MemoryInputs(architecture=llama, training=rung.training, layout=rung.layout, capacity=rung.capacity)
        )
        assert again.total == rung.total
        assert again.verdict == rung.verdict


def test_never_impossible_for_the_largest_model_on_the_smallest_card() -> None:
    """A 405B on one 24 GB card climbs every rung and ends with more cards that fit."""
    rungs = _ladder(find_architecture("Llama 3.1 405B"), 24)
    assert rungs[-1].change == "more_cards"
    assert rungs[-1].verdict == "fits"
    assert rungs[-1].layout.gpus > 8


def test_micro_batch_keeps_the_global_batch(llama: Architecture) -> None:
    """Micro-batch 1 with four times the accumulation."""
    rung = next(rung for rung in _ladder(llama, 24, micro_batch_size=4) if rung.change == "micro_batch")
    assert (rung.layout.micro_batch_size, rung.layout.gradient_accumulation_steps) == (1, 4)


def test_needs_a_card(llama: Architecture) -> None:
    """Without a capacity nothing has to fit."""
    with pytest.raises(ValueError, match=r"MemoryInputs\.capacity must be given"):
        escalate(MemoryInputs(architecture=llama, training=training(), layout=Layout()))
