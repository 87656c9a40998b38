"""Which arrangement of tiers: local cache and object storage, a cache before NAS or a parallel file system, hot/warm/cold.

All arrangements are sized and priced in one evaluation; the cheapest that does, counting the GPU time that slow saves cost, is
chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.catalog import constant
from advisor.storage.checkpoints import choose_interval, daly_interval, goodput_of
from advisor.storage.products import SHARED, Offers, Shelf, evaluate
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
    start_size: Quantity
    training_time: Quantity
    snapshot: Quantity
    asynchronous: bool
    sharded: bool
    interval: Quantity | None
    gpu_price: Quantity
    traffic: Quantity
    levels: tuple[float, ...]
    provider: str | None


@dataclass(frozen=True)
class Judged:
    """The arrangements with their numbers, and the one chosen. The times are of the chosen one.

    rows, picks: per storage class of the chosen arrangement, its row in `offers` and the product taken (None without any).
    level: how much of the write bandwidth first asked for is worth its price. write, read: what the hot tier gives.
    """

    options: tuple[DesignOption, ...]
    option: DesignOption
    classes: dict[str, str]
    offers: Offers
    rows: dict[str, int]
    picks: dict[str, int | None]
    level: float
    write: Quantity
    read: Quantity
    write_time: Quantity
    stall: Quantity
    interval: Quantity
    restart: Quantity
    rollback: Quantity
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


def cheapest(market: Shelf, offers: Offers, mask: np.ndarray) -> list[int | None]:
    """For each need the cheapest product of its mask that is enough, else the one that writes fastest; None without any."""
    price = np.where(mask & ~np.isnan(offers.price.magnitude), offers.price.magnitude + market.reluctance, np.inf)
    known = np.isfinite(price)
    good = known & offers.enough
    least = np.argmin(np.where(good, price, np.inf), axis=1)
    fastest = np.argmax(np.where(known, offers.write.magnitude, -1.0), axis=1)
    picks = np.where(good.any(axis=1), least, np.where(known.any(axis=1), fastest, -1)).tolist()
    return [None if pick < 0 else pick for pick in picks]


def judge(market: Shelf, situation: Situation) -> Judged:
    """Size, price and rate every arrangement, and choose.

    Each arrangement with a shared tier is tried at several write bandwidths: more capacity bought for bandwidth costs storage,
    less costs GPU time. The level with the smallest sum is taken, then the cheapest arrangement that does.
    """
    table = role_classes(situation.needs["shards"].size, situation.local_size)
    designs = list(table)
    tries = [
        (design, level)
        for design in range(len(designs))
        for level in (situation.levels if table[designs[design]]["hot_checkpoints"] in SHARED else (1.0,))
    ]
    offers, rows = _offers(market, situation, table, tries)
    masks = {row: market.choice(situation.provider, name)[0] for classes in rows for name, row in classes.items()}
    picks = cheapest(market, offers, np.array([masks[row] for row in range(len(masks))]))
    bought = [
        _buy(situation, offers, picks, classes, table[designs[design]]["hot_checkpoints"])
        for (design, _), classes in zip(tries, rows, strict=True)
    ]
    rate = unit("GB/s")
    times = _times(situation, Q(np.array([one.write for one in bought]), rate), Q(np.array([one.read for one in bought]), rate))
    per_month = unit(f"{market.currency} / month")
    money = Q(np.array([one.price for one in bought]), per_month)
    lost_share = 1 - times.goodput + (times.start * constant("storage.starts_per_day")).to(unit(""))
    lost = (lost_share * (Q(situation.gpus, unit("GPU")) * situation.gpu_price)).to(per_month)
    enough = np.array([one.enough for one in bought]) & _ends_in_time(situation, times)
    total = (money + lost).magnitude + np.where(enough, 0.0, 1e12)
    best = [
        min((index for index, (of, _) in enumerate(tries) if of == design), key=lambda index: total[index])
        for design in range(len(designs))
    ]
    writes = [Q(bought[index].write, rate) for index in best]
    verdicts = [
        verdict(
            designs[design],
            situation,
            bool(enough[index]),
            writes[design],
            situation.needs["hot_checkpoints"].write * tries[index][1],
        )
        for design, index in enumerate(best)
    ]
    chosen = min(range(len(designs)), key=lambda design: total[best[design]] + (0.0 if verdicts[design][0] else 1e15))
    options = tuple(
        DesignOption(
            design=name,
            price=money[best[design]],
            lost_gpu_price=lost[best[design]],
            write_time=times.write_time[best[design]],
            goodput=times.goodput[best[design]],
            qualifies=verdicts[design][0],
            chosen=design == chosen,
            reason=verdicts[design][1],
        )
        for design, name in enumerate(designs)
    )
    index = best[chosen]
    return Judged(
        options=options,
        option=options[chosen],
        classes=table[designs[chosen]],
        offers=offers,
        rows=rows[index],
        picks=bought[index].picks,
        level=tries[index][1],
        write=Q(bought[index].write, rate),
        read=Q(bought[index].read, rate),
        write_time=times.write_time[index],
        stall=times.stall[index],
        interval=times.interval[index],
        restart=times.restart[index],
        rollback=times.rollback[index],
        optimum=times.optimum[index],
    )


def _offers(
    market: Shelf, situation: Situation, table: dict[str, dict[str, str]], tries: list[tuple[int, float]]
) -> tuple[Offers, list[dict[str, int]]]:
    """All needs of all tries evaluated at once; per try, the row of each storage class."""
    needs, designs = situation.needs, list(table.values())
    gigabyte, rate = unit("GB"), unit("GB/s")
    sizes = {role: need.size.m_as(gigabyte) for role, need in needs.items()}
    reads = {role: need.read.m_as(rate) for role, need in needs.items()}
    hot_write, background = needs["hot_checkpoints"].write.m_as(rate), situation.background_write.m_as(rate)
    traffic = situation.traffic.m_as(rate)
    found: dict[tuple, int] = {}
    columns: list[tuple[float, float, float, float]] = []
    rows = []
    for design, level in tries:
        classes = designs[design]
        mine = {}
        for storage_class in dict.fromkeys(classes.values()):
            if storage_class == "local-nvme":
                continue
            roles = tuple(role for role in ROLES if classes[role] == storage_class)
            hot = "hot_checkpoints" in roles
            write = hot_write * level if hot else 0.0
            if storage_class == "object" and classes["hot_checkpoints"] == "local-nvme":
                write = background
            key = (storage_class, roles, write)
            if key not in found:
                found[key] = len(columns)
                columns.append(
                    (sum(sizes[role] for role in roles), sum(reads[role] for role in roles), write, traffic if hot else 0.0)
                )
            mine[storage_class] = found[key]
        rows.append(mine)
    size, read, write, written = (np.array(column) for column in zip(*columns, strict=True))
    return evaluate(market, Q(size, gigabyte), Q(read, rate), Q(write, rate), Q(written, rate), situation.limits), rows


@dataclass(frozen=True)
class _Bought:
    """What a try takes: a product per class, the price of all, and what its hot tier gives (GB/s)."""

    picks: dict[str, int | None]
    price: float
    read: float
    write: float
    enough: bool


def _buy(situation: Situation, offers: Offers, best: list[int | None], rows: dict[str, int], hot: str) -> _Bought:
    """The product picked for each class of an arrangement (best: by row), whose live checkpoints lie on class `hot`."""
    picks, price = {}, 0.0
    for storage_class, row in rows.items():
        pick = picks[storage_class] = best[row]
        price += 0.0 if pick is None else float(offers.price.magnitude[row, pick])
    if hot == "local-nvme":
        read, write = (limit.m_as(unit("GB/s")) for limit in situation.limits[hot])
        return _Bought(picks, price, read, write, write >= situation.needs["hot_checkpoints"].write.m_as(unit("GB/s")) * 0.05)
    pick, row = picks[hot], rows[hot]
    if pick is None:
        return _Bought(picks, price, 0.05, 0.05, False)
    read, write = float(offers.read.magnitude[row, pick]), float(offers.write.magnitude[row, pick])
    return _Bought(picks, price, read, write, bool(offers.enough[row, pick]))


@dataclass(frozen=True)
class _Times:
    """Checkpoint times of all tries, as arrays."""

    write_time: Quantity
    stall: Quantity
    interval: Quantity
    restart: Quantity
    rollback: Quantity
    optimum: Quantity
    goodput: Quantity
    start: Quantity


def _times(situation: Situation, write: Quantity, read: Quantity) -> _Times:
    """Write time, stall, interval, restart and goodput for hot tiers of these bandwidths."""
    second = unit("s")
    write_time = (situation.checkpoint / write).to(second)
    if situation.sharded:
        write_time = write_time + situation.gpus * constant("storage.rank_planning_time")
    else:
        write_time = maximum(write_time, (situation.checkpoint / constant("storage.stream_write_bandwidth")).to(second))
    none = 0 * write_time
    if situation.asynchronous:
        stall = situation.snapshot + constant("storage.asynchronous_slowdown") * write_time
        rollback = write_time
    else:
        stall, rollback = write_time, none
    restart = situation.restart_base + (situation.restore_size / (read * constant("storage.load_efficiency"))).to(second)
    optimum = daly_interval(stall, situation.mtbf)
    if situation.interval is None:
        interval = choose_interval(
            optimum,
            stall,
            rollback,
            situation.training_time,
            constant("storage.longest_interval"),
            constant("storage.stall_share"),
            constant("storage.asynchronous_window"),
            constant("storage.longest_interval_stalled"),
        )
    else:
        interval = situation.interval + none
    goodput = goodput_of(interval, stall, situation.mtbf, restart, rollback)
    start = (situation.start_size / (read * constant("storage.load_efficiency"))).to(second)
    return _Times(write_time, stall, interval, restart, rollback, optimum, goodput, start)


def _ends_in_time(situation: Situation, times: _Times) -> np.ndarray:
    """Whether a background copy ends before the next one starts (only a given interval can fail)."""
    if not situation.asynchronous:
        return np.ones(times.write_time.magnitude.shape, bool)
    return (times.write_time <= times.interval) if np.ndim(times.write_time.magnitude) else np.array(True)


def verdict(design: str, situation: Situation, enough: bool, write: Quantity, needed: Quantity) -> tuple[bool, dict[str, str]]:
    """Whether an arrangement does, and why (not)."""
    gigabyte = unit("GB")
    checkpoint = situation.checkpoint
    limit, large = constant("storage.local_only_checkpoint"), constant("storage.hot_warm_cold_checkpoint")
    is_large = checkpoint.m_as(gigabyte) >= large.m_as(gigabyte)
    slow = both(
        f"saves need {rate_text(needed)} and it gives {rate_text(write)}",
        f"检查点写入需要 {rate_text(needed)}，该方案只有 {rate_text(write)}",
    )
    if design == "local_and_object":
        local = situation.needs["shards"].size + situation.needs["hot_checkpoints"].size
        if situation.nodes > constant("storage.local_only_nodes").m_as(unit("node")):
            return False, both(
                f"{situation.nodes} machines need one file system that all of them see",
                f"{situation.nodes} 个节点需要共享文件系统",
            )
        short = situation.training_time <= constant("storage.local_only_time")
        if checkpoint.m_as(gigabyte) > limit.m_as(gigabyte) and not short:
            return False, both(
                f"a checkpoint of {size_text(checkpoint)} is too much to lose with the machine (limit {size_text(limit)})",
                f"检查点 {size_text(checkpoint)} 过大，随实例释放的风险高（上限 {size_text(limit)}）",
            )
        if local.m_as(gigabyte) > situation.local_size.m_as(gigabyte):
            return False, both(
                f"local NVMe holds {size_text(situation.local_size)} of {size_text(local)} needed",
                f"本地 NVMe 盘只有 {size_text(situation.local_size)}，需要 {size_text(local)}",
            )
        return (True, both("fastest and included with the machine", "速度最快，且随实例附带")) if enough else (False, slow)
    if design == "hot_warm_cold" and not is_large:
        return False, both(
            f"pays from checkpoints of {size_text(large)}; these have {size_text(checkpoint)}",
            f"检查点达到 {size_text(large)} 才划算，目前为 {size_text(checkpoint)}",
        )
    if design != "hot_warm_cold" and is_large:
        return False, both("states of this size need an archive tier behind the hot one", "此规模的状态需要热层之后再加归档层")
    if not enough:
        return False, slow
    if design == "hot_warm_cold":
        return True, both("a large state written by many machines", "状态大、写入节点多，需热/温/冷分层")
    return True, both("shared by all machines, saves end in time", "所有节点共享，保存能按时完成")
