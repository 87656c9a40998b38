"""During and after the run: which checkpoints are kept where, and what remains when the GPUs are off."""

from __future__ import annotations

from advisor.catalog import constant
from advisor.storage.inputs import WEIGHTS_BYTES
from advisor.storage.records import Artefact, Retention
from advisor.storage.words import both
from advisor.units import Q, Quantity, unit, whole

#: Daily checkpoints kept aside at most: a month of them.
LONGEST_DAILY = 30


def daily_checkpoints(wall_time: Quantity) -> int:
    """One checkpoint a day kept aside, the final one at least."""
    return min(LONGEST_DAILY, max(1, whole(wall_time.m_as(unit("day")))))


def retention(keep: int, checkpoint: Quantity, wall_time: Quantity, hot_class: str, cold_class: str) -> tuple[Retention, ...]:
    """The schedule: the last `keep` hot (room for one more while writing), one a day aside, the final one for good."""
    daily = daily_checkpoints(wall_time)
    return (
        Retention(
            rule="last",
            label=both(f"the last {keep}, and room for the one being written", f"最近 {keep} 个，另留一个正在写入的空间"),
            where=hot_class,
            checkpoints=keep + 1,
            size=(keep + 1) * checkpoint,
        ),
        Retention(
            rule="daily",
            label=both("one a day, to go back before a loss spike", "每天一个，用于回退到 loss 异常之前"),
            where=cold_class,
            checkpoints=daily,
            size=daily * checkpoint,
        ),
    )


def artefacts(
    method: str,
    parameters_total: Quantity,
    parameters_trainable: Quantity,
    adapter_bytes: Quantity,
    resume_size: Quantity,
    price: Quantity,
) -> tuple[Artefact, ...]:
    """What is kept after the run, for how long and at what price over that time.

    Exports go down to edge devices: int8 is one byte a parameter, int4 about 0.56 with its scales. Adapters are kept both
    apart (small, can be stacked on the base model) and merged (ready to serve).
    """
    keep = constant("storage.artefact_retention")
    short = constant("storage.checkpoint_retention")
    served = WEIGHTS_BYTES
    entries = []
    adapters = method != "full"
    if adapters:
        entries.append(
            (
                "adapters",
                both("adapters, not merged", "适配器（未合并）"),
                parameters_trainable * adapter_bytes,
                "object",
                keep,
                both("small; several can share one base model", "体积小，多个适配器可共用一个底座模型"),
            )
        )
    entries += [
        (
            "final_weights",
            both(
                "final weights, 16-bit" + (", adapters merged" if adapters else ""),
                "最终权重（16 位）" + ("，已合并适配器" if adapters else ""),
            ),
            parameters_total * served,
            "object",
            keep,
            both("what is served and quantized from", "部署和量化的来源"),
        ),
        (
            "int8",
            both("int8 export", "int8 导出"),
            parameters_total * Q(1.0, unit("B/parameter")),
            "object",
            keep,
            both("servers with less GPU memory", "用于显存较小的服务器"),
        ),
        (
            "int4",
            both("int4 export", "int4 导出"),
            parameters_total * constant("storage.int4_bytes_per_parameter"),
            "object",
            keep,
            both("edge devices and laptops", "用于边缘设备和笔记本"),
        ),
        (
            "resume_state",
            both("last complete resume state", "最后一个完整续训状态"),
            resume_size,
            "object",
            short,
            both("only if training may go on; the first thing to delete", "仅在可能继续训练时保留；最先删除"),
        ),
        (
            "logs",
            both("logs, metrics and configuration", "日志、指标与配置"),
            constant("storage.log_size"),
            "object",
            keep,
            both("the record of the run", "训练记录"),
        ),
    ]
    return tuple(
        Artefact(
            name=name,
            label=label,
            size=size.to(unit("GB")),
            where=where_,
            keep_for=time,
            price=_money(size, price, time),
            reason=reason,
        )
        for name, label, size, where_, time, reason in entries
    )


def _money(size: Quantity, price: Quantity, time: Quantity) -> Quantity:
    currency = "CNY" if price.check("[currency_cny] / [information] / [time]") else "USD"
    return (size * price * time).to(unit(currency))
