"""Where bodies are, as C beside that of an FMU: the equations of its mechanisms, from the values of its variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.equations.coordinate_charts import NO_TURN
from mbsfmu.equations.rotation import quaternion_product
from mbsfmu.native.traced_code import body_of, function_code
from mbsfmu.tracing.symbols import SymbolicArray, expression, symbols
from mbsfmu.view.scene.poses import Placement, recorded_coordinates
from mbsfmu.view.scene.recorded import Recorded

FILE = "poses.c"


@dataclass(frozen=True)
class LivePoses:
    """The poses of all bodies as a C function.

    Attributes
    ----------
    names
        Variables of the FMU that the function takes, in their order.
    code
        The C file, with `mbsfmu_poses(given, made)`: origin in m and rotation matrix by rows of each body, twelve
        numbers.
    """

    names: tuple[str, ...]
    code: str

    @classmethod
    def of(cls, placements: Sequence[Placement], recorded: Recorded, parameters: Mapping[str, str]) -> LivePoses:
        """Write the poses of mechanisms.

        Parameters
        ----------
        placements
            The mechanisms.
        recorded
            A run, which tells what variables are called.
        parameters
            Names of parameters by `system.variable`; others are as in the data.

        Raises
        ------
        InputError
            When a joint coordinate is no variable of the run.
        """
        given = _GivenValues(recorded, parameters)
        made = [_poses(each, given) for each in placements]
        values = ca.vertcat(*(symbol for _, symbol in given.symbols.values()))
        function = ca.Function("mbsfmu_poses", [values], [ca.vertcat(*made)])
        helpers: dict[str, str] = {}
        body = body_of(function, ["given"], ["made"], helpers)
        parts = [
            "#include <math.h>",
            '#include "visibility.h"',
            *helpers.values(),
            function_code("poses", ["given", "made"], body),
            "EXPORT void NAMED(mbsfmu_poses)(double *given, double *made) { poses(given, made); }\n",
        ]
        return cls(tuple(given.symbols), "\n\n".join(parts))


class _GivenValues:
    """Symbols for values of variables, by what these are called in a run."""

    def __init__(self, recorded: Recorded, parameters: Mapping[str, str]) -> None:
        self._recorded, self._parameters = recorded, parameters
        self.symbols: dict[str, tuple[SymbolicArray, ca.SX]] = {}

    def variable(self, system: str, variable: str, what: str) -> SymbolicArray:
        """Return the symbol of a variable that changes in runs, shape (1,)."""
        self._recorded.need(system, variable, what)
        return self._named(self._recorded.name(system, variable) or variable)

    def parameter(self, reference: str, value: float) -> SymbolicArray | np.ndarray:
        """Return the symbol of a parameter, shape (1,), or the value that it has in the data."""
        name = self._parameters.get(reference)
        return np.array([value]) if name is None else self._named(name)

    def _named(self, name: str) -> SymbolicArray:
        if name not in self.symbols:
            symbol, array = symbols(f"given_{len(self.symbols)}", 1)
            self.symbols[name] = array, symbol
        return self.symbols[name][0]


def _poses(placement: Placement, given: _GivenValues) -> ca.SX:
    """Return origin and rotation matrix of each body, one below the other."""
    topology, system = placement.mechanism.topology, placement.system
    coordinates: list[Any] = [np.zeros(1)] * topology.coordinates
    references: list[Any] = [np.array(NO_TURN)] * topology.references
    for body, joint in zip(topology.bodies, topology.tree, strict=True):
        what = f"where '{body.name}' is"
        for index, name in recorded_coordinates(joint):
            coordinates[index] = given.variable(system, f"{body.name}.{name}", what)
        if joint.reference is not None:
            four = [given.variable(system, f"{body.name}.quaternion.{part}", what) for part in "wxyz"]
            inner = quaternion_product(np.concatenate(four), placement.back(body))
            references[joint.reference] = np.concatenate([inner, NO_TURN[4:]])
    values = zip(placement.parameter_names, placement.parameters, strict=True)
    numbers = [given.parameter(f"{system}.{name}", float(value)) for name, value in values]
    nothing = np.zeros(0)
    frames = placement.kinematics.frames(
        *(np.concatenate([nothing, *each]) for each in (coordinates, references, numbers))
    )
    rows = [
        np.concatenate([origin, np.ravel(turned)])
        for origin, turned in zip(frames.origin, frames.rotation, strict=True)
    ]
    return expression(np.concatenate(rows))
