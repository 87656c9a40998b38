"""What in Megatron's options contradicts itself, or does not do what people expect of it.

Source of the rules: Megatron-LM megatron/training/arguments.py (validate_args) and core/transformer/transformer_config.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from advisor.evidence.parts import problem
from advisor.evidence.report import Problem
from advisor.evidence.values import as_switch

if TYPE_CHECKING:
    from advisor.evidence.megatron import MegatronReading


def check(reading: MegatronReading) -> tuple[Problem, ...]:
    """Every problem of one file."""
    settings = reading.settings or {}
    return (*_switches(reading, settings), *_sizes(reading, settings), *_batch(reading), *_machines(reading))


def _switches(reading: MegatronReading, settings: dict[str, Any]) -> list[Problem]:
    result = []
    if as_switch(settings.get("bf16")) is True and as_switch(settings.get("fp16")) is True:
        result.append(
            problem("two_precisions", "error", "bf16 and fp16 are both on; keep one.", "bf16 与 fp16 同时开启；只保留一个。")
        )
    if reading.steps and reading.samples:
        result.append(
            problem(
                "two_lengths",
                "error",
                "train-iters and train-samples are both given; Megatron takes only one.",
                "同时给出了 train-iters 与 train-samples；Megatron 只接受其一。",
            )
        )
    if reading.sequence_parallel and (reading.tensor_parallel or 1) == 1:
        result.append(
            problem(
                "sequence_parallel_without_tensor",
                "info",
                "sequence-parallel does nothing without tensor parallelism.",
                "没有张量并行时 sequence-parallel 不起作用。",
            )
        )
    if reading.recompute_granularity == "full" and reading.recompute_method is None:
        result.append(
            problem(
                "recompute_without_method",
                "warning",
                "recompute-granularity full also needs recompute-method and recompute-num-layers.",
                "recompute-granularity full 还需要 recompute-method 与 recompute-num-layers。",
            )
        )
    if (reading.expert_parallel or 1) > 1 and (reading.tensor_parallel or 1) > 1 and not reading.sequence_parallel:
        result.append(
            problem(
                "experts_without_sequence_parallel",
                "error",
                "Experts with tensor parallelism train only with sequence-parallel on.",
                "专家并行与张量并行同用时必须开启 sequence-parallel。",
            )
        )
    if reading.zero_stage == 0 and reading.method == "full" and (reading.world_size or 1) > _model_parallel(reading):
        result.append(
            problem(
                "optimizer_not_sharded",
                "info",
                "Each data-parallel rank keeps all optimizer states; use-distributed-optimizer shards them at no cost.",
                "每个数据并行进程都保存完整的优化器状态；use-distributed-optimizer 可无代价地切分。",
            )
        )
    return result


def _sizes(reading: MegatronReading, settings: dict[str, Any]) -> list[Problem]:
    config = reading.architecture or {}
    tensor, pipeline = reading.tensor_parallel or 1, reading.pipeline_parallel or 1
    heads, groups, layers = (config.get(key) for key in ("num_attention_heads", "num_key_value_heads", "num_hidden_layers"))
    result = []
    latent = "kv_lora_rank" in config
    for number, name, chinese in (
        (heads, "attention heads", "注意力头"),
        (None if latent else groups, "query groups", "KV 组"),
    ):
        if number and number % tensor and not (name == "query groups" and tensor % number == 0):
            result.append(
                problem(
                    "heads_do_not_divide",
                    "error",
                    f"{number} {name} cannot be spread over tensor parallelism of {tensor}.",
                    f"{number} 个{chinese}无法平均分到 {tensor} 路张量并行。",
                )
            )
            break
    stages = pipeline * (reading.virtual_pipeline or 1)
    own = any(
        settings.get(f"{part}")
        for part in (
            "pipeline-model-parallel-layout",
            "decoder-first-pipeline-num-layers",
            "decoder-last-pipeline-num-layers",
            "num-layers-in-first-pipeline-stage",
            "num-layers-in-last-pipeline-stage",
        )
    )
    ends = sum(as_switch(settings.get(f"account-for-{part}-in-pipeline-split")) is True for part in ("embedding", "loss"))
    if layers and not own and (layers + ends) % stages:
        result.append(
            problem(
                "layers_do_not_divide",
                "error",
                f"{layers + ends} layers cannot be spread over {stages} pipeline stages evenly.",
                f"{layers + ends} 层无法平均分到 {stages} 个流水线阶段。",
            )
        )
    longest = config.get("max_position_embeddings")
    if longest and reading.seq_len and reading.seq_len > longest and reading.form == "arguments":
        result.append(
            problem(
                "sequence_too_long",
                "error",
                f"seq-length {reading.seq_len} is more than max-position-embeddings {longest}.",
                f"seq-length {reading.seq_len} 超过 max-position-embeddings {longest}。",
            )
        )
    return result


def _batch(reading: MegatronReading) -> list[Problem]:
    total, micro, world = reading.global_batch, reading.micro_batch, reading.world_size
    shared = _model_parallel(reading)
    if not total or not micro or not world or world % shared:
        return []
    each = micro * (world // shared)
    if total % each:
        return [
            problem(
                "batch_sizes_disagree",
                "error",
                f"A global batch of {total} is no multiple of micro batch x data parallel size = {each}.",
                f"全局批大小 {total} 不是单卡批大小 × 数据并行数 = {each} 的整数倍。",
            )
        ]
    return []


def _machines(reading: MegatronReading) -> list[Problem]:
    world, shared, tensor = reading.world_size, _model_parallel(reading), reading.tensor_parallel or 1
    result = []
    if world and world % shared:
        result.append(
            problem(
                "ranks_do_not_divide",
                "error",
                f"{world} GPUs are no multiple of tensor x pipeline x context = {shared}.",
                f"{world} 张卡不是 张量 × 流水线 × 上下文 = {shared} 的整数倍。",
            )
        )
    if reading.procs_per_node and tensor > reading.procs_per_node:
        result.append(
            problem(
                "tensor_across_nodes",
                "warning",
                f"Tensor parallelism of {tensor} leaves the node of {reading.procs_per_node} GPUs: "
                "each layer then waits for the network.",
                f"{tensor} 路张量并行超出了 {reading.procs_per_node} 卡的节点：每一层都要等网络。",
            )
        )
    return result


def _model_parallel(reading: MegatronReading) -> int:
    return math.prod(one or 1 for one in (reading.tensor_parallel, reading.pipeline_parallel, reading.context_parallel))
