"""Options of a simulation, and their compatibility."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self, TypedDict

from pydantic import ConfigDict

from mbsfmu.base.errors import InputError
from mbsfmu.base.options import POSITIVE, Bounds, ChoiceOption, Number, Option, Options, StringOption, Switch
from mbsfmu.formulations.dca import Dca
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.formulations.formulation import FORMULATIONS, Formulation, FormulationOptions, StepKind
from mbsfmu.integration.implicit import ImplicitSolver, Jacobian
from mbsfmu.integration.rosenbrock import RODAS5P, Rosenbrock
from mbsfmu.integration.solver import AdaptiveSolver, Solver
from mbsfmu.integration.solvers import find_solver, having, of_one_step, solver_texts
from mbsfmu.rules import Rule, rule_names
from mbsfmu.rules.implicit_rules import Trapezoidal
from mbsfmu.stepping.iteration import NewtonTolerances
from mbsfmu.systems.system import LARGE

_STEPS = Bounds("must be positive, between 1e-12 and 1e+12 s", lambda value: 1e-12 <= value <= 1e12)
_RESOLVED = Bounds("must be at least 1e-13, round-off, and less than 1", lambda value: 1e-13 <= value < 1.0)
_OF_NEWTON = Bounds("must lie between 1e-15, round-off, and 0.0001", lambda value: 1e-15 <= value <= 1e-4)
_ITERATIONS = Bounds("must be an integer from 1 to 100", lambda value: 1 <= value <= 100)
_OPENING, _LEAST_OPENING = 1e4, 1e-4
"""Drift tolerance of loops with adaptive solvers: multiple of their tolerance, and least value."""


def _formulations() -> list[type[Formulation]]:
    return [FORMULATIONS.find(name) for name in FORMULATIONS.names()]


class RunKeywords(TypedDict, total=False):
    """The options of a simulation as keywords, for editors and type checkers; `RunOptions` says what they are."""

    formulation: Literal["double-step", "dca", "dca-alm", "hdca", "penalty"] | str | None
    solver: str | None
    step: float | None
    jacobian: Literal["exact", "forward-difference"] | None
    relative_tolerance: float | None
    absolute_tolerance: float | None
    newton_tolerance: float | None
    iterations: int | None
    check_error: bool | None
    tolerances: NewtonTolerances | None
    penalty: float | None
    projections: bool | None
    restart_momenta: bool | None
    stabilisation: float | None
    code: Literal["straight", "loops"] | None
    assembly: Literal["balanced", "sequential"] | None


class RunOptions(Options):
    """Options of a simulation; the chosen formulation has further ones.

    Raises
    ------
    InputError
        When a name is unknown, a number is out of range, an option has no effect, or formulation and solver do not
        fit.
    """

    model_config = ConfigDict(extra="allow")
    subject: ClassVar[str] = "a simulation"

    formulation: Annotated[
        str | None,
        ChoiceOption(
            f"Formulation of the mechanisms; {DoubleStep.name} by default, {Dca.name} for models of more than "
            f"{LARGE} coordinates",
            among=FORMULATIONS.names,
        ),
    ] = None
    solver: Annotated[
        str | None,
        StringOption(
            "Solver; options of an integration rule as name:option=value. Default: "
            f"{RODAS5P.name}, which controls its step; {Trapezoidal.name} with equal steps if a step or a Newton "
            "option is given and no tolerance, with penalty and dca-alm, and in FMUs with free inputs",
            among=solver_texts,
        ),
    ] = None
    step: Annotated[
        float | None,
        Number(
            "Internal step of fixed-step solvers, and output step, in s; the model's by default",
            unit="s",
            bounds=_STEPS,
        ),
    ] = None
    jacobian: Annotated[
        Jacobian | None,
        ChoiceOption(
            "Jacobian of implicit solvers: exact by default, or forward-difference with double-step and penalty, as "
            "published",
            among=lambda: tuple(Jacobian),
        ),
    ] = None
    relative_tolerance: Annotated[
        float | None,
        Number(
            f"Relative tolerance of adaptive solvers; {AdaptiveSolver.tolerance:g} by default, "
            f"{Rosenbrock.tolerance:g} for Rosenbrock methods",
            bounds=_RESOLVED,
            flag="--rtol",
            lacking="which makes equal steps",
        ),
    ] = None
    absolute_tolerance: Annotated[
        float | None,
        Number(
            "Absolute tolerance of adaptive solvers, in nominal values of the states; by default the relative "
            "tolerance",
            bounds=POSITIVE,
            flag="--atol",
            lacking="which makes equal steps",
        ),
    ] = None
    newton_tolerance: Annotated[
        float | None,
        Number(
            "Newton tolerance of implicit solvers, relative to the magnitude of each variable, which is at least its "
            "nominal value, or 1 rad and 1 m; 10 times larger for coordinates; 1e-8 by default",
            bounds=_OF_NEWTON,
            called="Newton tolerance",
            lacking="which has no Newton iteration of ours",
        ),
    ] = None
    iterations: Annotated[
        int | None,
        Number(
            "Limit of the Newton iterations of a step, for real-time targets: steps are never halved, and the variable "
            "solver.unconverged gives the error that is left. No limit by default: steps converge",
            whole=True,
            bounds=_ITERATIONS,
            called="number of iterations",
            lacking="which has no Newton iteration of ours",
        ),
    ] = None
    check_error: Annotated[
        bool | None,
        Switch(
            "Whether to repeat a run in process with a hundredth of the tolerance, or half the step, and report the "
            "difference as its error; takes about three times as long"
        ),
    ] = None
    tolerances: Annotated[NewtonTolerances | None, Option("Newton tolerances of coordinates and of states")] = None

    @classmethod
    def known(cls) -> dict[str, Option]:
        """Return all options by name, including those of all formulations."""
        own = {name: option for kind in _formulations() for name, option in kind.Options.known().items()}
        return {**super().known(), **dict(sorted(own.items()))}

    @classmethod
    def help(cls, name: str) -> str:
        """Return the help of an option; for one of formulations, that of each."""
        if name in cls.model_fields:
            return super().help(name)
        texts: dict[str, list[str]] = {}
        for kind in _formulations():
            if name in kind.Options.model_fields:
                texts.setdefault(kind.Options.help(name), []).append(kind.name)
        return " ".join(f"{', '.join(names)}: {text}" for text, names in texts.items())

    @property
    def kind(self) -> type[Formulation]:
        """Class of the formulation; by default that of small systems."""
        return FORMULATIONS.find(self.formulation or DoubleStep.name)

    @property
    def own(self) -> FormulationOptions:
        """The options of the formulation's own."""
        return self.kind.Options(**(self.model_extra or {}))

    @property
    def chosen_solver(self) -> str:
        """Name of the solver; by default it follows from the other options.

        A given step implies equal steps, unless a tolerance is given; so do options of Newton's iteration.
        """
        if self.solver is not None:
            return self.solver
        return Trapezoidal.name if self._asks_for_equal_steps else RODAS5P.name

    @property
    def _asks_for_equal_steps(self) -> str:
        """Reason for equal steps without a given solver; empty without one."""
        given = {name for name, _ in self.content()}
        if not self.kind.stages_everywhere:
            return f"the formulation is {self.kind.name}"
        for name in (*ImplicitSolver.options, "tolerances"):
            if name in given:
                return f"the {self.known()[name].words(name)} is named" if name != "tolerances" else f"{name} are named"
        return "a step is named and no tolerance" if "step" in given and not given & set(AdaptiveSolver.options) else ""

    @property
    def names_steps(self) -> bool:
        """Whether an option says how steps are made: solver, step, tolerances or Newton's iteration."""
        own = {"solver", "step", "tolerances", *AdaptiveSolver.options, *ImplicitSolver.options}
        return any(name in own for name, _ in self.content())

    @property
    def method(self) -> tuple[type[Solver], Rule]:
        """Class of the solver, and the integration rule."""
        return find_solver(self.chosen_solver)

    def check(self) -> None:
        """Check that formulation and solver are compatible, and that every option has an effect."""
        kind, named, (solver, _) = self.kind, self.chosen_solver, self.method
        if not (kind.has_explicit_form or issubclass(solver, ImplicitSolver)):
            fitting = ", ".join(self._integrated_by(solver))
            raise InputError(
                f"the solver '{named}' needs an explicit form, which '{kind.name}' does not have; "
                f"take the solver {', '.join(rule_names())}, or the formulation {fitting}"
            )
        if not (issubclass(solver, ImplicitSolver) or _integrates(solver, kind)):
            fitting = ", ".join(self._integrated_by(solver))
            raise InputError(
                f"the solver '{named}' needs derivatives of the rates, which '{kind.name}' does not give; "
                f"take the formulation {fitting}, or another solver"
            )
        known = self.known()
        if self.jacobian is Jacobian.FORWARD_DIFFERENCE and not kind.takes_differences:
            taking = [each.name for each in _formulations() if each.takes_differences]
            raise known["jacobian"].without_effect("jacobian", self.jacobian, f"the formulation '{kind.name}'", taking)
        for name, value in self.content():
            formulations = [each.name for each in _formulations() if name in each.Options.model_fields]
            if formulations and kind.name not in formulations:
                raise known[name].without_effect(name, value, f"the formulation '{kind.name}'", formulations)
            solvers = having(name)
            if solvers and name not in solver.options:
                why = "" if self.solver else self._asks_for_equal_steps
                chosen = f"the solver '{named}'" + (f" (as {why} and no solver is named)" if why else "")
                raise known[name].without_effect(name, value, chosen, solvers)
        self._completed_own()

    def _integrated_by(self, solver: type[Solver]) -> list[str]:
        """Return the names of the formulations that a solver integrates, among those with the given options."""
        own = {name for each in _formulations() for name in each.Options.model_fields}
        given = own & {name for name, _ in self.content()}
        fitting = [each for each in _formulations() if _integrates(solver, each) and self._completes(each)]
        having_all = [each for each in fitting if given <= set(each.Options.model_fields)]
        return [each.name for each in having_all or fitting]

    def _completes(self, kind: type[Formulation]) -> bool:
        """Return whether a formulation by its defaults takes the solver."""
        try:
            kind.Options().completed(self._remembering)
        except InputError:
            return False
        return True

    @property
    def _remembering(self) -> str:
        """The solver in words, where it remembers earlier steps, with others that do not; else empty."""
        named, (solver, _) = self.chosen_solver, self.method
        return (
            f"the solver '{named}', which remembers earlier steps; take {', '.join(of_one_step())}"
            if named in solver.remembering
            else ""
        )

    def _completed_own(self) -> FormulationOptions:
        """Return the options of the formulation with all defaults."""
        return self.own.completed(self._remembering)

    def completed(self) -> Self:
        """Return the options with all defaults; the step may be left to the model.

        The tolerances include all options of convergence and drift.
        """
        solver, rule = self.method
        changes: dict[str, Any] = {"solver": solver.closest_match(self.chosen_solver), **dict(self._completed_own())}
        limits = self.tolerances or NewtonTolerances()
        if self.newton_tolerance is not None:
            limits = replace(limits, coordinates=10.0 * self.newton_tolerance, states=self.newton_tolerance)
        if issubclass(solver, AdaptiveSolver):
            relative = solver.tolerance if self.relative_tolerance is None else self.relative_tolerance
            absolute = relative if self.absolute_tolerance is None else self.absolute_tolerance
            changes |= {"relative_tolerance": relative, "absolute_tolerance": absolute}
            limits = replace(limits, opening=min(limits.opening, max(_LEAST_OPENING, _OPENING * relative)))
        if "jacobian" in solver.options:
            changes |= {"jacobian": self.jacobian or Jacobian.EXACT, "solver": str(rule)}
        return self.model_copy(update={**changes, "tolerances": limits, "newton_tolerance": None})


def usual_formulation(coordinates: int) -> str:
    """Return the default formulation for a number of coordinates.

    Unrolled code, as of double-step, takes minutes to trace and compile beyond some size, and hours for larger ones.
    """
    return Dca.name if coordinates > LARGE else DoubleStep.name


def _integrates(solver: type[Solver], kind: type[Formulation]) -> bool:
    """Return whether a solver of explicit forms can integrate a formulation."""
    return kind.has_explicit_form and (kind.has_stages or solver.kind is not StepKind.LINEARLY_IMPLICIT)
