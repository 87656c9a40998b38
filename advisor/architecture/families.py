"""How each model type's decoder layer is built: one `Family` per model type, in the words of its modelling code.

A text in place of true or false is the config key that decides ("attention_bias"). Model types whose layers do not fit the
common shape have a builder of their own in `hybrids` and `variants`; their family here still names norms, biases and experts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Switch = bool | str


@dataclass(frozen=True)
class Experts:
    """A mixture-of-experts feed-forward layer.

    width: config key of one expert's width. shared: "count" (number of shared experts x width), "dense" (the dense layers'
    width), a config key of the shared width, or "". shared_gate: a one-row gate on the shared expert. correction: a stored
    load-balancing bias per expert. router_linear: the router is an `nn.Linear` (in most it is a bare parameter).
    """

    width: str = "moe_intermediate_size"
    shared: str = ""
    shared_names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    shared_gate: bool = False
    router: str = "gate"
    router_bias: Switch = False
    router_linear: bool = False
    bias: Switch = False
    correction: bool = False
    gated: bool = True


@dataclass(frozen=True)
class Family:
    """One decoder layer and what stands around the layers.

    attention: "split" projections, "fused" into the matrix named `fused`, or "latent" (low-rank keys and values).
    norms: norms of the hidden size per layer, or `norms_if` = (flag, their number when it is set). qk_norm: norm on queries
    and keys over a "head" or over "all" heads, perhaps only if the flag `qk_norm_if` is set. window_every: of this many layers
    the last attends in full and the others in a window (0: all in a window if the config has one). gate: the query projection
    also makes an output gate of its own width.
    """

    attention: Literal["split", "fused", "latent"] = "split"
    fused: str = ""
    out: str = "o_proj"
    bias: Switch = False
    out_bias: Switch = False
    gate: bool = False
    mlp: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    gated: bool = True
    mlp_bias: Switch = False
    norm: Literal["rmsnorm", "layernorm", "layernorm_weight", "none"] = "rmsnorm"
    norms: int = 2
    norms_if: tuple[str, int] = ("", 0)
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


PLAIN = Family()
BIASED = Family(bias="attention_bias", out_bias="attention_bias")
LLAMA = replace(BIASED, mlp_bias="mlp_bias")
QWEN2 = Family(bias=True)
QWEN3 = replace(BIASED, qk_norm="head")
GLM = Family(bias="attention_bias", mlp=("gate_up_proj", "down_proj"))
LATENT = Family(attention="latent", bias="attention_bias")
DEEPSEEK = replace(LATENT, experts=Experts(shared="count"))
GEMMA2 = replace(BIASED, norms=4, window_every=2)
OLMO2 = replace(BIASED, qk_norm="all")
FC = {"mlp": ("fc1", "fc2"), "gated": False, "norm": "layernorm"}
GPT_NEO = Family(
    out="out_proj",
    out_bias=True,
    mlp=("c_fc", "c_proj"),
    gated=False,
    mlp_bias=True,
    norm="layernorm",
    embedding="wte",
    positions="max_position_embeddings",
)
GPT2 = replace(GPT_NEO, attention="fused", fused="c_attn", out="c_proj", bias=True)
GPTJ = replace(GPT_NEO, out_bias=False, mlp=("fc_in", "fc_out"), norms=1, positions="", head_bias=True)
BLOOM = Family(
    attention="fused",
    fused="query_key_value",
    out="dense",
    bias=True,
    out_bias=True,
    mlp=("dense_h_to_4h", "dense_4h_to_h"),
    gated=False,
    mlp_bias=True,
    norm="layernorm",
    embedding="word_embeddings",
    embedding_norm=True,
)
NEOX = replace(BLOOM, bias="attention_bias", out_bias="attention_bias", embedding="embed_in", embedding_norm=False)
OPT = Family(
    out="out_proj",
    bias="enable_bias",
    out_bias="enable_bias",
    mlp_bias="enable_bias",
    positions="max_position_embeddings",
    positions_offset=2,
    **FC,
)
PHI = Family(
    bias=True,
    out="dense",
    out_bias=True,
    mlp_bias=True,
    norms=1,
    head_bias=True,
    qk_norm="head",
    qk_norm_if="qk_layernorm",
    qk_norm_bias=True,
    **FC,
)
COHERE = replace(BIASED, norm="layernorm_weight", norms=1, qk_norm="all", qk_norm_if="use_qk_norm")
STARCODER2 = replace(GPT_NEO, out="o_proj", bias="use_bias", out_bias="use_bias", mlp_bias="use_bias",
                     embedding="embed_tokens", positions="")  # fmt: skip
SQUARED = {"mlp": ("up_proj", "down_proj"), "gated": False}
ERNIE = Family(bias="use_bias", out_bias="use_bias", mlp_bias="use_bias")
FALCON = Family(attention="fused", fused="query_key_value", out="dense", bias="bias", out_bias="bias", norm="layernorm",
                mlp=("dense_h_to_4h", "dense_4h_to_h"), gated=False, mlp_bias="bias", embedding="word_embeddings")  # fmt: skip
MPT = Family(attention="fused", fused="Wqkv", out="out_proj", norm="layernorm_weight", embedding="wte", **SQUARED)
CHATGLM = Family(attention="fused", fused="query_key_value", out="dense", bias="add_qkv_bias", out_bias="add_bias_linear",
                 mlp=("dense_h_to_4h", "dense_4h_to_h"), mlp_bias="add_bias_linear", embedding="word_embeddings",
                 head="output_layer")  # fmt: skip
BAICHUAN = Family(attention="fused", fused="W_pack")
MOE_ROUTER = Experts(width="intermediate_size", router="router")
BAILING = Family(attention="fused", fused="query_key_value", out="dense", bias="use_qkv_bias", out_bias="use_bias",
                 embedding="word_embeddings", experts=Experts(shared="count"))  # fmt: skip
SHARED = Experts(shared="shared_expert_intermediate_size", shared_gate=True)
DELTA_NET = replace(QWEN3, gate=True)

FAMILIES: dict[str, Family] = {
    # Llama's layer, with or without biases
    "llama": LLAMA,
    "mistral": PLAIN,
    "ministral": PLAIN,
    "ministral3": PLAIN,
    "granite": LLAMA,
    "smollm3": LLAMA,
    "iquestcoder": LLAMA,
    "helium": replace(LLAMA, out_bias=False),
    "seed_oss": replace(LLAMA, out_bias="attention_out_bias"),
    "exaone": LLAMA,
    "cwm": replace(LLAMA, bias=False, out_bias=False),
    "ernie4_5": ERNIE,
    "internlm": Family(bias="bias", out_bias="bias"),
    "internlm2": Family(attention="fused", fused="wqkv", out="wo", bias="bias", out_bias="bias", mlp=("w1", "w3", "w2")),
    "internlm3": Family(bias="qkv_bias", out_bias="bias", mlp_bias="bias"),
    "baichuan": BAICHUAN,
    "minicpm": LLAMA,
    "xverse": PLAIN,
    "yi": PLAIN,
    "orion": replace(PLAIN, norm="layernorm"),
    "aquila": PLAIN,
    "mimo": QWEN2,
    "qwen": Family(attention="fused", fused="c_attn", out="c_proj", bias=True, mlp=("w1", "w2", "c_proj"), embedding="wte"),
    "qwen2": QWEN2,
    "granite_swa": replace(LLAMA, sinks=True),
    "hyperclovax": replace(LLAMA, norms_if=("use_post_norm", 4)),
    "diffllama": BIASED,
    # norms elsewhere
    "qwen3": QWEN3,
    "gemma": BIASED,
    "gemma2": GEMMA2,
    "vaultgemma": replace(GEMMA2, norms=2),
    "gemma3_text": replace(GEMMA2, qk_norm="head", window_every=6),
    "glm": GLM,
    "glm4": replace(GLM, norms=4),
    "glm4v_text": replace(GLM, bias=True, norms=4),
    "olmo": replace(BIASED, norm="none"),
    "olmo2": OLMO2,
    "olmo3": replace(OLMO2, window_every=4),
    "exaone4": replace(PLAIN, qk_norm="head", window_every=4),
    "stablelm": Family(bias="use_qkv_bias", norm="layernorm", norms_if=("use_parallel_residual", 1), qk_norm="all",
                       qk_norm_if="qk_layernorm"),
    "cohere": COHERE,
    "cohere2": replace(COHERE, qk_norm="", qk_norm_if="", window_every=4),
    "hunyuan_v1_dense": replace(LLAMA, mlp_bias=False, qk_norm="head"),
    "phi3": Family(attention="fused", fused="qkv_proj", mlp=("gate_up_proj", "down_proj")),
    "chatglm": CHATGLM,
    # plain feed-forward layers
    "arcee": replace(LLAMA, **SQUARED),
    "nemotron": replace(LLAMA, norm="layernorm", **SQUARED),
    "jais2": replace(LLAMA, norm="layernorm", **SQUARED),
    "apertus": replace(BIASED, qk_norm="head", **SQUARED),
    "nanochat": replace(BIASED, norm="none", mlp=("fc1", "fc2"), gated=False),
    "gpt2": GPT2,
    "gpt-sw3": GPT2,
    "gpt_neo": GPT_NEO,
    "gpt_bigcode": GPT2,
    "gptj": GPTJ,
    "codegen": replace(GPTJ, attention="fused", fused="qkv_proj"),
    "gpt_neox": NEOX,
    "bloom": BLOOM,
    "falcon": FALCON,
    "mpt": MPT,
    "opt": OPT,
    "biogpt": replace(OPT, bias=True, out_bias=True, mlp_bias=True, head="output_projection"),
    "xglm": replace(OPT, bias=True, out_bias=True, mlp_bias=True, positions=""),
    "phi": PHI,
    "persimmon": replace(BLOOM, qk_norm="head", qk_norm_if="qk_layernorm", qk_norm_bias=True, embedding="embed_tokens",
                         embedding_norm=False),
    "starcoder2": STARCODER2,
    # experts
    "mixtral": replace(PLAIN, experts=Experts(width="intermediate_size")),
    "phimoe": replace(BIASED, norm="layernorm", head_bias="lm_head_bias", experts=replace(MOE_ROUTER, router_linear=True)),
    "granitemoe": replace(BIASED, experts=MOE_ROUTER),
    "granitemoeshared": replace(BIASED, experts=replace(MOE_ROUTER, shared="shared_intermediate_size",
                                                        shared_names=("input_linear", "output_linear"))),
    "qwen2_moe": Family(bias="qkv_bias", experts=SHARED),
    "qwen3_moe": replace(QWEN3, experts=Experts()),
    "mellum": replace(QWEN3, experts=Experts()),
    "olmoe": replace(OLMO2, experts=Experts(width="intermediate_size")),
    "flex_olmo": replace(OLMO2, experts=Experts(width="intermediate_size")),
    "minimax_m2": replace(PLAIN, qk_norm="all", experts=Experts(width="intermediate_size")),
    "gpt_oss": replace(BIASED, window_every=2, sinks=True,
                       experts=replace(MOE_ROUTER, router_bias=True, bias=True)),
    "ernie4_5_moe": replace(ERNIE, head_bias="use_bias", experts=Experts(shared="count", correction=True)),
    "dots1": replace(QWEN3, experts=Experts(shared="count")),
    "glm4_moe": Family(bias="attention_bias", qk_norm="head", qk_norm_if="use_qk_norm", experts=Experts(shared="count")),
    "solar_open": Family(bias="attention_bias", experts=Experts(shared="count")),
    "exaone_moe": replace(PLAIN, qk_norm="head", window_every=4, experts=Experts(shared="count")),
    "hy_v3": replace(QWEN3, mlp_bias="mlp_bias", experts=Experts(shared="count")),
    "sarvam_moe": replace(QWEN3, out_bias=False, qk_norm_if="use_qk_norm", experts=Experts(shared="count")),
    "hunyuan_v1_moe": replace(QWEN3, experts=Experts(shared="dense", router="wg", router_linear=True)),
    "cohere2_moe": replace(COHERE, qk_norm="", qk_norm_if="", window_every=4,
                           experts=Experts(width="intermediate_size", shared="count")),
    "aria_text": replace(LLAMA, experts=replace(MOE_ROUTER, shared="count")),
    "deepseek": replace(BIASED, experts=Experts(shared="count")),
    # latent attention
    "deepseek_v2": replace(DEEPSEEK, mlp_bias="mlp_bias"),
    "deepseek_v3": DEEPSEEK,
    "glm4_moe_lite": DEEPSEEK,
    "sarvam_mla": DEEPSEEK,
    "mistral4": DEEPSEEK,
    "axk1": DEEPSEEK,
    "minicpm3": replace(LATENT, mlp_bias="mlp_bias"),
    "youtu": LATENT,
    # layers with builders of their own
    "deepseek_v32": DEEPSEEK,
    "glm_moe_dsa": DEEPSEEK,
    "deepseek_v4": Family(mlp_bias="mlp_bias", experts=Experts(shared="moe_intermediate_size")),
    "longcat_flash": replace(LATENT, norms=0),
    "llama4_text": replace(BIASED, experts=replace(MOE_ROUTER, router_linear=True)),
    "dbrx": Family(attention="fused", fused="Wqkv", out="out_proj", norm="layernorm_weight", embedding="wte"),
    "mimo_v2_flash": Family(bias="attention_bias", experts=Experts()),
    "gemma3n_text": replace(GEMMA2, qk_norm="head", window_every=5),
    "gemma4_text": replace(GEMMA2, qk_norm="head", window_every=6),
    "gemma4_unified_text": replace(GEMMA2, qk_norm="head", window_every=6),
    "afmoe": replace(PLAIN, bias="attention_bias", out_bias="attention_bias", norms=4, qk_norm="head",
                     experts=Experts(shared="count", router_linear=True)),
    "qwen3_next": replace(DELTA_NET, experts=SHARED),
    "qwen3_5_text": DELTA_NET,
    "qwen3_5_moe_text": replace(DELTA_NET, experts=SHARED),
    "olmo_hybrid": OLMO2,
    "kimi_linear": DEEPSEEK,
    "minimax": replace(PLAIN, experts=Experts(width="intermediate_size")),
    "jamba": replace(PLAIN, experts=MOE_ROUTER),
    "bamba": LLAMA,
    "falcon_h1": LLAMA,
    "granitemoehybrid": replace(BIASED, experts=replace(MOE_ROUTER, shared="shared_intermediate_size",
                                                        shared_names=("input_linear", "output_linear"))),
    "nemotron_h": replace(PLAIN, mlp_bias="mlp_bias", norms=1, embedding="embeddings",
                          experts=Experts(shared="moe_shared_expert_intermediate_size", gated=False,
                                          shared_names=("up_proj", "down_proj")), **SQUARED),
    "lfm2": replace(PLAIN, out="out_proj", mlp=("w1", "w3", "w2"), qk_norm="head"),
    "lfm2_moe": replace(PLAIN, out="out_proj", mlp=("w1", "w3", "w2"), qk_norm="head", experts=Experts()),
    "mllama_text_model": PLAIN,
    "bitnet": BIASED,
    "laguna": replace(QWEN3, experts=Experts(shared="shared_expert_intermediate_size", correction=True)),
    "minimax_m3_vl_text": replace(PLAIN, qk_norm="head", mlp=("gate_up_proj", "down_proj"),
                                  experts=Experts(width="intermediate_size", shared="shared_intermediate_size",
                                                  shared_names=("gate_up_proj", "down_proj"))),
    "bailing_moe": BAILING,
    "bailing_moe_v2": replace(BAILING, qk_norm="head", qk_norm_if="use_qk_norm"),
    "arctic": replace(PLAIN, norms=3, experts=Experts(width="intermediate_size")),
    "chatglm_6b": replace(BLOOM, embedding_norm=False),
    "nemotron-nas": replace(PLAIN, norms=0),
    "openelm": replace(PLAIN, norms=0, embedding="token_embeddings"),
    "recurrent_gemma": Family(bias="attention_bias", out_bias=True, mlp_bias=True),
    "mamba": replace(PLAIN, norms=1, embedding="embeddings"),
    "falcon_mamba": replace(PLAIN, norms=1, embedding="embeddings"),
    "mamba2": replace(PLAIN, norms=1, embedding="embeddings"),
}  # fmt: skip

#: Other names of the same layer: text models inside multimodal ones, and custom code that copies a family.
SAME = {
    "qwen2_vl": "qwen2", "qwen2_vl_text": "qwen2", "qwen2_5_vl": "qwen2", "qwen2_5_vl_text": "qwen2",
    "qwen2_5_omni_text": "qwen2", "qwen2_audio": "qwen2", "qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe",
    "qwen3_omni_moe_text": "qwen3_moe", "qwen3_omni_moe_talker_text": "qwen3_moe", "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text", "gemma4": "gemma4_text", "llama4": "llama4_text", "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text", "kimi_k2": "deepseek_v3",
    "glm_ocr_text": "glm4", "paddleocr_vl_text": "ernie4_5", "glm4v_moe_text": "glm4_moe",
    "internlmxcomposer2": "internlm2", "ernie4_5_vl_moe_text": "ernie4_5_moe",
    "refinedweb": "falcon", "refinedwebmodel": "falcon", "rw": "falcon", "aquila2": "aquila", "skywork": "yi",
    "deepseek_vl_v2": "deepseek_v2", "kimi_vl": "deepseek_v3", "phi4mm": "phi3",
    "phi4_multimodal": "phi3", "deci": "nemotron-nas", "stablelm_epoch": "stablelm", "phi3_v": "phi3",
    "smolvlm_text": "llama", "idefics3_text": "llama", "minimax_text_01": "minimax",
    "minimax_m1": "minimax", "olmo_1124": "olmo2", "mistral3_text": "mistral", "pixtral_text": "mistral",
    "exaone4_5_text": "exaone4", "granite_speech_text": "granite", "minicpm4": "minicpm", "qwen2_5_omni": "qwen2",
    "kimi_k25": "deepseek_v3", "hunyuan_dense": "hunyuan_v1_dense",
    "hunyuan_moe": "hunyuan_v1_moe", "hunyuan": "hunyuan_v1_moe",
}  # fmt: skip
