"""Sweeps over the members of a coupled run, and explicit coupling: each FMU steps once.

Linear correction: outputs with direct feed-through as they are for the inputs of the end of a step.

After a step an FMU shows its outputs for the inputs that it was given, extrapolated or held. With its directional
derivatives D of outputs by inputs, y + D (u − u_given) is what it would show for other inputs u. With the connections
u = K y + k this is a linear system for the outputs of all FMUs, which also closes algebraic loops: no step is repeated,
and no state is saved. After PyFMI's option `linear_correction` (Andersson 2016, "Methods and Tools for
Co-Simulation of Dynamic Systems with the Functional Mock-up Interface").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.compiled.library import ClosingTable, ExchangeTable, IterationTable, PortTable
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import Extrapolation, OutputHistory, ends, mean, part
from mbsfmu.cosim.fmus.fmu_instance import Floats, Port


class _Outputs:
    """The outputs of one member with direct feed-through, and its connected inputs.

    Attributes
    ----------
    columns
        Place of the outputs among those of all members.
    entries
        Place of the inputs among the member's entries.
    """

    def __init__(self, member: CoupledInstance, names: list[str], entries: list[int]) -> None:
        self.member, self.names, self.entries = member, names, entries
        self.columns = [member.place.start + member.outputs.names.index(name) for name in names]
        self.inputs = [member.entries.names[entry] for entry in entries]

    def derivatives(self) -> Floats:
        """Return D, shape (outputs, inputs)."""
        return self.member.instance.directional_derivative(self.names, self.inputs)

    def given(self) -> Floats:
        """Return the inputs that the outputs show at the end of the step, shape (inputs,)."""
        member = self.member
        last = part(member.taken, 1.0 - 1.0 / member.rate, 1.0)
        shown = ends(last) if member.ramps else mean(last)
        return shown[self.entries]


class LinearCorrection:
    """Corrects outputs at the end of a step.

    Parameters
    ----------
    exchange
        The members.

    Raises
    ------
    InputError
        When an output depends directly on an input, as far as is known, and its FMU gives no directional derivatives;
        when no output does, so that there is nothing to correct.
    """

    def __init__(self, exchange: CouplingData) -> None:
        self._outputs: list[_Outputs] = []
        count = len(exchange.names)
        for member in exchange.members:
            instance = member.instance
            names = [
                name
                for place, name in enumerate(member.outputs.names)
                if name in member.perhaps_direct and member.place.start + place not in exchange.held
            ]
            entries = [
                entry
                for entry, source in enumerate(member.sources.tolist())
                if source < count and source not in exchange.held
            ]
            if not names or not entries:
                continue
            if not instance.gives_directional_derivatives:
                raise InputError(
                    f"{instance.name}.{names[0]} depends directly on inputs, and its FMU gives no directional "
                    "derivatives, which a linear correction needs; choose fixed-point or newton if FMUs save their "
                    "states"
                )
            self._outputs.append(_Outputs(member, names, entries))
        if not self._outputs:
            raise InputError("a linear correction has no effect: no output depends directly on a connected input")

    def apply(self, end: Floats, time: float) -> Floats:
        """Return corrected outputs at the end of a step, a new array.

        Parameters
        ----------
        end
            Outputs as the FMUs show them.
        time
            End of the step in s.

        Raises
        ------
        SimulationError
            When an FMU refuses, or an algebraic loop has no single solution.
        """
        columns = np.concatenate([each.columns for each in self._outputs])
        matrix, right = np.eye(len(columns)), end[columns]
        first = 0
        for each in self._outputs:
            rows = slice(first, first + len(each.columns))
            first = rows.stop
            member, slopes = each.member, each.derivatives()
            sources = member.sources[each.entries]
            factors, offsets = member.factors[each.entries], member.offsets[each.entries]
            right[rows] += slopes @ (factors * end[sources] + offsets - each.given())
            # Sources that are corrected themselves are unknown: D K (y_corrected − y).
            for place, source in enumerate(sources.tolist()):
                for column in np.flatnonzero(columns == source):
                    effect = slopes[:, place] * factors[place]
                    matrix[rows, column] -= effect
                    right[rows] -= effect * end[source]
        corrected = end.copy()
        try:
            corrected[columns] = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            raise SimulationError(
                f"the algebraic loop at t = {time:.9g} s has no single solution: its gain is 1"
            ) from None
        return corrected


START = "start of the step"
"""Slot of the states at the start of an iterated step."""
JACOBIANS = ("differences", "directional")
AITKEN = "aitken"
OF_ITERATIONS = ("iteration_tolerance", "maximum_iterations")


@dataclass(frozen=True)
class Settings:
    """Settings of communication steps.

    Attributes
    ----------
    algorithm
        One of `ALGORITHMS`.
    extrapolation
        How inputs run over a step.
    order
        Names of all FMUs in the order in which they step one after the other; theirs by default.
    iteration_tolerance
        Largest change of an interface value in the last iteration, as a share of its scale.
    maximum_iterations
        After so many sweeps of a step without convergence it fails.
    relaxation
        Share of the change that a fixed-point iteration takes over, or `aitken` to find it.
    jacobian
        `differences` or `directional`: where the Newton iteration takes its first Jacobian from.
    energy_correction
        Whether inputs make up for what their integral missed in the step before.
    linear_correction
        Whether outputs with direct feed-through are corrected by directional derivatives at the end of a step.
    threads
        Number of threads that FMUs step in.
    """

    algorithm: str = "gauss-seidel"
    extrapolation: Extrapolation = Extrapolation.ZERO
    order: tuple[str, ...] = ()
    iteration_tolerance: float = 1e-8
    maximum_iterations: int = 50
    relaxation: float | str = AITKEN
    jacobian: str = JACOBIANS[0]
    energy_correction: bool = False
    linear_correction: bool = False
    threads: int = 1


class Algorithm:
    """Base of coupling algorithms: what a coupled step is made with (`mbsfmu.cosim.compiled.coupled_step`).

    Parameters
    ----------
    exchange
        The members and their values, initialized.
    settings
        How steps are made.

    Attributes
    ----------
    sweeps
        Sweeps over all members that were made.
    rollbacks
        How often all members were brought back to the start of a step.
    turns
        The members in the order in which they step one by one, with whether later ones take what they give.
    takes_rates
        Whether derivatives of outputs by time are read.
    corrected
        Whether an entry that takes a column is corrected, shape (number of columns,).
    reactions
        Mean reactions of joints between members over the last step, of each the force in N and the moment in N m on
        the second handle, in the inertial frame.
    """

    CHANGES: ClassVar[tuple[str, ...]] = ("sweeps", "rollbacks")
    iterates = False
    in_turn = False
    """Whether later members take the new outputs of earlier ones."""
    options: ClassVar[tuple[str, ...]] = ()
    """Names of the options specific to it."""

    def __init__(self, exchange: CouplingData, settings: Settings) -> None:
        self.exchange = exchange
        self.settings = settings
        self.sweeps = self.rollbacks = 0
        self.reactions = np.zeros(0)
        order = [exchange.member(name) for name in settings.order]
        self.turns = [
            (member, any(np.isin(later.sources, _columns(member)).any() for later in order[index + 1 :]))
            for index, member in enumerate(order)
        ]
        self._resources = ExitStack()
        if settings.threads > 1:
            self.pool = self._resources.enter_context(ThreadPoolExecutor(settings.threads))
        self.takes_rates = settings.extrapolation is Extrapolation.DERIVATIVES
        self.corrected = np.zeros(len(exchange.columns), dtype=bool)
        self.corrected[: len(exchange.names)] = True
        self.corrected[exchange.held] = False
        self.held = self._held()

    def close(self) -> None:
        """End the threads."""
        self._resources.close()

    @property
    def order(self) -> int:
        """Order of the coupling error over a run.

        The degree of the polynomials and one more: an input that is right to h^(k+1) makes states right to h^(k+2)
        in a step. Derivatives at the beginning and the value at the end make parabolas, where steps are iterated. A
        FMU that holds its inputs over its steps gets their mean, which is good for 2, and for 1 where an output
        depends directly on it and is not corrected; the straight line that others get of a parabola, for 3.
        """
        holding = [each for each in self.exchange.members if len(each.sources) and not each.instance.interpolates]
        shown = any(member.direct for member in holding) and not self.settings.linear_correction
        most = 3 if not holding else 1 if shown else 2
        hermite = self.iterates and self.settings.extrapolation is Extrapolation.DERIVATIVES
        return min(self.settings.extrapolation.degree + (2 if hermite else 1), most)

    @property
    def order_of_steps(self) -> list[tuple[CoupledInstance, bool]]:
        """The members in the order in which they step, with whether later ones take what they give."""
        return self.turns if self.in_turn else [(member, False) for member in self.exchange.members]

    slot: str = START
    """Name under which states of members are saved in steps."""

    def is_saved(self, member: CoupledInstance) -> bool:
        """Return whether steps save the state of a member."""
        del member
        return self.iterates

    def history(self) -> OutputHistory:
        """Return a history that starts with the present outputs."""
        now = self.exchange.read().copy()
        rates = self.exchange.read_rates() if self.takes_rates else None
        return OutputHistory(self.settings.extrapolation, now, rates, self.held)

    def _held(self) -> list[int]:
        """Return the indices of outputs that inputs never extrapolate.

        Adaptive ones neither, if an FMU that cannot interpolate shows them directly: it would show their mean.
        """
        held = set(self.exchange.held)
        if self.settings.extrapolation is Extrapolation.ADAPTIVE:
            for member in self.exchange.members:
                if member.perhaps_direct and not member.instance.interpolates:
                    held.update(source for source in member.sources if source < len(self.exchange.names))
        return sorted(held)

    again = 0
    """How often a step is made again of which too little is known."""
    compiles = True
    """Whether compiled code can make its steps."""

    @property
    def other_ports(self) -> Sequence[Port]:
        """Ports of members beside their inputs and outputs."""
        return ()

    # -- what it has beside -----------------------------------------------------------------------------------------

    @property
    def iteration_table(self) -> IterationTable | None:
        """Numbers and arrays of an iteration; None where steps are made once."""
        return None

    pool: ThreadPoolExecutor | None = None
    """Threads that FMUs step in; None for none."""
    correction: LinearCorrection | None = None
    """Corrects outputs with direct feed-through; None without."""

    def closing(self, port_table: Callable[[Port], PortTable]) -> ClosingTable | None:
        """Return how joints are closed, with the tables of ports; None without joints."""
        del port_table
        return None

    def make_jacobian(self, table: ExchangeTable) -> None:
        """Make the Jacobian of an iteration in a step, where the step is.

        Raises
        ------
        SimulationError
            When an FMU refuses.
        """
        raise NotImplementedError

    def failure(self, time: float) -> SimulationError:
        """Return the error of a step from a time in s whose iteration does not converge."""
        raise NotImplementedError

    def integrate(self, table: ExchangeTable) -> None:
        """Integrate the members that joints join over a step, where one integrator takes them."""
        raise NotImplementedError


def _columns(member: CoupledInstance) -> list[int]:
    """Return the columns of a member's outputs."""
    return list(range(member.place.start, member.place.stop))


def names_of(members: Sequence[str]) -> str:
    """Return names in words."""
    return " and ".join([", ".join(members[:-1]), members[-1]]) if len(members) > 1 else members[0]


class OneSweep(Algorithm):
    """Base of algorithms that make one sweep of each step.

    Attributes
    ----------
    again
        How often a step is made again of which too little is known.
    """

    def __init__(self, exchange: CouplingData, settings: Settings) -> None:
        super().__init__(exchange, settings)
        # Adaptive inputs are held until lines have met them, which asks nothing of the FMUs.
        ahead = settings.extrapolation.degree > 0 and settings.extrapolation is not Extrapolation.ADAPTIVE
        improves = ahead and not exchange.without_states()
        self.correction = LinearCorrection(exchange) if settings.linear_correction else None
        self.again = 1 + sum(bool(member.direct) for member in exchange.members) if improves else 0

    def is_saved(self, member: CoupledInstance) -> bool:
        """Return whether steps save the state of a member, as those that are made again."""
        del member
        return self.again > 0


class Jacobi(OneSweep):
    """Jacobi: all members step with the data at the start of the step."""

    options: ClassVar[tuple[str, ...]] = ("threads", "linear_correction")


class GaussSeidel(OneSweep):
    """Gauss–Seidel: members step in sequence; later ones use new outputs of earlier ones.

    With held inputs a later member gets the end value, else the polynomial to it.
    """

    options: ClassVar[tuple[str, ...]] = ("order", "linear_correction")
    in_turn = True
