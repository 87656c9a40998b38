"""What in a training configuration contradicts itself, or does not do what people expect of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.evidence.parts import problem
from advisor.evidence.report import Problem
from advisor.evidence.values import as_switch

if TYPE_CHECKING:
    from advisor.evidence.train_yaml import TrainYamlReading


def check(reading: TrainYamlReading) -> tuple[Problem, ...]:
    """Every problem of one file."""
    settings = reading.settings or {}
    return (
        *_precision(settings),
        *_method(reading),
        *_sharding(reading, settings),
        *_batch(reading),
        *_framework(reading),
        *_ranks(reading),
    )


def offloads(reading: TrainYamlReading) -> bool:
    """Whether FSDP offloads parameters to host RAM."""
    group = reading.fsdp_config or (reading.fsdp if isinstance(reading.fsdp, dict) else {}) or {}
    listed = reading.fsdp if isinstance(reading.fsdp, (list, str)) else ()
    return (
        as_switch(group.get("fsdp_offload_params", group.get("offload_params"))) is True
        or "offload" in (listed.split() if isinstance(listed, str) else listed)
        or reading.fsdp_cpu_offload is True
    )


def _precision(settings: dict[str, Any]) -> list[Problem]:
    if as_switch(settings.get("bf16")) is True and as_switch(settings.get("fp16")) is True:
        return [
            problem(
                "two_precisions",
                "error",
                "bf16 and fp16 are both on; keep one (bf16 from Ampere on).",
                "bf16 与 fp16 同时开启；只保留一个（Ampere 及以后用 bf16）。",
            )
        ]
    return []


def _method(reading: TrainYamlReading) -> list[Problem]:
    result = []
    quantized = bool(reading.load_in_4bit or reading.load_in_8bit or reading.quantization_bit)
    if reading.load_in_4bit and reading.load_in_8bit:
        result.append(
            problem(
                "two_quantizations",
                "error",
                "load_in_4bit and load_in_8bit are both on; keep one.",
                "load_in_4bit 与 load_in_8bit 同时开启；只保留一个。",
            )
        )
    if reading.method == "full" and quantized:
        result.append(
            problem(
                "full_with_quantization",
                "error",
                "Quantized weights cannot be trained in full: use an adapter (lora, qlora) or load unquantized.",
                "量化权重不能全参微调：请使用适配器（lora、qlora）或不量化加载。",
            )
        )
    if reading.method == "qlora" and reading.framework == "axolotl" and not reading.load_in_4bit:
        result.append(
            problem(
                "qlora_without_4bit",
                "warning",
                "The adapter is qlora, but load_in_4bit is not on: the base weights stay in 16 bits.",
                "适配器为 qlora，但未开启 load_in_4bit：基座权重仍为 16 位。",
            )
        )
    if reading.method == "lora" and reading.load_in_4bit:
        result.append(
            problem(
                "lora_in_4bit",
                "info",
                "A lora adapter on 4-bit weights is QLoRA.",
                "在 4 比特权重上训练 LoRA 即为 QLoRA。",
            )
        )
    return result


def _sharding(reading: TrainYamlReading, settings: dict[str, Any]) -> list[Problem]:
    result = []
    if reading.deepspeed and reading.fsdp and reading.framework != "accelerate":
        result.append(
            problem(
                "deepspeed_and_fsdp",
                "error",
                "DeepSpeed and FSDP are both set; only one can shard the model.",
                "同时设置了 DeepSpeed 与 FSDP；只能由其中一个切分模型。",
            )
        )
    path = reading.deepspeed if isinstance(reading.deepspeed, str) else ""
    stage = reading.zero_stage
    if stage == 2 or any(mark in path.lower() for mark in ("z2", "zero2", "stage2")):
        result.append(
            problem(
                "zero_2_keeps_weights",
                "info",
                "ZeRO-2 does not shard the weights: each GPU holds the whole model.",
                "ZeRO-2 不切分权重：每张卡都保存完整模型。",
            )
        )
    if isinstance(stage, int) and stage >= 3 and reading.method == "qlora":
        result.append(
            problem(
                "zero_3_with_qlora",
                "warning",
                "ZeRO-3 gathers quantized weights only with recent versions; ZeRO-2 or FSDP with a 16-bit "
                "quantization storage is safer.",
                "ZeRO-3 与 4 比特权重只在较新版本可用；ZeRO-2，或以 16 位存储量化权重的 FSDP 更稳妥。",
            )
        )
    lora = reading.method in ("lora", "qlora", "dora")
    optimizer_offload = "offload" in path.lower() or str((reading.deepspeed_config or {}).get("offload_optimizer_device")) in (
        "cpu",
        "nvme",
    )
    if lora and optimizer_offload:
        result.append(
            problem(
                "offload_with_adapter",
                "info",
                "With LoRA the optimizer states are small: offloading the optimizer frees almost nothing and costs time.",
                "LoRA 的优化器状态很小：卸载优化器几乎不节省显存，还会变慢。",
            )
        )
    eight_bit = "8bit" in (reading.optimizer or "").lower()
    if eight_bit and offloads(reading) and reading.framework == "axolotl" and not lora:
        result.append(
            problem(
                "eight_bit_with_offload",
                "warning",
                "8-bit optimizers do not work with FSDP's CPU offload.",
                "8 比特优化器不能与 FSDP 的 CPU 卸载同用。",
            )
        )
    if "fsdp_config" in settings and reading.framework == "axolotl":
        keys = set(reading.fsdp_config or {})
        old = {key for key in keys if key.startswith("fsdp_") and key != "fsdp_version"}
        if old and keys - old - {"fsdp_version"}:
            result.append(
                problem(
                    "two_fsdp_spellings",
                    "warning",
                    "fsdp_config mixes keys with and without the fsdp_ prefix; one of the two is ignored.",
                    "fsdp_config 混用了带与不带 fsdp_ 前缀的键；其中一种会被忽略。",
                )
            )
    return result


def _batch(reading: TrainYamlReading) -> list[Problem]:
    total, micro, steps = reading.global_batch, reading.micro_batch, reading.grad_accum
    if isinstance(total, int) and isinstance(micro, int) and total % (micro * (steps if isinstance(steps, int) else 1)):
        return [
            problem(
                "batch_sizes_disagree",
                "error",
                f"A batch of {total} is no multiple of the micro batch {micro} x accumulation {steps or 1}.",
                f"批大小 {total} 不是单卡批大小 {micro} × 梯度累积 {steps or 1} 的整数倍。",
            )
        ]
    if reading.optimizer_in_bwd and isinstance(steps, int) and steps > 1:
        return [
            problem(
                "in_backward_with_accumulation",
                "error",
                "optimizer_in_bwd needs gradient_accumulation_steps 1: gradients are used up in the backward pass.",
                "optimizer_in_bwd 要求 gradient_accumulation_steps 为 1：梯度在反向传播中即被用掉。",
            )
        ]
    return []


def _framework(reading: TrainYamlReading) -> list[Problem]:
    result = []
    if reading.framework == "LLaMA-Factory" and reading.gradient_checkpointing is None:
        result.append(
            problem(
                "checkpointing_by_default",
                "info",
                "LLaMA-Factory recomputes activations by default (disable_gradient_checkpointing is off).",
                "LLaMA-Factory 默认开启梯度检查点（disable_gradient_checkpointing 为 false）。",
            )
        )
    if reading.framework == "axolotl" and reading.sample_packing and reading.flash_attention is False:
        result.append(
            problem(
                "packing_without_flash",
                "warning",
                "Sample packing without flash attention lets samples attend to each other.",
                "不使用 flash attention 的样本打包会使样本互相可见。",
            )
        )
    timeout = reading.ddp_timeout
    if isinstance(timeout, int) and timeout > 7 * 24 * 3600:
        result.append(
            problem(
                "endless_timeout",
                "info",
                f"ddp_timeout is {timeout} s ({timeout / 86400:.0f} days): a hung rank will not be noticed.",
                f"ddp_timeout 为 {timeout} 秒（{timeout / 86400:.0f} 天）：进程挂起不会被发现。",
            )
        )
    return result


def _ranks(reading: TrainYamlReading) -> list[Problem]:
    processes, machines = reading.num_processes, reading.num_machines
    result = []
    if isinstance(processes, int) and isinstance(machines, int) and processes % machines:
        result.append(
            problem(
                "processes_do_not_divide",
                "error",
                f"num_processes counts the GPUs of all machines: {processes} cannot be spread over {machines} evenly.",
                f"num_processes 是所有机器的总卡数：{processes} 无法平均分到 {machines} 台。",
            )
        )
    if isinstance(processes, int) and isinstance(machines, int) and machines > 1 and processes <= machines:
        result.append(
            problem(
                "one_process_per_machine",
                "warning",
                f"{processes} processes on {machines} machines is one GPU each or fewer; num_processes is the total "
                "over all machines.",
                f"{machines} 台机器共 {processes} 个进程，每台不到或只有一张卡；num_processes 应为总数。",
            )
        )
    rank = reading.machine_rank
    if isinstance(rank, int) and isinstance(machines, int) and rank >= machines:
        result.append(
            problem(
                "machine_rank_out_of_range",
                "error",
                f"machine_rank {rank} cannot exist with {machines} machines: it counts from 0.",
                f"{machines} 台机器时不可能有 machine_rank {rank}：从 0 开始计数。",
            )
        )
    return result
