"""A scenario in a link: URL-safe text of the keys that were given, and back under strict limits.

    token = encode({"model": "llama-3.1-8b", "method": "lora", "tokens": "200 Mtoken"})     # "1.eNqrVs..."
    decode(token)                                                                            # the same dictionary

The token is `1.` + base64url(zlib(JSON)), without padding. `decode` opens what strangers send: it bounds the length, the
unpacked size, the depth, the number of parts and the length of each text before anything else sees them, and refuses with one
sentence per language. Whether the scenario makes sense is `advisor.scenario.Scenario.from_dict`'s business.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import zlib
from typing import Any

from advisor.quantities import QuantityError

VERSION = "1"
#: Characters of a token: mail programs and chat tools still carry links of this length. A model's whole config.json fits.
LONGEST_TOKEN = 6000
#: Bytes of unpacked JSON.
LARGEST_JSON = 64_000
DEEPEST = 8
MOST_PARTS = 4000
LONGEST_TEXT = 2000

_ALPHABET = re.compile(r"[A-Za-z0-9_-]+")


class LinkError(QuantityError):
    """A link that carries no plan of ours. `text` holds one sentence per language; `str()` is the English one."""


def encode(given: dict[str, Any]) -> str:
    """The token of a scenario's given keys. Raises LinkError when it would be refused on the way back."""
    check(given)
    try:
        text = json.dumps(given, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        raise _odd() from None
    token = f"{VERSION}." + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).rstrip(b"=").decode()
    if len(token) > LONGEST_TOKEN or len(text.encode()) > LARGEST_JSON:
        raise LinkError(
            "This plan is too large for a link; save it as a file instead.", "这个方案太大，放不进链接；请改为保存成文件。"
        )
    return token


def decode(token: Any) -> dict[str, Any]:
    """The dictionary in a token. Raises LinkError with one sentence on anything else."""
    if not isinstance(token, str) or not token:
        raise LinkError("The link carries no plan.", "链接里没有方案。")
    if len(token) > LONGEST_TOKEN:
        raise LinkError(
            f"The link's plan has {len(token)} characters; at most {LONGEST_TOKEN} are read.",
            f"链接里的方案有 {len(token)} 个字符，最多读取 {LONGEST_TOKEN} 个。",
        )
    version, dot, body = token.partition(".")
    if dot and version.isdecimal() and version.isascii() and version != VERSION:
        raise LinkError(
            "The link was made by another version of this program, which this one cannot read.",
            "链接由本程序的另一个版本生成，当前版本无法读取。",
        )
    if version != VERSION or not _ALPHABET.fullmatch(body):
        raise _damaged()
    try:
        packed = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        reader = zlib.decompressobj()
        raw = reader.decompress(packed, LARGEST_JSON + 1)
    except (binascii.Error, ValueError, zlib.error):
        raise _damaged() from None
    if len(raw) > LARGEST_JSON:
        raise LinkError("The link's plan is too large to be one.", "链接里的内容过大，不是一个方案。")
    if not reader.eof or reader.unused_data:
        raise _damaged()
    try:
        given = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _damaged() from None
    check(given)
    return given


def check(given: Any) -> None:
    """Raise LinkError unless `given` is a dictionary of plain JSON values within the limits above."""
    if not isinstance(given, dict):
        raise _odd()
    left = MOST_PARTS
    waiting: list[tuple[Any, int]] = [(given, 1)]
    while waiting:
        part, depth = waiting.pop()
        left -= 1
        if left < 0 or depth > DEEPEST:
            raise LinkError("The link's plan is nested too deeply or has too many parts.", "链接里的方案嵌套过深或内容过多。")
        if isinstance(part, dict):
            for key in part:
                if not isinstance(key, str) or len(key) > 100:
                    raise _odd()
            waiting += [(value, depth + 1) for value in part.values()]
        elif isinstance(part, list):
            waiting += [(value, depth + 1) for value in part]
        elif isinstance(part, str):
            if len(part) > LONGEST_TEXT:
                raise LinkError("A text in the link's plan is too long.", "链接里的方案有一段文字过长。")
        elif isinstance(part, float):
            if not math.isfinite(part):
                raise _odd()
        elif isinstance(part, int):
            if abs(part) > 10**24:
                raise _odd()
        elif part is not None:
            raise _odd()


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _damaged() -> LinkError:
    return LinkError(
        "The link is damaged: part of it is missing or changed. Ask for it again.",
        "链接已损坏：有一部分缺失或被改动。请重新索取。",
    )


def _odd() -> LinkError:
    return LinkError("The link does not hold a plan of this program.", "链接里不是本程序的方案。")
