"""The data flow as a chain of places: what crosses each hop, how fast it must and can, what it costs, and which hop binds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.storage.records import Hop
from advisor.storage.words import both
from advisor.units import Quantity, unit

PLACES = {
    "source": both("source", "数据源"),
    "object": both("object storage", "对象存储"),
    "preprocessing": both("preprocessing", "预处理"),
    "shards": both("packed shards", "打包分片"),
    "cache": both("cache", "缓存"),
    "gpu": both("GPU memory", "显存"),
    "local": both("local NVMe", "本地 NVMe 盘"),
    "shared": both("shared storage", "共享存储"),
    "archive": both("archive", "归档"),
}


@dataclass(frozen=True)
class Leg:
    """A hop before its share is known."""

    start: str
    end: str
    chain: str
    size: Quantity
    needed: Quantity | None
    offered: Quantity
    cost: Quantity | None
    en: str
    zh: str
    once: bool = True


def build_flow(legs: list[Leg], run_time: Quantity) -> tuple[Hop, ...]:
    """Hops with time and share; the one with the largest share binds.

    A hop with a rate is loaded by needed / offered; one that is only waited for, by its time against the run's.
    """
    hops = []
    for leg in legs:
        time = (leg.size / leg.offered).to(unit("s"))
        share = (leg.needed / leg.offered).to(unit("")) if leg.needed is not None else (time / run_time).to(unit(""))
        hops.append(
            Hop(
                start=leg.start,
                end=leg.end,
                chain=leg.chain,
                size=leg.size.to(unit("GB")),
                needed=leg.needed,
                offered=leg.offered.to(unit("GB/s")),
                time=time,
                cost=leg.cost,
                share=share,
                binding=False,
                note=both(leg.en, leg.zh),
            )
        )
    worst = max(range(len(hops)), key=lambda index: hops[index].share.m_as(unit("")))
    hops[worst] = replace(hops[worst], binding=True)
    return tuple(hops)


@dataclass(frozen=True)
class FlowNumbers:
    """What the chain is drawn from: sizes, rates and costs that the other parts of this stage have found."""

    raw_size: Quantity
    dataset: Quantity
    checkpoint: Quantity
    location: str
    upload_bandwidth: Quantity
    object_read: Quantity
    object_write: Quantity
    preprocessing_rate: Quantity | None
    preprocessing_cost: Quantity | None
    shards_class: str
    shards_read: Quantity
    shards_write: Quantity
    hot_class: str
    hot_read: Quantity
    hot_write: Quantity
    archive_write: Quantity
    read_needed: Quantity
    write_needed: Quantity
    background_needed: Quantity
    snapshot_bandwidth: Quantity
    restore_size: Quantity
    asynchronous: bool
    request_cost: Quantity
    upload_cost: Quantity
    crossing_cost: Quantity | None
    archived: int
    archive_place: str
    run_time: Quantity


def data_flow(numbers: FlowNumbers) -> tuple[Hop, ...]:
    """The two chains, source to GPU and GPU to archive, hop by hop."""
    n = numbers
    data = "data"
    legs: list[Leg] = []
    if n.location == "local":
        legs.append(
            Leg("source", "object", data, n.raw_size, None, n.upload_bandwidth, n.upload_cost, "upload once", "上传一次")
        )
    elif n.location in ("other_region", "other_cloud"):
        legs.append(
            Leg(
                "source",
                "object",
                data,
                n.raw_size,
                None,
                n.upload_bandwidth,
                n.crossing_cost,
                "copy once across regions or clouds",
                "跨地域或跨云拷贝一次",
            )
        )
    place = "local" if n.location == "node" else "object"
    if n.preprocessing_rate is not None:
        en = "clean, tokenize or decode, pack; before the run, on CPU machines"
        zh = "清洗、分词或解码、打包；训练前在 CPU 节点完成"
        legs.append(Leg(place, "preprocessing", data, n.raw_size, None, n.preprocessing_rate, n.preprocessing_cost, en, zh))
        write = n.shards_write if n.location == "node" else n.object_write
        legs.append(Leg("preprocessing", "shards", data, n.dataset, None, write, None, "packed shards", "写出打包分片"))
        place = "shards"
    legs.append(
        Leg(
            place,
            "cache",
            data,
            n.dataset,
            n.read_needed,
            n.shards_write if n.location == "node" else min(n.object_read, n.shards_write),
            n.request_cost,
            f"into {n.shards_class} once; it may stream during the first epoch",
            f"写入 {n.shards_class} 一次；可在第一轮训练中边读边缓存",
        )
    )
    legs.append(Leg("cache", "gpu", data, n.dataset, n.read_needed, n.shards_read, None, "every epoch", "每轮读取"))
    chain = "checkpoint"
    if n.asynchronous:
        legs.append(
            Leg(
                "gpu",
                "local",
                chain,
                n.checkpoint,
                None,
                n.snapshot_bandwidth,
                None,
                "snapshot to host RAM; training waits for this only",
                "快照到主机内存；训练只等待这一步",
            )
        )
    if n.hot_class == "local-nvme":
        legs.append(Leg("gpu", "local", chain, n.checkpoint, n.write_needed, n.hot_write, None, "every save", "每次保存"))
        legs.append(
            Leg(
                "local",
                "object",
                chain,
                n.checkpoint,
                n.background_needed,
                n.object_write,
                None,
                "copied in the background",
                "后台上传",
            )
        )
    else:
        legs.append(
            Leg(
                "local" if n.asynchronous else "gpu",
                "shared",
                chain,
                n.checkpoint,
                n.write_needed,
                n.hot_write,
                None,
                "every save" + (", in the background" if n.asynchronous else ", training waits"),
                "每次保存" + ("，后台写入" if n.asynchronous else "，训练等待"),
            )
        )
    if not (n.hot_class == "local-nvme" and n.archive_place == "object"):
        place = "local" if n.hot_class == "local-nvme" else "shared"
        en, zh = f"{n.archived} kept aside, one a day", f"每天保留一个，共 {n.archived} 个"
        legs.append(Leg(place, n.archive_place, chain, n.checkpoint * n.archived, None, n.archive_write, None, en, zh))
    legs.append(
        Leg(
            "local" if n.hot_class == "local-nvme" else "shared",
            "gpu",
            chain,
            n.restore_size,
            None,
            n.hot_read,
            None,
            "after every fault",
            "每次故障后加载",
        )
    )
    return build_flow(legs, n.run_time)
