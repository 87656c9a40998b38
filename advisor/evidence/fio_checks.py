"""What fio's numbers are not: the page cache, a burst, a failed job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.evidence.parts import cut_problem, problem
from advisor.evidence.report import Problem

if TYPE_CHECKING:
    from advisor.evidence.fio import FioReading, Found


#: No single disk or client does this without a cache, MB/s (PCIe 5 x4 is 15.8 GB/s).
FASTEST_DISK = 15_800
#: No disk answers so fast, microseconds.
FASTEST_ANSWER = 6.0


def answered_by_cache(found: Found) -> bool | None:
    """Whether the page cache answered: buffered, and faster than a disk or with a disk that did next to nothing."""
    if found.direct:
        return False
    idle = found.disk_ios is not None and found.total_ios and found.disk_ios < 0.02 * found.total_ios
    quick = any(result.mean is not None and 0 < result.mean < FASTEST_ANSWER for result in found.results)
    fast = any(result.bw * 1024 / 1e6 > FASTEST_DISK for result in found.results)
    if idle or quick or fast:
        return True
    return None if found.direct is None else False


def check(reading: FioReading, found: Found) -> tuple[Problem, ...]:
    """What fio's numbers must not be taken for."""
    problems: list[Problem] = []
    if found.cut:
        problems.append(cut_problem("before its summary", "汇总之前"))
    if reading.cached:
        disk = f"; the disk itself saw {found.disk_ios:.0f} requests of {found.total_ios:.0f}" if found.total_ios else ""
        disk_zh = f"；磁盘实际只有 {found.disk_ios:.0f} 次请求（共 {found.total_ios:.0f} 次）" if found.total_ios else ""
        problems.append(
            problem(
                "page_cache",
                "error",
                f"This measured the page cache, not the disk (no direct=1{disk}): use direct=1 and files larger "
                f"than twice the RAM.",
                f"测到的是页缓存而不是磁盘（未设 direct=1{disk_zh}）：请用 direct=1，且文件大于内存的两倍。",
            )
        )
    elif found.direct is False:
        problems.append(
            problem(
                "buffered",
                "warning",
                "Without direct=1 the page cache takes part: the numbers may be too good.",
                "未设 direct=1，页缓存参与其中：结果可能偏高。",
            )
        )
    if found.old_units:
        problems.append(
            problem(
                "old_units",
                "info",
                "fio 2 writes KB/s and MB/s for multiples of 1024: they are read as KiB/s and MiB/s.",
                "fio 2 的 KB/s、MB/s 是 1024 进制，按 KiB/s、MiB/s 读取。",
            )
        )
    by = {(result.pattern, result.op): result.bw for result in found.results}
    sequential, scattered = by.get(("seq", "read")), by.get(("rand", "read"))
    if sequential and scattered and sequential > 3 * scattered:
        problems.append(
            problem(
                "random_read_slow",
                "warning",
                f"Random reads are {sequential / scattered:.1f} times slower than sequential ones: that is what "
                f"a shuffling data loader "
                "sees. Pack samples into shards or cache them locally.",
                f"随机读比顺序读慢 {sequential / scattered:.1f} 倍：这就是打乱顺序的数据加载会遇到的速度。"
                f"请打包成分片或做本地缓存。",
            )
        )
    if any(result.runtime is not None and result.runtime < 10_000 for result in found.results):
        problems.append(
            problem(
                "short_run",
                "info",
                "A run of less than 10 s measures caches and burst credits: let it run for minutes "
                "(--time_based --runtime=300).",
                "不足 10 秒的测试只反映缓存和突发额度：请运行数分钟（--time_based --runtime=300）。",
            )
        )
    if found.errors:
        problems.append(
            problem(
                "job_errors",
                "error",
                f"fio reports errors ({', '.join(map(str, found.errors[:4]))}): its numbers are not whole.",
                f"fio 报告了错误（{', '.join(map(str, found.errors[:4]))}）：结果不完整。",
            )
        )
    return tuple(problems)
