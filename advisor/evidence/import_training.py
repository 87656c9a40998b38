"""How a model is trained, from a training file: method, adapters, quantization, precision, optimizer, batch, "
"recomputation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from advisor.evidence.deepspeed import DeepSpeedReading
from advisor.evidence.import_draft import Draft, Given
from advisor.evidence.train_yaml import TrainYamlReading
from advisor.evidence.values import as_number, as_switch, positive

#: Where each field of a reading may stand in a file; the first that is there is named in the sentence.
KEYS = {
    "method": ("finetuning_type", "adapter", "use_peft", "use_lora", "model", "lora_r", "base_model"),
    "lora_rank": ("lora_rank", "lora_r", "model"),
    "lora_dropout": ("lora_dropout", "model"),
    "targets": ("lora_target", "lora_target_linear", "lora_target_modules", "target_modules", "model"),
    "quantization": ("quantization_bit", "load_in_4bit", "load_in_8bit", "model"),
    "seq_len": (
        "cutoff_len",
        "sequence_len",
        "max_seq_length",
        "max_length",
        "max_seq_len",
        "model_max_length",
        "tokenizer",
        "model",
    ),
    "micro_batch": ("per_device_train_batch_size", "micro_batch_size", "batch_size"),
    "grad_accum": ("gradient_accumulation_steps", "deepspeed_config"),
    "optimizer": ("optim", "optimizer"),
    "precision": ("pure_bf16", "bf16", "bfloat16", "fp16", "float16", "fp8", "dtype", "mixed_precision"),
    "attention": ("flash_attn", "attn_implementation", "flash_attention", "sdp_attention", "eager_attention"),
    "epochs": ("num_train_epochs", "num_epochs", "epochs"),
    "recompute": (
        "recompute_granularity",
        "gradient_checkpointing",
        "disable_gradient_checkpointing",
        "enable_activation_checkpointing",
    ),
    "offloading": ("activation_offloading", "enable_activation_offloading", "use_unsloth_gc", "gradient_checkpointing"),
    "compile": ("torch_compile", "compile", "dynamo_config"),
    "fused": ("enable_liger_kernel", "use_liger_kernel", "use_liger", "liger_fused_linear_cross_entropy", "plugins", "loss"),
}
ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj"}
LINEAR = ATTENTION | {"gate_proj", "up_proj", "down_proj"}
#: What frameworks do where their file is silent (field of the scenario: value).
FRAMEWORK_DEFAULTS = {
    "LLaMA-Factory": {
        "method": "lora",
        "sequence_length": 2048,
        "micro_batch_size": 8,
        "gradient_accumulation_steps": 1,
        "epochs": 3.0,
        "activation_recomputation": "full",
    },
    "transformers": {
        "micro_batch_size": 8,
        "gradient_accumulation_steps": 1,
        "epochs": 3.0,
        "activation_recomputation": "none",
    },
    "axolotl": {"micro_batch_size": 1, "gradient_accumulation_steps": 1, "activation_recomputation": "none"},
}
LORA_RANK = {"LLaMA-Factory": 8}


def where_of(reading: TrainYamlReading, field: str) -> str:
    """The file's own key of a field, for the sentence."""
    settings = reading.settings or {}
    key = next((key for key in KEYS[field] if settings.get(key) is not None), KEYS[field][0])
    inner = {"lora_rank": "lora_rank", "lora_dropout": "lora_dropout", "targets": "lora_attn_modules"}.get(field)
    return f"model.{inner}" if key == "model" and inner else "tokenizer.max_seq_len" if key == "tokenizer" else key


def take_training(draft: Draft, reading: TrainYamlReading, deepspeed: DeepSpeedReading | None, sharded: str | None) -> None:
    """Everything about the training itself. sharded: "deepspeed", "fsdp", "megatron" or None."""
    source = reading.framework
    _method(draft, reading, source)
    _precision(draft, reading, source, sharded)
    _optimizer(draft, reading, deepspeed, source)
    _batch(draft, reading, source)
    _activations(draft, reading, source)
    if (reading.settings or {}) and reading.framework in FRAMEWORK_DEFAULTS:
        for key, value in FRAMEWORK_DEFAULTS[reading.framework].items():
            if key == "epochs" and "steps" in draft.facts:
                continue
            draft.default(
                key,
                value,
                source,
                f"{key} = {value}: the file does not say, and {source} does so then.",
                f"{key} = {value}：文件未写，{source} 的默认值如此。",
            )


def _method(draft: Draft, reading: TrainYamlReading, source: str) -> None:
    method = reading.method
    where = where_of(reading, "method")
    bits = 4 if reading.load_in_4bit else 8 if reading.load_in_8bit else reading.quantization_bit
    if method is None:
        return
    if method in ("freeze", "oft", "llama-adapter"):
        draft.ignore(
            "method",
            source,
            f"{where}: {method} is not modelled; training all parameters is an upper bound of its memory.",
            f"{where}：{method} 未建模；全参训练是其显存的上限。",
        )
        method = "full"
    if method == "lora" and reading.dora:
        method = "dora"
    quantized = isinstance(bits, int) or method == "qlora"
    if quantized and method in ("lora", "dora"):
        method = "qlora"
    if method not in ("full", "lora", "qlora", "dora"):
        draft.ignore("method", source, f"{where}: {method!r} is not a method known here.", f"{where}：未知的方法 {method!r}。")
        return
    draft.take("method", method, where, source)
    if method == "full":
        return
    rank = positive(reading.lora_rank)
    if rank:
        draft.take("lora.rank", rank, where_of(reading, "lora_rank"), source)
    elif source in LORA_RANK:
        value = LORA_RANK[source]
        draft.default(
            "lora.rank",
            value,
            source,
            f"lora.rank = {value}: the file does not say, and {source} does so then.",
            f"lora.rank = {value}：文件未写，{source} 的默认值如此。",
        )
    targets = lora_targets(reading)
    if targets is not None:
        draft.take("lora.targets", targets, where_of(reading, "targets"), source)
    dropout = as_number(reading.lora_dropout)
    if isinstance(dropout, (int, float)):
        draft.take("lora.dropout", float(dropout), where_of(reading, "lora_dropout"), source)
    if method == "qlora":
        _quantization(draft, reading, bits, source)


def _quantization(draft: Draft, reading: TrainYamlReading, bits: Any, source: str) -> None:
    where = where_of(reading, "quantization")
    if bits not in (None, 4, 8):
        draft.ignore(
            "quantization",
            source,
            f"{where}: {bits}-bit weights are not modelled; 4 bits were taken.",
            f"{where}：未建模 {bits} 比特权重；按 4 比特处理。",
        )
    kind = str(
        (reading.settings or {}).get("quantization_type") or (reading.settings or {}).get("bnb_4bit_quant_type") or "nf4"
    )
    draft.take("quantization.format", "int8" if bits == 8 else "fp4" if kind == "fp4" else "nf4", where, source)
    if reading.double_quantization is not None and bits != 8:
        draft.take("quantization.double_quantization", reading.double_quantization, "double_quantization", source)


def lora_targets(reading: TrainYamlReading) -> str | list[str] | None:
    """The adapted modules in the scenario's words: a named set, or module names."""
    given = reading.lora_target if reading.lora_target is not None else reading.lora_target_modules
    if reading.framework == "torchtune":
        listed = reading.lora_attn_modules
        given = [str(one).replace("output_proj", "o_proj") for one in listed] if isinstance(listed, list) else None
        if reading.apply_lora_to_mlp:
            given = [*(given or ()), "gate_proj", "up_proj", "down_proj"]
    if reading.lora_target_linear:
        return "all_linear"
    if isinstance(given, str):
        given = [one.strip() for one in given.split(",")]
    return named_targets(given or ())


def named_targets(given: Sequence[str]) -> str | list[str] | None:
    """Module names as one of the scenario's sets, or sorted; None where there are none."""
    names = [one.strip() for one in given if one and one.strip()]
    if any(one in ("all", "all-linear", "all_linear") for one in names):
        return "all_linear"
    if not names:
        return None
    plain = set(names)
    if plain == {"q_proj", "v_proj"}:
        return "attention_qv"
    if plain == ATTENTION:
        return "attention"
    return "all_linear" if plain == LINEAR else sorted(plain)


def _precision(draft: Draft, reading: TrainYamlReading, source: str, sharded: str | None) -> None:
    given = reading.precision
    if given is None:
        return
    where = where_of(reading, "precision")
    if source == "torchtune":
        value = {"bf16": "bf16_pure", "fp32": "fp32", "fp16": "fp16_mixed"}.get(given)
        notes = ("torchtune keeps weights and optimizer states in it", "torchtune 的权重与优化器状态都用该精度")
    else:
        value = {"bf16": "bf16_mixed", "pure_bf16": "bf16_pure", "fp16": "fp16_mixed", "fp8": "fp8_mixed"}.get(given, "fp32")
        notes = ("", "")
        if given == "bf16" and reading.method == "full" and sharded is None:
            if source == "LLaMA-Factory":
                value = "fp32_autocast"
                notes = (
                    "without DeepSpeed or FSDP it keeps trainable weights in fp32",
                    "不用 DeepSpeed/FSDP 时可训练权重保持 fp32",
                )
            elif source == "axolotl":
                value = "bf16_pure"
                notes = (
                    "without DeepSpeed or FSDP the weights are bf16 and have no fp32 copy",
                    "不用 DeepSpeed/FSDP 时权重为 bf16，没有 fp32 副本",
                )
    if value is None:
        draft.ignore("precision", source, f"{where}: {given!r} is not known here.", f"{where}：未知的精度 {given!r}。")
        return
    draft.take("precision", value, where, source, *notes)


def optimizer_of(word: str) -> str | None:
    """The scenario's word for an optimizer as frameworks name it."""
    name = word.lower().rsplit(".", 1)[-1].replace("-", "_")
    eight = "8bit" in name
    paged = "paged" in name
    if "adafactor" in name:
        return "adafactor"
    if "muon" in name:
        return "muon"
    if "lion" in name:
        return "lion"
    if "adam" in name and "mini" not in name:
        return f"{'paged_' if paged else ''}adamw{'_8bit' if eight else ''}"
    return "sgd" if name.startswith("sgd") else None


def _optimizer(draft: Draft, reading: TrainYamlReading, deepspeed: DeepSpeedReading | None, source: str) -> None:
    settings = reading.settings or {}
    special = next(
        (key for key in ("use_galore", "use_apollo", "use_badam", "use_adam_mini") if as_switch(settings.get(key))), None
    )
    if special:
        draft.ignore(
            "optimizer",
            source,
            f"{special} is not modelled: its optimizer states are smaller than AdamW's.",
            f"{special} 未建模：其优化器状态小于 AdamW。",
        )
    word = reading.optimizer
    if word:
        take_optimizer(draft, word, where_of(reading, "optimizer"), source, settings)
    elif deepspeed is not None and deepspeed.optimizer:
        take_optimizer(draft, deepspeed.optimizer, "optimizer.type", "DeepSpeed", {})
    if reading.optimizer_in_bwd is not None and reading.method == "full":
        draft.take("optimizer_in_backward", reading.optimizer_in_bwd, "optimizer_in_bwd", source)


def take_optimizer(draft: Draft, word: str, where: str, source: str, settings: dict[str, Any]) -> None:
    """Put the optimizer into the draft, or say that it is not known."""
    value = optimizer_of(word)
    group = settings.get("optimizer")
    if value == "sgd" and isinstance(group, dict) and group.get("momentum"):
        value = "sgd_momentum"
    if value is None:
        draft.ignore(
            "optimizer",
            source,
            f"{where}: {word[:60]!r} is not known here; AdamW is assumed unless you choose another.",
            f"{where}：未知的优化器 {word[:60]!r}；未另选时按 AdamW 处理。",
        )
        return
    draft.take("optimizer", value, where, source)


def _batch(draft: Draft, reading: TrainYamlReading, source: str) -> None:
    for key, field in (
        ("sequence_length", "seq_len"),
        ("micro_batch_size", "micro_batch"),
        ("gradient_accumulation_steps", "grad_accum"),
    ):
        value = positive(getattr(reading, field))
        if value:
            draft.take(key, value, where_of(reading, field), source)
    if positive(reading.max_steps) and source != "torchtune":
        draft.facts.setdefault("steps", Given(positive(reading.max_steps), "max_steps", source))
        draft.used |= {(source, key) for key in ("max_steps", "num_train_epochs", "num_epochs")}
    elif isinstance(reading.epochs, (int, float)) and 0 < reading.epochs <= 10_000:
        draft.take("epochs", float(reading.epochs), where_of(reading, "epochs"), source)
    if positive(reading.max_samples):
        draft.ignore(
            "tokens",
            source,
            f"max_samples {reading.max_samples} limits each data set; how many tokens that is depends on the data: "
            "give tokens.",
            f"max_samples {reading.max_samples} 限制每个数据集的条数；token 数取决于数据，请另行给出。",
        )
    keep = positive(reading.save_total_limit)
    if keep:
        draft.take("checkpoint.keep", keep, "save_total_limit", source)
    save = positive(reading.save_steps)
    if save:
        draft.facts.setdefault("save_steps", Given(save, "save_steps", source))
        draft.used.add((source, "save_steps"))


def _activations(draft: Draft, reading: TrainYamlReading, source: str) -> None:
    where = where_of(reading, "recompute")
    granularity = reading.recompute_granularity
    checkpointing = reading.activation_checkpointing if source == "torchtune" else reading.gradient_checkpointing
    if granularity in ("full", "selective"):
        draft.take("activation_recomputation", granularity, "recompute_granularity", source)
    elif isinstance(checkpointing, (bool, str)):
        draft.take("activation_recomputation", "full" if checkpointing else "none", where, source)
    offload = reading.activation_offloading
    if offload or (isinstance(checkpointing, str) and checkpointing != "auto"):
        draft.take("activation_offload", True, where_of(reading, "offloading"), source)
    elif offload is False:
        draft.take("activation_offload", False, where_of(reading, "offloading"), source)
    word = (reading.attn_implementation or "").lower()
    kind = None
    if "flash" in word or word in ("fa2", "fa3") or reading.flash_attention:
        kind = "flash"
    elif "sdp" in word or "flex" in word or "xformers" in word:
        kind = "sdpa"
    elif "eager" in word or word == "disabled":
        kind = "eager"
    if kind:
        draft.take("attention", kind, where_of(reading, "attention"), source)
    if reading.compile is not None:
        draft.take("compile", reading.compile, where_of(reading, "compile"), source)
    if reading.fused_loss or (reading.loss or "").rsplit(".", 1)[-1].startswith("Linear"):
        draft.take("fused_loss", True, where_of(reading, "fused"), source)
