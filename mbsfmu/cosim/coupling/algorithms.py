"""Coupling algorithms by name, and with extrapolation as one word."""

from __future__ import annotations

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.extrapolation import Extrapolation
from mbsfmu.cosim.coupling.iterated_coupling import FixedPoint, InterfaceNewton
from mbsfmu.cosim.coupling.sweeps import Algorithm, GaussSeidel, Jacobi, Settings
from mbsfmu.modelling import closest_match

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


def choice_of(algorithm: str, extrapolation: Extrapolation) -> str:
    """Return the one of `CHOICES` for an algorithm and its extrapolation."""
    return algorithm if extrapolation is Extrapolation.ZERO else f"{algorithm}-{extrapolation}"


CHOICES = tuple(
    choice_of(name, extrapolation)
    for name in ALGORITHMS
    for extrapolation in Extrapolation
    if extrapolation is not Extrapolation.ADAPTIVE or name not in ITERATED
)
"""Algorithms with their extrapolation: `jacobi` holds inputs, `jacobi-linear` extrapolates them."""
USUAL = ("jacobi", "jacobi-linear", "gauss-seidel", "gauss-seidel-linear", "gauss-seidel-adaptive")
"""Algorithms that every FMU supports, compared by default."""


def parted(choice: str) -> tuple[str, Extrapolation]:
    """Return algorithm and extrapolation of one of `CHOICES`.

    Raises
    ------
    InputError
        When it is none of them.
    """
    if choice not in CHOICES:
        raise InputError(f"there is no algorithm '{choice}'; {closest_match(choice, CHOICES)}")
    for extrapolation in Extrapolation:
        if choice.endswith(f"-{extrapolation}"):
            return choice.removesuffix(f"-{extrapolation}"), extrapolation
    return choice, Extrapolation.ZERO


def flags_of(choice: str) -> str:
    """Return the options of `cosim` for one of `CHOICES`."""
    algorithm, extrapolation = parted(choice)
    return f"--algorithm {algorithm} --extrapolation {extrapolation}"
