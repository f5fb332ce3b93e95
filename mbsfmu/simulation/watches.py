"""Watches of a run: energy drift, conditions, gimbal lock, resolution of steps."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mbsfmu.equations.joint_coordinates import turned_back
from mbsfmu.equations.rotation import rotation_from_quaternion
from mbsfmu.model.machine import Machine, conditions_of
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.modelling import Array, Condition, Remark, remarks
from mbsfmu.modelling.parameters import percent
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import System
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

LARGE_DRIFT = 0.05
"""Drift relative to the exchanged energy at which a warning is given; for a circuit, relative to its stored energy."""
LEAST_DRIFT = 1e-3
"""Drift relative to the kinetic energy, or to the energy through a circuit, below which no warning is given: a rotor
that spins freely exchanges nothing."""
LEAST_SHARE = 1e-6
"""Drift relative to the potential energy, and to the energy scale, below which no warning is given: in static
equilibrium the exchanged energy is mostly round-off.
"""
CIRCUIT_SCALE = 1e-3
"""Energy scale of a circuit in J: 1 mm³ of oil at 1 bar stores a millionth of it."""
WHOLE = 0.9
"""Drift relative to the exchanged energy from which on it may be all that is exchanged, as by a spin that decays."""
DRIFTS = 4
"""Numbers per balance of FMUs, whose steps may be taken back: the first large drift, energy exchanged, time, kinetic
energy."""
DENSE = 16
"""Number of checked communication steps between consecutive powers of two."""

_DRIFT = "energy.drift"
_OTHERS = ("energy.kinetic", "energy.potential", "energy.work", "energy.dissipated")
_CIRCUIT_DRIFT = "hydraulic_energy.drift"
_CIRCUIT_OTHERS = ("hydraulic_energy.stored", "hydraulic_energy.supplied", "hydraulic_energy.dissipated")
HIGHEST = 9
"""Numbers per balance: maxima of T, V, work and loss with negatives; drift that is not counted."""


class Balance(NamedTuple):
    """Names of the energies of one drift.

    Attributes
    ----------
    drift
        Of the drift.
    kinetic
        Of T; None of a circuit.
    potential, work, dissipated
        Of V, work and loss; of a circuit, of what it stores, is supplied with and loses.
    """

    drift: str
    kinetic: str | None
    potential: str
    work: str
    dissipated: str


class EnergyWatch:
    """Watches the energies of mechanisms and circuits, and warns once of drift.

    Exchanged is the greatest range of kinetic and potential energy, of work and of the loss: the energy of a constant
    spin is not used, and no range depends on where potential energy is zero. Through a circuit flows far more than it
    ever stores, and what it stores is all that steps can get wrong in a moment: its drift is held against the range of
    that, where it is no round-off of what flows. Points that are looked at together are judged by what was exchanged
    until the last of them.

    Parameters
    ----------
    model
        Name of the model.
    names
        Names of the variables in a row; each `energy.drift` among them belongs to a mechanism, and each
        `hydraulic_energy.drift` to a circuit.
    remedy
        What to do.
    scales
        Energy scale in J of each mechanism, in the order of their names.

    Attributes
    ----------
    balances
        What is followed.
    scales
        As given, by balance; `CIRCUIT_SCALE` of circuits.
    size
        How many numbers it remembers.
    numbers
        These: communication steps, and by balance the highest energies.
    """

    def __init__(self, model: str, names: Sequence[str], remedy: str, scales: Sequence[float]) -> None:
        self._model = model
        self.balances = [
            *(Balance(*(prefix + each for each in (_DRIFT, *_OTHERS))) for prefix in _prefixes(_DRIFT, names)),
            *(
                Balance(prefix + _CIRCUIT_DRIFT, None, *(prefix + each for each in _CIRCUIT_OTHERS))
                for prefix in _prefixes(_CIRCUIT_DRIFT, names)
            ),
        ]
        circuits = len(self.balances) - len(scales)
        self.scales = (*scales, *[CIRCUIT_SCALE] * circuits)
        self._places = [[None if name is None else names.index(name) for name in each] for each in self.balances]
        self._remedy = remedy
        self.size = 1 + HIGHEST * len(self.balances)
        self.begin()

    def begin(self) -> None:
        """Start a new run without warnings."""
        self.numbers = np.zeros(self.size)
        self._highest[:, :-1] = -np.inf
        self._warned: set[str] = set()

    @property
    def _highest(self) -> Floats:
        """View of the maxima so far in J, by balance; the last column is drift that is not counted."""
        return self.numbers[1:].reshape(len(self.balances), HIGHEST)

    @property
    def begun(self) -> bool:
        """Whether a point of the run was checked."""
        return not self.balances or bool(np.isfinite(self._highest).all())

    def due(self) -> bool:
        """Count a communication step, and return whether it is to be checked."""
        self.numbers[0] += 1
        count = int(self.numbers[0])
        return bool(self.balances) and count % max(1, (1 << count.bit_length() - 1) // DENSE) == 0

    def shift(self, row: Floats, sign: float) -> None:
        """Exclude energy from parameter changes from the drift.

        Called with the row before and -1, and with the row after and 1.
        """
        for highest, places in zip(self._highest, self._places, strict=True):
            highest[-1] += sign * row[places[0]]

    def follow(self, times: Floats, rows: Floats) -> None:
        """Check the next points of a run, and log drifts.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and values, shape (k, number of variables).
        """
        for sentence in self.diagnostics(times, rows):
            logger.warning("%s", sentence)

    @property
    def columns(self) -> set[int]:
        """Where in a row the variables stand that it looks at."""
        return {place for places in self._places for place in places if place is not None}

    def diagnostics(self, times: Floats, rows: Floats) -> Iterator[str]:
        """Check the next points of a run, and yield a warning for each new drift.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and values, shape (k, number of variables).
        """
        watched = zip(self._highest, self._places, self.balances, self.scales, strict=True)
        for highest, places, (name, moving, *_), scale in watched:
            still = np.zeros(len(rows))
            drift, kinetic, potential, work, loss = (still if each is None else rows[:, each] for each in places)
            followed = np.stack([kinetic, -kinetic, potential, -potential, work, -work, loss, -loss])
            followed = np.maximum(np.maximum.accumulate(followed, axis=1), highest[:-1, np.newaxis])
            highest[:-1] = followed[:, -1]
            # What is exchanged later counts too: a machine that begins to move has exchanged little as yet.
            last = followed[:, -1]
            ranges = last[::2] + last[1::2]
            exchanged = float(ranges.max())
            much = LARGE_DRIFT * exchanged if moving else LARGE_DRIFT * float(ranges[1])
            much = max(much, LEAST_DRIFT * float(last[0] if moving else exchanged))
            least = LEAST_SHARE * max(last[2], last[3], scale)
            magnitude = np.abs(drift - highest[-1])
            large = np.flatnonzero(magnitude > max(much, least))
            if len(large) and name not in self._warned:
                self._warned.add(name)
                what, doubted = ("motion or the power of loads", "either") if moving else ("circuit", "pressures")
                most, energy = float(magnitude.max()), float(last[0])
                share = f"{percent(most / exchanged)} of" if most < WHOLE * exchanged else "no less than"
                spins = WHOLE * energy > max(exchanged, most)
                spin = f" and {percent(most / energy)} of the kinetic energy" if spins else ""
                yield (
                    f"{self._model}: from t = {times.item(int(large[0])):.6g} s on the {what} is not resolved: {name} "
                    f"comes to {most:.3g} J, {share} the {exchanged:.3g} J exchanged{spin}, and {doubted} may be off "
                    f"by far more than that: {self._remedy}"
                )


def _prefixes(suffix: str, names: Sequence[str]) -> list[str]:
    """Return the prefixes of a name in all names that equal it or end with it."""
    return [name.removesuffix(suffix) for name in names if name == suffix or name.endswith(f".{suffix}")]


APART = 1.0
"""Time in s without a condition after which it happens anew: what rebounds from an end stop has not left it."""
_ROUND_OFF = 1e-9  # by which a value may be below the least one, in its unit


class ConditionWatch:
    """Watches conditions on the variables of a run.

    Parameters
    ----------
    name
        Name of the model.
    machine
        What runs; None where nobody said.
    variables, parameters
        Its varying variables, in the order of rows, and its parameters.
    by_system
        Names of both by `system.variable`, those of connected inputs included.

    Attributes
    ----------
    conditions
        The conditions, by the names of the variables and parameters.
    """

    def __init__(
        self,
        name: str,
        machine: Machine | None,
        variables: Sequence[Variable],
        parameters: Sequence[Variable],
        by_system: Mapping[str, str],
    ) -> None:
        self._name = name
        self._column = {each.name: place for place, each in enumerate(variables)}
        self._parameter = {each.name: place for place, each in enumerate(parameters)}
        known = {**self._column, **self._parameter}
        own = () if machine is None else conditions_of(machine)
        named = (each.renamed(lambda reference: by_system.get(reference, reference)) for each in own)
        computed = (each for each in variables if each.causality is not Causality.INPUT and each.minimum is not None)
        self.conditions = (
            *(_in_variables(each, known) for each in named if {*each.weights} <= {*known, *each.numbers}),
            *map(_below_minimum, computed),
        )
        self.begin()

    @property
    def columns(self) -> set[int]:
        """Where in a row the variables stand that it looks at."""
        return {self._column[name] for each in self.conditions for name in each.weights if name in self._column}

    def begin(self) -> None:
        """Start a new run, in which nothing has happened."""
        self._seen: dict[int, float] = {}

    def remarks(
        self, times: Array, rows: Floats, parameters: Floats, columns: Sequence[int] | None = None
    ) -> Iterator[Remark]:
        """Yield a remark on each condition that held at a point of a run.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and values, shape (k, number of variables).
        parameters
            Values of the parameters.
        columns
            Which variables the rows have; all by default.
        """
        place = {name: index for index, name in enumerate(self._column)}
        if columns is not None:
            names = list(self._column)
            place = {names[column]: index for index, column in enumerate(columns)}

        def values_of(name: str) -> Array | float | None:
            if name in self._parameter:
                return float(parameters[self._parameter[name]])
            return rows[:, place[name]] if name in place else None

        return remarks(self.conditions, times, values_of)

    def follow(self, times: Array, rows: Floats, parameters: Floats) -> None:
        """Log the `remarks` on a run."""
        for remark in self.remarks(times, rows, parameters):
            self._log(remark)

    def follow_step(self, time: float, row: Floats, parameters: Floats) -> None:
        """Log what happens at the end of a step, with its time in s, and has not lasted since less than `APART`."""
        for index, condition in enumerate(self.conditions):
            if self._sum(condition, row, parameters) > condition.bound:
                if not abs(time - self._seen.get(index, -np.inf)) <= APART:
                    self._log(replace(condition, extent="").remark(time, np.zeros(1), np.zeros(1)))
                self._seen[index] = time

    def _sum(self, condition: Condition, row: Floats, parameters: Floats) -> float:
        return sum(
            factor * float(row[self._column[name]] if name in self._column else parameters[self._parameter[name]])
            for name, factor in condition.weights.items()
        )

    def _log(self, remark: Remark) -> None:
        logger.log(logging.WARNING if remark.doubtful else logging.INFO, "%s: %s", self._name, remark.sentence)


def _in_variables(condition: Condition, known: Iterable[str]) -> Condition:
    """Return a condition in variables and parameters that a run has; what data alone have is added to the bound."""
    there = set(known)
    fixed = sum(factor * condition.numbers[name] for name, factor in condition.weights.items() if name not in there)
    weights = {name: factor for name, factor in condition.weights.items() if name in there}
    return replace(condition, weights=weights, bound=condition.bound - fixed, numbers={})


def _below_minimum(variable: Variable) -> Condition:
    """Return the condition that a variable is below what it can be."""
    minimum = float(variable.minimum or 0.0)
    return Condition(
        f"{variable.name} is below {minimum:g} {variable.unit}",
        {variable.name: -1.0},
        _ROUND_OFF - minimum,
        lasts=True,
        extent=f": it falls to {{value:.4g}} {variable.unit}",
        advice=f"; it is the {variable.description}",
        doubtful=True,
    )


UNDEFINED = 1e-2
"""Cosine of the second Cardan angle below which the first and third are nearly undefined: they change a hundred times
as fast as the body rotates.
"""
SHARES = np.linspace(0.0, 1.0, 17)
"""Fractions of an interval at which orientations are checked."""


@dataclass(frozen=True)
class LoadedAngle:
    """A load on a Cardan angle.

    Attributes
    ----------
    load, coordinate
        Name of the part, and the coordinate that it acts along.
    quaternion
        Where the four parts of the joint's orientation stand in a row.
    back
        What turns the outer body's axes to those of the joint, shape (3, 3).
    is_reversed
        Whether the orientation is that of the joint's parent in the child's frame.
    """

    load: str
    coordinate: str
    quaternion: tuple[int, ...]
    back: Floats
    is_reversed: bool

    def cosines(self, rows: Floats) -> Floats:
        """Return cosines of the second Cardan angle, shape (k,), of unnormalized quaternions, shape (4, k)."""
        lengths = np.linalg.norm(rows, axis=0)
        turned = rotation_from_quaternion(rows / lengths)
        turned = turned.transpose(1, 0, 2) if self.is_reversed else turned
        first, second, _ = np.einsum("jk,kl->lj", turned[0].T, self.back)
        return np.hypot(first, second)


class CardanWatch:
    """Watches joints with loaded Cardan angles for a second angle near ±90 degrees.

    There the first and the third are undefined, and the load is unbounded or discontinuous. Orientations between two
    points of a run are interpolated along the shortest rotation, so that long steps are checked too.

    Parameters
    ----------
    parts
        The systems, in joint coordinates.
    names
        Names of the variables in a row.
    """

    def __init__(self, parts: Iterable[System], names: Sequence[str]) -> None:
        place = {name: index for index, name in enumerate(names)}
        mechanisms = [part for part in parts if isinstance(part, MechanismSystem)]
        self._angles = [angle for part in mechanisms for angle in _loaded_angles(part, place)]

    @property
    def columns(self) -> set[int]:
        """Where in a row the variables stand that it looks at."""
        return {place for angle in self._angles for place in angle.quaternion}

    def diagnostics(self, times: Floats, rows: Floats) -> Iterable[str]:
        """Look at the points of a run, and yield for each load a sentence on the first orientation without angles.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and values, shape (k, number of variables).
        """
        for angle in self._angles:
            quaternions = rows[:, angle.quaternion].T
            least = _least_between(angle, quaternions[:, :-1], quaternions[:, 1:], SHARES)
            if (near := np.flatnonzero(least < UNDEFINED)).size:
                yield f"at t = {times[near[0]]:.6g} s {_warning(angle)}"

    def follow(self, times: Floats, rows: Floats) -> None:
        """Log the `diagnostics` of a run."""
        for sentence in self.diagnostics(times, rows):
            logger.warning("%s", sentence)

    def cause(self, rows: Floats) -> str:
        """Return the continuation of an error message for a run that ended near gimbal lock; empty otherwise."""
        for angle in self._angles:
            quaternions = rows[-2:, angle.quaternion].T
            if quaternions.shape[1] == 2:
                least = _least_between(angle, quaternions[:, :1], quaternions[:, 1:], 2.0 * SHARES)
                if least[0] < UNDEFINED:
                    return f"; there {_warning(angle)}"
        return ""


def _least_between(angle: LoadedAngle, begin: Floats, end: Floats, shares: Floats) -> Floats:
    """Return the least cosine between orientations, each of shape (4, k), shape (k,)."""
    end = np.where(np.sum(begin * end, axis=0) < 0.0, -end, end)
    return np.min([angle.cosines(begin + share * (end - begin)) for share in shares], axis=0)


def _warning(angle: LoadedAngle) -> str:
    return (
        f"the angle {angle.coordinate} that {angle.load} acts along is not defined: the second Cardan angle of the "
        "joint is next to 90 degrees, where the first and the third jump, and the load on them with them; let the "
        "joint start in another orientation, or take a bushing"
    )


def _loaded_angles(part: MechanismSystem, place: dict[str, int]) -> Iterable[LoadedAngle]:
    mechanism = part.mechanism
    topology = mechanism.topology
    for force in mechanism.forces:
        for reference in references(force, ReferenceKind.JOINT):
            joint, index = mechanism.joint_element(reference)
            body = topology.body_of_joint(joint.name)
            if body is None or not joint.turns_freely or joint.elements[index].slides:
                continue
            named = [f"{topology.bodies[body].name}.quaternion.{each}" for each in "wxyz"]
            found = [next((place[p + n] for p in (f"{part.name}.", "") if p + n in place), None) for n in named]
            places = tuple(each for each in found if each is not None)
            if len(places) == len(named):
                back = turned_back(np.array(joint.orientation))
                yield LoadedAngle(force.name, reference, places, back, topology.tree[body].reversed)


SMALL_RANGE = 0.05
"""Least range that an acceleration is compared with, relative to the largest range in its unit."""
LEAST_RANGE = 1e-3
"""The same in rad/s² or m/s²: what stands still has round-off for a course."""
UNITS = ("rad/s2", "m/s2")
FEWEST = 12
"""Rows below which a course is not judged."""


class Roughness(NamedTuple):
    """A rough error of a run.

    Attributes
    ----------
    variable
        Name of the acceleration with the largest one.
    share
        The error of it, or of its velocity, relative to the range.
    """

    variable: str
    share: float


def roughness(variables: Sequence[Variable], times: Floats, rows: Floats, step: float) -> Roughness | None:
    """Return the rough error of a run in equal steps; None where its rows are not these steps, or too few.

    The trapezoidal rule makes the local error h³/12 d²a/dt² in a velocity [Hairer1993, sect. II.1], which is h/12 of
    the second difference of the acceleration; these are summed, as they are in an undamped oscillation. An acceleration
    that alternates from step to step about its course has an error of a quarter of the second difference. Of three
    differences in a row the least counts: a load that jumps, or a course with one kink, is no error.

    Parameters
    ----------
    variables
        Of the columns; accelerations are known by their units. Those of Cardan angles, whose reference moves, are left
        out.
    times, rows
        Times in s, shape (k,), and values, shape (k, number of variables).
    step
        Length of the steps in s.
    """
    if len(times) < FEWEST or not np.allclose(np.diff(times)[:-1], step, rtol=1e-4, atol=0.0):
        return None
    found: list[Roughness] = []
    for unit in UNITS:
        columns = [index for index, each in enumerate(variables) if each.unit == unit and "cardan" not in each.name]
        if not columns:
            continue
        courses = rows[:, columns]
        bends = np.abs(np.diff(courses, 2, axis=0))
        bends = np.minimum(np.minimum(bends[2:], bends[1:-1]), bends[:-2])
        velocities = step * np.cumsum(courses, axis=0)
        shares = np.maximum(
            0.25 * bends.max(axis=0) / _ranges(courses, LEAST_RANGE),
            step / 12.0 * bends.sum(axis=0) / _ranges(velocities, step * LEAST_RANGE),
        )
        worst = int(np.argmax(shares))
        found.append(Roughness(variables[columns[worst]].name, float(shares[worst])))
    return max(found, key=lambda each: each.share, default=None)


def _ranges(courses: Floats, least: float) -> Floats:
    """Return the range of each column, at least a share of the largest one."""
    ranges = np.ptp(courses, axis=0)
    return np.maximum(ranges, max(SMALL_RANGE * float(ranges.max()), least))
