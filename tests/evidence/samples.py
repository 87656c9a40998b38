"""Pastes made up for the tests, in the layouts of the real tools. The numbers are ours."""

from __future__ import annotations

import engine_samples

FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "sendrecv": lambda n: 1.0,
}
SCATTERED = ("all_gather", "reduce_scatter", "alltoall")


def nccl(
    collective: str = "all_reduce",
    ranks: int = 8,
    *,
    sizes: tuple[int, ...] = tuple(2**i for i in range(20, 31)),
    peak: float = 90.0,
    layout: str = "wrong",
    rank_list: bool = True,
    nodes: int = 1,
    prefix: str = "",
    named: bool = True,
) -> str:
    """A run whose algorithm bandwidth grows towards `peak` GB/s. layout: "error" (old), "wrong" (newer), "wide" (newest)."""
    lines = []
    if named:
        lines.append(f"# Collective test starting: {collective}_perf")
    lines.append(f"# nThread 1 nGpus 1 minBytes {sizes[0]} maxBytes {sizes[-1]} step: 2(factor) warmup iters: 5 iters: 20")
    if rank_list:
        lines += ["#", "# Using devices"]
        for rank in range(ranks):
            host, device = f"host{rank * nodes // ranks}", rank % (ranks // nodes)
            lines.append(
                f"#  Rank {rank:2d} Group  0 Pid {4000 + rank:6d} on {host:>10} device {device:2d} "
                f"[0x{device:02x}] NVIDIA H100 80GB HBM3"
            )
        lines.append("#")
    root = "" if layout == "error" else "    root"
    last = " error" if layout == "error" else "#wrong" if layout == "wrong" else " #wrong"
    lines.append(
        f"#       size         count      type   redop{root}     time   algbw   busbw {last}     time   algbw   busbw {last}"
    )
    lines.append("#        (B)    (elements)                        (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)")
    shown = []
    for size in sizes:
        row = ""
        for wobble in (1.0, 1.005):
            algbw = wobble * peak * size / (size + 2**24)
            busbw = algbw * FACTORS[collective](ranks)
            shown.append(busbw)
            bad = " 1e-07" if layout == "error" else "     0"
            if collective == "alltoall" and wobble != 1:
                bad = "   N/A"
            row += f" {size / algbw / 1000:8.2f} {algbw:7.2f} {busbw:7.2f} {bad} "
        count = size // 4 // (ranks if collective in SCATTERED else 1)
        redop = "sum" if collective in ("all_reduce", "reduce_scatter", "reduce") else "none"
        number = 0 if collective in ("broadcast", "reduce") else -1
        middle = "" if layout == "error" else f"{number:8d}"
        lines.append(f"{size:12d} {count:13d}     float {redop:>7}{middle}{row}")
    lines += ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {sum(shown) / len(shown):g}", "#"]
    if named:
        lines.append(f"# Collective test concluded: {collective}_perf")
    return "".join(f"{prefix}{line}\n" for line in lines)


def topo(
    gpus: int = 8, link: str = "NV18", *, nics: int = 2, tabs: bool = False, names: str = "NIC", affinity: bool = True
) -> str:
    """`nvidia-smi topo -m` of a box with two sockets, each with half of the GPUs and NICs; GPU pairs joined by `link`."""
    nic = [f"{names}{i}" for i in range(nics)]
    labels = [f"GPU{i}" for i in range(gpus)] + nic
    side = {
        label: (int(label[3:]) * 2 // gpus if label in labels[:gpus] else nic.index(label) * 2 // max(nics, 1))
        for label in labels
    }

    def cell(one: str, other: str) -> str:
        if one == other:
            return " X "
        if one.startswith("GPU") and other.startswith("GPU") and link != "PCIE":
            return link
        return "NODE" if side[one] == side[other] else "SYS"

    gap = "\t" if tabs else "  "
    width = 0 if tabs else 7
    heads = labels + (["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"] if affinity else [])
    lines = [gap.join(["".ljust(width)] + [head.ljust(width) for head in heads])]
    for one in labels:
        cells = [one.ljust(width)] + [cell(one, other).ljust(width) for other in labels]
        if affinity and one.startswith("GPU"):
            cells += [f"{side[one] * 48}-{side[one] * 48 + 47}".ljust(12), str(side[one]).ljust(13), "N/A"]
        lines.append(gap.join(cells))
    lines += ["", "Legend:", "", "  X    = Self", "  SYS  = Connection traversing PCIe as well as the SMP interconnect"]
    if names == "NIC" and nics:
        lines += ["", "NIC Legend:", ""] + [f"  NIC{i}: mlx5_{i + 2}" for i in range(nics)]
    return "\n".join(lines) + "\n"


def smi(used: tuple[int, ...] = (1200, 800), total: int = 81559, name: str = "NVIDIA H100 80GB HBM3", util: int = 97) -> str:
    """The status table of driver 550."""
    rule = "+-----------------------------------------+------------------------+----------------------+"
    rows = []
    for i, one in enumerate(used):
        rows += [
            f"|   {i}  {name:<30}   On |   00000000:{0x19 + i:02X}:00.0 Off |                    0 |",
            f"| N/A   {40 + i}C    P0            {310 + i:4d}W /  700W |   {one:5d}MiB /  {total}MiB |     "
            f"{util:2d}%      Default |",
            "|                                         |                        |             Disabled |",
            rule,
        ]
    head = [
        "+-----------------------------------------------------------------------------------------+",
        "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |",
        "|-----------------------------------------+------------------------+----------------------+",
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        "|=========================================+========================+======================|",
    ]
    tail = [
        "",
        "+-----------------------------------------------------------------------------------------+",
        "| Processes:                                                                              |",
        "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |",
        "|=========================================================================================|",
        "|    0   N/A  N/A     71234      C   python                                      1180MiB |",
        "+-----------------------------------------------------------------------------------------+",
    ]
    return "\n".join(head + rows + tail) + "\n"


SMI_CSV = """\
index, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%], power.limit [W]
0, NVIDIA A40, 46068 MiB, 120 MiB, 3 %, 300.00 W
1, NVIDIA A40, 46068 MiB, 45000 MiB, 99 %, 300.00 W
"""
SMI_BARE_CSV = "NVIDIA L40S, 46068 MiB, 4 MiB\nNVIDIA L40S, 46068 MiB, 9 MiB\n"
SMI_LIST = "".join(f"GPU {i}: NVIDIA A30 (UUID: GPU-1111111{i}-2222-3333-4444-555555555555)\n" for i in range(2))
SMI_LINES = "".join(
    f"| N/A   5{i}C    P0    {90 + i}W / 300W |   7001MiB / 32510MiB |     {util}%      Default |\n"
    for i, util in enumerate((0, 92, 1, 88, 0, 90, 0))
)


def perftest(unit: str = "Gb/sec", rows: tuple[tuple[int, float], ...] = ((65536, 194.5),), *,
             title: str = "RDMA_Write BW Test",
             mtu: int = 4096, link: str = "IB", extra: str = "", gids: tuple[str, str] | None = None) -> str:  # fmt: skip
    """One run of ib_write_bw: rows of (bytes, average in `unit`)."""
    factor = 2**20 * 8 / 1e9 if unit.startswith("MB") else 1.0
    addresses = ""
    if gids:
        addresses = "".join(
            f" {side} address: LID 0000 QPN 0x0{i}1f PSN 0x5cac1{i}\n GID: {gid}\n"
            for i, (side, gid) in enumerate(zip(("local", "remote"), gids, strict=True))
        )
    table = "".join(
        f" {size:<10d} 5000             {average * 1.001:.2f}            {average:.2f}\t\t   "
        f"{average * factor * 1000 / 8 / size:.6f}\n"
        for size, average in rows
    )
    return f"""\
---------------------------------------------------------------------------------------
                    {title}
 Dual-port       : OFF\t\tDevice         : mlx5_3
 Number of qps   : 2\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 CQ Moderation   : 100
 Mtu             : {mtu}[B]
 Link type       : {link}
 GID index       : 3
 rdma_cm QPs\t : OFF
 Data ex. method : Ethernet
---------------------------------------------------------------------------------------
{addresses} #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]
{extra}{table}---------------------------------------------------------------------------------------
"""


PERFTEST_LATENCY = """\
                    RDMA_Write Latency Test
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]  t_avg[usec] t_stdev[usec] 99% percentile[usec]
 2       1000          1.71           6.25         1.76              1.79             0.11           2.20
"""
IBSTAT = """\
CA 'mlx5_4'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.39.2048
\tHardware version: 0
\tNode GUID: 0xa088c20300aabbcc
\tSystem image GUID: 0xa088c20300aabbcc
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 200
\t\tBase lid: 41
\t\tLMC: 0
\t\tSM lid: 1
\t\tCapability mask: 0xa751e848
\t\tPort GUID: 0xa088c20300aabbcc
\t\tLink layer: InfiniBand
CA 'mlx5_5'
\tCA type: MT4125
\tNumber of ports: 1
\tFirmware version: 22.36.1010
\tPort 1:
\t\tState: Down
\t\tPhysical state: Disabled
\t\tRate: 40
\t\tBase lid: 0
\t\tLink layer: Ethernet
"""
IBSTATUS = """\
Infiniband device 'mlx5_1' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:0000:0000:0000:00aa
\tbase lid:\t 0x1f
\tsm lid:\t\t 0x1
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 200 Gb/sec (4X HDR)
\tlink_layer:\t InfiniBand

Infiniband device 'mlx5_1' port 2 status:
\tdefault gid:\t fe80:0000:0000:0000:0000:0000:0000:00ab
\tbase lid:\t 0x0
\tsm lid:\t\t 0x0
\tstate:\t\t 1: DOWN
\tphys state:\t 3: Disabled
\trate:\t\t 10 Gb/sec (4X SDR)
\tlink_layer:\t Ethernet
"""
DEVINFO = """\
hca_id:\tmlx5_bond_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t22.39.1002
\tnode_guid:\t\t\te8eb:d303:00aa:bbcc
\tvendor_id:\t\t\t0x02c9
\tvendor_part_id:\t\t\t4125
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t1024 (3)
\t\t\tsm_lid:\t\t\t0
\t\t\tport_lid:\t\t0
\t\t\tlink_layer:\t\tEthernet
"""
SHOW_GIDS = """\
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
mlx5_0\t1\t0\tfe80:0000:0000:0000:0ac0:ebff:fe11:2233\t\t\tv1\teth2
mlx5_0\t1\t1\tfe80:0000:0000:0000:0ac0:ebff:fe11:2233\t\t\tv2\teth2
mlx5_0\t1\t2\t0000:0000:0000:0000:0000:ffff:0a14:0005\t10.20.0.5  \tv1\teth2
mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a14:0005\t10.20.0.5  \tv2\teth2
n_gids_found=4
"""
NETDEV = "mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ens5f1np1 (Down)\n"
FIO = """\
scan: (g=0): rw=randread, bs=(R) 256KiB-256KiB, (W) 256KiB-256KiB, (T) 256KiB-256KiB, ioengine=libaio, iodepth=16
...
fio-3.33
Starting 4 processes

scan: (groupid=0, jobs=4): err= 0: pid=9021: Wed Mar  5 10:00:00 2025
  read: IOPS=20.1k, BW=5031MiB/s (5276MB/s)(295GiB/60004msec)
    slat (usec): min=4, max=977, avg=14.22, stdev= 6.10
    clat (usec): min=91, max=20021, avg=3160.47, stdev=700.11
     lat (usec): min=105, max=20040, avg=3174.80, stdev=700.20
    clat percentiles (usec):
     |  1.00th=[ 1811],  5.00th=[ 2245], 50.00th=[ 3130], 95.00th=[ 4293],
     | 99.00th=[ 5342], 99.50th=[ 5997], 99.90th=[ 8356], 99.99th=[12518]
  cpu          : usr=2.10%, sys=9.44%, ctx=1201882, majf=0, minf=1065

Run status group 0 (all jobs):
   READ: bw=5031MiB/s (5276MB/s), 5031MiB/s-5031MiB/s (5276MB/s-5276MB/s), io=295GiB (317GB), run=60004-60004msec

Disk stats (read/write):
  nvme1n1: ios=1204410/12, merge=0/4, ticks=3801120/9, in_queue=3801130, util=99.92%
"""
FIO_2 = """\
w: (g=0): rw=write, bs=1M-1M/1M-1M/1M-1M, ioengine=sync, iodepth=1
fio-2.2.10
w: (groupid=0, jobs=1): err= 0: pid=77: Mon Feb  1 09:00:00 2016
  write: io=20480MB, bw=512000KB/s, iops=500, runt= 40960msec

Run status group 0 (all jobs):
  WRITE: io=20480MB, aggrb=512000KB/s, minb=512000KB/s, maxb=512000KB/s, mint=40960msec, maxt=40960msec
"""
FIO_JSON = """\
fio: this line stands before the JSON
{
  "fio version" : "fio-3.36",
  "global options" : { "ioengine" : "libaio", "direct" : "1", "bs" : "1M", "iodepth" : "32" },
  "jobs" : [
    {
      "jobname" : "mix", "groupid" : 0, "error" : 0,
      "job options" : { "name" : "mix", "rw" : "randrw" },
      "read" : { "io_bytes" : 7516192768, "bw" : 244668, "iops" : 238.9, "runtime" : 30000, "total_ios" : 7168,
        "clat_ns" : { "mean" : 9000000.5, "percentile" : { "50.000000" : 8000000, "99.000000" : 21000000 } } },
      "write" : { "io_bytes" : 3221225472, "bw" : 104857, "iops" : 102.4, "runtime" : 30000, "total_ios" : 3072,
        "clat_ns" : { "mean" : 4000000.5, "percentile" : { "50.000000" : 3500000, "99.000000" : 9000000 } } }
    }
  ],
  "disk_util" : [ { "name" : "nvme0n1", "read_ios" : 14336, "write_ios" : 6150 } ]
}
"""
IOR = """\
IOR-3.4.0: MPI Coordinated Test of Parallel I/O
Began               : Tue May  6 08:00:00 2025
Command line        : ior -a POSIX -F -C -e -w -r -b 8g -t 4m -o /scratch/x/t
Path                : /scratch/x

Options:
api                 : POSIX
access              : file-per-process
type                : independent
ordering inter file : constant task offset
nodes               : 8
tasks               : 128
clients per node    : 16
repetitions         : 2
xfersize            : 4 MiB
blocksize           : 8 GiB
aggregate filesize  : 1 TiB

Results:

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     40120      10031      0.012761    8388608    4096       0.010000   26.13      0.900000   26.14      0
read      52010      13004      0.009843    8388608    4096       0.020000   20.15      0.300000   20.16      0
write     41002      10252      0.012485    8388608    4096       0.010000   25.57      0.800000   25.57      1
read      51800      12951      0.009883    8388608    4096       0.020000   20.24      0.300000   20.24      1
Max Write: 41002.11 MiB/sec (42993.80 MB/sec)
Max Read:  52010.40 MiB/sec (54536.86 MB/sec)
"""
IOR_OLD = """\
IOR-3.0.1: MPI Coordinated Test of Parallel I/O
Summary:
\tapi                = POSIX
\taccess             = single-shared-file
\tclients            = 48 (24 per node)
\txfersize           = 1 MiB
\tblocksize          = 1 GiB
\taggregate filesize = 48 GiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     1500.25    1048576    1024.00    0.010000   32.70      0.100000   32.76      0
read      31000      1048576    1024.00    0.010000   1.58       0.100000   1.59       0

Max Write: 1500.25 MiB/sec (1573.13 MB/sec)
Max Read:  31000.10 MiB/sec (32505.96 MB/sec)
"""
IPERF = """\
Connecting to host 10.1.0.2, port 5201
[  5] local 10.1.0.1 port 40000 connected to 10.1.0.2 port 5201
[  7] local 10.1.0.1 port 40002 connected to 10.1.0.2 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  1.40 GBytes  12.0 Gbits/sec    3   1.20 MBytes
[  7]   0.00-1.00   sec  1.28 GBytes  11.0 Gbits/sec    1   1.10 MBytes
[SUM]   0.00-1.00   sec  2.68 GBytes  23.0 Gbits/sec    4
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  14.0 GBytes  12.0 Gbits/sec   20             sender
[  5]   0.00-10.00  sec  14.0 GBytes  12.0 Gbits/sec                  receiver
[  7]   0.00-10.00  sec  12.9 GBytes  11.1 Gbits/sec   11             sender
[  7]   0.00-10.00  sec  12.9 GBytes  11.0 Gbits/sec                  receiver
[SUM]   0.00-10.00  sec  26.9 GBytes  23.1 Gbits/sec   31             sender
[SUM]   0.00-10.00  sec  26.8 GBytes  23.0 Gbits/sec                  receiver

iperf Done.
"""
IPERF_JSON = """\
{"start": {"test_start": {"protocol": "TCP", "num_streams": 4, "duration": 20, "reverse": 1}},
 "intervals": [{"sum": {"bits_per_second": 9.1e9}}],
 "end": {"sum_sent": {"seconds": 20.0, "bits_per_second": 9.4e9, "retransmits": 12},
         "sum_received": {"seconds": 20.04, "bits_per_second": 9.39e9}}}
"""
DLIO = "".join(
    f"[INFO] 2025-02-02T10:00:{step:02d}.{rank}00 Rank {rank} step {step} processed 7 samples in "
    f"{9.5 if step == 1 else 0.5 + rank / 10} s\n"
    for step in (1, 2, 3)
    for rank in range(4)
) + (
    "[INFO] 2025-02-02T10:01:00.0 Epoch 1 - Block 1 [Training] Accelerator Utilization [AU] (%): 81.5000\n"
    "[INFO] 2025-02-02T10:01:00.1 Epoch 1 - Block 1 [Training] Throughput (samples/second): 44.1200\n"
    "[INFO] 2025-02-02T10:02:00.0 Epoch 2 - Block 1 [Training] Accelerator Utilization [AU] (%): 96.5000\n"
)

#: One of each, by a name that says what it is: (kind, text).
ALL: dict[str, tuple[str, str]] = {
    "nccl": ("nccl", nccl()),
    "nccl_old": ("nccl", nccl(layout="error", rank_list=False)),
    "nccl_wide_prefixed": ("nccl", nccl("reduce_scatter", 16, layout="wide", nodes=2, prefix="[1,3]<stdout>:")),
    "nccl_alltoall": ("nccl", nccl("alltoall", 16, named=False, rank_list=False)),
    "topo": ("topo", topo()),
    "topo_tabs": ("topo", topo(4, "PCIE", nics=4, tabs=True, names="mlx5_")),
    "smi": ("nvidia_smi", smi()),
    "smi_csv": ("nvidia_smi", SMI_CSV),
    "smi_bare_csv": ("nvidia_smi", SMI_BARE_CSV),
    "smi_list": ("nvidia_smi", SMI_LIST),
    "smi_lines": ("nvidia_smi", SMI_LINES),
    "perftest": ("perftest", perftest()),
    "perftest_mb": ("perftest", perftest("MB/sec", ((4096, 4000.0), (65536, 23000.0)))),
    "perftest_latency": ("perftest", PERFTEST_LATENCY),
    "ibstat": ("ib", IBSTAT),
    "ibstatus": ("ib", IBSTATUS),
    "devinfo": ("ib", DEVINFO),
    "show_gids": ("ib", SHOW_GIDS),
    "netdev": ("ib", NETDEV),
    "fio": ("storage", FIO),
    "fio_2": ("storage", FIO_2),
    "fio_json": ("storage", FIO_JSON),
    "ior": ("storage", IOR),
    "ior_old": ("storage", IOR_OLD),
    "iperf": ("storage", IPERF),
    "iperf_json": ("storage", IPERF_JSON),
    "dlio": ("storage", DLIO),
    **engine_samples.ALL,
}
