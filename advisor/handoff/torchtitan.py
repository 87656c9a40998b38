"""Kit of torchtitan: its settings as TOML sections, and the Python function that its releases since 0.3 read them with."""

from __future__ import annotations

from typing import Any

from advisor.handoff import refusals
from advisor.handoff.job import DATA, Job
from advisor.handoff.pieces import launch_script, torchrun
from advisor.handoff.text import one_line, template, to_toml
from advisor.handoff.versions import header

#: Model families and sizes that torchtitan 0.3 ships, by the end of the Hugging Face name without suffixes.
FLAVORS = {
    "Llama-3.2-1B": ("llama3", "1B"),
    "Llama-3.2-3B": ("llama3", "3B"),
    "Meta-Llama-3-8B": ("llama3", "8B"),
    "Meta-Llama-3-70B": ("llama3", "70B"),
    "Llama-3.1-8B": ("llama3", "8B"),
    "Llama-3.1-70B": ("llama3", "70B"),
    "Llama-3.3-70B": ("llama3", "70B"),
    "Llama-3.1-405B": ("llama3", "405B"),
    "Qwen3-0.6B": ("qwen3", "0.6B"),
    "Qwen3-1.7B": ("qwen3", "1.7B"),
    "Qwen3-4B": ("qwen3", "4B"),
    "Qwen3-8B": ("qwen3", "8B"),
    "Qwen3-14B": ("qwen3", "14B"),
    "Qwen3-32B": ("qwen3", "32B"),
    "Qwen3-30B-A3B": ("qwen3", "30B-A3B"),
    "Qwen3-235B-A22B": ("qwen3", "235B-A22B"),
    "DeepSeek-V2-Lite": ("deepseek_v3", "16B"),
    "DeepSeek-V2": ("deepseek_v3", "236B"),
    "DeepSeek-V3": ("deepseek_v3", "671B"),
    "gpt-oss-20b": ("gpt_oss", "20b"),
    "gpt-oss-120b": ("gpt_oss", "120b"),
}
SUFFIXES = ("-Instruct", "-Base", "-0324", "-Chat")


def flavor_of(model: str) -> tuple[str, str] | None:
    """torchtitan's family and size of a Hugging Face model, None when it ships none."""
    name = model.rpartition("/")[2]
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return FLAVORS.get(name)


def torchtitan_settings(job: Job) -> dict[str, dict[str, Any]]:
    """`torchtitan.toml`: fields of torchtitan's configuration records."""
    layout, training = job.layout, job.training
    family, flavor = flavor_of(job.model)
    pipeline = int(layout.pipeline_parallel_size)
    data = int(layout.data_parallel_size)
    sharded = layout.zero_stage > 0 or layout.context_parallel_size > 1
    # one data-parallel rank's pass: with pipeline stages it holds all of its micro-batches
    local = int(layout.micro_batch_size) * (int(layout.gradient_accumulation_steps) if pipeline > 1 else 1)
    parallelism: dict[str, Any] = {
        "data_parallel_replicate_degree": 1 if sharded else data,
        "data_parallel_shard_degree": data if sharded else 1,
        "fsdp_reshard_after_forward": {3: "always"}.get(int(layout.zero_stage), "never"),
        "tensor_parallel_degree": int(layout.tensor_parallel_size),
        "enable_sequence_parallel": bool(layout.sequence_parallel),
        "pipeline_parallel_degree": pipeline,
        "context_parallel_degree": int(layout.context_parallel_size),
        "expert_parallel_degree": int(layout.expert_parallel_size),
    }
    if pipeline > 1:
        parallelism["pipeline_parallel_microbatch_size"] = int(layout.micro_batch_size)
        parallelism["pipeline_parallel_schedule"] = "Interleaved1F1B" if layout.virtual_pipeline > 1 else "1F1B"
        if layout.virtual_pipeline > 1:
            stages = pipeline * int(layout.virtual_pipeline)
            parallelism["pipeline_parallel_layers_per_stage"] = -(-job.architecture.num_layers // stages)
    pure = training.precision in ("bf16_pure",)
    return {
        "model": {
            "name": family,
            "flavor": flavor,
            "hf_assets_path": f"{DATA}/model",
            "converter": "float8" if training.precision == "fp8_mixed" else "",
        },
        "training": {
            "local_batch_size": local,
            "global_batch_size": int(layout.global_batch_size),
            "seq_len": int(layout.sequence_length),
            "steps": job.steps,
            "max_norm": 1.0,
            "enable_cpu_offload": layout.offload == "optimizer_and_parameters",
            "dtype": "bfloat16" if pure else "float32",
            "mixed_precision_param": "float32" if training.precision == "fp32" else "bfloat16",
            "mixed_precision_reduce": "float32",
        },
        "parallelism": parallelism,
        "activation_checkpoint": {"mode": layout.activation_recomputation},
        "compile": {"enable": training.compile},
        "optimizer": {"name": "AdamW", "lr": job.learning_rate},
        "lr_scheduler": {
            "warmup_steps": job.warmup_steps,
            "decay_ratio": 0.9,
            "decay_type": "cosine",
            "min_lr_factor": 0.1,
        },
        "checkpoint": {
            "enable": True,
            "folder": "checkpoint",
            "interval": job.save_steps,
            "keep_latest_k": max(job.keep, 2),
            "async_mode": "async" if job.asynchronous else "disabled",
            "last_save_model_only": False,
            "initial_load_in_hf": True,
            "initial_load_path": f"{DATA}/model",
        },
        "metrics": {"log_freq": 1},
        "job": {"dump_folder": job.checkpoints, "dataset_path": f"{DATA}/train.jsonl"},
    }


def torchtitan_kit(job: Job) -> dict[str, str]:
    """torchtitan: FSDP2 with tensor, pipeline, context and expert parallelism of a model it ships."""
    engine = "torchtitan"
    refusals.cards(job, engine)
    refusals.only_methods(job, engine, ("full",), "torchtune" if not job.model_parallel else "megatron_bridge")
    refusals.only_optimizers(job, engine, ("adamw",), "megatron" if job.model_parallel else "accelerate")
    nearest = "megatron" if job.model_parallel else "deepspeed"
    refusals.only_precisions(job, engine, ("bf16_mixed", "bf16_pure", "fp32", "fp8_mixed"), nearest)
    refusals.only_offload(job, engine, ("none", "optimizer_and_parameters"), nearest)
    refusals.no_activation_offload(job, engine, "torchtune")
    refusals.in_backward(job, engine, "torchtune")
    if flavor_of(job.model) is None:
        ways = "megatron" if job.model_parallel else "torchrun"
        refusals.refuse(engine, f"it ships no model like {one_line(job.architecture.name, 60)}", ways)
    if job.training.precision == "bf16_pure" and job.layout.zero_stage == 0 and job.gpus > 1:
        refusals.refuse(engine, "it keeps pure bf16 weights in shards only", "torchrun")
    return {
        "launch.sh": launch_script(
            job,
            engine,
            torchrun(job, "-m torchtitan.train --module torchtitan_run --config run"),
            ("export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}",),
        ),
        "torchtitan.toml": to_toml(torchtitan_settings(job), header(job, engine)),
        "torchtitan_run.py": template("torchtitan_run.py"),
    }
