"""The findings of this stage in English and Chinese, by code. Braces are filled in by `advice.py`."""

from __future__ import annotations

RESUME_STATE = (
    "weights, optimizer states, scheduler step, data position, RNG states of all ranks, gradient scaler and the run's settings",
    "权重、优化器状态、学习率调度步数、数据读取位置、各进程随机数状态、梯度缩放器以及训练配置",
)
PUBLICATION = (
    "Write under a temporary name, flush, then rename: a checkpoint with its final name is complete.",
    "先写入临时文件名并落盘，再重命名：凡是正式命名的检查点都是完整的。",
)

FINDINGS: dict[str, tuple[str, str]] = {
    "disk_fills": (
        "The disk is full after {after}{day}: it takes {fits} checkpoints of {size} beside the data, and keeping {keep} needs "
        "room for {room}. Keep fewer, save weights only, or take a larger disk.",
        "磁盘将在 {after} 后写满{day}：除数据外只放得下 {fits} 个 {size} 的检查点，"
        "而保留 {keep} 个需要 {room} 个的空间。请减少保留个数、仅存权重或换更大的盘。",
    ),
    "disk_never_starts": (
        "The disk cannot hold a single checkpoint of {size} beside the data: the first save at {after}{day} fails.",
        "磁盘除数据外放不下一个 {size} 的检查点：{after} 后的第一次保存就会失败{day}。",
    ),
    "retention": (
        "Keep {keep} checkpoints of {size} and room for one more: {total}. Fill a shared file system to 80 % at most.",
        "保留 {keep} 个 {size} 的检查点并多留一个的空间：{total}。共享文件系统最多用到 80%。",
    ),
    "resume_incomplete": (
        "Saving {content} only: after a fault training cannot go on exactly, the optimizer starts cold. A complete resume "
        "state has {size} and holds " + RESUME_STATE[0] + ".",
        "仅保存{content}：故障后无法完整断点续训，优化器状态会丢失。完整续训状态为 {size}，包含" + RESUME_STATE[1] + "。",
    ),
    "resume_state": (
        "A complete resume state holds " + RESUME_STATE[0] + ". " + PUBLICATION[0],
        "完整的续训状态包含" + RESUME_STATE[1] + "。" + PUBLICATION[1],
    ),
    "too_slow": (
        "No storage of this cloud's catalog does: {why}. The least bad one is shown.",
        "目录中该云没有完全满足要求的存储：{why}。这里给出相对最好的方案。",
    ),
    "watchdog": (
        "A save takes {write} while all ranks wait: the NCCL watchdog ends the job after {limit}. Raise the timeout "
        "(ddp_timeout) and shorten the save: every rank writes its part, to local disk, asynchronously.",
        "一次保存需 {write}，期间所有进程等待：NCCL 看门狗会在 {limit} 后终止任务。"
        "请调大超时（ddp_timeout），并缩短保存：分片写、先写本地盘、异步保存。",
    ),
    "gathered_save": (
        "One process gathers and writes {size} at about {rate}, however fast the storage is. Save sharded.",
        "由单个进程汇总并写出 {size}，速度约 {rate}，再快的存储也无济于事。请改用分片保存。",
    ),
    "stall": (
        "Saving stops training for {stall} every {interval}: {share} of the time. Save asynchronously or to a faster tier.",
        "每 {interval} 保存一次，每次阻塞训练 {stall}，占 {share}。请改为异步保存，或先写更快的存储层。",
    ),
    "copies_overlap": (
        "The background copy takes {write}, longer than the interval of {interval}: copies pile up.",
        "后台写入需 {write}，长于保存间隔 {interval}，写入会堆积。",
    ),
    "staging": (
        "The asynchronous copy hides the write; it takes {size} of host RAM per machine and is durable only when it has ended.",
        "异步保存可隐藏写入时间；每个节点需 {size} 主机内存作暂存，写完之后才算落盘。",
    ),
    "coordination": (
        "With {ranks} ranks the coordination of a save outlasts its writing: no full state dict, no plan through rank 0; every "
        "rank writes its own file, and plans are cached.",
        "{ranks} 个进程同时保存时，协调开销会超过写入本身：不要汇总完整 state dict，"
        "也不要经由 0 号进程做规划；每个进程各写各的文件，并缓存保存计划。",
    ),
    "local_is_lost": (
        "Local NVMe is lost when the machine is released: copy every checkpoint to object storage in the background, and never "
        "write to an object mount directly (sharded saves time out).",
        "本地 NVMe 盘随实例释放而丢失：每个检查点都要后台上传到对象存储；不要直接写挂载的对象存储（分片保存会超时）。",
    ),
    "object_mount": (
        "Never save to a mounted object store: many sharded writers time out. It is for raw data and for what is kept aside.",
        "不要把检查点直接写到挂载的对象存储：多节点分片写入会超时。对象存储只放原始数据和归档。",
    ),
    "spot_without_checkpoints": (
        "On spot machines one interruption is expected every {mtbf}. Without checkpoints the run would take {factor} times as "
        "long: save, and restart by itself.",
        "竞价实例预计每 {mtbf} 中断一次。没有检查点时总时长会变为原来的 {factor} 倍：必须定期保存并自动恢复。",
    ),
    "longer_than_notice": (
        "A save takes {write} and the notice is {notice}: an interruption costs {lost} of work on average.",
        "一次保存需 {write}，而回收通知只有 {notice}：每次中断平均损失 {lost} 的训练。",
    ),
    "goodput": (
        "A fault every {mtbf}, {restarts} over {wall}; each costs {lost} of work and {restart} of restart. Saving every "
        "{interval}: goodput {good} (every half hour: {habit}).",
        "平均每 {mtbf} 一次故障，{wall} 内约 {restarts} 次；每次损失 {lost} 的训练并需 {restart} 重启。"
        "保存间隔 {interval} 时有效训练时间占 {good}（每半小时保存：{habit}）。",
    ),
    "starved": (
        "Training reads {needed} and the tier gives {offered}: GPU utilization will swing between 0 and 95 %.",
        "训练需读取 {needed}，而存储只有 {offered}：GPU 利用率会在 0 到 95% 间摆动。",
    ),
    "ship_a_device": (
        "Uploading takes {upload}; a shipped device arrives in {ship}.",
        "上传需 {upload}；邮寄存储设备只需 {ship}。",
    ),
    "slow_start": (
        "At the start {nodes} machines read {traffic} at once: {time}. Let one read and broadcast ({broadcast}) or keep the "
        "weights on local NVMe; else the first collective times out.",
        "启动时 {nodes} 个节点同时读取共 {traffic}：{time}。可由一个节点读取后广播（{broadcast}），"
        "或预先放到本地 NVMe 盘；否则首个集合通信会超时。",
    ),
    "ask_for_quote": (
        "A tier has no public price: the same class elsewhere stands in. Ask for a quote.",
        "部分存储层没有公开报价，暂以同类产品价格代替，请向厂商询价。",
    ),
    "disk_speed_by_size": (
        "A cloud disk's speed grows with its size: a 100 GB disk is slow by design. Data belong on local NVMe.",
        "云硬盘速度随容量增长：100 GB 的盘注定慢。训练数据应放本地 NVMe 盘。",
    ),
    "after_the_run": (
        "Delete the fast tiers when the GPUs go: they cost {price} a month. What is kept costs {kept} over its whole time.",
        "GPU 释放后请一并删除高速存储层：每月 {price}。需要保留的产物在整个保留期共 {kept}。",
    ),
    "nvme_assumed": (
        "The machine's local NVMe is not known and was assumed; check it.",
        "未知节点的本地 NVMe 容量，按常见配置假设，请核实。",
    ),
}
CONTENT = {"weights": ("weights", "权重"), "adapters": ("adapters", "适配器"), "full_state": ("everything", "完整状态")}
