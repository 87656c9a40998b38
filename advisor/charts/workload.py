"""Charts of stage 1: what the model is made of, what of it is trained, and what one token costs in FLOP."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from advisor.charts import marks, theme
from advisor.charts.definition import ChartDefinition, Rows, once_a_plan
from advisor.charts.source import _around, architecture_of
from advisor.charts.words import HERE, colon, count, number, percent, t
from advisor.units import unit
from advisor.workload import hardware_flop_per_token, model_flop_per_token

BLOCKS = {
    "embedding": ("Embedding", "词嵌入"),
    "attention": ("Attention", "注意力"),
    "mixer": ("Linear attention or state space", "线性注意力 / 状态空间"),
    "mlp": ("MLP", "MLP（前馈）"),
    "expert": ("Experts (MoE)", "专家（MoE）"),
    "shared_expert": ("Shared experts", "共享专家"),
    "router": ("Router", "路由"),
    "head": ("Output head", "输出层（lm_head）"),
    "other": ("Norms and others", "归一化等"),
    "trained": ("Trained", "可训练"),
}
PARTS = {
    "weights": {"en": "used by every token", "zh": "每个 token 都用到"},
    "other": {"en": "idle experts", "zh": "不激活的专家"},
    "gradients": {"en": "trained", "zh": "可训练"},
}


def _blocks(plan: Any) -> list[tuple[str, float, float]]:
    """(block, stored parameters, of those idle for a token), largest first."""
    architecture = architecture_of(plan)
    stored: dict[str, float] = {}
    idle: dict[str, float] = {}
    for matrix in architecture.matrices:
        if not matrix.stored:
            continue
        stored[matrix.block] = stored.get(matrix.block, 0) + matrix.stored
        idle[matrix.block] = idle.get(matrix.block, 0) + matrix.stored * (1 - matrix.active / matrix.copies)
    other = architecture.other_parameters.m_as("parameter")
    if other:
        stored["other"] = other
    return sorted(((name, value, idle.get(name, 0.0)) for name, value in stored.items()), key=lambda one: -one[1])


def build_parameters(lang: str) -> Any:
    labels = {name: t(text, lang) for name, text in PARTS.items()}
    tooltip = marks.tips(
        block=t(("part", "部分"), lang),
        value=t(("parameters", "参数量"), lang),
        share=t(("share", "占比"), lang),
        part=t(("kind", "类别"), lang),
    )
    x = marks.quantity_x("start", t(("parameters, B (billions)", "参数量，B（十亿）"), lang))
    return marks.layer(
        marks.segments("bars", list(PARTS), labels, x, tooltip),
        marks.headings("names"),
        marks.right_words("names", "value"),
        height=marks.stepped(42),
    )


def parameters_rows(plan: Any, lang: str) -> Rows:
    total = plan.workload.parameters_total.m_as("parameter")
    trained = plan.workload.parameters_trainable.m_as("parameter")
    labels = {name: t(text, lang) for name, text in PARTS.items()}
    bars, names = [], []
    for row, (block, stored, idle) in enumerate(_blocks(plan)):
        name = t(BLOCKS[block], lang)
        names.append({"row": row, "heading": name, "value": f"{count(stored)} · {percent(stored / total)}"})
        for part, start, end in (("weights", 0.0, stored - idle), ("other", stored - idle, stored)):
            if end > start:
                bars.append(_bar(row, name, labels[part], start, end, total))
    row = len(names)
    names.append({"row": row, "heading": t(BLOCKS["trained"], lang), "value": f"{count(trained)} · {percent(trained / total)}"})
    bars.append(_bar(row, t(BLOCKS["trained"], lang), labels["gradients"], 0.0, trained, total))
    return {"bars": bars, "names": names}


def _bar(row: int, block: str, part: str, start: float, end: float, total: float) -> dict[str, Any]:
    return {
        "row": row,
        "block": block,
        "part": part,
        "start": start / 1e9,
        "end": end / 1e9,
        "value": count(end - start),
        "share": percent((end - start) / total),
    }


def parameters_sentence(plan: Any, lang: str) -> str:
    work = plan.workload
    total, trained, active = (
        value.m_as("parameter") for value in (work.parameters_total, work.parameters_trainable, work.parameters_active)
    )
    block, stored, _ = _blocks(plan)[0]
    moe = active < 0.95 * total
    if lang == "en":
        active_words = f" A token uses {count(active)} of them." if moe else ""
        return (
            f"{count(total)} parameters, {count(trained)} of them trained ({percent(trained / total)}). "
            f"The largest part is {t(BLOCKS[block], lang)}: {percent(stored / total)}.{active_words}"
        )
    active_words = f"每个 token 的激活参数为 {count(active)}。" if moe else ""
    return (
        f"总参数 {count(total)}，其中可训练 {count(trained)}（{percent(trained / total)}）。"
        f"最大的部分是{t(BLOCKS[block], lang)}，占 {percent(stored / total)}。{active_words}"
    )


FLOPS = {
    "compute": {"en": "matrix products", "zh": "矩阵乘"},
    "attention": {"en": "attention", "zh": "序列内注意力"},
    "other": {"en": "recomputed", "zh": "反向时重计算"},
}


@once_a_plan
def _flop(plan: Any) -> dict[str, np.ndarray]:
    """GFLOP per token at sequence lengths around the plan's: matrix products, attention, recomputed."""
    architecture, layout = architecture_of(plan), plan.cluster.layout
    lengths = _around(layout.sequence_length, 25, 128, 1_048_576)
    giga = unit("GFLOP / token")
    model = model_flop_per_token(architecture, plan.training, lengths).m_as(giga)
    least = float(model_flop_per_token(architecture, plan.training, 1).m_as(giga))
    done = hardware_flop_per_token(architecture, plan.training, lengths, str(layout.activation_recomputation)).m_as(giga)
    shape = lengths.shape
    model, done = np.broadcast_to(model, shape), np.broadcast_to(done, shape)
    return {
        "length": lengths,
        "compute": np.minimum(np.full(shape, least), model),
        "attention": np.maximum(model - least, 0),
        "other": np.maximum(done - model, 0),
    }


def build_flop(lang: str) -> Any:
    labels = {name: t(text, lang) for name, text in FLOPS.items()}
    tooltip = marks.tips(
        length_text=t(("sequence length", "序列长度"), lang),
        part=t(("part", "部分"), lang),
        value=t(("per token", "每 token"), lang),
    )
    area = (
        marks.named("areas")
        .mark_area(opacity=1, line=False)
        .encode(
            x=length_x("length", lang),
            y=marks.quantity_y("start", t(("GFLOP per token", "每 token 计算量，GFLOP"), lang)),
            y2="end:Q",
            color=alt.Color(
                "part:N", scale=theme.scale(FLOPS, labels), legend=alt.Legend(title=None, values=list(labels.values()))
            ),
            tooltip=tooltip,
        )
    )
    rule = marks.named("here").mark_rule(color=theme.colour("here"), strokeDash=[4, 3]).encode(x="length:Q")
    return marks.layer(area, rule, marks.here("here", "length", "total"), height=220)


def length_x(field: str, lang: str) -> alt.X:
    """Sequence length on a logarithmic axis, labelled in powers of two."""
    label = "datum.value >= 1024 ? format(datum.value / 1024, ',.3~r') + 'k' : format(datum.value, '.3~r')"
    return alt.X(
        f"{field}:Q",
        scale=alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(title=t(("sequence length, tokens", "序列长度，token"), lang), labelExpr=label, tickCount=7),
    )


def flop_rows(plan: Any, lang: str) -> Rows:
    found = _flop(plan)
    areas, start = [], np.zeros(len(found["length"]))
    for name in FLOPS:
        end = start + found[name]
        for length, low, high in zip(found["length"].tolist(), start.tolist(), end.tolist(), strict=True):
            areas.append(
                {
                    "part": t(FLOPS[name], lang),
                    "length": length,
                    "length_text": f"{length:,} token",
                    "start": low,
                    "end": high,
                    "value": f"{number(high - low)} GFLOP/token",
                }
            )
        start = end
    length = int(plan.cluster.layout.sequence_length)
    at = int(np.searchsorted(found["length"], length))
    total = float(start[at])
    align = marks.align_of(length, float(found["length"][0]), float(found["length"][-1]), log=True)
    label = f"{t(HERE, lang)}{colon(lang)}{number(total)}"
    return {"areas": areas, "here": [{"length": length, "total": total, "label": label, "align": align}]}


def flop_sentence(plan: Any, lang: str) -> str:
    found = _flop(plan)
    length = int(plan.cluster.layout.sequence_length)
    at = int(np.searchsorted(found["length"], length))
    compute, attention, other = (float(found[name][at]) for name in FLOPS)
    total = compute + attention + other
    flop = plan.workload.training_flop.m_as("FLOP")
    if lang == "en":
        return (
            f"One token costs {number(total)} GFLOP at {length:,} tokens a sequence: matrix products "
            f"{percent(compute / total)}, attention {percent(attention / total)}, recomputed {percent(other / total)}. "
            f"The run takes {flop:.2e} model FLOP."
        )
    return (
        f"序列长度 {length:,} 时每个 token 需 {number(total)} GFLOP：矩阵乘 {percent(compute / total)}，"
        f"注意力 {percent(attention / total)}，重计算 {percent(other / total)}。整个训练的模型计算量为 {flop:.2e} FLOP。"
    )


CHARTS = (
    ChartDefinition(
        name="parameters",
        stage="workload",
        title={"en": "Where the parameters are", "zh": "参数分布"},
        subtitle={
            "en": "Stored parameters by part of the model, and what of them is trained",
            "zh": "按模型部件统计参数量，以及其中可训练的部分",
        },
        build=build_parameters,
        rows=parameters_rows,
        sentence=parameters_sentence,
    ),
    ChartDefinition(
        name="flop_per_token",
        stage="workload",
        title={"en": "What one token costs", "zh": "一个 token 的计算量"},
        subtitle={"en": "Work done per token against sequence length", "zh": "每 token 实际计算量随序列长度的变化"},
        build=build_flop,
        rows=flop_rows,
        sentence=flop_sentence,
    ),
)
