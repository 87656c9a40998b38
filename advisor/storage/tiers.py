"""The tier table: for each role the product chosen, what it gives against what is needed, and why the others were not."""

from __future__ import annotations

import numpy as np

from advisor.catalog import constant
from advisor.storage.dataset import open_rates
from advisor.storage.designs import ROLES, Judged, Situation, provider_mask
from advisor.storage.products import Shelf
from advisor.storage.records import ProductOption, Tier
from advisor.storage.words import both, rate_text, size_text
from advisor.units import Q, Quantity, unit

DECIDING = ("capacity", "bandwidth", "minimum")
#: Why a class does not do for a role at all, by (role, class); None stands for any role.
CLASS_REASONS = {
    ("hot_checkpoints", "object"): (
        "object_as_live_target",
        both(
            "Object storage is no live checkpoint target: mounts time out under many sharded writers. Write to disk first and upload "
            "in the background.",
            "对象存储不适合作为检查点的直接写入目标：多节点分片写入时挂载容易超时。应先写本地或文件系统，再后台上传。",
        ),
    ),
    ("hot_checkpoints", "block"): (
        "single_writer",
        both(
            "A cloud disk is attached to one machine: others cannot write or read it.",
            "云硬盘只能挂载到一个节点，其他节点无法读写。",
        ),
    ),
    ("shards", "block"): (
        "single_writer",
        both(
            "A cloud disk is attached to one machine, and its speed grows only with its size.",
            "云硬盘只能挂载到一个节点，且速度随容量增长。",
        ),
    ),
    ("raw", "parallel-fs"): (
        "dear_at_rest",
        both("Raw data are read once: they need no fast file system.", "原始数据只读一次，无需高速文件系统。"),
    ),
    ("raw", "nas"): (
        "dear_at_rest",
        both("Raw data are read once: object storage is cheaper.", "原始数据只读一次，对象存储更便宜。"),
    ),
    ("raw", "archive"): (
        "slow_to_read",
        both("An archive must be thawed for hours before it is read.", "归档存储读取前需数小时解冻。"),
    ),
}
READ_WAIT = both("Reading waits for hours and is billed by GB.", "读取需等待数小时，且按 GB 计费。")


def tier_table(market: Shelf, situation: Situation, judged: Judged, opens_needed: Quantity, readers: int) -> tuple[Tier, ...]:
    """One tier per role of the chosen arrangement. Roles on one file system share its price by their size."""
    return tuple(_tier(role, market, situation, judged, opens_needed, readers) for role in ROLES)


def _tier(role: str, market: Shelf, situation: Situation, judged: Judged, opens_needed: Quantity, readers: int) -> Tier:
    storage_class = judged.classes[role]
    need = situation.needs[role]
    per_month = unit(f"{market.currency} / month")
    none = Q(0.0, unit("request/s"))
    rates = open_rates(readers)
    opens = rates.get(storage_class, none)
    options = _options(role, market, situation, judged)
    if storage_class == "local-nvme":
        read, write = situation.limits[storage_class]
        return Tier(
            role=role,
            storage_class=storage_class,
            provider="",
            product="local NVMe of the training machines",
            needed=need.size,
            capacity=situation.local_size,
            bought_for="included",
            read_needed=need.read,
            read_offered=read,
            write_needed=need.write,
            write_offered=write,
            opens_needed=opens_needed if role == "shards" else none,
            opens_offered=opens,
            writers=situation.nodes,
            latency="about 0.1 ms",
            price=Q(0.0, per_month),
            price_estimated=False,
            reason=both(
                "Included with the machine, fastest, and lost when it is released: every copy here has another elsewhere.",
                "随实例附带、速度最快，但随实例释放而丢失：这里的每份数据在别处都另有一份。",
            ),
            options=options,
        )
    row = judged.rows[judged.chosen, storage_class]
    pick = judged.picks[judged.chosen, storage_class]
    if pick is None:
        raise ValueError(f"No storage product of class {storage_class} is known in the {market.market} market.")
    offers = judged.offers
    mates = [one for one in ROLES if judged.classes[one] == storage_class]
    total = sum(situation.needs[one].size.m_as("GB") for one in mates)
    share = need.size.m_as("GB") / total if total > 0 else 1.0 / len(mates)
    borrowed = provider_mask(market, situation.provider, storage_class)[1]
    deciding = DECIDING[int(offers.deciding[row, pick])]
    return Tier(
        role=role,
        storage_class=storage_class,
        provider=str(market.provider[pick]) if not borrowed else (situation.provider or str(market.provider[pick])),
        product=str(market.product[pick])
        if not borrowed
        else f"{storage_class} (not in the catalog; priced as {market.provider[pick]} {market.product[pick]})",
        needed=need.size,
        capacity=Q(float(offers.capacity.magnitude[row, pick]) * share, unit("GB")),
        bought_for=deciding,
        read_needed=need.read,
        read_offered=Q(float(offers.read.magnitude[row, pick]), unit("GB/s")),
        write_needed=need.write,
        write_offered=Q(float(offers.write.magnitude[row, pick]), unit("GB/s")),
        opens_needed=opens_needed if role == "shards" else none,
        opens_offered=opens,
        writers=situation.nodes,
        latency=str(market.latency[pick]),
        price=Q(float(offers.price.magnitude[row, pick]) * share, per_month),
        price_estimated=bool(market.estimated[pick]) or borrowed,
        reason=_chosen_reason(
            deciding, need.size, Q(float(offers.capacity.magnitude[row, pick]), unit("GB")), max(need.write, need.read)
        ),
        options=options,
    )


def _chosen_reason(deciding: str, needed: Quantity, bought: Quantity, bandwidth: Quantity) -> dict[str, str]:
    if deciding == "bandwidth":
        return both(
            f"Capacity is bought for its bandwidth: {size_text(bought)} to get {rate_text(bandwidth)}.",
            f"为带宽而买容量：需购买 {size_text(bought)} 才有 {rate_text(bandwidth)}。",
        )
    if deciding == "minimum":
        return both(
            f"The smallest purchase is {size_text(bought)}.",
            f"最小购买容量为 {size_text(bought)}。",
        )
    return both(
        f"Cheapest that does: {size_text(needed)} with headroom.",
        f"满足要求的最低价：{size_text(needed)}，并留余量。",
    )


def _options(role: str, market: Shelf, situation: Situation, judged: Judged) -> tuple[ProductOption, ...]:
    """This provider's products and, of each other provider, the cheapest product of the chosen class."""
    storage_class = judged.classes[role]
    row_class = storage_class if storage_class != "local-nvme" else ("object" if role == "shards" else None)
    row = judged.rows.get((judged.chosen, row_class)) if row_class else None
    if row is None:
        row = next(iter(judged.rows.values()))
    offers = judged.offers
    name = (situation.provider or str(market.provider[0])).split()[0].lower()
    own = np.array([one.split()[0].lower() == name for one in market.provider])
    chosen = judged.picks.get((judged.chosen, storage_class))
    wanted = [int(i) for i in np.flatnonzero(own)]
    price = offers.price.magnitude[row]
    others = (~own) & (market.storage_class == storage_class) & ~np.isnan(price)
    for provider in dict.fromkeys(market.provider[others].tolist()):
        columns = np.flatnonzero(others & (market.provider == provider) & (market.retrieval_price.magnitude == 0))
        if columns.size:
            wanted.append(int(columns[np.argmin(price[columns])]))
    return tuple(_option(role, index, row, market, situation, storage_class, offers, chosen) for index in wanted)


def _option(role, index, row, market, situation, chosen_class, offers, chosen) -> ProductOption:
    storage_class = str(market.storage_class[index])
    price = float(offers.price.magnitude[row, index])
    code, reason, qualifies = _judge_option(role, index, row, market, situation, chosen_class, storage_class, offers, chosen)
    unknown = bool(market.estimated[index]) or np.isnan(price)
    return ProductOption(
        provider=str(market.provider[index]),
        product=str(market.product[index]),
        storage_class=storage_class,
        market=market.market,
        capacity=Q(float(offers.capacity.magnitude[row, index]), unit("GB")),
        read=Q(float(offers.read.magnitude[row, index]), unit("GB/s")),
        write=Q(float(offers.write.magnitude[row, index]), unit("GB/s")),
        price=None if unknown else Q(price, unit(f"{market.currency} / month")),
        qualifies=qualifies,
        reason_code=code,
        reason=reason,
        source=str(market.source[index]),
    )


def _judge_option(role, index, row, market, situation, chosen_class, storage_class, offers, chosen):
    if index == chosen and storage_class == chosen_class:
        return "chosen", both("Chosen.", "已选用。"), True
    known = CLASS_REASONS.get((role, storage_class))
    if known is not None and not (storage_class == "block" and situation.nodes == 1):
        return known[0], known[1], False
    if storage_class == "archive" and chosen_class != "archive":
        return "slow_to_read", READ_WAIT, False
    if storage_class == "block" and situation.nodes > 1:
        code, reason = CLASS_REASONS["hot_checkpoints", "block"]
        return code, reason, False
    if storage_class == "local-nvme" and chosen_class != "local-nvme":
        return (
            "not_shared",
            both(
                "Local to one machine and lost with it: a cache, not a home.",
                "只在单个节点上且随实例释放：可作缓存，不能长期保存。",
            ),
            False,
        )
    if not bool(offers.enough[row, index]):
        offered = Q(float(offers.write.magnitude[row, index]), unit("GB/s"))
        return (
            "too_slow",
            both(f"Gives {rate_text(offered)}, which is too slow.", f"只有 {rate_text(offered)}，速度不够。"),
            False,
        )
    if market.retrieval_price.magnitude[index] > 0 and storage_class == "object":
        return (
            "billed_reads",
            both(
                "Reads are billed by GB and a shortest time is billed: for data at rest.",
                "读取按 GB 计费且有最短存储期，只适合长期静置的数据。",
            ),
            role == "archived_checkpoints",
        )
    if market.estimated[index] or np.isnan(market.price.magnitude[index]):
        return (
            "price_unknown",
            both("Does, but has no public price: ask for a quote.", "可用，但无公开报价，请询价。"),
            True,
        )
    if storage_class != chosen_class:
        return (
            "other_class",
            both(
                f"Does, as another arrangement would use it; {chosen_class} was chosen here.",
                f"可用，但当前方案选择了 {chosen_class}。",
            ),
            storage_class in ("parallel-fs", "nas", "local-nvme"),
        )
    smallest = market.minimum.magnitude[index]
    if smallest > 1.01 * situation.needs[role].size.m_as("GB") / constant("storage.usable_fraction").m_as(""):
        return (
            "minimum_capacity",
            both(
                f"Does; its smallest size is {size_text(Q(float(smallest), unit('GB')))}.",
                f"可用，但最小容量为 {size_text(Q(float(smallest), unit('GB')))}。",
            ),
            True,
        )
    return "dearer", both("Does; not the cheapest.", "可用，但不是最便宜的。"), True
