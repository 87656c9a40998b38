"""Likely causes in the order they are looked at, each with the command that tells and what it prints when all is well.

The order is the maintainers': the physical layer, then the link and topology, the RoCE settings, GPUDirect, NCCL's environment,
and only then the framework. Causes that the evidence shows come first, those it rules out last.
"""

from __future__ import annotations

from collections.abc import Iterable

from advisor.verify.cause_tables import HOST_CAUSES
from advisor.verify.records import LAYERS, Cause

NETWORK_CAUSES: dict[str, tuple[str, str, str, str, str, str]] = {
    "run_too_small": (
        "measurement",
        "The largest message is too small for the peak: the bandwidth may rise further.",
        "消息最大尺寸偏小，带宽可能尚未到峰值。",
        "all_reduce_perf -b 1G -e 8G -f 2 -g 1",
        "busbw nearly equal for the last two sizes",
        "最后两个尺寸的 busbw 基本相同",
    ),
    "tree_on_two_nodes": (
        "measurement",
        "On exactly two nodes Tree prints more than the ports carry.",
        "恰好两个节点时，Tree 算法的 busbw 会高于网卡实际带宽。",
        "NCCL_ALGO=RING all_reduce_perf -b 1G -e 8G -f 2 -g 1",
        "busbw at or below the node's line rate",
        "busbw 不高于单节点线速",
    ),
    "one_rank_jobs": (
        "measurement",
        "nccl-tests was built without MPI, so every process measured itself.",
        "编译 nccl-tests 时没有 MPI，每个进程都只测了自己。",
        'make MPI=1 MPI_HOME="$MPI_HOME" CUDA_HOME="$CUDA_HOME" NCCL_HOME="$NCCL_HOME"',
        "the rank list shows all ranks on all nodes",
        "进程列表列出所有节点的所有 rank",
    ),
    "port_down": (
        "physical",
        "A port is down or came up at a lower rate: cable, transceiver or switch port.",
        "有端口未连通或降速：线缆、光模块或交换机端口问题。",
        "ibstat | grep -E 'CA |State|Physical|Rate'; mlxlink -d mlx5_0 -c",
        "State: Active, LinkUp, the adapter's full Rate; few symbol errors",
        "State: Active、LinkUp、速率为网卡标称值，误码很少",
    ),
    "pcie_narrow": (
        "physical",
        "A NIC or GPU sits in a narrow or downgraded PCIe slot.",
        "网卡或 GPU 的 PCIe 通道数或代数被降级。",
        "lspci -vv | grep -E 'Mellanox|NVIDIA|LnkSta:'",
        "LnkSta shows the full speed and width (16GT/s or 32GT/s, Width x16), no 'downgraded'",
        "LnkSta 为满速满宽（16GT/s 或 32GT/s，Width x16），没有 downgraded",
    ),
    "gpu_missing": (
        "physical",
        "A GPU has fallen off the bus or was never there.",
        "有 GPU 掉卡或未安装。",
        "nvidia-smi -L; sudo dmesg | grep -E 'NVRM: Xid'",
        "as many GPUs as ordered, and no Xid",
        "GPU 数量与订购一致，没有 Xid",
    ),
    "nvlink_down": (
        "physical",
        "An NVLink or the NVSwitch's fabric manager is down.",
        "NVLink 断开或 NVSwitch 的 fabric manager 未运行。",
        "nvidia-smi nvlink -s; systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric",
        "all links at the same speed; the service active; State: Completed, Status: Success",
        "所有链路同速；服务 active；State: Completed，Status: Success",
    ),
    "throttled": (
        "physical",
        "The GPUs are hot or power-capped and run slower.",
        "GPU 过热或功耗受限而降频。",
        "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
        "'Not Active' beside HW Slowdown, SW Thermal Slowdown and HW Power Brake",
        "HW Slowdown、SW Thermal Slowdown、HW Power Brake 均为 Not Active",
    ),
    "one_port_slow": (
        "link",
        "One port or its path is slow; the slowest rail sets the pace of all.",
        "某个端口或路径偏慢；最慢的一路决定整体速度。",
        'ib_write_bw -d mlx5_0 --report_gbits -D 10 -F -q 4 "$PEER"',
        "at least 90 % of the port's rate on every port",
        "每个端口都不低于标称速率的 90%",
    ),
    "wrong_socket": (
        "link",
        "The process runs on the other CPU socket than its NIC.",
        "进程与网卡不在同一个 CPU 插槽。",
        "numactl --cpunodebind=$(cat /sys/class/infiniband/mlx5_0/device/numa_node) ib_write_bw -d mlx5_0 --report_gbits -F",
        "the port's full rate once pinned",
        "绑定后达到端口速率",
    ),
    "fewer_ports": (
        "link",
        "Fewer ports are in use than the node has, or than were promised.",
        "实际使用的网卡端口少于节点所有或承诺的数量。",
        "ibdev2netdev; nvidia-smi topo -m; NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 1 2>&1 | grep 'NET/IB : Using'",
        "all ports Up, and all of them in the 'Using' line",
        "所有端口 Up，且都出现在 Using 一行",
    ),
    "far_nic": (
        "link",
        "A GPU's nearest NIC is across the host bridge or the sockets.",
        "GPU 最近的网卡要跨主桥或跨 CPU 插槽。",
        "nvidia-smi topo -m",
        "PIX or PXB between every GPU and a NIC of its own",
        "每张 GPU 与其网卡之间为 PIX 或 PXB",
    ),
    "spine_oversubscribed": (
        "link",
        "The nodes sit under different leaf switches with an oversubscribed spine, or with neighbours that use it.",
        "节点分布在不同 leaf 下，spine 有收敛或被其他租户占用。",
        "all_reduce_perf -b 1G -e 8G -f 2 -g 1  # on pairs of nodes under one leaf, then under two",
        "the same busbw for both pairs",
        "两组节点的 busbw 相同",
    ),
    "roce_pfc": (
        "roce",
        "PFC is not on, or on another priority than the traffic: packets are lost under load.",
        "PFC 未启用，或与流量不在同一优先级：高负载下丢包。",
        "mlnx_qos -i eth0; ethtool -S eth0 | grep -E 'prio[0-7]_pause|rx_discards_phy|out_of_sequence'",
        "PFC enabled on the one priority of the traffic (usually 3) at both ends and on every switch; discards stay 0",
        "两端与每台交换机都在流量所在优先级（通常 3）启用 PFC；discards 不增长",
    ),
    "roce_ecn": (
        "roce",
        "ECN marking (DCQCN) is off at an end or on a switch: senders do not slow down in time.",
        "某端或交换机未启用 ECN（DCQCN）：发送端不能及时降速。",
        "cat /sys/class/net/eth0/ecn/roce_np/enable/3 /sys/class/net/eth0/ecn/roce_rp/enable/3",
        "1 and 1; rp_cnp_handled grows a little under load",
        "均为 1；负载下 rp_cnp_handled 略有增长",
    ),
    "roce_dscp": (
        "roce",
        "The traffic is not marked for the lossless class, or the NIC does not trust the mark.",
        "流量没有打上无损队列的 DSCP，或网卡不信任 DSCP。",
        'mlnx_qos -i eth0 | grep -i trust; cat /sys/class/infiniband/mlx5_0/tc/1/traffic_class; echo "$NCCL_IB_TC"',
        "trust state: dscp; traffic class 106 (DSCP 26 and ECN-capable) or the network team's own",
        "trust state 为 dscp；traffic class 为 106（DSCP 26 且支持 ECN）或网络方给定值",
    ),
    "roce_gid": (
        "roce",
        "The GID index is not that of RoCE v2 with IPv4 (error 12, vendor err 129 is its sign).",
        "GID index 不是 RoCE v2 + IPv4 那一行（典型报错：error 12，vendor err 129）。",
        'show_gids; echo "$NCCL_IB_GID_INDEX"',
        "a row 'v2' with an IPv4 address; its index is NCCL_IB_GID_INDEX (often 3)",
        "有 v2 且带 IPv4 的一行，其编号等于 NCCL_IB_GID_INDEX（常为 3）",
    ),
    "roce_mtu": (
        "roce",
        "The MTU is small at an end or on a switch: active_mtu 1024 instead of 4096.",
        "某端或交换机 MTU 偏小：active_mtu 为 1024 而不是 4096。",
        'ibv_devinfo | grep active_mtu; ip link show eth0 | grep -o "mtu [0-9]*"; ping -M do -s 8972 -c 3 "$PEER_IP"',
        "active_mtu: 4096 (5); mtu 9000; no 'message too long'",
        "active_mtu: 4096 (5)；mtu 9000；没有 message too long",
    ),
    "roce_ece": (
        "roce",
        "Enhanced connection establishment (ECE) meets another congestion control: bandwidth jitters.",
        "ECE 与不同的拥塞控制算法不匹配：带宽抖动。",
        "NCCL_IB_ECE_ENABLE=0 all_reduce_perf -b 1G -e 8G -f 2 -g 1",
        "the same busbw in every repetition",
        "每次重复 busbw 一致",
    ),
    "gdr_off": (
        "gpudirect",
        "GPUDirect RDMA is off: data go through host memory, half the line rate or far less.",
        "GPUDirect RDMA 未启用：数据经主机内存中转，只有线速的一半或更低。",
        "lsmod | grep nvidia_peermem; NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 1 2>&1 | grep -E 'GDRDMA|GPU Direct RDMA'",
        "'via NET/IB/0/GDRDMA'; no 'GPU Direct RDMA Disabled'. NCCL up to 2.22.3 does not look for nvidia-peermem",
        "出现 via NET/IB/0/GDRDMA，没有 GPU Direct RDMA Disabled。NCCL 2.22.3 及以前不识别 nvidia-peermem",
    ),
    "acs_on": (
        "gpudirect",
        "ACS or the IOMMU sends peer traffic through the root complex: half the bandwidth, or a hang.",
        "ACS 或 IOMMU 使点对点流量绕经根复合体：带宽减半甚至挂起。",
        "sudo lspci -vvv | grep ACSCtl; grep -o 'iommu[^ ]*' /proc/cmdline",
        "SrcValid- on every bridge; iommu=pt",
        "每个桥都是 SrcValid-；iommu=pt",
    ),
    "gdr_level": (
        "gpudirect",
        "GPU and NIC are on different sockets, where NCCL does not use GPUDirect by itself.",
        "GPU 与网卡跨插槽，NCCL 默认不使用 GPUDirect。",
        "NCCL_NET_GDR_LEVEL=SYS all_reduce_perf -b 1G -e 8G -f 2 -g 1",
        "more than without it",
        "比不设时更快",
    ),
    "sockets": (
        "nccl",
        "NCCL runs over sockets and not over RDMA.",
        "NCCL 走套接字而不是 RDMA。",
        "NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 1 2>&1 | grep -E 'NET/(IB|Socket|OFI)'; ls /dev/infiniband",
        "NET/IB : Using [0]mlx5_0:1/IB ... (or NET/OFI on EFA and Slingshot); uverbs0 ... exist",
        "NET/IB : Using [0]mlx5_0:1/IB ...（EFA、Slingshot 为 NET/OFI）；存在 uverbs0 等",
    ),
    "template_environment": (
        "nccl",
        "NCCL variables were copied from a template (NCCL_IB_DISABLE, NCCL_P2P_DISABLE, NCCL_SHM_DISABLE ...).",
        "NCCL 变量照抄了其他环境的模板（NCCL_IB_DISABLE、NCCL_P2P_DISABLE、NCCL_SHM_DISABLE 等）。",
        "env | grep -E '^(NCCL|UCX|FI|MASTER)_'; cat /etc/nccl.conf ~/.nccl.conf 2>/dev/null",
        "nothing that you cannot explain; unset the rest and measure again",
        "没有说不清来由的变量；其余先 unset 再测",
    ),
    "mixed_nics": (
        "nccl",
        "NCCL takes storage or management ports in.",
        "NCCL 把存储或管理网口也用上了。",
        'NCCL_IB_HCA="=mlx5_0,mlx5_1" all_reduce_perf -b 1G -e 8G -f 2 -g 1  # the compute ports only',
        "the 'Using' line names the compute ports only",
        "Using 一行只有计算网口",
    ),
    "cross_rail": (
        "nccl",
        "The rails cannot reach each other (ibv_modify_qp error 110).",
        "各轨道之间不可路由（ibv_modify_qp 报错 110）。",
        "NCCL_CROSS_NIC=0 all_reduce_perf -b 1G -e 8G -f 2 -g 1",
        "the run ends without error",
        "运行无报错结束",
    ),
    "nvls_off": (
        "nccl",
        "NVLink SHARP was not used: this is the ring's speed (about 370 of 480 on 8 H100).",
        "没有使用 NVLink SHARP：这是 Ring 的速度（8×H100 约 370，而不是 480）。",
        "NCCL_DEBUG=INFO all_reduce_perf -b 8G -e 8G -g 1 2>&1 | grep -i nvls; env | grep NCCL_NVLS",
        "NVLS comm ... ; NCCL_NVLS_ENABLE not 0; a driver and fabric manager that allow multicast",
        "出现 NVLS comm；NCCL_NVLS_ENABLE 不为 0；驱动与 fabric manager 支持 multicast",
    ),
    "no_peer_access": (
        "nccl",
        "The cards have no peer access over PCIe (GeForce, ACS, a virtual machine): data go through host memory.",
        "卡间没有 PCIe P2P（GeForce、ACS 或虚拟机）：数据经主机内存。",
        "nvidia-smi topo -p2p r; NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 8 2>&1 | grep -E 'via (P2P|SHM)'",
        "OK between all pairs; via P2P",
        "所有 GPU 对均为 OK；via P2P",
    ),
    "one_process_per_node": (
        "nccl",
        "One process drove all GPUs of a node (-g 8): host threads limit large jobs.",
        "每节点只用一个进程驱动全部 GPU（-g 8），大规模时受主机线程限制。",
        'mpirun -np "$RANKS" -N 8 all_reduce_perf -b 1G -e 8G -f 2 -g 1',
        "one rank a GPU in the rank list",
        "进程列表中每张 GPU 一个 rank",
    ),
    "framework_volume": (
        "framework",
        "The wire is right and the job still waits: it sends too much (ZeRO-3 moves 3 x the weights every micro-step).",
        "网络正常但训练仍在等待：通信量太大（ZeRO-3 每个微批次移动 3 倍权重）。",
        "advisor search scenario.json --top 10  # zero_stage 1 or 2, or shards inside the node (hpz, HYBRID_SHARD)",
        "a smaller share of the step spent waiting",
        "每步等待占比下降",
    ),
}

_ALL = {**NETWORK_CAUSES, **HOST_CAUSES}

#: Codes of problems that the readers find, and the cause that they show.
SHOWN_BY: dict[str, str] = {
    "link_down": "port_down",
    "below_adapter": "port_down",
    "mixed_rates": "port_down",
    "above_the_wire": "tree_on_two_nodes",
    "average_below_peak": "one_port_slow",
    "between_line_rates": "wrong_socket",
    "cpu_frequency": "cpu_governor",
    "mtu_1024": "roce_mtu",
    "no_roce_v2_gid": "roce_gid",
    "collapse_after_peak": "roce_pfc",
    "dip": "roce_pfc",
    "net_socket": "sockets",
    "slow_as_sockets": "sockets",
    "sockets_instead_of_rdma": "sockets",
    "no_ib_device": "sockets",
    "gdr_disabled": "gdr_off",
    "gpudirect_off": "gdr_off",
    "costly_setting": "template_environment",
    "loopback_interface": "template_environment",
    "mixed_adapters": "mixed_nics",
    "one_rank_jobs": "one_rank_jobs",
    "gpu_missing": "gpu_missing",
    "gpu_fault": "gpu_fault",
    "ecc_errors": "gpu_fault",
    "hot": "throttled",
    "nic_far": "far_nic",
    "input_starvation": "few_workers",
    "page_cache": "page_cache",
    "cached_read": "page_cache",
    "buffered": "page_cache",
    "random_read_slow": "small_files",
    "single_shared_file": "one_shared_file",
    "first_step_slow": "first_step",
    "other_processes": "other_processes",
    "held_outside": "other_processes",
    "fragmentation": "fragmentation",
    "outside_pytorch": "outside_pytorch",
    "capped": "memory_cap",
    "host_killed": "host_memory",
    "host_refused": "host_memory",
    "timeout_at_barrier": "save_outlasts_timeout",
    "timeout_at_load": "load_skew",
    "timeout_in_step": "rank_died",
    "ranks_out_of_step": "rank_died",
    "not_all_joined": "node_absent",
    "each_alone": "launched_alone",
}


def cause(code: str, standing: str = "possible") -> Cause:
    """One cause of the tables."""
    layer, en, zh, command, good_en, good_zh = _ALL[code]
    return Cause(
        code=code,
        layer=layer,
        standing=standing,
        text={"en": en, "zh": zh},
        command=command,
        expect={"en": good_en, "zh": good_zh},
    )


def in_order(codes: Iterable[str], shown: Iterable[str] = (), ruled_out: Iterable[str] = ()) -> tuple[Cause, ...]:
    """The causes of those codes: shown first, then possible from the physical layer up, then what the evidence rules out.

    A cause in `shown` is listed even where `codes` does not name it.
    """
    shown, ruled_out = set(shown), set(ruled_out)
    causes = []
    for code in dict.fromkeys([*codes, *(one for one in _ALL if one in shown)]):
        standing = "shown" if code in shown else "ruled_out" if code in ruled_out else "possible"
        causes.append(cause(code, standing))
    rank = {"shown": 0, "possible": 1, "ruled_out": 2}
    return tuple(sorted(causes, key=lambda one: (rank[one.standing], LAYERS.index(one.layer))))


def next_command(causes: tuple[Cause, ...]) -> str:
    """The command of the first cause that is not ruled out."""
    return next((one.command for one in causes if one.standing != "ruled_out"), "")


def known(code: str) -> bool:
    """Whether there is a cause of that code."""
    return code in _ALL
