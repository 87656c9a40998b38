"""fio, IOR, iperf3 and DLIO."""

from __future__ import annotations

import json

import pytest
import samples

from advisor.evidence import read


def codes(report) -> set[str]:
    return {problem.code for problem in report.problems}


def test_fio_text():
    found = read(samples.FIO).reading
    assert (found.op, found.pattern, found.bs, found.jobs, found.iodepth) == ("read", "rand", 262144, 4, 16)
    assert found.MiB_s.m_as("MiB/s") == 5031 and found.MB_s.m_as("MB/s") == 5276 and found.iops == 20100
    assert found.runtime.m_as("ms") == 60004 and found.clat_p99.m_as("us") == 5342


def test_fio_2_counts_in_1024():
    """512,000 "KB/s" of fio 2 are 500 MiB/s."""
    report = read(samples.FIO_2)
    assert report.reading.MiB_s.m_as("MiB/s") == 500 and report.reading.op == "write" and "old_units" in codes(report)


def test_fio_json_of_a_mixed_job():
    found = read(samples.FIO_JSON).reading
    assert found.op is None and [one["op"] for one in found.results] == ["read", "write"]
    assert found.read.m_as("MiB/s") == pytest.approx(244668 / 1024) and found.write_iops == 102.4
    assert found.results[0]["clat_p99"].m_as("us") == 21000 and found.direct is True and found.cached is False


def test_fio_page_cache():
    data = json.loads(samples.FIO_JSON[samples.FIO_JSON.index("{") :])
    data["global options"]["direct"] = "0"
    assert "buffered" in codes(read(json.dumps(data)))
    data["disk_util"][0].update(read_ios=3, write_ios=1)
    report = read(json.dumps(data))
    assert report.reading.cached and "page_cache" in codes(report)


def test_fio_json_cut():
    report = read(samples.FIO_JSON[: samples.FIO_JSON.index('"clat_ns"')])
    assert report.truncated and report.reading.read.m_as("KiB/s") == 244668


def test_fio_summary_lines_with_headings():
    text = "# Sequential\nREAD: bw=900MiB/s (944MB/s), io=1GiB\n# Random\nREAD: bw=100MiB/s (105MB/s), io=1GiB\n"
    report = read(text)
    assert [(one["pattern"], one["MB_s"].m_as("MB/s")) for one in report.reading.results] == [("seq", 944), ("rand", 105)]
    assert "random_read_slow" in codes(report)


def test_ior():
    found = read(samples.IOR).reading
    assert (found.nodes, found.tasks, found.access, found.repetitions) == (8, 128, "file-per-process", 2)
    assert found.write.m_as("MiB/s") == 41002.11 and found.read.m_as("MiB/s") == 52010.4 and found.xfer.m_as("MiB") == 4
    assert found.reordered and found.cached_read is False


def test_ior_cached_read():
    report = read(samples.IOR_OLD)
    assert report.reading.tasks == 48 and report.reading.nodes == 2
    assert report.reading.cached_read and {"cached_read", "single_shared_file"} <= codes(report)


def test_ior_too_small():
    assert "too_small" in codes(read(samples.IOR.replace("filesize  : 1 TiB", "filesize  : 8 MiB")))


def test_iperf_sums_streams():
    found = read(samples.IPERF).reading
    assert found.sender.m_as("Gbit/s") == 23.1 and found.receiver.m_as("Gbit/s") == 23.0
    assert (found.retransmits, found.seconds, found.streams, found.reverse) == (31, 10, 2, False)


def test_iperf_without_summary_is_marked():
    report = read(samples.IPERF.split("- - -")[0])
    assert report.truncated and report.reading.sender.m_as("Gbit/s") == 23.0


def test_iperf_json():
    found = read(samples.IPERF_JSON).reading
    assert (
        found.sender.m_as("Gbit/s") == 9.4
        and found.receiver.m_as("Gbit/s") == 9.39
        and found.reverse
        and found.retransmits == 12
    )


def test_dlio():
    report = read(samples.DLIO)
    found = report.reading
    assert (found.au_percent_epoch1, found.throughput_samples_per_s_epoch1, found.ranks) == (81.5, 44.12, 4)
    assert found.first_step.m_as("s") == 9.5 and found.steady_step.m_as("s") == pytest.approx(0.65)
    assert {"au_below_threshold", "first_step_slow"} <= codes(report)
    assert read("cosmoflow\n" + samples.DLIO).reading.threshold_au == 70
