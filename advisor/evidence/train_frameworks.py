"""The words of each training framework, read into the fields of `TrainYamlReading`.

Sources of meanings: LLaMA-Factory src/llamafactory/hparams/*.py; axolotl src/axolotl/utils/schemas/*.py; torchtune
recipes/configs; accelerate `config_args.py`; transformers TrainingArguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from advisor.evidence.documents import Document
from advisor.evidence.report import Problem
from advisor.evidence.values import Settings, as_flag, as_group, as_integer, as_number, as_switch, as_word

LLAMA_FACTORY = (
    "finetuning_type",
    "cutoff_len",
    "dataset_dir",
    "template",
    "lora_target",
    "quantization_bit",
    "stage",
    "do_train",
)
AXOLOTL = (
    "base_model",
    "sequence_len",
    "adapter",
    "dataset_prepared_path",
    "lora_r",
    "sample_packing",
    "lora_target_linear",
    "val_set_size",
    "num_epochs",
    "micro_batch_size",
)
ACCELERATE = (
    "distributed_type",
    "compute_environment",
    "num_processes",
    "machine_rank",
    "downcast_bf16",
    "rdzv_backend",
    "num_machines",
)
TRAINER = (
    "per_device_train_batch_size",
    "model_name_or_path",
    "num_train_epochs",
    "max_seq_length",
    "gradient_accumulation_steps",
    "learning_rate",
    "gradient_checkpointing",
    "bf16",
    "output_dir",
    "save_steps",
    "optim",
)
FSDP = (
    "fsdp_sharding_strategy",
    "fsdp_auto_wrap_policy",
    "fsdp_transformer_layer_cls_to_wrap",
    "fsdp_offload_params",
    "fsdp_version",
)
COMMENT = re.compile(r"^[ \t]*#.*?--nproc[-_]per[-_]node[= ](\d{1,4})\b", re.MULTILINE)
MEGATRON = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "expert_model_parallel_size",
    "virtual_pipeline_model_parallel_size",
)


def framework_of(data: dict[str, Any]) -> tuple[str, float]:
    """The framework whose keys these are, and how sure that is."""
    count = {name: sum(key in data for key in keys) for name, keys in _KEYS.items()}
    components = any(isinstance(value, dict) and "_component_" in value for value in data.values())
    if components or ("batch_size" in data and "enable_activation_checkpointing" in data):
        return "torchtune", 0.96
    if "base_model" in data and count["axolotl"] >= 2:
        return "axolotl", 0.96
    if "distributed_type" in data or "compute_environment" in data or (count["accelerate"] >= 3 and count["transformers"] < 3):
        return "accelerate", 0.96
    if ("finetuning_type" in data or "cutoff_len" in data) or (count["LLaMA-Factory"] >= 3):
        return "LLaMA-Factory", 0.96
    if count["axolotl"] >= 3:
        return "axolotl", 0.9
    if sum(key in data for key in FSDP) >= 2:
        return "accelerate", 0.85
    if count["transformers"] >= 2:
        return "transformers", 0.8
    best = max(count, key=lambda name: count[name])
    return (best, 0.55) if count[best] >= 1 and len(data) >= 2 else ("", 0.0)


_KEYS = {"LLaMA-Factory": LLAMA_FACTORY, "axolotl": AXOLOTL, "accelerate": ACCELERATE, "transformers": TRAINER}


def _llama_factory(found: Document, problems: list[Problem]) -> dict[str, Any]:
    data, read = found.data, Settings(found.data, problems)
    tuning = read.word("finetuning_type")
    bits = read.whole("quantization_bit")
    lora = tuning == "lora" or (tuning is None and any(key.startswith("lora_") for key in data))
    method = ("qlora" if bits is not None else "lora") if lora else tuning
    off = read.switch("disable_gradient_checkpointing")
    liger = read.switch("enable_liger_kernel")
    return {
        **_trainer_arguments(read),
        "model": read.word("model_name_or_path"),
        "stage": read.word("stage"),
        "method": method,
        "dora": read.switch("use_dora"),
        "lora_rank": read.whole("lora_rank", minimum=1),
        "lora_alpha": read.number("lora_alpha"),
        "lora_dropout": read.number("lora_dropout"),
        "lora_target": read.names("lora_target"),
        "quantization_bit": bits,
        "quantization_method": read.word("quantization_method"),
        "double_quantization": read.switch("double_quantization"),
        "freeze_vision_tower": read.switch("freeze_vision_tower"),
        "image_max_pixels": read.whole("image_max_pixels", "image_resolution"),
        "video_max_pixels": read.whole("video_max_pixels"),
        "seq_len": read.whole("cutoff_len", minimum=1),
        "packing": read.switch("packing", "neat_packing"),
        "precision": "pure_bf16" if read.switch("pure_bf16") else _precision(read),
        "attn_implementation": read.word("flash_attn"),
        "gradient_checkpointing": None if off is None else not off,
        "activation_offloading": read.switch("use_unsloth_gc"),
        "fused_loss": liger,
        "max_samples": read.whole("max_samples"),
        "tensor_model_parallel_size": read.whole("tensor_model_parallel_size", minimum=1),
        "pipeline_model_parallel_size": read.whole("pipeline_model_parallel_size", minimum=1),
        "expert_model_parallel_size": read.whole("expert_model_parallel_size", minimum=1),
        "virtual_pipeline_model_parallel_size": read.whole("virtual_pipeline_model_parallel_size", minimum=1),
        "context_parallel_size": read.whole("context_parallel_size", minimum=1),
        "sequence_parallel": read.switch("sequence_parallel"),
        "use_distributed_optimizer": read.switch("use_distributed_optimizer"),
        "recompute_granularity": read.word("recompute_granularity"),
    }


def _precision(read: Settings) -> str | None:
    if as_switch(read.data.get("fp8")) is True:
        return "fp8"
    for name, keys in (("bf16", ("bf16", "bfloat16")), ("fp16", ("fp16", "float16"))):
        values = [read.data.get(key) for key in keys]
        if any(as_switch(value) in (True, "auto") or value == "full" for value in values):
            return name
    both = [as_switch(read.data.get(key)) for key in ("bf16", "fp16")]
    return "fp32" if False in both and True not in both else None


def _trainer_arguments(read: Settings) -> dict[str, Any]:
    """What transformers' own arguments say, wherever they are used."""
    return {
        "micro_batch": read.whole("per_device_train_batch_size", minimum=1),
        "grad_accum": read.whole("gradient_accumulation_steps", minimum=1),
        "learning_rate": read.number("learning_rate"),
        "optimizer": read.word("optim", "optimizer"),
        "compile": read.switch("torch_compile"),
        "deepspeed": as_group(read.data.get("deepspeed")) or read.word("deepspeed"),
        "fsdp": read.names("fsdp"),
        "fsdp_config": as_group(read.data.get("fsdp_config")),
        "epochs": read.number("num_train_epochs"),
        "max_steps": read.whole("max_steps", minimum=-1),
        "save_steps": read.number("save_steps"),
        "save_total_limit": read.whole("save_total_limit"),
        "save_only_model": read.switch("save_only_model"),
        "ddp_timeout": read.whole("ddp_timeout"),
    }


def _transformers(found: Document, problems: list[Problem]) -> dict[str, Any]:
    read = Settings(found.data, problems)
    four, eight = read.switch("load_in_4bit"), read.switch("load_in_8bit")
    lora = read.switch("use_peft", "use_lora") or any(key in found.data for key in ("lora_r", "lora_rank"))
    return {
        **_trainer_arguments(read),
        "model": read.word("model_name_or_path", "model", "model_id", "model_name"),
        "method": ("qlora" if four or eight else "lora") if lora else None,
        "lora_rank": read.whole("lora_r", "lora_rank", minimum=1),
        "lora_alpha": read.number("lora_alpha"),
        "lora_dropout": read.number("lora_dropout"),
        "lora_target": read.names("lora_target_modules", "target_modules"),
        "load_in_4bit": four,
        "load_in_8bit": eight,
        "seq_len": read.whole("max_seq_length", "max_length", "max_seq_len", "model_max_length", "block_size", minimum=1),
        "packing": read.switch("packing"),
        "precision": _precision(read),
        "attn_implementation": read.word("attn_implementation"),
        "gradient_checkpointing": read.switch("gradient_checkpointing"),
        "fused_loss": read.switch("use_liger_kernel", "use_liger"),
    }


def _axolotl(found: Document, problems: list[Problem]) -> dict[str, Any]:
    data, read = found.data, Settings(found.data, problems)
    checkpointing = data.get("gradient_checkpointing")
    if as_switch(checkpointing) is None and checkpointing is not None:
        checkpointing = as_word(checkpointing)  # "offload", "offload_disk", "unsloth"
    else:
        checkpointing = as_switch(checkpointing)
    plugins = " ".join(map(str, data.get("plugins") or ())) if isinstance(data.get("plugins"), list) else ""
    cut = "CutCrossEntropy" in plugins or read.switch("cut_cross_entropy", "unsloth_cross_entropy_loss") is True
    liger = read.switch("liger_fused_linear_cross_entropy") is True
    amp = as_switch(data.get("bf16")) in (True, "auto")
    attention = next(
        (
            name
            for name in ("flash_attention", "sdp_attention", "xformers_attention", "flex_attention", "eager_attention")
            if data.get(name)
        ),
        None,
    )
    return {
        "model": read.word("base_model"),
        "stage": read.word("rl"),
        "method": read.word("adapter") or (None if found.cut else "full"),
        "dora": read.switch("peft_use_dora"),
        "load_in_4bit": read.switch("load_in_4bit"),
        "load_in_8bit": read.switch("load_in_8bit"),
        "lora_rank": read.whole("lora_r", minimum=1),
        "lora_alpha": read.number("lora_alpha"),
        "lora_dropout": read.number("lora_dropout"),
        "lora_target_linear": read.switch("lora_target_linear"),
        "lora_target_modules": read.names("lora_target_modules"),
        "seq_len": read.whole("sequence_len", minimum=1),
        "sample_packing": read.switch("sample_packing"),
        "micro_batch": read.whole("micro_batch_size", minimum=1),
        "grad_accum": read.whole("gradient_accumulation_steps", minimum=1),
        "global_batch": read.whole("batch_size", minimum=1),
        "optimizer": read.word("optimizer"),
        "learning_rate": read.number("learning_rate"),
        # bfloat16 is bf16 without automatic mixed precision
        "precision": "pure_bf16" if as_switch(data.get("bfloat16")) is True and not amp else _precision(read),
        "attn_implementation": read.word("attn_implementation") or (attention if attention != "flash_attention" else None),
        "flash_attention": read.switch("flash_attention"),
        "gradient_checkpointing": checkpointing,
        "activation_offloading": as_switch(data.get("activation_offloading")) or as_word(data.get("activation_offloading")),
        "compile": read.switch("torch_compile") if as_switch(data.get("torch_compile")) != "auto" else None,
        "fused_loss": True if cut or liger else None,
        "deepspeed": as_group(data.get("deepspeed")) or read.word("deepspeed"),
        "fsdp": read.names("fsdp"),
        "fsdp_config": as_group(data.get("fsdp_config")),
        "fsdp_version": read.whole("fsdp_version"),
        "dp_shard_size": read.whole("dp_shard_size", minimum=1),
        "dp_replicate_size": read.whole("dp_replicate_size", minimum=1),
        "tensor_parallel_size": read.whole("tensor_parallel_size", minimum=1),
        "context_parallel_size": read.whole("context_parallel_size", minimum=1),
        "expert_parallel_size": read.whole("expert_parallel_size", minimum=1),
        "sequence_parallel_degree": read.whole("sequence_parallel_degree", minimum=1),
        "epochs": read.number("num_epochs"),
        "max_steps": read.whole("max_steps", minimum=-1),
        "save_steps": read.number("save_steps"),
        "saves_per_epoch": read.number("saves_per_epoch"),
        "save_total_limit": read.whole("save_total_limit"),
        "save_only_model": read.switch("save_only_model"),
        "ddp_timeout": read.whole("ddp_timeout"),
    }


def _component(data: dict[str, Any], key: str) -> str | None:
    value = data.get(key)
    return as_word(value.get("_component_")) if isinstance(value, dict) else as_word(value)


def _torchtune(found: Document, problems: list[Problem]) -> dict[str, Any]:
    data, read = found.data, Settings(found.data, problems)
    model = as_group(data.get("model")) or {}
    builder = _component(data, "model")
    name = (builder or "").rsplit(".", 1)[-1]
    adapted = name.startswith("lora_") or "lora_rank" in model
    quantized = name.startswith("qlora_") or as_switch(model.get("quantize_base")) is True
    model_read = Settings(model, problems)
    fsdp = as_group(data.get("fsdp")) or {}
    command = COMMENT.search(found.text)
    checkpointer = as_group(data.get("checkpointer")) or {}
    tokenizer = as_group(data.get("tokenizer")) or {}
    dataset = as_group(data.get("dataset")) or {}
    return {
        "model_builder": builder,
        "checkpoint_dir": as_word(checkpointer.get("checkpoint_dir")),
        "method": "qlora" if quantized else "lora" if adapted else "full" if builder else None,
        "dora": model_read.switch("use_dora"),
        "lora_rank": model_read.whole("lora_rank", minimum=1),
        "lora_alpha": model_read.number("lora_alpha"),
        "lora_dropout": model_read.number("lora_dropout"),
        "lora_attn_modules": model_read.names("lora_attn_modules"),
        "apply_lora_to_mlp": model_read.switch("apply_lora_to_mlp"),
        "seq_len": as_integer(tokenizer.get("max_seq_len")) or as_integer(model.get("max_seq_len")),
        "packing": as_switch(dataset.get("packed")),
        "micro_batch": read.whole("batch_size", minimum=1),
        "grad_accum": read.whole("gradient_accumulation_steps", minimum=1),
        "optimizer": _component(data, "optimizer"),
        "optimizer_in_bwd": read.switch("optimizer_in_bwd"),
        "learning_rate": as_number((as_group(data.get("optimizer")) or {}).get("lr")),
        "precision": read.word("dtype"),
        "activation_checkpointing": read.switch("enable_activation_checkpointing"),
        "activation_offloading": read.switch("enable_activation_offloading"),
        "compile": data["compile"] if isinstance(data.get("compile"), bool) else None,
        "loss": _component(data, "loss"),
        "fsdp_reshard": as_flag(data.get("fsdp_reshard_after_forward")),
        "fsdp_cpu_offload": as_switch(fsdp.get("cpu_offload", data.get("fsdp_cpu_offload"))),
        "tensor_parallel_size": read.whole("tensor_parallel_dim", minimum=1),
        "context_parallel_size": read.whole("context_parallel_dim", minimum=1),
        "dp_shard_size": read.whole("data_parallel_shard_dim", minimum=-1),
        "dp_replicate_size": read.whole("data_parallel_replicate_dim", minimum=1),
        "epochs": read.number("epochs"),
        "max_steps": read.whole("max_steps_per_epoch"),
        "nproc_per_node_in_comment": int(command.group(1)) if command else None,
    }


def _accelerate(found: Document, problems: list[Problem]) -> dict[str, Any]:
    data, read = found.data, Settings(found.data, problems)
    mixed = read.word("mixed_precision")
    if data.get("mixed_precision") is False:  # YAML reads an unquoted no as false
        mixed = "no"
    deepspeed = as_group(data.get("deepspeed_config"))
    fsdp = as_group(data.get("fsdp_config"))
    if fsdp is None and sum(key in data for key in FSDP) >= 2:
        fsdp = {key: value for key, value in data.items() if key.startswith("fsdp_")}
    parallel = as_group(data.get("parallelism_config")) or {}
    parallel_read = Settings(parallel, problems)
    kind = data.get("distributed_type")
    return {
        "distributed_type": "NO" if kind is False else as_word(kind),
        "mixed_precision": mixed,
        "precision": mixed,
        "num_machines": read.whole("num_machines", minimum=1),
        "num_processes": read.whole("num_processes", minimum=1),
        "machine_rank": read.whole("machine_rank"),
        "main_process_ip": read.word("main_process_ip"),
        "main_process_port": read.whole("main_process_port"),
        "deepspeed": deepspeed,
        "deepspeed_config": deepspeed,
        "zero_stage": as_integer((deepspeed or {}).get("zero_stage")),
        "grad_accum": as_integer((deepspeed or {}).get("gradient_accumulation_steps", data.get("gradient_accumulation_steps"))),
        "fsdp": fsdp,
        "fsdp_config": fsdp,
        "fsdp_version": as_integer((fsdp or {}).get("fsdp_version")),
        "compile": True if as_group(data.get("dynamo_config")) and "no" not in str(data["dynamo_config"]).lower() else None,
        "dp_shard_size": parallel_read.whole("parallelism_config_dp_shard_size", minimum=1),
        "dp_replicate_size": parallel_read.whole("parallelism_config_dp_replicate_size", minimum=1),
        "tensor_parallel_size": parallel_read.whole("parallelism_config_tp_size", minimum=1),
        "context_parallel_size": parallel_read.whole("parallelism_config_cp_size", minimum=1),
    }


FRAMEWORKS: dict[str, Callable[[Document, list[Problem]], dict[str, Any]]] = {
    "LLaMA-Factory": _llama_factory,
    "axolotl": _axolotl,
    "torchtune": _torchtune,
    "accelerate": _accelerate,
    "transformers": _transformers,
}
