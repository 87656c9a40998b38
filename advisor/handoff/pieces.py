"""What several engines' kits share: the launch script, the adapters' settings, and the job file of the training scripts."""

from __future__ import annotations

from typing import Any

from advisor.handoff.errors import HandoffError
from advisor.handoff.job import DATA, Job
from advisor.handoff.text import comments, quote
from advisor.handoff.versions import header
from advisor.workload import adapted_matrices

#: Scaling of adapters: alpha over rank, the usual 2.
ALPHA_OVER_RANK = 2
RENDEZVOUS_PORT = 29400


#: Passes a stop on to the training processes themselves: torchrun would give them 30 s and then kill them in mid-save.
STOPPABLE = """\
# A stop (SIGTERM, SIGUSR1) goes to the training processes, which save and end; this script then ends with 143.
setsid {command} &
main=$!
stopped=
trap 'stopped=1; kill -{signal} $(cat /proc/"$main"/task/*/children) 2>/dev/null || true' TERM USR1 INT
status=0
wait "$main" || status=$?
while kill -0 "$main" 2>/dev/null; do status=0; wait "$main" || status=$?; done
[ -z "$stopped" ] || exit 143
exit "$status"
"""


def launch_script(job: Job, engine: str, command: str, before: tuple[str, ...] = (), stop: str = "") -> str:
    """`launch.sh`: places and rendezvous from the environment, the fabric's variables, then the engine's command.

    command: shell that we wrote; anything of the scenario's in it is quoted already. stop: the signal at which the engine's
    processes save and end, "" for engines that know none (they lose what came after the last checkpoint).
    """
    last = STOPPABLE.format(command=command, signal=stop) if stop else f"exec {command}\n"
    lines = [
        "#!/usr/bin/env bash",
        comments(header(job, engine)).rstrip("\n"),
        "# Run it on every node at once, with NODE_RANK 0, 1, 2, ... and MASTER_ADDR the address of node 0.",
        "set -euo pipefail",
        'cd "$(dirname "$0")"',
        "",
        f"export NNODES=${{NNODES:-{job.nodes}}} NODE_RANK=${{NODE_RANK:-0}}",
        f"export NPROC_PER_NODE=${{NPROC_PER_NODE:-{job.gpus_per_node}}}",
        f"export MASTER_ADDR=${{MASTER_ADDR:-127.0.0.1}} MASTER_PORT=${{MASTER_PORT:-{RENDEZVOUS_PORT}}}",
        f"export DATA_DIR=${{DATA_DIR:-{quote(DATA)}}}",
        f"export CHECKPOINT_DIR=${{CHECKPOINT_DIR:-{quote(job.checkpoints)}}}",
        "export OMP_NUM_THREADS=${OMP_NUM_THREADS:-8}",
    ]
    for setting in job.environment:
        lines.append(f"export {setting.name}={quote(setting.value)}  # {setting.why}")
    if job.provider_script:
        lines.append("# the machine image's own NCCL plug-in for this network")
        lines.append(f"if [ -f {quote(job.provider_script)} ]; then . {quote(job.provider_script)}; fi")
    return "\n".join([*lines, *before, "", last])


def torchrun(job: Job, *words: str) -> str:
    """The torchrun command of a layout: standalone on one node, a c10d rendezvous on several."""
    if job.nodes == 1:
        where = "--standalone --nnodes 1"
    else:
        where = (
            '--nnodes "$NNODES" --node-rank "$NODE_RANK" --rdzv-backend c10d '
            f'--rdzv-endpoint "$MASTER_ADDR:$MASTER_PORT" --rdzv-id {quote(job.name)}'
        )
    return f'torchrun {where} --nproc-per-node "$NPROC_PER_NODE" --max-restarts 0 \\\n  {" ".join(words)}'


def target_modules(job: Job) -> str | list[str]:
    """Modules with adapters as PEFT names them."""
    targets = job.training.lora.targets
    if targets == "all_linear":
        return "all-linear"
    return target_names(job)


def target_names(job: Job) -> list[str]:
    """Modules with adapters by name, without repetition, in the model's order."""
    return list(dict.fromkeys(matrix.name for matrix in adapted_matrices(job.architecture, job.training.lora.targets)))


def peft_settings(job: Job) -> dict[str, Any] | None:
    """Arguments of PEFT's LoraConfig, None for full training."""
    if not job.adapters:
        return None
    lora = job.training.lora
    return {
        "r": lora.rank,
        "lora_alpha": ALPHA_OVER_RANK * lora.rank,
        "lora_dropout": 0.05 if lora.dropout else 0.0,
        "target_modules": target_modules(job),
        "use_dora": job.training.method == "dora",
        "bias": "none",
        "task_type": "CAUSAL_LM",
    }


def quantization_settings(job: Job) -> dict[str, Any] | None:
    """Arguments of transformers' BitsAndBytesConfig, None without quantized weights."""
    quantization = job.training.quantization
    if job.training.method != "qlora" or quantization is None:
        return None
    if quantization.format == "int8":
        return {"load_in_8bit": True}
    if quantization.format == "int4":
        raise HandoffError("bitsandbytes has no int4 weights: set quantization.format to nf4, which every engine here takes.")
    return {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": quantization.format,
        "bnb_4bit_use_double_quant": quantization.double_quantization,
        "bnb_4bit_compute_dtype": {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[job.half],
    }


def attention(job: Job) -> str:
    """transformers' name of the attention."""
    return {"eager": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}[job.training.attention]


def job_file(job: Job, sharded: bool) -> dict[str, Any]:
    """`job.json`, which the kit's training scripts read.

    sharded: whether the engine keeps fp32 shards and computes in 16 bits (FSDP2), where the plan says 16-bit weights with an
    fp32 master copy: the same bytes per parameter.
    """
    training, layout = job.training, job.layout
    weights = training.weights if training.weights in ("bf16", "fp16", "fp32") else job.half
    if not job.adapters and training.precision in ("bf16_mixed", "fp16_mixed", "fp32_autocast") and sharded:
        weights = "fp32"
    compute = "fp32" if training.precision == "fp32" else job.half
    return {
        "name": job.name,
        "model": job.model,
        "weights": weights,
        "compute": compute,
        "gradients": "bf16" if training.precision == "bf16_pure" else "fp32",
        "attention": attention(job),
        "compile": training.compile,
        "recompute": job.recomputes,
        "adapter": peft_settings(job),
        "adapter_dtype": training.lora.dtype if training.lora else None,
        "quantization": quantization_settings(job),
        "optimizer": training.optimizer,
        "learning_rate": job.learning_rate,
        "weight_decay": 0.0 if job.adapters else 0.1,
        "warmup_steps": job.warmup_steps,
        "sequence_length": int(layout.sequence_length),
        "micro_batch_size": int(layout.micro_batch_size),
        "gradient_accumulation_steps": int(layout.gradient_accumulation_steps),
        "global_batch_size": int(layout.global_batch_size),
        "gpus": job.gpus,
        "zero_stage": int(layout.zero_stage),
        "offload": layout.offload == "optimizer_and_parameters",
        "steps": job.steps,
        "save_steps": job.save_steps,
        "keep": job.keep,
        "seed": 1234,
        "data": DATA,
        "checkpoints": job.checkpoints,
    }
