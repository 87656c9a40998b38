"""Stage 1, model size and method: how many parameters there are, are trained and are used, and what a token costs in FLOP.

A multiply-add is 2 FLOP. A token costs 2 FLOP per parameter it is multiplied with in the forward pass, 2 for the gradient of
the inputs and 2 for the gradient of the weights: 6 P (Kaplan et al. 2020, arXiv 2001.08361, section 2.1), where P leaves out
the embedding look-up and counts the head. Attention over the sequence adds 12 L h s with every key counted, half of it with a
causal mask (Korthikanti et al. 2022, arXiv 2205.05198, appendix A). 6 N D over all parameters is the rule of thumb of the
scaling laws (Hoffmann et al. 2022, arXiv 2203.15556, appendix F), and stands beside ours in the trail.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.architecture import Architecture, Matrix
from advisor.trail import Step, Trail
from advisor.training import RECOMPUTATION, LoRA, Training
from advisor.units import Flop, FlopPerToken, Integer, Parameters, Q, Quantity, Record, Tokens, Word, minimum, unit, where

#: Names under which families keep query, key and value (or query and value) projections. The fused ones are adapted whole.
QUERY_VALUE = frozenset(
    ["q_proj", "v_proj", "q_b_proj", "kv_b_proj", "query_key_value", "qkv_proj", "c_attn", "W_pack", "Wqkv", "wqkv"]
)
#: Expert projections by the names they had before gate and up became one tensor.
FUSED_NAMES = {"gate_proj": "gate_up_proj", "up_proj": "gate_up_proj", "w1": "gate_up_proj", "w3": "gate_up_proj",
               "w2": "down_proj"}  # fmt: skip

TARGETS = ("all_linear", "attention_qv", "attention")


class WorkloadError(ValueError):
    """A training method that does not fit the model. The message is one plain sentence."""


@dataclass(frozen=True, kw_only=True)
class WorkloadInputs(Record):
    """What stage 1 takes. tokens: of one epoch. sequence_length and activation_recomputation may be arrays."""

    architecture: Architecture
    training: Training
    sequence_length: Integer = 2048
    tokens: Tokens
    epochs: float | int = 1
    activation_recomputation: Word = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.epochs, (int, float)) or isinstance(self.epochs, bool) or not 0 < self.epochs < 1e6:
            raise WorkloadError(f"WorkloadInputs.epochs must be a number above 0, but was given {self.epochs!r}.")
        _check(self.sequence_length, self.activation_recomputation)


@dataclass(frozen=True, kw_only=True)
class WorkloadEstimate(Record):
    """What stage 1 says. flop_per_token follows the convention of published MFU (every key of attention counted, nothing
    recomputed); hardware_flop_per_token is what the GPU does (causal kernels, recomputation)."""

    parameters_total: Parameters
    parameters_trainable: Parameters
    parameters_active: Parameters
    flop_per_token: FlopPerToken
    hardware_flop_per_token: FlopPerToken
    training_flop: Flop
    trail: tuple[Step, ...]


def adapted_matrices(architecture: Architecture, targets: str | tuple[str, ...]) -> tuple[Matrix, ...]:
    """The matrices that adapters are placed on.

    "all_linear": every `nn.Linear` but the head, as PEFT means it; where PEFT adapts fused experts, those and the router, and
    not the dense and shared MLPs that share their names. "attention_qv": query and value projections (whole, where fused).
    "attention": all projections of attention and of linear-attention or state-space layers. Else module names.
    Raises WorkloadError for a module the model does not have, naming the nearest it has.
    """
    if isinstance(targets, str) and targets in TARGETS:
        if targets == "all_linear":
            chosen = [m for m in architecture.matrices if m.all_linear_rank]
        elif targets == "attention":
            chosen = [m for m in architecture.matrices if m.linear and m.block in ("attention", "mixer")]
        else:
            chosen = [
                m for m in architecture.matrices if m.linear and m.block in ("attention", "mixer") and m.name in QUERY_VALUE
            ]
        if not chosen:
            raise WorkloadError(f"The model {architecture.name} has no projections that LoRA targets {targets!r} would mean.")
        return tuple(chosen)
    names = (targets,) if isinstance(targets, str) else tuple(targets)
    known = {m.name for m in architecture.matrices}
    fused = any(m.block == "expert" and m.all_linear_rank for m in architecture.matrices)
    picked: dict[Matrix, None] = {}
    if not names:
        raise WorkloadError("LoRA targets must name at least one module, but none is given.")
    for name in names:
        if not isinstance(name, str):
            raise WorkloadError(f"LoRA targets must be module names, but one is {name!r} ({type(name).__name__}).")
        leaf = name.rpartition(".")[2]
        expert = FUSED_NAMES.get(leaf, leaf) if fused else leaf
        found = [m for m in architecture.matrices if m.block == "expert" and m.name == expert] if fused else []
        found += [m for m in architecture.matrices if m.name == leaf and m not in found and not _shadowed(m, fused)]
        if not found:
            choices = (*sorted(known), *TARGETS)
            near = difflib.get_close_matches(leaf, choices, n=3, cutoff=0.3) or choices
            raise WorkloadError(
                f"The model {architecture.name} has no module {name!r} for LoRA; near it are {', '.join(near)}."
            )
        picked.update(dict.fromkeys(found))
    return tuple(picked)


def _shadowed(matrix: Matrix, fused: bool) -> bool:
    """Whether PEFT turns this name into the fused experts and so passes the matrix by."""
    return fused and matrix.linear and not matrix.all_linear_rank and matrix.block in ("mlp", "shared_expert")


def adapter_parameters(architecture: Architecture, lora: LoRA, method: str = "lora") -> Quantity:
    """Trained parameters of the adapters: the sum of r (in + out) over the targets, for each expert where experts are targets
    (Hu et al. 2021, arXiv 2106.09685, section 4.1); DoRA adds one magnitude vector of `out` per target (Liu et al. 2024, arXiv
    2402.09353, section 4). Raises WorkloadError for a rank below 1 or an unknown module."""
    if lora.rank < 1:
        raise WorkloadError(f"LoRA rank must be at least 1, but was given {lora.rank}.")
    total = 0
    for matrix in adapted_matrices(architecture, lora.targets):
        if matrix.tied:
            continue
        rank = lora.rank * max(matrix.all_linear_rank, 1)
        each = rank * (matrix.in_features + matrix.out_features) + (matrix.out_features if method == "dora" else 0)
        total += each * matrix.layers * matrix.copies
    return Q(total, unit("parameter"))


def trainable_parameters(architecture: Architecture, training: Training) -> Quantity:
    """All parameters in full training, else the adapters'."""
    if training.method == "full" or training.lora is None:
        return architecture.parameters_total
    return adapter_parameters(architecture, training.lora, training.method)


def _adapter_active(architecture: Architecture, training: Training) -> Quantity:
    """Adapter parameters a token is multiplied with (0 in full training)."""
    if training.method == "full" or training.lora is None:
        return Q(0, unit("parameter"))
    total = 0
    for matrix in adapted_matrices(architecture, training.lora.targets):
        rank = training.lora.rank * max(matrix.all_linear_rank, 1)
        total += rank * (matrix.in_features + matrix.out_features) * matrix.layers * matrix.active
    return Q(total, unit("parameter"))


def attention_flop_per_token(architecture: Architecture, sequence_length: Any, causal: bool) -> Quantity:
    """Forward FLOP per token of attention scores and values, and of the mixers' recurrent states.

    A token meets every key of its sequence (s), or on average half of them under a causal mask; in a layer with window w at
    most w, causally w (1 - w / 2s). One key costs a multiply-add per query and value feature: 2 x heads x (query + value
    width). Summed over layers of width h, forward and backward, that is 12 L h s. A recurrent state costs three multiply-adds
    per number and token (decay, update, read).
    """
    s = np.asarray(sequence_length) if isinstance(sequence_length, np.ndarray) else sequence_length
    window = minimum(s, architecture.sliding_window or s)
    full_keys, window_keys = (s / 2, window * (1 - window / (2 * s))) if causal else (s, window)
    flop = (
        2 * architecture.full_attention_layers * architecture.score_width_full * full_keys
        + 2 * architecture.sliding_window_layers * architecture.score_width_sliding * window_keys
        + 6 * architecture.mixer_layers * architecture.mixer_state_size
    )
    return Q(flop, unit("FLOP / token"))


FLOP_PER_PARAMETER = unit("FLOP / token / parameter")


def model_flop_per_token(
    architecture: Architecture, training: Training, sequence_length: Any, causal: bool = False
) -> Quantity:
    """Forward and backward FLOP per trained token without any recomputation (what MFU divides by).

    causal False counts every key, as published MFU figures do; True counts what a causal kernel computes. Frozen weights have
    no weight gradient: 4 instead of 6 FLOP per parameter, with 6 for the adapters. sequence_length: tokens, scalar or array.
    """
    frozen = training.method != "full"
    matmul = Q(4 if frozen else 6, FLOP_PER_PARAMETER) * architecture.parameters_matmul
    if frozen:
        matmul = matmul + Q(6, FLOP_PER_PARAMETER) * _adapter_active(architecture, training)
    return matmul + 3 * attention_flop_per_token(architecture, sequence_length, causal)


def hardware_flop_per_token(
    architecture: Architecture,
    training: Training,
    sequence_length: Any,
    activation_recomputation: Any = "none",
    causal: bool | None = None,
) -> Quantity:
    """FLOP per trained token that the GPU really does (what HFU divides by): the model's, and what is recomputed.

    Full recomputation runs the layers' forward pass again (2 FLOP per parameter outside the head, and attention); selective
    recomputation only attention (Korthikanti et al. 2022, appendix A). causal None: as the kernel does, so True unless
    attention is eager. sequence_length and activation_recomputation broadcast.
    """
    causal = training.attention != "eager" if causal is None else causal
    attention = attention_flop_per_token(architecture, sequence_length, causal)
    layers = Q(2, FLOP_PER_PARAMETER) * (architecture.parameters_matmul - architecture.parameters_head)
    if training.method != "full":
        layers = layers + Q(2, FLOP_PER_PARAMETER) * _adapter_active(architecture, training)
    full = activation_recomputation == "full"
    selective = activation_recomputation == "selective"
    again = where(full, layers + attention, where(selective, attention, 0 * attention))
    return model_flop_per_token(architecture, training, sequence_length, causal) + again


def _check(sequence_length: Any, activation_recomputation: Any) -> None:
    if np.any(np.asarray(sequence_length) < 1):
        raise WorkloadError(f"WorkloadInputs.sequence_length must be at least 1, but was given {sequence_length!r}.")
    for one in np.unique(activation_recomputation):
        if one not in RECOMPUTATION:
            allowed = ", ".join(RECOMPUTATION)
            raise WorkloadError(
                f"WorkloadInputs.activation_recomputation must be one of {allowed}, but was given {str(one)!r}."
            )


def estimate_workload(inputs: WorkloadInputs) -> WorkloadEstimate:
    """Parameters (total, trainable, active), FLOP per token and FLOP of the whole training, with their trail."""
    architecture, training = inputs.architecture, inputs.training
    trail = Trail()
    other = architecture.other_parameters
    total = trail.step(
        "parameters_total", "matrices + other", "", matrices=architecture.parameters_total - other, other=other
    )  # fmt: skip
    active = trail.step(
        "parameters_active", "total - idle_experts", "", total=total, idle_experts=total - architecture.parameters_active
    )
    trainable = trainable_parameters(architecture, training)
    if training.method != "full" and training.lora is not None:
        rank_one = adapter_parameters(architecture, LoRA(rank=1, targets=training.lora.targets))
        magnitudes = trainable - training.lora.rank * rank_one
        trainable = trail.step(
            "parameters_trainable",
            "rank * sum_in_plus_out + magnitudes",
            "dora-2024" if training.method == "dora" else "hu-2021",
            rank=training.lora.rank,
            sum_in_plus_out=rank_one,
            magnitudes=magnitudes,
        )
    else:
        trainable = trail.step("parameters_trainable", "total", "", total=total)
    frozen = training.method != "full"
    matmul = trail.step(
        "flop_per_token_matmul",
        "per_parameter * parameters_matmul + per_adapter * adapters",
        "kaplan-2020",
        per_parameter=Q(4 if frozen else 6, FLOP_PER_PARAMETER),
        parameters_matmul=architecture.parameters_matmul,
        per_adapter=Q(6, FLOP_PER_PARAMETER),
        adapters=_adapter_active(architecture, training),
    )
    attention = trail.step(
        "flop_per_token_attention",
        "3 * forward",
        "korthikanti-2022",
        forward=attention_flop_per_token(architecture, inputs.sequence_length, False),
    )
    flop = trail.step("flop_per_token", "matmul + attention", "", matmul=matmul, attention=attention)
    hardware = hardware_flop_per_token(architecture, training, inputs.sequence_length, inputs.activation_recomputation)
    computed = model_flop_per_token(architecture, training, inputs.sequence_length, training.attention != "eager")
    hardware = trail.step(
        "hardware_flop_per_token", "model + recomputed", "korthikanti-2022", model=computed, recomputed=hardware - computed
    )
    training_flop = trail.step(
        "training_flop", "flop_per_token * tokens * epochs", "", flop_per_token=flop, tokens=inputs.tokens, epochs=inputs.epochs
    )
    trail.step(
        "training_flop_rule_of_thumb",
        "per_parameter * parameters_active * tokens * epochs",
        "hoffmann-2022",
        per_parameter=Q(6, FLOP_PER_PARAMETER),
        parameters_active=active,
        tokens=inputs.tokens,
        epochs=inputs.epochs,
    )
    return WorkloadEstimate(
        parameters_total=total,
        parameters_trainable=trainable,
        parameters_active=active,
        flop_per_token=flop,
        hardware_flop_per_token=hardware,
        training_flop=training_flop,
        trail=trail.done(),
    )
