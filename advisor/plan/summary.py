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
        "every": "every",
        "useful": "of the time useful",
        "trainable": "trainable",
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
        "every": "每",
        "useful": "的时间有效",
        "trainable": "可训练",
    },
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
        f"{plan.scenario['model']['value']} · {plan.training.method}: {words[memory.verdict]} · "
        f"{cluster.gpus} x {cluster.gpu} · "
        f"{_time(cluster.training_time)} · {range_text(budget.total, budget.low, budget.high)}",
        "",
        f"{words['model']:<14} {_count(plan.workload.parameters_total)}, {words['trainable']} "
        f"{_count(plan.workload.parameters_trainable)} · {plan.workload.training_flop.m_as('FLOP'):.2e} FLOP",
        f"{words['memory']:<14} {_gib(memory.total)} ({_gib(memory.low)} - {_gib(memory.high)}) {words['of']} "
        f"{_gib(memory.capacity)} GiB = {memory.total.m_as('GB / GPU'):.1f} GB · {memory.peak_phase}",
        f"{words['cards']:<14} {cluster.gpus} x {cluster.gpu}, {_layout(plan)}",
        f"{words['interconnect']:<14} "
        + (
            words["none"]
            if cluster.gpus == 1
            else f"{words['required']} {required or '0'} · {link.fabric}: "
            f"{link.communication_share.m_as(''):.0%} {words['waits']}"
        ),
        f"{words['time']:<14} {_time(cluster.training_time)} ({_time(cluster.low)} - {_time(cluster.high)}) · "
        f"{cluster.tokens_per_second_per_gpu.m_as('token / s / GPU'):,.0f} token/s/GPU · MFU {cluster.mfu.m_as(''):.0%}",
        f"{words['storage']:<14} {words['checkpoint']} {_bytes(storage.checkpoint_size)} {words['every']} "
        f"{_time(storage.checkpoint_interval)} · {storage.goodput.m_as(''):.1%} {words['useful']}",
        f"{words['budget']:<14} {range_text(budget.total, budget.low, budget.high)} · {budget.price.provider} "
        f"{budget.price.instance} · {budget.price.as_of}",
    ]
    defaults = [key for key, entry in plan.scenario.items() if entry["origin"] == "default"]
    lines += [f"{words['defaults']:<14} {', '.join(defaults)}", ""]
    lines += [f"{'!' if one.severity != 'info' else '-'} {one.text[language]}" for one in plan.advice]
    return "\n".join(lines)


def _layout(plan: Plan) -> str:
    layout = plan.cluster.layout
    sizes = {
        "data": layout.data_parallel_size,
        "tensor": layout.tensor_parallel_size,
        "pipeline": layout.pipeline_parallel_size,
        "context": layout.context_parallel_size,
        "expert": layout.expert_parallel_size,
    }
    parts = [f"{name} {size}" for name, size in sizes.items() if size > 1]
    parts += [f"ZeRO-{layout.zero_stage}"] if layout.zero_stage else []
    parts += [f"micro-batch {layout.micro_batch_size}", f"recomputation {layout.activation_recomputation}"]
    return ", ".join(parts)


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


def _time(value: Quantity) -> str:
    shown = speed_note(value)
    return f"{shown.magnitude:.3g} {shown.units:~}"
