"""What is trained, what a token costs, and what the whole training costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.architecture import architecture_from_config, find_architecture
from advisor.trail import evaluate
from advisor.training import LoRA, Quantization, Training
from advisor.units import Q, UnitError
from advisor.workload import (
    WorkloadError,
    WorkloadInputs,
    adapted_matrices,
    adapter_parameters,
    attention_flop_per_token,
    estimate_workload,
    hardware_flop_per_token,
    model_flop_per_token,
    trainable_parameters,
)

DTYPES = {"precision": "bf16_mixed", "weights": "bf16", "gradients": "bf16", "master": "fp32", "moments": "fp32"}
FULL = Training(method="full", **DTYPES)
LORA = Training(method="lora", lora=LoRA(rank=16), **DTYPES)
DORA = Training(method="dora", lora=LoRA(rank=16), **DTYPES)
QLORA = Training(method="qlora", lora=LoRA(rank=16), quantization=Quantization(), **DTYPES)
LLAMA = find_architecture("Llama 3.1 8B")
MIXTRAL = find_architecture("Mixtral 8x7B")


def flop(quantity):
    return quantity.m_as("FLOP / token")


def inputs(architecture=LLAMA, training=FULL, **changes):
    values = {"architecture": architecture, "training": training, "tokens": Q(5e8, "token"), **changes}
    return WorkloadInputs(**values)


def test_seven_billion_on_half_a_billion_tokens():
    # The rule of thumb 6 N D: 6 x 7e9 x 5e8 = 2.1e19. Ours adds attention and leaves out the embedding look-up.
    estimate = estimate_workload(inputs(find_architecture("7B")))
    rule = next(step for step in estimate.trail if step.name == "training_flop_rule_of_thumb")
    assert rule.value.m_as("FLOP") == pytest.approx(2.1e19, rel=0.001)
    assert estimate.training_flop.m_as("FLOP") == pytest.approx(2.1e19, rel=0.07)


def test_lora_of_llama_3_1_8b_by_hand():
    # r (in + out) over q 4096+4096, k and v 4096+1024, o 4096+4096, gate and up 4096+14336, down 14336+4096: 81920 a layer,
    # 32 layers, r = 16: 41,943,040 (PEFT prints this number).
    assert trainable_parameters(LLAMA, LORA).m == 41_943_040
    assert trainable_parameters(LLAMA, QLORA).m == 41_943_040


def test_dora_adds_one_vector_of_outputs_per_target():
    # q 4096, k and v 1024, o 4096, gate and up 14336, down 4096: 43008 outputs a layer, 32 layers.
    assert (trainable_parameters(LLAMA, DORA) - trainable_parameters(LLAMA, LORA)).m == 43_008 * 32


def test_fused_experts_have_twice_the_rank_on_gate_and_up():
    # PEFT 0.21 on Mixtral 8x7B, r = 8: attention 26624, router 4104, and per expert 2 (4096+28672) + (14336+4096) features,
    # x 8 x 32 layers = 179,832,832.
    assert adapter_parameters(MIXTRAL, LoRA(rank=8)).m == 8 * 32 * (26_624 + 4_104 + 8 * (2 * 32_768 + 18_432))
    assert adapter_parameters(MIXTRAL, LoRA(rank=8)).m == 179_832_832


def test_old_expert_names_reach_the_fused_experts():
    names = {matrix.name for matrix in adapted_matrices(MIXTRAL, ("w1", "w2", "w3"))}
    assert names == {"gate_up_proj", "down_proj"}


def test_gpt_oss_experts_and_router_are_left_alone():
    assert {m.name for m in adapted_matrices(find_architecture("gpt-oss-20b"), "all_linear")} == {
        "q_proj", "k_proj", "v_proj", "o_proj"
    }  # fmt: skip


def test_attention_is_twelve_layers_hidden_sequence():
    # 12 L h s with every key counted (h = heads x head_dim); half with a causal mask.
    expected = 12 * 32 * 4096 * 8192
    assert 3 * flop(attention_flop_per_token(LLAMA, 8192, causal=False)) == expected
    assert 3 * flop(attention_flop_per_token(LLAMA, 8192, causal=True)) == expected / 2


def test_model_flop_is_six_p_plus_attention():
    # Llama-3.1-8B: 8030261248 less the embedding 525336576 and the norms 266240 are 7504658432 parameters in matmuls.
    assert LLAMA.parameters_matmul.m == 7_504_658_432
    assert flop(model_flop_per_token(LLAMA, FULL, 8192)) == 6 * 7_504_658_432 + 12 * 32 * 4096 * 8192


def test_megatron_formula_of_gpt_3():
    # Korthikanti et al. 2022, appendix A: model 72 B L s h^2 (1 + s/6h + V/12hL); with full recomputation
    # 96 B L s h^2 (1 + s/6h + V/16hL). Biases are the difference: under 0.02 %.
    gpt3 = find_architecture("GPT-3 175B")
    layers, hidden, vocab, s = 96, 12288, 50257, 2048
    base = layers * hidden**2
    model = 72 * base * (1 + s / (6 * hidden) + vocab / (12 * hidden * layers))
    hardware = 96 * base * (1 + s / (6 * hidden) + vocab / (16 * hidden * layers))
    assert flop(model_flop_per_token(gpt3, FULL, s)) == pytest.approx(model, rel=2e-4)
    assert flop(hardware_flop_per_token(gpt3, FULL, s, "full", causal=False)) == pytest.approx(hardware, rel=2e-4)


def test_rules_of_thumb_by_method_and_recomputation():
    # 6 P full, 8 P with full recomputation, 4 P and 6 P with frozen weights; at a short sequence attention is nothing.
    parameters = LLAMA.parameters_matmul.m
    for training, recomputation, expected in ((FULL, "none", 6), (FULL, "full", 8), (LORA, "none", 4), (LORA, "full", 6)):
        found = flop(hardware_flop_per_token(LLAMA, training, 64, recomputation)) / parameters
        assert found == pytest.approx(expected, rel=0.03), (training.method, recomputation)


def test_selective_recomputation_repeats_attention_only():
    more = flop(hardware_flop_per_token(LLAMA, FULL, 4096, "selective")) - flop(hardware_flop_per_token(LLAMA, FULL, 4096))
    assert more == flop(attention_flop_per_token(LLAMA, 4096, causal=True))


def test_eager_attention_does_not_skip_masked_keys():
    eager = Training(method="full", attention="eager", **DTYPES)
    assert flop(hardware_flop_per_token(LLAMA, eager, 4096)) == flop(model_flop_per_token(LLAMA, eager, 4096))


def test_windows_bound_the_keys_of_their_layers():
    gemma = find_architecture("Gemma 2 9B")
    short, long = (flop(attention_flop_per_token(gemma, s, causal=False)) for s in (4096, 131_072))
    # 21 full layers grow 32 times, 21 window layers of 4096 not at all.
    assert long / short == pytest.approx((32 + 1) / 2)
    # Causal in a window: w (1 - w / 2 s) keys on average.
    causal = flop(attention_flop_per_token(gemma, 8192, causal=True))
    assert causal == pytest.approx(4 * 4096 * 21 * (4096 + 4096 * (1 - 4096 / 16384)))


def test_mixers_do_not_grow_with_the_sequence():
    hybrid = find_architecture("Qwen3-Next 80B-A3B")
    dense = find_architecture("Qwen3 30B-A3B")
    growth = [flop(attention_flop_per_token(m, 65_536, False)) / flop(attention_flop_per_token(m, 1024, False))
              for m in (hybrid, dense)]  # fmt: skip
    assert growth[0] < growth[1] == 64


def test_only_chosen_experts_cost_flop():
    assert flop(model_flop_per_token(MIXTRAL, FULL, 64)) / 6 == pytest.approx(MIXTRAL.parameters_active.m, rel=0.015)


def test_scalar_equals_array():
    s = np.array([512, 2048, 8192])
    recomputation = np.array(["none", "full", "selective"])
    together = hardware_flop_per_token(LLAMA, LORA, s, recomputation)
    apart = [flop(hardware_flop_per_token(LLAMA, LORA, int(a), str(b))) for a, b in zip(s, recomputation, strict=True)]
    assert flop(together).tolist() == pytest.approx(apart)
    estimate = estimate_workload(inputs(sequence_length=s, activation_recomputation=recomputation))
    assert estimate.flop_per_token.shape == (3,)


def test_one_length_and_many_recomputations_broadcast():
    found = hardware_flop_per_token(LLAMA, FULL, 2048, np.array(["none", "full"]))
    assert flop(found)[0] == flop(hardware_flop_per_token(LLAMA, FULL, 2048, "none"))


@pytest.mark.parametrize("training", [FULL, LORA, DORA, QLORA])
@pytest.mark.parametrize("architecture", [LLAMA, MIXTRAL])
def test_the_trail_recomputes_to_the_estimate(architecture, training):
    estimate = estimate_workload(inputs(architecture, training, activation_recomputation="full", epochs=3))
    values = {step.name: step.value for step in estimate.trail}
    for step in estimate.trail:
        assert evaluate(step) == step.value
    for name in ("parameters_total", "parameters_trainable", "parameters_active", "flop_per_token", "hardware_flop_per_token",
                 "training_flop"):  # fmt: skip
        assert getattr(estimate, name) == values[name]
    assert estimate.parameters_trainable == trainable_parameters(architecture, training)
    assert estimate.flop_per_token == model_flop_per_token(architecture, training, 2048)


def test_epochs_multiply():
    once, thrice = (estimate_workload(inputs(epochs=n)).training_flop for n in (1, 3))
    assert thrice == 3 * once


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 512), st.sampled_from(["all_linear", "attention_qv", "attention"]))
def test_lora_is_linear_in_its_rank(rank, targets):
    one = adapter_parameters(MIXTRAL, LoRA(rank=1, targets=targets))
    assert adapter_parameters(MIXTRAL, LoRA(rank=rank, targets=targets)) == rank * one


@pytest.mark.parametrize("architecture", [LLAMA, MIXTRAL, find_architecture("DeepSeek-V3"), find_architecture("GPT-2 124M")])
def test_more_targets_never_train_less(architecture):
    qv, attention, everything = (
        adapter_parameters(architecture, LoRA(targets=targets)) for targets in ("attention_qv", "attention", "all_linear")
    )
    assert qv <= attention <= everything < architecture.parameters_total


def test_named_modules_equal_the_shorthand():
    names = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    assert adapter_parameters(LLAMA, LoRA(targets=names)) == adapter_parameters(LLAMA, LoRA(targets="all_linear"))
    assert adapter_parameters(LLAMA, LoRA(targets=("q_proj", "v_proj"))) == adapter_parameters(
        LLAMA, LoRA(targets="attention_qv")
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_longer_sequences_never_cost_less_per_token(one, other):
    short, long = sorted((one, other))
    for causal in (False, True):
        assert flop(model_flop_per_token(LLAMA, FULL, short, causal)) <= flop(model_flop_per_token(LLAMA, FULL, long, causal))


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (("q_prj",), r"no module 'q_prj' for LoRA; near it are q_proj"),
        ("atention", r"no module 'atention' for LoRA; near it are attention"),
        ((), "at least one module"),
        ((3,), "one is 3"),
    ],
)
def test_unknown_targets_are_refused_with_the_nearest(targets, words):
    with pytest.raises(WorkloadError, match=words):
        adapted_matrices(LLAMA, targets)


def test_a_model_without_attention_has_no_query_and_value():
    mamba = architecture_from_config({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24})
    with pytest.raises(WorkloadError, match="no projections that LoRA targets 'attention_qv'"):
        adapted_matrices(mamba, "attention_qv")


def test_a_rank_of_zero_is_refused():
    with pytest.raises(WorkloadError, match="rank must be at least 1, but was given 0"):
        adapter_parameters(LLAMA, LoRA(rank=0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epochs": 0}, "epochs must be a number above 0"),
        ({"epochs": True}, "epochs must be a number above 0"),
        ({"sequence_length": 0}, "sequence_length must be at least 1"),
        ({"activation_recomputation": "some"}, "none, selective, full, but was given 'some'"),
        ({"tokens": Q(5, "GB")}, r"WorkloadInputs.tokens needs \[token\]"),
    ],
)
def test_impossible_inputs_are_refused(change, words):
    with pytest.raises((WorkloadError, UnitError), match=words):
        inputs(**change)
