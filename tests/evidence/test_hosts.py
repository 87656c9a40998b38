"""nvidia-smi, perftest and the RDMA port tools."""

from __future__ import annotations

import pytest
import samples

from advisor.evidence import read


def codes(report) -> set[str]:
    return {problem.code for problem in report.problems}


def test_status_table():
    found = read(samples.smi()).reading
    assert (found.driver, found.cuda, found.gpus, found.name) == ("550.54.15", "12.4", 2, "NVIDIA H100 80GB HBM3")
    assert found.mem_total.m_as("MiB") == 81559 and found.mem_used.m_as("MiB").tolist() == [1200, 800]
    assert found.power_cap.m_as("W") == 700 and found.util == (97, 97) and found.mig == "Disabled" and found.ecc == "0"
    assert found.processes[0]["pid"] == 71234 and found.temperature == (40, 41)


def test_name_cut_by_the_table_and_table_cut():
    found = read(samples.smi(name="NVIDIA RTX 4000 SFF Ad...")).reading
    assert found.name is None and found.name_prefix == "NVIDIA RTX 4000 SFF Ad"
    assert read(samples.smi().split("| N/A   41C")[0]).truncated


@pytest.mark.parametrize(("text", "total"), [(samples.SMI_CSV, 46068), (samples.SMI_BARE_CSV, 46068)])
def test_csv(text, total):
    found = read(text).reading
    assert found.gpus == 2 and found.mem_total.m_as("MiB") == total and len(found.mem_used.m) == 2


def test_samples_over_time_show_starvation():
    report = read(samples.SMI_LINES)
    assert report.reading.samples == 7 and report.reading.gpus is None and report.reading.mem_used.m_as("MiB") == 7001
    assert report.reading.mean_util == round((92 + 1 + 88 + 90) / 7, 1) and "input_starvation" in codes(report)
    busy = samples.SMI_LINES.replace(" 0%", "95%").replace(" 1%", "95%")
    assert "input_starvation" not in codes(read(busy))


def test_faults():
    assert "ecc_errors" in codes(read(samples.smi().replace("Off |                    0 |", "Off |                    2 |")))
    assert "gpu_fault" in codes(read(samples.smi().replace("97%", "ERR!")))
    assert "mig_enabled" in codes(read(samples.smi().replace("Disabled", " Enabled")))


def test_perftest_gigabits():
    """64 KiB * 0.370979 Mpps * 8 bit = 194.5 Gb/s: the message rate checks the average."""
    report = read(samples.perftest())
    found = report.reading
    assert (found.unit, found.rows, found.mtu, found.gid_index, found.qps, found.link_type) == ("Gb/sec", 1, 4096, 3, 2, "IB")
    assert found.avg.m_as("Gbit/s") == 194.5 and found.msg.m_as("B") == 65536
    assert found.avg_from_msgrate.m_as("Gbit/s") == pytest.approx(194.5, rel=1e-4)
    assert found.pct_of_line == 97.2 and "line_rate_inferred" in codes(report)


def test_perftest_mb_is_mib():
    """23,000 MiB/s are 23,000 * 2^20 * 8 bit = 192.94 Gb/s, not 184."""
    report = read(samples.perftest("MB/sec", ((65536, 23000.0),)))
    assert report.reading.avg.m_as("Gbit/s") == pytest.approx(192.94, abs=0.01) and report.reading.avg_reported == 23000
    assert "mb_is_mib" in codes(report)
    changed = samples.perftest("MB/sec", ((65536, 23000.0),)).replace("0.368000", "0.350000")
    assert "msgrate_disagrees" in codes(read(changed))


def test_perftest_both_directions():
    report = read(samples.perftest(rows=((8388608, 380.0),), title="RDMA_Write Bidirectional BW Test"))
    assert report.reading.bidirectional and report.reading.per_direction.m_as("Gbit/s") == 190
    assert report.reading.nic_line_rate.m_as("Gbit/s") == 200 and report.reading.pct_of_line == 95


def test_perftest_warnings_between_rows():
    noise = "Conflicting CPU frequency values detected: 1200.000000 != 2900.000000. CPU Frequency is not max.\n"
    report = read(samples.perftest(extra=noise))
    assert report.reading.rows == 1 and "cpu_frequency" in codes(report)


def test_perftest_what_is_wrong_is_said():
    assert "mtu_1024" in codes(read(samples.perftest(mtu=1024, link="Ethernet")))
    assert "loopback" in codes(read(samples.perftest(gids=("00:ff:0a", "00:ff:0a"))))
    assert read(samples.perftest(gids=("00:ff:0a", "00:ff:0b"))).reading.loopback is False
    slow = read(samples.perftest(rows=((65536, 60.0),)))
    assert slow.reading.nic_line_rate is None and "between_line_rates" in codes(slow)
    assert "above_the_wire" in codes(read("# port: 100 Gb/s\n" + samples.perftest()))


def test_perftest_latency():
    found = read(samples.PERFTEST_LATENCY).reading
    assert found.t_typical.m_as("us") == 1.76 and found.t_p99.m_as("us") == 2.2 and found.avg is None


def test_ibstat():
    report = read(samples.IBSTAT)
    port = report.reading.devices["mlx5_4"]
    assert port["rate"].m_as("Gbit/s") == 200 and port["link"] == "InfiniBand" and port["hca"] == "ConnectX-7"
    down = report.reading.devices["mlx5_5"]
    assert down["rate"] is None and down["state"] == "Down", "the rate of a port that is down is a placeholder"
    assert {"link_down", "below_adapter", "roce_not_infiniband"} <= codes(report) and report.reading.ports_active == 1


def test_ibstat_cut_leaves_the_half_adapter_out():
    report = read(samples.IBSTAT.split("\tFirmware version: 22")[0])
    assert report.truncated and list(report.reading.devices) == ["mlx5_4"]


def test_ibstatus_of_two_ports():
    found = read(samples.IBSTATUS).reading
    assert list(found.devices) == ["mlx5_1/1", "mlx5_1/2"]
    assert found.devices["mlx5_1/1"]["generation"] == "HDR" and "generation" not in found.devices["mlx5_1/2"]


def test_ethernet_is_not_edr():
    text = (
        samples.IBSTATUS.split("\n\n")[0]
        .replace("200 Gb/sec (4X HDR)", "100 Gb/sec (4X EDR)")
        .replace("InfiniBand", "Ethernet")
    )
    report = read(text.replace("Infiniband", "Infiniband"))
    assert "generation" not in report.reading.devices["mlx5_1"] and "roce_not_infiniband" in codes(report)


def test_devinfo():
    report = read(samples.DEVINFO)
    port = report.reading.devices["mlx5_bond_0"]
    assert (port["state"], port["active_mtu"], port["hca"], "rate" in port) == ("PORT_ACTIVE", 1024, "ConnectX-6 Dx", False)
    assert {"mtu_1024", "rate_unknown"} <= codes(report) and not report.truncated
    soft = read(samples.DEVINFO.replace("mlx5_bond_0", "rxe0"))
    assert "software_rdma" in codes(soft)


def test_gids_and_net_devices():
    assert read(samples.SHOW_GIDS).reading.roce_v2_ipv4_gid_index == {"mlx5_0": 3}
    assert "no_roce_v2_gid" in codes(read(samples.SHOW_GIDS.replace("10.20.0.5", "         ")))
    assert read(samples.NETDEV).reading.devices["mlx5_0"] == {"state": "Up", "netdev": "ib0"}
