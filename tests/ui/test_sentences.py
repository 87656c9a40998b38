"""Every refusal of a scenario has a Chinese sentence of its own: all keys, all kinds of wrong values."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import advisor.scenario.fields as fields
import advisor.scenario.keys as keys
from advisor.scenario import KEYS, Scenario, ScenarioError
from advisor.scenario.defaults import resolve, training_of
from advisor.ui.models.sentences import both_languages, chinese

WRONG = (
    None,
    True,
    -1,
    0,
    1.5,
    10**15,
    "",
    "nonsense",
    "x" * 300,
    [],
    ["a"],
    {},
    {"nonsense": 1},
    {"value": 1, "unit": "W"},
    object,
)
GROUPS = {
    "lora": ("rank", "targets", "dtype", "dropout"),
    "quantization": ("format", "double_quantization"),
    "dtypes": ("weights",),
    "parallelism": ("data", "zero_stage", "sequence_parallel"),
    "data": ("raw_size", "files", "bytes_per_token", "location", "upload_bandwidth"),
    "checkpoint": ("interval", "keep", "asynchronous"),
    "purchase": ("provider", "mode", "other_use", "utilization", "currency", "as_of", "experiments", "quotes"),
}
TOGETHER = (
    {"method": "lora", "quantization": {"format": "nf4"}},
    {"method": "full", "lora": {"rank": 8}},
    {"global_batch_size": 5, "micro_batch_size": 2},
    {"global_batch_size": 5, "gradient_accumulation_steps": 2},
    {"global_batch_size": 6, "micro_batch_size": 2, "gradient_accumulation_steps": 2},
    {"parallelism": {"virtual_pipeline": 2}},
    {"gpus": 3, "parallelism": {"data": 2}},
    {"gpus": 3, "parallelism": {"tensor": 2}},
    {
        "global_batch_size": 8,
        "micro_batch_size": 2,
        "gradient_accumulation_steps": 2,
        "parallelism": {"data": 4},
    },
    {"scale_out": "NVLink 4"},
    {"purchase": {"quotes": [{"gpu": "h100"}]}},
    {"purchase": {"quotes": [{"price": "1 USD/h", "per": "card"}]}},
    {"no such key": 1},
    {"sequence_lenght": 1},
)


def refusals():
    """(scenario, sentence) of every wrong value of every key, and of what contradicts."""
    found = []
    cases = [({key: value}, key) for key in KEYS for value in WRONG if value is not None]
    cases += [
        ({group: {name: value}}, f"{group}.{name}") for group, names in GROUPS.items() for name in names for value in WRONG
    ]
    cases += [(case, "") for case in TOGETHER]
    for case, _ in cases:
        given = case if "model" in case else {"model": "7B", **case}
        try:
            Scenario.from_dict(given)
        except ScenarioError as error:
            found.append((given, error))
    for whole in (None, [], {}, {"model": None}):
        with pytest.raises(ScenarioError) as caught:
            Scenario.from_dict(whole)
        found.append((whole, caught.value))
    with pytest.raises(ScenarioError) as caught:
        training_of(resolve(Scenario.from_dict({"model": "7B", "method": "lora", "optimizer_in_backward": True})))
    found.append(({}, caught.value))
    return found


def test_every_refusal_has_its_own_chinese():
    found = refusals()
    assert len(found) > 300
    missing = {str(error) for _, error in found if chinese(str(error)).startswith("无法采用：")}
    # what a config.json itself says wrong is the architecture's sentence, not the scenario's
    missing = {one for one in missing if not one.startswith("model: ")}
    assert missing == set()


def test_the_chinese_has_no_english_left_but_names_and_values():
    for given, error in refusals():
        if str(error).startswith("model: "):
            continue
        said = both_languages(error)["zh"]
        assert not re.search(r"\b(must be|was given|but|needs|may have|belongs)\b", said), (given, said)


def test_every_sentence_that_the_code_raises_was_walked():
    """Each `raise ScenarioError(...)` of fields.py and keys.py is reached by some case: by the words that are fixed in it."""
    walked = "\n".join(str(error) for _, error in refusals())
    for module in (fields, keys):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Raise)
                and isinstance(node.exc, ast.Call)
                and getattr(node.exc.func, "id", "") == "ScenarioError"
            ):
                texts = [
                    one.value for one in ast.walk(node.exc) if isinstance(one, ast.Constant) and isinstance(one.value, str)
                ]
                fixed = max((part.strip() for text in texts for part in text.split(" must be ", 1)), key=len, default="")
                assert fixed in walked, (module.__name__, node.lineno, fixed)
