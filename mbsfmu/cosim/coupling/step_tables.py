"""Fills the structures of compiled code with the master's arrays, which are shared."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import POINTER, Array, pointer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.compiled.library import (
    Bond,
    ExchangeTable,
    MakeStep,
    MemberTable,
    PortTable,
    RateSource,
    SavedState,
    Side,
    pointer_to,
)
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.power_bonds import BondSide, PowerBond
from mbsfmu.cosim.coupling.sweeps import Algorithm
from mbsfmu.cosim.fmus.fmu_instance import FmuCalls, Instance, Port


class Tables:
    """The structures of a run with their own arrays.

    Parameters
    ----------
    algorithm
        The algorithm.
    functions
        What makes a step of each of its members, in the order of its turns, for compiled code; None without.
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
        The instances whose states compiled code saves in steps, with these at the start of the last one.
    disturbing
        Of each call, whether it has left another floating-point environment, which was put back.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        functions: Sequence[MakeStep] | None,
        calls: FmuCalls,
        bonds: Sequence[PowerBond],
        history: OutputHistory,
        times: NDArray[np.float64],
        signals: int,
    ) -> None:
        exchange, self._kept, self._calls = algorithm.exchange, [times], calls
        self._ports: list[Port] = []
        outputs, driven = len(exchange.names), len(exchange.driven)
        self.bonds = (Bond * len(bonds))(*(Bond(self._side(each.giver), self._side(each.taker)) for each in bonds))
        self.after, self.before = np.zeros((signals, driven)), np.zeros((signals, driven))
        self.missed = np.zeros(len(exchange.entry_sources))
        self.polynomials = np.zeros((exchange.rows, outputs + driven))
        self.states: list[tuple[Instance, SavedState]] = []
        members = self._members(algorithm, functions)
        rates = self._rates(exchange)
        closing, iteration = algorithm.closing(self.port_table), algorithm.iteration_table
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
            iteration=None if iteration is None else pointer(iteration),
            closing=None if closing is None else pointer(closing),
            reactions=self.pointer(algorithm.reactions),
            reaction_count=len(algorithm.reactions),
            values=self.pointer(exchange.outputs),
            before=self.pointer(np.zeros(outputs)),
            polynomials=self.pointer(self.polynomials),
            known=self.pointer(history.known),
            extrapolation=self.pointer(np.zeros(history.rows * history.known.size)),
            interpolation=self.pointer(np.zeros(history.rows * history.known.size)),
            sweeps_again=algorithm.again,
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
        self.exchange.ports, self.exchange.slot = self._ports, algorithm.slot
        self.exchange.units = [member for member, _ in algorithm.order_of_steps]

    def port_table(self, port: Port) -> PortTable:
        """Return the table of a port, which has a number from now on."""
        table = port.table(self._calls)
        table.number = len(self._ports)
        self._ports.append(port)
        return table

    def pointer(self, array: NDArray[Any]) -> Any:
        """Return a pointer to a contiguous array, kept alive by the tables."""
        self._kept.append(array)
        return pointer_to(array)

    def _flags(self, chosen: Sequence[int] | NDArray[np.intp], count: int) -> Any:
        flags = np.zeros(count, dtype=np.uint8)
        flags[np.asarray(chosen, dtype=np.intp)] = 1
        return self.pointer(flags)

    def _members(self, algorithm: Algorithm, functions: Sequence[MakeStep] | None) -> Array[MemberTable]:
        turns = algorithm.order_of_steps
        made = (MemberTable * len(turns))(*(self._member(member, drives) for member, drives in turns))
        for number, ((member, _), table) in enumerate(zip(turns, made, strict=True)):
            table.number = number
            if functions is not None:
                table.make_step = functions[number]
            if functions is not None and algorithm.is_saved(member):
                table.saved = member.instance.state_table(algorithm.slot, self._calls)
                self.states.append((member.instance, table.saved))
        return made

    def _member(self, member: CoupledInstance, drives_later: bool) -> MemberTable:
        if member.ramps:
            member.entries.expect_slopes()
        return MemberTable(
            clock=POINTER(type(member.instance.clock))(member.instance.clock),
            inputs=self.port_table(member.entries),
            outputs=self.port_table(member.outputs),
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

    def _rates(self, exchange: CouplingData) -> Array[RateSource]:
        sources = list[RateSource]()
        for columns, port in exchange.rate_ports:
            table = self.port_table(port)
            if not table.rates:  # of a port that compiled code does not know
                table.rates = self.pointer(np.zeros(len(columns)))
                table.rate_places = self.pointer(np.arange(len(columns), dtype=np.intp))
            sources.append(RateSource(table, self.pointer(columns)))
        return (RateSource * len(sources))(*sources)

    def _side(self, side: BondSide) -> Side:
        return Side(self.pointer(side.member.taken[0, side.entry :]), len(side.member.sources), side.output)
