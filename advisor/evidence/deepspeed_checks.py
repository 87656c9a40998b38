"""What a DeepSpeed configuration means, and where it contradicts itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.evidence.parts import problem
from advisor.evidence.report import Problem

if TYPE_CHECKING:
    from advisor.evidence.deepspeed import DeepSpeedReading


def check(reading: DeepSpeedReading) -> tuple[Problem, ...]:
    """Every problem of one configuration."""
    return (*_precision(reading), *_batch(reading), *_offload(reading), *_stage(reading))


def _precision(reading: DeepSpeedReading) -> list[Problem]:
    if reading.bf16_enabled is True and reading.fp16_enabled is True:
        return [
            problem(
                "two_precisions",
                "error",
                "bf16 and fp16 are both enabled; DeepSpeed refuses that: keep one.",
                "bf16 与 fp16 同时启用；DeepSpeed 会拒绝，只能保留一个。",
            )
        ]
    if reading.amp is True and reading.zero_stage not in (None, 0):
        return [
            problem(
                "amp_with_zero",
                "error",
                "amp does not work with ZeRO: use bf16 or fp16.",
                "amp 不能与 ZeRO 同用：请改用 bf16 或 fp16。",
            )
        ]
    return []


def _batch(reading: DeepSpeedReading) -> list[Problem]:
    total, micro, steps = reading.train_batch_size, reading.micro_batch_per_gpu, reading.grad_accum
    if isinstance(total, int) and isinstance(micro, int):
        per_rank = micro * (steps if isinstance(steps, int) else 1)
        if total % per_rank:
            return [
                problem(
                    "batch_sizes_disagree",
                    "error",
                    f"train_batch_size {total} must be micro batch x accumulation x GPUs, but is no multiple of {per_rank}.",
                    f"train_batch_size {total} 应等于单卡批大小 × 梯度累积 × 卡数，但不是 {per_rank} 的整数倍。",
                )
            ]
    if isinstance(total, int) and isinstance(steps, int) and total % steps:
        return [
            problem(
                "batch_sizes_disagree",
                "error",
                f"train_batch_size {total} is no multiple of gradient_accumulation_steps {steps}.",
                f"train_batch_size {total} 不是 gradient_accumulation_steps {steps} 的整数倍。",
            )
        ]
    return []


def _on(device: str | None) -> bool:
    return device is not None and not device.lower().startswith("none")


def _offload(reading: DeepSpeedReading) -> list[Problem]:
    result = []
    stage = reading.zero_stage
    if _on(reading.offload_param) and isinstance(stage, int) and stage < 3:
        result.append(
            problem(
                "offload_param_needs_stage_3",
                "error",
                f"Parameters can be offloaded only with ZeRO-3, but the stage is {stage}: the setting has no effect.",
                f"只有 ZeRO-3 才能卸载参数，当前为 ZeRO-{stage}：该设置不起作用。",
            )
        )
    if _on(reading.offload_optimizer) and stage == 0:
        result.append(
            problem(
                "offload_needs_zero",
                "error",
                "Optimizer offload needs ZeRO-1 or higher, but the stage is 0: the setting has no effect.",
                "卸载优化器需要 ZeRO-1 及以上，当前为 0：该设置不起作用。",
            )
        )
    if _on(reading.offload_optimizer):
        result.append(
            problem(
                "offload_optimizer",
                "info",
                "Optimizer offload moves about 12 bytes per trainable parameter to host RAM: it frees almost "
                "nothing with LoRA, and "
                "slows each step by the CPU's update.",
                "卸载优化器会把每个可训练参数约 12 字节移到主机内存：对 LoRA 几乎不节省显存，且每步都因 CPU 更新而变慢。",
            )
        )
    if _on(reading.offload_param) and reading.pin_memory is True and "nvme" in str(reading.offload_param):
        result.append(
            problem(
                "nvme_offload",
                "info",
                "NVMe offload is bound by the disk: measure its read and write rate first.",
                "NVMe 卸载受磁盘速度限制：请先测量其读写带宽。",
            )
        )
    if reading.hpz_partition_size not in (None, 1, "auto") and _on(reading.offload_param):
        result.append(
            problem(
                "hpz_with_offload",
                "warning",
                "zero_hpz_partition_size together with CPU offload has been reported to leave the loss stuck with a "
                "gradient norm of 0.",
                "有报告称 zero_hpz_partition_size 与 CPU 卸载同用会使损失不下降、梯度范数为 0。",
            )
        )
    return result


def _stage(reading: DeepSpeedReading) -> list[Problem]:
    result = []
    stage = reading.zero_stage
    if stage in (1, 2):
        what_en = "optimizer states" if stage == 1 else "gradients and optimizer states"
        what_zh = "优化器状态" if stage == 1 else "梯度和优化器状态"
        result.append(
            problem(
                f"zero_{stage}_keeps_weights",
                "info",
                f"ZeRO-{stage} shards the {what_en}; it does not shard the weights: each GPU holds the whole model.",
                f"ZeRO-{stage} 只切分{what_zh}，不切分权重：每张卡都保存完整模型。",
            )
        )
    if (
        stage == 3
        and reading.gather_16bit_on_save in (None, False)
        and not (reading.unprefixed or {}).get("gather_16bit_weights_on_model_save")
    ):
        result.append(
            problem(
                "no_gather_on_save",
                "info",
                "stage3_gather_16bit_weights_on_model_save is off: saving gives sharded files, which "
                "zero_to_fp32.py must merge.",
                "stage3_gather_16bit_weights_on_model_save 未开启：保存的是分片文件，需用 zero_to_fp32.py 合并。",
            )
        )
    if reading.unprefixed:
        names = ", ".join(reading.unprefixed)
        result.append(
            problem(
                "unprefixed_keys",
                "info",
                f"Written without their stage3_ prefix, which only newer DeepSpeed takes: {names}.",
                f"缺少 stage3_ 前缀的键，仅较新的 DeepSpeed 接受：{names}。",
            )
        )
    if isinstance(stage, int) and stage < 3 and reading.hpz_partition_size not in (None, 1, "auto"):
        result.append(
            problem(
                "hpz_needs_stage_3",
                "warning",
                "zero_hpz_partition_size belongs to ZeRO-3 and has no effect here.",
                "zero_hpz_partition_size 属于 ZeRO-3，此处不起作用。",
            )
        )
    return result
