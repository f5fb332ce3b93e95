"""Functions of the projection iterations, in unrolled code or kernel loops [Malczyk2012, sects. 2 and 3]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.divide_and_conquer.assembly import Corrections
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.systems.system import MOTION
from mbsfmu.tracing.symbols import expression, symbolic_array
from mbsfmu.tracing.tape.recording import RecordedArray
from mbsfmu.tracing.workspace import AnyFunction

_FIRST = ("turning", "accelerations", "multipliers")


class ProjectionFunctions(ABC):
    """Functions of the correction matrices, which are kept between calls.

    Parameters
    ----------
    functions
        Functions of a system in absolute coordinates, all its constraints in use; they get the parts that follow.
    penalty
        α as a multiple of the mean mass.
    stabilisation
        Rate a in 1/s of Φ̈ + 2 a Φ̇ + a² Φ = 0.

    Attributes
    ----------
    size
        How many numbers the matrices come to, constants apart.
    """

    size: int

    def __init__(self, functions: SystemFunctions, penalty: float, stabilisation: float) -> None:
        self._functions = functions
        self._penalty = penalty
        self._stabilisation = stabilisation
        for part in ("violation", "turning"):
            functions.add_part(part, len(functions.rows))

    @staticmethod
    def of(functions: SystemFunctions, penalty: float, stabilisation: float) -> ProjectionFunctions:
        """Return the functions in the form of code of the other functions."""
        form = RecordedProjection if functions.in_loops else TracedProjection
        return form(functions, penalty, stabilisation)

    @cached_property
    @abstractmethod
    def factorize(self) -> AnyFunction:
        """Write the matrices at the positions."""

    @cached_property
    @abstractmethod
    def correction(self) -> AnyFunction:
        """Return Δq, shape (n,), and Δλ, shape (m,), for the part `violation`."""

    @cached_property
    @abstractmethod
    def free_motion(self) -> AnyFunction:
        """Write Φ̈ without q̈, and q̈ and λ of the first iteration, which has the loads."""

    @cached_property
    @abstractmethod
    def violations(self) -> Mapping[str, AnyFunction]:
        """For each level, write the violation Φ, Φ̇ or Φ̈ at the positions of the matrices."""


class TracedProjection(ProjectionFunctions):
    """The functions in unrolled code; Φ_q is stored with the matrices."""

    def __init__(self, functions: SystemFunctions, penalty: float, stabilisation: float) -> None:
        super().__init__(functions, penalty, stabilisation)
        given = functions.expressions
        self._corrections: Corrections = given.corrections(penalty)
        matrices, jacobian = expression(self._corrections.numbers()), given.closure_jacobian
        numbers = ca.vertcat(matrices, ca.vec(jacobian.nz[:]))  # of a single equation they are a row
        varying = [index for index in range(numbers.numel()) if not numbers[index].is_constant()]
        self._varying = numbers[varying]
        symbols, _ = functions.add_part("correction_numbers", len(varying))
        self.size = len(varying)
        known = ca.SX(numbers)
        known[varying] = symbols
        self._numbers = known[: matrices.numel()]
        self._jacobian = ca.SX(jacobian.sparsity(), known[matrices.numel() :])

    @cached_property
    def factorize(self) -> AnyFunction:
        """The matrices."""
        return self._functions.traced("factorize_constraints", [self._varying], into=["correction_numbers"])

    @cached_property
    def correction(self) -> AnyFunction:
        """Δq and Δλ."""
        known = self._corrections.with_numbers(symbolic_array(self._numbers))
        found = known.solve(symbolic_array(self._functions.symbol("violation")))
        return self._functions.traced("correction", [expression(each) for each in found])

    @cached_property
    def free_motion(self) -> AnyFunction:
        """Φ̈ without q̈, and q̈ and λ of the first iteration."""
        given, a = self._functions.expressions, self._stabilisation
        place, motion = (given.symbol_by_part[part] for part in MOTION[:2])
        # Along the motion, twice: half as long as by derivatives of all elements of Φ_q, none of which is needed here.
        rate = ca.jtimes(given.closure, place, motion)
        turning = ca.jtimes(rate, place, motion) + given.drift_rates
        stabilised = turning + 2.0 * a * (rate + given.drifts) + a**2 * given.closure
        known = self._corrections.with_numbers(symbolic_array(self._numbers))
        found = known.solve(symbolic_array(stabilised), symbolic_array(given.free_accelerations))
        results = [stabilised, *map(expression, found)]
        return self._functions.traced("free_motion", results, into=_FIRST)

    @cached_property
    def violations(self) -> Mapping[str, AnyFunction]:
        """Φ, Φ̇ and Φ̈; these are linear with the matrices."""
        given, jacobian = self._functions.expressions, self._jacobian
        moving, turned = (given.symbol_by_part[part] for part in MOTION[1:])
        values = {
            "position": given.closure,
            "velocity": ca.mtimes(jacobian, moving) + given.drifts,
            "acceleration": ca.mtimes(jacobian, turned) + self._functions.symbol("turning"),
        }
        return {
            level: self._functions.traced(f"{level}_violation", [value], into=["violation"])
            for level, value in values.items()
        }


class RecordedProjection(ProjectionFunctions):
    """The functions in loops; Φ_q q̇ and Φ_q q̈ are directional derivatives of Φ, because Φ_q is dense."""

    def __init__(self, functions: SystemFunctions, penalty: float, stabilisation: float) -> None:
        super().__init__(functions, penalty, stabilisation)
        self._factorize = functions.recorded("factorize_constraints", self._factors, into=["correction_numbers"])

    def _factors(self, given: RecordedSystem, _: dict[str, Any]) -> list[Any]:
        """Return each of the numbers once; their positions are kept, and so are constants."""
        self._corrections: Corrections = given.corrections(self._penalty)
        numbers = self._corrections.numbers()
        assert isinstance(numbers, RecordedArray)
        varying, self._order = np.unique(numbers.places, return_inverse=True)
        self._constants = int(np.count_nonzero(varying < 0))
        self._places = varying
        self.size = len(varying) - self._constants
        self._functions.add_part("correction_numbers", self.size)
        return [RecordedArray(numbers.recorder, varying[self._constants :])]

    @cached_property
    def factorize(self) -> AnyFunction:
        """The matrices."""
        return self._factorize

    @cached_property
    def correction(self) -> AnyFunction:
        """Δq and Δλ."""

        def made(_: RecordedSystem, own: dict[str, Any]) -> list[Any]:
            return list(self._known(own).solve(own["violation"]))

        return self._functions.recorded("correction", made, ["correction_numbers", "violation"])

    def _known(self, own: dict[str, Any]) -> Corrections:
        """Return the problem with the kept matrices."""
        kept = own["correction_numbers"]
        places = np.concatenate([self._places[: self._constants], kept.places])
        numbers: Any = RecordedArray(kept.recorder, places[self._order])
        return self._corrections.with_numbers(numbers)

    @cached_property
    def free_motion(self) -> AnyFunction:
        """Φ̈ without q̈, and q̈ and λ of the first iteration."""

        def made(given: RecordedSystem, own: dict[str, Any]) -> list[Any]:
            turning = given.turning(self._stabilisation)
            return [turning, *self._known(own).solve(turning, given.free_accelerations)]

        return self._functions.recorded("free_motion", made, ["correction_numbers"], into=_FIRST)

    @cached_property
    def violations(self) -> Mapping[str, AnyFunction]:
        """Φ, Φ̇ and Φ̈."""

        def velocity(given: RecordedSystem, _: dict[str, Any]) -> list[Any]:
            return [given.along(given.closure, given.instant.velocities) + given.drifts]

        def acceleration(given: RecordedSystem, own: dict[str, Any]) -> list[Any]:
            return [given.along(given.closure, given.instant.accelerations) + own["turning"]]

        values = {"position": lambda given, _: [given.closure], "velocity": velocity, "acceleration": acceleration}
        return {
            level: self._functions.recorded(f"{level}_violation", made, ["turning"], into=["violation"])
            for level, made in values.items()
        }
