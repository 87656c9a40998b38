"""`architecture_from_config`: find the text model in a configuration file, name its family, and build it."""

from __future__ import annotations

from typing import Any

from advisor.architecture.build import build_common
from advisor.architecture.config import ALIASES, Config, model_types
from advisor.architecture.decoder import finish, start
from advisor.architecture.families import FAMILIES, LLAMA, SAME, Experts, Family
from advisor.architecture.hybrids import HYBRIDS
from advisor.architecture.irregular import IRREGULAR
from advisor.architecture.records import Architecture, ArchitectureError
from advisor.architecture.variants import VARIANTS

#: Keys under which multimodal models nest their text model, and keys of the parts that are then left out.
NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "llm", "text_model_config")
OTHERS = ("vision_config", "audio_config", "visual", "talker_config", "token2wav_config", "vit_config", "speech_config")


def architecture_from_config(config: dict[str, Any], name: str = "") -> Architecture:
    """The architecture a Hugging Face `config.json` describes, exact to the last parameter for known model types.

    A nested text model is the one that is sized; `assumptions` says what was left out, assumed or not known. Raises
    ArchitectureError (a ValueError, one sentence) when the file is not an object, lacks hidden_size or the number of layers,
    or holds a value no model can have.
    """
    if not isinstance(config, dict):
        raise ArchitectureError(f"A model's config must be a JSON object, but is {type(config).__name__}.")
    assumptions: list[str] = []
    data, nested = _text_model(dict(config), assumptions)
    model_type, family, known = _family(data, assumptions)
    reader = Config(_renamed(data, model_type), model_type, name)
    for key in ("hidden_size", "num_hidden_layers"):
        if reader.given(key) is None:
            if nested and known and reader.value(key) is not None:
                assumptions.append(f"{key} is not in the file; the default of {model_type}, {reader.value(key)}, was taken.")
            else:
                raise ArchitectureError(f"The model's config needs {key!r} (a whole number), but has none.")
    if known and reader.given("vocab_size") is None and not nested:
        assumptions.append(
            f"vocab_size is not in the file; the default of {model_type}, {reader.value('vocab_size')}, was taken."
        )
    decoder = start(reader, family)
    builder = HYBRIDS.get(model_type) or VARIANTS.get(model_type) or IRREGULAR.get(model_type) or build_common
    builder(decoder)
    _mention_extras(reader, assumptions)
    return finish(decoder, tuple(assumptions))


def _text_model(config: dict[str, Any], assumptions: list[str]) -> tuple[dict[str, Any], bool]:
    """The innermost text configuration, and whether it was nested."""
    data, nested = config, False
    for _ in range(3):
        inner = next((data[key] for key in NESTED if isinstance(data.get(key), dict) and data[key]), None)
        if inner is None:
            break
        if not nested:
            left = [key for key in OTHERS if isinstance(config.get(key), dict)]
            kind = config.get("model_type") or "multimodal"
            what = f" ({', '.join(left)})" if left else ""
            assumptions.append(f"The text model of this {kind} model is sized; its other parts{what} are left out.")
        # Whether the head is tied is the outer model's to say; the vocabulary may be said there only.
        outer = {"vocab_size": data["vocab_size"]} if data.get("vocab_size") and not inner.get("vocab_size") else {}
        tied = {"tie_word_embeddings": data["tie_word_embeddings"]} if data.get("tie_word_embeddings") is not None else {}
        data, nested = {**outer, **inner, **tied}, True
    left = [key for key in OTHERS if isinstance(config.get(key), dict)]
    if left and not nested:
        assumptions.append(f"The text model is sized; the other parts of the file ({', '.join(left)}) are left out.")
    if any(isinstance(one.get("quantization_config"), dict) for one in (config, data)):
        assumptions.append("The file's weights are stored quantized; parameters are counted as before quantization.")
    return data, nested


def _family(data: dict[str, Any], assumptions: list[str]) -> tuple[str, Family, bool]:
    """Model type, its family, and whether it is known."""
    given = data.get("model_type")
    model_type = given if isinstance(given, str) else ""
    name = SAME.get(model_type.lower(), model_type)
    if name not in FAMILIES:
        by_class = _from_class(data)
        if by_class in FAMILIES and (not model_type or name not in model_types()):
            if model_type:
                assumptions.append(f"The model type {model_type!r} is not known; its class says {by_class}, which was taken.")
            name = by_class
    if name == "chatglm" and "inner_hidden_size" in data:
        name = "chatglm_6b"
    if name in FAMILIES:
        return name, FAMILIES[name], True
    shown = repr(model_type) if model_type else "(none given)"
    return name or "unknown", _guess(data, shown, assumptions), False


def _from_class(data: dict[str, Any]) -> str:
    names = data.get("architectures")
    stem = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""
    for end in ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "Model"):
        stem = stem.removesuffix(end)
    plain = {one.replace("_", "").replace("-", ""): one for one in (*SAME, *FAMILIES)}
    name = plain.get(stem.lower(), "")
    return SAME.get(name, name)


def _guess(data: dict[str, Any], shown: str, assumptions: list[str]) -> Family:
    """A Llama-like family for an unknown model type, from the names its keys have."""
    reader = Config(data, "")
    assumed = ["RMSNorm before attention and MLP"]
    family = LLAMA
    act = reader.value("hidden_act", "silu")
    if isinstance(act, str) and act in ("relu", "relu2", "gelu", "gelu_new", "gelu_fast", "quick_gelu"):
        family = Family(bias="attention_bias", out_bias="attention_bias", mlp=("up_proj", "down_proj"), gated=False)
        assumed.append(f"a plain two-matrix MLP (activation {act})")
    else:
        assumed.append("a gated three-matrix MLP")
    changes: dict[str, Any] = {}
    if reader.value("kv_lora_rank") and reader.value("qk_nope_head_dim"):
        changes["attention"] = "latent"
        assumed.append("multi-head latent attention as in DeepSeek-V3")
    if reader.value("qkv_bias") is not None:
        changes["bias"] = "qkv_bias"
    if reader.value("use_qk_norm") or reader.value("qk_norm") is True or reader.value("qk_layernorm"):
        changes["qk_norm"] = "head"
        assumed.append("a norm on queries and keys")
    if reader.value("num_experts"):
        wide = any(reader.data.get(key) is not None for key in ALIASES["moe_intermediate_size"])
        shared = "count" if reader.value("num_shared_experts") else ""
        if reader.value("shared_expert_intermediate_size"):
            shared = "shared_expert_intermediate_size"
        changes["experts"] = Experts(width="moe_intermediate_size" if wide else "intermediate_size", shared=shared)
        assumed.append("gated experts behind a router without bias")
    if reader.value("tie_word_embeddings") is None:
        assumed.append("an output head of its own")
    hidden = reader.given("hidden_size")
    if isinstance(hidden, int) and hidden > 0:
        for key, value in (
            ("vocab_size", 32_000),
            ("num_attention_heads", max(hidden // 128, 1)),
            ("intermediate_size", 4 * hidden),
        ):
            if reader.given(key) is None:
                assumed.append(f"{key} {value}")
                data[key] = value
    assumptions.append(
        f"The model type {shown} is not known: it was sized as a Llama-like decoder with {', '.join(assumed)}; "
        "biases, norms and any special blocks may differ."
    )
    return Family(**{**family.__dict__, **changes})


def _renamed(data: dict[str, Any], model_type: str) -> dict[str, Any]:
    """The configuration with keys that a family means otherwise put right."""
    data = dict(data)
    if model_type == "mpt":
        data.pop("intermediate_size", None)
        own = data.get("attn_config")
        if isinstance(own, dict) and own.get("kv_n_heads"):
            data["num_key_value_heads"] = own["kv_n_heads"]
    elif model_type == "dbrx" and isinstance(data.get("attn_config"), dict):
        data["num_key_value_heads"] = data["attn_config"].get("kv_n_heads", data.get("num_key_value_heads"))
    elif model_type == "chatglm" and "inner_hidden_size" not in data:
        if not data.get("multi_query_attention"):
            data.pop("multi_query_group_num", None)
        data.setdefault("tie_word_embeddings", False)
    elif model_type == "qwen" and isinstance(data.get("intermediate_size"), int):
        data["intermediate_size"] //= 2
    elif model_type == "falcon" and "n_head_kv" not in data and "num_kv_heads" not in data and "multi_query" not in data:
        heads = data.get("n_head", data.get("num_attention_heads"))
        if "model_type" not in data and isinstance(heads, int) and heads % 8 == 0 and heads >= 64:
            data.update(new_decoder_architecture=True, num_kv_heads=8)
    elif model_type == "ernie4_5_moe" and isinstance(data.get("moe_intermediate_size"), list):
        # The first width is the text experts', the second the vision experts'.
        data["moe_intermediate_size"] = next(iter(data["moe_intermediate_size"]), None)
        if isinstance(data.get("moe_num_experts"), list):
            data["moe_num_experts"] = next(iter(data["moe_num_experts"]), None)
    elif model_type == "openelm":
        for key, lists in (("num_attention_heads", "num_query_heads"), ("num_key_value_heads", "num_kv_heads")):
            numbers = (
                [one for one in data.get(lists) or () if isinstance(one, int)] if isinstance(data.get(lists), list) else []
            )
            data[key] = max(numbers, default=1)
    elif model_type == "nemotron_h":
        listed = data.get("hybrid_override_pattern") or data.get("layers_block_type") or data.get("layer_types")
        if isinstance(listed, (str, list)):
            data["num_hidden_layers"] = len([one for one in listed if one != "|"])
    elif model_type == "deepseek_v4" and "q_lora_rank" in data:
        data.pop("kv_lora_rank", None)
    return data


def _mention_extras(reader: Config, assumptions: list[str]) -> None:
    """Say what a file announces and the count leaves out."""
    extra = reader.data.get("num_nextn_predict_layers") or reader.data.get("num_mtp_modules")
    if isinstance(extra, int) and extra > 0:
        assumptions.append("The multi-token-prediction layers that the file announces are left out, as transformers does.")
