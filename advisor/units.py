"""The one unit registry, the named quantity types, and the record base that checks them.

Every number with a dimension in this project is a `Quantity` of this registry. A record declares each field as one of the
quantity types below; the declaration is the check, the display unit and the documentation at once:

    @dataclass(frozen=True, kw_only=True)
    class Disk(Record):
        size: Bytes
        price: MoneyPerTime | None = None

`Disk(size=Q(3, "s"))` raises `UnitError` with a sentence that names the record, the field, what is needed and what was given.
Fields hold scalars or NumPy arrays that broadcast: one formula serves one plan and a million candidates.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
import typing
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, Self, get_args, get_origin

import numpy as np

from advisor.registry import known, registry, unit_of

Quantity = registry.Quantity
Q = Quantity

#: Unit objects by name, made once: `Q(1.5, unit("GiB"))` is ten times faster than `Q(1.5, "GiB")`.
unit = functools.lru_cache(maxsize=None)(unit_of)


class UnitError(ValueError):
    """A value whose dimension, type or range is not the one the field needs. The message is one plain sentence."""


@dataclass(frozen=True)
class Kind:
    """What a quantity field accepts.

    unit: the display unit; any unit of the same dimension is accepted.
    also: display units of further accepted dimensions (money in another currency).
    minimum: smallest value accepted, in any of these units (0 or -inf).
    met: ids of the known units (`advisor.registry.known`) that were found to be of this dimension.
    """

    unit: str
    also: tuple[str, ...] = ()
    minimum: float = 0.0
    met: set[int] = field(default_factory=set, repr=False, compare=False)


def _kind(*units: str, minimum: float = 0.0) -> Any:
    return Annotated[Quantity, Kind(units[0], units[1:], minimum)]


Fraction = _kind("")
Signed = _kind("", minimum=-np.inf)
Bytes = _kind("GB")
BytesPerGPU = _kind("GiB / GPU")
BytesPerNode = _kind("GiB / node")
BytesPerParameter = _kind("B / parameter")
BytesPerToken = _kind("B / token")
Bandwidth = _kind("GB / s")
BandwidthPerGPU = _kind("GB / s / GPU")
BandwidthPerNode = _kind("GB / s / node")
Time = _kind("s")
Frequency = _kind("1 / h")
FailureRate = _kind("1 / GPU / h")
Flop = _kind("FLOP")
FlopPerToken = _kind("FLOP / token")
FlopRate = _kind("TFLOP / s")
FlopRatePerGPU = _kind("TFLOP / s / GPU")
Tokens = _kind("token")
TokenRate = _kind("token / s")
TokenRatePerGPU = _kind("token / s / GPU")
Parameters = _kind("parameter")
GPUs = _kind("GPU")
GPUTime = _kind("GPU * h")
Money = _kind("USD", "CNY")
MoneyPerTime = _kind("USD / h", "CNY / h")
MoneyPerGPUTime = _kind("USD / GPU / h", "CNY / GPU / h")
MoneyPerBytesTime = _kind("USD / GB / month", "CNY / GB / month")
MoneyPerBytes = _kind("USD / GB", "CNY / GB")
MoneyPerRequest = _kind("USD / request", "CNY / request")
MoneyPerEnergy = _kind("USD / kWh", "CNY / kWh")
Power = _kind("kW")
Energy = _kind("kWh")
Requests = _kind("request")
RequestRate = _kind("request / s")

Integer = int | np.ndarray
Flag = bool | np.ndarray
Word = str | np.ndarray


def _compatible(units: Any, kind: Kind) -> bool:
    """Whether units are of the kind's dimension; remembered in the kind where they are."""
    dimensionality = registry.get_dimensionality(units)
    good = any(dimensionality == unit(name).dimensionality for name in (kind.unit, *kind.also))
    if good and (same := known(units)) is not None:
        kind.met.add(id(same))
    return good


@functools.cache
def display_unit(value_units: Any, kind: Kind) -> str:
    """The unit of `kind` that a value in `value_units` is shown in (its own currency stays its own)."""
    dimensionality = registry.get_dimensionality(value_units)
    return next(name for name in (kind.unit, *kind.also) if unit(name).dimensionality == dimensionality)


def describe(value: Any) -> str:
    """Say in a few words what was given: a quantity with its dimension, or a plain value with its type."""
    if isinstance(value, Quantity):
        return f"{value:~} ({value.dimensionality or 'dimensionless'})"
    return f"{value!r} ({type(value).__name__})"


def check_quantity(where: str, value: Any, kind: Kind) -> None:
    """Raise `UnitError` unless `value` is a quantity of `kind`, finite where scalar, and not below its minimum."""
    if not isinstance(value, Quantity):
        raise UnitError(f"{where} needs a quantity in {kind.unit or 'no unit'}, but was given {describe(value)}.")
    if id(value._units) not in kind.met and not _compatible(value._units, kind):
        allowed = " or ".join(name or "no unit" for name in (kind.unit, *kind.also))
        needed = unit(kind.unit).dimensionality
        raise UnitError(f"{where} needs {needed or 'dimensionless'} (such as {allowed}), but was given {describe(value)}.")
    magnitude = value._magnitude
    if isinstance(magnitude, np.ndarray) and magnitude.ndim:
        if not (magnitude >= kind.minimum).all():  # false for NaN too
            raise UnitError(f"{where} must be at least {kind.minimum:g} {kind.unit}, but an element is not.")
    elif not magnitude >= kind.minimum:
        raise UnitError(f"{where} must be at least {kind.minimum:g} {kind.unit}, but was given {describe(value)}.")


def _check_plain(where: str, value: Any, expected: Any) -> None:
    """Check a field that is not a quantity: a closed choice, an integer, a flag, a text or a nested record."""
    if expected is Any or type(value) is expected:
        return
    if get_origin(expected) is Literal:
        _check_choice(where, value, get_args(expected))
    elif expected in (int, Integer):
        integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not integer and not (expected is Integer and isinstance(value, np.ndarray) and value.dtype.kind in "iu"):
            raise UnitError(f"{where} must be a whole number, but was given {describe(value)}.")
    elif expected is bool:
        if not isinstance(value, (bool, np.bool_)):
            raise UnitError(f"{where} must be true or false, but was given {describe(value)}.")
    elif isinstance(expected, type) and not isinstance(value, expected):
        raise UnitError(f"{where} must be a {expected.__name__}, but was given {describe(value)}.")


def _check_choice(where: str, value: Any, choices: tuple) -> None:
    values = np.unique(value) if isinstance(value, np.ndarray) else (value,)
    for one in values:
        if one not in choices:
            raise UnitError(f"{where} must be one of {', '.join(map(str, choices))}, but was given {one!r}.")


def _split_optional(hint: Any) -> tuple[Any, bool]:
    """`X | None` -> (X, True); anything else -> (hint, False)."""
    if get_origin(hint) in (typing.Union, types.UnionType):
        rest = [part for part in get_args(hint) if part is not type(None)]
        if len(rest) < len(get_args(hint)):
            return functools.reduce(operator.or_, rest), True
    return hint, False


def kind_of(hint: Any) -> Kind | None:
    """The `Kind` of an annotated quantity type, or None."""
    if get_origin(hint) is Annotated:
        return next((part for part in hint.__metadata__ if isinstance(part, Kind)), None)
    return None


@functools.cache
def _hint(text: Any, module: str) -> tuple[Any, Kind | None, bool]:
    """(type, kind, whether None is allowed) of an annotation. `typing.get_type_hints` would read "str" anew for each field."""
    hint = eval(text, vars(sys.modules[module])) if isinstance(text, str) else text  # noqa: S307 (annotations of our code)
    hint, optional = _split_optional(hint)
    return hint, kind_of(hint), optional


@functools.cache
def schema(record_type: type) -> dict[str, tuple[Any, Kind | None, bool]]:
    """Per field of a record type: (type, kind of quantity or None, whether None is allowed)."""
    hints = {}
    for base in reversed(record_type.__mro__):
        for name, text in vars(base).get("__annotations__", {}).items():
            hints[name] = _hint(text, base.__module__)
    return {one.name: hints[one.name] for one in fields(record_type)}


@functools.cache
def checks(record_type: type) -> tuple[tuple[str, Any, Kind | None, bool, tuple[type, ...]], ...]:
    """The fields of a record type that are checked: name, type, kind, whether None is allowed, types that need no look."""
    found = []
    for name, (hint, kind, optional) in schema(record_type).items():
        if kind is None and get_origin(hint) is not Literal and hint not in (int, Integer) and not isinstance(hint, type):
            continue
        plain = {int: (int,), Integer: (int,)}.get(hint, (hint,) if isinstance(hint, type) else ())
        found.append((name, hint, kind, optional, plain))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Record:
    """Base of every record: checks each field against its declared type when it is made, and goes to JSON and back."""

    def __post_init__(self) -> None:
        values = self.__dict__
        for name, hint, kind, optional, passes in checks(type(self)):
            value = values[name]
            if kind is None:
                if type(value) in passes or (value is None and optional):
                    continue
                _check_plain(f"{type(self).__name__}.{name}", value, hint)
            elif type(value) is Quantity and type(value._magnitude) is float and id(value._units) in kind.met:
                if not value._magnitude >= kind.minimum:
                    check_quantity(f"{type(self).__name__}.{name}", value, kind)
            elif not (value is None and optional):
                check_quantity(f"{type(self).__name__}.{name}", value, kind)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary; quantities become {"value", "unit"} in their display unit."""
        return {name: to_json(getattr(self, name), kind) for name, (_, kind, _) in schema(type(self)).items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The record that `to_dict` wrote. Raises UnitError on a missing or wrong field."""
        unknown = set(data) - set(schema(cls))
        if unknown:
            raise UnitError(f"{cls.__name__} has no field {sorted(unknown)[0]!r}.")
        return cls(**{name: from_json(data[name], schema(cls)[name][0]) for name in data})


def to_json(value: Any, kind: Kind | None = None) -> Any:
    """Turn records, quantities, tuples and NumPy values into what `json.dumps` takes."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Quantity):
        name = display_unit(value._units, kind) if kind is not None else f"{value.units:~}"
        magnitude = value.m_as(name)
        return {"value": magnitude.tolist() if isinstance(magnitude, np.ndarray) else float(magnitude), "unit": name}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def from_json(value: Any, hint: Any = Any) -> Any:
    """The inverse of `to_json`, guided by a field's type."""
    if isinstance(value, dict) and set(value) == {"value", "unit"}:
        magnitude = value["value"]
        return Q(np.array(magnitude) if isinstance(magnitude, list) else magnitude, value["unit"])
    origin = get_origin(hint)
    if (origin is tuple or hint is tuple) and isinstance(value, list):
        item_hint = get_args(hint)[0] if origin is tuple else Any
        return tuple(from_json(item, item_hint) for item in value)
    if isinstance(value, dict) and hasattr(hint, "from_dict"):
        return hint.from_dict(value)
    if isinstance(value, dict):
        return {key: from_json(item) for key, item in value.items()}
    return value


def whole(value: Any) -> Any:
    """The next whole number at or above `value` (a plain number or a quantity, scalar or array).

    A value within 1e-9 (relative) of a whole number is that number: 80 GB / 10 GB is 8 and not 9 after a conversion that
    rounds up in the last bit. A quantity keeps its unit: `whole(Q(7.2, "GPU"))` is 8 GPU; a ratio of two units of one
    dimension is a plain number first: 1 h / 40 min is 2. Use nothing else to round up.
    """
    if isinstance(value, Quantity) and value._units and value.dimensionless:
        value = value.to(unit(""))
    magnitude = value.magnitude if isinstance(value, Quantity) else value
    nearest = np.rint(magnitude)
    exact = np.abs(magnitude - nearest) <= 1e-9 * np.maximum(np.abs(nearest), 1.0)
    result = np.where(exact, nearest, np.ceil(magnitude))
    result = result if np.ndim(magnitude) else float(result)
    if isinstance(value, Quantity):
        return Q(result, value.units)
    return result.astype(np.int64) if isinstance(result, np.ndarray) else int(result)


def where(condition: Any, yes: Any, no: Any) -> Any:
    """`np.where` that keeps scalars scalar: quantities in, quantities out, arrays only when an argument is one."""
    both = isinstance(yes, Quantity) and isinstance(no, Quantity)
    if isinstance(condition, (bool, np.bool_)):
        if both and yes._units is not no._units and yes.dimensionality != no.dimensionality:
            raise UnitError(f"where() needs two values of one dimension, but was given {describe(yes)} and {describe(no)}.")
        return yes if condition else no
    if both:
        return Q(np.where(condition, yes._magnitude, no.m_as(yes.units)), yes.units)
    return np.where(condition, yes, no)


def maximum(*values: Any) -> Any:
    """The elementwise largest of quantities or numbers of one dimension; scalar when all are."""
    return functools.reduce(lambda a, b: _scalar(np.maximum(a, b)), values)


def minimum(*values: Any) -> Any:
    """The elementwise smallest of quantities or numbers of one dimension; scalar when all are."""
    return functools.reduce(lambda a, b: _scalar(np.minimum(a, b)), values)


def _scalar(value: Any) -> Any:
    if isinstance(value, Quantity):
        return Q(value.magnitude.item(), value.units) if isinstance(value.magnitude, np.generic) else value
    return value.item() if isinstance(value, np.generic) else value
