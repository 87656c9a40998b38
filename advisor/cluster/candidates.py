"""Legal layouts of a job as arrays: every number of GPUs x parallel sizes x ZeRO stage x micro-batch x recomputation x offload.

What is legal:
- tensor parallelism stays inside a node, divides the attention heads, and divides or is divided by the key-value heads;
- no stage of a pipeline is empty when the others hold layers / stages, rounded up (Megatron takes a shorter last stage);
  it needs at least as many micro-batches as stages; interleaving needs micro-batches in multiples of the stages;
- context parallelism leaves each rank 2048 tokens or more; experts divide among the ranks of data and context, or,
  where their number was asked for, of tensor parallelism too (Megatron folds them: whole experts on a tensor group);
- ZeRO stages need more than one rank to shard over; 2 and 3 do not go with a pipeline except in torchtitan;
- offload of optimizer states needs ZeRO 1 or more, of parameters ZeRO 3 (DeepSpeed's rule, also on one card);
- tensor, pipeline and context parallelism come with Megatron and torchtitan only, unless asked for;
- micro-batches and accumulation steps multiply to the global batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from advisor.architecture import Architecture
from advisor.cluster.records import SearchInputs
from advisor.training import Layout

#: GPU counts tried when none is given.
COUNTS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384)
#: Counts a cluster is ordered in.
USUAL_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
MODEL_PARALLEL = ("megatron", "torchtitan")
RECOMPUTATION = ("none", "selective", "full")
OFFLOAD = ("none", "optimizer", "optimizer_and_parameters")
#: Columns of `Layouts` that are arrays.
COLUMNS = (
    "count",
    "data",
    "tensor",
    "pipeline",
    "context",
    "expert",
    "zero",
    "micro_batch",
    "accumulation",
    "chunks",
    "recomputation",
    "offload",
)
#: Tokens a step takes when no batch is given: 32 sequences of 2048 with adapters; with full training a quarter of a million for
#: fine-tuning, and 1 to 4 million for pre-training, as GPT-3 (table 2.1) and Llama 2 (table 1) used. By tokens of the run.
ADAPTER_TOKENS_PER_STEP = 2**16
TOKENS_PER_STEP = ((1e10, 2**18), (1e11, 2**20), (float("inf"), 2**22))


@dataclass(frozen=True)
class Layouts:
    """Layouts as columns of one length, sorted by GPU count. recomputation and offload index RECOMPUTATION and OFFLOAD."""

    count: np.ndarray
    data: np.ndarray
    tensor: np.ndarray
    pipeline: np.ndarray
    context: np.ndarray
    expert: np.ndarray
    zero: np.ndarray
    micro_batch: np.ndarray
    accumulation: np.ndarray
    chunks: np.ndarray
    recomputation: np.ndarray
    offload: np.ndarray
    sequence_length: int
    gpus_per_node: int

    def __len__(self) -> int:
        return len(self.count)

    def take(self, rows: np.ndarray | slice) -> Layouts:
        """Some of the rows."""
        return Layouts(
            **{name: getattr(self, name)[rows] for name in COLUMNS},
            sequence_length=self.sequence_length,
            gpus_per_node=self.gpus_per_node,
        )

    def layout(self) -> Layout:
        """The rows as one `Layout` of arrays."""
        return Layout(
            sequence_length=self.sequence_length,
            micro_batch_size=self.micro_batch,
            gradient_accumulation_steps=self.accumulation,
            zero_stage=self.zero,
            data_parallel_size=self.data,
            tensor_parallel_size=self.tensor,
            pipeline_parallel_size=self.pipeline,
            context_parallel_size=self.context,
            expert_parallel_size=self.expert,
            sequence_parallel=self.tensor > 1,
            virtual_pipeline=self.chunks,
            activation_recomputation=np.array(RECOMPUTATION)[self.recomputation],
            offload=np.array(OFFLOAD)[self.offload],
            gpus_per_node=np.minimum(self.gpus_per_node, self.count),
        )

    def one(self, row: int) -> Layout:
        """One row as a `Layout` of plain values."""
        r = {name: int(getattr(self, name)[row]) for name in COLUMNS}
        return Layout(
            sequence_length=self.sequence_length,
            micro_batch_size=r["micro_batch"],
            gradient_accumulation_steps=r["accumulation"],
            zero_stage=r["zero"],
            data_parallel_size=r["data"],
            tensor_parallel_size=r["tensor"],
            pipeline_parallel_size=r["pipeline"],
            context_parallel_size=r["context"],
            expert_parallel_size=r["expert"],
            sequence_parallel=r["tensor"] > 1,
            virtual_pipeline=r["chunks"],
            activation_recomputation=RECOMPUTATION[r["recomputation"]],
            offload=OFFLOAD[r["offload"]],
            gpus_per_node=min(self.gpus_per_node, r["count"]),
        )

    @property
    def complexity(self) -> np.ndarray:
        """How many things a practitioner must set up and may break: the tie-break between layouts of like speed."""
        return (
            1.0 * (self.tensor > 1)
            + 2.0 * (self.pipeline > 1)
            + 1.0 * (self.context > 1)
            + 0.5 * (self.expert > 1)
            + 0.25 * self.zero
            + 1.5 * self.offload
            + 0.25 * self.recomputation
        )


def _powers(most: int) -> tuple[int, ...]:
    return tuple(2**k for k in range(max(int(most), 1).bit_length()))


def _options(inputs: SearchInputs) -> dict[str, np.ndarray]:
    """The values tried of each dimension, before legality."""
    a, framework = inputs.architecture, inputs.training.framework
    parallel = inputs.model_parallel == "always" or framework in MODEL_PARALLEL
    fine = inputs.detail == "fine"
    long = inputs.sequence_length >= 16384
    recomputations = inputs.recomputations or (RECOMPUTATION if inputs.training.attention == "eager" else ("none", "full"))
    return {
        "count": np.array(sorted(inputs.counts or COUNTS)),
        "tensor": np.array(inputs.tensor_sizes or (_powers(min(inputs.gpus_per_node, 8)) if parallel else (1,))),
        "pipeline": np.array(inputs.pipeline_sizes or (_powers(min(a.num_layers, 64)) if parallel else (1,))),
        "context": np.array(inputs.context_sizes or (_powers(inputs.sequence_length // 8192) if parallel and long else (1,))),
        "expert": np.array(inputs.expert_sizes or (_powers(min(a.num_experts, 64)) if parallel and a.moe_layers else (1,))),
        "zero": np.array(inputs.zero_stages or (0, 1, 2, 3)),
        "micro_batch": np.array(inputs.micro_batch_sizes or (tuple(range(1, 33)) if fine else (1, 2, 4, 8, 16, 32))),
        "recomputation": np.array([RECOMPUTATION.index(name) for name in recomputations]),
        "offload": np.array([OFFLOAD.index(name) for name in inputs.offloads]),
    }


def legal_layouts(inputs: SearchInputs) -> Layouts:
    """Every legal layout of the job, sorted by GPU count. The result may be empty."""
    return join(list(layout_blocks(inputs, 10**9)), inputs)


def join(blocks: list[Layouts], inputs: SearchInputs) -> Layouts:
    """Blocks of layouts as one."""
    columns = {
        name: np.concatenate([getattr(block, name) for block in blocks]) if blocks else np.zeros(0, dtype=np.int64)
        for name in COLUMNS
    }
    return Layouts(**columns, sequence_length=inputs.sequence_length, gpus_per_node=inputs.gpus_per_node)


def layout_blocks(inputs: SearchInputs, size: int) -> Iterator[Layouts]:
    """Legal layouts in blocks of at most about `size` rows, sorted by GPU count: never all at once.

    Parallel sizes are combined first: most combinations die there, and the other dimensions multiply what is left.
    """
    options = _options(inputs)
    base = _parallel_sizes(inputs, options)
    rest = _grid([options[name] for name in ("zero", "micro_batch", "recomputation", "offload")])
    step = max(8 * size // max(len(rest), 1), 1)
    waiting: list[Layouts] = []
    held = 0
    for start in range(0, len(base), step):
        block = _expand(inputs, base[start : start + step], rest)
        waiting.append(block)
        held += len(block)
        if held >= size or start + step >= len(base):
            whole = join(waiting, inputs)
            for first in range(0, len(whole), size):
                yield whole.take(slice(first, first + size))
            waiting, held = [], 0


def _parallel_sizes(inputs: SearchInputs, options: dict[str, np.ndarray]) -> np.ndarray:
    """Legal rows of (count, tensor, pipeline, context, expert, data)."""
    a, s = inputs.architecture, inputs.sequence_length
    grid = _grid([options[name] for name in ("count", "tensor", "pipeline", "context", "expert")])
    count, tensor, pipeline, context, expert = grid.T
    model = tensor * pipeline * context
    heads, groups, layers = a.num_attention_heads, a.num_key_value_heads, a.num_layers
    data = np.maximum(count // model, 1)
    legal = (
        (count % model == 0)
        & (tensor <= inputs.gpus_per_node)
        & (heads % tensor == 0)
        & ((groups % tensor == 0) | (tensor % groups == 0))
        & ((pipeline - 1) * -(-layers // pipeline) < layers)
        & (s % context == 0)
        & (s // context >= np.where(context > 1, 2048, 1))
        & (max(a.num_experts, 1) % expert == 0)
        & ((data * context * (tensor if inputs.expert_sizes else 1)) % expert == 0)
    )
    return np.column_stack([grid, data])[legal]


def _expand(inputs: SearchInputs, base: np.ndarray, rest: np.ndarray) -> Layouts:
    """The legal combinations of some parallel sizes with every ZeRO stage, micro-batch, recomputation and offload."""
    count, tensor, pipeline, context, expert, data = np.repeat(base, len(rest), axis=0).T
    zero, micro_batch, recomputation, offload = np.tile(rest, (len(base), 1)).T
    accumulation, agree = _accumulation(inputs, data, micro_batch)
    staged = inputs.training.framework == "torchtitan"
    legal = (
        agree
        & ((zero == 0) | (data * context > 1) | ((offload > 0) & (zero >= 2)))
        & ((zero < 2) | (pipeline == 1) | staged)
        & ((offload == 0) | (pipeline * tensor == 1))
        & ((offload == 0) | ((offload == 1) & (zero >= 1) & (zero <= 2)) | (zero == 3))
        & (accumulation >= pipeline)
    )
    given = (count, data, tensor, pipeline, context, expert, zero, micro_batch, accumulation, recomputation, offload)
    kept = dict(zip([name for name in COLUMNS if name != "chunks"], (column[legal] for column in given), strict=True))
    chunks = _chunks(inputs, inputs.architecture.num_layers, kept["pipeline"], kept["accumulation"])
    return Layouts(**kept, chunks=chunks, sequence_length=inputs.sequence_length, gpus_per_node=inputs.gpus_per_node)


def _grid(values: list[np.ndarray]) -> np.ndarray:
    """All combinations, one a row, the first column varying slowest."""
    return np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(values))


def _accumulation(inputs: SearchInputs, data: np.ndarray, micro_batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(gradient accumulation steps, whether the batch sizes agree)."""
    each = data * micro_batch
    if inputs.global_batch_size is not None:
        batch = inputs.global_batch_size
        steps = np.maximum(batch // each, 1)
        agree = each * steps == batch
        if inputs.gradient_accumulation_steps is not None:
            agree &= steps == inputs.gradient_accumulation_steps
        return steps, agree
    if inputs.gradient_accumulation_steps is not None:
        return np.full_like(each, inputs.gradient_accumulation_steps), np.ones(len(each), dtype=bool)
    run = inputs.tokens.m_as("token")
    full = next(tokens for most, tokens in TOKENS_PER_STEP if run < most)
    target = max((full if inputs.training.method == "full" else ADAPTER_TOKENS_PER_STEP) // inputs.sequence_length, 8)
    steps = np.maximum(np.rint(target / each).astype(np.int64), 1)
    # a micro-batch that was asked for is kept, however large a step it makes
    return steps, each <= np.maximum(2 * target, data * min(inputs.micro_batch_sizes or (1,)))


def _chunks(inputs: SearchInputs, layers: int, pipeline: np.ndarray, accumulation: np.ndarray) -> np.ndarray:
    """Layer chunks per stage: as many as divide the layers, up to 8, where micro-batches come in multiples of the stages."""
    if inputs.virtual_pipeline is not None:
        return np.where(pipeline > 1, inputs.virtual_pipeline, 1)
    if inputs.training.framework not in MODEL_PARALLEL or inputs.training.software != "tuned":
        return np.ones_like(pipeline)
    chunks = np.ones_like(pipeline)
    for stages in np.unique(pipeline):
        for several in range(8, 1, -1):
            if stages > 1 and (layers % (stages * several) == 0 or (layers + 2) % (stages * several) == 0):
                chunks[(pipeline == stages) & (accumulation % stages == 0)] = several
                break
    return chunks


def illegal(architecture: Architecture, layout: Layout) -> str | None:
    """Why a single layout cannot run, in one sentence, or None."""
    t, p = layout.tensor_parallel_size, layout.pipeline_parallel_size
    if architecture.num_attention_heads % t:
        return f"tensor parallel size {t} does not divide the {architecture.num_attention_heads} attention heads."
    if p > architecture.num_layers:
        return f"a pipeline of {p} stages needs {p} layers, but the model has {architecture.num_layers}."
    if t > layout.gpus_per_node:
        return f"tensor parallel size {t} would cross nodes of {layout.gpus_per_node} GPUs; keep it inside a node."
    if layout.sequence_length % layout.context_parallel_size:
        return f"context parallel size {layout.context_parallel_size} does not divide {layout.sequence_length} tokens."
    experts, shards = layout.expert_parallel_size, t * layout.data_parallel_size * layout.context_parallel_size
    if experts > 1 and not architecture.num_experts:
        return f"expert parallel size {experts} needs experts, but this model has none."
    if max(architecture.num_experts, 1) % experts:
        return f"expert parallel size {experts} does not divide the {architecture.num_experts} experts."
    if shards % experts:
        return f"expert parallel size {experts} does not divide tensor x data x context = {shards} ranks."
    return None
