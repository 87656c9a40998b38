"""The tier table: for each role the product chosen, what it gives against what is needed, and why the others were not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.catalog import constant
from advisor.storage.dataset import open_rates
from advisor.storage.designs import ROLES, Judged, Situation
from advisor.storage.products import REFERENCE, Plain, Shelf
from advisor.storage.records import ProductOption, Tier
from advisor.storage.words import both, rate_text, size_text
from advisor.units import Q, Quantity, unit

#: Roles whose products are compared one by one; environments and logs lie where these lie.
COMPARED = ("raw", "shards", "hot_checkpoints", "archived_checkpoints")
DECIDING = ("capacity", "bandwidth", "minimum")
#: Why a class does not do for a role at all, by (role, class); None stands for any role.
CLASS_REASONS = {
    ("hot_checkpoints", "object"): (
        "object_as_live_target",
        both(
            "Object storage is no live checkpoint target: mounts time out under many sharded writers. Write to disk first and "
            "upload in the background.",
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
    if role == "hot_checkpoints":
        need = replace(need, write=need.write * judged.level)
    per_month = unit(f"{market.currency} / month")
    none = Q(0.0, unit("request/s"))
    rates = open_rates(readers)
    opens = rates.get(storage_class, none)
    options = _options(role, market, situation, judged) if role in COMPARED else ()
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
    row = judged.rows[storage_class]
    pick = judged.picks[storage_class]
    if pick is None:
        raise ValueError(f"No storage product of class {storage_class} is known in the {market.market} market.")
    offers = judged.offers
    mates = [one for one in ROLES if judged.classes[one] == storage_class]
    total = sum(situation.needs[one].size.m_as(unit("GB")) for one in mates)
    share = need.size.m_as(unit("GB")) / total if total > 0 else 1.0 / len(mates)
    borrowed = market.choice(situation.provider, storage_class)[1]
    deciding = DECIDING[int(offers.deciding[row, pick])]
    hot = situation.needs["hot_checkpoints"].write * judged.level
    bandwidth = max(hot if "hot_checkpoints" in mates else need.write, *(situation.needs[one].read for one in mates), need.read)
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
        reason=_chosen_reason(deciding, need.size, Q(float(offers.capacity.magnitude[row, pick]), unit("GB")), bandwidth),
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
    row_class = storage_class if storage_class != "local-nvme" else "object"
    row = judged.rows.get(row_class, 0)
    offers = judged.offers
    price = offers.price.magnitude[row].tolist()
    plain = market.plain
    name = (situation.provider or REFERENCE[market.market]).split()[0].lower()
    wanted, cheapest_of = [], {}
    for index, provider in enumerate(plain.provider):
        if market.first_word[index] == name:
            wanted.append(index)
        elif plain.storage_class[index] == storage_class and price[index] == price[index] and not plain.reads_billed[index]:
            best = cheapest_of.get(provider)
            if best is None or price[index] < price[best]:
                cheapest_of[provider] = index
    chosen = judged.picks.get(storage_class)
    columns = [column.magnitude[row].tolist() for column in (offers.capacity, offers.read, offers.write)]
    enough = offers.enough[row].tolist()
    need = situation.needs[role]
    compare = _Compare(
        role=role,
        chosen_class=storage_class,
        chosen=chosen,
        nodes=situation.nodes,
        room=need.size.m_as(unit("GB")) / constant("storage.usable_fraction").m_as(unit("")),
    )
    gigabyte, rate, per_month = unit("GB"), unit("GB/s"), unit(f"{market.currency} / month")
    result = []
    for index in (*wanted, *cheapest_of.values()):
        capacity, read, write = (column[index] for column in columns)
        cost = price[index]
        code, reason, qualifies = _verdict(index, plain, compare, enough[index], write)
        unknown = plain.estimated[index] or cost != cost
        result.append(
            ProductOption(
                provider=plain.provider[index],
                product=plain.product[index],
                storage_class=plain.storage_class[index],
                market=market.market,
                capacity=Q(capacity, gigabyte),
                read=Q(read, rate),
                write=Q(write, rate),
                price=None if unknown else Q(cost, per_month),
                qualifies=qualifies,
                reason_code=code,
                reason=reason,
                source=plain.source[index],
            )
        )
    return tuple(result)


@dataclass(frozen=True)
class _Compare:
    """What an option is judged against. room: GB needed with headroom."""

    role: str
    chosen_class: str
    chosen: int | None
    nodes: int
    room: float


NOT_SHARED = both(
    "Local to one machine and lost with it: a cache, not a home.", "只在单个节点上且随实例释放：可作缓存，不能长期保存。"
)
BILLED_READS = both(
    "Reads are billed by GB and a shortest time is billed: for data at rest.",
    "读取按 GB 计费且有最短存储期，只适合长期静置的数据。",
)
PERISHABLE = both(
    "Scratch loses data when one of its servers fails, and hard disks are slow at many small writes: not for the hot copy.",
    "临时型（scratch）在服务器故障时丢数据，机械盘小写入慢：都不适合存放热检查点。",
)
CHOSEN = both("Chosen.", "已选用。")
DEARER = both("Does; not the cheapest.", "可用，但不是最便宜的。")
NO_PRICE = both("Does, but has no public price: ask for a quote.", "可用，但无公开报价，请询价。")


def _verdict(index: int, products: Plain, compare: _Compare, enough: bool, write: float) -> tuple[str, dict[str, str], bool]:
    """(reason code, reason, whether it does) of one product for one role."""
    storage_class = products.storage_class[index]
    same_class = storage_class == compare.chosen_class
    if index == compare.chosen and same_class:
        return "chosen", CHOSEN, True
    known = CLASS_REASONS.get((compare.role, storage_class))
    if known is not None and not (storage_class == "block" and compare.nodes == 1):
        return known[0], known[1], False
    if storage_class == "archive" and not same_class:
        return "slow_to_read", READ_WAIT, False
    if storage_class == "block" and compare.nodes > 1:
        return (*CLASS_REASONS["hot_checkpoints", "block"], False)
    if storage_class == "local-nvme" and not same_class:
        return "not_shared", NOT_SHARED, False
    if not enough:
        offered = rate_text(Q(write, unit("GB/s")))
        return "too_slow", both(f"Gives {offered}, which is too slow.", f"只有 {offered}，速度不够。"), False
    if products.perishable[index] and compare.role == "hot_checkpoints":
        return "perishable", PERISHABLE, False
    if products.reads_billed[index] and storage_class == "object":
        return "billed_reads", BILLED_READS, compare.role == "archived_checkpoints"
    if products.estimated[index] or products.price[index] != products.price[index]:  # NaN: nobody publishes one
        return "price_unknown", NO_PRICE, True
    if not same_class:
        en = f"Does, as another arrangement would use it; {compare.chosen_class} was chosen here."
        return "other_class", both(en, f"可用，但当前方案选择了 {compare.chosen_class}。"), storage_class != "block"
    smallest = products.minimum[index]
    if smallest > 1.01 * compare.room:
        size = size_text(Q(smallest, unit("GB")))
        return "minimum_capacity", both(f"Does; its smallest size is {size}.", f"可用，但最小容量为 {size}。"), True
    return "dearer", DEARER, True
