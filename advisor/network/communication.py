"""Stage 3: what a training step sends, by parallel dimension, how long that takes on a fabric, and what compute can hide.

Placement of ranks: tensor parallel is innermost, then context, then data (experts within data and context), pipeline
outermost, as Megatron orders them; so a node of g GPUs holds min(t, g) ranks of a tensor group, up to g/t of a context or
data group, and so on.
All times are of one GPU for one optimizer step, without the pipeline's bubble.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from advisor.architecture import Architecture
from advisor.network.collectives import ring_seconds, seconds
from advisor.network.fabric import Fabric, Numbers
from advisor.network.links import constant
from advisor.network.volumes import Sizes, Volumes, floor, measure_volumes, number, sizes_of
from advisor.trail import Step, Trail
from advisor.training import Layout, Training
from advisor.units import Bytes, Fraction, Q, Record, Time, maximum, minimum, unit

DIMENSIONS = ("data", "tensor", "pipeline", "context", "expert")


@dataclass(frozen=True, kw_only=True)
class CommunicationInputs(Record):
    """What is trained, how it is laid out, and the fabric it runs on."""

    architecture: Architecture
    training: Training
    layout: Layout
    fabric: Fabric


@dataclass(frozen=True, kw_only=True)
class CommunicationEstimate(Record):
    """Communication of one GPU in one optimizer step, per parallel dimension (zero where its size is 1).

    *_time: all of it, as if nothing was hidden. *_overlappable: the part that may run while the GPU computes.
    *_window: the share of the step's compute time it can hide behind.
    *_volume: bytes a GPU sends, by the bus-bandwidth convention.
    """

    data_time: Time
    tensor_time: Time
    pipeline_time: Time
    context_time: Time
    expert_time: Time
    data_overlappable: Time
    tensor_overlappable: Time
    pipeline_overlappable: Time
    context_overlappable: Time
    expert_overlappable: Time
    data_window: Fraction
    tensor_window: Fraction
    pipeline_window: Fraction
    context_window: Fraction
    expert_window: Fraction
    data_volume: Bytes
    tensor_volume: Bytes
    pipeline_volume: Bytes
    context_volume: Bytes
    expert_volume: Bytes
    trail: tuple[Step, ...] = ()

    @property
    def total_time(self) -> Time:
        """Sum over the dimensions, as if nothing was hidden."""
        return sum((getattr(self, f"{name}_time") for name in DIMENSIONS[1:]), self.data_time)


class Flow(NamedTuple):
    """Equal collectives over the same ranks: `count` of `kind` with `size` bytes over `ranks` GPUs, `ranks_per_node` in a node.

    kind "ring": `count` all-gathers or reduce-scatters and `reduces` all-reduces; "send" and "all_to_all" have no `reduces`.
    """

    dimension: str
    kind: str
    size: Any
    count: Any
    reduces: Any
    ranks: Any
    ranks_per_node: Any
    sharing: Any


def placed(stride: Any, size: Any, gpus_per_node: Any) -> Any:
    """How many of a group's `size` ranks, `stride` apart, share a node (at least 1)."""
    return np.minimum(np.maximum(floor(gpus_per_node / stride), 1.0), size)


def _any(*counts: Any) -> bool:
    return any(bool(np.any(np.asarray(count) > 0)) for count in counts)


def flows_of(volumes: Volumes, sizes: Sizes, gpus_per_node: Any) -> list[Flow]:
    """The collectives of one step and where their ranks stand."""
    t, c, p, e = sizes.tensor, sizes.context, sizes.pipeline, sizes.expert
    replicas = sizes.data * c
    g = np.minimum(gpus_per_node, replicas * t * p)
    flows = []

    def add(dimension: str, kind: str, size: Any, count: Any, reduces: Any, ranks: Any, stride: Any) -> None:
        if _any(count, reduces):
            near = placed(stride, ranks, g)
            flows.append(Flow(dimension, kind, size, count, reduces, ranks, near, np.maximum(floor(g / near), 1.0)))

    for part in volumes.data:
        ranks, stride = (np.maximum(floor(replicas / e), 1.0), t * e) if part.expert else (replicas, t)
        add("data", "ring", part.message, part.gathers, part.all_reduces, ranks, stride)
    add("tensor", "ring", volumes.tensor_message, volumes.tensor_gathers, volumes.tensor_all_reduces, t, 1.0)
    add("context", "send", volumes.context_message, volumes.context_sends, 0.0, c, t)
    add("expert", "all_to_all", volumes.expert_message, volumes.expert_exchanges, 0.0, e, t)
    add("pipeline", "send", volumes.pipeline_message, volumes.pipeline_sends, 0.0, p, t * replicas)
    return flows


def one_each(flow: Flow, fabric: Numbers) -> tuple[Any, Any]:
    """Time in seconds of one collective of a flow, and of one of its all-reduces (0.0 where there is none)."""
    if flow.kind != "ring":
        return seconds(flow.kind, flow.size, flow.ranks, flow.ranks_per_node, fabric, flow.sharing), 0.0
    gathers, reduces = _any(flow.count), _any(flow.reduces)
    once, twice = ring_seconds(flow.size, flow.ranks, flow.ranks_per_node, fabric, flow.sharing, gathers, reduces)
    return (once if gathers else 0.0), (twice if reduces else 0.0)


def flow_seconds(flow: Flow, fabric: Numbers) -> Any:
    """Time in seconds of all collectives of a flow."""
    once, twice = one_each(flow, fabric)
    return flow.count * once + flow.reduces * twice


def windows(training: Training, sizes: Sizes) -> dict[str, tuple[Any, Any]]:
    """Per dimension: the share of its time that may overlap, and the share of compute it can overlap with."""
    tuned = training.software == "tuned"
    level = "tuned" if tuned or training.framework in ("megatron", "torchtitan") else "stock"
    sharded, each_pass = number(np.asarray(sizes.stage) == 3), number(np.asarray(sizes.stage) == 2)
    share = {name: constant(f"overlap.{name}").m_as("") for name in ("data_reduce", f"data_gather_{level}", "context")}
    reduce, gather = share["data_reduce"], share[f"data_gather_{level}"]
    backward, attention = constant("backward_share").m_as(""), constant("attention_share").m_as("")
    last = backward * (each_pass + (1.0 - each_pass) / sizes.micro_batches)
    return {
        "data": (reduce + (gather - reduce) * sharded, last + (1.0 - last) * sharded),
        "tensor": (constant(f"overlap.tensor_{level}").m_as("") * sizes.sequence, 1.0),
        "pipeline": (constant(f"overlap.pipeline_{level}").m_as("") * (sizes.chunks > 1), 1.0),
        "context": (share["context"], attention),
        "expert": (constant(f"overlap.expert_{level}").m_as(""), 1.0),
    }


def dimension_seconds(flows: list[Flow], fabric: Numbers) -> dict[str, Any]:
    """Time in seconds of each dimension's collectives."""
    times: dict[str, Any] = dict.fromkeys(DIMENSIONS, 0.0)
    for flow in flows:
        times[flow.dimension] = times[flow.dimension] + flow_seconds(flow, fabric)
    return times


def estimate_communication(inputs: CommunicationInputs) -> CommunicationEstimate:
    """Time and volume of each parallel dimension's communication in one optimizer step.

    The fields of `layout` and `fabric` may be arrays that broadcast; the estimate has the broadcast shape where it varies.
    """
    trail = Trail()
    sizes = sizes_of(inputs.layout)
    volumes = measure_volumes(inputs.architecture, inputs.training, inputs.layout, trail, sizes)
    fabric = inputs.fabric.numbers()
    times: dict[str, Any] = dict.fromkeys(DIMENSIONS, Q(0.0, unit("s")))
    for flow in flows_of(volumes, sizes, fabric.gpus_per_node):
        times[flow.dimension] = times[flow.dimension] + _timed(flow, fabric, trail)
    values: dict[str, Any] = dict(volumes.totals)
    for name, (share, window) in windows(inputs.training, sizes).items():
        values[f"{name}_time"] = times[name]
        values[f"{name}_overlappable"] = trail.step(f"{name}_overlappable", "share * time", "", share=share, time=times[name])
        values[f"{name}_window"] = Q(window, unit(""))
    return CommunicationEstimate(**values, trail=trail.done())


def _timed(flow: Flow, fabric: Numbers, trail: Trail) -> Time:
    """The time of a flow, on the trail as so many collectives of so long each."""
    once, twice = (Q(time, unit("s")) for time in one_each(flow, fabric))
    name, source = f"{flow.dimension}_time", "nccl-curve-fit"
    if flow.kind != "ring":
        return trail.step(name, "messages * time_of_one", source, messages=flow.count, time_of_one=once)
    if not _any(flow.reduces):
        return trail.step(name, "gathers * gather_time", source, gathers=flow.count, gather_time=once)
    if not _any(flow.count):
        return trail.step(name, "all_reduces * all_reduce_time", source, all_reduces=flow.reduces, all_reduce_time=twice)
    counts = {"gathers": flow.count, "all_reduces": flow.reduces}
    both = "gathers * gather_time + all_reduces * all_reduce_time"
    return trail.step(name, both, source, gather_time=once, all_reduce_time=twice, **counts)


def exposed_communication(estimate: CommunicationEstimate, compute_time: Time) -> Time:
    """Communication a step waits for, given the compute time of one GPU in that step (without the bubble).

    What may overlap hides behind its share of compute; the rest, and what does not fit there, is waited for.
    """
    exposed = Q(0.0, unit("s"))
    for name in DIMENSIONS:
        hidden = minimum(getattr(estimate, f"{name}_overlappable"), getattr(estimate, f"{name}_window") * compute_time)
        exposed = exposed + (getattr(estimate, f"{name}_time") - hidden)
    return maximum(exposed, Q(0.0, unit("s")))
