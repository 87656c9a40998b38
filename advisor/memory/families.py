"""Which model types differ from the plain decoder layer in what their layers keep, by Hugging Face `model_type`."""

from __future__ import annotations

#: Families whose layers differ from "a norm before attention and a norm before the MLP"; all others fall back on that.
NORMS_BEFORE_AND_AFTER = ("gemma2", "gemma3", "gemma3_text", "glm4", "gemma4", "gemma4_text")
NORMS_AFTER = ("olmo2", "olmo3")
ONE_NORM = ("falcon", "phi", "cohere", "cohere2", "gptj", "codegen")
NORMS_ON_SAME_INPUT = ("gpt_neox",)
NORM_WRITTEN_OUT = ("cohere", "cohere2")
SCALE_IN_FP32 = ("gemma", "gemma2", "gemma3", "gemma3_text")
COMPOSED_GELU = ("gpt2", "gptj", "codegen", "gpt_neo", "phi", "gpt_bigcode")
NATIVE_SOFTMAX = ("gpt2", "falcon", "gptj", "gpt_bigcode")
#: Softmax over scores joined with a learned sink: the joined and shifted scores stay too.
SINK_SOFTMAX = ("gpt_oss",)
RELU = ("opt",)
FUSED_QKV = ("qkv_proj", "query_key_value", "Wqkv", "qkv")
REPEATS_KEYS = ("torchtune", "torchtitan")
OUTPUTS = ("o_proj", "out_proj", "dense", "wo", "attn_out")
#: Model types whose layers were traced under autograd; any other falls back on the operations its config names.
MEASURED = {
    *("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "gpt2", "gpt_neox", "opt", "bloom"),
    *("olmo2", "glm", "glm4", "cohere2", "granite", "smollm3", "stablelm", "starcoder2", "mixtral", "qwen2_moe"),
    *("qwen3_moe", "olmoe", "deepseek_v2", "deepseek_v3", "gpt_oss"),
}
