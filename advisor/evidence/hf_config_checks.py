"""What a config.json assumes or contradicts, as problems in two languages."""

from __future__ import annotations

from typing import Any

from advisor.evidence.parts import problem
from advisor.evidence.report import Problem

#: The beginnings of what an architecture says of itself, and the same in Chinese.
CHINESE = (
    ("The text model of this", "只计算其中的文本模型；其余部分（视觉、音频等）不计入。"),
    ("The text model is sized", "只计算其中的文本模型；其余部分（视觉、音频等）不计入。"),
    ("The file's weights are stored quantized", "文件中的权重以量化形式存储；参数量按量化前计算。"),
    ("The multi-token-prediction layers", "文件声明的多 token 预测（MTP）层不计入，与 transformers 一致。"),
    ("Attention is counted over all keys", "注意力按全部键计算；模型实际只选取其中一部分，因此计算量是上限。"),
)


def assumed(sentence: str) -> Problem:
    """An assumption of the architecture as a problem."""
    known = next((zh for start, zh in CHINESE if sentence.startswith(start)), None)
    unknown = sentence.startswith("The model type") and "sized as" in sentence
    zh = known or (f"模型类型未知，按类 Llama 的解码器估算：{sentence}" if unknown else f"采用了默认值或近似：{sentence}")
    return problem("unknown_model_type" if unknown else "assumed", "warning" if unknown else "info", sentence, zh)


def check(reading: dict[str, Any]) -> list[Problem]:
    """What no model can have."""
    result = []
    hidden, heads, kv_heads = reading["hidden"], reading["q_heads"], reading["kv_heads"]
    if heads and kv_heads and heads % kv_heads:
        result.append(
            problem(
                "heads_do_not_divide",
                "warning",
                f"{heads} query heads cannot be shared evenly by {kv_heads} key-value heads.",
                f"{heads} 个查询头无法被 {kv_heads} 个键值头均分。",
            )
        )
    if hidden and heads and reading["head_dim"] is None and hidden % heads:
        result.append(
            problem(
                "head_dim_not_whole",
                "warning",
                f"The hidden size {hidden} is not a multiple of {heads} heads, and no head_dim is given.",
                f"隐藏维度 {hidden} 不是头数 {heads} 的整数倍，且未给出 head_dim。",
            )
        )
    active, experts = reading["active_experts"], reading["experts"]
    if active and experts and active > experts:
        result.append(
            problem(
                "more_active_than_experts",
                "error",
                f"{active} experts per token are more than the {experts} there are.",
                f"每个 token 激活 {active} 个专家，多于专家总数 {experts}。",
            )
        )
    return result
