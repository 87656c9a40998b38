"""Scenarios, and samples written in the layouts of the tools."""

from __future__ import annotations

import functools

import advisor

SCENARIOS = {
    "two_nodes": {"model": "llama-3.1-70b", "method": "full", "tokens": "2 Gtoken", "gpu": "H100 SXM", "gpus": 16,
                  "scale_out": "RoCEv2 400G"},
    "one_node": {"model": "llama-3.1-8b", "method": "full", "tokens": "200 Mtoken", "gpu": "A100 SXM4 80GB", "gpus": 8},
    "one_card": {"model": "qwen2.5-7b", "method": "lora", "tokens": "10 Mtoken", "gpu": "RTX 4090", "gpus": 1},
}  # fmt: skip


@functools.cache
def plan_of(name: str):
    """The plan of one of the scenarios."""
    return advisor.make_plan(advisor.Scenario.from_dict(SCENARIOS[name]))


def nccl_text(busbw: float, ranks: int, per_node: int = 8, device: str = "NVIDIA H100 80GB HBM3", largest: int = 2**33) -> str:
    """An nccl-tests all-reduce run in the 2.16 layout whose largest size reaches `busbw` GB/s."""
    lines = [
        f"# nThread 1 nGpus 1 minBytes 1048576 maxBytes {largest} step: 2(factor) warmup iters: 5 iters: 20",
        "#",
        "# Using devices",
    ]
    lines += [
        f"#  Rank {rank:2d} Group  0 Pid {1000 + rank:6d} on node{rank // per_node} device {rank % per_node:2d} [0x{rank:02x}] "
        f"{device}"
        for rank in range(ranks)
    ]
    lines += [
        "#",
        "#                                                              out-of-place                       in-place",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]
    factor = 2 * (ranks - 1) / ranks
    size = 2**20
    while size <= largest:
        bus = busbw if size == largest else busbw * min(1.0, 0.1 + size / largest)
        time = size / (bus / factor) / 1000
        cells = f"{time:10.1f} {size / time / 1000:8.2f} {size / time / 1000 * factor:8.2f}      0"
        lines.append(f"{size:12d} {size // 4:12d}     float     sum      -1 {cells} {cells}")
        size *= 8 if size * 8 <= largest else 2
    return "\n".join([*lines, "# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {busbw / 3:.2f}", "#", ""])


def perftest_text(gbits: float, link: str = "Ethernet", same_end: bool = False) -> str:
    """An ib_write_bw run with --report_gbits."""
    remote = "10:00:00:01" if same_end else "10:00:00:02"
    return f"""
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 4\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 Mtu             : 4096[B]
 Link type       : {link}
 GID index       : 3
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x0088 PSN 0xabc RKey 0x1 VAddr 0x007f
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:01
 remote address: LID 0000 QPN 0x0089 PSN 0xdef RKey 0x1 VAddr 0x007f
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:{remote}
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             {gbits:.2f}             {gbits:.2f}             {gbits * 1e9 / 8 / 65536 / 1e6:.6f}
---------------------------------------------------------------------------------------
"""
