"""The user's own prices, from a CSV: one row per quote, one plain sentence per row that cannot be used.

Columns (any order, English or Chinese headers): gpu, price, currency, per ("GPU" or "instance"), as_of; and where known
provider, region, instance, gpus, mode, per_time ("hour" or "month"), network_gbps, minimum_hours, note, origin.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from advisor import catalog
from advisor.budget.money import CURRENCIES, BudgetError
from advisor.budget.offers import PRICED_MODES
from advisor.budget.records import Quote
from advisor.units import Q, Record, UnitError, unit

COLUMNS = (
    "provider",
    "region",
    "instance",
    "gpu",
    "gpus",
    "per",
    "mode",
    "price",
    "per_time",
    "currency",
    "as_of",
    "network_gbps",
    "minimum_hours",
    "note",
    "origin",
)
REQUIRED = ("gpu", "price", "currency", "per", "as_of")
HEADERS = {
    "厂商": "provider",
    "云厂商": "provider",
    "供应商": "provider",
    "地域": "region",
    "区域": "region",
    "机型": "instance",
    "实例": "instance",
    "显卡": "gpu",
    "卡型": "gpu",
    "型号": "gpu",
    "卡数": "gpus",
    "计价单位": "per",
    "计费方式": "mode",
    "价格": "price",
    "单价": "price",
    "计费周期": "per_time",
    "币种": "currency",
    "货币": "currency",
    "日期": "as_of",
    "报价日期": "as_of",
    "带宽": "network_gbps",
    "起租时长": "minimum_hours",
    "备注": "note",
    "date": "as_of",
    "card": "gpu",
    "count": "gpus",
    "unit": "per",
}
WORDS = {
    "per": {
        "gpu": "GPU",
        "card": "GPU",
        "卡": "GPU",
        "单卡": "GPU",
        "instance": "instance",
        "machine": "instance",
        "server": "instance",
        "node": "instance",
        "整机": "instance",
        "台": "instance",
    },
    "mode": {
        "按量付费": "on_demand",
        "按量": "on_demand",
        "按需": "on_demand",
        "on-demand": "on_demand",
        "竞价": "spot",
        "竞价实例": "spot",
        "抢占式实例": "spot",
        "预留1年": "reserved_1y",
        "包年": "reserved_1y",
        "预留3年": "reserved_3y",
    },
    "per_time": {
        "hour": "h",
        "h": "h",
        "小时": "h",
        "时": "h",
        "month": "month",
        "月": "month",
        "day": "day",
        "天": "day",
        "year": "year",
        "年": "year",
    },
    "currency": {"元": "CNY", "人民币": "CNY", "rmb": "CNY", "cny": "CNY", "¥": "CNY", "usd": "USD", "$": "USD", "美元": "USD"},
}


@dataclass(frozen=True, kw_only=True)
class QuoteFile(Record):
    """What a price file held: the quotes that can be used, and a sentence for each row that cannot."""

    quotes: tuple[Quote, ...]
    problems: tuple[dict, ...]


def read_quotes(given: str | bytes | Path) -> QuoteFile:
    """Read a price CSV from its text, its bytes (UTF-8 or GB 18030) or its path. Never raises on its content."""
    text = _text(given)
    lines = text.splitlines()
    if not lines or not text.strip():
        return QuoteFile(quotes=(), problems=(_both("The file is empty.", "文件为空。"),))
    delimiter = max(",;\t，", key=lines[0].count)
    if delimiter == "，":
        text, delimiter = text.replace("，", ","), ","
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error as error:
        return QuoteFile(quotes=(), problems=(_both(f"The file is no CSV: {error}.", f"文件不是有效的 CSV：{error}。"),))
    header = [
        HEADERS.get(cell.strip(), HEADERS.get(cell.strip().lower(), cell.strip().lower().replace(" ", "_"))) for cell in rows[0]
    ]
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        names = ", ".join(missing)
        return QuoteFile(
            quotes=(),
            problems=(_both(f"The first row must name the columns; missing: {names}.", f"首行须为列名，缺少：{names}。"),),
        )
    quotes, problems = [], []
    unknown = sorted(set(header) - set(COLUMNS) - {""})
    if unknown:
        problems.append(
            _both(f"Column {unknown[0]!r} is not known and was left out.", f"未知列 {unknown[0]!r}，已忽略。"),
        )
    for number, row in enumerate(rows[1:], start=2):
        cells = {name: cell.strip() for name, cell in zip(header, row, strict=False) if cell.strip()}
        if not cells:
            continue
        try:
            quotes.append(_quote(cells))
        except (BudgetError, UnitError, catalog.CatalogError) as error:
            problems.append(_both(f"Row {number}: {error}", f"第 {number} 行：{error}"))
    return QuoteFile(quotes=tuple(quotes), problems=tuple(problems))


def _text(given: str | bytes | Path) -> str:
    raw = given.read_bytes() if isinstance(given, Path) else given
    if isinstance(raw, bytes):
        try:
            raw = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raw = raw.decode("gb18030", errors="replace")
    return raw.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def _both(en: str, zh: str) -> dict[str, str]:
    return {"en": en, "zh": zh}


def _word(name: str, cells: dict[str, str], default: str | None, allowed: Iterable[str]) -> str:
    given = cells.get(name, default)
    if given is None:
        raise BudgetError(f"{name} is empty; allowed: {', '.join(allowed)}.")
    table = WORDS.get(name, {})
    result = table.get(given, table.get(given.lower(), given))
    if result not in allowed:
        raise BudgetError(f"{name} must be one of {', '.join(allowed)}, but was given {given!r}.")
    return result


def _number(name: str, cells: dict[str, str], default: float | None = None) -> float:
    given = cells.get(name)
    if given is None:
        if default is None:
            raise BudgetError(f"{name} is empty.")
        return default
    try:
        return float(given.replace(",", "").lstrip("$¥"))
    except ValueError:
        raise BudgetError(f"{name} must be a number, but was given {given!r}.") from None


def _quote(cells: dict[str, str]) -> Quote:
    if "gpu" not in cells:
        raise BudgetError("gpu is empty: name the card.")
    currency = _word("currency", cells, None, CURRENCIES)
    per = _word("per", cells, None, ("GPU", "instance"))
    time = _word("per_time", cells, "hour", ("h", "day", "month", "year"))
    gpus = _number("gpus", cells, 1.0)
    if per == "instance" and "gpus" not in cells:
        raise BudgetError("gpus is empty: a price per instance needs the number of cards in it.")
    if gpus != int(gpus) or gpus < 1:
        raise BudgetError(f"gpus must be a whole number of at least 1, but was given {cells['gpus']!r}.")
    shortest = _number("minimum_hours", cells, {"h": 0.0, "day": 24.0, "month": 730.0, "year": 8760.0}[time])
    network = None if "network_gbps" not in cells else Q(_number("network_gbps", cells), unit("Gbit / s"))
    return Quote(
        provider=cells.get("provider", "your quote"),
        region=cells.get("region", ""),
        instance=cells.get("instance", ""),
        gpu=catalog.gpu(cells["gpu"]).name,
        gpus=int(gpus),
        per=per,
        mode=_word("mode", cells, "on_demand", PRICED_MODES),
        price=Q(_number("price", cells), unit(f"{currency} / {time}")).to(f"{currency} / h"),
        as_of=cells.get("as_of", ""),
        network=network,
        minimum_time=Q(shortest, unit("h")),
        note=cells.get("note", ""),
        origin=_word("origin", cells, "quote", ("quote", "refresh")),
    )


def write_quotes(quotes: Iterable[Quote]) -> str:
    """The CSV text that `read_quotes` reads back to the same quotes."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for one in quotes:
        currency = "USD" if "[currency_usd]" in one.price.dimensionality else "CNY"
        writer.writerow(
            {
                "provider": one.provider,
                "region": one.region,
                "instance": one.instance,
                "gpu": one.gpu,
                "gpus": one.gpus,
                "per": one.per,
                "mode": one.mode,
                "price": f"{one.price.m_as(f'{currency} / h'):.10g}",
                "per_time": "hour",
                "currency": currency,
                "as_of": one.as_of,
                "network_gbps": "" if one.network is None else f"{one.network.m_as('Gbit / s'):g}",
                "minimum_hours": f"{one.minimum_time.m_as('h'):g}",
                "note": one.note,
                "origin": one.origin,
            }
        )
    return out.getvalue()
