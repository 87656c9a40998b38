"""torchtitan's settings turned into scenario keys."""

from __future__ import annotations

import math

from advisor.architecture import ArchitectureError, find_architecture
from advisor.evidence.import_draft import Draft, Given
from advisor.evidence.import_model import known_name, take_model
from advisor.evidence.import_training import optimizer_of
from advisor.evidence.torchtitan import TorchtitanReading
from advisor.evidence.values import positive

SOURCE = "torchtitan"
#: torchtitan's models by family and size in small letters. Source: torchtitan torchtitan/models/*/__init__.py.
FLAVORS = {
    ("llama3", "1b"): "Llama 3.2 1B",
    ("llama3", "3b"): "Llama 3.2 3B",
    ("llama3", "8b"): "Llama 3.1 8B",
    ("llama3", "70b"): "Llama 3.1 70B",
    ("llama3", "405b"): "Llama 3.1 405B",
    ("llama2", "7b"): "Llama 2 7B",
    ("llama2", "13b"): "Llama 2 13B",
    ("llama2", "70b"): "Llama 2 70B",
    ("llama4", "17bx16e"): "Llama 4 Scout",
    ("llama4", "17bx128e"): "Llama 4 Maverick",
    ("qwen3", "0.6b"): "Qwen3 0.6B",
    ("qwen3", "1.7b"): "Qwen3 1.7B",
    ("qwen3", "4b"): "Qwen3 4B",
    ("qwen3", "8b"): "Qwen3 8B",
    ("qwen3", "14b"): "Qwen3 14B",
    ("qwen3", "32b"): "Qwen3 32B",
    ("qwen3", "30b-a3b"): "Qwen3 30B-A3B",
    ("qwen3", "235b-a22b"): "Qwen3 235B-A22B",
    ("deepseek_v3", "16b"): "DeepSeek-V2-Lite",
    ("deepseek_v3", "236b"): "DeepSeek-V2",
    ("deepseek_v3", "671b"): "DeepSeek-V3",
    ("gpt_oss", "20b"): "gpt-oss-20b",
    ("gpt_oss", "120b"): "gpt-oss-120b",
}
#: What torchtitan trains with where training.local_batch_size is silent.
DEFAULT_BATCH = 8


def take_torchtitan(draft: Draft, reading: TorchtitanReading) -> None:
    """Everything that a torchtitan file says."""
    draft.take("framework", "torchtitan", "parallelism", SOURCE)
    _model(draft, reading)
    _method(draft, reading)
    _sizes(draft, reading)
    _batch(draft, reading)
    if reading.recompute:
        word = {"none": "none", "full": "full", "selective": "selective", "memory_budget": "selective"}.get(reading.recompute)
        if word:
            draft.take("activation_recomputation", word, "activation_checkpoint.mode", SOURCE)
    if reading.compile is not None:
        draft.take("compile", reading.compile, "compile.enable", SOURCE)
    if reading.optimizer and optimizer_of(reading.optimizer):
        draft.take("optimizer", optimizer_of(reading.optimizer), "optimizer.name", SOURCE)
    offload = "optimizer_and_parameters" if reading.cpu_offload else "none"
    if reading.cpu_offload is not None:
        draft.take("offload", offload, "training.enable_cpu_offload", SOURCE)
    _saving(draft, reading)
    if reading.steps:
        draft.facts["steps"] = Given(reading.steps, "training.steps", SOURCE)


def _model(draft: Draft, reading: TorchtitanReading) -> None:
    draft.used.add((SOURCE, "model"))
    if "model" in draft.scenario:
        return
    name = FLAVORS.get(((reading.family or "").lower(), (reading.flavor or "").lower()))
    told = known_name(reading.assets) if reading.assets else None
    if told is not None and told[1] != "size" and (name is None or _alike(told[0], name)):
        take_model(draft, reading.assets or "", "model.hf_assets_path", SOURCE)
    elif name is not None:
        draft.take("model", name, "model.flavor", SOURCE)
    elif reading.flavor:
        draft.ignore(
            "model",
            SOURCE,
            f"torchtitan's model {reading.family} {reading.flavor[:40]} is not in the catalog: choose one.",
            f"目录中没有 torchtitan 的模型 {reading.family} {reading.flavor[:40]}：请自行选择。",
        )


def _alike(one: str, other: str) -> bool:
    try:
        first, second = find_architecture(one), find_architecture(other)
    except ArchitectureError:
        return False
    return (first.num_layers, first.hidden_size) == (second.num_layers, second.hidden_size)


def _method(draft: Draft, reading: TorchtitanReading) -> None:
    if reading.lora is not None:
        draft.take("method", "lora", "model.converters", SOURCE)
        rank = positive(reading.lora.get("rank"))
        if rank:
            draft.take("lora.rank", rank, "lora.rank", SOURCE)
    else:
        draft.default(
            "method", "full", SOURCE, "method = full: no adapters are named.", "method = full：文件未写适配器，为全参训练。"
        )
    if reading.fp8:
        draft.take("precision", "fp8_mixed", "model.converters", SOURCE)
    elif (reading.dtype or "").lower() in ("bfloat16", "bf16"):
        draft.take("precision", "bf16_pure", "training.dtype", SOURCE)
    elif (reading.compute or "").lower() in ("float32", "fp32"):
        draft.take("precision", "fp32", "training.mixed_precision_param", SOURCE)
    elif reading.compute or reading.dtype:
        draft.take("precision", "bf16_mixed", "training.mixed_precision_param", SOURCE)
    elif reading.settings and "training" in reading.settings:
        draft.default(
            "precision",
            "bf16_mixed",
            SOURCE,
            "precision = bf16_mixed: the file does not say, and FSDP computes in bf16 then.",
            "precision = bf16_mixed：文件未写，FSDP 默认以 bf16 计算。",
        )


def _sizes(draft: Draft, reading: TorchtitanReading) -> None:
    pipeline = reading.pipeline_parallel or 1
    for key in ("tensor", "pipeline", "context", "expert"):
        value = getattr(reading, f"{key}_parallel")
        if value is not None:
            draft.take(f"parallelism.{key}", value, f"parallelism.{key}_parallel_degree", SOURCE)
    if reading.sequence_parallel is not None and (reading.tensor_parallel or 1) > 1:
        draft.take("parallelism.sequence_parallel", reading.sequence_parallel, "parallelism.enable_sequence_parallel", SOURCE)
    stages = _virtual(draft, reading)
    if stages:
        draft.take("parallelism.virtual_pipeline", stages, "parallelism.pipeline_parallel_schedule", SOURCE)
    shard, replicate = reading.shard, reading.replicate or 1
    if shard is not None and shard > 0:
        data = shard * replicate
        draft.take("parallelism.data", data, "parallelism.data_parallel_shard_degree", SOURCE)
        layout = draft.scenario["parallelism"]
        gpus = data * math.prod(layout.get(key, 1) for key in ("tensor", "pipeline", "context"))
        draft.take(
            "gpus", gpus, "parallelism.data_parallel_shard_degree", SOURCE, "product of the parallel sizes", "各并行度之积"
        )
    elif shard == -1:
        draft.ignore(
            "gpus",
            SOURCE,
            "data_parallel_shard_degree -1 is all the GPUs that are left: give gpus, or the script that starts them.",
            "data_parallel_shard_degree 为 -1，即其余全部显卡：请给出 gpus 或启动脚本。",
        )
    if shard is None and reading.replicate is None and not reading.settings:
        return
    if shard == 1 and (reading.context_parallel or 1) == 1:
        stage = 0
    else:
        word = (reading.reshard or "default").lower()
        stage = {"always": 3, "never": 2}.get(word, 3 if pipeline == 1 else 2)
    draft.take("parallelism.zero_stage", stage, "parallelism.fsdp_reshard_after_forward", SOURCE)
    if replicate > 1 and (shard or 1) != 1:
        draft.ignore(
            "parallelism",
            SOURCE,
            "Hybrid sharding keeps a copy per replica; full sharding over all GPUs is modelled instead.",
            "混合切分在每个副本组保留一份；此处按全部卡切分处理。",
        )


def _virtual(draft: Draft, reading: TorchtitanReading) -> int | None:
    """Stages of one pipeline rank: from the layers of a stage where they are given, two for interleaved schedules else."""
    pipeline = reading.pipeline_parallel or 1
    if pipeline == 1:
        return None
    model = draft.scenario.get("model")
    if reading.layers_per_stage and model is not None:
        try:
            layers = find_architecture(model).num_layers
        except ArchitectureError:
            return None
        return max(math.ceil(layers / reading.layers_per_stage / pipeline), 1)
    looped = any(
        word in (reading.schedule or "").lower() for word in ("interleaved", "looped", "zbv", "zerobubble", "dualpipe")
    )
    return 2 if looped else None


def _batch(draft: Draft, reading: TorchtitanReading) -> None:
    if reading.seq_len:
        draft.take("sequence_length", reading.seq_len, "training.seq_len", SOURCE)
    local = reading.local_batch
    pipelined = (reading.pipeline_parallel or 1) > 1
    if pipelined:
        draft.take("micro_batch_size", reading.pipeline_micro or 1, "parallelism.pipeline_parallel_microbatch_size", SOURCE)
    elif local:
        draft.take("micro_batch_size", local, "training.local_batch_size", SOURCE)
    elif reading.settings and "training" in reading.settings:
        draft.default(
            "micro_batch_size",
            DEFAULT_BATCH,
            SOURCE,
            f"micro_batch_size = {DEFAULT_BATCH}: the file does not say, and torchtitan does so then.",
            f"micro_batch_size = {DEFAULT_BATCH}：文件未写，torchtitan 的默认值如此。",
        )
    draft.used.add((SOURCE, "training"))
    if reading.global_batch:
        draft.take("global_batch_size", reading.global_batch, "training.global_batch_size", SOURCE)
    elif pipelined and local:
        draft.take(
            "gradient_accumulation_steps",
            max(local // (reading.pipeline_micro or 1), 1),
            "training.local_batch_size",
            SOURCE,
            "micro-batches of the pipeline",
            "流水线的微批数",
        )
    else:
        draft.default(
            "gradient_accumulation_steps",
            1,
            SOURCE,
            "gradient_accumulation_steps = 1: no global batch is given, and torchtitan does so then.",
            "gradient_accumulation_steps = 1：未给出全局批大小，torchtitan 的默认值如此。",
        )


def _saving(draft: Draft, reading: TorchtitanReading) -> None:
    if reading.checkpoint is False:
        return
    if reading.keep:
        draft.take("checkpoint.keep", reading.keep, "checkpoint.keep_latest_k", SOURCE)
    if reading.async_mode:
        draft.take("checkpoint.asynchronous", reading.async_mode != "disabled", "checkpoint.async_mode", SOURCE)
    if reading.save_interval and reading.checkpoint:
        draft.facts["save_steps"] = Given(reading.save_interval, "checkpoint.interval", SOURCE)
