"""Kits of LLaMA-Factory and axolotl: one YAML each, for LoRA, QLoRA, DoRA and full fine-tuning."""

from __future__ import annotations

from typing import Any

from advisor.handoff import refusals
from advisor.handoff.job import DATA, Job
from advisor.handoff.pieces import (
    ALPHA_OVER_RANK,
    attention,
    launch_script,
    quantization_settings,
    target_names,
)
from advisor.handoff.text import to_json, to_yaml
from advisor.handoff.torch_kits import TRAINER_OPTIMIZERS, deepspeed_config, model_files
from advisor.handoff.versions import header

PRECISIONS = ("bf16_mixed", "fp16_mixed", "bf16_pure", "fp32")
#: LLaMA-Factory's chat templates, by a word in the model's name; "default" for others.
TEMPLATES = {
    "llama-3": "llama3",
    "llama-2": "llama2",
    "qwen3": "qwen3",
    "qwen": "qwen",
    "mistral": "mistral",
    "mixtral": "mistral",
    "gemma": "gemma",
    "deepseek": "deepseek3",
    "phi-3": "phi",
    "phi-4": "phi4",
    "yi-": "yi",
    "glm-4": "glm4",
}


def _check(job: Job, engine: str) -> None:
    refusals.only_sizes(job, engine, (), "torchtitan" if not job.adapters else "megatron_bridge")
    refusals.only_precisions(job, engine, PRECISIONS, "torchtitan")
    refusals.only_optimizers(job, engine, TRAINER_OPTIMIZERS, "torchrun" if job.training.optimizer != "muon" else "megatron")
    refusals.no_selective(job, engine, "megatron")
    refusals.in_backward(job, engine, "torchtune")
    if job.training.method == "qlora" and job.layout.zero_stage == 3:
        refusals.refuse(engine, "its kit shards with ZeRO, which does not partition 4-bit weights", "accelerate")
    if job.layout.offload == "optimizer_and_parameters" and job.layout.zero_stage != 3:
        refusals.refuse(engine, f"only ZeRO-3 offloads parameters and the plan has ZeRO-{job.layout.zero_stage}", "")
    if job.layout.offload == "optimizer" and job.layout.zero_stage == 0:
        refusals.refuse(engine, "ZeRO-0 offloads no optimizer states", "")
    if job.layout.offload != "none" and job.training.optimizer != "adamw":
        refusals.refuse(engine, f"it keeps AdamW's states in host memory, not {job.training.optimizer}'s", "")


def _deepspeed_file(job: Job) -> dict[str, str]:
    """DeepSpeed's file where something is sharded or offloaded; the Trainer fills its optimizer in."""
    if job.layout.zero_stage == 0 or (job.gpus == 1 and job.layout.offload == "none"):
        return {}
    config = deepspeed_config(job)
    config.pop("optimizer", None)
    return {"deepspeed.json": to_json(config)}


def llamafactory_settings(job: Job) -> dict[str, Any]:
    """`llamafactory.yaml`."""
    training, layout = job.training, job.layout
    name = job.model.lower()
    settings: dict[str, Any] = {
        "model_name_or_path": job.model,
        "trust_remote_code": False,
        "stage": "sft",
        "do_train": True,
        "finetuning_type": "lora" if job.adapters else "full",
        "dataset": "train",
        "dataset_dir": ".",
        "template": next((value for word, value in TEMPLATES.items() if word in name), "default"),
        "cutoff_len": int(layout.sequence_length),
        "packing": True,
        "preprocessing_num_workers": 8,
        "flash_attn": {"eager": "disabled", "sdpa": "sdpa", "flash": "fa2"}[training.attention],
        "enable_liger_kernel": training.fused_loss,
        "disable_gradient_checkpointing": not job.recomputes,
        "per_device_train_batch_size": int(layout.micro_batch_size),
        "gradient_accumulation_steps": int(layout.gradient_accumulation_steps),
        "num_train_epochs": float(job.plan.scenario["epochs"]["value"]),
        "max_steps": job.steps,
        "learning_rate": job.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": job.warmup_steps,
        "weight_decay": 0.0 if job.adapters else 0.1,
        "max_grad_norm": 1.0,
        "optim": TRAINER_OPTIMIZERS[training.optimizer],
        "bf16": training.precision == "bf16_mixed",
        "fp16": training.precision == "fp16_mixed",
        "pure_bf16": training.precision == "bf16_pure",
        "torch_compile": training.compile,
        "output_dir": job.checkpoints,
        "save_strategy": "steps",
        "save_steps": job.save_steps,
        "save_total_limit": job.keep,
        "logging_steps": 1,
        "report_to": "none",
        "seed": 1234,
        "ddp_timeout": 1800,
    }
    if job.adapters:
        lora = training.lora
        settings |= {
            "lora_rank": lora.rank,
            "lora_alpha": ALPHA_OVER_RANK * lora.rank,
            "lora_dropout": 0.05 if lora.dropout else 0.0,
            "lora_target": "all" if lora.targets == "all_linear" else ",".join(target_names(job)),
            "use_dora": training.method == "dora",
        }
    quantization = quantization_settings(job)
    if quantization is not None:
        settings |= {"quantization_method": "bnb", "quantization_bit": 8 if "load_in_8bit" in quantization else 4}
        if "load_in_4bit" in quantization:
            settings |= {
                "quantization_type": quantization["bnb_4bit_quant_type"],
                "double_quantization": quantization["bnb_4bit_use_double_quant"],
            }
    if _deepspeed_file(job):
        settings["deepspeed"] = "deepspeed.json"
    return settings


def llamafactory_kit(job: Job) -> dict[str, str]:
    """LLaMA-Factory: any Hugging Face model, adapters or whole, ZeRO by DeepSpeed."""
    engine = "llamafactory"
    refusals.cards(job, engine, ("NVIDIA", "AMD", "Huawei"))
    _check(job, engine)
    refusals.no_activation_offload(job, engine, "torchtune")
    dataset = {
        "train": {
            "file_name": f"{DATA}/train.jsonl",
            "formatting": "sharegpt",
            "columns": {"messages": "messages"},
            "tags": {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"},
        }
    }
    command = 'env FORCE_TORCHRUN=1 llamafactory-cli train llamafactory.yaml output_dir="$CHECKPOINT_DIR"'
    return {
        "launch.sh": launch_script(job, engine, command),
        "llamafactory.yaml": to_yaml(llamafactory_settings(job), header(job, engine)),
        "dataset_info.json": to_json(dataset),
        **_deepspeed_file(job),
        **model_files(job),
    }


def axolotl_settings(job: Job) -> dict[str, Any]:
    """`axolotl.yaml`."""
    training, layout = job.training, job.layout
    settings: dict[str, Any] = {
        "base_model": job.model,
        "trust_remote_code": False,
        "datasets": [
            {
                "path": f"{DATA}/train.jsonl",
                "ds_type": "json",
                "type": "chat_template",
                "field_messages": "messages",
                "message_property_mappings": {"role": "role", "content": "content"},
            }
        ],
        "chat_template": "tokenizer_default_fallback_chatml",
        "dataset_prepared_path": "./prepared",
        "val_set_size": 0.0,
        "sequence_len": int(layout.sequence_length),
        "sample_packing": training.attention != "eager",
        "pad_to_sequence_len": True,
        "micro_batch_size": int(layout.micro_batch_size),
        "gradient_accumulation_steps": int(layout.gradient_accumulation_steps),
        "num_epochs": float(job.plan.scenario["epochs"]["value"]),
        "max_steps": job.steps,
        "optimizer": TRAINER_OPTIMIZERS[training.optimizer],
        "learning_rate": job.learning_rate,
        "lr_scheduler": "cosine",
        "warmup_steps": job.warmup_steps,
        "weight_decay": 0.0 if job.adapters else 0.1,
        "max_grad_norm": 1.0,
        "bf16": training.precision == "bf16_mixed",
        "fp16": training.precision == "fp16_mixed",
        "bfloat16": training.precision == "bf16_pure",
        "tf32": training.precision != "fp32",
        "attn_implementation": attention(job),
        "gradient_checkpointing": job.recomputes,
        "activation_offloading": training.activation_offload,
        "torch_compile": training.compile,
        "output_dir": job.checkpoints,
        "save_strategy": "steps",
        "save_steps": job.save_steps,
        "save_total_limit": job.keep,
        "auto_resume_from_checkpoints": True,
        "logging_steps": 1,
        "seed": 1234,
    }
    if job.recomputes:
        settings["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    if training.fused_loss:
        # the plug-in's own setting, which axolotl reads once the plug-in is named
        settings |= {"plugins": ["axolotl.integrations.liger.LigerPlugin"], "liger_fused_linear_cross_entropy": True}
    if job.adapters:
        lora = training.lora
        settings |= {
            "adapter": "qlora" if training.method == "qlora" else "lora",
            "lora_r": lora.rank,
            "lora_alpha": ALPHA_OVER_RANK * lora.rank,
            "lora_dropout": 0.05 if lora.dropout else 0.0,
        }
        if lora.targets == "all_linear":
            settings["lora_target_linear"] = True
        else:
            settings["lora_target_modules"] = target_names(job)
        if training.method == "dora":
            settings["peft_use_dora"] = True
    quantization = quantization_settings(job)
    if quantization is not None:
        if training.quantization.format != "nf4" or not training.quantization.double_quantization:
            refusals.refuse("axolotl", "it quantizes to double-quantized nf4 only", "llamafactory")
        settings["load_in_4bit"] = True
    if _deepspeed_file(job):
        settings["deepspeed"] = "deepspeed.json"
    return settings


def axolotl_kit(job: Job) -> dict[str, str]:
    """axolotl: any Hugging Face model, adapters or whole, ZeRO by DeepSpeed."""
    engine = "axolotl"
    refusals.cards(job, engine)
    _check(job, engine)
    if job.training.activation_offload and not job.recomputes:
        refusals.refuse(engine, "it offloads activations only together with recomputation", "torchtune")
    several = (
        '--nnodes "$NNODES" --node-rank "$NODE_RANK" --rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:$MASTER_PORT" '
        if job.nodes > 1
        else ""
    )
    command = (
        'axolotl train axolotl.yaml --launcher torchrun --output-dir "$CHECKPOINT_DIR" '
        f'-- {several}--nproc-per-node "$NPROC_PER_NODE"'
    )
    return {
        "launch.sh": launch_script(job, engine, command),
        "axolotl.yaml": to_yaml(axolotl_settings(job), header(job, engine)),
        **_deepspeed_file(job),
        **model_files(job),
    }
