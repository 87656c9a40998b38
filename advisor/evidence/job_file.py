"""`job.json` of a launch kit: what its training scripts are told, in this program's own names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor.evidence.documents import document, hostile
from advisor.evidence.parts import problem
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report
from advisor.evidence.values import Settings, as_group, as_switch, document_problems

NEEDED = {"weights", "compute", "recompute", "micro_batch_size", "sequence_length", "zero_stage", "steps", "save_steps"}


@dataclass(frozen=True, kw_only=True)
class JobFileReading(Reading):
    """One job; None is what it does not say.

    weights, compute, gradients: dtypes. adapter: arguments of PEFT's LoraConfig. quantization: of BitsAndBytesConfig.
    offload: whether FSDP keeps shards in host memory. steps, save_steps: optimizer steps. settings: the whole file.
    """

    model: str | None = None
    weights: str | None = None
    compute: str | None = None
    gradients: str | None = None
    attention: str | None = None
    compile: bool | None = None
    recompute: bool | None = None
    adapter: dict | None = None
    adapter_dtype: str | None = None
    quantization: dict | None = None
    optimizer: str | None = None
    seq_len: int | None = None
    micro_batch: int | None = None
    grad_accum: int | None = None
    global_batch: int | None = None
    gpus: int | None = None
    zero_stage: int | None = None
    offload: bool | None = None
    steps: int | None = None
    save_steps: int | None = None
    keep: int | None = None
    settings: dict | None = None


def recognise(text: str) -> float:
    """How sure it is that `text` is a kit's job file."""
    if "micro_batch_size" not in text or "recompute" not in text or hostile(text):
        return 0.0
    found = document(text)
    return 0.98 if found is not None and found.form == "json" and len(NEEDED & set(found.data)) >= 6 else 0.0


def read(text: str) -> Report:
    """Read one job. Raises EvidenceError where it is none."""
    found = document(text)
    if found is None or len(NEEDED & set(found.data)) < 6:
        raise EvidenceError("The text is no job file of a launch kit.")
    problems: list[Problem] = [*document_problems(found)]
    read_key = Settings(found.data, problems)
    whole = {
        field: read_key.whole(name, minimum=minimum)
        for field, name, minimum in (
            ("seq_len", "sequence_length", 1),
            ("micro_batch", "micro_batch_size", 1),
            ("grad_accum", "gradient_accumulation_steps", 1),
            ("global_batch", "global_batch_size", 1),
            ("gpus", "gpus", 1),
            ("zero_stage", "zero_stage", 0),
            ("steps", "steps", 1),
            ("save_steps", "save_steps", 1),
            ("keep", "keep", 1),
        )
    }
    values: dict[str, Any] = {
        **{field: value for field, value in whole.items() if isinstance(value, int)},
        **{name: read_key.word(name) for name in ("model", "weights", "compute", "gradients", "attention", "optimizer")},
        **{name: _switch(found.data, name) for name in ("compile", "recompute", "offload")},
        "adapter": as_group(found.data.get("adapter")),
        "adapter_dtype": read_key.word("adapter_dtype"),
        "quantization": as_group(found.data.get("quantization")),
    }
    reading = JobFileReading(settings=found.data, **{key: value for key, value in values.items() if value is not None})
    return Report(
        kind="job_file", reading=reading, problems=(*problems, *check(reading)), truncated=found.cut or bool(found.skipped)
    )


READER = Reader("job_file", recognise, read)


def _switch(data: dict[str, Any], name: str) -> bool | None:
    value = as_switch(data.get(name))
    return value if isinstance(value, bool) else None


def check(reading: JobFileReading) -> tuple[Problem, ...]:
    """Every problem of one job: numbers changed by hand that no longer agree."""
    parts = (reading.micro_batch, reading.grad_accum, reading.gpus)
    if reading.global_batch and all(parts):
        product = reading.micro_batch * reading.grad_accum * reading.gpus
        if product != reading.global_batch:
            return (
                problem(
                    "batch_sizes_disagree",
                    "error",
                    f"A global batch of {reading.global_batch} is not micro batch x accumulation x GPUs = {product}.",
                    f"全局批大小 {reading.global_batch} 不等于 单卡批大小 × 梯度累积 × 卡数 = {product}。",
                ),
            )
    if reading.steps and reading.save_steps and reading.save_steps > reading.steps:
        return (
            problem(
                "saved_never",
                "warning",
                f"It saves every {reading.save_steps} steps and runs {reading.steps}: only the end is saved.",
                f"每 {reading.save_steps} 步保存一次，而总共只有 {reading.steps} 步：只会保存最终结果。",
            ),
        )
    return ()
