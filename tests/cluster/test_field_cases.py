"""Questions practitioners asked in public, with what happened: read from ../shared/field when it is there."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.architecture.lookup import find_architecture
from advisor.catalog import gpu
from advisor.cluster import search_cluster
from advisor.network import fabric_of
from advisor.throughput import ThroughputInputs, accelerator_of, estimate_throughput
from advisor.training import Layout
from advisor.units import Q

CASES = Path(__file__).parents[3] / "shared" / "field" / "cases.csv"
pytestmark = pytest.mark.skipif(not CASES.is_file(), reason="no field cases beside this checkout")
EVERY_OFFLOAD = ("none", "optimizer", "optimizer_and_parameters")


@pytest.fixture(scope="module")
def cases() -> dict[str, dict[str, str]]:
    with CASES.open(encoding="utf-8", newline="") as lines:
        return {row["id"]: row for row in csv.DictReader(lines)}


def fits(job, case: dict[str, str], count: int, **more) -> bool:
    sequence = int(case["seq"] or 2048)
    framework = more.pop("framework", "deepspeed")
    inputs = job(
        case["model"], framework=framework, sequence_length=sequence, gpus=("A800 SXM4 80GB",), counts=(count,), **more
    )
    return len(search_cluster(inputs)) > 0


def test_13b_needs_four_cards_of_80_gb(job, cases):
    case = cases["c079"]
    assert not fits(job, case, int(case["gpus"]), accept_tight=True)
    assert fits(job, case, int(case["outcome_value"]), accept_tight=True)


def test_72b_does_not_fit_one_box_without_offload(job, cases):
    case = dict(cases["c083"], model="qwen2-72b")
    assert not fits(job, case, int(case["gpus"]), accept_tight=True)
    assert fits(job, case, 32)
    assert fits(job, case, int(case["gpus"]), offloads=EVERY_OFFLOAD)


def test_70b_runs_on_one_box_with_offload_only(job, cases):
    case = cases["c085"]
    assert not fits(job, case, int(case["gpus"]), accept_tight=True)
    assert fits(job, case, int(case["gpus"]), offloads=EVERY_OFFLOAD)


def test_32b_does_not_fit_seven_cards_and_twelve_do(job, cases):
    case = cases["c087"]
    assert not fits(job, case, int(case["gpus"]), accept_tight=True)
    assert fits(job, case, 12, accept_tight=True)


def test_70b_adapters_do_not_fit_sixteen_small_cards(job, cases):
    case = cases["c081"]
    inputs = job(case["model"], "lora", framework="fsdp", gpus=("A10",), counts=(int(case["gpus"]),), accept_tight=True)
    training = replace(inputs.training, precision="fp32_autocast", weights="fp32", gradients="fp32", master="none")
    assert len(search_cluster(replace(inputs, training=training))) == 0


def test_full_training_of_671b_needs_more_than_the_forum_guessed(job, cases):
    guess = int(cases["c090"]["outcome_value"].split("-")[1])
    inputs = job("deepseek-v3", framework="megatron", gpus=("A800 SXM4 80GB",), counts=(guess, 256), accept_tight=True)
    assert set(search_cluster(inputs).count) == {256}


def speed(job, model: str, card: str, scale_out: str, framework="fsdp", **layout):
    training = replace(
        job(model).training, framework=framework, software="tuned", compile=True, attention="flash", gradients="fp32"
    )
    card = gpu(card)
    return estimate_throughput(
        ThroughputInputs(
            architecture=find_architecture(model),
            training=training,
            layout=Layout(zero_stage=3, **layout),
            accelerator=accelerator_of(card, training),
            fabric=fabric_of(card, scale_out, 8),
        )
    )


def test_7b_pre_training_on_128_a100(job, cases):
    case = cases["c103"]
    estimate = speed(
        job,
        "llama-2-7b",
        "a100 80gb",
        "InfiniBand HDR",
        sequence_length=int(case["seq"]),
        micro_batch_size=int(case["micro_batch"]),
        data_parallel_size=int(case["gpus"]),
    )
    published = float(case["outcome_value"])
    assert estimate.tokens_per_second_per_gpu.m_as("token / s / GPU") == pytest.approx(published, rel=0.15)


def test_1b_on_3_trillion_tokens_in_90_days(job, cases):
    case = cases["c106"]
    estimate = speed(
        job,
        "tinyllama-1.1b",
        "A100 SXM4 40GB",
        "InfiniBand HDR",
        sequence_length=int(case["seq"]),
        micro_batch_size=8,
        gradient_accumulation_steps=8,
        data_parallel_size=int(case["gpus"]),
    )
    days = (Q(3e12, "token") / estimate.tokens_per_second).m_as("day")
    assert days == pytest.approx(float(case["outcome_value"]), rel=0.15)


def test_experts_under_zero_3_are_much_slower_than_under_expert_parallelism(job, cases):
    """166 s a step were reported; Megatron's expert parallelism is several times faster."""
    case = cases["c101"]
    common = {
        "sequence_length": 4096,
        "gradient_accumulation_steps": int(case["grad_accum"]),
        "activation_recomputation": "full",
    }
    architecture, card = find_architecture("qwen3-30b-a3b"), gpu("h100")
    times = {}
    for framework, layout in (
        ("deepspeed", Layout(data_parallel_size=8, zero_stage=3, **common)),
        ("megatron", Layout(data_parallel_size=8, zero_stage=1, expert_parallel_size=8, **common)),
    ):
        training = job(framework=framework).training
        times[framework] = estimate_throughput(
            ThroughputInputs(
                architecture=architecture,
                training=training,
                layout=layout,
                accelerator=accelerator_of(card, training),
                fabric=fabric_of(card, None, 8),
            )
        )
    assert times["deepspeed"].bound == "launch"
    assert times["deepspeed"].step_time > 4 * times["megatron"].step_time
