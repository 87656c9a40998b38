"""How a model is trained and how that is laid out over GPUs: the two records every stage after the first takes.

`Training` holds what is one value for a whole search; `Layout` holds what a search varies, so each of its fields may be an
array and they broadcast together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from advisor.units import Flag, Integer, Record, UnitError, Word

Dtype = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "nf4", "fp4", "none"]
RECOMPUTATION = ("none", "selective", "full")
OFFLOAD = ("none", "optimizer", "optimizer_and_parameters")


@dataclass(frozen=True, kw_only=True)
class LoRA(Record):
    """Adapters: rank r, targets "all_linear", "attention_qv", "attention" or module names, and the adapters' dtype.

    dropout: whether the adapters drop some of their input, which keeps a masked copy of it each.
    """

    rank: int = 16
    targets: str | tuple[str, ...] = "all_linear"
    dtype: Literal["fp32", "bf16"] = "fp32"
    dropout: bool = False


@dataclass(frozen=True, kw_only=True)
class Quantization(Record):
    """Frozen base weights in few bits.

    upcast_unquantized: embeddings, head and norms become fp32, as PEFT's k-bit preparation makes them.
    """

    format: Literal["nf4", "fp4", "int8", "int4"] = "nf4"
    double_quantization: bool = True
    upcast_unquantized: bool = True


@dataclass(frozen=True, kw_only=True)
class Training(Record):
    """The training method and software, one value each for a whole search.

    weights, gradients, master, moments: dtype of each part of the training state; "none" when the recipe keeps no such part
        (no master copy with pure bf16 or fp32 weights).
    """

    method: Literal["full", "lora", "qlora", "dora"]
    lora: LoRA | None = None
    quantization: Quantization | None = None
    precision: Literal["bf16_mixed", "fp16_mixed", "fp32_autocast", "bf16_pure", "fp32", "fp8_mixed"]
    weights: Dtype
    gradients: Dtype
    master: Dtype
    moments: Dtype
    optimizer: Literal[
        "adamw",
        "adamw_8bit",
        "paged_adamw",
        "paged_adamw_8bit",
        "adafactor",
        "sgd",
        "sgd_momentum",
        "lion",
        "muon",
    ] = "adamw"
    optimizer_in_backward: bool = False
    framework: Literal["transformers", "deepspeed", "fsdp", "megatron", "torchtitan", "torchtune"] = "transformers"
    software: Literal["stock", "tuned"] = "stock"
    compile: bool = False
    attention: Literal["eager", "sdpa", "flash"] = "sdpa"
    fused_loss: bool = False
    activation_offload: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method != "full" and self.lora is None:
            raise UnitError(f"Training.lora must be given when method is {self.method}.")
        if self.method == "qlora" and self.quantization is None:
            raise UnitError("Training.quantization must be given when method is qlora.")


@dataclass(frozen=True, kw_only=True)
class Layout(Record):
    """Where a training step runs: parallel sizes, batch, recomputation and offload. Every field is a scalar or an array.

    Expert parallelism divides the ranks of the data and context dimensions and does not multiply the GPU count.
    activation_recomputation: one of RECOMPUTATION. offload: one of OFFLOAD.
    sequence_length in tokens; micro_batch_size in sequences per model replica; virtual_pipeline: chunks per stage.
    """

    sequence_length: Integer = 2048
    micro_batch_size: Integer = 1
    gradient_accumulation_steps: Integer = 1
    zero_stage: Integer = 0
    data_parallel_size: Integer = 1
    tensor_parallel_size: Integer = 1
    pipeline_parallel_size: Integer = 1
    context_parallel_size: Integer = 1
    expert_parallel_size: Integer = 1
    sequence_parallel: Flag = False
    virtual_pipeline: Integer = 1
    activation_recomputation: Word = "none"
    offload: Word = "none"
    gpus_per_node: Integer = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, choices in (("activation_recomputation", RECOMPUTATION), ("offload", OFFLOAD)):
            given = np.asarray(getattr(self, name))
            known = np.logical_or.reduce([given == choice for choice in choices])
            if not np.all(known):  # comparing is a hundred times faster than sorting a million words for the unknown one
                wrong = str(given[~known].flat[0])
                raise UnitError(f"Layout.{name} must be one of {', '.join(choices)}, but was given {wrong!r}.")
        for name in ("sequence_length", "micro_batch_size", "gradient_accumulation_steps", "gpus_per_node", *SIZES):
            if np.any(np.asarray(getattr(self, name)) < 1):
                raise UnitError(f"Layout.{name} must be at least 1, but was given {getattr(self, name)!r}.")
        if np.any((np.asarray(self.zero_stage) < 0) | (np.asarray(self.zero_stage) > 3)):
            raise UnitError(f"Layout.zero_stage must be 0, 1, 2 or 3, but was given {self.zero_stage!r}.")

    @property
    def gpus(self) -> Any:
        """Number of GPUs: data x tensor x pipeline x context parallel size (a plain integer or array)."""
        return self.data_parallel_size * self.tensor_parallel_size * self.pipeline_parallel_size * self.context_parallel_size

    @property
    def nodes(self) -> Any:
        """Number of nodes, the last one possibly part filled."""
        return -(-self.gpus // self.gpus_per_node)

    @property
    def global_batch_size(self) -> Any:
        """Sequences per optimizer step over all replicas."""
        return self.data_parallel_size * self.micro_batch_size * self.gradient_accumulation_steps

    @property
    def sharding_size(self) -> Any:
        """Ranks over which ZeRO and FSDP shard: data x context parallel."""
        return self.data_parallel_size * self.context_parallel_size


SIZES = (
    "data_parallel_size",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "context_parallel_size",
    "expert_parallel_size",
    "virtual_pipeline",
)
