"""Where training runs, from DeepSpeed, Accelerate, FSDP and launch readings: framework, ZeRO stage, parallel "
"sizes, offload, GPUs."""

from __future__ import annotations

import math
import re
from typing import Any

from advisor.evidence.deepspeed import DeepSpeedReading
from advisor.evidence.import_draft import Draft
from advisor.evidence.launch import LaunchReading
from advisor.evidence.train_checks import offloads
from advisor.evidence.train_frameworks import MEGATRON
from advisor.evidence.train_yaml import TrainYamlReading
from advisor.evidence.values import as_integer, as_switch, positive

STAGE_IN_NAME = re.compile(r"(?:zero|z|stage)[-_]?([0-3])(?![0-9])", re.IGNORECASE)
STRATEGIES = {
    "FULL_SHARD": 3,
    "SHARD_GRAD_OP": 2,
    "NO_SHARD": 0,
    "HYBRID_SHARD": 3,
    "HYBRID_SHARD_ZERO2": 2,
    "1": 3,
    "2": 2,
    "3": 0,
    "4": 3,
    "5": 2,
}


def sharding_of(
    train: TrainYamlReading | None, accelerate: TrainYamlReading | None, deepspeed: DeepSpeedReading | None
) -> str | None:
    """The software that shards: "deepspeed", "fsdp", "megatron", or None where nothing says so."""
    if train is not None and any(key in (train.settings or {}) for key in MEGATRON):
        return "megatron"
    kind = (accelerate.distributed_type or "").upper() if accelerate is not None else ""
    if kind == "MEGATRON_LM":
        return "megatron"
    if deepspeed is not None or kind == "DEEPSPEED" or (train is not None and train.deepspeed):
        return "deepspeed"
    if kind == "FSDP" or any(one is not None and (one.fsdp or one.fsdp_config) for one in (train, accelerate)):
        return "fsdp"
    return "fsdp" if train is not None and (positive(train.dp_shard_size) or 1) > 1 else None


def take_layout(
    draft: Draft,
    train: TrainYamlReading | None,
    accelerate: TrainYamlReading | None,
    deepspeed: DeepSpeedReading | None,
    launch: LaunchReading | None,
) -> None:
    """Framework, parallel sizes, offload and GPU count."""
    software = sharding_of(train, accelerate, deepspeed)
    if train is not None and train.framework == "torchtune":
        draft.take("framework", "torchtune", "_component_", "torchtune")
    elif software:
        source, where = _named(software, train, accelerate, deepspeed)
        draft.take("framework", software, where, source)
    elif train is not None:
        draft.take(
            "framework", "transformers", "framework", train.framework, "nothing in it shards the model", "其中没有切分设置"
        )
    if deepspeed is not None:
        _deepspeed(draft, deepspeed)
        if accelerate is not None and (accelerate.distributed_type or "").upper() == "FSDP":
            draft.ignore(
                "framework",
                "accelerate",
                "Accelerate says FSDP, but a DeepSpeed file was given too: DeepSpeed counts.",
                "Accelerate 配置为 FSDP，但同时给出了 DeepSpeed 文件：以 DeepSpeed 为准。",
            )
    for reading in (accelerate, train):
        if reading is not None:
            _zero_of(draft, reading, deepspeed)
            _sizes(draft, reading)
    if accelerate is not None:
        _accelerate(draft, accelerate)
    if launch is not None:
        _launch(draft, launch)
    if train is not None:
        _gpus(draft, train)


def _named(
    software: str, train: TrainYamlReading | None, accelerate: TrainYamlReading | None, deepspeed: DeepSpeedReading | None
) -> tuple[str, str]:
    """(source, key) that says which software it is."""
    if deepspeed is not None and software == "deepspeed":
        return "DeepSpeed", "zero_optimization"
    if accelerate is not None and accelerate.distributed_type:
        return "accelerate", "distributed_type"
    reading = train or accelerate
    settings = (reading.settings or {}) if reading is not None else {}
    keys = ("deepspeed", "fsdp", "fsdp_config", "dp_shard_size", *MEGATRON)
    where = next((key for key in keys if key in settings), software)
    return (reading.framework if reading is not None else software), where


def _deepspeed(draft: Draft, reading: DeepSpeedReading) -> None:
    source = "DeepSpeed"
    if isinstance(reading.zero_stage, int):
        draft.take("parallelism.zero_stage", reading.zero_stage, "zero_optimization.stage", source)
    draft.take("offload", *_offload(reading.offload_param, reading.offload_optimizer), source)
    if reading.bf16_enabled is True:
        draft.take("precision", "bf16_mixed", "bf16.enabled", source)
    elif reading.fp16_enabled is True:
        draft.take("precision", "fp16_mixed", "fp16.enabled", source)
    for key, value, where in (
        ("micro_batch_size", reading.micro_batch_per_gpu, "train_micro_batch_size_per_gpu"),
        ("gradient_accumulation_steps", reading.grad_accum, "gradient_accumulation_steps"),
        ("global_batch_size", reading.train_batch_size, "train_batch_size"),
    ):
        if value == "auto":
            draft.used.add((source, where))
        elif positive(value):
            draft.take(key, value, where, source)
    tensor = as_integer((reading.tensor_parallel or {}).get("autotp_size"))
    if isinstance(tensor, int) and tensor > 1:
        draft.take("parallelism.tensor", tensor, "tensor_parallel.autotp_size", source)
    context = positive(reading.sequence_parallel_size)
    if context and context > 1:
        draft.take("parallelism.context", context, "sequence_parallel_size", source)
    if positive(reading.hpz_partition_size) and reading.hpz_partition_size > 1:
        draft.ignore(
            "parallelism",
            source,
            f"zero_hpz_partition_size {reading.hpz_partition_size}: the second copy of the weights in the node is "
            "not modelled.",
            f"zero_hpz_partition_size {reading.hpz_partition_size}：节点内第二份权重未建模。",
        )


def _offload(param: str | None, optimizer: str | None) -> tuple[str, str]:
    """(scenario's word, the file's key) of DeepSpeed's two offload devices."""
    on = [device is not None and not device.lower().startswith("none") for device in (param, optimizer)]
    if on[0]:
        return "optimizer_and_parameters", "zero_optimization.offload_param"
    return ("optimizer", "zero_optimization.offload_optimizer") if on[1] else ("none", "zero_optimization")


def _zero_of(draft: Draft, reading: TrainYamlReading, deepspeed: DeepSpeedReading | None) -> None:
    """The ZeRO stage that a YAML says: by FSDP's strategy, Accelerate's own keys, or the name of the file it points to."""
    source = reading.framework
    group = reading.fsdp_config or {}
    listed = reading.fsdp.split() if isinstance(reading.fsdp, str) else reading.fsdp if isinstance(reading.fsdp, list) else []
    strategy = group.get("fsdp_sharding_strategy", group.get("sharding_strategy"))
    strategy = strategy if strategy is not None else next((one for one in listed if str(one).upper() in STRATEGIES), None)
    reshard = group.get("reshard_after_forward", group.get("fsdp_reshard_after_forward"))
    if (group or listed) and deepspeed is None:
        where = "fsdp_config" if group else "fsdp"
        name = str(strategy if strategy is not None else reshard).upper()
        flag = as_switch(reshard)
        stage = STRATEGIES.get(name) if strategy is not None or name in STRATEGIES else 2 if flag is False else 3
        if stage is not None:
            draft.take("parallelism.zero_stage", stage, where, source, f"{name} shards so", f"{name} 的切分方式")
        if name.startswith("HYBRID") or name in ("4", "5"):
            draft.ignore(
                "parallelism",
                source,
                "Hybrid sharding keeps a copy per node; full sharding over all GPUs is modelled instead.",
                "混合切分在每个节点保留一份；此处按全部卡切分处理。",
            )
        draft.take("offload", "optimizer_and_parameters" if offloads(reading) else "none", where, source)
    if reading.fsdp_reshard is not None:
        stage = 3 if reading.fsdp_reshard else 2
        draft.take("parallelism.zero_stage", stage, "fsdp_reshard_after_forward", source)
    if reading.fsdp_cpu_offload is not None and not (group or listed):
        draft.take("offload", "optimizer_and_parameters" if reading.fsdp_cpu_offload else "none", "fsdp.cpu_offload", source)
    own = reading.deepspeed_config or {}
    if own and deepspeed is None:
        stage = as_integer(own.get("zero_stage"))
        if isinstance(stage, int) and 0 <= stage <= 3:
            draft.take("parallelism.zero_stage", stage, "deepspeed_config.zero_stage", source)
        devices = [
            own.get(key) if isinstance(own.get(key), str) else None
            for key in ("offload_param_device", "offload_optimizer_device")
        ]
        if any(devices):
            draft.take("offload", _offload(*devices)[0], "deepspeed_config", source)
    path = own.get("deepspeed_config_file") or reading.deepspeed
    if isinstance(path, str) and deepspeed is None:
        _named_file(draft, path, source)


def _named_file(draft: Draft, path: str, source: str) -> None:
    """A DeepSpeed file that was not given, only named."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    draft.used.add((source, "deepspeed"))
    stage = STAGE_IN_NAME.search(name)
    if stage is None:
        draft.ignore(
            "parallelism",
            source,
            f"The DeepSpeed file {name[:60]} is only named: give it too, to know its ZeRO stage and offload.",
            f"只给出了 DeepSpeed 文件名 {name[:60]}：请一并提供，以得知 ZeRO 级别与卸载设置。",
        )
        return
    note = ("read from the file's name; give the file to be sure", "由文件名推断；请提供该文件以确认")
    draft.take("parallelism.zero_stage", int(stage.group(1)), "deepspeed", source, *note)
    lowered = name.lower()
    if "offload" in lowered:
        both = int(stage.group(1)) == 3 and "optimizer" not in lowered
        draft.take("offload", "optimizer_and_parameters" if both else "optimizer", "deepspeed", source, *note)


def _sizes(draft: Draft, reading: TrainYamlReading) -> None:
    """Parallel sizes that a YAML gives."""
    source = reading.framework
    for key, names in (
        ("tensor", ("tensor_model_parallel_size", "tensor_parallel_size")),
        ("pipeline", ("pipeline_model_parallel_size",)),
        ("context", ("context_parallel_size", "sequence_parallel_degree")),
        ("expert", ("expert_model_parallel_size", "expert_parallel_size")),
        ("virtual_pipeline", ("virtual_pipeline_model_parallel_size",)),
    ):
        for name in names:
            value = positive(getattr(reading, name))
            if value:
                draft.take(f"parallelism.{key}", value, name, source)
    if reading.sequence_parallel is not None:
        draft.take("parallelism.sequence_parallel", reading.sequence_parallel, "sequence_parallel", source)
    if reading.use_distributed_optimizer is not None and any(key in (reading.settings or {}) for key in MEGATRON):
        draft.take("parallelism.zero_stage", int(reading.use_distributed_optimizer), "use_distributed_optimizer", source)
    shard, replicate = positive(reading.dp_shard_size), positive(reading.dp_replicate_size)
    if shard or replicate:
        # axolotl lays expert parallelism over ranks of its own; here it divides the data dimension
        expert = positive(reading.expert_parallel_size) or 1
        data = (shard or 1) * (replicate or 1) * (expert if source == "axolotl" else 1)
        draft.take("parallelism.data", data, "dp_shard_size" if shard else "dp_replicate_size", source)
        if source == "axolotl" and shard and "zero_stage" not in draft.scenario.get("parallelism", {}):
            draft.take("parallelism.zero_stage", 3, "dp_shard_size", source)
        layout = draft.scenario["parallelism"]
        gpus = data * math.prod(layout.get(key, 1) for key in ("tensor", "pipeline", "context"))
        draft.take("gpus", gpus, "dp_shard_size", source, "product of the parallel sizes", "各并行度之积")


def _accelerate(draft: Draft, reading: TrainYamlReading) -> None:
    source = "accelerate"
    processes, machines = positive(reading.num_processes), positive(reading.num_machines)
    if processes:
        draft.take("gpus", processes, "num_processes", source)
    if processes and machines and machines > 1 and processes % machines == 0:
        draft.take("gpus_per_node", processes // machines, "num_processes / num_machines", source)
    draft.used.add((source, "num_machines"))
    kind = (reading.distributed_type or "").upper()
    if kind in ("MULTI_GPU", "NO") and "zero_stage" not in draft.scenario.get("parallelism", {}):
        draft.take("parallelism.zero_stage", 0, "distributed_type", source, "plain data parallel", "普通数据并行")
    mixed = {"bf16": "bf16_mixed", "fp16": "fp16_mixed", "fp8": "fp8_mixed", "no": "fp32"}.get(reading.mixed_precision or "")
    if mixed:
        draft.take("precision", mixed, "mixed_precision", source)
    steps = positive(reading.grad_accum)
    if steps:
        draft.take("gradient_accumulation_steps", steps, "deepspeed_config.gradient_accumulation_steps", source)
    megatron = (reading.settings or {}).get("megatron_lm_config")
    if isinstance(megatron, dict):
        for key, name in (("tensor", "tp_degree"), ("pipeline", "pp_degree")):
            value = positive(megatron.get(f"megatron_lm_{name}"))
            if value:
                draft.take(f"parallelism.{key}", value, f"megatron_lm_config.megatron_lm_{name}", source)


def take_recomputation(draft: Draft, reading: TrainYamlReading) -> None:
    """FSDP's own recomputation, which stands in for the Trainer's and is said in Accelerate's file."""
    if as_switch((reading.fsdp_config or {}).get("fsdp_activation_checkpointing")) is True:
        draft.take("activation_recomputation", "full", "fsdp_config.fsdp_activation_checkpointing", reading.framework)


def _launch(draft: Draft, reading: LaunchReading) -> None:
    source = "the launch log"
    if positive(reading.world_size):
        draft.take("gpus", reading.world_size, "world size", source)
    if positive(reading.procs_per_node) and (reading.nodes or 1) > 1:
        draft.take("gpus_per_node", reading.procs_per_node, "processes per node", source)
    for key, value in (reading.layout or {}).items():
        draft.take(f"parallelism.{key}", value, f"{key} parallel size", source)
    for key, field in (("micro_batch_size", "micro_batch"), ("gradient_accumulation_steps", "grad_accum")):
        value = positive(getattr(reading, field))
        if value:
            draft.take(key, value, field, source)


def _gpus(draft: Draft, train: TrainYamlReading) -> None:
    """The GPU count that a torchtune file tells in its comments or by its recipe."""
    if train.framework != "torchtune":
        return
    count = train.nproc_per_node_in_comment
    single = "single_device" in str((train.settings or {}).get("output_dir", "")) or bool(train.optimizer_in_bwd)
    if count:
        draft.take("gpus", count, "--nproc_per_node", "torchtune", "from a comment", "取自注释")
    elif single:
        draft.take("gpus", 1, "output_dir", "torchtune", "a single-device recipe", "单卡配方")
    if (count or 1) > 1 and "zero_stage" not in draft.scenario.get("parallelism", {}):
        draft.default(
            "parallelism.zero_stage",
            3,
            "torchtune",
            "parallelism.zero_stage = 3: torchtune's distributed recipes shard everything with FSDP2.",
            "parallelism.zero_stage = 3：torchtune 的分布式配方用 FSDP2 全部切分。",
        )


def used_keys(reading: Any) -> dict[str, Any]:
    """The file behind a reading."""
    return getattr(reading, "settings", None) or getattr(reading, "config", None) or {}
