"""The printable check-list: what is tested, with which command, what it must reach, and room for what was measured."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, NamedTuple

from advisor.verify.expect import constant, share, shown
from advisor.verify.records import Expectation

if TYPE_CHECKING:
    from advisor.plan import Plan


class Row(NamedTuple):
    """One line of the list; need in both languages."""

    en: str
    zh: str
    command: str
    need_en: str
    need_zh: str


def _bound(expectation: Expectation | None) -> tuple[str, str]:
    """What must be reached, with the plan's own need and what is usual."""
    if expectation is None or expectation.passes_at is None:
        return "", ""
    en, zh = f"at least {shown(expectation.passes_at)}", f"不低于 {shown(expectation.passes_at)}"
    if expectation.required is not None:
        en, zh = f"{en} (plan: {shown(expectation.required)})", f"{zh}（方案：{shown(expectation.required)}）"
    if expectation.healthy is not None:
        usual = ("planned on", "方案采用") if expectation.subject in ("data_read", "checkpoint_write") else ("usual", "常见")
        en, zh = f"{en}; {usual[0]} {shown(expectation.healthy)}", f"{zh}；{usual[1]} {shown(expectation.healthy)}"
    return en, zh


def rows(plan: Plan, wanted: dict[str, Expectation], values: dict[str, str]) -> tuple[Row, ...]:
    """The list of a plan."""
    nodes, per_node = int(plan.cluster.nodes), int(plan.cluster.layout.gpus_per_node)
    hot, cool = share("temperature_fail"), share("temperature_good")
    minutes = float(constant("stability_time").m_as("min"))
    roce = "RoCE" in plan.cluster.interconnect.fabric
    listed = [
        Row(
            "The machine",
            "机器",
            "./acceptance.sh machine",
            f"{per_node} x {plan.cluster.gpu}, no ECC errors, MIG off, governor performance; each GPU with a NIC at PIX or PXB",
            f"{per_node} 张 {plan.cluster.gpu}，无 ECC 错误，MIG 关闭，governor 为 performance；每张 GPU 有 PIX/PXB 网卡",
        )
    ]
    if nodes > 1:
        listed.append(
            Row(
                "Network ports",
                "网卡端口",
                "./acceptance.sh ports",
                "every port Active at its full rate" + ("; a v2 row with an IPv4 address in show_gids" if roce else ""),
                "每个端口 Active 且为标称速率" + ("；show_gids 中有 v2 + IPv4 的一行" if roce else ""),
            )
        )
    if "scale_up" in wanted:
        listed.append(Row("NCCL in one node", "单机 NCCL", "./acceptance.sh nccl_one_node", *_bound(wanted["scale_up"])))
    if nodes > 1:
        listed.append(
            Row(
                "NCCL on two nodes",
                "双机 NCCL",
                "HOSTS=node1,node2 ./acceptance.sh nccl_two_nodes",
                *_bound(wanted.get("scale_out")),
            )
        )
        listed.append(
            Row("Each port (perftest)", "逐端口 perftest", "HOSTS=node1,node2 ./acceptance.sh nics", *_bound(wanted.get("nic")))
        )
    listed += [
        Row("Reading data (fio)", "读取数据（fio）", "DATA_DIR=... ./acceptance.sh data", *_bound(wanted.get("data_read"))),
        Row(
            "Writing checkpoints (fio)",
            "写检查点（fio）",
            "CHECKPOINT_DIR=... ./acceptance.sh checkpoint",
            *_bound(wanted.get("checkpoint_write")),
        ),
        Row(
            "Rank check (one all-reduce)",
            "Rank 检查（一次 all-reduce）",
            "./acceptance.sh ranks",
            f"{values['GPUS']} ranks, the sum right, no device twice",
            f"{values['GPUS']} 个 rank，求和正确，无重复设备",
        ),
        Row(
            f"Stability, {minutes:.0f} min",
            f"稳定性 {minutes:.0f} 分钟",
            "./acceptance.sh stability",
            f"no Xid; at most {cool:.0f} °C (replace above {hot:.0f} °C); drift, spread up to {share('stability_drift'):.0%}",
            f"无 Xid；不超过 {cool:.0f} °C（高于 {hot:.0f} °C 须处理）；降速与离散不超过 {share('stability_drift'):.0%}",
        ),
        Row(
            "Kill and resume",
            "杀进程后续训",
            "./acceptance.sh resume",
            "goes on from the last checkpoint with the same loss",
            "从最近检查点恢复且 loss 一致",
        ),
    ]
    planned = shown(plan.storage.restart_time.to("min"))
    listed.append(
        Row(
            "Fault of a node: switch it off while a job runs",
            "节点故障：作业运行中关掉一个节点",
            "./acceptance.sh record_node_fault SECONDS platform",
            f"training goes on by itself within {planned}",
            f"{planned} 内自动恢复训练",
        )
    )
    return tuple(listed)


def _title(plan: Plan) -> tuple[str, str]:
    where = f"{int(plan.cluster.gpus)} x {plan.cluster.gpu}, {plan.cluster.interconnect.fabric}"
    return f"Acceptance: {where}", f"验收清单：{where}"


NOTES = (
    (
        "Compare bus bandwidth (busbw) and the largest sizes, never algbw or the average. On two nodes the Tree algorithm can "
        "print more than the ports carry: the ring run is the wire's speed.",
        "只比较最大尺寸的总线带宽（busbw），不要用 algbw 或平均值。两节点时 Tree 会虚高，以 Ring 结果为真实线速。",
    ),
    (
        "Storage: start the test on all nodes at once; reads that the page cache answered do not count (direct=1 is set).",
        "存储测试请在所有节点同时开始；命中页缓存的读取不算数（已设 direct=1）。",
    ),
    ("Afterwards: advisor verify scenario.json results/", "完成后运行：advisor verify scenario.json results/"),
)


def checklist_markdown(plan: Plan, wanted: dict[str, Expectation], values: dict[str, str]) -> str:
    """The list as Markdown, both languages side by side."""
    en, zh = _title(plan)
    lines = [f"# {_cell(en)}", "", f"**{_cell(zh)}**", ""]
    lines += ["| # | Test / 测试 | Command / 命令 | Must reach / 须达到 | Measured / 实测 | OK |", "|---|---|---|---|---|---|"]
    for number, row in enumerate(rows(plan, wanted, values), 1):
        need = f"{row.need_en}<br>{row.need_zh}" if row.need_en else "–"
        lines.append(f"| {number} | {_cell(row.en)}<br>{_cell(row.zh)} | `{row.command}` | {_cell(need)} | | ☐ |")
    lines.append("")
    for en, zh in NOTES:
        lines += [f"- {en}", f"- {zh}"]
    lines += ["", "Date / 日期: ____________   Signed / 签字: ____________", ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


STYLE = """
body { font: 11pt/1.4 "Helvetica Neue", "Noto Sans CJK SC", "PingFang SC", sans-serif; margin: 2em; color: #111 }
table { border-collapse: collapse; width: 100% } th, td { border: 1px solid #888; padding: .4em .5em; vertical-align: top }
th { text-align: left; background: #eee } code { font-size: 9pt; word-break: break-word } td.room { min-width: 7em }
@media print { body { margin: 0 } tr { break-inside: avoid } @page { size: A4 landscape; margin: 12mm } }
"""


def checklist_html(plan: Plan, wanted: dict[str, Expectation], values: dict[str, str]) -> str:
    """The list as one HTML page that prints on a landscape sheet; loads nothing."""
    en, zh = (html.escape(part) for part in _title(plan))
    body = []
    for number, row in enumerate(rows(plan, wanted, values), 1):
        cells = (html.escape(part) for part in (row.en, row.zh, row.command, row.need_en or "–", row.need_zh))
        name_en, name_zh, command, need_en, need_zh = cells
        body.append(
            f"<tr><td>{number}</td><td>{name_en}<br>{name_zh}</td><td><code>{command}</code></td>"
            f'<td>{need_en}<br>{need_zh}</td><td class="room"></td><td>☐</td></tr>'
        )
    notes = "".join(f"<li>{html.escape(one)}<br>{html.escape(two)}</li>" for one, two in NOTES)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{en}</title><style>{STYLE}</style></head>\n'
        f"<body><h1>{en}</h1><h2>{zh}</h2>\n<table><thead><tr><th>#</th><th>Test / 测试</th><th>Command / 命令</th>"
        f"<th>Must reach / 须达到</th><th>Measured / 实测</th><th>OK</th></tr></thead><tbody>\n"
        + "\n".join(body)
        + f"\n</tbody></table>\n<ul>{notes}</ul>\n"
        "<p>Date / 日期: ____________ &nbsp; Signed / 签字: ____________</p></body></html>\n"
    )
