"""What nvidia-smi shows that slows or spoils a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.evidence.parts import cut_problem, integer, problem
from advisor.evidence.report import Problem

if TYPE_CHECKING:
    from advisor.evidence.nvidia_smi import Found, NvidiaSmiReading


def check(reading: NvidiaSmiReading, found: Found) -> tuple[Problem, ...]:
    """What the state of the GPUs means for a job."""
    problems: list[Problem] = []
    if found.cut:
        problems.append(cut_problem("inside the table", "表格中间"))
    if found.headless:
        problems.append(
            problem(
                "no_column_names",
                "info",
                "The CSV has no column names: its cells are read by their units (of two memories the larger is the total).",
                "CSV 没有列名：按单位识别各列（两个显存值中较大的为总量）。",
            )
        )
    if reading.samples and reading.samples >= 5 and reading.util and _saw_tooth(reading.util):
        problems.append(
            problem(
                "input_starvation",
                "warning",
                f"Utilisation swings between {min(reading.util)} % and {max(reading.util)} % (mean "
                f"{reading.mean_util} %): the GPU "
                "waits for data. Look at num_workers, CPU and storage (many small files on NFS) before the GPU.",
                f"GPU 利用率在 {min(reading.util)}% 与 {max(reading.util)}% 之间跳动（平均 "
                f"{reading.mean_util}%）：GPU 在等数据。"
                "先查 num_workers、CPU 与存储（NFS 上的大量小文件）。",
            )
        )
    if any("fault" in row for row in found.rows):
        problems.append(
            problem(
                "gpu_fault",
                "error",
                "A GPU reports an error instead of a value (ERR!): it has fallen off the bus or its sensors are "
                "dead; see dmesg for Xid.",
                "有 GPU 显示错误（ERR!）而不是数值：已掉卡或传感器失效，请查看 dmesg 中的 Xid。",
            )
        )
    errors = [row for row in found.rows if integer(row.get("ecc")) not in (None, 0)]
    if errors:
        problems.append(
            problem(
                "ecc_errors",
                "error",
                f"{len(errors)} GPU(s) count uncorrected ECC errors: results may be wrong; drain the node and "
                f"check row remapping.",
                f"{len(errors)} 张 GPU 有不可纠正的 ECC 错误：结果可能出错，请下线节点并检查行重映射。",
            )
        )
    if reading.names and len(set(reading.names)) > 1:
        problems.append(
            problem(
                "mixed_gpus",
                "warning",
                f"The GPUs are not all the same ({', '.join(sorted(set(reading.names))[:3])}): every step waits "
                f"for the slowest.",
                f"GPU 型号不一致（{', '.join(sorted(set(reading.names))[:3])}）：每一步都要等最慢的卡。",
            )
        )
    if reading.gpus in (3, 5, 6, 7):
        problems.append(
            problem(
                "gpu_missing",
                "info",
                f"{reading.gpus} GPUs are shown; boards carry 4 or 8: check that none has fallen off the bus.",
                f"显示 {reading.gpus} 张 GPU，而主板通常为 4 或 8 张：请确认没有掉卡。",
            )
        )
    if reading.temperature and max(reading.temperature) >= 85:
        problems.append(
            problem(
                "hot",
                "warning",
                f"A GPU is at {max(reading.temperature)} °C and may throttle.",
                f"有 GPU 温度达 {max(reading.temperature)} °C，可能降频。",
            )
        )
    if reading.mig == "Enabled":
        problems.append(
            problem(
                "mig_enabled",
                "warning",
                "MIG is enabled: a job sees a slice of the GPU, not all of its memory, and has no NVLink.",
                "已启用 MIG：任务只能用到 GPU 的一个切片，不是全部显存，也没有 NVLink。",
            )
        )
    return tuple(problems)


def _saw_tooth(values: tuple) -> bool:
    """Utilisation that falls to about nothing again and again between busy samples."""
    idle = sum(1 for value in values if value <= 5)
    busy = sum(1 for value in values if value >= 15)
    return idle >= 2 and busy >= 2 and idle + busy >= 0.5 * len(values) and idle >= 0.15 * len(values)
