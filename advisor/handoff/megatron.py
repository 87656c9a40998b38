"""Kits of Megatron-LM (arguments of pretrain_gpt.py) and of Megatron-Bridge (which starts from Hugging Face weights)."""

from __future__ import annotations

from typing import Any

from advisor.handoff import refusals
from advisor.handoff.job import DATA, Job
from advisor.handoff.pieces import ALPHA_OVER_RANK, launch_script, torchrun
from advisor.handoff.text import comments, one_line, template, to_yaml
from advisor.handoff.torch_kits import model_files
from advisor.handoff.versions import header

SIZES = ("tensor", "pipeline", "context", "expert")
OPTIMIZERS = {"adamw": "adam", "sgd": "sgd", "sgd_momentum": "sgd", "muon": "muon"}
PRECISIONS = ("bf16_mixed", "fp16_mixed", "fp32", "fp8_mixed")
#: Megatron FSDP's names of what is sharded.
STRATEGIES = {2: "optim_grads", 3: "optim_grads_params"}
#: Module names of Hugging Face as Megatron fuses them.
MEGATRON_TARGETS = {
    "q_proj": "linear_qkv",
    "k_proj": "linear_qkv",
    "v_proj": "linear_qkv",
    "o_proj": "linear_proj",
    "gate_proj": "linear_fc1",
    "up_proj": "linear_fc1",
    "down_proj": "linear_fc2",
}

READ_ARGUMENTS = """\
arguments=()
while read -r option value; do
  case "$option" in --*) arguments+=("$option"); [ -z "$value" ] || arguments+=("$value");; esac
done < megatron.args"""


def _check(job: Job, engine: str) -> None:
    refusals.cards(job, engine)
    layout = job.layout
    refusals.only_optimizers(job, engine, OPTIMIZERS, "accelerate")
    refusals.only_precisions(job, engine, PRECISIONS, "torchtitan" if job.training.precision == "bf16_pure" else "accelerate")
    refusals.no_activation_offload(job, engine, "torchtune")
    refusals.in_backward(job, engine, "torchtune")
    refusals.only_offload(job, engine, ("none", "optimizer"), "deepspeed")
    if layout.zero_stage >= 2 and layout.pipeline_parallel_size > 1:
        refusals.refuse(engine, f"its FSDP (ZeRO-{layout.zero_stage}) does not go with pipeline parallelism", "torchtitan")
    if job.model_parallel.get("expert", 1) > 1 and job.architecture.num_experts == 0:
        refusals.refuse(engine, "the model has no experts", "")


def model_arguments(job: Job) -> dict[str, Any]:
    """The architecture in Megatron's options; True is a switch."""
    a = job.architecture
    options: dict[str, Any] = {
        "num-layers": a.num_layers,
        "hidden-size": a.hidden_size,
        "ffn-hidden-size": a.intermediate_size,
        "num-attention-heads": a.num_attention_heads,
        "kv-channels": a.head_dim,
        "max-position-embeddings": max(a.max_position_embeddings or 0, int(job.layout.sequence_length)),
        "position-embedding-type": "rope",
        "normalization": "RMSNorm" if a.norm == "rmsnorm" else "LayerNorm",
        "swiglu": a.gated_mlp,
        "untie-embeddings-and-output-weights": not a.tie_word_embeddings,
        "qk-layernorm": a.qk_norm,
        "vocab-size": a.vocab_size,
        "make-vocab-size-divisible-by": 128,
    }
    attention = [matrix for matrix in a.matrices if matrix.block == "attention"]
    biased = {matrix.name for matrix in attention if matrix.bias}
    options["disable-bias-linear"] = not any(m.bias for m in a.matrices if m.block in ("mlp", "expert"))
    options["add-qkv-bias"] = bool(biased) and options["disable-bias-linear"]
    if a.num_key_value_heads != a.num_attention_heads and a.kv_lora_rank is None:
        options |= {"group-query-attention": True, "num-query-groups": a.num_key_value_heads}
    if a.kv_lora_rank is not None:
        rope = a.qk_rope_head_dim or 64
        options |= {
            "multi-latent-attention": True,
            "kv-lora-rank": a.kv_lora_rank,
            "q-lora-rank": a.q_lora_rank,
            "qk-head-dim": a.head_dim - rope,
            "qk-pos-emb-head-dim": rope,
            "v-head-dim": a.v_head_dim or a.head_dim,
        }
        options.pop("kv-channels")
    if a.num_experts:
        dense = a.num_layers - a.moe_layers
        options |= {
            "num-experts": a.num_experts,
            "moe-router-topk": a.num_experts_per_token,
            "moe-ffn-hidden-size": a.moe_intermediate_size,
            "moe-grouped-gemm": True,
            "moe-token-dispatcher-type": "alltoall",
            "moe-router-load-balancing-type": "aux_loss",
            "moe-aux-loss-coeff": 0.001,
        }
        if a.shared_expert_intermediate_size:
            options["moe-shared-expert-intermediate-size"] = a.shared_expert_intermediate_size
        if dense:
            options["moe-layer-freq"] = f"([0]*{dense}+[1]*{a.moe_layers})"
    theta = (job.config or {}).get("rope_theta")
    if isinstance(theta, (int, float)) and not isinstance(theta, bool) and 1 <= theta <= 1e12:
        options["rotary-base"] = int(theta)
    return options


def pipeline_split(job: Job) -> dict[str, Any]:
    """How layers go over stages that do not divide them: embedding and loss count as layers, or all is spelled out."""
    layers = job.architecture.num_layers
    stages = int(job.layout.pipeline_parallel_size) * int(job.layout.virtual_pipeline)
    if layers % stages == 0:
        return {}
    if (layers + 2) % stages == 0:
        return {"account_for_embedding_in_pipeline_split": True, "account_for_loss_in_pipeline_split": True}
    # E: embedding, t: a layer, L: loss; the first and the last stage have the fewest layers
    least, more = divmod(layers, stages)
    counts = [least] * stages
    for index in range(more):
        counts[1 + index if stages > more + 1 else index] += 1
    parts = ["t" * count for count in counts]
    parts[0], parts[-1] = "E" + parts[0], parts[-1] + "L"
    return {"pipeline_model_parallel_layout": "|".join(parts)}


def run_arguments(job: Job) -> dict[str, Any]:
    """Layout, batch, precision, recomputation, optimizer and checkpoints in Megatron's options."""
    layout, training = job.layout, job.training
    zero = int(layout.zero_stage)
    options: dict[str, Any] = {
        "tensor-model-parallel-size": int(layout.tensor_parallel_size),
        "pipeline-model-parallel-size": int(layout.pipeline_parallel_size),
        "context-parallel-size": int(layout.context_parallel_size),
        "sequence-parallel": bool(layout.sequence_parallel) and layout.tensor_parallel_size > 1,
        "micro-batch-size": int(layout.micro_batch_size),
        "global-batch-size": int(layout.global_batch_size),
        "seq-length": int(layout.sequence_length),
        "train-iters": job.steps,
        "bf16": training.precision in ("bf16_mixed", "fp8_mixed"),
        "fp16": training.precision == "fp16_mixed",
        "attention-backend": {"flash": "flash", "sdpa": "fused", "eager": "unfused"}[training.attention],
        "cross-entropy-loss-fusion": training.fused_loss,
        "optimizer": OPTIMIZERS[training.optimizer],
        "lr": job.learning_rate,
        "min-lr": round(job.learning_rate / 10, 12),
        "lr-decay-style": "cosine",
        "lr-warmup-iters": job.warmup_steps,
        "weight-decay": 0.1,
        "clip-grad": 1.0,
        "adam-beta1": 0.9,
        "adam-beta2": 0.95,
        "seed": 1234,
    }
    if job.architecture.num_experts:
        options["expert-model-parallel-size"] = int(layout.expert_parallel_size)
    options |= {name.replace("_", "-"): value for name, value in pipeline_split(job).items()}
    if layout.virtual_pipeline > 1 and "pipeline-model-parallel-layout" not in options:
        options["num-virtual-stages-per-pipeline-rank"] = int(layout.virtual_pipeline)
    if zero in (1,):
        options |= {"use-distributed-optimizer": True, "overlap-grad-reduce": True, "overlap-param-gather": True}
    if zero in STRATEGIES:
        options |= {
            "use-distributed-optimizer": True,
            "use-megatron-fsdp": True,
            "data-parallel-sharding-strategy": STRATEGIES[zero],
            "overlap-grad-reduce": True,
            "overlap-param-gather": True,
            "no-gradient-accumulation-fusion": True,
        }
    if training.precision == "fp8_mixed":
        options["fp8-format"] = "hybrid"
    if training.optimizer == "sgd_momentum":
        options["sgd-momentum"] = 0.9
    elif training.optimizer == "sgd":
        options["sgd-momentum"] = 0.0
    if layout.offload == "optimizer":
        options |= {
            "optimizer-cpu-offload": True,
            "optimizer-offload-fraction": 1.0,
            "use-precision-aware-optimizer": True,
        }
    if layout.activation_recomputation == "full":
        options |= {"recompute-granularity": "full", "recompute-method": "uniform", "recompute-num-layers": 1}
    elif layout.activation_recomputation == "selective":
        options["recompute-granularity"] = "selective"
    return options


def _place_arguments(job: Job) -> dict[str, Any]:
    fsdp = int(job.layout.zero_stage) in STRATEGIES
    return {
        "save": job.checkpoints,
        "load": job.checkpoints,
        "save-interval": job.save_steps,
        "async-save": job.asynchronous,
        "ckpt-format": "fsdp_dtensor" if fsdp else "torch_dist",
        "exit-signal-handler": True,
        "data-path": f"{DATA}/tokens_text_document",
        "split": "100,0,0",
        "tokenizer-type": "HuggingFaceTokenizer",
        "tokenizer-model": job.model,
        "num-workers": 4,
        "eval-iters": 0,
        "eval-interval": max(job.steps, 1),
        "distributed-timeout-minutes": 30,
        "log-interval": 1,
        "log-throughput": True,
    }


def megatron_arguments(job: Job) -> dict[str, Any]:
    """Every option of `megatron.args`; False and None are left out."""
    every = model_arguments(job) | run_arguments(job) | _place_arguments(job)
    return {name: value for name, value in every.items() if value is not None and value is not False}


def _connections(job: Job) -> tuple[str, ...]:
    """One hardware queue keeps tensor parallelism's overlap in order; Megatron's FSDP needs several."""
    fsdp = int(job.layout.zero_stage) in STRATEGIES
    return () if fsdp else ("export CUDA_DEVICE_MAX_CONNECTIONS=1  # keeps communication and compute in order",)


def megatron_kit(job: Job) -> dict[str, str]:
    """Megatron-LM: tensor, pipeline, context and expert parallelism of a whole model."""
    engine = "megatron"
    _check(job, engine)
    if job.adapters:
        nearest = "llamafactory" if job.training.method == "qlora" else "megatron_bridge"
        refusals.refuse(engine, f"pretrain_gpt.py trains whole models and not {job.training.method} adapters", nearest)
    a = job.architecture
    if a.mixer_layers or a.sliding_window_layers or a.logit_softcapping:
        refusals.refuse(engine, f"its options do not describe the layers of {one_line(a.name, 60)}", "megatron_bridge")
    lines = []
    for name, value in megatron_arguments(job).items():
        lines.append(f"--{name}" if value is True else f"--{name} {one_line(value, 300)}")
    script = '"${MEGATRON_DIR:-/opt/Megatron-LM}/pretrain_gpt.py" "${arguments[@]}"'
    before = (READ_ARGUMENTS, 'arguments+=(--save "$CHECKPOINT_DIR" --load "$CHECKPOINT_DIR")', *_connections(job))
    return {
        "launch.sh": launch_script(job, engine, torchrun(job, script), before, stop="TERM"),
        "megatron.args": comments(header(job, engine)) + "\n".join(lines) + "\n",
        **model_files(job),
    }


def bridge_settings(job: Job) -> dict[str, dict[str, Any]]:
    """`bridge.yaml`: fields of Megatron-Bridge's configuration records, section by section."""
    layout, training = job.layout, job.training
    zero = int(layout.zero_stage)
    model: dict[str, Any] = {
        "tensor_model_parallel_size": int(layout.tensor_parallel_size),
        "pipeline_model_parallel_size": int(layout.pipeline_parallel_size),
        "context_parallel_size": int(layout.context_parallel_size),
        "expert_model_parallel_size": int(layout.expert_parallel_size),
        "sequence_parallel": bool(layout.sequence_parallel) and layout.tensor_parallel_size > 1,
        "seq_length": int(layout.sequence_length),
    }
    model |= pipeline_split(job)
    if layout.virtual_pipeline > 1 and "pipeline_model_parallel_layout" not in model:
        model["virtual_pipeline_model_parallel_size"] = int(layout.virtual_pipeline)
    if layout.activation_recomputation == "full":
        model |= {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
    elif layout.activation_recomputation == "selective":
        model["recompute_granularity"] = "selective"
    optimizer: dict[str, Any] = {
        "optimizer": OPTIMIZERS[training.optimizer],
        "lr": job.learning_rate,
        "min_lr": round(job.learning_rate / 10, 12),
        "weight_decay": 0.0 if job.adapters else 0.1,
        "adam_beta1": 0.9,
        "adam_beta2": 0.95,
        "clip_grad": 1.0,
        "use_distributed_optimizer": zero >= 1,
    }
    if layout.offload == "optimizer":
        optimizer |= {"optimizer_cpu_offload": True, "optimizer_offload_fraction": 1.0, "use_precision_aware_optimizer": True}
    ddp: dict[str, Any] = {
        "use_distributed_optimizer": zero >= 1,
        "overlap_grad_reduce": zero >= 1,
        "overlap_param_gather": zero >= 1,
        "grad_reduce_in_fp32": training.gradients == "fp32",
    }
    if zero in STRATEGIES:
        ddp |= {"use_megatron_fsdp": True, "data_parallel_sharding_strategy": STRATEGIES[zero]}
    settings: dict[str, dict[str, Any]] = {
        "run": {
            "hf_model": job.model,
            "mixed_precision": {
                "bf16_mixed": "bf16_mixed",
                "fp16_mixed": "fp16_mixed",
                "fp8_mixed": "bf16_with_fp8_current_scaling_mixed",
                "fp32": "",
            }[training.precision],
        },
        "model": model,
        "train": {
            "micro_batch_size": int(layout.micro_batch_size),
            "global_batch_size": int(layout.global_batch_size),
            "train_iters": job.steps,
            "exit_signal_handler": True,
            "eval_iters": 0,
            "eval_interval": job.steps,
        },
        "optimizer": optimizer,
        "scheduler": {"lr_decay_style": "cosine", "lr_warmup_iters": job.warmup_steps, "lr_decay_iters": job.steps},
        "ddp": ddp,
        "dataset": {
            "dataset_root": DATA,
            "seq_length": int(layout.sequence_length),
            "num_workers": 4,
            "do_validation": False,
            "do_test": False,
        },
        "checkpoint": {
            "save": job.checkpoints,
            "load": job.checkpoints,
            "save_interval": job.save_steps,
            "most_recent_k": job.keep,
            "async_save": job.asynchronous,
            "ckpt_format": "fsdp_dtensor" if zero in STRATEGIES else "torch_dist",
        },
        "logger": {"log_interval": 1, "log_throughput": True},
        "tokenizer": {"tokenizer_type": "HuggingFaceTokenizer", "tokenizer_model": job.model},
        "rng": {"seed": 1234},
        "dist": {"use_megatron_fsdp": zero in STRATEGIES, "distributed_timeout_minutes": 30},
    }
    if job.adapters:
        # adapters are laid on a Megatron checkpoint, which `train_bridge.py import` makes
        settings["checkpoint"]["pretrained_checkpoint"] = f"{job.checkpoints}/pretrained"
        lora = job.training.lora
        settings["peft"] = {
            "target_modules": _targets(job),
            "dim": lora.rank,
            "alpha": ALPHA_OVER_RANK * lora.rank,
            "dropout": 0.05 if lora.dropout else 0.0,
        }
        settings["run"]["peft"] = "dora" if training.method == "dora" else "lora"
    return settings


def _targets(job: Job) -> list[str]:
    targets = job.training.lora.targets
    if targets == "all_linear":
        return ["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"]
    if targets in ("attention", "attention_qv"):
        return ["linear_qkv", "linear_proj"] if targets == "attention" else ["linear_qkv"]
    unknown = [name for name in targets if name not in MEGATRON_TARGETS]
    if unknown:
        refusals.refuse("megatron_bridge", f"it has no module {one_line(unknown[0], 40)}", "accelerate")
    return list(dict.fromkeys(MEGATRON_TARGETS[name] for name in targets))


def bridge_kit(job: Job) -> dict[str, str]:
    """Megatron-Bridge: Megatron's parallelism from Hugging Face weights, whole models and LoRA."""
    engine = "megatron_bridge"
    refusals.only_methods(job, engine, ("full", "lora", "dora"), "llamafactory")
    _check(job, engine)
    if job.config is not None:
        refusals.refuse(engine, "it reads Hugging Face weights, and this model is a description without any", "megatron")
    if job.adapters and job.layout.zero_stage > 1:
        refusals.refuse(engine, f"its FSDP (ZeRO-{job.layout.zero_stage}) does not go with adapters", "accelerate")
    return {
        "launch.sh": launch_script(job, engine, torchrun(job, "train_bridge.py"), _connections(job), stop="TERM"),
        "bridge.yaml": to_yaml(bridge_settings(job), header(job, engine)),
        "train_bridge.py": template("train_bridge.py"),
    }
