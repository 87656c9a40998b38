"""Real pastes with what a reader should find in them, kept outside this repository: how many fields come out right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from advisor.evidence import read
from advisor.evidence.registry import READERS
from advisor.units import Quantity

LOGS = Path(__file__).parents[3] / "shared" / "field" / "logs"
TARGET = 0.97

#: What a person wrote about a paste; ours are the problems. Not compared word by word.
SPOKEN = {
    "note", "verdict", "diagnosis", "warning", "check", "hint", "advice", "pair_with",
    "avg_reported_in_issue", "combined_from_two",
}  # fmt: skip
UNITS = {
    "_GBps": "GB/s", "_bytes": "B", "_gbps": "Gbit/s", "_mib": "MiB", "_MiB": "MiB", "_gib": "GiB", "_GiB": "GiB", "_w": "W",
    "_MiB_s": "MiB/s", "_MB_s": "MB/s", "_KiB_s": "KiB/s", "_ms": "ms", "_us": "us", "_s": "s", "_percent": "",
    "_mpps": "1/us", "_GB": "GB", "_mb": "MB",
}  # fmt: skip
WHOLE_NAMES = {"MiB_s": "MiB/s", "MB_s": "MB/s", "KiB_s": "KiB/s"}


def value_of(reading: Any, key: str) -> tuple[Any, str]:
    """The field that an expected key names, and the unit of the expected number: the key itself, or without its unit."""
    get = reading.get if isinstance(reading, dict) else lambda name, default=None: getattr(reading, name, default)
    if key in WHOLE_NAMES:
        return get(key), WHOLE_NAMES[key]
    for suffix, unit in sorted(UNITS.items(), key=lambda pair: -len(pair[0])):
        if key.endswith(suffix) and get(key.removesuffix(suffix)) is not None:
            return get(key.removesuffix(suffix)), unit
    return get(key), ""


def same(expected: Any, found: Any, unit: str = "") -> bool:
    """Equal, numbers to the last digit that a person would write down (0.1 %), dictionaries by the expected keys."""
    if isinstance(expected, dict) and not isinstance(found, Quantity):
        if not isinstance(found, dict) or (not expected and found):
            return False
        return all(same(item, *value_of(found, key)) for key, item in expected.items())
    if isinstance(found, Quantity):
        found = found.m_as(unit) if unit else found.m  # a bare number is in the unit of the tool
        found = found.tolist() if hasattr(found, "tolist") else found
    if isinstance(expected, list):
        return (
            isinstance(found, (list, tuple))
            and len(found) == len(expected)
            and all(map(same, expected, found, [unit] * len(expected)))
        )
    if isinstance(expected, bool) or expected is None or found is None:
        return expected is found
    if isinstance(expected, (int, float)):
        return isinstance(found, (int, float)) and abs(found - expected) <= 0.001 * abs(expected)
    plain = re.sub(r" \(.*\)$", "", expected)
    return found in (expected, plain)


def score(kind: str) -> tuple[int, int, list[str]]:
    """Right, all, and what is wrong, of one kind."""
    right, wrong = 0, []
    for meta_path in sorted((LOGS / kind).glob("*.meta.json")):
        stem = meta_path.name.removesuffix(".meta.json")
        path = next(one for one in meta_path.parent.glob(stem + ".*") if one != meta_path)
        report = read(path)
        assert report.kind == kind, f"{path.name} is recognised as {report.kind}"
        for key, expected in json.loads(meta_path.read_text(encoding="utf-8"))["expected"].items():
            if key in SPOKEN:
                continue
            found, unit = value_of(report.reading, key)
            if same(expected, found, unit):
                right += 1
            else:
                wrong.append(f"{stem}: {key} should be {expected!r}, is {found!r}")
    return right, right + len(wrong), wrong


@pytest.mark.skipif(not LOGS.is_dir(), reason=f"the collected pastes are not on this machine ({LOGS})")
def test_fields_of_real_pastes(capsys):
    kinds = sorted({reader.kind for reader in READERS} & {path.name for path in LOGS.iterdir()})
    total_right = total = 0
    with capsys.disabled():
        print()
        for kind in kinds:
            right, count, wrong = score(kind)
            print(f"  {kind:<12} {right:>4} of {count:<4} {right / count:7.1%}", *wrong, sep="\n      ! " if wrong else "")
            total_right, total = total_right + right, total + count
        print(f"  {'all':<12} {total_right:>4} of {total:<4} {total_right / total:7.1%}")
    assert total_right >= TARGET * total
