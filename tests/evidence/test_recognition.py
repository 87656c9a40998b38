"""All readers together: each kind is recognised by content, and only as itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import samples

from advisor.evidence import Reading, read
from advisor.evidence.registry import MODULES, READERS

KINDS = {"nccl", "topo", "nvidia_smi", "perftest", "ib", "storage", "oom", "launch", "hf_config", "deepspeed", "train_yaml",
         "megatron", "torchtitan", "skypilot", "kubernetes", "slurm", "launch_script", "job_file"}  # fmt: skip


def test_every_module_gives_a_reader_of_a_known_kind():
    assert len(MODULES) == len(set(MODULES)) == len(READERS)
    assert {reader.kind for reader in READERS} <= KINDS


@pytest.mark.parametrize("name", sorted(samples.ALL))
def test_kind_by_content(name):
    kind, text = samples.ALL[name]
    report = read(f"Hello, here is what I get:\n\n```\n{text}```\nThanks!\n")
    assert report.kind == kind and isinstance(report.reading, Reading)
    scores = sorted((reader.recognise(text) for reader in READERS if reader.kind != kind), reverse=True)
    assert scores[0] < max(reader.recognise(text) for reader in READERS if reader.kind == kind)


def test_a_path_bytes_and_text_read_the_same(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(samples.FIO, encoding="utf-8")
    assert (
        read(path).to_dict() == read(str(path)).to_dict() == read(samples.FIO).to_dict() == read(samples.FIO.encode()).to_dict()
    )


def test_command_line(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(samples.nccl(), encoding="utf-8")
    command = [sys.executable, "-m", "advisor", "read", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shown = json.loads(done.stdout)
    assert shown["kind"] == "nccl" and shown["reading"]["peak_busbw"]["unit"] == "GB / s" and shown["truncated"] is False
    path.write_text("nothing of the kind\n", encoding="utf-8")
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 2 and len(failed.stderr.strip().split("\n")) == 1 and not failed.stdout
