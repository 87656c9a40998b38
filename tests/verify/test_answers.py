"""The three questions, the set-up sheets, the command, and that every text is there in both languages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import advisor
from advisor import catalog
from advisor.units import Q
from advisor.verify import check, fabric_sheet, three_questions
from advisor.verify.causes import _ALL, SHOWN_BY, in_order
from advisor.verify.command import main
from advisor.verify.expect import shown
from advisor.verify.records import LAYERS
from advisor.verify.sheet_steps import EFA_STEPS, INFINIBAND_STEPS, ROCE_STEPS, TCP_STEPS

from .samples import SCENARIOS, nccl_text, perftest_text, plan_of
from .test_machine import fio

CHINESE = re.compile(r"[\u4e00-\u9fff]")


def test_nothing_tested_says_so(two_nodes):
    answers = three_questions((), two_nodes)
    assert [one.question for one in answers] == ["network", "storage", "healing"]
    assert {one.answer for one in answers} == {"not_tested"}
    assert all("Not tested yet" in one.sentence["en"] and one.next_command for one in answers)


def test_one_node_tested_of_two_is_partly(two_nodes):
    answer = check([advisor.read(nccl_text(478, 8))], two_nodes).questions[0]
    assert answer.answer == "partly"
    assert "between nodes" in answer.sentence["en"]
    assert answer.next_command == "./acceptance.sh nccl_two_nodes"


def test_a_failed_measurement_is_no(two_nodes):
    answers = check([("slow.txt", advisor.read(nccl_text(40, 16))), advisor.read(fio("write", 50.0))], two_nodes).questions
    assert answers[0].answer == "no"
    assert answers[0].evidence[0]["en"].startswith("slow.txt: ")
    assert answers[1].answer == "partly"  # writing only


def test_one_card_needs_no_network(one_card):
    assert check([], one_card).questions[0].answer == "not_needed"


def test_every_cause_has_a_command_and_both_languages():
    for code, (layer, en, zh, command, good_en, good_zh) in _ALL.items():
        assert layer in LAYERS, code
        assert en.endswith(".") or en.endswith(")."), code
        assert command and good_en, code
        assert (CHINESE.search(zh) and CHINESE.search(good_zh)) or code in ("template_environment",), code
        assert len(command) <= 130, code
    assert set(SHOWN_BY.values()) <= set(_ALL)


def test_codes_that_show_a_cause_are_codes_of_the_readers():
    """A reader's code that is renamed must not silently lose its cause."""
    folder = Path(advisor.__file__).parent / "evidence"
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    missing = [code for code in SHOWN_BY if f'"{code}"' not in text]
    assert not missing


def test_shown_causes_come_first_and_ruled_out_last():
    causes = in_order(["sockets", "port_down", "roce_pfc", "gdr_off"], shown={"sockets"}, ruled_out={"port_down"})
    assert [cause.code for cause in causes] == ["sockets", "roce_pfc", "gdr_off", "port_down"]


def test_the_roce_sheet_goes_from_firmware_to_nccl(two_nodes):
    sheet = fabric_sheet(two_nodes)
    assert sheet.kind == "RoCEv2"
    words = " ".join(step.title["en"] for step in sheet.steps)
    for word in ("Firmware", "mode", "MTU", "DSCP", "PFC", "ECN", "Buffers", "GID", "perftest", "NCCL"):
        assert word in words
    assert words.index("GID") < words.index("perftest") < words.index("NCCL")
    assert all(step.command and step.prints["en"] and step.wrong["zh"] for step in sheet.steps)
    assert {"RESET", "INIT", "RTR", "RTS", "ERR"} <= {one.name for one in sheet.queue_pair}
    assert "## 1. Firmware" in sheet.markdown()
    assert sheet.to_dict()["steps"][0]["number"] == 1


@pytest.mark.parametrize("steps", [ROCE_STEPS, INFINIBAND_STEPS, EFA_STEPS, TCP_STEPS])
def test_every_step_of_a_sheet_is_whole(steps):
    for title, why, command, right, wrong in steps:
        assert command
        for pair in (title, why, right, wrong):
            assert len(pair) == 2 and all(pair)


def test_counterparts_for_other_networks(one_node):
    assert fabric_sheet(one_node) is None
    given = {**SCENARIOS["two_nodes"], "scale_out": "InfiniBand NDR"}
    plan = advisor.make_plan(advisor.Scenario.from_dict(given))
    assert fabric_sheet(plan).kind == "InfiniBand"
    assert not any("PFC" in step.title["en"] for step in fabric_sheet(plan).steps)


def test_healthy_rows_name_links_of_the_catalog():
    for row in catalog.table("healthy.csv"):
        if row["scale_up"]:
            assert catalog.link(row["scale_up"]).name == row["scale_up"]
        if row["scale_out"]:
            link = catalog.link(row["scale_out"])
            assert link.name == row["scale_out"]
            wire = float(link.line_rate.m_as("GB/s")) * int(row["nics_per_node"])
            assert float(row["low"]) <= wire or int(row["nodes_max"]) == 2, row
        assert float(row["low"]) <= float(row["value"]) <= float(row["high"])


def scenario_file(tmp_path):
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(SCENARIOS["two_nodes"]), encoding="utf-8")
    return str(path)


def test_the_command_prints_verdicts_and_status(tmp_path, capsys):
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text(nccl_text(478, 8), encoding="utf-8")
    bad.write_text(nccl_text(40, 16), encoding="utf-8")
    scenario = scenario_file(tmp_path)
    assert main([scenario, str(good)]) == 0
    assert "PASS" in capsys.readouterr().out
    assert main(["--json", "--plan", scenario, str(bad)]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["findings"][0]["verdict"] == "fail"
    assert data["findings"][0]["measured"]["unit"] == "GB / node / s" or "GB" in data["findings"][0]["measured"]["unit"]
    assert [one["question"] for one in data["questions"]] == ["network", "storage", "healing"]
    assert main([scenario, str(good), "--language", "zh"]) == 0
    assert "通过" in capsys.readouterr().out


def test_the_command_writes_the_kit_and_refuses_what_is_missing(tmp_path, capsys):
    scenario = scenario_file(tmp_path)
    assert main([scenario, "--kit", str(tmp_path / "kit")]) == 0
    assert {"acceptance.sh", "CHECKLIST.md", "FABRIC.md", "scenario.json"} <= {one.name for one in (tmp_path / "kit").iterdir()}
    assert main([scenario, "--sheet"]) == 0
    for words in ([], [scenario], [scenario, str(tmp_path / "absent.txt")], [str(tmp_path / "absent.json"), "x"]):
        with pytest.raises(ValueError, match=r"\.$"):
            main(words)
    capsys.readouterr()


def test_a_finding_is_whole(two_nodes):
    verification = check([advisor.read(nccl_text(231, 16)), advisor.read(perftest_text(200))], two_nodes)
    for finding in verification.findings:
        assert CHINESE.search(finding.sentence["zh"])
        assert CHINESE.search(finding.title["zh"])
        assert finding.next_command
        for line in finding.lines:
            assert line.label["en"] and CHINESE.search(line.sentence["zh"])
    assert plan_of("two_nodes") is not None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Q(2.38e-05, "GB/s"), "23.8 kB/s"),
        (Q(0.05, "GB/s"), "50 MB/s"),
        (Q(450.8, "GB/s/GPU"), "451 GB/s/GPU"),
        (Q(1540, "GB/s/node"), "1,540 GB/s/node"),
        (Q(388, "Gbit/s"), "388 Gb/s"),
        (Q(80.83, "GiB"), "80.8 GiB"),
        ("Active", "Active"),
    ],
)
def test_values_are_written_as_people_read_them(value, text):
    assert shown(value) == text
