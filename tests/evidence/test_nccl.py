"""nccl-tests: numbers of every layout, and what is said about numbers that cannot be right."""

from __future__ import annotations

import pytest
import samples

from advisor.evidence import read


def codes(report) -> set[str]:
    return {problem.code for problem in report.problems}


@pytest.mark.parametrize("layout", ["error", "wrong", "wide"])
@pytest.mark.parametrize("prefix", ["", "0: ", "[1,0]<stdout>:", "worker-0: "])
def test_layouts_and_prefixes(layout, prefix):
    """1 GiB at 90 GB/s asymptotic algbw: 90 * 2^30 / (2^30 + 2^24) = 88.615; busbw is 1.75 times that for 8 ranks."""
    report = read(samples.nccl(layout=layout, prefix=prefix, rank_list=not prefix))
    found = report.reading
    assert (report.kind, found.collective, found.rows, found.ranks) == ("nccl", "all_reduce", 11, 8)
    assert found.largest_size.m_as("B") == 2**30
    assert found.algbw_at_largest.m_as("GB/s") == pytest.approx(88.62, abs=0.005)
    assert found.busbw_at_largest_oop.m_as("GB/s") == pytest.approx(155.08, abs=0.005)
    assert found.peak_busbw.m_as("GB/s") == pytest.approx(155.85, abs=0.005)
    assert (found.peak_column, found.out_of_bounds) == ("ip", (0, "OK"))
    assert not report.truncated and not {problem.severity for problem in report.problems} & {"warning", "error"}


@pytest.mark.parametrize("collective", sorted(samples.FACTORS))
@pytest.mark.parametrize("ranks", [2, 8, 24])
def test_collectives_and_their_ratio(collective, ranks):
    found = read(samples.nccl(collective, ranks, rank_list=False)).reading
    assert found.collective == collective
    assert found.busbw_over_algbw == pytest.approx(samples.FACTORS[collective](ranks), abs=1e-3)
    if collective in ("all_reduce", *samples.SCATTERED):
        assert found.ranks == ranks


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "alltoall", "reduce", "sendrecv"])
def test_collective_without_its_name(collective):
    """The columns alone tell: reduction, root, count against size, ratio, and N/A in place for alltoall."""
    assert read(samples.nccl(collective, 16, named=False, rank_list=False)).reading.collective == collective


def test_rank_list():
    found = read(samples.nccl(ranks=16, nodes=2)).reading
    assert (found.ranks_listed, found.nodes, found.devices) == (16, 2, ("NVIDIA H100 80GB HBM3",))
    lines = [line for line in samples.nccl(ranks=16, nodes=2).split("\n") if "Rank  3" not in line]
    report = read("\n".join(lines))
    assert report.reading.ranks == 16 and "rank_list_cut" in codes(report)


def test_ratio_contradicts_the_list_and_the_heading():
    wrong_list = samples.nccl(ranks=16, rank_list=False).replace(
        "# Out of", samples.nccl(ranks=8).split("# Using devices\n")[1].split("#   ")[0] + "# Out of"
    )
    report = read(wrong_list)
    assert report.reading.ranks == 16 and "ratio_contradicts_ranks" in codes(report)
    report = read("all_reduce on 64 GPUs\n" + samples.nccl(ranks=96, rank_list=False))
    assert report.reading.ranks == 96 and "ratio_contradicts_label" in codes(report)
    assert "ratio_contradicts_label" not in codes(read("all_reduce on 96 GPUs\n" + samples.nccl(ranks=96, rank_list=False)))
    assert "ratio_contradicts_label" not in codes(read("12 nodes, 8 GPUs per node\n" + samples.nccl(ranks=96, rank_list=False)))


def test_impossible_ratio():
    """All_reduce busbw is never below algbw: 80 of 100 GB/s is a changed table."""
    text = samples.nccl(rank_list=False, sizes=(2**30,)).replace("155.08", " 71.00")
    report = read(text)
    assert not report.reading.consistent and report.reading.ranks is None
    assert "impossible_ratio" in codes(report)


def test_time_that_disagrees():
    text = samples.nccl(rank_list=False, sizes=(2**30,))
    time = text.split("-1")[1].split()[0]
    assert "time_disagrees" in codes(read(text.replace(time, f"{float(time) * 2:.2f}")))


def test_all_zero_is_a_build_without_mpi():
    row = " 268435456  67108864  float  sum  -1    900.0  298.26    0.00      0     0.40  671088.6    0.00      0\n"
    report = read(row * 4)
    assert not report.reading.valid and report.reading.ranks == 1 and "one_rank_jobs" in codes(report)


def test_collapse_and_wrong_values():
    rows = "".join(
        f"{size:12d} {size // 4:13d}     float     sum      -1 {size / bw / 1000:9.2f} {bw:7.2f} {bw * 1.5:7.2f}      0\n"
        for size, bw in ((2**24, 20.0), (2**26, 19.0), (2**28, 4.0))
    )
    report = read(rows + "# Out of bounds values : 12 FAILED\n")
    assert report.reading.peak_busbw.m_as("GB/s") == 30 and report.reading.ranks == 4
    assert {"collapse_after_peak", "wrong_values"} <= codes(report)


def test_half_a_row_is_not_a_row():
    text = samples.nccl(rank_list=False).split("# Out of")[0]
    report = read(text[: text.rstrip().rfind(" ") - 12])
    assert report.truncated and report.reading.rows == 10 and report.reading.largest_size.m_as("B") == 2**29


def test_above_the_stated_wire():
    """2 x 100 Gb/s are 25 GB/s; a bus bandwidth of 39 does not fit through them."""
    text = "2 hosts with 2x100G\n" + samples.nccl(ranks=4, nodes=2, peak=26)
    assert "above_the_wire" in codes(read(text))


def test_several_collectives_are_not_mixed():
    report = read(samples.nccl() + samples.nccl("all_gather"))
    assert report.reading.collective == "all_reduce" and report.reading.rows == 11 and "several_tables" in codes(report)
    assert [run["collective"] for run in report.reading.by_run] == ["all_reduce", "all_gather"]


def test_node_column_in_front():
    text = " n   size   count   type   redop   root   time   algbw   busbw #wrong   time   algbw   busbw #wrong\n"
    for nodes, ranks, bw in ((1, 4, 40.0), (2, 8, 12.0)):
        half = f"{2**30 / bw / 1000:9.1f} {bw:7.2f} {bw * 2 * (ranks - 1) / ranks:7.2f}      0 "
        text += f"{nodes:4d} {2**30:12d} {2**28:12d} float sum -1 {half}{half}\n"
    found = read(text).reading
    assert found.busbw_at_largest_oop is None and found.ranks is None
    assert {key: run["ranks"] for key, run in found.by_nodes.items()} == {"1": 4, "2": 8}
    assert found.by_nodes["2"]["busbw"].m_as("GB/s") == 21


def test_table_with_columns_removed():
    text = "  size   time   algbw   busbw\n   (B)   (us)  (GB/s)  (GB/s)\n"
    text += " 1_048_576  100.0  10.49  15.73\n 1_073_741_824  20000  53.69  80.53\n"
    found = read(text).reading
    assert (found.rows, found.ranks) == (2, 4) and found.busbw_at_largest_oop.m_as("GB/s") == 80.53


def test_failed_queue_pair():
    text = (
        "n1:9:9 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with 19 No such device, local GID index 1, x\n"
    )
    report = read(text)
    assert (report.kind, report.reading.error_class, report.reading.errno, report.reading.gid_index) == (
        "nccl",
        "rdma_connect_failed",
        19,
        1,
    )
    assert not report.reading.valid and "rdma_connect_failed" in codes(report)


def test_version():
    text = "# nccl-tests version 2.17.1 nccl-headers=22809 nccl-library=22809\n" + samples.nccl()
    assert read(text).reading.nccl_version == "22809 (=2.28.9)"
