"""Evidence against a plan: every reading judged, with what the other readings prove taken into account."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from advisor.evidence.report import Report
from advisor.verify.collectives import judge_nccl
from advisor.verify.draft import Context, Draft, both, codes_of, finish, has
from advisor.verify.expect import find_gpu, find_link, system_of
from advisor.verify.fabric import judge_iperf, judge_perftest, judge_ports, judge_topology
from advisor.verify.machine import judge_launch, judge_nvidia_smi
from advisor.verify.oom import judge_oom
from advisor.verify.questions import three_questions
from advisor.verify.records import Finding, System, Verification, worst
from advisor.verify.results import judge_kit
from advisor.verify.settings import judge_settings
from advisor.verify.storage import judge_dlio, judge_fio, judge_ior

if TYPE_CHECKING:
    from advisor.plan import Plan

#: By the reading's type: several tools share the kind "storage".
JUDGES: dict[str, Callable[[Report, Context], Draft]] = {
    "NcclReading": judge_nccl,
    "PerftestReading": judge_perftest,
    "IbReading": judge_ports,
    "TopoReading": judge_topology,
    "IperfReading": judge_iperf,
    "NvidiaSmiReading": judge_nvidia_smi,
    "LaunchReading": judge_launch,
    "OomReading": judge_oom,
    "FioReading": judge_fio,
    "IorReading": judge_ior,
    "DlioReading": judge_dlio,
    "KitReading": judge_kit,
}

Reports = Mapping[str, Report] | Iterable[Report | tuple[str, Report]]


def check(reports: Reports, plan: Plan | None = None, system: System | None = None) -> Verification:
    """Judge each reading: pass, marginal, fail or not comparable, with numbers, causes in order and the next command.

    reports: of `advisor.read`, alone, with a name (pairs), or by name. plan: what they are held to; without one they are judged
    by what is healthy only. system: the machines where no plan tells them.
    """
    named = _named(reports)
    system = system_of(plan) if plan is not None else system or _guess([report for _, report in named])
    context = Context(plan=plan, system=system, codes=codes_of(report for _, report in named))
    link = find_link(system.scale_out)
    context.roce = bool(link and link.kind.startswith("RoCE")) or any(_is_roce(report) for _, report in named)
    context.good = _proven(named, context)
    findings = tuple(judge(report, name, context) for name, report in named)
    verdict = worst([finding.verdict for finding in findings])
    return Verification(
        verdict=verdict,
        sentence=_sentence(findings, verdict),
        findings=findings,
        questions=three_questions(findings, plan),
    )


def judge(report: Report, name: str, context: Context) -> Finding:
    """One reading's finding."""
    judge_one = JUDGES.get(type(report.reading).__name__, judge_settings)
    return finish(judge_one(report, context), report, name, context)


def verify(report: Report, plan: Plan | None = None) -> Verification:
    """One reading alone against a plan."""
    return check([report], plan)


def _named(reports: Reports) -> list[tuple[str, Report]]:
    pairs = reports.items() if isinstance(reports, Mapping) else reports
    named: list[tuple[str, Report]] = []
    for number, one in enumerate(pairs, 1):
        named.append((f"{one.kind} {number}", one) if isinstance(one, Report) else (str(one[0]), one[1]))
    return named


def _guess(reports: list[Report]) -> System:
    """The machines as the evidence itself names them."""
    system = System()
    for report in reports:
        reading: Any = report.reading
        kind = type(reading).__name__
        names = getattr(reading, "devices", None) if kind == "NcclReading" else getattr(reading, "names", None)
        name = names[0] if isinstance(names, (list, tuple)) and names else getattr(reading, "name", None)
        card = find_gpu(name) if isinstance(name, str) else None
        system = replace(system, gpu=card.name) if card is not None and not system.gpu else system
        if kind == "TopoReading" and reading.gpus > 1 and not report.truncated:
            system = replace(system, gpus_per_node=reading.gpus)
        elif kind == "NcclReading" and reading.nodes and reading.ranks and reading.ranks % reading.nodes == 0:
            system = replace(system, gpus_per_node=int(reading.ranks // reading.nodes))
    return system


def _is_roce(report: Report) -> bool:
    return has(report, "roce_not_infiniband") or getattr(report.reading, "network", None) == "RoCE"


def _proven(named: list[tuple[str, Report]], context: Context) -> set[str]:
    """What readings prove to be right, so that others' causes can be ruled out."""
    good: set[str] = set()
    for name, report in named:
        reading, kind = report.reading, type(report.reading).__name__
        if kind in ("PerftestReading", "IbReading", "TopoReading"):
            finding = judge(report, name, context)
            if finding.verdict != "pass" or report.truncated:
                continue
            if kind == "TopoReading":
                good |= {"topology"} if reading.closest_nic_per_gpu else set()
            elif kind == "PerftestReading":
                good.add("nics")
            else:
                good.add("ports")
                good |= {"gid"} if reading.roce_v2_ipv4_gid_index else set()
                mtus = [port.get("active_mtu") for port in reading.devices.values()]
                good |= {"mtu"} if mtus and all(mtu == 4096 for mtu in mtus) else set()
        elif kind == "LaunchReading" and reading.network and not reading.network.startswith("Socket"):
            good.add("rdma")
            good |= {"gpudirect"} if reading.gdr else set()
    return good


def _sentence(findings: tuple[Finding, ...], verdict: str) -> dict[str, str]:
    counts = {
        name: sum(finding.verdict == name for finding in findings) for name in ("pass", "marginal", "fail", "not_comparable")
    }
    if not findings:
        return both("Nothing was given to compare.", "没有提供可比较的内容。")
    en = {"pass": "passed", "marginal": "marginal", "fail": "failed", "not_comparable": "not comparable"}
    zh = {"pass": "通过", "marginal": "临界", "fail": "不通过", "not_comparable": "不可比"}
    return both(
        ", ".join(f"{count} {en[name]}" for name, count in counts.items() if count) + ".",
        "，".join(f"{count} 项{zh[name]}" for name, count in counts.items() if count) + "。",
    )
