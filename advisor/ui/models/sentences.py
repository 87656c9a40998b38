"""Refusals of a scenario in both languages.

The scenario refuses with one English sentence of a few shapes; each shape has its Chinese here, and whatever has none is shown
behind a Chinese lead, so that no refusal is ever lost.
"""

from __future__ import annotations

import re

from advisor.ui.models.controls import CONTROLS
from advisor.ui.text import N_, translate

_VALUE = r"(?P<value>.+?)"
_PATH = r"(?P<key>[\w.\[\]]+)"
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), chinese)
    for pattern, chinese in (
        (
            r"(?P<key>\w+) belongs to method (?P<methods>.+), but method (?P<value>\w+) was given\.",
            "{key} 只适用于方法 {methods}，当前方法是 {value}。",
        ),
        (
            rf"{_PATH} must be (?:'auto' or )?a whole number from (?P<low>\S+) to (?P<high>\S+), but {_VALUE} was given\.",
            "{key} 应为 {low} 到 {high} 之间的整数，但给出的是 {value}。",
        ),
        (
            rf"{_PATH} must be a number from (?P<low>\S+) to (?P<high>\S+), but {_VALUE} was given\.",
            "{key} 应为 {low} 到 {high} 之间的数，但给出的是 {value}。",
        ),
        (
            rf"{_PATH} must be (?:'auto' or )?from (?P<low>.+) to (?P<high>.+), but {_VALUE} was given\.",
            "{key} 应在 {low} 到 {high} 之间，但给出的是 {value}。",
        ),
        (
            rf"{_PATH} must be (?:'auto' or )?a quantity in (?P<unit>.+?) \(from (?P<low>.+?) to (?P<high>.+?)\), "
            rf"but {_VALUE} was given\.",
            "{key} 应为带单位的量（单位 {unit}，{low} 到 {high}），但给出的是 {value}。",
        ),
        (
            rf"{_PATH} must be a dictionary with (?P<what>.+), but {_VALUE} was given\.",
            "{key} 应为一组设置（{what}），但给出的是 {value}。",
        ),
        (
            rf"{_PATH} has no key (?P<value>.+?); it may have (?P<what>[^.]+)\."
            r"(?: Did you mean (?P<near>.+)\?)?",
            "{key} 里没有名为 {value} 的项，可以有 {what}。{near}",
        ),
        (
            rf"{_PATH} must be a text of 1 to (?P<limit>\d+) printable characters, but {_VALUE} was given\.",
            "{key} 应为 1 到 {limit} 个可打印字符，但给出的是 {value}。",
        ),
        (
            rf"{_PATH} must be (?:'auto' or )?a name from the catalog, but {_VALUE} was given\.",
            "{key} 应为目录里的名称，但给出的是 {value}。",
        ),
        (
            rf"{_PATH} must be a catalog name, a size such as '13B' or a config object, but {_VALUE} was given\.",
            "{key} 应为目录里的名称、参数量（如 '13B'）或 config 内容，但给出的是 {value}。",
        ),
        (
            rf"{_PATH} must be a date such as '2026-11-30', but {_VALUE} was given\.",
            "{key} 应为日期（如 '2026-11-30'），但给出的是 {value}。",
        ),
        (
            rf"{_PATH} must be a list of at most (?P<limit>\d+) quotes, but {_VALUE} was given\.",
            "{key} 应为最多 {limit} 条报价的列表，但给出的是 {value}。",
        ),
        (
            rf"{_PATH} must be all_linear, attention_qv, attention or a list of module names, but {_VALUE} was given\.",
            "{key} 应为 all_linear、attention_qv、attention 或模块名列表，但给出的是 {value}。",
        ),
        (
            r"(?P<key>quotes\S*|purchase\.quotes\S*) must be given: a quote needs a card and a price\.",
            "{key} 必须给出：每条报价都要有卡型和价格。",
        ),
        (
            rf"A scenario must be a dictionary with at least 'model', but {_VALUE} was given\.",
            "方案应为一组设置，至少包含 'model'，但给出的是 {value}。",
        ),
        (
            r"model must be given: a catalog name, a size such as '13B' or a Hugging Face config object\.",
            "必须给出 model：目录里的名称、参数量（如 '13B'）或 Hugging Face config 内容。",
        ),
        (
            r"parallelism\.virtual_pipeline needs parallelism\.pipeline above 1, but (?P<value>.+) was given\.",
            "parallelism.virtual_pipeline 需要 parallelism.pipeline 大于 1，但给出的是 {value}。",
        ),
        (
            r"gpus must be data x tensor x pipeline x context = (?P<number>\d+), but (?P<value>.+) was given\.",
            "gpus 必须等于 data x tensor x pipeline x context{equals}，但给出的是 {value}。",
        ),
        (
            r"optimizer_in_backward must be false with adapters: their gradients are small enough to keep\.",
            "使用适配器时 optimizer_in_backward 必须为 false：它们的梯度足够小，可以保留。",
        ),
        (
            rf"{_PATH}: (?P<value>.+?) joins cards inside a node; between nodes use (?P<what>.+)\.",
            "{key}：{value} 用于机内互联；机间请用 {what}。",
        ),
        (
            rf"(?P<key>[\w.]+) must be a multiple of (?P<what>.+?)(?: = (?P<number>\d+))?, but {_VALUE} was given\.",
            "{key} 必须是 {what}{equals} 的整数倍，但给出的是 {value}。",
        ),
        (
            rf"(?P<key>[\w.]+) must be (?P<what>[\w ]+ x [\w ]+?) = (?P<number>\d+), but {_VALUE} was given\.",
            "{key} 必须等于 {what}{equals}，但给出的是 {value}。",
        ),
        (
            rf"{_PATH} must be (?P<what>[\w' ,.]+), but {_VALUE} was given\.(?: Did you mean (?P<near>.+)\?)?",
            "{key} 可以是 {what}，但给出的是 {value}。{near}",
        ),
        (
            r"A scenario has no key (?P<value>.+?); it may have .*",
            "方案里没有名为 {value} 的项。",
        ),
        (
            r"(?:model|gpu|scale_out): (?:Model|GPU|Card|Link|\w+) (?P<value>'.*?') is not in the catalog; "
            r"the nearest known name is (?P<near>'.+?')\.",
            "目录里没有 {value}，最接近的是 {near}。",
        ),
        (
            r"(?:model|gpu|scale_out): (?:Model|GPU|Card|Link|\w+) (?P<value>'.*?') is not in the catalog; "
            r"known names are for example (?P<near>.+)\.",
            "目录里没有 {value}，可用的例如 {near}。",
        ),
        (r"parallelism cannot be used: (?P<what>.+)", "这种并行方式无法使用：{what}"),
    )
)


def chinese(sentence: str) -> str:
    """A refusal in Chinese."""
    for pattern, text in _SHAPES:
        match = pattern.fullmatch(sentence)
        if match:
            parts = {key: value or "" for key, value in match.groupdict().items()}
            parts["equals"] = f" = {parts['number']}" if parts.get("number") else ""
            if text.endswith("{near}"):
                parts["near"] = f"是否指 {parts['near']}？" if parts["near"] else ""
            for word in ("methods", "what"):
                if word in parts:
                    parts[word] = parts[word].replace(" or ", " 或 ").replace(", ", "、")
            return text.format(**parts)
    return f"无法采用：{sentence}"


def both_languages(error: Exception) -> dict[str, str]:
    """An error's sentence in both languages."""
    text = getattr(error, "text", None)
    if isinstance(text, dict):
        return text
    sentence = str(error)
    english = sentence.removeprefix("model: ")
    return {"en": _labelled(english, "en"), "zh": _labelled(chinese(sentence), "zh")}


#: Keys stand in a refusal as words of their own; the form calls them by their labels.
_KEYS = {path: control.label for path, control in CONTROLS.items() if "_" in path or "." in path}
_GROUPS = {"lora": N_("LoRA settings"), "quantization": N_("Quantisation")}
_KEY = re.compile(
    r"(?<![\w.'])(" + "|".join(sorted(map(re.escape, _KEYS), key=len, reverse=True)) + r")(?![\w.'])(?! or | \w+ was)"
)


def _labelled(sentence: str, lang: str) -> str:
    def label(match: re.Match[str]) -> str:
        return f"“{translate(_KEYS[match[1]], lang)}”"

    done = _KEY.sub(label, sentence)
    first, space, rest = done.partition(" ")
    done = translate(_GROUPS.get(first, first), lang) + space + rest
    return done[:1].upper() + done[1:]


def culprit(error: Exception) -> str:
    """The key that a refusal names first, as a control's path; "model" when it names none."""
    match = re.match(r"([a-z_]+(?:\.[a-z_]+)?)\b", str(error))
    return match[1] if match else "model"


def plain_sentence(error: Exception) -> dict[str, str]:
    """An error of something read, in both languages: its own, or its English behind a Chinese lead."""
    text = getattr(error, "text", None)
    return text if isinstance(text, dict) else {"en": str(error), "zh": f"无法读取：{error}"}
