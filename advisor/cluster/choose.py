"""The default a practitioner would start with: one card if the job fits and ends in days, else a box, else several boxes.

With a deadline or a budget these bounds decide instead: the cheapest that meets them. A given card or count is respected.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import numpy as np

from advisor import catalog
from advisor.cluster.candidates import USUAL_COUNTS
from advisor.cluster.cards import Text, usual_price, usual_prices, usual_scale_out
from advisor.cluster.records import ClusterEstimate, SearchInputs
from advisor.cluster.search import SearchResult, search_cluster
from advisor.cluster.why import card_reason, count_reason, layout_reason
from advisor.memory import MemoryInputs, estimate_memory
from advisor.network import CommunicationInputs, estimate_communication, fabric_of
from advisor.throughput import ThroughputInputs, accelerator_of, estimate_throughput, precision_cost
from advisor.training import Layout
from advisor.units import Q, Quantity, Time, unit

#: Full training of more parameters than this starts on so many cards: states alone are 16 bytes a parameter, and whole boxes
#: are what is rented (a box of 80 GB cards from a few billion, two once 640 GB do not hold the states, four from a hundred).
WHOLE_BOXES = ((1e11, 32), (4e10, 16), (3e9, 8))
#: How long a run may take on so many cards before more are suggested, without a deadline.
PATIENCE = ((1, Q(3.0, unit("day"))), (8, Q(14.0, unit("day"))), (10**9, Q(60.0, unit("day"))))
#: A card is looked at unasked when at least so many offers of it are listed, or when people own it.
OFFERS = 7
#: The card cheapest by the hour is taken while the run costs at most so many times the cheapest run: on one card, on more.
LIKE = (2.0, 1.5)

#: A layout that waits for communication this share of its step gives way to a tight one, if that is so many times faster.
WAITS = 0.3
WORTH_A_TEST = 1.5
TIGHT: Text = {
    "en": "The expected memory fits, the upper end of its interval does not: test one step before the long run.",
    "zh": "显存期望值放得下，但区间上限超出：正式训练前先跑一步确认。",
}


def choose(inputs: SearchInputs, may_offload: bool = True) -> ClusterEstimate:
    """The card, count and layout to start with, and why.

    inputs.gpus with one name and inputs.counts with one number are kept; else they are chosen. Cards are compared at
    `inputs.prices`, or at the catalog's usual prices. When no layout fits even with offload, the one that needs least is
    returned with the verdict "does_not_fit". Raises CatalogError for an unknown card.
    """
    wanted = _prepared(inputs)
    for attempt, note in _attempts(wanted, may_offload):
        result, position = _settle(attempt, bool(inputs.counts))
        if position is not None and not attempt.accept_tight and _waits(result, position):
            quick, place = _settle(replace(attempt, accept_tight=True), bool(inputs.counts))
            if place is not None and _speed(quick, place) > WORTH_A_TEST * _speed(result, position):
                result, position, note = quick, place, TIGHT
        if position is not None:
            gpu, layout = result.cards.gpus[result.card[position]], result.layouts.one(position)
            reasons = [text for text in (note, precision_cost(gpu, inputs.training)) if text]
            card = card_reason(result, position, LIKE[int(result.count[position] > 1)])
            reasons += [*([card] if card else []), count_reason(result, position), layout_reason(layout)]
            return assess(inputs, gpu.name, layout, tuple(reasons))
    return _nothing_fits(wanted)


def _waits(result: SearchResult, position: int) -> bool:
    return bool(result.columns["communication_share"][position].m_as("") > WAITS)


def _speed(result: SearchResult, position: int) -> float:
    return float(result.columns["tokens_per_second"][position].m_as("token / s"))


def _settle(inputs: SearchInputs, given: bool) -> tuple[SearchResult, int | None]:
    """Search up to 256 cards first, and beyond only when that many do not suffice or take too long.

    The next smaller usual number is searched along, not to be chosen, but to say why not fewer.
    """
    few = inputs.counts if given else tuple(count for count in inputs.counts if count <= 256)
    least = min(few)
    smaller = tuple(count for count in USUAL_COUNTS if count < least)[-1:]
    result = search_cluster(replace(inputs, counts=(*smaller, *few)))
    position, content = _pick(result, least)
    if not content and not given:
        more = search_cluster(replace(inputs, counts=(*smaller, *inputs.counts)))
        larger, _ = _pick(more, least)
        return more, larger
    return result, position


def _prepared(inputs: SearchInputs) -> SearchInputs:
    """The inputs with the cards and counts a practitioner would look at, and with prices to compare by."""
    names = inputs.gpus or _common_cards()
    counts = tuple(inputs.counts or _ladder(inputs))
    prices = inputs.prices
    if prices is None or not inputs.gpus:
        known = usual_prices(names)
        if prices is not None and np.ndim(prices.magnitude):
            place = {gpu.name: index for index, gpu in enumerate(catalog.gpus())}
            known = Q(prices.magnitude[[place[name] for name in names]], prices.units)
        prices = known
    if not inputs.gpus or len(inputs.gpus) > 1:
        names, prices = _for_clusters(inputs, names, prices, counts)
    return replace(inputs, gpus=names, prices=prices, counts=counts)


def _for_clusters(
    inputs: SearchInputs, names: tuple[str, ...], prices: Quantity, counts: tuple[int, ...]
) -> tuple[tuple[str, ...], Quantity]:
    """The cards that clusters of several nodes are made of, where the job needs one: no consumer cards, and NVLink where all
    weights are trained, because states too large for one box cross nodes at every step."""
    if min(counts) <= 8:
        return names, prices
    cards = [catalog.gpu(name) for name in names]
    kept = [index for index, gpu in enumerate(cards) if gpu.segment != "consumer"]
    linked = [index for index in kept if not cards[index].scale_up.startswith("PCIe")]
    kept = linked if linked and inputs.training.method == "full" else kept
    if not kept:
        return names, prices
    listed = np.broadcast_to(prices.magnitude, len(names))
    return tuple(names[index] for index in kept), Q(listed[kept], prices.units)


@functools.cache
def _common_cards() -> tuple[str, ...]:
    """Cards a practitioner would think of: NVIDIA's, offered by several clouds or found under desks; no superchip racks."""
    offers = Counter(instance.gpu for instance in catalog.instances() if instance.on_demand is not None)
    return tuple(
        gpu.name
        for gpu in catalog.gpus()
        if gpu.vendor == "NVIDIA"
        and gpu.form_factor != "superchip"
        and gpu.supports_bf16
        and usual_price(gpu.name) is not None
        and (offers[gpu.name] >= OFFERS or gpu.segment == "consumer")
    )


def _ladder(inputs: SearchInputs) -> tuple[int, ...]:
    size = inputs.architecture.parameters_total.m_as("parameter")
    first = 1
    if inputs.training.method == "full":
        first = next((count for most, count in WHOLE_BOXES if size > most), 1)
    return tuple(count for count in USUAL_COUNTS if count >= first)


def _attempts(inputs: SearchInputs, may_offload: bool) -> list[tuple[SearchInputs, Text | None]]:
    """Searches to make until one finds something, each with what it concedes."""
    parallel: Text = {
        "en": "Sharded data parallelism alone does not fit, or does not divide the batch; this needs tensor or pipeline"
        " parallelism (Megatron, torchtitan).",
        "zh": "仅靠分片数据并行放不下，或无法整除批大小；该布局需要张量或流水线并行（Megatron、torchtitan）。",
    }
    offload: Text = {
        "en": "Only with offload to host RAM: it fits, at a cost in time. More or larger cards avoid it.",
        "zh": "需卸载到主机内存（offload）才放得下，速度会变慢；增加卡数或换更大显存可避免。",
    }
    attempts = [(inputs, None), (replace(inputs, accept_tight=True), TIGHT)]
    if inputs.model_parallel == "framework" and inputs.training.framework not in ("megatron", "torchtitan"):
        attempts.append((replace(inputs, model_parallel="always"), parallel))
    if may_offload and inputs.offloads == ("none",):
        every = ("none", "optimizer", "optimizer_and_parameters")
        attempts.append((replace(inputs, offloads=every, accept_tight=True), offload))
    return attempts


def _patience(count: int) -> Time:
    return next(time for most, time in PATIENCE if count <= most)


def _pick(result: SearchResult, least: int) -> tuple[int | None, bool]:
    """(the position to start with or None when nothing fits, whether it meets the bounds or ends in reasonable time).

    least: the smallest number of cards that may be chosen.
    """
    eligible = result.count >= least
    if not eligible.any():
        return None, False
    time, cost = result.columns["training_time"], result.price_of_run()
    fastest = int(np.argmin(np.where(eligible, time.magnitude, np.inf)))
    if result.inputs.deadline is not None or result.inputs.budget is not None:
        allowed = np.flatnonzero(result.allowed() & eligible)
        if len(allowed):
            count = int(result.count[allowed].min()) if result.inputs.budget is None else None
            here = allowed if count is None else allowed[result.count[allowed] == count]
            return _cheapest(result, here, cost), True
        return fastest, False
    for count in np.unique(result.count[eligible]):
        here = np.flatnonzero(result.count == count)
        here = here[time[here] <= _patience(int(count))]
        if len(here):
            return _cheapest(result, here, cost), True
    return fastest, False


def _cheapest(result: SearchResult, here: np.ndarray, cost: np.ndarray) -> int:
    """Of the cards that do: the cheapest by the hour whose run costs little more than the cheapest run.

    Several cards that train all weights should have NVLink among them, where any such card does.
    """
    several = result.count[here] > 1
    if several.all() and result.inputs.training.method == "full":
        linked = np.array([not result.cards.gpus[card].scale_up.startswith("PCIe") for card in result.card[here]])
        here = here[linked] if linked.any() else here
    like = here[cost[here] <= LIKE[int(several.all())] * cost[here].min()]
    hourly = cost[like] / result.columns["training_time"][like].m_as("h")
    return int(like[np.lexsort((cost[like], hourly))[0]])


def _nothing_fits(inputs: SearchInputs) -> ClusterEstimate:
    """The layout that needs least memory on the card with most, said not to fit."""
    every = ("none", "optimizer", "optimizer_and_parameters")
    result = search_cluster(replace(inputs, offloads=every, model_parallel="always"))
    gpu = max(result.cards.gpus, key=lambda card: card.capacity.m_as("GiB / GPU"))
    layout = result.smallest or Layout(sequence_length=inputs.sequence_length)
    if result.least is None:
        text = {
            "en": "No layout is legal: the batch, the sequence or the parallel sizes do not divide over these cards.",
            "zh": "没有合法布局：批大小、序列长度或并行度无法在这些卡上整除。",
        }
        return assess(inputs, gpu.name, layout, (text,))
    least, room = f"{result.least.m_as('GiB / GPU'):.1f}", f"{gpu.capacity.m_as('GiB / GPU'):.1f}"
    if result.least <= gpu.capacity:
        text = {
            "en": f"Nothing fits as asked; the most economical layout ({layout_words(layout)}) needs {least} of {room} GiB.",
            "zh": f"按所给条件放不下；最省显存的布局（{layout_words(layout)}）每卡需 {least} GiB，显存为 {room} GiB。",
        }
        return assess(inputs, gpu.name, layout, (text,))
    text = {
        "en": f"Nothing tried fits: the smallest layout needs {least} GiB per GPU, {gpu.name} has {room}.",
        "zh": f"所有布局都放不下：最省显存的布局每卡需 {least} GiB，{gpu.name} 只有 {room} GiB。",
    }
    return assess(inputs, gpu.name, layout, (text,))


def layout_words(layout: Layout) -> str:
    """What a layout does to save memory, in the words that both languages use."""
    words = [f"{layout.gpus} GPU"]
    sizes = (("TP", layout.tensor_parallel_size), ("PP", layout.pipeline_parallel_size), ("CP", layout.context_parallel_size))
    words += [f"{name}{size}" for name, size in sizes if size > 1]
    words += [f"ZeRO-{layout.zero_stage}"] if layout.zero_stage else []
    words += ["offload"] if layout.offload != "none" else []
    return ", ".join(words)


def assess(inputs: SearchInputs, gpu_name: str, layout: Layout, reasons: tuple[Text, ...] = ()) -> ClusterEstimate:
    """One layout on one card, by the same estimates a single plan uses."""
    gpu = catalog.gpu(gpu_name)
    scale_out = inputs.scale_out or usual_scale_out(gpu)
    fabric = fabric_of(gpu, scale_out if layout.nodes > 1 else None, int(layout.gpus_per_node))
    job = {"architecture": inputs.architecture, "training": inputs.training, "layout": layout, "fabric": fabric}
    communication = estimate_communication(CommunicationInputs(**job)) if layout.gpus > 1 else None
    estimate = estimate_throughput(
        ThroughputInputs(**job, accelerator=accelerator_of(gpu, inputs.training)), communication=communication
    )
    memory = estimate_memory(
        MemoryInputs(architecture=inputs.architecture, training=inputs.training, layout=layout, capacity=gpu.capacity)
    )
    time = (inputs.tokens / estimate.tokens_per_second).to("h")
    hours = time * Q(layout.gpus, unit("GPU"))
    price = _price(inputs, gpu.name)
    return ClusterEstimate(
        gpu=gpu.name,
        gpus=int(layout.gpus),
        nodes=int(layout.nodes),
        layout=layout,
        step_time=estimate.step_time,
        tokens_per_second_per_gpu=estimate.tokens_per_second_per_gpu,
        tokens_per_second=estimate.tokens_per_second,
        mfu=estimate.mfu,
        hfu=estimate.hfu,
        communication_share=estimate.communication_share,
        training_time=time,
        gpu_hours=hours,
        low=time * (estimate.low / estimate.step_time),
        high=time * (estimate.high / estimate.step_time),
        cost=None if price is None else hours * price,
        verdict=memory.verdict,
        scale_out=scale_out if layout.nodes > 1 else "",
        reasons=reasons,
        fabric=fabric,
        communication=communication,
        throughput=estimate,
        memory=memory,
    )


def _price(inputs: SearchInputs, name: str) -> Quantity | None:
    if inputs.prices is None:
        return usual_price(name)
    names = inputs.gpus or tuple(gpu.name for gpu in catalog.gpus())
    listed = np.broadcast_to(inputs.prices.magnitude, len(names))
    found = [price for one, price in zip(names, listed, strict=True) if catalog.gpu(one).name == name and np.isfinite(price)]
    return Q(float(found[0]), inputs.prices.units) if found else None
