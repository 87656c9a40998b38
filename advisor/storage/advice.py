"""What a colleague who has lost a run would say about this storage, with a stable code for each finding."""

from __future__ import annotations

from typing import Any

from advisor.catalog import constant
from advisor.storage.afterwards import PUBLICATION, RESUME_STATE
from advisor.storage.designs import Judged, Situation
from advisor.storage.facts import spot_notice
from advisor.storage.records import StorageAdvice, StorageInputs
from advisor.storage.words import both, rate_text, size_text, time_text, time_text_zh
from advisor.units import unit

RANKS_WITH_SLOW_COORDINATION = 1024


def storage_advice(
    inputs: StorageInputs, found: dict[str, Any], situation: Situation, judged: Judged, location: str, nvme_assumed: bool
) -> tuple[StorageAdvice, ...]:
    """All findings on an estimate under construction (`found` holds its fields), the gravest first."""
    advice = [
        *_space(inputs, found, judged),
        *_saving(inputs, found, situation, judged),
        *_faults(inputs, found),
        *_data(found, location),
        *_start(inputs, found),
        *_money(found, judged, nvme_assumed),
    ]
    order = {"stop": 0, "warning": 1, "info": 2}
    return tuple(sorted(advice, key=lambda one: order[one.severity]))


def _one(code: str, severity: str, en: str, zh: str) -> StorageAdvice:
    return StorageAdvice(code=f"storage.{code}", severity=severity, text=both(en, zh))


def _space(inputs: StorageInputs, found: dict[str, Any], judged: Judged) -> list[StorageAdvice]:
    result = []
    size, keep = found["checkpoint_size"], inputs.keep
    if found["fills_after"] is not None:
        after = found["fills_after"]
        day, day_zh = found["fills_on"], found["fills_on"]
        when = f" ({day})" if day else ""
        result.append(
            _one(
                "disk_fills",
                "stop",
                f"The disk is full after {time_text(after)}{when}: it takes {found['saves_that_fit']} checkpoints of "
                f"{size_text(size)} beside the data, and keeping {keep} needs room for {keep + 1}. Keep fewer, save weights only, or "
                "take a larger disk.",
                f"磁盘将在 {time_text_zh(after)} 后写满{f'（{day_zh}）' if day_zh else ''}：除数据外只放得下 {found['saves_that_fit']} 个 "
                f"{size_text(size)} 的检查点，而保留 {keep} 个需要 {keep + 1} 个的空间。请减少保留个数、仅存权重或换更大的盘。",
            )
        )
    result.append(
        _one(
            "retention",
            "info",
            f"Keep {keep} checkpoints of {size_text(size)} and room for one more: {size_text((keep + 1) * size)}. Fill a shared file "
            "system to 80 % at most.",
            f"保留 {keep} 个 {size_text(size)} 的检查点并多留一个的空间：{size_text((keep + 1) * size)}。共享文件系统最多用到 80%。",
        )
    )
    if found["checkpoint_content"] != "full_state":
        extra = found["resume_size"]
        result.append(
            _one(
                "resume_incomplete",
                "warning" if inputs.method == "full" else "info",
                f"Saving {found['checkpoint_content']} only: a fault cannot be resumed exactly, the optimizer starts cold. A complete "
                f"resume state has {size_text(extra)} and holds {RESUME_STATE['en']}.",
                f"仅保存{'权重' if found['checkpoint_content'] == 'weights' else '适配器'}：故障后无法完整断点续训，优化器状态会丢失。"
                f"完整续训状态为 {size_text(extra)}，包含{RESUME_STATE['zh']}。",
            )
        )
    else:
        result.append(
            _one(
                "resume_state",
                "info",
                f"A complete resume state holds {RESUME_STATE['en']}. {PUBLICATION['en']}",
                f"完整的续训状态包含{RESUME_STATE['zh']}。{PUBLICATION['zh']}",
            )
        )
    return result


def _saving(inputs: StorageInputs, found: dict[str, Any], situation: Situation, judged: Judged) -> list[StorageAdvice]:
    result = []
    chosen = judged.option
    write_time, stall, interval = found["checkpoint_write_time"], found["checkpoint_stall"], found["checkpoint_interval"]
    if not chosen.qualifies:
        result.append(
            _one(
                "too_slow",
                "warning",
                f"No storage of this cloud's catalog does: {chosen.reason['en']}. The least bad one is shown.",
                f"目录中该云没有完全满足要求的存储：{chosen.reason['zh']}。这里给出相对最好的方案。",
            )
        )
    watchdog = constant("storage.watchdog")
    if not inputs.asynchronous and write_time.m_as(unit("s")) > watchdog.m_as(unit("s")):
        result.append(
            _one(
                "watchdog",
                "warning",
                f"A save takes {time_text(write_time)} while all ranks wait: the NCCL watchdog ends the job after "
                f"{time_text(watchdog)}. Raise the timeout (ddp_timeout) and shorten the save: every rank writes its part, to local "
                "disk, asynchronously.",
                f"一次保存需 {time_text_zh(write_time)}，期间所有进程等待：NCCL 看门狗会在 {time_text_zh(watchdog)} 后终止任务。"
                "请调大超时（ddp_timeout），并缩短保存：分片写、先写本地盘、异步保存。",
            )
        )
    if not inputs.sharded:
        result.append(
            _one(
                "gathered_save",
                "warning",
                f"One process gathers and writes {size_text(found['checkpoint_size'])} at about "
                f"{rate_text(constant('storage.stream_write_bandwidth'))}, however fast the storage is. Save sharded.",
                f"由单个进程汇总并写出 {size_text(found['checkpoint_size'])}，速度约 "
                f"{rate_text(constant('storage.stream_write_bandwidth'))}，再快的存储也无济于事。请改用分片保存。",
            )
        )
    share = (stall / (interval + stall)).m_as(unit(""))
    if share > constant("storage.stall_share_required").m_as(unit("")):
        result.append(
            _one(
                "stall",
                "warning",
                f"Saving stops training for {time_text(stall)} every {time_text(interval)}: {share:.1%} of the time. Save "
                "asynchronously, or to a faster tier first.",
                f"每 {time_text_zh(interval)} 保存一次，每次阻塞训练 {time_text_zh(stall)}，占 {share:.1%}。请改为异步保存，或先写更快的存储层。",
            )
        )
    if inputs.asynchronous and write_time.m_as(unit("s")) > interval.m_as(unit("s")):
        result.append(
            _one(
                "copies_overlap",
                "warning",
                f"The background copy takes {time_text(write_time)}, longer than the interval of {time_text(interval)}: copies pile up.",
                f"后台写入需 {time_text_zh(write_time)}，长于保存间隔 {time_text_zh(interval)}，写入会堆积。",
            )
        )
    if inputs.asynchronous:
        result.append(
            _one(
                "staging",
                "info",
                f"The asynchronous copy hides the write; it takes {size_text(found['checkpoint_size'] / situation.nodes)} of host RAM per "
                "machine and is durable only when it has ended.",
                f"异步保存可隐藏写入时间；每个节点需 {size_text(found['checkpoint_size'] / situation.nodes)} 主机内存作暂存，写完之后才算落盘。",
            )
        )
    if inputs.gpus >= RANKS_WITH_SLOW_COORDINATION:
        result.append(
            _one(
                "coordination",
                "warning",
                f"With {inputs.gpus:,} ranks the coordination of a save outlasts its writing: no full state dict, no plan through "
                "rank 0; every rank writes its own file, and plans are cached.",
                f"{inputs.gpus:,} 个进程同时保存时，协调开销会超过写入本身：不要汇总完整 state dict，也不要经由 0 号进程做规划；"
                "每个进程各写各的文件，并缓存保存计划。",
            )
        )
    if judged.classes["hot_checkpoints"] == "local-nvme":
        result.append(
            _one(
                "local_is_lost",
                "warning" if inputs.mode == "spot" else "info",
                "Local NVMe is lost when the machine is released: copy every checkpoint to object storage in the background, and never "
                "write to an object mount directly (sharded saves time out).",
                "本地 NVMe 盘随实例释放而丢失：每个检查点都要后台上传到对象存储；不要直接写挂载的对象存储（分片保存会超时）。",
            )
        )
    else:
        result.append(
            _one(
                "object_mount",
                "info",
                "Never save to a mounted object store: many sharded writers time out. It is for raw data and for what is kept aside.",
                "不要把检查点直接写到挂载的对象存储：多节点分片写入会超时。对象存储只放原始数据和归档。",
            )
        )
    return result


def _faults(inputs: StorageInputs, found: dict[str, Any]) -> list[StorageAdvice]:
    result = []
    mtbf, wall = found["mtbf"], found["wall_time"]
    without = (found["time_without_checkpoints"] / inputs.training_time).m_as(unit(""))
    if inputs.mode == "spot":
        notice = spot_notice(inputs.provider)
        factor = f"{without:.2g} times" if without < 1e6 else "more than a million times"
        factor_zh = f"{without:.2g} 倍" if without < 1e6 else "一百万倍以上"
        result.append(
            _one(
                "spot_without_checkpoints",
                "warning" if without > 1.2 else "info",
                f"On spot machines one interruption is expected every {time_text(mtbf)}. Without checkpoints the run would take {factor} "
                "its time: save, and restart by itself.",
                f"竞价实例预计每 {time_text_zh(mtbf)} 中断一次。没有检查点时总时长会变为原来的 {factor_zh}：必须定期保存并自动恢复。",
            )
        )
        if found["checkpoint_write_time"].m_as(unit("s")) > notice.m_as(unit("s")):
            result.append(
                _one(
                    "longer_than_notice",
                    "warning",
                    f"A save takes {time_text(found['checkpoint_write_time'])} and the notice is {time_text(notice)}: an interruption "
                    f"costs {time_text(found['lost_work'])} of work on average.",
                    f"一次保存需 {time_text_zh(found['checkpoint_write_time'])}，而回收通知只有 {time_text_zh(notice)}："
                    f"每次中断平均损失 {time_text_zh(found['lost_work'])} 的训练。",
                )
            )
    good, habit = found["goodput"].m_as(unit("")), found["goodput_habit"].m_as(unit(""))
    result.append(
        _one(
            "goodput",
            "warning" if good < 0.9 else "info",
            f"A fault every {time_text(mtbf)}, {found['restarts'].m_as(''):.2g} over {time_text(wall)}; each costs "
            f"{time_text(found['lost_work'])} of work and {time_text(found['restart_time'])} of restart. Saving every "
            f"{time_text(found['checkpoint_interval'])}: goodput {good:.1%} (every half hour: {habit:.1%}).",
            f"平均每 {time_text_zh(mtbf)} 一次故障，{time_text_zh(wall)} 内约 {found['restarts'].m_as(''):.2g} 次；每次损失 "
            f"{time_text_zh(found['lost_work'])} 的训练并需 {time_text_zh(found['restart_time'])} 重启。保存间隔 "
            f"{time_text_zh(found['checkpoint_interval'])} 时有效训练时间占 {good:.1%}（每半小时保存：{habit:.1%}）。",
        )
    )
    return result


def _data(found: dict[str, Any], location: str) -> list[StorageAdvice]:
    result = []
    files = found["small_files"]
    if files.worthwhile:
        result.append(_one("small_files", "warning", files.reason["en"], files.reason["zh"]))
    mixed = found["hybrid"]
    if mixed is not None:
        slow = mixed.slowdown.m_as(unit("")) > 1
        result.append(_one("far_data", "warning" if slow else "info", mixed.label["en"], mixed.label["zh"]))
    shards = found["tiers"][1]
    if shards.read_needed.m_as(unit("B/s")) > shards.read_offered.m_as(unit("B/s")):
        result.append(
            _one(
                "starved",
                "warning",
                f"Training reads {rate_text(shards.read_needed)} and the tier gives {rate_text(shards.read_offered)}: GPU utilization "
                "will swing between 0 and 95 %.",
                f"训练需读取 {rate_text(shards.read_needed)}，而存储只有 {rate_text(shards.read_offered)}：GPU 利用率会在 0 到 95% 间摆动。",
            )
        )
    if location == "local":
        shipped = next(link for link in found["uploads"] if link.link == "shipped device")
        if shipped.fastest:
            result.append(
                _one(
                    "ship_a_device",
                    "info",
                    f"Uploading takes {time_text(found['upload_time'])}; a shipped device arrives in {time_text(shipped.time)}.",
                    f"上传需 {time_text_zh(found['upload_time'])}；邮寄存储设备只需 {time_text_zh(shipped.time)}。",
                )
            )
    return result


def _start(inputs: StorageInputs, found: dict[str, Any]) -> list[StorageAdvice]:
    startup = found["startup"]
    limit = constant("storage.watchdog")
    if startup.weights_time.m_as(unit("s")) <= limit.m_as(unit("s")) / 2:
        return []
    return [
        _one(
            "slow_start",
            "warning",
            f"At the start {inputs.nodes} machines read {size_text(startup.weights_traffic)} at once: {time_text(startup.weights_time)}. "
            f"Let one read and broadcast ({time_text(startup.weights_time_broadcast)}) or keep the weights on local NVMe; else the first "
            "collective times out.",
            f"启动时 {inputs.nodes} 个节点同时读取共 {size_text(startup.weights_traffic)}：{time_text_zh(startup.weights_time)}。"
            f"可由一个节点读取后广播（{time_text_zh(startup.weights_time_broadcast)}），或预先放到本地 NVMe 盘；否则首个集合通信会超时。",
        )
    ]


def _money(found: dict[str, Any], judged: Judged, nvme_assumed: bool) -> list[StorageAdvice]:
    result = []
    bought = {}
    for tier in found["tiers"]:
        if tier.bought_for == "bandwidth" and tier.product not in bought:
            bought[tier.product] = tier
    for tier in bought.values():
        result.append(
            _one(
                "capacity_for_bandwidth",
                "info",
                f"{tier.product}: {tier.reason['en']}",
                f"{tier.product}：{tier.reason['zh']}",
            )
        )
    if any(tier.price_estimated for tier in found["tiers"]):
        result.append(
            _one(
                "ask_for_quote",
                "warning",
                "A tier has no public price: the same class elsewhere stands in. Ask for a quote.",
                "部分存储层没有公开报价，暂以同类产品价格代替，请向厂商询价。",
            )
        )
    block = next((tier for tier in found["tiers"] if tier.storage_class == "block"), None)
    if block is not None:
        result.append(
            _one(
                "disk_speed_by_size",
                "info",
                "A cloud disk's speed grows with its size: a 100 GB disk is slow by design. Data belong on local NVMe.",
                "云硬盘速度随容量增长：100 GB 的盘注定慢。训练数据应放本地 NVMe 盘。",
            )
        )
    kept = sum(item.price.magnitude for item in found["artefacts"])
    currency = f"{found['artefacts'][0].price.units:~}"
    result.append(
        _one(
            "after_the_run",
            "info",
            f"Delete the fast tiers when the GPUs go: they cost {found['price'].m_as(currency + ' / month'):,.0f} {currency} a month. What is "
            f"kept costs {kept:,.2g} {currency} over its whole time.",
            f"GPU 释放后请一并删除高速存储层：每月 {found['price'].m_as(currency + ' / month'):,.0f} {currency}。需要保留的产物在整个保留期共 "
            f"{kept:,.2g} {currency}。",
        )
    )
    if nvme_assumed:
        result.append(
            _one(
                "nvme_assumed",
                "info",
                "The machine's local NVMe is not known and was assumed; check it.",
                "未知节点的本地 NVMe 容量，按常见配置假设，请核实。",
            )
        )
    return result
