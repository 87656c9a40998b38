"""Memory of the fullest GPU: the three instants that compete for the peak, and what `nvidia-smi` shows of it.

Loss: all kept activations and the logits. Backward: kept activations, the working set of one layer and the gradients so far,
at its begin (all layers still kept), at its end (all gradients there) and at the embedding. Optimizer step: states, gradients
and temporaries. The largest wins and is named (`peak_phase`).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from advisor import catalog
from advisor.memory.families import MEASURED
from advisor.memory.interval import interval_of
from advisor.memory.records import MemoryEstimate, MemoryInputs, PeakTerms
from advisor.memory.runtime import estimate_host_ram, estimate_runtime
from advisor.memory.stage import PER_GPU, ZERO, Stage, number
from advisor.units import Q, Quantity, Record, maximum, minimum, unit, where

PHASES = np.array(["loss", "loss", "backward", "backward", "backward", "optimizer_step"])
#: Share of a layer's own gradients that do not exist yet at the worst moment of its backward pass (attention and gate).
MISSING_OF_LAYER = 0.5
#: A layer's written-out expert weights and the gradient in work, over those weights, in its backward pass.
EXPERT_BACKWARD = 1.2
#: Of the bytes alive per logit at the loss, those there when the forward pass ends.
FORWARD_SHARE = 10 / 12


def estimate_memory(inputs: MemoryInputs) -> MemoryEstimate:
    """Estimate one GPU's memory; layout fields may be arrays that broadcast, the result's fields then are arrays too.

    With pipeline parallelism the first and the last stage are both computed and the larger one is the answer.
    """
    deep = np.asarray(inputs.layout.pipeline_parallel_size) > 1
    if not deep.any():
        return _estimate(Stage(inputs, True, True), "only")
    deep = bool(deep) if deep.ndim == 0 else deep
    shallow = where(deep, False, True)
    first = _estimate(Stage(inputs, True, shallow), where(deep, "first", "only"))
    last = _estimate(Stage(inputs, shallow, True), where(deep, "last", "only"))
    return _larger(first, last)


def _larger(first: MemoryEstimate, last: MemoryEstimate) -> MemoryEstimate:
    """Field by field, the stage that needs more in total."""
    choose = first.total >= last.total
    if np.ndim(choose) == 0:
        return first if choose else last

    def pick(a: Any, b: Any) -> Any:
        if isinstance(a, Record):
            return type(a)(**{f.name: pick(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)})
        return where(choose, a, b)

    same = ("interval_basis", "assumptions", "trail", "capacity")
    merged = {f.name: pick(getattr(first, f.name), getattr(last, f.name)) for f in fields(first) if f.name not in same}
    return MemoryEstimate(**merged, **{name: getattr(first, name) for name in same})


def _estimate(stage: Stage, name: Any) -> MemoryEstimate:
    """One stage's estimate: its terms, its instants, the largest of them."""
    p, training, trail = stage.parts, stage.training, stage.trail
    weights = stage.weights()
    gradients, states, stepped = stage.states()
    kept, kept_layer, working = stage.activations()
    kept_in_all = kept
    if training.activation_offload:
        kept = minimum(kept, kept_layer * catalog.constant("memory.activation_offload_window"))
    logits = stage.logits()
    final = stage.tokens * p.layers.final * (stage.head * PER_GPU)
    always, forward, backward, backward_end, end = stage.buffers()
    layer_copies, head_copies = stage.copies()
    expert_copies = stage.expert_copies()
    kept_copies = (layer_copies + expert_copies) * (1 - stage.full_recomputation)
    per_tensor = PER_GPU / stage.tensor
    before = _gradients_before(stage, gradients)
    divided = per_tensor / where(stage.zero >= 2, stage.shards, 1)
    # Sharded gradients of the head appear only when its unit is reduced; until then they are among the buffers.
    head_gradient = minimum(p.embedding_gradient * (stage.head * (1 - stage.sharded_gradients)) * per_tensor, gradients)
    # At the first layer's backward every gradient exists but its own unfinished ones and the embedding's.
    untied = stage.head * stage.sharded_gradients * (1 - number(stage.architecture.tie_word_embeddings))
    unreduced = where(stage.sharded_gradients > 0, 2.0, MISSING_OF_LAYER)
    missing = (p.embedding_gradient * (stage.embedding + untied) + unreduced * p.layer_gradient) * divided
    late = maximum(before, gradients - minimum(missing, gradients))
    # A tied matrix's two gradients are summed into a third where both are made.
    tied = (
        p.embedding_gradient * (2 * number(stage.architecture.tie_word_embeddings) * stage.embedding * stage.head) * per_tensor
    )
    temporary = stage.stepped_at_once(stepped) * p.optimizer_temporary * (1 - stage.offloaded)
    extra = maximum(working - kept_layer, ZERO)
    one_copy = layer_copies / stage.stage_layers + expert_copies * EXPERT_BACKWARD / stage.stage_layers
    instants = (
        (before, kept + final, logits, forward + kept_copies + head_copies),
        # Autocast forgets its cached copies only when the forward pass is over, just before the last gradients of the logits.
        (before, kept + final, logits * FORWARD_SHARE, forward + layer_copies + head_copies),
        (maximum(before, head_gradient), kept, ZERO, backward + kept_copies + extra),
        (late, kept_layer, ZERO, backward_end + one_copy + extra),
        (gradients, ZERO, ZERO, end + tied),
        (gradients, ZERO, ZERO, temporary),
    )
    moving = [g + a + logit + buffer for g, a, logit, buffer in instants]
    allocated = trail.step(
        "allocated",
        "weights + optimizer_states + buckets + maximum(loss, backward_begin, backward_end, embedding, optimizer_step)",
        "",
        weights=weights,
        optimizer_states=states,
        buckets=always,
        loss=maximum(moving[0], moving[1]),
        backward_begin=moving[2],
        backward_end=moving[3],
        embedding=moving[4],
        optimizer_step=moving[5],
    )
    phase, (at_gradients, at_activations, at_logits, at_buffers) = _pick(instants, moving)
    runtime = estimate_runtime(training, stage.layout, trail)
    wanted, reserved = _reserved(stage, allocated, runtime)
    total = trail.step("total", "reserved + runtime", "", reserved=reserved, runtime=runtime)
    low_share, high_share, basis = interval_of(training, stage.layout)
    low, high = minimum((wanted + runtime) * low_share, total), maximum((wanted + runtime) * high_share, total)
    return MemoryEstimate(
        weights=weights,
        gradients=gradients,
        optimizer_states=states,
        activations=kept,
        logits=logits,
        buffers=always + maximum(forward + kept_copies + head_copies, backward + working),
        runtime=runtime,
        allocated=allocated,
        reserved=reserved,
        total=total,
        low=low,
        high=high,
        at_peak=PeakTerms(
            weights=_like(weights, allocated),
            gradients=at_gradients,
            optimizer_states=_like(states, allocated),
            activations=at_activations,
            logits=at_logits,
            buffers=_like(at_buffers + always, allocated),
        ),
        capacity=stage.inputs.capacity,
        host_ram=estimate_host_ram(stage.inputs, p, kept_in_all - kept, trail),
        peak_phase=phase,
        worst_stage=name,
        verdict=verdict_of(low, high, stage.inputs.capacity),
        interval_basis=basis,
        assumptions=(*stage.architecture.assumptions, *_assumptions(stage)),
        trail=trail.done(),
    )


def _reserved(stage: Stage, allocated: Quantity, runtime: Quantity) -> tuple[Quantity, Quantity]:
    """(what the caching allocator takes where there is room, what it takes on this card).

    Short of memory it gives cached blocks back before it fails, so a card's capacity bounds what is reserved down to a few
    percent above what is allocated.
    """
    ratio = catalog.constant(f"memory.allocator_{stage.training.framework}")
    capacity = stage.inputs.capacity
    if capacity is None:
        wanted = stage.trail.step("reserved", "allocated * ratio", "physics-runtime", allocated=allocated, ratio=ratio)
        return wanted, wanted
    reserved = stage.trail.step(
        "reserved",
        "maximum(allocated * least, minimum(allocated * ratio, maximum(capacity - runtime, 0 * capacity) * room))",
        "physics-runtime",
        allocated=allocated,
        ratio=ratio,
        least=catalog.constant("memory.allocator_squeezed"),
        capacity=capacity,
        runtime=runtime,
        room=0.9999,
    )
    return allocated * ratio, reserved


def _assumptions(stage: Stage) -> tuple[str, ...]:
    """Plain sentences on what this estimate took for granted."""
    found = []
    family = stage.architecture.model_type
    if family not in MEASURED:
        found.append(f"Layers of type {family} were not measured: their activations follow from the operations in its config.")
    if stage.training.method == "qlora" and np.any(np.asarray(stage.zero) >= 3) and np.any(np.asarray(stage.shards) > 1):
        found.append("4-bit weights are divided over the GPUs only when stored in 16-bit containers (bnb_4bit_quant_storage).")
    return tuple(found)


def _gradients_before(stage: Stage, gradients: Quantity) -> Quantity:
    """Gradients there at the loss: none in the first micro-batch of a step, all of them in later ones.

    Megatron's gradient buffers exist from the start.
    """
    if stage.training.optimizer_in_backward:
        return ZERO
    if stage.training.framework == "megatron":
        return gradients
    return gradients * number(stage.layout.gradient_accumulation_steps > 1)


def verdict_of(low: Quantity, high: Quantity, capacity: Quantity | None) -> Any:
    """Whether [low, high] fits: "fits" wholly, "tight" across the capacity, "does_not_fit"; "unknown" without a capacity."""
    if capacity is None:
        return "unknown"
    over, under = low > capacity, high <= capacity
    if np.ndim(over) == 0 and np.ndim(under) == 0:
        return "fits" if under else "does_not_fit" if over else "tight"
    return np.where(under, "fits", np.where(over, "does_not_fit", "tight"))


def _pick(instants: tuple, totals: list[Quantity]) -> tuple[Any, list[Quantity]]:
    """(phase, [gradients, activations, logits, buffers]) of the largest instant."""
    sizes = [total.m_as("B / GPU") for total in totals]
    if all(np.ndim(size) == 0 for size in sizes):
        index = int(np.argmax(sizes))
        return str(PHASES[index]), list(instants[index])
    index = np.argmax(np.stack(np.broadcast_arrays(*sizes)), axis=0)
    columns = []
    for column in zip(*instants, strict=True):
        values = np.stack([np.broadcast_to(term.m_as("B / GPU"), index.shape) for term in column])
        columns.append(Q(np.take_along_axis(values, index[None], axis=0)[0], unit("B / GPU")))
    return PHASES[index], columns


def _like(value: Quantity, other: Quantity) -> Quantity:
    """`value` broadcast to the shape of `other`."""
    shape = np.shape(other.magnitude)
    return Q(np.broadcast_to(value.magnitude, shape), value.units) if np.shape(value.magnitude) != shape else value
