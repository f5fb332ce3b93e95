"""Data that a formulation supplies to the generation of its C code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from mbsfmu.stepping.stage_pattern import Pattern
from mbsfmu.tracing.workspace import AnyFunction, Floats


class StepKind(Enum):
    """Kinds of steps that solvers make."""

    IMPLICIT = "implicit"
    EXPLICIT = "explicit"
    LINEARLY_IMPLICIT = "linearly implicit"
    EXCHANGED = "exchanged"
    """Steps of an external solver, which receives rates and their derivatives."""


@dataclass(frozen=True, kw_only=True)
class NativeNeeds:
    """Needs of a formulation's C code.

    Attributes
    ----------
    file
        The C file of its steps among those of the runtime, which has the functions `prepare`, `change_chart` and what
        `steps.c` calls for implicit or explicit steps.
    unknowns
        Number of unknowns of an implicit step, states apart.
    right_sides
        Number of right sides of the linear equations of a step in loops, integrals apart; 0 where they are as many as
        unknowns and multipliers.
    freedom, dependent
        Numbers of independent and dependent coordinates where it chooses them; 0 where it does not.
    own_motion
        Whether its C has a function `motion` that finds accelerations, multipliers and rates; else they are found from
        the equations of motion with multipliers.
    recomputes_reactions
        Whether reactions are found from positions and velocities, not from the multipliers of a step.
    closes_loops
        Whether loops are closed when its C has made a step: nobody has to look.
    choices
        Numbers that only its own C asks for, by their names there: truths as 0 and 1, sizes.
    element_scales
        What the elements of Φ_z are divided by where its C chooses among them, shape (m, n).
    names
        Lists of names that its messages ask for, by their own there.
    penalty
        Penalty factor α in N/m and N m/rad where it is constant.
    correction_numbers
        How many numbers the matrices of its projections come to.
    gradients
        On how many numbers the conjugate gradients of its projections work.
    slope_pattern
        Where the derivative of ẏ may have elements for linearly implicit methods: rows without those of the coordinates
        whose rates are elements of y, columns without the integrals. None where there is no matrix.
    in_steps
        Traced functions that its steps call.
    at_start
        Traced functions that it calls at the start of a run and where inputs jump.
    """

    file: str
    unknowns: int
    right_sides: int = 0
    freedom: int = 0
    dependent: int = 0
    own_motion: bool = False
    recomputes_reactions: bool = False
    closes_loops: bool = False
    choices: Mapping[str, int] = field(default_factory=dict)
    element_scales: Floats | None = None
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    penalty: float = 0.0
    correction_numbers: int = 0
    gradients: int = 0
    slope_pattern: Pattern | None = None
    in_steps: tuple[AnyFunction, ...] = ()
    at_start: tuple[AnyFunction, ...] = ()
