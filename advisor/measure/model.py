"""The model of a scenario with random weights: built by transformers and PEFT from a config, nothing downloaded."""

from __future__ import annotations

import json
from typing import Any

from advisor import catalog
from advisor.architecture import Architecture, architecture_from_config
from advisor.measure.records import MeasureError
from advisor.training import Training
from advisor.workload import adapted_matrices

#: A stand-in for a machine without a GPU: the family's own layers, few and small.
TINY = {
    "num_hidden_layers": 2,
    "hidden_size": 256,
    "intermediate_size": 688,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 8192,
}


def config_of(model: str | dict[str, Any]) -> dict[str, Any]:
    """The Hugging Face config of a scenario's model. Raises MeasureError for a bare size, which has no code to run."""
    if isinstance(model, dict):
        return model
    try:
        name = catalog.model(model).name
    except ValueError:
        raise MeasureError(
            f"{model!r} is a size, not a model with code to run: name a catalog model or give a config."
        ) from None
    row = next((row for row in catalog.table("model_configs.csv") if row["name"] == name), None)
    if row is None:
        raise MeasureError(f"The catalog has no config of {name} to build it from: give its config.json.")
    return json.loads(row["config"])


def shrunk(config: dict[str, Any]) -> dict[str, Any]:
    """The config of a tiny model of the same family."""
    if "num_hidden_layers" not in config or "num_attention_heads" not in config:
        raise MeasureError(f"A model of type {config.get('model_type')!r} has no stand-in for a CPU: use a Llama-like model.")
    heads, groups = config["num_attention_heads"], config.get("num_key_value_heads") or config["num_attention_heads"]
    small = {key: value for key, value in TINY.items() if key in config or key in ("num_key_value_heads", "hidden_size")}
    small["num_key_value_heads"] = TINY["num_attention_heads"] if groups == heads else TINY["num_key_value_heads"]
    for key in ("num_experts", "num_local_experts", "n_routed_experts"):
        if config.get(key):
            small[key] = 4
    return {**config, **small}


def build(config: dict[str, Any], training: Training, device: str) -> tuple[Any, Architecture]:
    """(the model in training mode on the device, its architecture)."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    architecture = architecture_from_config(config)
    kind = {key: value for key, value in config.items() if key not in ("model_type", "architectures", "torch_dtype", "dtype")}
    loaded = AutoConfig.for_model(config["model_type"], **kind)
    loaded.use_cache = False
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[training.weights]
    kernel = {"flash": "flash_attention_2"}.get(training.attention, training.attention)
    model = AutoModelForCausalLM.from_config(loaded, dtype=dtype, attn_implementation=kernel)
    if training.method != "full":
        model = _with_adapters(model, architecture, training)
    return model.to(device).train(), architecture


def _with_adapters(model: Any, architecture: Architecture, training: Training) -> Any:
    from peft import LoraConfig, get_peft_model

    lora = training.lora
    names = sorted({matrix.name for matrix in adapted_matrices(architecture, lora.targets)})
    targets = "all-linear" if lora.targets == "all_linear" else names
    settings = LoraConfig(r=lora.rank, target_modules=targets, use_dora=training.method == "dora", task_type="CAUSAL_LM")
    return get_peft_model(model, settings, autocast_adapter_dtype=lora.dtype == "fp32")


def optimizer_of(model: Any, training: Training) -> Any:
    """The optimizer on what is trained. Raises MeasureError for one that PyTorch alone does not have."""
    import torch

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if training.optimizer == "adamw":
        return torch.optim.AdamW(trained, lr=1e-5, fused=True)
    if training.optimizer in ("sgd", "sgd_momentum"):
        return torch.optim.SGD(trained, lr=1e-5, momentum=0.9 if training.optimizer == "sgd_momentum" else 0.0)
    if training.optimizer == "adafactor":
        return torch.optim.Adafactor(trained, lr=1e-5)
    raise MeasureError(
        f"optimizer must be adamw, sgd, sgd_momentum or adafactor to be measured, but {training.optimizer} is set."
    )
