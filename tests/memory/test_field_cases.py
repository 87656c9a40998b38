"""Questions that people asked, answered by the memory stage and compared with what happened to them.

The collection lies outside this repository; where it is absent there is nothing to compare. Each entry below only says how a
question is put to the stage and how its recorded outcome is read; `-s` prints the score.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor import catalog
from advisor.architecture import find_architecture
from advisor.memory import MemoryEstimate, MemoryInputs, estimate_inference, estimate_memory
from advisor.training import Layout, Training
from advisor.units import Q, unit

from .conftest import gib, training

CASES = Path(__file__).parents[2] / ".." / "shared" / "field" / "cases.csv"
DEEPSPEED = training(precision="bf16_mixed", framework="deepspeed")
TORCHTUNE = training(framework="torchtune", compile=True)
LOW_MEMORY = training(framework="torchtune", optimizer="paged_adamw_8bit", optimizer_in_backward=True)
PEFT = training("lora", "bf16_mixed", dtype="fp32")
QLORA = training("qlora", "bf16_mixed", dtype="fp32")
TUNE_TARGETS = ("q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
FSDP_QLORA = training("qlora", upcast=False, framework="fsdp", rank=64)
FSDP_LORA = training("lora", framework="fsdp", rank=64)
MEGATRON = training(precision="bf16_mixed", gradients="fp32", framework="megatron", attention="flash")


def ask(model: str, recipe: Training, card: str | float | None = None, **layout: Any) -> MemoryEstimate:
    """One question."""
    capacity = catalog.gpu(card).capacity if isinstance(card, str) else card and Q(float(card), unit("GiB / GPU"))
    layout = {"activation_recomputation": "full", **layout}
    inputs = MemoryInputs(architecture=find_architecture(model), training=recipe, layout=Layout(**layout), capacity=capacity)
    return estimate_memory(inputs)


def over(estimate: MemoryEstimate) -> bool:
    """Said not to fit, or to be a gamble."""
    return estimate.verdict != "fits"


def holds(estimate: MemoryEstimate) -> bool:
    """Said to fit, if only just: what runs on a card often runs at its brim."""
    return bool(estimate.total <= estimate.capacity)


def near(estimate: MemoryEstimate, measured: float, metric: str = "allocated") -> bool:
    """Within 25 % of the measured GiB."""
    return abs(gib(getattr(estimate, metric)) / measured - 1) <= 0.25


def _sharded(data: int, stage: int = 3, **more: Any) -> dict[str, Any]:
    return {"data_parallel_size": data, "zero_stage": stage, **more}


def _int8(recipe: Training) -> Training:
    return replace(recipe, quantization=replace(recipe.quantization, format="int8", upcast_unquantized=False))


def _gemma_logits() -> bool:
    result = ask("Gemma 3 12B", PEFT, "A100 80GB", **_sharded(8), sequence_length=16384)
    return result.logits > result.weights


#: How each question is put; the measured value is read from the collection.
QUESTIONS: dict[str, Callable[[float], bool]] = {
    "c001": lambda _: over(ask("Llama 2 7B", DEEPSPEED, "A100 80GB")),
    "c003": lambda _: over(
        ask("Llama 3.1 8B", DEEPSPEED, "A100 40GB", **_sharded(2, 2, offload="optimizer", micro_batch_size=2))
    ),
    "c005": lambda _: over(ask("Llama 2 7B", PEFT, 16, **_sharded(2, 2))),
    "c006": lambda _: over(ask("Llama 2 70B", QLORA, "A100 40GB")),
    "c008": lambda _: over(ask("Llama 2 7B", DEEPSPEED, "A100 80GB")),
    "c009": lambda _: holds(ask("Qwen2 7B", DEEPSPEED, "A100 40GB", **_sharded(8, sequence_length=16384, micro_batch_size=2))),
    "c010": lambda _: (
        8 <= ask("Llama 2 7B", _int8(QLORA), sequence_length=256, micro_batch_size=4).total.m_as("GB / GPU") <= 10.5
    ),
    "c012": lambda _: over(ask("Llama 2 70B", QLORA, "RTX 4090", data_parallel_size=2)),
    "c015": lambda total: (
        abs(18 * find_architecture("GPT-NeoX 20B").parameters_total.m_as("parameter") / 1e9 / total - 1) < 0.1
    ),
    "c017": lambda _: over(ask("Llama 3 70B", QLORA, "A10G", data_parallel_size=4)),
    "c019": lambda _: (
        over(ask("Llama 3 8B", DEEPSPEED, "A100 40GB", **_sharded(8, 2)))
        and holds(ask("Llama 3 8B", DEEPSPEED, "A100 40GB", **_sharded(8, 3)))
    ),
    "c020": lambda used: near(ask("Llama 2 70B", replace(TORCHTUNE, optimizer="paged_adamw"), **_sharded(8)), used / 1.074),
    "c022": lambda used: near(ask("Llama 2 7B", LOW_MEMORY, micro_batch_size=4), used),
    "c024": lambda used: gib(ask("Llama 2 7B", replace(LOW_MEMORY, fused_loss=True)).allocated) < used,
    "c027": lambda _: holds(
        ask("Llama 2 7B", training(precision="fp32_autocast", framework="fsdp"), "A100 40GB", **_sharded(4))
    ),
    "c031": lambda _: (
        over(ask("Qwen2.5 3B", DEEPSPEED, "RTX 4090", **_sharded(4, 2, sequence_length=512)))
        and holds(ask("Qwen2.5 3B", DEEPSPEED, "RTX 4090", **_sharded(4, 3, sequence_length=512)))
    ),
    "c035": lambda _: _gemma_logits(),
    "c038": lambda _: (
        gib(ask("Llama 2 7B", PEFT, **_sharded(8, 2)).total) > 1.5 * gib(ask("Llama 2 7B", PEFT, **_sharded(8, 3)).total)
    ),
    "c044": lambda used: abs(gib(ask("Llama 3 8B", training(), sequence_length=81920).logits) * 2 / 12 / used - 1) < 0.01,
    "c050": lambda used: (
        abs(
            estimate_inference(find_architecture("DeepSeek-V3"), weights="fp8", tensor_parallel_size=8).weights.m_as("GB / GPU")
            / used
            - 1
        )
        < 0.03
    ),
    "c052": lambda used: near(ask("Llama 3.1 8B", replace(LOW_MEMORY, compile=True), micro_batch_size=2), used),
    "c053": lambda used: near(ask("Llama 3.1 8B", TORCHTUNE, micro_batch_size=2), used),
    "c056": lambda used: near(
        ask(
            "Llama 3.1 8B",
            training("qlora", upcast=False, framework="torchtune", compile=True, rank=8, fused_loss=True),
            micro_batch_size=2,
        ),
        used,
    ),
    "c058": lambda used: near(
        ask(
            "Llama 3.1 70B",
            training("lora", framework="torchtune", compile=True, targets=TUNE_TARGETS),
            micro_batch_size=2,
            **_sharded(8),
        ),
        used,
    ),
    "c061": lambda used: near(ask("Llama 2 7B", FSDP_QLORA, sequence_length=512, **_sharded(2)), used, "reserved"),
    "c062": lambda used: near(ask("Llama 2 7B", FSDP_QLORA, **_sharded(2)), used, "reserved"),
    "c063": lambda used: near(ask("Llama 2 7B", FSDP_LORA, sequence_length=512, **_sharded(2)), used, "reserved"),
    "c064": lambda used: near(ask("Llama 2 7B", FSDP_QLORA, micro_batch_size=4, **_sharded(2)), used, "reserved"),
    "c065": lambda used: near(ask("Llama 2 7B", FSDP_QLORA, micro_batch_size=10, **_sharded(2)), used, "reserved"),
    "c066": lambda used: near(ask("Llama 2 7B", FSDP_LORA, micro_batch_size=4, **_sharded(2)), used, "reserved"),
    "c068": lambda used: near(
        ask("Llama 2 70B", FSDP_QLORA, micro_batch_size=2, offload="optimizer_and_parameters", **_sharded(2)), used, "reserved"
    ),
    "c077": lambda _: near(
        ask("Qwen2.5 7B", MEGATRON, tensor_parallel_size=2, sequence_parallel=True, micro_batch_size=16), 70, "total"
    ),
    "c078": lambda used: near(
        ask("Qwen2.5 7B", MEGATRON, tensor_parallel_size=4, sequence_parallel=True, sequence_length=32768),
        used / 1.074,
        "total",
    ),
    "c079": lambda _: (
        over(ask("Llama 2 13B", DEEPSPEED, "A800 80GB", **_sharded(2, sequence_length=512)))
        and holds(ask("Llama 2 13B", DEEPSPEED, "A800 80GB", **_sharded(4, sequence_length=512)))
    ),
    "c081": lambda _: over(
        ask("Llama 2 70B", training("lora", "fp32_autocast", weights="fp32", framework="fsdp"), "A10", **_sharded(16))
    ),
    "c083": lambda _: over(ask("Qwen1.5 72B", DEEPSPEED, "A100 80GB", **_sharded(8))),
    "c085": lambda used: abs(4 * find_architecture("Llama 2 70B").parameters_total.m_as("parameter") / 1e9 / used - 1) < 0.05,
    "c087": lambda _: over(ask("Qwen2.5 32B", DEEPSPEED, "A800 80GB", **_sharded(7, sequence_length=1024))),
    "c089": lambda used: (
        estimate_inference(
            find_architecture("DeepSeek-V3"), tensor_parallel_size=int(used), capacity=catalog.gpu("A800 80GB").capacity
        ).verdict
        == "fits"
    ),
    "c095": lambda _: (
        ask("Llama 3 70B", DEEPSPEED, **_sharded(8, offload="optimizer_and_parameters")).host_ram.m_as("GB / node") >= 1130
    ),
    "c099": lambda used: (
        256 <= ask("16B", DEEPSPEED, **_sharded(8, offload="optimizer")).host_ram.m_as("GB / node") <= 1.3 * used
    ),
}
#: Questions whose recorded outcome the stage does not reproduce, and why.
KNOWN_WRONG = {
    "c003": "failed while the optimizer flattened a second copy of the weights at start-up; only steps are modelled",
    "c009": "16 384 tokens is the limit of its context and not the length of its samples: full ones need 56 GiB of logits",
    "c053": "the recipe behind this row is not the one published for the other card",
    "c077": "2048 tokens is the limit of its samples and a fused loss was on: 16 full ones would need 23 GiB of logits",
}


def _collection() -> dict[str, dict[str, str]]:
    with CASES.open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def _value(row: dict[str, str]) -> float:
    """The recorded number; of a range its middle; 0 where there is none."""
    parts = row["outcome_value"].replace("<", "").replace(">", "").split("-")
    try:
        return sum(map(float, parts)) / len(parts)
    except ValueError:
        return 0.0


@pytest.mark.skipif(not CASES.exists(), reason="the collection of field questions is not beside this checkout")
def test_field_questions(capsys: pytest.CaptureFixture[str]) -> None:
    """At least nine in ten of the questions that can be put are answered as it turned out; the rest are known by name."""
    rows = _collection()
    wrong = [key for key, question in QUESTIONS.items() if not question(_value(rows[key]))]
    with capsys.disabled():
        print(f"\nfield questions on memory: {len(QUESTIONS) - len(wrong)} of {len(QUESTIONS)} right; wrong: {wrong}")
    assert set(wrong) <= set(KNOWN_WRONG)
    assert len(wrong) <= len(QUESTIONS) // 10
