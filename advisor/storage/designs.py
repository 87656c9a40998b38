"""Which arrangement of tiers: local cache and object storage, a cache before NAS or a parallel file system, hot/warm/cold.

All arrangements are sized and priced in one evaluation; the cheapest that does, counting the GPU time that slow saves cost, is
chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.catalog import constant
from advisor.storage.checkpoints import choose_interval, daly_interval, goodput_of
from advisor.storage.products import REFERENCE, Offers, Shelf, evaluate
from advisor.storage.records import DesignOption
from advisor.storage.words import both, rate_text, size_text
from advisor.units import Q, Quantity, maximum, unit

ROLES = ("raw", "shards", "hot_checkpoints", "archived_checkpoints", "environments", "logs")


@dataclass(frozen=True)
class Need:
    """What a role has to store and to move, for the whole cluster."""

    size: Quantity
    read: Quantity
    write: Quantity


@dataclass(frozen=True)
class Situation:
    """Numbers that every arrangement is judged by."""

    needs: dict[str, Need]
    checkpoint: Quantity
    background_write: Quantity
    nodes: int
    gpus: int
    local_size: Quantity
    limits: dict[str, tuple[Quantity, Quantity]]
    mtbf: Quantity
    restart_base: Quantity
    restore_size: Quantity
    training_time: Quantity
    snapshot: Quantity
    asynchronous: bool
    sharded: bool
    interval: Quantity | None
    gpu_price: Quantity
    provider: str | None


@dataclass(frozen=True)
class Judged:
    """The arrangements with their numbers, and which is chosen. Arrays hold one element per arrangement."""

    options: tuple[DesignOption, ...]
    chosen: int
    classes: dict[str, str]
    offers: Offers
    rows: dict[tuple[int, str], int]
    picks: dict[tuple[int, str], int | None]
    write_time: Quantity
    stall: Quantity
    interval: Quantity
    restart: Quantity
    rollback: Quantity
    load_time: Quantity
    optimum: Quantity


def role_classes(dataset: Quantity, local_total: Quantity) -> dict[str, dict[str, str]]:
    """Class of each role in each arrangement. Shards are cached on local NVMe where all machines together hold them."""
    cached = dataset.m_as(unit("B")) <= 0.8 * local_total.m_as(unit("B"))
    return {
        "local_and_object": dict(zip(ROLES, ("object", "local-nvme", "local-nvme", "object", "block", "object"), strict=True)),
        "cache_and_nas": dict(
            zip(ROLES, ("object", "local-nvme" if cached else "nas", "nas", "object", "nas", "nas"), strict=True)
        ),
        "cache_and_parallel": dict(
            zip(
                ROLES,
                ("object", "local-nvme" if cached else "parallel-fs", "parallel-fs", "object", "parallel-fs", "parallel-fs"),
                strict=True,
            )
        ),
        "hot_warm_cold": dict(
            zip(ROLES, ("object", "parallel-fs", "parallel-fs", "archive", "parallel-fs", "object"), strict=True)
        ),
    }


def provider_mask(market: Shelf, provider: str | None, storage_class: str) -> tuple[np.ndarray, bool]:
    """The columns to choose from for a class: the provider's own, or the market's where it has none (then True)."""
    of_class = market.storage_class == storage_class
    name = (provider or REFERENCE[market.market]).split()[0].lower()
    own = of_class & np.array([one == name for one in market.first_word])
    if own.any() and not np.isnan(market.estimate.magnitude[own]).all():
        return own, False
    return of_class & (market.provider == REFERENCE[market.market]), True


def cheapest(market: Shelf, offers: Offers, row: int, mask: np.ndarray) -> int | None:
    """The cheapest product of the mask that is enough for a need, else the one that writes fastest; None without any."""
    if not mask.any():
        return None
    price = np.where(mask, offers.price.magnitude[row], np.inf)
    price = np.where(np.isnan(price), np.inf, price)
    # An infrequent-access class is cheap to keep and dear to read: never a working tier. A known price comes before a guessed one.
    working = market.storage_class != "archive"
    price = price + 1e9 * (market.reads_billed & working) + 1e6 * market.estimated
    good = mask & offers.enough[row] & np.isfinite(price)
    if good.any():
        return int(np.argmin(np.where(good, price, np.inf)))
    speed = np.where(mask & np.isfinite(price), offers.write.magnitude[row], -1.0)
    return int(np.argmax(speed)) if (speed >= 0).any() else None


def judge(market: Shelf, situation: Situation) -> Judged:
    """Size, price and rate every arrangement, and choose."""
    needs = situation.needs
    local_total = situation.local_size
    table = role_classes(needs["shards"].size, local_total)
    rows: dict[tuple[int, str], int] = {}
    sizes, reads, writes = [], [], []
    for index, (design, classes) in enumerate(table.items()):
        for storage_class in dict.fromkeys(classes.values()):
            if storage_class == "local-nvme":
                continue
            roles = [role for role in ROLES if classes[role] == storage_class]
            rows[index, storage_class] = len(sizes)
            sizes.append(sum(needs[role].size.m_as(unit("GB")) for role in roles))
            reads.append(sum(needs[role].read.m_as(unit("GB/s")) for role in roles))
            write = sum(needs[role].write.m_as(unit("GB/s")) for role in roles)
            if storage_class == "object" and classes["hot_checkpoints"] == "local-nvme":
                write = situation.background_write.m_as(unit("GB/s"))
            writes.append(write)
    offers = evaluate(
        market,
        Q(np.array(sizes), unit("GB")),
        Q(np.array(reads), unit("GB/s")),
        Q(np.array(writes), unit("GB/s")),
        situation.limits,
    )
    picks: dict[tuple[int, str], int | None] = {}
    prices, write_offered, read_offered, enough = [], [], [], []
    per_month = unit(f"{market.currency} / month")
    for index, classes in enumerate(table.values()):
        price = 0.0
        for storage_class in dict.fromkeys(classes.values()):
            if storage_class == "local-nvme":
                continue
            row = rows[index, storage_class]
            pick = cheapest(market, offers, row, provider_mask(market, situation.provider, storage_class)[0])
            picks[index, storage_class] = pick
            price += 0.0 if pick is None else float(offers.price.magnitude[row, pick])
        hot = classes["hot_checkpoints"]
        if hot == "local-nvme":
            read_offered.append(situation.limits[hot][0].m_as(unit("GB/s")))
            write_offered.append(situation.limits[hot][1].m_as(unit("GB/s")))
            enough.append(write_offered[-1] >= needs["hot_checkpoints"].write.m_as(unit("GB/s")) * (1 - 1e-9))
        else:
            pick, row = picks[index, hot], rows[index, hot]
            read_offered.append(0.05 if pick is None else float(offers.read.magnitude[row, pick]))
            write_offered.append(0.05 if pick is None else float(offers.write.magnitude[row, pick]))
            enough.append(pick is not None and bool(offers.enough[row, pick]))
        prices.append(price)
    write_bandwidth = Q(np.array(write_offered), unit("GB/s"))
    read_bandwidth = Q(np.array(read_offered), unit("GB/s"))
    write_time = (situation.checkpoint / write_bandwidth).to(unit("s"))
    if situation.sharded:
        write_time = write_time + situation.gpus * constant("storage.rank_planning_time")
    else:
        write_time = maximum(write_time, (situation.checkpoint / constant("storage.stream_write_bandwidth")).to(unit("s")))
    none = 0 * write_time
    if situation.asynchronous:
        stall = situation.snapshot + constant("storage.asynchronous_slowdown") * write_time
        rollback = write_time
    else:
        stall, rollback = write_time, none
    load_time = (situation.restore_size / (read_bandwidth * constant("storage.load_efficiency"))).to(unit("s"))
    restart = situation.restart_base + load_time
    optimum = daly_interval(stall, situation.mtbf)
    if situation.interval is None:
        interval = choose_interval(
            optimum,
            stall,
            write_time if situation.asynchronous else none,
            situation.training_time,
            constant("storage.longest_interval"),
            constant("storage.stall_share"),
            constant("storage.asynchronous_window"),
        )
    else:
        interval = situation.interval + none
    goodput = goodput_of(interval, stall, situation.mtbf, restart, rollback)
    money = Q(np.array(prices), per_month)
    lost = ((1 - goodput) * (Q(situation.gpus, unit("GPU")) * situation.gpu_price)).to(per_month)
    qualifies, reasons = _verdicts(table, situation, enough, write_bandwidth)
    total = (money + lost).magnitude
    penalty = np.where(np.array(qualifies), 0.0, 1e15)
    chosen = int(np.argmin(total + penalty))
    options = tuple(
        DesignOption(
            design=design,
            price=money[index],
            lost_gpu_price=lost[index],
            write_time=write_time[index],
            goodput=goodput[index],
            qualifies=bool(qualifies[index]),
            chosen=index == chosen,
            reason=reasons[index],
        )
        for index, design in enumerate(table)
    )
    return Judged(
        options=options,
        chosen=chosen,
        classes=list(table.values())[chosen],
        offers=offers,
        rows=rows,
        picks=picks,
        write_time=write_time,
        stall=stall,
        interval=interval,
        restart=restart,
        rollback=rollback,
        load_time=load_time,
        optimum=optimum,
    )


def _verdicts(
    table: dict[str, dict[str, str]], situation: Situation, enough: list[bool], write: Quantity
) -> tuple[list[bool], list[dict[str, str]]]:
    """Whether each arrangement does, and why (not)."""
    checkpoint = situation.checkpoint
    hot = situation.needs["hot_checkpoints"]
    local_needed = situation.needs["shards"].size + hot.size
    limit = constant("storage.local_only_checkpoint")
    large = constant("storage.hot_warm_cold_checkpoint")
    verdicts: list[tuple[bool, dict[str, str]]] = []
    for index, design in enumerate(table):
        slow = both(
            f"saves need {rate_text(hot.write)} and it gives {rate_text(write[index])}",
            f"检查点写入需要 {rate_text(hot.write)}，该方案只有 {rate_text(write[index])}",
        )
        if design == "local_and_object":
            if situation.nodes > constant("storage.local_only_nodes").m_as(unit("node")):
                verdict: Any = (
                    False,
                    both(
                        f"{situation.nodes} machines need one file system that all of them see",
                        f"{situation.nodes} 个节点需要共享文件系统",
                    ),
                )
            elif checkpoint.m_as(unit("GB")) > limit.m_as(unit("GB")):
                verdict = (
                    False,
                    both(
                        f"a checkpoint of {size_text(checkpoint)} is too much to lose with the machine (limit {size_text(limit)})",
                        f"检查点 {size_text(checkpoint)} 过大，随实例释放的风险高（上限 {size_text(limit)}）",
                    ),
                )
            elif local_needed.m_as(unit("B")) > situation.local_size.m_as(unit("B")):
                verdict = (
                    False,
                    both(
                        f"local NVMe holds {size_text(situation.local_size)} of {size_text(local_needed)} needed",
                        f"本地 NVMe 盘只有 {size_text(situation.local_size)}，需要 {size_text(local_needed)}",
                    ),
                )
            else:
                verdict = (
                    (True, both("fastest and included with the machine", "速度最快，且随实例附带"))
                    if enough[index]
                    else (False, slow)
                )
        elif design == "hot_warm_cold":
            verdict = (
                (True, both("a large state written by many machines", "状态大、写入节点多，需热/温/冷分层"))
                if checkpoint.m_as(unit("GB")) >= large.m_as(unit("GB")) and enough[index]
                else (False, slow)
                if checkpoint.m_as(unit("GB")) >= large.m_as(unit("GB"))
                else (
                    False,
                    both(
                        f"pays from checkpoints of {size_text(large)}; these have {size_text(checkpoint)}",
                        f"检查点达到 {size_text(large)} 才划算，目前为 {size_text(checkpoint)}",
                    ),
                )
            )
        elif checkpoint.m_as(unit("GB")) >= large.m_as(unit("GB")):
            verdict = (
                False,
                both("states of this size need an archive tier behind the hot one", "此规模的状态需要热层之后再加归档层"),
            )
        elif not enough[index]:
            verdict = (False, slow)
        else:
            verdict = (True, both("shared by all machines, saves end in time", "所有节点共享，保存能按时完成"))
        verdicts.append(verdict)
    return [one[0] for one in verdicts], [one[1] for one in verdicts]
