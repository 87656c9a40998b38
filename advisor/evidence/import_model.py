"""The model a training file names, found in the catalog: by its name, by its name without what a fine-tune adds, "
"or by size."""

from __future__ import annotations

import re

from advisor.architecture import ArchitectureError, find_architecture
from advisor.evidence.import_draft import Draft

#: What repositories append to a model's name without changing its sizes.
APPENDED = re.compile(
    r"[-_. ](?:instruct|chat|base|hf|it|pt|sft|dpo|fp16|bf16|fp32|f16|bnb|4bit|8bit|int4|int8|awq|gptq|gguf|unsloth"
    r"|dequantized|dynamic|thinking|preview|reasoning|distill|text|vl|vision|v\d+(?:\.\d+)*|\d{4}|linearized|bnb-4bit|oasst\w*|sharded|safetensors|128k|4k|8k|32k)$",
    re.IGNORECASE,
)
SIZE = re.compile(r"(?<![\d.a-z])(\d{1,4}(?:[._]\d{1,2})?)\s?([bm])(?![a-z0-9])", re.IGNORECASE)
ACTIVE = re.compile(r"[-_ ]a\d+(?:\.\d+)?b", re.IGNORECASE)


def known_name(name: str) -> tuple[str, str] | None:
    """(name that the catalog takes, how it was found: "name", "shortened" or "size"), or None."""
    text = name.strip().rstrip("/").replace("\\", "/")
    if _known(text):
        return text, "name"
    base = text.rsplit("/", 1)[-1]
    # Hugging Face's cache folders: models--org--name
    base = base.rsplit("--", 1)[-1][:120]
    for attempt in _shortened(base):
        if _known(attempt):
            return attempt, "name" if attempt == base else "shortened"
    size = SIZE.search(ACTIVE.sub("", base))
    if size and "a" + size.group(1).lower() + "b" not in base.lower():
        bare = f"{size.group(1).replace('_', '.')}{size.group(2).upper()}"
        if _known(bare):
            return bare, "size"
    return None


def _known(name: str) -> bool:
    try:
        find_architecture(name)
    except (ArchitectureError, ValueError):
        return False
    return bool(re.search("[a-z]", name, re.IGNORECASE))


def _shortened(base: str) -> list[str]:
    """The name with ever fewer appended words."""
    result = [base]
    current = base
    for _ in range(6):
        shorter = APPENDED.sub("", current)
        if shorter == current:
            break
        result.append(shorter)
        current = shorter
    inner = re.sub(r"[-_](?:vl|vision)(?=[-_])", "", current, flags=re.IGNORECASE)
    dotted = re.sub(r"(\d)_(\d)(?=_|$|-)", r"\1.\2", current).replace("_", " ")
    bare = re.sub(r"^(?:meta|distill|unsloth|deepseek-r1-distill)[-_ ]", "", current, flags=re.IGNORECASE)
    for one in (inner, dotted, bare, re.sub(r"([a-z])(\d)", r"\1 \2", dotted)):
        if one not in result:
            result.append(one)
    return result


def take_model(draft: Draft, name: str, where: str, source: str) -> None:
    """Put the model into the draft, saying how its name was understood."""
    found = known_name(name)
    if found is None:
        draft.ignore(
            "model",
            source,
            f"The model {name[:80]!r} is not in the catalog: give its config.json or choose a model.",
            f"目录中没有模型 {name[:80]!r}：请提供其 config.json 或自行选择。",
        )
        draft.used.add((source, where.split(".", 1)[0]))
        return
    value, how = found
    notes = {
        "name": ("", ""),
        "shortened": (f"read from {name[:80]!r}", f"由 {name[:80]!r} 识别"),
        "size": (
            f"only the size in {name[:80]!r} is known, a typical model of it is assumed",
            f"只识别出 {name[:80]!r} 中的规模，按该规模的典型模型处理",
        ),
    }
    draft.take("model", value, where, source, *notes[how])
