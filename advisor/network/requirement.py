"""The inverse question: which interconnect does a layout require, so that a step waits for it no more than a stated share?

For a target share w of the step, exposed communication may take w / (1 - w) of the rest of the step. Exposed communication
falls as bandwidth rises and never the other way, so the bandwidth at which it just fits is found between two ends; at
that bandwidth the exposed share is the target, which a test checks. Latency does not shrink with bandwidth: where it alone is
more than the target, no bandwidth suffices and the requirement is infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.network.communication import (
    DIMENSIONS,
    CommunicationInputs,
    Flow,
    dimension_seconds,
    flow_seconds,
    flows_of,
    windows,
)
from advisor.network.fabric import Numbers
from advisor.network.volumes import measure_volumes, sizes_of
from advisor.trail import Step, Trail
from advisor.units import BandwidthPerGPU, BandwidthPerNode, Flag, Fraction, Q, Record, Time, UnitError, Word, unit

#: Names of the collectives by dimension and kind.
NAMES = {
    ("data", "all_reduce"): {"en": "all-reduce of gradients (data parallel)", "zh": "梯度 all-reduce（数据并行）"},
    ("data", "all_gather"): {
        "en": "all-gather and reduce-scatter of weights and gradients (ZeRO)",
        "zh": "权重与梯度的 all-gather / reduce-scatter（ZeRO）",
    },
    ("tensor", "all_reduce"): {"en": "all-reduce of activations (tensor parallel)", "zh": "激活值 all-reduce（张量并行）"},
    ("tensor", "all_gather"): {
        "en": "all-gather and reduce-scatter of activations (tensor and sequence parallel)",
        "zh": "激活值 all-gather / reduce-scatter（张量与序列并行）",
    },
    ("context", "send"): {"en": "keys and values around the ring (context parallel)", "zh": "键值环形传递（上下文并行）"},
    ("expert", "all_to_all"): {"en": "all-to-all of tokens (expert parallel)", "zh": "token all-to-all（专家并行）"},
    ("pipeline", "send"): {"en": "activations between stages (pipeline parallel)", "zh": "阶段间激活值传递（流水线并行）"},
}

LEAST_INVERSE, MOST_INVERSE = 1e-16, 1e-3  # inverses of the bandwidths searched, in s/B
CALLS = 200  # never reached: a bound for the loop
NO_LIMIT = 1e30  # B/s


@dataclass(frozen=True, kw_only=True)
class Requirement(Record):
    """The interconnect a layout requires. Each field is a scalar or an array, as the inputs are.

    required_scale_up: bus bandwidth per GPU inside the node at which the step waits `share` of its time, were the network
        between nodes no limit. required_scale_out: per node between nodes, with the inside of the node as given.
        Zero where nothing is sent there; infinite where latency alone exceeds the target.
    binding_collective, binding_level: the collective waited for longest at those bandwidths and where it runs ("scale_up",
        "scale_out" or "none"). communication_share: what the given fabric would have the step wait. met: whether that is
        within `share`.
    """

    share: Fraction
    required_scale_up: BandwidthPerGPU
    required_scale_out: BandwidthPerNode
    binding_collective: Word
    binding_collective_zh: Word
    binding_level: Word
    exposed_time: Time
    communication_share: Fraction
    met: Flag
    trail: tuple[Step, ...] = ()


def exposed_seconds(times: dict[str, Any], hiding: dict[str, tuple[Any, Any]], compute: Any) -> Any:
    """Communication waited for in seconds: each dimension less what hides behind its share of `compute` seconds."""
    exposed: Any = 0.0
    for name in DIMENSIONS:
        share, window = hiding[name]
        exposed = exposed + times[name] - np.minimum(share * times[name], window * compute)
    return exposed


def solve(exposed: Callable[[Any], Any], target: Any) -> Any:
    """The smallest bandwidth (B/s) at which `exposed(bandwidth)` is at most `target`; 0 if always, inf if never.

    In the inverse of bandwidth exposed time is close to piecewise linear, so a secant that keeps the root between its ends
    (the Illinois rule: an end that stays twice has its value halved) settles in a dozen calls.
    """

    def excess(inverse: Any) -> Any:
        return exposed(1.0 / inverse) - target

    shape = np.shape(excess(LEAST_INVERSE))
    low, high = np.full(shape, LEAST_INVERSE), np.full(shape, MOST_INVERSE)
    below, above = np.broadcast_to(excess(low), shape), np.broadcast_to(excess(high), shape)
    never, always = below > 0, above <= 0
    below, above = np.where(never, -1.0, below), np.where(always, 1.0, above)
    side = np.zeros(shape)
    for _ in range(CALLS):
        middle = (low * above - high * below) / (above - below)
        value = excess(middle)
        enough = value <= 0
        below, above = (
            np.where(enough, value, np.where(side == 1, below / 2, below)),
            np.where(enough, np.where(side == -1, above / 2, above), value),
        )
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
        side = np.where(enough, -1, 1)
        if np.all(never | always | (np.abs(value) <= 1e-12 * np.abs(target)) | (high - low <= 1e-13 * high)):
            break
    found = np.where(np.abs(value) <= 1e-12 * np.abs(target), middle, low)
    return np.where(never, np.inf, np.where(always, 0.0, 1.0 / found))[()]


def _prepared(inputs: CommunicationInputs) -> tuple[list[Flow], Numbers, dict[str, tuple[Any, Any]]]:
    numbers = inputs.fabric.numbers()
    sizes = sizes_of(inputs.layout)
    volumes = measure_volumes(inputs.architecture, inputs.training, inputs.layout, Trail(), sizes)
    return flows_of(volumes, sizes, numbers.gpus_per_node), numbers, windows(inputs.training, sizes)


def require_interconnect(
    inputs: CommunicationInputs, compute_time: Time, share: Any = 0.1, other_time: Time | None = None
) -> Requirement:
    """The bus bandwidths at which communication is `share` of the step, and the collective that binds.

    compute_time: what one GPU computes in a step, behind which communication can hide. other_time: the rest of the step
    (bubble, optimizer, data stalls), zero by default. share: a number between 0 and 1, or an array.
    """
    if np.any(np.asarray(share) <= 0) or np.any(np.asarray(share) >= 1):
        raise UnitError(f"require_interconnect.share must lie between 0 and 1, but was given {share!r}.")
    flows, numbers, hiding = _prepared(inputs)
    compute = compute_time.m_as("s")  # plain seconds from here on: the fitted formula of collectives
    rest = compute if other_time is None else compute + other_time.m_as("s")
    target = np.asarray(share) / (1.0 - np.asarray(share)) * rest

    def exposed(fabric: Numbers) -> Any:
        return exposed_seconds(dimension_seconds(flows, fabric), hiding, compute)

    one_link = {"bridge_gpus": 1, "bridge": np.inf}
    crossing = sum((flow.ranks > flow.ranks_per_node for flow in flows), np.False_)
    out = np.where(crossing, solve(lambda rate: exposed(numbers._replace(out=rate)), target), 0.0)[()]
    up = solve(lambda rate: exposed(numbers._replace(up=rate, out=np.inf, **one_link)), target)
    actual = exposed(numbers)
    waited = actual / (rest + actual)
    # Where the inside of the node is what fails, it binds: the network between nodes is then taken as no limit.
    at_required = numbers._replace(out=np.where(out > 0, np.minimum(out, NO_LIMIT), np.maximum(numbers.out, 1.0)))
    binding = _binding(flows, at_required, hiding, compute)
    met = np.asarray(waited) <= np.asarray(share) + 1e-12
    trail = Trail()
    allowed = trail.step(
        "allowed_waiting",
        "share / (1 - share) * step_without_waiting",
        "",
        share=share,
        step_without_waiting=Q(rest, unit("s")),
    )
    trail.step("waiting", "exposed", "", exposed=Q(actual, unit("s")), allowed=allowed)
    return Requirement(
        share=Q(share, unit("")),
        required_scale_up=Q(up / 1e9, unit("GB / s / GPU")),
        required_scale_out=Q(out / 1e9, unit("GB / s / node")),
        binding_collective=binding[0],
        binding_collective_zh=binding[1],
        binding_level=binding[2],
        exposed_time=Q(actual, unit("s")),
        communication_share=Q(waited, unit("")),
        met=met if met.ndim else bool(met),
        trail=trail.done(),
    )


def _name(flow: Flow, language: str) -> Any:
    """The flow's collective in words: the kind that stands for most of it."""
    if flow.kind != "ring":
        return NAMES[flow.dimension, flow.kind][language]
    words = (NAMES[flow.dimension, kind][language] for kind in ("all_reduce", "all_gather"))
    return np.where(np.asarray(flow.reduces) > flow.count, *words)


def _binding(flows: list[Flow], fabric: Numbers, hiding: dict[str, tuple[Any, Any]], compute: Any) -> tuple[Any, Any, Any]:
    """Name (en, zh) and level of the flow that is waited for longest."""
    if not flows:
        return "none", "无", "none"
    times = [flow_seconds(flow, fabric) for flow in flows]
    levels = []
    for flow in flows:  # the link that would save most if it were no limit
        inside = flow_seconds(flow, fabric._replace(up=NO_LIMIT, bridge=NO_LIMIT))
        levels.append(np.where(flow_seconds(flow, fabric._replace(out=NO_LIMIT)) < inside, "scale_out", "scale_up"))
    whole = dict.fromkeys(DIMENSIONS, 0.0)
    for flow, time in zip(flows, times, strict=True):
        whole[flow.dimension] = whole[flow.dimension] + time
    waited = []
    for flow, time in zip(flows, times, strict=True):
        share, window = hiding[flow.dimension]
        total = np.maximum(whole[flow.dimension], 1e-30)  # seconds
        waited.append(time * (1.0 - np.minimum(share, window * compute / total)))
    names = [[_name(flow, language) for flow in flows] for language in ("en", "zh")]
    shape = np.broadcast_shapes(*(np.shape(one) for one in (*waited, *levels, *names[0])))

    def table(values: list[Any]) -> Any:
        return np.stack([np.broadcast_to(value, shape) for value in values])

    seconds_waited = table(waited)
    longest = np.argmax(seconds_waited, axis=0)[None, ...]
    some = np.max(table(times), axis=0) > 0
    picked = (np.take_along_axis(table(values), longest, axis=0)[0] for values in (*names, levels))
    result = tuple(np.where(some, value, none) for value, none in zip(picked, ("none", "无", "none"), strict=True))
    return result if shape else tuple(str(value) for value in result)


def step_with(inputs: CommunicationInputs, compute_time: Time, other_time: Time | None = None) -> tuple[Time, Fraction]:
    """(time of a step, share of it spent waiting for communication) on the inputs' fabric, scalar or array."""
    flows, numbers, hiding = _prepared(inputs)
    compute = compute_time.m_as("s")  # seconds
    rest = compute if other_time is None else compute + other_time.m_as("s")
    exposed = exposed_seconds(dimension_seconds(flows, numbers), hiding, compute)
    step = rest + exposed
    return Q(step, unit("s")), Q(exposed / step, unit(""))
