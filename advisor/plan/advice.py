"""What the plan has to say beyond its numbers: one sentence a remark, in both languages, the serious ones first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor import catalog
from advisor.budget import convert, exchange_rate
from advisor.plan.assumed import assumed
from advisor.scenario.defaults import Resolved
from advisor.throughput import beyond_measured, largest_measured
from advisor.units import Q, Quantity, unit

if TYPE_CHECKING:
    from advisor.plan.records import Advice, Plan

ORDER = {"stop": 0, "warning": 1, "info": 2}


def advise(plan: Plan, resolved: Resolved) -> tuple[Advice, ...]:
    """All remarks on a plan, those that stop it first."""
    remarks = [
        *_workload(plan, resolved),
        *_memory(plan),
        *_cluster(plan, resolved),
        *(_from(one, "storage") for one in plan.storage.advice if _matters(one, plan)),
        *(_from(one, "budget") for one in plan.budget.advice if _matters(one, plan)),
        *_limits(plan, resolved),
    ]
    return tuple(sorted(remarks, key=lambda one: ORDER[one.severity]))


def _matters(one: Any, plan: Plan) -> bool:
    """Whether a stage's remark says something about this run. What is true of every run stays with the stage's own estimate."""
    if one.severity != "info":
        return True
    storage, budget = plan.storage, plan.budget
    run, large = plan.cluster.training_time, storage.checkpoint_size > Q(50.0, unit("GB"))
    long = run > Q(12.0, unit("h"))
    fast = sum(tier.price.m_as(tier.price.units) for tier in storage.tiers if tier.price is not None)
    asked = {
        "storage.retention": large,
        "storage.resume_state": large and long,
        "storage.resume_incomplete": long,
        "storage.local_is_lost": long or large,
        "storage.object_mount": large,
        "storage.goodput": storage.goodput.m_as("") < 0.99,
        "storage.disk_speed_by_size": False,
        "storage.after_the_run": fast > 0.1 * budget.total.magnitude and budget.total > Q(200.0, budget.total.units),
        "storage.nvme_assumed": large,
        "storage.spot_without_checkpoints": storage.time_without_checkpoints > 1.05 * run,
        "rate_stale": _converted(plan),
        "people_left_out": budget.total > Q(1000.0, budget.total.units),
    }
    return asked.get(one.code, True)


def _converted(plan: Plan) -> bool:
    """Whether the exchange rate changes this budget: its price is in another currency or stands beside CNY."""
    offers = [one for one in catalog.instances() if one.provider == plan.budget.price.provider]
    return plan.budget.currency != "USD" or any(one.currency != "USD" for one in offers)


def _remark(code: str, severity: str, stage: str, en: str, zh: str) -> Advice:
    from advisor.plan.records import Advice

    return Advice(code=code, severity=severity, stage=stage, text={"en": en, "zh": zh})


def _from(one: Any, stage: str) -> Advice:
    return _remark(one.code, one.severity, stage, one.text["en"], one.text["zh"])


def _workload(plan: Plan, resolved: Resolved) -> list[Advice]:
    remarks = [
        _remark("model_assumption", "info", "workload", one["en"], one["zh"])
        for one in map(assumed, resolved.architecture.assumptions)
    ]
    limit = resolved.architecture.max_position_embeddings
    length = resolved["sequence_length"]
    if limit is not None and length > limit:
        remarks.append(
            _remark(
                "beyond_context",
                "warning",
                "workload",
                f"Sequences of {length} tokens exceed the {limit} this model was made for: it needs context extension.",
                f"序列长度 {length} 超过模型原生上下文 {limit}：需要做上下文扩展（如 RoPE 缩放）。",
            )
        )
    return remarks


def _gib(value: Quantity) -> str:
    return f"{value.m_as('GiB / GPU'):.1f} GiB ({value.m_as('GB / GPU'):.1f} GB)"


def _cure(memory: Any) -> tuple[str, str]:
    """The ladder up to the rung that fits: its rungs stand on each other, so the last alone would be no cure."""
    fits = next((index for index, rung in enumerate(memory.escalation) if rung.verdict == "fits"), None)
    if fits is None:
        return "", ""
    rungs = [rung for rung in memory.escalation[: fits + 1] if rung.change not in ("larger_card", "more_cards")]
    rungs = rungs if memory.escalation[fits] in rungs else [memory.escalation[fits]]
    en, zh = (
        "; ".join(rung.text["en"].rstrip(".") for rung in rungs),
        "；".join(rung.text["zh"].rstrip("。") for rung in rungs),
    )
    together = (" (together)", "（合起来）") if len(rungs) > 1 else ("", "")
    return f" Cheapest cure{together[0]}: {en}.", f"最省事的办法{together[1]}：{zh}。"


def _memory(plan: Plan) -> list[Advice]:
    memory, gpu = plan.memory, plan.cluster.gpu
    need, room = _gib(memory.total), _gib(memory.capacity)
    if memory.verdict == "does_not_fit":
        en, zh = _cure(memory)
        return [
            _remark(
                "does_not_fit",
                "stop",
                "memory",
                f"It needs {need} per GPU and {gpu} has {room}.{en}",
                f"每卡需要 {need}，而 {gpu} 只有 {room}，放不下。{zh}",
            )
        ]
    if memory.verdict == "tight":
        high, low = _gib(memory.high), _gib(memory.low)
        if memory.total > memory.capacity:
            return [
                _remark(
                    "tight",
                    "warning",
                    "memory",
                    f"Expected {need}, more than the {room} of {gpu}; runs like this took {low} at least: do not count on it.",
                    f"预计 {need}，超过 {gpu} 的 {room}；同类实测最低为 {low}：不要指望放得下。",
                )
            ]
        return [
            _remark(
                "tight",
                "warning",
                "memory",
                f"Expected {need}, but runs like this reached up to {high} and {gpu} has {room}: test one step before renting.",
                f"预计 {need}，但同类实测最高可达 {high}，{gpu} 为 {room}：租用前先跑一步确认。",
            )
        ]
    return []


def _cluster(plan: Plan, resolved: Resolved) -> list[Advice]:
    cluster, link = plan.cluster, plan.cluster.interconnect
    remarks = []
    if cluster.gpus == 1:
        remarks.append(
            _remark(
                "no_interconnect", "info", "cluster", "One card: no interconnect is needed.", "单卡即可：不需要任何卡间互联。"
            )
        )
    share = link.communication_share.m_as("")
    if share > 0.2:
        en, zh = link.binding_collective, link.binding_collective_zh
        cure = link.cheapest_fabric
        found = not cure.startswith("none")
        cured = (
            (f"{cure} would cure it", f"换用 {cure} 可解决")
            if found
            else ("no fabric in the catalog cures it", "目录中没有互联能解决")
        )
        remarks.append(
            _remark(
                "communication_bound",
                "warning",
                "cluster",
                f"On {link.fabric} the step waits {share:.0%} of its time for communication ({en}); {cured[0]}.",
                f"在 {link.fabric} 上，每步有 {share:.0%} 的时间在等通信（{zh}）；{cured[1]}。",
            )
        )
    if cluster.layout.tensor_parallel_size > cluster.layout.gpus_per_node:
        remarks.append(
            _remark(
                "tensor_across_nodes",
                "warning",
                "cluster",
                "Tensor parallelism crosses nodes: every layer waits for the network. Keep it inside a node.",
                "张量并行跨了节点：每一层都要等网络。请把张量并行限制在机内。",
            )
        )
    remarks += _unmeasured(cluster.gpu, cluster.gpus)
    card = catalog.gpu(cluster.gpu)
    if card.confidence.startswith("low"):
        remarks.append(
            _remark(
                "low_confidence_card",
                "warning",
                "cluster",
                f"What is known of {card.name} is of low confidence ({card.as_of}): ask the vendor and measure one step.",
                f"{card.name} 的规格可信度低（{card.as_of}）：请向厂商核实，并实测一步。",
            )
        )
    return remarks


def _unmeasured(gpu: str, gpus: int) -> list[Advice]:
    """That a speed rests on no published run of this kind of card, or of nearly so many."""
    beyond = beyond_measured(gpu, gpus)
    if not beyond:
        return []
    most = largest_measured().get(gpu, 0)
    en, zh = {
        "card": (f"No published training run was on {gpu}", f"{gpu} 没有公开的训练实测"),
        "count": (f"No published run had more than {most} x {gpu}", f"{gpu} 的公开训练实测最多 {most} 卡"),
    }[beyond]
    return [
        _remark(
            "speed_unmeasured",
            "warning" if gpus > 8 else "info",
            "cluster",
            f"{en}: that {gpus} of them reach this speed is worked out, not measured. The range is wider; measure a step.",
            f"{zh}：{gpus} 卡能否达到该速度是推算而非实测。区间已放宽，请先实测一步。",
        )
    ]


def _limits(plan: Plan, resolved: Resolved) -> list[Advice]:
    remarks = []
    deadline, limit = resolved.given("deadline"), resolved.given("budget_limit")
    time = plan.cluster.training_time
    if deadline is not None and time > deadline:
        remarks.append(
            _remark(
                "deadline_missed",
                "stop",
                "cluster",
                f"Training takes {time.m_as('day'):.2g} days; the deadline is {deadline.m_as('day'):.2g} days.",
                f"训练需要 {time.m_as('day'):.2g} 天，超过期限 {deadline.m_as('day'):.2g} 天。",
            )
        )
    if limit is not None:
        total = plan.budget.total
        allowed = convert(limit, plan.budget.currency, exchange_rate(resolved["purchase"].get("as_of")))
        if total > allowed:
            remarks.append(
                _remark(
                    "budget_exceeded",
                    "stop",
                    "budget",
                    f"The expected total {total:,.0f~} is above the limit {allowed:,.0f~}.",
                    f"预计总费用 {total:,.0f~} 超出上限 {allowed:,.0f~}。",
                )
            )
    return remarks


def speed_note(time: Quantity) -> Quantity:
    """The time in the largest unit in which it is at least one."""
    for name in ("day", "h", "minute"):
        if time >= Q(1.0, unit(name)):
            return time.to(name)
    return time.to("s")
