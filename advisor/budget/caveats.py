"""What a price does not say: the caveats of each offer, and the checklist of questions to put to a platform."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from advisor import catalog
from advisor.budget import texts
from advisor.budget.lines import TERMS
from advisor.budget.money import BudgetError
from advisor.budget.offers import Offer, is_stale, providers
from advisor.budget.prices import Need
from advisor.budget.records import Job
from advisor.units import Fraction, Q, Record


def caveats_of(offer: Offer, job: Job | Need, day: str) -> tuple[dict[str, str], ...]:
    """What to know before choosing this offer, beside its price."""
    said = []
    row = providers().get(offer.provider, {})
    if is_stale(offer.as_of, day):
        said.append(texts.both(f"Price of {offer.as_of}: ask again.", f"价格日期 {offer.as_of}，请重新询价。"))
    if job.nodes > 1 and offer.origin == "quote" and offer.network_rate != offer.network_rate:
        said.append(texts.both("Your quote states no network between machines: ask.", "报价未注明机间网络，请询问。"))
    if job.nodes > 1 and offer.rdma in ("", "none"):
        said.append(texts.both("No RDMA is stated between machines.", "未标明机间 RDMA。"))
    if not any(name == row.get("storage_provider") for name in _parallel_providers()):
        said.append(texts.both("No managed parallel file system is known there.", "未见托管并行文件系统。"))
    if offer.kind == "marketplace":
        said.append(
            texts.both(
                "A marketplace: host quality varies and a machine may go away.", "撮合平台：主机质量不一，可能随时下线。"
            )
        )
    if offer.kind == "serverless":
        said.append(
            texts.both("Serverless: billed per second, no machine of your own.", "Serverless：按秒计费，没有独占机器。")
        )
    if offer.minimum_hours > 0:
        said.append(texts.both("Sold by the month only.", "仅按月租售。"))
    if offer.by_card:
        said.append(
            texts.both("Sold by the card: ask whether all cards sit in one machine.", "按卡出售：请确认多卡在同一台机器。")
        )
    if row.get("price_quality") == "weak":
        said.append(
            texts.both("Public prices of this provider are few and old: ask for a quote.", "该厂商公开价格少且旧，请索取报价。")
        )
    if offer.grey_market:
        said.append(texts.both("Export-controlled card: a grey-market quote.", "受出口管制，灰色市场报价。"))
    if offer.confidence == "low":
        said.append(texts.both("The price has low confidence.", "价格可信度低。"))
    if offer.mode == "spot":
        said.append(
            texts.both("May be taken away: prove save and resume on demand first.", "可能被回收：先按量跑通保存与恢复。")
        )
    if offer.mode in TERMS and offer.origin == "derived":
        said.append(texts.both("No price is published: derived from a typical discount.", "无公开价，按典型折扣推算。"))
    if job.basis == "scaled":
        said.append(
            texts.both(
                "Time scaled from another card by peak rate: plan it before you choose.",
                "时间按峰值算力折算，选用前请重新规划。",
            )
        )
    return tuple(said)


@functools.lru_cache(maxsize=1)
def _parallel_providers() -> frozenset[str]:
    return frozenset(one.provider for one in catalog.storage_products() if one.storage_class == "parallel-fs")


Answer = Literal["yes", "partly", "no", "unknown"]
SCORES = {"yes": 1.0, "partly": 0.5, "no": 0.0}


@dataclass(frozen=True, kw_only=True)
class Question(Record):
    """One thing to ask a platform. weight: share of the score; blocking: a "no" rules it out for a job on several machines."""

    code: str
    group: Literal["ladder", "network", "storage", "software", "faults", "isolation", "commerce"]
    text: dict
    weight: int = 1
    blocking: bool = False


def _question(code: str, group: str, en: str, zh: str, weight: int = 1, blocking: bool = False) -> Question:
    return Question(code=code, group=group, text={"en": en, "zh": zh}, weight=weight, blocking=blocking)


#: The platform ladder from bare machines to a scheduler comes first: each rung is more done for you and less in your hands.
CHECKLIST = (
    _question("bare_machines", "ladder", "Bare machines with root access?", "提供有 root 权限的裸机？"),
    _question("kubernetes", "ladder", "Managed Kubernetes with GPU operator?", "托管 Kubernetes（含 GPU Operator）？"),
    _question(
        "job_platform", "ladder", "A job platform (submit a training, get a log)?", "训练任务平台（提交任务、查看日志）？", 2
    ),
    _question("scheduler", "ladder", "A scheduler with queues, quotas and priorities?", "带队列、配额、优先级的调度器？", 2),
    _question(
        "rdma", "network", "Is the network really RDMA, shown by a busbw test?", "机间网络确为 RDMA 且有 busbw 实测？", 3, True
    ),
    _question(
        "one_fabric", "network", "Are all machines in one fabric or placement group?", "所有机器在同一网络域/置放群组？", 2
    ),
    _question("parallel_fs", "storage", "A parallel file system in the same zone?", "同可用区有并行文件系统？", 2),
    _question("local_nvme", "storage", "Local NVMe in each machine?", "每台机器有本地 NVMe？"),
    _question("images", "software", "Your own images, drivers and CUDA version?", "可用自定义镜像、驱动与 CUDA 版本？"),
    _question("frameworks", "software", "Your framework runs there without changes?", "所用框架无需改动即可运行？"),
    _question("replacement", "faults", "Are bad nodes found and replaced automatically?", "故障节点自动发现并替换？", 3),
    _question("spares", "faults", "Are spare nodes kept?", "有备用节点？"),
    _question("logs", "faults", "Are logs and metrics of all ranks collected?", "收集全部 rank 的日志与监控？"),
    _question("burn_in", "faults", "Are machines tested before they are handed over?", "交付前做过压力测试？"),
    _question("whole_card", "isolation", "Whole cards, no slices or overselling?", "整卡独占，无切分或超卖？", 2, True),
    _question("whole_machine", "isolation", "Whole machines, no neighbours?", "整机独占，无邻居？"),
    _question("queueing", "commerce", "Capacity at once, without queueing?", "立即可用，无需排队？", 2),
    _question("stop_billing", "commerce", "Does billing stop with the machine?", "停机即停止计费？"),
    _question("tax", "commerce", "Is the price with tax and support?", "报价含税、含支持服务？"),
)


@dataclass(frozen=True, kw_only=True)
class PlatformScore(Record):
    """score: of what was answered; answered: weight that was answered. blockers: questions whose "no" rules it out."""

    score: Fraction
    answered: Fraction
    blockers: tuple[dict, ...]
    open_questions: tuple[dict, ...]


def score_platform(answers: Mapping[str, Answer]) -> PlatformScore:
    """Score the user's answers ("yes", "partly", "no", "unknown") to CHECKLIST by code; what is not answered is asked again.

    Raises BudgetError on an unknown question or answer.
    """
    known = {question.code for question in CHECKLIST}
    for code, answer in answers.items():
        if code not in known:
            raise BudgetError(
                f"No question {code!r} in the platform checklist; nearest: {catalog.nearest(code, sorted(known))!r}."
            )
        if answer not in (*SCORES, "unknown"):
            raise BudgetError(f"The answer to {code!r} must be yes, partly, no or unknown, but was given {answer!r}.")
    given = [question for question in CHECKLIST if answers.get(question.code, "unknown") != "unknown"]
    weight = sum(question.weight for question in given)
    score = sum(question.weight * SCORES[answers[question.code]] for question in given)
    return PlatformScore(
        score=Q(score / weight if weight else 0.0, ""),
        answered=Q(weight / sum(question.weight for question in CHECKLIST), ""),
        blockers=tuple(question.text for question in given if question.blocking and answers[question.code] == "no"),
        open_questions=tuple(question.text for question in CHECKLIST if question not in given),
    )


def known_answers(offer: Offer) -> dict[str, Answer]:
    """The answers that the price data already give for an offer; the rest is for the user to ask."""
    found: dict[str, Answer] = {}
    if offer.rdma:
        # eRDMA and EFA are RDMA over the cloud's own network: real, and not InfiniBand.
        found["rdma"] = "no" if offer.rdma == "none" else ("yes" if offer.rdma.startswith(("InfiniBand", "RoCE")) else "partly")
    provider = providers().get(offer.provider, {}).get("storage_provider")
    if provider:
        found["parallel_fs"] = "yes" if provider in _parallel_providers() else "unknown"
    if offer.kind == "lease":
        found |= {"bare_machines": "yes", "whole_machine": "yes", "whole_card": "yes"}
    if offer.kind in ("container", "serverless"):
        found |= {"bare_machines": "no", "whole_machine": "no"}
    if offer.minimum_hours > 0:
        found["stop_billing"] = "no"
    return found
