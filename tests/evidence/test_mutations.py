"""Whatever the file, reading it gives a report or one clear sentence. ADVISOR_MUTANTS=2000 makes more of them."""

from __future__ import annotations

import json

import mutations
import pytest
import samples

from advisor.evidence import EvidenceError, Report, read, to_scenario
from advisor.scenario import Scenario


def outcome(data: bytes) -> Report | None:
    """The report, checked to be whole, or None after one clear sentence."""
    try:
        report = read(data)
    except EvidenceError as error:
        sentence = str(error)
        assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 400, sentence
        return None
    json.dumps(report.to_dict(), allow_nan=False)
    assert report.summary("zh")
    assert all(problem.text["en"] and problem.text["zh"] for problem in report.problems)
    try:
        imported = to_scenario(report)
    except EvidenceError:  # a measurement says nothing about a scenario
        return report
    json.dumps(imported.to_dict(), allow_nan=False)
    Scenario.from_dict({"model": "7B", **imported.scenario})
    return report


@pytest.mark.parametrize("block", range(10))
def test_mutants(block):
    for seed in range(block, mutations.COUNT, 10):
        name, data = mutations.mutant(seed)
        try:
            outcome(data)
        except Exception as error:
            error.add_note(name)
            raise


@pytest.mark.parametrize("name", sorted(samples.ALL))
def test_harmless_changes_change_nothing(name):
    """Line ends, encodings, colours around words and blank lines are not part of what was measured."""
    kind, text = samples.ALL[name]
    plain = read(text.encode()).to_dict()
    assert plain["kind"] == kind
    for data in (
        text.replace("\n", "\r\n").encode(),
        text.encode("utf-16"),
        text.encode("utf-16-le"),
        text.encode("utf-8-sig"),
        ("说明：如下\n" + text).encode("gb18030"),
        "\n".join(f"\x1b[32m{line}\x1b[0m" for line in text.split("\n")).encode(),
        text.replace("\n", "\n\n").encode(),
    ):
        assert read(data).to_dict() == plain


@pytest.mark.parametrize("name", sorted(samples.ALL))
def test_every_prefix_reads_or_says_so(name):
    """A paste may end anywhere."""
    text = samples.ALL[name][1]
    for end in range(1, len(text), max(1, len(text) // 15)):
        outcome(text[:end].encode())


@pytest.mark.parametrize("seed", [3, 60, 85])
def test_huge(seed):
    report = outcome(mutations.huge(seed, 1_500_000))
    assert report is None or any(problem.code == "file_shortened" for problem in report.problems)


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"\x7fELF\x02\x01\x01\x00" * 99, b"\x00" * 500, "只是一段话。".encode(), b"hello world", b"{}", b"[1, 2]"],
)
def test_no_evidence_is_one_sentence(data):
    with pytest.raises(EvidenceError, match=r"\.$"):
        read(data)
