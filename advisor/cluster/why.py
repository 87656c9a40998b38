"""Why not fewer, and why not that card: the answer as one sentence in both languages, from the same search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from advisor import catalog
from advisor.catalog import GPU, CatalogError
from advisor.cluster.candidates import COUNTS, USUAL_COUNTS
from advisor.cluster.cards import Text, usual_prices
from advisor.cluster.records import ClusterEstimate, SearchInputs
from advisor.cluster.search import SearchResult, search_cluster
from advisor.throughput import precision_cost
from advisor.training import Layout
from advisor.units import Q, Quantity, unit


def span(time: Quantity) -> Text:
    """A time in words of its size: minutes, hours or days."""
    hours = time.m_as("h")
    if hours < 1:
        return {"en": f"{hours * 60:.0f} min", "zh": f"{hours * 60:.0f} 分钟"}
    if hours < 72:
        return {"en": f"{hours:.1f} h", "zh": f"{hours:.1f} 小时"}
    return {"en": f"{hours / 24:.1f} days", "zh": f"{hours / 24:.1f} 天"}


def _gib(value: Quantity) -> str:
    return f"{value.m_as('GiB / GPU'):.1f}"


def count_reason(result: SearchResult, position: int) -> Text:
    """Why so many of this card, against the next smaller usual number: from the search itself where that number was tried."""
    gpu, count = result.cards.gpus[result.card[position]], int(result.count[position])
    fewer = max((other for other in USUAL_COUNTS if other < count), default=0)
    if not fewer:
        return {"en": f"One {gpu.name} is enough.", "zh": f"一张 {gpu.name} 就够。"}
    tried = np.flatnonzero((result.card == result.card[position]) & (result.count == fewer))
    if len(tried):
        return _slower(
            result.inputs, gpu, fewer, result.columns["training_time"][tried[0]], result.columns["training_time"][position]
        )
    if fewer in result.inputs.counts:
        least = result.least_of.get(fewer)
        return _does_not_hold(gpu, fewer, None if least is None else Q(least, unit("GiB / GPU")))
    return why_not_fewer(result.inputs, gpu.name, count, fewer, result.columns["training_time"][position])


def card_reason(result: SearchResult, position: int, within: float) -> Text | None:
    """Why this card among those that would do in this number: it is the cheapest by the hour of those whose run costs at most
    `within` times the cheapest run. Names the cheapest run and the fastest where another card has them; None with one card.

    code "card_chosen" tells it from the other reasons.
    """
    here = np.flatnonzero((result.count == result.count[position]) & result.allowed())
    cards, cost, time = result.card[here], result.price_of_run()[here], result.columns["training_time"][here]
    priced = np.isfinite(cost)
    if len(set(cards[priced])) < 2 or "cost" not in result.columns:
        return None
    own = result.cards.gpus[result.card[position]].name
    cheap, fast = int(np.argmin(np.where(priced, cost, np.inf))), int(np.argmin(np.where(priced, time.magnitude, np.inf)))
    currency = {"usd": "$", "cny": "¥"}[f"{result.columns['cost'].units:~}".lower()]

    def words(index: int) -> tuple[str, str, str]:
        long = span(time[index])
        return result.cards.gpus[cards[index]].name.removeprefix("GeForce "), f"{currency}{cost[index]:,.3g}", long

    def other(index: int, en: str, zh: str) -> tuple[str, str]:
        name, money, long = words(index)
        if result.cards.gpus[cards[index]].name == own:
            return f"It is also the {en} at list prices.", f"按列表价它也是{zh}的。"
        return (
            f"{en.capitalize()} at list prices: {name}, {money} for the run in {long['en']}.",
            f"按列表价{zh}的是 {name}：正式训练 {money}，{long['zh']}。",
        )

    cheapest, fastest = other(cheap, "cheapest run", "费用最低"), other(fast, "fastest run", "最快")
    name = own.removeprefix("GeForce ")
    return {
        "code": "card_chosen",
        "en": f"Why {name}: of the cards whose run costs at most {within:g} times the cheapest run, it is the cheapest "
        f"by the hour. {cheapest[0]} {fastest[0]}",
        "zh": f"为什么选 {name}：在正式训练费用不超过最低费用 {within:g} 倍的卡中，它的每小时价格最低。"
        f"{cheapest[1]}{fastest[1]}",
    }


def _slower(inputs: SearchInputs, gpu: GPU, fewer: int, longer: Quantity, now: Quantity) -> Text:
    late = inputs.deadline is not None and longer > inputs.deadline
    why = ("; that misses the deadline", "，超过期限") if late else ("", "")
    return {
        "en": f"{fewer} x {gpu.name} would take {span(longer)['en']} instead of {span(now)['en']}{why[0]}.",
        "zh": f"{fewer} 张 {gpu.name} 需要 {span(longer)['zh']}，现方案为 {span(now)['zh']}{why[1]}。",
    }


def why_not_fewer(
    inputs: SearchInputs, gpu_name: str, count: int, fewer: int | None = None, now: Quantity | None = None
) -> Text:
    """What would happen on `fewer` cards (by default the next smaller usual number): too little memory, or how much longer.

    now: training time on `count` cards where it is known already; else it is searched for.
    """
    gpu = catalog.gpu(gpu_name)
    fewer = fewer or max((other for other in COUNTS if other < count), default=0)
    if fewer < 1:
        return {"en": f"One {gpu.name} is the least there is.", "zh": f"一张 {gpu.name} 已是最少。"}
    one = replace(inputs, gpus=(gpu.name,), prices=None)
    less = search_cluster(replace(one, counts=(fewer,)))
    if not len(less):
        return _does_not_hold(gpu, fewer, less.least)
    longer = span(less.columns["training_time"][0])
    if now is None:
        here = search_cluster(replace(one, counts=(count,)))
        now = here.columns["training_time"][0] if len(here) else None
    if now is None:
        return {
            "en": f"{fewer} x {gpu.name} would do, in {longer['en']}.",
            "zh": f"{fewer} 张 {gpu.name} 也可行，需 {longer['zh']}。",
        }
    return _slower(inputs, gpu, fewer, less.columns["training_time"][0], now)


def _does_not_hold(gpu: GPU, fewer: int, least: Quantity | None) -> Text:
    """Why a search found nothing on so many cards, given what the smallest layout needs (None without a legal one)."""
    if least is None:
        return {
            "en": f"The batch or the parallel sizes do not divide over {fewer} GPUs.",
            "zh": f"批大小或并行度无法整除 {fewer} 张卡。",
        }
    need, room = _gib(least), _gib(gpu.capacity)
    if least <= gpu.capacity:
        return {
            "en": f"On {fewer} x {gpu.name} it would be tight: {need} of {room} GiB expected, more at the interval's top.",
            "zh": f"用 {fewer} 张 {gpu.name} 显存偏紧：预计 {need} GiB / {room} GiB，区间上限会超出。",
        }
    return {
        "en": f"{fewer} x {gpu.name} do not hold it: at least {need} GiB per GPU against {room}.",
        "zh": f"{fewer} 张 {gpu.name} 放不下：每卡至少需要 {need} GiB，而显存只有 {room} GiB。",
    }


def why_not_card(inputs: SearchInputs, choice: ClusterEstimate, other_name: str) -> Text:
    """Why the chosen card and not `other_name`: it cannot, it does not fit in that number, or what it takes and costs."""
    other = catalog.gpu(other_name)
    names = (choice.gpu, other.name)
    one = replace(inputs, gpus=names, prices=usual_prices(names), counts=(choice.gpus,))
    try:
        result = search_cluster(one)
    except CatalogError as error:
        return {"en": str(error), "zh": f"目录缺少 {other.name} 的数据，无法估计。"}
    if other.name not in result.cards.names:
        text = dict(result.skipped)[other.name]
        return text
    lacks = precision_cost(other, inputs.training)
    if lacks is not None:
        return lacks
    rows = np.flatnonzero(result.card == result.cards.names.index(other.name))
    if not len(rows):
        alone = search_cluster(replace(one, gpus=(other.name,), prices=None))
        need = "?" if alone.least is None else _gib(alone.least)
        return {
            "en": f"{choice.gpus} x {other.name} do not hold it safely: {need} GiB or more per GPU of {_gib(other.capacity)}.",
            "zh": f"{choice.gpus} 张 {other.name} 放不下：每卡至少 {need} GiB，而显存只有 {_gib(other.capacity)} GiB。",
        }
    time = result.columns["training_time"][rows[0]]
    ratio = float((time / choice.training_time).m_as(""))
    speed = (
        (f"{ratio:.1f} times slower" if ratio >= 1.05 else f"{1 / ratio:.1f} times faster" if ratio <= 0.95 else "as fast"),
        (f"慢 {ratio:.1f} 倍" if ratio >= 1.05 else f"快 {1 / ratio:.1f} 倍" if ratio <= 0.95 else "速度相当"),
    )
    cost = result.columns["cost"][rows[0]]
    if choice.cost is None or not np.isfinite(cost.magnitude) or not cost.check(choice.cost.units):
        return {
            "en": f"{choice.gpus} x {other.name} would be {speed[0]} ({span(time)['en']}); no price is listed to compare.",
            "zh": f"{choice.gpus} 张 {other.name} {speed[1]}（{span(time)['zh']}）；没有可比的报价。",
        }
    money = float((cost / choice.cost).m_as(""))
    more = (f"{money:.1f} times the cost", f"费用为 {money:.1f} 倍")
    return {
        "en": f"{choice.gpus} x {other.name} would be {speed[0]} ({span(time)['en']}) at {more[0]}.",
        "zh": f"{choice.gpus} 张 {other.name} {speed[1]}（{span(time)['zh']}），{more[1]}。",
    }


def layout_reason(layout: Layout) -> Text:
    """What the layout does, in one sentence."""
    en, zh = [], []
    stage = int(layout.zero_stage)
    if layout.gpus == 1:
        en.append("a single process")
        zh.append("单进程")
    for size, name, label in (
        (layout.data_parallel_size, "data", "数据"),
        (layout.tensor_parallel_size, "tensor", "张量"),
        (layout.pipeline_parallel_size, "pipeline", "流水线"),
        (layout.context_parallel_size, "context", "上下文"),
        (layout.expert_parallel_size, "expert", "专家"),
    ):
        if size > 1:
            en.append(f"{size}-way {name} parallel")
            zh.append(f"{size} 路{label}并行")
    if stage:
        en.append(f"ZeRO-{stage}")
        zh.append(f"ZeRO-{stage}")
    if layout.activation_recomputation != "none":
        en.append(f"{layout.activation_recomputation} activation recomputation")
        zh.append("激活重计算")
    if layout.offload != "none":
        en.append("offload to host RAM")
        zh.append("卸载到主机内存")
    batch, steps = int(layout.micro_batch_size), int(layout.gradient_accumulation_steps)
    return {
        "en": f"Layout: {', '.join(en)}; micro-batch {batch}, {steps} accumulation steps.",
        "zh": f"布局：{'、'.join(zh)}；单卡批大小 {batch}，梯度累积 {steps} 步。",
    }
