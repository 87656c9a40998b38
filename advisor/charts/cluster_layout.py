"""The cluster drawn: which GPU holds which part of the model, and the switches between the nodes."""

from __future__ import annotations

from typing import Any

import altair as alt

from advisor.charts import marks, theme
from advisor.charts.definition import ChartDefinition, Rows
from advisor.charts.words import money_range, number, t

#: GPUs drawn in one line, and lines drawn at most; a larger cluster shows its first and last lines.
COLUMNS, LINES = 8, 8
#: Light tones that dark words stand out on, by pipeline stage in turn; neighbours differ in grey too.
STAGES = ("#cfe0f5", "#8fb4e3", "#e3edf9", "#a9c6ea", "#d9f0e9", "#8fd0bd", "#eef7f4", "#b3e0d3")
DARK_INK = "#111820"


def several(plan: Any) -> bool:
    """Whether there is more than one GPU to draw."""
    return plan.cluster.gpus > 1


def ranks(layout: Any, gpu: int) -> dict[str, int]:
    """A GPU's place in each parallel dimension: tensor ranks are neighbours, then context, data, and pipeline outermost."""
    place = {}
    for name, field in (("T", "tensor"), ("C", "context"), ("D", "data"), ("P", "pipeline")):
        size = int(getattr(layout, f"{field}_parallel_size"))
        place[name] = gpu % size
        gpu //= size
    return place


def build_layout(lang: str) -> Any:
    tooltip = marks.tips(node=t(("node", "节点"), lang), gpu="GPU", ranks=t(("holds", "负责"), lang))
    x = alt.X(
        "column:O",
        axis=alt.Axis(title=t(("GPU in the node", "节点内 GPU 编号"), lang), labelAngle=0, ticks=False, domain=False),
        scale=alt.Scale(paddingInner=0.06, paddingOuter=0),
    )
    y = alt.Y(
        "line:O",
        axis=alt.Axis(title=None, labelExpr="split(datum.label, '|')[1]", labelPadding=4),
        scale=alt.Scale(paddingInner=0.12, paddingOuter=0.02),
    )
    cells = (
        marks.named("gpus")
        .mark_rect(cornerRadius=3)
        .encode(
            x=x,
            y=y,
            color=alt.Color("tone:O", scale=alt.Scale(domain=list(range(len(STAGES))), range=list(STAGES)), legend=None),
            tooltip=tooltip,
        )
    )
    upper = marks.named("gpus").mark_text(dy=-7, fontWeight=600, color=DARK_INK, fontSize=11)
    lower = marks.named("gpus").mark_text(dy=8, color=DARK_INK, fontSize=10)
    return marks.layer(
        cells,
        upper.encode(x=x, y=y, text="first:N"),
        lower.encode(x=x, y=y, text="second:N"),
        marks.named("note")
        .mark_text(align="left", baseline="bottom", dy=-6, limit={"expr": "width"})
        .encode(x=alt.value(0), y=alt.value(0), text="text:N"),
        height=alt.Step(38),
    )


def layout_rows(plan: Any, lang: str) -> Rows:
    if not several(plan):
        return {"gpus": [], "note": []}
    layout, total = plan.cluster.layout, int(plan.cluster.gpus)
    per_node = min(int(layout.gpus_per_node), total)
    lines: list[list[int]] = []
    for node in range(-(-total // per_node)):
        members = list(range(node * per_node, min((node + 1) * per_node, total)))
        lines += [members[start : start + COLUMNS] for start in range(0, len(members), COLUMNS)]
    shown = list(range(len(lines)))
    if len(lines) > LINES:
        shown = [*range(LINES // 2), *range(len(lines) - LINES // 2, len(lines))]
    sizes = {"P": layout.pipeline_parallel_size, "T": layout.tensor_parallel_size}
    sizes |= {"D": layout.data_parallel_size, "C": layout.context_parallel_size}
    gpus = []
    for line in shown:
        for gpu in lines[line]:
            gpus.append(_cell(layout, sizes, gpu, line, per_node, lang))
    return {"gpus": gpus, "note": [{"text": _note(sizes, layout, len(lines), lang)}]}


def _cell(layout: Any, sizes: dict[str, int], gpu: int, line: int, per_node: int, lang: str) -> dict[str, Any]:
    place = ranks(layout, gpu)
    used = [f"{name}{place[name]}" for name in ("P", "T", "C", "D") if sizes[name] > 1]
    first = used[0] if used else f"D{place['D']}"
    node = gpu // per_node
    names = {"P": ("pipeline stage", "流水线阶段"), "T": ("tensor rank", "张量 rank"), "C": ("context rank", "上下文 rank")}
    names["D"] = ("data-parallel copy", "数据并行副本")
    words = [f"{t(names[name], lang)} {place[name]}" for name in ("P", "T", "C", "D") if sizes[name] > 1]
    return {
        "line": f"{line:05d}|{t(('node', '节点'), lang)} {node}",
        "column": gpu % per_node % COLUMNS,
        "tone": (place["P"] if sizes["P"] > 1 else 0) % len(STAGES),
        "first": first,
        "second": " ".join(used[1:]),
        "node": str(node),
        "gpu": str(gpu),
        "ranks": ", ".join(words),
    }


def _note(sizes: dict[str, int], layout: Any, lines: int, lang: str) -> str:
    names = {"P": ("pipeline", "流水线"), "T": ("tensor", "张量"), "C": ("context", "上下文"), "D": ("data", "数据")}
    parts = [f"{name} {t(names[name], lang)} {size}" for name, size in sizes.items() if size > 1]
    if layout.zero_stage:
        parts.append(f"ZeRO-{int(layout.zero_stage)}")
    if lines > LINES:
        parts.append(t((f"{lines - LINES} lines not drawn", f"省略 {lines - LINES} 行"), lang))
    return " · ".join(parts)


def layout_sentence(plan: Any, lang: str) -> str:
    layout, cluster = plan.cluster.layout, plan.cluster
    if not several(plan):
        return t(("One card holds the whole model.", "单卡存放整个模型。"), lang)
    names = {
        "data": ("data", "数据"),
        "tensor": ("tensor", "张量"),
        "pipeline": ("pipeline", "流水线"),
        "context": ("context", "上下文"),
        "expert": ("expert", "专家"),
    }
    sizes = {name: int(getattr(layout, f"{name}_parallel_size")) for name in names}
    parts = [f"{t(names[name], lang)} {size}" for name, size in sizes.items() if size > 1]
    zero = f", ZeRO-{int(layout.zero_stage)}" if layout.zero_stage else ""
    if lang == "en":
        nodes = f"{cluster.nodes} node{'s' if cluster.nodes > 1 else ''}"
        return f"{cluster.gpus} GPUs in {nodes}, parallel by {', '.join(parts)}{zero}."
    return f"{cluster.nodes} 个节点共 {cluster.gpus} 张卡，并行方式：{'，'.join(parts)}{zero.replace(', ', '，')}。"


def has_network(plan: Any) -> bool:
    """Whether there are switches between nodes."""
    return plan.cluster.network is not None


#: Boxes drawn in a row of switches or nodes at most.
ACROSS = 8


def build_leaf_spine(lang: str) -> Any:
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, 1], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, 1], nice=False))
    links = marks.named("links").mark_rule(color=theme.colour("other"), strokeWidth=0.8, opacity=0.35)
    boxes = marks.named("boxes").mark_point(shape="square", filled=True, size=320, opacity=1)
    kinds = {"spine": theme.colour("line"), "leaf": theme.colour("communication"), "node": theme.colour("compute")}
    colour = alt.Color("kind:N", scale=alt.Scale(domain=list(kinds), range=list(kinds.values())), legend=None)
    tooltip = marks.tips(words=t(("part", "部件"), lang))
    words = marks.named("tiers").mark_text(align="left", baseline="middle", fontWeight=600, limit={"expr": "width"})
    return marks.layer(
        links.encode(x=x, y=y, x2="x2:Q", y2="y2:Q"),
        boxes.encode(x=x, y=y, color=colour, tooltip=tooltip),
        words.encode(x=alt.value(0), y=y, text="words:N"),
        height=260,
    )


def _spread(count: int) -> list[float]:
    shown = min(count, ACROSS)
    return [(index + 0.5) / shown for index in range(shown)]


def leaf_spine_rows(plan: Any, lang: str) -> Rows:
    net = plan.cluster.network
    if net is None:
        return {"links": [], "boxes": [], "tiers": []}
    tiers = []
    if net.cores:
        tiers.append(("spine", net.cores, t((f"{net.cores} core switches", f"{net.cores} 台核心交换机"), lang)))
    if net.spines:
        tiers.append(("spine", net.spines, t((f"{net.spines} spine switches", f"{net.spines} 台 spine 交换机"), lang)))
    leaf = t((f"{net.leaves} leaf switch{'es' if net.leaves > 1 else ''}", f"{net.leaves} 台 leaf 交换机"), lang)
    tiers.append(("leaf", net.leaves, f"{leaf} · {net.switch}"))
    speed = number(net.port_speed.m_as("Gbit / s"))
    ports = t(
        (
            f"{net.nodes} nodes of {net.ports_per_node} × {speed} Gb/s",
            f"{net.nodes} 个节点，各 {net.ports_per_node} × {speed} Gb/s",
        ),
        lang,
    )
    tiers.append(("node", net.nodes, ports))
    heights = [0.86 - 0.8 * index / (len(tiers) - 1) for index in range(len(tiers))] if len(tiers) > 1 else [0.5]
    boxes, links, words = [], [], []
    for level, (kind, count, text) in enumerate(tiers):
        shown = text if count <= ACROSS else text + t((f" ({ACROSS} drawn)", f"（画出 {ACROSS} 个）"), lang)
        words.append({"y": heights[level] + 0.1, "words": shown})
        for place in _spread(count):
            boxes.append({"x": place, "y": heights[level], "kind": kind, "words": text})
            if level + 1 < len(tiers):
                links += [
                    {"x": place, "y": heights[level], "x2": other, "y2": heights[level + 1]}
                    for other in _spread(tiers[level + 1][1])
                ]
    return {"links": links, "boxes": boxes, "tiers": words}


def leaf_spine_sentence(plan: Any, lang: str) -> str:
    net = plan.cluster.network
    if net is None:
        return t(("One node: no network between nodes is needed.", "单节点，不需要机间网络。"), lang)
    price = money_range(net.price_low.m_as("USD"), net.price_high.m_as("USD"), "USD", lang)
    power = number(net.power.m_as("kW"), 2)
    switches = f"{net.switches} switch{'es' if net.switches > 1 else ''}"
    tiers = f"{net.tiers} tier{'s' if net.tiers > 1 else ''}"
    cables = net.node_cables + net.switch_cables
    return t(
        (
            f"{net.nodes} nodes need {switches} of {net.radix} ports ({net.switch}) "
            f"in {tiers}, {cables} cables and {net.optics} optics: {price} to build, {power} kW.",
            f"{net.nodes} 个节点需要 {net.switches} 台 {net.radix} 口交换机（{net.switch}），{net.tiers} 层，"
            f"线缆 {cables} 根，光模块 {net.optics} 个：造价 {price}，功耗 {power} kW。",
        ),
        lang,
    )


LAYOUT = ChartDefinition(
    name="layout",
    stage="cluster",
    title={"en": "Which GPU holds what", "zh": "哪张卡负责什么"},
    subtitle={
        "en": "One line a node; colour: pipeline stage. Tensor ranks sit side by side",
        "zh": "每行一个节点，颜色表示流水线阶段；张量并行的卡彼此相邻",
    },
    build=build_layout,
    rows=layout_rows,
    sentence=layout_sentence,
    applies=several,
)
LEAF_SPINE = ChartDefinition(
    name="leaf_spine",
    stage="cluster",
    title={"en": "The network between the nodes", "zh": "机间网络"},
    subtitle={"en": "Rail-optimised leaf and spine, 1:1", "zh": "轨道优化的 leaf-spine，收敛比 1:1"},
    build=build_leaf_spine,
    rows=leaf_spine_rows,
    sentence=leaf_spine_sentence,
    applies=has_network,
)
