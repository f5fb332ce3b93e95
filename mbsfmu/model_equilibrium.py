"""The equilibrium of a whole model: where it rests, or what holds it where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

import numpy as np

from hydraulics import Circuit
from hydraulics.circuit import Balanced
from mbsfmu.data import meant
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.formulations.coupled_system import CoupledSystem
from mbsfmu.formulations.functions import SystemFunctions
from mbsfmu.formulations.initialization import Initialization, check_limits
from mbsfmu.formulations.model_systems import coupled_system
from mbsfmu.formulations.rest_equations import Held, RestEquations, Sought, reading_variables, readings
from mbsfmu.formulations.rest_newton import Rest
from mbsfmu.formulations.rest_search import search
from mbsfmu.formulations.rest_stability import GROWING, motion_about_rest
from mbsfmu.formulations.rest_start import start_values
from mbsfmu.formulations.rest_unbalanced import unbalanced
from mbsfmu.formulations.system import starts
from mbsfmu.formulations.workspace import Floats
from mbsfmu.model.coupled import ModelData
from mbsfmu.simulation.inputs import InputValues
from mbsfmu.variables import with_unit

POSITION = "position"
"""What holds all coordinates of mechanisms."""
Model = TypeVar("Model", bound=ModelData)
_FURTHEST = 1e6
"""In rad or m: where coordinates that are held are no further, round-off is of no account."""
_FREE = 1e-6
"""In magnitudes: what moves less in every direction that is open is not open itself."""


@dataclass(frozen=True, repr=False)
class Equilibrium(Generic[Model]):
    """Where a model is at rest.

    Attributes
    ----------
    model
        The model with its `start` there: it is simulated, exported and compared as every model.
    found
        What was asked for, by `system.variable`.
    values
        Coordinates, states and outputs there, by `system.variable`.
    units
        Units of all these, by the same names.
    kept
        What the conditions of rest leave open, and the guess has decided.
    moving
        Rates, in the units of what they belong to over s, of states that move all the same: those that nothing depends
        on, as angles of shafts that turn, and with a horizon those that are slower.
    unbalanced_load
        The largest load that is left, in N m or N.
    horizon
        As it was asked for, in s.
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
    moving: dict[str, float]
    unbalanced_load: float
    horizon: float | None
    eigenvalues: np.typing.NDArray[np.complex128]
    drifts: bool
    undecided: bool
    sampled: tuple[str, ...]

    @property
    def stable(self) -> bool | None:
        """Whether no small motion about it grows within the horizon, as far as the linear part tells.

        None where it is not known, for blocks are sampled, small motions drift, or what is not linear decides.
        """
        slowest = GROWING if self.horizon is None else 1.0 / self.horizon
        grows = bool(np.max(self.eigenvalues.real, initial=-np.inf) > slowest)
        return None if self.sampled or ((self.drifts or self.undecided) and not grows) else not grows

    def __getitem__(self, name: str) -> float:
        """Return a value by `system.variable`.

        Raises
        ------
        InputError
            When there is none of that name.
        """
        if name not in self._known:
            raise InputError(
                f"there is no '{name}' at the equilibrium of {self.model.name}; {meant(name, self._known)}"
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
        """Whether it is stable, in words."""
        growing = float(np.max(self.eigenvalues.real, initial=0.0))
        if self.sampled:
            return f"whether it is stable is not known: {', '.join(self.sampled)} is sampled; simulate it from there"
        if self.stable is None and not self.drifts:
            return "whether it is stable is not known: in its linear part a motion neither grows nor fades"
        if self.stable is None:
            return "whether it is stable is not known: nothing brings small motions back or brakes them; they drift"
        return "stable" if self.stable else f"unstable: a motion grows with {growing:.3g} 1/s"

    def __repr__(self) -> str:
        told = ", ".join(f"{name} = {self._with_unit(name)}" for name in self.found)
        lines = [f"<Equilibrium of {self.model.name}: {told}" if told else f"<Equilibrium of {self.model.name}"]
        lines += [f"  {self.stability}; loads balance to {self.unbalanced_load:.2g} N or N.m"]
        lines += [f"  open, as the guess has it: {', '.join(self.kept)}"] if self.kept else []
        lines += [f"  moving: {name} by {rate:.3g} {self.units[name]}/s" for name, rate in self.moving.items()]
        return "\n".join(lines) + ">"

    def _with_unit(self, name: str) -> str:
        unit = self.units[name]
        return f"{self[name]:.6g}" + ("" if unit == "1" else f" {unit}")


def find_equilibrium(
    model: Model,
    hold: str | Iterable[str] | Mapping[str, float | None] = (),
    find: Iterable[str] | Mapping[str, float] = (),
    horizon: float | None = None,
) -> Equilibrium[Model]:
    """Return the equilibrium of a model; see `CoupledModel.equilibrium`."""
    if horizon is not None and not horizon > 0.0:
        raise InputError(f"the horizon is {horizon:g} s; it must be positive")
    for word, values in (("held at", hold), ("found from", find)):
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if value is not None and not np.isfinite(value):
                raise InputError(f"'{name}' is to be {word} {value}; it must be a finite number")
    search_of = _Search(model, hold, find)
    rest = search(search_of.equations, horizon)
    return search_of.result(rest, horizon)


class _Search(Generic[Model]):
    """A search for the equilibrium of a model; arguments as for `CoupledModel.equilibrium`."""

    def __init__(
        self,
        model: Model,
        hold: str | Iterable[str] | Mapping[str, float | None],
        find: Iterable[str] | Mapping[str, float],
    ) -> None:
        self.model = model = _with_pressures(model)
        self.system = system = coupled_system(model, absolute=False)
        self._references = system.qualified()
        parameters, inputs = _given(model, system)
        sought = [self._sought(reference) for reference in find]
        for each, reference in zip(sought, find, strict=True):
            if isinstance(find, Mapping):
                (inputs if each.part == "inputs" else parameters)[each.index] = find[reference]
        self.functions = _started(system, parameters, inputs)
        held = self._held(hold)
        self.equations = RestEquations(self.functions, held, sought)

    def _sought(self, reference: str) -> Sought:
        """Return what is asked for as `system.variable`."""
        settable = self.system.settable()
        if reference in self.model.signals:
            raise InputError(f"'{reference}' follows a signal; take it out of the signals to have it found")
        if reference not in settable:
            raise InputError(f"there is no '{reference}' to be found that nothing drives; {meant(reference, settable)}")
        variable = settable[reference]
        for part in ("inputs", "parameters"):
            names = [each.name for each in getattr(self.system, part)]
            if variable.name in names:
                return Sought(variable, part, names.index(variable.name))
        raise AssertionError("what is settable is an input or a parameter")

    def _held(self, hold: str | Iterable[str] | Mapping[str, float | None]) -> list[Held]:
        """Return what is held; where no value is given, at that of the guess."""
        functions = self.functions
        variables = reading_variables(functions)
        references = [self._references[each.name] for each in variables]
        coordinates = references[: len(functions.coordinates)]
        asked = dict.fromkeys(coordinates) if hold == POSITION else {hold: None} if isinstance(hold, str) else hold
        wanted = dict(asked) if isinstance(asked, Mapping) else dict.fromkeys(asked)
        present = readings(functions)
        held: dict[int, Held] = {}
        for pattern, value in wanted.items():
            found = [index for index, name in enumerate(references) if name == pattern or fnmatchcase(name, pattern)]
            if not found:
                raise InputError(f"there is no '{pattern}' to be held; {meant(pattern, references)}")
            for index in found:
                if value is not None and index < len(coordinates) and abs(value) > _FURTHEST:
                    where = with_unit(value, variables[index])
                    limit = with_unit(_FURTHEST, variables[index])
                    raise InputError(f"'{pattern}' is to be held at {where}; it must be within ±{limit}")
                held[index] = Held(variables[index], index, float(present[index]) if value is None else float(value))
        return list(held.values())

    # -- the result -----------------------------------------------------------------------------------------

    def result(self, rest: Rest, horizon: float | None) -> Equilibrium[Model]:
        """Return the equilibrium where the search has ended, or say what is missing where it came closest."""
        functions, equations, name = self.functions, self.equations, self.model.name
        if not rest.found:
            told = unbalanced(equations, rest, self._references)
            raise SimulationError(f"{name}: no equilibrium is found from this guess; at the nearest point {told}")
        self._check_found()
        functions.integrals[:] = functions.initial_integrals()[0]
        variables = reading_variables(functions)
        values = dict(
            zip((self._references[each.name] for each in variables), readings(functions).tolist(), strict=True)
        )
        found = {self._references[each.variable.name]: self._value(each) for each in equations.sought}
        units = {
            self._references[each.name]: each.unit
            for each in (*variables, *(each.variable for each in equations.sought))
        }
        rates = functions.state_rates()[0].tolist()
        states = list(zip((self._references[each.name] for each in functions.system.states), rates, strict=True))
        still, about = equations.standing(), motion_about_rest(equations)
        return Equilibrium(
            model=self._begun(values, found),
            found=found,
            values=values,
            units=units,
            kept=self._kept(rest),
            moving={state: rate for (state, rate), stands in zip(states, still, strict=True) if not stands},
            unbalanced_load=float(np.max(np.abs(rest.residual[equations.rows("balance")]), initial=0.0)),
            horizon=horizon,
            eigenvalues=about.eigenvalues,
            drifts=about.drifts,
            undecided=about.undecided and horizon is None,
            sampled=tuple(dict.fromkeys(each.owner for each in functions.system.samplings)),
        )

    def _value(self, sought: Sought) -> float:
        return float(self.functions.values(sought.part)[sought.index])

    def _check_found(self) -> None:
        """Refuse what is asked for beyond its limits."""
        for each in self.equations.sought:
            value, low, high = self._value(each), each.variable.minimum, each.variable.maximum
            if (low is not None and value < low) or (high is not None and value > high):
                allowed = " and ".join(
                    f"{word} {limit:g}" for word, limit in (("at least", low), ("at most", high)) if limit is not None
                )
                raise SimulationError(
                    f"{self.model.name}: it would take {self._references[each.variable.name]} = "
                    f"{with_unit(value, each.variable)} to be at rest, which must be {allowed}"
                )

    def _kept(self, rest: Rest) -> tuple[str, ...]:
        """Return what can move without leaving rest."""
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

    def _begun(self, values: Mapping[str, float], found: Mapping[str, float]) -> Model:
        """Return the model that starts at the equilibrium."""
        functions, references = self.functions, self._references
        names = [each.name for each in functions.system.parameters]
        guess = {
            index: values[pressure]
            for index, name in enumerate(names)
            if (pressure := references[name].removesuffix(".initial_pressure") + ".pressure") in values
        }
        begun = start_values(functions, guess)
        if begun.unreached:
            which = references[functions.system.discrete[begun.unreached[0]].name]
            raise SimulationError(
                f"{self.model.name}: no parameter lets {which} start at {values[which]:.6g}, as at rest"
            )
        for index, value in begun.parameters.items():
            functions.parameters[index] = value
        try:
            check_limits(functions)
        except InputError as error:
            raise SimulationError(f"{self.model.name}: at the equilibrium {error}") from None
        states = {references[functions.system.states[index].name]: value for index, value in begun.states.items()}
        parameters = {references[names[index]]: value for index, value in begun.parameters.items()}
        start = {name: value for name, value in self.model.start.items() if name not in values}
        return _changed(self.model, start={**start, **found, **parameters, **states})


def _changed(model: Model, **fields: object) -> Model:
    """Return a model with other fields."""
    return type(model)(**{**{name: getattr(model, name) for name in type(model).model_fields}, **fields})


def _given(model: ModelData, system: CoupledSystem) -> tuple[Floats, Floats]:
    """Return the parameters and inputs that a system starts with."""
    signals = {system.input_name(reference): signal for reference, signal in model.signals.items()}
    return starts(system.parameters), starts(InputValues(system.inputs, signals).starting())


def _started(system: CoupledSystem, parameters: Floats, inputs: Floats) -> SystemFunctions:
    """Return functions of a system that hold its start, with loops closed and at rest."""
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


def _with_pressures(model: Model) -> Model:
    """Return a model whose circuits have numbers for pressures that balance actuators at the start."""
    if not any(isinstance(data, Circuit) and data.balanced_actuators for data in model.systems.values()):
        return model
    system = coupled_system(model, absolute=False)
    functions = _started(system, *_given(model, system))
    names = (system.qualified()[each.name] for each in reading_variables(functions))
    values = dict(zip(names, readings(functions).tolist(), strict=True))
    return _changed(
        model,
        systems={
            name: data.model_copy(
                update={
                    "initial_pressures": {
                        node: values[f"{name}.{node}.pressure"] if isinstance(each, Balanced) else each
                        for node, each in data.initial_pressures.items()
                    }
                }
            )
            if isinstance(data, Circuit)
            else data
            for name, data in model.systems.items()
        },
    )
