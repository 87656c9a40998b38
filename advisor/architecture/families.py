"""How each model type's decoder layer is built: one `Family` per model type, in the words of its modelling code.

A text in place of true or false is the config key that decides ("attention_bias"); "!no_bias" is its negation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Switch = bool | str


@dataclass(frozen=True)
class Experts:
    """A mixture-of-experts feed-forward layer.

    width: config key of one expert's width. shared: "count" (number of shared experts x width), a config key of the shared
    width, or "". shared_gate: a one-row gate on the shared expert. correction: a stored load-balancing bias per expert.
    """

    width: str = "moe_intermediate_size"
    shared: str = ""
    shared_names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    shared_gate: bool = False
    router: str = "gate"
    router_bias: Switch = False
    bias: Switch = False
    correction: bool = False
    gated: bool = True


@dataclass(frozen=True)
class Family:
    """One decoder layer and what stands around the layers.

    attention: "split" projections, "fused" into the matrix named `fused`, or "latent" (low-rank keys and values).
    norms: norms of the hidden size per layer; qk_norm: norm on queries and keys over a "head" or over "all" heads, perhaps
    only if the flag `qk_norm_if` is set. window_every: of this many layers the last attends in full and the others in a
    window (0: all in a window if the config has one).
    """

    attention: Literal["split", "fused", "latent"] = "split"
    fused: str = ""
    out: str = "o_proj"
    bias: Switch = False
    out_bias: Switch = False
    mlp: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    gated: bool = True
    mlp_bias: Switch = False
    norm: Literal["rmsnorm", "layernorm", "layernorm_weight", "none"] = "rmsnorm"
    norms: int = 2
    final_norm: bool = True
    qk_norm: Literal["", "head", "all"] = ""
    qk_norm_if: str = ""
    qk_norm_bias: bool = False
    embedding: str = "embed_tokens"
    embedding_norm: bool = False
    positions: str = ""
    positions_offset: int = 0
    head: str = "lm_head"
    head_bias: Switch = False
    experts: Experts | None = None
    window_every: int = 0
    sinks: bool = False


LLAMA = Family(bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias")
QWEN2 = Family(bias=True)
QWEN3 = Family(bias="attention_bias", out_bias="attention_bias", qk_norm="head")
DEEPSEEK = Family(attention="latent", bias="attention_bias", experts=Experts(shared="count"))
GEMMA2 = Family(bias="attention_bias", out_bias="attention_bias", norms=4, window_every=2)
GPT_NEO = Family(
    out="out_proj", out_bias=True, mlp=("c_fc", "c_proj"), gated=False, mlp_bias=True, norm="layernorm",
    embedding="wte", positions="max_position_embeddings",
)  # fmt: skip
BLOOM = Family(
    attention="fused", fused="query_key_value", out="dense", bias=True, out_bias=True, gated=False, mlp_bias=True,
    mlp=("dense_h_to_4h", "dense_4h_to_h"), norm="layernorm", embedding="word_embeddings", embedding_norm=True,
)  # fmt: skip
GPT2 = replace(GPT_NEO, attention="fused", fused="c_attn", out="c_proj", bias=True)
GPTJ = Family(out="out_proj", mlp=("fc_in", "fc_out"), gated=False, mlp_bias=True, norm="layernorm", norms=1,
              embedding="wte", head_bias=True)  # fmt: skip
OPT = Family(out="out_proj", bias="enable_bias", out_bias="enable_bias", mlp=("fc1", "fc2"), gated=False,
             mlp_bias="enable_bias", norm="layernorm", positions="max_position_embeddings", positions_offset=2)  # fmt: skip
OLMO2 = Family(bias="attention_bias", out_bias="attention_bias", qk_norm="all")

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "mistral": Family(),
    "mixtral": Family(experts=Experts(width="intermediate_size")),
    "qwen2": QWEN2,
    "qwen2_moe": Family(bias="qkv_bias", experts=Experts(shared="shared_expert_intermediate_size", shared_gate=True)),
    "qwen3": QWEN3,
    "qwen3_moe": replace(QWEN3, experts=Experts()),
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK,
    "gemma": LLAMA,
    "gemma2": GEMMA2,
    "gemma3_text": replace(GEMMA2, qk_norm="head", window_every=6),
    "gpt2": GPT2,
    "gpt_neo": GPT_NEO,
    "gpt_bigcode": GPT2,
    "gptj": GPTJ,
    "codegen": replace(GPTJ, attention="fused", fused="qkv_proj"),
    "gpt_neox": replace(BLOOM, bias="attention_bias", out_bias="attention_bias", embedding="embed_in", embedding_norm=False),
    "bloom": BLOOM,
    "opt": OPT,
    "phi": Family(bias=True, out="dense", out_bias=True, mlp=("fc1", "fc2"), gated=False, mlp_bias=True, norm="layernorm",
                  norms=1, head_bias=True, qk_norm="head", qk_norm_if="qk_layernorm", qk_norm_bias=True),  # fmt: skip
    "phi3": Family(attention="fused", fused="qkv_proj", mlp=("gate_up_proj", "down_proj")),
    "starcoder2": Family(bias="use_bias", out_bias="use_bias", mlp=("c_fc", "c_proj"), gated=False, mlp_bias="use_bias",
                         norm="layernorm"),  # fmt: skip
    "olmo": Family(bias="attention_bias", out_bias="attention_bias", norm="none"),
    "olmo2": OLMO2,
    "olmo3": replace(OLMO2, window_every=4),
    "olmoe": replace(OLMO2, experts=Experts(width="intermediate_size")),
    "gpt_oss": Family(bias="attention_bias", out_bias="attention_bias", window_every=2, sinks=True,
                      experts=Experts(width="intermediate_size", router="router", router_bias=True, bias=True)),  # fmt: skip
}  # fmt: skip
