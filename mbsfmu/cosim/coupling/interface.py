"""Interface equations: the inputs over a step equal the resulting outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.fmus.fmu_instance import Floats


class InterfaceError(SimulationError):
    """Interface equations without convergence in a step."""


class Interface:
    """Values z of outputs at the end of a step that other FMUs take, and the equations G(z) − z = 0 for them.

    G gives the outputs that FMUs reach when their inputs run to z. A residual is measured by the scale of its
    variable: the greater of its nominal value and the largest magnitude that it has had.

    Parameters
    ----------
    exchange
        The members and their values.
    order
        Names of instances that step one after the other, so that outputs of earlier ones need not be known
        beforehand; empty where all step at once.

    Attributes
    ----------
    columns
        Which outputs they are, shape (m,).
    magnitudes
        Largest magnitudes that were accepted, at least the nominal values, shape (m,).
    """

    CHANGES: ClassVar = ("magnitudes",)

    def __init__(self, exchange: CouplingData, order: Sequence[str] = ()) -> None:
        self._exchange = exchange
        turn = {name: index for index, name in enumerate(order)}
        found = [
            exchange.columns[each.source]
            for each in exchange.connections
            if exchange.columns[each.source] not in exchange.held
            and (not order or turn[each.target[0]] <= turn[each.source[0]])
        ]
        self.columns: NDArray[np.intp] = np.array(sorted(set(found)), dtype=np.intp)
        self.magnitudes = exchange.nominals()[self.columns]

    def take(self, outputs: Floats) -> None:
        """Increase the scales to the magnitudes of accepted outputs."""
        np.maximum(self.magnitudes, np.abs(outputs[self.columns]), out=self.magnitudes)

    def scales(self, values: Floats) -> Floats:
        """Return the scale of each value, shape (m,)."""
        return np.maximum(self.magnitudes, np.abs(values))

    def failure(self, time: float, residual: Floats, scales: Floats, iterations: int) -> InterfaceError:
        """Return the error with the largest residual, at a time in s."""
        worst = int(np.argmax(np.abs(residual) / scales))
        name = ".".join(self._exchange.names[self.columns[worst]])
        return InterfaceError(
            f"the interface does not converge in the step from t = {time:.9g} s: {name} still changes by "
            f"{abs(residual[worst]):.3g}, {abs(residual[worst]) / scales[worst]:.2g} of its scale, after "
            f"{iterations} iterations; take a smaller step or another algorithm"
        )
