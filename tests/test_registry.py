"""The quick arithmetic does what pint does: every operation is compared with pint's own registry on the same definitions."""

from __future__ import annotations

import operator
import pickle

import numpy as np
import pint
import pytest

from advisor import registry as ours
from advisor.units import Q

PLAIN = pint.UnitRegistry(str(ours.__file__).replace("registry.py", "units.txt"), cache_folder=None)
VALUES = [
    (3.0, "GB"),
    (5.0, "GiB"),
    (2.0, "s"),
    (7.0, "GB / s"),
    (1.5, "TFLOP / s / GPU"),
    (4.0, ""),
    (np.array([1.0, 2.0]), "MiB"),
]
OPERATIONS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.ge, operator.eq]


def outcome(operation, left, right):
    try:
        result = operation(left, right)
    except pint.DimensionalityError as error:
        return "refused", {str(error.dim1), str(error.dim2)}
    if isinstance(result, pint.Quantity):
        base = result.to_base_units()
        return np.asarray(base.magnitude), sorted(base.unit_items())
    return np.asarray(result), []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
@pytest.mark.parametrize("left", VALUES, ids=str)
@pytest.mark.parametrize("right", VALUES, ids=str)
def test_same_result_as_pint(operation, left, right):
    mine, units = outcome(operation, Q(*left), Q(*right))
    theirs, their_units = outcome(operation, PLAIN.Quantity(*left), PLAIN.Quantity(*right))
    if isinstance(mine, str) or isinstance(theirs, str):
        assert (mine, units) == (theirs, their_units)
    else:
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        assert units == their_units


@pytest.mark.parametrize("number", [2, 2.5, np.float64(3), np.array([1.0, 4.0])], ids=str)
def test_plain_numbers_multiply_and_never_add(number):
    assert np.all((Q(3.0, "GB") * number).m_as("GB") == 3.0 * number)
    assert np.all((number * Q(3.0, "GB")).m_as("GB") == 3.0 * number)
    assert np.all((number / Q(3.0, "GB")).m_as("1 / GB") == number / 3.0)
    with pytest.raises(pint.DimensionalityError):
        Q(3.0, "GB") + number


def test_bytes_are_not_plain_numbers():
    """pint's default registry says 1 byte + 1 is 9; a per-GPU amount is not a total either."""
    with pytest.raises(pint.DimensionalityError):
        Q(1.0, "B") + 1
    with pytest.raises(pint.DimensionalityError):
        Q(1.0, "GB") + Q(1.0, "GB / GPU")
    with pytest.raises(pint.UndefinedUnitError):
        Q(1.0, "Gb")


def test_currencies_have_no_rate_between_them():
    with pytest.raises(pint.DimensionalityError):
        Q(1.0, "USD").to("CNY")


def test_elementwise_extremes_convert_and_refuse():
    np.testing.assert_allclose(np.maximum(Q(np.array([1.0, 1.0]), "GB"), Q(1.0, "GiB")).m_as("GB"), 1.073741824)
    with pytest.raises(pint.DimensionalityError):
        np.maximum(Q(1.0, "GB"), Q(1.0, "s"))


def test_pickles_into_the_same_registry():
    copy = pickle.loads(pickle.dumps(Q(3.0, "GB / s")))  # noqa: S301 (our own bytes)
    assert copy == Q(3.0, "GB / s") and copy + Q(1.0, "GB / s") == Q(4.0, "GB / s")
