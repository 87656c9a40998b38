"""What binds: which resource of the cluster is the first limit of a step, and how far the next one is."""

from __future__ import annotations

from dataclasses import dataclass

from advisor import catalog
from advisor.catalog import CatalogError, constant
from advisor.cluster.cards import Text, usual_price
from advisor.memory import MemoryEstimate
from advisor.network import CommunicationEstimate
from advisor.throughput import ThroughputEstimate, accelerator_of, precision_cost
from advisor.training import Layout, Training
from advisor.units import (
    Bandwidth,
    BandwidthPerGPU,
    BytesPerGPU,
    FlopRatePerGPU,
    Fraction,
    MoneyPerGPUTime,
    Q,
    Record,
    Time,
    unit,
)

NAMES: dict[str, Text] = {
    "capacity": {"en": "GPU memory (VRAM) capacity", "zh": "显存容量"},
    "compute": {"en": "compute (matrix products)", "zh": "算力（矩阵乘）"},
    "memory_bandwidth": {"en": "memory bandwidth", "zh": "显存带宽"},
    "host": {"en": "the host, which launches kernels", "zh": "主机（kernel 启动开销）"},
    "pcie": {"en": "PCIe (offload)", "zh": "PCIe（offload）"},
    "scale_up": {"en": "the links inside the node (NVLink or PCIe)", "zh": "机内互联（NVLink 或 PCIe）"},
    "scale_out": {"en": "the network between nodes", "zh": "机间网络"},
    "data": {"en": "reading data", "zh": "数据读取"},
}


@dataclass(frozen=True, kw_only=True)
class Limits(Record):
    """How much of a step each resource holds it up, and what comes first.

    shares: by resource, the part of the step it holds up; "capacity" is memory over capacity and "data" needed over given
    read bandwidth. first, following: the resource that binds and the next. distance: how many times faster the first would
    have to be before the next one held the step up as long. text: the same in one sentence.
    """

    shares: dict
    first: str
    following: str
    distance: Fraction
    text: dict


def what_binds(
    throughput: ThroughputEstimate,
    memory: MemoryEstimate,
    layout: Layout,
    communication: CommunicationEstimate | None = None,
    read_needed: Bandwidth | None = None,
    read_given: Bandwidth | None = None,
) -> Limits:
    """The first limit of one plan and the next. All estimates are of the same layout, scalars.

    A need beyond capacity or beyond the read bandwidth binds before anything else: the run does not start, or it starves.
    """
    step = throughput.step_time

    def share(*parts: Time) -> float:
        return float(sum((part / step).m_as("") for part in parts))

    exposed = share(throughput.exposed_communication)
    inside, between = _split(communication, layout)
    shares = {
        "compute": share(throughput.matmul, throughput.attention),
        "memory_bandwidth": share(throughput.elementwise, throughput.optimizer)
        if layout.offload == "none"
        else share(throughput.elementwise),
        "host": share(throughput.launch),
        "pcie": share(throughput.offload) + (share(throughput.optimizer) if layout.offload != "none" else 0.0),
        "scale_up": exposed * inside,
        "scale_out": exposed * between,
    }
    capacity = None if memory.capacity is None else float((memory.total / memory.capacity).m_as(""))
    data = None if read_needed is None or read_given is None else float((read_needed / read_given).m_as(""))
    hard = {name: value for name, value in (("capacity", capacity), ("data", data)) if value is not None}
    order = sorted(shares, key=shares.__getitem__, reverse=True)
    over = [name for name, value in hard.items() if value > 1.0]
    order = over + order
    first, following = order[0], order[1]
    distance = hard[first] if first in hard else shares[first] / max(shares[following], 1e-6)
    return Limits(
        shares=shares | hard,
        first=first,
        following=following,
        distance=Q(min(distance, 1e6), unit("")),
        text=_sentence(first, following, distance, shares | hard),
    )


def _split(communication: CommunicationEstimate | None, layout: Layout) -> tuple[float, float]:
    """(share of communication inside nodes, between nodes): what crosses nodes is the outermost dimensions."""
    if layout.nodes <= 1 or communication is None:
        return 1.0, 0.0
    reach, between, total = int(layout.tensor_parallel_size), 0.0, 0.0
    times = {
        name: getattr(communication, f"{name}_time").m_as("s") for name in ("tensor", "context", "expert", "data", "pipeline")
    }
    sizes = {
        "tensor": 1,
        "context": layout.context_parallel_size,
        "expert": layout.expert_parallel_size,
        "data": layout.data_parallel_size,
        "pipeline": layout.pipeline_parallel_size,
    }
    for name, time in times.items():
        reach *= 1 if name == "expert" else sizes[name]
        total += time
        wide = reach * (sizes["expert"] if name == "expert" else 1)
        between += time if wide > layout.gpus_per_node else 0.0
    return (1.0, 0.0) if total <= 0 else (1.0 - between / total, between / total)


def _sentence(first: str, following: str, distance: float, shares: dict[str, float]) -> Text:
    if first == "capacity":
        return {
            "en": f"GPU memory binds: the layout needs {shares[first]:.2f} times what the card has.",
            "zh": f"瓶颈是显存容量：该布局需要的显存是单卡容量的 {shares[first]:.2f} 倍。",
        }
    if first == "data":
        return {
            "en": f"Reading data binds: the cards want {shares[first]:.1f} times what storage gives.",
            "zh": f"瓶颈是数据读取：GPU 的需求是存储带宽的 {shares[first]:.1f} 倍。",
        }
    one, two = NAMES[first], NAMES[following]
    return {
        "en": f"{one['en'].capitalize()} binds ({shares[first] * 100:.0f} % of the step); next is {two['en']} "
        f"({shares[following] * 100:.0f} %), {distance:.1f} times away.",
        "zh": f"瓶颈是{one['zh']}（占每步 {shares[first] * 100:.0f}%）；其次是{two['zh']}"
        f"（{shares[following] * 100:.0f}%），相差 {distance:.1f} 倍。",
    }


@dataclass(frozen=True, kw_only=True)
class CardNumbers(Record):
    """A card by the three numbers that matter for a job, and its price.

    usable: matrix FLOP/s at the job's precision that a step sustains. price: usual on-demand price, None where none is listed.
    per_money: usable FLOP per unit of money, relative to the best of the comparison. note: what the precision costs here.
    """

    name: str
    capacity: BytesPerGPU
    memory_bandwidth: BandwidthPerGPU
    usable: FlopRatePerGPU
    price: MoneyPerGPUTime | None
    per_money: Fraction | None
    note: dict | None
    confidence: str


def compare_cards(training: Training, names: tuple[str, ...] = ()) -> tuple[CardNumbers, ...]:
    """The named cards (all of the catalog without names) by capacity, bandwidth and usable FLOP/s, fastest first.

    Cards without a known rate at this precision are left out.
    """
    level = "fused" if training.software == "tuned" or training.compile else "eager"
    sustained = constant(f"throughput.matmul_sustained_{level}")
    found = []
    for gpu in [catalog.gpu(name) for name in names] if names else catalog.gpus():
        try:
            usable = (accelerator_of(gpu, training).matmul_rate * sustained).to("TFLOP / s / GPU")
        except CatalogError:
            continue
        found.append((gpu, usable, usual_price(gpu.name)))
    value = [None if price is None else (usable / price).to("TFLOP / USD").magnitude for _, usable, price in found]
    best = max((one for one in value if one is not None), default=1.0)
    cards = [
        CardNumbers(
            name=gpu.name,
            capacity=gpu.capacity,
            memory_bandwidth=gpu.memory_bandwidth,
            usable=usable,
            price=price,
            per_money=None if worth is None else Q(worth / best, unit("")),
            note=precision_cost(gpu, training),
            confidence=gpu.confidence,
        )
        for (gpu, usable, price), worth in zip(found, value, strict=True)
    ]
    return tuple(sorted(cards, key=lambda card: -card.usable.m_as("TFLOP / s / GPU")))
