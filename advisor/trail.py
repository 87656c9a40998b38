"""How a result explains itself: steps whose formula is the code that computed them.

    trail = Trail()
    weights = trail.step("weights", "parameters * width / tensor_parallel_size", "zero-2020",
                         parameters=P, width=Q(2, "B/parameter"), tensor_parallel_size=2)

computes the value *from the text*, so what is shown is what was done. `evaluate(step)` does it again from the recorded inputs;
a test walks every step of every plan and compares.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

from advisor.units import Quantity, from_json, maximum, minimum, to_json, where, whole


def _exp(value: Any) -> Any:
    return np.exp(value.m_as("") if isinstance(value, Quantity) else value)


def _log2(value: Any) -> Any:
    return np.log2(value.m_as("") if isinstance(value, Quantity) else value)


#: The only names a formula may use beside its inputs.
FUNCTIONS = {
    "maximum": maximum,
    "minimum": minimum,
    "where": where,
    "whole": whole,
    "sqrt": lambda value: value**0.5,
    "exp": _exp,
    "log2": _log2,
}


#: What a formula is evaluated in: these names and no builtins.
_NAMES = {"__builtins__": {}, **FUNCTIONS}


@dataclass(frozen=True)
class Step:
    """One line of an explanation.

    name: what was computed, a term of the field ("weights", "required_scale_out").
    formula: the expression over the names in `inputs`, as evaluated.
    value: the result, a quantity or a plain number.
    source: a key of data/sources.csv ("" for plain bookkeeping such as a sum of lines above).
    inputs: the numbers put in, by name.
    """

    name: str
    formula: str
    value: Any
    source: str = ""
    inputs: dict[str, Any] = field(default_factory=dict, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The step as JSON-ready data."""
        return {
            "name": self.name,
            "formula": self.formula,
            "value": to_json(self.value),
            "source": self.source,
            "inputs": to_json(self.inputs),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Step:
        """The step that `to_dict` wrote."""
        return cls(data["name"], data["formula"], from_json(data["value"]), data["source"], from_json(data["inputs"]))


@functools.cache
def _compiled(formula: str) -> CodeType:
    return compile(formula, "<formula>", "eval")


def calculate(formula: str, inputs: dict[str, Any]) -> Any:
    """The value of a formula of this code base over its inputs. Formulas are never user input."""
    return eval(_compiled(formula), _NAMES, inputs)  # noqa: S307 (own constants only)


def evaluate(step: Step) -> Any:
    """Compute a step's value again from its formula and inputs."""
    return calculate(step.formula, step.inputs)


@dataclass
class Trail:
    """Collects the steps of one estimate in order."""

    steps: list[Step] = field(default_factory=list)

    def step(self, name: str, formula: str, source: str = "", **inputs: Any) -> Any:
        """Compute `formula` over `inputs`, remember how, and return the value."""
        value = calculate(formula, inputs)
        self.steps.append(Step(name, formula, value, source, inputs))
        return value

    def done(self) -> tuple[Step, ...]:
        """The steps so far, frozen."""
        return tuple(self.steps)
