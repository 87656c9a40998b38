"""Training YAMLs: LLaMA-Factory, axolotl, torchtune, Accelerate, and plain transformers arguments.

One record for all of them; `train_frameworks` reads each framework's words and `train_checks` says what contradicts itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor.evidence.documents import Document, document, hostile
from advisor.evidence.report import EvidenceError, Reader, Reading, Report
from advisor.evidence.train_checks import check
from advisor.evidence.train_frameworks import FRAMEWORKS, framework_of
from advisor.evidence.values import document_problems


@dataclass(frozen=True, kw_only=True)
class TrainYamlReading(Reading):
    """One file; None is what it does not say. Words and values are the file's own.

    framework: "LLaMA-Factory", "axolotl", "torchtune", "accelerate" or "transformers". method: "full", "freeze", "lora" or
    "qlora". precision: "bf16", "fp16", "fp32", "pure_bf16", "fp8" or "no". deepspeed: path or settings. fsdp: list, or
    Accelerate's own group. nproc_per_node_in_comment: what a command in a comment starts. settings: the whole file.
    """

    framework: str
    model: str | None = None
    model_builder: str | None = None
    checkpoint_dir: str | None = None
    stage: str | None = None
    method: str | None = None
    dora: bool | None = None
    lora_rank: Any = None
    lora_alpha: Any = None
    lora_dropout: Any = None
    lora_target: Any = None
    lora_target_linear: bool | None = None
    lora_target_modules: Any = None
    lora_attn_modules: Any = None
    apply_lora_to_mlp: bool | None = None
    load_in_4bit: bool | None = None
    load_in_8bit: bool | None = None
    quantization_bit: Any = None
    quantization_method: str | None = None
    double_quantization: bool | None = None
    freeze_vision_tower: bool | None = None
    image_max_pixels: Any = None
    video_max_pixels: Any = None
    seq_len: Any = None
    sample_packing: bool | None = None
    packing: bool | None = None
    micro_batch: Any = None
    grad_accum: Any = None
    global_batch: Any = None
    optimizer: str | None = None
    optimizer_in_bwd: bool | None = None
    learning_rate: Any = None
    precision: str | None = None
    mixed_precision: str | None = None
    attn_implementation: str | None = None
    flash_attention: bool | None = None
    gradient_checkpointing: Any = None
    activation_checkpointing: bool | None = None
    activation_offloading: Any = None
    compile: bool | None = None
    loss: str | None = None
    fused_loss: bool | None = None
    deepspeed: Any = None
    deepspeed_config: Any = None
    zero_stage: Any = None
    fsdp: Any = None
    fsdp_config: dict | None = None
    fsdp_version: Any = None
    fsdp_cpu_offload: bool | None = None
    fsdp_reshard: bool | None = None
    distributed_type: str | None = None
    num_machines: Any = None
    num_processes: Any = None
    machine_rank: Any = None
    main_process_ip: str | None = None
    main_process_port: Any = None
    dp_shard_size: Any = None
    dp_replicate_size: Any = None
    tensor_parallel_size: Any = None
    context_parallel_size: Any = None
    expert_parallel_size: Any = None
    sequence_parallel_degree: Any = None
    tensor_model_parallel_size: Any = None
    pipeline_model_parallel_size: Any = None
    expert_model_parallel_size: Any = None
    virtual_pipeline_model_parallel_size: Any = None
    sequence_parallel: bool | None = None
    use_distributed_optimizer: bool | None = None
    recompute_granularity: str | None = None
    epochs: Any = None
    max_steps: Any = None
    max_samples: Any = None
    save_steps: Any = None
    saves_per_epoch: Any = None
    save_total_limit: Any = None
    save_only_model: bool | None = None
    ddp_timeout: Any = None
    nproc_per_node_in_comment: int | None = None
    settings: dict | None = None


def recognise(text: str) -> float:
    """How sure it is that `text` is a training configuration."""
    if hostile(text):
        return 0.2
    found = _document(text)
    return framework_of(found.data)[1] if found is not None else 0.0


def read(text: str) -> Report:
    """Read one file. Raises EvidenceError where no known framework's keys are in it."""
    found = _document(text)
    name, sure = framework_of(found.data) if found is not None else ("", 0.0)
    if found is None or sure <= 0:
        raise EvidenceError("The text holds no keys of LLaMA-Factory, axolotl, torchtune, Accelerate or transformers.")
    problems = [*document_problems(found)]
    values = {key: value for key, value in FRAMEWORKS[name](found, problems).items() if value is not None}
    reading = TrainYamlReading(framework=name, settings=found.data, **values)
    return Report(
        kind="train_yaml", reading=reading, problems=(*problems, *check(reading)), truncated=found.cut or bool(found.skipped)
    )


READER = Reader("train_yaml", recognise, read)


def _document(text: str) -> Document | None:
    return document(text) if ":" in text[:200_000] else None
