"""What a card reaches in training: its measured ceilings at the precision a job runs in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from advisor.catalog import GPU, CatalogError, constant
from advisor.training import Training
from advisor.units import BandwidthPerGPU, FlopRatePerGPU, Q, Quantity, Record, unit

TFLOPS = "TFLOP / s / GPU"


@dataclass(frozen=True, kw_only=True)
class Accelerator(Record):
    """Rates of one card, or of many as arrays, at one precision.

    matmul_rate: what large matrix products reach at this precision, measured where known, else a usual share of the peak.
    attention_rate: what attention kernels reach, forward and backward together, at 16 bit (fp32 when the job is in fp32).
    peak: dense peak that MFU is counted against: 16 bit (also for FP8 jobs, as published runs do), fp32 or TF32 for fp32 jobs.
    memory_bandwidth: nominal. pcie_bandwidth: one direction, nominal.
    """

    matmul_rate: FlopRatePerGPU
    attention_rate: FlopRatePerGPU
    peak: FlopRatePerGPU
    memory_bandwidth: BandwidthPerGPU
    pcie_bandwidth: BandwidthPerGPU

    def in_base_units(self) -> SimpleNamespace:
        """The rates in FLOP and bytes per second and GPU: times of mixed terms then come out in seconds without conversions."""
        names = ("matmul_rate", "attention_rate", "peak", "memory_bandwidth", "pcie_bandwidth")
        units = {name: unit("FLOP / s / GPU" if name in names[:3] else "B / s / GPU") for name in names}
        return SimpleNamespace(**{name: getattr(self, name).to(units[name]) for name in names})


def peak_rate(gpu: GPU, precision: str, software: str = "stock") -> tuple[Quantity | None, str]:
    """Dense peak of the arithmetic a job of this precision really runs in on this card, and that arithmetic's name.

    A card without bf16 runs a bf16 job in fp32 (V100 and T4 have no bf16 units; PyTorch emulates it); without fp8 an fp8 job
    runs in bf16. PyTorch leaves TF32 off by default, so only tuned software uses it for fp32 jobs.
    """
    if precision == "fp8_mixed" and gpu.fp8 is not None:
        return gpu.fp8, "fp8"
    if precision == "fp16_mixed":
        return (gpu.fp16, "fp16") if gpu.fp16 is not None else (gpu.bf16, "bf16")
    if precision == "fp32":
        return (gpu.tf32, "tf32") if software == "tuned" and gpu.tf32 is not None else (gpu.fp32, "fp32")
    return (gpu.bf16, "bf16") if gpu.bf16 is not None else (gpu.fp32, "fp32")


def measured_share(gpu: GPU) -> Quantity:
    """Share of the dense peak that the best large matmul reached on this card; the usual share where nobody published one."""
    if gpu.measured_bf16 is not None and gpu.bf16 is not None:
        return (gpu.measured_bf16 / gpu.bf16).to("")
    return constant("throughput.matmul_share")


def attention_share(gpu: GPU, training: Training) -> Quantity:
    """Share of the matmul rate that attention reaches on this card.

    The kernels of PyTorch and FlashAttention 2 are written for Ampere and use little of what Hopper and Blackwell added;
    cuDNN's, which Megatron and Transformer Engine call, use it.
    """
    if training.attention == "eager":
        return constant("throughput.attention_share_eager")
    share = constant("throughput.attention_share")
    if training.framework == "megatron":
        return share
    if "Hopper" in gpu.architecture:
        return share * constant("throughput.attention_on_hopper")
    if "Blackwell" in gpu.architecture and gpu.segment == "datacenter":
        return share * constant("throughput.attention_on_blackwell")
    return share


def accelerator_of(gpu: GPU, training: Training) -> Accelerator:
    """The rates of one card for a training job. Raises CatalogError, naming card and figure, where the catalog lacks one."""
    precision = training.precision
    peak, arithmetic = peak_rate(gpu, precision, training.software)
    if peak is None:
        raise CatalogError(f"{gpu.name} has no known rate for precision {precision}, so its speed cannot be estimated.")
    if gpu.memory_bandwidth is None:
        raise CatalogError(f"{gpu.name} has no known memory bandwidth, so its speed cannot be estimated.")
    share = measured_share(gpu)
    half, half_arithmetic = peak_rate(gpu, "bf16_mixed" if precision == "fp8_mixed" else precision, training.software)
    narrow = constant("throughput.fp8_share") if arithmetic == "fp8" else Q(1.0, unit(""))
    vector = constant("throughput.vector_share")
    return Accelerator(
        matmul_rate=(peak * (vector if arithmetic == "fp32" else share * narrow)).to(TFLOPS),
        attention_rate=(half * (vector if half_arithmetic == "fp32" else share) * attention_share(gpu, training)).to(TFLOPS),
        peak=half.to(TFLOPS),
        memory_bandwidth=gpu.memory_bandwidth,
        pcie_bandwidth=pcie_bandwidth(gpu),
    )


def pcie_bandwidth(gpu: GPU) -> Quantity:
    """One direction of the card's PCIe link: 0.985 GB/s a lane in generation 3, doubling with each; x16 4.0 where unknown."""
    generation = gpu.pcie_generation or 4
    lanes = gpu.pcie_lanes or 16
    return Q(0.985 * 2.0 ** (float(generation) - 3) * lanes, unit("GB / s / GPU"))


def accelerators_of(gpus: Sequence[GPU], index: np.ndarray, training: Training) -> Accelerator:
    """The rates of `gpus[index]` as arrays, for a search over many cards in one call."""
    each = [accelerator_of(gpu, training) for gpu in gpus]

    def gather(name: str, text: str) -> Any:
        return Q(np.array([getattr(one, name).m_as(text) for one in each])[index], unit(text))

    return Accelerator(
        matmul_rate=gather("matmul_rate", TFLOPS),
        attention_rate=gather("attention_rate", TFLOPS),
        peak=gather("peak", TFLOPS),
        memory_bandwidth=gather("memory_bandwidth", "GB / s / GPU"),
        pcie_bandwidth=gather("pcie_bandwidth", "GB / s / GPU"),
    )


def precision_cost(gpu: GPU, training: Training) -> dict[str, str] | None:
    """In one sentence, what it costs to run this job's precision on a card that lacks it; None when the card has it."""
    asked = training.precision
    wanted = {"fp8_mixed": "fp8", "fp16_mixed": "fp16", "fp32": "fp32"}.get(asked, "bf16")
    rate, used = peak_rate(gpu, asked, training.software)
    if rate is None or used == wanted or (wanted, used) == ("fp32", "tf32"):
        return None
    if wanted == "fp8":
        return {
            "en": f"{gpu.name} has no FP8 units: an FP8 job runs in bf16, at about half the rate of a card that has them.",
            "zh": f"{gpu.name} 没有 FP8 单元：FP8 任务只能以 bf16 运行，速度约为支持 FP8 的卡的一半。",
        }
    if gpu.fp16 is None:
        return {
            "en": f"{gpu.name} has no {wanted} units: the job runs in fp32.",
            "zh": f"{gpu.name} 没有 {wanted} 单元：任务只能以 fp32 运行。",
        }
    ratio = (gpu.fp16 / rate).m_as("")
    return {
        "en": f"{gpu.name} has no bf16 units: use fp16 with loss scaling; bf16 would run in fp32, {ratio:.0f} times slower.",
        "zh": f"{gpu.name} 没有 bf16 单元：请改用 fp16 加损失缩放；若坚持 bf16，实际以 fp32 运行，约慢 {ratio:.0f} 倍。",
    }
