"""Which layouts are legal: counted by hand on small cases, and every rule held by every candidate."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.architecture.lookup import find_architecture
from advisor.cluster import legal_layouts
from advisor.cluster.candidates import illegal
from advisor.training import Layout


def test_one_card_has_no_parallelism(job):
    layouts = legal_layouts(job(counts=(1,), micro_batch_sizes=(1, 2), recomputations=("none", "full")))
    assert len(layouts) == 4
    assert set(layouts.zero) == {0}
    assert set(layouts.accumulation * layouts.micro_batch) == {128}


def test_eight_cards_counted_by_hand(job):
    """Stock software: data parallel only, ZeRO 0 to 3, one micro-batch size, one recomputation: four layouts."""
    layouts = legal_layouts(job(counts=(8,), micro_batch_sizes=(1,), recomputations=("none",)))
    assert len(layouts) == 4
    assert sorted(layouts.zero) == [0, 1, 2, 3]
    assert set(layouts.data) == {8}


def test_megatron_layouts_obey_every_rule(job):
    layouts = legal_layouts(job("qwen3-30b-a3b", framework="megatron", counts=(8, 16, 64), global_batch_size=256))
    architecture = find_architecture("qwen3-30b-a3b")
    sizes = layouts.data * layouts.tensor * layouts.pipeline * layouts.context
    assert (sizes == layouts.count).all()
    assert (layouts.data * layouts.micro_batch * layouts.accumulation == 256).all()
    assert (layouts.tensor <= 8).all()
    assert (architecture.num_attention_heads % layouts.tensor == 0).all()
    assert (layouts.accumulation >= layouts.pipeline).all()
    assert ((layouts.zero < 2) | (layouts.pipeline == 1)).all()
    assert ((layouts.data * layouts.context) % layouts.expert == 0).all()
    interleaved = layouts.chunks > 1
    assert interleaved.any()
    assert (layouts.accumulation[interleaved] % layouts.pipeline[interleaved] == 0).all()
    divides = (48 % (layouts.pipeline * layouts.chunks) == 0) | (50 % (layouts.pipeline * layouts.chunks) == 0)
    assert divides.all()
    assert (np.diff(layouts.count) >= 0).all()


def test_offload_follows_deepspeed(job):
    layouts = legal_layouts(job(counts=(1, 8), offloads=("none", "optimizer", "optimizer_and_parameters")))
    assert (layouts.zero[layouts.offload == 1] >= 1).all()
    assert (layouts.zero[layouts.offload == 2] == 3).all()
    assert (layouts.tensor[layouts.offload > 0] == 1).all()
    assert ((layouts.offload == 1) & (layouts.count == 1)).any()


def test_a_batch_that_does_not_divide_leaves_nothing(job):
    assert len(legal_layouts(job(counts=(8,), global_batch_size=12))) == 0


def test_context_parallelism_is_for_long_sequences(job):
    short = legal_layouts(job(framework="megatron", counts=(8,)))
    long = legal_layouts(job(framework="megatron", counts=(8,), sequence_length=131072))
    assert set(short.context) == {1}
    assert max(long.context) > 1
    assert (131072 // long.context >= 2048).all()


def test_one_row_is_the_layout_of_the_arrays(job):
    layouts = legal_layouts(job(framework="megatron", counts=(16,)))
    together = layouts.layout()
    for row in (0, len(layouts) // 2, len(layouts) - 1):
        one = layouts.one(row)
        for name in one.__dataclass_fields__:
            assert np.broadcast_to(getattr(together, name), len(layouts))[row] == getattr(one, name), name


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"tensor_parallel_size": 3}, "32 attention heads"),
        ({"pipeline_parallel_size": 64}, "has 32"),
        ({"tensor_parallel_size": 16}, "inside a node"),
        ({"context_parallel_size": 3}, "does not divide"),
        ({"expert_parallel_size": 2}, "experts"),
    ],
)
def test_an_illegal_layout_is_refused_in_one_sentence(layout, words):
    text = illegal(find_architecture("llama-2-7b"), Layout(**layout))
    assert words in text
    assert text.endswith(".")
    assert illegal(find_architecture("llama-2-7b"), Layout(tensor_parallel_size=8)) is None


def test_a_pipeline_may_end_in_a_shorter_stage(job):
    """DeepSeek-V3 has 61 layers and was trained on 16 stages (its report, 3.1): fifteen of four layers and one of one."""
    inputs = job("deepseek-v3", "full", 2e9, "megatron", counts=(256,), global_batch_size=4096)
    stages = set(legal_layouts(inputs).pipeline.tolist())
    assert 16 in stages and 32 not in stages


def test_experts_may_be_folded_over_tensor_ranks_where_that_is_asked():
    architecture = find_architecture("qwen3-30b-a3b")
    assert illegal(architecture, Layout(tensor_parallel_size=2, data_parallel_size=4, expert_parallel_size=8)) is None
    assert "16 does not divide" in illegal(architecture, Layout(data_parallel_size=8, expert_parallel_size=16))
