"""DLIO and MLPerf Storage: whether storage feeds emulated accelerators, as accelerator utilisation (AU)."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass, field
from typing import Any

from advisor.evidence.parts import BandwidthMB, Seconds, lines, number, problem, quantity
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report

EPOCH = re.compile(
    r"Epoch ([0-9]{1,5}) - Block [0-9]{1,5} \[(Training|Eval)\] (Accelerator Utilization|Throughput)[^:\n]{0,"
    r"40}: ([0-9.]{1,20})"
)
METRIC = re.compile(
    r"\[METRIC\] ([A-Z][\w /\[\]-]{3,60}?)(?: \(([^)\n]{1,30})\))?: ([0-9.eE+-]{1,20})(?: \(([0-9.eE+-]{1,20})\))?"
)
STEP = re.compile(r"Rank ([0-9]{1,6}) step ([0-9]{1,9}) processed ([0-9]{1,7}) samples in ([0-9.eE+-]{1,25}) s")
JSON_METRIC = re.compile(
    r'"(train_au_mean_percentage|train_throughput_mean_samples_per_second|train_io_mean_MB_per_second|num_accelerators|num_hosts)"'
    r"\s{0,3}:\s{0,3}([0-9.eE+]{1,25})"
)
#: The utilisation that MLPerf Storage requires, percent: 90 for UNet3D and ResNet50, 70 for CosmoFlow.
THRESHOLD, THRESHOLD_COSMOFLOW = 90, 70


@dataclass(frozen=True, kw_only=True)
class DlioReading(Reading):
    """One run. epochs: per epoch {"au_percent", "throughput_samples_per_s"} of training.

    au: over the run, percent. first_step: how long the first step took (rank 0); steady_step: the median of later ones.
    """

    tool: str = "dlio_benchmark"
    workload: str | None = None
    epochs: dict = field(default_factory=dict)
    au: float | None = None
    au_percent_epoch1: float | None = None
    throughput_samples_per_s_epoch1: float | None = None
    throughput: float | None = None
    io: BandwidthMB | None = None
    ranks: int | None = None
    accelerators: int | None = None
    first_step: Seconds | None = None
    steady_step: Seconds | None = None
    threshold_au: int | None = None
    truncated: bool = False


def recognise(text: str) -> float:
    """How sure it is that `text` is of DLIO."""
    if "Accelerator Utilization" in text and (EPOCH.search(text) or METRIC.search(text)):
        return 0.96
    if "processed" in text and STEP.search(text):
        return 0.9
    return 0.9 if '"train_au_' in text and JSON_METRIC.search(text) else 0.0


def read(text: str) -> Report:
    """Read one run. Raises EvidenceError where it has neither a step nor a utilisation."""
    epochs: dict[str, dict[str, Any]] = {}
    steps: dict[int, dict[int, float]] = {}
    metrics: dict[str, float] = {}
    for line in lines(text):
        if "Epoch" in line and (match := EPOCH.search(line)):
            value = number(match.group(4))
            if match.group(2) == "Training" and value is not None:
                key = "au_percent" if match.group(3).startswith("Accelerator") else "throughput_samples_per_s"
                epochs.setdefault(match.group(1), {})[key] = value
        elif "step" in line and (match := STEP.search(line)):
            value = number(match.group(4))
            if value is not None and len(steps) < 200_000:
                steps.setdefault(int(match.group(2)), {})[int(match.group(1))] = value
        elif "[METRIC]" in line and (match := METRIC.search(line)):
            value = number(match.group(3))
            if value is not None:
                metrics[match.group(1).strip().lower()] = value
    for key, raw in JSON_METRIC.findall(text):
        value = number(raw)
        if value is not None:
            metrics[key] = value
    if not epochs and not steps and not metrics:
        raise EvidenceError("The text is of DLIO, but holds no step and no utilisation.")
    first = steps.get(1, {})
    later = [value for number_, ranks in steps.items() if number_ > 1 for value in ranks.values()]
    aus = [epoch["au_percent"] for epoch in epochs.values() if "au_percent" in epoch]
    au = next((value for key, value in metrics.items() if "utilization" in key or "train_au" in key), None)
    count = next((value for key, value in metrics.items() if "accelerators" in key), None)
    ranks = {rank for step in steps.values() for rank in step}
    one = epochs.get("1", {})
    workload = re.search(r"\b(unet3d|resnet50|cosmoflow|bert|llama\w{0,12})\b", text, re.IGNORECASE)
    name = workload.group(1).lower() if workload else None
    reading = DlioReading(
        workload=name,
        epochs=epochs,
        au=au if au is not None else (round(sum(aus) / len(aus), 4) if aus else None),
        au_percent_epoch1=one.get("au_percent"),
        throughput_samples_per_s_epoch1=one.get("throughput_samples_per_s"),
        throughput=next((value for key, value in metrics.items() if "throughput" in key and "i/o" not in key), None),
        io=quantity(
            next((value for key, value in metrics.items() if "i/o throughput" in key or "train_io_mean" in key), None), "MB / s"
        ),
        ranks=len(ranks) or None,
        accelerators=None if count is None else int(count),
        first_step=quantity(first.get(min(first)) if first else None, "s"),
        steady_step=quantity(statistics.median(later) if later else None, "s"),
        threshold_au=THRESHOLD_COSMOFLOW if name == "cosmoflow" else THRESHOLD,
    )
    return Report(kind="storage", reading=reading, problems=_problems(reading), truncated=False)


READER = Reader("storage", recognise, read)


def _problems(reading: DlioReading) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    if reading.au is not None and reading.au < reading.threshold_au:
        problems.append(
            problem(
                "au_below_threshold",
                "warning",
                f"Accelerator utilisation of {reading.au:g} % is below the {reading.threshold_au} % that MLPerf "
                f"Storage asks for: "
                "storage does not keep the accelerators busy.",
                f"加速器利用率 {reading.au:g}% 低于 MLPerf Storage 要求的 {reading.threshold_au}%：存储喂不饱加速器。",
            )
        )
    first = reading.first_step.m_as("s") if reading.first_step is not None else 0.0
    steady = reading.steady_step.m_as("s") if reading.steady_step is not None else None
    if first > 5 and (steady is None or first > 3 * steady):
        problems.append(
            problem(
                "first_step_slow",
                "warning",
                f"The first step took {first:.1f} s: it fills the pipeline and is excluded by the rules of "
                f"MLPerf Storage. Read the "
                "utilisation again without it before blaming storage.",
                f"第一步耗时 {first:.1f} 秒：它在填充流水线，MLPerf Storage 规则不计入。"
                f"请去掉第一步后重新看利用率，再判断存储。",
            )
        )
    if reading.workload is None:
        problems.append(
            problem(
                "workload_unknown",
                "info",
                f"The workload is not named: the threshold of {reading.threshold_au} % is that of UNet3D and "
                f"ResNet50 (CosmoFlow 70 %).",
                f"未写明负载：阈值 {reading.threshold_au}% 适用于 UNet3D 和 ResNet50（CosmoFlow 为 70%）。",
            )
        )
    return tuple(problems)
