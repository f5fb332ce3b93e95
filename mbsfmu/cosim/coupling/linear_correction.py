"""Linear correction: outputs with direct feed-through as they are for the inputs of the end of a step.

After a step an FMU shows its outputs for the inputs that it was given, extrapolated or held. With its directional
derivatives D of outputs by inputs, y + D (u − u_given) is what it would show for other inputs u. With the connections
u = K y + k this is a linear system for the outputs of all FMUs, which also closes algebraic loops: no step is repeated,
and no state is saved. After PyFMI's option `linear_correction` (Andersson 2016, "Methods and Tools for
Co-Simulation of Dynamic Systems with the Functional Mock-up Interface").
"""

from __future__ import annotations

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import ends, mean, part
from mbsfmu.cosim.fmus.fmu_instance import Floats


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
