"""The set-up sheet of a plan's network: RoCE v2 step by step, and its InfiniBand, EFA and TCP counterparts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.units import Record
from advisor.verify.expect import find_link, system_of
from advisor.verify.sheet_steps import COUNTERPARTS, EFA_STEPS, INFINIBAND_STEPS, QUEUE_PAIR, ROCE_STEPS, TCP_STEPS, Row

if TYPE_CHECKING:
    from advisor.plan import Plan

#: By the catalog's kind of link.
STEPS: dict[str, tuple[Row, ...]] = {
    "RoCEv2": ROCE_STEPS,
    "eRDMA": ROCE_STEPS[-3:],
    "InfiniBand": INFINIBAND_STEPS,
    "NVLink rack + InfiniBand NDR": INFINIBAND_STEPS,
    "EFA": EFA_STEPS,
    "Ethernet TCP": TCP_STEPS,
}


@dataclass(frozen=True, kw_only=True)
class SheetStep(Record):
    """One step: what and why, the command, what it should print, and what it looks like when wrong."""

    number: int
    title: dict
    why: dict
    command: str
    prints: dict
    wrong: dict


@dataclass(frozen=True, kw_only=True)
class QueuePairState(Record):
    """A state of a queue pair, or the thing itself, and what goes wrong there."""

    name: str
    text: dict


@dataclass(frozen=True, kw_only=True)
class FabricSheet(Record):
    """How to set a network up and see that it is right. counterparts: rows of (what, RoCE v2, InfiniBand, EFA)."""

    kind: str
    title: dict
    steps: tuple[SheetStep, ...]
    queue_pair: tuple[QueuePairState, ...]
    counterparts: tuple[tuple[dict, ...], ...]

    def markdown(self) -> str:
        """The sheet as Markdown, both languages."""
        lines = [f"# {self.title['en']}", "", f"**{self.title['zh']}**", ""]
        for step in self.steps:
            lines += [
                f"## {step.number}. {step.title['en']} / {step.title['zh']}",
                "",
                f"{step.why['en']}",
                "",
                f"{step.why['zh']}",
                "",
                "```bash",
                step.command,
                "```",
                "",
                f"- Right / 正确: {step.prints['en']} / {step.prints['zh']}",
                f"- Wrong / 异常: {step.wrong['en']} / {step.wrong['zh']}",
                "",
            ]
        if self.queue_pair:
            lines += ["## Queue pairs and their states / 队列对（QP）及其状态", ""]
            lines += [f"- **{one.name}**: {one.text['en']} {one.text['zh']}" for one in self.queue_pair]
            lines.append("")
        lines += ["## The same elsewhere / 对照", "", "| | RoCE v2 | InfiniBand | EFA |", "|---|---|---|---|"]
        lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in self.counterparts]
        return "\n".join([*lines, ""])


def _cell(text: dict) -> str:
    return text["en"] if text["en"] == text["zh"] else f"{text['en']}<br>{text['zh']}"


def fabric_sheet(plan: Plan) -> FabricSheet | None:
    """The sheet of a plan's network between nodes; None for a plan of one node, and for networks of a cloud's own make."""
    system = system_of(plan)
    link = find_link(system.scale_out) if int(plan.cluster.nodes) > 1 else None
    rows = STEPS.get(link.kind) if link is not None else None
    if link is None or rows is None:
        return None
    ports = system.nics_per_node or link.ports_per_node or 1
    return FabricSheet(
        kind=link.kind,
        title={
            "en": f"Setting up {ports} x {link.name} a node",
            "zh": f"网络配置：每节点 {ports} x {link.name}",
        },
        steps=tuple(_step(number, row) for number, row in enumerate(rows, 1)),
        queue_pair=tuple(QueuePairState(name=name, text={"en": en, "zh": zh}) for name, en, zh in QUEUE_PAIR)
        if link.kind not in ("EFA", "Ethernet TCP")
        else (),
        counterparts=tuple(tuple(_both(cell) for cell in row) for row in COUNTERPARTS),
    )


def _step(number: int, row: Row) -> SheetStep:
    title, why, command, prints, wrong = row
    return SheetStep(
        number=number, title=_both(title), why=_both(why), command=command, prints=_both(prints), wrong=_both(wrong)
    )


def _both(pair: tuple[str, str]) -> dict[str, str]:
    return {"en": pair[0], "zh": pair[1]}
