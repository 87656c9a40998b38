"""Hugging Face config.json: what model it is and how many parameters, with what the file leaves to its class's defaults.

The architecture is built by `advisor.architecture`; this module says what the file itself states, and what it announces but a
count leaves out.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

from advisor import catalog
from advisor.architecture import Architecture, ArchitectureError, architecture_from_config
from advisor.architecture.config import ALIASES
from advisor.architecture.read import NESTED, OTHERS
from advisor.evidence.documents import Document, document, hostile
from advisor.evidence.hf_config_checks import assumed, check
from advisor.evidence.parts import problem
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report
from advisor.evidence.values import as_integer, as_switch, as_word, document_problems
from advisor.units import Kind, Q, Quantity, unit

SizeGiB = Annotated[Quantity, Kind("GiB")]

NAMING = ("model_type", "architectures", "transformers_version", "torch_dtype", "auto_map", "_name_or_path")
SHAPE = tuple(alias for key in ALIASES for alias in ALIASES[key] if key != "hidden_act" and alias not in ("num_heads",))
#: What a damaged file may raise below; a reading with a problem is given instead.
DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError, OverflowError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class HfConfigReading(Reading):
    """One config.json. Counts are plain integers; of a multimodal file they are those of its text model.

    family: the kind of model in a few words; counted_as: the model type whose structure was counted; model_type: the file's.
    params_text_*: given where the text model is nested. experts, active_experts: routed experts in a layer and per token.
    expert_intermediate: width of one expert. dense_intermediate_unused: an MLP width in the file that no layer uses.
    pattern_counts: layers by letter of a hybrid pattern. matches, published: models of the catalog with these very sizes, and
    their published parameter count. config: the file itself.
    """

    family: str | None = None
    counted_as: str | None = None
    model_type: str | None = None
    model: str | None = None
    architecture: str | None = None
    layers: int | None = None
    hidden: int | None = None
    q_heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    intermediate: int | None = None
    vocab: int | None = None
    max_positions: int | None = None
    tied: bool | None = None
    dtype: str | None = None
    params_total: int | None = None
    params_active: int | None = None
    params_text_total: int | None = None
    params_text_active: int | None = None
    weights_bf16: SizeGiB | None = None
    experts: int | None = None
    active_experts: int | None = None
    shared_expert: bool | None = None
    shared_experts: int | None = None
    shared_intermediate: int | None = None
    moe_layers: int | None = None
    dense_layers: int | None = None
    moe_intermediate: int | None = None
    expert_intermediate: int | None = None
    dense_intermediate: int | None = None
    dense_intermediate_unused: int | None = None
    sliding_window: int | None = None
    sliding_layers: int | None = None
    full_layers: int | None = None
    linear_layers: int | None = None
    mamba_layers: int | None = None
    attention_layers: int | None = None
    layer_type_counts: dict | None = None
    pattern_counts: dict | None = None
    global_head_dim: int | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    mtp_layers: int | None = None
    quantization: str | None = None
    quantization_bits: int | None = None
    nested: bool = False
    multimodal: bool = False
    published: int | None = None
    matches: tuple = ()
    config: dict | None = None


def recognise(text: str) -> float:
    """How sure it is that `text` is a config.json."""
    if hostile(text):
        return 0.0
    found = _document(text)
    if found is None:
        return 0.0
    data = found.data
    inner = _inner(data)
    shape = sum(key in inner for key in SHAPE)
    naming = sum(key in data for key in NAMING)
    if "zero_optimization" in data or "train_micro_batch_size_per_gpu" in data:
        return 0.0
    if shape >= 2 and naming >= 1:
        return 0.97
    if shape >= 2 or (naming >= 2) or inner is not data:
        return 0.85
    return 0.5 if shape and naming else 0.0


def read(text: str) -> Report:
    """Read one config.json. Raises EvidenceError where there is no JSON object in the text."""
    found = _document(text)
    if found is None:
        raise EvidenceError("The text holds no JSON object that could be a model's config.json.")
    problems: list[Problem] = [*document_problems(found)]
    architecture = None
    if found.cut:
        problems.append(
            problem(
                "not_counted",
                "warning",
                "Parameters were not counted from a part of a config: what is missing may change them.",
                "配置不完整，未计算参数量：缺失的键可能改变结果。",
            )
        )
    else:
        try:
            architecture = architecture_from_config(found.data)
        except DAMAGE as error:
            sentence = str(error) if isinstance(error, ArchitectureError) else "The config holds values of the wrong kind."
            problems.append(problem("not_a_model", "error", sentence, f"无法据此构建模型结构：{sentence}"))
    reading = _stated(found.data)
    if architecture is not None:
        try:
            reading = _counted(reading, found.data, architecture)
        except DAMAGE:
            problems.append(
                problem("not_counted", "error", "The config's values contradict each other.", "配置中的值相互矛盾。")
            )
        problems += [assumed(sentence) for sentence in architecture.assumptions]
    problems += check(reading)
    return Report(kind="hf_config", reading=HfConfigReading(**reading), problems=tuple(problems), truncated=found.cut)


READER = Reader("hf_config", recognise, read)


def _document(text: str) -> Document | None:
    if "{" not in text[:200_000] and '":' not in text[:200_000]:
        return None
    found = document(text)
    return found if found is not None and found.form == "json" else None


def _inner(data: dict[str, Any]) -> dict[str, Any]:
    """The innermost text model's own keys."""
    for _ in range(3):
        nested = next((data[key] for key in NESTED if isinstance(data.get(key), dict) and data[key]), None)
        if nested is None:
            break
        data = nested
    return data


def _alias(data: dict[str, Any], key: str) -> Any:
    return next((data[name] for name in ALIASES.get(key, (key,)) if data.get(name) is not None), None)


def _whole(data: dict[str, Any], key: str) -> int | None:
    value = as_integer(_alias(data, key))
    return value if isinstance(value, int) and 0 <= value < 10**12 else None


def _count(*values: Any) -> int | None:
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)


def _stated(data: dict[str, Any]) -> dict[str, Any]:
    """What the file itself says, without any default."""
    inner = _inner(data)
    names = data.get("architectures")
    tied = as_switch(data.get("tie_word_embeddings", inner.get("tie_word_embeddings")))
    quantization = next(
        (one["quantization_config"] for one in (data, inner) if isinstance(one.get("quantization_config"), dict)), {}
    )
    layer_types = inner.get("layer_types") or inner.get("layers_block_type")
    pattern = inner.get("hybrid_override_pattern")
    kinds = dict(Counter(map(str, layer_types))) if isinstance(layer_types, list) and len(layer_types) < 10_000 else None
    return {
        "family": as_word(inner.get("model_type")) or as_word(data.get("model_type")),
        "model_type": as_word(data.get("model_type")),
        "model": as_word(data.get("_name_or_path")),
        "architecture": as_word(names[0]) if isinstance(names, list) and names else None,
        "layers": _whole(inner, "num_hidden_layers"),
        "hidden": _whole(inner, "hidden_size"),
        "q_heads": _whole(inner, "num_attention_heads"),
        "kv_heads": _whole(inner, "num_key_value_heads"),
        "head_dim": _whole(inner, "head_dim"),
        "intermediate": _whole(inner, "intermediate_size"),
        "vocab": _whole(inner, "vocab_size") or _whole(data, "vocab_size"),
        "max_positions": _whole(inner, "max_position_embeddings"),
        "tied": tied if isinstance(tied, bool) else None,
        "dtype": as_word(inner.get("torch_dtype") or inner.get("dtype") or data.get("torch_dtype") or data.get("dtype")),
        "experts": _whole(inner, "num_experts") or None,
        "active_experts": _whole(inner, "num_experts_per_tok"),
        "shared_experts": _whole(inner, "num_shared_experts"),
        "moe_intermediate": _whole(inner, "moe_intermediate_size"),
        "sliding_window": _whole(inner, "sliding_window") or None,
        "layer_type_counts": kinds,
        "pattern_counts": dict(Counter(pattern.replace("|", "")))
        if isinstance(pattern, str) and len(pattern) < 10_000
        else None,
        "global_head_dim": _whole(inner, "global_head_dim"),
        "q_lora_rank": _whole(inner, "q_lora_rank"),
        "kv_lora_rank": _whole(inner, "kv_lora_rank"),
        "qk_nope_head_dim": _whole(inner, "qk_nope_head_dim"),
        "qk_rope_head_dim": _whole(inner, "qk_rope_head_dim"),
        "v_head_dim": _whole(inner, "v_head_dim"),
        "mtp_layers": _count(inner.get("num_nextn_predict_layers"), inner.get("num_mtp_modules")),
        "quantization": _quantization(quantization),
        "quantization_bits": _bits(quantization),
        "nested": inner is not data,
        "multimodal": any(isinstance(data.get(key), dict) for key in OTHERS) or "ConditionalGeneration" in str(names),
        "config": data,
    }


def _quantization(config: dict[str, Any]) -> str | None:
    if not config:
        return None
    method = as_word(config.get("quant_method")) or "unknown"
    detail = as_word(config.get("format")) or as_word(config.get("fmt")) or as_word(config.get("bnb_4bit_quant_type"))
    return f"{method} ({detail})" if detail else method


def _bits(config: dict[str, Any]) -> int | None:
    bits = config.get("bits")
    groups = config.get("config_groups")
    if isinstance(groups, dict):
        for one in groups.values():
            weights = one.get("weights") if isinstance(one, dict) else None
            bits = weights.get("num_bits") if isinstance(weights, dict) else bits
    if config.get("load_in_4bit") is True or config.get("quant_method") == "mxfp4":
        bits = 4
    elif config.get("load_in_8bit") is True or config.get("quant_method") in ("fp8", "fbgemm_fp8"):
        bits = 8
    return bits if isinstance(bits, int) and 0 < bits <= 32 else None


def _counted(stated: dict[str, Any], data: dict[str, Any], built: Architecture) -> dict[str, Any]:
    """With what the class's defaults and the architecture add."""
    inner = _inner(data)
    total = round(built.parameters_total.m_as("parameter"))
    active = round(built.parameters_active.m_as("parameter"))
    moe = built.num_experts > 0
    hybrid = built.mixer_layers > 0
    matches = _matches(built, total)
    published = {entry.parameters_total for entry in matches}
    result = {
        **stated,
        "family": _family(built),
        "counted_as": built.model_type,
        "layers": built.num_layers,
        "hidden": built.hidden_size,
        "q_heads": built.num_attention_heads,
        "kv_heads": built.num_key_value_heads,
        "head_dim": stated["head_dim"] or built.head_dim,
        "intermediate": built.intermediate_size,
        "vocab": built.vocab_size,
        "max_positions": built.max_position_embeddings,
        "tied": built.tie_word_embeddings,
        "params_total": total,
        "params_active": active,
        "weights_bf16": Q(2.0 * total, unit("B")).to("GiB"),
        "sliding_window": built.sliding_window,
        "sliding_layers": built.sliding_window_layers or None,
        "full_layers": built.full_attention_layers,
        "attention_layers": built.full_attention_layers + built.sliding_window_layers,
        "published": published.pop() if len(published) == 1 else None,
        "matches": tuple(entry.name for entry in matches),
    }
    if stated["nested"]:
        result |= {"params_text_total": total, "params_text_active": active}
    if hybrid:
        counts = stated["pattern_counts"] or {}
        kinds = stated["layer_type_counts"] or {}
        mamba = counts.get("M") or kinds.get("mamba") or kinds.get("mamba2")
        result |= {"mamba_layers": mamba, "linear_layers": kinds.get("linear_attention", None if mamba else built.mixer_layers)}
    if moe:
        one_kind = stated["pattern_counts"] is not None
        result |= {
            "experts": built.num_experts,
            "active_experts": built.num_experts_per_token,
            "shared_expert": built.shared_expert_intermediate_size > 0,
            "shared_intermediate": built.shared_expert_intermediate_size or None,
            "moe_layers": built.moe_layers,
            "dense_layers": None if one_kind else built.num_layers - built.moe_layers,
            "moe_intermediate": built.moe_intermediate_size,
            "expert_intermediate": built.moe_intermediate_size,
        }
        wide = _whole(inner, "intermediate_size_mlp") or (
            built.intermediate_size if built.intermediate_size != built.moe_intermediate_size else None
        )
        if wide is not None and not one_kind:
            # Gemma 4 has its dense MLP beside the experts in every layer: there the width is in use.
            beside = built.shared_expert_intermediate_size == wide
            used = built.moe_layers < built.num_layers or beside
            result["dense_intermediate" if used else "dense_intermediate_unused"] = wide
    return result


def _family(built: Architecture) -> str:
    """The kind of model: "llama dense GQA", "mixtral MoE". Attention is named where a type comes with and without groups."""
    name = built.model_type
    if built.num_experts:
        return name if "moe" in name else f"{name} MoE"
    if not built.gated_mlp or built.norm != "rmsnorm" or built.mixer_layers:
        return name
    heads, groups = built.num_attention_heads, built.num_key_value_heads
    kind = "MLA" if built.kv_lora_rank else "MHA" if groups == heads else "MQA" if groups == 1 else "GQA"
    return f"{name} dense {kind}"


@functools.lru_cache(maxsize=1)
def _entries() -> tuple[Any, ...]:
    return catalog.models()


def _matches(built: Architecture, total: int) -> list[Any]:
    """Models of the catalog with the same sizes and, to a thousandth, the same count."""
    return [
        entry
        for entry in _entries()
        if entry.num_layers == built.num_layers
        and entry.hidden_size == built.hidden_size
        and entry.vocab_size == built.vocab_size
        and entry.num_attention_heads == built.num_attention_heads
        and entry.parameters_total
        and abs(entry.parameters_total - total) <= 1e-3 * total
    ][:10]
