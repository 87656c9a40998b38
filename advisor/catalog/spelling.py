"""From any reasonable spelling to the catalog's own name: "h100", "A100-40GB", "Tesla V100-SXM2-32GB", "昇腾910B".

A name is cut into words; noise words (vendors, "GPU", "instruct") are dropped. Aliases of `data/aliases.csv` settle what is
ambiguous ("a100" is the 80 GB SXM card); else the names that hold every word asked for are candidates and the one with the
fewest other words is meant.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping

from advisor.catalog.tables import CatalogError, nearest, table, unknown

CHINESE = {
    "昇腾": " ascend ",
    "华为": " ",
    "英伟达": " ",
    "寒武纪": " cambricon ",
    "摩尔线程": " moore threads ",
    "通义千问": " qwen ",
    "千问": " qwen ",
    "智谱": " ",
    "百川": " baichuan ",
    "以太网": " ethernet ",
    "显卡": " ",
    "卡": " ",
}
WHAT = {"gpus": "GPU", "models": "Model", "links": "Link"}
NOISE = {
    "gpus": "nvidia geforce tesla quadro amd instinct radeon huawei intel habana google aws gpu npu card generation edition hgx"
    " dgx ac accelerator nvlink hbm2 hbm2e hbm3e gddr6 gddr6x gddr7",
    "models": "instruct chat base hf it pt text model meta ai llm moonshotai",
    "links": "gbit gbps gb s network fabric aws gcp alibaba cloud hpe",
}


@functools.lru_cache(maxsize=4096)
def words(name: str, kind: str) -> tuple[str, ...]:
    """The telling words of a name, in lower case: units cut off ("80GB" -> "80"), run-together parts cut apart ("RTX4090D")."""
    text = unicodedata.normalize("NFKC", name).lower()
    for chinese, latin in CHINESE.items():
        text = text.replace(chinese, latin)
    text = re.sub(r"(?<=\d)_(?=\d)", ".", text) if kind == "models" else text.replace("_", " ")
    if kind == "models":
        text = text.split("/")[-1] if text.count("/") == 1 else text
        text = re.sub(r"(?<=[a-z]{2})(?=\d)", " ", text)
        text = re.sub(r"(?<=\b[a-z])v(?=\d)", " v", text)
    if kind == "gpus":
        text = re.sub(r"(rtx|gtx|pro)(?=\d)", r"\1 ", text)
        text = re.sub(r"(?<=\d)(sxm\d?|pcie|nvl)\b", r" \1", text)
        text = re.sub(r"(?<=\d{4})(d|ti)\b", r" \1", text)
        text = re.sub(r"\b(\d+) ?(gib|gb|g)\b", r"\1", text)
    if kind == "links":
        text = re.sub(r"(\d+) ?(gbe|gb/s|gbps|gbit/s|gb|g)\b", r"\1g", text).replace("rocev2", "roce v2")
        text = re.sub(r"\.0\b", "", text)
        text = re.sub(r"(nvlink|pcie|gen)(?=\d)", r"\1 ", text).replace("gen", " ")
    dropped = set(NOISE.get(kind, "").split())
    return tuple(word for word in re.findall(r"[a-z0-9.+]+", text) if word not in dropped)


@functools.cache
def _aliases(kind: str) -> dict[frozenset[str], str]:
    return {frozenset(words(row["alias"], kind)): row["name"] for row in table("aliases.csv") if row["table"] == kind}


def resolve(
    kind: str,
    name: str,
    known: Iterable[str],
    *,
    details: Mapping[str, str] | None = None,
    also: Mapping[str, str] | None = None,
) -> str:
    """The known name that `name` means. Raises CatalogError with the nearest known name.

    kind: "gpus", "models" or "links". details: per known name further words it may be asked by, which alone do not tell it from
    others (memory size, form factor). also: further full names (a Hugging Face id) and the known name each stands for.
    """
    known, also = tuple(known), also or {}
    if name in known:
        return name
    asked = words(str(name), kind)
    spellings = {**{words(other, kind): own for other, own in also.items()}, **{words(own, kind): own for own in known}}
    if found := _aliases(kind).get(frozenset(asked)) or spellings.get(asked):
        return found
    joined = "".join(asked)
    matches: dict[str, int] = {}
    for own_words, own in spellings.items():
        if joined and joined == "".join(own_words):
            return own
        more = set(words((details or {}).get(own, ""), kind))
        telling = any(word in own_words and word not in more and _tells(word, kind) for word in asked)
        if telling and set(asked) <= set(own_words) | more:
            matches[own] = min(len(set(own_words) - set(asked)), matches.get(own, 99))
    closest = [own for own, others in matches.items() if others == min(matches.values())]
    if not closest:
        spoken = {"".join(own_words): own for own_words, own in spellings.items()}
        near = nearest(joined, spoken)
        raise unknown(WHAT[kind], name, known, spoken[near] if near else None)
    if kind == "models" and len(closest) > 1:
        raise CatalogError(
            f"{WHAT[kind]} {str(name)!r} can mean several models of the catalog: say {' or '.join(closest[:4])}."
        )
    return closest[0]


def _tells(word: str, kind: str) -> bool:
    """Whether a word alone tells one card or model from another; "rtx" and "ascend" do not."""
    return kind == "links" or any(sign.isdigit() for sign in word)
