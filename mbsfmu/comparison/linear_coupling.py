"""Coupled linear FMUs: the exact map from one communication point to the next, and its error against the exact motion.

Between points each FMU is ẋ = A x + B u + f, y = C x + D u; over a step of length h its inputs run along
u₀ + u₁ θ, θ = 0 to 1, so that

    x(h) = e^{Ah} x(0) + Γ₀ u₀ + Γ₁ u₁ + Γ_f,

with the integrals Γ of one matrix exponential (Van Loan 1978). What FMUs do inside their steps is exact here: the error
is that of the coupling alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.coupling.algorithms import ITERATED, parted
from mbsfmu.cosim.coupling.extrapolation import Extrapolation, mean

Floats = NDArray[np.float64]
EXTRAPOLATIONS = (Extrapolation.ZERO, Extrapolation.LINEAR, Extrapolation.QUADRATIC)
"""Extrapolations by their degree."""
_TIMES = 200
"""Number of times at which the error is evaluated, at most."""


@dataclass(frozen=True)
class LinearFmu:
    """A linear FMU about its start: deviations of states x, inputs u and outputs y.

    Attributes
    ----------
    name
        Its name.
    a, b, c, d
        Matrices, with connected inputs and all outputs.
    rates
        Derivatives f of the states at the start.
    interpolates
        Whether inputs run along straight lines; otherwise they are held at their mean.
    """

    name: str
    a: Floats
    b: Floats
    c: Floats
    d: Floats
    rates: Floats
    interpolates: bool = True

    def responses(self, step: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Return e^{Ah}, Γ₀, Γ₁ and Γ_f for a step in s, by one exponential."""
        from scipy.linalg import expm  # noqa: PLC0415 - takes long to load

        n, m = self.b.shape
        wide = np.zeros((n + 2 * m + 1, n + 2 * m + 1))
        wide[:n, :n], wide[:n, n : n + m], wide[:n, -1] = self.a * step, self.b * step, self.rates * step
        wide[n : n + m, n + m : n + 2 * m] = np.eye(m)
        power = expm(wide)
        return power[:n, :n], power[:n, n : n + m], power[:n, n + m : n + 2 * m], power[:n, -1]


@dataclass(frozen=True)
class LinearCoupling:
    """Coupled linear FMUs.

    Attributes
    ----------
    fmus
        The FMUs; outputs and inputs of all stand in their order.
    gains
        K of u = K y, shape (inputs, outputs).
    repeats
        Whether steps can be repeated, because all FMUs save their states.
    """

    fmus: Sequence[LinearFmu]
    gains: Floats
    repeats: bool = True

    @property
    def loop(self) -> Floats:
        """K D, the gains of direct feed-through from inputs to inputs."""
        from scipy.linalg import block_diag  # noqa: PLC0415 - takes long to load

        return np.asarray(self.gains @ block_diag(*(fmu.d for fmu in self.fmus)), dtype=float)

    def whole(self) -> tuple[Floats, Floats, Floats]:
        """Return A, f and C of all FMUs together: ẋ = A x + f, y = C x.

        Raises
        ------
        LinAlgError
            When algebraic loops have no single solution.
        """
        from scipy.linalg import block_diag  # noqa: PLC0415 - takes long to load

        a, b, c, d = (np.asarray(block_diag(*(getattr(fmu, each) for fmu in self.fmus))) for each in "abcd")
        shown = np.asarray(np.linalg.solve(np.eye(len(c)) - d @ self.gains, c), dtype=float)
        return a + b @ self.gains @ shown, np.concatenate([fmu.rates for fmu in self.fmus]), shown

    def exact(self, first: float, distance: float, count: int) -> Floats:
        """Return the outputs at equidistant times, shape (count, outputs).

        Parameters
        ----------
        first, distance
            First time, and distance of the others, in s.
        count
            Number of times.
        """
        from scipy.linalg import expm  # noqa: PLC0415 - takes long to load

        a, f, shown = self.whole()
        wide = np.zeros((len(a) + 1, len(a) + 1))
        wide[:-1, :-1], wide[:-1, -1] = a, f
        start = expm(wide * first)[:, -1]
        return np.asarray(_powers(expm(wide * distance), count, start)[:, :-1] @ shown.T, dtype=float)

    def step_map(self, algorithm: str, step: float, order: Sequence[int]) -> Floats:
        """Return the linear map of (states, outputs now, one and two steps before, 1) over a step in s.

        Parameters
        ----------
        algorithm
            One of `CHOICES` without `derivatives`; `fixed-point` is `newton`, which both solve for the end values.
        step
            Communication step in s.
        order
            Indices of the FMUs in which they step one after the other.
        """
        return self._map(algorithm, step, order, degree_of(algorithm))

    def _map(self, algorithm: str, step: float, order: Sequence[int], points: int, again: int = 0) -> Floats:
        """Return `step_map` where fewer earlier points than wanted are known, and with repeated sweeps.

        Parameters
        ----------
        algorithm, step, order
            As for `step_map`.
        points
            Number of earlier points that are known.
        again
            How often the step is made again, with inputs that run to the ends found before.
        """
        name, degree = parted(algorithm)[0], degree_of(algorithm)
        iterates, to_end = name in ITERATED, min(degree, points + 1)
        count, outputs = sum(len(fmu.a) for fmu in self.fmus), len(self.gains.T)
        size = count + 3 * outputs + 1
        identity = np.eye(size, size + outputs)  # the last columns: outputs at the end, where steps are iterated
        now, before, earlier = (identity[count + k * outputs : count + (k + 1) * outputs] for k in range(3))
        guess = np.eye(outputs, size + outputs, size)
        turns = order if name == "gauss-seidel" else ()

        def sweep(given: Floats) -> tuple[Floats, Floats]:
            return self._sweep(
                given, step, turns, lambda place, end: _interpolated(to_end, now[place], before[place], end)
            )

        if iterates:
            states, ends = sweep(_interpolated(to_end, now, before, guess))
            solved = np.linalg.solve(np.eye(outputs) - ends[:, size:], ends[:, :size])
            states, ends = states[:, :size] + states[:, size:] @ solved, solved
        else:
            states, ends = sweep(_extrapolated(min(degree, points), now, before, earlier))
            for _ in range(again):
                states, ends = sweep(_interpolated(to_end, now, before, ends))
        last = np.zeros((1, size))
        last[0, -1] = 1.0
        rows = [states[:, :size], ends[:, :size], now[:, :size], before[:, :size], last]
        return np.asarray(np.concatenate(rows), dtype=float)

    def _sweep(
        self, given: Floats, step: float, turns: Sequence[int], towards: Callable[[slice, Floats], Floats]
    ) -> tuple[Floats, Floats]:
        """Let all FMUs step once; return states and outputs at the end, each a row of factors as the polynomials are.

        Parameters
        ----------
        given
            c₀, c₁, c₂ of the outputs, shape (3, outputs, columns).
        step
            In s.
        turns
            The FMUs in turn, of which later ones take what earlier ones give; none where all step at once.
        towards
            Gives the polynomials of the outputs at a place from their ends.
        """
        shapes = [[len(fmu.a), len(fmu.c), fmu.b.shape[1]] for fmu in self.fmus]
        places = [_places(each) for each in zip(*shapes, strict=True)]
        columns, given = given.shape[2], given.copy()
        states, ends = (np.zeros((sum(each), columns)) for each in list(zip(*shapes, strict=True))[:2])
        begin, one = np.eye(len(states), columns), columns - len(ends) - 1
        for index in turns or range(len(self.fmus)):
            fmu, (x, y, u) = self.fmus[index], (place[index] for place in places)
            value, slope, end = _taken(self.gains[u] @ given, fmu.interpolates)
            free, held, ramp, pushed = fmu.responses(step)
            states[x] = free @ begin[x] + held @ value + ramp @ slope
            states[x, one] += pushed
            ends[y] = fmu.c @ states[x] + fmu.d @ end
            if turns:
                given[:, y] = towards(y, ends[y])
        return states, ends

    def error(self, algorithm: str, step: float, stop: float, order: Sequence[int], scales: Floats) -> float:
        """Return the largest error of any output over time, in shares of scales; infinite where it overflows.

        Parameters
        ----------
        algorithm, step, order
            As for `step_map`.
        stop
            Until when, in s.
        scales
            Of each output; outputs with scale 0 do not count.
        """
        states = self._begun(algorithm, step, order)
        begun = len(states) - 1
        steps = max(round(stop / step) - begun, 1)
        stride = max(steps // _TIMES, 1)
        count = steps // stride + 1
        made = self.step_map(algorithm, step, order)
        outputs = len(self.gains.T)
        first = len(made) - 1 - 3 * outputs
        with np.errstate(all="ignore"):
            later = _powers(np.linalg.matrix_power(made, stride), count, states[-1])
            found = np.concatenate([states[:-1], later])[:, first : first + outputs]
            exact = np.concatenate([self.exact(0.0, step, begun), self.exact(begun * step, stride * step, count)])
            off = np.abs(found - exact)
            counting = scales > 0.0
            worst = float(np.max(off[:, counting] / scales[counting], initial=0.0))
        return worst if np.isfinite(worst) else np.inf

    def _begun(self, algorithm: str, step: float, order: Sequence[int]) -> Floats:
        """Return the states at the start and after each of the first steps, of which too few earlier points are known.

        FMUs that save their states repeat them, once and once more for each with direct feed-through.
        """
        again = 1 + sum(bool(np.any(fmu.d)) for fmu in self.fmus) if self.repeats else 0
        size = sum(len(fmu.a) for fmu in self.fmus) + 3 * len(self.gains.T) + 1
        states = [np.eye(size)[-1]]
        for points in range(degree_of(algorithm)):
            states.append(self._map(algorithm, step, order, points, again) @ states[-1])
        return np.stack(states)

    def ranges(self, stop: float) -> Floats:
        """Return the range of each output of the exact motion until a time in s, shape (outputs,)."""
        return np.ptp(self.exact(0.0, 0.1 * stop / _TIMES, 10 * _TIMES + 1), axis=0)


def _places(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(first, last) for first, last in pairwise(ends)]


def _powers(matrix: Floats, count: int, start: Floats) -> Floats:
    """Return x, M x, M² x, … of a start, shape (count, size)."""
    rows = np.empty((count, len(start)))
    for row in rows:
        row[:] = start
        start = matrix @ start
    return rows


def degree_of(algorithm: str) -> int:
    """Return the degree of the polynomials of one of `CHOICES`."""
    return parted(algorithm)[1].degree


def _extrapolated(degree: int, now: Floats, before: Floats, earlier: Floats) -> Floats:
    """Return c₀, c₁, c₂ of the polynomial through the last points, equidistant."""
    bend = (degree > 1) * 0.5 * (now - 2.0 * before + earlier)
    return np.stack([now, (degree > 0) * (now - before + bend), bend])


def _interpolated(degree: int, now: Floats, before: Floats, end: Floats) -> Floats:
    """Return c₀, c₁, c₂ of the polynomial to a known end."""
    bend = (degree > 1) * 0.5 * (end - 2.0 * now + before)
    return np.stack([now if degree else end, (degree > 0) * (end - now - bend), bend])


def _taken(lines: Floats, interpolates: bool) -> tuple[Floats, Floats, Floats]:
    """Return value at the beginning, slope and end that an FMU is given of a parabola."""
    value, slope, bend = lines
    if not interpolates:
        held = mean(lines)
        return held, 0.0 * held, held
    return value - bend / 3.0, slope + 4.0 / 3.0 * bend, value + slope + bend
