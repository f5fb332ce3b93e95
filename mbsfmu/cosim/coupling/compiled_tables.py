"""Fills the structures of compiled code with the master's arrays, which are shared."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import POINTER, Array, c_double, c_size_t, c_ssize_t, c_ubyte, pointer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.compiled.library import (
    Bond,
    ClosingTable,
    ExchangeTable,
    MakeStep,
    MemberTable,
    RateSource,
    SavedState,
    Side,
)
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.iterated_coupling import Iterated
from mbsfmu.cosim.coupling.stepping import BondSide, PowerBond
from mbsfmu.cosim.coupling.sweeps import Algorithm
from mbsfmu.cosim.fmus.fmu_instance import FmuCalls, Instance

_ELEMENTS = {
    np.dtype(np.float64): c_double,
    np.dtype(np.intp): c_ssize_t,
    np.dtype(np.uint8): c_ubyte,
}


class Tables:
    """The structures of a run with their own arrays.

    Parameters
    ----------
    algorithm
        The algorithm.
    functions
        What makes a step of each of its members, in the order of its turns in compiled code.
    closing
        How it closes joints; None without joints.
    calls
        Where functions get their numbers.
    bonds
        The power bonds.
    history
        The history of the run.
    times
        Communication points in s.
    signals
        Number of steps for which there is room for the values of signals.

    Attributes
    ----------
    exchange
        The structure that holds all others.
    bonds
        Structures of the bonds.
    after, before
        Values of followed signals at both ends of each step, shape (signals, number of signals followed).
    polynomials
        What inputs run along, shape (coefficients, columns).
    missed
        Integral of what each entry missed.
    states
        The instances whose states are saved in steps: with their slots, and their states at the start of the last one.
    disturbing
        Of each call, whether it has left another floating-point environment, which was put back.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        functions: Sequence[MakeStep],
        closing: ClosingTable | None,
        calls: FmuCalls,
        bonds: Sequence[PowerBond],
        history: OutputHistory,
        times: NDArray[np.float64],
        signals: int,
    ) -> None:
        exchange, self._kept = algorithm.exchange, [times]
        outputs, driven = len(exchange.names), len(exchange.driven)
        self.bonds = (Bond * len(bonds))(*(self._bond(each) for each in bonds))
        self.after, self.before = np.zeros((signals, driven)), np.zeros((signals, driven))
        self.missed = np.zeros(len(exchange.entry_sources))
        self.polynomials = np.zeros((exchange.rows, outputs + driven))
        self.states: list[tuple[Instance, str, SavedState]] = []
        members = self._members(algorithm, functions, calls)
        rates = self._rates(exchange, calls)
        self.disturbing = np.zeros(len(calls), dtype=np.uint8)
        self.exchange = ExchangeTable(
            rows=exchange.rows,
            output_rows=history.rows,
            outputs=outputs,
            columns=outputs + driven,
            known_rows=len(history.known),
            points=history.points,
            entry_count=len(self.missed),
            members=members,
            member_count=len(members),
            rate_sources=rates,
            rate_count=len(rates) if algorithm.takes_rates else 0,
            bonds=self.bonds,
            bond_count=len(bonds),
            in_turn=algorithm.in_turn,
            takes_rates=algorithm.takes_rates,
            corrects=algorithm.settings.energy_correction,
            iteration=pointer(algorithm.table) if isinstance(algorithm, Iterated) else None,
            closing=None if closing is None else pointer(closing),
            reactions=self.pointer(algorithm.reactions),
            reaction_count=len(algorithm.reactions),
            values=self.pointer(exchange.outputs),
            before=self.pointer(np.zeros(outputs)),
            polynomials=self.pointer(self.polynomials),
            known=self.pointer(history.known),
            missed=self.pointer(self.missed),
            held=self._flags(history.held, outputs),
            adapts=history.adapts,
            unknown=self._flags(history.unknown, outputs),
            corrected=self._flags(np.flatnonzero(algorithm.corrected), outputs + driven),
            times=self.pointer(times),
            signals_after=self.pointer(self.after),
            signals_before=self.pointer(self.before),
            disturbing=self.pointer(self.disturbing),
        )

    def pointer(self, array: NDArray[Any]) -> Any:
        """Return a pointer to a contiguous array, kept alive by the tables."""
        assert array.flags.c_contiguous
        self._kept.append(array)
        return array.ctypes.data_as(POINTER(_ELEMENTS[array.dtype]))

    def weigh(self, extrapolation: NDArray[np.float64], interpolation: NDArray[np.float64]) -> None:
        """Set other weights, shape (coefficients, known rows, outputs), contiguous."""
        self._weights = extrapolation, interpolation
        pointers = (each.ctypes.data_as(POINTER(c_double)) for each in self._weights)
        self.exchange.extrapolation, self.exchange.interpolation = pointers

    def _flags(self, chosen: Sequence[int] | NDArray[np.intp], count: int) -> Any:
        flags = np.zeros(count, dtype=np.uint8)
        flags[np.asarray(chosen, dtype=np.intp)] = 1
        return self.pointer(flags)

    def _members(self, algorithm: Algorithm, functions: Sequence[MakeStep], calls: FmuCalls) -> Array[MemberTable]:
        turns = algorithm.compiled_turns
        made = (MemberTable * len(turns))(
            *(
                self._member(member, function, calls, drives_later)
                for (member, drives_later), function in zip(turns, functions, strict=True)
            )
        )
        for (member, _), table in zip(turns, made, strict=True):
            slot = algorithm.compiled_slot(member)
            if slot is not None:
                table.saved = member.instance.state_table(slot, calls)
                self.states.append((member.instance, slot, table.saved))
        return made

    def _member(self, member: CoupledInstance, function: MakeStep, calls: FmuCalls, drives_later: bool) -> MemberTable:
        if member.ramps:
            member.entries.expect_slopes()
        return MemberTable(
            make_step=function,
            clock=POINTER(type(member.instance.clock))(member.instance.clock),
            inputs=member.entries.table(calls),
            outputs=member.outputs.table(calls),
            sources=self.pointer(member.sources),
            factors=self.pointer(member.factors),
            offsets=self.pointer(member.offsets),
            taken=self.pointer(member.taken),
            portion=self.pointer(np.zeros_like(member.taken)),
            entries=len(member.sources),
            first_entry=member.entry_place.start,
            first_output=member.place.start,
            converts=member.converts,
            ramps=member.ramps,
            shares=member.shares,
            rate=member.rate,
            drives_later=drives_later,
        )

    def _rates(self, exchange: CouplingData, calls: FmuCalls) -> Array[RateSource]:
        sources = [RateSource(port.table(calls), self.pointer(columns)) for columns, port in exchange.rate_ports]
        return (RateSource * len(sources))(*sources)

    def _bond(self, bond: PowerBond) -> Bond:
        return Bond(giver=self._side(bond.giver), taker=self._side(bond.taker))

    def _side(self, side: BondSide) -> Side:
        return Side(self.pointer(side.member.taken[0, side.entry :]), c_size_t(len(side.member.sources)), side.output)
