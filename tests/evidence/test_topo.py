"""`nvidia-smi topo`: pairs, nearest NICs, what joins the GPUs, and matrices that are cut or broken."""

from __future__ import annotations

import pytest
import samples

from advisor.evidence import EvidenceError, read


def codes(report) -> set[str]:
    return {problem.code for problem in report.problems}


@pytest.mark.parametrize(
    ("gpus", "link", "interconnect"),
    [
        (8, "NV18", "nvswitch_full"), (8, "NV12", "nvswitch_full"), (4, "NV4", "nvlink_full_mesh"), (2, "NV4", "nvlink"),
        (4, "PCIE", "pcie_cross_socket"), (1, "NV4", "single_gpu"), (8, "PHB", "pcie_host_bridge"), (4, "PIX", "pcie_switch"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tabs", [False, True])
def test_interconnect(gpus, link, interconnect, tabs):
    report = read(samples.topo(gpus, link, tabs=tabs))
    found = report.reading
    assert (report.kind, found.gpus, found.nics, found.interconnect) == ("topo", gpus, 2, interconnect)
    assert sum(found.gpu_pair_classes.values()) == gpus * (gpus - 1) // 2
    assert not report.truncated


def test_links_names_and_numa():
    found = read(samples.topo()).reading
    assert (found.nvlink_links, found.numa) == (18, {"GPU0-3": 0, "GPU4-7": 1})
    assert found.nic_names == {"NIC0": "mlx5_2", "NIC1": "mlx5_3"}
    assert found.closest_nic_per_gpu["GPU5"] == {"class": "NODE", "nics": ["NIC1"]}
    assert found.gpu_pairs == {}, "one class for all pairs needs no list"


def test_pairs_are_listed_where_they_differ():
    found = read(samples.topo(4, "PCIE", names="mlx5_", tabs=True)).reading
    assert found.gpu_pairs["NODE"] == ["GPU0-GPU1", "GPU2-GPU3"] and len(found.gpu_pairs["SYS"]) == 4
    assert found.closest_nic_per_gpu["GPU0"]["nics"] == ["mlx5_0"]


def test_no_nic_and_no_affinity():
    found = read(samples.topo(8, "NV18", nics=0, affinity=False)).reading
    assert found.closest_nic_per_gpu is None and found.numa is None


def test_cut_inside_the_last_row():
    text = samples.topo(nics=0)
    report = read(text[: text.index("GPU7   ", 300) + 30])
    assert report.truncated and report.reading.gpu_pair_classes == {"NV18": 28}, "the other half of the matrix has the pairs"
    assert "truncated" in codes(report)


def test_broken_cell_is_read_from_the_other_half():
    text = samples.topo(4, "NV4", nics=0)
    lines = text.split("\n")
    lines[2] = lines[2].replace("NV4 ", "    ", 1)
    report = read("\n".join(lines))
    assert "broken_cells" in codes(report) and report.reading.gpu_pair_classes == {"NV4": 6}
    assert report.reading.interconnect == "nvlink_full_mesh"


def test_halves_that_disagree():
    lines = samples.topo(4, "NV4", nics=0).split("\n")
    lines[2] = lines[2].replace("NV4", "SYS", 1)
    assert "asymmetric" in codes(read("\n".join(lines)))


def test_far_nic_and_missing_gpu():
    text = samples.topo(7, "NV18", nics=1).replace("NODE", "SYS ")
    assert {"nic_far", "gpu_missing"} <= codes(read(text))


def test_p2p_matrix_is_no_topology():
    text = "        GPU0    GPU1    GPU2\n GPU0   X       OK      GNS\n GPU1   OK      X       GNS\n GPU2   GNS     GNS     X\n"
    report = read("$ nvidia-smi topo -p2p w\n" + text)
    assert report.reading.tool == "nvidia-smi topo -p2p w" and report.reading.interconnect is None
    assert report.reading.gpu_pair_classes == {"OK": 1, "GNS": 2} and "p2p_matrix" in codes(report)


def test_underlined_header():
    """Terminals underline the header; copied text keeps the codes, with or without the escape character."""
    plain = read(samples.topo(tabs=True)).reading
    for start, end in (("\x1b[4m", "\x1b[0m"), ("[4m", "[0m")):
        head, rest = samples.topo(tabs=True).split("\n", 1)
        assert read(f"\t{start}{head.strip()}{end}\n{rest}").reading == plain


def test_legend_alone_is_refused():
    with pytest.raises(EvidenceError, match="no row"):
        read("Legend:\n  SYS  = Connection traversing PCIe\n  NV#  = Connection traversing a bonded set of # NVLinks\n")
