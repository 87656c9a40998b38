"""Every sentence on what was taken for granted has its Chinese."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from advisor.architecture import find_architecture, read, variants
from advisor.memory import estimate
from advisor.plan.assumed import assumed

KNOWN = {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}


def sentences() -> list[str]:
    """What the three modules may say, a sample word in each place that is filled in."""
    found = []
    for module in (read, variants, estimate):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
            holder = ast.unparse(node.func.value) if call else ""
            if call and (holder.endswith("assumptions") or (module is estimate and holder == "found")):
                parts = node.args[0].values if isinstance(node.args[0], ast.JoinedStr) else [node.args[0]]
                found.append("".join(one.value if isinstance(one, ast.Constant) else "x" for one in parts))
    return found


def test_every_sentence_of_the_code_has_its_chinese():
    said = sentences()
    assert len(said) >= 10
    for one in said:
        one = one.replace("partsx are", "parts are")
        assert not assumed(one)["zh"].startswith("假设："), one


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "never_seen", "intermediate_size": 4096, **KNOWN},
        {"model_type": "never_seen", "hidden_act": "gelu", **KNOWN},
        {"model_type": "llava", "vision_config": {"hidden_size": 64}, "text_config": {"model_type": "llama", **KNOWN}},
        {"model_type": "llama", "quantization_config": {"bits": 4}, **KNOWN},
    ],
)
def test_what_a_real_file_leaves_open_reads_as_chinese(config):
    found = find_architecture(config).assumptions
    assert found
    for one in found:
        text = assumed(one)
        assert text["en"] == one and not re.search(r"\b(the|is|are|with|was|and)\b", text["zh"]), text["zh"]
