"""The search: every card x every legal layout, timed in a few array calls with units on, ranked by time, cost or card count.

Cards stand along one axis and layouts along the other. Memory does not depend on the card, so it is estimated once per layout
and held against every card's capacity; layouts that fit no card are dropped before any time is estimated. Layouts come in
chunks, and of each chunk only the best of every card and count is kept: cost grows linearly and memory does not grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from advisor.catalog import constant
from advisor.cluster.candidates import Layouts, join, layout_blocks
from advisor.cluster.cards import Cards, Text, cards_of
from advisor.cluster.records import Candidate, Objective, SearchInputs
from advisor.memory import MemoryInputs, estimate_memory
from advisor.throughput import ThroughputInputs, estimate_throughput
from advisor.training import Layout
from advisor.units import Q, Quantity, unit

#: Card x layout cells that one call works on: enough to hide the cost of units, few enough to stay in the cache.
CELLS = 120_000
#: Layouts that one call works on at most: memory is estimated for all of them, whatever the number of cards.
WIDEST = 16_000
#: A simpler layout is preferred when it is at most this much slower per point of complexity.
SIMPLER = 0.015
#: Columns of the result with their units.
UNITS = {
    "step_time": "s",
    "tokens_per_second_per_gpu": "token / s / GPU",
    "tokens_per_second": "token / s",
    "mfu": "",
    "communication_share": "",
    "training_time": "h",
    "gpu_hours": "GPU * h",
    "memory": "GiB / GPU",
    "memory_high": "GiB / GPU",
}


@dataclass(frozen=True)
class SearchResult:
    """The best layouts found, as columns of one length.

    candidates: card x layout cells considered; fitting: those that fit. columns: quantities by name (see UNITS) and "cost".
    card: index into cards.gpus; layouts: one row a result; tight: fits only by the expected value.
    smallest: the layout that needs the least memory, for when nothing fits (None without any legal layout);
    least: what it is expected to need; least_of: what the smallest layout of each number of GPUs needs (GiB per GPU).
    """

    inputs: SearchInputs
    cards: Cards
    layouts: Layouts
    candidates: int
    fitting: int
    card: np.ndarray
    tight: np.ndarray
    columns: dict[str, Quantity]
    smallest: Layout | None = None
    least: Quantity | None = None
    skipped: tuple[tuple[str, Text], ...] = field(default=())
    least_of: dict[int, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.card)

    @property
    def count(self) -> np.ndarray:
        """Number of GPUs of each result."""
        return self.layouts.count

    def order(self, by: Objective = "time") -> np.ndarray:
        """Positions, best first: by training time, by cost (GPU-hours without prices), or by number of cards and then time."""
        time = self.columns["training_time"].m_as("h")
        if by == "time":
            return np.lexsort((self.count, time))
        if by == "count":
            return np.lexsort((time, self.count))
        return np.lexsort((time, self.price_of_run()))

    def price_of_run(self) -> np.ndarray:
        """Cost in the currency of the prices, or GPU-hours where prices are unknown to the search: what "cost" ranks by."""
        cost = self.columns.get("cost")
        return self.columns["gpu_hours"].m_as("GPU * h") if cost is None else cost.magnitude

    def allowed(self) -> np.ndarray:
        """Which positions meet deadline and budget."""
        good = np.ones(len(self), dtype=bool)
        if self.inputs.deadline is not None:
            good &= self.columns["training_time"] <= self.inputs.deadline
        if self.inputs.budget is not None and "cost" in self.columns:
            good &= self.columns["cost"] <= self.inputs.budget
        return good

    def pareto(self) -> np.ndarray:
        """Positions no other beats in both time and cost, fastest first."""
        time, cost = self.columns["training_time"].m_as("h"), self.price_of_run()
        order = np.lexsort((cost, time))
        best = np.minimum.accumulate(np.concatenate([[np.inf], cost[order][:-1]]))
        return order[cost[order] < best]

    def candidate(self, position: int) -> Candidate:
        """One result as a record."""
        gpu = self.cards.gpus[self.card[position]]
        value = {name: Q(float(column[position].magnitude), column.units) for name, column in self.columns.items()}
        layout = self.layouts.one(position)
        cost = value.pop("cost", None)
        return Candidate(
            gpu=gpu.name,
            gpus=int(self.count[position]),
            nodes=int(layout.nodes),
            layout=layout,
            cost=None if cost is None or not np.isfinite(cost.magnitude) else cost,
            capacity=gpu.capacity,
            verdict="tight" if self.tight[position] else "fits",
            **value,
        )

    def top(self, limit: int = 10, by: Objective = "time") -> tuple[Candidate, ...]:
        """The best candidates that meet deadline and budget."""
        good = self.allowed()
        return tuple(self.candidate(position) for position in self.order(by) if good[position])[:limit]

    def table(self) -> dict[str, Any]:
        """All results as plain columns with their unit in the name, for a data frame."""
        names = np.array(self.cards.names)
        plain: dict[str, Any] = {"gpu": names[self.card], "gpus": self.count}
        layout = self.layouts.layout()
        for name in layout.__dataclass_fields__:
            plain[name] = np.broadcast_to(getattr(layout, name), self.count.shape)
        for name, text in UNITS.items():
            label = f"{name} ({text})" if text else name
            plain[label] = self.columns[name].m_as(text)
        if "cost" in self.columns:
            cost = self.columns["cost"]
            plain[f"cost ({cost.units:~})"] = cost.magnitude
        plain["verdict"] = np.where(self.tight, "tight", "fits")
        return plain


def search_cluster(inputs: SearchInputs, keep: str = "best") -> SearchResult:
    """Search cards and layouts.

    keep: "best" keeps the best layout of every card and count; "all" every one that fits (for a data frame of a small search).
    The result is empty when nothing fits. Raises CatalogError when no card can be estimated at all.
    """
    cards = cards_of(inputs.gpus, inputs.training, inputs.scale_out, inputs.gpus_per_node, inputs.prices)
    pieces: list[dict[str, np.ndarray]] = []
    rows: list[Layouts] = []
    found = _Tally()
    for block in layout_blocks(inputs, min(max(CELLS // len(cards.gpus), 512), WIDEST)):
        totals = estimate_memory(
            MemoryInputs(architecture=inputs.architecture, training=inputs.training, layout=block.layout())
        )
        total, high = (np.broadcast_to(value.m_as("GiB / GPU"), len(block)) for value in (totals.total, totals.high))
        total, high = _within_host(block, totals.host_ram, total, high)
        found.layouts += len(block)
        found.note_least(block, total)
        piece, kept = _evaluate(inputs, cards, block, total, high, keep, found)
        if piece:
            pieces.append(piece)
            rows.append(kept)
    return _collect(inputs, cards, join(rows, inputs), pieces, found, keep)


@dataclass
class _Tally:
    """What the search counts on its way."""

    layouts: int = 0
    fitting: int = 0
    least: float = np.inf
    smallest: Layout | None = None
    least_of: dict[int, float] = field(default_factory=dict)

    def note_least(self, block: Layouts, total: np.ndarray) -> None:
        """Remember the layout that needs the least memory so far, and what that is of each number of GPUs."""
        here = int(np.argmin(total))
        if total[here] < self.least:
            self.least, self.smallest = float(total[here]), block.one(here)
        firsts = np.flatnonzero(np.diff(block.count, prepend=-1))
        for count, least in zip(block.count[firsts].tolist(), np.minimum.reduceat(total, firsts).tolist(), strict=True):
            self.least_of[count] = min(least, self.least_of.get(count, np.inf))


def _within_host(block: Layouts, ram: Quantity, total: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Memory of the layouts, infinite where offload wants more host RAM than machines with so many cards have."""
    if not block.offload.any():
        return total, high
    most = constant("cluster.ram_limit_per_card") * Q(np.minimum(block.gpus_per_node, block.count), unit("GPU / node"))
    over = (block.offload > 0) & (ram > most)
    return np.where(over, np.inf, total), np.where(over, np.inf, high)


def _evaluate(
    inputs: SearchInputs, cards: Cards, block: Layouts, total: np.ndarray, high: np.ndarray, keep: str, found: _Tally
) -> tuple[dict[str, np.ndarray], Layouts]:
    """Time one block: (columns of what is kept, its layouts), both empty when nothing fits."""
    need = total if inputs.accept_tight else high
    capacity = cards.capacity.m_as("GiB / GPU")
    alive = np.flatnonzero(need <= capacity.max())
    if not len(alive):
        return {}, block
    useful = np.flatnonzero(capacity[:, 0] >= need.min())
    block, total, high, need = block.take(alive), total[alive], high[alive], need[alive]
    fits = need <= capacity[useful]
    estimate = estimate_throughput(
        ThroughputInputs(
            architecture=inputs.architecture,
            training=inputs.training,
            layout=block.layout(),
            accelerator=_some(cards.accelerators, useful),
            fabric=_some(cards.fabric, useful),
        )
    )
    shape = fits.shape
    values = {
        name: np.broadcast_to(getattr(estimate, name).m_as(UNITS[name]), shape)
        for name in ("step_time", "tokens_per_second_per_gpu", "tokens_per_second", "mfu", "communication_share")
    }
    fits = fits & np.isfinite(values["step_time"])
    found.fitting += int(fits.sum())
    card, column = np.nonzero(fits) if keep == "all" else _best(fits, values["tokens_per_second"], block)
    if not len(card):
        return {}, block
    piece = {name: value[card, column] for name, value in values.items()}
    piece |= {"memory": total[column], "memory_high": high[column], "card": useful[card]}
    piece["score"] = (1.0 + SIMPLER * block.complexity[column]) / piece["tokens_per_second"]
    return piece, block.take(column)


def _some(record: Any, rows: np.ndarray) -> Any:
    """The same record with only these rows of its column arrays."""
    values = {}
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        values[name] = value[rows] if np.ndim(getattr(value, "magnitude", value)) == 2 else value
    return type(record)(**values)


def _best(fits: np.ndarray, rate: np.ndarray, block: Layouts) -> tuple[np.ndarray, np.ndarray]:
    """(card, column) of the fastest layout of every card and count, simpler ones preferred at like speed."""
    score = np.where(fits, rate / (1.0 + SIMPLER * block.complexity), 0.0)
    edges = np.flatnonzero(np.diff(block.count, prepend=-1))
    cards, columns = [], []
    for first, last in zip(edges, [*edges[1:], len(block)], strict=True):
        best = score[:, first:last].argmax(axis=1) + first
        good = np.flatnonzero(score[np.arange(len(score)), best] > 0)
        cards.append(good)
        columns.append(best[good])
    return np.concatenate(cards), np.concatenate(columns)


def _collect(
    inputs: SearchInputs, cards: Cards, layouts: Layouts, pieces: list[dict[str, np.ndarray]], found: _Tally, keep: str
) -> SearchResult:
    """Join the blocks; where one count was split between blocks, keep the better part."""
    names = [name for name in UNITS if name not in ("training_time", "gpu_hours")]
    joined = {
        name: np.concatenate([piece[name] for piece in pieces]) if pieces else np.zeros(0) for name in (*names, "card", "score")
    }
    card, score = joined.pop("card").astype(np.int64), joined.pop("score")
    if keep == "best" and len(pieces) > 1:
        order = np.lexsort((score, layouts.count, card))
        fresh = (np.diff(card[order], prepend=-1) != 0) | (np.diff(layouts.count[order], prepend=-1) != 0)
        kept = np.sort(order[fresh])
        card, layouts = card[kept], layouts.take(kept)
        joined = {name: value[kept] for name, value in joined.items()}
    columns = {name: Q(joined[name], unit(UNITS[name])) for name in names}
    columns["training_time"] = (inputs.tokens / columns["tokens_per_second"]).to("h")
    columns["gpu_hours"] = columns["training_time"] * Q(layouts.count, unit("GPU"))
    if cards.prices is not None:
        columns["cost"] = columns["gpu_hours"] * cards.prices[:, 0][card]
    capacity = cards.capacity.m_as("GiB / GPU")[:, 0]
    return SearchResult(
        inputs=inputs,
        cards=cards,
        layouts=layouts,
        candidates=len(cards.gpus) * found.layouts,
        fitting=found.fitting,
        card=card,
        tight=joined["memory_high"] > capacity[card],
        columns=columns,
        smallest=found.smallest,
        least=None if found.smallest is None else Q(found.least, unit("GiB / GPU")),
        skipped=cards.skipped,
        least_of=found.least_of,
    )
