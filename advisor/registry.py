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

NUMBERS = (int, float, np.ndarray, np.generic)


@functools.lru_cache(maxsize=4096)
def _product(left: Any, right: Any) -> Any:
    return left * right


@functools.lru_cache(maxsize=4096)
def _ratio(left: Any, right: Any) -> Any:
    return left / right


@functools.lru_cache(maxsize=4096)
def _factor(source: Any, target: Any) -> float:
    """What a magnitude in `source` is multiplied with to be in `target`. Raises pint's DimensionalityError."""
    return registry.convert(1.0, source, target)


@functools.lru_cache(maxsize=1024)
def _container(text: str) -> Any:
    return registry.parse_units(text)._units


class QuickQuantity(PintQuantity):
    """pint's Quantity with short cuts where both sides are ours; it behaves the same, which a test checks."""

    def __new__(cls, value: Any, units: Any = None) -> Any:
        if isinstance(value, NUMBERS):
            if isinstance(units, str):
                return cls._of(value, _container(units))
            if isinstance(units, Unit):
                return cls._of(value, units._units)
        return super().__new__(cls, value, units)

    @classmethod
    def _of(cls, magnitude: Any, units: Any) -> QuickQuantity:
        made = object.__new__(cls)
        made._magnitude = magnitude
        made._units = units
        return made

    def _in(self, units: Any) -> Any:
        if self._units is units or self._units == units:
            return self._magnitude
        return self._magnitude * _factor(self._units, units)

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

    def _add_sub(self, other: Any, op: Callable) -> Any:
        if type(other) is type(self):
            return self._of(op(self._magnitude, other._in(self._units)), self._units)
        return super()._add_sub(other, op)

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

    def compare(self, other: Any, op: Callable) -> Any:
        """Order two quantities of one dimension."""
        if type(other) is type(self):
            return op(self._magnitude, other._in(self._units))
        return super().compare(other, op)

    def __eq__(self, other: Any) -> Any:
        if type(other) is type(self) and self._units == other._units:
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
