"""An out-of-memory message reconciled with the plan's memory terms: what was held, by whom, and what was predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.units import Q, Quantity, unit
from advisor.verify.draft import Context, Draft, both, has, margin_of
from advisor.verify.expect import constant, share, shown
from advisor.verify.records import Line

if TYPE_CHECKING:
    from advisor.evidence import Report
    from advisor.plan import Plan

GIB = "GiB"
TERMS = {
    "weights": ("weights", "权重"),
    "gradients": ("gradients", "梯度"),
    "optimizer_states": ("optimizer states", "优化器状态"),
    "activations": ("activations", "激活值"),
    "logits": ("logits", "logits（损失）"),
    "buffers": ("communication buffers", "通信缓冲"),
}


def judge_oom(report: Report, context: Context) -> Draft:
    """Where the memory went: needed = allocated + tried, beside other processes, fragments and what is outside PyTorch."""
    reading, plan = report.reading, context.plan
    draft = Draft(title=both("Out of memory", "显存不足（OOM）"))
    draft.causes = ["other_processes", "fragmentation", "outside_pytorch", "memory_cap", "not_as_planned", "one_rung_down"]
    if reading.format == "host" or has(report, "host_killed", "host_refused"):
        return _host(reading, plan, draft)
    if has(report, "parts_exceed_total", "above_total", "allocated_above_reserved"):
        draft.verdict = "not_comparable"
        draft.sentence = both("The message's figures contradict each other.", "报错中的数字自相矛盾。")
        return draft
    others = sum((one["gib"] for one in reading.other_processes or ()), Q(0.0, unit(GIB)))
    used = _line("other_processes", both("other processes", "其他进程"), others, None) if others.magnitude else None
    draft.lines += [one for one in (used, *_outside(reading, plan), _balance(reading, others)) if one is not None]
    if plan is None or reading.allocated is None or reading.tried is None:
        draft.verdict = "not_comparable" if plan is None or reading.allocated is None else None
        draft.sentence = _without_plan(reading, report, others, plan)
        _explain(reading, report, draft)
        return draft
    memory = plan.memory
    capacity = _per_card(memory.capacity)
    if reading.total is not None and capacity is not None:
        part = float((reading.total / capacity).m_as("")) - 1
        if abs(part) > 2 * share("memory_tolerance"):
            draft.verdict = "not_comparable"
            draft.sentence = _other_card(reading, plan, capacity)
            _explain(reading, report, draft)
            return draft
    needed = (reading.allocated + reading.tried).to(GIB)
    predicted, high = _per_card(memory.allocated), _per_card(memory.high - (memory.total - memory.allocated))
    draft.lines.insert(0, _line("allocated", both("allocated and asked for", "已分配与本次申请"), needed, predicted, high))
    reserved = reading.reserved
    if reserved is None and reading.reserved_unallocated is not None:
        reserved = reading.allocated + reading.reserved_unallocated
    if reserved is not None:
        draft.lines.append(_line("reserved", both("reserved by PyTorch", "PyTorch 预留"), reserved, _per_card(memory.reserved)))
    elsewhere = _explain(reading, report, draft)
    term = matching_term(reading.tried, plan)
    guess_en = f" The {shown(reading.tried)} asked for is about the plan's {TERMS[term][0]}." if term else ""
    guess_zh = f"本次申请的 {shown(reading.tried)} 约等于方案中的{TERMS[term][1]}。" if term else ""
    draft.verdict = "marginal" if elsewhere and needed <= high else "fail"
    if needed > high:
        draft.shown.add("not_as_planned")
        draft.sentence = both(
            f"At least {shown(needed)} was needed where the plan predicts {shown(predicted)} (up to {shown(high)}): this is "
            f"not the run that was planned, or the plan is wrong about it.{guess_en}",
            f"至少需要 {shown(needed)}，方案预测 {shown(predicted)}（最高 {shown(high)}）："
            f"实际运行与方案不同，或方案估计有误。{guess_zh}",
        )
    elif elsewhere:
        draft.sentence = both(
            f"The job's own {shown(needed)} is within the plan's {shown(predicted)}; {elsewhere['en']}.{guess_en}",
            f"作业自身的 {shown(needed)} 没有超出方案的 {shown(predicted)}；{elsewhere['zh']}。{guess_zh}",
        )
    else:
        draft.shown.add("one_rung_down")
        rung = _next_rung(plan)
        draft.sentence = both(
            f"{shown(needed)} was needed so far, as predicted ({shown(predicted)}, up to {shown(high)}): the plan is tight on "
            f"this card.{guess_en}{rung['en']}",
            f"到此已需 {shown(needed)}，与预测一致（{shown(predicted)}，最高 {shown(high)}）："
            f"这张卡余量不足。{guess_zh}{rung['zh']}",
        )
    return draft


def _other_card(reading: Any, plan: Plan, capacity: Quantity) -> dict[str, str]:
    """What a message of another card says, and why the plan's figures cannot be held to it."""
    free = (f", {shown(reading.free)} was free", f"，空闲 {shown(reading.free)}") if reading.free is not None else ("", "")
    needed = (reading.allocated + reading.tried).to(GIB)
    planned = _per_card(plan.memory.allocated)
    card = f"{plan.cluster.gpu} ({shown(capacity)})"
    held, asked = shown(reading.allocated), shown(reading.tried)
    return both(
        f"The message is of a card with {shown(reading.total)}: {held} was allocated, {asked} more was asked for{free[0]}, so "
        f"at least {shown(needed)} was needed. The plan is for {card} and allocates {shown(planned)} there; layout and batch "
        "were chosen for that card. Choose the card of the message in the form to compare.",
        f"报错来自显存为 {shown(reading.total)} 的卡：已分配 {held}，又申请 {asked}{free[1]}，因此至少需要 {shown(needed)}。"
        f"方案用的是 {card}，预计分配 {shown(planned)}；布局和批大小都是按那张卡选的。要对照，请在表单里选报错的那张卡。",
    )


def _next_rung(plan: Plan) -> dict[str, str]:
    """The first change of the plan's ladder after which the job fits, as a sentence; empty where none does."""
    rung = next((one for one in plan.memory.escalation if one.verdict == "fits"), None)
    if rung is None:
        return both("", "")
    total = shown(_per_card(rung.total))
    return both(
        f" Next change: {rung.text['en'].rstrip('.')} ({total}).", f"下一步：{rung.text['zh'].rstrip('。')}（{total}）。"
    )


def matching_term(tried: Quantity, plan: Plan) -> str | None:
    """The planned term whose size the refused allocation has, within a tenth; None where none or too small to tell."""
    if tried < Q(0.5, unit(GIB)):
        return None
    best: tuple[float, str] | None = None
    for name in TERMS:
        size = _per_card(getattr(plan.memory, name))
        if size is None or not size.magnitude:
            continue
        off = abs(float((tried / size).m_as("")) - 1)
        if off <= share("term_match") and (best is None or off < best[0]):
            best = (off, name)
    return best[1] if best else None


def _per_card(value: Any) -> Quantity | None:
    return Q(float(value.m_as("GiB / GPU")), unit(GIB)) if value is not None else None


def _line(subject: str, label: dict, measured: Quantity, predicted: Quantity | None, high: Quantity | None = None) -> Line:
    against = "" if predicted is None else f", predicted {shown(predicted)}"
    against_zh = "" if predicted is None else f"，预测 {shown(predicted)}"
    verdict = "not_comparable"
    if predicted is not None and high is not None:
        verdict = "pass" if measured <= predicted else "marginal" if measured <= high else "fail"
    return Line(
        subject=subject,
        label=label,
        verdict=verdict,
        measured=measured.to(GIB),
        required=predicted,
        limit=high,
        margin=margin_of(measured, predicted),
        sentence=both(
            f"{label['en'][0].upper()}{label['en'][1:]}: {shown(measured.to(GIB))}{against}.",
            f"{label['zh']}：{shown(measured.to(GIB))}{against_zh}。",
        ),
    )


def _outside(reading: Any, plan: Plan | None) -> list[Line]:
    lines = []
    usual = _per_card(plan.memory.runtime) if plan is not None else constant("outside_usual")
    if reading.non_pytorch is not None:
        lines.append(
            _line("non_pytorch", both("this process outside PyTorch", "本进程 PyTorch 之外"), reading.non_pytorch, usual)
        )
    if reading.reserved_unallocated is not None:
        label = both("reserved but unallocated", "已预留未分配（碎片）")
        lines.append(_line("reserved_unallocated", label, reading.reserved_unallocated, None))
    return lines


def _balance(reading: Any, others: Quantity) -> Line | None:
    """Whether the message's parts add up to the card: what is missing is held by processes that it cannot see."""
    parts = (reading.allocated, reading.reserved_unallocated, reading.non_pytorch, reading.free)
    if reading.total is None or any(part is None for part in parts):
        return None
    known = sum(parts, others).to(GIB)
    missing = reading.total.to(GIB) - known
    label = both("all parts together, of the card", "各部分合计（对整卡）")
    return Line(
        subject="balance",
        label=label,
        verdict="not_comparable",
        measured=known,
        required=reading.total.to(GIB),
        sentence=both(
            f"Allocated, reserved, outside PyTorch, other processes and free are {shown(known)} of {shown(reading.total)}; "
            f"{shown(missing)} is held by others that the message does not name.",
            f"已分配、已预留、PyTorch 之外、其他进程与空闲合计 {shown(known)}，整卡 {shown(reading.total)}；"
            f"差额 {shown(missing)} 由报错未列出的进程占用。",
        )
        if missing > Q(0.5, unit(GIB))
        else both(
            f"Allocated, reserved, outside PyTorch, other processes and free add up to the card's {shown(reading.total)}.",
            f"已分配、已预留、PyTorch 之外、其他进程与空闲之和等于整卡 {shown(reading.total)}。",
        ),
    )


def _explain(reading: Any, report: Report, draft: Draft) -> dict[str, str] | None:
    """What took memory besides this job's tensors, as half a sentence; None where nothing did."""
    if has(report, "other_processes", "held_outside"):
        draft.shown.add("other_processes")
        return both("another process holds memory of this GPU: free it first", "其他进程占用了这张卡：先释放")
    if has(report, "fragmentation"):
        draft.shown.add("fragmentation")
        return both(
            "memory is reserved but fragmented: set expandable_segments", "显存已预留但碎片化：请设 expandable_segments"
        )
    if has(report, "outside_pytorch"):
        draft.shown.add("outside_pytorch")
        return both("more than usual is outside PyTorch", "PyTorch 之外占用偏多")
    if has(report, "capped"):
        draft.shown.add("memory_cap")
        return both("the process was capped below the card's memory", "进程可用显存被限制")
    return None


def _without_plan(reading: Any, report: Report, others: Quantity, plan: Plan | None) -> dict[str, str]:
    if reading.allocated is None:
        text = shown(reading.tried) if reading.tried is not None else "?"
        return both(
            f"The message gives too few figures ({text} asked for): paste all of it.",
            f"报错数字不全（申请 {text}）：请粘贴完整信息。",
        )
    if plan is None:
        tried = f" and {shown(reading.tried)} more was asked for" if reading.tried is not None else ""
        tried_zh = f"，又申请 {shown(reading.tried)}" if reading.tried is not None else ""
        beside = f"; other processes hold {shown(others)}" if others.magnitude else ""
        beside_zh = f"；其他进程占用 {shown(others)}" if others.magnitude else ""
        return both(
            f"{shown(reading.allocated)} was allocated{tried}{beside}. There is no plan to compare it with.",
            f"已分配 {shown(reading.allocated)}{tried_zh}{beside_zh}。没有方案可比。",
        )
    return both(
        f"{shown(reading.allocated)} was allocated; the size asked for is not in the message.",
        f"已分配 {shown(reading.allocated)}；报错中没有本次申请的大小。",
    )


def _host(reading: Any, plan: Plan | None, draft: Draft) -> Draft:
    draft.verdict, draft.causes, draft.shown = "fail", ["host_memory"], {"host_memory"}
    need = plan.memory.host_ram if plan is not None else None
    en = f" The plan counts on {shown(need.to('GiB / node'))} of RAM." if need is not None else ""
    zh = f"方案按主机内存 {shown(need.to('GiB / node'))} 计。" if need is not None else ""
    draft.sentence = both(f"The machine's RAM ran out, not the GPU's memory.{en}", f"耗尽的是主机内存，不是显存。{zh}")
    return draft
