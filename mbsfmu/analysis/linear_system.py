"""Linear time-invariant systems with names and units, modes and frequency responses."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.equilibrium.small_motions import GROWING
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.modelling import closest_match

if TYPE_CHECKING:
    from control import StateSpace
    from scipy.signal import StateSpace as SignalStateSpace

    from mbsfmu.view.plots.plot import Plot

Floats = NDArray[np.float64]
_ROUND_OFF = 1e-13
"""Real part relative to |λ| below which it is zero."""
_STANDING = 1e-6
"""Rate of states relative to their magnitude at an equilibrium, in 1/s, within the search tolerance."""
_MOST_PERIODS = 20.0
"""Largest number of periods of the slowest mode in a default step response."""
SUFFIXES = (".json", ".mat")
"""Suffixes of linear-system files."""


@dataclass(frozen=True)
class OperatingValue:
    """A state, input or output with name, SI unit, and value at the operating point."""

    name: str
    unit: str
    value: float


@dataclass(frozen=True)
class Mode:
    """A mode of a linear system: a real eigenvalue or a conjugate pair.

    Attributes
    ----------
    eigenvalue
        In 1/s; of a pair, the one with the positive imaginary part.
    frequency
        Natural frequency |λ| / 2π in Hz.
    damping
        Damping ratio −Re λ / |λ|; 1 of a real eigenvalue that decays, −1 of one that grows, 0 where |λ| or
        Re λ is no more than round-off.
    participation
        By state, how much it takes part: |w_k v_k| of left and right eigenvectors, with the sum 1, the largest first
        [Pérez-Arriaga, Verghese, Schweppe 1982].
    """

    eigenvalue: complex
    frequency: float
    damping: float
    participation: dict[str, float]

    @property
    def is_still(self) -> bool:
        """Whether the eigenvalue is zero."""
        return abs(self.eigenvalue) <= GROWING

    @property
    def oscillates(self) -> bool:
        """Whether it is a conjugate pair."""
        return self.eigenvalue.imag != 0.0 and not self.is_still

    @property
    def grows(self) -> bool:
        """Whether the mode is unstable."""
        return self.eigenvalue.real > max(GROWING, _ROUND_OFF * abs(self.eigenvalue))

    def in_words(self) -> str:
        """Return frequency and decay or growth of the mode in words."""
        if self.is_still:
            return "stays where it is put"
        if self.oscillates:
            return f"oscillates at {self.frequency:.4g} Hz with a damping ratio of {self.damping:.3g}"
        verb = "grows" if self.grows else "decays"
        return f"{verb} with a time constant of {1.0 / abs(self.eigenvalue.real):.3g} s"


@dataclass(frozen=True)
class LinearSystem:
    """δẋ = A δx + B δu, δy = C δx + D δu about an operating point; all in SI units.

    Attributes
    ----------
    name
        Name of the model.
    time
        Time of the operating point in s.
    a, b, c, d
        Matrices of the shapes (states, states), (states, inputs), (outputs, states), (outputs, inputs).
    states, inputs, outputs
        Names, units and values at the operating point.
    rates
        ẋ there, shape (states,): zero at an equilibrium.
    held
        Discrete states of sampled blocks, which are held: what they answer to a motion is not in the matrices.
    kinks
        States and inputs at whose values the equations have a kink, as a valve that begins to open or a stop that is
        just touched: derivatives by them are those of one side, or the mean of both.
    notes
        Sentences on how it was found, as where an FMU gives no derivatives.
    """

    name: str
    time: float
    a: Floats
    b: Floats
    c: Floats
    d: Floats
    states: tuple[OperatingValue, ...]
    inputs: tuple[OperatingValue, ...]
    outputs: tuple[OperatingValue, ...]
    rates: Floats
    held: tuple[str, ...] = ()
    kinks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """Eigenvalues of A in 1/s, those with the greatest real part first; shape (states,)."""
        found = self._eigen[0]
        return found[np.lexsort((-found.imag, -found.real))]

    @cached_property
    def drifts(self) -> bool:
        """Whether zero eigenvalues have fewer eigenvectors than their number: their motions grow with time, as t.

        A free mass is the example: its position and velocity have two zero eigenvalues and one eigenvector.
        """
        still = int(np.count_nonzero(np.abs(self.eigenvalues) <= GROWING))
        return still > len(self.states) - int(np.linalg.matrix_rank(self.a)) if still > 1 else False

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """The modes, those with the greatest real part first."""
        values, left, right = self._eigen
        shares = np.abs(left * right)
        shares = shares / np.maximum(np.sum(shares, axis=0), np.finfo(float).tiny)
        names = [each.name for each in self.states]
        found = []
        for place in self._places:
            value, size = complex(values[place]), float(np.abs(values[place]))
            order = np.argsort(-shares[:, place], kind="stable")
            participation = {names[state]: float(shares[state, place]) for state in order}
            damps = size > GROWING and abs(value.real) > _ROUND_OFF * size
            damping = -value.real / size if damps else 0.0
            found.append(Mode(value, size / (2.0 * np.pi), damping, participation))
        return tuple(found)

    @property
    def vectors(self) -> tuple[NDArray[np.complex128], ...]:
        """Right eigenvectors of the modes, in order, each of shape (states,) and of length 1."""
        return tuple(self._eigen[2][:, place] for place in self._places)

    @property
    def _places(self) -> list[int]:
        """Indices of the modes among the eigenvalues; for conjugate pairs the one with positive imaginary part."""
        values = self._eigen[0]
        return [int(place) for place in np.lexsort((-values.imag, -values.real)) if values[place].imag >= 0.0]

    @cached_property
    def _eigen(self) -> tuple[NDArray[np.complex128], NDArray[np.complex128], NDArray[np.complex128]]:
        """Eigenvalues of A, and left and right eigenvectors as columns."""
        if not self.states:
            none = np.zeros((0, 0), dtype=np.complex128)
            return np.zeros(0, dtype=np.complex128), none, none
        from scipy import linalg  # noqa: PLC0415 - takes long to load

        found = linalg.eig(self.a, left=True, right=True)
        values, left, right = (np.asarray(each, dtype=np.complex128) for each in found)
        return values, left.conj(), right

    @property
    def moving(self) -> tuple[OperatingValue, float] | None:
        """The state with the largest relative rate at the operating point, with ẋ; None at an equilibrium.

        At an equilibrium no state changes by more than 1e-6 of its magnitude, at least one SI unit, in a second.
        """
        sizes = np.array([max(abs(each.value), 1.0) for each in self.states])
        shares = np.abs(self.rates) / sizes
        if not len(shares) or np.max(shares) <= _STANDING:
            return None
        fastest = int(np.argmax(shares))
        return self.states[fastest], float(self.rates[fastest])

    @property
    def sentences(self) -> list[str]:
        """Messages on the operating point and the linearization."""
        told = []
        if self.held:
            told.append(f"discrete states are fixed variables of the linearization: {', '.join(self.held)}")
        if self.kinks:
            names = ", ".join(self.kinks)
            told.append(
                f"the equations have a kink at the values of {names}: derivatives are those of one side, or means"
            )
        if (moving := self.moving) is not None:
            state, rate = moving
            told.append(
                f"the point is no equilibrium: {state.name} changes by {rate:.3g} {state.unit}/s; eigenvalues "
                "tell how runs that begin next to each other part there"
            )
        return [*told, *self.notes]

    def frequency_response(self, frequencies: ArrayLike) -> NDArray[np.complex128]:
        """Return G(i 2π f) = C (i 2π f − A)⁻¹ B + D.

        Parameters
        ----------
        frequencies
            In Hz, shape (number,).

        Returns
        -------
        array, shape (number, outputs, inputs)
            Units of outputs over units of inputs.

        Raises
        ------
        InputError
            When a frequency is not finite, or the system has an undamped mode exactly there.
        """
        given = np.atleast_1d(np.asarray(frequencies, dtype=float))
        if given.ndim > 1 or not np.isfinite(given).all():
            raise InputError("frequencies are to be finite numbers in Hz, in one row")
        found = np.empty((len(given), len(self.outputs), len(self.inputs)), dtype=np.complex128)
        for place, frequency in enumerate(given):
            matrix = 2j * np.pi * frequency * np.eye(len(self.states)) - self.a
            try:
                found[place] = self.c @ np.linalg.solve(matrix, self.b) + self.d
            except np.linalg.LinAlgError:
                raise InputError(
                    f"the response at {frequency:g} Hz is infinite: an eigenvalue is there; take another frequency"
                ) from None
        return found

    def step_response(self, given: str, stop: float | None = None, points: int = 400) -> Trajectory:
        """Return the deviations of the outputs after a step of one input by one SI unit.

        The values are exact at each time: x(t + h) = Φ x(t) + Γ by the matrix exponential.

        Parameters
        ----------
        given
            Name of the input.
        stop
            Length in s; five time constants of the slowest mode that is not zero by default.
        points
            Number of equal steps.

        Raises
        ------
        InputError
            When there is no such input, or the length is not positive.
        """
        from scipy.linalg import expm  # noqa: PLC0415 - takes long to load

        column = _place(given, self.inputs, "input")
        length = self._settling_time if stop is None else stop
        if not (np.isfinite(length) and length > 0.0 and points > 0):
            raise InputError(f"a step response of {length:g} s in {points} steps is none; both must be positive")
        size = len(self.states)
        augmented = np.zeros((size + 1, size + 1))
        augmented[:size, :size], augmented[:size, size] = self.a, self.b[:, column]
        forward = expm(augmented * length / points)
        states = np.zeros((points + 1, size + 1))
        states[:, size] = 1.0
        for row in range(points):
            states[row + 1] = forward @ states[row]
        values = states[:, :size] @ self.c.T + self.d[:, column]
        names, units = [each.name for each in self.outputs], [each.unit for each in self.outputs]
        return Trajectory(np.linspace(0.0, length, points + 1), values, names, units)

    @property
    def _settling_time(self) -> float:
        """Default length of a step response in s."""
        values = self.eigenvalues[np.abs(self.eigenvalues) > GROWING]
        if not len(values):
            return 1.0
        rates = np.abs(values.real)
        constants = 5.0 / rates[rates > _ROUND_OFF * np.abs(values)]
        bound = _MOST_PERIODS * 2.0 * np.pi / float(np.min(np.abs(values)))
        return min(float(np.max(constants, initial=0.0)) or bound, bound)

    def bode(self, frequencies: ArrayLike | None = None) -> Plot:
        """Return a Bode plot of all outputs by all inputs.

        `system.chosen(["valve.command"], ["boom.angle"]).bode().save("bode.html")` writes one as a page.

        Parameters
        ----------
        frequencies
            In Hz; by default such that all modes are seen.
        """
        from mbsfmu.analysis.response_plots import bode_plot  # noqa: PLC0415 - drawn where asked for

        grid, responses = self._responses(frequencies)
        return bode_plot(f"{self.name}: Bode", grid, [(label, unit, values) for label, unit, values in responses])

    def nyquist(self, frequencies: ArrayLike | None = None) -> Plot:
        """Return a Nyquist plot of all outputs by all inputs.

        Raises
        ------
        InputError
            When the responses are of several units; `chosen` leaves some out.
        """
        from mbsfmu.analysis.response_plots import nyquist_plot  # noqa: PLC0415 - drawn where asked for

        _, responses = self._responses(frequencies)
        units = list(dict.fromkeys(unit for _, unit, _ in responses))
        if len(units) != 1:
            raise InputError(f"a Nyquist plot has one unit; the responses have {', '.join(units) or 'none'}")
        return nyquist_plot(f"{self.name}: Nyquist", [(label, values) for label, _, values in responses], units[0])

    def poles(self, reach: float = np.inf) -> Plot:
        """Return a plot of the eigenvalues in the complex plane, coloured by stability.

        Parameters
        ----------
        reach
            Magnitude in 1/s beyond which they are left out.
        """
        from mbsfmu.analysis.response_plots import pole_map  # noqa: PLC0415 - drawn where asked for

        values = self.eigenvalues[np.abs(self.eigenvalues) <= reach]
        still = np.abs(values) <= GROWING
        grows = ~still & (values.real > _ROUND_OFF * np.abs(values))
        decays = ~still & (values.real < -_ROUND_OFF * np.abs(values))
        kinds = {"decaying": decays, "growing": grows, "zero": still, "undamped": ~(still | grows | decays)}
        return pole_map(f"{self.name}: poles", [(label, values[which]) for label, which in kinds.items() if any(which)])

    def _responses(self, frequencies: ArrayLike | None) -> tuple[Floats, list[tuple[str, str, NDArray[np.complex128]]]]:
        """Return frequencies in Hz, and label, unit and values of each frequency response."""
        from mbsfmu.analysis.response_plots import frequency_grid  # noqa: PLC0415 - drawn where asked for

        grid = (
            frequency_grid(self.eigenvalues) if frequencies is None else np.atleast_1d(np.asarray(frequencies, float))
        )
        values = self.frequency_response(grid)
        several = len(self.inputs) > 1
        return grid, [
            (
                f"{output.name} by {given.name}" if several else output.name,
                ratio(output.unit, given.unit),
                values[:, row, column],
            )
            for row, output in enumerate(self.outputs)
            for column, given in enumerate(self.inputs)
        ]

    def chosen(self, inputs: Sequence[str], outputs: Sequence[str]) -> LinearSystem:
        """Return the system with selected inputs and outputs, by name and in order.

        Raises
        ------
        InputError
            When there is no such input or output.
        """
        columns = [_place(name, self.inputs, "input") for name in inputs]
        rows = [_place(name, self.outputs, "output") for name in outputs]
        return replace(
            self,
            b=self.b[:, columns],
            c=self.c[rows],
            d=self.d[np.ix_(rows, columns)],
            inputs=tuple(self.inputs[each] for each in columns),
            outputs=tuple(self.outputs[each] for each in rows),
        )

    def to_scipy(self) -> SignalStateSpace:
        """Return a `scipy.signal.StateSpace`."""
        from scipy.signal import StateSpace  # noqa: PLC0415 - takes long to load

        return StateSpace(self.a, self.b, self.c, self.d)

    def to_control(self) -> StateSpace:
        """Return a `control.StateSpace` of python-control, with names.

        Raises
        ------
        InputError
            When python-control is not installed.
        """
        try:
            from control import StateSpace  # noqa: PLC0415 - an extra
        except ImportError:
            raise InputError("to_control needs python-control: pip install 'mbsfmu[analysis]'") from None
        names = {
            kind: [each.name.replace(".", "_") for each in signals]  # python-control takes no dots
            for kind, signals in (("states", self.states), ("inputs", self.inputs), ("outputs", self.outputs))
        }
        return StateSpace(self.a, self.b, self.c, self.d, name=self.name, **names)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON file as plain data."""
        return {
            "model": self.name,
            "time": self.time,
            **{name: getattr(self, name).tolist() for name in ("a", "b", "c", "d", "rates")},
            **{kind: [vars(each) for each in getattr(self, kind)] for kind in ("states", "inputs", "outputs")},
            "eigenvalues": [[float(each.real), float(each.imag)] for each in self.eigenvalues],
            "held": list(self.held),
            "kinks": list(self.kinks),
            "notes": list(self.notes),
        }

    def to_file(self, path: str | os.PathLike[str]) -> Path:
        """Write it to a JSON file, or to a MAT file of MATLAB 5 with A, B, C, D, names, units and values.

        Raises
        ------
        InputError
            When the suffix is another one.
        """
        target = Path(path)
        if target.suffix.lower() not in SUFFIXES:
            raise InputError(f"{target} is refused: a linear system is written to {' or '.join(SUFFIXES)}")
        with complete_file(target) as partial:
            if target.suffix.lower() == ".json":
                partial.write_text(json.dumps(self.to_dict(), indent=1), encoding="utf-8")
            else:
                _write_mat(partial, self)
        return target


def ratio(unit: str, by: str) -> str:
    """Return the unit of a quotient."""
    if unit == by:
        return "1"
    return unit if by in ("1", "") else f"{unit}/({by})" if set("./") & set(by) else f"{unit}/{by}"


def _place(name: str, signals: Sequence[OperatingValue], kind: str) -> int:
    names = [each.name for each in signals]
    if name not in names:
        raise InputError(f"the linear system has no {kind} '{name}'; {closest_match(name, names)}")
    return names.index(name)


def _write_mat(path: Path, system: LinearSystem) -> None:
    from scipy.io import savemat  # noqa: PLC0415 - takes long to load

    content: dict[str, Any] = {name.upper(): getattr(system, name) for name in ("a", "b", "c", "d")}
    for kind in ("states", "inputs", "outputs"):
        signals = getattr(system, kind)
        content[f"{kind}_names"] = np.array([each.name for each in signals], dtype=object)
        content[f"{kind}_units"] = np.array([each.unit for each in signals], dtype=object)
        content[f"{kind}_values"] = np.array([each.value for each in signals])
    content |= {"time": system.time, "model": system.name, "rates": system.rates}
    content |= {name: np.array(getattr(system, name), dtype=object) for name in ("held", "kinks", "notes")}
    savemat(str(path), content, appendmat=False)
