"""The closed unit registry, with arithmetic made quick by what the registry leaves out.

No unit of ours has an offset or a logarithm: a conversion is one factor, a product of units one table look-up, and both are
kept by pair of units. What this subclass does not know goes to pint's own code, errors included.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pint
from pint.registry import Quantity as PintQuantity
from pint.registry import Unit, UnitRegistry
from pint.util import UnitsContainer

NUMBERS = (int, float, np.ndarray, np.generic)
#: The first container of each unit that was met, kept for good: its id stands for the unit, which is quicker than its hash.
_KNOWN: dict[UnitsContainer, UnitsContainer] = {}
#: More units than that are not ours but somebody's game; they are worked out by pint each time.
MOST = 4096


def known(units: UnitsContainer) -> UnitsContainer | None:
    """The one container that stands for these units; None where there are too many already."""
    found = _KNOWN.get(units)
    if found is None and len(_KNOWN) < MOST:
        found = _KNOWN[units] = units
    return found


def _by_id(work: Callable[..., Any]) -> Callable[..., Any]:
    """Remember `work` of one or two containers by their ids. Only ids of known containers are kept: they are never reused."""
    kept: dict[Any, Any] = {}

    def one(units: UnitsContainer) -> Any:
        try:
            return kept[id(units)]
        except KeyError:
            same, result = known(units), work(units)
            if same is not None:
                kept[id(same)] = result
            return result

    def two(left: UnitsContainer, right: UnitsContainer) -> Any:
        try:
            return kept[id(left), id(right)]
        except KeyError:
            first, second, result = known(left), known(right), work(left, right)
            if first is not None and second is not None:
                kept[id(first), id(second)] = result
            return result

    return functools.wraps(work)(one if work.__code__.co_argcount == 1 else two)


@_by_id
def _product(left: UnitsContainer, right: UnitsContainer) -> UnitsContainer:
    units = left * right
    return known(units) or units


@_by_id
def _ratio(left: UnitsContainer, right: UnitsContainer) -> UnitsContainer:
    units = left / right
    return known(units) or units


@_by_id
def _factor(source: UnitsContainer, target: UnitsContainer) -> float | None:
    """What a magnitude in `source` is multiplied with to be in `target`; None for the same. Raises DimensionalityError."""
    return None if source == target else registry.convert(1.0, source, target)


@_by_id
def _dimensions(units: UnitsContainer) -> UnitsContainer:
    return registry._get_dimensionality(units)


@_by_id
def _unit(units: UnitsContainer) -> Unit:
    return registry.Unit(known(units) or units)


@functools.lru_cache(maxsize=1024)
def _container(text: str) -> UnitsContainer:
    units = registry.parse_units(text)._units
    return known(units) or units


def unit_of(text: str) -> Unit:
    """The unit of that name, on its known container."""
    return registry.Unit(_container(text))


class QuickQuantity(PintQuantity):
    """pint's Quantity with short cuts where both sides are ours; it behaves the same, which a test checks."""

    def __new__(cls, value: Any, units: Any = None) -> Any:
        if type(value) is float or isinstance(value, NUMBERS):
            if isinstance(units, Unit):
                return cls._of(value, units._units)
            if isinstance(units, str):
                return cls._of(value, _container(units))
            if isinstance(units, UnitsContainer):
                return cls._of(value, units)
        return super().__new__(cls, value, units)

    @classmethod
    def _of(cls, magnitude: Any, units: UnitsContainer) -> QuickQuantity:
        made = object.__new__(cls)
        made._magnitude = magnitude
        made._units = units
        return made

    def _in(self, units: UnitsContainer) -> Any:
        if self._units is units:
            return self._magnitude
        factor = _factor(self._units, units)
        return self._magnitude if factor is None else self._magnitude * factor

    @property
    def units(self) -> Unit:
        """The unit, the same object for all quantities of it."""
        return _unit(self._units)

    @property
    def dimensionality(self) -> UnitsContainer:
        """The dimensions with their powers."""
        return _dimensions(self._units)

    @property
    def dimensionless(self) -> bool:
        """Whether this is a plain number in some unit."""
        return not _dimensions(self._units)

    def to(self, other: Any = None, *contexts: Any, **keywords: Any) -> Any:
        """The same quantity in another unit of its dimension."""
        if isinstance(other, str):
            units = _container(other)
        elif isinstance(other, self._REGISTRY.Unit):
            units = other._units
        else:
            return super().to(other, *contexts, **keywords)
        return self._of(self._in(units), units)

    def m_as(self, units: Any) -> Any:
        """The magnitude in `units`."""
        if isinstance(units, str):
            return self._in(_container(units))
        if isinstance(units, self._REGISTRY.Unit):
            return self._in(units._units)
        return super().m_as(units)

    def __add__(self, other: Any) -> Any:
        if type(other) is type(self):
            return self._of(self._magnitude + other._in(self._units), self._units)
        return super().__add__(other)

    def __sub__(self, other: Any) -> Any:
        if type(other) is type(self):
            return self._of(self._magnitude - other._in(self._units), self._units)
        return super().__sub__(other)

    def __mul__(self, other: Any) -> Any:
        if type(other) is type(self):
            return self._of(self._magnitude * other._magnitude, _product(self._units, other._units))
        if isinstance(other, NUMBERS):
            return self._of(self._magnitude * other, self._units)
        return super().__mul__(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if type(other) is type(self):
            return self._of(self._magnitude / other._magnitude, _ratio(self._units, other._units))
        if isinstance(other, NUMBERS):
            return self._of(self._magnitude / other, self._units)
        return super().__truediv__(other)

    def __rtruediv__(self, other: Any) -> Any:
        if isinstance(other, NUMBERS):
            return self._of(other / self._magnitude, _ratio(_container(""), self._units))
        return super().__rtruediv__(other)

    def compare(self, other: Any, op: Callable) -> Any:
        """Order two quantities of one dimension."""
        if type(other) is type(self):
            return op(self._magnitude, other._in(self._units))
        return super().compare(other, op)

    def __eq__(self, other: Any) -> Any:
        if type(other) is type(self) and (self._units is other._units or self._units == other._units):
            return self._magnitude == other._magnitude
        return super().__eq__(other)

    __hash__ = PintQuantity.__hash__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        quick = QUICK.get(ufunc)
        if quick is not None and method == "__call__" and not keywords and len(inputs) == 2:
            left, right = inputs
            if type(left) is type(right):
                return quick(left, right)
            if isinstance(left, np.ndarray) and ufunc is np.multiply:
                return right.__mul__(left)
        return super().__array_ufunc__(ufunc, method, *inputs, **keywords)


def _of_one_dimension(ufunc: Any) -> Callable:
    def apply(left: QuickQuantity, right: QuickQuantity) -> Any:
        return left._of(ufunc(left._magnitude, right._in(left._units)), left._units)

    return apply


#: Array functions of two quantities that need no more than a factor or a product of units.
QUICK: dict[Any, Callable] = {
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.add: _of_one_dimension(np.add),
    np.subtract: _of_one_dimension(np.subtract),
    np.maximum: _of_one_dimension(np.maximum),
    np.minimum: _of_one_dimension(np.minimum),
}


class Registry(UnitRegistry):
    """pint's registry, making our quantities."""

    Quantity: TypeAlias = QuickQuantity
    Unit: TypeAlias = Unit


registry = Registry(str(Path(__file__).with_name("units.txt")), cache_folder=None)
registry.formatter.default_format = "~"
pint.set_application_registry(registry)
