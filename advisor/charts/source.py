"""What several charts need beside the plan: its architecture, other sequence lengths and batches, other cards and counts."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from typing import Any

import numpy as np

from advisor import catalog
from advisor.architecture import Architecture, find_architecture
from advisor.budget import convert, gpu_prices
from advisor.charts.definition import once_a_plan
from advisor.cluster import SearchInputs, SearchResult, search_cluster
from advisor.memory import MemoryEstimate, MemoryInputs, estimate_memory
from advisor.training import Training
from advisor.units import Q, Quantity, unit

GIB = "GiB / GPU"
#: Cards worth a look beside the plan's own, one for each size and market; the charts pick those nearest to what is needed.
USUAL_CARDS = (
    "GeForce RTX 4090",
    "GeForce RTX 5090",
    "A100 SXM4 40GB",
    "L40S",
    "Ascend 910B1/B2 64GB",
    "A100 SXM4 80GB",
    "H100 SXM5 80GB",
    "H20 96GB",
    "RTX PRO 6000 Blackwell Server",
    "H200 SXM 141GB",
    "B200 SXM 180GB",
    "MI300X",
    "B300 SXM 288GB",
)
#: How far the count of cards is varied around the plan's own, in powers of two.
FEWER, MORE = 3, 4


@functools.lru_cache(maxsize=64)
def _architecture(model: str) -> Architecture:
    return find_architecture(json.loads(model))


def architecture_of(plan: Any) -> Architecture:
    """The architecture of the plan's model."""
    return _architecture(json.dumps(plan.scenario["model"]["value"], sort_keys=True))


@once_a_plan
def nearby_cards(plan: Any) -> tuple[catalog.GPU, ...]:
    """The plan's card first, then up to five usual ones around the size that is needed, the smaller first."""
    chosen = catalog.gpu(plan.cluster.gpu)
    need = plan.memory.high.m_as(GIB)
    others: list[catalog.GPU] = []
    for card in _offered(plan):
        near = (chosen, *others[-1:])
        if all(abs(card.capacity / one.capacity - 1).m_as("") > 0.02 for one in near):
            others.append(card)
    sizes = {card.name: card.capacity.m_as(GIB) for card in others}
    small = [card for card in others if sizes[card.name] < need][-2:]
    enough = [card for card in others if sizes[card.name] >= need][: 5 - len(small)]
    if not enough:
        small = [card for card in others if sizes[card.name] < need][-5:]
    return (chosen, *small, *enough)


def _offered(plan: Any) -> list[catalog.GPU]:
    """The usual cards of the plan's market."""
    return [card for card in _usual() if card.vendor != "Huawei" or plan.budget.currency == "CNY"]


@functools.cache
def _usual() -> tuple[catalog.GPU, ...]:
    known = {card.name for card in catalog.gpus()}
    cards = [catalog.gpu(name) for name in USUAL_CARDS if name in known]
    return tuple(sorted(cards, key=lambda card: card.capacity.m_as(GIB)))


LENGTHS, BATCHES = 25, 17


@once_a_plan
def memory_around(plan: Any) -> dict[str, Any]:
    """One call of the memory stage for everything the memory charts show around the plan: the estimate as arrays in GiB, and
    where the cards, the sequence lengths and the micro-batches stand in them."""
    cards = nearby_cards(plan)
    layout = plan.cluster.layout
    lengths = _around(layout.sequence_length, LENGTHS, 128, 1_048_576)
    batches = np.arange(1, max(BATCHES, min(2 * layout.micro_batch_size + 1, 65)))
    own = plan.memory.capacity.m_as(GIB)
    capacity = np.array([*(card.capacity.m_as(GIB) for card in cards), *[own] * (len(lengths) + len(batches))])
    cards_end, lengths_end = len(cards), len(cards) + len(lengths)
    length = np.full(len(capacity), layout.sequence_length)
    length[cards_end:lengths_end] = lengths
    batch = np.full(len(capacity), layout.micro_batch_size)
    batch[lengths_end:] = batches
    estimate = estimate_memory(
        MemoryInputs(
            architecture=architecture_of(plan),
            training=plan.training,
            layout=replace(layout, sequence_length=length, micro_batch_size=batch),
            capacity=Q(capacity, unit(GIB)),
        )
    )
    return {
        "cards": cards,
        "lengths": lengths,
        "batches": batches,
        "terms": terms_of(estimate, len(capacity)),
        "total": _array(estimate.total, len(capacity)),
        "low": _array(estimate.low, len(capacity)),
        "high": _array(estimate.high, len(capacity)),
        "verdict": np.broadcast_to(estimate.verdict, len(capacity)),
        "capacity": capacity,
        "of_cards": slice(0, cards_end),
        "of_lengths": slice(cards_end, lengths_end),
        "of_batches": slice(lengths_end, None),
    }


def _around(value: int, points: int, least: int, most: int) -> np.ndarray:
    """Whole numbers from an eighth to eight times `value`, evenly in the logarithm, `value` among them."""
    low, high = max(value / 8, least), min(value * 8, most)
    many = np.geomspace(min(low, value), max(high, value), points)
    return np.unique(np.append(np.rint(many), value)).astype(np.int64)


def _array(value: Quantity, size: int) -> np.ndarray:
    return np.broadcast_to(value.m_as(GIB), size)


#: What stands at the peak, in stacking order; what the allocator holds beyond that is counted with the buffers.
TERMS = ("weights", "gradients", "optimizer_states", "activations", "logits", "buffers", "runtime")


def terms_of(estimate: MemoryEstimate, size: int = 1) -> dict[str, np.ndarray]:
    """The terms as they stand at the peak, in GiB; they add up to the total."""
    peak = estimate.at_peak
    terms = {name: _array(getattr(peak, name), size) for name in TERMS[:-1]}
    held = _array(estimate.reserved, size) - _array(estimate.allocated, size)
    terms["buffers"] = terms["buffers"] + np.maximum(held, 0)
    terms["runtime"] = _array(estimate.runtime, size)
    return terms


@functools.lru_cache(maxsize=32)
def _search(
    model: str,
    training: Training,
    length: int,
    gpus: tuple[str, ...],
    counts: tuple[int, ...],
    per_node: int,
    batch: int | None,
    recomputations: tuple[str, ...],
    offloads: tuple[str, ...],
) -> SearchResult:
    return search_cluster(
        SearchInputs(
            architecture=_architecture(model),
            training=training,
            sequence_length=length,
            tokens=Q(1.0, unit("token")),
            gpus=gpus,
            counts=counts,
            gpus_per_node=per_node,
            global_batch_size=batch,
            recomputations=recomputations,
            offloads=offloads,
            accept_tight=True,
        )
    )


@once_a_plan
def search_around(plan: Any) -> SearchResult:
    """The best layout of every usual card at counts around the plan's own, for a run of one token.

    Time grows with the tokens, so a plan with more of them asks for the same search; its answer is kept. The first search of a
    job takes a tenth of a second to a second, later ones nothing.
    """
    given, layout = plan.given, plan.cluster.layout
    chosen = catalog.gpu(plan.cluster.gpu)
    names = tuple(dict.fromkeys([chosen.name, *(card.name for card in _offered(plan))]))
    centre = 2 ** round(np.log2(plan.cluster.gpus))
    counts = {centre * 2**power for power in range(MORE + 1)} | {max(centre // 2**power, 1) for power in range(FEWER + 1)}
    counts |= {plan.cluster.gpus}
    return _search(
        json.dumps(plan.scenario["model"]["value"], sort_keys=True),
        plan.training,
        int(layout.sequence_length),
        names,
        tuple(sorted(count for count in counts if count <= 16384)),
        8 if plan.cluster.gpus < 8 else int(layout.gpus_per_node),
        given.get("global_batch_size"),
        (given["activation_recomputation"],) if "activation_recomputation" in given else (),
        (str(layout.offload),),
    )


@once_a_plan
def candidates(plan: Any) -> dict[str, np.ndarray | list[str] | str]:
    """`search_around` for the plan's tokens and prices, as columns, and its currency.

    Columns: gpu, count, hours, gpu_hours, cost (infinite without a price), mfu, share of the step spent waiting.
    """
    result = search_around(plan)
    currency = plan.budget.currency
    price = prices(plan)
    names = np.array(result.cards.names)[result.card] if len(result) else np.array([], dtype=str)
    each = np.array([price.get(name, np.inf) for name in names])
    total = (plan.cluster.tokens_per_second * plan.cluster.training_time).m_as("token")
    hours = result.columns["training_time"].m_as("h") * total
    own = (names == plan.cluster.gpu) & (result.count == plan.cluster.gpus)
    hours = np.where(own, plan.cluster.training_time.m_as("h"), hours)
    return {
        "gpu": names,
        "count": result.count,
        "hours": hours,
        "gpu_hours": hours * result.count,
        "cost": hours * result.count * each,
        "share": result.columns["communication_share"].m_as(""),
        "mfu": result.columns["mfu"].m_as(""),
        "currency": currency,
    }


@once_a_plan
def prices(plan: Any) -> dict[str, float]:
    """Price of a GPU-hour by card in the plan's currency and purchase mode; the plan's own card at the plan's own price."""
    used, currency = plan.budget.price, plan.budget.currency
    mode = "on_demand" if used.mode == "own" else used.mode
    found = gpu_prices(mode=mode, as_of=plan.scenario["purchase"]["value"].get("as_of"))
    per = unit(f"{currency} / GPU / h")
    values = {name: convert(one.price, currency, plan.budget.exchange_rate).m_as(per) for name, one in found.items()}
    return {**values, used.gpu: used.per_gpu.m_as(per)}
