"""DeepSpeed JSON: ZeRO stage, offload, precision and batch sizes, and what in it contradicts itself.

"auto" is kept: the integration (transformers, accelerate) fills it in from its own arguments. Meaning of keys: DeepSpeed's
"Configuration JSON" page; `deepspeed/runtime/zero/config.py` for older names (`cpu_offload`, `zero_optimization: true`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor.evidence.deepspeed_checks import check
from advisor.evidence.documents import Document, document, hostile
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report
from advisor.evidence.values import as_group, as_integer, as_number, as_switch, as_word, document_problems, unusable

#: Keys that hardly any other JSON file has.
NEVER = ("model_type", "architectures", "hidden_size", "output_dir", "model_name_or_path", "micro_batch_size")
STRONG = ("zero_optimization", "train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer", "bf16", "fp16", "autotuning")
WEAK = (
    "train_batch_size",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "optimizer",
    "scheduler",
    "steps_per_print",
    "wall_clock_breakdown",
    "activation_checkpointing",
    "tensor_parallel",
    "aio",
    "pipeline",
    "communication_data_type",
    "zero_force_ds_cpu_optimizer",
    "flops_profiler",
)
#: ZeRO keys of a fragment that has lost its frame.
ZERO_KEYS = (
    "stage3_max_live_parameters",
    "reduce_bucket_size",
    "overlap_comm",
    "contiguous_gradients",
    "offload_optimizer",
    "stage",
)


@dataclass(frozen=True, kw_only=True)
class DeepSpeedReading(Reading):
    """One file; None is what it does not give, "auto" what it leaves to the integration.

    offload_*: the device ("cpu", "nvme", "none"). gather_16bit_on_save: `stage3_gather_16bit_weights_on_model_save`;
    unprefixed: settings of stage 3 written without their prefix. hpz, quantized_*: ZeRO++. Bucket sizes are elements.
    """

    zero_stage: Any = None
    offload_optimizer: str | None = None
    offload_param: str | None = None
    bf16_enabled: Any = None
    fp16_enabled: Any = None
    train_batch_size: Any = None
    micro_batch_per_gpu: Any = None
    grad_accum: Any = None
    gradient_clipping: Any = None
    optimizer: str | None = None
    optimizer_params: dict | None = None
    scheduler: str | None = None
    gather_16bit_on_save: Any = None
    unprefixed: dict | None = None
    reduce_bucket_size: Any = None
    allgather_bucket_size: Any = None
    overlap_comm: Any = None
    contiguous_gradients: Any = None
    sub_group_size: Any = None
    prefetch_bucket_size: Any = None
    param_persistence_threshold: Any = None
    max_live_parameters: Any = None
    nvme_path: str | None = None
    pin_memory: Any = None
    offload_ratio: Any = None
    hpz_partition_size: Any = None
    quantized_weights: Any = None
    quantized_gradients: Any = None
    mics_shard_size: Any = None
    tensor_parallel: dict | None = None
    sequence_parallel_size: Any = None
    pipeline: dict | None = None
    activation_checkpointing: dict | None = None
    communication_data_type: str | None = None
    grad_accum_dtype: str | None = None
    amp: Any = None
    config: dict | None = None


def recognise(text: str) -> float:
    """How sure it is that `text` is a DeepSpeed configuration."""
    if hostile(text):
        return 0.0
    found = _document(text)
    if found is None:
        return 0.0
    data = found.data
    strong, weak = sum(key in data for key in STRONG), sum(key in data for key in WEAK)
    if any(key in data for key in NEVER):
        return 0.0  # a model's config, or the arguments of a trainer
    if "zero_optimization" in data or "train_micro_batch_size_per_gpu" in data or strong >= 2:
        return 0.96
    if strong + weak >= 2:
        return 0.85
    return 0.8 if sum(key in data for key in ZERO_KEYS) >= 3 else 0.0


def read(text: str) -> Report:
    """Read one file. Raises EvidenceError where there is no JSON object in the text."""
    found = _document(text)
    if found is None:
        raise EvidenceError("The text holds no JSON object that could be a DeepSpeed configuration.")
    reading, problems = read_config(found.data)
    return Report(kind="deepspeed", reading=reading, problems=(*document_problems(found), *problems), truncated=found.cut)


READER = Reader("deepspeed", recognise, read)


def _document(text: str) -> Document | None:
    head = text[:200_000]
    if "zero" not in head and "train_" not in head and '"' not in head:
        return None
    found = document(text)
    if found is None or (found.form == "yaml" and "zero_optimization" not in found.data):
        return None
    return found


def read_config(data: dict[str, Any]) -> tuple[DeepSpeedReading, tuple[Problem, ...]]:
    """The reading of an already parsed configuration, and what is wrong in it."""
    problems: list[Problem] = []
    zero_given = data.get("zero_optimization")
    zero = as_group(zero_given) or {}
    if zero_given is None and sum(key in data for key in ZERO_KEYS) >= 3:
        zero = data
    stage = _stage(zero_given, zero, problems)
    tensor = as_group(data.get("tensor_parallel"))
    optimizer = as_group(data.get("optimizer")) or {}
    plain = {
        key: zero[key]
        for key in (
            "gather_16bit_weights_on_model_save",
            "max_live_parameters",
            "max_reuse_distance",
            "param_persistence_threshold",
        )
        if key in zero and f"stage3_{key}" not in zero
    }
    offload = as_group(zero.get("offload_optimizer")) or {}
    reading = DeepSpeedReading(
        zero_stage=stage,
        offload_optimizer=_device(zero, "offload_optimizer", "cpu_offload", problems),
        offload_param=_device(zero, "offload_param", "cpu_offload_params", problems),
        bf16_enabled=_enabled(data.get("bf16", data.get("bfloat16"))),
        fp16_enabled=_enabled(data.get("fp16")),
        train_batch_size=_integer(data, "train_batch_size", problems),
        micro_batch_per_gpu=_integer(data, "train_micro_batch_size_per_gpu", problems),
        grad_accum=_integer(data, "gradient_accumulation_steps", problems),
        gradient_clipping=as_number(data.get("gradient_clipping")),
        optimizer=as_word(optimizer.get("type")),
        optimizer_params=as_group(optimizer.get("params")),
        scheduler=as_word((as_group(data.get("scheduler")) or {}).get("type")),
        gather_16bit_on_save=as_switch(
            zero.get("stage3_gather_16bit_weights_on_model_save", zero.get("stage3_gather_fp16_weights_on_model_save"))
        ),
        unprefixed=plain or None,
        reduce_bucket_size=as_number(zero.get("reduce_bucket_size")),
        allgather_bucket_size=as_number(zero.get("allgather_bucket_size")),
        overlap_comm=as_switch(zero.get("overlap_comm")),
        contiguous_gradients=as_switch(zero.get("contiguous_gradients")),
        sub_group_size=as_number(zero.get("sub_group_size")),
        prefetch_bucket_size=as_number(zero.get("stage3_prefetch_bucket_size")),
        param_persistence_threshold=as_number(zero.get("stage3_param_persistence_threshold")),
        max_live_parameters=as_number(zero.get("stage3_max_live_parameters")),
        nvme_path=as_word(offload.get("nvme_path")) or as_word((as_group(zero.get("offload_param")) or {}).get("nvme_path")),
        pin_memory=as_switch(offload.get("pin_memory")),
        offload_ratio=as_number(offload.get("ratio")),
        hpz_partition_size=as_integer(zero.get("zero_hpz_partition_size")),
        quantized_weights=as_switch(zero.get("zero_quantized_weights")),
        quantized_gradients=as_switch(zero.get("zero_quantized_gradients")),
        mics_shard_size=as_integer(zero.get("mics_shard_size")),
        tensor_parallel=tensor,
        sequence_parallel_size=as_integer(data.get("sequence_parallel_size")),
        pipeline=as_group(data.get("pipeline")),
        activation_checkpointing=as_group(data.get("activation_checkpointing")),
        communication_data_type=as_word(data.get("communication_data_type")),
        grad_accum_dtype=as_word((as_group(data.get("data_types")) or {}).get("grad_accum_dtype")),
        amp=_enabled(data.get("amp")),
        config=data,
    )
    return reading, (*problems, *check(reading))


def _stage(given: Any, zero: dict[str, Any], problems: list[Problem]) -> Any:
    """The ZeRO stage; `true` was stage 1 once."""
    if isinstance(given, bool):
        return int(given)
    value = as_integer(zero.get("stage"))
    if value == "auto" or value is None:
        if zero.get("stage") is not None and value is None:
            problems.append(unusable("zero_optimization.stage", zero["stage"], "0, 1, 2 or 3", "0、1、2 或 3"))
        return value if value is not None else (0 if given is not None and "stage" not in zero else None)
    if not 0 <= value <= 3:
        problems.append(unusable("zero_optimization.stage", value, "0, 1, 2 or 3", "0、1、2 或 3"))
        return None
    return value


def _device(zero: dict[str, Any], key: str, old: str, problems: list[Problem]) -> str | None:
    given = zero.get(key)
    if isinstance(given, dict):
        device = as_word(given.get("device"))
        if device is not None and device.lower() not in ("cpu", "nvme", "none"):
            problems.append(unusable(f"{key}.device", device, "cpu, nvme or none", "cpu、nvme 或 none"))
        return device
    if isinstance(given, str):
        return as_word(given)
    if as_switch(zero.get(old)) is True:
        return f"cpu (legacy {old})"
    return None


def _enabled(given: Any) -> Any:
    if isinstance(given, dict):
        return as_switch(given.get("enabled"))
    return as_switch(given)


def _integer(data: dict[str, Any], key: str, problems: list[Problem]) -> Any:
    given = data.get(key)
    value = as_integer(given)
    if given is not None and (value is None or (value != "auto" and value < 1)):
        problems.append(unusable(key, given, "a whole number of at least 1 or 'auto'", "不小于 1 的整数或 'auto'"))
        return None
    return value
