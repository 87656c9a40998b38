"""What the judges share: the evidence around a reading, the verdict of a line, and the finding drafted from its lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from advisor.units import Q, Quantity, unit
from advisor.verify.causes import SHOWN_BY, in_order, known, next_command
from advisor.verify.expect import find_gpu, share, shown
from advisor.verify.records import Expectation, Finding, Line, System, worst

if TYPE_CHECKING:
    from advisor.evidence import Report
    from advisor.plan import Plan

NOTHING = {"en": "", "zh": ""}


@dataclass
class Context:
    """What is known when a reading is judged.

    system: the planned machines, or those the caller names. codes: problem codes of all readings. good: what other readings
    prove to be right ("ports", "nics", "topology", "rdma", "gpudirect", "gid", "mtu").
    """

    plan: Plan | None
    system: System
    codes: set[str] = field(default_factory=set)
    good: set[str] = field(default_factory=set)
    roce: bool = False

    def ruled_out(self) -> set[str]:
        """Causes that what is proven right excludes."""
        excluded: set[str] = set()
        for name in self.good:
            excluded |= EXCLUDES[name]
        return excluded


#: What a good reading of one thing excludes as the cause of a bad reading of another.
EXCLUDES: dict[str, set[str]] = {
    "ports": {"port_down"},
    "nics": {"port_down", "pcie_narrow", "one_port_slow", "wrong_socket", "roce_gid", "roce_mtu"},
    "topology": {"far_nic", "gdr_level", "gpu_missing"},
    "rdma": {"sockets"},
    "gpudirect": {"gdr_off", "gdr_level"},
    "gid": {"roce_gid"},
    "mtu": {"roce_mtu"},
}


@dataclass
class Draft:
    """A finding in the making. causes: codes in question where something is wrong; shown: those the reading itself shows."""

    title: dict
    lines: list[Line] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    sentence: dict | None = None
    verdict: str | None = None


def both(en: str, zh: str) -> dict[str, str]:
    """One sentence in both languages."""
    return {"en": en, "zh": zh}


def verdict_of(measured: Quantity, expectation: Expectation) -> str:
    """pass, marginal or fail of a quantity where more is better."""
    slack = 1 - share("tolerance")
    verdicts = []
    if expectation.required is not None:
        limit = expectation.limit if expectation.limit is not None else expectation.required
        verdicts.append(_between(measured, expectation.required * slack, limit * slack))
    if expectation.alarm is not None:
        verdicts.append(_between(measured, expectation.alarm * slack, expectation.alarm * share("fail_share")))
    return worst(verdicts)


def _between(measured: Quantity, good: Quantity, bad: Quantity) -> str:
    return "pass" if measured >= good else "marginal" if measured >= bad else "fail"


def margin_of(measured: Any, needed: Any) -> Quantity | None:
    """Measured over needed, less one."""
    if needed is None or measured is None or not needed.magnitude:
        return None
    return Q(float((measured / needed).m_as("")) - 1, unit(""))


def bandwidth_line(measured: Quantity, expectation: Expectation) -> Line:
    """A measured bandwidth against what is expected of it."""
    verdict = verdict_of(measured, expectation)
    needed = expectation.passes_at
    return Line(
        subject=expectation.subject,
        label=expectation.label,
        verdict=verdict,
        measured=measured,
        required=expectation.required,
        limit=expectation.limit,
        healthy=expectation.healthy,
        alarm=expectation.alarm,
        margin=margin_of(measured, needed),
        sentence=_bandwidth_sentence(measured, expectation, verdict),
        basis=expectation.basis,
        source=expectation.source,
    )


def _bandwidth_sentence(measured: Quantity, expectation: Expectation, verdict: str) -> dict[str, str]:
    en, zh = [], []
    if expectation.required is not None:
        word = "meets" if measured >= expectation.required * (1 - share("tolerance")) else "misses"
        en.append(f"{word} the plan's {shown(expectation.required)}")
        zh.append(f"{'满足' if word == 'meets' else '未达到'}方案要求的 {shown(expectation.required)}")
    if expectation.healthy is not None:
        part = float((measured / expectation.healthy).m_as(""))
        en.append(f"{part:.0%} of the {shown(expectation.healthy)} usual for such a system")
        zh.append(f"为同类系统常见值 {shown(expectation.healthy)} 的 {part:.0%}")
    if verdict == "not_comparable":
        en, zh = ["nothing is known to compare it with"], ["没有可比的参考值"]
    subject = expectation.label
    return both(
        f"{subject['en'][0].upper()}{subject['en'][1:]}: {shown(measured)}, {', '.join(en)}.",
        f"{subject['zh']}：{shown(measured)}，{'，'.join(zh)}。",
    )


def word_line(subject: str, label: dict, verdict: str, measured: Any, required: Any, sentence: dict, source: str = "") -> Line:
    """Something counted or named, against what it should be."""
    return Line(
        subject=subject, label=label, verdict=verdict, measured=measured, required=required, sentence=sentence, source=source
    )


def finish(draft: Draft, report: Report, name: str, context: Context) -> Finding:
    """The finding: the deciding line's numbers, the causes in order, the next command."""
    lines = tuple(sorted(draft.lines, key=lambda one: ("fail", "marginal", "pass", "not_comparable").index(one.verdict)))
    verdict = draft.verdict or worst([line.verdict for line in lines])
    deciding = next((line for line in lines if line.verdict == verdict), lines[0] if lines else None)
    shown_here = draft.shown | {
        SHOWN_BY[one.code] for one in report.problems if one.severity != "info" and one.code in SHOWN_BY
    }
    if not context.roce:
        shown_here = {code for code in shown_here if not code.startswith("roce_")}
    causes = ()
    if verdict in ("fail", "marginal") or (verdict == "not_comparable" and shown_here):
        elsewhere = {SHOWN_BY[code] for code in context.codes if code in SHOWN_BY} & set(draft.causes)
        causes = in_order(draft.causes, {*shown_here, *elsewhere}, context.ruled_out() - shown_here)
    sentence = draft.sentence or (deciding.sentence if deciding else both("Nothing in it can be judged.", "没有可判断的内容。"))
    return Finding(
        name=name,
        kind=report.kind,
        title=draft.title,
        verdict=verdict,
        sentence=sentence,
        measured=deciding.measured if deciding else None,
        required=deciding.required if deciding else None,
        healthy=deciding.healthy if deciding else None,
        margin=deciding.margin if deciding else None,
        lines=lines,
        causes=causes,
        next_command=next_command(causes),
        problems=tuple(report.problems),
        truncated=report.truncated,
    )


def codes_of(reports: Iterable[Report]) -> set[str]:
    """Codes of all problems that are more than information."""
    return {one.code for report in reports for one in report.problems if one.severity != "info"}


def has(report: Report, *codes: str) -> bool:
    """Whether the reader found one of these problems."""
    return any(one.code in codes for one in report.problems)


def same_card(name: str, planned: str) -> bool | None:
    """Whether a card's name as a tool prints it is the planned one; None where either is unknown."""
    card, wanted = find_gpu(name), find_gpu(planned)
    return card.name == wanted.name if card and wanted else None


def first(values: Sequence[Any] | None) -> Any:
    """The first of a sequence, or None."""
    return values[0] if values else None


__all__ = [
    "Context",
    "Draft",
    "bandwidth_line",
    "both",
    "codes_of",
    "finish",
    "has",
    "known",
    "margin_of",
    "same_card",
    "word_line",
]
