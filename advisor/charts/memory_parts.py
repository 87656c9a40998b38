"""What the memory charts share: the terms, their colours and words, and a stacked bar."""

from __future__ import annotations

from typing import Any

import altair as alt

from advisor.charts import marks
from advisor.charts.definition import ChartDefinition
from advisor.charts.source import GIB, TERMS
from advisor.charts.words import gib, percent, t
from advisor.units import Quantity

TERM = {
    "weights": {"en": "weights", "zh": "权重"},
    "gradients": {"en": "gradients", "zh": "梯度"},
    "optimizer_states": {"en": "optimizer states", "zh": "优化器状态"},
    "activations": {"en": "activations", "zh": "激活值"},
    "logits": {"en": "logits", "zh": "logits"},
    "buffers": {"en": "buffers, cache", "zh": "缓冲与缓存"},
    "runtime": {"en": "runtime (CUDA)", "zh": "运行时（CUDA）"},
}


PHASE = {
    "loss": ("while the loss is computed", "计算损失"),
    "backward": ("in the backward pass", "反向传播"),
    "optimizer_step": ("in the optimizer step", "优化器更新"),
}


PER_GPU = ("GiB per GPU", "每卡显存，GiB")


VALUE = ("memory", "显存")


def labels(lang: str) -> dict[str, str]:
    return {name: TERM[name][lang] for name in TERMS}


def stack(row: int, what: str, terms: dict[str, float], lang: str) -> list[dict[str, Any]]:
    """One row's bar, term after term; terms of nothing are left out."""
    bars, start = [], 0.0
    total = sum(terms.values())
    for name, value in terms.items():
        if value > 0:
            bars.append(
                {
                    "row": row,
                    "what": what,
                    "part": TERM[name][lang],
                    "start": start,
                    "end": start + value,
                    "value": gib(value),
                    "share": percent(value / total),
                }
            )
            start += value
    return bars


def stack_tips(lang: str, what: tuple[str, str]) -> list[alt.Tooltip]:
    return marks.tips(
        what=t(what, lang), part=t(("term", "项目"), lang), value=t(VALUE, lang), share=t(("share", "占比"), lang)
    )


def in_gib(value: Any) -> float:
    return float(value.m_as(GIB)) if isinstance(value, Quantity) else float(value)


def define(name: str, en: str, zh: str, sub_en: str, sub_zh: str, **parts: Any) -> ChartDefinition:
    return ChartDefinition(
        name=name, stage="memory", title={"en": en, "zh": zh}, subtitle={"en": sub_en, "zh": sub_zh}, **parts
    )
