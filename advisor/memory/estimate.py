"""Memory of the fullest GPU: every term, the three instants that compete for the peak, and what `nvidia-smi` shows.

Loss: all kept activations and the logits. Backward: kept activations, the working set of one layer and the gradients so far.
Optimizer step: states, gradients and temporaries. The largest wins and is named (`peak_phase`).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from advisor import catalog
from advisor.memory.interval import interval_of
from advisor.memory.layers import kernels_of
from advisor.memory.parts import HALF, Parts, parts_of, width_of
from advisor.memory.records import MemoryEstimate, MemoryInputs, PeakTerms
from advisor.memory.runtime import estimate_host_ram, estimate_runtime
from advisor.trail import Trail
from advisor.training import Layout, Training
from advisor.units import Q, Quantity, Record, maximum, minimum, unit, where

PER_GPU = unit("1 / GPU")
ZERO = Q(0.0, unit("B / GPU"))
SHARDS_AND_GATHERS = ("fsdp", "torchtitan", "torchtune")


def estimate_memory(inputs: MemoryInputs) -> MemoryEstimate:
    """Estimate one GPU's memory; layout fields may be arrays that broadcast, the result's fields then are arrays too.

    With pipeline parallelism the first and the last stage are both computed and the larger one is the answer.
    """
    pipeline = inputs.layout.pipeline_parallel_size
    if np.all(np.asarray(pipeline) == 1):
        return _Stage(inputs, True, True, "only").estimate()
    deep = np.asarray(pipeline) > 1
    deep = bool(deep) if deep.ndim == 0 else deep
    first = _Stage(inputs, True, where(deep, False, True), where(deep, "first", "only")).estimate()
    last = _Stage(inputs, where(deep, False, True), True, where(deep, "last", "only")).estimate()
    return _larger(first, last)


def _larger(first: MemoryEstimate, last: MemoryEstimate) -> MemoryEstimate:
    """Field by field, the stage that needs more in total."""
    choose = first.total >= last.total
    choose = bool(choose) if np.ndim(choose) == 0 else choose
    if isinstance(choose, bool):
        return first if choose else last

    def pick(a: Any, b: Any) -> Any:
        if isinstance(a, Record):
            return type(a)(**{f.name: pick(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)})
        return a if isinstance(a, tuple) or a is None else where(choose, a, b)

    kept = ("interval_basis", "assumptions", "trail", "capacity")
    merged = {f.name: pick(getattr(first, f.name), getattr(last, f.name)) for f in fields(first) if f.name not in kept}
    return MemoryEstimate(**merged, **{name: getattr(first, name) for name in kept})


class _Stage:
    """One pipeline stage: holds what the terms share. `embedding` and `head` say whether the stage holds them."""

    def __init__(self, inputs: MemoryInputs, embedding: Any, head: Any, name: Any) -> None:
        self.inputs, self.layout, self.training = inputs, inputs.layout, inputs.training
        self.architecture = inputs.architecture
        self.parts: Parts = parts_of(inputs.architecture, inputs.training)
        self.embedding, self.head, self.name = _number(embedding), _number(head), name
        self.trail = Trail()
        layout = self.layout
        layers = self.architecture.num_layers
        self.stage_layers = -(-layers // layout.pipeline_parallel_size)
        self.share = self.stage_layers / layers
        self.zero = layout.zero_stage
        self.shards = layout.sharding_size
        self.expert_shards = maximum(self.shards / layout.expert_parallel_size, 1.0)
        self.offloaded = layout.offload != "none"
        self.parameters_offloaded = layout.offload == "optimizer_and_parameters"
        self.gathers = self.training.framework in SHARDS_AND_GATHERS
        # bitsandbytes' packed 4-bit weights are sharded by FSDP (same storage dtype) and not by DeepSpeed's ZeRO-3.
        self.shardable = not (self.training.method == "qlora" and not self.gathers)

    # -- terms ----------------------------------------------------------------------------------------------------------

    def _weights(self) -> Quantity:
        p, layout = self.parts, self.layout
        head = p.head_weights
        if self.architecture.tie_word_embeddings:
            head = where_both(self.head, self.embedding, p.head_weights, p.embedding_weights)
        dense_shards = where(_and(self.zero >= 3, self.shardable), self.shards, 1)
        expert_shards = where(_and(self.zero >= 3, self.shardable), self.expert_shards, 1)
        if self.gathers:
            dense_shards = where(self.zero >= 2, self.shards, 1)
            expert_shards = where(self.zero >= 2, self.expert_shards, 1)
        return self.trail.step(
            "weights",
            "resident * ((layers * share + embedding * has_embedding + head * has_head) / (tensor * shards)"
            " + experts * share / (tensor * expert * expert_shards)) * per_gpu",
            "zero-2020",
            layers=p.layer_weights,
            experts=p.expert_weights,
            embedding=p.embedding_weights,
            head=head,
            share=self.share,
            has_embedding=self.embedding,
            has_head=self.head,
            tensor=layout.tensor_parallel_size,
            expert=layout.expert_parallel_size,
            shards=dense_shards,
            expert_shards=expert_shards,
            resident=1 - _number(self.parameters_offloaded),
            per_gpu=Q(1, PER_GPU),
        )

    def _trained(self, dense_shards: Any, expert_shards: Any) -> Quantity:
        """Trained parameters of this GPU when sharded over so many ranks."""
        p, layout = self.parts, self.layout
        head = p.head_trained
        if self.architecture.tie_word_embeddings:
            head = where_both(self.head, self.embedding, p.head_trained, p.embedding_trained)
        dense = p.layer_trained * self.share + p.embedding_trained * self.embedding + head * self.head
        experts = p.expert_trained * self.share / (layout.expert_parallel_size * expert_shards)
        return (dense / dense_shards + experts) / layout.tensor_parallel_size * Q(1, PER_GPU)

    def _states(self) -> tuple[Quantity, Quantity, Quantity]:
        """(gradients, optimizer states, trained parameters that one GPU steps)."""
        p, zero = self.parts, self.zero
        stepped = self._trained(where(zero >= 1, self.shards, 1), where(zero >= 1, self.expert_shards, 1))
        held = self._trained(where(zero >= 2, self.shards, 1), where(zero >= 2, self.expert_shards, 1))
        offloaded = _number(_and(self.offloaded, self.zero >= 2)) if not self.gathers else _number(self.offloaded)
        gradients = self.trail.step(
            "gradients",
            "trained * width * (1 - offloaded)",
            "zero-2020",
            trained=held,
            width=p.gradient_width,
            offloaded=offloaded,
        )
        states = self.trail.step(
            "optimizer_states",
            "trained * width * (1 - offloaded)",
            "zero-2020",
            trained=stepped,
            width=p.optimizer_width,
            offloaded=_number(self.offloaded),
        )
        if self.training.optimizer_in_backward:
            gradients = minimum(gradients, p.largest_layer * Q(1, PER_GPU))
        return gradients, states, stepped

    def _activations(self) -> tuple[Quantity, Quantity, Quantity, Quantity]:
        """(kept by the stage at its fullest, of those per layer, working set of one layer in backward, tokens)."""
        p, layout = self.parts, self.layout
        tensor, context = layout.tensor_parallel_size, layout.context_parallel_size
        tokens = Q(layout.sequence_length * layout.micro_batch_size / context, unit("token"))
        residual_split = where(layout.sequence_parallel, tensor, 1)
        # Eager attention's scores are what selective recomputation drops; with a flash kernel there is little to drop.
        full, selective = _is(layout.activation_recomputation, "full"), _is(layout.activation_recomputation, "selective")
        per_layer = (
            p.kept.replicated / residual_split
            + p.kept.sharded / tensor
            + p.kept.scores * layout.sequence_length * (1 - selective) / tensor
        ) / self.architecture.num_layers
        kept_layer = where_number(full, p.residual / residual_split, per_layer)
        in_flight = self._in_flight()
        kept = self.trail.step(
            "activations",
            "tokens * bytes_per_layer * stage_layers * in_flight * per_gpu",
            "korthikanti-2022",
            tokens=tokens,
            bytes_per_layer=kept_layer,
            stage_layers=self.stage_layers,
            in_flight=in_flight,
            per_gpu=Q(1, PER_GPU),
        )
        extra = (p.mlp_extra + p.attention_extra * layout.sequence_length) / tensor
        working = tokens * Q(1, PER_GPU) * (extra + where_number(full, per_layer, 0 * per_layer))
        return kept, tokens * kept_layer * Q(1, PER_GPU), working, tokens

    def _in_flight(self) -> Any:
        """Micro-batches whose activations the stage keeps at once (Korthikanti et al. 2022, section 4.2.3)."""
        layout = self.layout
        pipeline, virtual = layout.pipeline_parallel_size, layout.virtual_pipeline
        most = maximum(minimum(pipeline, _at_least_pipeline(layout)), 1)
        interleaved = where(virtual > 1, 1 + (pipeline - 1) / (pipeline * virtual), 1.0)
        return where_both_number(self.embedding, most * interleaved, 1.0)

    def _buffers(self, tokens: Quantity) -> tuple[Quantity, Quantity]:
        """(always there: reduce buckets; while computing: gathered weights, dequantized linear, autocast copies)."""
        p, layout, training = self.parts, self.layout, self.training
        tensor = layout.tensor_parallel_size
        per_gpu = Q(1, PER_GPU)
        sharded = self.shards > 1
        bucket = ZERO
        if self.gathers:
            root = p.gathered_root * maximum(self.embedding, self.head) / tensor * per_gpu
            layer = p.largest_layer / (tensor * layout.expert_parallel_size) * per_gpu
            stage = p.gathered_layers * self.share / tensor * per_gpu
            live = where(self.zero >= 3, minimum(root + 2 * layer, root + stage), root + stage)
            gathered = where(_and(sharded, self.zero >= 2), live, ZERO)
            if training.weights in ("fp32",):
                copies = (p.gathered_root + p.gathered_layers) * self.share / tensor * per_gpu
                gathered = where(_and(sharded, self.zero >= 2), gathered, copies)
        else:
            full_size = (p.gathered_layers * self.share + p.gathered_root) / tensor * per_gpu
            most = catalog.constant("memory.live_deepspeed") * width_of("bf16")
            gathered = where(_and(sharded, self.zero >= 3) if self.shardable else False, minimum(full_size, most), ZERO)
            size = catalog.constant("memory.bucket_deepspeed") * width_of("bf16")
            held = self._trained(1, 1) * p.gradient_width
            if training.framework == "megatron":
                bucket = ZERO
            else:
                ddp = where(sharded, held, ZERO)
                bucket = where(self.zero >= 1, where(sharded, minimum(2 * size, held), ZERO), ddp)
        copies = p.weight_copies * self.share / tensor * per_gpu
        dequantized = p.largest_linear / tensor * per_gpu
        return bucket, gathered + copies + dequantized

    # -- the peak -------------------------------------------------------------------------------------------------------

    def estimate(self) -> MemoryEstimate:
        p, layout, trail = self.parts, self.layout, self.trail
        weights = self._weights()
        gradients, states, stepped = self._states()
        kept, kept_layer, working, tokens = self._activations()
        tensor, per_gpu = layout.tensor_parallel_size, Q(1, PER_GPU)
        if self.training.activation_offload:
            kept = minimum(kept, kept_layer * catalog.constant("memory.activation_offload_window"))
        logits = trail.step(
            "logits",
            "tokens * bytes_per_token * has_head / tensor * per_gpu",
            "autograd-hf-layers",
            tokens=tokens,
            bytes_per_token=p.logits_peak,
            has_head=self.head,
            tensor=tensor,
            per_gpu=per_gpu,
        )
        outside = tokens * p.outside * self.head * per_gpu
        bucket, gathered = self._buffers(tokens)
        accumulated = layout.gradient_accumulation_steps > 1
        persistent = self.training.framework == "megatron"
        before = where(True if persistent else _flag(accumulated), gradients, ZERO)
        if self.training.optimizer_in_backward:
            before = ZERO
        head_gradient = p.head_gradient * self.head / tensor * per_gpu
        early = maximum(before, minimum(head_gradient, gradients))
        recomputed = _is(layout.activation_recomputation, "full")
        last_kept = where_number(recomputed, kept_layer, kept_layer)
        base = weights + states + bucket
        zero = ZERO
        instants = (
            ("loss", before, kept + outside, logits, gathered),
            ("backward", early, kept + outside * 0.5, zero, gathered + working),
            ("backward", gradients, last_kept, zero, gathered + working),
            ("optimizer_step", gradients, zero, zero, stepped * p.optimizer_temporary * (1 - _number(self.offloaded))),
        )
        totals = [g + a + l + b for _, g, a, l, b in instants]
        top = totals[0]
        for other in totals[1:]:
            top = maximum(top, other)
        picked = _pick(instants, totals)
        allocated = trail.step(
            "allocated",
            "weights + optimizer_states + buckets + maximum(loss, backward_begin, backward_end, optimizer_step)",
            "",
            weights=weights,
            optimizer_states=states,
            buckets=bucket,
            loss=totals[0],
            backward_begin=totals[1],
            backward_end=totals[2],
            optimizer_step=totals[3],
        )
        at_peak = PeakTerms(
            weights=_like(weights, allocated),
            gradients=picked[1],
            optimizer_states=_like(states, allocated),
            activations=picked[2],
            logits=picked[3],
            buffers=_like(bucket + picked[4], allocated),
        )
        del base
        return self._finish(
            weights, gradients, states, kept + outside, logits, bucket + gathered + working, allocated, at_peak, picked[0]
        )

    def _finish(
        self,
        weights: Quantity,
        gradients: Quantity,
        states: Quantity,
        activations: Quantity,
        logits: Quantity,
        buffers: Quantity,
        allocated: Quantity,
        at_peak: PeakTerms,
        phase: Any,
    ) -> MemoryEstimate:
        runtime = estimate_runtime(self.training, self.layout, self.trail)
        reserved = self.trail.step(
            "reserved",
            "allocated * allocator",
            "physics-runtime",
            allocated=allocated,
            allocator=catalog.constant(f"memory.allocator_{self.training.framework}"),
        )
        total = self.trail.step("total", "reserved + runtime", "", reserved=reserved, runtime=runtime)
        low_ratio, high_ratio, basis = interval_of(self.training)
        low, high = total * low_ratio, total * high_ratio
        capacity = self.inputs.capacity
        return MemoryEstimate(
            weights=weights,
            gradients=gradients,
            optimizer_states=states,
            activations=activations,
            logits=logits,
            buffers=buffers,
            runtime=runtime,
            allocated=allocated,
            reserved=reserved,
            total=total,
            low=low,
            high=high,
            at_peak=at_peak,
            capacity=capacity,
            host_ram=estimate_host_ram(self.inputs, self.parts, self.trail),
            peak_phase=phase,
            worst_stage=self.name,
            verdict=verdict_of(low, high, capacity),
            interval_basis=basis,
            assumptions=self.architecture.assumptions,
            trail=self.trail.done(),
        )


def verdict_of(low: Quantity, high: Quantity, capacity: Quantity | None) -> Any:
    """ "fits" when the whole interval does, "tight" when it crosses the capacity, else "does_not_fit"; "unknown" without one."""
    if capacity is None:
        return "unknown"
    over, under = low > capacity, high <= capacity
    if np.ndim(over) == 0 and np.ndim(under) == 0:
        return "fits" if under else "does_not_fit" if over else "tight"
    return np.where(under, "fits", np.where(over, "does_not_fit", "tight"))


def _pick(instants: tuple, totals: list[Quantity]) -> tuple:
    """The terms of the largest instant."""
    magnitudes = [t.m_as("B / GPU") for t in totals]
    if all(np.ndim(m) == 0 for m in magnitudes):
        return instants[int(np.argmax(magnitudes))]
    magnitudes = np.broadcast_arrays(*magnitudes)
    index = np.argmax(np.stack(magnitudes), axis=0)
    names = np.array([one[0] for one in instants])[index]
    shape = index.shape
    columns = []
    for column in range(1, 5):
        values = [np.broadcast_to(one[column].m_as("B / GPU"), shape) for one in instants]
        columns.append(Q(np.take_along_axis(np.stack(values), index[None], axis=0)[0], unit("B / GPU")))
    return names, *columns


def _like(value: Quantity, other: Quantity) -> Quantity:
    """`value` broadcast to the shape of `other`."""
    shape = np.shape(other.magnitude)
    if shape and np.shape(value.magnitude) != shape:
        return Q(np.broadcast_to(value.magnitude, shape), value.units)
    return value


def _number(flag: Any) -> Any:
    """A flag (or array of flags) as 0 or 1."""
    return int(flag) if np.ndim(flag) == 0 else np.asarray(flag).astype(float)


def _flag(flag: Any) -> Any:
    return bool(flag) if np.ndim(flag) == 0 else flag


def _and(one: Any, other: Any) -> Any:
    result = np.logical_and(one, other)
    return bool(result) if np.ndim(result) == 0 else result


def _is(word: Any, name: str) -> Any:
    """1 where the layout's word is `name`."""
    return _number(np.asarray(word) == name)


def where_number(condition: Any, yes: Any, no: Any) -> Any:
    """`where` on a 0/1 number."""
    return where(bool(condition) if np.ndim(condition) == 0 else np.asarray(condition) > 0, yes, no)


def where_both(one: Any, other: Any, yes: Any, no: Any) -> Any:
    """`yes` where a stage holds both embedding and head (a tied matrix counts once), else `no`."""
    return where_number(_number(_and(np.asarray(one) > 0, np.asarray(other) > 0)), yes, no)


def where_both_number(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` on the stage that holds the embedding, else `no`."""
    return where_number(condition, yes, no)


def _at_least_pipeline(layout: Layout) -> Any:
    """Micro-batches of a step; a layout that does not say (1) is taken to fill the pipeline."""
    steps = layout.gradient_accumulation_steps
    return where(_flag(steps > 1), steps, layout.pipeline_parallel_size)


def needs_loss_scale(training: Training) -> bool:
    """Whether fp16 needs its loss scaled (no memory of its own, but the master copy must be fp32)."""
    return training.precision == "fp16_mixed" and training.weights in HALF


_ = kernels_of
