"""Reading `data/`: long CSV tables of one value a row, sources and constants. Everything here is lazy and cached."""

from __future__ import annotations

import csv
import functools
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from advisor.units import Q, Quantity, Record, unit


class CatalogError(ValueError):
    """A name, constant or table that the catalog does not hold. The message is one sentence with the nearest known name."""


@functools.cache
def data_folder() -> Path:
    """The folder of the tables: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "data", package.parent / "data"):
        if (folder / "sources.csv").exists():
            return folder
    raise CatalogError(f"No data folder with a sources.csv was found in {package} or beside it.")


def table(filename: str) -> list[dict[str, str]]:
    """All rows of a table of `data/`, such as "ownership.csv" or "constants/memory.csv", as text by column."""
    return list(_rows(filename))


@functools.cache
def _rows(filename: str) -> tuple[dict[str, str], ...]:
    path = data_folder() / filename
    if not path.is_file():
        known = sorted(str(file.relative_to(data_folder())) for file in data_folder().rglob("*.csv"))
        raise CatalogError(f"There is no table {filename!r} in data/{_hint(filename, known)}.")
    with path.open(encoding="utf-8", newline="") as lines:
        return tuple(csv.DictReader(lines))


class Fact(NamedTuple):
    """One value of a long table with where it comes from.

    value: as written; unit: "text", "flag", "date", or a unit of the registry ("" is a pure number).
    source: a key of sources.csv; confidence: high, medium, low or unknown.
    """

    name: str
    quantity: str
    value: str
    unit: str
    source: str
    as_of: str
    as_of_precision: str
    confidence: str
    note: str

    def read(self) -> Any:
        """The value itself: text, bool, int, or a quantity in its unit."""
        if self.unit in ("text", "date"):
            return self.value
        if self.unit == "flag":
            return self.value == "yes"
        if self.unit == "":
            return _number(self.value)
        return Q(float(self.value), unit(self.unit))


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


@functools.cache
def _facts(filename: str) -> dict[str, dict[str, tuple[Fact, ...]]]:
    path = data_folder() / filename
    result: dict[str, dict[str, tuple[Fact, ...]]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        next(rows)
        for row in rows:
            quantities = result.setdefault(row[0], {})
            quantities[row[1]] = (*quantities.get(row[1], ()), Fact(*row))
    return result


def names(filename: str) -> tuple[str, ...]:
    """The names a long table holds, in file order."""
    return tuple(_facts(filename))


@functools.cache
def youngest(filename: str) -> str:
    """The youngest date (ISO) of any fact in a long table."""
    return max(fact.as_of for quantities in _facts(filename).values() for known in quantities.values() for fact in known)


def facts(filename: str, name: str, as_of: str | None = None) -> dict[str, Fact]:
    """The facts on one name by quantity, as known on a date (ISO): of several values of a quantity the youngest counts.

    Tables grow by appending, so an older plan reads the values of its day. Quantities first recorded after `as_of` are absent.
    """
    if name not in _facts(filename):
        raise unknown(filename.removesuffix(".csv"), name, names(filename))
    result = {}
    for quantity, known in _facts(filename)[name].items():
        if len(known) == 1 and as_of is None:
            result[quantity] = known[0]
            continue
        youngest = max((fact for fact in known if as_of is None or fact.as_of <= as_of), key=_date, default=None)
        if youngest is not None:
            result[quantity] = youngest
    return result


def _date(fact: Fact) -> str:
    return fact.as_of


def fact(filename: str, name: str, quantity: str, as_of: str | None = None) -> Fact:
    """One fact with its unit, source, date, confidence and note. Raises CatalogError where the table has none."""
    found = facts(filename, name, as_of)
    if quantity not in found:
        raise CatalogError(f"{name} has no {quantity} in data/{filename}{_hint(quantity, found)}.")
    return found[quantity]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None when none is alike. Case, width and punctuation do not count."""
    wanted = plain(name)
    best, score = None, 0.4
    for candidate in known:
        other = plain(candidate)
        alike = SequenceMatcher(None, wanted, other).ratio()
        if wanted and (other.startswith(wanted) or wanted.startswith(other)):
            alike = max(alike, 0.6)
        if alike > score:
            best, score = candidate, alike
    return best


def plain(name: str) -> str:
    """`name` in lower case, half width, letters and digits only."""
    return "".join(sign for sign in unicodedata.normalize("NFKC", str(name)).lower() if sign.isalnum())


def _hint(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f"; the nearest known is {near!r}" if near else ""


def unknown(what: str, name: Any, known: Iterable[str], near: str | None = None) -> CatalogError:
    """The error for a name that a catalog does not hold: one sentence with the nearest known name or some known ones."""
    known = tuple(known)
    near = near or nearest(str(name), known)
    hint = f"the nearest known name is {near!r}" if near else f"known names are for example {', '.join(known[:3])}"
    return CatalogError(f"{what} {str(name)!r} is not in the catalog; {hint}.")


@dataclass(frozen=True, kw_only=True)
class Source(Record):
    """Where numbers come from: a row of sources.csv. locator: a section, an address or a commit."""

    key: str
    title: str
    locator: str
    as_of: str
    licence: str
    notes: str


@functools.cache
def sources() -> dict[str, Source]:
    """All sources by key."""
    return {
        row["key"]: Source(**{field: row[field] or "" for field in Source.__dataclass_fields__}) for row in table("sources.csv")
    }


def source(key: str) -> Source:
    """The source of that key. Raises CatalogError for an unknown one."""
    if key not in sources():
        raise unknown("source", key, sources())
    return sources()[key]


@functools.cache
def _constants(stage: str) -> dict[str, dict[str, str]]:
    if not (data_folder() / "constants" / f"{stage}.csv").is_file():
        stages = sorted(file.stem for file in (data_folder() / "constants").glob("*.csv"))
        raise unknown("the stage of constants", stage, stages)
    return {row["key"].removeprefix(f"{stage}."): row for row in table(f"constants/{stage}.csv")}


@functools.cache
def constant_row(key: str) -> dict[str, str]:
    """The row of `data/constants/<stage>.csv` for "<stage>.<key>": value, low, high, unit, source, confidence, explanation."""
    stage, _, name = key.partition(".")
    rows = _constants(stage)
    if name not in rows:
        raise unknown("constant", key, (f"{stage}.{one}" for one in rows))
    return rows[name]


@functools.cache
def constant(key: str) -> Quantity:
    """The value of an empirical constant, "<stage>.<key>", in its unit."""
    row = constant_row(key)
    return Q(float(row["value"]), unit(row["unit"]))


@functools.cache
def constant_range(key: str) -> tuple[Quantity, Quantity, Quantity]:
    """(low, value, high) of a constant; low and high are the value where the table gives none."""
    row = constant_row(key)
    return tuple(Q(float(row[bound] or row["value"]), unit(row["unit"])) for bound in ("low", "value", "high"))
