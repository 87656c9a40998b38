"""Three questions about a platform: is the network what was promised, is storage close, does it heal itself after a fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.verify.draft import both
from advisor.verify.records import Answer, Finding, Line, Verification, worst

if TYPE_CHECKING:
    from advisor.plan import Plan

TEXTS = {
    "network": both("Is the network what was promised?", "网络达到承诺了吗？"),
    "storage": both("Is storage close and fast enough?", "存储够近、够快吗？"),
    "healing": both("Does the platform heal itself after a fault?", "出故障后平台能自愈吗？"),
}
NOT_TESTED = both("Not tested yet.", "尚未测试。")
ANSWERS = {"pass": "yes", "marginal": "partly", "fail": "no"}
NETWORK = {
    "scale_up",
    "scale_out",
    "nic",
    "port",
    "ports",
    "gid",
    "interconnect",
    "nic_nearness",
    "network",
    "adapters",
    "gpus",
}
STORAGE = {"data_read", "checkpoint_write", "checkpoint", "load", "utilization"}
HEALING = {"resume", "node_fault"}


def three_questions(findings: Verification | Sequence[Finding], plan: Plan | None = None) -> tuple[Answer, ...]:
    """The three questions answered from findings, each with its evidence, or "not tested yet"."""
    if isinstance(findings, Verification):
        findings = findings.findings
    return _network(findings, plan), _storage(findings, plan), _healing(findings)


def _lines(findings: Sequence[Finding], subjects: set[str]) -> list[tuple[Finding, Line]]:
    return [
        (finding, line)
        for finding in findings
        for line in finding.lines
        if line.subject in subjects and line.verdict != "not_comparable" and finding.verdict != "not_comparable"
    ]


def _answer(question: str, lines: list[tuple[Finding, Line]], missing: dict[str, str] | None, command: str) -> Answer:
    if not lines:
        return Answer(question=question, text=TEXTS[question], answer="not_tested", sentence=NOT_TESTED, next_command=command)
    answer = ANSWERS[worst([line.verdict for _, line in lines])]
    answer = "partly" if answer == "yes" and missing else answer
    good = sum(line.verdict == "pass" for _, line in lines)
    sentence = both(f"{good} of {len(lines)} measurements pass.", f"{len(lines)} 项测量中 {good} 项达标。")
    if missing:
        sentence = both(f"{sentence['en']} {missing['en']}", f"{sentence['zh']}{missing['zh']}")
    order = {"fail": 0, "marginal": 1, "pass": 2}
    evidence = tuple(
        both(f"{finding.name}: {line.sentence['en']}", f"{finding.name}：{line.sentence['zh']}")
        for finding, line in sorted(lines, key=lambda pair: order[pair[1].verdict])
    )
    wrong = next((finding for finding, line in lines if line.verdict == "fail" and finding.next_command), None)
    return Answer(
        question=question,
        text=TEXTS[question],
        answer=answer,
        sentence=sentence,
        evidence=evidence,
        next_command=wrong.next_command if wrong else command if missing else "",
    )


def _network(findings: Sequence[Finding], plan: Plan | None) -> Answer:
    if plan is not None and int(plan.cluster.gpus) == 1:
        return Answer(
            question="network",
            text=TEXTS["network"],
            answer="not_needed",
            sentence=both("One card sends nothing to others: no network is needed.", "单卡之间没有通信：不需要互联。"),
        )
    lines = _lines([one for one in findings if one.kind != "nvidia_smi"], NETWORK)
    tested = {line.subject for _, line in lines}
    several = plan is not None and int(plan.cluster.nodes) > 1
    missing = None
    if several and "scale_out" not in tested:
        missing = both("Bandwidth between nodes is not tested yet.", "机间带宽尚未测试。")
        command = "./acceptance.sh nccl_two_nodes"
    elif not tested & {"scale_up", "scale_out"}:
        missing, command = (
            both("Collective bandwidth is not tested yet.", "集合通信带宽尚未测试。"),
            "./acceptance.sh nccl_one_node",
        )
    else:
        command = ""
    return _answer("network", lines, missing, command or "./acceptance.sh nccl_one_node")


def _storage(findings: Sequence[Finding], plan: Plan | None) -> Answer:
    lines = _lines(findings, STORAGE)
    tested = {line.subject for _, line in lines}
    missing, command = None, "./acceptance.sh data checkpoint"
    if "checkpoint_write" not in tested:
        missing, command = both("Writing checkpoints is not tested yet.", "检查点写入尚未测试。"), "./acceptance.sh checkpoint"
    elif not tested & {"data_read", "utilization"}:
        missing, command = both("Reading data is not tested yet.", "数据读取尚未测试。"), "./acceptance.sh data"
    return _answer("storage", lines, missing, command)


def _healing(findings: Sequence[Finding]) -> Answer:
    lines = _lines(findings, HEALING)
    tested = {line.subject for _, line in lines}
    missing, command = None, "./acceptance.sh resume"
    if "resume" not in tested:
        missing = both("Kill-and-resume is not tested yet.", "杀进程续训尚未测试。")
    elif "node_fault" not in tested:
        missing = both("The fault of a whole node is not tested yet.", "整节点故障尚未测试。")
        command = "./acceptance.sh record_node_fault SECONDS platform"
    return _answer("healing", lines, missing, command)
