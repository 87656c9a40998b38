"""What a step sends and waits for, against hand counts, published rules and known answers."""

from __future__ import annotations

import numpy as np
import pytest

from advisor import catalog
from advisor.architecture import find_architecture
from advisor.network import CommunicationInputs, estimate_communication, exposed_communication, fabrics_of
from advisor.network.communication import DIMENSIONS, placed
from advisor.trail import evaluate
from advisor.training import Layout, LoRA
from advisor.units import Q
from tests.network.conftest import full_training

P = 6_738_415_616  # parameters of Llama-2-7B


def test_data_parallel_volumes_by_hand(job):
    # Rajbhandari et al. 2020, section 7: all-reduce moves 2 (n-1)/n of the gradients, ZeRO-1 and 2 as much, ZeRO-3 half more.
    eight = {"gpus_per_node": 8, "data_parallel_size": 8}
    plain, sharded, full = (
        estimate_communication(job("H100 SXM5 80GB", None, zero_stage=stage, **eight)).data_volume.m_as("B")
        for stage in (0, 1, 3)
    )
    assert plain == pytest.approx(2 * 7 / 8 * P * 2)
    assert sharded == pytest.approx(plain)
    assert full == pytest.approx(1.5 * plain)


def test_zero_2_scatters_and_zero_3_gathers_every_micro_batch(job):
    four = {"gpus_per_node": 8, "data_parallel_size": 8, "gradient_accumulation_steps": 4}
    unit = 7 / 8 * P * 2  # one reduce-scatter or all-gather of all weights
    volume = {
        s: estimate_communication(job("H100 SXM5 80GB", None, zero_stage=s, **four)).data_volume.m_as("B") for s in (1, 2, 3)
    }
    assert volume[1] == pytest.approx(2 * unit)
    assert volume[2] == pytest.approx((4 + 1) * unit)
    assert volume[3] == pytest.approx(3 * 4 * unit)


def test_gradients_travel_in_the_dtype_they_are_kept_in(job):
    inputs = job("H100 SXM5 80GB", None, training=full_training(gradients="fp32"), data_parallel_size=8)
    assert estimate_communication(inputs).data_volume.m_as("B") == pytest.approx(2 * 7 / 8 * P * 4)


@pytest.mark.parametrize(("recomputation", "collectives"), [("none", 4), ("selective", 4), ("full", 6)])
def test_tensor_parallel_volume_by_hand(job, recomputation, collectives):
    # Shoeybi et al. 2019, section 3: two all-reduces forward and two backward a layer, of 2 s b h bytes; two more when the
    # forward is done again.
    inputs = job(
        "H100 SXM5 80GB", None, tensor_parallel_size=8, sequence_length=4096, micro_batch_size=2, gradient_accumulation_steps=3,
        activation_recomputation=recomputation,
    )  # fmt: skip
    expected = 3 * 32 * collectives * 2 * 7 / 8 * (2 * 4096 * 2 * 4096)
    assert estimate_communication(inputs).tensor_volume.m_as("B") == pytest.approx(expected)


def test_sequence_parallel_moves_the_same_bytes(job):
    both = [
        estimate_communication(job("A100 SXM4 80GB", None, tensor_parallel_size=4, sequence_parallel=flag))
        for flag in (False, True)
    ]
    assert both[0].tensor_volume == both[1].tensor_volume
    # An all-gather and a reduce-scatter start one more collective than an all-reduce, and need no other bytes.
    assert both[0].tensor_time <= both[1].tensor_time <= 1.3 * both[0].tensor_time


def test_pipeline_context_and_expert_volumes_by_hand(job):
    p = job("H100 SXM5 80GB", None, pipeline_parallel_size=4, sequence_length=2048, gradient_accumulation_steps=8)
    assert estimate_communication(p).pipeline_volume.m_as("B") == pytest.approx(8 * 2 * 2048 * 4096 * 2)
    # Ring attention, c = 4: each rank passes its quarter of keys and values three times forward, and twice as much backward.
    c = job("H100 SXM5 80GB", None, context_parallel_size=4, sequence_length=8192)
    assert estimate_communication(c).context_volume.m_as("B") == pytest.approx(32 * 3 * 3 * (2 * 2048 * 4096 * 2))
    # Mixtral 8x7B: 32 MoE layers, top 2 of 8, 4 all-to-alls of s b k h elements of which 7/8 leave the GPU.
    mixtral = find_architecture("mixtral-8x7b")
    e = job("H100 SXM5 80GB", None, architecture=mixtral, data_parallel_size=8, expert_parallel_size=8, sequence_length=4096)
    assert estimate_communication(e).expert_volume.m_as("B") == pytest.approx(32 * 4 * 7 / 8 * (4096 * 2 * 4096 * 2))


def test_lora_reduces_only_its_adapters_but_zero_3_still_gathers_the_frozen_weights(job):
    lora = full_training(method="lora", lora=LoRA(rank=16, dtype="bf16"), master="none", framework="transformers")
    plain = estimate_communication(job("H100 SXM5 80GB", None, training=lora, data_parallel_size=8))
    full = estimate_communication(job("H100 SXM5 80GB", None, training=lora, data_parallel_size=8, zero_stage=3))
    # r = 16 on all linears of Llama-2-7B trains 39 976 960 parameters: 0.6 % of the model.
    assert plain.data_volume.m_as("B") == pytest.approx(2 * 7 / 8 * 39_976_960 * 2)
    assert full.data_volume.m_as("B") == pytest.approx(7 / 8 * (2 * P * 2 + 3 * 39_976_960 * 2))


def test_one_card_sends_nothing(job):
    estimate = estimate_communication(job("GeForce RTX 4090", None))
    assert estimate.total_time.m_as("s") == 0
    assert all(getattr(estimate, f"{name}_volume").m_as("B") == 0 for name in DIMENSIONS)


def test_placement_tensor_innermost():
    # 8 GPUs a node, tensor 4: two data-parallel ranks of each ring share a node; tensor 8: one; tensor 1: eight.
    assert [placed(stride, 16, 8) for stride in (4, 8, 1)] == [2, 1, 8]
    assert placed(16, 4, 8) == 1


def test_sixteen_cards_on_25_gigabit_ethernet_against_eight_on_nvlink(job):
    # Full fine-tuning of 7B, one micro-batch of 2048 tokens a card: 13.5 GB of gradients scattered and as many weights
    # gathered through 2.5 GB/s a node, against 232 GB/s a card: over ten seconds a step against less than 0.2.
    slow = estimate_communication(job("GeForce RTX 4090", "Ethernet 25G TCP", data_parallel_size=16, zero_stage=2))
    fast = estimate_communication(job("A100 SXM4 80GB", None, data_parallel_size=8, zero_stage=2))
    assert 9 < slow.data_time.m_as("s") < 15
    assert 0.1 < fast.data_time.m_as("s") < 0.25
    # 6 P s FLOP: about 0.9 s on the 4090 (100 TFLOP/s) and 0.45 s on the A100 (190): twice the cards, and yet slower a step,
    # so fewer tokens a second altogether.
    ethernet = Q(0.9, "s") + exposed_communication(slow, Q(0.9, "s"))
    nvlink = Q(0.45, "s") + exposed_communication(fast, Q(0.45, "s"))
    assert 16 / ethernet < 8 / nvlink
    assert ethernet > 10 * nvlink


@pytest.mark.parametrize("accumulation", [4, 8, 16])
def test_zero_3_across_slow_links_is_two_to_twenty_times_slower_than_zero_1(job, accumulation):
    # Reports of ZeRO-3 over 10 to 100 GbE: 2 to 20 times slower than ZeRO-1 or 2 with accumulation.
    compute = Q(0.45 * accumulation, "s")
    step = {}
    for stage in (1, 3):
        inputs = job(
            "A100 SXM4 80GB", "Ethernet 25G TCP", data_parallel_size=16, zero_stage=stage,
            gradient_accumulation_steps=accumulation,
        )  # fmt: skip
        step[stage] = compute + exposed_communication(estimate_communication(inputs), compute)
    assert 2 < (step[3] / step[1]).m_as("") < 20


def test_a_small_model_on_two_nodes_of_two_a10(job):
    # DeepSpeed issue 5770: Qwen2-1.5B, ZeRO-3, 2 x A10: 2.46 s a step on one node, 8.68 on two; the 6.2 s more are 9.3 GB at
    # about 1.5 GB/s, so a 10 to 25 GbE class link.
    qwen = find_architecture("qwen2-1.5b")
    shape = {"architecture": qwen, "zero_stage": 3, "gpus_per_node": 2}
    near = estimate_communication(job("A10", None, data_parallel_size=2, **shape))
    far = {
        speed: estimate_communication(job("A10", f"Ethernet {speed}G TCP", data_parallel_size=4, **shape)).data_time.m_as("s")
        - near.data_time.m_as("s")
        for speed in (10, 25, 100)
    }
    assert far[10] > 6.2 > far[25] > far[100]


def test_tensor_parallel_across_nodes_is_discouraged_by_its_number(job):
    # 7B, 4096 tokens at 400 TFLOP/s a card: 52 ms of compute over 8 cards, 26 over 16. Inside a node a third of the step waits
    # for the all-reduces; over two nodes with 8 x 400G more than half does, and over plain Ethernet nearly all.
    def waiting(link, ranks):
        compute = Q(6 * P * 4096 / 4e14 / ranks, "s")
        exposed = exposed_communication(
            estimate_communication(job("H100 SXM5 80GB", link, tensor_parallel_size=ranks, sequence_length=4096)), compute
        )
        return (exposed / (compute + exposed)).m_as("")

    assert 0.2 < waiting("InfiniBand NDR 4x", 8) < 0.4
    assert 0.5 < waiting("InfiniBand NDR 4x", 16) < 0.7
    assert waiting("Ethernet 100G TCP", 16) > 0.95


def test_scaling_loss_of_fsdp_on_a_good_fabric(job):
    # pytorch/torchtitan, Llama-3.1-8B with FSDP2 on H100, 400G a GPU: 2.3 % less a GPU on 128 than on 8.
    llama = find_architecture("llama-3.1-8b")
    recipe = full_training(framework="torchtitan", software="tuned")
    compute = Q(2.4, "s")  # 2 x 8192 tokens at 6667 tokens a second
    loss = {}
    for gpus in (8, 128):
        inputs = job(
            "H100 SXM5 80GB", "InfiniBand NDR 4x", architecture=llama, training=recipe, data_parallel_size=gpus, zero_stage=3,
            sequence_length=8192, micro_batch_size=2,
        )  # fmt: skip
        loss[gpus] = exposed_communication(estimate_communication(inputs), compute) / compute
    assert 0 < (loss[128] - loss[8]).m_as("") < 0.10


def test_arrays_equal_scalars(llama_7b, job):
    gpus = ["H100 SXM5 80GB", "GeForce RTX 4090", "A100 PCIe 80GB"]
    index = np.array([0, 1, 2, 0, 1])
    fields = {
        "tensor_parallel_size": np.array([8, 2, 1, 4, 1]),
        "pipeline_parallel_size": np.array([1, 2, 1, 4, 1]),
        "context_parallel_size": np.array([1, 1, 2, 2, 1]),
        "data_parallel_size": np.array([4, 2, 8, 2, 1]),
        "zero_stage": np.array([1, 0, 3, 2, 0]),
        "gradient_accumulation_steps": np.array([1, 8, 2, 4, 1]),
        "sequence_parallel": np.array([True, False, False, True, False]),
        "activation_recomputation": np.array(["none", "full", "none", "full", "none"]),
    }
    fabric = fabrics_of([catalog.gpu(name) for name in gpus], "RoCEv2 400G", 8, index=index)
    together = estimate_communication(
        CommunicationInputs(architecture=llama_7b, training=full_training(), layout=Layout(**fields), fabric=fabric)
    )
    compute = Q(1.0, "s")
    waiting = exposed_communication(together, compute)
    for row in range(5):
        one = {name: value[row].item() for name, value in fields.items()}
        alone = estimate_communication(job(gpus[index[row]], "RoCEv2 400G", **one))
        for name in DIMENSIONS:
            for part in ("time", "overlappable", "volume"):
                array, scalar = getattr(together, f"{name}_{part}"), getattr(alone, f"{name}_{part}")
                value = array[row] if np.ndim(array.magnitude) else array
                assert value.to_base_units().magnitude == pytest.approx(scalar.to_base_units().magnitude), (row, name, part)
        assert waiting[row].m_as("s") == pytest.approx(exposed_communication(alone, compute).m_as("s"))


def test_what_overlaps_hides_and_no_more(job):
    estimate = estimate_communication(job("H100 SXM5 80GB", None, data_parallel_size=8, zero_stage=2))
    nothing, plenty = exposed_communication(estimate, Q(0, "s")), exposed_communication(estimate, Q(100, "s"))
    assert nothing == estimate.total_time
    assert plenty == estimate.data_time - estimate.data_overlappable


def test_every_step_of_the_trail_computes_its_value(job):
    estimate = estimate_communication(job("H100 SXM5 80GB", "RoCEv2 400G", data_parallel_size=4, tensor_parallel_size=8))
    assert {step.name for step in estimate.trail} >= {"data_volume", "tensor_volume", "data_time", "tensor_time"}
    for step in estimate.trail:
        assert evaluate(step) == step.value
