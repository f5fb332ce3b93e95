"""What a coupled step asks of its members: values, steps of their own, states.

In C, functions of the same names call those of FMUs. Here the members of a run do it, `units` and `ports` of its table:
FMUs that C cannot call, because they are in other processes or on other hosts, and all of them without a compiler.
"""

from __future__ import annotations

from mbsfmu.cosim.compiled.library import MADE, ExchangeTable, MemberTable, PortTable
from mbsfmu.stepping.language import Real


def read_port(exchange: ExchangeTable, port: PortTable) -> int:
    """Read the variables of a port into its values."""
    exchange.ports[port.number].read()
    return MADE


def write_port(exchange: ExchangeTable, port: PortTable) -> int:
    """Set the variables of a port to its values."""
    exchange.ports[port.number].write()
    return MADE


def write_slopes(exchange: ExchangeTable, port: PortTable) -> int:
    """Set the first derivatives of the inputs by time to the slopes."""
    exchange.ports[port.number].write_slopes()
    return MADE


def read_rates(exchange: ExchangeTable, port: PortTable) -> int:
    """Read the first derivatives of the outputs by time."""
    for place, rate in enumerate(exchange.ports[port.number].read_rates().tolist()):
        port.rates[port.rate_places[place]] = rate
    return MADE


def make_unit_step(exchange: ExchangeTable, member: MemberTable, begin: Real, step: Real) -> int:
    """Make one of a member's own steps from a time on, in s."""
    exchange.units[member.number].step(begin, step)
    return MADE


def save_member(exchange: ExchangeTable, member: MemberTable) -> int:
    """Save the state of a member."""
    exchange.units[member.number].instance.save(exchange.slot, exchange.saved_at)
    return MADE


def restore_member(exchange: ExchangeTable, member: MemberTable) -> int:
    """Restore the saved state of a member."""
    exchange.units[member.number].instance.restore(exchange.slot)
    return MADE


def advance_apart(exchange: ExchangeTable, first: int, behind: int) -> int:
    """Let members from one to before another go over the step at the same time: in other processes, or in threads."""
    exchange.advance_apart(first, behind)
    return MADE


def correct_outputs(exchange: ExchangeTable) -> int:
    """Correct outputs at the end of the step that depend directly on inputs, which were given others."""
    exchange.correct_outputs()
    return MADE


def integrate_joined(exchange: ExchangeTable) -> int:
    """Integrate the members that joints join over the step, as one system."""
    exchange.integrate_joined()
    return MADE
