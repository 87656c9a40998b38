"""Kits of plain PyTorch under torchrun, of Accelerate (FSDP2) and of DeepSpeed."""

from __future__ import annotations

from typing import Any

from advisor import catalog
from advisor.handoff import refusals
from advisor.handoff.job import DATA, OWN_MODEL, Job
from advisor.handoff.pieces import RENDEZVOUS_PORT, job_file, launch_script, torchrun
from advisor.handoff.text import template, to_json, to_yaml
from advisor.handoff.versions import header

#: The Trainer's names of the optimizers.
TRAINER_OPTIMIZERS = {
    "adamw": "adamw_torch",
    "adamw_8bit": "adamw_bnb_8bit",
    "paged_adamw": "paged_adamw_32bit",
    "paged_adamw_8bit": "paged_adamw_8bit",
    "adafactor": "adafactor",
    "sgd": "sgd",
    "lion": "lion_32bit",
}
PLAIN_OPTIMIZERS = ("adamw", "sgd", "sgd_momentum", "adafactor", "adamw_8bit", "paged_adamw", "paged_adamw_8bit")
PRECISIONS = ("bf16_mixed", "fp16_mixed", "fp32_autocast", "bf16_pure", "fp32")
#: What accelerate.yaml says where the plan has ZeRO-1.
AS_ZERO_1 = (
    "FSDP2 has no ZeRO-1 by name. Here weights are whole from the forward to the backward pass and gradients are reduced once",
    "a step (sync_each_batch in training.json): ZeRO-1's memory and traffic. Without accumulation that is ZeRO-2, no more.",
)
REPLICATED_ONLY = ("adamw_8bit", "paged_adamw", "paged_adamw_8bit")


def model_files(job: Job) -> dict[str, str]:
    """The config of a model that was described and not named."""
    return {f"{OWN_MODEL[2:]}/config.json": to_json(job.config)} if job.config is not None else {}


def _common(job: Job, engine: str) -> None:
    refusals.cards(job, engine)
    refusals.only_sizes(job, engine, (), "torchtitan" if job.training.method == "full" else "megatron_bridge")
    refusals.no_activation_offload(job, engine, "torchtune")
    refusals.in_backward(job, engine, "torchtune")


def torchrun_kit(job: Job) -> dict[str, str]:
    """Plain PyTorch: data parallel, or FSDP2 for ZeRO 1 to 3."""
    engine = "torchrun"
    _common(job, engine)
    refusals.only_precisions(job, engine, PRECISIONS, "torchtitan")
    refusals.only_optimizers(job, engine, PLAIN_OPTIMIZERS, "accelerate" if job.training.optimizer == "lion" else "megatron")
    refusals.only_offload(job, engine, ("none", "optimizer_and_parameters"), "deepspeed")
    refusals.no_selective(job, engine, "megatron")
    if job.training.fused_loss:
        refusals.refuse(engine, "its training script computes the loss from whole logits, unfused", "accelerate")
    sharded = job.layout.zero_stage > 0 and job.gpus > 1
    if job.training.method == "qlora" and sharded:
        refusals.refuse(engine, "its training script does not shard 4-bit weights", "accelerate")
    if job.training.optimizer in REPLICATED_ONLY and sharded:
        refusals.refuse(engine, f"its training script does not shard {job.training.optimizer}'s states", "accelerate")
    if job.layout.offload != "none" and not sharded:
        refusals.refuse(engine, "its training script offloads sharded weights only", "deepspeed")
    if job.training.precision == "fp16_mixed" and sharded:
        refusals.refuse(engine, "its training script scales no loss over shards", "deepspeed")
    return {
        "launch.sh": launch_script(job, engine, torchrun(job, "train.py"), stop="USR1"),
        "job.json": to_json(job_file(job, sharded)),
        "train.py": template("train.py"),
        "prepare.py": template("prepare.py"),
        **model_files(job),
    }


def trainer_arguments(job: Job) -> dict[str, Any]:
    """`training.json`: fields of transformers' TrainingArguments."""
    training, layout = job.training, job.layout
    arguments = {
        "output_dir": job.checkpoints,
        "max_steps": job.steps,
        "per_device_train_batch_size": int(layout.micro_batch_size),
        "gradient_accumulation_steps": int(layout.gradient_accumulation_steps),
        "optim": TRAINER_OPTIMIZERS[training.optimizer],
        "learning_rate": job.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": job.warmup_steps,
        "weight_decay": 0.0 if job.adapters else 0.1,
        "max_grad_norm": 1.0,
        "bf16": training.precision in ("bf16_mixed", "fp32_autocast"),
        "fp16": training.precision == "fp16_mixed",
        "gradient_checkpointing": job.recomputes,
        "torch_compile": training.compile,
        "use_liger_kernel": training.fused_loss,
        "save_strategy": "steps",
        "save_steps": job.save_steps,
        "save_total_limit": job.keep,
        "logging_steps": 1,
        "report_to": "none",
        "seed": 1234,
        "data_seed": 1234,
        "dataloader_num_workers": 4,
        "remove_unused_columns": False,
        "ddp_find_unused_parameters": False,
    }
    if job.recomputes:
        arguments["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    return arguments


def _trainer_files(job: Job, sharded: bool, arguments: dict[str, Any]) -> dict[str, str]:
    return {
        "job.json": to_json(job_file(job, sharded)),
        "training.json": to_json(arguments),
        "train.py": template("train_trainer.py"),
        "prepare.py": template("prepare.py"),
        **model_files(job),
    }


def accelerate_kit(job: Job) -> dict[str, str]:
    """Accelerate: data parallel, or FSDP2 for ZeRO 1 to 3, around the Hugging Face Trainer."""
    engine = "accelerate"
    _common(job, engine)
    refusals.only_precisions(job, engine, PRECISIONS, "torchtitan")
    refusals.only_optimizers(job, engine, TRAINER_OPTIMIZERS, "torchrun" if job.training.optimizer != "muon" else "megatron")
    refusals.only_offload(job, engine, ("none", "optimizer_and_parameters"), "deepspeed")
    refusals.no_selective(job, engine, "megatron")
    sharded = job.layout.zero_stage > 0 and job.gpus > 1
    if job.layout.offload != "none" and not sharded:
        refusals.refuse(engine, "FSDP offloads sharded weights only", "deepspeed")
    if job.training.optimizer in REPLICATED_ONLY and sharded and not job.adapters:
        refusals.refuse(engine, f"FSDP2 does not shard {job.training.optimizer}'s states", "deepspeed")
    arguments = trainer_arguments(job)
    config: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "debug": False,
        "distributed_type": "FSDP" if sharded else "MULTI_GPU" if job.gpus > 1 else "NO",
        "downcast_bf16": "no",
        "enable_cpu_affinity": False,
        "machine_rank": 0,
        "main_training_function": "main",
        "mixed_precision": "no" if job.training.precision in ("fp32", "bf16_pure") else job.half,
        "num_machines": job.nodes,
        "num_processes": job.gpus,
        "rdzv_backend": "static" if job.nodes == 1 else "c10d",
        "same_network": True,
        "use_cpu": False,
    }
    if job.nodes > 1:
        config |= {"main_process_ip": "127.0.0.1", "main_process_port": RENDEZVOUS_PORT}
    if sharded:
        config["fsdp_config"] = {
            "fsdp_version": 2,
            "fsdp_reshard_after_forward": job.layout.zero_stage == 3,
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_activation_checkpointing": job.recomputes,
            "fsdp_cpu_ram_efficient_loading": job.training.method != "qlora",
            "fsdp_offload_params": job.layout.offload == "optimizer_and_parameters",
            "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        }
        # FSDP's own recomputation; the Trainer's would gather each layer twice
        arguments |= {"gradient_checkpointing": False}
        arguments.pop("gradient_checkpointing_kwargs", None)
        # the Trainer's default keeps whole gradients on each card between the micro-batches of a step, whatever FSDP shards
        reduce_each = job.layout.zero_stage >= 2
        arguments["accelerator_config"] = {"gradient_accumulation_kwargs": {"sync_each_batch": reduce_each}}
    notes = header(job, engine)
    if sharded and job.layout.zero_stage == 1:
        notes = (*notes, *AS_ZERO_1)
    several = '--machine_rank "$NODE_RANK" --main_process_ip "$MASTER_ADDR" --main_process_port "$MASTER_PORT" '
    command = f"accelerate launch --config_file accelerate.yaml {several if job.nodes > 1 else ''}train.py"
    return {
        "launch.sh": launch_script(job, engine, command, stop="USR1"),
        "accelerate.yaml": to_yaml(config, notes),
        **_trainer_files(job, sharded, arguments),
    }


def deepspeed_config(job: Job) -> dict[str, Any]:
    """`deepspeed.json`: ZeRO stage, offload, precision and bucket sizes.

    Buckets: a bucket of reduce_bucket_size elements that the memory estimate counts with, or the largest layer's square
    where that is smaller (DeepSpeed's own "auto": hidden_size squared). Prefetch and persistence as in "auto".
    """
    layout, training = job.layout, job.training
    hidden = job.architecture.hidden_size
    largest = int(catalog.constant("memory.bucket_deepspeed").magnitude)  # elements
    bucket = min(max(hidden * hidden, 10_000_000), largest)
    zero: dict[str, Any] = {"stage": int(layout.zero_stage)}
    if layout.zero_stage > 0:
        zero |= {"overlap_comm": True, "contiguous_gradients": True, "reduce_bucket_size": bucket}
    if layout.zero_stage in (1, 2):
        zero |= {"reduce_scatter": True, "allgather_partitions": True, "allgather_bucket_size": bucket}
    if layout.zero_stage == 3:
        zero |= {
            "stage3_prefetch_bucket_size": int(0.9 * bucket),
            "stage3_param_persistence_threshold": 10 * hidden,
            "stage3_max_live_parameters": int(catalog.constant("memory.live_deepspeed").magnitude),  # elements
            "stage3_max_reuse_distance": int(catalog.constant("memory.live_deepspeed").magnitude),  # elements
            "stage3_gather_16bit_weights_on_model_save": True,
        }
    if layout.offload != "none":
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if layout.offload == "optimizer_and_parameters":
        zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    config: dict[str, Any] = {
        "train_batch_size": int(layout.global_batch_size),
        "train_micro_batch_size_per_gpu": int(layout.micro_batch_size),
        "gradient_accumulation_steps": int(layout.gradient_accumulation_steps),
        "gradient_clipping": 1.0,
        "zero_optimization": zero,
        "steps_per_print": 100,
        "wall_clock_breakdown": False,
    }
    if training.precision in ("bf16_mixed", "bf16_pure", "fp32_autocast"):
        config["bf16"] = {"enabled": True}
        if training.gradients == "fp32" and not job.adapters:
            config["data_types"] = {"grad_accum_dtype": "fp32"}
    if training.precision == "fp16_mixed":
        config["fp16"] = {"enabled": True, "initial_scale_power": 16, "loss_scale_window": 1000}
    if training.optimizer == "adamw":
        config["optimizer"] = {
            "type": "AdamW",
            "params": {
                "lr": job.learning_rate,
                "betas": [0.9, 0.999],
                "eps": 1e-8,
                "weight_decay": 0.0 if job.adapters else 0.1,
            },
        }
    else:
        # an optimizer that is not DeepSpeed's own comes from the Trainer
        config["zero_allow_untested_optimizer"] = True
    return config


def deepspeed_kit(job: Job) -> dict[str, str]:
    """DeepSpeed ZeRO 0 to 3 around the Hugging Face Trainer."""
    engine = "deepspeed"
    _common(job, engine)
    refusals.only_precisions(job, engine, ("bf16_mixed", "fp16_mixed", "bf16_pure", "fp32"), "torchtitan")
    refusals.only_optimizers(job, engine, TRAINER_OPTIMIZERS, "torchrun" if job.training.optimizer != "muon" else "megatron")
    refusals.no_selective(job, engine, "megatron")
    if job.training.method == "qlora" and job.layout.zero_stage == 3:
        refusals.refuse(engine, "ZeRO-3 does not partition 4-bit weights", "accelerate")
    if job.layout.offload == "optimizer_and_parameters" and job.layout.zero_stage != 3:
        refusals.refuse(engine, f"only ZeRO-3 offloads parameters and the plan has ZeRO-{job.layout.zero_stage}", "")
    if job.layout.offload == "optimizer" and job.layout.zero_stage == 0:
        refusals.refuse(engine, "ZeRO-0 offloads no optimizer states", "")
    if job.layout.offload != "none" and job.training.optimizer != "adamw":
        refusals.refuse(engine, f"it keeps AdamW's states in host memory, not {job.training.optimizer}'s", "")
    arguments = trainer_arguments(job) | {"deepspeed": "deepspeed.json"}
    if job.training.precision == "bf16_pure":
        arguments["bf16"] = True
    return {
        "launch.sh": launch_script(job, engine, torchrun(job, "train.py"), stop="USR1"),
        "deepspeed.json": to_json(deepspeed_config(job)),
        **_trainer_files(job, False, arguments),
    }


def data_path(name: str) -> str:
    """A file of the training data's directory."""
    return f"{DATA}/{name}"
