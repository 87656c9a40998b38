"""The plan in a dozen lines of text, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.budget import range_text
from advisor.plan.advice import speed_note
from advisor.units import Quantity

if TYPE_CHECKING:
    from advisor.plan.records import Plan

WORDS = {
    "en": {
        "fits": "fits",
        "tight": "tight",
        "does_not_fit": "does not fit",
        "unknown": "unknown",
        "model": "Model",
        "memory": "VRAM per GPU",
        "cards": "Cards",
        "interconnect": "Interconnect",
        "time": "Time",
        "storage": "Storage",
        "budget": "Budget",
        "defaults": "Defaults",
        "of": "of",
        "none": "none needed",
        "required": "required",
        "waits": "of the step spent waiting",
        "checkpoint": "checkpoint",
        "every": " every",
        "useful": "of the time useful",
        "trainable": "trainable",
        "speed": "token/s/GPU",
        "data": "data",
        "tensor": "tensor",
        "pipeline": "pipeline",
        "context": "context",
        "expert": "expert",
        "micro_batch": "micro-batch",
        "recomputation_none": "recomputation none",
        "recomputation_selective": "recomputation selective",
        "recomputation_full": "recomputation full",
        "needs": "needs {need} GiB, the card has {room}; time and cost below hold only if it fitted",
        "ways": "To make it fit:",
    },
    "zh": {
        "fits": "放得下",
        "tight": "处于边界",
        "does_not_fit": "放不下",
        "unknown": "未知",
        "model": "模型",
        "memory": "每卡显存",
        "cards": "卡数",
        "interconnect": "互联",
        "time": "时间",
        "storage": "存储",
        "budget": "预算",
        "defaults": "默认值",
        "of": "共",
        "none": "不需要",
        "required": "要求",
        "waits": "的步时在等待通信",
        "checkpoint": "检查点",
        "every": "，每",
        "useful": "的时间有效",
        "trainable": "可训练",
        "speed": "token/秒/卡",
        "data": "数据并行",
        "tensor": "张量并行",
        "pipeline": "流水线并行",
        "context": "上下文并行",
        "expert": "专家并行",
        "micro_batch": "微批大小",
        "recomputation_none": "不做激活重计算",
        "recomputation_selective": "选择性激活重计算",
        "recomputation_full": "全部激活重计算",
        "needs": "需要 {need} GiB，该卡只有 {room} GiB；下列时间与费用仅在放得下时成立",
        "ways": "放得下的办法：",
    },
}

#: When the peak comes.
PHASES = {
    "loss": {"en": "peak in the loss", "zh": "峰值在计算损失时"},
    "backward": {"en": "peak in the backward pass", "zh": "峰值在反向传播中"},
    "backward_begin": {"en": "peak as the backward pass begins", "zh": "峰值在反向传播开始时"},
    "backward_end": {"en": "peak as the backward pass ends", "zh": "峰值在反向传播结束时"},
    "embedding": {"en": "peak in the gradient of the embedding", "zh": "峰值在计算词嵌入梯度时"},
    "optimizer_step": {"en": "peak in the optimizer step", "zh": "峰值在优化器更新时"},
}


def summarize(plan: Plan, language: str = "en") -> str:
    """The answer first, then one line a stage, then what must be known."""
    words = WORDS[language]
    memory, cluster, storage, budget = plan.memory, plan.cluster, plan.storage, plan.budget
    link = cluster.interconnect
    required = " · ".join(
        f"{value.m_as(name):.3g} {name}"
        for value, name in ((link.required_scale_up, "GB / s / GPU"), (link.required_scale_out, "GB / s / node"))
        if value is not None and value.magnitude > 0
    )
    lines = [
        _first(plan, words, language),
        "",
        f"{_head(words['model'])} {_count(plan.workload.parameters_total)}, {words['trainable']} "
        f"{_count(plan.workload.parameters_trainable)} · {plan.workload.training_flop.m_as('FLOP'):.2e} FLOP",
        f"{_head(words['memory'])} {_gib(memory.total)} ({_gib(memory.low)} - {_gib(memory.high)}) {words['of']} "
        f"{_gib(memory.capacity)} GiB = {memory.total.m_as('GB / GPU'):.1f} GB · "
        f"{PHASES.get(memory.peak_phase, {}).get(language, memory.peak_phase)}",
        f"{_head(words['cards'])} {cluster.gpus} x {cluster.gpu}, {_layout(plan, words)}",
        f"{_head(words['interconnect'])} "
        + (
            words["none"]
            if cluster.gpus == 1
            else f"{words['required']} {required or '0'} · {link.fabric}: "
            f"{link.communication_share.m_as(''):.0%} {words['waits']}"
        ),
        f"{_head(words['time'])} {_time(cluster.training_time, language)} "
        f"({_time(cluster.low, language)} - {_time(cluster.high, language)}) · "
        f"{cluster.tokens_per_second_per_gpu.m_as('token / s / GPU'):,.0f} {words['speed']} · "
        f"MFU {cluster.mfu.m_as(''):.0%}",
        f"{_head(words['storage'])} {words['checkpoint']} {_bytes(storage.checkpoint_size)}{words['every']} "
        f"{_time(storage.checkpoint_interval, language)} · {storage.goodput.m_as(''):.1%} {words['useful']}",
        f"{_head(words['budget'])} {range_text(budget.total, budget.low, budget.high, language)} · {budget.price.provider} "
        f"{budget.price.instance} · {budget.price.as_of}",
    ]
    defaults = [key for key, entry in plan.scenario.items() if entry["origin"] == "default"]
    lines += [f"{_head(words['defaults'])} {', '.join(defaults)}", ""]
    lines += [f"{'!' if one.severity != 'info' else '-'} {one.text[language]}" for one in plan.advice]
    return "\n".join(lines)


def _head(word: str) -> str:
    """A line's name in a column; a Chinese character is two columns wide."""
    return word + " " * max(14 - sum(2 if ord(letter) > 0x2E80 else 1 for letter in word), 0)


def _first(plan: Plan, words: dict[str, str], language: str) -> str:
    """The answer in a line: what does not fit has no time and no cost, but ways out."""
    from advisor.plan.ways import ways_out

    memory, cluster, budget = plan.memory, plan.cluster, plan.budget
    start = f"{_model(plan)} · {plan.training.method}: {words[memory.verdict]} · {cluster.gpus} x {cluster.gpu}"
    if memory.verdict != "does_not_fit":
        cost = range_text(budget.total, budget.low, budget.high, language)
        return f"{start} · {_time(cluster.training_time, language)} · {cost}"
    ways = " | ".join(way.text[language] for way in ways_out(plan))
    need = words["needs"].format(need=_gib(memory.total), room=_gib(memory.capacity))
    return f"{start} · {need}" + (f"\n{words['ways']} {ways}" if ways else "")


def _model(plan: Plan) -> str:
    """The model as asked for: a name, or what a config calls itself."""
    value = plan.scenario["model"]["value"]
    return (
        str(value.get("_name_or_path") or value.get("model_type") or "config.json") if isinstance(value, dict) else str(value)
    )


def _layout(plan: Plan, words: dict[str, str]) -> str:
    layout = plan.cluster.layout
    sizes = {
        "data": layout.data_parallel_size,
        "tensor": layout.tensor_parallel_size,
        "pipeline": layout.pipeline_parallel_size,
        "context": layout.context_parallel_size,
        "expert": layout.expert_parallel_size,
    }
    parts = [f"{words[name]} {size}" for name, size in sizes.items() if size > 1]
    parts += [f"ZeRO-{layout.zero_stage}"] if layout.zero_stage else []
    again = words[f"recomputation_{layout.activation_recomputation}"]
    return ", ".join([*parts, f"{words['micro_batch']} {layout.micro_batch_size}", again])


def _gib(value: Quantity) -> str:
    return f"{value.m_as('GiB / GPU'):.1f}"


def _count(value: Quantity) -> str:
    number = value.m_as("parameter")
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.2f}{letter}"
    return f"{number:.0f}"


def _bytes(value: Quantity) -> str:
    for name in ("TB", "GB", "MB"):
        if value.m_as(name) >= 1:
            return f"{value.m_as(name):.3g} {name}"
    return f"{value.m_as('kB'):.3g} kB"


_TIMES_ZH = {"day": "天", "h": "小时", "min": "分钟", "s": "秒"}


def _time(value: Quantity, language: str) -> str:
    shown = speed_note(value)
    name = f"{shown.units:~}"
    name = _TIMES_ZH[name] if language == "zh" else name
    return f"{shown.magnitude:.3g} {name}"
