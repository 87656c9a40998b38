"""What in a torchtitan configuration contradicts itself, or does not do what people expect of it.

Source of the rules: torchtitan torchtitan/distributed/parallel_dims.py, pipeline_parallel.py and train.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.evidence.parts import problem
from advisor.evidence.report import Problem
from advisor.evidence.values import as_switch

if TYPE_CHECKING:
    from advisor.evidence.torchtitan import TorchtitanReading


def check(reading: TorchtitanReading) -> tuple[Problem, ...]:
    """Every problem of one file."""
    return (*_sizes(reading), *_batch(reading), *_speed(reading), *_saving(reading))


def _sizes(reading: TorchtitanReading) -> list[Problem]:
    result = []
    tensor, context = reading.tensor_parallel or 1, reading.context_parallel or 1
    parts = tensor * (2 * context if context > 1 else 1)
    if reading.seq_len and reading.seq_len % parts:
        result.append(
            problem(
                "length_does_not_divide",
                "error",
                f"seq_len {reading.seq_len} cannot be cut into {parts} parts (tensor x context parallelism).",
                f"seq_len {reading.seq_len} 无法切成 {parts} 份（张量并行 × 上下文并行）。",
            )
        )
    if reading.shard == 0 or (reading.shard is not None and reading.shard < -1):
        result.append(
            problem(
                "shard_degree",
                "error",
                "data_parallel_shard_degree must be -1 (all that is left) or at least 1.",
                "data_parallel_shard_degree 必须为 -1（其余全部）或不小于 1。",
            )
        )
    experts, shard = reading.expert_parallel or 1, reading.shard or 1
    room = shard * context * tensor
    if experts > 1 and shard > 0 and room % experts:
        result.append(
            problem(
                "experts_do_not_divide",
                "error",
                f"Expert parallelism of {experts} must divide shard x context x tensor = {room}.",
                f"{experts} 路专家并行必须能整除 切分 × 上下文 × 张量 = {room}。",
            )
        )
    return result


def _batch(reading: TorchtitanReading) -> list[Problem]:
    result = []
    local, micro, pipeline = reading.local_batch, reading.pipeline_micro or 1, reading.pipeline_parallel or 1
    if pipeline > 1 and local:
        if local % micro:
            result.append(
                problem(
                    "batch_sizes_disagree",
                    "error",
                    f"A local batch of {local} is no multiple of the pipeline's micro-batch {micro}.",
                    f"本地批大小 {local} 不是流水线微批 {micro} 的整数倍。",
                )
            )
        elif local // micro < pipeline:
            result.append(
                problem(
                    "pipeline_starves",
                    "warning",
                    f"{local // micro} micro-batches for {pipeline} pipeline stages leave most stages waiting.",
                    f"{pipeline} 个流水线阶段只有 {local // micro} 个微批，多数阶段在等待。",
                )
            )
    shard = reading.shard if reading.shard and reading.shard > 0 else None
    if reading.global_batch and local and shard and reading.global_batch % (local * shard * (reading.replicate or 1)):
        each = local * shard * (reading.replicate or 1)
        result.append(
            problem(
                "batch_sizes_disagree",
                "error",
                f"A global batch of {reading.global_batch} is no multiple of local batch x data parallel size = {each}.",
                f"全局批大小 {reading.global_batch} 不是 本地批大小 × 数据并行数 = {each} 的整数倍。",
            )
        )
    return result


def _speed(reading: TorchtitanReading) -> list[Problem]:
    result = []
    if reading.fp8 and reading.compile is False:
        result.append(
            problem(
                "fp8_without_compile",
                "warning",
                "float8 without compile is slower than bf16: its casts are fused only by torch.compile.",
                "不开 compile 的 float8 比 bf16 更慢：类型转换要靠 torch.compile 融合。",
            )
        )
    parallelism = (reading.settings or {}).get("parallelism")
    parallelism = parallelism if isinstance(parallelism, dict) else {}
    if as_switch(parallelism.get("enable_async_tensor_parallel")) is True and reading.compile is False:
        result.append(
            problem(
                "async_tensor_without_compile",
                "error",
                "enable_async_tensor_parallel works only with compile on.",
                "enable_async_tensor_parallel 只在开启 compile 时有效。",
            )
        )
    if reading.shard == 1 and (reading.replicate or 1) > 1 and reading.flavor and reading.cpu_offload:
        result.append(
            problem(
                "offload_without_shards",
                "error",
                "enable_cpu_offload moves FSDP's shards only, and nothing is sharded here.",
                "enable_cpu_offload 只卸载 FSDP 的分片，而此处没有切分。",
            )
        )
    return result


def _saving(reading: TorchtitanReading) -> list[Problem]:
    if reading.checkpoint is False and (reading.steps or 0) >= 1000:
        return [
            problem(
                "nothing_saved",
                "warning",
                f"{reading.steps} steps without a checkpoint: what stops the run loses all of it.",
                f"{reading.steps} 步都不保存检查点：一旦中断将全部丢失。",
            )
        ]
    if reading.keep == 1:
        return [
            problem(
                "one_checkpoint",
                "error",
                "keep_latest_k must be 0 (all) or at least 2: the newest may still be being written.",
                "keep_latest_k 必须为 0（全部保留）或不小于 2：最新的可能还在写入。",
            )
        ]
    return []
