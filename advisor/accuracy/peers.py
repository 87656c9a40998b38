"""What others would have said of the same runs: the rules of thumb people meet first, restated to be compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from advisor.accuracy.memory import Judged, judge
from advisor.units import Fraction, Quantity, Record, unit

#: LLaMA-Factory's README table (Apache-2.0): GB of one run by method, for models of SIZES billion parameters.
SIZES = (0, 7, 14, 30, 70, 700)
LLAMA_FACTORY = {
    "full": (0, 120, 240, 600, 1200, 12000),
    "pure": (0, 60, 120, 300, 600, 6000),
    "lora": (0, 16, 32, 64, 160, 1600),
    "qlora": (0, 6, 12, 24, 48, 480),
}


@dataclass(frozen=True, kw_only=True)
class PeerError(Record):
    """A rule's median over sources of the median absolute error, and on how many runs."""

    name: str
    error: Fraction
    runs: int


def _parameters(one: Judged) -> Quantity:
    return one.run.inputs.architecture.parameters_total


def _cards(one: Judged) -> int:
    """Cards that share the states in the rule's eyes: all of a sharded or model-parallel run, one otherwise."""
    layout = one.run.inputs.layout
    return layout.gpus if layout.zero_stage >= 3 else layout.tensor_parallel_size * layout.pipeline_parallel_size


def _sixteen_bytes(one: Judged) -> float:
    return float(_parameters(one).m_as("parameter")) * 16 / _cards(one)


def _twice_the_weights(one: Judged) -> float:
    return float(_parameters(one).m_as("parameter")) * 2 * 2 / _cards(one)


def _llama_factory(one: Judged) -> float:
    training = one.run.inputs.training
    row = {"dora": "lora"}.get(training.method, training.method)
    if training.method == "full" and training.precision == "bf16_pure":
        row = "pure"
    billions = float(_parameters(one).m_as("parameter")) / 1e9
    return float(np.interp(billions, SIZES, LLAMA_FACTORY[row])) * 1e9 / _cards(one)


RULES: dict[str, Callable[[Judged], float]] = {
    "16 bytes a parameter": _sixteen_bytes,
    "twice the 16-bit weights": _twice_the_weights,
    "LLaMA-Factory README table": _llama_factory,
}


def peer_errors() -> tuple[PeerError, ...]:
    """Each rule on the certain measured rows, and this project on the same ones; weighed per source."""
    judged = [one for one in judge() if one.error is not None and one.run.certain and not one.run.reference]
    rows = []
    for name, rule in {**RULES, "this project": _ours}.items():
        by_source: dict[str, list[float]] = {}
        for one in judged:
            measured = one.run.measured.m_as("B / GPU")
            by_source.setdefault(one.run.source, []).append(abs(rule(one) / measured - 1))
        error = float(np.median([np.median(errors) for errors in by_source.values()]))
        rows.append(PeerError(name=name, error=error * unit(""), runs=len(judged)))
    return tuple(rows)


def _ours(one: Judged) -> float:
    return float(one.run.measured.m_as("B / GPU")) * (1 + one.error)
