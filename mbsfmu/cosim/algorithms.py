"""The coupling algorithms by their names."""

from __future__ import annotations

from collections.abc import Sequence

from mbsfmu.cosim.coupling import Algorithm, Settings, names_of
from mbsfmu.cosim.exchange import Exchange
from mbsfmu.cosim.explicit import GaussSeidel, Jacobi
from mbsfmu.cosim.extrapolation import Extrapolation
from mbsfmu.cosim.fixed_point import FixedPoint
from mbsfmu.cosim.instance import Instance
from mbsfmu.cosim.interface_newton import InterfaceNewton
from mbsfmu.data import meant
from mbsfmu.errors import InputError

_CLASSES: dict[str, type[Algorithm]] = {
    "jacobi": Jacobi,
    "gauss-seidel": GaussSeidel,
    "fixed-point": FixedPoint,
    "newton": InterfaceNewton,
}
ALGORITHMS = tuple(_CLASSES)
ITERATED = tuple(name for name, kind in _CLASSES.items() if kind.iterates)
JACOBIANS = ("differences", "directional")
AITKEN = "aitken"


def make_settings(
    instances: dict[str, Instance],
    *,
    algorithm: str,
    extrapolation: str,
    order: Sequence[str] | None,
    iteration_tolerance: float | None,
    maximum_iterations: int | None,
    relaxation: float | str | None,
    jacobian: str | None,
    energy_correction: bool,
    threads: int,
) -> Settings:
    """Check the words and numbers of an algorithm against the units; None stands for what `Settings` has.

    Raises
    ------
    InputError
        When a name is unknown, a number out of range, the order is none of all instances, or a unit cannot do
        what the algorithm needs.
    """
    iteration_tolerance = Settings.iteration_tolerance if iteration_tolerance is None else iteration_tolerance
    maximum_iterations = Settings.maximum_iterations if maximum_iterations is None else maximum_iterations
    relaxation = Settings.relaxation if relaxation is None else relaxation
    jacobian = Settings.jacobian if jacobian is None else jacobian
    for what, word, words in (
        ("algorithm", algorithm, ALGORITHMS),
        ("extrapolation", extrapolation, tuple(Extrapolation)),
        ("jacobian", jacobian, JACOBIANS),
    ):
        if word not in words:
            raise InputError(f"there is no {what} '{word}'; {meant(word, words)}")
    chosen = tuple(order) if order is not None else tuple(instances)
    if sorted(chosen) != sorted(instances):
        raise InputError(f"the order is {', '.join(chosen)}; it must name each unit once: {', '.join(instances)}")
    if not 0.0 < iteration_tolerance < 1.0:
        raise InputError(f"the iteration tolerance is {iteration_tolerance:g}; it must be between 0 and 1")
    for what, number in (("maximum number of iterations", maximum_iterations), ("number of threads", threads)):
        if number < 1:
            raise InputError(f"the {what} is {number}; it must be at least 1")
    if isinstance(relaxation, str):
        if relaxation != AITKEN:
            raise InputError(f"the relaxation is '{relaxation}'; it must be '{AITKEN}' or a number")
    elif not 0.0 < relaxation <= 2.0:
        raise InputError(f"the relaxation is {relaxation:g}; it must be '{AITKEN}' or a number in (0, 2]")
    iterates = _CLASSES[algorithm].iterates
    without = [name for name, instance in instances.items() if not instance.saves_state]
    if iterates and without:
        raise InputError(
            f"{names_of(without)} cannot save the state, which {algorithm} needs to repeat steps; "
            "choose jacobi or gauss-seidel"
        )
    if iterates and energy_correction:
        raise InputError(f"an energy correction is for jacobi and gauss-seidel; {algorithm} leaves nothing to correct")
    return Settings(
        algorithm,
        Extrapolation(extrapolation),
        chosen,
        iteration_tolerance,
        maximum_iterations,
        relaxation,
        jacobian,
        energy_correction,
        threads,
    )


def make_algorithm(exchange: Exchange, settings: Settings) -> Algorithm:
    """Make an algorithm for members that are initialized."""
    return _CLASSES[settings.algorithm](exchange, settings)
