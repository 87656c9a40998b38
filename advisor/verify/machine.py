"""nvidia-smi and launch logs against the plan: the right cards, kept busy, and collectives on the right transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.units import Q, Quantity, unit
from advisor.verify.draft import Context, Draft, both, has, same_card, word_line
from advisor.verify.expect import share, shown

if TYPE_CHECKING:
    from advisor.evidence import Report
    from advisor.plan import Plan

DATA_CAUSES = ("cores_withheld", "few_workers", "cpu_governor", "small_files", "object_mount", "small_disk", "file_system_full")


def judge_nvidia_smi(report: Report, context: Context) -> Draft:
    """The cards' name, number and memory; heat and faults; and, over a series, whether they wait for data."""
    reading = report.reading
    draft = Draft(title=both("GPUs (nvidia-smi)", "GPU 状态（nvidia-smi）"))
    if context.plan is not None:
        _identity(reading, context.plan, report, draft)
    if has(report, "gpu_fault", "ecc_errors"):
        draft.causes.append("gpu_fault")
        draft.lines.append(
            word_line(
                "fault",
                both("hardware errors", "硬件错误"),
                "fail",
                "errors",
                "none",
                both("A GPU reports errors: have it replaced.", "有 GPU 报告硬件错误：请更换。"),
            )
        )
    _heat(reading, draft)
    _busy(reading, report, draft)
    if not draft.lines:
        draft.verdict = "not_comparable"
        draft.sentence = both("Nothing planned to compare it with.", "没有可对照的方案内容。")
    return draft


def _identity(reading: Any, plan: Plan, report: Report, draft: Draft) -> None:
    name = reading.name or (reading.names[0] if reading.names else None) or reading.name_prefix
    planned = plan.cluster.gpu
    same = same_card(name, planned) if name else None
    if same is not None:
        if not same:
            draft.causes.append("wrong_gpu")
            draft.shown.add("wrong_gpu")
        draft.lines.append(
            word_line(
                "gpu",
                both("model of the cards", "显卡型号"),
                "pass" if same else "fail",
                name,
                planned,
                both(f"The cards are {name}, planned {planned}.", f"显卡为 {name}，方案为 {planned}。"),
            )
        )
    per_node = int(plan.cluster.layout.gpus_per_node)
    if reading.gpus and not report.truncated and not reading.samples:
        enough = reading.gpus >= per_node
        draft.causes += [] if enough else ["gpu_missing"]
        draft.lines.append(
            word_line(
                "gpus",
                both("GPUs in the node", "节点 GPU 数"),
                "pass" if enough else "fail",
                reading.gpus,
                per_node,
                both(
                    f"{reading.gpus} GPU(s), planned {per_node} a node.", f"{reading.gpus} 张 GPU，方案每节点 {per_node} 张。"
                ),
            )
        )
    if reading.mem_total is not None and plan.memory.capacity is not None and same is not False:
        total = _smallest(reading.mem_total)
        capacity = Q(float(plan.memory.capacity.m_as("GiB / GPU")), unit("GiB"))
        part = float((total / capacity).m_as("")) - 1
        good = part >= -share("memory_tolerance")
        draft.lines.append(
            word_line(
                "gpu_memory",
                both("memory of a card", "单卡显存"),
                "pass" if good else "fail",
                total.to("GiB"),
                capacity,
                both(
                    f"A card has {shown(total.to('GiB'))}, the plan counts on {shown(capacity)}.",
                    f"单卡显存 {shown(total.to('GiB'))}，方案按 {shown(capacity)}。",
                ),
            )
        )
    if has(report, "mig_enabled"):
        draft.causes.append("wrong_gpu")
        draft.lines.append(
            word_line(
                "mig",
                both("partitioned cards", "MIG 切分"),
                "fail",
                "MIG",
                "off",
                both("MIG is on: a job sees a slice of the card.", "MIG 已开启：作业只能看到部分显卡。"),
            )
        )


def _smallest(value: Quantity) -> Quantity:
    magnitude = np.min(value.magnitude)
    return Q(float(magnitude), value.units)


def _numbers(values: Any) -> list[float]:
    if isinstance(values, Quantity):
        values = np.atleast_1d(values.magnitude).tolist()
    values = values if isinstance(values, (list, tuple)) else [values]
    return [float(one) for one in values if isinstance(one, (int, float)) and one == one]


def _heat(reading: Any, draft: Draft) -> None:
    degrees = _numbers(reading.temperature)
    if not degrees:
        return
    hottest, good, bad = max(degrees), share("temperature_good"), share("temperature_fail")
    verdict = "pass" if hottest <= good else "marginal" if hottest <= bad else "fail"
    draft.causes += [] if verdict == "pass" else ["throttled"]
    draft.shown |= set() if verdict == "pass" else {"throttled"}
    draft.lines.append(
        word_line(
            "temperature",
            both("hottest GPU", "最高温度"),
            verdict,
            hottest,
            good,
            both(f"The hottest GPU has {hottest:.0f} °C.", f"最高温度 {hottest:.0f} °C。"),
            "verify-lines",
        )
    )


def _busy(reading: Any, report: Report, draft: Draft) -> None:
    """Utilization is judged over a series of samples of a working GPU; one look at an idle machine says nothing."""
    series = _numbers(reading.util)
    samples = reading.samples or 0
    if samples < 5 or len(series) < 5 or max(series) < 50:
        return
    mean = float(reading.mean_util if reading.mean_util is not None else np.mean(series)) / 100
    good, bad = share("utilization_good"), share("utilization_fail")
    verdict = "pass" if mean >= good else "marginal" if mean >= bad else "fail"
    starved = has(report, "input_starvation") or min(series) <= 5
    draft.causes += [] if verdict == "pass" else DATA_CAUSES
    draft.shown |= {"few_workers"} if verdict != "pass" and starved else set()
    draft.lines.append(
        word_line(
            "utilization",
            both("GPU utilization over time", "GPU 利用率（时间序列）"),
            verdict,
            Q(mean, unit("")),
            Q(good, unit("")),
            _starving(mean, min(series))
            if verdict != "pass" and starved
            else both(f"Utilization averages {mean:.0%}.", f"平均利用率 {mean:.0%}。"),
            "mlperf-storage-2.0",
        )
    )


def _starving(mean: float, lowest: float) -> dict[str, str]:
    return both(
        f"Utilization averages {mean:.0%} and falls to {lowest:.0f} %: the GPU waits for data. A starving job is nearly always "
        "CPU, workers or small files, seldom the storage's bandwidth.",
        f"平均利用率 {mean:.0%}，最低 {lowest:.0f}%：GPU 在等数据。多半是 CPU、num_workers 或小文件的问题，很少是存储带宽。",
    )


def judge_launch(report: Report, context: Context) -> Draft:
    """The transport under the collectives, the number of processes, and what a timeout means."""
    reading, plan = report.reading, context.plan
    draft = Draft(title=both("Launch and NCCL log", "启动与 NCCL 日志"))
    _transport(reading, report, context, draft)
    if plan is not None and reading.world_size:
        gpus = int(plan.cluster.gpus)
        same = int(reading.world_size) == gpus
        draft.lines.append(
            word_line(
                "world_size",
                both("processes of the job", "进程数（world size）"),
                "pass" if same else "marginal",
                int(reading.world_size),
                gpus,
                both(
                    f"The job has {reading.world_size} process(es), the plan {gpus} GPU(s).",
                    f"作业有 {reading.world_size} 个进程，方案为 {gpus} 张 GPU。",
                ),
            )
        )
    _waits(reading, report, plan, draft)
    failures = {
        "not_all_joined": "node_absent",
        "each_alone": "launched_alone",
        "local_rank_out_of_range": "launched_alone",
        "rank_out_of_range": "launched_alone",
        "world_size_disagrees": "launched_alone",
    }
    for one in report.problems:
        if one.code in failures:
            draft.causes.append(failures[one.code])
            draft.lines.append(word_line(one.code, both("start of the job", "作业启动"), "fail", None, None, one.text))
    if getattr(reading, "signal", None) in ("SIGKILL", "9", "Signal 9") or reading.exit_code == -9:
        draft.causes.append("host_memory")
        draft.shown.add("host_memory")
        draft.lines.append(
            word_line(
                "signal",
                both("end of the job", "作业结束"),
                "fail",
                "SIGKILL",
                None,
                both(
                    "Killed by signal 9 without a CUDA error: the machine's RAM ran out.",
                    "被 signal 9 杀掉且无 CUDA 报错：主机内存耗尽。",
                ),
            )
        )
    if not draft.lines:
        draft.verdict = "not_comparable"
        draft.sentence = both("The log says nothing that a plan states.", "日志中没有可与方案对照的内容。")
    return draft


def _transport(reading: Any, report: Report, context: Context, draft: Draft) -> None:
    network = reading.network
    label = both("what collectives run on", "集合通信所走的网络")
    tcp = "Ethernet" in context.system.scale_out and "TCP" in context.system.scale_out
    if has(report, "costly_setting", "loopback_interface") and not network:
        draft.causes.append("template_environment")
        one = next(one for one in report.problems if one.code in ("costly_setting", "loopback_interface"))
        draft.lines.append(word_line("environment", both("NCCL settings", "NCCL 设置"), "marginal", None, None, one.text))
    if not network and reading.gdr is not False:
        return
    draft.causes += ["sockets", "gdr_off", "acs_on", "template_environment", "mixed_nics", "roce_gid"]
    if network and network.startswith("Socket"):
        verdict = "pass" if tcp else "fail"
        draft.shown |= set() if tcp else {"sockets"}
        sentence = both(
            f"Collectives run over {network}." if tcp else f"Collectives run over {network} and not over RDMA: expect a tenth.",
            f"集合通信走 {network}。" if tcp else f"集合通信走 {network} 而不是 RDMA：带宽可能只有十分之一。",
        )
    elif reading.gdr is False:
        verdict, sentence = (
            "fail",
            both(
                "GPUDirect RDMA is off: data go through host memory, 10 instead of 180 GB/s were seen.",
                "GPUDirect RDMA 未启用：数据经主机内存，曾见由 180 降到 10 GB/s。",
            ),
        )
        draft.shown.add("gdr_off")
    else:
        verdict = "marginal" if has(report, "costly_setting", "mixed_adapters") else "pass"
        count = f", {reading.hcas} adapter(s)" if isinstance(reading.hcas, int) else ""
        sentence = both(
            f"Collectives run over {network}{count}.", f"集合通信走 {network}{count.replace(' adapter(s)', ' 个网卡')}。"
        )
    draft.lines.append(word_line("network", label, verdict, network or "IB without GDR", "TCP" if tcp else "RDMA", sentence))
    wanted = context.system.nics_per_node
    if isinstance(reading.hcas, int) and wanted and context.plan is not None and reading.hcas < wanted and verdict == "pass":
        draft.causes.append("fewer_ports")
        draft.shown.add("fewer_ports")
        draft.lines.append(
            word_line(
                "adapters",
                both("adapters in use", "使用的网卡数"),
                "marginal",
                reading.hcas,
                wanted,
                both(
                    f"NCCL uses {reading.hcas} adapters, planned {wanted}.",
                    f"NCCL 使用 {reading.hcas} 个网卡，方案 {wanted} 个。",
                ),
            )
        )


def _waits(reading: Any, report: Report, plan: Plan | None, draft: Draft) -> None:
    """A collective that timed out: at a save, at the load, or in a step."""
    code = next(
        (one.code for one in report.problems if one.code.startswith("timeout_") and one.code != "timeout_assumed"), None
    )
    phase = (reading.phase or "").lower()
    if code is None and not phase:
        return
    at_save = code == "timeout_at_barrier" or "sav" in phase or "checkpoint" in phase
    at_load = code == "timeout_at_load" or "load" in phase
    limit = reading.timeout or getattr(reading, "timeout_default", None)
    if at_load:
        draft.causes += ["load_skew", "rank_died"]
        draft.shown.add("load_skew")
        planned = plan.storage.startup.weights_time if plan is not None else None
        sentence = both(
            "The first collective timed out before any step: ranks wait for one that still loads. Storage or start-up, not the "
            "network." + (f" The plan expects {shown(planned.to('min'))} for the weights." if planned is not None else ""),
            "第一次集合通信在任何训练步之前超时：在等待仍在加载的 rank。属存储或启动问题，不是网络。"
            + (f"方案预计加载权重 {shown(planned.to('min'))}。" if planned is not None else ""),
        )
        label, subject = both("start-up", "启动加载"), "load"
    elif at_save:
        draft.causes += ["save_outlasts_timeout", "save_gathers", "object_target", "file_system_full"]
        draft.shown.add("save_outlasts_timeout")
        planned = plan.storage.checkpoint_write_time if plan is not None else None
        sentence = both(
            "A collective timed out while a checkpoint was being saved: others wait for the rank that writes."
            + (f" The plan expects {shown(planned)} for a save." if planned is not None else ""),
            "保存检查点时集合通信超时：其他 rank 在等待写盘的 rank。"
            + (f"方案预计一次保存 {shown(planned)}。" if planned is not None else ""),
        )
        label, subject = both("checkpoint stall", "检查点停顿"), "checkpoint"
    else:
        draft.causes += ["rank_died", "save_outlasts_timeout", "port_down", "roce_pfc"]
        planned = None
        sentence = both(
            "A collective timed out in a step: find the rank that stopped first, then its GPU and port.",
            "训练步中集合通信超时：先找最早停下的 rank，再查它的 GPU 与端口。",
        )
        label, subject = both("collective timeout", "集合通信超时"), "collective"
    draft.lines.append(word_line(subject, label, "fail", reading.ran or limit, planned or limit, sentence))
