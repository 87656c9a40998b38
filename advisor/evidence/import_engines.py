"""Megatron's, torchtitan's and a kit's own job file turned into scenario keys."""

from __future__ import annotations

import math
from typing import Any

from advisor.architecture import ArchitectureError, find_architecture
from advisor.evidence.import_draft import Draft, Given
from advisor.evidence.import_model import known_name, take_model
from advisor.evidence.import_training import named_targets, optimizer_of
from advisor.evidence.job_file import JobFileReading
from advisor.evidence.megatron import MegatronReading
from advisor.evidence.megatron_model import same_sizes
from advisor.evidence.values import as_number, as_switch, positive

PRECISIONS = {"bf16": "bf16_mixed", "fp16": "fp16_mixed", "fp8": "fp8_mixed", "fp32": "fp32"}
#: Megatron's fused modules as Hugging Face names theirs.
MODULES = {
    "linear_qkv": ("q_proj", "k_proj", "v_proj"),
    "linear_q": ("q_proj",),
    "linear_k": ("k_proj",),
    "linear_v": ("v_proj",),
    "linear_proj": ("o_proj",),
    "linear_fc1": ("gate_proj", "up_proj"),
    "linear_fc2": ("down_proj",),
}
ATTENTION = {"flash": "flash", "fused": "sdpa", "unfused": "eager", "local": "eager"}
#: Options that together are the model's sizes.
MODEL_OPTIONS = (
    "num-layers", "hidden-size", "ffn-hidden-size", "num-attention-heads", "kv-channels", "num-query-groups", "vocab-size",
    "group-query-attention", "max-position-embeddings", "position-embedding-type", "normalization", "swiglu", "qk-layernorm",
    "untie-embeddings-and-output-weights", "disable-bias-linear", "add-qkv-bias", "num-experts", "moe-router-topk",
    "moe-ffn-hidden-size", "moe-shared-expert-intermediate-size", "moe-layer-freq", "multi-latent-attention", "kv-lora-rank",
    "q-lora-rank", "qk-head-dim", "qk-pos-emb-head-dim", "v-head-dim", "rotary-base", "tokenizer-model", "tokenizer-type",
)  # fmt: skip


def source_of(reading: MegatronReading) -> str:
    """What the file is called in a sentence."""
    return reading.form if reading.form in ("Megatron-Bridge", "NeMo") else "Megatron-LM"


def take_megatron(draft: Draft, reading: MegatronReading) -> None:
    """Everything that Megatron's options say."""
    source = source_of(reading)
    draft.take("framework", "megatron", "tensor-model-parallel-size", source)
    _megatron_model(draft, reading, source)
    _adapters(draft, reading, source)
    given = (
        ("sequence_length", reading.seq_len, "seq-length"),
        ("micro_batch_size", reading.micro_batch, "micro-batch-size"),
        ("global_batch_size", reading.global_batch, "global-batch-size"),
        ("parallelism.tensor", reading.tensor_parallel, "tensor-model-parallel-size"),
        ("parallelism.pipeline", reading.pipeline_parallel, "pipeline-model-parallel-size"),
        ("parallelism.context", reading.context_parallel, "context-parallel-size"),
        ("parallelism.expert", reading.expert_parallel, "expert-model-parallel-size"),
        ("checkpoint.keep", reading.keep, "most-recent-k"),
        ("checkpoint.asynchronous", reading.async_save, "async-save"),
        ("fused_loss", reading.fused_loss, "cross-entropy-loss-fusion"),
        ("precision", PRECISIONS.get(reading.precision or ""), _precision_key(reading)),
        ("attention", ATTENTION.get(reading.attention or ""), "attention-backend"),
    )
    draft.take_given(given, source)
    if (reading.virtual_pipeline or 1) > 1 and (reading.pipeline_parallel or 1) > 1:
        draft.take("parallelism.virtual_pipeline", reading.virtual_pipeline, _stages_key(reading), source)
    if (reading.tensor_parallel or 1) > 1:
        draft.take("parallelism.sequence_parallel", bool(reading.sequence_parallel), "sequence-parallel", source)
    if reading.zero_stage is not None:
        where = "data-parallel-sharding-strategy" if reading.zero_stage > 1 else "use-distributed-optimizer"
        draft.take("parallelism.zero_stage", reading.zero_stage, where, source)
        draft.used |= {(source, name) for name in ("use-distributed-optimizer", "use-megatron-fsdp")}
    if reading.optimizer:
        value = reading.optimizer if reading.optimizer == "sgd_momentum" else optimizer_of(reading.optimizer)
        if value:
            draft.take("optimizer", value, "optimizer", source)
    _memory(draft, reading, source)
    _length(draft, reading, source)
    if reading.world_size:
        draft.take("gpus", reading.world_size, "nproc-per-node", source, "processes of all nodes", "所有节点的进程数")
        if (reading.nodes or 1) > 1 and reading.procs_per_node:
            draft.take("gpus_per_node", reading.procs_per_node, "nproc-per-node", source)


def _megatron_model(draft: Draft, reading: MegatronReading, source: str) -> None:
    """By name where the sizes agree with it, by the sizes where the name is a path or another model's tokenizer."""
    settings, config = reading.settings or {}, reading.architecture
    where = next((key for key in ("hf-model", "model", "tokenizer-model") if key in settings), "tokenizer-model")
    draft.used |= {(source, name) for name in MODEL_OPTIONS}
    named = known_name(reading.model)[0] if reading.model and known_name(reading.model) else None
    if config is None:
        if reading.model:
            take_model(draft, reading.model, where, source)
        return
    if "model" in draft.scenario:
        return
    alike = same_sizes(config)
    if named is not None and _name_of(named) in alike:
        draft.take("model", named, where, source, "the sizes agree", "尺寸一致")
    elif alike:
        others = "" if len(alike) == 1 else f"; {', '.join(alike[1:4])} has the same"
        others_zh = "" if len(alike) == 1 else f"；{'、'.join(alike[1:4])} 尺寸相同"
        draft.take("model", alike[0], "num-layers", source, f"by its sizes{others}", f"由各层尺寸识别{others_zh}")
    elif "vocab_size" in config:
        draft.take("model", config, "num-layers", source, "no model of the catalog has these sizes", "目录中没有相同尺寸的模型")
    else:
        draft.ignore(
            "model",
            source,
            "No model of the catalog has these sizes, and without vocab-size they describe no whole model.",
            "目录中没有这些尺寸的模型，且缺少 vocab-size，无法完整描述模型。",
        )


def _name_of(model: str) -> str:
    try:
        return find_architecture(model).name
    except ArchitectureError:
        return ""


def _adapters(draft: Draft, reading: MegatronReading, source: str) -> None:
    settings = reading.settings or {}
    if reading.method is None:
        return
    where = next((name for name in ("peft", "tuner-type", "peft.dim", "lora-rank") if name in settings), "")
    if not where:
        draft.default(
            "method", "full", source, "method = full: no adapters are named.", "method = full：文件未写适配器，为全参训练。"
        )
        return
    draft.take("method", reading.method, where, source)
    if reading.method == "full":
        return
    rank_key = "lora-rank" if "lora-rank" in settings else "peft.dim"
    if reading.lora_rank:
        draft.take("lora.rank", reading.lora_rank, rank_key, source)
    if reading.lora_dropout is not None:
        draft.take("lora.dropout", float(reading.lora_dropout), rank_key.replace("rank", "dropout"), source)
    given = reading.lora_target_modules
    names = given if isinstance(given, list) else str(given or "").replace(",", " ").split()
    plain = [one for name in names for one in MODULES.get(str(name).rsplit(".", 1)[-1], (str(name),))]
    targets = named_targets(plain)
    if targets is not None:
        draft.take("lora.targets", targets, "peft.target_modules", source)


def _precision_key(reading: MegatronReading) -> str:
    settings = reading.settings or {}
    return next(
        (key for key in ("fp8-format", "fp8", "mixed-precision", "bf16", "fp16", "precision") if key in settings), "bf16"
    )


def _stages_key(reading: MegatronReading) -> str:
    settings = reading.settings or {}
    keys = (
        "num-virtual-stages-per-pipeline-rank",
        "virtual-pipeline-model-parallel-size",
        "num-layers-per-virtual-pipeline-stage",
    )
    return next((key for key in keys if key in settings), "pipeline-model-parallel-layout")


def _memory(draft: Draft, reading: MegatronReading, source: str) -> None:
    """Recomputation and offload, which Megatron does only where it is told to."""
    word = reading.recompute_granularity
    if word in ("full", "selective"):
        draft.take("activation_recomputation", word, "recompute-granularity", source)
        draft.used |= {(source, name) for name in ("recompute-method", "recompute-num-layers")}
        if word == "full" and (reading.recompute_method == "block"):
            draft.ignore(
                "activation_recomputation",
                source,
                "recompute-method block recomputes some layers of a stage; the plan counts with all of them.",
                "recompute-method block 只重算一个阶段中的部分层；方案按全部重算计。",
            )
    else:
        draft.default(
            "activation_recomputation",
            "none",
            source,
            f"activation_recomputation = none: the file does not say, and {source} recomputes nothing then.",
            f"activation_recomputation = none：文件未写，{source} 默认不重算。",
        )
    if reading.optimizer_offload is True:
        draft.take("offload", "optimizer", "optimizer-cpu-offload", source)
        fraction = as_number((reading.settings or {}).get("optimizer-offload-fraction"))
        if isinstance(fraction, (int, float)) and fraction < 1:
            draft.ignore(
                "offload",
                source,
                f"optimizer-offload-fraction {fraction}: the plan counts with all optimizer states in host memory.",
                f"optimizer-offload-fraction {fraction}：方案按全部优化器状态卸载计。",
            )
    else:
        draft.default(
            "offload",
            "none",
            source,
            f"offload = none: the file does not say, and {source} offloads nothing then.",
            f"offload = none：文件未写，{source} 默认不卸载。",
        )


def _length(draft: Draft, reading: MegatronReading, source: str) -> None:
    if reading.steps:
        draft.facts["steps"] = Given(reading.steps, "train-iters", source)
    elif reading.samples and reading.seq_len:
        draft.take(
            "tokens",
            f"{reading.samples * reading.seq_len} token",
            "train-samples",
            source,
            "samples x length",
            "样本数 × 长度",
        )
    elif reading.epochs and reading.epochs > 0:
        draft.take("epochs", float(reading.epochs), "num-train-epochs", source)
    if reading.save_interval:
        draft.facts["save_steps"] = Given(reading.save_interval, "save-interval", source)


def take_job(draft: Draft, reading: JobFileReading, deepspeed: bool) -> None:
    """Everything that a kit's job file says. deepspeed: whether a DeepSpeed file says what is offloaded."""
    source = "job.json"
    if reading.model and reading.model != "./model":
        take_model(draft, reading.model, "model", source)
    adapter, quantization = reading.adapter, reading.quantization
    method = "full"
    if adapter is not None:
        method = "qlora" if quantization else "dora" if as_switch(adapter.get("use_dora")) is True else "lora"
    draft.take("method", method, "adapter", source)
    if adapter is not None:
        _peft(draft, reading, adapter, source)
    if quantization and adapter is not None:
        eight = as_switch(quantization.get("load_in_8bit")) is True
        kind = "int8" if eight else "fp4" if quantization.get("bnb_4bit_quant_type") == "fp4" else "nf4"
        draft.take("quantization.format", kind, "quantization", source)
        double = as_switch(quantization.get("bnb_4bit_use_double_quant"))
        if not eight and isinstance(double, bool):
            draft.take("quantization.double_quantization", double, "quantization.bnb_4bit_use_double_quant", source)
    word = (reading.attention or "").lower()
    offload = {True: "optimizer_and_parameters", False: None if deepspeed else "none", None: None}[reading.offload]
    given = (
        ("precision", _job_precision(reading), "compute"),
        ("optimizer", reading.optimizer, "optimizer"),
        ("attention", "flash" if "flash" in word else word or None, "attention"),
        ("compile", reading.compile, "compile"),
        ("activation_recomputation", {True: "full", False: "none", None: None}[reading.recompute], "recompute"),
        ("offload", offload, "offload"),
        ("sequence_length", reading.seq_len, "sequence_length"),
        ("micro_batch_size", reading.micro_batch, "micro_batch_size"),
        ("gradient_accumulation_steps", reading.grad_accum, "gradient_accumulation_steps"),
        ("global_batch_size", reading.global_batch, "global_batch_size"),
        ("gpus", reading.gpus, "gpus"),
        ("parallelism.zero_stage", reading.zero_stage, "zero_stage"),
        ("checkpoint.keep", reading.keep, "keep"),
    )
    draft.take_given(given, source)
    draft.used |= {(source, name) for name in ("weights", "gradients", "adapter_dtype", "steps", "save_steps", "name")}
    if reading.steps:
        draft.facts["steps"] = Given(reading.steps, "steps", source)
    if reading.save_steps:
        draft.facts["save_steps"] = Given(reading.save_steps, "save_steps", source)


def take_job_framework(draft: Draft, reading: JobFileReading) -> None:
    """What a job file runs under where no other file says so: plain PyTorch, with FSDP where it shards."""
    if "framework" not in draft.scenario:
        sharded = (reading.zero_stage or 0) > 0 and (reading.gpus or 1) > 1
        draft.take("framework", "fsdp" if sharded else "transformers", "zero_stage", "job.json")


def _peft(draft: Draft, reading: JobFileReading, adapter: dict[str, Any], source: str) -> None:
    rank, dropout = positive(adapter.get("r")), as_number(adapter.get("lora_dropout"))
    if rank:
        draft.take("lora.rank", rank, "adapter.r", source)
    modules = adapter.get("target_modules")
    targets = named_targets(modules if isinstance(modules, list) else str(modules or "").split(","))
    if targets is not None:
        draft.take("lora.targets", targets, "adapter.target_modules", source)
    if isinstance(dropout, (int, float)) and math.isfinite(dropout):
        draft.take("lora.dropout", float(dropout), "adapter.lora_dropout", source)
    if reading.adapter_dtype in ("fp32", "bf16"):
        draft.take("lora.dtype", reading.adapter_dtype, "adapter_dtype", source)


def _job_precision(reading: JobFileReading) -> str | None:
    if reading.compute in ("fp32", "fp16"):
        return PRECISIONS[reading.compute]
    if reading.compute != "bf16":
        return None
    if reading.gradients == "bf16":
        return "bf16_pure"
    sharded = (reading.zero_stage or 0) > 0 and (reading.gpus or 1) > 1
    return "fp32_autocast" if reading.weights == "fp32" and not sharded else "bf16_mixed"
