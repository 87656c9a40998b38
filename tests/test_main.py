"""The command line: what it prints, and how it fails."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from advisor.__main__ import main


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"model": "llama-3.1-8b", "method": "lora", "tokens": "200 Mtoken"}), encoding="utf-8")
    return str(path)


def test_plan_as_a_process(scenario):
    done = subprocess.run(
        [sys.executable, "-m", "advisor", "plan", scenario, "--json"], capture_output=True, text=True, check=True
    )
    plan = json.loads(done.stdout)
    assert plan["cluster"]["gpus"] == 1 and plan["memory"]["verdict"] == "fits"
    assert done.stderr == ""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_plan_as_text(scenario, capsys, language):
    assert main(["plan", scenario, "--language", language]) == 0
    assert "llama-3.1-8b" in capsys.readouterr().out


def test_search(scenario, capsys):
    assert main(["search", scenario, "--json", "--top", "5"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 5 and {"gpu", "gpus", "verdict", "training_time (h)"} <= set(rows[0])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not JSON at line 1"),
        ("[1]", "must be a dictionary"),
        ('{"model": "7B", "gpus": -1}', "gpus must be"),
        ("[" * 100_000, "is not JSON"),
        ('{"model": "7B", "gpus": ' + "9" * 5000 + "}", "is not JSON"),
        (" " * 1_000_001, "is larger than"),
    ],
    ids=["cut", "list", "negative", "deep", "digits", "large"],
)
def test_bad_input_is_one_sentence_and_status_2(tmp_path, capsys, content, sentence):
    path = tmp_path / "bad.json"
    path.write_text(content, encoding="utf-8")
    assert main(["plan", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and sentence in said.err and said.err.count("\n") == 1


def test_a_missing_file_is_said(capsys):
    assert main(["plan", "no-such-file.json"]) == 2
    assert "cannot be read" in capsys.readouterr().err
