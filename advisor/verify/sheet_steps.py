"""Steps of the set-up sheets. A row: title, why, command, what it prints when right, what it looks like when wrong.

Commands are of the NVIDIA networking tools (MLNX_OFED or DOCA-OFED) and of rdma-core; switches are set by the network team in
their own language, so the sheet says what must be true of them and not how it is typed.
"""

# ruff: noqa: E501 (a table of texts: one text a line)
from __future__ import annotations

Pair = tuple[str, str]
#: (title, why, command, right, wrong), each text in English and Chinese.
Row = tuple[Pair, Pair, str, Pair, Pair]

FIRMWARE: Row = (
    ("Firmware and driver", "固件与驱动"),
    (
        "All NICs of a rail run one firmware; congestion control differs between versions.",
        "同一轨道的网卡固件须一致；不同版本的拥塞控制行为不同。",
    ),
    "sudo mlxfwmanager --query; ofed_info -s; ibv_devinfo | grep -E 'hca_id|fw_ver'",
    ("the same FW version on every node, the driver's own recommended one", "各节点 FW 版本相同，且为驱动推荐版本"),
    ("two versions in one cluster; 'FW update required'", "集群内出现两个版本；提示 FW update required"),
)
MODE: Row = (
    ("Port mode: Ethernet, RoCE v2", "端口模式：以太网，RoCE v2"),
    (
        "The port must be Ethernet, and connections made with rdma_cm must use RoCE v2 (routable), not v1.",
        "端口须为以太网模式；rdma_cm 建链须使用可路由的 RoCE v2，而不是 v1。",
    ),
    "sudo mlxconfig -d /dev/mst/mt4129_pciconf0 query LINK_TYPE_P1; cma_roce_mode -d mlx5_0 -p 1",
    ("LINK_TYPE_P1 ETH(2); RoCE v2", "LINK_TYPE_P1 ETH(2)；RoCE v2"),
    (
        "IB(1): set LINK_TYPE_P1=2 and restart; IB/RoCE v1: cma_roce_mode -d mlx5_0 -p 1 -m 2",
        "IB(1)：设 LINK_TYPE_P1=2 并重启；IB/RoCE v1：cma_roce_mode -d mlx5_0 -p 1 -m 2",
    ),
)
MTU: Row = (
    ("MTU 9000 from end to end", "端到端 MTU 9000"),
    (
        "RDMA packets of 4096 bytes need Ethernet frames above that at both ends and on every switch hop.",
        "4096 字节的 RDMA 报文要求两端与每一跳交换机的以太网 MTU 更大。",
    ),
    'sudo ip link set eth0 mtu 9000; ibv_devinfo -d mlx5_0 | grep active_mtu; ping -M do -s 8972 -c 3 "$PEER_IP"',
    ("active_mtu: 4096 (5); three answers", "active_mtu: 4096 (5)；三次应答"),
    (
        "active_mtu: 1024 (3); 'message too long' or no answer: a switch port is at 1500",
        "active_mtu: 1024 (3)；message too long 或无应答：某交换机端口为 1500",
    ),
)
TRUST: Row = (
    ("Trust DSCP; DSCP to traffic class", "信任 DSCP；DSCP 映射到流量类"),
    (
        "The mark of a packet (DSCP 26 here) chooses its priority at the NIC and at every switch; VLAN priority is lost on routing.",
        "报文的 DSCP（此处为 26）在网卡与每台交换机上决定优先级；VLAN 优先级经路由会丢失。",
    ),
    "sudo mlnx_qos -i eth0 --trust=dscp; echo 106 | sudo tee /sys/class/infiniband/mlx5_0/tc/1/traffic_class; "
    "sudo cma_roce_tos -d mlx5_0 -t 106",
    (
        "Priority trust state: dscp; 'prio:3 dscp:24..31'. 106 = DSCP 26 x 4 + 2 (ECN-capable)",
        "Priority trust state: dscp；prio:3 dscp:24..31。106 = DSCP 26 × 4 + 2（支持 ECN）",
    ),
    (
        "trust state: pcp; traffic counted in prio0 (ethtool -S eth0 | grep prio0_bytes grows)",
        "trust state: pcp；流量计入 prio0（ethtool -S eth0 | grep prio0_bytes 增长）",
    ),
)
PFC: Row = (
    ("PFC on one priority, the same at both ends and on every switch", "同一优先级启用 PFC：两端与每台交换机一致"),
    (
        "Pause frames per priority keep the lossless class lossless. On another priority at one end, or on all, it harms.",
        "按优先级暂停使无损队列不丢包；一端优先级不同或对所有优先级启用都有害。",
    ),
    "sudo mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0; mlnx_qos -i eth0; ethtool -a eth0",
    (
        "PFC configuration: enabled 0 0 0 1 0 0 0 0; RX and TX pause off in ethtool -a (global pause excludes PFC)",
        "PFC configuration: enabled 0 0 0 1 0 0 0 0；ethtool -a 中 RX/TX 全局暂停为 off（与 PFC 互斥）",
    ),
    (
        "rx_discards_phy or out_of_sequence grow under load; prio3_pause grows at one end only",
        "负载下 rx_discards_phy、out_of_sequence 增长；仅一端 prio3_pause 增长",
    ),
)
ECN: Row = (
    ("ECN marking (DCQCN) before PFC acts", "ECN（DCQCN）先于 PFC 生效"),
    (
        "Switches mark packets when a queue grows, the receiver sends CNPs, the sender slows down. Thresholds below those of PFC: "
        "at 400G about Kmin 1 MB, Kmax 3 MB, 10 to 20 % marking, to be tuned by the switch's maker.",
        "队列变长时交换机打标，接收端回 CNP，发送端降速。阈值须低于 PFC：400G 约 Kmin 1 MB、Kmax 3 MB、标记概率 10% 到 20%，以交换机厂商建议为准。",
    ),
    "echo 1 | sudo tee /sys/class/net/eth0/ecn/roce_np/enable/3 /sys/class/net/eth0/ecn/roce_rp/enable/3; "
    "echo 48 | sudo tee /sys/class/net/eth0/ecn/roce_np/cnp_dscp; grep . /sys/class/infiniband/mlx5_0/ports/1/hw_counters/*cnp*",
    (
        "np_cnp_sent and rp_cnp_handled grow a little under load, pauses hardly",
        "负载下 np_cnp_sent 与 rp_cnp_handled 小幅增长，PFC 暂停几乎不增长",
    ),
    ("CNP counters stay 0 while pauses grow: a switch does not mark", "CNP 为 0 而暂停增长：交换机没有打标"),
)
BUFFERS: Row = (
    ("Buffers: a lossless pool large enough for the cable", "缓冲区：无损池足够容纳链路在途数据"),
    (
        "After a pause frame what is in flight must still fit: speed x cable's delay, some hundred KB a port at 400G.",
        "发出暂停后，在途数据仍须放得下：速率 × 线缆时延，400G 每端口数百 KB。",
    ),
    "mlnx_qos -i eth0 | grep -A3 -i buffer; sudo mlnx_qos -i eth0 --buffer_size=20016,156096,0,0,0,0,0,0 --prio2buffer=0,0,0,1,0,0,0,0",
    (
        "priority 3 has a buffer of its own; switches: lossless pool with headroom for each port",
        "优先级 3 有独立缓冲；交换机为每端口预留无损余量（headroom）",
    ),
    ("rx_prio3_buf_discard grows", "rx_prio3_buf_discard 增长"),
)
GID: Row = (
    ("GID index of RoCE v2 with IPv4", "RoCE v2 + IPv4 的 GID index"),
    (
        "The address an application connects with. The index can differ between nodes and changes when addresses do.",
        "应用建链所用的地址；各节点可能不同，IP 变化后也会变。",
    ),
    "show_gids",
    (
        "a row 'v2' with an IPv4 address on every port; its INDEX (often 3) is NCCL_IB_GID_INDEX and perftest's -x",
        "每个端口都有 v2 且带 IPv4 的一行；其 INDEX（常为 3）用于 NCCL_IB_GID_INDEX 与 perftest 的 -x",
    ),
    (
        "only fe80:: rows: the port has no IPv4 address; error 12 vendor err 129: a wrong index",
        "只有 fe80:: 行：端口没有 IPv4；error 12 vendor err 129：index 选错",
    ),
)
PERFTEST: Row = (
    ("perftest, port by port, then several to one", "perftest：逐端口，再多打一"),
    (
        "First the wire without NCCL. Then two senders to one receiver show whether congestion control works.",
        "先不经 NCCL 测裸链路；再用两个发送端打一个接收端，验证拥塞控制。",
    ),
    'ib_write_bw -d mlx5_0 -x 3 --tclass=106 --report_gbits -D 10 -F -q 4 "$PEER_IP"',
    (
        "at least 90 % of the port's rate; two to one: half each, steady, rx_discards_phy 0",
        "不低于端口速率 90%；二打一各得一半且平稳，rx_discards_phy 为 0",
    ),
    (
        "45 to 50 %: wrong CPU socket or half a PCIe slot; falls and jitters two to one: PFC or ECN",
        "45% 到 50%：CPU 插槽不对或 PCIe 半宽；二打一抖动下降：PFC 或 ECN 有误",
    ),
)
NCCL_ROCE: Row = (
    ("NCCL last", "最后才是 NCCL"),
    (
        "Only when perftest is right. Set nothing that you cannot explain.",
        "perftest 正常后再测；说不清来由的变量不要设。",
    ),
    "NCCL_IB_GID_INDEX=3 NCCL_IB_TC=106 NCCL_DEBUG=INFO all_reduce_perf -b 8M -e 8G -f 2 -g 1  # under mpirun on two nodes",
    (
        "NET/IB : Using [0]mlx5_0:1/RoCE ...; GDRDMA; busbw near the node's line rate",
        "NET/IB : Using [0]mlx5_0:1/RoCE ...；GDRDMA；busbw 接近单节点线速",
    ),
    (
        "NET/Socket: no RDMA; ibv_modify_qp error 110: rails not routed to each other, NCCL_CROSS_NIC=0; jitter: NCCL_IB_ECE_ENABLE=0",
        "NET/Socket：未走 RDMA；ibv_modify_qp 报错 110：轨道互不可达，设 NCCL_CROSS_NIC=0；抖动：NCCL_IB_ECE_ENABLE=0",
    ),
)
ROCE_STEPS: tuple[Row, ...] = (FIRMWARE, MODE, MTU, TRUST, PFC, ECN, BUFFERS, GID, PERFTEST, NCCL_ROCE)

INFINIBAND_STEPS: tuple[Row, ...] = (
    FIRMWARE,
    (
        ("Port mode: InfiniBand; the subnet manager runs", "端口模式：InfiniBand；子网管理器在运行"),
        (
            "InfiniBand is lossless by credits: no PFC, ECN or DSCP to set. A subnet manager gives each port its address (LID).",
            "InfiniBand 基于信用的流控天然无损：无需 PFC、ECN、DSCP。子网管理器为端口分配地址（LID）。",
        ),
        "ibstat; sudo sminfo",
        (
            "State: Active, Physical state: LinkUp, the adapter's Rate, Base lid not 0; one master SM",
            "State: Active，Physical state: LinkUp，速率为标称值，Base lid 非 0；一个主 SM",
        ),
        (
            "Initializing: no subnet manager; Polling: no cable; a lower Rate: a bad cable",
            "Initializing：没有子网管理器；Polling：没接线；速率偏低：线缆不良",
        ),
    ),
    (
        ("Links of the whole fabric", "全网链路"),
        ("One bad cable slows every ring that crosses it.", "一根坏线会拖慢所有经过它的环。"),
        "sudo ibdiagnet -r --get_cable_info; sudo iblinkinfo --switches-only | grep -i down",
        ("no errors, all links at full width and speed", "没有错误，所有链路满宽满速"),
        ("symbol or link_downed counters that grow", "symbol、link_downed 计数增长"),
    ),
    (
        ("perftest, port by port", "逐端口 perftest"),
        ("The wire without NCCL; no GID index is needed.", "先不经 NCCL；不需要 GID index。"),
        'ib_write_bw -d mlx5_0 --report_gbits -D 10 -F -q 4 "$PEER"',
        ("at least 90 % of the port's rate", "不低于端口速率 90%"),
        ("45 to 50 %: wrong CPU socket or half a PCIe slot", "45% 到 50%：CPU 插槽不对或 PCIe 半宽"),
    ),
    (
        ("NCCL last", "最后才是 NCCL"),
        (
            "InfiniBand needs no NCCL variable; SHARP needs the aggregation manager and its plugin.",
            "InfiniBand 无需任何 NCCL 变量；SHARP 需要聚合管理器与插件。",
        ),
        "NCCL_DEBUG=INFO all_reduce_perf -b 8M -e 8G -f 2 -g 1  # under mpirun on two nodes",
        ("NET/IB : Using [0]mlx5_0:1/IB ...; GDRDMA", "NET/IB : Using [0]mlx5_0:1/IB ...；GDRDMA"),
        (
            "NET/Socket or 'No device found': /dev/infiniband is not in the container",
            "NET/Socket 或 No device found：容器内没有 /dev/infiniband",
        ),
    ),
)

EFA_STEPS: tuple[Row, ...] = (
    (
        ("EFA interfaces and security group", "EFA 网卡与安全组"),
        (
            "Every network card of the instance needs an EFA interface; the group must allow all traffic to itself.",
            "实例每块网卡都要挂 EFA 接口；安全组须允许组内全部流量。",
        ),
        "fi_info -p efa -t FI_EP_RDM | grep -c provider; ls /sys/class/infiniband",
        ("one provider line or more for each network card", "每块网卡至少一行 provider"),
        ("fi_getinfo: -61: no EFA interface, or the driver is not installed", "fi_getinfo: -61：没有 EFA 接口或未装驱动"),
    ),
    (
        ("Placement group", "置放群组"),
        (
            "Nodes of one cluster placement group sit close; EFA does not need PFC, ECN or GIDs, its SRD protocol sprays packets.",
            "同一 cluster 置放群组内节点邻近；EFA 的 SRD 协议自行多路径，无需 PFC、ECN、GID。",
        ),
        "aws ec2 describe-instances --query 'Reservations[].Instances[].Placement.GroupName'",
        ("one group for all", "所有节点同一群组"),
        ("null: the nodes may be anywhere in the zone", "null：节点可能分散在可用区内"),
    ),
    (
        ("fi_pingpong instead of perftest", "用 fi_pingpong 代替 perftest"),
        ("Verbs tools do not measure EFA's usual path.", "verbs 工具测不到 EFA 的常用路径。"),
        'fi_pingpong -p efa -e rdm "$PEER_IP"  # without the address on the peer',
        ("a table to the end", "完整输出表格"),
        ("it hangs: the security group", "挂起：安全组"),
    ),
    (
        ("NCCL with the OFI plugin", "NCCL 与 OFI 插件"),
        ("Without aws-ofi-nccl NCCL falls back to sockets.", "没有 aws-ofi-nccl 插件时 NCCL 会退回套接字。"),
        "FI_PROVIDER=efa NCCL_DEBUG=INFO all_reduce_perf -b 8M -e 8G -f 2 -g 1  # under mpirun on two nodes",
        (
            "NET/OFI Selected provider is efa, fabric is efa (found N nics)",
            "NET/OFI Selected provider is efa, fabric is efa（found N nics）",
        ),
        ("NET/Socket, or 'Selected provider is tcp'", "NET/Socket，或 Selected provider is tcp"),
    ),
)

TCP_STEPS: tuple[Row, ...] = (
    (
        ("The port's rate", "端口速率"),
        ("TCP has nothing to set but the port; the CPU is the limit beyond 25G.", "TCP 只需确认端口；25G 以上受 CPU 限制。"),
        "ethtool eth0 | grep Speed; ip -s link show eth0",
        ("the promised speed; errors and drops do not grow", "承诺速率；errors、dropped 不增长"),
        ("a lower speed: the cable or the switch port", "速率偏低：线缆或交换机端口"),
    ),
    (
        ("iperf3 with several streams", "多流 iperf3"),
        ("One stream is one core.", "单流受单核限制。"),
        'iperf3 -c "$PEER_IP" -P 8 -t 30',
        ("80 to 94 % of the rate, few retransmissions", "速率的 80% 到 94%，重传很少"),
        ("many retransmissions: congestion or a bad cable", "重传很多：拥塞或线缆不良"),
    ),
    (
        ("NCCL on that interface", "NCCL 使用该接口"),
        (
            "Name the interface, not the management port; several sockets fill a fast port.",
            "指定该接口而不是管理口；多条套接字才能跑满。",
        ),
        "NCCL_SOCKET_IFNAME=eth0 NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4 NCCL_DEBUG=INFO all_reduce_perf -b 8M -e 1G -f 2 -g 1",
        ("NET/Socket : Using [0]eth0", "NET/Socket : Using [0]eth0"),
        ("another interface, or docker0", "用了其他接口或 docker0"),
    ),
)

#: Queue pairs: (name, English, Chinese).
QUEUE_PAIR: tuple[tuple[str, str, str], ...] = (
    (
        "QP",
        "a send and a receive queue: one connection. NCCL opens some for each pair of ranks and channel.",
        "一对发送与接收队列，即一条连接；NCCL 为每对 rank 的每个通道建立若干。",
    ),
    ("RESET", "made, nothing known.", "刚创建，什么都不知道。"),
    (
        "INIT",
        "has its port and rights; may post receives. Fails here: a wrong port or partition key.",
        "已绑定端口与权限，可投递接收。此处失败：端口或分区键不对。",
    ),
    (
        "RTR",
        "ready to receive: knows the peer's QP number, path MTU and address (GID for RoCE, LID for InfiniBand). "
        "`ibv_modify_qp` to RTR fails with 22 for a bad GID index, 110 when the peer's address does not answer, 19 where the link layer is another.",
        "可接收：已知对端 QP 号、路径 MTU 与地址（RoCE 为 GID，InfiniBand 为 LID）。到 RTR 的 ibv_modify_qp 失败：22 为 GID index 无效，110 为对端地址无应答，19 为链路层不符。",
    ),
    (
        "RTS",
        "ready to send: has timeout and retry count (NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT). Normal work.",
        "可发送：已设超时与重试次数（NCCL_IB_TIMEOUT、NCCL_IB_RETRY_CNT）。正常工作状态。",
    ),
    ("SQE / SQD", "the send queue had an error, or is being drained.", "发送队列出错或正在排空。"),
    (
        "ERR",
        "broken: completion error 12 means retries exceeded: a wrong GID, no route, or loss that PFC should prevent. The job ends.",
        "已失效：completion error 12 表示重试超限，即 GID 错、无路由，或 PFC 未能防止的丢包；作业结束。",
    ),
)

#: How the same thing is called elsewhere: (RoCE v2, InfiniBand, EFA), English then Chinese.
COUNTERPARTS: tuple[tuple[Pair, Pair, Pair, Pair], ...] = (
    (
        ("lossless by", "无损机制"),
        ("PFC on one priority", "单一优先级 PFC"),
        ("credits of the link itself", "链路自带信用流控"),
        ("not lossless: SRD sends again", "非无损：SRD 重传"),
    ),
    (
        ("congestion", "拥塞控制"),
        ("ECN and DCQCN", "ECN 与 DCQCN"),
        ("adaptive routing, FECN/BECN", "自适应路由、FECN/BECN"),
        ("SRD's own", "SRD 自带"),
    ),
    (
        ("address", "地址"),
        ("GID (v2, IPv4)", "GID（v2，IPv4）"),
        ("LID from the subnet manager", "子网管理器分配的 LID"),
        ("of libfabric", "libfabric 自动"),
    ),
    (("priority", "优先级"), ("DSCP to traffic class", "DSCP 到流量类"), ("service level (SL)", "服务级别 SL"), ("none", "无")),
    (
        ("MTU", "MTU"),
        ("9000 on Ethernet, 4096 for RDMA", "以太网 9000，RDMA 4096"),
        ("4096", "4096"),
        ("8760 or so, set by itself", "约 8760，自动"),
    ),
    (
        ("bandwidth test", "带宽测试"),
        ("ib_write_bw -x GID", "ib_write_bw -x GID"),
        ("ib_write_bw", "ib_write_bw"),
        ("fi_pingpong, nccl-tests", "fi_pingpong、nccl-tests"),
    ),
    (
        ("NCCL's line", "NCCL 日志"),
        ("NET/IB ... /RoCE", "NET/IB ... /RoCE"),
        ("NET/IB ... /IB", "NET/IB ... /IB"),
        ("NET/OFI ... efa", "NET/OFI ... efa"),
    ),
)
