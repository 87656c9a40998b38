"""The host of a node: CPU threads, RAM, PCIe lanes, local NVMe, power and cooling, each with its reason in both languages."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.catalog import constant, gpu
from advisor.cluster.cards import Text
from advisor.trail import Step, Trail
from advisor.training import Layout
from advisor.units import Bytes, BytesPerNode, Fraction, Power, Q, Quantity, Record, Time, unit, whole

NO_DATA, NO_TIME, ONE_SECOND = Q(0.0, unit("GB")), Q(0.0, unit("s")), Q(1.0, unit("s"))


@dataclass(frozen=True, kw_only=True)
class HostInputs(Record):
    """What a node must carry.

    run_ram: host RAM the run itself takes (`MemoryEstimate.host_ram`: offloaded states, loading, pinned buffers).
    checkpoint_size: one full checkpoint; its asynchronous copy lies in host RAM, spread over the nodes.
    dataset_share: data a node keeps on its own disk, 0 when it reads shared storage.
    offload_time, step_time: what the step spends on PCIe, as estimated with the card's full link.
    """

    gpu: str
    layout: Layout
    run_ram: BytesPerNode
    checkpoint_size: Bytes
    dataset_share: Bytes = NO_DATA
    offload_time: Time = NO_TIME
    step_time: Time = ONE_SECOND


@dataclass(frozen=True, kw_only=True)
class HostEstimate(Record):
    """One node.

    cpu_threads, ram, local_nvme: at least so much. pcie_lanes: per card. slowdown_x8, slowdown_x4: step time over that with the
    card's full link, when each card gets 8 or 4 lanes. power: of the server; heat equals it. liquid: whether air will not do.
    """

    cpu_threads: int
    ram: BytesPerNode
    local_nvme: BytesPerNode
    pcie_generation: int
    pcie_lanes: int
    pcie_lanes_total: int
    slowdown_x8: Fraction
    slowdown_x4: Fraction
    power: Power
    liquid: bool
    reasons: tuple[dict, ...]
    trail: tuple[Step, ...] = ()


def size_host(inputs: HostInputs) -> HostEstimate:
    """Size one node of the cluster. Raises CatalogError for an unknown card."""
    card, layout = gpu(inputs.gpu), inputs.layout
    cards = min(int(layout.gpus_per_node), int(layout.gpus))
    trail = Trail()
    c = constant
    threads = trail.step(
        "cpu_threads",
        "maximum(threads_floor, threads_per_gpu * cards)",
        "instances-2026",
        threads_floor=c("cluster.threads_floor"),
        threads_per_gpu=c("cluster.threads_per_gpu"),
        cards=cards,
    )
    per_node = Q(1.0, unit("1 / node"))
    copy = trail.step(
        "checkpoint_copy",
        "checkpoint_size / nodes * per_node",
        "",
        checkpoint_size=inputs.checkpoint_size,
        nodes=layout.nodes,
        per_node=per_node,
    )
    workers = trail.step(
        "loader_ram",
        "ram_per_worker * cards * card_of_node",
        "host-practice-2026",
        ram_per_worker=c("cluster.ram_per_worker"),
        cards=cards,
        card_of_node=Q(1.0, unit("GPU / node")),
    )
    ram = trail.step(
        "ram",
        "maximum(ram_floor, run_ram + loader_ram + checkpoint_copy)",
        "host-practice-2026",
        ram_floor=c("cluster.ram_floor"),
        run_ram=inputs.run_ram,
        loader_ram=workers,
        checkpoint_copy=copy,
    )
    nvme = trail.step(
        "local_nvme",
        "nvme_states * checkpoint_copy + dataset_share * per_node",
        "host-practice-2026",
        nvme_states=c("cluster.nvme_states"),
        checkpoint_copy=copy,
        dataset_share=inputs.dataset_share,
        per_node=per_node,
    )
    power = trail.step(
        "power",
        "cards * card_power * power_over_cards",
        "ownership-power-2026",
        cards=cards,
        card_power=card.power or Q(0.4, unit("kW")),
        power_over_cards=c("cluster.power_over_cards"),
    )
    lanes = int(card.pcie_lanes or 16)
    halves = trail.step(
        "slowdown_x8",
        "1 + offload_time * (lanes / minimum(lanes, 8) - 1) / step_time",
        "zero-offload-2021",
        offload_time=inputs.offload_time,
        lanes=lanes,
        step_time=inputs.step_time,
    )
    quarters = trail.step(
        "slowdown_x4",
        "1 + offload_time * (lanes / minimum(lanes, 4) - 1) / step_time",
        "zero-offload-2021",
        offload_time=inputs.offload_time,
        lanes=lanes,
        step_time=inputs.step_time,
    )
    hot = card.power is not None and card.power >= c("cluster.liquid_card_power")
    vram = cards * card.capacity * Q(1.0, unit("GPU / node"))
    usual = c("cluster.ram_over_vram") * vram
    return HostEstimate(
        cpu_threads=int(whole(threads.m_as(""))),
        ram=ram.to("GB / node"),
        local_nvme=nvme.to("GB / node"),
        pcie_generation=int(card.pcie_generation or 4),
        pcie_lanes=lanes,
        pcie_lanes_total=lanes * cards + 16 * max(cards // 2, 1) * (1 if layout.nodes > 1 else 0) + 8,
        slowdown_x8=halves.to(""),
        slowdown_x4=quarters.to(""),
        power=power.to("kW"),
        liquid=bool(hot),
        reasons=_reasons(inputs, cards, ram, copy, usual, power, bool(hot), halves, quarters),
        trail=trail.done(),
    )


def _gb(value: Quantity) -> str:
    return f"{value.m_as('GB / node'):.0f} GB"


def _reasons(
    inputs: HostInputs,
    cards: int,
    ram: Quantity,
    copy: Quantity,
    usual: Quantity,
    power: Quantity,
    hot: bool,
    halves: Quantity,
    quarters: Quantity,
) -> tuple[Text, ...]:
    """One sentence for each part of the node."""
    layout = inputs.layout
    threads = f"{constant('cluster.threads_per_gpu').m_as(''):.0f}"
    texts = [
        {
            "en": f"{threads} CPU threads a card: the data loader's workers, NCCL's proxies and the training process itself.",
            "zh": f"每卡 {threads} 个 CPU 线程：数据加载进程、NCCL 代理线程和训练进程本身。",
        },
        {
            "en": f"RAM: {_gb(inputs.run_ram)} for the run, {_gb(copy)} for a checkpoint in flight; clouds give {_gb(usual)}.",
            "zh": f"内存：训练本身 {_gb(inputs.run_ram)}，异步检查点副本 {_gb(copy)}；云上此类机器通常配 {_gb(usual)}。",
        },
    ]
    if layout.offload != "none":
        x8, x4 = (f"{(value.m_as('') - 1) * 100:.0f}" for value in (halves, quarters))
        texts.append(
            {
                "en": f"Offload crosses PCIe every step: with x8 links a step takes {x8} % longer, with x4 {x4} %.",
                "zh": f"offload 每步都经过 PCIe：x8 链路每步慢 {x8}%，x4 慢 {x4}%。",
            }
        )
    elif cards > 1 and gpu(inputs.gpu).scale_up.startswith("PCIe"):
        texts.append(
            {
                "en": "Cards talk over PCIe: x16 for each under one root complex; x8 halves and x4 quarters their bandwidth.",
                "zh": "卡间通信走 PCIe：每卡应为 x16 且在同一根复合体下；x8 带宽减半，x4 只剩四分之一。",
            }
        )
    else:
        texts.append(
            {
                "en": "PCIe hardly matters here: it carries batches and checkpoints only, so x8 would do.",
                "zh": "此处 PCIe 影响很小：只传输数据批和检查点，x8 也够用。",
            }
        )
    kilowatts = f"{power.m_as('kW'):.1f}"
    cooling = ("liquid cooling", "需液冷") if hot else ("air cooling does in a rack with few of them", "少量部署时风冷即可")
    texts.append(
        {
            "en": f"{kilowatts} kW a node at nameplate, all of it heat: {cooling[0]}.",
            "zh": f"每节点额定功率 {kilowatts} kW，全部变为热量：{cooling[1]}。",
        }
    )
    return tuple(texts)
