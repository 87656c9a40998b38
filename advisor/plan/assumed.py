"""What the model and memory stages took for granted, in both languages: each shape of their sentences with its Chinese."""

from __future__ import annotations

import re

_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), chinese)
    for pattern, chinese in (
        (
            r"(\w+) is not in the file; the default of (\S+), (.+), was taken\.",
            "文件里没有 {0}，采用 {1} 的默认值 {2}。",
        ),
        (
            r"The text model of this (.+) model is sized; its other parts(?: \((.+)\))? are left out\.",
            "只计算这个 {0} 模型的文本部分，其余部分（{1}）不计入。",
        ),
        (
            r"The text model is sized; the other parts of the file \((.+)\) are left out\.",
            "只计算文本模型，文件的其余部分（{0}）不计入。",
        ),
        (
            r"The file's weights are stored quantized; parameters are counted as before quantization\.",
            "文件中的权重以量化形式保存；参数量按量化前计。",
        ),
        (
            r"The model type (.+) is not known; its class says (.+), which was taken\.",
            "不认识模型类型 {0}；按其类名采用 {1}。",
        ),
        (
            r"The model type (.+) is not known: it was sized as a Llama-like decoder with (.+); "
            r"biases, norms and any special blocks may differ\.",
            "不认识模型类型 {0}：按类 Llama 的解码器计算（{1}）；偏置、归一化与特殊模块可能不同。",
        ),
        (
            r"The multi-token-prediction layers that the file announces are left out, as transformers does\.",
            "文件中声明的多 token 预测（MTP）层不计入，与 transformers 一致。",
        ),
        (
            r"Attention is counted over all keys; at long sequences the model's indexer picks some, "
            r"so its FLOP are an upper bound\.",
            "注意力按全部 key 计算；长序列时模型的索引器只选一部分，因此其 FLOP 是上限。",
        ),
        (
            r"Attention is counted over all keys; the model compresses and picks them, so its FLOP are an upper bound\.",
            "注意力按全部 key 计算；模型会压缩并挑选 key，因此其 FLOP 是上限。",
        ),
        (
            r"(.+) of the routed choices are experts that compute nothing, so the active parameters are an upper bound\.",
            "路由选择中有 {0} 个是不做计算的专家，因此激活参数量是上限。",
        ),
        (
            r"Layers of type (.+) were not measured: their activations follow from the operations in its config\.",
            "{0} 类型的层没有实测：其激活值由配置中的运算推出。",
        ),
        (
            r"4-bit weights are divided over the GPUs only when stored in 16-bit containers \(bnb_4bit_quant_storage\)\.",
            "4 比特权重只有存放在 16 比特容器中（bnb_4bit_quant_storage）才能分片到各卡。",
        ),
    )
)
_PARTS = (
    (re.compile(r"RMSNorm before attention and MLP"), "注意力与 MLP 前用 RMSNorm"),
    (re.compile(r"a plain two-matrix MLP \(activation (\w+)\)"), r"普通两矩阵 MLP（激活函数 \1）"),
    (re.compile(r"a gated three-matrix MLP"), "门控三矩阵 MLP"),
    (re.compile(r"multi-head latent attention as in DeepSeek-V3"), "DeepSeek-V3 式多头潜在注意力（MLA）"),
    (re.compile(r"a norm on queries and keys"), "query 与 key 带归一化"),
    (re.compile(r"gated experts behind a router without bias"), "门控专家，路由无偏置"),
    (re.compile(r"an output head of its own"), "独立的输出层"),
)


def assumed(sentence: str) -> dict[str, str]:
    """The sentence in both languages; one of no known shape stays English behind a Chinese lead, so that none is lost."""
    for pattern, chinese in _SHAPES:
        match = pattern.fullmatch(sentence)
        if match:
            said = chinese.format(*(one or "" for one in match.groups())).replace("（）", "")
            for part, words in _PARTS:
                said = part.sub(words, said)
            return {"en": sentence, "zh": said}
    return {"en": sentence, "zh": f"假设：{sentence}"}
