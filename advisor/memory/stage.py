"""One pipeline stage of a training step: the size of every term on its fullest GPU, for scalar or array layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor import catalog
from advisor.memory.kept import Kept
from advisor.memory.parts import Parts, parts_of, width_of
from advisor.memory.records import MemoryInputs
from advisor.trail import Trail
from advisor.units import Q, Quantity, maximum, minimum, unit, where

PER_GPU = Q(1, unit("1 / GPU"))
ZERO = Q(0.0, unit("B / GPU"))
#: Frameworks whose data parallelism is FSDP: fp32 or bf16 shards, 16-bit gathered units, a root unit of embedding and head.
FULLY_SHARDED = ("fsdp", "torchtitan", "torchtune")


def number(flag: Any) -> Any:
    """A flag (or array of flags) as 0 or 1."""
    return int(flag) if np.ndim(flag) == 0 else np.asarray(flag).astype(float)


def both(one: Any, other: Any) -> Any:
    """Logical and of flags or arrays of flags; a plain bool stays one."""
    result = np.logical_and(one, other)
    return bool(result) if np.ndim(result) == 0 else result


def is_word(word: Any, name: str) -> Any:
    """1 where the layout's word is `name`, else 0."""
    return int(word == name) if isinstance(word, str) else (np.asarray(word) == name).astype(float)


class Stage:
    """Terms of one stage. `embedding` and `head` (0 or 1, or arrays) say whether the stage holds them."""

    def __init__(self, inputs: MemoryInputs, embedding: Any, head: Any) -> None:
        self.inputs, self.layout, self.training = inputs, inputs.layout, inputs.training
        self.architecture = inputs.architecture
        self.parts: Parts = parts_of(inputs.architecture, inputs.training)
        self.embedding, self.head = number(embedding), number(head)
        self.trail = Trail()
        layout, layers = self.layout, self.architecture.num_layers
        self.tensor = layout.tensor_parallel_size
        self.stage_layers = -(-layers // layout.pipeline_parallel_size)
        self.share = self.stage_layers / layers
        self.zero = layout.zero_stage
        self.shards = layout.sharding_size
        self.many = number(self.shards > 1)
        # Experts are spread over data and context ranks: no further than there are, or t's share would be taken twice.
        self.expert = minimum(layout.expert_parallel_size, self.shards)
        self.expert_shards = self.shards / self.expert
        self.offloaded = 1 - is_word(layout.offload, "none")
        self.parameters_offloaded = is_word(layout.offload, "optimizer_and_parameters")
        self.fully_sharded = self.training.framework in FULLY_SHARDED
        # A tied head is the embedding: stored once where a stage holds either, gathered and stepped once where it holds both.
        tied = self.architecture.tie_word_embeddings
        self.copies_of_embedding = maximum(self.embedding, self.head) if tied else self.embedding
        self.full_recomputation = is_word(layout.activation_recomputation, "full")
        self.selective = is_word(layout.activation_recomputation, "selective")
        self.sharded_gradients = self.many * number(self.zero >= 2) * self.fully_sharded
        self.tokens = Q(layout.sequence_length * layout.micro_batch_size / layout.context_parallel_size, unit("token"))

    def _divided(self, from_stage: int) -> tuple[Any, Any]:
        """(ranks that share a dense part, ranks that share an expert part) from this ZeRO stage on."""
        return where(self.zero >= from_stage, self.shards, 1), where(self.zero >= from_stage, self.expert_shards, 1)

    def weights(self) -> Quantity:
        """Stored weights, sharded or offloaded as the layout says."""
        p = self.parts
        # FSDP's "shard gradients and optimizer" also keeps its fp32 parameters sharded between steps.
        shards, expert_shards = self._divided(2 if self.fully_sharded else 3)
        return self.trail.step(
            "weights",
            "((layers * share + embedding * has_embedding + head * has_head) / shards"
            " + experts * share / (expert_parallel_size * expert_shards)) / tensor_parallel_size * resident * per_gpu",
            "zero-2020",
            layers=p.layer_weights,
            experts=p.expert_weights,
            embedding=p.embedding_weights,
            head=p.head_weights,
            share=self.share,
            has_embedding=self.copies_of_embedding,
            has_head=self.head,
            shards=shards,
            expert_shards=expert_shards,
            expert_parallel_size=self.expert,
            tensor_parallel_size=self.tensor,
            resident=1 - self.parameters_offloaded,
            per_gpu=PER_GPU,
        )

    def trained(self, from_stage: int) -> Quantity:
        """Trained parameters of one GPU where they are divided from this ZeRO stage on."""
        p = self.parts
        shards, expert_shards = self._divided(from_stage)
        dense = p.layer_trained * self.share + p.embedding_trained * self.copies_of_embedding + p.head_trained * self.head
        experts = p.expert_trained * (self.share / self.expert / expert_shards)
        return (dense / shards + experts) / self.tensor * PER_GPU

    def states(self) -> tuple[Quantity, Quantity, Quantity]:
        """(gradients, optimizer states, parameters that one GPU steps)."""
        p = self.parts
        stepped = self.trained(1)
        held = self.trained(2)
        moved = self.offloaded if self.fully_sharded else self.offloaded * number(self.zero >= 1)
        gradients = self.trail.step(
            "gradients", "trained * width * (1 - offloaded)", "zero-2020", trained=held, width=p.gradient_width, offloaded=moved
        )
        states = self.trail.step(
            "optimizer_states",
            "trained * width * (1 - offloaded)",
            "zero-2020",
            trained=stepped,
            width=p.optimizer_width,
            offloaded=self.offloaded,
        )
        if self.training.optimizer_in_backward:
            gradients = minimum(gradients, maximum(p.embedding_gradient, p.layer_gradient) / self.tensor * PER_GPU)
        return gradients, states, stepped

    def stepped_at_once(self, stepped: Quantity) -> Quantity:
        """Parameters whose temporaries exist together in the step: DeepSpeed's ZeRO-3 steps one sub-group at a time."""
        if self.training.framework != "deepspeed":
            return stepped
        return where(self.zero >= 3, minimum(stepped, catalog.constant("memory.subgroup_deepspeed")), stepped)

    def in_flight(self) -> Any:
        """Micro-batches whose activations the stage keeps at once (Korthikanti et al. 2022, section 4.2.3).

        The first of p stages has p of them under way, the last one; interleaving adds (p - 1)/(p v) of that. Fewer
        micro-batches than stages in a step are kept as they are; a layout that names one is taken to fill the pipeline.
        """
        layout = self.layout
        pipeline, virtual, steps = layout.pipeline_parallel_size, layout.virtual_pipeline, layout.gradient_accumulation_steps
        under_way = where(both(steps > 1, steps < pipeline), steps, pipeline)
        interleaved = where(virtual > 1, 1 + (pipeline - 1) / (pipeline * virtual), 1.0)
        return where(self.embedding > 0, under_way * interleaved, 1.0)

    def activations(self) -> tuple[Quantity, Quantity, Quantity]:
        """(kept by the stage at its fullest, of those one layer of one micro-batch, alive in a layer's backward pass)."""
        p, layout = self.parts.layers, self.layout
        residual = where(layout.sequence_parallel, self.tensor, 1)
        context = Q(layout.sequence_length, unit("token")) * (1 / unit("token"))
        each = self._per_token(p.kept, residual, context) / self.architecture.num_layers
        selective = self._per_token(p.selective, residual, context) / self.architecture.num_layers
        each = each * (1 - self.selective) + selective * self.selective
        stored = each * (1 - self.full_recomputation) + p.residual / residual * self.full_recomputation
        tokens = self.tokens * PER_GPU
        total = self.trail.step(
            "activations",
            "tokens * bytes_per_layer * layers * micro_batches",
            "korthikanti-2022",
            tokens=tokens,
            bytes_per_layer=stored,
            layers=self.stage_layers,
            micro_batches=self.in_flight(),
        )
        working = self._per_token(p.mlp_working, residual, context)
        attention = self._per_token(p.attention_working, residual, context)
        return total, tokens * stored, tokens * maximum(working, attention, each)

    def _per_token(self, kept: Kept, residual: Any, context: Quantity) -> Quantity:
        """Bytes per token of this GPU's share of `kept`."""
        total = kept.replicated / residual + kept.sharded / self.tensor
        return total + kept.scores / self.tensor * context if kept.scores.magnitude else total

    def logits(self) -> Quantity:
        """Logits and their gradients at the loss, on the stage that holds the head."""
        return self.trail.step(
            "logits",
            "tokens * bytes_per_token * has_head / tensor_parallel_size",
            "autograd-hf-layers",
            tokens=self.tokens * PER_GPU,
            bytes_per_token=self.parts.logits_peak,
            has_head=self.head,
            tensor_parallel_size=self.tensor,
        )

    def buffers(self) -> tuple[Quantity, Quantity, Quantity, Quantity, Quantity]:
        """(always there, in the forward pass, in the first and in the last layer's backward pass, after the layers).

        Fully sharded: the root unit stays gathered, one layer is prefetched in the forward pass and two live in the backward
        pass beside the gradients on their way to being reduced. DeepSpeed: live parameters up to a limit, and reduce buckets.
        Plain data parallelism: a second copy of the gradients in buckets.
        """
        p, layout = self.parts, self.layout
        per_tensor = PER_GPU / self.tensor
        dequantized = p.largest_linear * per_tensor
        if self.fully_sharded:
            root = (p.gathered_embedding * self.copies_of_embedding + p.gathered_head * self.head) * per_tensor
            layer = p.largest_layer / self.expert * per_tensor
            stage = p.gathered_layers * self.share / self.expert * per_tensor
            live = number(both(self.many > 0, self.zero >= 2))
            # Under a pipeline schedule weights stay gathered and gradients unreduced until the last micro-batch.
            staged = number(layout.pipeline_parallel_size > 1)
            kept = maximum(number(self.zero < 3), staged)
            forward = (root + stage * kept + layer * (1 - kept)) * live
            reduce = self._reduce_factor()
            head = maximum(p.gathered_head, p.gathered_embedding) * self.head * per_tensor
            unreduced = (layer * min(reduce, 2.0) + head) * live if reduce else ZERO
            backward = (root + stage * kept + 2 * layer * (1 - kept)) * live + unreduced
            end = root * reduce * live if reduce else ZERO
            late = (root + layer * (2 - kept)) * live + unreduced
            if reduce:
                accumulated = stage * (2 if self.training.gradients == "fp32" else 1) * (live * staged)
                forward, backward, late = forward + accumulated, backward + accumulated, late + accumulated + stage * staged
            return ZERO, forward, backward + dequantized, late + dequantized, end
        whole_stage = (p.gathered_layers * self.share + p.gathered_embedding + p.gathered_head) * per_tensor
        live = catalog.constant("memory.live_deepspeed") * width_of("bf16")
        gathered = minimum(whole_stage, live) * maximum(self.many * number(self.zero >= 3), self.parameters_offloaded)
        bucket = ZERO
        if self.training.framework != "megatron":
            whole = self.trained(9) * p.gradient_width
            limit = catalog.constant("memory.bucket_deepspeed") * width_of("bf16")
            bucket = where(self.zero >= 1, minimum(2 * limit, whole), whole) * self.many
        computing = gathered + dequantized
        return bucket, gathered, computing, computing, ZERO

    def _reduce_factor(self) -> float:
        """Unreduced 16-bit gradients and the buffer they are reduced in, over the 16-bit weights; 0 with frozen weights."""
        if self.training.method != "full":
            return 0.0
        return 3.0 if self.training.gradients == "fp32" and self.training.precision != "fp32" else 2.0

    def copies(self) -> tuple[Quantity, Quantity]:
        """16-bit copies of weights that the graph keeps: (of the stage's layers, of its head)."""
        p, per_tensor = self.parts, PER_GPU / self.tensor
        return p.layer_copies * self.share * per_tensor, p.head_copies * self.head * per_tensor

    def expert_copies(self) -> Quantity:
        """Expert weights of the stage that adapters on fused experts write out again."""
        p = self.parts
        if not p.expert_copies.magnitude:
            return ZERO
        return p.expert_copies * self.share * PER_GPU / self.tensor / self.expert
