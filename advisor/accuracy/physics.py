"""The memory stage against training steps traced from real model code: allocated bytes, no GPU, no formula in them."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

import numpy as np

from advisor import catalog
from advisor.architecture import Architecture, architecture_from_config
from advisor.memory import MemoryInputs, estimate_memory
from advisor.training import Layout, LoRA, Quantization, Training
from advisor.units import BytesPerGPU, Fraction, Q, Record, Signed, unit

BF16 = {"precision": "bf16_pure", "weights": "bf16", "gradients": "bf16", "master": "none", "moments": "bf16"}
FP32 = {"precision": "fp32", "weights": "fp32", "gradients": "fp32", "master": "none", "moments": "fp32"}
AUTOCAST = {**FP32, "precision": "fp32_autocast"}
MASTER = {**BF16, "precision": "bf16_mixed", "master": "fp32", "moments": "fp32"}
PEFT = {**BF16, "precision": "bf16_mixed", "gradients": "fp32", "moments": "fp32"}


def _adapters(targets: str, dtype: str, **more: bool) -> LoRA:
    return LoRA(rank=16, targets=targets, dtype=dtype, **more)


#: What each traced recipe is in this project's terms.
RECIPES = {
    "full_bf16_adamw": Training(method="full", **BF16),
    "full_fp32": Training(method="full", **FP32),
    "mixed_fp32_autocast": Training(method="full", **AUTOCAST),
    "bf16_fp32master": Training(method="full", **MASTER),
    "fsdp_full_bf16": Training(method="full", framework="fsdp", **BF16),
    "fsdp_fp32_shards": Training(method="full", framework="fsdp", **AUTOCAST),
    "lora_all_r16_bf16": Training(method="lora", lora=_adapters("all_linear", "bf16"), **BF16),
    "lora_all_r16_bf16_drop": Training(method="lora", lora=_adapters("all_linear", "bf16", dropout=True), **BF16),
    "lora_qv_r16_bf16": Training(method="lora", lora=_adapters("attention_qv", "bf16"), **BF16),
    "lora_all_r16_peft": Training(method="lora", lora=_adapters("all_linear", "fp32"), **PEFT),
    "lora_qv_r16_peft": Training(method="lora", lora=_adapters("attention_qv", "fp32"), **PEFT),
    "dora_all_r16_bf16": Training(method="dora", lora=_adapters("all_linear", "bf16"), **BF16),
    "dora_all_r16_peft": Training(method="dora", lora=_adapters("all_linear", "fp32"), **PEFT),
    "dora_qv_r16_peft": Training(method="dora", lora=_adapters("attention_qv", "fp32"), **PEFT),
    "qlora_all_r16_bf16": Training(
        method="qlora", lora=_adapters("all_linear", "bf16"), quantization=Quantization(upcast_unquantized=False), **BF16
    ),
    "qlora_all_r16_peft": Training(method="qlora", lora=_adapters("all_linear", "fp32"), quantization=Quantization(), **PEFT),
    "qlora_qv_r16_peft": Training(method="qlora", lora=_adapters("attention_qv", "fp32"), quantization=Quantization(), **PEFT),
}


@dataclass(frozen=True, kw_only=True)
class TracedStep(Record):
    """One traced step: its peak and ours. error is predicted over traced, less one."""

    model: str
    recipe: str
    attention: str
    recomputation: str
    source: str
    phase: str
    predicted_phase: str
    peak: BytesPerGPU
    predicted: BytesPerGPU
    error: Signed


@dataclass(frozen=True, kw_only=True)
class PhysicsAccuracy(Record):
    """Median and 90th percentile of the absolute error over a group of traced steps."""

    group: str
    steps: int
    error: Fraction
    worst_tenth: Fraction


@functools.lru_cache(maxsize=1)
def _models() -> dict[str, Architecture]:
    rows = catalog.table("step_memory_models.csv")
    return {row["model"]: architecture_from_config(json.loads(row["config"]), row["model"]) for row in rows}


@functools.lru_cache(maxsize=1)
def traced_steps() -> tuple[TracedStep, ...]:
    """Every row of data/step_memory.csv with its prediction."""
    return tuple(map(_step, catalog.table("step_memory.csv")))


def _step(row: dict[str, str]) -> TracedStep:
    recipe = RECIPES[row["recipe"]]
    training = Training(
        **{**{name: getattr(recipe, name) for name in recipe.__dataclass_fields__}, "attention": row["attention"]}
    )
    layout = Layout(
        sequence_length=int(row["sequence_length"]),
        micro_batch_size=int(row["micro_batch_size"]),
        zero_stage=int(row["zero_stage"]),
        data_parallel_size=int(row["data"]),
        activation_recomputation=row["activation_recomputation"],
    )
    estimate = estimate_memory(MemoryInputs(architecture=_models()[row["model"]], training=training, layout=layout))
    peak = Q(float(row["peak_bytes"]), unit("B / GPU"))
    return TracedStep(
        model=row["model"],
        recipe=row["recipe"],
        attention=row["attention"],
        recomputation=row["activation_recomputation"],
        source=row["source"],
        phase=row["phase"],
        predicted_phase=estimate.peak_phase,
        peak=peak,
        predicted=estimate.allocated,
        error=estimate.allocated / peak - 1,
    )


def physics_accuracy() -> tuple[PhysicsAccuracy, ...]:
    """All steps, then by source and by recipe."""
    steps = traced_steps()
    groups: dict[str, list[float]] = {"all traced steps": []}
    for step in steps:
        error = abs(float(step.error.m_as("")))
        for group in ("all traced steps", f"source {step.source}", f"recipe {step.recipe}"):
            groups.setdefault(group, []).append(error)
    plain = unit("")
    return tuple(
        PhysicsAccuracy(
            group=name,
            steps=len(errors),
            error=float(np.median(errors)) * plain,
            worst_tenth=float(np.quantile(errors, 0.9)) * plain,
        )
        for name, errors in groups.items()
    )
