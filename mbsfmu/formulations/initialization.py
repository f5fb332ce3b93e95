"""From parameters to a consistent start: calculated parameters, closed loops, states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.formulations.assembly import close_loops, independent_rows, onto_velocity_constraints
from mbsfmu.formulations.coupled_system import CoupledSystem
from mbsfmu.formulations.equilibrium import balance
from mbsfmu.formulations.functions import Floats, SystemFunctions
from mbsfmu.formulations.system import System, starts
from mbsfmu.variables import Variable


@dataclass(frozen=True)
class Start:
    """Where a system starts.

    Attributes
    ----------
    coordinates, velocities, states
        z, ż and x on the constraints.
    parameters
        All parameters, those included that other parts calculate.
    calculated
        Calculated parameters by name.
    """

    coordinates: Floats
    velocities: Floats
    states: Floats
    parameters: Floats
    calculated: dict[str, float]


class Initialization:
    """Finds the start of a system from its parameters.

    Parameters
    ----------
    system
        The system.

    Attributes
    ----------
    calculated
        Variables of the calculated parameters.
    rows
        The constraints that are independent at the model's own parameters.

    Raises
    ------
    InputError
        When the loops cannot be closed at the model's own parameters.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._functions = SystemFunctions(system)
        if isinstance(system, CoupledSystem):
            self._parts = [(index, SystemFunctions(part)) for index, part in enumerate(system.parts) if part.balances]
            self.calculated: tuple[Variable, ...] = tuple(
                variable for index, _ in self._parts for variable in system.calculated(index)
            )
        else:
            self.calculated = tuple(variable for variable, _ in system.balances)
        start = self.run(starts(system.parameters))
        self.rows = independent_rows(self._functions, start.coordinates)

    def run(self, parameters: Floats) -> Start:
        """Return the start for a set of parameters.

        Parameters
        ----------
        parameters
            In the order of the system's parameters.

        Raises
        ------
        InputError
            When the loops cannot be closed.
        """
        system, parameters = self._system, parameters.copy()
        system.check(parameters)
        values: list[float] = []
        if isinstance(system, CoupledSystem):
            for index, functions in self._parts:
                functions.parameters[:] = parameters[system.parameters_of(index)]
                found = _balance_at_start(functions)
                values.extend(found.values())
                for feed in system.feeds:
                    if feed.source == index:
                        where = system.parameters_of(feed.target).start + feed.parameter
                        parameters[where] = found[feed.name]
        else:
            self._functions.parameters[:] = parameters
            values.extend(_balance_at_start(self._functions).values())
        self._functions.parameters[:] = parameters
        coordinates, velocities = _closed(self._functions)
        states = self._functions.start()[2].copy()
        names = (variable.name for variable in self.calculated)
        return Start(coordinates, velocities, states, parameters, dict(zip(names, values, strict=True)))


def _closed(functions: SystemFunctions) -> tuple[Floats, Floats]:
    guess, velocities, _ = (part.copy() for part in functions.start())
    coordinates = close_loops(functions, guess)
    return coordinates, onto_velocity_constraints(functions, coordinates, velocities)


def _balance_at_start(functions: SystemFunctions) -> dict[str, float]:
    if not functions.system.balances:
        return {}
    functions.coordinates[:] = _closed(functions)[0]
    functions.states[:] = np.asarray(functions.start()[2])
    return balance(functions)
