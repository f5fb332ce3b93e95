"""Root loci: how the modes of a model change with a parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.analysis.linear_system import LinearSystem
from mbsfmu.base.errors import InputError
from mbsfmu.equilibrium.small_motions import GROWING

if TYPE_CHECKING:
    from mbsfmu.view.plots.plot import Plot

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RootLocus:
    """Linear systems over the values of a parameter.

    Attributes
    ----------
    parameter, unit
        Name and SI unit of the parameter.
    values
        Its values, ascending, shape (values,).
    systems
        The linear system at each of them.
    """

    parameter: str
    unit: str
    values: Floats
    systems: tuple[LinearSystem, ...]

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """Eigenvalues in 1/s, shape (values, branches); each branch goes on with the nearest one at the next value.

        Of conjugate pairs both are there.
        """
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - takes long to load

        rows = [self.systems[0].eigenvalues]
        for system in self.systems[1:]:
            apart = np.abs(rows[-1][:, None] - system.eigenvalues[None, :])
            _, order = linear_sum_assignment(apart)
            rows.append(system.eigenvalues[order])
        return np.array(rows)

    @property
    def growth(self) -> Floats:
        """Greatest real part of the eigenvalues in 1/s, shape (values,); 0 where it is round-off."""
        most = np.max(self.eigenvalues.real, axis=1, initial=-np.inf)
        return np.where(np.abs(most) > GROWING, most, 0.0)

    def plot(self, reach: float = np.inf) -> Plot:
        """Return the eigenvalues in the complex plane: at the least value, between, and at the greatest.

        Parameters
        ----------
        reach
            Magnitude in 1/s beyond which they are left out.
        """
        from mbsfmu.analysis.response_plots import pole_map  # noqa: PLC0415 - what draws is loaded where it is asked for

        every = self.eigenvalues
        parts = ((self._at(0), every[0]), ("between", every[1:-1].ravel()), (self._at(-1), every[-1]))
        seen = [(label, values[np.abs(values) <= reach]) for label, values in parts]
        return pole_map(f"root locus over {self.parameter}", [(label, values) for label, values in seen if len(values)])

    def damping_plot(self) -> Plot:
        """Return natural frequencies and damping ratios of oscillating modes over the parameter."""
        from mbsfmu.view.plots.plot import (  # noqa: PLC0415
            Axis,
            Curve,
            Panel,
            Plot,
        )

        frequencies, ratios = [], []
        for number, branch in enumerate(self.eigenvalues.T, start=1):
            oscillates = (branch.imag > 0.0) & (np.abs(branch) > GROWING)
            if not np.any(oscillates):
                continue
            size = np.where(oscillates, np.abs(branch), np.nan)
            label = f"branch {number}"
            frequencies.append(Curve.of(label, self.values, size / (2.0 * np.pi)))
            ratios.append(Curve.of(label, self.values, -branch.real / size))
        growth = Curve.of("greatest real part", self.values, self.growth)
        panels = [Panel("greatest real part", "1/s", (growth,), None)]
        if frequencies:
            panels += [
                Panel("natural frequency", "Hz", tuple(frequencies), False),
                Panel("damping ratio", "1", tuple(ratios), None),
            ]
        return Plot(f"modes over {self.parameter}", tuple(panels), Axis(self.parameter, self.unit))

    def _at(self, place: int) -> str:
        unit = "" if self.unit == "1" else f" {self.unit}"
        return f"{self.parameter} = {self.values[place]:.4g}{unit}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: what the JSON file holds."""
        return {
            "parameter": self.parameter,
            "unit": self.unit,
            "values": self.values.tolist(),
            "eigenvalues": [[[each.real, each.imag] for each in row] for row in self.eigenvalues.tolist()],
        }


def root_locus(parameter: str, unit: str, values: Sequence[float], at: Callable[[float], LinearSystem]) -> RootLocus:
    """Return the root locus of a parameter.

    Parameters
    ----------
    parameter, unit
        Its name and unit.
    values
        Its values; their order does not matter.
    at
        Gives the linear system for a value.

    Raises
    ------
    InputError
        When there are fewer than two different values, or the number of states changes between them.
    """
    ordered = np.unique(np.asarray(values, dtype=float))
    if len(ordered) < 2 or not np.isfinite(ordered).all():
        raise InputError(f"a root locus over {parameter} needs two different finite values at least")
    systems = tuple(at(float(value)) for value in ordered)
    if len({len(each.states) for each in systems}) > 1:
        counts = ", ".join(f"{len(each.states)} at {value:g}" for each, value in zip(systems, ordered, strict=True))
        raise InputError(f"the number of states changes with {parameter} ({counts}); a root locus has the same")
    return RootLocus(parameter, unit, ordered, systems)
