"""`advisor verify SCENARIO FILE...`: evidence against a plan; `--kit FOLDER` writes the acceptance kit of the plan instead."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advisor.units import to_json
from advisor.verify.expect import shown
from advisor.verify.records import LAYER_TEXT, VERDICT_TEXT, Finding, Verification

ANSWER_TEXT = {
    "yes": {"en": "yes", "zh": "是"},
    "partly": {"en": "partly", "zh": "部分"},
    "no": {"en": "no", "zh": "否"},
    "not_tested": {"en": "not tested", "zh": "未测"},
    "not_needed": {"en": "not needed on one card", "zh": "单卡不需要"},
}
#: Causes printed for one finding; the JSON has them all.
MOST_CAUSES = 4


class VerifyError(ValueError):
    """What cannot be verified or written. The message is one plain sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Status 0: nothing failed; 1: something did; 2 comes with a ValueError, as for all commands."""
    options = _parser().parse_args(list(sys.argv[1:] if arguments is None else arguments))
    scenario = options.plan or (options.files.pop(0) if options.files else None)
    if scenario is None:
        raise VerifyError("Name the scenario file that the evidence is held to: advisor verify scenario.json FILE...")
    plan = _plan(scenario)
    if options.kit:
        return _write_kit(plan, Path(options.kit))
    if options.sheet:
        return _print_sheet(plan)
    if not options.files:
        raise VerifyError("Name at least one evidence file or folder, or --kit FOLDER to get the tests to run.")
    from advisor.verify.judge import check
    from advisor.verify.results import read_results

    reports, unread = read_results(options.files)
    if not reports and unread:
        raise VerifyError(unread[0]["en"])
    verification = check(reports, plan)
    if options.json:
        print(json.dumps({**to_json(verification), "unread": list(unread)}, ensure_ascii=False, indent=2))
    else:
        print(render(verification, options.language))
        for one in unread:
            print(f"? {one[options.language]}")
    return 1 if verification.verdict == "fail" else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="advisor verify", description="Compare evidence files with what a plan requires.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="a scenario (or --plan), then evidence files or folders")
    parser.add_argument("--plan", metavar="SCENARIO", help="the scenario file that the evidence is held to")
    parser.add_argument("--kit", metavar="FOLDER", help="write the acceptance kit of the plan there")
    parser.add_argument("--sheet", action="store_true", help="print how to set up the plan's network")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--language", choices=("en", "zh"), default="en")
    return parser


def _plan(path: str) -> Any:
    from advisor.plan import make_plan
    from advisor.scenario import Scenario

    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
        data = json.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise VerifyError(f"The scenario file {path} cannot be read: {reason}.") from None
    except (json.JSONDecodeError, RecursionError):
        raise VerifyError(f"The scenario file {path} is not JSON; the scenario comes first, the evidence after it.") from None
    return make_plan(Scenario.from_dict(data))


def _write_kit(plan: Any, folder: Path) -> int:
    from advisor.verify.kit import acceptance_kit

    files = acceptance_kit(plan)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        (folder / "acceptance.sh").chmod(0o755)
    except OSError as error:
        raise VerifyError(f"The kit cannot be written to {folder}: {error.strerror}.") from None
    print(f"{folder}: {', '.join(files)}")
    print("Copy it to the trial machine, run ./acceptance.sh, then: advisor verify scenario.json results/")
    return 0


def _print_sheet(plan: Any) -> int:
    from advisor.verify.sheet import fabric_sheet

    sheet = fabric_sheet(plan)
    if sheet is None:
        raise VerifyError("This plan has no network between nodes that one sets up oneself.")
    print(sheet.markdown())
    return 0


def render(verification: Verification, language: str = "en") -> str:
    """Findings and the three questions as readable lines."""
    parts = [_finding(one, language) for one in verification.findings]
    lines = []
    for one in verification.questions:
        lines.append(f"{one.text[language]}  {ANSWER_TEXT[one.answer][language].upper()}  {one.sentence[language]}")
        lines += [f"    {sentence[language]}" for sentence in one.evidence[:5]]
        lines += [f"    $ {one.next_command}"] if one.next_command else []
    return "\n\n".join([*parts, "\n".join(lines), verification.sentence[language]])


def _word(verdict: str, language: str) -> str:
    """A line's verdict; a line that is only told, as the parts of a sum are, has none."""
    return "" if verdict == "not_comparable" else VERDICT_TEXT[verdict][language]


def _finding(finding: Finding, language: str) -> str:
    lines = [f"{VERDICT_TEXT[finding.verdict][language].upper():<14} {finding.name}: {finding.title[language]}"]
    lines.append(f"  {finding.sentence[language]}")
    lines += [
        f"  {_word(line.verdict, language):<14} {line.sentence[language]}"
        for line in finding.lines
        if line.sentence != finding.sentence
    ]
    if finding.margin is not None:
        words = {"en": "margin", "zh": "余量"}[language]
        lines.append(
            f"  {words} {float(finding.margin.m_as('')):+.0%}"
            + (f" ({shown(finding.measured)})" if finding.measured is not None else "")
        )
    for cause in [one for one in finding.causes if one.standing != "ruled_out"][:MOST_CAUSES]:
        sign = "!" if cause.standing == "shown" else "?"
        lines.append(f"  {sign} [{LAYER_TEXT[cause.layer][language]}] {cause.text[language]}")
        lines.append(f"      $ {cause.command}")
        lines.append(f"      = {cause.expect[language]}")
    lines += [f"  ({problem.text[language]})" for problem in finding.problems]
    return "\n".join(lines)
