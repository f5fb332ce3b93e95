"""Checks of user-defined parts: they can be traced, and their equations are consistent."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from hydraulics import CircuitEquations, Component, HydraulicActuator
from mbsfmu.base.errors import InputError
from mbsfmu.equations.forces import ActingForce, Given, MechanismForces, MechanismSensors, PlacedSensor, Seen
from mbsfmu.equations.joint_coordinates import MotionState
from mbsfmu.equations.kinematics import NO_TURN, Kinematics
from mbsfmu.equations.rotation import (
    cross,
    quaternion_product,
    rotation_about,
    rotation_from_quaternion,
    rotation_from_vector,
    unit,
)
from mbsfmu.model.body import missing_in
from mbsfmu.model.force import BodyPoint
from mbsfmu.model.joint import ClosureEquation, Joint
from mbsfmu.modelling import Data, DataError, DynamicPart, is_table, parameter_fields
from mbsfmu.modelling.data import Array
from mbsfmu.modelling.part import is_built_in
from mbsfmu.modelling.variables import with_unit
from mbsfmu.systems.system import InertiaTensors, System, require_capability
from mbsfmu.tracing.symbols import TracingError, expression, no_number_of_symbols, symbols

_LIBRARIES = ("hydraulics", "mbsfmu", "numpy", "casadi", "pydantic")
_AGREEMENT, _ROUND_OFF = 1e-9, 1e-13
"""Round-off tolerances between symbolic and numeric results: relative to a number, and to the function's largest."""
_LAST_DIGITS, _SAMPLES, _SAFETY = 1e-15, 8, 10.0
"""Estimation of round-off: relative perturbation of arguments, number of samples, safety factor."""

Answer = TypeVar("Answer")
Answers = Callable[..., Mapping[str, Sequence[Array | float]]]


def check_part(owner: str, kind: type[Data], answers: Answers, points: Callable[[], Sequence[Sequence[Array]]]) -> None:
    """Refuse a part whose equations cannot be traced, or whose symbolic results differ.

    Parameters
    ----------
    owner
        Type and name of the part.
    kind
        Its class.
    answers
        Returns what each of its functions gives, by the function's name; takes arrays of numbers or of symbols.
    points
        Tells where symbols are to give what numbers give: for each point, the arguments of `answers`.

    Raises
    ------
    InputError
        When the part fails, with the line where it does.
    """
    with np.errstate(all="ignore"):
        places = _answered(owner, kind, points)
        numbers = [_answered(owner, kind, lambda place=place: answers(*place)) for place in places]
        made = [symbols(f"argument_{index}", len(values)) for index, values in enumerate(places[0])]
        with no_number_of_symbols():
            traced = _answered(owner, kind, lambda: answers(*(array for _, array in made)))
    for name, expected in traced.items():
        stacked = ca.vertcat(ca.SX(0, 1), *(expression(value) for value in expected))
        function = ca.Function("answer", [vector for vector, _ in made], [stacked])
        given = [np.array([float(value) for value in each[name]]) for each in numbers]
        for point, numeric in zip(places, given, strict=True):
            symbolic = np.asarray(function(*point)).ravel()
            if _agree(symbolic, numeric, given):
                continue

            def by_numbers(place: Sequence[Array], name: str = name) -> Array:
                return np.array([float(value) for value in answers(*place)[name]])

            def by_symbols(place: Sequence[Array], function: ca.Function = function) -> Array:
                return np.asarray(function(*place)).ravel()

            if symbolic.shape != numeric.shape or not _within(
                symbolic - numeric, max(round_off(by_numbers, point), round_off(by_symbols, point))
            ):
                raise InputError(
                    f"{owner} is refused: {name} of {_place(kind)} gives {_formatted(numeric)} with numbers and "
                    f"{_formatted(symbolic)} when it is traced; equations follow from what they are given alone"
                )


def round_off(function: Callable[[Sequence[Array]], Array], point: Sequence[Array]) -> float:
    """Return the round-off of a function's largest number.

    If large numbers cancel to zero, as in the distance of two points that a joint connects, the result is pure
    round-off, and its size is unknown from the result. Perturbed arguments show it.

    Parameters
    ----------
    function
        Takes the arguments.
    point
        The arguments.
    """
    random = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        there = function(point)
        if not np.array_equal(there, function(point), equal_nan=True):
            return 0.0  # it depends on more than it is given, which is no round-off
        near = [[each * _nearly_one(random, each) for each in point] for _ in range(_SAMPLES)]
        changes = [function(arguments) - there for arguments in near]
    return _SAFETY * float(np.max(np.abs(changes), initial=0.0, where=np.isfinite(changes)))


def _nearly_one(random: np.random.Generator, values: Array) -> Array:
    return 1.0 + _LAST_DIGITS * random.uniform(-1.0, 1.0, len(values))


def _within(differences: Array, most: float) -> bool:
    return bool(np.all(np.abs(differences) <= most))


def _agree(symbolic: Array, numeric: Array, everywhere: Sequence[Array]) -> bool:
    """Return whether two vectors of numbers differ by round-off only."""
    if any(symbolic.shape != each.shape for each in everywhere):
        return False
    largest = np.max(np.abs(everywhere), axis=0, where=np.isfinite(everywhere), initial=0.0)
    tolerance = _AGREEMENT * largest + _ROUND_OFF * np.max(largest[np.isfinite(largest)], initial=0.0)
    same = (symbolic == numeric) | (np.isnan(symbolic) & np.isnan(numeric))
    return bool(np.all(same | (np.abs(symbolic - numeric) <= tolerance)))


def _answered(owner: str, kind: type[Data], call: Callable[[], Answer]) -> Answer:
    """Call functions of a part; report exceptions with their location."""
    try:
        return call()
    except (DataError, InputError):
        raise
    except Exception as error:  # whatever a user's function raises
        # NumPy says of some that they are no numbers in words of its own.
        known = next((each for each in (error, error.__cause__) if isinstance(each, TracingError)), None)
        reason = f"raises {type(error).__name__}: {' '.join(str(error).split())}" if known is None else str(known)
        raise InputError(f"{owner} is refused: {_line(error, kind)} {reason}") from error


def _line(error: BaseException, kind: type[Data]) -> str:
    """Return the user's source line of an error, in words."""
    folders = tuple(str(Path(str(module.__file__)).parent) for module in map(__import__, _LIBRARIES))
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(folders)]
    if not own:
        return f"a function of {_place(kind)}"
    return f"{own[-1].filename}, line {own[-1].lineno} (`{own[-1].line}`),"


def _place(kind: type[Data]) -> str:
    return kind.__name__


def _formatted(values: Array) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in values) + ")"


Part = TypeVar("Part", bound=DynamicPart)
_STRUCTURE = ("states", "inputs", "outputs", "limited", "orderings")
"""Fields of a part that describe its structure."""


def with_hidden_numbers(part: Part) -> Part:
    """Return a part whose parameter fields raise a `TracingError` when its equations read them.

    Such values would not change with parameters that a run, a study or an importer sets.

    Raises
    ------
    InputError
        When `states` takes from such a field where a state begins.
    """
    if part.states() and not part.gives("initial_states"):
        _check_starts(part)
    hidden = copy(part)
    fields = {name: getattr(part, name) for name in type(part).model_fields}
    structure = {name: getattr(part, name) for name in _STRUCTURE if hasattr(part, name)}
    object.__setattr__(hidden, "__dict__", {**fields, **structure})
    object.__setattr__(hidden, "__class__", _hiding(type(part)))
    return hidden


def _check_starts(part: DynamicPart) -> None:
    """Refuse a part whose initial states depend directly on parameter fields."""
    for field in parameter_fields(type(part)):
        other = copy(part)
        object.__setattr__(other, "__dict__", {**part.__dict__, field: _changed(getattr(part, field))})
        for state, elsewhere in zip(part.states(), other.states(), strict=True):
            if state.start != elsewhere.start:
                raise InputError(
                    f"{part.type} '{part.name}' is refused: states() takes the start of '{state.name}' from the "
                    f"parameter self.{field}, and a value set later would not reach it; give the start in "
                    f'initial_states(now), from now["{field}"]'
                )


def _changed(value: Any) -> Any:
    if value is None:
        return None
    return tuple(map(_changed, value)) if isinstance(value, tuple) else 1.125 * value + 0.5


@cache
def _hiding(kind: type[Part]) -> type[Part]:
    """Return a subclass with inaccessible parameter fields."""
    hiding: Any = type(kind)(kind.__name__, (kind,), {"__module__": kind.__module__}, abstract=True)
    for field in parameter_fields(kind):
        hides = _hidden_values if is_table(kind.model_fields[field].annotation) else _refusal
        setattr(hiding, field, hides(field))
    return hiding


def _refusal(field: str) -> property:
    def read(_: DynamicPart) -> float:
        raise _reads(field, f'now["{field}"], the parameter')

    return property(read)


def _hidden_values(field: str) -> property:
    """Return a property for a table, whose places are structure and whose values are hidden."""

    def read(part: DynamicPart) -> tuple[tuple[float, _Hidden], ...]:
        return tuple((place, _Hidden(field)) for place, _ in vars(part)[field])

    return property(read)


def _reads(field: str, instead: str) -> TracingError:
    return TracingError(f"reads self.{field}, which stays as it is in the data whatever is set; take {instead}")


class _Hidden:
    """A value of a table that no equation may take."""

    def __init__(self, field: str) -> None:
        self._field = field

    def _refuse(self, *_: object) -> Any:
        raise _reads(self._field, f'now["{self._field}_1"] and so on, the parameters, as `tabulated` does')

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __float__ = __neg__ = __array__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse


def check_parameters(system: System, parameters: Array) -> None:
    """Check the relations between parameters of a system.

    Raises
    ------
    InputError
        When they contradict each other.
    """
    if contradiction := contradiction_of(system, parameters):
        raise InputError(contradiction)


def contradiction_of(system: System, parameters: Array) -> str | None:
    """Return why parameters of a system are inconsistent, or None.

    They are inconsistent if one does not exceed another as `orderings` demands, or an inertia tensor is impossible.
    """
    for smaller, greater in system.orderings:
        if not parameters[greater] > parameters[smaller]:
            variable = system.parameters[greater]
            return (
                f"{variable.name} is {with_unit(parameters[greater], variable)}; "
                f"it must be greater than {system.parameters[smaller].name}, {parameters[smaller]:g}"
            )
    tensors = require_capability(system, InertiaTensors).inertia_tensors(parameters).reshape(-1, 6)
    for tensor, values in zip(system.tensors, tensors.tolist(), strict=True):
        if missing := missing_in(values, rod=tensor.rod):
            moments, products = (", ".join(f"{each:g}" for each in part) for part in (values[:3], values[3:]))
            return (
                f"the moments of inertia of body '{tensor.body}' are ({moments}), the products of inertia "
                f"({products}) kg.m2; {missing}"
            )
    return None


_CIRCUIT_AGREEMENT = 1e-8
"""Round-off tolerance of volume rates."""


def check_displacements(
    component: Component, equations: CircuitEquations, points: Callable[[], Sequence[Sequence[Array]]]
) -> None:
    """Refuse a component whose volume rates differ from its displacements: it would create or lose oil.

    States change by their rates, the length of an actuator by its velocity. Rates of other inputs are unknown. Constant
    volumes, as of a closed chamber, are not checked.

    Parameters
    ----------
    component, equations
        The component, and the equations of its circuit.
    points
        Tells where they are tried: states, inputs, parameters and discrete states of the circuit.

    Raises
    ------
    InputError
        When the component fails.
    """
    made = [symbols(f"argument_{index}", len(values)) for index, values in enumerate(points()[0])]
    (states, _), (inputs, _), *_ = made
    arrays = [array for _, array in made]
    rates, moving = expression(equations.rates(*arrays)), _input_rates(component, equations, inputs)
    for port, (volume, displaced) in equations.moving_volumes(component, *arrays).items():
        space = expression(volume)
        if moving is None and ca.depends_on(space, inputs):
            continue
        growing = ca.jtimes(space, states, rates)
        if moving is not None:
            growing += ca.jtimes(space, inputs, moving)
        function = ca.Function("growth", [vector for vector, _ in made], [growing, expression(displaced)])
        for point in points():
            growth, pushed = (float(np.asarray(each).item()) for each in function(*point))
            if growth and abs(growth + pushed) > _CIRCUIT_AGREEMENT * max(abs(growth), abs(pushed)):
                raise InputError(
                    f"{component.type} '{component.name}' is refused: its volume at port '{port}' changes by "
                    f"{growth:.6g} m3/s where displacements gives {pushed:.6g} m3/s there; it must be minus that, or "
                    "oil comes from nothing"
                )


def check_energy(
    component: Component, equations: CircuitEquations, points: Callable[[], Sequence[Sequence[Array]]]
) -> None:
    """Refuse a component whose energy rate differs from its `energy_rate`.

    Otherwise the energy balance of the circuit would wrongly indicate an integration error. Parameters as for
    `check_displacements`.

    Raises
    ------
    InputError
        When the component fails.
    """
    made = [symbols(f"argument_{index}", len(values)) for index, values in enumerate(points()[0])]
    (states, _), (inputs, _), *_ = made
    arrays = [array for _, array in made]
    answers, moving = equations.answers(component, *arrays), _input_rates(component, equations, inputs)
    energy, told = (expression(answers[name][0]) for name in ("energy", "energy_rate"))
    if moving is None and ca.depends_on(energy, inputs):
        return
    rate = ca.jtimes(energy, states, expression(equations.rates(*arrays)))
    if moving is not None:
        rate += ca.jtimes(energy, inputs, moving)
    function = ca.Function("energy", [vector for vector, _ in made], [rate, told])
    for point in points():
        storing, said = (float(np.asarray(each).item()) for each in function(*point))
        if abs(storing - said) > _CIRCUIT_AGREEMENT * max(abs(storing), abs(said)):
            raise InputError(
                f"{component.type} '{component.name}' is refused: its energy changes by {storing:.6g} W where "
                f"energy_rate gives {said:.6g} W"
            )


def _input_rates(component: Component, equations: CircuitEquations, inputs: ca.SX) -> ca.SX | None:
    """Return the rates of a circuit's inputs from the component's motion; None without motion."""
    if not isinstance(component, HydraulicActuator) or len(component.motion) != 2:
        return None
    names = [each.name for each in equations.inputs]
    length, velocity = (names.index(f"{component.name}.{each}") for each in component.motion)
    rates = ca.SX.zeros(len(names))
    rates[length] = inputs[velocity]
    return rates


_BALANCE = 1e-8
"""Round-off tolerance of the balance, relative to the largest power."""

Moment = Callable[..., tuple[MotionState, Given]]
"""Returns the evaluation context of forces from the arrays of a trial."""
Trial = Sequence[Array]
"""Coordinates, velocities, accelerations, states, inputs and parameters of a mechanism."""


def check_forces(
    forces: MechanismForces,
    sensors: MechanismSensors,
    kinematics: Kinematics,
    references: int,
    trials: Callable[[], Sequence[Trial]],
) -> None:
    """Refuse user-defined forces and sensors that cannot be traced, and forces with a wrong power balance.

    Parameters
    ----------
    forces, sensors, kinematics
        Of the mechanism.
    references
        Number of orientations that joints of the mechanism are described from.
    trials
        Tells where they are tried.

    Raises
    ------
    InputError
        When a force or a sensor fails.
    """
    no_turns = np.tile(NO_TURN, references)

    def moment(
        coordinates: Array, velocities: Array, _: Array, states: Array, inputs: Array, parameters: Array
    ) -> tuple[MotionState, Given]:
        frames = kinematics.frames(coordinates, no_turns, parameters)
        moving = kinematics.velocities(frames, velocities)
        return MotionState(coordinates, velocities, frames, moving), Given(states, inputs, parameters)

    def seen(*trial: Array) -> Seen:
        motion, given = moment(*trial)
        accelerations = partial(
            kinematics.accelerations, motion.frames, motion.body_velocities, motion.velocities, trial[2]
        )
        return Seen(motion, accelerations, given.parameters)

    for acting in forces.acting:
        kind = type(acting.force)
        if not is_built_in(kind):
            tried = copy(acting)
            tried.force = with_hidden_numbers(acting.force)
            check_part(acting.owner, kind, partial(_answers, tried, moment), trials)
            _check_power(acting, moment, trials())
    for placed in sensors.placed:
        if not is_built_in(type(placed.sensor)):
            told = partial(_readings, _unseen_numbers(placed), seen)
            check_part(placed.owner, type(placed.sensor), told, trials)


def _unseen_numbers(placed: PlacedSensor) -> PlacedSensor:
    """Return a sensor whose data hide the numbers that are parameters."""
    tried = copy(placed)
    tried.sensor = with_hidden_numbers(placed.sensor)
    return tried


def _readings(placed: PlacedSensor, seen: Callable[..., Seen], *trial: Array) -> Mapping[str, Sequence[Array | float]]:
    """Return the results of a sensor, by the name of its function."""
    return {"evaluate_outputs": placed.evaluate_outputs(seen(*trial))}


def _answers(acting: ActingForce, moment: Moment, *trial: Array) -> Mapping[str, Sequence[Array | float]]:
    """Return the results of each function of a force, by the function's name."""
    motion, given = moment(*trial)
    names = ("work_rate", "dissipation", "energy")
    return {
        "loads": acting.components(motion, given),
        **{name: [acting.scalar(name, motion, given)] for name in names},
        "rates": acting.rates(motion, given),
        "evaluate_outputs": acting.evaluate_outputs(motion, given),
        "evaluate_event_indicators": acting.evaluate_event_indicators(motion, given),
        "initial_states": acting.initial_states(given.parameters),
    }


def _check_power(acting: ActingForce, moment: Moment, trials: Sequence[Trial]) -> None:
    """Refuse a force whose load power differs from work_rate − dissipation − dE/dt.

    Otherwise the energy balance of the mechanism would wrongly indicate an integration error.
    """
    made = [symbols(f"argument_{index}", len(values)) for index, values in enumerate(trials[0])]
    (coordinates, _), (velocities, _), _, (states, _), *_ = made
    motion, given = moment(*(array for _, array in made))
    work, loss, energy = (
        expression(acting.scalar(name, motion, given)) for name in ("work_rate", "dissipation", "energy")
    )
    rates = ca.vertcat(ca.SX(0, 1), *(expression(rate) for rate in acting.rates(motion, given)))
    storing = ca.jtimes(energy, coordinates, velocities) + ca.jtimes(energy, states, rates)
    power = expression(acting.power(motion, given))
    terms, left = ca.vertcat(power, work, loss, storing), power - (work - loss - storing)
    function = ca.Function("powers", [vector for vector, _ in made], [terms, left])

    def unbalanced(trial: Trial) -> Array:
        return np.asarray(function(*trial)[1]).ravel()

    for trial in trials:
        exerted, brought, lost, stored = powers = np.asarray(function(*trial)[0]).ravel()
        off = abs(unbalanced(trial)[0])
        if off > _BALANCE * np.max(np.abs(powers)) and off > round_off(unbalanced, trial):
            raise InputError(
                f"{acting.owner} is refused: what {type(acting.force).__name__} exerts has a power of {exerted:.6g} W "
                f"where work_rate is {brought:.6g} W, dissipation {lost:.6g} W and the rate of energy {stored:.6g} W; "
                "it must be the first less the others"
            )


_PLACES = 4
_JOINT_AGREEMENT = 1e-9
"""Tolerance of rates relative to the largest term."""
_CLOSED = 1e-9
"""Violation in m or rad below which elements satisfy the equations."""

State = tuple[Array, Array, Array, Array]
"""Position, velocity, quaternion and angular velocity of a body's point."""


def check_joint(joint: Joint) -> None:
    """Refuse a user-defined joint whose equations cannot be traced, or contradict its motion or rates.

    Raises
    ------
    InputError
        When it fails.
    """
    kind = type(joint)
    if is_built_in(kind):
        return
    owner = f"{joint.type} joint '{joint.name}'"
    check_part(owner, kind, partial(_joint_answers, joint), _places)
    for name, equation in joint.equations().items():
        _check_rates(f"{owner} is refused: its equation '{name}'", equation)
    generator = np.random.default_rng(0)
    for coordinates in generator.uniform(-1.0, 1.0, (_PLACES, len(joint.elements))):
        _check_motion(owner, joint, coordinates)


def _joint_answers(joint: Joint, *states: Array) -> Mapping[str, Sequence[Array | float]]:
    """Return the results of each equation of a joint, by its name."""
    ends = _points(states)
    numbers: dict[str, Sequence[Array | float]] = {}
    for name, equation in joint.equations().items():
        pairs = equation.wrenches(*ends), equation.wrench_rates(*ends)
        numbers[f"equation '{name}'"] = [
            equation.value(*ends),
            *(each for pair in pairs for side in pair for each in side),
        ]
    return numbers


def _points(states: Sequence[Array]) -> tuple[BodyPoint, BodyPoint]:
    """Return both points from eight vectors."""
    (p, v, q, w), (other_p, other_v, other_q, other_w) = states[:4], states[4:]
    rotation, other = rotation_from_quaternion(q), rotation_from_quaternion(other_q)
    return BodyPoint(p, v, rotation, w), BodyPoint(other_p, other_v, other, other_w)


def _places() -> list[tuple[Array, ...]]:
    """Return pairs of bodies in random motion, as eight vectors each."""
    generator = np.random.default_rng(0)

    def one() -> State:
        quaternion = generator.normal(size=4)
        place, velocity, spin = generator.normal(size=(3, 3))
        return place, velocity, quaternion / np.linalg.norm(quaternion), spin

    return [(*one(), *one()) for _ in range(_PLACES)]


def _check_rates(owner: str, equation: ClosureEquation) -> None:
    """Refuse wrenches that are not the derivatives of the value, and inconsistent rates of wrenches."""
    made = [symbols(f"part_{index}", len(part)) for index, part in enumerate(_places()[0])]
    arrays = [array for _, array in made]
    ends = _points(arrays)
    places = ca.vertcat(*(made[index][0] for index in (0, 2, 4, 6)))
    moving = ca.vertcat(*(expression(part) for part in (*_rates(arrays[:4]), *_rates(arrays[4:]))))
    pair, rates = equation.wrenches(*ends), equation.wrench_rates(*ends)
    said = sum(wrench @ _at_origin(end) for wrench, end in zip(pair, ends, strict=True))
    wrenches, told = (ca.vertcat(*(expression(side) for side in each)) for each in (pair, rates))
    checks: dict[str, tuple[ca.SX, ca.SX]] = {
        "wrenches": (expression(said), ca.jtimes(expression(equation.value(*ends)), places, moving)),
        "wrench_rates": (told, ca.jtimes(wrenches, places, moving)),
    }
    for function, (one, other) in checks.items():
        both = ca.Function("rates", [vector for vector, _ in made], [one, other])
        for place in _places():
            given, derived = (np.asarray(each).ravel() for each in both(*place))
            if np.max(np.abs(given - derived)) > _JOINT_AGREEMENT * max(1.0, np.max(np.abs(derived))):
                worst = int(np.argmax(np.abs(given - derived)))
                raise InputError(
                    f"{owner} has {function} that its value does not have: {given[worst]:.6g} where derivatives give "
                    f"{derived[worst]:.6g}"
                )


def _rates(state: Sequence[Array]) -> tuple[Array, Array]:
    """Return the rates of position and quaternion."""
    _, velocity, quaternion, spin = state
    return velocity, 0.5 * quaternion_product(np.concatenate([np.zeros(1), spin]), quaternion)


def _at_origin(point: BodyPoint) -> Array:
    linear = point.velocity - cross(point.angular_velocity, point.position)
    return np.concatenate([linear, point.angular_velocity])


def _check_motion(owner: str, joint: Joint, coordinates: Array) -> None:
    """Refuse equations that the joint's own motion violates, or that leave other motion free."""
    rotation, place = np.eye(3), np.zeros(3)
    for element, coordinate in zip(joint.elements, coordinates, strict=True):
        axis = unit(element.axis)
        along = coordinate if element.slides else element.pitch * coordinate
        place = place + rotation @ axis * along
        rotation = rotation if element.slides else rotation @ rotation_about(axis, coordinate)
    still = np.zeros(3)
    parent = BodyPoint(still, still, np.eye(3), still)
    child = BodyPoint(place, still, rotation @ rotation_from_vector(joint.orientation), still)
    rows = []
    for name, equation in joint.equations().items():
        violation = float(equation.value(parent, child))
        rows.append(equation.wrenches(parent, child)[1])
        if abs(violation) > _CLOSED:
            raise InputError(
                f"{owner} is refused: what its elements allow violates its equation '{name}' by {violation:.3g} "
                f"{equation.unit}"
            )
    if rows and np.linalg.matrix_rank(np.stack(rows), rtol=1e-9) < len(rows):
        raise InputError(f"{owner} is refused: its {len(rows)} equations are not independent of each other")
