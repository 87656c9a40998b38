"""Estimated against published training speeds: every run of data/throughput.csv whose layout is known, by source."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from advisor.architecture import Architecture
from advisor.architecture.lookup import catalog_architecture
from advisor.architecture.read import architecture_from_config
from advisor.catalog import gpu, table
from advisor.network import fabric_of
from advisor.throughput import Accelerator, ThroughputInputs, accelerator_of, estimate_throughput
from advisor.throughput.interval import kind_of_run
from advisor.training import Layout, LoRA, Quantization, Training
from advisor.units import Fraction, Q, Record, TokenRatePerGPU, unit

FILE = "throughput.csv"
DTYPES = {
    "bf16_mixed": ("bf16", "fp32", "fp32", "fp32"),
    "fp16_mixed": ("fp16", "fp16", "fp32", "fp32"),
    "fp32_autocast": ("fp32", "fp32", "none", "fp32"),
    "bf16_pure": ("bf16", "bf16", "none", "bf16"),
    "fp8_mixed": ("bf16", "fp32", "fp32", "fp32"),
}


@dataclass(frozen=True, kw_only=True)
class Run(Record):
    """One published run and its estimate.

    use: "fit" rows set the constants, "validate" rows come from other sources, "report" rows are shown and not scored.
    ratio: estimated over published speed. inside: whether the published speed lies in the 80 % interval.
    """

    id: str
    source: str
    use: Literal["fit", "validate", "report"]
    kind: str
    model: str
    gpu: str
    gpus: int
    published: TokenRatePerGPU
    estimated: TokenRatePerGPU
    low: TokenRatePerGPU
    high: TokenRatePerGPU
    mfu: Fraction
    ratio: Fraction
    inside: bool


def architecture_of(row: dict[str, str]) -> Architecture:
    """The architecture of a row: the catalog's where named, else built from the row's own sizes."""
    sizes = ("hidden_size", "num_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size")
    return _architecture(row["catalog_model"], row["model"], row["model_type"], tuple(row[name] for name in sizes))


@functools.cache
def _architecture(catalog_model: str, name: str, model_type: str, sizes: tuple[str, ...]) -> Architecture:
    if catalog_model:
        return catalog_architecture(catalog_model)
    hidden, layers, heads, key_value_heads, width, vocabulary = (int(size) if size else 0 for size in sizes)
    heads = heads or max(hidden // 64, 1)
    if model_type == "gpt2":
        config = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": 2048, "n_inner": width or 4 * hidden}
    else:
        config = {
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": key_value_heads or heads,
            "intermediate_size": width,
        }
    return architecture_from_config(config | {"model_type": model_type, "vocab_size": vocabulary or 32000}, name=name)


def training_of(row: dict[str, str]) -> Training:
    """How a row was trained."""
    weights, gradients, master, moments = DTYPES[row["precision"]]
    return Training(
        method=row["method"],
        lora=LoRA() if row["method"] != "full" else None,
        quantization=Quantization() if row["method"] == "qlora" else None,
        precision=row["precision"],
        weights=weights,
        gradients=gradients,
        master=master,
        moments=moments,
        framework=row["framework"],
        software=row["software"],
        compile=row["compile"] == "yes",
        attention=row["attention"],
    )


SIZES = (
    "sequence_length",
    "micro_batch_size",
    "gradient_accumulation_steps",
    "zero_stage",
    "data_parallel_size",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "context_parallel_size",
    "expert_parallel_size",
    "virtual_pipeline",
    "gpus_per_node",
)


def layout_of(row: dict[str, str]) -> Layout:
    """How a row was laid out."""
    return Layout(
        **{name: int(row[name]) for name in SIZES},
        sequence_parallel=row["sequence_parallel"] == "yes",
        activation_recomputation=row["activation_recomputation"],
    )


def inputs_of(row: dict[str, str]) -> ThroughputInputs:
    """A row as inputs of the estimate. Rates are scaled for a power limit or old attention kernels where the row says so."""
    card, training = gpu(row["gpu"]), training_of(row)
    rates = accelerator_of(card, training)
    clock = float(row["clock_factor"])
    return ThroughputInputs(
        architecture=architecture_of(row),
        training=training,
        layout=layout_of(row),
        accelerator=Accelerator(
            matmul_rate=rates.matmul_rate * clock,
            attention_rate=rates.attention_rate * clock * float(row["attention_factor"]),
            peak=rates.peak,
            memory_bandwidth=rates.memory_bandwidth,
            pcie_bandwidth=rates.pcie_bandwidth,
        ),
        fabric=fabric_of(card, row["scale_out"] or None, int(row["gpus_per_node"])),
    )


def usable(row: dict[str, str]) -> bool:
    """Whether a row has all that an estimate needs."""
    needed = ("micro_batch_size", "sequence_length", "tokens_per_second_per_gpu")
    sized = row["catalog_model"] or (row["hidden_size"] and row["num_layers"])
    return row["use"] != "none" and bool(sized) and all(row[name] for name in needed)


def run_of(row: dict[str, str]) -> Run:
    """Estimate one row and hold it against what was published."""
    inputs = inputs_of(row)
    estimate = estimate_throughput(inputs)
    published = Q(float(row["tokens_per_second_per_gpu"]), unit("token / s / GPU"))
    each = estimate.tokens_per_second_per_gpu
    slow, fast = each * (estimate.step_time / estimate.high), each * (estimate.step_time / estimate.low)
    return Run(
        id=row["id"],
        source=row["source"],
        use=row["use"],
        kind=kind_of_run(inputs.architecture, inputs.training),
        model=row["model"],
        gpu=row["gpu"],
        gpus=int(row["gpus"]),
        published=published,
        estimated=each,
        low=slow,
        high=fast,
        mfu=estimate.mfu,
        ratio=(each / published).to(""),
        inside=bool(slow <= published <= fast),
    )


@functools.cache
def rows() -> tuple[Run, ...]:
    """Every usable published run with its estimate."""
    return tuple(run_of(row) for row in table(FILE) if usable(row))


def _errors(runs: Sequence[Run]) -> np.ndarray:
    return np.array([abs(run.ratio.m_as("") - 1.0) for run in runs])


def _summary(runs: Sequence[Run]) -> dict[str, Any]:
    ratios = np.array([run.ratio.m_as("") for run in runs])
    return {
        "runs": len(runs),
        "median_error": float(np.median(_errors(runs))),
        "bias": float(np.median(ratios) - 1.0),
        "within_interval": float(np.mean([run.inside for run in runs])),
    }


def _grouped(runs: Sequence[Run], key: Callable[[Run], tuple[str, ...]]) -> dict[tuple[str, ...], list[Run]]:
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return dict(sorted(groups.items()))


def by_source(runs: Sequence[Run] | None = None) -> list[dict[str, Any]]:
    """One line a source: use, runs, median absolute error of tokens/s/GPU, bias, share of runs inside the 80 % interval."""
    groups = _grouped(rows() if runs is None else runs, lambda run: (run.use, run.source))
    return [{"use": use, "source": source, **_summary(group)} for (use, source), group in groups.items()]


def by_kind(runs: Sequence[Run] | None = None) -> list[dict[str, Any]]:
    """One line a kind of run, as the intervals are kept."""
    groups = _grouped(rows() if runs is None else runs, lambda run: (run.kind, run.use))
    return [{"kind": kind, "use": use, **_summary(group)} for (kind, use), group in groups.items()]


def headline(use: str = "validate") -> dict[str, Any]:
    """Median over sources of the median absolute error, and how often the interval held: each source left out in turn.

    within_interval is the mean over sources of the share inside intervals that were made without that source: intervals that
    have seen a source hold more of it, and a reader's own cluster has not been seen.
    """
    lines = [line for line in by_source() if line["use"] == use]
    return {
        "sources": len(lines),
        "runs": sum(line["runs"] for line in lines),
        "median_error": float(np.median([line["median_error"] for line in lines])),
        "within_interval": float(np.mean(list(left_out_coverage().values()))),
    }


#: Percentiles of the residuals kept as the 80 % interval: wider than 10 and 90, so that 80 % of a left-out source falls inside.
PERCENTILES = (0.07, 0.93)


def _percentiles(runs: Sequence[Run]) -> tuple[float, float]:
    """Percentiles of estimated over published speed (published over estimated time); a source weighs by its root."""
    ratios = np.array([run.ratio.m_as("") for run in runs])
    sizes = {source: sum(run.source == source for run in runs) for source in {run.source for run in runs}}
    weights = np.array([sizes[run.source] ** -0.5 for run in runs])
    order = np.argsort(ratios)
    middle = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    low, high = np.interp(PERCENTILES, middle, ratios[order])
    return float(low), float(high)


def residuals(runs: Sequence[Run] | None = None) -> list[dict[str, Any]]:
    """The rows of data/throughput_residuals.csv: per kind the interval of step time over its estimate, runs and sources.

    A kind with at least 20 runs of 3 sources has its own; one with 20 runs of fewer takes the wider of its own and all runs';
    the rest use all runs'.
    """
    scored = [run for run in (rows() if runs is None else runs) if run.use != "report"]
    everything = _percentiles(scored)
    lines = [_residual("all", scored, everything, "all kinds together")]
    for (kind,), group in _grouped(scored, lambda run: (run.kind,)).items():
        if len(group) < 20:
            continue
        own, many = _percentiles(group), len({run.source for run in group}) >= 3
        wide = own if many else (min(own[0], everything[0]), max(own[1], everything[1]))
        lines.append(_residual(kind, group, wide, "own residuals" if many else "own residuals and those of all kinds"))
    return lines


def _residual(kind: str, runs: Sequence[Run], interval: tuple[float, float], note: str) -> dict[str, Any]:
    sources = len({run.source for run in runs})
    low, high = (round(bound, 3) for bound in interval)
    return {"kind": kind, "low": low, "high": high, "runs": len(runs), "sources": sources, "note": note}


@functools.cache
def left_out_coverage() -> dict[str, float]:
    """Share of each source's runs inside intervals made without that source: what a reader's own cluster should expect."""
    scored = [run for run in rows() if run.use != "report"]
    shares = {}
    for (source,), group in _grouped(scored, lambda run: (run.source,)).items():
        known = {line["kind"]: line for line in residuals([run for run in scored if run.source != source])}
        inside = []
        for run in group:
            line = known.get(run.kind, known["all"])
            inside.append(line["low"] <= run.ratio.m_as("") <= line["high"])
        shares[source] = float(np.mean(inside))
    return shares
