"""Coupling algorithms by name."""

from __future__ import annotations

from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.explicit_coupling import GaussSeidel, Jacobi
from mbsfmu.cosim.coupling.fixed_point import FixedPoint
from mbsfmu.cosim.coupling.interface_newton import InterfaceNewton
from mbsfmu.cosim.coupling.sweeps import Algorithm, Settings

_CLASSES: dict[str, type[Algorithm]] = {
    "jacobi": Jacobi,
    "gauss-seidel": GaussSeidel,
    "fixed-point": FixedPoint,
    "newton": InterfaceNewton,
}
ALGORITHMS = tuple(_CLASSES)
ITERATED = tuple(name for name, kind in _CLASSES.items() if kind.iterates)


def algorithms_with(option: str) -> tuple[str, ...]:
    """Return the names of the algorithms with a given own option."""
    return tuple(name for name, kind in _CLASSES.items() if option in kind.options)


def make_algorithm(exchange: CouplingData, settings: Settings) -> Algorithm:
    """Return an algorithm for initialized members."""
    return _CLASSES[settings.algorithm](exchange, settings)
