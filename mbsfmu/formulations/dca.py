"""Divide and conquer in accelerations [Featherstone1999], with generalized inverses for loops."""

from __future__ import annotations

from typing import Annotated, ClassVar

import casadi as ca

from mbsfmu.base.options import NOT_NEGATIVE, Number
from mbsfmu.formulations.code_options import CodeOptions
from mbsfmu.formulations.first_order import FirstOrderFormulation, Motion
from mbsfmu.formulations.formulation import FormulationOptions
from mbsfmu.formulations.recorded_steps import Moved
from mbsfmu.rules.rule import Rule
from mbsfmu.stepping.iteration import NewtonTolerances
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem


class DcaOptions(CodeOptions):
    """Options of `dca`."""

    stabilisation: Annotated[
        float,
        Number(
            "Baumgarte stabilisation rate of loop constraints in 1/s; 0 for none, as published",
            unit="1/s",
            bounds=NOT_NEGATIVE,
            lacking="which needs none",
        ),
    ] = 10.0


class Dca(FirstOrderFormulation):
    """Accelerations from an assembly of the whole mechanism; y = (z, ż, x).

    Loops are closed at acceleration level, Φ̈ + 2 a Φ̇ + a² Φ = 0, with Baumgarte's stabilisation a. The papers'
    reference has a = 0, and its positions drift.

    Parameters
    ----------
    functions, tolerances, rule, options
        As for every formulation.
    """

    name: ClassVar[str] = "dca"
    Options: ClassVar[type[FormulationOptions]] = DcaOptions
    moving: ClassVar[str] = "velocities"
    quantities: ClassVar[tuple[tuple[str, str], ...]] = (
        ("coordinates", "velocities"),
        ("velocities", "accelerations"),
        ("states", "rates"),
    )

    def __init__(
        self, functions: SystemFunctions, tolerances: NewtonTolerances, rule: Rule, options: DcaOptions
    ) -> None:
        super().__init__(functions, tolerances, rule, options)
        self.stabilisation = options.stabilisation

    def _kinetics(self) -> tuple[ca.SX, ca.SX]:
        return self.functions.symbol("velocities"), self.dynamics[0]

    def _dynamics(self) -> tuple[ca.SX, ca.SX]:
        return self.functions.expressions.forward_dynamics(self.stabilisation)

    def _changes(self) -> tuple[ca.SX, ca.SX, Motion]:
        motion, n = self._accelerations({}), len(self.functions.coordinates)
        of_velocities = ca.horzcat(ca.SX(n, n), ca.SX.eye(n), ca.SX(n, len(self.functions.states)))
        return of_velocities, motion["accelerations"].change, motion

    def _moved(self, given: RecordedSystem) -> Moved:
        accelerations, multipliers = given.forward_dynamics(self.stabilisation)
        moved = given.at(accelerations=accelerations, multipliers=multipliers)
        return Moved(moved, accelerations, multipliers)
