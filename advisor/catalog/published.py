"""Models: the integers of a published architecture, with its stated parameter counts."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from advisor.catalog.cards import Confidence
from advisor.catalog.spelling import resolve
from advisor.catalog.tables import facts, names
from advisor.units import Record

FILE = "models.csv"


@dataclass(frozen=True, kw_only=True)
class ModelEntry(Record):
    """One published model: sizes in Hugging Face's own names as plain integers, None where it has no such part.

    parameters_total: all stored parameters, exact. parameters_active: those a token uses, to four significant digits.
    parameters_hf_metadata: what the published files add up to, where known; `count_flag` says why it may differ.
    parameters_formula: the count from the integers of this row alone.
    """

    name: str
    family: str
    hf_id: str
    licence: str
    parameters_total: int
    parameters_active: int | None
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    tie_word_embeddings: bool
    attention_type: str
    gated_mlp: bool
    num_experts: int | None
    num_experts_per_token: int | None
    moe_intermediate_size: int | None
    num_shared_experts: int | None
    shared_expert_intermediate_size: int | None
    num_dense_layers: int | None
    moe_layer_interval: int | None
    mla_q_lora_rank: int | None
    mla_kv_lora_rank: int | None
    mla_qk_nope_head_dim: int | None
    mla_qk_rope_head_dim: int | None
    mla_v_head_dim: int | None
    parameters_hf_metadata: int | None
    parameters_formula: int
    hf_repo_created: str
    count_flag: str
    verified_by: str
    confidence: Confidence
    source: str
    as_of: str
    notes: str


TEXTS = ("family", "hf_id", "licence", "attention_type", "hf_repo_created", "count_flag", "verified_by", "notes")
OWN = ("name", "confidence", "source", "as_of")


@functools.cache
def _model(name: str) -> ModelEntry:
    known = facts(FILE, name)
    values = {}
    for field in ModelEntry.__dataclass_fields__:
        if field in TEXTS:
            values[field] = known[field].value if field in known else ""
        elif field not in OWN:
            values[field] = known[field].read() if field in known else None
    for field in values:
        if field.startswith("parameters_") and values[field] is not None:
            values[field] = round(values[field].m_as("parameter"))
    first = known["parameters_total"]
    return ModelEntry(name=name, **values, confidence=first.confidence, source=first.source, as_of=first.as_of)


@functools.cache
def models() -> tuple[ModelEntry, ...]:
    """All models of the catalog."""
    return tuple(_model(name) for name in names(FILE))


@functools.cache
def _ids() -> dict[str, str]:
    known = {name: facts(FILE, name) for name in names(FILE)}
    return {own["hf_id"].value: name for name, own in known.items() if "hf_id" in own}


@functools.lru_cache(maxsize=1024)
def model(name: str) -> ModelEntry:
    """The model of that name in any usual spelling: "llama-3.1-8b", "Qwen/Qwen2.5-7B-Instruct", "GPT-2".

    Raises CatalogError with the nearest known name when none or more than one is meant.
    """
    if name in _ids():
        return _model(_ids()[name])
    return _model(resolve("models", name, names(FILE), also=_ids()))
