"""Bytes that layers keep per token: the records, the sum they are added up in, and the table of bytes per element."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from advisor import catalog
from advisor.units import BytesPerToken, Q, Record, unit


@dataclass(frozen=True, kw_only=True)
class Kept(Record):
    """Bytes per token of a stack of layers or of one.

    replicated: residual-sized terms, divided by tensor parallelism only with sequence parallelism. sharded: the rest.
    scores: bytes per token and token of context (eager attention), divided by tensor parallelism.
    """

    replicated: BytesPerToken
    sharded: BytesPerToken
    scores: BytesPerToken


@dataclass(frozen=True, kw_only=True)
class LayerTerms(Record):
    """What the layers keep and hold.

    kept: by all layers together; selective: the same with selective recomputation. mlp_working, attention_working: of the
    largest layer, all that is alive at the worst moment of the backward pass of its MLP and of its attention, kept tensors
    included. final: norm and input of the head. residual: input of a layer.
    """

    kept: Kept
    selective: Kept
    mlp_working: Kept
    attention_working: Kept
    final: BytesPerToken
    residual: BytesPerToken


@dataclass(frozen=True)
class Share:
    """Plain bytes per token while they are added up (the table's unit)."""

    replicated: float = 0.0
    sharded: float = 0.0
    scores: float = 0.0

    def __add__(self, other: Share) -> Share:
        return Share(self.replicated + other.replicated, self.sharded + other.sharded, self.scores + other.scores)

    def __mul__(self, times: float) -> Share:
        return Share(self.replicated * times, self.sharded * times, self.scores * times)

    def kept(self) -> Kept:
        """As quantities."""
        each = unit("B / token")
        return Kept(replicated=Q(self.replicated, each), sharded=Q(self.sharded, each), scores=Q(self.scores, each))


@functools.lru_cache(maxsize=1)
def activation_table() -> dict[str, dict[str, float]]:
    """Bytes per element: part -> recipe -> value."""
    words = {"part", "per", "source", "explanation"}
    rows = catalog.table("activations.csv")
    return {row["part"]: {key: float(value) for key, value in row.items() if key not in words} for row in rows}
