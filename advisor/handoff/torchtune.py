"""Kit of torchtune: one YAML for LoRA, QLoRA, DoRA and full fine-tuning of the models it builds."""

from __future__ import annotations

from typing import Any

from advisor.handoff import refusals
from advisor.handoff.job import DATA, Job
from advisor.handoff.pieces import ALPHA_OVER_RANK, launch_script, target_names
from advisor.handoff.text import one_line, to_yaml
from advisor.handoff.versions import header

_LLAMA3_TOKENIZER = ("torchtune.models.llama3.llama3_tokenizer", {"path": f"{DATA}/model/original/tokenizer.model"})
_QWEN_TOKENIZER = (
    "torchtune.models.qwen2_5.qwen2_5_tokenizer",
    {"path": f"{DATA}/model/vocab.json", "merges_file": f"{DATA}/model/merges.txt"},
)
#: torchtune's builders by the end of the Hugging Face name: (package, size, tokenizer, weight files, checkpoint's model type).
BUILDERS: dict[str, tuple[str, str, tuple[str, dict[str, str]], int, str]] = {
    "Llama-3.2-1B": ("llama3_2", "1b", _LLAMA3_TOKENIZER, 1, "LLAMA3_2"),
    "Llama-3.2-3B": ("llama3_2", "3b", _LLAMA3_TOKENIZER, 2, "LLAMA3_2"),
    "Meta-Llama-3-8B": ("llama3", "8b", _LLAMA3_TOKENIZER, 4, "LLAMA3"),
    "Meta-Llama-3-70B": ("llama3", "70b", _LLAMA3_TOKENIZER, 30, "LLAMA3"),
    "Llama-3.1-8B": ("llama3_1", "8b", _LLAMA3_TOKENIZER, 4, "LLAMA3"),
    "Llama-3.1-70B": ("llama3_1", "70b", _LLAMA3_TOKENIZER, 30, "LLAMA3"),
    "Llama-3.3-70B": ("llama3_3", "70b", _LLAMA3_TOKENIZER, 30, "LLAMA3"),
    "Qwen2.5-0.5B": ("qwen2_5", "0_5b", _QWEN_TOKENIZER, 1, "QWEN2"),
    "Qwen2.5-1.5B": ("qwen2_5", "1_5b_base", _QWEN_TOKENIZER, 1, "QWEN2"),
    "Qwen2.5-3B": ("qwen2_5", "3b", _QWEN_TOKENIZER, 2, "QWEN2"),
    "Qwen2.5-7B": ("qwen2_5", "7b_base", _QWEN_TOKENIZER, 4, "QWEN2"),
    "Qwen2.5-14B": ("qwen2_5", "14b_base", _QWEN_TOKENIZER, 8, "QWEN2"),
    "Qwen2.5-32B": ("qwen2_5", "32b_base", _QWEN_TOKENIZER, 17, "QWEN2"),
    "Qwen2.5-72B": ("qwen2_5", "72b_base", _QWEN_TOKENIZER, 37, "QWEN2"),
}
TORCHTUNE_OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adamw": {"_component_": "torch.optim.AdamW", "fused": True},
    "adamw_8bit": {"_component_": "bitsandbytes.optim.AdamW8bit"},
    "paged_adamw": {"_component_": "bitsandbytes.optim.PagedAdamW"},
    "paged_adamw_8bit": {"_component_": "bitsandbytes.optim.PagedAdamW8bit"},
    "sgd": {"_component_": "torch.optim.SGD"},
    "sgd_momentum": {"_component_": "torch.optim.SGD", "momentum": 0.9},
    "adafactor": {"_component_": "torch.optim.Adafactor"},
}
#: torchtune names what adapters sit on; its MLP and output are switches of their own.
TORCHTUNE_ATTENTION = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "o_proj": "output_proj"}
MLP = {"gate_proj", "up_proj", "down_proj"}


def builder_of(model: str) -> tuple[str, str, tuple[str, dict[str, str]], int, str] | None:
    """torchtune's builder of a Hugging Face model, None when it has none."""
    name = model.rpartition("/")[2]
    for suffix in ("-Instruct", "-Chat"):
        name = name.removesuffix(suffix)
    return BUILDERS.get(name)


def _torchtune_model(job: Job, package: str, size: str) -> dict[str, Any]:
    if package == "qwen2_5" and job.model.endswith("-Instruct"):
        size = size.replace("_base", "_instruct")
    if not job.adapters:
        return {"_component_": f"torchtune.models.{package}.{package}_{size}" if package != "qwen2_5" else _qwen(size)}
    lora, method = job.training.lora, job.training.method
    names = set(target_names(job))
    unknown = names - set(TORCHTUNE_ATTENTION) - MLP
    if unknown:
        refusals.refuse("torchtune", f"it puts no adapter on {one_line(min(unknown), 40)}", "accelerate")
    model = f"lora_{package}_{size}" if package != "qwen2_5" else _qwen(size, "lora").rpartition(".")[2]
    return {
        "_component_": f"torchtune.models.{package}.{model}",
        "lora_attn_modules": [value for name, value in TORCHTUNE_ATTENTION.items() if name in names],
        "apply_lora_to_mlp": bool(names & MLP),
        "lora_rank": lora.rank,
        "lora_alpha": ALPHA_OVER_RANK * lora.rank,
        "lora_dropout": 0.05 if lora.dropout else 0.0,
        **({"use_dora": True} if method == "dora" else {}),
        **({"quantize_base": True} if method == "qlora" else {}),
    }


def _qwen(size: str, prefix: str = "") -> str:
    return f"torchtune.models.qwen2_5.{prefix + '_' if prefix else ''}qwen2_5_{size}"


def torchtune_settings(job: Job) -> dict[str, Any]:
    """`torchtune.yaml`."""
    training, layout = job.training, job.layout
    package, size, (tokenizer, tokenizer_files), files, model_type = builder_of(job.model)
    single = job.gpus == 1
    settings: dict[str, Any] = {
        "output_dir": job.checkpoints,
        "tokenizer": {"_component_": tokenizer, **tokenizer_files, "max_seq_len": int(layout.sequence_length)},
        "dataset": {
            "_component_": "torchtune.datasets.chat_dataset",
            "source": "json",
            "data_files": f"{DATA}/train.jsonl",
            "split": "train",
            "conversation_column": "messages",
            "conversation_style": "openai",
            "packed": True,
        },
        "seed": 1234,
        "shuffle": True,
        "model": _torchtune_model(job, package, size),
        "checkpointer": {
            "_component_": "torchtune.training.FullModelHFCheckpointer",
            "checkpoint_dir": f"{DATA}/model",
            "checkpoint_files": (
                ["model.safetensors"]
                if files == 1
                else {"filename_format": "model-{}-of-{}.safetensors", "max_filename": f"{files:05d}"}
            ),
            "recipe_checkpoint": None,
            "output_dir": job.checkpoints,
            "model_type": model_type,
        },
        "resume_from_checkpoint": False,
        "batch_size": int(layout.micro_batch_size),
        "gradient_accumulation_steps": int(layout.gradient_accumulation_steps),
        "epochs": max(1, round(job.plan.scenario["epochs"]["value"])),
        "max_steps_per_epoch": None,
        "optimizer": {**TORCHTUNE_OPTIMIZERS[training.optimizer], "lr": job.learning_rate},
        "loss": {"_component_": "torchtune.modules.loss.CEWithChunkedOutputLoss"},
        "clip_grad_norm": 1.0 if not training.optimizer_in_backward else None,
        "lr_scheduler": {
            "_component_": "torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup",
            "num_warmup_steps": job.warmup_steps,
        },
        "device": "cuda",
        "dtype": "fp32" if training.precision == "fp32" else "bf16",
        "compile": training.compile,
        "enable_activation_checkpointing": job.recomputes,
        "enable_activation_offloading": training.activation_offload,
        "metric_logger": {"_component_": "torchtune.training.metric_logging.DiskLogger", "log_dir": f"{job.checkpoints}/logs"},
        "log_every_n_steps": 1,
        "log_peak_memory_stats": True,
        "log_level": "INFO",
        "profiler": {"_component_": "torchtune.training.setup_torch_profiler", "enabled": False},
    }
    if job.adapters:
        settings["save_adapter_weights_only"] = True
    else:
        settings["optimizer_in_bwd"] = training.optimizer_in_backward
    if not single:
        settings |= {
            "fsdp_cpu_offload": layout.offload == "optimizer_and_parameters",
            "fsdp_reshard_after_forward": layout.zero_stage == 3,
        }
    return settings


def torchtune_kit(job: Job) -> dict[str, str]:
    """torchtune: LoRA, QLoRA, DoRA and full fine-tuning of the models it builds, FSDP2 across cards."""
    engine = "torchtune"
    refusals.cards(job, engine)
    refusals.only_sizes(job, engine, (), "torchtitan" if not job.adapters else "megatron_bridge")
    refusals.only_precisions(job, engine, ("bf16_pure", "bf16_mixed", "fp32"), "accelerate")
    if not job.adapters and job.training.precision == "bf16_mixed":
        refusals.refuse(engine, "it trains whole models in pure bf16 or fp32 and keeps no fp32 master copy", "torchrun")
    refusals.only_optimizers(
        job, engine, TORCHTUNE_OPTIMIZERS, "accelerate" if job.training.optimizer == "lion" else "megatron"
    )
    refusals.only_offload(job, engine, ("none", "optimizer_and_parameters"), "deepspeed")
    refusals.no_selective(job, engine, "megatron")
    if builder_of(job.model) is None:
        refusals.refuse(engine, f"it has no builder of {one_line(job.architecture.name, 60)}", "llamafactory")
    if job.layout.offload != "none" and job.gpus == 1:
        refusals.refuse(engine, "it offloads weights across several cards only", "deepspeed")
    if job.training.optimizer_in_backward and job.layout.gradient_accumulation_steps > 1:
        refusals.refuse(engine, "an optimizer step inside the backward pass goes with no gradient accumulation", "")
    if job.training.activation_offload and not job.recomputes:
        refusals.refuse(engine, "it offloads activations only together with recomputation", "")
    kind = "lora_finetune" if job.adapters else "full_finetune"
    recipe = f"{kind}_{'single_device' if job.gpus == 1 else 'distributed'}"
    several = (
        '--nnodes "$NNODES" --node_rank "$NODE_RANK" --rdzv_backend c10d --rdzv_endpoint "$MASTER_ADDR:$MASTER_PORT" '
        if job.nodes > 1
        else ""
    )
    start = "" if job.gpus == 1 else f'{several}--nproc_per_node "$NPROC_PER_NODE" '
    command = f'tune run {start}{recipe} --config torchtune.yaml output_dir="$CHECKPOINT_DIR"'
    return {
        "launch.sh": launch_script(job, engine, command),
        "torchtune.yaml": to_yaml(torchtune_settings(job), header(job, engine)),
    }
