"""When the peak comes, and what the same model takes when it serves."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np

from advisor.architecture import Architecture
from advisor.charts import marks
from advisor.charts.definition import Rows
from advisor.charts.memory_parts import PER_GPU, PHASE, TERM, in_gib, stack_tips
from advisor.charts.source import GIB, architecture_of, terms_of
from advisor.charts.words import gib, number, percent, t
from advisor.memory import estimate_inference
from advisor.units import Quantity

#: The instants that compete for the peak, each the largest of its candidates in the trail's step "allocated".
INSTANTS = {
    "loss": ("loss",),
    "backward": ("backward_begin", "backward_end", "embedding"),
    "optimizer_step": ("optimizer_step",),
}


def _allocated(plan: Any) -> dict[str, Any]:
    """The inputs of the last step "allocated" of the memory trail whose value is the plan's own."""
    for step in reversed(plan.memory.trail):
        if step.name == "allocated" and isinstance(step.value, Quantity) and np.ndim(step.value.magnitude) == 0:
            same = abs(step.value.m_as(GIB) - plan.memory.allocated.m_as(GIB)) <= 1e-6 * plan.memory.allocated.m_as(GIB)
            if same and "loss" in step.inputs:
                return step.inputs
    return {}


def has_instants(plan: Any) -> bool:
    """Whether the trail tells how the three instants compare."""
    return bool(_allocated(plan))


def build_instants(lang: str) -> Any:
    things = ["weights", "optimizer_states", "buffers", "other"]
    labels = _instant_labels(lang)
    return marks.layer(
        marks.segments(
            "bars", things, labels, marks.quantity_x("start", t(PER_GPU, lang)), stack_tips(lang, ("instant", "时刻"))
        ),
        marks.headings("instants", bold="peak"),
        marks.right_words("instants", "answer"),
        height=marks.stepped(42),
    )


def _instant_labels(lang: str) -> dict[str, str]:
    return {
        "weights": TERM["weights"][lang],
        "optimizer_states": TERM["optimizer_states"][lang],
        "buffers": t(("fixed buckets", "固定通信桶"), lang),
        "other": t(("what comes and goes", "随时刻变化的部分"), lang),
    }


def instants_rows(plan: Any, lang: str) -> Rows:
    inputs = _allocated(plan)
    if not inputs:
        return {"bars": [], "instants": []}
    labels = _instant_labels(lang)
    fixed = {"weights": "weights", "optimizer_states": "optimizer_states", "buffers": "buckets"}
    bars, instants = [], []
    moving = {name: max(in_gib(inputs[one]) for one in found) for name, found in INSTANTS.items()}
    peak = max(moving, key=moving.__getitem__)
    for row, (name, value) in enumerate(moving.items()):
        parts = {thing: in_gib(inputs[key]) for thing, key in fixed.items()} | {"other": value}
        total, start = sum(parts.values()), 0.0
        what = t(PHASE[name], lang)
        for thing, part in parts.items():
            if part > 0:
                bars.append(
                    {
                        "row": row,
                        "what": what,
                        "part": labels[thing],
                        "start": start,
                        "end": start + part,
                        "value": gib(part),
                        "share": percent(part / total),
                    }
                )
                start += part
        mark = t((" · peak", " · 峰值"), lang) if name == peak else ""
        instants.append({"row": row, "heading": what + mark, "peak": name == peak, "answer": f"{number(total)} GiB"})
    return {"bars": bars, "instants": instants}


def instants_sentence(plan: Any, lang: str) -> str:
    phase = t(PHASE[str(plan.memory.peak_phase)], lang)
    allocated = gib(plan.memory.allocated.m_as(GIB))
    return t(
        (
            f"Most is allocated {phase}: {allocated}, before the allocator's cache and the runtime.",
            f"分配量在{phase}时最大：{allocated}（不含分配器缓存与运行时）。",
        ),
        lang,
    )


SERVING = {
    "weights": {"en": "weights", "zh": "权重"},
    "gradients": {"en": "gradients", "zh": "梯度"},
    "optimizer_states": {"en": "optimizer states", "zh": "优化器状态"},
    "activations": {"en": "activations", "zh": "激活值"},
    "logits": {"en": "logits", "zh": "logits"},
    "attention": {"en": "KV cache", "zh": "KV 缓存"},
    "buffers": {"en": "buffers, cache", "zh": "缓冲与缓存"},
    "runtime": {"en": "runtime (CUDA)", "zh": "运行时（CUDA）"},
}


#: (dtype of the weights, sequences served at once).
SERVED = (("bf16", 1), ("bf16", 16), ("int4", 1))


@functools.lru_cache(maxsize=64)
def _served(model: str, length: int, architecture: Architecture) -> tuple[dict[str, float], ...]:
    """GiB of one card that serves, for each of SERVED."""
    found = []
    for dtype, batch in SERVED:
        one = estimate_inference(architecture, weights=dtype, batch_size=batch, context_length=length)
        found.append(
            {
                "weights": in_gib(one.weights),
                "attention": in_gib(one.key_value_cache),
                "buffers": in_gib(one.working_set),
                "runtime": in_gib(one.runtime),
            }
        )
    return tuple(found)


def _serving(plan: Any) -> tuple[dict[str, float], ...]:
    model = json.dumps(plan.scenario["model"]["value"], sort_keys=True)
    return _served(model, int(plan.cluster.layout.sequence_length), architecture_of(plan))


def _trained(plan: Any) -> dict[str, float]:
    """Training's terms over all cards of one copy of the model (data parallel replicas counted once)."""
    return {name: float(value[0]) for name, value in terms_of(plan.memory).items()}


def build_serving(lang: str) -> Any:
    labels = {name: text[lang] for name, text in SERVING.items()}
    return marks.layer(
        marks.segments(
            "bars", list(SERVING), labels, marks.quantity_x("start", t(PER_GPU, lang)), stack_tips(lang, ("use", "用途"))
        ),
        marks.capacity_ticks("uses"),
        marks.headings("uses", bold="own"),
        marks.right_words("uses", "answer"),
        height=marks.stepped(),
    )


def serving_rows(plan: Any, lang: str) -> Rows:
    labels = {name: text[lang] for name, text in SERVING.items()}
    cards, capacity = plan.cluster.gpus, plan.memory.capacity.m_as(GIB)
    training = t(
        (f"Training, one of {cards} cards" if cards > 1 else "Training", f"训练（{cards} 卡之一）" if cards > 1 else "训练"),
        lang,
    )
    uses = [(training, _trained(plan))]
    for (dtype, batch), terms in zip(SERVED, _serving(plan), strict=True):
        name = t(
            (
                f"Serving in {dtype}, {batch} sequence{'s' if batch > 1 else ''} at once",
                f"推理，{dtype}，同时 {batch} 条序列",
            ),
            lang,
        )
        uses.append((name, terms))
    bars, rows = [], []
    for row, (name, terms) in enumerate(uses):
        start, total = 0.0, sum(terms.values())
        for thing, value in terms.items():
            if value > 0:
                bars.append(
                    {
                        "row": row,
                        "what": name,
                        "part": labels[thing],
                        "start": start,
                        "end": start + value,
                        "value": gib(value),
                        "share": percent(value / total),
                    }
                )
                start += value
        rows.append({"row": row, "heading": name, "own": row == 0, "answer": f"{number(total)} GiB", "capacity": capacity})
    return {"bars": bars, "uses": rows}


def serving_sentence(plan: Any, lang: str) -> str:
    one = sum(_serving(plan)[0].values())
    small = sum(_serving(plan)[2].values())
    total = plan.memory.total.m_as(GIB)
    cards = plan.cluster.gpus
    if lang == "en":
        where = f"on each of {cards} cards" if cards > 1 else "on one card"
        return (
            f"Training takes {gib(total)} {where}; serving one sequence takes {gib(one)} on one card in bf16 and "
            f"{gib(small)} with 4-bit weights. That a model runs does not mean that it trains."
        )
    where = f"{cards} 张卡每卡" if cards > 1 else "单卡"
    return f"训练{where}需 {gib(total)}；单卡推理一条序列，bf16 需 {gib(one)}，4 比特权重需 {gib(small)}。能推理不等于能训练。"
