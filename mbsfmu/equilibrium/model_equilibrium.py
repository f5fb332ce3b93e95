"""Static equilibrium of a whole model, and its result: values, stability, undetermined variables."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from hydraulics.circuit import Balanced
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.name_patterns import means
from mbsfmu.equations.linear import RANK_TOLERANCE, null_space, pivot_columns
from mbsfmu.equilibrium.damped_newton import StaticEquilibrium, residual_at
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations, Held, Sought, reading_variables, readings
from mbsfmu.equilibrium.initial_guess import beyond_limits, start_values, within_reach
from mbsfmu.equilibrium.search import search
from mbsfmu.equilibrium.small_motions import (
    GROWING,
    above_sources,
    describe_pressures_above,
    motion_about_equilibrium,
    open_reliefs,
    relief_of,
)
from mbsfmu.initialization.initialization import Initialization, beyond_start_limits
from mbsfmu.model.machine import Machine, conditions_of, log_model_remarks
from mbsfmu.model.model_data import ModelData, circuits_of
from mbsfmu.modelling import closest_match, remarks
from mbsfmu.modelling.variables import Variable, with_unit
from mbsfmu.simulation.input_values import InputValues
from mbsfmu.systems.concatenated_system import CoupledSystem
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.model_systems import coupled_system
from mbsfmu.systems.system import starts
from mbsfmu.tracing.workspace import Floats

Model = TypeVar("Model", bound=ModelData)


@dataclass(frozen=True, repr=False)
class Equilibrium(Generic[Model]):
    """A static equilibrium of a model.

    Attributes
    ----------
    model
        The model with its `start` there: it is simulated, exported and compared as every model.
    found
        Values of the free variables, by `system.variable`.
    values
        Coordinates, states and outputs there, by `system.variable`.
    units
        Units of all these, by the same names.
    kept
        What the conditions of rest leave open: the guess has decided, by what the motion from there keeps.
    moved
        By how much what is open differs from the guess, in its units, where that is not negligible.
    above_sources
        Pressures that are above what the sources of their circuit bring about, with the latter in Pa: loads, or oil
        that is shut in, hold them.
    moving
        Rates, in the units of what they belong to over s, of states that move all the same: those that nothing depends
        on, as angles of shafts that turn, and with a horizon those that are slower.
    unbalanced_load
        The largest load that is left, in N m or N.
    horizon
        As it was asked for, in s; None where nothing moves, so that there is no need of it.
    eigenvalues
        Of the motion about it, in 1/s, those with the greatest real part first; shape (number,). Discrete states, and
        what changes with time, stay as they are.
    drifts
        Whether a small motion about it goes on, for nothing brings it back or brakes it.
    undecided
        Whether the linear part has a motion neither grow nor fade that leads to no other position of rest; False with
        a horizon, within which such a motion stands.
    sampled
        Names of the blocks that are sampled: what they answer to a motion is not in the eigenvalues.
    """

    model: Model
    found: dict[str, float]
    values: dict[str, float]
    units: dict[str, str]
    kept: tuple[str, ...]
    moved: dict[str, float]
    above_sources: dict[str, float]
    moving: dict[str, float]
    unbalanced_load: float
    horizon: float | None
    eigenvalues: np.typing.NDArray[np.complex128]
    drifts: bool
    undecided: bool
    sampled: tuple[str, ...]

    @property
    def stable(self) -> bool | None:
        """Whether it is stable within the horizon, by its linearization.

        None if unknown: blocks are sampled, small motions drift, or nonlinear terms decide.
        """
        slowest = GROWING if self.horizon is None else 1.0 / self.horizon
        grows = bool(np.max(self.eigenvalues.real, initial=-np.inf) > slowest)
        doubtful = self.drifts or self.undecided or self._creeping[1] > 1.0
        return None if self.sampled or (doubtful and not grows) else not grows

    @property
    def _creeping(self) -> tuple[str, float]:
        """Return the state with the largest relative creep within the horizon, and this fraction."""
        if self.horizon is None:
            return "", 0.0
        rates = {name: abs(rate) for name, rate in self.moving.items() if name in self.kept}
        share = {name: rate * self.horizon / max(abs(self[name]), 1.0) for name, rate in rates.items()}
        return max(share.items(), key=lambda each: each[1], default=("", 0.0))

    def __getitem__(self, name: str) -> float:
        """Return a value by `system.variable`.

        Raises
        ------
        InputError
            When there is none of that name.
        """
        if name not in self._known:
            raise InputError(
                f"there is no '{name}' at the equilibrium of {self.model.name}; {closest_match(name, self._known)}"
            )
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __len__(self) -> int:
        return len(self._known)

    @property
    def _known(self) -> dict[str, float]:
        return {**self.values, **self.found}

    @property
    def stability(self) -> str:
        """Stability in words."""
        growing = float(np.max(self.eigenvalues.real, initial=0.0))
        if self.sampled:
            return f"whether it is stable is not known: {', '.join(self.sampled)} is sampled; simulate it from there"
        creeping, share = self._creeping
        by = self._change(creeping, self.moving[creeping] * (self.horizon or 0.0)) if creeping else ""
        if self.stable is None and share > 1.0:
            return (
                f"whether it is stable within the horizon of {self.horizon:g} s is not known: {creeping} creeps by "
                f"{by} in that time, at its rate, more than it is; simulate it from there"
            )
        if self.stable is None and not self.drifts:
            return "whether it is stable is not known: in its linear part a motion neither grows nor fades"
        if self.stable is None:
            return "whether it is stable is not known: nothing brings small motions back or brakes them; they drift"
        if not self.stable:
            return f"unstable: a motion grows with {growing:.3g} 1/s"
        if self.horizon is None:
            return "stable"
        beside = f", but for what creeps: {creeping} by {by} in that time, at its rate" if creeping else ""
        return f"stable within the horizon of {self.horizon:g} s{beside}"

    @property
    def openness(self) -> tuple[str, ...]:
        """Undetermined variables in words: kept at the guess, or moved."""
        staying = [name for name in self.kept if name not in self.moved]
        moved = [f"{name} by {self._change(name, change)}" for name, change in self.moved.items()]
        return tuple(
            f"{sentences}: {', '.join(names)}"
            for sentences, names in (("open, as the guess has it", staying), ("open, moved from the guess", moved))
            if names
        )

    def __repr__(self) -> str:
        sentences = ", ".join(f"{name} = {self._with_unit(name)}" for name in self.found)
        lines = [
            f"<Equilibrium of {self.model.name}: {sentences}" if sentences else f"<Equilibrium of {self.model.name}"
        ]
        lines += [f"  {self.stability}; loads balance to {self.unbalanced_load:.2g} N or N.m"]
        lines += [f"  {sentence}" for sentence in self.openness]
        lines += [f"  {sentences}"] if (sentences := describe_pressures_above(self.above_sources, self.values)) else []
        lines += [f"  moving: {name} by {rate:.3g} {self.units[name]}/s" for name, rate in self.moving.items()]
        return "\n".join(lines) + ">"

    def _change(self, name: str, change: float) -> str:
        """Return a change of a variable with its unit."""
        unit = self.units[name]
        return f"{change:.3g}" if unit == "1" else f"{change:.3g} {unit}"

    def _with_unit(self, name: str) -> str:
        unit = self.units[name]
        return f"{self[name]:.6g}" + ("" if unit == "1" else f" {unit}")


_LOGGER = logging.getLogger(__name__)
POSITION = "position"
"""Keyword that fixes all coordinates of mechanisms."""
_FURTHEST = 1e6
"""Distance in rad or m below which round-off of fixed coordinates is negligible."""
_FREE = 1e-6
"""Change in magnitudes below which a variable is determined in every undetermined direction."""
_TOO_WEAK = 1.01
"""Factor between required and available pressure above which sources are reported as too weak."""
_UNMOVED = 1e-4
"""Fraction of magnitudes up to which undetermined variables count as kept at the guess."""


def find_equilibrium(
    model: Model,
    hold: str | Iterable[str] | Mapping[str, float | str | None] = (),
    find: Iterable[str] | Mapping[str, float | str] = (),
    horizon: float | None = None,
) -> Equilibrium[Model]:
    """Return the equilibrium of a model; see `CoupledModel.equilibrium`."""
    if horizon is not None and not horizon > 0.0:
        raise InputError(f"the horizon is {horizon:g} s; it must be positive")
    for word, values in (("held at", hold), ("found from", find)):
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(value, float | int) and not np.isfinite(value):
                raise InputError(f"'{name}' is to be {word} {value}; it must be a finite number")
    log_model_remarks(model)
    search_of = _Search(model, hold, find)
    with np.errstate(over="ignore", invalid="ignore"):  # what is beyond all numbers on the way is given up there
        rest = search(search_of.equations, horizon)
    return search_of.result(rest, horizon)


class _Search(Generic[Model]):
    """Search for the equilibrium of a model; arguments as for `CoupledModel.equilibrium`."""

    def __init__(
        self,
        model: Model,
        hold: str | Iterable[str] | Mapping[str, float | str | None],
        find: Iterable[str] | Mapping[str, float | str],
    ) -> None:
        self.model = model
        self.system = system = coupled_system(model, absolute=False)[0]
        self._references = system.qualified()
        parameters, inputs = _given(model, system)
        sought = [self._sought(reference) for reference in find]
        for each, reference in zip(sought, find, strict=True):
            if isinstance(find, Mapping):
                begin = each.variable.number(find[reference], reference)
                (inputs if each.part == "inputs" else parameters)[each.index] = begin
        self.functions = _started(system, parameters, inputs)
        held = self._held(hold)
        self.equations = EquilibriumEquations(self.functions, held, sought)
        if residual_at(self.equations, self.equations.present()) is None:
            raise InputError(f"{model.name}: loads or rates are beyond all numbers where the search begins")
        self._guess = self._present()

    def _sought(self, reference: str) -> Sought:
        """Return the free variables as `system.variable`."""
        settable = self.system.settable()
        if reference in self.model.signals:
            raise InputError(f"'{reference}' follows a signal; take it out of the signals to have it found")
        if reference not in settable:
            raise InputError(
                f"there is no '{reference}' to be found that nothing drives; {closest_match(reference, settable)}"
            )
        variable = settable[reference]
        for part in ("inputs", "parameters"):
            names = [each.name for each in getattr(self.system, part)]
            if variable.name in names:
                return Sought(variable, part, names.index(variable.name))
        raise AssertionError("what is settable is an input or a parameter")

    def _held(self, hold: str | Iterable[str] | Mapping[str, float | str | None]) -> list[Held]:
        """Return the fixed variables; without a value at that of the guess."""
        functions = self.functions
        variables = reading_variables(functions)
        references = [self._references[each.name] for each in variables]
        coordinates = references[: len(functions.coordinates)]
        asked = dict.fromkeys(coordinates) if hold == POSITION else {hold: None} if isinstance(hold, str) else hold
        wanted = dict(asked) if isinstance(asked, Mapping) else dict.fromkeys(asked)
        present = readings(functions)
        held: dict[int, Held] = {}
        for pattern, asked_value in wanted.items():
            found = [index for index, name in enumerate(references) if means(pattern, [name])]
            if not found:
                raise InputError(f"there is no '{pattern}' to be held; {closest_match(pattern, references)}")
            for index in found:
                value = None if asked_value is None else variables[index].number(asked_value, pattern)
                if value is not None and index < len(coordinates) and abs(value) > _FURTHEST:
                    where = with_unit(value, variables[index])
                    limit = with_unit(_FURTHEST, variables[index])
                    raise InputError(f"'{pattern}' is to be held at {where}; it must be within ±{limit}")
                held[index] = Held(variables[index], index, float(present[index]) if value is None else float(value))
        return list(held.values())

    # -- the result -----------------------------------------------------------------------------------------

    def result(self, rest: StaticEquilibrium, horizon: float | None) -> Equilibrium[Model]:
        """Return the equilibrium at the end of the search, or raise the infeasibility report."""
        functions, equations, name = self.functions, self.equations, self.model.name
        if not rest.found:
            sentence = unbalanced(equations, rest, self._references, self._pressures_that_fall())
            raise SimulationError(f"{name}: no equilibrium is found from this guess; at the nearest point {sentence}")
        self._check_found()
        functions.integrals[:] = functions.initial_integrals()[0]
        variables = {self._references[each.name]: each for each in reading_variables(functions)}
        found = {self._references[each.variable.name]: self._value(each) for each in equations.sought}
        variables |= {self._references[each.variable.name]: each.variable for each in equations.sought}
        present, kept = self._present(), self._kept(rest)
        values = {name: value for name, value in present.items() if name not in found}
        rates = functions.state_rates()[0].tolist()
        states = list(zip((self._references[each.name] for each in functions.system.states), rates, strict=True))
        still, about = equations.standing(), motion_about_equilibrium(equations)
        moving = {state: rate for (state, rate), stands in zip(states, still, strict=True) if not stands}
        horizon = horizon if moving else None
        above = above_sources(self.model.systems, self._numbers(), values)
        if sentence := describe_pressures_above(above, values):
            _LOGGER.warning("%s: %s", name, sentence)
        known = {**self._numbers(), **present}
        for remark in remarks(conditions_of(Machine.of(self.model)), None, known.get):
            _LOGGER.log(logging.WARNING if remark.doubtful else logging.INFO, "%s: %s", name, remark.sentence)
        return Equilibrium(
            model=self._model_at_rest(values, found),
            found=found,
            values=values,
            units={name: each.unit for name, each in variables.items()},
            kept=kept,
            moved=self._moved({name: variables[name] for name in kept}, present),
            above_sources=above,
            moving=moving,
            unbalanced_load=float(np.max(np.abs(rest.residual[equations.rows("balance")]), initial=0.0)),
            horizon=horizon,
            eigenvalues=about.eigenvalues,
            drifts=about.drifts,
            undecided=(about.undecided or (about.lingers and not kept)) and horizon is None,
            sampled=tuple(dict.fromkeys(each.owner for each in functions.system.samplings)),
        )

    def _pressures_that_fall(self) -> dict[str, tuple[float, str]]:
        """Return pressures at the end of the search that cannot be sustained, with the limiting source or valve."""
        systems, numbers, present = self.model.systems, self._numbers(), self._present()
        reasons = {name: [sentence] for name, sentence in open_reliefs(systems, numbers, present).items()}
        for name, bound in above_sources(systems, numbers, present, _TOO_WEAK).items():
            limited = relief_of(systems, numbers, name.partition(".")[0])
            reasons.setdefault(name, []).append(f"sources of its circuit bring about {bound:.4g} Pa{limited}")
        return {name: (present[name], " and ".join(sentence)) for name, sentence in reasons.items()}

    def _present(self) -> dict[str, float]:
        """Return the present readings and free variables."""
        names = [self._references[each.name] for each in reading_variables(self.functions)]
        sought = {self._references[each.variable.name]: self._value(each) for each in self.equations.sought}
        return {**dict(zip(names, readings(self.functions).tolist(), strict=True)), **sought}

    def _numbers(self) -> dict[str, float]:
        """Return the present parameters and inputs."""
        return {
            self._references[each.name]: float(value)
            for part in ("parameters", "inputs")
            for each, value in zip(getattr(self.system, part), self.functions.values(part), strict=True)
        }

    def _moved(self, variables: Mapping[str, Variable], present: Mapping[str, float]) -> dict[str, float]:
        """Return the changes of variables from the guess, unless negligible."""
        moved = {name: present[name] - self._guess[name] for name in variables}
        asked = {
            self._references[each.variable.name] for each in self.equations.sought
        }  # of any size, as displacements
        least = {name: 0.0 if name in asked else each.nominal or 1.0 for name, each in variables.items()}
        return {
            name: change
            for name, change in moved.items()
            if abs(change) > _UNMOVED * max(least[name], abs(present[name]))
        }

    def _value(self, sought: Sought) -> float:
        return float(self.functions.values(sought.part)[sought.index])

    def _check_found(self) -> None:
        """Refuse free variables outside their limits."""
        for each in self.equations.sought:
            value, (low, high) = self._value(each), each.variable.accepted
            if (low is not None and value < low) or (high is not None and value > high):
                allowed = " and ".join(
                    f"{word} {limit:g}" for word, limit in (("at least", low), ("at most", high)) if limit is not None
                )
                raise SimulationError(
                    f"{self.model.name}: it would take {self._references[each.variable.name]} = "
                    f"{with_unit(value, each.variable)} to be at rest, which must be {allowed}"
                )

    def _kept(self, rest: StaticEquilibrium) -> tuple[str, ...]:
        """Return the undetermined variables."""
        equations, system = self.equations, self.functions.system
        open_ones: list[str] = []
        for part, variables in (
            ("coordinates", system.coordinates),
            ("states", system.states),
            ("discrete", system.discrete),
            *(
                (part, [each.variable for each in equations.sought if each.part == part])
                for part in ("inputs", "parameters")
            ),
        ):
            moved = np.max(np.abs(rest.free[equations.unknowns(part)]), axis=1, initial=0.0)
            left = equations.left if part == "states" else ()
            open_ones += [
                self._references[each.name]
                for index, each in enumerate(variables)
                if moved[index] > _FREE and index not in left
            ]
        return tuple(open_ones)

    def _model_at_rest(self, values: Mapping[str, float], found: Mapping[str, float]) -> Model:
        """Return the model that starts at the equilibrium."""
        model, functions, references = self._with_numbers()
        names = [each.name for each in functions.system.parameters]
        guess = {
            index: values[pressure]
            for index, name in enumerate(names)
            if (pressure := references[name].removesuffix(".initial_pressure") + ".pressure") in values
        }
        begun = start_values(functions, guess, self.equations.left)
        if begun.unreached:
            which = references[functions.system.discrete[begun.unreached[0]].name]
            raise SimulationError(
                f"{self.model.name}: no parameter lets {which} start at {values[which]:.6g}, as at rest"
            )
        for index, value in begun.parameters.items():
            functions.parameters[index] = value
        if (beyond := beyond_start_limits(functions)) is not None:
            index, value, allowed = beyond
            variable = functions.system.limited[index]
            raise SimulationError(
                f"{self.model.name}: it would rest with {references.get(variable.name, variable.name)} = "
                f"{with_unit(value, variable)}, which must be {allowed}"
            )
        states = {references[functions.system.states[index].name]: value for index, value in begun.states.items()}
        parameters = {references[names[index]]: value for index, value in begun.parameters.items()}
        start = {name: value for name, value in model.start.items() if name not in values}
        return _changed(model, start={**start, **found, **parameters, **states})

    def _with_numbers(self) -> tuple[Model, SystemFunctions, Mapping[str, str]]:
        """Return the model with numbers for balanced pressures, its functions at equilibrium, and references.

        Needed for a found equilibrium only: a failed search does not trace the system again.
        """
        model, functions = self.model, self.functions
        if not any(data.balanced_actuators for data in circuits_of(model.systems).values()):
            return model, functions, self._references
        model = _with_pressures(model, self._guess)
        system = coupled_system(model, absolute=False)[0]
        other = _started(system, *_given(model, system))
        for part in ("coordinates", "velocities", "states", "discrete", "inputs"):
            other.write(part, functions.values(part))
        names = [each.name for each in other.system.parameters]
        for each in self.equations.sought:
            if each.part == "parameters":
                other.parameters[names.index(each.variable.name)] = self._value(each)
        return model, other, system.qualified()


def _changed(model: Model, **fields: object) -> Model:
    """Return a model with other fields."""
    return type(model)(**{**{name: getattr(model, name) for name in type(model).model_fields}, **fields})


def _given(model: ModelData, system: CoupledSystem) -> tuple[Floats, Floats]:
    """Return the start parameters and inputs of a system."""
    signals = {system.input_name(reference): signal for reference, signal in model.signals.items()}
    return starts(system.parameters), starts(InputValues(system.inputs, signals).starting())


def _started(system: CoupledSystem, parameters: Floats, inputs: Floats) -> SystemFunctions:
    """Return functions of a system at its start, with closed loops and zero velocities."""
    initialization = Initialization(system, None, inputs)
    start = initialization.run(parameters, inputs)
    functions = initialization.functions
    functions.parameters[:], functions.inputs[:] = start.parameters, inputs
    functions.coordinates[:], functions.states[:] = start.coordinates, start.states
    functions.velocities[:] = 0.0
    if functions.system.discrete:
        functions.discrete[:] = functions.initial_discrete()[0]
    functions.integrals[:] = functions.initial_integrals()[0]
    functions.follow_loops()
    drift = functions.all_closure()[2]
    if drift.any():
        name = system.constraints[int(np.argmax(np.abs(drift)))]
        raise InputError(f"{name} moves with time where {system.name} starts: there is no rest")
    return functions


def _with_pressures(model: Model, values: Mapping[str, float]) -> Model:
    """Return a model whose circuits have numbers for balanced pressures, from its start."""
    return _changed(
        model,
        systems={
            **model.systems,
            **{
                name: data.model_copy(
                    update={
                        "initial_pressures": {
                            node: values[f"{name}.{node}.pressure"] if isinstance(each, Balanced) else each
                            for node, each in data.initial_pressures.items()
                        }
                    }
                )
                for name, data in circuits_of(model.systems).items()
            },
        },
    )


# -- infeasibility report: unbalanced equations at the end of a search, in words ---------------------------------------

_MOST = 3
_LEAK = 0.1
"""Slope of regularised saturations for the test whether they affect other equations."""
_NO_EFFECT = 1e-9
"""Fraction of the largest effect on an equation below which others have none."""


def unbalanced(
    equations: EquilibriumEquations,
    rest: StaticEquilibrium,
    references: Mapping[str, str],
    fall: Mapping[str, tuple[float, str]],
) -> str:
    """Return the report: loads, rates, loops, fixed variables, and free variables without effect.

    If a search has merely failed, other guesses of free variables with an effect may help. They are not mentioned if
    fixed variables are the cause: if loops are open, or a length is outside its limits.

    Parameters
    ----------
    equations, rest
        The equations, whose functions are where the search has ended.
    references
        Variables as `system.variable`, by their names.
    fall
        Pressures in Pa that cannot last, by `system.variable`, with the reason in words.
    """
    reached = within_reach(equations, rest.unknowns)
    lengths = _lengths(equations, references) if reached else []
    ways = (_loads, _rates, _gaps) if reached else (_gaps,)
    reasons = lengths or next((sentences for way in ways if (sentences := way(equations, rest, references))), [])
    weak = [] if lengths or not reached else _too_weak(equations, rest, references, fall)
    reasons = [*reasons[:_MOST], *weak]
    without_effect = _idle(equations)
    idle = [references[name] for name in without_effect]
    if idle:
        reasons.append(
            f"{' and '.join(idle)} has no effect there" if len(idle) == 1 else f"{', '.join(idle)} have no effect there"
        )
    names = [references[each.variable.name] for each in equations.sought if each.variable.name not in without_effect]
    fails = (
        reached and not lengths and not weak and (bool(names) or not (equations.sought or _follows(equations, rest)))
    )
    return "; ".join(reasons) + (_advise_other_start_points(names) if fails else "")


def _advise_other_start_points(names: Sequence[str]) -> str:
    """Return the advice to give other guesses: of the free variables, or of the start."""
    by = f"guesses may lead to one, as by find={{'{names[0]}': …}} or --find {names[0]}=…" if names else ""
    by = by or "the start of the model is the guess, and another may lead to one"
    return f". This does not show that there is none, nor that what is missing there is the cause: {by}"


def _follows(equations: EquilibriumEquations, rest: StaticEquilibrium) -> bool:
    """Return whether the imbalance follows from loads, loops and fixed variables alone, so that no guess helps.

    This is the case if loads balance and no remaining freedom affects the changing state, such as an integral part
    driven by a fixed angle, or a leaking pressure that carries a load. Saturations are regularised for this test,
    because flow through a valve that is closed here may have an effect elsewhere. It is also the case if loads are
    unbalanced on which no remaining freedom has an effect.
    """
    if not _balanced(equations, rest):
        return _loads_follow(equations, rest)
    if (leaky := equations.leaky()) is not None:
        leaky[1][:] = _LEAK
    matrix, free = _left_free(leaky[0] if leaky else equations)
    wrong = [
        equations.rows(kind).start + np.flatnonzero(off)
        for kind in ("rates", "updates")
        for off in (_at_fault(equations, rest, kind),)
    ]
    return bool(np.max(np.abs(matrix[np.concatenate(wrong)] @ free), initial=0.0) < _NO_EFFECT)


def _loads_follow(equations: EquilibriumEquations, rest: StaticEquilibrium) -> bool:
    """Return whether the remaining freedom does not affect unbalanced loads."""
    balance, coordinates = equations.rows("balance"), equations.unknowns("coordinates")
    scaled = equations.finite_jacobian() * equations.scales
    loops = scaled[equations.rows("closure"), coordinates]
    moves = null_space(loops, RANK_TOLERANCE) if len(loops) else np.eye(coordinates.stop - coordinates.start)
    off = np.abs(moves.T @ rest.residual[balance]) > np.max(rest.allowed[balance], initial=0.0)
    given = np.concatenate([np.r_[equations.rows(kind)] for kind in ("closure", "held")]).astype(np.intp)
    effect = moves.T @ scaled[balance] @ null_space(_of_size_one(scaled)[given], RANK_TOLERANCE)
    return bool(np.max(np.abs(effect[off]), initial=0.0) < _NO_EFFECT * equations.largest_load())


def _too_weak(
    equations: EquilibriumEquations,
    rest: StaticEquilibrium,
    references: Mapping[str, str],
    fall: Mapping[str, tuple[float, str]],
) -> list[str]:
    """Return the pressures that loads determine and sources cannot supply, with the reason."""
    if not fall or not _balanced(equations, rest):
        return []
    free, states = _left_free(equations)[1], equations.functions.system.states
    rates = -np.linalg.pinv(equations.rates) @ _at_fault(equations, rest, "rates")
    sentences = []
    for index in _largest(rates, equations.scales[equations.unknowns("states")]):
        name = references[states[index].name].rpartition(".")[0] + ".pressure"
        moves = np.max(np.abs(free[equations.unknowns("states")][index]), initial=0.0)
        if name in fall and rates[index] < 0.0 and moves < _NO_EFFECT:
            needed, reason = fall[name]
            sentences.append(f"{name} has to be {needed:.4g} Pa to carry the loads, and {reason}")
    return sentences


def _balanced(equations: EquilibriumEquations, rest: StaticEquilibrium) -> bool:
    balance = equations.rows("balance")
    return bool(np.all(np.abs(rest.residual[balance]) <= rest.allowed[balance]))


def _left_free(equations: EquilibriumEquations) -> tuple[Floats, Floats]:
    """Return the row-scaled Jacobian, and the directions that loads, loops and fixed variables leave free."""
    matrix = _of_size_one(equations.finite_jacobian() * equations.scales)
    given = np.concatenate([np.r_[equations.rows(kind)] for kind in ("balance", "closure", "held")]).astype(np.intp)
    return matrix, null_space(matrix[given], RANK_TOLERANCE)


def _of_size_one(matrix: Floats) -> Floats:
    sizes = np.max(np.abs(matrix), axis=1, initial=0.0)
    return matrix / np.where(sizes > 0.0, sizes, 1.0)[:, None]


def _lengths(equations: EquilibriumEquations, references: Mapping[str, str]) -> list[str]:
    """Return the lengths, such as those of cylinders, that are outside their limits because of fixed variables."""
    return [
        f"{references.get(variable.name, variable.name)} is {value:.6g} m, which must be between {low:g} and {high:g} m"
        for variable, value, low, high in (beyond_limits(equations) if equations.held else ())
    ]


def _loads(equations: EquilibriumEquations, rest: StaticEquilibrium, references: Mapping[str, str]) -> list[str]:
    """Return the unbalanced coordinates, and the missing loads."""
    rows = equations.rows("balance")
    off, allowed = rest.residual[rows], rest.allowed[rows]
    if np.all(np.abs(off) <= allowed):
        return []
    functions, system = equations.functions, equations.functions.system
    loops, mass = functions.closure()[1], functions.equilibrium()[0]
    free = null_space(loops, RANK_TOLERANCE)
    begun = -free @ np.linalg.lstsq(free.T @ mass @ free, free.T @ off, rcond=RANK_TOLERANCE)[0]
    # of coordinates that loops make depend on each other, those that are moved most have the loads
    shares = np.maximum(np.abs(begun), 1e-3 * np.max(np.abs(begun)))
    chosen = pivot_columns(free.T * shares)[1]
    missing = np.linalg.lstsq(free[chosen].T, free.T @ off, rcond=RANK_TOLERANCE)[0]
    counts = np.abs(missing) > 1e-6 * np.max(np.abs(missing), initial=0.0)
    chosen, missing = chosen[counts], missing[counts]
    order = np.argsort(-np.abs(begun[chosen]), kind="stable")
    sentences = []
    for index, load in zip(chosen[order[:_MOST]].tolist(), missing[order[:_MOST]].tolist(), strict=True):
        coordinate, acceleration = system.coordinates[index], system.accelerations[index]
        unit = "N" if coordinate.unit == "m" else "N.m"
        sentences.append(
            f"{abs(load):.4g} {unit} are missing at {references[coordinate.name]}, whose acceleration would be "
            f"{begun[index]:.3g} {acceleration.unit}"
        )
    return sentences


def _rates(equations: EquilibriumEquations, rest: StaticEquilibrium, references: Mapping[str, str]) -> list[str]:
    """Return the states that would change, and discrete states with each update."""
    off = _at_fault(equations, rest, "rates")
    states, scales = equations.functions.system.states, equations.scales
    rates = _without_followers(equations, -np.linalg.pinv(equations.rates) @ off)
    reasons = [
        f"{references[states[index].name]} would change by {rates[index]:.3g} {states[index].unit}/s"
        for index in _largest(rates, scales[equations.unknowns("states")])
    ]
    off, discrete = _at_fault(equations, rest, "updates"), equations.functions.system.discrete
    for index in _largest(off, scales[equations.unknowns("discrete")]):
        change = with_unit(float(off[index]), discrete[index])
        reasons.append(f"{references[discrete[index].name]} would change by {change} with each update")
    return reasons


def _at_fault(equations: EquilibriumEquations, rest: StaticEquilibrium, kind: str) -> Floats:
    """Return the infeasible part of the residuals of a kind; the residuals themselves if that is zero."""
    rows = equations.rows(kind)
    for off in (rest.conflict[rows], rest.residual[rows]):
        counts = np.abs(off) > rest.allowed[rows]
        if counts.any():
            return np.where(counts, off, 0.0)
    return np.zeros(rows.stop - rows.start)


def _without_followers(equations: EquilibriumEquations, rates: Floats) -> Floats:
    """Return rates without those of states on which nothing depends at the present point.

    Unchanged if all are of this kind.
    """
    first = equations.rows("closure").stop
    states = equations.unknowns("states")
    matrix = equations.unreduced_jacobian()
    own = first + np.arange(len(rates))
    effects = matrix[:, states] != 0.0
    following = np.zeros(len(rates), dtype=bool)
    while True:
        others = effects.copy()
        others[own, np.arange(len(rates))] = False
        others[own[following]] = False
        more = ~others.any(axis=0) & effects[own, np.arange(len(rates))]
        if np.array_equal(more, following):
            break
        following = more
    kept = np.where(following, 0.0, rates)
    return kept if kept.any() else rates


def _largest(changes: Floats, scales: Floats) -> list[int]:
    """Return the indices of the largest changes in magnitudes, without negligible ones."""
    shares = np.abs(changes) / scales
    least = 1e-6 * np.max(shares, initial=0.0)
    return [index for index in np.argsort(-shares, kind="stable")[:_MOST].tolist() if shares[index] > least]


def _gaps(equations: EquilibriumEquations, rest: StaticEquilibrium, references: Mapping[str, str]) -> list[str]:
    """Return the open loops, and the fixed variables that are not at their values."""
    sentences = []
    rows = equations.rows("closure")
    for name, off, allowed in zip(
        equations.functions.system.constraints, rest.residual[rows], rest.allowed[rows], strict=True
    ):
        if abs(off) > allowed:
            sentences.append(f"{name} is open by {off:.3g}")
    rows = equations.rows("held")
    for each, off, allowed in zip(equations.held, rest.residual[rows], rest.allowed[rows], strict=True):
        if abs(off) > allowed:
            sentences.append(
                f"{references[each.variable.name]} is {with_unit(each.value + off, each.variable)} where "
                f"{with_unit(each.value, each.variable)} was to be held"
            )
    return sentences


def _idle(equations: EquilibriumEquations) -> list[str]:
    """Return the free variables without effect."""
    matrix = equations.jacobian()
    return [
        each.variable.name
        for part in ("inputs", "parameters")
        for each, column in zip(
            [one for one in equations.sought if one.part == part], matrix[:, equations.unknowns(part)].T, strict=True
        )
        if not column.any()
    ]
