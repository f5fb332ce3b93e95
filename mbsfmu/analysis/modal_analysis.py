"""Modes of a model at an operating point, with shapes and animations, and how they change with a parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.analysis.linear_system import LinearSystem, Mode
from mbsfmu.base.errors import InputError
from mbsfmu.base.physical_units import number, quantity
from mbsfmu.equilibrium.small_motions import GROWING
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.model.model_data import circuits_of

if TYPE_CHECKING:
    from mbsfmu.view.plots.plot import Plot
    from mbsfmu.view.scene import Animation


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RootLocus:
    """Linear systems over the values of a parameter.

    Attributes
    ----------
    parameter, unit
        Name and SI unit of the parameter.
    values
        Its values, ascending, shape (values,).
    systems
        The linear system at each of them.
    """

    parameter: str
    unit: str
    values: Floats
    systems: tuple[LinearSystem, ...]

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """Eigenvalues in 1/s, shape (values, branches); each branch goes on with the nearest one at the next value.

        Of conjugate pairs both are there.
        """
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - takes long to load

        rows = [self.systems[0].eigenvalues]
        for system in self.systems[1:]:
            apart = np.abs(rows[-1][:, None] - system.eigenvalues[None, :])
            _, order = linear_sum_assignment(apart)
            rows.append(system.eigenvalues[order])
        return np.array(rows)

    @property
    def growth(self) -> Floats:
        """Greatest real part of the eigenvalues in 1/s, shape (values,); 0 where it is round-off."""
        most = np.max(self.eigenvalues.real, axis=1, initial=-np.inf)
        return np.where(np.abs(most) > GROWING, most, 0.0)

    def plot(self, reach: float = np.inf) -> Plot:
        """Return the eigenvalues in the complex plane: at the least value, between, and at the greatest.

        Parameters
        ----------
        reach
            Magnitude in 1/s beyond which they are left out.
        """
        from mbsfmu.analysis.response_plots import pole_map  # noqa: PLC0415 - what draws is loaded where it is asked for

        every = self.eigenvalues
        parts = ((self._at(0), every[0]), ("between", every[1:-1].ravel()), (self._at(-1), every[-1]))
        seen = [(label, values[np.abs(values) <= reach]) for label, values in parts]
        return pole_map(f"root locus over {self.parameter}", [(label, values) for label, values in seen if len(values)])

    def damping_plot(self) -> Plot:
        """Return natural frequencies and damping ratios of oscillating modes over the parameter."""
        from mbsfmu.view.plots.plot import (  # noqa: PLC0415
            Axis,
            Curve,
            Panel,
            Plot,
        )

        frequencies, ratios = [], []
        for place, branch in enumerate(self.eigenvalues.T, start=1):
            oscillates = (branch.imag > 0.0) & (np.abs(branch) > GROWING)
            if not np.any(oscillates):
                continue
            size = np.where(oscillates, np.abs(branch), np.nan)
            label = f"branch {place}"
            frequencies.append(Curve.of(label, self.values, size / (2.0 * np.pi)))
            ratios.append(Curve.of(label, self.values, -branch.real / size))
        growth = Curve.of("greatest real part", self.values, self.growth)
        panels = [Panel("greatest real part", "1/s", (growth,), None)]
        if frequencies:
            panels += [
                Panel("natural frequency", "Hz", tuple(frequencies), False),
                Panel("damping ratio", "1", tuple(ratios), None),
            ]
        return Plot(f"modes over {self.parameter}", tuple(panels), Axis(self.parameter, self.unit))

    def _at(self, place: int) -> str:
        unit = "" if self.unit == "1" else f" {self.unit}"
        return f"{self.parameter} = {self.values[place]:.4g}{unit}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: what the JSON file holds."""
        return {
            "parameter": self.parameter,
            "unit": self.unit,
            "values": self.values.tolist(),
            "eigenvalues": [[[each.real, each.imag] for each in row] for row in self.eigenvalues.tolist()],
        }


def root_locus(parameter: str, unit: str, values: Sequence[float], at: Callable[[float], LinearSystem]) -> RootLocus:
    """Return the root locus of a parameter.

    Parameters
    ----------
    parameter, unit
        Its name and unit.
    values
        Its values; their order does not matter.
    at
        Gives the linear system for a value.

    Raises
    ------
    InputError
        When there are fewer than two different values, or the number of states changes between them.
    """
    ordered = np.unique(np.asarray(values, dtype=float))
    if len(ordered) < 2 or not np.isfinite(ordered).all():
        raise InputError(f"a root locus over {parameter} needs two different finite values at least")
    systems = tuple(at(float(value)) for value in ordered)
    if len({len(each.states) for each in systems}) > 1:
        counts = ", ".join(f"{len(each.states)} at {value:g}" for each, value in zip(systems, ordered, strict=True))
        raise InputError(f"the number of states changes with {parameter} ({counts}); a root locus has the same")
    return RootLocus(parameter, unit, ordered, systems)


Complexes = NDArray[np.complex128]

_CYCLE = 2.0
"""Time in s of one period in an animation."""
_FRAMES = 121
"""Rows of that period."""
_ANGLE, _SHARE = 0.15, 0.06
"""Largest motion in an animation: rad, and relative to the machine's size …"""
_PRESSURE = 10e5
"""… and largest pressure in Pa: visible, but with visibly closed loops."""
_NEGLIGIBLE = 1e-9
"""Change relative to the largest of its kind below which it is round-off."""


@dataclass(frozen=True)
class ModeShape:
    """Shape of a mode in coordinates and pressures: δ = Re(shape · e^{λ t}).

    Attributes
    ----------
    mode
        The mode.
    motion
        Of joint coordinates by name, in m and rad; the largest is 1, with phase 0, where anything moves.
    pressures
        In Pa by name, to the same scale; where nothing moves, the largest is 1.
    """

    mode: Mode
    motion: dict[str, complex]
    pressures: dict[str, complex]


@dataclass(frozen=True)
class ModalAnalysis:
    """Modes of a linear system, with shapes and animations for a known machine.

    Attributes
    ----------
    system
        The linear system with the inputs and outputs that were chosen.
    coordinates
        The same with all coordinates and pressures as outputs; None of an FMU.
    machine
        What it was linearized of; None of an FMU.
    locus
        How modes change with a parameter, if one was varied.
    """

    system: LinearSystem
    coordinates: LinearSystem | None = None
    machine: Machine | None = None
    locus: RootLocus | None = None

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes, those with the greatest real part first."""
        return self.system.modes

    @cached_property
    def shapes(self) -> tuple[ModeShape, ...]:
        """The shapes of the modes, in their order; none of an FMU."""
        whole = self.coordinates
        if whole is None:
            return ()
        return tuple(self._shape(whole, mode, vector) for mode, vector in zip(whole.modes, whole.vectors, strict=True))

    def _shape(self, whole: LinearSystem, mode: Mode, vector: Complexes) -> ModeShape:
        changes = whole.c @ vector
        pressure = np.array([each.unit == "Pa" for each in whole.outputs], dtype=bool)
        # Coordinates count by the size of the state; a mode in pressures alone leaves of them round-off.
        moving = np.where(pressure, 0.0, np.abs(changes))
        forced = np.where(pressure, np.abs(changes), 0.0)
        leading = int(np.argmax(moving if np.max(moving, initial=0.0) > 0.0 else forced))
        if abs(changes[leading]) > 0.0:
            changes = changes / changes[leading]
        names = [each.name for each in whole.outputs]
        kinds: list[dict[str, complex]] = [{}, {}]
        for name, value, which in zip(names, changes.tolist(), pressure.tolist(), strict=True):
            kinds[which][name] = value
        return ModeShape(mode, *kinds)

    def animation(self, place: int) -> Animation:
        """Return an animation of a mode, with pressures as colours.

        One period takes 2 s. Motion and pressures are scaled separately for visibility; `caption` gives the ratio.

        Parameters
        ----------
        place
            Of the mode among `modes`, from 0.

        Raises
        ------
        InputError
            When there is no such mode or no mechanism, or no body moves.
        """
        from mbsfmu.view.scene import Animation  # noqa: PLC0415 - drawn where asked for
        from mbsfmu.view.scene.payload import motion  # noqa: PLC0415

        machine, shape = self._drawn(place)
        made = motion(machine, self._trajectory(machine, shape), arrows=False)
        return Animation({**made, "notes": []}, f"{machine.name}: mode {place + 1}")

    def caption(self, place: int) -> str:
        """Return the description of a mode's animation, with its scales."""
        machine, shape = self._drawn(place)
        moved, pressed = self._scales(machine, shape)
        mode = shape.mode
        sentences = [f"Mode {place + 1} {mode.in_words()}."]
        if mode.oscillates:
            period = quantity(2.0 * np.pi / mode.eigenvalue.imag, "s")
            sentences.append(f"One period, {period}, takes {_CYCLE:g} s here, and does not decay.")
        largest = max(shape.motion, key=lambda name: abs(shape.motion[name]))
        unit = self._unit(largest)
        swing = moved * abs(shape.motion[largest])
        sentences.append(f"{largest} moves by ±{number(swing)} {unit}.")
        if pressed:
            true = moved * max(map(abs, shape.pressures.values())) / 1e5
            sentences.append(
                f"Colours are deviations of the pressure, up to ±{_PRESSURE / 1e5:g} bar; "
                f"with this motion they would be ±{number(true)} bar."
            )
        return " ".join(sentences)

    def _drawn(self, place: int) -> tuple[Machine, ModeShape]:
        if not 0 <= place < len(self.modes):
            raise InputError(f"there is no mode {place}; there are {len(self.modes)}, from 0")
        if self.machine is None or not self.shapes:
            raise InputError("the machine is not known: modes of FMUs have no animation")
        shape = self.shapes[place]
        if not self._moves(shape):
            raise InputError(f"in mode {place} no body moves")
        return self.machine, shape

    def _moves(self, shape: ModeShape) -> bool:
        """Return whether bodies take part in a mode."""
        assert self.coordinates is not None
        names = {each.name for each in self.coordinates.states} & set(shape.motion)
        share = sum(value for name, value in shape.mode.participation.items() if name in names)
        return share > _NEGLIGIBLE and any(shape.motion.values())

    @property
    def moving(self) -> tuple[int, ...]:
        """Indices of the modes with motion of bodies."""
        if self.machine is None:
            return ()
        return tuple(place for place, shape in enumerate(self.shapes) if self._moves(shape))

    def _unit(self, name: str) -> str:
        assert self.coordinates is not None
        return next(each.unit for each in self.coordinates.outputs if each.name == name)

    def _scales(self, machine: Machine, shape: ModeShape) -> tuple[float, float]:
        """Return the scales of motion and pressures for an animation; 0 without pressures."""
        from mbsfmu.view.scene.payload import motion  # noqa: PLC0415 - drawn where asked for

        still = motion(machine, self._trajectory(machine, shape, (0.0, 0.0)), arrows=False)
        size = max(high - low for low, high in zip(still["lowest"], still["highest"], strict=True))
        allowed = [
            (_ANGLE if self._unit(name) == "rad" else _SHARE * size) / abs(value)
            for name, value in shape.motion.items()
            if value
        ]
        most = max(map(abs, shape.pressures.values()), default=0.0)
        return min(allowed), _PRESSURE / most if most > 0.0 else 0.0

    def _trajectory(self, machine: Machine, shape: ModeShape, scales: tuple[float, float] | None = None) -> Trajectory:
        """Return a period of a mode as signals: coordinates about the operating point, pressures as deviations."""
        assert self.coordinates is not None
        moved, pressed = self._scales(machine, shape) if scales is None else scales
        time = np.linspace(0.0, _CYCLE, _FRAMES)
        turning = np.exp(2j * np.pi * time / _CYCLE)
        middle = {each.name: each.value for each in self.coordinates.outputs}
        signals = {name: middle[name] + moved * np.real(value * turning) for name, value in shape.motion.items()}
        signals |= {name: pressed * np.real(value * turning) for name, value in shape.pressures.items()}
        for name in _held_nodes(machine):
            signals.setdefault(name, np.zeros(len(time)))
        return Trajectory(time, np.column_stack(list(signals.values())), list(signals), [""] * len(signals))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: what the JSON file holds."""

        def shown(values: dict[str, complex]) -> dict[str, list[float]]:
            return {name: [value.real, value.imag] for name, value in values.items()}

        modes = [
            {
                "eigenvalue": [mode.eigenvalue.real, mode.eigenvalue.imag],
                "frequency": mode.frequency,
                "damping": mode.damping,
                "participation": mode.participation,
            }
            for mode in self.modes
        ]
        for told, shape in zip(modes, self.shapes, strict=False):
            told |= {"motion": shown(shape.motion), "pressures": shown(shape.pressures)}
        locus = {} if self.locus is None else {"root_locus": self.locus.to_dict()}
        return {**self.system.to_dict(), "modes": modes, **locus}


def _held_nodes(machine: Machine) -> list[str]:
    """Return the pressures of nodes held by sources, with zero deviation."""
    return [
        f"{name}.{node}.pressure" for name, data in circuits_of(machine.systems).items() for node in data.source_nodes
    ]
