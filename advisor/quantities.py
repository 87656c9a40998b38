"""Quantities as people type them, in English and Chinese: "200M tokens", "2亿 token", "80 GB", "10 Gbit/s", "3 天", "3.5万元".

    parse_quantity("2亿 token", Tokens)       # 200000000 token
    parse_quantity("200G", Bytes)             # 200 GB
    parse_quantity("10 Gbps", Bandwidth)      # 10 Gbit / s
    parse_quantity("5 lightyears", Time)      # QuantityError: one sentence, in both languages

What can be read two ways is asked about, never guessed: "200G" of bandwidth may be bits or bytes.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

from advisor.units import Kind, Q, Quantity, kind_of, unit

#: Nobody types more than this.
LONGEST = 80


class QuantityError(ValueError):
    """A text that is not the quantity asked for. `text` holds one sentence per language; `str()` is the English one."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.text = {"en": en, "zh": zh}


_NUMBER = re.compile(r"[+-]?(?:\d[\d,_' ]*\d|\d)?(?:\.\d+)?(?:e[+-]?\d{1,3})?", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(?:[,_' ]\d{3})+|\d+")

#: Words that multiply. A letter is read by case: "m" stands for metre, minute or milli elsewhere, so only M is a million.
_CHINESE = {
    "百万": 1e6,
    "千万": 1e7,
    "十亿": 1e9,
    "百亿": 1e10,
    "千亿": 1e11,
    "万亿": 1e12,
    "千": 1e3,
    "万": 1e4,
    "亿": 1e8,
}
_ENGLISH = {"thousand": 1e3, "million": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
_LETTERS = {"K": 1e3, "k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}

_COUNTS = {
    "token": ("", "token", "tokens", "tok", "toks", "词元", "个token", "个词元", "个tokens"),
    "parameter": ("", "parameter", "parameters", "param", "params", "参数", "个参数"),
    "GPU": ("", "gpu", "gpus", "card", "cards", "卡", "张", "张卡", "块", "块卡", "个gpu", "张gpu"),
    "node": ("", "node", "nodes", "server", "servers", "节点", "个节点", "台", "台机器", "机"),
    "request": ("", "request", "requests", "请求", "个请求", "次", "次请求"),
    "": ("", "x", "times", "倍", "次"),
}
_TIME = {
    "s": ("s", "sec", "secs", "second", "seconds", "秒", "秒钟"),
    "min": ("min", "mins", "minute", "minutes", "分", "分钟"),
    "h": ("h", "hr", "hrs", "hour", "hours", "小时", "个小时", "时"),
    "day": ("d", "day", "days", "天", "日"),
    "week": ("w", "week", "weeks", "周", "星期", "个星期", "个周"),
    "month": ("month", "months", "mo", "月", "个月"),
    "year": ("y", "yr", "year", "years", "年"),
}
_USD = ("$", "usd", "us$", "dollar", "dollars", "美元", "美金", "刀")
_CNY = ("¥", "cny", "rmb", "yuan", "元", "块", "人民币", "块钱", "圆")
_SIZE = re.compile(r"([KkMGTPE])?(i)?(B|b|bit|bits|byte|bytes|字节|比特)?")

_EXAMPLES = {
    "token": "200M tokens, 2亿 token",
    "parameter": "8B, 70亿",
    "GPU": "8, 8 卡",
    "node": "4, 4 台",
    "request": "1000",
    "": "0.5, 50 %",
    "B": "80 GB, 1.5 TB, 16 GiB",
    "B/s": "10 Gbit/s, 2 GB/s",
    "s": "3 days, 12 h, 3 天",
    "USD": "$500, 3.5万元",
}


def parse_quantity(text: Any, kind: Any, *, default_unit: str | None = None) -> Quantity:
    """The quantity in `text`, of a type of `advisor.units` (`Tokens`, `Bytes`, ...), a `Kind` or a unit's name.

    default_unit: what a bare number means ("h": "12" is twelve hours). Counts (tokens, cards) need none.
    A per-GPU or per-node kind reads its text as the plain kind: "80 GB" of `BytesPerGPU` is 80 GB / GPU.
    Raises QuantityError with one sentence; zero is allowed, negative and infinite values are not.
    """
    wanted, per = _plain_kind(kind)
    if isinstance(text, Quantity):
        return _checked(text, str(text), wanted, per)
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise _refuse(repr(text)[:LONGEST], wanted)
    shown = str(text).strip()
    if len(shown) > LONGEST:
        raise QuantityError(
            f"A quantity has at most {LONGEST} characters, but this has {len(shown)}.",
            f"一个数量最多 {LONGEST} 个字符，这里有 {len(shown)} 个。",
        )
    clean = unicodedata.normalize("NFKC", shown).replace("￥", "¥").strip()
    number, rest = _number(clean, shown, wanted)
    rest = re.sub(r"\s+", "", rest)
    value = _with_unit(number, rest, shown, wanted, default_unit)
    return _checked(value, shown, wanted, per)


def _plain_kind(kind: Any) -> tuple[str, str]:
    """(the reader's name for the kind, what it is per): `BytesPerGPU` -> ("B", " / GPU")."""
    name = kind if isinstance(kind, str) else (kind if isinstance(kind, Kind) else kind_of(kind)).unit
    per = ""
    for one in (" / GPU", " / node"):
        if name.endswith(one):
            name, per = name.removesuffix(one), one
    dimension = unit(name).dimensionality
    for reader in ("token", "parameter", "GPU", "node", "request", "", "B", "B/s", "s", "USD"):
        if unit(reader).dimensionality == dimension:
            return reader, per
    if dimension == unit("CNY").dimensionality:
        return "USD", per
    raise TypeError(f"No way to read a quantity in {name!r} from text.")


def _number(clean: str, shown: str, wanted: str) -> tuple[float, str]:
    """The leading number and what follows; a currency sign may stand before it."""
    sign = ""
    for word in ("US$", "$", "¥", "USD", "CNY", "RMB"):
        if clean.upper().startswith(word):
            sign, clean = word, clean[len(word) :].strip()
            break
    match = _NUMBER.match(clean)
    digits = match.group() if match else ""
    if not re.search(r"\d", digits):
        raise _refuse(shown, wanted)
    whole = re.split(r"[.eE]", digits.lstrip("+-"), maxsplit=1)[0]
    if whole and not _GROUPED.fullmatch(whole):
        raise QuantityError(
            f"The number in {shown!r} is grouped oddly: write 1,000,000 or 1000000.",
            f"“{shown}”里的数字分组不清楚：请写 1,000,000 或 1000000。",
        )
    return float(re.sub(r"[,_' ]", "", digits)), clean[match.end() :] + (sign and f" {sign}")


def _multiplier(rest: str, letters: bool) -> tuple[float, str]:
    """A multiplying word at the start of `rest`, and what follows it."""
    for words in (_CHINESE, _ENGLISH):
        for word in sorted(words, key=len, reverse=True):
            if rest.lower().startswith(word):
                return words[word], rest[len(word) :]
    if letters and rest[:1] in _LETTERS:
        return _LETTERS[rest[0]], rest[1:]
    return 1.0, rest


def _with_unit(number: float, rest: str, shown: str, wanted: str, default_unit: str | None) -> Quantity:
    if not rest and default_unit is not None:
        return Q(number, unit(default_unit))
    if wanted == "":
        if rest in ("%", "percent"):
            return Q(number / 100, unit(""))
        if rest == "‰":
            return Q(number / 1000, unit(""))
    if wanted in _COUNTS:
        if rest.lower() in _COUNTS[wanted]:
            return Q(number, unit(wanted))
        factor, rest = _multiplier(rest, letters=True)
        if rest.lower() in _COUNTS[wanted]:
            return Q(number * factor, unit(wanted))
    elif wanted == "s":
        factor, rest = _multiplier(rest, letters=False)
        for name, words in _TIME.items():
            if rest.lower() in words and rest not in ("M", "S", "H", "D", "W", "Y"):
                return Q(number * factor, unit(name))
    elif wanted == "USD":
        return _money(number, rest, shown)
    elif wanted in ("B", "B/s"):
        return _size(number, rest, shown, rate=wanted == "B/s")
    raise _refuse(shown, wanted, unit_missing=not rest)


def _money(number: float, rest: str, shown: str) -> Quantity:
    factor, rest = _multiplier(rest, letters=True)
    words = rest.lower()
    if words in _USD or (words.startswith("美") and words in _USD):
        return Q(number * factor, unit("USD"))
    if words in _CNY:
        return Q(number * factor, unit("CNY"))
    raise _refuse(shown, "USD", unit_missing=not rest)


def _size(number: float, rest: str, shown: str, rate: bool) -> Quantity:
    """Bytes or bits, or either a second. The letter's case tells bit from byte, as everywhere in this field."""
    factor, rest = _multiplier(rest, letters=False)
    body, second = rest, False
    for ending in ("/s", "/sec", "/second", "/秒", "ps", "每秒"):
        if body.lower().endswith(ending):
            body, second = body[: -len(ending)], True
            break
    if re.fullmatch(r"[kmgtpe]i?b", body):  # all small: "80gb" of a size is bytes; of a rate nobody can tell, but for "gbps"
        if not rate:
            body = body[:-1] + "B"
        elif not rest.lower().endswith("ps"):
            body = body[:-1]
    match = _SIZE.fullmatch(body) or _SIZE.fullmatch(body[:1].upper() + body[1:])
    if match is None or not body or (rate and not second and match[3] is None):
        if rate and match is not None and body:
            raise _either(shown, number, match[1] or "G")
        raise _refuse(shown, "B/s" if rate else "B", unit_missing=not body)
    if second and not rate:
        raise _refuse(shown, "B")
    if rate and not second:
        raise QuantityError(
            f"{shown!r} is a size: a bandwidth is a size per second, such as {_EXAMPLES['B/s']}.",
            f"“{shown}”是容量：带宽是每秒的容量，例如 {_EXAMPLES['B/s']}。",
        )
    prefix, binary, word = match.groups()
    bits = word in ("b", "bit", "bits", "比特")
    if second and word is None:
        raise _either(shown, number, prefix or "G")
    if bits and not rate:
        raise QuantityError(
            f"{shown!r} is in bits: a size is in bytes, such as {_EXAMPLES['B']}.",
            f"“{shown}”以比特为单位：容量请用字节，例如 {_EXAMPLES['B']}。",
        )
    name = {"K": "K" if binary else "k", "k": "K" if binary else "k"}.get(prefix or "", prefix or "") + ("i" if binary else "")
    name += "bit" if bits else "B"
    return Q(number * factor, unit(f"{name} / s" if rate else name))


def _either(shown: str, number: float, prefix: str) -> QuantityError:
    return QuantityError(
        f"{shown!r} can be bits or bytes: write {number:g} {prefix}bit/s or {number:g} {prefix}B/s.",
        f"“{shown}”可能是比特也可能是字节：请写 {number:g} {prefix}bit/s 或 {number:g} {prefix}B/s。",
    )


def _checked(value: Quantity, shown: str, wanted: str, per: str) -> Quantity:
    wide = unit(wanted).dimensionality if wanted else unit("").dimensionality
    money = wanted == "USD" and value.dimensionality == unit("CNY").dimensionality
    if per and value.dimensionality != wide and not money:
        return value  # already per GPU: the record that takes it checks it
    if value.dimensionality != wide and not money:
        raise _refuse(shown, wanted)
    if not math.isfinite(value.magnitude):
        raise QuantityError(f"{shown!r} is too large a number.", f"“{shown}”这个数太大了。")
    if value.magnitude < 0:
        raise QuantityError(f"{shown!r} is below zero.", f"“{shown}”小于零。")
    return value / Q(1, unit(per.removeprefix(" / "))) if per else value


def _refuse(shown: str, wanted: str, unit_missing: bool = False) -> QuantityError:
    examples = _EXAMPLES[wanted]
    en, zh = ("has no unit", "“{}”缺少单位") if unit_missing else ("is not understood", "看不懂“{}”")
    return QuantityError(f"{shown!r} {en}: write it like {examples}.", f"{zh.format(shown)}：请写成 {examples} 这样。")
