"""Random machines with one and two closed loops, laid out in the inertial frame, in motion; a seed each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from spatial_loops import Place, machine_of, set_rates

from mbsfmu import CoupledModel, InputError, SimulationError
from mbsfmu.parts import (
    Cylindrical,
    Fixed,
    JointSpringDamper,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from mbsfmu.simulation.run_result import Result

Floats = NDArray[np.float64]

FORMULATIONS = ("dca", "hdca", "dca-alm", "penalty")
"""Formulations beside `double-step`."""
TIGHT = {"solver": "dop853", "relative_tolerance": 1e-11, "absolute_tolerance": 1e-12}
"""The solver of runs that are compared; at 1e-8 `double-step` itself is 1.3e-8 off where loops are weak (seed 36)."""
OUTPUTS = 5
STEPS = 25
"""Outputs of a run, and its steps by the trapezoidal rule, which `penalty` has."""

FREEDOMS: dict[type, int] = {Revolute: 1, Prismatic: 1, Cylindrical: 2, Universal: 2, Spherical: 3, Fixed: 0}
CHOICES = (Revolute, Revolute, Prismatic, Cylindrical, Universal, Spherical, Fixed)
"""Hinges come twice as often as others."""
LARGEST_RATE = 1.5
"""Of a joint at the start, in rad/s and sizes of the machine per s, where this is 1 m; it goes by the root of that."""
MASS_RATIOS = (1.0, 1.0, 1e2, 1e4)
SIZES = (1.0, 1.0, 1e-2, 1e2)
"""Of machines in m."""
PLANAR = 0.2
"""Share of the machines whose first loop is planar, all axes parallel: three of its equations are redundant."""
WEAK = 0.3
"""Share of the others whose first loop has a weak direction: no joint but for a small tilt moves against a force along
a line, so that the loop's equations nearly depend on each other."""
TILTS = -3.5, -1.5
"""Of these, decadic logarithms of the tilt; their rates are smaller by its root."""
NONE, LEAST = 1e-9, 1e-6
"""Singular values of what the joints' rates add up to around loops, as shares of the largest, below which one counts as
zero, and above which all others are: machines between the two do not know whether they can move."""
PERIOD = 0.05
"""In s, of the motion of machines of 1 m that is looked at; it goes by the root of the size."""
TRIES = 200


def random_machine(seed: int) -> CoupledModel:
    """Return the machine of a seed, which has at least one degree of freedom."""
    random = np.random.default_rng(seed)
    for _ in range(TRIES):
        made = _machine(random)
        if made is not None:
            return made
    raise AssertionError("no machine moves")


@dataclass(frozen=True)
class Disagreement:
    """How far a run is from another one, at most.

    Attributes
    ----------
    positions
        Of centres of mass, as a share of the machine's size.
    reactions
        Of forces and of moments in joints, as a share of the largest force or moment of all.
    """

    positions: float
    reactions: float


Found = Disagreement | str
"""A disagreement, or the sentence that a run has ended with."""


def disagreements(
    model: CoupledModel, limited: Callable[[], AbstractContextManager[None]] = nullcontext
) -> dict[str, Found]:
    """Return how far each formulation is from `double-step` by the same solver; `error` of that by equal steps.

    Parameters
    ----------
    model
        One of the machines.
    limited
        Gives what each run is made in, which may end it by one of the errors.

    Raises
    ------
    InputError, SimulationError
        When there is nothing to compare with.
    """
    with limited():
        tight, coarse = (_run(model, "double-step", equal) for equal in (False, True))
    found: dict[str, Found] = {"error": _between(model, coarse, tight)}
    for formulation in FORMULATIONS:
        equal = formulation == "penalty"
        try:
            with limited():
                found[formulation] = _between(model, _run(model, formulation, equal), coarse if equal else tight)
        except (InputError, SimulationError) as error:
            found[formulation] = str(error)
    return found


def _run(model: CoupledModel, formulation: str, equal: bool) -> Result:
    """Run a machine, by equal steps or tight ones."""
    stop = model.stop_time
    options = {"step": stop / STEPS} if equal else {"step": stop / OUTPUTS, **TIGHT}
    simulation = model.simulation(formulation=formulation, compiled=False, **options)
    return simulation.run(stop, output_step=stop / OUTPUTS)


def _between(model: CoupledModel, one: Result, other: Result) -> Disagreement:
    found = {}
    for kind in (".centre.", ".force.", ".moment."):
        names = [name for name in other.names if kind in name and name.startswith(("body_", "joint_"))]
        names = [name for name in names if not name.endswith(("velocity", "acceleration"))]
        off = max(float(np.max(np.abs(one[name] - other[name]))) for name in names)
        largest = max(float(np.max(np.abs(other[name]))) for name in names)
        found[kind] = off / (size_of(model) if kind == ".centre." else largest or 1.0)
    return Disagreement(found[".centre."], max(found[".force."], found[".moment."]))


def size_of(model: CoupledModel) -> float:
    """Return the size of a random machine in m."""
    return (model.stop_time / PERIOD) ** 2


def _machine(random: np.random.Generator) -> CoupledModel | None:
    """Return a machine; None where it cannot move."""
    size, ratio = random.choice(SIZES), random.choice(MASS_RATIOS)
    planar = random.random() < PLANAR
    normal = _unit(random.normal(size=3)) if planar else None
    kinds = [Revolute] * int(random.integers(4, 6)) if planar else _kinds(random)
    places = _chain(random, kinds, size, np.zeros(3), normal)
    tilt = 1.0
    if not planar and random.random() < WEAK:
        tilt = 10.0 ** random.uniform(*TILTS)
        _weaken(random, places, size, tilt)
    ends = [(number, (number + 1) % len(kinds)) for number in range(len(kinds))]
    cuts = {int(random.integers(1, len(kinds)))}
    if random.random() < 0.5:
        hangs, first = int(random.integers(len(kinds))), len(kinds)
        second = _kinds(random)
        places += _chain(random, second, size, size * random.normal(size=3), None)
        bodies = [hangs, *range(first, first + len(second) - 1), 0]
        cuts.add(first + int(random.integers(1, len(second))))
        ends += list(pairwise(bodies))
    if any(one == other for one, other in ends):
        return None
    units = np.concatenate([_units(place, size) for place in places])
    lengths = np.tile([1.0 / size] * 3 + [1.0] * 3, len(cuts))
    loops = lengths[:, np.newaxis] * _loops(places, ends) * units
    sizes = np.linalg.svd(loops, compute_uv=False)
    rates = units[:, np.newaxis] * null_space(loops, rcond=NONE)
    if not rates.shape[1] or np.any((sizes > NONE * sizes[0]) & (sizes < LEAST * sizes[0])):
        return None
    moving = rates @ random.normal(size=rates.shape[1])
    set_rates(places, LARGEST_RATE * np.sqrt(tilt / size) * moving / np.max(np.abs(moving / units)))
    forces = [
        JointSpringDamper(
            name=f"spring_{number}", joint=f"joint_{number}", stiffness=5.0 * size**4, damping=0.3 * size**4.5
        )
        for number, place in enumerate(places)
        if place.kind is Revolute and number not in cuts
    ]

    def mass() -> float:
        return float(size**3 * random.uniform(0.5, 2.0) * ratio ** random.uniform(-0.5, 0.5))

    made = machine_of("machine", places, ends, cuts, random, mass=mass, size=float(size), forces=forces)
    return made.model_copy(update={"stop_time": PERIOD * float(np.sqrt(size))})


def _kinds(random: np.random.Generator) -> list[type]:
    """Return joints around a loop whose freedoms add up to seven or eight, which leaves one or two."""
    while True:
        kinds = [CHOICES[index] for index in random.integers(len(CHOICES), size=random.integers(4, 7))]
        slides = sum(kind in (Prismatic, Cylindrical) for kind in kinds)
        if sum(FREEDOMS[kind] for kind in kinds) in (7, 8) and kinds[0] is not Fixed and slides <= 3:
            return kinds


def _chain(
    random: np.random.Generator, kinds: list[type], size: float, shift: Floats, normal: Floats | None
) -> list[Place]:
    """Return joints around an irregular loop, with axes askew or along a normal."""
    places = []
    for kind, angle in zip(kinds, np.linspace(0.0, np.pi, len(kinds)), strict=True):
        corner = np.array([np.cos(angle), 0.1, np.sin(angle)]) + 0.3 * random.normal(size=3)
        axis = _unit(random.normal(size=3)) if normal is None else normal
        across = _unit(np.cross(axis, random.normal(size=3)))
        places.append(Place(kind, shift + size * corner, axis, across))
    return places


def _weaken(random: np.random.Generator, places: list[Place], size: float, tilt: float) -> None:
    """Turn all axes so that a force along a line does no work where the joints move, but for a tilt."""
    origin, force = size * random.normal(size=3), _unit(random.normal(size=3))
    for place in places:
        if place.kind is Spherical:
            place.point = origin + force * (force @ (place.point - origin)) + tilt * size * random.normal(size=3)
        moment = np.cross(origin - place.point, force)
        if place.kind is Cylindrical:
            axis = np.cross(force, moment)
        else:
            axis = np.cross(force if place.kind is Prismatic else moment, random.normal(size=3))
        across = np.cross(moment, axis)
        place.axis = _unit(_unit(axis) + tilt * random.normal(size=3))
        place.across = _unit(across - place.axis * (place.axis @ across))


def _unit(vector: Floats) -> Floats:
    return vector / np.linalg.norm(vector)


def _units(place: Place, size: float) -> Floats:
    """Return what the rates of a joint are measured in: the size of the machine where it slides, else 1 rad/s."""
    return np.where(np.any(place.screws[3:] != 0.0, axis=0), 1.0, size)


def _loops(places: list[Place], ends: list[tuple[int, int]]) -> Floats:
    """Return what the rates of the joints add up to around each loop, shape (6 loops, freedoms).

    Of a second loop, joints of the first up to the body that it hangs on come before its own.
    """
    count = len({child for _, child in ends} | {parent for parent, _ in ends}) - 1
    first = next(number for number, (_, child) in enumerate(ends) if child == 0) + 1
    rows = [range(first)]
    if first < len(ends):
        rows.append([*range(ends[first][0]), *range(first, len(ends))])
    assert count == len(ends) - len(rows)
    return np.concatenate(
        [
            np.concatenate(
                [place.screws if number in row else np.zeros_like(place.screws) for number, place in enumerate(places)],
                axis=1,
            )
            for row in rows
        ]
    )
