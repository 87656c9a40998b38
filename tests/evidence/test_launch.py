"""Launch and NCCL logs, with hosts and figures of our own."""

from __future__ import annotations

import pytest

from advisor.evidence import read

DEEPSPEED = """[2025-01-02 03:04:05,006] [INFO] [launch.py:145:main] WORLD INFO DICT: {'alpha': [0, 1, 2], 'beta': [0, 1, 2]}
[2025-01-02 03:04:05,006] [INFO] [launch.py:151:main] nnodes=2, num_local_procs=3, node_rank=1
[2025-01-02 03:04:05,006] [INFO] [launch.py:163:main] dist_world_size=6
[2025-01-02 03:04:05,006] [INFO] [launch.py:165:main] Setting CUDA_VISIBLE_DEVICES=0,1,2
"""
WATCHDOG = (
    "[rank2]:[E ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=412, "
    "OpType=_REDUCE_SCATTER_BASE, NumelIn=4000, NumelOut=500, Timeout(ms)=900000) ran for 900321 milliseconds before\n"
)


def codes(report) -> set[str]:
    return {problem.code for problem in report.problems}


def test_deepspeed_launcher():
    report = read(DEEPSPEED)
    one = report.reading
    assert (report.kind, one.launcher) == ("launch", "deepspeed")
    assert (one.nodes, one.procs_per_node, one.world_size, one.node_rank) == (2, 3, 6, 1)
    assert one.hosts == ("alpha", "beta")
    assert one.visible_devices == (0, 1, 2)
    assert not report.problems


def test_world_size_that_disagrees():
    assert "world_size_disagrees" in codes(read(DEEPSPEED.replace("dist_world_size=6", "dist_world_size=7")))


def test_torchrun_command_and_environment():
    one = read("torchrun --nnodes=3 --nproc_per_node=4 --node_rank=2 train.py\n").reading
    assert (one.launcher, one.nodes, one.procs_per_node, one.world_size, one.node_rank) == ("torchrun", 3, 4, 12, 2)
    report = read("RANK=9\nLOCAL_RANK=1\nWORLD_SIZE=8\n")
    assert report.reading.ranks == (9,)
    assert "rank_out_of_range" in codes(report)


@pytest.mark.parametrize(
    ("lines", "network", "verdict"),
    [
        ("NCCL INFO NET/IB : Using [0]mlx5_4:1/IB [1]mlx5_5:1/IB [RO]; OOB eth3:10.9.8.7<0>", "IB", "good"),
        ("NCCL INFO NET/IB : Using [0]mlx5_bond_0:1/RoCE [RO]; OOB bond1:10.9.8.7<0>", "RoCE", "good"),
        ("NCCL INFO NET/IB : No device found.\nNCCL INFO NET/Socket : Using [0]ens5:10.1.1.1<0>\nUsing network Socket",
         "Socket", "BAD: sockets instead of RDMA"),
        ("NCCL INFO NET/Socket : Using [0]ib3:10.1.1.1<0>\nNCCL INFO Using network Socket", "Socket (IPoIB)",
         "BAD: sockets instead of RDMA over IPoIB"),
        ("NCCL INFO NET/OFI Selected Provider is efa (found 8 nics)\nNCCL INFO Using network AWS Libfabric", "EFA", "good"),
        ("NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_7'", "IB without GDR", "BAD: RDMA without GPUDirect"),
    ],
)  # fmt: skip
def test_network(lines, network, verdict):
    report = read(lines)
    assert (report.reading.network, report.reading.verdict) == (network, verdict)
    assert bool(codes(report) & {"sockets_instead_of_rdma", "gpudirect_off"}) == verdict.startswith("BAD")


def test_adapters_and_transports():
    text = (
        "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [RO]; OOB eno9:10.0.0.9<0>\n"
        "NCCL INFO Channel 00/0 : 0[0] -> 4[0] [send] via NET/IB/0/GDRDMA\n"
        "NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\nNCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n"
    )
    report = read(text)
    one = report.reading
    assert (one.hcas, one.oob, one.gdr) == (3, "eno9", True)
    assert one.transports == {"NET/IB/GDRDMA": 1, "P2P": 1}
    assert "costly_setting" in codes(report)


def test_watchdog():
    one = read(WATCHDOG).reading
    assert (one.op, one.seq, one.numel_in, one.numel_out) == ("_REDUCE_SCATTER_BASE", 412, 4000, 500)
    assert (one.timeout.m_as("s"), one.ran.m_as("s")) == (900.0, 900.321)
    assert one.ranks_inferred == 8
    assert one.timed_out_ranks == (2,)


def test_first_collective_means_loading_not_the_network():
    report = read(WATCHDOG.replace("SeqNum=412", "SeqNum=1"))
    assert report.reading.phase == "first collective after load"
    assert "timeout_at_load" in codes(report)


def test_ran_less_than_its_timeout_is_impossible():
    assert "ran_below_timeout" in codes(read(WATCHDOG.replace("ran for 900321", "ran for 321")))


def test_default_timeout_is_named_where_none_is_shown():
    report = read(WATCHDOG.replace(", Timeout(ms)=900000", ""))
    assert report.reading.timeout is None
    assert report.reading.timeout_s_default.m_as("s") == 600
    assert "timeout_assumed" in codes(report)


def test_failed_rank_and_host_memory():
    text = (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\nRoot Cause (first observed failure):\n"
        "  rank      : 6 (local_rank: 2)\n  exitcode  : -9 (pid: 55)\n  traceback : Signal 9 (SIGKILL) received by PID 55\n"
    )
    report = read(text)
    assert (report.reading.failed_rank, report.reading.exit_code, report.reading.signal) == (6, -9, "SIGKILL")
    assert "exit_9" in codes(report)


def test_trainer_banner():
    text = (
        "***** Running training *****\n  Num examples = 9,600\n  Instantaneous batch size per device = 3\n"
        "  Total train batch size (w. parallel, distributed & accumulation) = 96\n  Gradient Accumulation steps = 4\n"
    )
    one = read(text).reading
    assert (one.num_examples, one.micro_batch, one.total_batch, one.grad_accum) == (9600, 3, 96, 4)


def test_a_cut_report_is_marked():
    report = read(WATCHDOG[: WATCHDOG.index("NumelOut")])
    assert report.truncated
    assert report.reading.ran is None
