"""What a comparison of evidence with a plan says: a verdict per reading, its numbers, the causes and the next step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from advisor.units import Quantity, Record, Signed

Verdict = Literal["pass", "marginal", "fail", "not_comparable"]

#: From the worst to the best; `not_comparable` says nothing and never decides.
ORDER: dict[str, int] = {"fail": 0, "marginal": 1, "pass": 2, "not_comparable": 3}

#: What is looked at first comes first.
LAYERS = ("measurement", "physical", "link", "roce", "gpudirect", "nccl", "framework", "data", "memory", "checkpoint", "start")

LAYER_TEXT: dict[str, dict[str, str]] = {
    "measurement": {"en": "the measurement itself", "zh": "测量本身"},
    "physical": {"en": "physical layer", "zh": "物理层"},
    "link": {"en": "link and topology", "zh": "链路与拓扑"},
    "roce": {"en": "RoCE settings", "zh": "RoCE 配置"},
    "gpudirect": {"en": "GPUDirect RDMA", "zh": "GPUDirect RDMA"},
    "nccl": {"en": "NCCL environment", "zh": "NCCL 环境"},
    "framework": {"en": "training framework", "zh": "训练框架"},
    "data": {"en": "data loading", "zh": "数据加载"},
    "memory": {"en": "GPU memory", "zh": "显存"},
    "checkpoint": {"en": "checkpoints", "zh": "检查点"},
    "start": {"en": "start-up", "zh": "启动"},
}

VERDICT_TEXT: dict[str, dict[str, str]] = {
    "pass": {"en": "pass", "zh": "通过"},
    "marginal": {"en": "marginal", "zh": "临界"},
    "fail": {"en": "fail", "zh": "不通过"},
    "not_comparable": {"en": "not comparable", "zh": "不可比"},
}


def worst(verdicts: tuple[str, ...] | list[str]) -> str:
    """The verdict that decides: the worst that says something, else `not_comparable`."""
    return min(verdicts, key=ORDER.__getitem__, default="not_comparable")


@dataclass(frozen=True, kw_only=True)
class Cause(Record):
    """A possible cause, what to run about it, and what that prints when all is well.

    standing: "shown" by the evidence at hand, "possible", or "ruled_out" by it.
    """

    code: str
    layer: str
    standing: Literal["shown", "possible", "ruled_out"] = "possible"
    text: dict
    command: str
    expect: dict


@dataclass(frozen=True, kw_only=True)
class Line(Record):
    """One thing judged of a reading.

    measured, required, limit, healthy, alarm: quantities, numbers or words; None where there is none. required: at which the
    plan holds (10 % of the step spent waiting); limit: where one must act (20 %). healthy: what such a system usually does;
    alarm: below it the system is looked at. margin: measured over what passes, less one. basis: where these come from.
    """

    subject: str
    label: dict
    verdict: Verdict
    measured: Any = None
    required: Any = None
    limit: Any = None
    healthy: Any = None
    alarm: Any = None
    margin: Signed | None = None
    sentence: dict
    basis: dict | None = None
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Finding(Record):
    """What one reading says about the plan or the system. The numbers are those of its deciding line.

    name: the file or label given. causes: those shown by evidence first, then from the physical layer up, ruled out ones last.
    next_command: what to run now; empty when nothing is wrong.
    """

    name: str
    kind: str
    title: dict
    verdict: Verdict
    sentence: dict
    measured: Any = None
    required: Any = None
    healthy: Any = None
    margin: Signed | None = None
    lines: tuple[Line, ...] = ()
    causes: tuple[Cause, ...] = ()
    next_command: str = ""
    problems: tuple = ()
    truncated: bool = False

    @property
    def text(self) -> dict[str, str]:
        """The finding as one remark: verdict, sentence, and what to run next."""
        result = {}
        for language, then in (("en", "Next"), ("zh", "下一步")):
            colon, stop = (": ", " ") if language == "en" else ("：", "")
            words = f"{VERDICT_TEXT[self.verdict][language]}{colon}{self.sentence[language]}"
            result[language] = f"{words}{stop}{then}{colon}{self.next_command}" if self.next_command else words
        return result


@dataclass(frozen=True, kw_only=True)
class Answer(Record):
    """One of the three questions. answer: yes, partly, no, not_tested or not_needed; evidence: sentences by file."""

    question: Literal["network", "storage", "healing"]
    text: dict
    answer: Literal["yes", "partly", "no", "not_tested", "not_needed"]
    sentence: dict
    evidence: tuple[dict, ...] = ()
    next_command: str = ""


@dataclass(frozen=True, kw_only=True)
class Verification(Record):
    """All findings of one set of evidence, and the three questions answered from them."""

    verdict: Verdict
    sentence: dict
    findings: tuple[Finding, ...]
    questions: tuple[Answer, ...]


@dataclass(frozen=True, kw_only=True)
class System(Record):
    """The machines that evidence is of, as far as known: catalog names, and how many of what. Empty or None is unknown."""

    gpu: str = ""
    gpus_per_node: int = 8
    nodes: int | None = None
    scale_out: str = ""
    nics_per_node: int | None = None


@dataclass(frozen=True, kw_only=True)
class Expectation(Record):
    """What a measurement must reach: by the plan (required, limit) and by what such systems do (healthy, alarm)."""

    subject: str
    label: dict
    required: Any = None
    limit: Any = None
    healthy: Any = None
    alarm: Any = None
    basis: dict
    source: str = ""

    @property
    def passes_at(self) -> Quantity | None:
        """At or above it the measurement passes: the larger of what the plan needs and the alarm line."""
        known = [value for value in (self.required, self.alarm) if value is not None]
        return max(known) if known else None


__all__ = [
    "LAYERS",
    "LAYER_TEXT",
    "ORDER",
    "VERDICT_TEXT",
    "Answer",
    "Cause",
    "Expectation",
    "Finding",
    "Line",
    "System",
    "Verdict",
    "Verification",
    "worst",
]
