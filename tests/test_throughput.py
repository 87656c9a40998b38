"""Time of a step: hand-checked terms, published speeds, edges, properties, refused units, and accuracy on runs kept aside."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.architecture.lookup import find_architecture
from advisor.catalog import constant, gpu, sources, table
from advisor.network import fabric_of
from advisor.throughput import (
    Accelerator,
    ThroughputInputs,
    accelerator_of,
    accelerators_of,
    estimate_throughput,
    precision_cost,
)
from advisor.trail import evaluate
from advisor.training import Layout, LoRA, Quantization, Training
from advisor.units import Q, Quantity, UnitError

DTYPES = {
    "bf16_mixed": ("bf16", "fp32", "fp32", "fp32"),
    "fp16_mixed": ("fp16", "fp16", "fp32", "fp32"),
    "fp8_mixed": ("bf16", "fp32", "fp32", "fp32"),
    "fp32": ("fp32", "fp32", "none", "fp32"),
}


def training(method="full", precision="bf16_mixed", framework="deepspeed", software="stock", **more) -> Training:
    weights, gradients, master, moments = DTYPES[precision]
    return Training(
        method=method,
        lora=None if method == "full" else LoRA(),
        quantization=Quantization() if method == "qlora" else None,
        precision=precision,
        weights=weights,
        gradients=gradients,
        master=master,
        moments=moments,
        framework=framework,
        software=software,
        **more,
    )


def inputs(model="llama-2-7b", card="A100 SXM4 80GB", job=None, scale_out=None, **layout) -> ThroughputInputs:
    job = job or training()
    card = gpu(card)
    return ThroughputInputs(
        architecture=find_architecture(model),
        training=job,
        layout=Layout(**layout),
        accelerator=accelerator_of(card, job),
        fabric=fabric_of(card, scale_out, int(np.max(layout.get("gpus_per_node", 8)))),
    )


MEGATRON = training(framework="megatron", software="tuned", attention="flash")


def test_matmul_flop_of_one_step_by_hand():
    """Llama-2-7B: 32 layers of 4 x 4096^2 + 3 x 4096 x 11008 weights and a head of 4096 x 32000, 6 FLOP each and token."""
    layer = 4 * 4096**2 + 3 * 4096 * 11008
    estimate = estimate_throughput(inputs(sequence_length=2048, micro_batch_size=2))
    steps = {step.name: step.value for step in estimate.trail}
    assert steps["layer_flop"].m_as("FLOP / GPU") == pytest.approx(6 * 32 * layer * 4096)
    assert steps["head_flop"].m_as("FLOP / GPU") == pytest.approx(6 * 4096 * 32000 * 4096)
    # Causal attention: 4 s h FLOP a token and layer, half of them, forward once and 2.5 times backward.
    assert steps["attention_flop_per_token"].m_as("FLOP / token") == pytest.approx(0.5 * 32 * 4 * 2048 * 4096)
    rate = (gpu("A100 SXM4 80GB").measured_bf16 * constant("throughput.matmul_sustained_eager")).m_as("FLOP / s / GPU")
    assert estimate.matmul.m_as("s") >= 6 * (32 * layer + 4096 * 32000) * 4096 / rate


def test_parts_add_up_to_the_step():
    estimate = estimate_throughput(
        inputs("llama-3-70b", "h100", MEGATRON, "InfiniBand NDR", data_parallel_size=4, tensor_parallel_size=8,
               pipeline_parallel_size=4, gradient_accumulation_steps=8, zero_stage=1, sequence_parallel=True)
    )  # fmt: skip
    assert sum(part.m_as("s") for part in estimate.parts.values()) == pytest.approx(estimate.step_time.m_as("s"))


def test_pipeline_bubble_is_p_minus_one_over_m_v():
    """Narayanan et al. 2021, section 2.2.2: the bubble is (p - 1) / (m v) of the compute time."""
    for chunks in (1, 2):
        estimate = estimate_throughput(
            inputs("llama-2-7b", "h100", MEGATRON, "InfiniBand NDR", pipeline_parallel_size=4, gradient_accumulation_steps=16,
                   virtual_pipeline=chunks)
        )  # fmt: skip
        assert (estimate.bubble / estimate.compute_time).m_as("") == pytest.approx(3 / (16 * chunks))


def test_gpt3_175b_on_1024_a100_takes_about_34_days():
    """Narayanan et al. 2021, section 5.1: 1024 A100 at 140 TFLOP/s each train 300 billion tokens in about 34 days."""
    job = training(precision="fp16_mixed", framework="megatron", software="tuned", attention="eager")
    estimate = estimate_throughput(
        inputs("gpt-3 175b", "a100 80gb", job, "InfiniBand HDR", sequence_length=2048, data_parallel_size=16,
               tensor_parallel_size=8, pipeline_parallel_size=8, gradient_accumulation_steps=96,
               activation_recomputation="full")
    )  # fmt: skip
    days = (Q(300e9, "token") / estimate.tokens_per_second).m_as("day")
    assert 29 <= days <= 40
    achieved = (estimate.hfu * gpu("a100 80gb").bf16).m_as("TFLOP / s / GPU")
    assert achieved == pytest.approx(140, rel=0.15)
    assert estimate.low < estimate.step_time < estimate.high


@pytest.mark.parametrize(("data", "published"), [(64, 0.43), (128, 0.41)])
def test_llama_3_405b_reaches_its_published_mfu(data, published):
    """Llama 3 paper (arXiv 2407.21783), table 4: 43 % on 8192 and 41 % on 16 384 H100, 16 million tokens a step."""
    job = training(framework="megatron", software="tuned", attention="flash")
    estimate = estimate_throughput(
        inputs("llama-3.1-405b", "h100", job, "RoCEv2 400G", sequence_length=8192, micro_batch_size=1, data_parallel_size=data,
               tensor_parallel_size=8, pipeline_parallel_size=16, gradient_accumulation_steps=2048 // data, zero_stage=1,
               sequence_parallel=True, virtual_pipeline=8)
    )  # fmt: skip
    assert estimate.mfu.m_as("") == pytest.approx(published, abs=0.06)


def test_7b_on_half_a_billion_tokens_takes_a_working_day_on_8_a100():
    estimate = estimate_throughput(
        inputs(sequence_length=2048, micro_batch_size=4, gradient_accumulation_steps=4, data_parallel_size=8, zero_stage=2,
               activation_recomputation="full")
    )  # fmt: skip
    assert 5 <= (Q(5e8, "token") / estimate.tokens_per_second).m_as("h") <= 10


def test_few_tokens_are_launch_bound():
    """Qwen's own table: full training of the 1.8B model at 256 tokens a micro-batch reaches 3.5 % MFU on an A100."""
    short = estimate_throughput(
        inputs(
            "Qwen1.5 1.8B", sequence_length=256, gradient_accumulation_steps=8, zero_stage=3, activation_recomputation="full"
        )
    )
    long = estimate_throughput(
        inputs(
            "Qwen1.5 1.8B", sequence_length=8192, gradient_accumulation_steps=8, zero_stage=3, activation_recomputation="full"
        )
    )
    assert short.bound == "launch"
    assert short.mfu.m_as("") == pytest.approx(0.035, abs=0.015)
    assert long.launch.m_as("s") == 0
    assert long.bound == "matmul"


def test_tensor_parallelism_across_nodes_is_slower():
    layout = {"sequence_length": 4096, "micro_batch_size": 1, "gradient_accumulation_steps": 16, "sequence_parallel": True}
    inside = inputs(
        "llama-3-70b", "h100", MEGATRON, "InfiniBand NDR", tensor_parallel_size=8, pipeline_parallel_size=2, **layout
    )
    fast = estimate_throughput(inside).step_time
    for fabric, slower in (("InfiniBand NDR", 1.2), ("Ethernet 100G TCP", 5)):
        across = inputs("llama-3-70b", "h100", MEGATRON, fabric, tensor_parallel_size=16, **layout)
        assert (estimate_throughput(across).step_time / fast).m_as("") > slower


def test_adapters_skip_a_third_of_the_work_and_4_bit_costs_dequantization():
    layout = {"sequence_length": 2048, "micro_batch_size": 4, "gradient_accumulation_steps": 4}
    rate = {
        method: estimate_throughput(inputs("llama-3.1-8b", "a100 80gb", training(method), **layout))
        for method in ("full", "lora", "qlora")
    }
    faster = (rate["lora"].tokens_per_second / rate["full"].tokens_per_second).m_as("")
    assert 1.2 < faster < 1.6
    assert 0.6 < (rate["qlora"].tokens_per_second / rate["lora"].tokens_per_second).m_as("") < 1


def test_recomputation_adds_a_forward_pass_to_hfu_and_not_to_mfu():
    layout = {"sequence_length": 2048, "micro_batch_size": 4}
    plain = estimate_throughput(inputs(**layout))
    again = estimate_throughput(inputs(**layout, activation_recomputation="full"))
    assert (again.step_time / plain.step_time).m_as("") == pytest.approx(4 / 3, rel=0.1)
    assert (again.hfu / again.mfu).m_as("") > (plain.hfu / plain.mfu).m_as("") * 1.25


def test_a_card_without_bf16_runs_bf16_in_fp32_and_says_so():
    layout = {"sequence_length": 2048, "micro_batch_size": 2}
    v100 = "V100 SXM2 32GB"
    slow = estimate_throughput(inputs(card=v100, **layout))
    half = estimate_throughput(inputs(card=v100, job=training(precision="fp16_mixed"), **layout))
    assert (slow.step_time / half.step_time).m_as("") > 4
    text = precision_cost(gpu(v100), training())
    assert "fp16" in text["en"]
    assert "fp16" in text["zh"]
    assert precision_cost(gpu(v100), training(precision="fp16_mixed")) is None
    assert precision_cost(gpu("h100"), training()) is None
    assert "FP8" in precision_cost(gpu("a100"), training(precision="fp8_mixed"))["en"]


def test_fp8_is_faster_and_its_mfu_is_still_counted_against_16_bit():
    layout = {"sequence_length": 8192, "micro_batch_size": 2}
    bf16 = estimate_throughput(inputs("llama-3-8b", "h100", MEGATRON, **layout))
    job = training(precision="fp8_mixed", framework="megatron", software="tuned", attention="flash")
    fp8 = estimate_throughput(inputs("llama-3-8b", "h100", job, **layout))
    gain = (bf16.step_time / fp8.step_time).m_as("")
    assert 1.2 < gain < 1.9
    assert fp8.mfu.m_as("") == pytest.approx(gain * bf16.mfu.m_as(""))


@pytest.mark.parametrize(("attention", "least", "most"), [("sdpa", 1.3, 2.0), ("eager", 2.0, 3.5)])
def test_stock_software_is_slower_than_tuned(attention, least, most):
    layout = {"sequence_length": 4096, "micro_batch_size": 1, "gradient_accumulation_steps": 4}
    stock = estimate_throughput(inputs("llama-3-8b", "h100", training(attention=attention), **layout))
    tuned = estimate_throughput(inputs("llama-3-8b", "h100", MEGATRON, **layout))
    assert least < (stock.step_time / tuned.step_time).m_as("") < most


def test_offload_costs_pcie_and_cpu_time():
    layout = {"sequence_length": 2048, "micro_batch_size": 1, "zero_stage": 2}
    kept = estimate_throughput(inputs(**layout))
    moved = estimate_throughput(inputs(**layout, offload="optimizer"))
    # 4 bytes a parameter over PCIe 4.0 x16 at 80 % of 31.5 GB/s.
    assert moved.offload.m_as("s") == pytest.approx(4 * 6.738e9 / (0.8 * 31.52e9), rel=0.01)
    assert moved.optimizer > 5 * kept.optimizer


def test_arrays_give_what_scalars_give():
    data, tensor = np.array([1, 2, 4, 8]), np.array([8, 4, 2, 1])
    recomputation = np.array(["none", "full", "selective", "full"])
    offload = np.array(["none", "none", "optimizer", "optimizer_and_parameters"])
    zero = np.array([0, 1, 2, 3])
    fixed = {"sequence_length": 4096, "gradient_accumulation_steps": 4}
    names = ("data_parallel_size", "tensor_parallel_size", "activation_recomputation", "offload", "zero_stage")
    columns = (data, tensor, recomputation, offload, zero)
    together = estimate_throughput(inputs("llama-3-8b", "h100", MEGATRON, **dict(zip(names, columns, strict=True)), **fixed))
    for row in range(4):
        one = {name: column[row].item() for name, column in zip(names, columns, strict=True)}
        alone = estimate_throughput(inputs("llama-3-8b", "h100", MEGATRON, **one, **fixed))
        for name, part in alone.parts.items():
            several = np.broadcast_to(together.parts[name].m_as("s"), 4)
            assert several[row] == pytest.approx(part.m_as("s"), rel=1e-9, abs=1e-12), name
        assert together.bound[row] == alone.bound


def test_arrays_of_cards_give_what_each_card_gives():
    job, cards = training(), [gpu("a100"), gpu("h100"), gpu("rtx 4090")]
    together = accelerators_of(cards, np.array([2, 0, 1]), job)
    for place, card in ((0, cards[2]), (1, cards[0]), (2, cards[1])):
        assert together.matmul_rate[place] == accelerator_of(card, job).matmul_rate
        assert together.pcie_bandwidth[place] == accelerator_of(card, job).pcie_bandwidth


@settings(deadline=None, max_examples=25)
@given(
    micro_batch=st.integers(1, 16),
    accumulation=st.integers(1, 16),
    gain=st.floats(1.0, 4.0),
)
def test_faster_hardware_is_never_slower(micro_batch, accumulation, gain):
    slow = inputs(sequence_length=1024, micro_batch_size=micro_batch, gradient_accumulation_steps=accumulation)
    a = slow.accelerator
    fast = replace(slow, accelerator=replace(a, matmul_rate=a.matmul_rate * gain, memory_bandwidth=a.memory_bandwidth * gain))
    assert estimate_throughput(fast).step_time <= estimate_throughput(slow).step_time


@pytest.mark.parametrize("model", ["llama-2-7b", "qwen3-30b-a3b", "gpt-oss-120b", "deepseek-v3"])
def test_every_step_of_the_explanation_can_be_computed_again(model):
    estimate = estimate_throughput(
        inputs(model, "h100", MEGATRON, "InfiniBand NDR", sequence_length=4096, data_parallel_size=8, tensor_parallel_size=2,
               zero_stage=1, sequence_parallel=True)
    )  # fmt: skip
    known = set(sources())
    for step in estimate.trail:
        again = evaluate(step)
        if isinstance(again, Quantity):
            assert again.m_as(step.value.units) == pytest.approx(step.value.magnitude)
        else:
            assert again == pytest.approx(step.value)
        assert step.source == "" or step.source in known, step


def test_experts_are_less_efficient_than_dense_layers():
    """Published mixture-of-experts runs reach about half of the MFU of dense ones on the same cards."""
    layout = {"sequence_length": 4096, "micro_batch_size": 1, "data_parallel_size": 8, "zero_stage": 1}
    dense = estimate_throughput(inputs("llama-3-8b", "h100", MEGATRON, **layout))
    experts = estimate_throughput(inputs("qwen3-30b-a3b", "h100", MEGATRON, **layout, expert_parallel_size=8))
    assert 0.3 < (experts.mfu / dense.mfu).m_as("") < 0.8


def test_muon_pays_for_its_iterations():
    adam = estimate_throughput(inputs(sequence_length=2048))
    muon = estimate_throughput(inputs(job=training(optimizer="muon"), sequence_length=2048))
    assert muon.optimizer > adam.optimizer


def test_a_rate_of_the_wrong_kind_is_refused_with_its_name():
    rates = accelerator_of(gpu("a100"), training())
    with pytest.raises(UnitError, match=r"Accelerator\.matmul_rate needs .*TFLOP / s / GPU.*but was given"):
        replace(rates, matmul_rate=Q(312, "TFLOP / s"))
    with pytest.raises(UnitError, match=r"Accelerator\.memory_bandwidth must be at least 0"):
        Accelerator(
            **{name: getattr(rates, name) for name in rates.__dataclass_fields__}
            | {"memory_bandwidth": -rates.memory_bandwidth}
        )


def test_every_constant_has_a_unit_a_source_and_a_reason():
    known = set(sources())
    for row in table("constants/throughput.csv"):
        assert row["explanation"], row["key"]
        assert row["source"] in known, row["key"]
        constant(row["key"])


def test_published_runs_say_how_they_are_used():
    rows = table("throughput.csv")
    assert len(rows) == 749
    fit = {row["source"] for row in rows if row["use"] == "fit"}
    validate = {row["source"] for row in rows if row["use"] == "validate"}
    assert not fit & validate
    assert all(row["notes"] for row in rows if row["use"] == "none")


@pytest.fixture(scope="module")
def accuracy():
    from advisor.accuracy import throughput

    return throughput


def test_accuracy_on_sources_kept_aside(accuracy):
    """Median over sources of the median absolute error of tokens/s/GPU, and how often the 80 % interval holds."""
    validation = accuracy.headline("validate")
    assert validation["sources"] >= 8
    assert validation["median_error"] <= 0.15
    assert 0.75 <= validation["within_interval"] <= 0.90
    left_out = accuracy.left_out_coverage()
    assert 0.75 <= sum(left_out.values()) / len(left_out) <= 0.90


def test_intervals_are_the_residuals_of_published_runs(accuracy):
    written = {row["kind"]: row for row in table("throughput_residuals.csv")}
    for line in accuracy.residuals():
        row = written[line["kind"]]
        assert float(row["low"]) == pytest.approx(line["low"], abs=0.03)
        assert float(row["high"]) == pytest.approx(line["high"], abs=0.03)
        assert (int(row["runs"]), int(row["sources"])) == (line["runs"], line["sources"])


def test_scaling_loss_is_within_ten_points(accuracy):
    """Same model, card, sequence and micro-batch on more GPUs: estimated against published efficiency of scaling."""
    published = {row["id"]: row for row in table("throughput.csv")}
    names = ("source", "model", "gpu", "precision", "sequence_length", "micro_batch_size", "software", "tensor_parallel_size")
    groups: dict[tuple, list] = {}
    for run in accuracy.rows():
        row = published[run.id]
        groups.setdefault((*(row[name] for name in names), row["activation_recomputation"], row["zero_stage"]), []).append(run)
    misses = []
    for group in groups.values():
        small, large = min(group, key=lambda run: run.gpus), max(group, key=lambda run: run.gpus)
        if small.gpus >= 8 and large.gpus >= 8 * small.gpus:
            measured = (large.published / small.published).m_as("")
            estimated = (large.estimated / small.estimated).m_as("")
            misses.append(abs(measured - estimated))
    assert len(misses) >= 3
    assert max(misses) <= 0.10, misses


def test_residual_table_is_plain_csv():
    from advisor.catalog import data_folder

    with (data_folder() / "throughput_residuals.csv").open(encoding="utf-8", newline="") as lines:
        assert next(csv.reader(lines)) == ["kind", "low", "high", "runs", "sources", "note"]
