"""fio, ior and DLIO against the plan: reading of data, writing of checkpoints, whether accelerators would wait."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from advisor.units import Q, Quantity, unit
from advisor.verify.draft import Context, Draft, bandwidth_line, both, has, word_line
from advisor.verify.expect import LABELS, WIRE, expect_storage, share, shown

if TYPE_CHECKING:
    from advisor.evidence import Report

READ_CAUSES = ("small_files", "object_mount", "small_disk", "file_system_full", "one_shared_file", "cpu_governor")
WRITE_CAUSES = ("one_shared_file", "object_target", "small_disk", "file_system_full", "save_gathers")
CACHED = ("page_cache", "cached_read")


def judge_fio(report: Report, context: Context) -> Draft:
    """fio on one node. A random read is what a shuffling loader sees; what the page cache answered does not count."""
    reading = report.reading
    draft = Draft(title=both("Storage of one node (fio)", "单节点存储（fio）"))
    if has(report, *CACHED) or reading.cached:
        return _cached(draft)
    speeds = _fio_speeds(reading)
    _compare(draft, context, speeds.get("read"), speeds.get("write"), report)
    return draft


def _fio_speeds(reading: Any) -> dict[str, Quantity]:
    """The read that counts (random before sequential) and the write (sequential before random)."""
    found: dict[tuple[str, str], Quantity] = {}
    for one in reading.results or ():
        value = one.get("MB_s") if one.get("MB_s") is not None else one.get("MiB_s")
        if value is not None:
            found.setdefault((one.get("op") or "", one.get("pattern") or "seq"), value)
    speeds = {}
    for operation, order in (("read", ("rand", "seq")), ("write", ("seq", "rand"))):
        value = next((found[operation, pattern] for pattern in order if (operation, pattern) in found), None)
        value = value if value is not None else getattr(reading, operation)
        if value is None and reading.op == operation:
            value = reading.MiB_s if reading.MiB_s is not None else reading.bw
        if value is not None:
            speeds[operation] = value.to(WIRE)
    return speeds


def judge_ior(report: Report, context: Context) -> Draft:
    """ior over its nodes, brought to one node. A read by the node that wrote is the page cache."""
    reading = report.reading
    draft = Draft(title=both("Parallel storage (ior)", "并行存储（ior）"))
    nodes = int(reading.nodes or 1)
    cached = has(report, *CACHED) or bool(reading.cached_read)
    if has(report, "too_small"):
        draft.verdict = "not_comparable"
        draft.sentence = both(
            "Too little was written to measure anything: use files larger than twice the RAM.",
            "写入量太小，测不出什么：文件应大于内存两倍。",
        )
        return draft
    write = reading.write.to(WIRE) / nodes if reading.write is not None else None
    read = reading.read.to(WIRE) / nodes if reading.read is not None and not cached else None
    _compare(draft, context, read, write, report)
    if cached and reading.read is not None:
        draft.shown.add("page_cache")
        draft.lines.append(
            word_line(
                "data_read",
                LABELS["data_read"],
                "not_comparable",
                reading.read.to(WIRE),
                None,
                both(
                    f"Reading at {shown(reading.read.to(WIRE))} is the clients' page cache and does not count.",
                    f"读取 {shown(reading.read.to(WIRE))} 是客户端页缓存，不算数。",
                ),
            )
        )
        if context.plan is None:
            draft.verdict, draft.sentence = "not_comparable", draft.lines[-1].sentence
    return draft


def _cached(draft: Draft) -> Draft:
    draft.verdict, draft.shown = "not_comparable", {"page_cache"}
    draft.sentence = both(
        "The page cache was measured, not the storage: run again with --direct=1 and files larger than twice the RAM.",
        "测到的是页缓存而不是存储：请加 --direct=1，并使用大于内存两倍的文件重测。",
    )
    return draft


def _compare(draft: Draft, context: Context, read: Quantity | None, write: Quantity | None, report: Report) -> None:
    if read is not None:
        draft.causes += READ_CAUSES
        draft.lines.append(_speed(read, "data_read", context))
    if write is not None:
        draft.causes += WRITE_CAUSES
        draft.lines.append(_speed(write, "checkpoint_write", context))
    if has(report, "short_run"):
        # a burst of seconds may be a cache or credits: it can fail, but not pass for sure
        draft.lines = [replace(one, verdict="marginal") if one.verdict == "pass" else one for one in draft.lines]
    if not draft.lines:
        draft.verdict = "not_comparable"
        draft.sentence = both("No bandwidth in it to compare.", "没有可比较的带宽。")


def _speed(value: Quantity, subject: str, context: Context) -> Any:
    expectation = expect_storage(context.plan, subject)
    value = Q(value.m_as(WIRE), unit(WIRE))
    if expectation is None:
        return word_line(
            subject,
            LABELS[subject],
            "not_comparable",
            value,
            None,
            both(
                f"{LABELS[subject]['en'].capitalize()}: {shown(value)}; no plan to compare it with.",
                f"{LABELS[subject]['zh']}：{shown(value)}；没有方案可比。",
            ),
        )
    line = bandwidth_line(value, expectation)
    if line.verdict == "fail" and value >= expectation.required:
        # the plan can live with it; it is only less than it was planned on
        line = replace(line, verdict="marginal")
    sentence = {
        language: text.replace("usual for such a system", "planned on").replace("同类系统常见值", "方案采用值")
        for language, text in line.sentence.items()
    }
    return replace(line, sentence=sentence)


def judge_dlio(report: Report, context: Context) -> Draft:
    """Accelerator utilization, without the first step that fills the pipeline."""
    reading = report.reading
    draft = Draft(title=both("Data loading (DLIO)", "数据加载（DLIO）"), causes=[*READ_CAUSES, "few_workers", "first_step"])
    au = reading.au if reading.au is not None else getattr(reading, "au_percent_epoch1", None)
    if au is None:
        draft.verdict = "not_comparable"
        draft.sentence = both("It shows no utilization.", "没有利用率数据。")
        return draft
    part, good = float(au) / 100, float(reading.threshold_au or 100 * share("utilization_good")) / 100
    verdict = "pass" if part >= good else "fail"
    sentence = both(
        f"Accelerators are busy {part:.1%} of the time, {good:.0%} is asked for.", f"加速器利用率 {part:.1%}，要求 {good:.0%}。"
    )
    if verdict == "fail" and has(report, "first_step_slow"):
        verdict = "marginal"
        sentence = both(
            f"Accelerators are busy {part:.1%} of the time, but the first step is in it; read it again without before blaming "
            "storage.",
            f"加速器利用率 {part:.1%}，但包含了第一步；去掉第一步再看，之后才能归咎于存储。",
        )
    draft.lines.append(
        word_line(
            "utilization",
            both("accelerator utilization", "加速器利用率"),
            verdict,
            Q(part, unit("")),
            Q(good, unit("")),
            sentence,
            "mlperf-storage-2.0",
        )
    )
    return draft
