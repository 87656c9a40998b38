"""Settings files (config.json, DeepSpeed, Accelerate, training YAMLs) against the plan: is this the run that was planned?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.verify.draft import Context, Draft, both, word_line

if TYPE_CHECKING:
    from advisor.evidence import Report

TITLE = {"en": "Settings file", "zh": "配置文件"}
#: Scenario keys that decide memory, speed and traffic. Sizes of data, money and names are not held against a file.
COMPARED = (
    "method",
    "precision",
    "optimizer",
    "sequence_length",
    "micro_batch_size",
    "gradient_accumulation_steps",
    "global_batch_size",
    "activation_recomputation",
    "offload",
    "gpus",
    "parallelism",
    "lora",
    "quantization",
)


def judge_settings(report: Report, context: Context) -> Draft:
    """Every key that the file gives and the plan has, compared."""
    from advisor.evidence import EvidenceError
    from advisor.evidence.importing import to_scenario

    draft = Draft(title=TITLE, causes=["not_as_planned"])
    try:
        given = to_scenario(report).scenario if context.plan is not None else {}
    except EvidenceError:
        given = {}
    planned = {key: one.get("value") for key, one in (context.plan.scenario if context.plan is not None else {}).items()}
    for key in COMPARED:
        for name, value, wanted in _pairs(key, given.get(key), planned.get(key)):
            same = value == wanted
            draft.lines.append(
                word_line(
                    name,
                    {"en": name, "zh": name},
                    "pass" if same else "marginal",
                    value,
                    wanted,
                    both(
                        f"{name} is {value}, as planned." if same else f"{name} is {value} here and {wanted} in the plan.",
                        f"{name} 为 {value}，与方案一致。" if same else f"{name} 在文件中为 {value}，方案中为 {wanted}。",
                    ),
                )
            )
    different = [line for line in draft.lines if line.verdict == "marginal"]
    if not draft.lines:
        draft.verdict = "not_comparable"
        draft.sentence = both(
            "A settings file and no measurement: take it as a scenario instead.", "这是配置文件而不是测量结果：请作为场景导入。"
        )
    elif different:
        draft.shown = {"not_as_planned"}
        names = ", ".join(line.subject for line in different)
        draft.sentence = both(
            f"This is not the run that was planned: {names} differ; plan again with the file's values.",
            f"这不是方案中的运行：{names} 不同；请用文件中的值重新制定方案。",
        )
    return draft


def _pairs(key: str, given: Any, planned: Any) -> list[tuple[str, Any, Any]]:
    """(name, the file's value, the plan's) where both say something plain."""
    if isinstance(given, dict) and isinstance(planned, dict):
        return [
            (f"{key}.{name}", value, planned[name])
            for name, value in given.items()
            if name in planned and isinstance(value, (str, int, float, bool))
        ]
    if given in (None, "auto") or planned is None or not isinstance(given, (str, int, float, bool)):
        return []
    return [(key, given, planned)]
