"""torchtitan's TOML files: those of its releases up to 0.2, and the settings of a launch kit, which have the same sections.

Sources of names and of what a silent key means: torchtitan torchtitan/config/job_config.py (and config_manager.py before), with
the older names of its sections "training" and "experimental".
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from advisor.evidence.documents import FENCE
from advisor.evidence.parts import problem
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report
from advisor.evidence.torchtitan_checks import check
from advisor.evidence.values import Settings, as_flag, as_group, as_integer, as_switch, as_word

#: Longer files are no configuration a person wrote; what follows is not looked at.
LONGEST_TOML = 60_000
SECTION = re.compile(r"^[ \t]*\[([A-Za-z_][\w.-]{0,80})\][ \t]*(?:#[^\n]*)?$", re.MULTILINE)
ENTRY = re.compile(r"^[ \t]*([A-Za-z_][\w.-]{0,80})[ \t]*=[ \t]*([^\n]{1,2000})$", re.MULTILINE)
SECTIONS = ("job", "model", "training", "parallelism", "activation_checkpoint", "checkpoint", "optimizer", "lr_scheduler",
            "metrics", "profiling", "compile", "experimental", "comm", "float8", "quantize", "debug", "validation")  # fmt: skip
OWN = {"flavor", "local_batch_size", "data_parallel_shard_degree", "tensor_parallel_degree", "seq_len", "hf_assets_path",
       "pipeline_parallel_degree", "tokenizer_path", "dump_folder", "context_parallel_degree", "config_file"}  # fmt: skip
#: Where each setting stands, in the newest place first.
PLACES: dict[str, tuple[str, ...]] = {
    "micro": ("training.local_batch_size", "training.batch_size"),
    "global_batch": ("training.global_batch_size",),
    "seq_len": ("training.seq_len",),
    "steps": ("training.steps",),
    "replicate": ("parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"),
    "shard": (
        "parallelism.data_parallel_shard_degree",
        "training.data_parallel_shard_degree",
        "training.data_parallel_degree",
    ),
    "tensor_parallel": ("parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"),
    "pipeline_parallel": ("parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"),
    "context_parallel": ("parallelism.context_parallel_degree", "experimental.context_parallel_degree"),
    "expert_parallel": ("parallelism.expert_parallel_degree",),
    "pipeline_micro": ("parallelism.pipeline_parallel_microbatch_size", "experimental.pipeline_parallel_microbatches"),
    "layers_per_stage": ("parallelism.pipeline_parallel_layers_per_stage",),
    "save_interval": ("checkpoint.interval",),
    "keep": ("checkpoint.keep_latest_k",),
}


@dataclass(frozen=True, kw_only=True)
class TorchtitanReading(Reading):
    """One file; None is what it does not say. Words are torchtitan's own.

    family, flavor: torchtitan's name of the model. local_batch: samples of one data-parallel rank's pass; pipeline_micro: those
    of one pipeline micro-batch. shard: -1 is all the GPUs that are left. reshard: when FSDP frees gathered weights ("always",
    "never", "default"). checkpoint: whether it saves; save_interval in steps. settings: the whole file.
    """

    family: str | None = None
    flavor: str | None = None
    assets: str | None = None
    local_batch: int | None = None
    global_batch: int | None = None
    seq_len: int | None = None
    steps: int | None = None
    replicate: int | None = None
    shard: int | None = None
    reshard: str | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    context_parallel: int | None = None
    expert_parallel: int | None = None
    pipeline_micro: int | None = None
    schedule: str | None = None
    layers_per_stage: int | None = None
    sequence_parallel: bool | None = None
    cpu_offload: bool | None = None
    dtype: str | None = None
    compute: str | None = None
    fp8: bool | None = None
    lora: dict | None = None
    recompute: str | None = None
    compile: bool | None = None
    optimizer: str | None = None
    checkpoint: bool | None = None
    save_interval: int | None = None
    keep: int | None = None
    async_mode: str | None = None
    settings: dict | None = None


def recognise(text: str) -> float:
    """How sure it is that `text` is a torchtitan configuration."""
    if "[training]" not in text and "[parallelism]" not in text and "[model]" not in text:
        return 0.0
    named = {name.split(".")[0] for name in SECTION.findall(text[:LONGEST_TOML])} & set(SECTIONS)
    keys = {key for key, _ in ENTRY.findall(text[:LONGEST_TOML])}
    return 0.96 if len(named) >= 2 and keys & OWN else 0.9 if named and len(keys & OWN) >= 2 else 0.0


def read(text: str) -> Report:
    """Read one file. Raises EvidenceError where it has none of torchtitan's sections."""
    data, problems, cut = _toml(text)
    groups = {name: value for name, value in data.items() if isinstance(value, dict)}
    if not set(groups) & set(SECTIONS):
        raise EvidenceError("The text holds none of torchtitan's sections.")
    flat = {f"{section}.{key}": value for section, group in groups.items() for key, value in group.items()}
    values = _values(flat, groups, problems)
    reading = TorchtitanReading(settings=data, **{key: value for key, value in values.items() if value is not None})
    return Report(kind="torchtitan", reading=reading, problems=(*problems, *check(reading)), truncated=cut)


READER = Reader("torchtitan", recognise, read)


def _values(flat: dict[str, Any], groups: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    settings = Settings(flat, problems)
    numbers = {}
    for name, places in PLACES.items():
        value = settings.whole(*places, minimum=-1 if name in ("shard", "global_batch") else 0 if name == "keep" else 1)
        numbers[name] = value if isinstance(value, int) else None
    numbers["local_batch"] = numbers.pop("micro")
    total = numbers["global_batch"]
    numbers["global_batch"] = total if total and total > 0 else None
    loss_off = as_switch(flat.get("training.disable_loss_parallel"))
    if "experimental.pipeline_parallel_microbatches" in flat and numbers["pipeline_micro"] and numbers["local_batch"]:
        # before 2025 it was the number of micro-batches
        numbers["pipeline_micro"] = max(numbers["local_batch"] // numbers["pipeline_micro"], 1)
    converters = settings.any(("model.converters", "model.converter"))[1]
    words = " ".join(map(str, converters)) if isinstance(converters, list) else str(converters or "")
    old_fp8 = as_switch(flat.get("float8.enable_float8_linear", flat.get("float8.enable_fp8_linear")))
    mode = settings.word("activation_checkpoint.mode")
    sequence = as_flag(flat.get("parallelism.enable_sequence_parallel"))
    offload = settings.switch("training.enable_cpu_offload")
    asynchronous = settings.word("checkpoint.async_mode")
    lora = as_group(groups.get("lora"))
    return {
        **numbers,
        "family": settings.word("model.name"),
        "flavor": settings.word("model.flavor"),
        "assets": settings.word("model.hf_assets_path", "model.tokenizer_path", "checkpoint.initial_load_path"),
        "reshard": settings.word("parallelism.fsdp_reshard_after_forward"),
        "schedule": settings.word("parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"),
        "sequence_parallel": sequence if sequence is not None else None if loss_off is None else True,
        "cpu_offload": offload,
        "dtype": settings.word("training.dtype"),
        "compute": settings.word("training.mixed_precision_param"),
        "fp8": True if any(one in words for one in ("float8", "mx")) or old_fp8 is True else None,
        "lora": lora if "lora" in words or lora else None,
        "recompute": mode.lower() if mode else None,
        "compile": settings.switch("compile.enable", "training.compile"),
        "optimizer": settings.word("optimizer.name"),
        "checkpoint": settings.switch("checkpoint.enable", "checkpoint.enable_checkpoint"),
        "async_mode": asynchronous.lower() if asynchronous else None,
    }


def _toml(text: str) -> tuple[dict[str, Any], list[Problem], bool]:
    """The document, what had to be left out, and whether it is visibly incomplete."""
    fenced = FENCE.search(text[:LONGEST_TOML]) if "```" in text[:LONGEST_TOML] else None
    text = fenced.group(1) if fenced else text
    cut = len(text) > LONGEST_TOML
    text = text[:LONGEST_TOML]
    try:
        return _plain(tomllib.loads(text), 0), [], cut
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return _by_lines(text)


def _by_lines(text: str) -> tuple[dict[str, Any], list[Problem], bool]:
    """Section after section, entry after entry, so that one broken line does not cost the rest."""
    starts = [(match.start(), match.end(), match.group(1)) for match in SECTION.finditer(text)][:200]
    result: dict[str, Any] = {}
    skipped: list[str] = []
    for (_, end, name), following in zip(starts, [*(one[0] for one in starts[1:]), len(text)], strict=True):
        group = result.setdefault(name.split(".")[0], {})
        body = text[end:following]
        try:
            group.update(_plain(tomllib.loads(body), 0))
            continue
        except (tomllib.TOMLDecodeError, RecursionError, ValueError):
            pass
        for key, value in ENTRY.findall(body)[:500]:
            try:
                group.update(_plain(tomllib.loads(f"{key} = {value}"), 0))
            except (tomllib.TOMLDecodeError, RecursionError, ValueError):
                skipped.append(f"{name}.{key}"[:60])
    lost = list(ENTRY.finditer(text[: starts[0][0]])) if starts else []
    problems = []
    if skipped or lost:
        names = ", ".join(skipped[:5]) or "..."
        problems.append(
            problem(
                "unreadable_lines",
                "warning",
                f"Some entries do not parse or stand before the first section and were left out: {names}.",
                f"有些条目无法解析或位于第一个小节之前，已略去：{names}。",
            )
        )
    last = text.rstrip().rsplit("\n", 1)[-1]
    broken = bool(lost) or re.search(r"=\s*$|^\s*\[[^\]]*$|=\s*(?:\"[^\"]*|'[^']*|\[[^\]]*)$", last) is not None
    return result, problems, broken


def _plain(data: Any, depth: int) -> Any:
    """Values JSON can hold; dates as text."""
    if depth > 20:
        return None
    if isinstance(data, dict):
        return {str(key): _plain(value, depth + 1) for key, value in list(data.items())[:2000]}
    if isinstance(data, list):
        return [_plain(value, depth + 1) for value in data[:2000]]
    if isinstance(data, float) and not -1e300 < data < 1e300:
        return None
    if isinstance(data, int) and not isinstance(data, bool):
        return data if as_integer(data) is not None else None
    return data if data is None or isinstance(data, (str, bool, float)) else as_word(str(data))
