"""Results of the acceptance kit's own tests (rank check, stability, kill-and-resume, node fault), and a folder of results.

A result is one JSON object with "advisor_kit": the name of the test; everything else in the folder is other tools' output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.evidence.report import EvidenceError, Problem, Reading, Report
from advisor.units import Q, unit
from advisor.verify.draft import Context, Draft, both, word_line
from advisor.verify.expect import constant, share, shown

if TYPE_CHECKING:
    from advisor.plan import Plan

TESTS = ("rank_check", "stability", "resume", "node_fault")
#: A result of ours is a few hundred bytes.
LARGEST = 100_000
#: Files that the kit itself consists of, and notes: not evidence.
NOT_EVIDENCE = {".sh", ".py", ".md", ".html"}


@dataclass(frozen=True, kw_only=True)
class KitReading(Reading):
    """One result of the kit. test: which; values: what it measured, plain numbers in seconds, steps, degrees Celsius."""

    test: str
    values: dict = field(default_factory=dict)


def read_kit(text: str) -> Report | None:
    """The kit result in a text, or None if it is none. Raises EvidenceError with one sentence for a broken one."""
    if len(text) > LARGEST or '"advisor_kit"' not in text:
        return None
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise EvidenceError("This result of the acceptance kit is cut: run its test again.") from None
    if not isinstance(data, dict) or data.get("advisor_kit") not in TESTS:
        raise EvidenceError(f"The acceptance kit has no test of that name; it has {', '.join(TESTS)}.")
    values = {str(key): value for key, value in data.items() if key != "advisor_kit"}
    problems = []
    if values.get("error"):
        text_en = f"The test ended with: {str(values['error'])[:200]}."
        problems.append(
            Problem(code="test_error", severity="error", text=both(text_en, f"测试报错：{str(values['error'])[:200]}。"))
        )
    return Report(kind="kit", reading=KitReading(test=data["advisor_kit"], values=values), problems=tuple(problems))


def read_results(paths: Iterable[str | Path]) -> tuple[tuple[tuple[str, Report], ...], tuple[dict[str, str], ...]]:
    """(name, report) of every file in those files and folders, and in words the files that could not be read.

    Files of a folder are read in the order of their names; scripts and notes of the kit are left out.
    """
    from advisor.evidence import read

    found: list[tuple[str, Report]] = []
    unread: list[dict[str, str]] = []
    for path in _files(paths):
        try:
            own = read_kit(path.read_text(encoding="utf-8")) if path.stat().st_size <= LARGEST else None
            found.append((path.name, own or read(path)))
        except UnicodeDecodeError:
            found_one = _read_plain(path, unread)
            found += [found_one] if found_one else []
        except (EvidenceError, OSError) as error:
            unread.append(_unread(path, error))
    return tuple(found), tuple(unread)


def _files(paths: Iterable[str | Path]) -> list[Path]:
    files: list[Path] = []
    for one in map(Path, paths):
        if one.is_dir():
            inside = (path for path in sorted(one.rglob("*")) if path.is_file() and path.suffix not in NOT_EVIDENCE)
            files += [
                path for path in inside if path.name not in ("scenario.json", "thresholds.json") and not _hidden(path, one)
            ]
        else:
            files.append(one)
    return files


def _hidden(path: Path, top: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(top).parts)


def _read_plain(path: Path, unread: list[dict[str, str]]) -> tuple[str, Report] | None:
    from advisor.evidence import read

    try:
        return path.name, read(path)
    except (EvidenceError, OSError) as error:
        unread.append(_unread(path, error))
        return None


def _unread(path: Path, error: Exception) -> dict[str, str]:
    reason = (getattr(error, "strerror", None) or str(error)).rstrip(".")
    return {"name": path.name, "en": f"{path.name}: {reason}.", "zh": f"{path.name}：无法读取（{reason}）。"}


def judge_kit(report: Report, context: Context) -> Draft:
    """One result of the kit against the plan."""
    judges = {"rank_check": _ranks, "stability": _stability, "resume": _resume, "node_fault": _node_fault}
    draft = judges[report.reading.test](report.reading.values, context.plan)
    if report.problems:
        draft.verdict, draft.sentence = "fail", report.problems[0].text
    return draft


def _number(values: dict, name: str) -> float | None:
    value = values.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value else None


def _ranks(values: dict, plan: Plan | None) -> Draft:
    draft = Draft(title=both("Rank check (one all-reduce)", "Rank 检查（一次 all-reduce）"))
    draft.causes = ["node_absent", "launched_alone", "gpu_missing"]
    ranks, total, due = (_number(values, name) for name in ("ranks", "sum", "expected_sum"))
    shared = _number(values, "shared_devices") or 0
    wanted = _number(values, "expected_ranks") or (float(plan.cluster.gpus) if plan is not None else ranks)
    good = ranks is not None and ranks == wanted and total == due and not shared
    draft.lines.append(
        word_line(
            "ranks",
            both("ranks that took part", "参与的 rank 数"),
            "pass" if good else "fail",
            ranks,
            wanted,
            both(
                f"{ranks or 0:.0f} of {wanted or 0:.0f} ranks, sum {'right' if total == due else 'wrong'}, "
                f"{shared:.0f} device(s) used twice.",
                f"{ranks or 0:.0f}/{wanted or 0:.0f} 个 rank，求和{'正确' if total == due else '错误'}，"
                f"{shared:.0f} 张卡被重复使用。",
            ),
        )
    )
    return draft


def _stability(values: dict, plan: Plan | None) -> Draft:
    draft = Draft(title=both("Stability under load", "负载稳定性"), causes=["gpu_fault", "throttled"])
    seconds, faults, hottest, drift, spread = (
        _number(values, name) for name in ("seconds", "xid", "hottest", "drift", "spread")
    )
    long_enough = seconds is not None and seconds >= 0.8 * float(constant("stability_time").m_as("s"))
    draft.lines.append(
        word_line(
            "duration",
            both("length of the run", "运行时长"),
            "pass" if long_enough else "marginal",
            Q(seconds or 0.0, unit("s")),
            constant("stability_time"),
            both(f"It ran for {(seconds or 0) / 60:.1f} min.", f"运行了 {(seconds or 0) / 60:.1f} 分钟。"),
        )
    )
    if faults is not None:
        draft.shown |= {"gpu_fault"} if faults else set()
        draft.lines.append(
            word_line(
                "xid",
                both("GPU faults (Xid)", "GPU 故障（Xid）"),
                "fail" if faults else "pass",
                faults,
                0,
                both(f"{faults:.0f} Xid in the kernel's log.", f"内核日志中 {faults:.0f} 条 Xid。"),
            )
        )
    else:
        draft.lines.append(
            word_line(
                "xid",
                both("GPU faults (Xid)", "GPU 故障（Xid）"),
                "marginal",
                None,
                0,
                both("The kernel's log could not be read.", "无法读取内核日志。"),
            )
        )
    if hottest is not None:
        good, bad = share("temperature_good"), share("temperature_fail")
        verdict = "pass" if hottest <= good else "marginal" if hottest <= bad else "fail"
        draft.shown |= set() if verdict == "pass" else {"throttled"}
        text = both(f"The hottest GPU reached {hottest:.0f} °C.", f"最高温度 {hottest:.0f} °C。")
        draft.lines.append(word_line("temperature", both("hottest GPU", "最高温度"), verdict, hottest, good, text))
    for name, value, label in (
        ("drift", drift, both("loss of speed over the run", "全程降速")),
        ("spread", spread, both("slowest GPU behind the median", "最慢 GPU 落后中位数")),
    ):
        if value is not None:
            limit = share("stability_drift")
            verdict = "pass" if value <= limit else "marginal" if value <= 2 * limit else "fail"
            draft.shown |= set() if verdict == "pass" else {"throttled"}
            text = both(f"{label['en'][0].upper()}{label['en'][1:]}: {value:.1%}.", f"{label['zh']}：{value:.1%}。")
            draft.lines.append(word_line(name, label, verdict, Q(max(value, 0.0), unit("")), Q(limit, unit("")), text))
    return draft


def _resume(values: dict, plan: Plan | None) -> Draft:
    draft = Draft(title=both("Kill and resume", "杀进程后续训"), causes=["rank_died", "object_target"])
    saved, resumed, seconds = (_number(values, name) for name in ("saved_step", "resumed_step", "seconds_to_resume"))
    same = values.get("same_loss") is True
    good = same and saved is not None and saved == resumed
    draft.lines.append(
        word_line(
            "resume",
            both("resumed from the last checkpoint", "从最近检查点恢复"),
            "pass" if good else "fail",
            resumed,
            saved,
            both(
                f"Killed, then resumed from step {resumed or 0:.0f} (saved: {saved or 0:.0f})"
                + (f" in {seconds:.0f} s" if seconds is not None else "")
                + (" with the same loss." if same else "; the loss afterwards is not the same."),
                f"被杀后从第 {resumed or 0:.0f} 步恢复（已保存：{saved or 0:.0f}）"
                + (f"，用时 {seconds:.0f} 秒" if seconds is not None else "")
                + ("，loss 一致。" if same else "；恢复后 loss 不一致。"),
            ),
        )
    )
    return draft


def _node_fault(values: dict, plan: Plan | None) -> Draft:
    draft = Draft(title=both("Fault of a node", "节点故障"), causes=["node_absent", "load_skew"])
    seconds, by_hand = _number(values, "seconds"), values.get("by") != "platform"
    planned = plan.storage.restart_time if plan is not None else None
    taken = Q(seconds, unit("s")) if seconds is not None else None
    if taken is None:
        verdict = "fail"
    elif planned is None:
        verdict = "marginal" if by_hand else "pass"
    else:
        verdict = "pass" if taken <= planned else "marginal" if taken <= 2 * planned else "fail"
        verdict = "marginal" if by_hand and verdict == "pass" else verdict
    who_en, who_zh = ("by hand", "人工") if by_hand else ("by the platform", "平台自动")
    against_en = f", the plan counts on {shown(planned.to('min'))}" if planned is not None else ""
    against_zh = f"，方案按 {shown(planned.to('min'))} 计" if planned is not None else ""
    draft.lines.append(
        word_line(
            "node_fault",
            both("until training went on", "到恢复训练的时间"),
            verdict,
            taken,
            planned,
            both(
                f"Replaced {who_en}, {shown(taken.to('min'))} until training went on{against_en}."
                if taken is not None
                else "Training did not go on.",
                f"{who_zh}更换节点，{shown(taken.to('min'))} 后恢复训练{against_zh}。"
                if taken is not None
                else "训练没有恢复。",
            ),
        )
    )
    return draft
