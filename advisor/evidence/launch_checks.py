"""What a launch log means: wrong ranks, collectives on the wrong network, and what a timeout points to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.evidence.parts import cut_problem, problem
from advisor.evidence.report import Problem
from advisor.units import Q, unit

if TYPE_CHECKING:
    from advisor.evidence.launch import LaunchReading

WORK = re.compile(r"WorkNCCL\(SeqNum=(\d{1,12}), OpType=(\w{1,40})")
#: Settings copied from troubleshooting templates that cost speed, with the value that does.
COSTLY = {
    "NCCL_IB_DISABLE": ("1", "InfiniBand and RoCE are switched off", "关闭了 InfiniBand/RoCE"),
    "NCCL_P2P_DISABLE": ("1", "NVLink and PCIe peer-to-peer are switched off", "关闭了 NVLink/PCIe 点对点"),
    "NCCL_SHM_DISABLE": ("1", "shared memory inside the node is switched off", "关闭了机内共享内存"),
    "NCCL_NET_GDR_LEVEL": ("0", "GPUDirect RDMA is switched off", "关闭了 GPUDirect RDMA"),
    "NCCL_NET": ("Socket", "sockets are forced", "强制使用套接字"),
}


def check(reading: LaunchReading, text: str, truncated: bool) -> tuple[Problem, ...]:
    """Every problem of one log."""
    cut = [cut_problem("inside its last line", "最后一行中间")] if truncated else []
    return (*cut, *_ranks(reading), *_network(reading, text), *_timeout(reading, text), *_exit(reading), *_batch(reading))


def long_log() -> Problem:
    """Only the ends of a long log are looked at."""
    return problem(
        "long_log",
        "info",
        "The log is long: its first 600 kB and last 400 kB were read.",
        "日志很长：只读取了开头 600 kB 和结尾 400 kB。",
    )


def verdict(reading: LaunchReading) -> str | None:
    """ "good" or "BAD: ..." for the network NCCL chose; None where the log does not say."""
    name = reading.network
    if name is None:
        return None
    if name.startswith("Socket"):
        return "BAD: sockets instead of RDMA" + (" over IPoIB" if "IPoIB" in name else "")
    if name == "none":
        return "BAD: no network device found"
    if reading.gdr is False:
        return "BAD: RDMA without GPUDirect"
    return "good"


def _ranks(reading: LaunchReading) -> list[Problem]:
    result = []
    world, nodes, procs = reading.world_size, reading.nodes, reading.procs_per_node
    if world and nodes and procs and world != nodes * procs:
        result.append(
            problem(
                "world_size_disagrees",
                "error",
                f"The world size is {world}, but {nodes} nodes x {procs} processes are {nodes * procs}: a node "
                "counts other GPUs.",
                f"world size 为 {world}，而 {nodes} 节点 × {procs} 进程 = {nodes * procs}：有节点的卡数不同。",
            )
        )
    high = [rank for rank in reading.ranks if world and rank >= world]
    if high:
        result.append(
            problem(
                "rank_out_of_range",
                "error",
                f"Rank {high[0]} cannot exist in a world of {world}: the launchers were started with different arguments.",
                f"world size 为 {world} 时不可能有 rank {high[0]}：各节点启动参数不一致。",
            )
        )
    if procs and any(rank >= procs for rank in reading.local_ranks):
        result.append(
            problem(
                "local_rank_out_of_range",
                "error",
                f"Local rank {max(reading.local_ranks)} cannot exist with {procs} processes on a node.",
                f"每节点 {procs} 个进程时不可能有 local rank {max(reading.local_ranks)}。",
            )
        )
    if world == 1 and (len(reading.ranks) > 1 or len(reading.hosts) > 1 or (nodes or 1) > 1):
        result.append(
            problem(
                "each_alone",
                "error",
                "Every process believes it is alone (world size 1): the launcher's environment did not reach them.",
                "每个进程都认为只有自己（world size 为 1）：启动器的环境变量没有传到。",
            )
        )
    devices = reading.visible_devices
    if devices is not None and procs and procs > len(devices):
        result.append(
            problem(
                "more_processes_than_devices",
                "warning",
                f"{procs} processes share {len(devices)} visible GPUs.",
                f"{procs} 个进程共用 {len(devices)} 张可见的卡。",
            )
        )
    if reading.joined and reading.joined[0] < reading.joined[1]:
        here, all_of = reading.joined
        result.append(
            problem(
                "not_all_joined",
                "error",
                f"Only {here} of {all_of} clients reached the rendezvous: a node did not start, or the master's "
                "address or port is "
                "blocked.",
                f"只有 {here}/{all_of} 个客户端加入：有节点未启动，或主节点地址/端口不通。",
            )
        )
    return result


def _network(reading: LaunchReading, text: str) -> list[Problem]:
    result = []
    environment = reading.environment or {}
    for name, (value, en, zh) in COSTLY.items():
        if environment.get(name, "").strip("'\"").lower() == value.lower():
            result.append(
                problem("costly_setting", "warning", f"{name}={value}: {en}. Reset it.", f"{name}={value}：{zh}。请取消。")
            )
    if environment.get("NCCL_SOCKET_IFNAME") == "lo" and (reading.nodes or 1) > 1:
        result.append(
            problem(
                "loopback_interface",
                "error",
                "NCCL_SOCKET_IFNAME is lo: other nodes cannot be reached.",
                "NCCL_SOCKET_IFNAME 为 lo：无法连到其他节点。",
            )
        )
    if reading.network is not None and reading.network.startswith("Socket"):
        over = " over IPoIB" if "IPoIB" in reading.network else ""
        result.append(
            problem(
                "sockets_instead_of_rdma",
                "warning",
                f"NCCL talks over sockets{over} (NET/Socket), not RDMA: expect a tenth of the fabric. Check that the "
                "container has "
                "/dev/infiniband and libibverbs, or the network's plugin, then NCCL_IB_DISABLE and NCCL_IB_HCA.",
                "NCCL 走套接字（NET/Socket）而不是 RDMA：带宽可能只有十分之一。请检查容器内是否有 /dev/infiniband "
                "与 libibverbs（或网络插件），"
                "再查 NCCL_IB_DISABLE 与 NCCL_IB_HCA。",
            )
        )
    if "NET/IB : No device found" in text and not (reading.network or "").startswith("Socket"):
        result.append(
            problem(
                "no_ib_device",
                "warning",
                "NCCL found no InfiniBand or RoCE device.",
                "NCCL 没有找到 InfiniBand 或 RoCE 设备。",
            )
        )
    if reading.gdr is False and not (reading.network or "").startswith("Socket"):
        result.append(
            problem(
                "gpudirect_off",
                "warning",
                "GPUDirect RDMA is off: data pass through host memory, often half the line rate and far less in "
                "all-reduce. Load "
                "nvidia-peermem or use dmabuf; NCCL up to 2.22.3 does not look for nvidia-peermem, use 2.23.4 or newer.",
                "GPUDirect RDMA 未启用：数据经主机内存中转，往往只有线速的一半或更低。请加载 nvidia-peermem 或使用 dmabuf；"
                "NCCL 2.22.3 及以前不识别 nvidia-peermem，请用 2.23.4 以上。",
            )
        )
    if reading.link_layer == "mixed":
        result.append(
            problem(
                "mixed_adapters",
                "warning",
                "InfiniBand and RoCE adapters are used together: leave out storage and management ports with NCCL_IB_HCA.",
                "同时使用了 InfiniBand 与 RoCE 网卡：请用 NCCL_IB_HCA 排除存储与管理网口。",
            )
        )
    return result


def _timeout(reading: LaunchReading, text: str) -> list[Problem]:
    if reading.op is None and reading.seq is None:
        return []
    result = []
    ran, limit = reading.ran, reading.timeout
    if ran is not None and limit is not None and ran < limit * 0.99:
        result.append(
            problem(
                "ran_below_timeout",
                "error",
                f"It ran {ran.m_as('s'):.0f} s, less than its timeout of {limit.m_as('s'):.0f} s: one figure is wrong.",
                f"运行了 {ran.m_as('s'):.0f} 秒，少于超时 {limit.m_as('s'):.0f} 秒：其中一个数字有误。",
            )
        )
    if limit is None and ran is not None and reading.timeout_s_default is not None:
        shown = reading.timeout_s_default.m_as("s")
        result.append(
            problem(
                "timeout_assumed",
                "info",
                f"The report shows no timeout; PyTorch's default of {shown:.0f} s is assumed.",
                f"报告没有写出超时；按 PyTorch 默认 {shown:.0f} 秒理解。",
            )
        )
    saving = re.search(
        r"sav(?:e|ing)[^\n]{0,40}(?:checkpoint|model)|save_checkpoint|checkpoint-\d", text[:500_000], re.IGNORECASE
    )
    if reading.seq is not None and reading.seq <= 1:
        result.append(
            problem(
                "timeout_at_load",
                "warning",
                "SeqNum=1: no training step was made yet. Fast ranks wait for one that still loads or downloads the "
                "model, or that died "
                "(look for its own error, or signal 9). A storage or start-up fault, not a network fault; raise the "
                "timeout and stage "
                "the weights on local disks.",
                "SeqNum=1：还没有完成任何训练步。先到的进程在等仍在加载或下载模型、或已退出的进程（查看其自身报错或信号 9）。"
                "这是存储或启动问题，不是网络问题；可增大超时，并把权重放到本地盘。",
            )
        )
    elif saving or (reading.numel_in == 1 and "ALLREDUCE" in (reading.op or "")):
        result.append(
            problem(
                "timeout_at_barrier",
                "warning",
                "The others wait at a barrier, usually for rank 0 to save or prepare data: raise ddp_timeout and "
                "save sharded, "
                "asynchronously or to a local disk.",
                "其他进程在屏障处等待，通常在等 rank 0 保存或预处理数据：增大 ddp_timeout，并采用分片、异步或本地保存。",
            )
        )
    else:
        result.append(
            problem(
                "timeout_in_step",
                "warning",
                "One rank did not join this collective: look for the earliest error of any rank (out of memory, "
                "data, a different "
                "number of batches) before suspecting the network.",
                "有进程没有参加该集合通信：先查各进程最早的报错（显存不足、数据、批次数不一致），再怀疑网络。",
            )
        )
    met = set(WORK.findall(text[:2_000_000]))
    if len(met) > 1:
        shown = ", ".join(f"{op} {seq}" for seq, op in sorted(met)[:4])
        result.append(
            problem(
                "ranks_out_of_step",
                "warning",
                f"Ranks wait in different collectives ({shown}): they run different code paths or numbers of batches.",
                f"各进程停在不同的集合通信（{shown}）：执行路径或批次数不一致。",
            )
        )
    if reading.ranks_inferred and reading.world_size and reading.world_size % reading.ranks_inferred:
        result.append(
            problem(
                "ranks_disagree",
                "warning",
                f"The collective's sizes mean {reading.ranks_inferred} ranks, the log says {reading.world_size}.",
                f"由元素数推算为 {reading.ranks_inferred} 个进程，日志写的是 {reading.world_size}。",
            )
        )
    if ran is not None and limit is not None and ran > limit * 1.5 + Q(60.0, unit("s")):
        result.append(
            problem(
                "noticed_late",
                "info",
                f"The watchdog noticed only after {ran.m_as('s'):.0f} s (limit {limit.m_as('s'):.0f} s): its thread "
                "was blocked too.",
                f"看门狗在 {ran.m_as('s'):.0f} 秒后才发现（上限 {limit.m_as('s'):.0f} 秒）：其线程也被阻塞。",
            )
        )
    return result


EXITS = {
    -9: (
        "Exit code -9 (SIGKILL) without a CUDA error: the system's out-of-memory killer ended it; host RAM ran out.",
        "退出码 -9（SIGKILL）且没有 CUDA 错误：被系统内存不足杀手终止，主机内存耗尽。",
    ),
    137: (
        "Exit code 137 (killed): the container's or host's memory limit was reached.",
        "退出码 137（被杀）：达到容器或主机的内存上限。",
    ),
    -7: (
        "Exit code -7 (SIGBUS): usually a full /dev/shm; start the container with more shared memory (--ipc=host).",
        "退出码 -7（SIGBUS）：通常是 /dev/shm 已满；请给容器更多共享内存（--ipc=host）。",
    ),
    -11: (
        "Exit code -11 (segmentation fault): a library mismatch (NCCL plugin, driver, flash-attention build) is likely.",
        "退出码 -11（段错误）：可能是库版本不匹配（NCCL 插件、驱动、flash-attention）。",
    ),
    -15: (
        "Exit code -15 (SIGTERM): it was told to stop, by the scheduler or because another rank failed first.",
        "退出码 -15（SIGTERM）：被调度器要求停止，或因其他进程先失败。",
    ),
    -6: (
        "Exit code -6 (abort): the NCCL watchdog or an assertion ended it; the cause stands above.",
        "退出码 -6（中止）：由 NCCL 看门狗或断言终止；原因在上文。",
    ),
}


def _exit(reading: LaunchReading) -> list[Problem]:
    if reading.exit_code in EXITS:
        en, zh = EXITS[reading.exit_code]
        return [problem(f"exit_{abs(reading.exit_code)}", "warning", en, zh)]
    if reading.exit_code:
        where = f" on rank {reading.failed_rank}" if reading.failed_rank is not None else ""
        return [
            problem(
                "exit_code",
                "info",
                f"It ended with exit code {reading.exit_code}{where}: the cause is in that rank's own traceback, "
                "above this report.",
                f"退出码 {reading.exit_code}{where}：原因在该进程自己的回溯里，位于此报告之前。",
            )
        ]
    return []


def _batch(reading: LaunchReading) -> list[Problem]:
    micro, steps, total, world = reading.micro_batch, reading.grad_accum, reading.total_batch, reading.world_size
    if micro and steps and total and total % (micro * steps):
        return [
            problem(
                "batch_sizes_disagree",
                "warning",
                f"A total batch of {total} is no multiple of {micro} x {steps}.",
                f"总批大小 {total} 不是 {micro} × {steps} 的整数倍。",
            )
        ]
    if micro and steps and total and world and total // (micro * steps) == 1 and world > 1:
        return [
            problem(
                "not_data_parallel",
                "warning",
                f"{world} processes were started, but the total batch is one process's own: each trains alone.",
                f"启动了 {world} 个进程，但总批大小等于单进程：各自独立训练。",
            )
        ]
    return []
