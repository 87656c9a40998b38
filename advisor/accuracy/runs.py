"""Published runs as the records the memory stage takes: one row of data/measurements.csv, one run."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from advisor import catalog
from advisor.architecture import Architecture, ArchitectureError, architecture_from_config, find_architecture
from advisor.memory import MemoryInputs
from advisor.training import Layout, LoRA, Quantization, Training
from advisor.units import BytesPerGPU, Q, Record, unit

SIZES = ("hidden_size", "num_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size")


@dataclass(frozen=True, kw_only=True)
class Run(Record):
    """One published run.

    metric: "allocated", "reserved" or "total" (what nvidia-smi shows), and measured in that metric, or "" and None where only
    the outcome is known. kind: "peak" for error statistics; "fit_only", "oom" and "boundary" for the decision.
    certain: the source states its configuration wholly and unit and metric are known (headline numbers use those only).
    """

    key: str
    kind: str
    source: str
    stack: str
    metric: str
    measured: BytesPerGPU | None
    fits: bool
    certain: bool
    reference: bool
    inputs: MemoryInputs


def runs() -> tuple[Run, ...]:
    """Every row that can be expressed, in file order."""
    return tuple(run for run in map(_run, range(len(_rows()))) if run is not None)


def left_out() -> list[tuple[str, str]]:
    """(key, reason) of the rows that are not used."""
    return [(row["id"], row["note"] or "kind " + row["kind"]) for row in _rows() if row["use"] == "no"]


@functools.cache
def _rows() -> tuple[dict[str, str], ...]:
    return tuple(catalog.table("measurements.csv"))


@functools.cache
def _run(index: int) -> Run | None:
    row = _rows()[index]
    if row["use"] == "no":
        return None
    architecture = _architecture(row["model"], row["model_type"], *(row[size] for size in SIZES))
    measured = Q(float(row["measured"]), unit("GiB / GPU")) if row["measured"] else None
    return Run(
        key=row["id"],
        kind=row["kind"],
        source=row["source"],
        stack=row["stack"],
        metric=row["metric"],
        measured=measured,
        fits="OOM" not in row["outcome"] and "not fit" not in row["outcome"],
        certain=row["complete"] == "yes" and row["confidence"] in ("high", "med"),
        reference=row["use"] == "reference",
        inputs=MemoryInputs(architecture=architecture, training=_training(row), layout=_layout(row), capacity=_capacity(row)),
    )


@functools.cache
def _architecture(model: str, model_type: str, *sizes: str) -> Architecture:
    """The catalog's model of that name where its sizes agree with the row's, else one built from the row's sizes."""
    given = dict(zip(SIZES, sizes, strict=True))
    try:
        found = find_architecture(model)
        if given["hidden_size"] in ("", str(found.hidden_size)) and given["num_layers"] in ("", str(found.num_layers)):
            return found
    except (ArchitectureError, catalog.CatalogError):
        pass
    names = {"num_layers": "num_hidden_layers"}
    config = {names.get(key, key): int(value) for key, value in given.items() if value}
    config["model_type"] = model_type if model_type not in ("", "qwen") else "llama"
    if model_type == "mpt":
        config = _mpt(config)
    if model_type == "gpt2":
        config |= {"activation_function": "gelu", "n_positions": 4096, "vocab_size": config.get("vocab_size", 51200)}
    return architecture_from_config(config, model)


def _mpt(config: dict) -> dict:
    return {
        "model_type": "mpt",
        "d_model": config["hidden_size"],
        "n_layers": config["num_hidden_layers"],
        "n_heads": config["num_attention_heads"],
        "expansion_ratio": config["intermediate_size"] // config["hidden_size"],
        "vocab_size": config["vocab_size"],
        "no_bias": True,
    }


def _training(row: dict[str, str]) -> Training:
    lora = quantization = None
    if row["method"] != "full":
        targets = row["lora_targets"]
        lora = LoRA(
            rank=int(row["lora_rank"]),
            targets=tuple(targets.split()) if " " in targets else targets,
            dtype=row["lora_dtype"],
            dropout=row["lora_dropout"] == "yes",
        )
    if row["method"] == "qlora":
        quantization = Quantization(
            format="int4" if row["quantization"].startswith("int4") else "nf4",
            double_quantization=row["quantization"].endswith("dq"),
            upcast_unquantized=row["upcast_unquantized"] == "yes",
        )
    flags = {name: row[name] == "yes" for name in ("optimizer_in_backward", "compile", "fused_loss", "activation_offload")}
    words = ("method", "precision", "weights", "gradients", "master", "moments", "optimizer", "framework", "attention")
    return Training(lora=lora, quantization=quantization, **{name: row[name] for name in words}, **flags)


def _layout(row: dict[str, str]) -> Layout:
    names = {"data": "data_parallel_size", "tensor": "tensor_parallel_size", "pipeline": "pipeline_parallel_size"}
    names |= {"context": "context_parallel_size", "expert": "expert_parallel_size"}
    plain = ("sequence_length", "micro_batch_size", "gradient_accumulation_steps", "zero_stage", "virtual_pipeline")
    return Layout(
        **{name: int(row[name]) for name in plain},
        **{name: int(row[column]) for column, name in names.items()},
        sequence_parallel=row["sequence_parallel"] == "yes",
        activation_recomputation=row["activation_recomputation"],
        offload=row["offload"],
        gpus_per_node=8,
    )


def _capacity(row: dict[str, str]) -> BytesPerGPU | None:
    """What the row's card reports; a card that the catalog does not know by that name counts as labelled (in GiB)."""
    name = row["gpu"].rstrip("?")
    try:
        return catalog.gpu(name).capacity
    except catalog.CatalogError:
        digits = "".join(sign if sign.isdigit() else " " for sign in name.rsplit("-", 1)[-1]).split()
        return Q(float(digits[0]), unit("GiB / GPU")) if digits and "GB" in name else None
