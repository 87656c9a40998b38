"""Megatron: arguments of pretrain_gpt.py in a script, an argument file or as the log prints them, and YAML files of
Megatron-Bridge and NeMo, whose names are the same with underscores.

Sources of names and of what a silent option means: Megatron-LM megatron/training/arguments.py and
megatron/core/transformer/transformer_config.py; Megatron-Bridge src/megatron/bridge/training/config.py; ms-swift's
`megatron sft`, which takes the same options.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from advisor.evidence.documents import document, hostile
from advisor.evidence.megatron_checks import check
from advisor.evidence.megatron_model import config_of
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report
from advisor.evidence.shell import Script, machines, script
from advisor.evidence.values import Settings, as_flag, as_float, as_switch, as_word, document_problems, positive

#: Options that only Megatron has; four of them make a text one of its scripts.
OWN = (
    "tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size", "expert-model-parallel-size",
    "num-layers", "hidden-size", "ffn-hidden-size", "num-attention-heads", "seq-length", "micro-batch-size",
    "global-batch-size", "train-iters", "use-distributed-optimizer", "sequence-parallel", "recompute-granularity",
    "num-query-groups", "group-query-attention", "use-mcore-models", "transformer-impl", "lr-warmup-iters",
    "recompute-activations", "max-position-embeddings", "no-async-tensor-model-parallel-allreduce", "use-megatron-fsdp",
)  # fmt: skip
QUICK = re.compile(r"--(?:tensor[-_]model[-_]parallel[-_]size|num[-_]layers|hidden[-_]size|micro[-_]batch[-_]size)\b")
#: The list of arguments that Megatron prints when it starts.
PRINTED = re.compile(r"^[^\n]{0,80}?\b([a-z]\w{2,60}) \.{3,}[ \t]*([^\n]{1,200})$", re.MULTILINE)
SECTIONS = {"model", "train", "optimizer", "scheduler", "ddp", "dataset", "checkpoint", "logger", "tokenizer", "rng", "dist",
            "mixed_precision", "peft", "comm_overlap", "profiling", "run", "trainer", "exp_manager", "validation"}  # fmt: skip
SIZES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
STRATEGIES = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
RENAMED = {
    "encoder-seq-length": "seq-length",
    "max-length": "seq-length",
    "activations-checkpoint-granularity": "recompute-granularity",
    "max-epochs": "num-train-epochs",
    "train-type": "tuner-type",
    "max-steps": "train-iters",
}


@dataclass(frozen=True, kw_only=True)
class MegatronReading(Reading):
    """One file; None is what it does not say. Words are Megatron's own.

    form: "arguments", "printed arguments", "Megatron-Bridge" or "NeMo". model: a Hugging Face name or path. architecture: the
    sizes as a Hugging Face configuration. zero_stage: what its distributed optimizer and FSDP shard (0 nothing, 1 optimizer
    states, 2 also gradients, 3 also weights). layout: pipeline stages spelled out. steps, samples: of the whole run.
    nodes, procs_per_node: where a script says them. settings: every option by its name with dashes.
    """

    form: str
    model: str | None = None
    architecture: dict | None = None
    method: str | None = None
    lora_rank: int | None = None
    lora_dropout: float | None = None
    lora_target_modules: Any = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    virtual_pipeline: int | None = None
    context_parallel: int | None = None
    expert_parallel: int | None = None
    sequence_parallel: bool | None = None
    zero_stage: int | None = None
    seq_len: int | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    steps: int | None = None
    samples: int | None = None
    epochs: float | None = None
    precision: str | None = None
    optimizer: str | None = None
    optimizer_offload: bool | None = None
    recompute_granularity: str | None = None
    recompute_method: str | None = None
    attention: str | None = None
    fused_loss: bool | None = None
    save_interval: int | None = None
    keep: int | None = None
    async_save: bool | None = None
    nodes: int | None = None
    procs_per_node: int | None = None
    world_size: int | None = None
    settings: dict | None = None


def recognise(text: str) -> float:
    """How sure it is that `text` holds Megatron's options."""
    if QUICK.search(text):
        options = script(text).options
        known = sum(name in options for name in OWN)
        if known >= 4 or (known >= 2 and len(options) <= 4):
            return 0.93
    if len(_printed(text)) >= 20:
        return 0.8
    if any(f"{name}:" in text for name in (*SIZES, "train_iters", "hf_model")):
        found = None if hostile(text) else document(text)
        return 0.97 if found is not None and _sections(found.data) else 0.0
    return 0.0


def read(text: str) -> Report:
    """Read one file. Raises EvidenceError where it holds none of Megatron's options."""
    problems: list[Problem] = []
    found = document(text) if any(f"{name}:" in text for name in (*SIZES, "train_iters", "hf_model")) else None
    if found is not None and _sections(found.data):
        problems += document_problems(found)
        form = "NeMo" if "trainer" in found.data else "Megatron-Bridge"
        options, where = flattened(found.data), {}
        if form == "NeMo":
            nodes, devices = positive(options.get("num-nodes")), positive(options.get("devices"))
            where = {"nodes": nodes, "procs_per_node": devices, "world_size": nodes * devices if nodes and devices else None}
    else:
        form, options, where = _script(text)
    if not options:
        raise EvidenceError("The text holds none of Megatron's options.")
    options = {RENAMED.get(name, name): value for name, value in options.items()}
    values = {**_values(options, form, problems), **where}
    reading = MegatronReading(form=form, settings=options, **{name: one for name, one in values.items() if one is not None})
    truncated = found is not None and (found.cut or bool(found.skipped))
    return Report(kind="megatron", reading=reading, problems=(*problems, *check(reading)), truncated=truncated)


READER = Reader("megatron", recognise, read)


def _script(text: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    printed = _printed(text)
    if len(printed) >= 20:
        world = Settings(printed, []).whole("world-size", minimum=1)
        return "printed arguments", printed, {"nodes": None, "procs_per_node": None, "world_size": world}
    found: Script = script(text)
    if not any(name in found.options for name in OWN):
        return "arguments", {}, {}
    return "arguments", found.options, machines(found)


def _printed(text: str) -> dict[str, Any]:
    if " ......" not in text:
        return {}
    words = {"None": None, "True": True, "False": False}
    listed = {
        name.replace("_", "-"): words.get(value.strip(), value.strip()) for name, value in PRINTED.findall(text[:400_000])
    }
    return {name: value for name, value in listed.items() if value is not None and value is not False}


def _sections(data: dict[str, Any]) -> bool:
    """Whether a document is made of Megatron-Bridge's or NeMo's sections."""
    groups = {name: value for name, value in data.items() if name in SECTIONS and isinstance(value, dict)}
    inner = {name for value in groups.values() for name in value}
    return bool(groups) and (
        any(name in inner for name in SIZES) or ("train_iters" in inner and len(groups) >= 2) or "hf_model" in inner
    )


def flattened(data: dict[str, Any]) -> dict[str, Any]:
    """The options of all sections by their names with dashes; adapters keep their section's name."""
    result: dict[str, Any] = {}
    for section, group in data.items():
        if not isinstance(group, dict):
            result.setdefault(str(section).replace("_", "-"), group)
            continue
        for name, value in group.items():
            key = str(name).replace("_", "-")
            if section == "peft":
                key = f"peft.{key}"
            elif section == "optimizer" and key == "optimizer":
                result["optimizer"] = value
                continue
            elif section in ("dataset", "rng", "logger", "scheduler") and key in ("seq-length", "seed"):
                result.setdefault(key, value)
                continue
            if not isinstance(value, dict):
                result[key] = value if key not in result or section == "model" else result[key]
    if isinstance(data.get("optimizer"), str):
        result["optimizer"] = data["optimizer"]
    return result


def _on(options: dict[str, Any], *names: str) -> bool:
    return any(as_switch(options.get(name)) is True for name in names)


def _values(options: dict[str, Any], form: str, problems: list[Problem]) -> dict[str, Any]:
    read = Settings({name: value for name, value in options.items() if value is not True}, problems)
    fsdp = _on(options, "use-megatron-fsdp", "use-custom-fsdp")
    whole = {
        field: read.whole(name, minimum=1)
        for field, name in (
            ("tensor_parallel", "tensor-model-parallel-size"),
            ("pipeline_parallel", "pipeline-model-parallel-size"),
            ("context_parallel", "context-parallel-size"),
            ("expert_parallel", "expert-model-parallel-size"),
            ("seq_len", "seq-length"),
            ("micro_batch", "micro-batch-size"),
            ("global_batch", "global-batch-size"),
            ("steps", "train-iters"),
            ("samples", "train-samples"),
            ("save_interval", "save-interval"),
            ("keep", "most-recent-k"),
        )
    }
    whole = {field: value if isinstance(value, int) else None for field, value in whole.items()}
    zero = STRATEGIES.get(str(options.get("data-parallel-sharding-strategy", "no_shard"))) if fsdp else None
    told = any(name in options for name in ("use-distributed-optimizer", "use-torch-fsdp2"))
    if zero is None and (told or (form.endswith("arguments") and not _swift(options))):
        zero = 3 if _on(options, "use-torch-fsdp2") else int(_on(options, "use-distributed-optimizer"))
    return {
        **whole,
        **_adapters(options, read, form),
        "model": as_word(options.get("hf-model")) or as_word(options.get("model")) or as_word(options.get("tokenizer-model")),
        "architecture": config_of(options),
        "virtual_pipeline": virtual_stages(options, whole["pipeline_parallel"] or 1, read),
        "sequence_parallel": as_flag(options.get("sequence-parallel")),
        "zero_stage": zero,
        "epochs": as_float(options.get("num-train-epochs")),
        "precision": _precision(options, form),
        "optimizer": _optimizer(options, read),
        "optimizer_offload": as_flag(options.get("optimizer-cpu-offload")),
        "recompute_granularity": as_word(options.get("recompute-granularity"))
        or ("selective" if _on(options, "recompute-activations") else None),
        "recompute_method": as_word(options.get("recompute-method")),
        "attention": "flash" if _on(options, "use-flash-attn") else as_word(options.get("attention-backend")),
        "fused_loss": as_flag(options.get("cross-entropy-loss-fusion")),
        "async_save": as_flag(options.get("async-save")),
    }


def virtual_stages(options: dict[str, Any], pipeline: int, read: Settings) -> int | None:
    """Stages of one pipeline rank, from whichever of its four options is given."""
    direct = read.whole("num-virtual-stages-per-pipeline-rank", "virtual-pipeline-model-parallel-size", minimum=1)
    if isinstance(direct, int):
        return direct
    layers, each = read.whole("num-layers"), read.whole("num-layers-per-virtual-pipeline-stage", minimum=1)
    if isinstance(layers, int) and isinstance(each, int) and layers % (each * pipeline) == 0:
        return layers // (each * pipeline)
    layout = options.get("pipeline-model-parallel-layout")
    stages = len(layout[:4000].split("|")) if isinstance(layout, str) else 0
    return stages // pipeline if stages and stages % pipeline == 0 else None


def _adapters(options: dict[str, Any], read: Settings, form: str) -> dict[str, Any]:
    """Megatron-Bridge's section "peft", or ms-swift's options; Megatron-LM itself trains whole models."""
    rank = read.whole("peft.dim", "lora-rank", minimum=1)
    kind = str(options.get("peft", options.get("tuner-type", "")) or "").lower()
    if rank is None and kind not in ("lora", "dora"):
        return {"method": "full"}
    return {
        "method": "dora" if kind == "dora" else "lora",
        "lora_rank": rank if isinstance(rank, int) else None,
        "lora_dropout": as_float(read.number("peft.dropout", "lora-dropout")),
        "lora_target_modules": read.names("peft.target-modules", "target-modules"),
    }


def _swift(options: dict[str, Any]) -> bool:
    """Whether these are ms-swift's, which loads a Hugging Face model and has defaults of its own."""
    return "model" in options


def _precision(options: dict[str, Any], form: str) -> str | None:
    recipe = str(options.get("mixed-precision") or options.get("precision") or options.get("torch-dtype") or "").lower()
    recipe = recipe.replace("bfloat16", "bf16").replace("float16", "fp16")
    if options.get("fp8-format") or options.get("fp8") or "fp8" in recipe:
        return "fp8"
    for name in ("bf16", "fp16"):
        if _on(options, name) or name in recipe:
            return name
    # an empty recipe or an argument list without a switch is fp32; a silent YAML is whatever its recipe has
    silent = form.endswith("arguments") and not _swift(options)
    return "fp32" if silent or options.get("mixed-precision") == "" or "32" in recipe else None


def _optimizer(options: dict[str, Any], read: Settings) -> str | None:
    name = as_word(options.get("optimizer"))
    momentum = read.number("sgd-momentum")
    return "sgd_momentum" if name == "sgd" and momentum != 0 else name
